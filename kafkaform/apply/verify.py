"""After the last write: ask every live broker until it shows what was applied.

Success means that the controller committed a change; brokers learn of it a little later. What
is not visible at the deadline is reported as applied but not yet visible, never as failed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.change import Action, Change
from ..core.clock import Clock
from ..core.dataclass import dataclass
from ..core.progress import Progress, Report
from ..core.resource import Absent, Facts, Identity, Observed, Reading
from ..plan.diff import flatten
from ..plan.lifecycle import made_by
from ..plan.observe import claimed
from ..provider.contract import ResourceType, Session
from .judge import canonical, emptied
from .stop import Stop

POLL_SECONDS = 0.2
WRITES = (Action.CREATE, Action.UPDATE, Action.DELETE)


@dataclass(frozen=True, slots=True)
class Invisible:
    """Applied, but this broker did not show it at the deadline."""

    address: str
    node: str


def verify(
    changes: Sequence[Change],
    incarnations: Mapping[Identity, str],
    sessions: Mapping[str, Session],
    types: Mapping[str, ResourceType],
    clock: Clock,
    stop: Stop,
    report: Report,
) -> tuple[Invisible, ...]:
    """What is not visible yet, over all live brokers, when the operation timeout has passed.

    changes: those that were applied whole; incarnations: of the objects that were created.
    """
    late: list[Invisible] = []
    for instance, session in sessions.items():
        mine = [c for c in changes if c.identity.instance == instance and c.steps]
        timeout = float(session.facts.values.get("operation_timeout", 30))
        deadline = clock.monotonic() + timeout
        for node in session.facts.nodes if mine else ():
            label = f"Verifying at broker {node}"
            report(Progress("verify", label, 0, len(mine), "objects"))
            left = _poll(mine, node, session, types, incarnations, deadline, clock, stop)
            late.extend(Invisible(change.address, node) for change in left)
            report(Progress("verify", label, len(mine), len(mine), "objects", finished=True))
    return tuple(late)


def _poll(
    changes: Sequence[Change],
    node: str,
    session: Session,
    types: Mapping[str, ResourceType],
    incarnations: Mapping[Identity, str],
    deadline: float,
    clock: Clock,
    stop: Stop,
) -> list[Change]:
    left = list(changes)
    while True:
        readings = session.read([c.identity for c in left], at=node)
        left = [
            c
            for c in left
            if not visible(
                c,
                readings[c.identity],
                types[c.identity.kind],
                session.facts,
                incarnations.get(c.identity, c.incarnation),
            )
        ]
        if not left or clock.monotonic() >= deadline:
            return left
        stop.sleep(clock, POLL_SECONDS)


def visible(
    change: Change, reading: Reading, kind: ResourceType, facts: Facts, incarnation: str | None
) -> bool:
    """True if this reading shows the change as applied."""
    if change.action is Action.DELETE:
        return isinstance(reading, Absent) or (
            isinstance(reading, Observed) and reading.incarnation != change.incarnation
        )
    written = [path for step in change.steps for path in step.paths]
    reading = claimed(reading, change.after)
    if emptied(change, written, reading):
        return True
    if not isinstance(reading, Observed) or change.after is None:
        return False
    if incarnation is not None and reading.incarnation != incarnation:
        return False
    live = canonical(reading, kind, facts)
    if change.action is Action.CREATE:
        return made_by(change.after, live)
    now, after = flatten(live.attributes), flatten(change.after)
    return all(now.get(path) == after.get(path) for path in written)
