"""The whole engine against everything at once: faults, deaths, other people, new wishes."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from kafkaform_providers.kafka.memory import (
    Killed,
    killed_after,
    killed_before,
    late_effect,
    lost_reply,
    not_sent,
    refused,
    swallowed,
    throttled,
)

from kafkaform.core.errors import ConnectError, KafkaformError, Locked, StorageError
from kafkaform.core.resource import Desired, Lifecycle
from kafkaform.plan.model import Mode, Options, Plan

from . import engine
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
WRITES = ("CreateTopics", "CreatePartitions", "IncrementalAlterConfigs", "DeleteTopics")
READS = ("DescribeTopics", "ListTopics")
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
    """One declared topic."""

    name: str
    partitions: int | None
    config: dict[str, str]
    lifecycle: Lifecycle
    after: tuple[str, ...] = ()
    renamed: bool = False

    @property
    def address(self) -> str:
        return f"kafka_topic.{self.name}{'_new' if self.renamed else ''}"


class Engine(RuleBasedStateMachine):
    """Rules are what people, processes and networks do; invariants are what users rely on."""

    @initialize(brokers=st.sampled_from((1, 3)))
    def start(self, brokers: int) -> None:
        self.house = engine.house(brokers=brokers)
        engine.begin(self.house)
        self.witness = Witness(self.house)
        self.wishes: dict[str, Wish] = {}
        self.removed: dict[str, bool] = {}
        self.saved: Plan | None = None

    # ── what is wished ──────────────────────────────────────────────────────────────────

    @rule(
        name=names,
        partitions=st.sampled_from((None, 1, 2, 3)),
        config=configs,
        lifecycle=st.sampled_from(LIFECYCLES),
        after=st.booleans(),
    )
    def declare(
        self,
        name: str,
        partitions: int | None,
        config: dict[str, str],
        lifecycle: Lifecycle,
        after: bool,
    ) -> None:
        """A new block, or another text in an old one."""
        renamed = self.wishes[name].renamed if name in self.wishes else False
        first = self.wishes.get("a")
        needs = (first.address,) if after and first and name != "a" else ()
        self.wishes[name] = Wish(name, partitions, config, lifecycle, needs, renamed)
        self.removed.pop(name, None)

    @rule(name=names, how=st.sampled_from((None, True, False)))
    def undeclare(self, name: str, how: bool | None) -> None:
        """A block goes: just so, or with a `removed` block that destroys or forgets."""
        self.wishes.pop(name, None)
        self.removed.pop(name, None)
        if how is not None:
            self.removed[name] = how

    @precondition(lambda self: self.wishes)
    @rule(data=st.data())
    def rename(self, data: st.DataObject) -> None:
        """A block gets another address, with `moved` blocks that tell of it."""
        name = data.draw(st.sampled_from(sorted(self.wishes)))
        wish = self.wishes[name]
        self.wishes[name] = replace(wish, renamed=not wish.renamed)

    def desired(self) -> Desired:
        wishes = [
            topic(
                w.name,
                w.partitions,
                w.config,
                address=w.address,
                lifecycle=w.lifecycle,
                depends_on=tuple(a for a in w.after if a in self._addresses()),
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
            engine.removed(f"kafka_topic.{name}{end}", destroy=destroy)
            for name, destroy in self.removed.items()
            for end in ("", "_new")
        )
        return engine.desired(*wishes, moved=tuple(moves), removed=tuple(gone))

    def _addresses(self) -> set[str]:
        return {wish.address for wish in self.wishes.values()}

    # ── what others do ──────────────────────────────────────────────────────────────────

    @rule(name=names, partitions=st.sampled_from((1, 2)), config=configs)
    def somebody_creates(self, name: str, partitions: int, config: dict[str, str]) -> None:
        if name not in self.house.cluster.topics:
            with self.house.cluster.others() as others:
                others.create(name, partitions, config=config)

    @rule(name=names, deed=st.sampled_from(("delete", "recreate", "grow", "alter", "clear")))
    def somebody_meddles(self, name: str, deed: str) -> None:
        live = self.house.cluster.topics.get(name)
        if live is None:
            return
        with self.house.cluster.others() as others:
            if deed == "grow":
                others.grow(name, live.partitions + 1)
            elif deed in ("alter", "clear"):
                others.alter(name, {"retention.ms": "77" if deed == "alter" else None})
            else:
                getattr(others, deed)(name)

    # ── what goes wrong ─────────────────────────────────────────────────────────────────

    @rule(
        mishap=st.sampled_from(MISHAPS),
        api=st.sampled_from((*WRITES, *WRITES, *READS)),
        skip=st.integers(0, 2),
    )
    def plan_a_mishap(self, mishap: object, api: str, skip: int) -> None:
        self.house.cluster.faults.schedule(mishap, api, skip=skip)  # type: ignore[arg-type]

    @rule(
        what=st.sampled_from(("*", "intent", "outcome", "recover", "state", "run_*", "verify")),
        skip=st.integers(0, 4),
        moment=st.sampled_from(MOMENTS),
    )
    def plan_a_death(self, what: str, skip: int, moment: str) -> None:
        self.house.fate.set(what, skip, moment)

    @rule(seconds=st.sampled_from((0.0, 0.5, 2.0)), reads=st.sampled_from((0, 1, 3)))
    def brokers_lag(self, seconds: float, reads: int) -> None:
        last = self.house.cluster.numbers[-1]
        self.house.cluster.lag(seconds=seconds, reads=reads, broker=last)

    @rule(number=st.integers(1, 3), up=st.booleans())
    def brokers_fall(self, number: int, up: bool) -> None:
        if number in self.house.cluster.numbers:
            (self.house.cluster.start if up else self.house.cluster.stop)(number)

    @rule(seconds=st.sampled_from((1.0, TIMEOUT, 3600.0)))
    def time_passes(self, seconds: float) -> None:
        self.house.clock.advance(seconds)

    # ── what the tool does ──────────────────────────────────────────────────────────────

    @rule()
    def plan(self) -> None:
        """A plan that somebody keeps, to apply it later."""
        said = self.desired()
        before = len(self.house.sink.whole), self.house.backend.data
        try:
            self.saved = engine.plan(self.house, said)
        except (KafkaformError, Killed) as error:
            self._tolerable(error)
        else:
            self.witness.plan(self.saved, said, self.house.state)
        assert before == (len(self.house.sink.whole), self.house.backend.data)

    @rule(mode=st.sampled_from((Mode.NORMAL, Mode.NORMAL, Mode.NORMAL, Mode.DESTROY)))
    def apply(self, mode: Mode) -> None:
        self._apply(Options(mode))

    @precondition(lambda self: self.saved is not None)
    @rule(expect=st.booleans())
    def apply_the_saved_plan(self, expect: bool) -> None:
        """Perhaps for the second time, or long after the world went on."""
        assert self.saved is not None
        token = self.saved.token if expect else None
        self._apply(self.saved.options, saved=self.saved, expect=token)

    def _apply(
        self, options: Options, saved: Plan | None = None, expect: str | None = None
    ) -> None:
        said, state = self.desired(), self.house.state
        try:
            done = engine.apply(self.house, said, options, saved=saved, expect=expect)
        except (KafkaformError, Killed) as error:
            self._tolerable(error)
        else:
            if saved is None:
                self.witness.plan(done.plan, said, state)

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
            list(map(lambda n: house.cluster.look("DescribeTopics", n), house.cluster.numbers))
        said = self.desired()
        recovered = self._around(said)
        state = house.state
        done = engine.apply(house, said, recovered)
        self.witness.plan(done.plan, said, state)
        assert done.report is None or done.report.complete, done.report
        after = engine.plan(house, said)
        self.witness.settled(after)
        if not any(change.adopts for change in done.plan.effective):
            again = engine.plan(house, said, recovered)
            assert again.effective == (), again.effective
            assert again.drifted == (), again.drifted

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


EXAMPLES = int(os.environ.get("KAFKAFORM_MODEL_EXAMPLES", "0"))
Engine.TestCase.settings = settings(
    max_examples=EXAMPLES or 60,
    stateful_step_count=25,
    deadline=None,
    derandomize=not EXAMPLES,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TestEngine = Engine.TestCase
