"""What the trial of the fleet's small extras measures and installs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from docs.release import trial
from docs.release.fleet_trial import LARGEST, TOOLS, measure_packages

ROOT = Path(__file__).resolve().parents[3]


def test_the_size_of_an_environment_is_that_of_its_packages(tmp_path: Path) -> None:
    """pip and setuptools come with every environment, and are not counted."""
    folder = tmp_path / "lib/python3.11/site-packages"
    for name, size in (("pyarrow/lib.so", 3_000_000), ("one.py", 500_000), ("pip/pip.py", 7)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(bytes(size))
    assert measure_packages(tmp_path) == 3.5


def test_a_trial_without_a_wheel_says_how_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trial, "DIST", tmp_path)
    with pytest.raises(SystemExit, match="run `make release-files` first"):
        trial.try_wheel()


def test_sizes_and_versions_are_those_of_the_documents() -> None:
    """The pages tell sizes below the limits, and the other readers with which they were tried."""
    page = (ROOT / "docs/fleet/running.md").read_text("utf-8")
    sizes = [int(size) for size in re.findall(r"(\d+) MB with everything else", page)]
    assert sizes == sorted(sizes)
    for size, limit in zip(sizes, sorted(LARGEST.values()), strict=True):
        assert size <= limit
    pins = (ROOT / "constraints.txt").read_text().splitlines()
    assert TOOLS[0] in pins
    page = (ROOT / "docs/fleet/report.md").read_text("utf-8")
    (polars,) = re.findall(r"read by polars (\d+\.\d+)", page)
    assert TOOLS[1].startswith(f"polars=={polars}.")
