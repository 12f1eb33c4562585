"""Turn plans and applies into JSON lines for programs, in the shape of Terraform's UI messages.

Each function makes one event or several, as data. `Stream` adds time and level and writes them as
ASCII, so that no name can forge a line or control a terminal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from msgspec import Struct

from ..core.change import Action, Change, Outcome, OutcomeStatus
from ..core.clock import Clock
from ..core.diagnostics import Diagnostic, Diagnostics
from ..core.finding import Level
from ..core.progress import Event, Message
from ..core.resource import Output
from ..core.value import FrozenMap, Value
from ..core.words import NO_WORDS, Vocabulary
from ..plan.model import OutputChange, Plan
from .attributes import choose_output_action
from .change_lines import render_headline
from .diagnostics import make_diagnostic_data
from .plan_text import render_last_line, render_removal
from .plan_view import PlanView, make_view
from .report import ApplyReport, count_applied
from .terraform import (
    Data,
    choose_drift_action,
    get_output_name,
    make_access,
    make_block,
    make_drift_details,
    make_event_resource,
    make_finding,
    make_findings,
    mask_paths,
)
from .text import SENSITIVE, inline, render_json

UI_VERSION = "1.2"
"""The version of Terraform's messages that these follow."""

# Terraform has no word for an adoption. It writes nothing, so that a no-op is the honest one.
_ACTIONS = {
    Action.CREATE: "create",
    Action.UPDATE: "update",
    Action.DELETE: "delete",
    Action.ADOPT: "noop",
    Action.IMPORT: "import",
    Action.FORGET: "forget",
    Action.REFRESH: "noop",
    Action.NOOP: "noop",
}


def _choose_action(change: Change) -> str:
    """Terraform's word for the action."""
    return "move" if change.moves else _ACTIONS[change.action]


class Stream(Struct, frozen=True):
    """Writes events as JSON lines without newline, with time and level."""

    clock: Clock
    folder: str = ""
    """The folder of a repository that the events are about; empty outside of a repository."""

    def render_line(self, event: Data) -> str:
        now = datetime.fromtimestamp(self.clock.now(), UTC)
        stamped = {
            "@level": event.get("@level", "info"),
            "@module": "kafkaform.ui",
            "@timestamp": now.isoformat(timespec="microseconds").replace("+00:00", "Z"),
        }
        if self.folder:
            stamped["folder"] = self.folder
        return render_json(event | stamped)

    def render_lines(self, events: Iterable[Data]) -> Iterator[str]:
        return map(self.render_line, events)


# ── any run ─────────────────────────────────────────────────────────────────────────────


def make_version(kafkaform_version: str) -> Data:
    """The first event of every stream."""
    return make_event(
        "version", f"kafkaform {kafkaform_version}", kafkaform=kafkaform_version, ui=UI_VERSION
    )


def make_log(text: str, level: str = "info") -> Data:
    return make_event("log", text) | {"@level": level}


def make_diagnostic(item: Diagnostic) -> Data:
    text = f"{item.severity.value.capitalize()}: {item.summary}"
    level = {"@level": "error" if item.severity == "error" else "warn"}
    return make_event("diagnostic", text, diagnostic=make_diagnostic_data(item)) | level


def make_diagnostics(items: Diagnostics) -> Iterator[Data]:
    return map(make_diagnostic, items)


def make_progress(event: Event) -> Data:
    """The progress of long work, for programs that draw it themselves."""
    if isinstance(event, Message):
        return make_log(event.text)
    return make_event(
        "progress",
        event.label,
        progress={
            "task": event.task,
            "label": event.label,
            "done": event.done,
            "total": event.total,
            "unit": event.unit,
            "finished": event.finished,
            "ends": dict(event.ends),
        },
    )


# ── a plan ──────────────────────────────────────────────────────────────────────────────


def list_plan_events(plan: Plan, words: Vocabulary = NO_WORDS) -> Iterator[Data]:
    """A whole plan: diagnostics, drift, planned changes, counts, outputs.

    words: of its providers.
    """
    view = make_view(plan, words)
    yield from make_diagnostics(plan.diagnostics)
    for name, finding in view.warnings:
        level = "info" if finding.level is Level.NOTE else "warn"
        details = {"instance": name, "finding": make_finding(finding)}
        yield make_log(finding.text, level) | {"kafkaform": details}
    yield from map(make_resource_drift, plan.drifted)
    for change in plan.changes:
        # What a refresh-only plan records is in its drift, as in Terraform.
        if change.blocked is not None or (change.effective and not view.refresh):
            yield make_planned_change(change)
    for item in plan.removals:
        line = render_removal(item, view.words_of(item.identity.instance))
        yield make_log(f"to remove: {line}")
    yield make_change_summary(view, plan.token)
    if plan.outputs:
        yield make_output_changes(plan.outputs)


def make_planned_change(change: Change) -> Data:
    """One change. A blocked one is a noop that says why."""
    blocked = change.blocked
    body: Data = {
        "resource": make_event_resource(change),
        "action": "noop" if blocked else _choose_action(change),
        "kafkaform": {
            "action": change.action.value,
            "adopts": change.adopts or change.action is Action.ADOPT,
            "takes_away": change.takes_away,
            "blocked": make_block(blocked),
            "findings": make_findings(change),
            "gains": list(map(make_access, change.gains)),
            "losses": list(map(make_access, change.losses)),
            "paths": mask_paths(change.paths),
        },
    }
    if change.reason:
        body["reason"] = change.reason
    return make_event("planned_change", render_headline(change), change=body)


def make_resource_drift(change: Change) -> Data:
    paths = [list(item.path) for item in change.drift]
    body = {
        "resource": make_event_resource(change),
        "action": choose_drift_action(change),
        "kafkaform": {
            "paths": paths,
            "changes": mask_paths(change.drift),
            **make_drift_details(change),
        },
    }
    verb = "deleted" if body["action"] == "delete" else "changed"
    text = f"{inline(change.address)}: {verb} outside kafkaform"
    return make_event("resource_drift", text, change=body)


def make_change_summary(view: PlanView, token: str) -> Data:
    """The counts of the plan's last line, and the plan's approval token."""
    counts = view.counts
    body: Data = {
        "add": counts.add,
        "change": counts.change,
        "import": counts.imports,
        "remove": counts.destroy,
        "operation": "plan",
        "kafkaform": {
            "adopt": counts.adopt,
            "forget": counts.forget,
            "move": counts.move,
            "refresh": counts.refresh,
            "blocked": counts.blocked,
            "removals": counts.removals,
            "applicable": view.applicable,
            "token": token,
        },
    }
    return make_event("change_summary", render_last_line(view), changes=body)


def make_output_changes(changes: Iterable[OutputChange]) -> Data:
    outputs = {
        name: {
            "sensitive": any(
                side is not None and side.sensitive for side in (change.before, change.after)
            ),
            "action": choose_output_action(change),
        }
        for change in changes
        if (name := get_output_name(change)) is not None
    }
    return make_event("outputs", f"Outputs: {len(outputs)}", outputs=outputs)


# ── an apply ────────────────────────────────────────────────────────────────────────────


def make_apply_start(change: Change) -> Data:
    return _make_hook("apply_start", change, "started")


def make_apply_progress(change: Change, elapsed: float) -> Data:
    """A sign of life of a change that takes long. elapsed: seconds since its `apply_start`."""
    return _make_hook("apply_progress", change, "still running", elapsed)


def make_apply_result(change: Change, outcome: Outcome, elapsed: float) -> Data:
    """`apply_complete`, or `apply_errored` if the step failed, was skipped or is unknown.

    elapsed: seconds since `apply_start`.
    """
    # Work that was started counts as complete: no later event of this stream can report its end.
    good = outcome.status in (OutcomeStatus.APPLIED, OutcomeStatus.STARTED)
    kind = "apply_complete" if good else "apply_errored"
    event = _make_hook(kind, change, outcome.status.value, elapsed)
    details: dict[str, Any] = {"status": outcome.status.value, "step": outcome.step}
    if outcome.ticket:
        details["ticket"] = outcome.ticket
    if outcome.fault:
        details["fault"] = {
            "code": outcome.fault.code,
            "message": outcome.fault.message,
            "advice": outcome.fault.advice,
        }
    event["hook"]["kafkaform"] = details
    return event if good else event | {"@level": "error"}


def make_apply_summary(report: ApplyReport) -> Data:
    """The counts at the end of an apply, and each result that is not simply applied."""
    applied = count_applied(report.rows)
    body: Data = {
        "add": applied[Action.CREATE],
        "change": applied[Action.UPDATE],
        "import": applied[Action.IMPORT],
        "remove": applied[Action.DELETE],
        "operation": "apply",
        "kafkaform": {
            "run": report.run,
            "next": report.next,
            "blocked": report.blocked,
            "removals": report.removals,
            "open": [
                {
                    "address": row.address,
                    "action": row.action.value,
                    "status": row.status.value,
                    "reason": row.reason,
                    "advice": row.fault_advice,
                }
                for row in report.rows
                if row.status is not OutcomeStatus.APPLIED
            ],
        },
    }
    return make_event("change_summary", "Apply finished", changes=body)


def make_outputs(items: Iterable[Output]) -> Data:
    """The outputs after an apply, sensitive values masked."""
    values = {item.name: _make_output(item) for item in items}
    return make_event("outputs", f"Outputs: {len(values)}", outputs=values)


# ── parts ───────────────────────────────────────────────────────────────────────────────


def make_event(kind: str, text: str, **body: Any) -> Data:
    return {"type": kind, "@message": inline(text), **body}


def _make_hook(kind: str, change: Change, message: str, elapsed: float | None = None) -> Data:
    body: Data = {
        "resource": make_event_resource(change),
        "action": _choose_action(change),
        "id_key": "key",
        "id_value": change.identity.key,
    }
    if elapsed is not None:
        body["elapsed_seconds"] = round(elapsed)
    return make_event(kind, f"{change.address}: {change.action.value} {message}", hook=body)


def _make_output(item: Output) -> Data:
    value: Value = SENSITIVE if item.sensitive else item.value
    return {
        "sensitive": item.sensitive,
        "type": _TYPES.get(type(item.value), "any"),
        "value": value,
    }


_TYPES: dict[type, str] = {
    str: "string",
    bool: "bool",
    int: "number",
    Decimal: "number",
    tuple: "list",
    FrozenMap: "object",
}
