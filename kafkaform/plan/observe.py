"""Reading the world: what is declared or recorded whole, everything else by name only.

Only a proven absence is an absence: a recorded object that one node does not show is asked
for at every live node before anybody calls it gone (architecture §4.1).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter

from msgspec import Struct
from msgspec.structs import replace

from ..core.change import Change, Impact
from ..core.clock import Clock
from ..core.progress import Progress, Reporter, ignore_event
from ..core.resource import (
    TASK,
    Absent,
    Depth,
    Desired,
    Facts,
    Failed,
    Fault,
    FaultClass,
    Identity,
    InstanceWorld,
    Observed,
    Pending,
    Reading,
    Sweep,
    World,
)
from ..core.value import EMPTY, FrozenMap
from ..provider.contract import Session
from ..state.model import State
from .diff import flatten

POLL_SECONDS = 0.5
_IN_ORDER = attrgetter("kind", "key")


def read_world(
    sessions: Mapping[str, Session],
    desired: Desired,
    state: State,
    clock: Clock,
    *,
    settle: float = 0.0,
    report: Reporter = ignore_event,
) -> World:
    """One reading of every declared or recorded object, and a listing of each kind in play.

    settle: seconds to wait before a recorded object that no node shows counts as absent
    (> 0 after a write in the last minute, because reads lag behind writes).
    """
    wanted: dict[str, set[Identity]] = {instance: set() for instance in sessions}
    for identity in (d.identity for d in desired.declared):
        wanted[identity.instance].add(identity)
    for identity in state.objects:
        wanted.setdefault(identity.instance, set()).add(identity)
    return {
        instance: _read_instance(
            instance,
            sessions.get(instance),
            sorted(ids, key=_IN_ORDER),
            state,
            clock,
            settle,
            report,
        )
        for instance, ids in sorted(wanted.items())
    }


def _read_instance(
    instance: str,
    session: Session | None,
    ids: Sequence[Identity],
    state: State,
    clock: Clock,
    settle: float,
    report: Reporter,
) -> InstanceWorld:
    if session is None:
        return _fail_unconfigured(instance, ids, state)
    task = f"read {instance}"
    report(Progress(task, f"Reading {instance}", 0, len(ids), "objects"))
    sweeps = {kind: session.sweep(kind, Depth.NAMES) for kind in sorted({i.kind for i in ids})}
    readings = _read_objects(session, sweeps, ids)
    rows = {i: state.objects[i].attributes for i in ids if i in state.objects}
    missing = [i for i in rows if isinstance(resolve_absence(readings[i], rows[i]), Absent)]
    readings.update(confirm_absent(session, missing, clock, settle))
    session.prove()
    report(Progress(task, f"Reading {instance}", len(ids), len(ids), "objects", finished=True))
    return InstanceWorld(session.facts, readings, sweeps)


def _read_objects(
    session: Session, sweeps: Mapping[str, Sweep], ids: Sequence[Identity]
) -> dict[Identity, Reading]:
    """What a listing shows whole is taken from it; everything else is read by name, also what a
    listing lacks, because that is no proof of absence."""
    whole = (item for sweep in sweeps.values() if sweep.whole for item in sweep.items)
    listed = {item.identity: item for item in whole}
    readings: dict[Identity, Reading] = {i: listed[i] for i in ids if i in listed}
    left = [i for i in ids if i not in listed]
    if left:
        readings.update(session.read(left))
    return readings


def _fail_unconfigured(instance: str, ids: Sequence[Identity], state: State) -> InstanceWorld:
    """Rows of a provider instance that the configuration no longer has cannot be read."""
    fault = Fault(
        "NO_PROVIDER",
        f'the state has objects of provider instance "{instance}", which is not configured',
        FaultClass.DEFINITE,
        advice=f"Keep the provider block of {instance} until its objects are removed.",
    )
    scope = str(state.providers.get(instance, ""))
    return InstanceWorld(Facts(scope), {i: Failed(i, fault) for i in ids})


def confirm_absent(
    session: Session, ids: Sequence[Identity], clock: Clock, settle: float
) -> dict[Identity, Reading]:
    """Ask every live node for each id; Absent only if all say so until `settle` is over."""
    if not ids:
        return {}
    deadline = clock.monotonic() + settle
    while True:
        answers = _from_all_nodes(session, ids)
        gone = [i for i in ids if isinstance(answers[i], Absent)]
        if not gone or clock.monotonic() >= deadline:
            return answers
        clock.sleep(POLL_SECONDS)


def _from_all_nodes(session: Session, ids: Sequence[Identity]) -> dict[Identity, Reading]:
    answers: dict[Identity, Reading] = {i: Absent(i) for i in ids}
    for node in session.live_nodes() or (None,):
        for identity, reading in session.read(ids, at=node).items():
            if _is_stronger(reading, answers[identity]):
                answers[identity] = reading
    seen = [i for i, reading in answers.items() if isinstance(reading, Observed)]
    if seen:
        # Somebody sees it: read it whole, and keep the sighting if that read still lags.
        whole = session.read(seen)
        answers.update({i: r for i, r in whole.items() if not isinstance(r, Absent)})
    return answers


def _is_stronger(new: Reading, old: Reading) -> bool:
    """Seen beats failed, failed and hidden beat absent."""
    if isinstance(old, Absent):
        return not isinstance(new, Absent)
    return isinstance(new, Observed) and not isinstance(old, Observed)


def resolve_absence(reading: Reading, ours: FrozenMap | None) -> Reading:
    """The reading; an object that is not there but for what others own is there if some of that is
    ours: recorded, or what a change writes."""
    others = reading.others if isinstance(reading, Absent) else None
    return others if others and others.foreign & flatten(ours).keys() else reading


def compute_destination(live: Observed) -> FrozenMap:
    """The attributes as they will be once the task that runs has ended: what a plan compares with
    (architecture §4.7)."""
    return live.attributes.with_items(live.moving or EMPTY)


def has_ended(item: Pending, world: World) -> bool:
    """True for a task that the object's reading shows no more."""
    live = _find_live(item, world)
    return item.action == TASK and live is not None and live.moving is None


def note_progress(item: Pending, world: World) -> Pending:
    """What is pending, with what the object's reading says of a task."""
    live = _find_live(item, world)
    if item.action != TASK or live is None:
        return item
    if has_ended(item, world):
        return replace(item, note="it has ended; the next apply records that")
    return replace(item, note=str(live.details.get("progress") or ""))


def _find_live(item: Pending, world: World) -> Observed | None:
    seen = world.get(item.identity.instance)
    reading = seen.readings.get(item.identity) if seen else None
    return reading if isinstance(reading, Observed) else None


class Look(Struct, frozen=True):
    """Further questions that a plan or a review asks while it is made."""

    sessions: Mapping[str, Session]
    world: World

    def collect_sweeps(self, instance: str, needs: Mapping[str, Depth]) -> Mapping[str, Sweep]:
        """The listings that the world has, and those that a review needs beyond them."""
        known = dict(self.world[instance].sweeps)
        for kind, depth in needs.items():
            if kind not in known or (depth is Depth.FULL and known[kind].depth is Depth.NAMES):
                known[kind] = self.sessions[instance].sweep(kind, depth)
        return known

    def assess_impacts(self, instance: str, changes: Iterable[Change]) -> Mapping[Identity, Impact]:
        """How much data each of these changes would destroy."""
        return self.sessions[instance].assess(list(changes))


def list_unmanaged(world: InstanceWorld) -> dict[str, list[str]]:
    """kind -> sorted keys of live objects that were listed but are neither declared nor
    recorded; the system's own internal objects are left out."""
    return {
        kind: sorted(
            item.identity.key
            for item in sweep.items
            if item.identity not in world.readings and not item.details.get("internal", False)
        )
        for kind, sweep in world.sweeps.items()
    }
