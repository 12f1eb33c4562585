"""Fixtures of the conformance suite: how to reach Connect workers, and to change what they run."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from typing import Any

from kafkaform.core.clock import Clock, SimulatedClock
from kafkaform.core.resource import FaultClass
from kafkaform.core.schema import ObjectSchema
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import Provider, ResourceType, Secrets, Session
from kafkaform.provider.http.exchange import Call, HttpAnswer, join_path
from kafkaform.provider.testing.workbench import INSTANCE, About, Edit, Question
from kafkaform_connect.connector import KIND, TYPE
from kafkaform_connect.data_sources import DATA, PLUGINS
from kafkaform_connect.memory.provider import ConnectMemoryProvider
from kafkaform_connect.memory.workers import SimulatedWorkers
from kafkaform_connect.provider import PROVIDER

SOURCE = "org.apache.kafka.connect.file.FileStreamSourceConnector"


def configure(**given: str) -> FrozenMap:
    """Keyword `tasks_max` is the config `tasks.max`."""
    said = {key.replace("_", "."): value for key, value in given.items()}
    return FrozenMap(config=FrozenMap({"file": "/dev/null", "topic": "conformance", **said}))


def shows_connector(answer: FrozenMap, attributes: FrozenMap) -> bool:
    return answer["config"] == attributes["config"] and answer["state"] == attributes["state"]


def lists_source(answer: FrozenMap, _: FrozenMap) -> bool:
    return SOURCE in {row["class"] for row in answer["plugins"]}


class ConnectorSystem:
    """Connectors of some workers. A stopped one is as its requests leave it at once."""

    type: ResourceType = TYPE
    provider: Provider = PROVIDER
    data: Mapping[str, ObjectSchema] = DATA
    secrets: Secrets = EMPTY
    incarnations = False
    bad = configure(tasks_max="0")
    edits: Sequence[Edit] = (
        Edit("set a config", wish=configure(batch_size="10")),
        Edit(
            "remove a config",
            configure(batch_size="10"),
            configure(),
            fallbacks=FrozenMap({"config.batch.size": "2000"}),
        ),
        Edit("pause it", wish=FrozenMap(state="paused")),
        Edit("change a list", configure(topics="a, b"), configure(topics="a, c")),
        Edit(
            "set what somebody else has set meanwhile",
            wish=configure(batch_size="1"),
            meanwhile=FrozenMap({"batch.size": "2"}),
        ),
        Edit("set nonsense", wish=configure(batch_size="many"), expect=FaultClass.DEFINITE),
        Edit("ask for no tasks", wish=configure(tasks_max="0"), blocked=True),
        Edit("take an unknown plugin", wish=FrozenMap({"class": "com.example.No"}), blocked=True),
    )
    questions = (
        Question(KIND, About.OBJECT, lambda a: FrozenMap(name=a["name"]), shows_connector),
        Question(PLUGINS, About.SYSTEM, lambda _: FrozenMap(type=None), lists_source),
    )
    unfit: Mapping[str, str] = {
        "delete_takes_only_that_incarnation": "workers keep no id of a connector",
    }

    def fresh(self, given: FrozenMap) -> FrozenMap:
        name = f"conformance-{uuid.uuid4().hex[:12]}"
        attributes = FrozenMap(name=name, **{"class": SOURCE}, state="stopped")
        return attributes.with_items(configure()).with_items(given)

    def make(self, attributes: FrozenMap) -> None:
        config = {"connector.class": attributes["class"], **attributes["config"]}
        body = {"name": attributes["name"], "config": config, "initial_state": "STOPPED"}
        self.ask("POST", ("connectors",), body)

    def alter(self, attributes: FrozenMap, given: FrozenMap) -> None:
        # Workers before 3.8 have no PATCH.
        path = ("connectors", attributes["name"])
        config = {**self.ask("GET", path).body["config"], **given}
        self.ask("PUT", (*path, "config"), config)

    def recreate(self, attributes: FrozenMap) -> None:
        self.ask("DELETE", ("connectors", attributes["name"]))
        self.make(attributes)

    def ask(self, method: str, path: Sequence[str], body: Any = None) -> HttpAnswer:
        """One request behind the tool's back. It has to succeed."""
        answer = self.send(Call(method, join_path(*path), body))
        assert answer.succeeded, answer
        return answer

    def send(self, call: Call) -> HttpAnswer:
        raise NotImplementedError


class SimulatedSystem(ConnectorSystem):
    """Connectors of simulated workers."""

    def __init__(self, workers: SimulatedWorkers) -> None:
        self.clock: Clock = workers.clock
        self._workers = workers

    def open(self, *, privileged: bool) -> Session:
        user = "admin" if privileged else "nobody"
        return ConnectMemoryProvider(self._workers, user).open(INSTANCE, EMPTY, {})

    def send(self, call: Call) -> HttpAnswer:
        return self._workers.handle(call, "admin")


def make_simulated_system() -> SimulatedSystem:
    return SimulatedSystem(SimulatedWorkers(SimulatedClock()))
