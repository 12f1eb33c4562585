"""What stands after a plan and after an apply: the next command, outputs, and only what is true."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.diagnostics import Diagnostic, Severity
from kafkaform.core.errors import StorageError
from kafkaform.state.backends.local import LocalBackend
from kafkaform.state.model import State
from kafkaform.workflow import applying
from kafkaform_kafka.memory import SimulatedClock, SimulatedCluster

from ...kit.commands.fixtures import here
from ...kit.commands.here import Here
from ...reliability.hostile.edited import simulate

__all__ = ["here"]

CONFIGURATION = """
provider "kafka" { bootstrap_servers = ["localhost:9092"] }
variable "days" { default = "1" }
variable "token" {
  default   = "none"
  sensitive = true
}
resource "kafka_topic" "a" {
  name       = "a"
  partitions = 2
  config     = { "retention.ms" = "${var.days}000" }
}
output "name" { value = kafka_topic.a.name }
output "hidden" {
  value     = var.token
  sensitive = true
}
"""


@pytest.fixture
def cluster(here: Here, monkeypatch: pytest.MonkeyPatch) -> Iterator[SimulatedCluster]:
    """A folder whose commands find this cluster, and wait for nothing."""
    made = SimulatedCluster(brokers=2, clock=SimulatedClock())
    simulate(monkeypatch, made)
    here.write("main.kf.hcl", CONFIGURATION)
    yield made


def find_next(text: str) -> list[str]:
    [line] = [line for line in text.splitlines() if line.startswith("Next: ")]
    return shlex.split(line.removeprefix("Next: "))


def test_the_next_command_applies_the_plan(here: Here, cluster: SimulatedCluster) -> None:
    """It is the last line on stdout, and works as it stands."""
    said = here.done("plan", "--target=kafka_topic.a", "--var", "days=2", "--state=s.json")
    program, *words = find_next(said.out)
    assert said.out.rstrip().splitlines()[-1].startswith("Next: ")
    assert program == "kafkaform"
    assert words[:2] == ["apply", "--expect"]
    assert words[3:] == ["--target=kafka_topic.a", "--state=s.json", "--var", "days=2"]
    assert "Apply complete: 1 added" in here.done(*words).out


def test_the_next_command_of_a_saved_plan(here: Here, cluster: SimulatedCluster) -> None:
    """It names the file, and the folder that the user typed."""
    here.write("values.kfvars.hcl", 'days = "3"\n')
    folder = Path.cwd()
    given = ("--var-file=values.kfvars.hcl", "--out=my plan")
    said = here.done(f"-chdir={folder}", "plan", *given)
    assert find_next(said.out) == [
        "kafkaform",
        f"-chdir={folder}",
        "apply",
        "my plan",
        "--var-file=values.kfvars.hcl",
    ]
    assert "Saved to my plan." in said.err
    assert "Apply complete: 1 added" in here.done(*find_next(said.out)[1:]).out


def test_a_sensitive_value_is_not_in_the_next_command(
    here: Here, cluster: SimulatedCluster
) -> None:
    """Its place is marked, so that the user types it again."""
    said = here.done("plan", "--var", "token=a-token-nobody-may-see", "--var", "days=2")
    assert "--var token=… --var days=2" in said.out
    assert "nobody-may-see" not in said.text


def test_quiet_names_no_next_command(here: Here, cluster: SimulatedCluster) -> None:
    """Scripts get the plan alone."""
    assert "Next: " not in here.done("plan", "-q").text


def test_nothing_comes_next_if_there_is_nothing_to_do(
    here: Here, cluster: SimulatedCluster
) -> None:
    """A plan without changes, and one that cannot be applied, name no command."""
    here.done("apply", "--auto-approve")
    assert "Next: " not in here.done("plan").text
    here.write("main.kf.hcl", CONFIGURATION.replace("partitions = 2", "partitions = 1"))
    assert "Next: " not in here.fails("plan", code=8)


def test_outputs_are_shown_after_an_apply(here: Here, cluster: SimulatedCluster) -> None:
    """As Terraform shows them, also after an apply without changes; for programs as an event."""
    shown = '\nOutputs:\n\nhidden = (sensitive)\nname = "a"\n'
    assert here.done("apply", "--auto-approve").out.endswith(shown)
    assert here.done("apply", "--auto-approve").out.endswith(shown)
    events = here.done("apply", "--auto-approve", "--json").lines
    [event] = [one for one in events if one["type"] == "outputs"]
    assert event["outputs"]["name"]["value"] == "a"
    assert event["outputs"]["hidden"]["value"] == "(sensitive)"


def test_a_destroy_shows_no_outputs(here: Here, cluster: SimulatedCluster) -> None:
    """What they are about is gone."""
    here.done("apply", "--auto-approve")
    assert "Outputs:" not in here.done("destroy", "--confirm", cluster.id).text


def test_no_apply_is_complete_before_an_error(here: Here, cluster: SimulatedCluster) -> None:
    """Something that was asked for is left out: what was applied is counted, and not called
    complete."""
    cluster.outside.create("b")
    more = 'resource "kafka_topic" "b" {\n  name = "b"\n  partitions = 1\n}\n'
    here.write("main.kf.hcl", CONFIGURATION + more)
    said = here.fails("apply", "--auto-approve", code=8)
    assert "Applied: 1 added, 0 changed, 0 destroyed. 1 blocked." in said
    assert "Apply complete" not in said


def test_no_apply_is_complete_if_a_rule_does_not_hold(
    here: Here, cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error comes after the result, which does not contradict it."""
    broken = Diagnostic(Severity.ERROR, "the id is another one")
    monkeypatch.setattr(applying, "_save_outputs", lambda scene, plan: (broken,))
    said = here.run("apply", "--auto-approve")
    assert said.code == 1 and "the id is another one" in said.err
    assert "Applied: 1 added" in said.out
    assert "Apply complete" not in said.text


def test_no_apply_is_complete_if_the_state_is_not_saved(
    here: Here, cluster: SimulatedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last save fails after everything is sent: only the error stands at the end."""
    save, calls = LocalBackend.save, iter(range(100))

    def fail_at_last(self: LocalBackend, state: State, version: str | None) -> str:
        if next(calls) >= 1:
            raise StorageError("no space left on the disk")
        return save(self, state, version)

    monkeypatch.setattr(LocalBackend, "save", fail_at_last)
    said = here.run("apply", "--auto-approve")
    assert said.code == 9 and "no space left" in said.err
    assert "Apply complete" not in said.text


def test_a_refresh_only_apply(here: Here, cluster: SimulatedCluster) -> None:
    """From the command line: what drifted, who set it last, and the exact next command."""
    here.done("apply", "--auto-approve")
    cluster.outside.alter("a", {"retention.ms": "7"})
    said = here.done("plan", "--refresh-only", "--comment=drift.md")
    assert "retention.ms 1 s → 7 ms" in said.out
    assert "last set here " in said.out and "Plan: 0 to add, 0 to change" in said.out
    assert "1 to refresh" in said.out
    words = find_next(said.out)[1:]
    assert "--refresh-only" in words
    comment = Path("drift.md").read_text("utf-8")
    assert comment.index("Changed outside kafkaform") < comment.index("kafkaform apply")
    assert comment.startswith("### kafkaform plan: drift of 1 object\n")
    assert "last set here" in comment
    assert here.run("plan", "--refresh-only", "--detailed-exitcode").code == 2
    assert here.run("plan", "--refresh-only", "--fail-on=drift").code == 8
    assert "1 refreshed" in here.done(*words).out
    assert "1 managed object is as the state records." in here.done("plan", "--refresh-only").out
    assert here.run("plan", "--refresh-only", "--detailed-exitcode").code == 0


def get_events(said: Any, kind: str) -> list[dict[str, Any]]:
    return [one for one in said.lines if one["type"] == kind]


def test_a_refresh_only_plan_for_programs(here: Here, cluster: SimulatedCluster) -> None:
    """Drift is an event with who set it last; nothing is planned."""
    here.done("apply", "--auto-approve")
    cluster.outside.delete("a")
    said = here.done("plan", "--refresh-only", "--json")
    [drift] = get_events(said, "resource_drift")
    assert drift["change"]["action"] == "delete"
    assert drift["change"]["kafkaform"]["last_set"].startswith("last set here ")
    assert not get_events(said, "planned_change")


@pytest.mark.parametrize(
    "flags",
    [("--destroy",), ("--adopt=*",), ("--max-deletes=1",), ("--validate",)],
    ids=lambda flags: flags[0],
)
def test_flags_that_do_not_go_with_a_refresh(
    here: Here, cluster: SimulatedCluster, flags: tuple[str, ...]
) -> None:
    """Each is an error that names both flags."""
    said = here.fails("plan", "--refresh-only", *flags)
    assert "--refresh-only" in said and flags[0].partition("=")[0] in said
