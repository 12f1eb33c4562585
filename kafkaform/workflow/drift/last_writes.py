"""Say when and by whom each drifted object was last set from here, and who changed it since."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime

from msgspec.structs import replace

from ...audit.chain import read_glances
from ...audit.sink import Sink
from ...audit.writes import LastWrite, find_last_writes
from ...core.change import Change, Path, PathChange
from ...core.resource import Identity
from ...plan.model import Plan

ROOT = "KAFKAFORM_FLEET_ROOT"
"""Where the fleet's tables are, if this computer knows."""
NEVER = "the audit log does not show when it was set here"
OUTSIDE = "changed outside kafkaform"


def add_last_writes(plan: Plan, sink: Sink) -> Plan:
    """The plan with `Change.last_set` of its drifted objects. Reads the whole log once more, so it
    is for plans with drift. Raises StorageError for a log that cannot be read."""
    last = _read_last_writes(sink, {change.identity for change in plan.drifted})
    since = _ask_fleet(plan, plan.drifted, last)

    def describe(change: Change) -> str:
        write = last.get(change.identity)
        sentences = [_render_write(write) if write else NEVER, since.get(change.identity, "")]
        return "; ".join(filter(None, sentences))

    return replace(
        plan,
        changes=tuple(
            replace(change, last_set=describe(change)) if change.drift else change
            for change in plan.changes
        ),
    )


def tell_writers(
    sink: Sink, plan: Plan, differing: Mapping[Identity, Collection[Path]]
) -> Mapping[Identity, str]:
    """Who changed these objects since the plan was made, as text. differing: object -> the paths
    that are not as the plan saw them. Raises StorageError for a log that cannot be read."""
    changed = [
        replace(change, drift=tuple(PathChange(p, None, None) for p in differing[change.identity]))
        for change in plan.changes
        if change.identity in differing
    ]
    last = _read_last_writes(sink, differing)
    since = _ask_fleet(plan, changed, last)

    def describe(identity: Identity) -> str:
        write = last.get(identity)
        if write is not None and write.time >= plan.created:
            return _render_change(write)
        before = _render_write(write) if write else NEVER
        return "; ".join(filter(None, (OUTSIDE, before, since.get(identity, ""))))

    return {identity: describe(identity) for identity in differing}


def tell_writers_since(
    sink: Sink, plan: Plan, identities: Collection[Identity], since: str
) -> Mapping[Identity, str]:
    """Who changed these objects of a new plan since an earlier one was made, as text, without those
    of which nobody knows. since: when that was, RFC 3339. Raises StorageError for a log that cannot
    be read."""
    drifted = {change.identity: change.last_set for change in plan.drifted}
    last = _read_last_writes(sink, identities)
    writers = {}
    for identity in identities:
        write = last.get(identity)
        if write is not None and write.time >= since:
            writers[identity] = _render_change(write)
        elif identity in drifted:
            writers[identity] = f"{OUTSIDE}; {drifted[identity]}"
    return writers


def _read_last_writes(sink: Sink, identities: Collection[Identity]) -> Mapping[Identity, LastWrite]:
    return find_last_writes(read_glances(sink.lines(), sink.location), identities)


def _ask_fleet(
    plan: Plan, changed: Sequence[Change], last: Mapping[Identity, LastWrite]
) -> Mapping[Identity, str]:
    """What the fleet's tables know about who changed these objects, whose drift names the paths."""
    root = os.environ.get(ROOT)
    if not root:
        return {}
    from ...fleet.answers.history import find_outside_changes  # noqa: PLC0415  # the fleet extra is slow to load

    scopes = {instance: item.facts.scope_id for instance, item in plan.instances.items()}
    times = {identity: write.time for identity, write in last.items()}
    return find_outside_changes(root, scopes, changed, times)


def _render_write(write: LastWrite) -> str:
    return f"last set here {_render_time(write)} by {write.actor} (run {write.run})"


def _render_change(write: LastWrite) -> str:
    return f"changed {_render_time(write)} by {write.actor} (run {write.run})"


def _render_time(write: LastWrite) -> str:
    return datetime.fromisoformat(write.time).strftime("%Y-%m-%d %H:%M UTC")
