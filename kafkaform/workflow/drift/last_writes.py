"""Say when and by whom each drifted object was last set from here, and who changed it since."""

from __future__ import annotations

import os
from collections.abc import Mapping
from datetime import datetime

from msgspec.structs import replace

from ...audit.chain import read_glances
from ...audit.last_writes import LastWrite, find_last_writes
from ...audit.sink import Sink
from ...core.change import Change
from ...core.resource import Identity
from ...plan.model import Plan

ROOT = "KAFKAFORM_FLEET_ROOT"
"""Where the fleet's tables are, if this computer knows."""
NEVER = "the audit log does not show when it was set here"


def add_last_writes(plan: Plan, sink: Sink) -> Plan:
    """The plan with `Change.last_set` of its drifted objects. Reads the whole log once more, so it
    is for plans with drift. Raises StorageError for a log that cannot be read."""
    log = read_glances(sink.lines(), sink.location)
    last = find_last_writes(log, {change.identity for change in plan.drifted})
    since = _ask_fleet(plan, last)

    def describe(change: Change) -> str:
        write = last.get(change.identity)
        parts = [_render_write(write) if write else NEVER, since.get(change.identity, "")]
        return "; ".join(filter(None, parts))

    return replace(
        plan,
        changes=tuple(
            replace(change, last_set=describe(change)) if change.drift else change
            for change in plan.changes
        ),
    )


def _ask_fleet(plan: Plan, last: Mapping[Identity, LastWrite]) -> Mapping[Identity, str]:
    """What the fleet's tables know about who changed these objects."""
    root = os.environ.get(ROOT)
    if not root:
        return {}
    from ...fleet.answers.outside_changes import find_outside_changes  # noqa: PLC0415  # the fleet extra is slow to load

    scopes = {instance: item.facts.scope_id for instance, item in plan.instances.items()}
    times = {identity: write.time for identity, write in last.items()}
    return find_outside_changes(root, scopes, plan.drifted, times)


def _render_write(write: LastWrite) -> str:
    when = datetime.fromisoformat(write.time).strftime("%Y-%m-%d %H:%M UTC")
    return f"last set here {when} by {write.actor} (run {write.run})"
