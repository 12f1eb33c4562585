"""What a plan says about connectors beyond their values: why something failed, and what stays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kafkaform.core.change import Action, Change
from kafkaform.core.legacy import Review
from kafkaform.core.resource import Depth, Facts, Identity, Sweep
from kafkaform.core.value import EMPTY

from .connector import KIND

MAX_REASONS = 3
"""Failures that a note repeats."""
_OFFSETS = (
    "its offsets stay in Kafka: a connector that is created under this name goes on from there"
)


def review_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """The listing that says why something failed, if something did."""
    return {KIND: Depth.FULL} if any(map(_restarts, changes)) else {}


def review(changes: Sequence[Change], sweeps: Mapping[str, Sweep], facts: Facts) -> Review:
    """Notes under the changes; nothing is blocked."""
    items = sweeps[KIND].items if KIND in sweeps else ()
    reasons = {item.identity: item.details.get("reasons") or () for item in items}
    notes = {
        change.identity: (*_list_notes(change, reasons), *_list_unchecked(change, facts))
        for change in changes
    }
    return Review(notes={identity: found for identity, found in notes.items() if found})


def _is_deleted(change: Change) -> bool:
    return change.effective and change.action is Action.DELETE


def _restarts(change: Change) -> bool:
    return change.effective and any(item.path[0] == "failures" for item in change.paths)


def _list_unchecked(change: Change, facts: Facts) -> Iterator[str]:
    """The rights of a source with exactly-once support that only its workers can know.

    Source: KIP-618. Whether a worker supports it, and so whether a source that does not require it
    has transactions, is in no answer of the REST API; workers that do not support it refuse one
    that requires it.
    """
    after = change.after if change.effective else None
    if facts.acts_as is None or after is None:
        return
    config = after.get("config") or EMPTY
    if str(config.get("exactly.once.support")).lower() == "required":
        group = facts.scope_id.partition("/")[2] or "GROUP"
        yield (
            f"{facts.acts_as} also needs Write and Describe on the transactional id "
            f"{group}-{after['name']}-N of each task N, which this plan does not check"
        )


def _list_notes(change: Change, reasons: Mapping[Identity, Sequence[str]]) -> Iterator[str]:
    if _is_deleted(change):
        yield _OFFSETS
    if _restarts(change):
        found = reasons.get(change.identity, ())
        yield from found[:MAX_REASONS]
        if len(found) > MAX_REASONS:
            yield f"{len(found) - MAX_REASONS} more tasks failed"
        yield "what has failed is restarted once by the apply"
