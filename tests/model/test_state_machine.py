"""The whole engine against everything at once: faults, deaths, other people, new wishes."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from functools import partial

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from kafkaform.core.errors import ConnectError, KafkaformError, Locked, StorageError
from kafkaform.core.resource import Declared, Desired, Lifecycle
from kafkaform.plan.model import Mode, Options, Plan
from kafkaform_providers.kafka.memory import (
    Killed,
    Mishap,
    killed_after,
    killed_before,
    late_effect,
    lost_reply,
    not_sent,
    refused,
    swallowed,
    throttled,
)

from . import engine
from .boxes import KIND, Box
from .engine import TIMEOUT, topic
from .store import MOMENTS
from .witness import Witness

NAMES = ("a", "b", "c", "d")
CONFIGS = (
    {},
    {"retention.ms": "1000"},
    {"retention.ms": "2000"},
    {"retention.ms": "2000", "cleanup.policy": "compact"},
)
LIFECYCLES = (
    Lifecycle(),
    Lifecycle(),
    Lifecycle(adopt=True),
    Lifecycle(prevent_destroy=True),
    Lifecycle(prevent_destroy=False),
    Lifecycle(ignore_changes=("config.retention.ms",)),
)
BOXES, PLACES, LABELS = ("x", "y"), (None, "hall", "attic", "cellar"), (None, "", "new")
WRITES = ("CreateTopics", "CreatePartitions", "IncrementalAlterConfigs", "DeleteTopics")
MISHAPS = (
    not_sent(),
    lost_reply(),
    late_effect(1.5),
    late_effect(TIMEOUT),
    swallowed(),
    killed_before(),
    killed_after(),
    killed_after(2.0),
    throttled(1.0),
    throttled(1.0, first=1),
    refused(44),
    refused(41),
    refused(29, names="b"),
)
names = st.sampled_from(NAMES)
configs = st.sampled_from(CONFIGS)


@dataclass(frozen=True)
class Wish:
    """One declared topic. after: the topic that it depends on; renamed: under its second
    address."""

    name: str
    partitions: int | None
    config: dict[str, str]
    lifecycle: Lifecycle
    after: str | None = None
    renamed: bool = False

    @property
    def address(self) -> str:
        return f"kafka_topic.{self.name}{'_new' if self.renamed else ''}"


@dataclass(frozen=True)
class Trouble:
    """Something that goes wrong while an apply runs: a request's mishap, or a death."""

    mishap: Mishap | None
    what: str
    skip: int
    moment: str = ""

    def befall(self, house: engine.House) -> None:
        if self.mishap is None:
            house.fate.set(self.what, self.skip, self.moment)
        else:
            house.cluster.faults.schedule(self.mishap, self.what, skip=self.skip)


wishes = st.builds(
    Wish,
    names,
    st.sampled_from((None, 1, 2, 3)),
    configs,
    st.sampled_from(LIFECYCLES),
    st.sampled_from((None, None, "a", "b")),
)
troubles = st.one_of(
    st.builds(Trouble, st.sampled_from(MISHAPS), st.sampled_from(WRITES), st.integers(0, 1)),
    st.builds(Trouble, st.sampled_from(MISHAPS), st.just("*"), st.integers(0, 9)),
    st.builds(
        Trouble,
        st.none(),
        st.sampled_from(("*", "state", "state", "outcome", "intent", "recover", "run_*")),
        st.integers(0, 2),
        st.sampled_from(MOMENTS),
    ),
)
edits = st.tuples(
    names, st.sampled_from(("create", "delete", "recreate", "grow", "alter", "clear"))
)


boxes = st.tuples(st.sampled_from(BOXES), st.sampled_from(PLACES), st.sampled_from(LABELS))
carries = st.tuples(st.sampled_from(BOXES), st.sampled_from(("put", "move", "stop", "drop")))
box_troubles = st.one_of(
    st.builds(
        Trouble, st.sampled_from(MISHAPS), st.sampled_from(("MoveBox", "ListMoves")), st.just(0)
    ),
    st.builds(
        Trouble,
        st.none(),
        st.sampled_from(("obligation", "obligation", "discharged", "recover", "state")),
        st.integers(0, 1),
        st.sampled_from(MOMENTS),
    ),
)


class Engine(RuleBasedStateMachine):
    """Rules are what people, processes and networks do; invariants are what users rely on."""

    @initialize(
        brokers=st.sampled_from((1, 3)),
        begun=st.booleans(),
        first=st.lists(wishes, max_size=3),
        pace=st.sampled_from((0.0, 3.0, 100.0, 100.0)),
        boxed=st.booleans(),
    )
    def start(self, brokers: int, begun: bool, first: list[Wish], pace: float, boxed: bool) -> None:
        self.house = engine.house(brokers=brokers)
        self.house.cluster.depot.pace = pace
        if begun:
            engine.begin(self.house)
        self.witness = Witness(self.house)
        self.wishes: dict[str, Wish] = {}
        self.boxes: dict[str, Declared] = {}
        self.removed: dict[str, bool] = {}
        self.saved: Plan | None = None
        self.declare(first)
        if boxed:
            self.move([(name, "hall", None) for name in BOXES], [], [])

    # ── what is wished ──────────────────────────────────────────────────────────────────

    @rule(new=st.lists(wishes, min_size=1, max_size=3))
    def declare(self, new: list[Wish]) -> None:
        """New blocks, or other texts in old ones."""
        for wish in new:
            old = self.wishes.get(wish.name)
            self.wishes[wish.name] = replace(wish, renamed=old.renamed if old else False)
            self.removed.pop(wish.name, None)

    @rule(name=st.sampled_from(BOXES), destroy=st.booleans())
    def clear_away(self, name: str, destroy: bool) -> None:
        self.boxes.pop(name, None)
        self.removed[name] = destroy

    @rule(name=names, how=st.sampled_from((True, True, True, False, None)))
    def undeclare(self, name: str, how: bool | None) -> None:
        """A block goes: with a `removed` block that destroys or forgets, or just so."""
        self.wishes.pop(name, None)
        self.removed.pop(name, None)
        if how is not None:
            self.removed[name] = how

    @rule(name=names)
    def rename(self, name: str) -> None:
        """A block gets another address, with `moved` blocks that tell of it."""
        if name in self.wishes:
            self.wishes[name] = replace(self.wishes[name], renamed=not self.wishes[name].renamed)

    def desired(self) -> Desired:
        wishes = [
            topic(
                w.name,
                w.partitions,
                w.config,
                address=w.address,
                lifecycle=w.lifecycle,
                depends_on=self._needs(w),
            )
            for w in self.wishes.values()
        ]
        moves = (
            engine.moved(
                f"kafka_topic.{w.name}{'' if w.renamed else '_new'}",
                f"kafka_topic.{w.name}{'_new' if w.renamed else ''}",
            )
            for w in self.wishes.values()
        )
        gone = (
            engine.removed(address, destroy=destroy)
            for name, destroy in self.removed.items()
            for address in _addresses(name)
        )
        wishes += self.boxes.values()
        return engine.desired(*wishes, moved=tuple(moves), removed=tuple(gone))

    def _needs(self, wish: Wish) -> tuple[str, ...]:
        needed = self.wishes.get(wish.after or "")
        # Only ever upwards, as a configuration with a circle is refused when it is read.
        return (needed.address,) if needed and needed.name < wish.name else ()

    # ── what others do ──────────────────────────────────────────────────────────────────

    @rule(edit=edits)
    def somebody_meddles(self, edit: tuple[str, str]) -> None:
        name, deed = edit
        live = self.house.cluster.topics.get(name)
        with self.house.cluster.others() as others:
            if deed == "create" and live is None:
                others.create(name, 2, config={"retention.ms": "1000"})
            elif deed == "grow" and live is not None:
                others.grow(name, live.partitions + 1)
            elif deed in ("alter", "clear") and live is not None:
                others.alter(name, {"retention.ms": "77" if deed == "alter" else None})
            elif deed in ("delete", "recreate") and live is not None:
                getattr(others, deed)(name)

    @rule(carry=carries)
    def somebody_carries(self, carry: tuple[str, str]) -> None:
        """Another tool moves boxes too, and stops moves that are not its own."""
        (name, deed), depot = carry, self.house.cluster.depot
        if name not in depot.boxes:
            if deed == "put":
                depot.put(Box(f"foreign-{self.house.clock.monotonic()}", name, "hall", ""))
        elif deed == "move":
            depot.put(depot.move(name, "cellar"))
        elif deed == "stop":
            depot.stop(name)
        elif deed == "drop":
            del depot.held[name]

    # ── what goes wrong ─────────────────────────────────────────────────────────────────

    @rule(seconds=st.sampled_from((0.0, 0.5, 2.0)), reads=st.sampled_from((0, 1, 3)))
    def brokers_lag(self, seconds: float, reads: int) -> None:
        last = self.house.cluster.numbers[-1]
        self.house.cluster.lag(seconds=seconds, reads=reads, broker=last)

    @rule(number=st.integers(2, 3), up=st.booleans())
    def brokers_fall(self, number: int, up: bool) -> None:
        if number in self.house.cluster.numbers:
            (self.house.cluster.start if up else self.house.cluster.stop)(number)

    @rule(seconds=st.sampled_from((1.0, TIMEOUT, 3600.0)))
    def time_passes(self, seconds: float) -> None:
        self.house.clock.advance(seconds)

    # ── what the tool does ──────────────────────────────────────────────────────────────

    @rule(trouble=st.lists(troubles, max_size=1))
    def plan(self, trouble: list[Trouble]) -> None:
        """A plan that somebody keeps, to apply it later."""
        said = self.desired()
        before = len(self.house.sink.whole), self.house.backend.data
        for item in trouble:
            item.befall(self.house)
        try:
            self.saved = engine.plan(self.house, said)
        except (KafkaformError, Killed) as error:
            self._tolerable(error)
        else:
            self._judge(said, self.saved)
        assert before == (len(self.house.sink.whole), self.house.backend.data)

    @rule(
        mode=st.sampled_from((*[Mode.NORMAL] * 5, Mode.DESTROY)),
        new=st.lists(wishes, max_size=2),
        gone=st.lists(names, max_size=1),
        trouble=st.lists(troubles, max_size=3),
        meanwhile=st.lists(edits, max_size=1),
    )
    def apply(
        self,
        mode: Mode,
        new: list[Wish],
        gone: list[str],
        trouble: list[Trouble],
        meanwhile: list[tuple[str, str]],
    ) -> None:
        """A few new wishes, then a run through trouble while somebody else is at work."""
        self.declare(new)
        for name in gone:
            self.undeclare(name, True)
        self._apply(Options(mode), trouble, meanwhile)

    @rule(
        new=st.lists(boxes, min_size=1, max_size=2),
        trouble=st.lists(box_troubles, max_size=2),
        then=st.lists(carries, max_size=1),
    )
    def move(
        self,
        new: list[tuple[str, str | None, str | None]],
        trouble: list[Trouble],
        then: list[tuple[str, str]],
    ) -> None:
        """Boxes are made and moved: long work, begun and asked about through trouble, and perhaps
        stopped by somebody else."""
        for name, place, label in new:
            self.boxes[name] = engine.box(name, place, label)
            self.removed.pop(name, None)
        self._apply(Options(), trouble, [])
        for carry in then:
            self.somebody_carries(carry)

    @precondition(lambda self: self.saved is not None)
    @rule(expect=st.booleans(), trouble=st.lists(troubles, max_size=3))
    def apply_the_saved_plan(self, expect: bool, trouble: list[Trouble]) -> None:
        """Perhaps for the second time, or long after the world went on."""
        assert self.saved is not None
        token = self.saved.token if expect else None
        self._apply(self.saved.options, trouble, [], saved=self.saved, expect=token)

    def _apply(
        self,
        options: Options,
        trouble: list[Trouble],
        meanwhile: list[tuple[str, str]],
        *,
        saved: Plan | None = None,
        expect: str | None = None,
    ) -> None:
        said = self.desired()
        for item in trouble:
            item.befall(self.house)

        def shown(plan: Plan) -> None:
            if saved is None:
                self._judge(said, plan)
            for edit in meanwhile:
                self.somebody_meddles(edit)

        try:
            engine.apply(self.house, said, options, saved=saved, expect=expect, shown=shown)
        except (KafkaformError, Killed) as error:
            self._tolerable(error)

    def _judge(self, said: Desired, plan: Plan) -> None:
        self.witness.plan(plan, said, self.house.state)

    def _tolerable(self, error: BaseException) -> None:
        assert not isinstance(error, StorageError | Locked), error

    # ── when all is calm ────────────────────────────────────────────────────────────────

    @rule()
    def calm(self) -> None:
        """Everything works again: one apply recovers and converges, a second has nothing to do."""
        house = self.house
        house.cluster.faults.clear()
        house.fate.clear()
        house.cluster.lag()
        for number in house.cluster.numbers:
            house.cluster.start(number)
        house.clock.advance(3600.0)
        for _ in range(5):
            for number in house.cluster.numbers:
                house.cluster.look("DescribeTopics", number)
        said = self.desired()
        recovered = self._around(said)
        done = engine.apply(house, said, recovered, shown=partial(self._judge, said))
        assert done.report is None or done.report.complete, done.report
        after = engine.plan(house, said)
        self.witness.settled(after, said)
        if not any(change.adopts for change in done.plan.effective):
            again = engine.plan(house, said, recovered)
            assert again.effective == (), again.effective
            assert again.drifted == (), again.drifted
        house.clock.advance(3600.0)
        engine.apply(house, said, recovered)
        assert house.index.obligations == () and not any(
            box.bound for box in house.cluster.depot.boxes.values()
        )

    def _around(self, said: Desired) -> Options:
        """Options that go round what cannot be done, after one apply that recovers."""
        try:
            engine.apply(self.house, said, fail_on=("blocked", "drift"))
        except KafkaformError as error:
            assert not isinstance(error, StorageError | Locked | ConnectError), error
        stopping = engine.plan(self.house, said).blocked(stopping=True)
        return Options(exclude=tuple(change.address for change in stopping))

    @invariant()
    def storage_is_sound(self) -> None:
        if hasattr(self, "witness"):
            self.witness.storage()

    def teardown(self) -> None:
        if hasattr(self, "witness"):
            self.calm()


def _addresses(name: str) -> tuple[str, ...]:
    if name in BOXES:
        return (f"{KIND}.{name}",)
    return f"kafka_topic.{name}", f"kafka_topic.{name}_new"


EXAMPLES = int(os.environ.get("KAFKAFORM_MODEL_EXAMPLES", "0"))
Engine.TestCase.settings = settings(
    max_examples=EXAMPLES or 80,
    stateful_step_count=25,
    deadline=None,
    derandomize=not EXAMPLES,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TestEngine = Engine.TestCase
