"""The page about fleets shows a file that is one."""

from __future__ import annotations

import re
from pathlib import Path

from kafkaform.workflow.configuration.evaluation import Inputs
from kafkaform.workflow.fleet.register_file import read_fleet

PAGE = Path(__file__).resolve().parents[3] / "docs/fleet/index.md"


def test_the_file_shown_is_read(tmp_path: Path) -> None:
    """The fleet.hcl of docs/fleet/index.md has no faults; its cluster is found."""
    shown = re.findall(r"^```text\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    (tmp_path / "shop").mkdir()
    path = tmp_path / "fleet.hcl"
    path.write_text(*shown, encoding="utf-8")
    found = read_fleet(path, Inputs.read(()))
    assert [cluster.name for cluster in found.register.clusters] == ["eu"]
