"""Sum up a record in a few words, for people who read a log."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ..core.text.quantity import render_count
from ..core.value import FrozenMap
from .event import Record


def summarize_record(record: Record) -> str:
    """What a record says. It is foreign text: names in it have not been made harmless."""
    text = _TOLD.get(record.kind, _summarize_step)(record.body)
    return f"{text} by {record.actor}" if record.kind == "run_begin" else text


def _summarize_step(body: FrozenMap) -> str:
    """The object, the action and the outcome of a step."""
    words = [body.get("address"), body.get("action"), body.get("outcome")]
    if body.get("error"):
        words.append(body["error"]["message"])
    return " ".join(str(word) for word in words if word)


def _summarize_verification(body: FrozenMap) -> str:
    late = body["invisible"]
    return render_count(body["checked"], "object") + (
        f", {len(late)} not visible yet" if late else ""
    )


_TOLD: Mapping[str, Callable[[FrozenMap], str]] = {
    "run_begin": lambda body: str(body.get("command", "")),
    "plan": lambda body: f"approval {body['approval']}",
    "approval": lambda body: f"given by {body.get('how', 'nobody')}",
    "validate": lambda body: render_count(len(body["steps"]), "step"),
    "verify": _summarize_verification,
    "state": lambda body: (
        f"{body.get('reason')}: {render_count(len(body.get('objects', ())), 'object')}"
    ),
    "run_end": lambda body: "complete" if body["complete"] else "not complete",
}
"""Kind of a record -> the summary of its body; all other kinds are about a step."""
