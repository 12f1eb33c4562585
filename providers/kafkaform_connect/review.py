"""What a plan says about connectors beyond their values: why something failed, and what stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kafkaform.core.change import Action, Change, Review
from kafkaform.core.resource import Depth, Facts, Identity, Sweep

from .connector import KIND

MAX_REASONS = 3
"""Failures that a note repeats."""
_OFFSETS = (
    "its offsets stay in Kafka: a connector that is created under this name goes on from there"
)


def review_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """The listing that says why something failed, if something did."""
    return {KIND: Depth.FULL} if any(map(_restarts, changes)) else {}


def review(changes: Sequence[Change], sweeps: Mapping[str, Sweep], _: Facts) -> Review:
    """Notes under the changes; nothing is blocked."""
    items = sweeps[KIND].items if KIND in sweeps else ()
    reasons = {item.identity: item.details.get("reasons") or () for item in items}
    notes = ((c.identity, tuple(_list_notes(c, reasons))) for c in changes)
    return Review(notes={identity: said for identity, said in notes if said})


def _restarts(change: Change) -> bool:
    return change.effective and any(item.path[0] == "failures" for item in change.paths)


def _list_notes(change: Change, reasons: Mapping[Identity, Sequence[str]]) -> Iterator[str]:
    if change.action is Action.DELETE and change.effective:
        yield _OFFSETS
    if _restarts(change):
        found = reasons.get(change.identity, ())
        yield from found[:MAX_REASONS]
        if len(found) > MAX_REASONS:
            yield f"{len(found) - MAX_REASONS} more tasks failed"
        yield "what has failed is restarted once by the apply"
