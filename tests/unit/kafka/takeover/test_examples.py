"""`import --from` on the example of each tool: the plan imports exactly what the tool has made."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from kafkaform.core.change import Action
from kafkaform.plan.model import Options
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration
from kafkaform.workflow.operations import apply_changes
from kafkaform.workflow.transfer.other_tools import ForeignSource, take_over
from kafkaform_kafka.memory import SimulatedCluster

from ....kit.commands.stocks import desk
from ....kit.kafka.takeover import CANARY, EXAMPLES, copy_source, get_tool, list_examples, read_live
from ....kit.simulated.engine import Screen

UPDATE = os.environ.get("KAFKAFORM_UPDATE_GOLDEN") == "1"


@pytest.mark.parametrize("example", list_examples())
def test_the_plan_imports_exactly_what_the_tool_has_made(
    example: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is live was declared by hand from the tool's own code. The plan of the generated file
    imports every object of it, changes nothing, and is clean once applied."""
    monkeypatch.setenv("LIVE_PASSWORD", "secret")
    monkeypatch.chdir(tmp_path)
    cluster = SimulatedCluster()
    for name in ("maker", "taker"):
        (tmp_path / name).mkdir()
    maker, taker = desk(tmp_path / "maker", cluster), desk(tmp_path / "taker", cluster)
    maker.write("live.kf.hcl", read_live(example))
    accept = Options(accept=("access-unproven", "access-opened"))
    apply_changes(maker.space(), options=accept, approve=Screen().approve)
    source = copy_source(example, tmp_path).relative_to(tmp_path)

    read = read_configuration(taker.path, Inputs())
    generated = take_over(read, ForeignSource(get_tool(example), (source,)))
    taker.write("taken.kf.hcl", generated.text)

    plan = taker.plan()
    live = {item.identity for item in maker.space().desired.declared}
    assert {c.identity: c.action for c in plan.changes} == dict.fromkeys(live, Action.IMPORT)
    assert not any(change.paths for change in plan.changes)
    taker.apply()
    assert not taker.plan().effective

    assert CANARY not in generated.text + "".join(generated.gaps)
    golden = EXAMPLES / example / "omissions.txt"
    said = "".join(f"{gap}\n" for gap in generated.gaps)
    if UPDATE:
        golden.write_text(said)
    assert golden.read_text() == said
