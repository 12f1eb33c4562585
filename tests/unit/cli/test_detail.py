"""`--concise` and `--detail`: how much of each change a plan shows."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaform.cli.app import run_command_line
from kafkaform.workflow.plan_documents import save_plan

from ..render.screens import night


@pytest.mark.parametrize("command", ["plan", "apply", "destroy", "alter topic a"])
def test_concise_and_detail_exclude_each_other(
    command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both at once is an error of usage that says what each is for, before anything connects."""
    assert run_command_line([*command.split(), "--concise", "-detail"]) == 1
    errors = capsys.readouterr().err
    assert "--concise and --detail exclude each other" in errors and "one line per" in errors


def test_show_groups_equal_changes_and_detail_does_not(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A saved plan is shown as it was planned, or each change by itself."""
    save_plan(night(), tmp_path / "plan")
    assert run_command_line(["show", str(tmp_path / "plan")]) == 0
    grouped = capsys.readouterr().out
    assert run_command_line(["show", str(tmp_path / "plan"), "--detail"]) == 0
    single = capsys.readouterr().out
    assert "40 topics: retention.ms 7 d → 3 d" in grouped
    assert "40 topics" not in single and single.count("will be updated in-place") == 42
    assert '12 kafka_topic on kafka: "a", "b", "c" and 9 more' in single
    assert "12 kafka_topic on kafka\n" in grouped
