"""Read the world: what is declared or recorded in full, everything else by name only.

Only a proven absence is an absence: every live node is asked for a recorded object that one node
does not show before anybody calls the object gone (architecture §4.1).

Nodes follow the log of their system one by one, so for a moment some of them lag behind. What still
differs after that does not go away by itself, and which node is asked must not decide what a user
is told.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from operator import attrgetter
from shlex import quote

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.change import Change, Impact, Path, add_findings
from ..core.clock import Clock, SystemClock
from ..core.progress import Progress, Reporter, ignore_event
from ..core.resource import (
    NO_OBJECTS,
    TASK,
    Absent,
    Depth,
    Desired,
    Facts,
    Failed,
    Fault,
    FaultClass,
    FolderObjects,
    Identity,
    InstanceWorld,
    Observed,
    Pending,
    Reading,
    Sweep,
    World,
)
from ..core.value import EMPTY, FrozenMap, Value
from ..core.words import NEUTRAL
from ..provider.contract import LookBounds, Provider, ResourceType, Session
from ..state.model import State
from .diff import flatten, hide_reported, render_leaf, render_path
from .model import Extent
from .rules import DISPUTED

POLL_SECONDS = 0.5
AGREEMENT_SECONDS = 5.0
"""How long nodes have to show the same before they disagree; a system needs part of a second."""
SHOWN = 3
"""How many differing values of one object a text names."""
BOUNDS = {Extent.FAST: LookBounds(5.0, 500), Extent.FULL: LookBounds(None, None)}
"""How much each extent asks to find out whom dangerous changes hit."""
NO_FAULTS: Mapping[str, Fault] = {}
_IN_ORDER = attrgetter("kind", "key")


def read_world(
    sessions: Mapping[str, Session],
    desired: Desired,
    state: State,
    clock: Clock,
    *,
    unread: Mapping[str, Fault] = NO_FAULTS,
    settle: float = 0.0,
    report: Reporter = ignore_event,
) -> World:
    """One reading of every declared or recorded object, and a listing of each of their kinds.

    unread: provider instances without a session -> why. settle: seconds to wait before a recorded
    object that no node shows counts as absent; greater than 0 after a recent write, because reads
    lag behind writes. Raises OtherSystem.
    """
    identities: dict[str, set[Identity]] = {instance: set() for instance in sessions}
    for identity in (item.identity for item in (*desired.declared, *desired.list_closures())):
        identities.setdefault(identity.instance, set()).add(identity)
    for identity in state.objects:
        identities.setdefault(identity.instance, set()).add(identity)
    world = {}
    for instance, ids in sorted(identities.items()):
        # Sorted, so that equal worlds are read by equal requests in the same order.
        order = sorted(ids, key=_IN_ORDER)
        if instance in sessions:
            task, label = f"read {instance}", f"Reading {instance}"
            report(Progress(task, label, 0, len(order), "objects"))
            world[instance] = _read_instance(sessions[instance], order, state, clock, settle)
            failed_count = sum(isinstance(r, Failed) for r in world[instance].readings.values())
            ends = (
                {"read": len(order) - failed_count, "could not be read": failed_count}
                if failed_count
                else {}
            )
            size = len(order)
            report(Progress(task, label, size, size, "objects", finished=True, ends=ends))
        else:
            fault = unread.get(instance) or Fault(
                "NO_PROVIDER",
                f'the state has objects of provider instance "{instance}", which is not configured',
                FaultClass.DEFINITE,
                advice=f"Restore the provider block of {instance}. If the system is gone for good, "
                f"forget all its objects with `kafkaform state rm --provider {quote(instance)}`",
            )
            world[instance] = _fail_instance(instance, order, state, fault)
    return world


def _read_instance(
    session: Session, ids: Sequence[Identity], state: State, clock: Clock, settle: float
) -> InstanceWorld:
    by_kind: dict[str, list[Identity]] = {}
    for identity in ids:
        by_kind.setdefault(identity.kind, []).append(identity)
    sweeps = {
        kind: _reuse_rows(session.sweep(kind, Depth.NAMES, full=kind_ids), state)
        for kind, kind_ids in sorted(by_kind.items())
    }
    readings: dict[Identity, Reading] = {}
    for i in ids:
        if (item := sweeps[i.kind].derive(_index_full_items).get(i)) is not None:
            readings[i] = item
    # What a listing lacks is read by name, too: a listing leaves out what we must not see and may
    # lag behind, so it proves no absence.
    if unlisted := [i for i in ids if i not in readings]:
        readings.update(session.read(unlisted))
    rows = {i: state.objects[i].attributes for i in ids if i in state.objects}
    missing = [i for i in rows if isinstance(resolve_absence(readings[i], rows[i]), Absent)]
    if missing:
        readings.update(confirm_absent(session, missing, clock, settle))
    disputed: Mapping[Identity, Mapping[str, Reading]] = {}
    readings = hide_all_reported(readings, state)
    changed = [i for i in rows if _is_changed(rows[i], readings[i])]
    # A single node lags behind its own log only, and for a moment.
    if changed and (settle or len(session.live_nodes()) > 1):
        # Shortly after a write, a node that lags behind shows what was there before it. A plan made
        # from that would be refused as stale as soon as another node is asked.
        patience = max(settle, min(AGREEMENT_SECONDS, session.facts.operation_timeout))
        disputed = await_agreement(session, changed, patience, clock, clock.sleep)
        second_readings = session.read(changed)
        # A sighting stays one, also if this node does not show the object yet.
        present = {i: r for i, r in second_readings.items() if not isinstance(r, Absent)}
        readings.update(hide_all_reported(present, state))
    # A proxy may have led a connection to another system meanwhile. Nothing that was read counts
    # before every connection has said again whose it is.
    session.prove()
    return InstanceWorld(session.facts, readings, sweeps, disputed)


def hide_all_reported(
    readings: Mapping[Identity, Reading], state: State
) -> dict[Identity, Reading]:
    """The readings without what the state knows to be reported although nothing sets it."""
    rows = state.objects
    return {
        identity: hide_reported(reading, rows[identity].reported) if identity in rows else reading
        for identity, reading in readings.items()
    }


def _index_full_items(sweep: Sweep) -> Mapping[Identity, Observed]:
    """The items that nobody needs to read again."""
    return {
        item.identity: item for item in sweep.items if sweep.whole or item.identity in sweep.full
    }


def _reuse_rows(sweep: Sweep, state: State) -> Sweep:
    """The listing, with the recorded attributes of each object that still has them: as a rule that
    is every one, and the attributes are most of what an object takes in memory."""
    rows = state.objects
    # Of a state with a small part of them, the new listing would take more than it saves. Such a
    # listing is often shared with other folders.
    if sum(identity.kind == sweep.kind for identity in rows) * 2 < len(sweep.items):
        return sweep
    items = tuple(
        replace(item, attributes=row.attributes)
        if (row := rows.get(item.identity)) is not None and row.attributes == item.attributes
        else item
        for item in sweep.items
    )
    return replace(sweep, items=items)


def _fail_instance(
    instance: str, ids: Sequence[Identity], state: State, fault: Fault
) -> InstanceWorld:
    """The world of a provider instance that could not be asked: nothing in it is known."""
    scope = str(state.providers.get(instance, ""))
    # Failed, and not absent: all of them may be there.
    return InstanceWorld(Facts(scope), {i: Failed(i, fault) for i in ids})


def confirm_absent(
    session: Session, ids: Sequence[Identity], clock: Clock, settle: float
) -> dict[Identity, Reading]:
    """What all live nodes say about each id; Absent only if all of them say so for `settle`
    seconds."""
    deadline = clock.monotonic() + settle
    while True:
        answers = _ask_all_nodes(session, ids)
        gone = [i for i in ids if isinstance(answers[i], Absent)]
        if not gone or clock.monotonic() >= deadline:
            return answers
        clock.sleep(POLL_SECONDS)


def _is_changed(row: FrozenMap, reading: Reading) -> bool:
    """True if the object shows other values than are recorded. row: its recorded attributes."""
    if not isinstance(reading, Observed):
        return False
    names = [name for name in reading.attributes if row.get(name) is not None]
    recorded, live = (
        FrozenMap({n: attributes[n] for n in names}) for attributes in (row, reading.attributes)
    )
    # As a rule they are equal, and listing their leaves takes longer than comparing them.
    return recorded != live and flatten(recorded) != flatten(live)


def _ask_all_nodes(session: Session, ids: Sequence[Identity]) -> dict[Identity, Reading]:
    answers: dict[Identity, Reading] = {}
    for node in session.live_nodes() or (None,):
        for identity, reading in session.read(ids, at=node).items():
            if isinstance(reading, Absent):
                reading = replace(reading, others=None)
            if identity not in answers or _is_stronger(reading, answers[identity]):
                answers[identity] = reading
    present = [i for i, reading in answers.items() if isinstance(reading, Observed)]
    if present:
        # Somebody sees it: read it in full, and keep the sighting if that read still lags.
        whole = session.read(present)
        answers.update({i: r for i, r in whole.items() if not isinstance(r, Absent)})
    return answers


def _is_stronger(new: Reading, old: Reading) -> bool:
    """A sighting beats failed and hidden, which beat absent; of two absences, the one that knows of
    nothing else that is missing."""
    if isinstance(old, Absent):
        return not isinstance(new, Absent) or bool(old.lacks and not new.lacks)
    return isinstance(new, Observed) and not isinstance(old, Observed)


# ── nodes that disagree ─────────────────────────────────────────────────────────────────

Views = Mapping[str, Reading]
"""Node -> what it shows of one object; nodes that could not be asked are left out."""


def await_agreement(
    session: Session,
    ids: Collection[Identity],
    seconds: float,
    clock: Clock,
    wait: Callable[[float], object],
) -> Mapping[Identity, Views]:
    """Ask all live nodes about these objects until they show the same. The objects on which they
    still differ when `seconds` have passed. wait: waits for seconds. Raises OtherSystem."""
    deadline = clock.monotonic() + seconds
    disputed: Sequence[Identity] = list(ids) if len(session.live_nodes()) > 1 else ()
    while disputed:
        answers = {node: session.read(disputed, at=node) for node in session.live_nodes()}
        views = {i: _select_views(i, answers) for i in disputed}
        disputed = [i for i in disputed if len({_get_view(view) for view in views[i].values()}) > 1]
        if clock.monotonic() >= deadline:
            return {i: views[i] for i in disputed}
        if disputed:
            wait(POLL_SECONDS)
    return {}


def _select_views(identity: Identity, answers: Mapping[str, Mapping[Identity, Reading]]) -> Views:
    return {
        node: readings[identity]
        for node, readings in answers.items()
        if not isinstance(readings[identity], Failed)
    }


def _get_view(reading: Reading) -> object:
    """What all nodes have to show of an object."""
    if isinstance(reading, Observed):
        return (reading.attributes, reading.incarnation, reading.moving)
    return type(reading)


def describe_disagreement(views: Views, kind: ResourceType, facts: Facts, noun: str) -> str:
    """What the nodes show where they differ: `size is "2" on server 1, 2, and not set on server 3`.
    noun: what users call a node."""
    sights = {node: _describe_sight(reading) for node, reading in views.items()}
    if len(set(sights.values())) > 1:
        return _join_nodes(sights, noun)
    differing = list(_list_differing(views, kind, facts))
    texts = []
    for path, leaves in differing[:SHOWN]:
        node_texts = {node: render_leaf(path, value, kind) for node, value in leaves.items()}
        texts.append(f"{render_path(path)} is {_join_nodes(node_texts, noun)}")
    hidden_count = len(differing) - SHOWN
    return "; ".join(texts) + (f"; and {hidden_count} more" if hidden_count > 0 else "")


def _describe_sight(reading: Reading) -> str:
    if isinstance(reading, Absent):
        return "it does not exist"
    if not isinstance(reading, Observed):
        return "it cannot be seen"
    return f"it exists with the id {reading.incarnation}" if reading.incarnation else "it exists"


def _list_differing(
    views: Views, kind: ResourceType, facts: Facts
) -> Iterator[tuple[Path, Mapping[str, Value]]]:
    """Each path on which the nodes differ, and node -> its value there."""
    leaves = {
        node: flatten(kind.canonical(item.attributes.with_items(item.moving or {}), facts))
        for node, item in views.items()
        if isinstance(item, Observed)
    }
    for path in sorted({path for values in leaves.values() for path in values}):
        node_values = {node: values.get(path) for node, values in leaves.items()}
        if len(set(node_values.values())) > 1:
            yield path, node_values


def _join_nodes(texts: Mapping[str, str], noun: str) -> str:
    """`TEXT on server 1, 2, and OTHER on server 3`. texts: node -> what it shows."""
    nodes: dict[str, list[str]] = defaultdict(list)
    for node, text in texts.items():
        nodes[text].append(node)
    return ", and ".join(f"{text} on {noun} {', '.join(names)}" for text, names in nodes.items())


def note_disagreements(
    changes: Sequence[Change],
    world: World,
    types: Mapping[str, ResourceType],
    providers: Mapping[str, Provider],
) -> Sequence[Change]:
    """The changes; one of an object on which nodes differ says so."""
    return [
        add_findings(change, DISPUTED.find(_describe_dispute(change, world, types, providers)))
        if change.identity in world[change.identity.instance].disputed
        else change
        for change in changes
    ]


def _describe_dispute(
    change: Change,
    world: World,
    types: Mapping[str, ResourceType],
    providers: Mapping[str, Provider],
) -> str:
    observation = world[change.identity.instance]
    provider = providers.get(change.identity.instance)
    words = provider.words if provider else NEUTRAL
    differences = describe_disagreement(
        observation.disputed[change.identity],
        types[change.identity.kind],
        observation.facts,
        words.node,
    )
    return f"the {words.node}s disagree: {differences}"


# ── what a reading means ────────────────────────────────────────────────────────────────


def resolve_absence(reading: Reading, recorded: FrozenMap | None) -> Reading:
    """The reading of an object; one that exists only through what others set on it exists for us
    if some of that is ours. ours: what is recorded, or what a change writes."""
    foreign = reading.others if isinstance(reading, Absent) else None
    return foreign if foreign and foreign.foreign & flatten(recorded).keys() else reading


def compute_destination(live: Observed) -> FrozenMap:
    """The attributes as they will be when the task that runs has ended (architecture §4.7)."""
    return live.attributes.with_items(live.moving or EMPTY)


def has_ended(item: Pending, world: World) -> bool:
    """True for a task that the reading of its object no longer shows."""
    live = _find_live(item, world)
    return item.action == TASK and live is not None and live.moving is None


def note_progress(item: Pending, world: World) -> Pending:
    """What is pending, with what the reading of its object says about a task."""
    live = _find_live(item, world)
    if item.action != TASK or live is None:
        return item
    if has_ended(item, world):
        return replace(item, note="it has ended; the next apply records that")
    return replace(item, note=str(live.details.get("progress") or ""))


def _find_live(item: Pending, world: World) -> Observed | None:
    observation = world.get(item.identity.instance)
    reading = observation.readings.get(item.identity) if observation else None
    return reading if isinstance(reading, Observed) else None


class Configured(Struct, frozen=True):
    """All provider instances of the configuration, also those without declared or recorded
    objects, of which no session is open."""

    providers: Mapping[str, Provider]
    """Provider instance -> its provider."""
    open: Callable[[str], Session]
    """Opens a session of an instance. Raises ConnectError, ConfigurationError."""


class LookBudget(Struct):
    """How much may still be asked to find out whom dangerous changes hit. Plans that are made in
    one run share it, so that a run of many folders takes no longer for it than one of a single
    folder."""

    bounds: LookBounds = BOUNDS[Extent.FAST]
    clock: Clock = SystemClock()

    @contextmanager
    def spend(self, objects: int) -> Iterator[None]:
        """Take off so many objects, and the time that the body needs."""
        seconds, limit = self.bounds.seconds, self.bounds.objects
        began = self.clock.monotonic()
        try:
            yield
        finally:
            took = self.clock.monotonic() - began
            self.bounds = LookBounds(
                None if seconds is None else max(0.0, seconds - took),
                None if limit is None else max(0, limit - objects),
            )


class Look(Struct, frozen=True):
    """Further questions that a plan or a review asks while it is made."""

    sessions: Mapping[str, Session]
    """Provider instance -> its session."""
    world: World
    """What was read already."""
    configured: Configured | None = None
    """What else can be asked; None for nothing."""
    unread: Mapping[str, Fault] = field(default_factory=dict)
    """Provider instances that should have been asked and could not be -> why."""
    unasked: frozenset[str] = frozenset()
    """Provider instances that nothing selected needs: they were not asked."""
    elsewhere: FolderObjects = NO_OBJECTS
    """Objects of other folders (`Desired.elsewhere`)."""
    budget: LookBudget = field(default_factory=LookBudget)
    """For those whom dangerous changes hit, with `--impact fast`."""

    def collect_sweeps(self, instance: str, needs: Mapping[str, Depth]) -> Mapping[str, Sweep]:
        """The listings of the world, and those that a review needs beyond them."""
        sweeps = dict(self.world[instance].sweeps)
        for kind, depth in needs.items():
            if kind not in sweeps or (depth is Depth.FULL and sweeps[kind].depth is Depth.NAMES):
                sweeps[kind] = self.sessions[instance].sweep(kind, depth)
        return sweeps

    def assess_impacts(self, instance: str, changes: Iterable[Change]) -> Mapping[Identity, Impact]:
        """How much data each of these changes would destroy or move."""
        return self.sessions[instance].assess(list(changes))
