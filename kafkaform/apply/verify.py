"""Verify: after the last write, ask every live node until it shows what was applied.

Success means that a change is committed; other nodes learn about it a little later. What is not
visible at the deadline is reported as applied but not yet visible, never as failed. The run waits
for a node that does not answer until the system has had the time to notice that it is dead; a node
that is not live any more need not show anything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from ..core.change import Action, Change
from ..core.clock import Clock
from ..core.progress import Progress, Reporter
from ..core.resource import Absent, Depth, Facts, Failed, Identity, Observed, Reading
from ..core.words import NEUTRAL
from ..plan.diff import equals_target, flatten
from ..plan.observe import resolve_absence
from ..provider.contract import ResourceType, Session
from .judge import canonicalize_reading, has_emptied
from .stop import Stop
from .waiting import say_silent

POLL_SECONDS = 0.1
# A system shows what was applied in the order of its requests. Thousands of objects that are asked
# for again and again would keep it from getting there, and keep us busy.
FIRST = 100
"""Objects that a node is asked about first; as long as it shows them all, twice as many next."""
SILENT_SECONDS = 15.0
"""How long to wait for the nodes that do not answer, all together. A system needs some seconds to
count a node as dead (Kafka's `broker.session.timeout.ms` is 9 s), and more until another one has
taken over what it led."""
WRITES = (Action.CREATE, Action.UPDATE, Action.DELETE)


class Invisible(Struct, frozen=True):
    """An applied object that one node did not show at the deadline."""

    address: str
    """What the user calls the object."""
    node: str
    """The id of the node."""
    why: str = ""
    """Why the node could not be asked, empty if it answered."""
    noun: str = NEUTRAL.node
    """What the users of the system call a node."""


class _Asker(Struct, frozen=True):
    """What each look at a node needs."""

    session: Session
    """The session of the instance."""
    types: Mapping[str, ResourceType]
    """Resource types by name."""
    incarnations: Mapping[Identity, str]
    """Created object -> the id that it got."""

    def look(
        self, node: str, changes: Sequence[Change], *, whole: bool = False
    ) -> dict[Identity, str]:
        """The objects that this node does not show yet -> why it could not be asked, if so. whole:
        ask about all at once; otherwise a node that lacks one of many is not asked about those
        behind it, which it lacks as well as a rule."""
        missing: dict[Identity, str] = {}
        start, size = 0, len(changes) if whole else FIRST
        while start < len(changes) and not missing:
            missing.update(self._ask(node, changes[start : start + size]))
            start, size = start + size, size * 2
        if missing:
            failures = set(missing.values())
            why = "" if "" in failures else failures.pop()
            missing.update((change.identity, why) for change in changes[start:])
        return missing

    def _ask(self, node: str, changes: Sequence[Change]) -> dict[Identity, str]:
        # That a deleted object is gone does not need its attributes, which would be read again and
        # again while it is still there.
        deleted = [c.identity for c in changes if c.action is Action.DELETE]
        others = [c.identity for c in changes if c.action is not Action.DELETE]
        readings: dict[Identity, Reading] = {}
        for ids, depth in ((deleted, Depth.NAMES), (others, Depth.FULL)):
            if ids:
                readings.update(self.session.read(ids, at=node, depth=depth))
        return {
            c.identity: _get_failure(readings[c.identity])
            for c in changes
            if not is_visible(
                c,
                readings[c.identity],
                self.types[c.identity.kind],
                self.session.facts,
                self.incarnations.get(c.identity, c.incarnation),
            )
        }


def verify_applied(
    changes: Sequence[Change],
    incarnations: Mapping[Identity, str],
    sessions: Mapping[str, Session],
    types: Mapping[str, ResourceType],
    clock: Clock,
    stop: Stop,
    report: Reporter,
) -> tuple[Invisible, ...]:
    """What some live node does not show when the operation timeout has passed.

    changes: those whose steps were all applied; incarnations: created object -> the id that it got.
    Raises OtherSystem.
    """
    late: list[Invisible] = []
    for instance, session in sessions.items():
        mine = [c for c in changes if c.identity.instance == instance and c.steps]
        if mine:
            asker = _Asker(session, types, incarnations)
            late.extend(_wait_for_nodes(mine, asker, clock, stop, report))
            session.prove()
    return tuple(late)


def _wait_for_nodes(
    changes: Sequence[Change], asker: _Asker, clock: Clock, stop: Stop, report: Reporter
) -> list[Invisible]:
    """Ask all live nodes in turn until each shows everything, or time is up."""
    session, nodes = asker.session, tuple(asker.session.live_nodes())
    noun = session.words.node
    timeout = session.facts.operation_timeout
    deadline = clock.monotonic() + timeout
    patience, give_up = min(timeout, SILENT_SECONDS), deadline
    left: dict[str, Mapping[Identity, str]] = {n: {c.identity: "" for c in changes} for n in nodes}
    silent: set[str] = set()
    # At first about all objects: most systems show them soon, and some kinds are listed as a whole
    # for each look.
    first = True
    _show_progress(report, noun, nodes, left, len(changes))
    while left:
        for node, missing in left.items():
            rest = [c for c in changes if c.identity in missing]
            left[node] = asker.look(node, rest, whole=first)
            _show_progress(report, noun, nodes, left, len(changes))
        first = False
        quiet = {node for node, missing in left.items() if missing and all(missing.values())}
        live = session.live_nodes() if quiet else nodes
        left = {node: missing for node, missing in left.items() if missing and node in live}
        if new := quiet & left.keys() - silent:
            # One limit for all silent nodes: with a limit for each, nodes that fall silent one
            # after another would keep the run for minutes.
            give_up = give_up if silent else min(deadline, clock.monotonic() + patience)
            silent |= new
            say_silent(report, new, give_up - clock.monotonic(), noun)
        until = give_up if left.keys() <= quiet else deadline
        if not left or clock.monotonic() >= until:
            for node, missing in left.items():
                if len(missing) > FIRST and node not in quiet:
                    rest = [c for c in changes if c.identity in missing]
                    left[node] = asker.look(node, rest, whole=True)
            break
        stop.sleep(clock, POLL_SECONDS)
    _show_progress(report, noun, nodes, left, len(changes), finished=True)
    return [
        Invisible(change.address, node, left[node][change.identity], noun)
        for node in left
        for change in changes
        if change.identity in left[node]
    ]


def _show_progress(
    report: Reporter,
    noun: str,
    nodes: Collection[str],
    left: Mapping[str, Collection[Identity]],
    objects: int,
    *,
    finished: bool = False,
) -> None:
    """Each node is asked about each object, and the answers that are as planned count up."""
    what = f"{objects:,} object" + ("" if objects == 1 else "s")
    label = f"Verifying {what} on {len(nodes):,} {noun}" + ("" if len(nodes) == 1 else "s")
    total = objects * len(nodes)
    done = total - sum(len(missing) for missing in left.values())
    unit = "objects" if len(nodes) == 1 else "answers"
    ends = {"visible": done, "not yet visible": total - done} if done < total and finished else {}
    report(Progress("verify", label, done, total, unit, finished=finished, even=False, ends=ends))


def _get_failure(reading: Reading) -> str:
    return reading.fault.message if isinstance(reading, Failed) else ""


def is_visible(
    change: Change, reading: Reading, kind: ResourceType, facts: Facts, incarnation: str | None
) -> bool:
    """True if the reading shows the change as applied. incarnation: the id that the object must
    have, None for any."""
    if change.action is Action.DELETE:
        return isinstance(reading, Absent) or (
            isinstance(reading, Observed) and reading.incarnation != change.incarnation
        )
    written = [path for step in change.steps for path in step.paths]
    reading = resolve_absence(reading, change.after)
    if has_emptied(change, written, reading):
        return True
    if not isinstance(reading, Observed) or change.after is None:
        return False
    if incarnation is not None and reading.incarnation != incarnation:
        return False
    live = canonicalize_reading(reading, kind, facts)
    if change.action is Action.CREATE:
        return equals_target(change.after, live)
    now, after = flatten(live.attributes), flatten(change.after)
    return all(now.get(path) == after.get(path) for path in written)
