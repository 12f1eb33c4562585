"""The native client (librdkafka). Only this module and `publishing` import confluent-kafka.

It connects first, because it names the cause of a refused login or a TLS fault. It also sends the
requests that must be spread over the leaders of partitions and the coordinators of groups.
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

from kafkaform.provider.http.tokens import TokenSource

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

T = TypeVar("T")
NATIVE = "one of bootstrap_servers"
"""Where an answer comes from; this client does not say which broker gave it."""

SETTLED = 2.0
"""Seconds after which it is final that all brokers refuse the connection."""

# The figures illustrate a plan. A dead broker would delay it by the whole operation timeout.
_FIGURES = 5.0
"""Seconds for the figures of a deletion."""

_CONTROLLER = 2.0
"""Seconds for an answer that a living controller gives at once."""

_TIME_TO_LOOK = 5.0
"""If connecting took longer than these seconds, the listener is not inspected as well."""

_FINAL = frozenset({KafkaError._AUTHENTICATION, KafkaError._SSL})
_VAGUE = frozenset({KafkaError._ALL_BROKERS_DOWN})
_WITH_MEMBERS = {
    ConsumerGroupState.STABLE,
    ConsumerGroupState.PREPARING_REBALANCING,
    ConsumerGroupState.COMPLETING_REBALANCING,
}


class Causes(Struct):
    """The errors that the client reported while it tried to connect, the oldest first."""

    # A refused login ends a call of confluent-kafka as `_TIMED_OUT`, "waiting for controller". The
    # cause is passed to the error callback only.
    errors: deque[KafkaError] = field(default_factory=lambda: deque(maxlen=50))

    def report(self, error: KafkaError) -> None:
        """librdkafka's error callback."""
        self.errors.append(error)

    def is_hopeless(self, waited: float) -> bool:
        """True if waiting longer will not help. waited: seconds."""
        # librdkafka tries a refused login again and again, and that can lock an account.
        codes = {error.code() for error in self.errors}
        if codes & _FINAL or waited > PATIENCE:
            return True
        return waited > SETTLED and bool(codes & _VAGUE)

    def has_unknown_names(self) -> bool:
        """True if the host names of the brokers cannot be resolved, so that a second attempt would
        take as long again."""
        return any(error.code() == KafkaError._RESOLVE for error in self.errors)

    def find_first(self) -> tuple[str, str] | None:
        """Name and text of the first error that names a cause; a final error is preferred."""
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


def count_old(start: int, end: int, first: int | None) -> int:
    """Offsets before the first record that is not older; -1 says that all are older."""
    if first is None:
        return 0
    return end - start if first < 0 else max(0, first - start)


class Native(Struct, frozen=True, eq=False):
    """A connected native client."""

    # librdkafka opens connections on its own and does not say when. So an answer counts only if the
    # cluster of the session answers both before and after it.

    client: AdminClient
    timeout: float
    """Seconds for one answer."""
    proof: Proof

    def read_offset_spans(self, topics: Mapping[str, int]) -> Mapping[str, int]:
        """Topic -> number of offsets between its first and its last record, over all partitions.
        topics: name -> number of partitions. A topic with a partition that does not answer is left
        out. Raises OtherSystem."""
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
        """Topic -> groups with a member that reads it now. None if the groups cannot be listed, or
        if there are more than `limit`. Raises OtherSystem."""
        return self._ask_proven(lambda: self._list_live_groups(topics, limit))

    def _ask_proven(self, ask: Callable[[], T]) -> T | None:
        """The answer, None if it is unknown which cluster gave it."""
        if not self._is_there():
            return None
        answer = ask()
        return answer if self._is_there() else None

    def _is_there(self) -> bool:
        """Whether the session's cluster answers now. Raises OtherSystem if another one does."""
        patience = min(self.timeout, PATIENCE)
        found = _await_future(_ask_cluster(self.client), patience)
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
                    tuple(count_old(starts[key], ends[key], firsts.get(key)) for key in keys),
                )
        return found

    def _list_live_groups(
        self, topics: Set[str], limit: int
    ) -> Mapping[str, tuple[str, ...]] | None:
        listing = _await_future(
            self.client.list_consumer_groups(states=_WITH_MEMBERS, request_timeout=self.timeout),
            self.timeout,
        )
        if listing is None or listing.errors or len(listing.valid) > limit:
            return None
        names = [group.group_id for group in listing.valid]
        if not names:
            return {}
        readers: dict[str, set[str]] = defaultdict(set)
        described = self.client.describe_consumer_groups(names, request_timeout=self.timeout)
        for name, future in described.items():
            for topic in _read_topics(_await_future(future, self.timeout)) & topics:
                readers[topic].add(name)
        return {topic: tuple(sorted(groups)) for topic, groups in readers.items()}

    def _ask_offsets(
        self, places: Iterable[TopicPartition], spec: OffsetSpec
    ) -> Mapping[TopicPartition, Future[Any]]:
        asked = dict.fromkeys(places, spec)
        return self.client.list_offsets(asked, request_timeout=self.timeout)

    def _await_offsets(
        self, asked: Mapping[TopicPartition, Future[Any]]
    ) -> Mapping[tuple[str, int], int]:
        deadline = time.monotonic() + self.timeout
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
    """A connected client. tokens: the source of login tokens, if it logs in with one. Raises
    ConnectError within 10 seconds, ConfigurationError."""
    causes = Causes()
    config = {**native_config(settings), "error_cb": causes.report}
    if tokens is not None:
        config.update(oauth_config(tokens))
    try:
        client = AdminClient(config, logger=logging.getLogger(NATIVE_LOGGER))
    except (KafkaException, ValueError, TypeError) as error:
        if settings.tls:
            ssl_context(settings)  # it names what is wrong with a key
        raise make_settings_error(settings, _describe_error(error)) from None
    answer = _ask_cluster(client)
    started = time.monotonic()
    # poll serves the callbacks: without it neither an error nor a request for a token would arrive.
    while not answer.done() and not causes.is_hopeless(time.monotonic() - started):
        client.poll(0.02)
    if answer.done() and answer.exception() is None:
        cluster_id = answer.result().cluster_id or ""
        timeout = min(settings.timeout, _FIGURES)
        return Native(client, timeout, Proof(settings.instance, cluster_id))
    waited = time.monotonic() - started
    found = (
        inspect_listeners(settings)
        if waited < _TIME_TO_LOOK and not causes.has_unknown_names()
        else None
    )
    raise connect_error(settings, causes.find_first(), found)


def _ask_cluster(client: AdminClient) -> Future[Any]:
    """An answer with the `cluster_id` of the cluster, whichever broker gives it."""
    # describe_cluster goes to the controller, or to the broker that is called so, for some seconds
    # also to one that died. list_topics then asks any broker, about a name that no topic can have.
    # Never at first: librdkafka goes on looking for such a topic, and an answer that changes
    # meanwhile has crashed it.
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


def oauth_config(tokens: TokenSource) -> Mapping[str, Any]:
    """Settings by which librdkafka asks for a token, and again before the token expires."""
    # The callback runs in a thread of librdkafka, and an exception in it counts as a failed login.

    def give(_: str) -> tuple[str, float]:
        token = tokens.get_token()
        return token.text.reveal(), token.expires

    return {"oauth_cb": give}


def inspect_listeners(settings: KafkaSettings) -> Listener | None:
    """What one of the first listeners shows that accepts connections."""
    for server in settings.servers[:2]:
        found = look_at(server, lambda: ssl_context(settings))
        if found.reached:
            return found
    return None


def _await_future(future: Future[T], timeout: float) -> T | None:
    """The result of a future, None if there is none in time (seconds)."""
    # confluent-kafka never resolves a future that a malformed answer leaves out.
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
