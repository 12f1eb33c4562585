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
    told = [change for change in changes if _is_deleted(change) or _restarts(change)]
    items = sweeps[KIND].items if told and KIND in sweeps else ()
    reasons = {item.identity: item.details.get("reasons") or () for item in items}
    return Review(notes={change.identity: tuple(_list_notes(change, reasons)) for change in told})


def _is_deleted(change: Change) -> bool:
    return change.effective and change.action is Action.DELETE


def _restarts(change: Change) -> bool:
    return change.effective and any(item.path[0] == "failures" for item in change.paths)


def _list_notes(change: Change, reasons: Mapping[Identity, Sequence[str]]) -> Iterator[str]:
    if _is_deleted(change):
        yield _OFFSETS
    if _restarts(change):
        found = reasons.get(change.identity, ())
        yield from found[:MAX_REASONS]
        if len(found) > MAX_REASONS:
            yield f"{len(found) - MAX_REASONS} more tasks failed"
        yield "what has failed is restarted once by the apply"
