"""The calls of the REST API, their answers as structs, and what refusals mean.

Sources: Kafka Connect's ConnectorsResource, ConnectorPluginsResource, RootResource,
HerderRequestHandler and ConnectExceptionMapper; KIP-26, KIP-477 (PATCH), KIP-507, KIP-745
(restart), KIP-769 (plugins), KIP-875 (stop, offsets), KIP-980 (initial state).

Every answer is checked before any part of it is used. The shapes are those of Kafka Connect's
`rest/entities` (ConnectorInfo, ConnectorStateInfo, ConfigKeyInfo, ConfigInfos, ServerInfo,
PluginInfo). Unknown members are ignored: later versions add some.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.resource import Fault, FaultClass
from kafkaform.provider.http.exchange import (
    Call,
    ErrorTable,
    HttpAnswer,
    join_path,
    make_fault,
    read_error_code,
    read_message,
)

RETRY_SECONDS = 1.0
"""Pause before a worker is asked again that refused because of a rebalance."""

SERVER = Call("GET", "/", reads=True)
NAMES = Call("GET", "/connectors", reads=True)
# A query with the same name twice (KIP-465), which a mapping cannot hold.
CONNECTORS = Call("GET", "/connectors?expand=info&expand=status", reads=True)
PLUGINS = Call("GET", "/connector-plugins", query={"connectorsOnly": "false"}, reads=True)

TABLE: ErrorTable = {
    (400, None): (FaultClass.DEFINITE, "correct the configuration of the connector"),
    (404, None): (FaultClass.CONVERGED, "plan again and look at what is there now"),
    # Nothing was executed: the worker knows no leader, or was asked by a worker that did not know
    # that the leader has changed (HerderRequestHandler.completeOrForwardRequest).
    (409, None): (FaultClass.NOT_APPLIED, "run the same command again after the rebalance"),
}
_EXISTS = re.compile(r"\balready exists\b")
# RebalanceNeededException where nothing makes 409 of it, as for a connector by its name (4.3). That
# a write was refused because of it cannot be told from this text alone.
_REBALANCES = re.compile(r"\bbecause a rebalance is expected\b")
_NOT_FOUND = re.compile(r"\bconnector\b.*\bnot found\b", re.IGNORECASE)


class WorkersClient(Protocol):
    """What is needed of `kafkaform.provider.http.client.HttpClient`."""

    def ask_all(self, calls: Sequence[Call]) -> list[HttpAnswer | Fault]:
        """The answer to each call, in order; a Fault for one that got none."""

    def prove(self) -> None:
        """Ask every open connection where it leads. Raises OtherSystem."""

    def close(self) -> None:
        """End all connections."""


class RequestFailed(Exception):
    """A read without a useful answer."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


# ── calls ───────────────────────────────────────────────────────────────────────────────


def get_connector(name: str) -> Call:
    return Call("GET", join_path("connectors", name), reads=True)


def get_status(name: str) -> Call:
    return Call("GET", join_path("connectors", name, "status"), reads=True)


def get_definition(class_: str) -> Call:
    return Call("GET", join_path("connector-plugins", class_, "config"), reads=True)


def validate(class_: str, config: Mapping[str, str]) -> Call:
    """A check without an effect. config: with `name` and `connector.class`."""
    path = join_path("connector-plugins", class_, "config", "validate")
    return Call("PUT", path, dict(config), reads=True)


def create(name: str, config: Mapping[str, str], state: str) -> Call:
    body: dict[str, Any] = {"name": name, "config": dict(config)}
    if state != "running":
        # Workers before 3.7 refuse a member that they do not know.
        body["initial_state"] = state.upper()
    return Call("POST", "/connectors", body)


def patch_config(name: str, changes: Mapping[str, str | None]) -> Call:
    """Set configs, and remove those that are None; all others stay."""
    return Call("PATCH", join_path("connectors", name, "config"), dict(changes))


def put_config(name: str, config: Mapping[str, str]) -> Call:
    """Replace all configs."""
    return Call("PUT", join_path("connectors", name, "config"), dict(config))


def put_state(name: str, state: str) -> Call:
    """Resume, pause or stop. state: running, paused or stopped."""
    verb = {"running": "resume", "paused": "pause", "stopped": "stop"}[state]
    return Call("PUT", join_path("connectors", name, verb))


def restart_failed(name: str) -> Call:
    """Restart the connector and its tasks as far as they have failed, once."""
    query = {"includeTasks": "true", "onlyFailed": "true"}
    return Call("POST", join_path("connectors", name, "restart"), query=query)


def get_offsets(name: str) -> Call:
    return Call("GET", join_path("connectors", name, "offsets"), reads=True)


def patch_offsets(name: str, offsets: Sequence[Offset]) -> Call:
    """Set the offsets of these partitions of a stopped connector; those of others stay (Kafka
    3.6)."""
    items = [{"partition": offset.partition, "offset": offset.position} for offset in offsets]
    return Call("PATCH", join_path("connectors", name, "offsets"), {"offsets": items})


def reset_offsets(name: str) -> Call:
    """Remove all offsets of a stopped connector (Kafka 3.6)."""
    return Call("DELETE", join_path("connectors", name, "offsets"))


def delete(name: str) -> Call:
    return Call("DELETE", join_path("connectors", name))


# ── answers ─────────────────────────────────────────────────────────────────────────────


def find_fault(answer: HttpAnswer | Fault, call: Call) -> Fault | None:
    """Why a call failed, None if it did not."""
    if isinstance(answer, Fault):
        return answer
    if answer.succeeded:
        return None
    fault = make_fault(answer, TABLE, call)
    if answer.status == 409:
        if _EXISTS.search(fault.message):
            advice = "plan again; --adopt takes the connector over"
            return replace(fault, kind=FaultClass.CONVERGED, advice=advice)
        return replace(fault, retry_after=fault.retry_after or RETRY_SECONDS)
    if answer.status == 500 and call.reads and _REBALANCES.search(fault.message):
        kind, advice = TABLE[409, None]
        return replace(fault, kind=kind, advice=advice, retry_after=RETRY_SECONDS)
    return fault


def get_body(answer: HttpAnswer | Fault, call: Call) -> Any:
    """The JSON value of a success. Raises RequestFailed."""
    fault = find_fault(answer, call)
    if fault is not None:
        raise RequestFailed(fault)
    assert isinstance(answer, HttpAnswer)
    return answer.body


def proves_absence(answer: HttpAnswer | Fault, name: str) -> bool:
    """True if a worker says that it knows no connector of this name."""
    # A wrong path, or a proxy, answers 404 as well. Only a worker names the connector.
    if not isinstance(answer, HttpAnswer) or answer.status != 404 or read_error_code(answer) != 404:
        return False
    message = read_message(answer)
    return name in message and _NOT_FOUND.search(message) is not None


def make_bad_answer(call: Call, cause: str) -> Fault:
    """The fault of an answer that no worker gives."""
    return Fault(
        "BAD_ANSWER",
        f"the answer is not that of a Connect worker: {cause}",
        FaultClass.AMBIGUOUS if not call.reads else FaultClass.NOT_APPLIED,
        f"{call}",
        "check url: it has to lead to the REST API of the workers",
    )


MAX_TEXT = 1024 * 1024
"""Characters of one text."""
MAX_TRACE = 64 * 1024
"""Characters of a stack trace that are kept. One endless trace must not make all connectors of a
listing unreadable."""
MAX_CONFIGS = 10_000
"""Configs of one connector or plugin."""
MAX_TASKS = 100_000


class UnreadableAnswer(Exception):
    """An answer that no worker gives. The text says what is wrong and repeats no value."""


class TaskStatus(Struct, frozen=True):
    """One task, or the connector itself."""

    state: str
    """RUNNING, PAUSED, STOPPED, FAILED, UNASSIGNED, RESTARTING or DESTROYED."""
    worker: str
    """`HOST:PORT` of its worker."""
    trace: str = ""
    """The stack trace of a failure. It can contain secrets."""
    id: int = -1
    """The number of a task; -1 for the connector."""


class Connector(Struct, frozen=True):
    """A connector as the workers know it."""

    name: str
    config: Mapping[str, str]
    """As it was sent, with its secrets."""
    type: str
    """`source`, `sink` or `unknown`."""
    status: TaskStatus | None = None
    """None until a worker has started it."""
    tasks: tuple[TaskStatus, ...] = ()


class Definition(Struct, frozen=True):
    """What a plugin says about its configs."""

    names: frozenset[str]
    """All that it declares."""
    passwords: frozenset[str]
    """Those of the type PASSWORD."""
    defaults: Mapping[str, str]
    """Config -> the text of its default."""


class ConfigFault(Struct, frozen=True):
    """What a worker has against one config."""

    key: str
    message: str


class Validation(Struct, frozen=True):
    """What a worker says about a whole configuration."""

    faults: tuple[ConfigFault, ...]
    passwords: frozenset[str]
    """The configs of the type PASSWORD, those of converters and transformations included."""


class Offset(Struct, frozen=True):
    """How far a connector is in one part of what it reads. Both are JSON objects in a form that a
    source chose; for a sink, they name topic and partition, and the offset there."""

    partition: Any
    position: Any


class Plugin(Struct, frozen=True):
    """A plugin of a worker."""

    class_: str
    type: str
    version: str


def read_server(body: Any) -> tuple[str, str]:
    """Version, and the id of the Kafka cluster (KIP-298); empty if it does not say one."""
    document = _object(body, "the answer")
    version = _text(document.get("version"), "version")
    cluster = document.get("kafka_cluster_id")
    return version, "" if cluster is None else _text(cluster, "kafka_cluster_id")


def read_names(body: Any) -> tuple[str, ...]:
    """The names of a listing without details."""
    return tuple(_text(name, "the name of a connector") for name in _list(body, "the listing"))


def read_connectors(body: Any) -> tuple[Connector, ...]:
    """The connectors of a listing with `expand=info` and `expand=status` (KIP-465)."""
    items = _object(body, "the listing").items()
    connectors = [(name, _object(item, "a connector")) for name, item in items]
    return tuple(
        read_connector(connector.get("info"), connector.get("status"), name)
        for name, connector in connectors
    )


def read_connector(info: Any, status: Any, name: str) -> Connector:
    """A connector. status: None if there is none yet; name: who was asked for."""
    document = _object(info, "a connector")
    if _text(document.get("name"), "name") != name:
        raise UnreadableAnswer("it is about another connector than the one that was asked for")
    config = read_config(document.get("config"))
    kind = document.get("type")
    status_document = None if status is None else _object(status, "status")
    return Connector(
        name,
        config,
        "unknown" if kind is None else _text(kind, "type"),
        None
        if status_document is None
        else _read_status(status_document.get("connector"), "connector"),
        () if status_document is None else _read_tasks(status_document.get("tasks")),
    )


def read_config(body: Any) -> Mapping[str, str]:
    """Configs by name. Those that are null are not set."""
    document = _object(body, "config")
    if len(document) > MAX_CONFIGS:
        raise UnreadableAnswer(f"a connector has more than {MAX_CONFIGS:,} configs")
    return {key: _text(value, "a config") for key, value in document.items() if value is not None}


def _read_tasks(body: Any) -> tuple[TaskStatus, ...]:
    tasks = _list(body, "tasks")
    if len(tasks) > MAX_TASKS:
        raise UnreadableAnswer(f"a connector has more than {MAX_TASKS:,} tasks")
    return tuple(_read_status(task, "a task") for task in tasks)


def _read_status(body: Any, subject: str) -> TaskStatus:
    document = _object(body, subject)
    number = document.get("id", -1)
    if not isinstance(number, int) or isinstance(number, bool) or abs(number) > MAX_TASKS:
        raise UnreadableAnswer(f"the id of {subject} is no number of a task")
    trace, worker = document.get("trace"), document.get("worker_id")
    return TaskStatus(
        _text(document.get("state"), "state"),
        "" if worker is None else _text(worker, "worker_id"),
        trace[:MAX_TRACE] if isinstance(trace, str) else "",
        number,
    )


def read_definition(body: Any) -> Definition:
    """The configs of a plugin (KIP-769)."""
    keys = [_object(item, "a config") for item in _list(body, "the definition")]
    if len(keys) > MAX_CONFIGS:
        raise UnreadableAnswer(f"a plugin has more than {MAX_CONFIGS:,} configs")
    named = [(_text(item.get("name"), "name"), item) for item in keys]
    return Definition(
        frozenset(name for name, _ in named),
        frozenset(name for name, item in named if item.get("type") == "PASSWORD"),
        {
            name: item["default_value"]
            for name, item in named
            if isinstance(item.get("default_value"), str) and item.get("type") != "PASSWORD"
        },
    )


def read_validation(body: Any) -> Validation:
    """The answer to a validation (KIP-26)."""
    document = _object(body, "the answer")
    faults: dict[ConfigFault, None] = {}
    passwords = set()
    for item in _list(document.get("configs"), "configs"):
        config = _object(item, "a config")
        definition, value = config.get("definition"), config.get("value")
        if isinstance(definition, dict) and definition.get("type") == "PASSWORD":
            passwords.add(_text(definition.get("name"), "name"))
        if value is None:
            continue
        value_document = _object(value, "value")
        key = _text(value_document.get("name"), "name")
        for message in _list(value_document.get("errors") or [], "errors"):
            faults[ConfigFault(key, _text(message, "an error"))] = None
    count = document.get("error_count")
    if not isinstance(count, int) or isinstance(count, bool):
        raise UnreadableAnswer("error_count is no number")
    if count and not faults:
        raise UnreadableAnswer("it counts errors and names none")
    return Validation(tuple(faults), frozenset(passwords))


def read_offsets(body: Any) -> tuple[Offset, ...]:
    """The offsets of a connector (KIP-875)."""
    items = _list(_object(body, "the answer").get("offsets"), "offsets")
    documents = [_object(item, "an offset") for item in items]
    return tuple(Offset(item.get("partition"), item.get("offset")) for item in documents)


def read_plugins(body: Any) -> tuple[Plugin, ...]:
    """The plugins of a worker (KIP-769)."""
    document = []
    for item in _list(body, "the listing"):
        plugin = _object(item, "a plugin")
        version = plugin.get("version")
        document.append(
            Plugin(
                _text(plugin.get("class"), "class"),
                _text(plugin.get("type"), "type"),
                "" if version is None else _text(version, "version"),
            )
        )
    return tuple(document)


# Kafka 3.7.1, and what vendors make of it: 7.7.1-ccs, 3.7.1.redhat-00003, 2.8.1-ivy.
_VERSION = re.compile(r"(\d{1,4})\.(\d{1,4})(.*)", re.ASCII | re.DOTALL)


def parse_release(version: str) -> tuple[int, int] | None:
    """The version of Kafka that a worker's version means, None if it says none."""
    match = _VERSION.match(version)
    if match is None:
        return None
    major, minor = int(match[1]), int(match[2])
    if "-ccs" in match[3] or "-ce" in match[3]:
        # Confluent Platform 5.0 to 5.5 is Kafka 2.0 to 2.5, 6.x is 2.6 to 2.8, 7.x is 3.x, 8.x 4.x
        # (docs.confluent.io, "Supported Versions and Interoperability").
        if major == 6:
            return 2, 6 + minor
        return major - (3 if major <= 5 else 4), minor
    return major, minor


def _object(value: Any, subject: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise UnreadableAnswer(f"{subject} is not a JSON object")
    return value


def _list(value: Any, subject: str) -> list[Any]:
    if not isinstance(value, list):
        raise UnreadableAnswer(f"{subject} is not a JSON array")
    return value


def _text(value: Any, subject: str) -> str:
    if not isinstance(value, str):
        raise UnreadableAnswer(f"{subject} is not text")
    if len(value) > MAX_TEXT:
        raise UnreadableAnswer(f"{subject} has more than {MAX_TEXT:,} characters")
    return value
