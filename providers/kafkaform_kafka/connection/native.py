"""The native client (librdkafka): the only place that imports confluent-kafka.

It connects first because it names the cause of a refused login or a TLS fault, and it answers
questions that must be spread over partition leaders and group coordinators.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Set
from concurrent.futures import Future
from typing import Any, TypeVar

from confluent_kafka import ConsumerGroupState, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # stub
    AdminClient,
    OffsetSpec,
)
from msgspec import Struct, field

from .clients import (
    NATIVE_LOGGER,
    PATIENCE,
    connect_error,
    make_settings_error,
    native_config,
    ssl_context,
)
from .cluster_proof import Proof
from .listener import Listener, look_at
from .settings import KafkaSettings
from .tokens import TokenSource

T = TypeVar("T")
NATIVE = "one of bootstrap_servers"
"""Where an answer comes from: this client does not say."""

SETTLED = 2.0
"""Seconds after which brokers that all refused the connection are taken at their word."""

_FIGURES = 5.0
"""Seconds for a question whose answer only illustrates a plan: what a broker that died would tell
is waited for in vain."""

_CONTROLLER = 2.0
"""Seconds for what the controller answers at once, if it lives."""

_TIME_TO_LOOK = 5.0
"""Seconds after which nobody wants to wait for a closer look as well."""

_FINAL = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL})
_VAGUE = frozenset({KafkaError._ALL_BROKERS_DOWN})
_WITH_MEMBERS = {
    ConsumerGroupState.STABLE,
    ConsumerGroupState.PREPARING_REBALANCING,
    ConsumerGroupState.COMPLETING_REBALANCING,
}


class Causes(Struct):
    """What the client reported while it tried to connect, oldest first."""

    errors: deque[KafkaError] = field(default_factory=lambda: deque(maxlen=50))

    def report(self, error: KafkaError) -> None:
        """librdkafka's error callback."""
        self.errors.append(error)

    def is_hopeless(self, waited: float) -> bool:
        """True if waiting on will not help: a refused login is not tried again, because
        repeated ones can lock an account."""
        codes = {error.code() for error in self.errors}
        if codes & _FINAL or waited > PATIENCE:
            return True
        return waited > SETTLED and bool(codes & _VAGUE)

    def has_unknown_names(self) -> bool:
        """True if the names of the brokers are unknown: asking again takes long."""
        return any(error.code() == KafkaError._RESOLVE for error in self.errors)

    def find_first(self) -> tuple[str, str] | None:
        """Name and text of the first error that says something; a final one wins."""
        telling = [error for error in self.errors if error.code() not in _VAGUE]
        chosen = [error for error in telling if error.code() in _FINAL] or telling
        return (chosen[0].name(), chosen[0].str()) if chosen else None


class Spans(Struct, frozen=True):
    """The offsets of one topic, partition by partition."""

    counts: tuple[int, ...]
    """Between its first and its last record."""
    olds: tuple[int, ...]
    """Of these, how many are older than the time that was asked about."""

    @property
    def partitions(self) -> int:
        return len(self.counts)

    @property
    def all(self) -> int:
        return sum(self.counts)

    @property
    def old(self) -> int:
        return sum(self.olds)

    def share(self, number: int) -> float:
        """The old part of a partition's offsets, from 0 to 1."""
        return self.olds[number] / self.counts[number] if self.counts[number] else 0.0


def _count_old(start: int, end: int, first: int | None) -> int:
    """Offsets before the first record that is not older; -1 says that all are older."""
    if first is None:
        return 0
    return end - start if first < 0 else max(0, first - start)


class Native:
    """A connected native client. It opens connections on its own and does not say when, so an
    answer counts only if the cluster of the session answers before and after."""

    def __init__(self, client: AdminClient, timeout: float, proof: Proof) -> None:
        self._client = client
        self._timeout = timeout
        self.proof = proof

    def read_offset_spans(self, topics: Mapping[str, int]) -> Mapping[str, int]:
        """Topic -> offsets between its first and its last record, over all partitions. topics:
        name -> number of partitions. A topic with a partition that does not answer is left out.
        Raises OtherSystem."""
        return self._ask_proven(lambda: self._read_offset_spans(topics)) or {}

    def read_old_spans(
        self, counts: Mapping[str, int], cuts: Mapping[str, int | None]
    ) -> Mapping[str, Spans]:
        """Topic -> how many of its offsets are older than a time. counts: topic -> number of
        partitions; cuts: topic -> milliseconds since the epoch, None for no time. A topic with a
        partition that does not answer is left out. Raises OtherSystem."""
        return self._ask_proven(lambda: self._read_old_spans(counts, cuts)) or {}

    def list_live_groups(
        self, topics: Set[str], limit: int
    ) -> Mapping[str, tuple[str, ...]] | None:
        """Topic -> groups with a member that reads it now. None if the groups cannot be listed,
        or are more than `limit`. Raises OtherSystem."""
        return self._ask_proven(lambda: self._list_live_groups(topics, limit))

    def _ask_proven(self, ask: Callable[[], T]) -> T | None:
        """The answer, None if it is not known whose it is."""
        if not self._is_there():
            return None
        answer = ask()
        return answer if self._is_there() else None

    def _is_there(self) -> bool:
        """Whether the session's cluster answers now. Raises OtherSystem if another one does."""
        patience = min(self._timeout, PATIENCE)
        found = _await_future(_ask_cluster(self._client), patience)
        if found is None or found.cluster_id is None:
            return False
        self.proof.hear(NATIVE, found.cluster_id)
        self.proof.refuse()
        return True

    def _read_offset_spans(self, topics: Mapping[str, int]) -> Mapping[str, int]:
        places = [TopicPartition(name, n) for name, count in topics.items() for n in range(count)]
        specs = (OffsetSpec.latest(), OffsetSpec.earliest())  # type: ignore[no-untyped-call]  # stub
        asked = [self._ask_offsets(places, spec) for spec in specs]
        ends, starts = (self._await_offsets(answers) for answers in asked)
        spans: dict[str, int] = defaultdict(int)
        unknown = set()
        for place in places:
            key = (place.topic, place.partition)
            if key in ends and key in starts:
                spans[place.topic] += ends[key] - starts[key]
            else:
                unknown.add(place.topic)
        return {name: span for name, span in spans.items() if name not in unknown}

    def _read_old_spans(
        self, counts: Mapping[str, int], cuts: Mapping[str, int | None]
    ) -> Mapping[str, Spans]:
        places = [TopicPartition(name, n) for name, count in counts.items() for n in range(count)]
        specs = (OffsetSpec.latest(), OffsetSpec.earliest())  # type: ignore[no-untyped-call]  # stub
        asked = [self._ask_offsets(places, spec) for spec in specs]
        dated: dict[TopicPartition, Future[Any]] = {}
        for name, cut in cuts.items():
            if cut is not None:
                mine = [place for place in places if place.topic == name]
                dated |= self._ask_offsets(mine, OffsetSpec.for_timestamp(cut))
        ends, starts, firsts = map(self._await_offsets, (*asked, dated))
        found = {}
        for name, count in counts.items():
            keys = [(name, number) for number in range(count)]
            wanted = (ends, starts) if cuts[name] is None else (ends, starts, firsts)
            if all(key in answers for key in keys for answers in wanted):
                found[name] = Spans(
                    tuple(ends[key] - starts[key] for key in keys),
                    tuple(_count_old(starts[key], ends[key], firsts.get(key)) for key in keys),
                )
        return found

    def _list_live_groups(
        self, topics: Set[str], limit: int
    ) -> Mapping[str, tuple[str, ...]] | None:
        listing = _await_future(
            self._client.list_consumer_groups(states=_WITH_MEMBERS, request_timeout=self._timeout),
            self._timeout,
        )
        if listing is None or listing.errors or len(listing.valid) > limit:
            return None
        names = [group.group_id for group in listing.valid]
        if not names:
            return {}
        readers: dict[str, set[str]] = defaultdict(set)
        described = self._client.describe_consumer_groups(names, request_timeout=self._timeout)
        for name, future in described.items():
            for topic in _read_topics(_await_future(future, self._timeout)) & topics:
                readers[topic].add(name)
        return {topic: tuple(sorted(groups)) for topic, groups in readers.items()}

    def _ask_offsets(
        self, places: Iterable[TopicPartition], spec: OffsetSpec
    ) -> Mapping[TopicPartition, Future[Any]]:
        asked = dict.fromkeys(places, spec)
        return self._client.list_offsets(asked, request_timeout=self._timeout)

    def _await_offsets(
        self, asked: Mapping[TopicPartition, Future[Any]]
    ) -> Mapping[tuple[str, int], int]:
        deadline = time.monotonic() + self._timeout
        answers = {
            place: _await_future(future, max(0.0, deadline - time.monotonic()))
            for place, future in asked.items()
        }
        return {
            (place.topic, place.partition): answer.offset
            for place, answer in answers.items()
            if answer is not None
        }


def open_native(settings: KafkaSettings, tokens: TokenSource | None = None) -> Native:
    """A connected client. tokens: what it logs in with, if that is a token. Raises ConnectError
    within 10 seconds, ConfigurationError."""
    causes = Causes()
    config = {**native_config(settings), "error_cb": causes.report, **oauth_config(tokens)}
    try:
        client = AdminClient(config, logger=logging.getLogger(NATIVE_LOGGER))
    except (KafkaException, ValueError, TypeError) as error:
        raise make_settings_error(settings, _describe_error(error)) from None
    answer = _ask_cluster(client)
    started = time.monotonic()
    while not answer.done() and not causes.is_hopeless(time.monotonic() - started):
        client.poll(0.02)
    if answer.done() and answer.exception() is None:
        cluster_id = answer.result().cluster_id or ""
        timeout = min(settings.timeout, _FIGURES)
        return Native(client, timeout, Proof(settings.instance, cluster_id))
    waited = time.monotonic() - started
    found = (
        _inspect_listeners(settings)
        if waited < _TIME_TO_LOOK and not causes.has_unknown_names()
        else None
    )
    raise connect_error(settings, causes.find_first(), found)


def _ask_cluster(client: AdminClient) -> Future[Any]:
    """What the cluster says of itself: its id is `cluster_id`.

    The client asks the controller, or whom a broker calls so, for some seconds also one that died.
    Then the first broker that takes the connection is asked for a topic, which none can be called.
    Only then: the client looks for such a topic again and again, and a changed answer to that has
    crashed librdkafka.
    """
    answer: Future[Any] = Future()

    def ask() -> None:
        first = client.describe_cluster(request_timeout=_CONTROLLER)
        try:
            answer.set_result(
                _await_future(first, _CONTROLLER) or client.list_topics("?", timeout=PATIENCE)
            )
        except KafkaException as error:
            answer.set_exception(error)

    threading.Thread(target=ask, name="connect", daemon=True).start()
    return answer


def oauth_config(tokens: TokenSource | None) -> Mapping[str, Any]:
    """librdkafka asks again, from a thread of its own, before the token expires."""
    if tokens is None:
        return {}

    def give(_: str) -> tuple[str, float]:
        token = tokens.get_token()
        return token.text.reveal(), token.expires

    return {"oauth_cb": give}


def _inspect_listeners(settings: KafkaSettings) -> Listener | None:
    """The first listener that takes connections, of those that are named first."""
    for server in settings.servers[:2]:
        found = look_at(server, lambda: ssl_context(settings))
        if found.reached:
            return found
    return None


def _await_future(future: Future[T], timeout: float) -> T | None:
    """A future's result, or None: these answers only illustrate a plan. The wait is bounded
    because a future that a malformed answer leaves out never resolves."""
    try:
        return future.result(timeout + 1)
    except (KafkaException, TimeoutError):
        return None


def _read_topics(description: Any) -> set[str]:
    if description is None:
        return set()
    return {
        place.topic
        for member in description.members
        if member.assignment is not None
        for place in member.assignment.topic_partitions
    }


def _describe_error(error: Exception) -> str:
    cause = error.args[0] if error.args else error
    return cause.str() if isinstance(cause, KafkaError) else str(cause)
