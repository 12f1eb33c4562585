"""Connectors through lost answers, deaths, other people and failures, on simulated workers.

Whatever happens, a request leaves only after its intent is durable, somebody else's connector stays
as it is, and once nothing disturbs any more, two applies make everything as it is declared.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any, cast

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from kafkaform.core.address import parse_address
from kafkaform.core.canonical import digest
from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import Declared, Desired, Identity, ProviderConfig
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.plan.codec import to_data
from kafkaform.provider.http.exchange import Call, join_path
from kafkaform_connect.connector import KIND
from kafkaform_connect.memory.provider import ConnectMemoryProvider
from kafkaform_connect.memory.workers import SimulatedWorkers
from kafkaform_kafka.memory import Killed

from ..kit.quick import examples
from ..kit.simulated.engine import PLACE, Clock, House, apply, plan
from ..kit.simulated.memory_store import Fate, MemoryBackend, MemorySink

INSTANCE = "kafka_connect"
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
KEPT, THEIRS = "kept", "theirs"
NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from(["1", "2", "3"])
STATES = st.sampled_from(["running", "paused", "stopped"])


class Connectors(RuleBasedStateMachine):
    """One state, one Connect cluster, and what happens to both."""

    def __init__(self) -> None:
        super().__init__()
        clock, fate = Clock(), Fate()
        self.workers = SimulatedWorkers(clock)
        self.workers.startup_seconds = 1.0
        sink = MemorySink(fate)
        self.house = House(clock, cast(Any, None), fate, MemoryBackend(fate), sink)
        provider = ConnectMemoryProvider(self.workers, mishap=self._meet)
        self.house.providers = {INSTANCE: provider}
        self.wishes: dict[str, tuple[str, str]] = {KEPT: ("1", "running")}
        self.mishaps: list[str] = []
        self._outside("POST", ("connectors",), self._body(THEIRS))
        self.theirs = dict(self.workers.connectors[THEIRS].config)

    # ── the way to the workers ──────────────────────────────────────────────────────────

    def _meet(self, call: Call) -> str:
        """What happens to a call of ours. A write has to be announced."""
        if call.reads:
            return ""
        name = call.body["name"] if call.method == "POST" and call.body else call.path.split("/")[2]
        assert name in self._list_open(), f"nobody announced {call}"
        return self.mishaps.pop() if self.mishaps else ""

    def _list_open(self) -> set[str]:
        """The connectors with an intent that has no outcome."""
        found: dict[str, str] = {}
        for record in self.house.records("intent", "outcome", "recover"):
            step = record.body.get("step")  # a log whose end is torn is recovered, too
            if record.kind == "intent":
                found[step] = record.body["key"]
            else:
                found.pop(step, None)
        return set(found.values())

    def _outside(self, method: str, path: tuple[str, ...], body: Any = None) -> None:
        self.workers.handle(Call(method, join_path(*path), body), "somebody")

    def _body(self, name: str) -> dict[str, Any]:
        return {"name": name, "config": {"connector.class": SOURCE, "topic": "t"}}

    # ── what is wished, and what is done ────────────────────────────────────────────────

    def _desired(self) -> Desired:
        declared = tuple(
            Declared(
                Identity(INSTANCE, KIND, name),
                parse_address(f"{KIND}.{name}"),
                FrozenMap(
                    name=name,
                    **{"class": SOURCE},
                    config=FrozenMap({"topic": "t", "batch.size": value}),
                    secret_config=None,
                    secret_config_version=None,
                    state=state,
                ),
                PLACE,
            )
            for name, (value, state) in sorted(self.wishes.items())
        )
        providers = {INSTANCE: ProviderConfig(INSTANCE, INSTANCE, EMPTY, PLACE)}
        return Desired(declared, providers, digest=digest([to_data(one) for one in declared]))

    def _apply(self) -> None:
        with suppress(KafkaformError, Killed):
            apply(self.house, self._desired())
        self.house.backend.held = False

    @rule(name=NAMES, value=VALUES, state=STATES)
    def declare(self, name: str, value: str, state: str) -> None:
        self.wishes[name] = (value, state)

    @rule(name=NAMES)
    def undeclare(self, name: str) -> None:
        self.wishes.pop(name, None)

    @rule()
    def apply(self) -> None:
        self._apply()

    @rule(kinds=st.lists(st.sampled_from(["lost", "refused", ""]), min_size=1, max_size=4))
    def apply_on_a_bad_line(self, kinds: list[str]) -> None:
        self.mishaps = list(kinds)
        self._apply()
        self.mishaps = []

    @rule(
        what=st.sampled_from(["*", "intent", "outcome", "state"]),
        skip=st.integers(0, 3),
        moment=st.sampled_from(["before", "torn", "after"]),
    )
    def apply_and_die(self, what: str, skip: int, moment: str) -> None:
        self.house.fate.set(what, skip, moment)
        self._apply()
        self.house.fate.clear()

    # ── what others do ──────────────────────────────────────────────────────────────────

    @rule(name=NAMES, value=VALUES)
    def somebody_configures(self, name: str, value: str) -> None:
        changes = {"batch.size": value, "file": "/tmp/x"}
        self._outside("PATCH", ("connectors", name, "config"), changes)

    @rule(name=NAMES, verb=st.sampled_from(["pause", "resume", "stop"]))
    def somebody_halts(self, name: str, verb: str) -> None:
        self._outside("PUT", ("connectors", name, verb))

    @rule(name=NAMES)
    def somebody_deletes(self, name: str) -> None:
        self._outside("DELETE", ("connectors", name))

    @rule(name=NAMES, connector=st.booleans())
    def it_fails(self, name: str, connector: bool) -> None:
        one = self.workers.connectors.get(name)
        if one is not None and one.state != "STOPPED":
            one.trace, one.connector = "java.lang.Exception: no\n", connector

    @rule(seconds=st.sampled_from([1.0, 30.0, 600.0]))
    def time_passes(self, seconds: float) -> None:
        self.house.clock.sleep(seconds)

    # ── what must hold ──────────────────────────────────────────────────────────────────

    @invariant()
    def somebody_elses_connector_stays(self) -> None:
        assert self.workers.connectors[THEIRS].config == self.theirs

    @invariant()
    def the_log_is_whole(self) -> None:
        self.house.check_log()

    def teardown(self) -> None:
        """Nothing disturbs any more."""
        for _ in range(3):
            self.house.clock.sleep(600.0)
            self._apply()
        self.house.clock.sleep(600.0)
        made = plan(self.house, self._desired()).changes
        left = [change for change in made if change.effective or change.blocked]
        assert not left, left
        assert self.workers.connectors.keys() == {*self.wishes, THEIRS}
        for name, (value, state) in self.wishes.items():
            one = self.workers.connectors[name]
            assert one.config == {
                "name": name,
                "connector.class": SOURCE,
                "topic": "t",
                "batch.size": value,
            }
            assert (one.state.lower(), one.trace) == (state, "")


Connectors.TestCase.settings = settings(
    max_examples=examples(40),
    stateful_step_count=20,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
TestConnectors = Connectors.TestCase
