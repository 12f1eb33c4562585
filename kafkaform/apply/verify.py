"""Compare what live nodes show with what was applied.

A fresh reading shows whether one step happened, not yet, or something else did. Reads can lag
behind writes and never run ahead of them. So the target, once seen, is proof, and the pre-image
proves nothing before the deadline. An object with a running task counts as what it will be.

After the last write, every live node is asked until it shows what was applied. Success means that a
change is committed; other nodes learn about it a little later. The run waits as long as the nodes
make progress: the time limit starts again whenever they show more of it. What a node does not show
then is reported with the reason: the node is late, does not answer, hides the object because a
right is missing, or keeps a value that was removed. The run waits for a node that does not answer
until the system has had the time to notice that it is dead; a node that is not live any more need
not show anything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.change import Action, Change, Path, Step
from ..core.clock import Clock
from ..core.finding import AccessRow, Breadth
from ..core.progress import Progress, Reporter
from ..core.resource import Absent, Depth, Facts, Failed, Hidden, Identity, Observed, Reading
from ..core.value import EMPTY, Value
from ..core.words import NEUTRAL
from ..plan.diff import (
    equals_target,
    flatten,
    lay_over,
    list_unset,
    render_leaf,
    render_path,
)
from ..plan.observe import compute_destination, resolve_absence
from ..provider.contract import ResourceType, Session
from .rate_limits import say_silent
from .stop import Stop

POLL_SECONDS = 0.1
# A system shows what was applied in the order of its requests. Thousands of objects that are asked
# for again and again would keep it from getting there, and keep us busy.
FIRST = 100
"""Objects that a node is asked about first; as long as it shows them all, twice as many next."""
SILENT_SECONDS = 15.0
"""How long to wait for the nodes that do not answer, all together. A system needs some seconds to
count a node as dead (Kafka's `broker.session.timeout.ms` is 9 s), and more until another one has
taken over what it led. That does not depend on how long it may take for one request."""
STUCK_SECONDS = 5.0
"""How long to wait without progress if nothing is missing that is likely to come: a right, or the
removal of a value that is in effect anyway."""
SHOWN = 3
"""How many values of one object a text names."""
_NOUNS = {Action.CREATE: "creation", Action.UPDATE: "change", Action.DELETE: "deletion"}
Values = Mapping[Path, Value]
"""Path -> value."""
NO_VALUES: Values = {}


class Judgement(StrEnum):
    """What one reading says about one step."""

    DONE = "done"
    """The object is as the step makes it."""
    STARTED = "started"
    """It will be as soon as the running task has ended."""
    NOT_YET = "not_yet"
    """The object is as it was before the step."""
    OTHER = "other"
    """It is neither: somebody else changed it."""
    UNKNOWN = "unknown"
    """The object is hidden, could not be read, or looks the same before and after."""


HAPPENED = frozenset({Judgement.DONE, Judgement.STARTED})


def judge_step(
    change: Change, step: Step, reading: Reading, kind: ResourceType, facts: Facts
) -> Judgement:
    """How the live object compares with the pre-image and the target of the step."""
    if has_emptied(change, step.paths, reading):
        return Judgement.DONE
    live = resolve_absence(reading, change.after)
    if change.action is Action.CREATE and live is not reading:
        # Others had set something on it before our create. Only if all is as we want it is it ours;
        # other values are their pre-image.
        is_done = judge_step(change, step, live, kind, facts) is Judgement.DONE
        return Judgement.DONE if is_done else Judgement.NOT_YET
    reading = live
    if isinstance(reading, Absent):
        return _judge_absent(change.action)
    if not isinstance(reading, Observed):
        return Judgement.UNKNOWN
    if change.action is Action.DELETE:
        # Another object of that name means that ours is gone, whoever made the new one.
        same_incarnation = reading.incarnation == change.incarnation
        return Judgement.NOT_YET if same_incarnation else Judgement.DONE
    if change.incarnation is not None and reading.incarnation != change.incarnation:
        return Judgement.OTHER
    coming = _judge_observed(change, step, canonicalize_reading(reading, kind, facts))
    now = _judge_observed(
        change, step, canonicalize_reading(replace(reading, moving=None), kind, facts)
    )
    if coming is Judgement.DONE and now is not Judgement.DONE:
        return Judgement.STARTED
    return coming


def is_untellable(change: Change, step: Step) -> bool:
    """True if all that this step writes is hidden data, such as a new password, so that a live
    object looks the same before and after it."""
    if change.action is not Action.UPDATE:
        return False
    return _agree(step.paths, flatten(change.before), flatten(change.after))


def has_emptied(change: Change, paths: Collection[Path], reading: Reading) -> bool:
    """True if the object is absent because this update removed the last of it.

    An object that consists only of its values and has no incarnation ends so, and is not lost.
    paths: those that the update wrote, all of which must have been removed.
    """
    if change.action is not Action.UPDATE or change.incarnation is not None or not paths:
        return False
    after = flatten(change.after)
    return isinstance(reading, Absent) and all(after.get(path) is None for path in paths)


def canonicalize_reading(reading: Observed, kind: ResourceType, facts: Facts) -> Observed:
    """The reading with canonical attributes, as they will be once a running task has ended."""
    return replace(reading, attributes=kind.canonical(compute_destination(reading), facts))


def _judge_absent(action: Action) -> Judgement:
    if action is Action.DELETE:
        return Judgement.DONE
    return Judgement.NOT_YET if action is Action.CREATE else Judgement.OTHER


def _judge_observed(change: Change, step: Step, live: Observed) -> Judgement:
    now, after, before = flatten(live.attributes), flatten(change.after), flatten(change.before)
    if change.action is Action.CREATE:
        # The first of several requests makes the object, without what the others will add to it.
        one_of_many = len(change.steps) > 1 and bool(step.paths)
        # What nobody can read back is not ours to look for.
        target = lay_over(change.after or EMPTY, change.theirs, EMPTY)
        reached = change.after is not None and (
            _agree(step.paths, now, after) if one_of_many else equals_target(target, live)
        )
        return Judgement.DONE if reached else Judgement.OTHER
    if is_untellable(change, step):
        return Judgement.UNKNOWN
    if _agree(step.paths, now, after):
        return Judgement.DONE
    # A step that waited for another step of its change starts from what that one left, which the
    # change does not record.
    not_yet = step.after or _agree(step.paths, now, before)
    return Judgement.NOT_YET if not_yet else Judgement.OTHER


def _agree(paths: tuple[Path, ...], first: dict[Path, Value], second: dict[Path, Value]) -> bool:
    return all(first.get(path) == second.get(path) for path in paths)


class Sight(StrEnum):
    """Why a node does not show what was applied."""

    LATE = "late"
    """It shows less, or another value."""
    SILENT = "silent"
    """It does not answer, or answers with an error."""
    HIDDEN = "hidden"
    """We have no right to see the object."""
    KEPT = "kept"
    """It still shows values whose removal was accepted, and all else as it was applied."""


class Invisible(Struct, frozen=True):
    """An applied object that one node did not show as it was applied."""

    address: str
    """What the user calls the object."""
    node: str
    """The id of the node."""
    reason: str = ""
    """LATE: what it shows instead, if anything; SILENT: the error; HIDDEN: who lacks which right,
    and by which change of this run; KEPT: the values."""
    noun: str = NEUTRAL.node
    """What the users of the system call a node."""
    sight: Sight = Sight.LATE
    """The kind of reason."""
    counts: bool = True
    """False for a node that does not answer and may be out of service, if others show the
    object."""
    deleted: Identity | None = None
    """The object, if it was deleted."""

    @property
    def text(self) -> str:
        """What is the matter, as the rest of a sentence about an applied object."""
        if self.sight is Sight.HIDDEN:
            return f"but cannot be seen: {self.reason}"
        cause = f"it does not answer ({self.reason})" if self.sight is Sight.SILENT else self.reason
        sight = "not yet visible" if self.deleted is None else "not yet gone"
        return f"{sight} on {self.noun} {self.node}{f': {cause}' if cause else ''}"


class Verified(Struct, frozen=True):
    """What the nodes showed in the end."""

    invisible: tuple[Invisible, ...] = ()
    """What a live node did not show."""
    kept_values: Mapping[Identity, Values] = field(default_factory=dict)
    """Object -> values that a node keeps although their removal was accepted."""
    reported: Mapping[Identity, Values] = field(default_factory=dict)
    """Object -> values that a node reports although nothing sets them, and that would be in effect
    anyway."""


class _Gap(Struct, frozen=True):
    """What one node does not show of one object, and why."""

    sight: Sight = Sight.LATE
    reason: str = ""
    kept_values: Values = NO_VALUES
    """The values that it keeps."""
    harmless: bool = False
    """All of them would be in effect anyway."""

    @property
    def is_stuck(self) -> bool:
        """True if waiting is unlikely to help."""
        return self.sight is Sight.HIDDEN or self.harmless


_UNSEEN = _Gap()
Gaps = Mapping[Identity, _Gap]


class _Asker(Struct, frozen=True):
    """What each look at a node needs."""

    session: Session
    """The session of the instance."""
    types: Mapping[str, ResourceType]
    """Resource types by name."""
    incarnations: Mapping[Identity, str]
    """Created object -> the id that it got."""
    losses: Sequence[tuple[Change, AccessRow]] = ()
    """What the user of the session loses by changes of this run."""
    reported: dict[Identity, Values] = field(default_factory=dict)
    """Created object -> the values that a node reports although nothing sets them."""

    def look(
        self, node: str, changes: Sequence[Change], *, whole: bool = False
    ) -> dict[Identity, _Gap]:
        """The objects that this node does not show yet, and why. whole: ask about all at once;
        otherwise a node that lacks one of many is not asked about those behind it, which it lacks
        as well as a rule."""
        missing: dict[Identity, _Gap] = {}
        start, size = 0, len(changes) if whole else FIRST
        while start < len(changes) and not missing:
            missing.update(self._ask(node, changes[start : start + size]))
            start, size = start + size, size * 2
        if missing:
            gaps = list(missing.values())
            silent = all(gap.sight is Sight.SILENT for gap in gaps)
            behind = gaps[0] if silent else _UNSEEN
            missing.update((change.identity, behind) for change in changes[start:])
        return missing

    def _ask(self, node: str, changes: Sequence[Change]) -> dict[Identity, _Gap]:
        # That a deleted object with an id is gone does not need its attributes, which would be read
        # again and again while it is still there.
        deleted = [c.identity for c in changes if c.action is Action.DELETE and c.incarnation]
        wanted_identities = [
            c.identity for c in changes if c.action is not Action.DELETE or not c.incarnation
        ]
        readings: dict[Identity, Reading] = {}
        for ids, depth in ((deleted, Depth.NAMES), (wanted_identities, Depth.FULL)):
            if ids:
                readings.update(self.session.read(ids, at=node, depth=depth))
        gaps = {}
        for change in changes:
            identity = change.identity
            kind, reading = self.types[identity.kind], readings[identity]
            incarnation = self.incarnations.get(identity, change.incarnation)
            if not is_visible(change, reading, kind, self.session.facts, incarnation):
                gaps[identity] = self._find_gap(change, reading)
            elif change.action is Action.CREATE and isinstance(reading, Observed):
                unset = list_unset(change.after, reading)
                if unset:
                    self.reported[identity] = unset
        return gaps

    def _find_gap(self, change: Change, reading: Reading) -> _Gap:
        facts = self.session.facts
        if not isinstance(reading, Hidden):
            return _find_gap(change, reading, self.types[change.identity.kind], facts)
        whom = facts.principal or "the user of the run"
        lacks = "does not have" if change.before is None else "no longer has"
        takers = [taker for taker, row in self.losses if row.covers(reading.right)]
        cause = f": the {_NOUNS[takers[0].action]} of {takers[0].address} took it" if takers else ""
        return _Gap(Sight.HIDDEN, f"{whom} {lacks} the right {reading.right}{cause}")


def verify_applied(
    changes: Sequence[Change],
    incarnations: Mapping[Identity, str],
    sessions: Mapping[str, Session],
    types: Mapping[str, ResourceType],
    clock: Clock,
    stop: Stop,
    report: Reporter,
) -> Verified:
    """What some live node does not show once the nodes make no more progress.

    changes: those whose steps were all applied; incarnations: created object -> the id that it got.
    Raises OtherSystem.
    """
    verified = []
    for instance, session in sessions.items():
        instance_changes = [c for c in changes if c.identity.instance == instance and c.steps]
        if instance_changes:
            asker = _Asker(
                session,
                types,
                incarnations,
                _list_losses(instance_changes, session.facts.principal),
            )
            gaps = _wait_for_nodes(instance_changes, asker, clock, stop, report)
            session.prove()
            verified.append(_sum_up(instance_changes, gaps, asker))
    return Verified(
        tuple(item for item_verified in verified for item in item_verified.invisible),
        {
            identity: values
            for item_verified in verified
            for identity, values in item_verified.kept_values.items()
        },
        {
            identity: values
            for item_verified in verified
            for identity, values in item_verified.reported.items()
        },
    )


def _list_losses(
    changes: Sequence[Change], principal: str | None
) -> list[tuple[Change, AccessRow]]:
    """What these changes take from this principal, or from everybody."""
    return [
        (change, row)
        for change in changes
        if change.action in _NOUNS
        for row in change.losses
        if row.breadth is Breadth.EVERYBODY or row.principal == principal
    ]


def _sum_up(changes: Sequence[Change], gaps_by_node: Mapping[str, Gaps], asker: _Asker) -> Verified:
    """left: node -> what it does not show."""
    invisible: list[Invisible] = []
    kept_values: dict[Identity, Values] = {}
    reported = dict(asker.reported)
    noun, facts = asker.session.words.node, asker.session.facts
    for node, gaps in gaps_by_node.items():
        for change in changes:
            identity = change.identity
            gap = gaps.get(identity)
            if gap is None:
                continue
            if gap.harmless:
                reported[identity] = {**reported.get(identity, NO_VALUES), **gap.kept_values}
                continue
            if gap.sight is Sight.KEPT:
                kept_values[identity] = {**kept_values.get(identity, NO_VALUES), **gap.kept_values}
            silent = gap.sight is Sight.SILENT and not facts.lists_nodes
            counts = not silent or sum(
                identity in node_gaps for node_gaps in gaps_by_node.values()
            ) >= len(facts.nodes)
            deleted = identity if change.action is Action.DELETE else None
            invisible.append(
                Invisible(change.address, node, gap.reason, noun, gap.sight, counts, deleted)
            )
    return Verified(tuple(invisible), kept_values, reported)


def _wait_for_nodes(
    changes: Sequence[Change], asker: _Asker, clock: Clock, stop: Stop, report: Reporter
) -> Mapping[str, Gaps]:
    """Ask all live nodes in turn until each shows everything, or until they make no more progress.
    Node -> what it does not show."""
    session, nodes = asker.session, tuple(asker.session.live_nodes())
    noun = session.words.node
    timeout = session.facts.operation_timeout
    give_up = clock.monotonic() + timeout
    gaps: dict[str, Gaps] = {n: {c.identity: _UNSEEN for c in changes} for n in nodes}
    least, progressed = len(nodes) * len(changes), clock.monotonic()
    silent, quiet = set[str](), set[str]()
    # At first about all objects: most systems show them soon, and some kinds are listed as a whole
    # for each look.
    whole = True
    _show_progress(report, noun, nodes, gaps, len(changes))
    while gaps:
        for node, missing in gaps.items():
            unseen = [c for c in changes if c.identity in missing]
            gaps[node] = asker.look(node, unseen, whole=whole and node not in quiet)
            _show_progress(report, noun, nodes, gaps, len(changes))
        # A node that gives no answer about any of its objects can be about to leave.
        quiet = {
            node
            for node, missing in gaps.items()
            if missing and all(gap.sight is Sight.SILENT for gap in missing.values())
        }
        live = session.live_nodes() if quiet else nodes
        gaps = {node: missing for node, missing in gaps.items() if missing and node in live}
        if new := quiet & gaps.keys() - silent:
            # One limit for all silent nodes: with a limit for each, nodes that fall silent one
            # after another would keep the run for minutes.
            give_up = give_up if silent else clock.monotonic() + SILENT_SECONDS
            silent |= new
            say_silent(report, new, give_up - clock.monotonic(), noun)
        if not gaps:
            break
        if (lacking := sum(map(len, gaps.values()))) < least:
            least, progressed = lacking, clock.monotonic()
        until = max(
            give_up if node in quiet else progressed + _choose_patience(missing, timeout)
            for node, missing in gaps.items()
        )
        over = clock.monotonic() >= until
        # Before the end, about all objects once more: a node is not asked about those behind one
        # that it lacks.
        if over and (whole or all(len(gaps[node]) <= FIRST for node in gaps.keys() - quiet)):
            break
        whole = over
        if not over:
            stop.sleep(clock, POLL_SECONDS)
    _show_progress(report, noun, nodes, gaps, len(changes), finished=True)
    return gaps


def _choose_patience(missing: Gaps, timeout: float) -> float:
    """Seconds without any progress after which nobody waits for a node any longer."""
    stuck = all(gap.is_stuck for gap in missing.values())
    return min(timeout, STUCK_SECONDS) if stuck else timeout


def _show_progress(
    report: Reporter,
    noun: str,
    nodes: Collection[str],
    gaps: Mapping[str, Collection[Identity]],
    objects: int,
    *,
    finished: bool = False,
) -> None:
    """Each node is asked about each object, and the answers that are as planned count up."""
    amount = f"{objects:,} object" + ("" if objects == 1 else "s")
    label = f"Verifying {amount} on {len(nodes):,} {noun}" + ("" if len(nodes) == 1 else "s")
    total = objects * len(nodes)
    seen_count = total - sum(len(missing) for missing in gaps.values())
    unit = "objects" if len(nodes) == 1 else "answers"
    ends = (
        {"visible": seen_count, "not visible": total - seen_count}
        if seen_count < total and finished
        else {}
    )
    report(
        Progress("verify", label, seen_count, total, unit, finished=finished, even=False, ends=ends)
    )


# ── what a reading lacks ────────────────────────────────────────────────────────────────


def _find_gap(change: Change, reading: Reading, kind: ResourceType, facts: Facts) -> _Gap:
    """Why this reading does not show the change as applied."""
    if isinstance(reading, Failed):
        return _Gap(Sight.SILENT, reading.fault.message)
    reading = resolve_absence(reading, change.after)
    if not isinstance(reading, Observed):
        return _UNSEEN
    live = canonicalize_reading(reading, kind, facts)
    now, before, after = map(flatten, (live.attributes, change.before, change.after))
    written = {path for step in change.steps for path in step.paths}
    if change.action is Action.CREATE:
        managed = {name for name, value in (change.after or EMPTY).items() if value is not None}
        written = after.keys() | {path for path in now if path[0] in managed}
    differing = [p for p in sorted(written) if now.get(p) != after.get(p) and p not in live.foreign]
    if change.action is Action.DELETE:
        # Of an object that consists of its values, only these can stay.
        differing = [path for path in differing if len(path) > 1] if not change.incarnation else []
    unset = list_unset(change.after, live)
    removed = [path for path in differing if path not in after]
    unchanged = {p: now[p] for p in removed if p in unset or now.get(p) == before.get(p)}
    if unchanged and len(unchanged) == len(differing):
        harmless = unchanged.keys() <= unset.keys()
        return _Gap(Sight.KEPT, _render_values(unchanged, kind), unchanged, harmless)
    return _Gap(reason=_render_values({path: now.get(path) for path in differing}, kind))


def _render_values(values: Values, kind: ResourceType) -> str:
    """`config.retention.ms is 60000 (1 minute)`; the first few of many."""
    listed = list(values.items())[:SHOWN]
    texts = [f"{render_path(path)} is {render_leaf(path, value, kind)}" for path, value in listed]
    hidden_count = len(values) - SHOWN
    return ", ".join(texts) + (f", and {hidden_count} more" if hidden_count > 0 else "")


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
    unread = {name for name, attribute in kind.schema.attributes.items() if attribute.unread}
    target = change.after.without(unread) if unread else change.after
    if change.action is Action.CREATE:
        return equals_target(target, live)
    written = [path for path in written if path[0] not in unread]
    now, after = flatten(live.attributes), flatten(target)
    return all(now.get(path) == after.get(path) for path in written)
