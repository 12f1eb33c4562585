"""Connectors through lost answers, deaths, other people and failures, on simulated workers.

Whatever happens, a request leaves only after its intent is durable, somebody else's connector stays
as it is, and once nothing disturbs any more, two applies make everything as it is declared.
"""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from kafkaform.core.address import parse_address
from kafkaform.core.resource import Declared, Identity
from kafkaform.core.value import FrozenMap
from kafkaform.provider.http.exchange import Call, join_path
from kafkaform_connect.connector import KIND
from kafkaform_connect.memory.provider import ConnectMemoryProvider
from kafkaform_connect.memory.workers import SimulatedWorkers

from ..kit.simulated.engine import PLACE, Clock
from .single_provider import SETTINGS, THEIRS, SingleProvider, list_announced, make_house

INSTANCE = "kafka_connect"
SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"
KEPT = "kept"
NAMES = st.sampled_from(["a", "b", "c"])
VALUES = st.sampled_from(["1", "2", "3"])
STATES = st.sampled_from(["running", "paused", "stopped"])


class Connectors(SingleProvider):
    """One state, one Connect cluster, and what happens to both."""

    instance = INSTANCE

    def __init__(self) -> None:
        super().__init__()
        clock = Clock()
        self.workers = SimulatedWorkers(clock)
        self.workers.startup_seconds = 1.0
        self.house = make_house(clock)
        self.use(ConnectMemoryProvider(self.workers, mishap=self._meet))
        self.wishes: dict[str, tuple[str, str]] = {KEPT: ("1", "running")}
        self.mishaps = []
        self._outside("POST", ("connectors",), self._body(THEIRS))
        self.theirs = dict(self.workers.connectors[THEIRS].config)

    # ── the way to the workers ──────────────────────────────────────────────────────────

    def _meet(self, call: Call) -> str:
        """What happens to a call of ours. A write has to be announced."""
        if call.reads:
            return ""
        name = call.body["name"] if call.method == "POST" and call.body else call.path.split("/")[2]
        assert name in list_announced(self.house), f"nobody announced {call}"
        return self.mishaps.pop() if self.mishaps else ""

    def _outside(self, method: str, path: tuple[str, ...], body: Any = None) -> None:
        self.workers.handle(Call(method, join_path(*path), body), "somebody")

    def _body(self, name: str) -> dict[str, Any]:
        return {"name": name, "config": {"connector.class": SOURCE, "topic": "t"}}

    # ── what is wished, and what is done ────────────────────────────────────────────────

    def list_declared(self) -> tuple[Declared, ...]:
        return tuple(
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

    @rule(name=NAMES, value=VALUES, state=STATES)
    def declare(self, name: str, value: str, state: str) -> None:
        self.wishes[name] = (value, state)

    @rule(name=NAMES)
    def undeclare(self, name: str) -> None:
        self.wishes.pop(name, None)

    @rule(kinds=st.lists(st.sampled_from(["lost", "refused", ""]), min_size=1, max_size=4))
    def apply_on_a_bad_line(self, kinds: list[str]) -> None:
        self.mishaps += kinds
        self.apply_once()

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

    # ── what must hold ──────────────────────────────────────────────────────────────────

    @invariant()
    def somebody_elses_connector_stays(self) -> None:
        assert self.workers.connectors[THEIRS].config == self.theirs

    def compare(self) -> None:
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


Connectors.TestCase.settings = SETTINGS
TestConnectors = Connectors.TestCase
