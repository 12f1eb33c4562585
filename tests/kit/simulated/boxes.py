"""Boxes: objects whose move takes its time, on the wires of the simulated cluster.

Topics move too (`memory/placement.py`); boxes do nothing else, which makes them the plainer
proof of the engine. A label is done at once; a move goes on after its answer, another move takes
its place, and one to where the box stands ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import Protocol, TypeVar

from kafkaform.core.change import (
    Action,
    Batch,
    Change,
    Evidence,
    Impact,
    Outcome,
    OutcomeStatus,
    Path,
    Repeat,
    Request,
    Step,
    Verdict,
)
from kafkaform.core.clock import Clock
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Facts,
    Failed,
    Fault,
    FaultClass,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.schema import STRING, AttributeSchema, make_schema
from kafkaform.core.value import FrozenMap
from kafkaform.core.words import Words
from kafkaform.provider.contract import ResourceType, Secrets, Session
from kafkaform_kafka.kinds.simulation import Lost, Unreachable
from kafkaform_kafka.memory import MemoryProvider, Mishap
from kafkaform_kafka.protocol import faults

KIND = "test_box"
PACE = 100.0
"""Seconds that a move takes."""

CREATE = Request("CreateBox", 1, 20, 100, 1000)
LABEL = Request("LabelBox", 1, 31, 100, 1000)
MOVE = Request("MoveBox", 1, 60, 100, 1000)
DELETE = Request("DeleteBox", 2, 60, 100, 1000)
T = TypeVar("T")


# ── the type ────────────────────────────────────────────────────────────────────────────


def _target(declared: FrozenMap, observed: Observed | None, facts: Facts, keep: bool) -> FrozenMap:
    """What is left out stays as it is; a new box stands unlabelled in the hall."""
    usual = observed.attributes if observed else {"place": "hall", "label": ""}
    return FrozenMap({n: usual[n] if v is None else v for n, v in declared.items()})


def _steps(change: Change, facts: Facts) -> tuple[Step, ...]:
    every = tuple(item.path for item in change.paths)
    if change.action is Action.CREATE:
        return (_step(change, 1, CREATE, Repeat.VERIFY, every),)
    if change.action is Action.DELETE:
        return (_step(change, 1, DELETE, Repeat.VERIFY, every),)
    if change.action is not Action.UPDATE:
        return ()
    rows = ((1, LABEL, Repeat.SAFE, "label"), (2, MOVE, Repeat.NEVER, "place"))
    return tuple(
        _step(change, number, request, repeat, ((name,),))
        for number, request, repeat, name in rows
        if (name,) in every
    )


def _step(
    change: Change, number: int, request: Request, repeat: Repeat, paths: tuple[Path, ...]
) -> Step:
    identity = change.identity
    return Step(
        id=f"{identity.instance}/{identity.kind}/{identity.key}#{number}",
        identity=identity,
        address=change.address,
        request=request,
        payload=FrozenMap(id=change.incarnation, after=change.after),
        weight=1,
        after=(),
        repeat=repeat,
        evidence=Evidence.LOCAL,
        paths=paths,
    )


TYPE = ResourceType(
    name=KIND,
    schema=make_schema(
        "A box.",
        AttributeSchema("name", STRING, "Its name.", required=True),
        AttributeSchema("place", STRING, "Where it stands."),
        AttributeSchema("label", STRING, "What is written on it."),
    ),
    key=lambda attributes: str(attributes["name"]),
    canonical=lambda attributes, facts: attributes,
    target=_target,
    steps=_steps,
    import_key=str,
)


# ── the world ───────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class Box:
    """bound: where a move takes it, None if it stands; arrives: when, in seconds of the clock."""

    id: str
    name: str
    place: str
    label: str
    bound: str | None = None
    arrives: float = 0.0


class Wires(Protocol):
    """What a depot needs of the cluster that it is part of."""

    clock: Clock

    @property
    def carry(self) -> Callable[[str, Callable[[Mishap], T]], T]: ...


@dataclass(slots=True)
class Depot:
    """All boxes. pace: seconds that a move takes; on_own: called with (name, before, after)
    before the engine's changes; touched: ids of the boxes that others changed."""

    wires: Wires
    pace: float = PACE
    on_own: Callable[[str, Box | None, Box | None], None] = lambda name, before, after: None
    held: dict[str, Box] = field(default_factory=dict)
    touched: set[str] = field(default_factory=set)
    made: int = 0

    @property
    def boxes(self) -> Mapping[str, Box]:
        """As they stand now: moves whose time is over have ended."""
        now = self.wires.clock.monotonic()
        for name, box in self.held.items():
            if box.bound is not None and box.arrives <= now:
                self.held[name] = replace(box, place=box.bound, bound=None)
        return self.held

    def move(self, name: str, place: str) -> Box:
        """The box under way to this place, or where it is if it stands there."""
        box = self.boxes[name]
        if box.place == place:
            return replace(box, bound=None)
        return replace(box, bound=place, arrives=self.wires.clock.monotonic() + self.pace)

    def put(self, box: Box) -> None:
        """Somebody else changes a box, or makes one."""
        self.touched.add(box.id)
        self.held[box.name] = box

    def stop(self, name: str) -> None:
        """Somebody else ends a move where it began."""
        self.put(replace(self.boxes[name], bound=None))

    def serve(self, step: Step) -> Outcome:
        """Carry out one step."""
        name, before = step.identity.key, self.boxes.get(step.identity.key)
        after, ticket = self._changed(step, before)
        if isinstance(after, Fault):
            return Outcome(step.id, OutcomeStatus.FAILED, after)
        self.on_own(name, before, after)
        if after is None:
            del self.held[name]
            return Outcome(step.id, OutcomeStatus.APPLIED)
        self.held[name] = after
        status = OutcomeStatus.STARTED if ticket else OutcomeStatus.APPLIED
        return Outcome(step.id, status, ticket=ticket, incarnation=after.id)

    def _changed(self, step: Step, before: Box | None) -> tuple[Box | Fault | None, str | None]:
        request, wish = step.request, step.payload["after"]
        if request == CREATE:
            if before is not None:
                return faults.fault_of("CreateTopics", 36, before.name), None
            self.made += 1
            return Box(f"box-{self.made}", wish["name"], wish["place"], wish["label"]), None
        if before is None or before.id != step.payload["id"]:
            return faults.fault_of("DeleteTopics", 3, step.identity.key), None
        if request == DELETE:
            return None, None
        if request == LABEL:
            return replace(before, label=wish["label"]), None
        after = self.move(before.name, wish["place"])
        return after, _ticket(after)


def _ticket(box: Box) -> str | None:
    return f"{box.name}@{box.bound}" if box.bound else None


# ── the session ─────────────────────────────────────────────────────────────────────────


class BoxProvider(MemoryProvider, frozen=True):
    """The Kafka provider over a simulated cluster, with boxes."""

    @property
    def types(self) -> Mapping[str, ResourceType]:
        return {**super().types, KIND: TYPE}

    def open(self, instance: str, config: FrozenMap, secrets: Secrets) -> BoxSession:  # type: ignore[override]
        inner = super().open(instance, config, secrets)
        return BoxSession(inner, self.cluster.depot, instance)  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class BoxSession:
    """Answers for boxes itself and hands everything else to `inner`."""

    inner: Session
    depot: Depot
    instance: str

    @property
    def facts(self) -> Facts:
        return self.inner.facts

    @property
    def words(self) -> Words:
        return self.inner.words

    def live_nodes(self) -> Sequence[str]:
        return self.inner.live_nodes()

    def sweep(self, kind: str, depth: Depth, *, full: Sequence[Identity] = ()) -> Sweep:
        if kind != KIND:
            return self.inner.sweep(kind, depth, full=full)
        found = self._try("ListBoxes", lambda mishap: tuple(self.depot.boxes.values()))
        if isinstance(found, Fault):
            return Sweep(kind, depth, (), Coverage(CoverageKind.FAILED, found))
        items = tuple(self._observed(Identity(self.instance, KIND, b.name), b) for b in found)
        return Sweep(kind, depth, items, Coverage(CoverageKind.COMPLETE))

    def read(
        self, ids: Sequence[Identity], *, at: str | None = None, depth: Depth = Depth.FULL
    ) -> Mapping[Identity, Reading]:
        mine = [identity for identity in ids if identity.kind == KIND]
        others = [identity for identity in ids if identity.kind != KIND]
        readings = dict(self.inner.read(others, at=at, depth=depth)) if others else {}
        if mine:
            found = self._try("DescribeBoxes", lambda mishap: dict(self.depot.boxes))
            readings.update({identity: self._reading(identity, found) for identity in mine})
        return readings

    def _reading(self, identity: Identity, found: Mapping[str, Box] | Fault) -> Reading:
        if isinstance(found, Fault):
            return Failed(identity, found)
        box = found.get(identity.key)
        return Absent(identity) if box is None else self._observed(identity, box)

    def _observed(self, identity: Identity, box: Box) -> Observed:
        attributes = FrozenMap(name=box.name, place=box.place, label=box.label)
        moving = FrozenMap(place=box.bound) if box.bound else None
        return Observed(identity, attributes, box.id, moving, ticket=_ticket(box))

    def query(self, data: str, arguments: FrozenMap) -> FrozenMap:
        return self.inner.query(data, arguments)

    def assess(self, changes: Sequence[Change]) -> Mapping[Identity, Impact]:
        return self.inner.assess([c for c in changes if c.identity.kind != KIND])

    def examine(self, steps: Sequence[Step]) -> Sequence[Verdict]:
        return self.inner.examine([step for step in steps if step.identity.kind != KIND])

    def preflight(self, batch: Batch) -> Sequence[Verdict]:
        if batch.steps[0].identity.kind != KIND:
            return self.inner.preflight(batch)
        return [Verdict(step.id, step.evidence) for step in batch.steps]

    def apply(self, batch: Batch, secrets: Secrets) -> Sequence[Outcome]:
        if batch.steps[0].identity.kind != KIND:
            return self.inner.apply(batch, secrets)
        api = batch.request.name

        def serve(mishap: Mishap) -> list[Outcome]:
            return [
                _refused(api, mishap, number, step) or self.depot.serve(step)
                for number, step in enumerate(batch.steps)
            ]

        answer = self._try(api, serve)
        if isinstance(answer, Fault):
            return [Outcome(step.id, _status(answer), answer) for step in batch.steps]
        return answer

    def progress(self, tickets: Sequence[str], owed: Sequence[str] = ()) -> Sequence[Outcome]:
        mine = [ticket for ticket in tickets if "@" in ticket]
        others = [ticket for ticket in tickets if ticket not in mine]
        asked = others or owed
        ends = {o.step: o for o in self.inner.progress(others, owed)} if asked else {}
        if mine:
            ends.update({outcome.step: outcome for outcome in self._progress(mine)})
        return [ends[ticket] for ticket in (*tickets, *owed)]

    def _progress(self, tickets: Sequence[str]) -> Sequence[Outcome]:
        found = self._try("ListMoves", lambda mishap: dict(self.depot.boxes))
        if isinstance(found, Fault):
            return [Outcome(ticket, OutcomeStatus.UNKNOWN, found, ticket) for ticket in tickets]
        return [_standing(ticket, found) for ticket in tickets]

    def undo(self, tickets: Sequence[str], others: Sequence[str]) -> Sequence[Outcome]:
        return self.inner.undo(tickets, others)

    def prove(self) -> None:
        self.inner.prove()

    def close(self) -> None:
        self.inner.close()

    def _try(self, api: str, serve: Callable[[Mishap], T]) -> T | Fault:
        try:
            return self.depot.wires.carry(api, serve)
        except Unreachable as error:
            return faults.not_sent_fault(api, str(error))
        except Lost as error:
            return faults.lost_answer_fault(api, str(error))


def _standing(ticket: str, boxes: Mapping[str, Box]) -> Outcome:
    name, _, place = ticket.partition("@")
    box = boxes.get(name)
    if box is not None and box.bound == place:
        return Outcome(ticket, OutcomeStatus.STARTED, ticket=ticket)
    if box is not None and box.bound is None and box.place == place:
        return Outcome(ticket, OutcomeStatus.APPLIED)
    what = "another move took its place" if box and box.bound else "it was stopped"
    ended = Fault("MOVE_ENDED", what if box else "the box is gone", FaultClass.DEFINITE)
    return Outcome(ticket, OutcomeStatus.FAILED, ended)


def _refused(api: str, mishap: Mishap, number: int, step: Step) -> Outcome | None:
    name = step.identity.key
    if not mishap.code or number < mishap.first or not fnmatchcase(name, mishap.names):
        return None
    fault = faults.fault_of(api, mishap.code, name, wait=mishap.retry_after)
    return Outcome(step.id, _status(fault), fault)


def _status(fault: Fault) -> OutcomeStatus:
    ambiguous = fault.kind is FaultClass.AMBIGUOUS
    return OutcomeStatus.UNKNOWN if ambiguous else OutcomeStatus.FAILED
