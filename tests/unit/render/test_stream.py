"""JSON lines for machines."""

from __future__ import annotations

import json
from dataclasses import dataclass
from decimal import Decimal

from kafkaform.core.change import Outcome, OutcomeStatus
from kafkaform.core.diagnostics import Diagnostic, Severity
from kafkaform.core.progress import Message, Progress
from kafkaform.core.resource import Fault, FaultClass, Output
from kafkaform.render import stream, terraform
from kafkaform.render.plan_view import make_view
from kafkaform.render.report import make_apply_report

from . import plans
from .plans import plan


@dataclass
class Frozen:
    """A clock that stands still."""

    time: float = 1_795_168_800.0

    def now(self) -> float:
        return self.time

    def monotonic(self) -> float:
        return self.time

    def sleep(self, seconds: float) -> None:
        self.time += seconds


FAILED = Outcome(
    "step",
    OutcomeStatus.FAILED,
    Fault("INVALID_CONFIG", "not a number", FaultClass.DEFINITE, advice="Correct it."),
)


def test_every_line_has_terraforms_frame() -> None:
    """Level, message, module, time and type are on each line."""
    line = json.loads(stream.Stream(Frozen()).render_line(stream.make_version("0.1.0")))
    assert line["@level"] == "info" and line["type"] == "version"
    assert line["@timestamp"] == "2026-11-20T10:00:00.000000Z"
    assert line["@message"] == "kafkaform 0.1.0" and line["@module"] == "kafkaform.ui"


def test_a_plan_streams_in_order() -> None:
    """Diagnostics, drift, changes, summary, outputs: what a follower can rely on."""
    kinds = [event["type"] for event in stream.list_plan_events(plans.everything())]
    assert list(dict.fromkeys(kinds)) == [
        "diagnostic",
        "log",
        "resource_drift",
        "planned_change",
        "change_summary",
        "outputs",
    ]


def test_unchanged_objects_are_not_planned() -> None:
    """A change that does nothing, drift alone, is no planned change."""
    kinds = [event["type"] for event in stream.list_plan_events(plan(plans.drifted(1)))]
    assert "planned_change" not in kinds


def test_the_summary_is_the_last_line_of_the_plan() -> None:
    """The message is what a person reads, the numbers are the same."""
    event = stream.make_change_summary(make_view(plans.everything()), "")
    assert event["@message"].startswith("Plan: 1 to import, 1 to add, 6 to change")
    assert (event["changes"]["add"], event["changes"]["remove"]) == (1, 1)
    assert event["changes"]["operation"] == "plan"


def test_a_blocked_change_is_a_noop_with_a_reason() -> None:
    """A follower does not count what will not happen."""
    body = stream.make_planned_change(plans.PROTECTED)["change"]
    assert body["action"] == "noop"
    assert body["kafkaform"]["blocked"]["kind"] == "protected"


def test_a_resource_is_named_in_terraforms_words() -> None:
    """Address, type, name and key stand in Terraform's fields."""
    assert terraform.make_event_resource(plans.UPDATED) == {
        "addr": 'kafka_topic.orders["eu"]',
        "module": "",
        "resource": 'kafka_topic.orders["eu"]',
        "implied_provider": "kafka",
        "resource_type": "kafka_topic",
        "resource_name": "orders",
        "resource_key": "eu",
    }


def test_an_apply_is_followed_from_start_to_end() -> None:
    """Start, progress and completion name the object, the action and the seconds."""
    start = stream.make_apply_start(plans.CREATED)
    later = stream.make_apply_progress(plans.CREATED, 10.2)
    done = stream.make_apply_result(plans.CREATED, Outcome("s", OutcomeStatus.APPLIED), 12.6)
    assert [event["type"] for event in (start, later, done)] == [
        "apply_start",
        "apply_progress",
        "apply_complete",
    ]
    assert start["hook"]["action"] == "create" and start["hook"]["id_value"] == "payments"
    assert (later["hook"]["elapsed_seconds"], done["hook"]["elapsed_seconds"]) == (10, 13)


def test_a_failed_change_says_why() -> None:
    """The broker's code, its message and the advice travel with the event."""
    event = stream.make_apply_result(plans.CREATED, FAILED, 1)
    assert event["type"] == "apply_errored" and event["@level"] == "error"
    assert event["hook"]["kafkaform"]["fault"]["code"] == "INVALID_CONFIG"


def test_the_apply_summary_lists_what_is_open() -> None:
    """What was not applied is in the closing event with its reason."""
    report = make_apply_report(
        [(plans.UPDATED, FAILED), (plans.CREATED, Outcome("s", OutcomeStatus.APPLIED))], "run-1"
    )
    changes = stream.make_apply_summary(report)["changes"]
    assert (changes["add"], changes["change"], changes["operation"]) == (1, 0, "apply")
    assert [row["status"] for row in changes["kafkaform"]["open"]] == ["failed"]


def test_outputs_hide_what_is_sensitive() -> None:
    """A sensitive output has a type but not its value."""
    event = stream.make_outputs(
        [Output("a", Decimal("1.5")), Output("b", "hunter2", sensitive=True)]
    )
    assert event["outputs"]["a"] == {"sensitive": False, "type": "number", "value": Decimal("1.5")}
    assert event["outputs"]["b"]["value"] == "(sensitive)"


def test_diagnostics_and_progress_are_events() -> None:
    """Errors have their level; long work can be followed."""
    assert stream.make_diagnostic(Diagnostic(Severity.ERROR, "x"))["@level"] == "error"
    assert stream.make_diagnostic(Diagnostic(Severity.WARNING, "x"))["@level"] == "warn"
    assert stream.make_progress(Message("hello"))["type"] == "log"
    assert stream.make_progress(Progress("t", "Reading", 1, 2, "topics"))["progress"]["total"] == 2
