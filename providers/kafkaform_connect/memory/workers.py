"""Simulated Connect workers: their REST API over a config topic that exists only in memory.

They answer as the workers of Kafka 4.3 do (or as older ones do that lack something), with one
difference: what a user may do can be limited, as an extension or a proxy in front of workers does.

The texts of errors are those of Kafka's ConfigDef and SinkConnectorConfig.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from msgspec import Struct

from kafkaform.core.clock import Clock
from kafkaform.provider.http.exchange import Call, HttpAnswer

from ..connector import CLASS, NAME
from ..definitions import list_aliases
from ..rest import parse_release

_INTEGER = re.compile(r"[+-]?\d+")


class Key(Struct, frozen=True):
    """The definition of one config."""

    name: str
    type: str = "STRING"
    default: str | None = None
    required: bool = False
    least: int | None = None
    """The smallest value of a number."""
    choices: tuple[str, ...] = ()


class SimulatedPlugin(Struct, frozen=True):
    """A connector's plugin."""

    class_: str
    type: str
    keys: tuple[Key, ...] = ()
    """Its own configs, beyond those of every connector."""
    version: str = "4.3.1"


COMMON = (
    Key(NAME, required=True),
    Key(CLASS, required=True),
    Key("tasks.max", "INT", "1", least=1),
    Key("key.converter", "CLASS"),
    Key("value.converter", "CLASS"),
    Key("header.converter", "CLASS"),
    Key("transforms", "LIST", ""),
    Key("predicates", "LIST", ""),
    Key("errors.retry.timeout", "LONG", "0"),
    Key("errors.tolerance", default="none", choices=("none", "all")),
)
"""Configs of every connector (ConnectorConfig), as far as the simulation has them."""
SINK = (Key("topics", "LIST", ""), Key("topics.regex", default=""))

FILE = "org.apache.kafka.connect.file"
PLUGINS = (
    SimulatedPlugin(
        f"{FILE}.FileStreamSourceConnector",
        "source",
        (Key("file"), Key("topic", required=True), Key("batch.size", "INT", "2000")),
    ),
    SimulatedPlugin(f"{FILE}.FileStreamSinkConnector", "sink", (Key("file"),)),
)
"""The connectors of Kafka's `connect-file`."""

GUARDED = SimulatedPlugin(
    "kafkaform.simulated.GuardedSinkConnector",
    "sink",
    (Key("pin", "PASSWORD"), Key("host", default="localhost")),
)
"""Has a secret whose name does not say so."""


def find_plugin(name: str, plugins: tuple[SimulatedPlugin, ...]) -> SimulatedPlugin | None:
    """The plugin that workers find by this name."""
    return next((plugin for plugin in plugins if name in list_aliases(plugin.class_)), None)


def list_keys(plugin: SimulatedPlugin) -> tuple[Key, ...]:
    """All configs that a plugin knows; its own come first."""
    return (*plugin.keys, *COMMON, *(SINK if plugin.type == "sink" else ()))


def find_errors(plugin: SimulatedPlugin, config: Mapping[str, str]) -> dict[str, list[str]]:
    """Config -> what is wrong with it."""
    errors: dict[str, list[str]] = {}
    for key in list_keys(plugin):
        for message in _check_value(key, config.get(key.name)):
            errors.setdefault(key.name, []).append(message)
    if plugin.type == "sink":
        for message in _check_topics(config):
            for name in ("topics", "topics.regex"):
                errors.setdefault(name, []).append(message)
    return errors


def _check_value(key: Key, value: str | None) -> Iterator[str]:
    if value is None:
        if key.required:
            yield (f'Missing required configuration "{key.name}" which has no default value.')
        return
    check = _CHECKS.get(key.type)
    if check is not None:
        yield from check(key, value)
    if key.choices and value not in key.choices:
        allowed = ", ".join(key.choices)
        yield (
            f"Invalid value {value} for configuration {key.name}: String must be one of "
            f"(case insensitive): {allowed.upper()}"
        )


def _check_number(key: Key, value: str) -> Iterator[str]:
    if not _INTEGER.fullmatch(value.strip()):
        yield (
            f"Invalid value {value} for configuration {key.name}: Not a number of type {key.type}"
        )
    elif key.least is not None and int(value) < key.least:
        yield (
            f"Invalid value {value} for configuration {key.name}: Value must be at least "
            f"{key.least}"
        )


_CHECKS: Mapping[str, Callable[[Key, str], Iterator[str]]] = {
    "INT": _check_number,
    "LONG": _check_number,
}


def _check_topics(config: Mapping[str, str]) -> Iterator[str]:
    topics, regex = bool(config.get("topics", "").strip()), bool(config.get("topics.regex"))
    if topics and regex:
        yield ("topics and topics.regex are mutually exclusive options, but both are set.")
    elif not topics and not regex:
        yield "Must configure one of topics or topics.regex"


WORKER = "connect-1:8083"
NEWEST = "4.3.1"


class SimulatedConnector(Struct):
    """A connector that somebody has created."""

    config: dict[str, str]
    state: str
    """RUNNING, PAUSED or STOPPED: what it is meant to be."""
    since: float
    """When its last start was asked for, in seconds of the clock's monotonic time."""
    trace: str = ""
    """The stack trace of what fails at its next start; empty if nothing does."""
    connector: bool = False
    """The connector itself fails, and not its tasks."""
    reported: bool = False
    """A worker has started it at least once."""


class HttpRefusal(Exception):
    """An answer that is an error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.answer = HttpAnswer(status, {"error_code": status, "message": message})


class SimulatedWorkers:
    """The workers of one Connect cluster. `handle` is their REST API."""

    def __init__(
        self,
        clock: Clock,
        cluster_id: str = "simulated-kafka",
        group_id: str = "connect-cluster",
        version: str = NEWEST,
        plugins: tuple[SimulatedPlugin, ...] = PLUGINS,
    ) -> None:
        """plugins: none for workers that have every plugin that they are asked for."""
        self.clock = clock
        self.cluster_id = cluster_id
        self.group_id = group_id
        self.version = version
        self.plugins = plugins
        self.connectors: dict[str, SimulatedConnector] = {}
        self.offsets: dict[str, list[dict[str, Any]]] = {}
        """Connector -> its offsets, as the REST API shows them. They outlive it."""
        self.startup_seconds = 0.0
        """How long a connector takes until it runs."""
        self.rebalances = 0
        """So many further requests are refused because of a rebalance."""
        self.allowed: Callable[[str, str], bool] = lambda user, connector: user != "nobody"
        """User, name of a connector (empty for a listing) -> may see and change it."""

    def handle(self, call: Call, user: str = "") -> HttpAnswer:
        """The answer to a call."""
        path, _, query = call.target.partition("?")
        segments = [unquote(segment) for segment in path.split("/") if segment]
        try:
            return self._route(call, segments, query, user)
        except HttpRefusal as refusal:
            return refusal.answer

    def _route(self, call: Call, segments: list[str], query: str, user: str) -> HttpAnswer:
        if not segments:
            body = {"version": self.version, "commit": "0", "kafka_cluster_id": self.cluster_id}
            return HttpAnswer(200, body)
        name = segments[1] if len(segments) > 1 else ""
        shape = "/".join("*" if index == 1 else segment for index, segment in enumerate(segments))
        handlers = {m: handler for m, pattern, handler in _ROUTES if pattern == shape}
        if not handlers:
            raise HttpRefusal(404, "HTTP 404 Not Found")
        if call.method not in handlers:
            raise HttpRefusal(405, "HTTP 405 Method Not Allowed")
        if segments[0] == "connectors" and not self.allowed(user, name):
            raise HttpRefusal(403, "the user may not do this")
        return handlers[call.method](self, name, call.body, query)

    # ── reading ─────────────────────────────────────────────────────────────────────────

    def list_connectors(self, _: str, __: Any, query: str) -> HttpAnswer:
        if "expand" not in query:
            return HttpAnswer(200, sorted(self.connectors))
        # One that no worker has started yet has no status, and is left out as if it were deleted.
        plugin = {
            name: {"info": self._describe(name), "status": self._compute_status(name)}
            for name in sorted(self.connectors)
            if self._has_status(name)
        }
        return HttpAnswer(200, plugin)

    def get_connector(self, name: str, _: Any, __: str) -> HttpAnswer:
        if self.rebalances > 0:
            self.rebalances -= 1
            raise HttpRefusal(500, "Request cannot be completed because a rebalance is expected")
        self._find(name)
        return HttpAnswer(200, self._describe(name))

    def get_status(self, name: str, _: Any, __: str) -> HttpAnswer:
        if name not in self.connectors or not self._has_status(name):
            raise HttpRefusal(404, f"No status found for connector {name}")
        return HttpAnswer(200, self._compute_status(name))

    def _describe(self, name: str) -> dict[str, Any]:
        connector = self.connectors[name]
        tasks = [{"connector": name, "task": t["id"]} for t in self._list_tasks(connector)]
        kind = self._get_plugin(connector.config[CLASS], connector.config).type
        return {"name": name, "config": dict(connector.config), "tasks": tasks, "type": kind}

    def _has_status(self, name: str) -> bool:
        connector = self.connectors[name]
        return connector.reported or self._has_started(connector)

    def _has_started(self, connector: SimulatedConnector) -> bool:
        return self.clock.monotonic() >= connector.since + self.startup_seconds

    def _compute_status(self, name: str) -> dict[str, Any]:
        connector = self.connectors[name]
        state = connector.state if self._has_started(connector) else "UNASSIGNED"
        connector.reported = connector.reported or self._has_started(connector)
        status: dict[str, Any] = {"state": state, "worker_id": WORKER}
        if connector.trace and connector.connector and state != "STOPPED":
            status |= {"state": "FAILED", "trace": connector.trace}
        return {"name": name, "connector": status, "tasks": self._list_tasks(connector)}

    def _list_tasks(self, connector: SimulatedConnector) -> list[dict[str, Any]]:
        if (
            connector.state == "STOPPED"
            or not self._has_started(connector)
            or (connector.trace and connector.connector)
        ):
            return []
        count = int(connector.config.get("tasks.max", "1"))
        tasks = [{"id": i, "state": connector.state, "worker_id": WORKER} for i in range(count)]
        return [
            {**t, "state": "FAILED", "trace": connector.trace} if connector.trace else t
            for t in tasks
        ]

    # ── changing ────────────────────────────────────────────────────────────────────────

    def create(self, _: str, body: Any, __: str) -> HttpAnswer:
        self._refuse_rebalance()
        if "initial_state" in body and self._is_before((3, 7)):
            raise HttpRefusal(500, 'Unrecognized field "initial_state"')
        name = body["name"].strip()
        config = {NAME: name, **body["config"]}
        self._refuse_invalid(config)
        if name in self.connectors:
            raise HttpRefusal(409, f"Connector {name} already exists")
        state = body.get("initial_state") or "RUNNING"
        moment = self.clock.monotonic()
        self.connectors[name] = SimulatedConnector(config, state, moment)
        return HttpAnswer(201, self._describe(name))

    def patch_config(self, name: str, body: Any, _: str) -> HttpAnswer:
        if self._is_before((3, 8)):
            raise HttpRefusal(405, "HTTP 405 Method Not Allowed")
        self._refuse_rebalance()
        merged = {**self._find(name).config, **body}
        return self._configure(name, {k: v for k, v in merged.items() if v is not None})

    def put_config(self, name: str, body: Any, _: str) -> HttpAnswer:
        self._refuse_rebalance()
        if name not in self.connectors:
            return self.create(name, {"name": name, "config": body}, "")
        return self._configure(name, {NAME: name, **body})

    def _configure(self, name: str, config: dict[str, str]) -> HttpAnswer:
        self._refuse_invalid(config)
        connector = self.connectors[name]
        connector.config = config
        connector.since = self.clock.monotonic()
        return HttpAnswer(200, self._describe(name))

    def pause(self, name: str, _: Any, __: str) -> HttpAnswer:
        return self._change_state(name, "PAUSED")

    def resume(self, name: str, _: Any, __: str) -> HttpAnswer:
        return self._change_state(name, "RUNNING")

    def stop(self, name: str, _: Any, __: str) -> HttpAnswer:
        if self._is_before((3, 5)):
            raise HttpRefusal(404, "HTTP 404 Not Found")
        return self._change_state(name, "STOPPED")

    def _change_state(self, name: str, state: str) -> HttpAnswer:
        connector = self._find(name)
        if connector.state != state:
            connector.state, connector.since = state, self.clock.monotonic()
        if state == "STOPPED":
            connector.trace = ""  # nothing of it is left that could have failed
        return HttpAnswer(204 if state == "STOPPED" else 202)

    def get_offsets(self, name: str, _: Any, __: str) -> HttpAnswer:
        if self._is_before((3, 5)):
            raise HttpRefusal(404, "HTTP 404 Not Found")
        self._find(name)
        return HttpAnswer(200, {"offsets": list(self.offsets.get(name, ()))})

    def reset_offsets(self, name: str, _: Any, __: str) -> HttpAnswer:
        self._refuse_moving(name)
        self.offsets.pop(name, None)
        return HttpAnswer(200, {"message": "The offsets have been reset successfully"})

    def patch_offsets(self, name: str, body: Any, _: str) -> HttpAnswer:
        self._refuse_moving(name)
        partitions = [item["partition"] for item in body["offsets"]]
        # A PATCH leaves partitions alone that it does not name, and removes those with null
        # (KIP-875).
        unnamed = [x for x in self.offsets.get(name, ()) if x["partition"] not in partitions]
        added = [item for item in body["offsets"] if item["offset"] is not None]
        self.offsets[name] = [*unnamed, *added]
        return HttpAnswer(200, {"message": "The offsets have been altered successfully"})

    def _refuse_moving(self, name: str) -> None:
        """Refuse to change the offsets of a connector that is not stopped."""
        if self._is_before((3, 6)):
            raise HttpRefusal(405, "HTTP 405 Method Not Allowed")
        self._refuse_rebalance()
        if self._find(name).state != "STOPPED":
            raise HttpRefusal(
                400,
                "Connectors must be in the STOPPED state before their offsets can be modified. "
                "This can be done for the specified connector by issuing a 'PUT' request to the "
                f"'/connectors/{name}/stop' endpoint",
            )

    def restart(self, name: str, _: Any, __: str) -> HttpAnswer:
        self._refuse_rebalance()
        connector = self._find(name)
        connector.trace, connector.since = "", self.clock.monotonic()
        return HttpAnswer(202, self._compute_status(name))

    def delete(self, name: str, _: Any, __: str) -> HttpAnswer:
        self._refuse_rebalance()
        self._find(name)
        del self.connectors[name]
        return HttpAnswer(204)

    def _find(self, name: str) -> SimulatedConnector:
        if name not in self.connectors:
            raise HttpRefusal(404, f"Connector {name} not found")
        return self.connectors[name]

    def _refuse_rebalance(self) -> None:
        if self.rebalances > 0:
            self.rebalances -= 1
            raise HttpRefusal(
                409,
                "Cannot complete request momentarily due to stale configuration (typically caused "
                "by a concurrent config change)",
            )

    def _refuse_invalid(self, config: Mapping[str, str]) -> None:
        errors = find_errors(self._get_plugin(config[CLASS], config), config)
        if errors:
            texts = [message for messages in errors.values() for message in messages]
            raise HttpRefusal(
                400,
                "Connector configuration is invalid and contains the following "
                f"{len(texts)} error(s):\n" + "\n".join(texts),
            )

    def _is_before(self, release: tuple[int, int]) -> bool:
        return (parse_release(self.version) or release) < release

    # ── plugins ─────────────────────────────────────────────────────────────────────────

    def list_plugins(self, _: str, __: Any, ___: str) -> HttpAnswer:
        plugin = [
            {"class": connector.class_, "type": connector.type, "version": connector.version}
            for connector in self.plugins
        ]
        return HttpAnswer(200, plugin)

    def get_definition(self, name: str, _: Any, __: str) -> HttpAnswer:
        plugin = find_plugin(name, self.plugins)
        if plugin is None:
            raise HttpRefusal(404, f"Unknown plugin {name}.")
        keys = {key.name: key for key in reversed(list_keys(plugin))}
        return HttpAnswer(200, [_describe_key(key) for key in keys.values()])

    def validate(self, name: str, body: Any, _: str) -> HttpAnswer:
        plugin = self._get_plugin(name, body)
        errors = find_errors(plugin, body)
        self._compare_group(plugin, body, errors)
        keys = {key.name: key for key in list_keys(plugin)}
        configs = [
            {
                "definition": _describe_key(keys[key]) if key in keys else None,
                "value": {"name": key, "value": None, "errors": errors.get(key, [])},
            }
            for key in {**keys, **errors}
        ]
        count = sum(map(len, errors.values()))
        return HttpAnswer(200, {"name": name, "error_count": count, "configs": configs})

    def _compare_group(
        self, plugin: SimulatedPlugin, config: Mapping[str, str], errors: dict[str, list[str]]
    ) -> None:
        if plugin.type != "sink":
            return
        key = "consumer.override.group.id"
        name = config.get(NAME, "")
        if config.get(key) == self.group_id:
            errors.setdefault(key, []).append(
                f"Consumer group {self.group_id} conflicts with Connect worker group "
                f"{self.group_id}"
            )
        elif key not in config and f"connect-{name}" == self.group_id:
            errors.setdefault(NAME, []).append(
                f"Consumer group for sink connector named {name} conflicts with Connect worker "
                f"group {self.group_id}"
            )

    def _get_plugin(self, name: str, config: Mapping[str, str]) -> SimulatedPlugin:
        plugin = find_plugin(name, self.plugins)
        if plugin is None and self.plugins:
            raise HttpRefusal(
                500,
                "Failed to find any class that implements Connector and which name matches "
                f"{name}, available connectors are: {', '.join(p.class_ for p in self.plugins)}",
            )
        is_sink = "topics" in config or "topics.regex" in config
        return plugin or SimulatedPlugin(name, "sink" if is_sink else "source")


def _describe_key(key: Key) -> dict[str, Any]:
    return {
        "name": key.name,
        "type": key.type,
        "required": key.required,
        "default_value": key.default,
    }


Handler = Callable[[SimulatedWorkers, str, Any, str], HttpAnswer]
_ROUTES: tuple[tuple[str, str, Handler], ...] = (
    ("GET", "connectors", SimulatedWorkers.list_connectors),
    ("POST", "connectors", SimulatedWorkers.create),
    ("GET", "connectors/*", SimulatedWorkers.get_connector),
    ("DELETE", "connectors/*", SimulatedWorkers.delete),
    ("GET", "connectors/*/status", SimulatedWorkers.get_status),
    ("PATCH", "connectors/*/config", SimulatedWorkers.patch_config),
    ("PUT", "connectors/*/config", SimulatedWorkers.put_config),
    ("PUT", "connectors/*/pause", SimulatedWorkers.pause),
    ("PUT", "connectors/*/resume", SimulatedWorkers.resume),
    ("PUT", "connectors/*/stop", SimulatedWorkers.stop),
    ("POST", "connectors/*/restart", SimulatedWorkers.restart),
    ("GET", "connectors/*/offsets", SimulatedWorkers.get_offsets),
    ("PATCH", "connectors/*/offsets", SimulatedWorkers.patch_offsets),
    ("DELETE", "connectors/*/offsets", SimulatedWorkers.reset_offsets),
    ("GET", "connector-plugins", SimulatedWorkers.list_plugins),
    ("GET", "connector-plugins/*/config", SimulatedWorkers.get_definition),
    ("PUT", "connector-plugins/*/config/validate", SimulatedWorkers.validate),
)
"""Method, path with the name as *, handler."""
