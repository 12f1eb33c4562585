"""A random life of one state and one system of a provider other than Kafka's: what happens to every
such system, and how each life ends."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkaform.core.canonical import digest
from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import Declared, Desired, ProviderConfig
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import Provider
from kafkaform_kafka.memory import Killed

from ..kit.quick import examples
from ..kit.simulated.engine import PLACE, Clock, House, apply, plan
from ..kit.simulated.memory_store import Fate, MemoryBackend, MemorySink

THEIRS = "theirs"
"""What somebody else has, and nobody declares."""
LATEST = 600.0
"""Seconds after which no request can be executed any more."""
SETTINGS = settings(
    max_examples=examples(40),
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def make_house(clock: Clock) -> House:
    """Where the state and its log are; providers come later."""
    fate = Fate()
    return House(clock, cast(Any, None), fate, MemoryBackend(fate), MemorySink(fate))


def list_announced(house: House) -> set[str]:
    """The keys of objects with an intent that has no outcome."""
    found: dict[str, str] = {}
    for record in house.records("intent", "outcome", "recover"):
        step = str(record.body.get("step"))  # a log whose end is torn is recovered, too
        if record.kind == "intent":
            found[step] = record.body["key"]
        else:
            found.pop(step, None)
    return set(found.values())


class SingleProvider(RuleBasedStateMachine):
    """house: with the state; instance: of the provider; mishaps: of coming writes."""

    house: House
    instance: str
    block: FrozenMap = EMPTY
    mishaps: list[Any]
    settled = False
    """The last apply has done everything: what is there and declared is ours."""

    def list_declared(self) -> tuple[Declared, ...]:
        """What is wished."""
        raise NotImplementedError

    def compare(self) -> None:
        """What must hold at the end: the system has what is wished."""
        raise NotImplementedError

    def use(self, provider: Provider) -> None:
        self.house.providers = {self.instance: provider}

    def _desired(self) -> Desired:
        declared = self.list_declared()
        providers = {self.instance: ProviderConfig(self.instance, self.instance, self.block, PLACE)}
        return Desired(declared, providers, digest=digest(declared))

    def apply_once(self) -> None:
        self.settled = False
        with suppress(KafkaformError, Killed):
            apply(self.house, self._desired())
            self.settled = True
        self.mishaps.clear()
        self.house.backend.held = False

    @rule()
    def apply(self) -> None:
        self.apply_once()

    @rule(
        what=st.sampled_from(["*", "intent", "outcome", "state"]),
        skip=st.integers(0, 3),
        moment=st.sampled_from(["before", "torn", "after"]),
    )
    def apply_and_die(self, what: str, skip: int, moment: str) -> None:
        self.house.fate.set(what, skip, moment)
        self.apply_once()
        self.house.fate.clear()

    @rule(seconds=st.sampled_from([1.0, 30.0, LATEST]))
    def time_passes(self, seconds: float) -> None:
        self.house.clock.sleep(seconds)

    @invariant()
    def the_log_is_whole(self) -> None:
        self.house.check_log()

    def teardown(self) -> None:
        """Nothing disturbs any more."""
        for _ in range(3):
            self.house.clock.sleep(LATEST)
            self.apply_once()
        self.house.clock.sleep(LATEST)
        made = plan(self.house, self._desired()).changes
        left = [change for change in made if change.effective or change.blocked]
        assert not left, left
        self.compare()
