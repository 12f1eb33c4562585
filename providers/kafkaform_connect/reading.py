"""Reads connectors: the listing of all, and those that it lacks one by one.

A listing with details leaves out connectors that no worker has started yet (their status is not
found), so it proves no absence. Only a worker that is asked for a connector by name does.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from msgspec import Struct

from kafkaform.core.clock import Clock
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Failed,
    Fault,
    FaultClass,
    Hidden,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.secret import Secret, mask_secrets
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.http.exchange import Call, HttpAnswer

from . import rest
from .connector import (
    CLASS,
    KIND,
    NAME,
    PAUSED,
    RUNNING,
    STARTING,
    STOPPED,
    identity_key,
    make_attributes,
)
from .definitions import is_secret, make_listing, name_source
from .rest import (
    Connector,
    Definition,
    RequestFailed,
    UnreadableAnswer,
    WorkersClient,
    read_connector,
    read_connectors,
    read_definition,
    read_names,
)

FAILED = "FAILED"
MAX_REASON = 300
"""Characters of a reason."""
_CAUSE = re.compile(r"^Caused by: (.+)$", re.MULTILINE)
_TRACE_LOGIN = re.compile(r"(://)[^/\s:@]*:[^/\s@]+@")
_PARAMETER = re.compile(
    r"\b(\w*(?:password|pwd|secret|token)\w*)\s*[=:]\s*[^\s,;&)]+", re.IGNORECASE
)


def list_failures(connector: Connector) -> Iterator[str]:
    """One sentence for each part that has failed."""
    status = connector.status
    if status is not None and status.state == FAILED:
        yield f"the connector failed on worker {status.worker}: {shorten_trace(status.trace)}"
    for task in connector.tasks:
        if task.state == FAILED:
            yield f"task {task.id} failed on worker {task.worker}: {shorten_trace(task.trace)}"


def find_failed(connector: Connector) -> tuple[str, ...]:
    """What has failed: `connector`, `tasks`."""
    failed: list[str] = []
    if connector.status is not None and connector.status.state == FAILED:
        failed.append("connector")
    if any(task.state == FAILED for task in connector.tasks):
        failed.append("tasks")
    return tuple(failed)


def shorten_trace(trace: str) -> str:
    """The first line of a stack trace and its last cause, without secrets."""
    # Traces repeat addresses with logins, and parameters of drivers, which no config declares as
    # secret.
    masked = mask_secrets(trace)
    first = masked.strip().partition("\n")[0].strip()
    causes = _CAUSE.findall(masked)
    text = f"{first}; caused by {causes[-1].strip()}" if causes else first
    text = _PARAMETER.sub(r"\1=(secret)", _TRACE_LOGIN.sub(r"\1(secret)@", text))
    text = " ".join(text.split()) or "it does not say why"
    return text if len(text) <= MAX_REASON else text[: MAX_REASON - 1] + "…"


def describe_progress(connector: Connector) -> str:
    """How far the startup of a connector is."""
    status, tasks = connector.status, connector.tasks
    if status is None or status.state != "RUNNING":
        return "no worker runs it yet"
    running = sum(task.state == "RUNNING" for task in tasks)
    return f"{running} of {len(tasks)} tasks run" if tasks else "it has no tasks yet"


_PLUGIN = re.compile(r"(?:key|value|header)\.converter|(?:transforms|predicates)\.[^.]+\.type")
"""Configs that name a further plugin, whose own configs have the config's name as a prefix."""
_STATES = {"PAUSED": PAUSED, "STOPPED": STOPPED}
_LOGIN = re.compile(r"://[^/\s:@?#]*:([^/\s@?#]+)@")
FAILURE = "failed"
"""The value of `failures` for a part that has failed."""


def list_plugins(config: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Each plugin that a connector uses, with the prefix of its configs."""
    if CLASS in config:
        yield config[CLASS], ""
    for key, value in config.items():
        if _PLUGIN.fullmatch(key) and value:
            yield value, f"{key.removesuffix('.type')}."


def find_passwords(
    config: Mapping[str, str], definitions: Mapping[str, Definition]
) -> frozenset[str]:
    """The configs that the plugins of a connector declare as PASSWORD."""
    return frozenset(
        prefix + key
        for class_, prefix in list_plugins(config)
        if class_ in definitions
        for key in definitions[class_].passwords
    )


def find_secrets(
    config: Mapping[str, str], definitions: Mapping[str, Definition]
) -> dict[str, str]:
    """The configs of a connector that are secrets. From now on they are masked in all output."""
    passwords = find_passwords(config, definitions)
    secrets = {key: value for key, value in config.items() if is_secret(key, value, passwords)}
    for value in secrets.values():
        for text in (value, *_LOGIN.findall(value)):
            Secret(text)
    return secrets


def observe(instance: str, connector: Connector, definitions: Mapping[str, Definition]) -> Observed:
    """The reading of a connector. definitions: those of its plugins, as far as they are known."""
    secrets = find_secrets(connector.config, definitions)
    config = {
        key: value
        for key, value in connector.config.items()
        if key not in secrets and key not in (CLASS, NAME)
    }
    class_ = connector.config.get(CLASS, "")
    own = definitions.get(class_)
    known = {k: v for k, v in own.defaults.items() if k not in own.passwords} if own else {}
    defaults = {key: known[key] for key in config if key in known}
    failed = FrozenMap(dict.fromkeys(find_failed(connector), FAILURE))
    state = compute_state(connector)
    attributes = make_attributes(connector.name, class_, config, secrets, state)
    starts = state == STARTING
    return Observed(
        Identity(instance, KIND, connector.name),
        attributes.with_items({"failures": failed}),
        moving=FrozenMap(state=RUNNING) if starts else None,
        ticket=make_ticket(connector.name) if starts else None,
        fallbacks=FrozenMap({f"config.{key}": value for key, value in known.items()}),
        details=_make_details(connector, attributes, failed, starts=starts),
        foreign=frozenset(
            [
                # What a worker, or a service around it, filled in is not somebody's decision.
                *(("config", k) for k, v in defaults.items() if attributes["config"][k] == v),
                *(("failures", component) for component in failed),
            ]
        ),
    )


def _make_details(
    connector: Connector, attributes: FrozenMap, failed: FrozenMap, *, starts: bool
) -> FrozenMap:
    reasons = tuple(list_failures(connector))
    return FrozenMap(
        secret_keys=attributes["secret_keys"],
        failures=failed,
        # A connector with such a name can be listed, and not be asked for.
        internal=not _can_be_named(connector.name),
        **({"reasons": reasons} if reasons else EMPTY),
        **({"progress": describe_progress(connector)} if starts else EMPTY),
    )


def _can_be_named(name: str) -> bool:
    try:
        return bool(identity_key(name))
    except ValueError:
        return False


def compute_state(connector: Connector) -> str:
    """running, paused, stopped, or starting.

    A failed connector does not say whether it is meant to run, so it counts as running. One that no
    worker has taken yet is starting, and so is one of which not every task runs.
    """
    status = connector.status
    if status is None:
        return STARTING
    if status.state in _STATES:
        return _STATES[status.state]
    if status.state == "FAILED":
        return RUNNING
    settled = {"RUNNING", "FAILED"}
    runs = status.state == "RUNNING" and all(task.state in settled for task in connector.tasks)
    return RUNNING if runs else STARTING


def make_ticket(name: str) -> str:
    """The name of the startup of this connector."""
    return f"startup:{name}"


def read_ticket(ticket: str) -> str:
    """The connector that a ticket is about."""
    return ticket.partition(":")[2]


def is_stopped(connector: Connector) -> bool:
    """True if a connector is stopped and none of its tasks is left."""
    status = connector.status
    return status is not None and status.state == "STOPPED" and not connector.tasks


LISTING_SECONDS = 2.0
"""For how long a listing answers data sources."""
STOP_SECONDS = 60.0
"""For how long a stop is waited for. Workers give each task 5 s to end
(`task.shutdown.graceful.timeout.ms`), and rebalance before and after it."""
PATIENCE = 15.0
"""Seconds for which a read by name waits for the end of a rebalance."""

T = TypeVar("T")
_NOTHING = Definition(frozenset(), frozenset(), {})


class Definitions:
    """What the plugins of the workers say about their configs, each asked for once."""

    def __init__(self) -> None:
        self._known: dict[str, Definition] = {}

    def fetch(
        self, client: WorkersClient, connectors: Iterable[Connector]
    ) -> Mapping[str, Definition]:
        """The definitions of all plugins that these connectors use. Raises RequestFailed."""
        return self.fetch_of(
            client, {c for connector in connectors for c, _ in list_plugins(connector.config)}
        )

    def fetch_of(self, client: WorkersClient, classes: Collection[str]) -> Mapping[str, Definition]:
        """The definitions of these plugins, among others. Raises RequestFailed."""
        calls = {
            class_: rest.get_definition(class_) for class_ in sorted(classes - self._known.keys())
        }
        answers = client.ask_all(list(calls.values()))
        for (class_, call), answer in zip(calls.items(), answers, strict=True):
            self._known[class_] = _parse_definition(answer, call)
        return self._known


def _parse_definition(answer: HttpAnswer | Fault, call: Call) -> Definition:
    # 404: the plugin is not installed any more, or the workers are older than 3.2 (KIP-769). Some
    # plugins cannot be asked at all (400, 500). Names alone decide about secrets then.
    if isinstance(answer, HttpAnswer) and answer.status in (400, 404, 405, 500):
        return _NOTHING
    return parse(call, read_definition, rest.get_body(answer, call))


def parse(call: Call, read: Callable[[Any], T], body: Any) -> T:
    """What a reader of `answers` makes of an answer. Raises RequestFailed."""
    try:
        return read(body)
    except UnreadableAnswer as error:
        raise RequestFailed(rest.make_bad_answer(call, str(error))) from None


def list_connectors(client: WorkersClient) -> dict[str, Connector]:
    """Every connector that some worker has started, with its details. Raises RequestFailed."""
    call = rest.CONNECTORS
    (answer,) = client.ask_all([call])
    return {
        connector.name: connector
        for connector in parse(call, read_connectors, rest.get_body(answer, call))
    }


def _list_names(client: WorkersClient) -> tuple[str, ...]:
    """The names of all connectors. Raises RequestFailed."""
    call = rest.NAMES
    (answer,) = client.ask_all([call])
    return parse(call, read_names, rest.get_body(answer, call))


def ask_by_name(
    client: WorkersClient, names: Sequence[str]
) -> Iterator[tuple[str, Connector | Fault | None]]:
    """Each connector by its name: what it is, why that is not known, or None if a worker says that
    there is none."""
    calls = [call for name in names for call in (rest.get_connector(name), rest.get_status(name))]
    answers = client.ask_all(calls) if calls else []
    for index, name in enumerate(names):
        yield name, _judge_answers(name, *answers[2 * index : 2 * index + 2])


def _judge_answers(
    name: str, info: HttpAnswer | Fault, status: HttpAnswer | Fault
) -> Connector | Fault | None:
    call = rest.get_connector(name)
    if rest.proves_absence(info, name):
        return None
    try:
        body = rest.get_body(info, call)
        # No worker has written a status yet, which says nothing about the connector.
        unknown = isinstance(status, HttpAnswer) and status.status == 404
        status_body = None if unknown else rest.get_body(status, rest.get_status(name))
        return parse(call, lambda info: read_connector(info, status_body, name), body)
    except RequestFailed as failure:
        return failure.fault


class DetailedConnector(Struct, frozen=True):
    """A connector as people look at it."""

    connector: Connector
    """With its tasks, and with its secrets."""
    observed: Observed
    """Without its secrets, which are masked in all output from now on."""


class ConnectorReader:
    """Reads connectors through one session."""

    def __init__(self, instance: str, clock: Clock) -> None:
        self._instance = instance
        self._clock = clock
        self._definitions = Definitions()
        self._listing: Mapping[str, Connector] = {}
        self._listed_until = 0.0

    def sweep(self, client: WorkersClient, depth: Depth) -> Sweep:
        """All connectors in full."""
        try:
            connectors = self._list_all(client)
            definitions = self._definitions.fetch(client, connectors.values())
        except RequestFailed as failure:
            return Sweep(KIND, depth, (), Coverage(CoverageKind.FAILED, failure.fault))
        items = tuple(
            observe(self._instance, connectors[name], definitions) for name in sorted(connectors)
        )
        # Some services leave out what the user must not see, without a word.
        coverage = Coverage(CoverageKind.VISIBLE_ONLY)
        return Sweep(KIND, depth, items, coverage, whole=True)

    def sweep_definition(self, client: WorkersClient, class_: str, depth: Depth) -> Sweep:
        """What a plugin declares, as a listing for the rules."""
        try:
            definition = self._definitions.fetch_of(client, {class_})[class_]
        except RequestFailed as failure:
            return make_listing(self._instance, class_, depth, failure.fault)
        return make_listing(self._instance, class_, depth, definition)

    def sweep_source(self, client: WorkersClient, name: str, depth: Depth) -> Sweep:
        """The connector whose offsets another one gets, see `name_source`."""
        identity = Identity(self._instance, KIND, name)
        reading, kind = self.read(client, [identity])[identity], name_source(name)
        if isinstance(reading, Failed):
            return Sweep(kind, depth, (), Coverage(CoverageKind.FAILED, reading.fault))
        items = (reading,) if isinstance(reading, Observed) else ()
        hidden = isinstance(reading, Hidden)
        coverage = CoverageKind.VISIBLE_ONLY if hidden else CoverageKind.COMPLETE
        return Sweep(kind, depth, items, Coverage(coverage))

    def read(self, client: WorkersClient, ids: Sequence[Identity]) -> Mapping[Identity, Reading]:
        """Each connector. Absent only if a worker that was asked for it by name knows none."""
        names = [identity.key for identity in ids]
        answers: dict[str, Connector | Fault | None] = {}
        try:
            answers.update(self.read_plain(client, names))
        except RequestFailed as failure:
            if failure.fault.kind is not FaultClass.PERMISSION:
                return {identity: Failed(identity, failure.fault) for identity in ids}
        answers.update(self.ask_patiently(client, [n for n in names if n not in answers]))
        connectors = [
            connector for connector in answers.values() if isinstance(connector, Connector)
        ]
        try:
            definitions = self._definitions.fetch(client, connectors)
        except RequestFailed as failure:
            # Without its definition, nobody knows which of its configs are secrets.
            answers.update({connector.name: failure.fault for connector in connectors})
            definitions = {}
        return {
            identity: self._make_reading(identity, answers[identity.key], definitions)
            for identity in ids
        }

    def read_for_data(self, client: WorkersClient, identity: Identity) -> Reading:
        """A connector for a data source. Those that are asked for in quick succession share a
        listing, so that 200 of them need one request and not 200 listings of 200 connectors."""
        try:
            if self._clock.monotonic() >= self._listed_until:
                self._listing = list_connectors(client)
                self._listed_until = self._clock.monotonic() + LISTING_SECONDS
            connector = self._listing.get(identity.key)
            if connector is not None:
                definitions = self._definitions.fetch(client, [connector])
                return observe(self._instance, connector, definitions)
        except RequestFailed:
            pass  # the read by name says why
        return self.read(client, [identity])[identity]

    def forget_listing(self) -> None:
        """Have the next data source list the connectors again, because something was sent."""
        self._listed_until = 0.0

    def read_plain(self, client: WorkersClient, names: Sequence[str]) -> dict[str, Connector]:
        """Connectors as they are, with their secrets, if some worker has started them. Raises
        RequestFailed."""
        connectors = list_connectors(client)
        return {name: connectors[name] for name in names if name in connectors}

    def read_details(
        self, client: WorkersClient, names: Sequence[str] | None
    ) -> dict[str, DetailedConnector | Fault | None]:
        """Connectors with their tasks, None for one that does not exist. names: None for all.
        Raises RequestFailed."""
        answers: dict[str, Connector | Fault | None] = {}
        if names is None:
            answers.update(self._list_all(client))
        else:
            answers.update(self.read_plain(client, names))
            answers.update(self.ask_patiently(client, [n for n in names if n not in answers]))
        connectors = [item for item in answers.values() if isinstance(item, Connector)]
        definitions = self._definitions.fetch(client, connectors)
        return {
            name: DetailedConnector(item, observe(self._instance, item, definitions))
            if isinstance(item, Connector)
            else item
            for name, item in answers.items()
        }

    def ask_patiently(
        self, client: WorkersClient, names: Sequence[str]
    ) -> dict[str, Connector | Fault | None]:
        """Each connector by its name, see `ask_by_name`. A worker that expects a rebalance answers
        about none, and every new connector and every new list of tasks makes it expect one
        (DistributedHerder.checkRebalanceNeeded). It is asked again until that has ended."""
        deadline = self._clock.monotonic() + PATIENCE
        answers = dict(ask_by_name(client, names))
        while self._clock.monotonic() < deadline:
            late = [name for name, answer in answers.items() if _is_busy(answer)]
            if not late:
                break
            self._clock.sleep(rest.RETRY_SECONDS)
            answers.update(ask_by_name(client, late))
        return answers

    def await_stopped(
        self, client: WorkersClient, names: Sequence[str]
    ) -> dict[str, Connector | Fault | None]:
        """Each connector by its name, once all of them are stopped or after a while. A worker says
        that one is stopped and lists no tasks of it once these have written their offsets."""
        deadline = self._clock.monotonic() + STOP_SECONDS
        answers = self.ask_patiently(client, names)
        while self._clock.monotonic() < deadline:
            late = [n for n, a in answers.items() if isinstance(a, Connector) and not is_stopped(a)]
            if not late:
                break
            self._clock.sleep(rest.RETRY_SECONDS / 2)
            answers.update(self.ask_patiently(client, late))
        return answers

    def _list_all(self, client: WorkersClient) -> dict[str, Connector]:
        """Every connector. Raises RequestFailed."""
        connectors = list_connectors(client)
        # One after the other: a second connection would have to prove itself first.
        lacking = [name for name in _list_names(client) if name not in connectors]
        for name, answer in self.ask_patiently(client, lacking).items():
            if isinstance(answer, Fault):
                raise RequestFailed(answer)
            if answer is not None:
                connectors[name] = answer
        return connectors

    def _make_reading(
        self,
        identity: Identity,
        answer: Connector | Fault | None,
        definitions: Mapping[str, Definition],
    ) -> Reading:
        if answer is None:
            return Absent(identity)
        if isinstance(answer, Connector):
            return observe(self._instance, answer, definitions)
        if answer.kind is FaultClass.PERMISSION:
            return Hidden(identity, name_right(identity.key))
        return Failed(identity, answer)


def _is_busy(answer: Connector | Fault | None) -> bool:
    return (
        isinstance(answer, Fault)
        and answer.kind is FaultClass.NOT_APPLIED
        and bool(answer.retry_after)
    )


def name_right(name: str) -> str:
    """The right that is missing if a connector is hidden."""
    return f"access to the connector {name}"
