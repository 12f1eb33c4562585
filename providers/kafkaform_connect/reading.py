"""Reads connectors: the listing of all, and those that it lacks one by one.

A listing with details leaves out connectors that no worker has started yet (their status is not
found), so it proves no absence. Only a worker that is asked for a connector by name does.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

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
    Reading,
    Sweep,
)
from kafkaform.provider.http.exchange import Call, HttpAnswer

from . import rest
from .connector import KIND
from .definitions import make_listing
from .observation import list_plugins, observe
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


class ConnectorReader:
    """Reads connectors through one session."""

    def __init__(self, instance: str, clock: Clock) -> None:
        self._instance = instance
        self._clock = clock
        self._definitions = Definitions()

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

    def read_plain(self, client: WorkersClient, names: Sequence[str]) -> dict[str, Connector]:
        """Connectors as they are, with their secrets, if some worker has started them. Raises
        RequestFailed."""
        connectors = list_connectors(client)
        return {name: connectors[name] for name in names if name in connectors}

    def fetch_definitions(
        self, client: WorkersClient, connectors: Iterable[Connector]
    ) -> Mapping[str, Definition]:
        """What the plugins of these connectors say. Raises RequestFailed."""
        return self._definitions.fetch(client, connectors)

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
