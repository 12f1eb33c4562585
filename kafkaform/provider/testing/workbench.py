"""The bench of the conformance checks, and the fixture that it works on.

A fixture says how to reach a system and what its objects look like. The bench plans and sends
single changes and checks the form of every answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from itertools import groupby
from types import TracebackType
from typing import Protocol, TypeVar

from msgspec import Struct

from ...core.change import Action, Batch, Change, Outcome, OutcomeStatus, PathChange, Step, Verdict
from ...core.clock import Clock
from ...core.errors import KafkaformError
from ...core.resource import (
    CoverageKind,
    Depth,
    Facts,
    FaultClass,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from ...core.schema import ObjectSchema
from ...core.value import EMPTY, FrozenMap, SecretRef
from ..contract import Provider, ResourceType, Secrets, Session

INSTANCE = "conformance"
"""The provider instance that a fixture opens its sessions for."""


class Edit(Struct, frozen=True):
    """One change of a live object, and what has to come of it."""

    name: str
    """What messages call it."""
    start: FrozenMap = EMPTY
    """Declared attributes, in addition to those of a new object."""
    wish: FrozenMap = EMPTY
    """What is declared next, in addition to `start`."""
    meanwhile: FrozenMap = EMPTY
    """What somebody else makes of the object between plan and apply."""
    expect: FaultClass | None = None
    """The class of the fault; None if the edit is applied."""
    blocked: bool = False
    """A rule blocks it, so that it is never sent."""
    fallbacks: FrozenMap = EMPTY
    """Path -> what takes effect once it is removed, as the reading before has to say."""


class About(StrEnum):
    """What a data source answers about."""

    OBJECT = "object"
    """One object by name; the query is refused if there is none."""
    LIST = "list"
    """All visible objects."""
    SYSTEM = "system"
    """Something that is no object."""


class Question(Struct, frozen=True):
    """One query of a data source."""

    data: str
    """The name of the data source."""
    about: About
    """What it answers about."""
    ask: Callable[[FrozenMap], FrozenMap]
    """Attributes of an object -> arguments to whose answer the object belongs."""
    shows: Callable[[FrozenMap, FrozenMap], bool]
    """Answer, attributes of an object -> the answer shows that object as it is, or the system."""


class Fixture(Protocol):
    """How to reach one system, and what its objects look like."""

    @property
    def type(self) -> ResourceType:
        """The type whose promises are checked."""

    @property
    def provider(self) -> Provider:
        """The provider that has the type."""

    @property
    def clock(self) -> Clock:
        """Waits for a write to be visible."""

    @property
    def edits(self) -> Sequence[Edit]:
        """What can be done to an object."""

    @property
    def bad(self) -> FrozenMap:
        """Attributes that the system refuses, in addition to those of a new object."""

    @property
    def data(self) -> Mapping[str, ObjectSchema]:
        """The data sources of the provider."""

    @property
    def questions(self) -> Sequence[Question]:
        """At least one question for each data source."""

    @property
    def secrets(self) -> Secrets:
        """The secrets to which the attributes refer."""

    @property
    def incarnations(self) -> bool:
        """True if the system distinguishes an object from another one that takes its place. Where
        it does not, requests are absolute, and asking for what exists already is no fault."""

    @property
    def unfit(self) -> Mapping[str, str]:
        """Name of a check that cannot apply to this kind of object -> why."""

    def open(self, *, privileged: bool) -> Session:
        """A new session of INSTANCE, as an administrator, or as a user who can neither see nor do
        anything."""

    def fresh(self, given: FrozenMap) -> FrozenMap:
        """Declared attributes of an object that nothing else uses, overridden by these."""

    def make(self, attributes: FrozenMap) -> None:
        """Create this object behind the tool's back."""

    def alter(self, attributes: FrozenMap, given: FrozenMap) -> None:
        """Set these attributes on the live object behind the tool's back."""

    def recreate(self, attributes: FrozenMap) -> None:
        """Delete the object and create it again behind the tool's back."""


PATIENCE = 15.0
"""Seconds for which a read can miss a write that was acknowledged."""

POLL = 0.1

T = TypeVar("T")


class Violation(AssertionError):
    """The provider broke a promise of the contract."""


class Bench:
    """One session of a fixture, closed at the end of the context."""

    def __init__(self, fixture: Fixture, *, privileged: bool = True) -> None:
        self.fixture = fixture
        self.session = fixture.open(privileged=privileged)

    def __enter__(self) -> Bench:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.session.close()

    @property
    def facts(self) -> Facts:
        return self.session.facts

    def make_identity(self, attributes: FrozenMap) -> Identity:
        return Identity(INSTANCE, self.fixture.type.name, self.fixture.type.key(attributes))

    def compute_target(self, attributes: FrozenMap, observed: Observed | None) -> FrozenMap:
        """The whole object that these declared attributes ask for."""
        # Spelled as in the block, as a plan does it: a type must not rely on canonical attributes.
        return self.fixture.type.target(attributes, observed, self.facts, False)

    def make_change(
        self,
        action: Action,
        attributes: FrozenMap,
        before: Observed | None,
        after: FrozenMap | None,
    ) -> Change:
        """The change from what was read to what is wanted; None for an object that is not there."""
        identity = self.make_identity(attributes)
        old = None if before is None else before.attributes
        return Change(
            identity=identity,
            address=f"{identity.kind}.conformance",
            action=action,
            before=old,
            after=after,
            paths=tuple(_list_path_changes(old, after)),
            incarnation=None if before is None else before.incarnation,
        )

    def plan_edit(self, edit: Edit, attributes: FrozenMap) -> Change:
        """The change of the live object that this edit asks for."""
        before = self.wait_seen(attributes)
        after = self.compute_target(attributes.with_items(edit.wish), before)
        return self.make_change(Action.UPDATE, attributes, before, after)

    def list_steps(self, change: Change) -> tuple[Step, ...]:
        return self.fixture.type.steps(change, self.facts)

    def make_creation(self, attributes: FrozenMap) -> Step:
        """The one step that creates this object."""
        after = self.compute_target(attributes, None)
        steps = self.list_steps(self.make_change(Action.CREATE, attributes, None, after))
        require(len(steps) == 1, f"a create has {len(steps)} steps")
        return steps[0]

    def make_batch(self, steps: Sequence[Step]) -> Batch:
        """One batch of these steps, which share one request."""
        return Batch("1", INSTANCE, steps[0].request, tuple(steps))

    def split_batches(self, steps: Sequence[Step]) -> Iterator[Batch]:
        """The steps in their order; neighbours with equal requests share a batch."""
        for _, group in groupby(steps, key=lambda step: step.request):
            yield self.make_batch(list(group))

    def send(self, batch: Batch) -> Sequence[Outcome]:
        """Send a batch, and check that each step got one well-formed outcome, in order."""
        outcomes = self.session.apply(batch, self.fixture.secrets)
        _require_order(batch, [outcome.step for outcome in outcomes])
        for outcome in outcomes:
            # The engine decides by the fault alone whether to read, to repeat or to give up. An
            # outcome without one would leave it guessing.
            sound = (outcome.fault is None) is (outcome.status is OutcomeStatus.APPLIED)
            require(sound, f"status and fault do not fit: {outcome}")
        return outcomes

    def preflight(self, batch: Batch) -> Sequence[Verdict]:
        """Make the dry run, and check that each step got one verdict, in order."""
        verdicts = self.session.preflight(batch)
        _require_order(batch, [verdict.step for verdict in verdicts])
        return verdicts

    def apply_change(self, change: Change) -> list[Outcome]:
        """Send every step of a change."""
        return [
            out for batch in self.split_batches(self.list_steps(change)) for out in self.send(batch)
        ]

    def create(self, attributes: FrozenMap) -> Outcome:
        """Send the create of this object."""
        return self.take_only(self.send(self.make_batch([self.make_creation(attributes)])))

    def take_only(self, outcomes: Sequence[Outcome]) -> Outcome:
        require(len(outcomes) == 1, f"expected one outcome, got {len(outcomes)}")
        return outcomes[0]

    def read(
        self, ids: Sequence[Identity], at: str | None = None, depth: Depth = Depth.FULL
    ) -> Mapping[Identity, Reading]:
        """Read, and check that every id got an answer about itself."""
        readings = self.session.read(ids, at=at, depth=depth)
        require(readings.keys() == set(ids), f"asked for {ids}, answered {list(readings)}")
        for identity, reading in readings.items():
            require(reading.identity == identity, f"{identity} is answered with {reading}")
        return readings

    def wait(
        self,
        attributes: FrozenMap,
        accept: Callable[[Reading], bool],
        state: str,
        at: str | None = None,
        depth: Depth = Depth.FULL,
    ) -> Reading:
        """Read until the answer is accepted. Raises Violation after PATIENCE seconds."""
        identity = self.make_identity(attributes)
        return self._poll(lambda: self.read([identity], at, depth)[identity], accept, state)

    def wait_seen(self, attributes: FrozenMap) -> Observed:
        """The object, once a read shows it, whichever node answers."""
        nodes = self.session.live_nodes()
        for node in nodes if len(nodes) > 1 else ():
            self.wait(attributes, lambda r: isinstance(r, Observed), f"is there at {node}", node)
        reading = self.wait(attributes, lambda r: isinstance(r, Observed), "is there")
        assert isinstance(reading, Observed)
        return reading

    def wait_listed(self, identity: Identity, depth: Depth) -> None:
        """List the objects until this one is among them, with its incarnation."""

        def listing() -> Sweep:
            sweep = self.session.sweep(identity.kind, depth)
            require(sweep.coverage.kind is not CoverageKind.FAILED, f"{sweep.coverage}")
            return sweep

        def lists(sweep: Sweep) -> bool:
            return any(
                item.identity == identity
                and (item.incarnation is not None) is self.fixture.incarnations
                for item in sweep.items
            )

        self._poll(listing, lists, f"lists {identity} at depth {depth}")

    def compare_full_listing(self, attributes: FrozenMap, *, missing: FrozenMap) -> None:
        """Require that a listing that is asked for objects in full shows them as a read does.

        attributes: of an object that is there; missing: of one that is not.
        """
        live = self.wait_seen(attributes)
        identities = [live.identity, self.make_identity(missing)]
        sweep = self.session.sweep(live.identity.kind, Depth.NAMES, full=identities)
        require(
            sweep.full <= {live.identity}, f"asked for {identities}, it lists {sweep.full} in full"
        )
        for item in sweep.items:
            if item.identity in sweep.full:
                consistent = (item.attributes, item.incarnation) == (
                    live.attributes,
                    live.incarnation,
                )
                require(consistent, f"listed in full it is {item}, and read by name {live}")

    def query(self, question: Question, attributes: FrozenMap) -> FrozenMap:
        """Ask once. Raises KafkaformError."""
        return self.session.query(question.data, question.ask(attributes))

    def wait_answer(self, question: Question, attributes: FrozenMap) -> FrozenMap:
        """Ask until the answer shows the object."""

        def answer() -> FrozenMap | KafkaformError:
            try:
                return self.query(question, attributes)
            except KafkaformError as error:
                return error

        settled = self._poll(
            answer,
            lambda a: isinstance(a, FrozenMap) and question.shows(a, attributes),
            f"shown by {question.data}",
        )
        assert isinstance(settled, FrozenMap)
        return settled

    def _poll(self, look: Callable[[], T], accept: Callable[[T], bool], state: str) -> T:
        clock = self.fixture.clock
        deadline = clock.monotonic() + PATIENCE
        while True:
            answer = look()
            if accept(answer):
                return answer
            require(clock.monotonic() < deadline, f"never {state}; the last answer is {answer}")
            clock.sleep(POLL)


def require(satisfied: bool, broken: str) -> None:
    """Raises Violation with the text of the broken promise unless it is kept."""
    if not satisfied:
        raise Violation(broken)


def require_fault(outcome: Outcome, kind: FaultClass) -> None:
    """Raises Violation unless the step failed with a fault of this class."""
    require(outcome.status is OutcomeStatus.FAILED, f"expected a failure, got {outcome}")
    require(outcome.fault is not None and outcome.fault.kind is kind, f"not {kind}: {outcome}")


def require_sound(change: Change, steps: Sequence[Step]) -> None:
    """Raises Violation unless ids are unique, weights positive, predecessors known, and every path
    is made true by a step."""
    ids = [step.id for step in steps]
    require(len(set(ids)) == len(ids), f"step ids repeat: {ids}")
    for index, step in enumerate(steps):
        require(step.weight > 0, f"{step.id} weighs {step.weight}")
        require(set(step.after) <= set(ids[:index]), f"{step.id} comes after {step.after}")
    step_paths = {path for step in steps for path in step.paths}
    change_paths = {item.path for item in change.paths}
    require(
        step_paths == change_paths,
        f"the steps make {step_paths} true, the change asks for {change_paths}",
    )


def list_changes(bench: Bench) -> Iterator[Change]:
    """A create, a delete, and every edit that a check lets pass."""
    attributes = bench.fixture.fresh(EMPTY)
    yield bench.make_change(Action.CREATE, attributes, None, bench.compute_target(attributes, None))
    bench.fixture.make(attributes)
    yield bench.make_change(Action.DELETE, attributes, bench.wait_seen(attributes), None)
    for edit in (edit for edit in bench.fixture.edits if not edit.blocked):
        attributes = bench.fixture.fresh(edit.start)
        bench.fixture.make(attributes)
        yield bench.plan_edit(edit, attributes)


def list_harmless_changes(
    bench: Bench, attributes: FrozenMap, before: Observed
) -> Iterator[Change]:
    for edit in bench.fixture.edits:
        if not edit.start and not edit.blocked and edit.expect is None:
            after = bench.compute_target(attributes.with_items(edit.wish), before)
            yield bench.make_change(Action.UPDATE, attributes, before, after)
    yield bench.make_change(Action.DELETE, attributes, before, None)


def matches_target(target: FrozenMap, observed: FrozenMap) -> bool:
    """True if what is observed is the target."""
    # None in a target is the system's choice, and nobody can read a secret back.
    return all(
        value is None or isinstance(value, SecretRef) or observed.get(name) == value
        for name, value in target.items()
    )


def _require_order(batch: Batch, answered: Sequence[str]) -> None:
    step_ids = [step.id for step in batch.steps]
    require(list(answered) == step_ids, f"asked {step_ids}, answered {answered}")


def _list_path_changes(before: FrozenMap | None, after: FrozenMap | None) -> Iterator[PathChange]:
    old, new = before or EMPTY, after or EMPTY
    for name in sorted({*old, *new}):
        old_value, new_value = old.get(name), new.get(name)
        if (after is not None and new_value is None) or isinstance(new_value, SecretRef):
            continue
        if isinstance(old_value, FrozenMap) or isinstance(new_value, FrozenMap):
            yield from _list_inner_changes(name, old_value or EMPTY, new_value or EMPTY)
        elif old_value != new_value:
            yield PathChange((name,), old_value, new_value)


def _list_inner_changes(name: str, old: FrozenMap, new: FrozenMap) -> Iterator[PathChange]:
    for key in sorted({*old, *new}):
        if old.get(key) != new.get(key):
            yield PathChange((name, key), old.get(key), new.get(key))
