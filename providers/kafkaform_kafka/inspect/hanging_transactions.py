"""Find transactions that nobody will end (KIP-664): a partition shows one as open, and no
coordinator has to write the marker of its end."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Set
from fnmatch import fnmatchcase

from msgspec import Struct

from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import Fault
from kafkaform.core.text.quantity import render_amount
from kafkaform.core.value import FrozenMap
from kafkaform.provider.commands import Answer
from kafkaform.provider.page import Cells, Grid, Page

from ..protocol.faults import code_name, fault_of
from ..wire.describe import describe_topics
from ..wire.transactions import DescribedTransaction, ProducerRow, ProducerRows, describe_producers
from .cells import cell, count
from .end_offsets import Place, group_by_topic
from .node_requests import (
    READ_THE_ANSWER,
    Gap,
    NodeRequest,
    cut_batches,
    document_gap,
    render_gaps,
    send_each,
)
from .source import DescribeSource
from .transactions import (
    ListedTransaction,
    describe_listed,
    list_all_transactions,
    read_clock,
    render_duration,
    render_time,
)

DEFAULT_MS = 15 * 60 * 1000
"""Milliseconds for which a transaction may be open before it is examined: the brokers' default of
transaction.max.timeout.ms, after which a coordinator ends it."""
HIDDEN = (
    "Kafka leaves out topics and transactional ids that this principal may not describe, so a "
    "transaction that no coordinator knows of can be running"
)
REASONS: Mapping[str, str] = {
    "no_transaction": "no coordinator knows its producer",
    "other_transaction": "its producer's transaction is another one",
    "undecided": "undecided: an answer of a coordinator is missing",
}
"""Why an open transaction counts as hanging -> words for people."""
_PARTITIONS_AT_ONCE = 500
_PRODUCERS_AT_ONCE = 1_000
_NO_LEADER, _NOT_FOUND = 5, 105
"""LEADER_NOT_AVAILABLE and TRANSACTIONAL_ID_NOT_FOUND."""


class _Open(Struct, frozen=True):
    """An open transaction in one partition."""

    place: Place
    producer: ProducerRow

    @property
    def key(self) -> tuple[Place, int, int | None]:
        return self.place, self.producer.producer_id, self.producer.open_offset


class _Search(Struct, frozen=True):
    """The open transactions of partitions."""

    found: tuple[_Open, ...]
    searched: int
    """How many partitions have answered."""
    gaps: tuple[Gap, ...]


class _Coordinated(Struct, frozen=True):
    """What the coordinators say about producers."""

    ids: Mapping[int, str]
    """Producer id -> transactional id."""
    described: Mapping[str, DescribedTransaction | Fault]
    """By transactional id."""
    gaps: tuple[Gap, ...] = ()


def find_hanging(source: DescribeSource, topic: str, older_than_ms: int) -> Answer:
    """The document `hanging_transactions`, and an error if it lacks something. topic: a glob.
    Raises KafkaformError if no topic or no transaction can be listed."""
    leaders, leaderless = _find_leaders(source, topic)
    search = _find_open(source, leaders, older_than_ms)
    coordinated = _ask_coordinators(
        source, {transaction.producer.producer_id for transaction in search.found}
    )
    reasons = {
        transaction.key: _judge_open(transaction, coordinated) for transaction in search.found
    }
    # A transaction that ended between the two questions looks like a hanging one. So its partition
    # is asked once more.
    suspects = {transaction.place for transaction in search.found if reasons[transaction.key]}
    second_search = _find_open(
        source, {partition: leaders[partition] for partition in suspects}, older_than_ms
    )
    now = read_clock()
    gaps = (*leaderless, *search.gaps, *coordinated.gaps, *second_search.gaps)
    document = FrozenMap(
        format_version="1.0",
        kind="hanging_transactions",
        cluster_id=source.context.facts.scope_id,
        older_than_ms=older_than_ms,
        partitions_searched=search.searched,
        hanging=tuple(
            _document_open(
                transaction, reason, coordinated.ids.get(transaction.producer.producer_id), now
            )
            for transaction in sorted(
                second_search.found, key=lambda transaction: transaction.key[:2]
            )
            if (reason := reasons.get(transaction.key))
        ),
        complete=False,
        hidden=HIDDEN,
        gaps=tuple(map(document_gap, gaps)),
    )
    lacks = KafkaformError("the search for hanging transactions is incomplete", READ_THE_ANSWER)
    return Answer(document, lacks if gaps else None)


def _find_leaders(
    source: DescribeSource, topic: str
) -> tuple[Mapping[Place, int], tuple[Gap, ...]]:
    """Partition -> broker that leads it."""
    leaders: dict[Place, int] = {}
    without = 0
    for row in source.require("Metadata", describe_topics, None):
        if row.code == 0 and fnmatchcase(row.name, topic):
            for partition in row.partitions:
                if partition.leader is None:
                    without += 1
                else:
                    leaders[row.name, partition.number] = partition.leader
    fault = fault_of("Metadata", _NO_LEADER, topic)
    return leaders, (Gap(_render_unsearched(without), fault),) if without else ()


def _find_open(source: DescribeSource, leaders: Mapping[Place, int], older_than_ms: int) -> _Search:
    """The transactions in these partitions that have been open for longer than that."""
    api = "DescribeProducers"
    led: dict[int, list[Place]] = defaultdict(list)
    for partition, leader in sorted(leaders.items()):
        led[leader].append(partition)
    requests = [
        NodeRequest(api, str(leader), describe_producers, (group_by_topic(batch),))
        for leader, partitions in led.items()
        for batch in cut_batches(partitions, _PARTITIONS_AT_ONCE)
    ]
    transactions: list[_Open] = []
    searched = 0
    unsearched: dict[str, list[Fault]] = defaultdict(list)
    for request, answer in zip(requests, send_each(source, requests), strict=True):
        for topic, numbers in request.arguments[0].items():
            for partition in ((topic, number) for number in numbers):
                rows = answer if isinstance(answer, Fault) else _read_rows(answer, partition)
                if isinstance(rows, Fault):
                    unsearched[rows.code].append(rows)
                    continue
                searched += 1
                # The clock is read after the answer, or an open transaction could look younger.
                since = read_clock() - older_than_ms
                transactions += (
                    _Open(partition, row)
                    for row in rows.rows
                    if row.open_offset is not None and row.last_ms < since
                )
    gaps = (Gap(_render_unsearched(len(faults)), faults[0]) for faults in unsearched.values())
    return _Search(tuple(transactions), searched, tuple(gaps))


def _read_rows(answer: Mapping[Place, ProducerRows], partition: Place) -> ProducerRows | Fault:
    rows = answer.get(partition, ProducerRows(_NO_LEADER, None))
    if rows.code:
        return fault_of("DescribeProducers", rows.code, partition[0], rows.message)
    return rows


def _render_unsearched(count: int) -> str:
    return f"{count:,} {'partition was' if count == 1 else 'partitions were'} not searched"


def _ask_coordinators(source: DescribeSource, producers: Set[int]) -> _Coordinated:
    """The transactions of these producers."""
    listed: dict[int, ListedTransaction] = {}
    gaps: list[Gap] = []
    for batch in cut_batches(sorted(producers), _PRODUCERS_AT_ONCE):
        listing = list_all_transactions(source, producers=batch)
        listed.update(
            {transaction.row.producer_id: transaction for transaction in listing.transactions}
        )
        gaps += listing.gaps
    described = describe_listed(source, list(listed.values()))
    ids = {producer: transaction.row.transactional_id for producer, transaction in listed.items()}
    return _Coordinated(ids, described, tuple(gaps))


def _judge_open(transaction: _Open, coordinated: _Coordinated) -> str | None:
    """Why an open transaction hangs: a key of REASONS, None if its coordinator will end it."""
    name = coordinated.ids.get(transaction.producer.producer_id)
    row = None if name is None else coordinated.described[name]
    if row is None:
        return "undecided" if coordinated.gaps else "no_transaction"
    if isinstance(row, Fault):
        return "no_transaction" if row.code == code_name(_NOT_FOUND) else "undecided"
    # A coordinator lists the partitions of a running transaction, and of an ending one those that
    # have no marker yet.
    topic, number = transaction.place
    return None if number in row.partitions.get(topic, ()) else "other_transaction"


def _document_open(transaction: _Open, reason: str, name: str | None, now: int) -> FrozenMap:
    producer = transaction.producer
    return FrozenMap(
        topic=transaction.place[0],
        partition=transaction.place[1],
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        coordinator_epoch=producer.coordinator_epoch,
        start_offset=producer.open_offset,
        last_write=render_time(producer.last_ms),
        idle_ms=max(0, now - producer.last_ms),
        transactional_id=name,
        reason=reason,
    )


# ── the page ────────────────────────────────────────────────────────────────────────────

_HANGING_HEAD = (
    *("Topic", "Partition", "Producer", "Epoch", "Coordinator epoch", "Start offset"),
    *("Last write", "Idle for", "Transactional id", "Why"),
)


def hanging_page(document: FrozenMap) -> Page:
    """The page of the document `hanging_transactions`."""
    rows = document["hanging"]
    if rows:
        yield Grid((_HANGING_HEAD, *map(_make_hanging_cells, rows)), frozenset({1, 2, 3, 4, 5}))
    limit = render_amount(document["older_than_ms"], "ms")
    searched = count(document["partitions_searched"], "partition")
    if rows:
        yield ""
        yield "Nobody who reads only committed records gets past these. Kafka's own tool ends one:"
        yield "  kafka-transactions.sh abort --topic TOPIC --partition NUMBER --start-offset OFFSET"
        yield ""
    yield f"{count(len(rows), 'hanging transaction')} without a write for {limit}."
    yield f"{searched} {'was' if searched.startswith('1 ') else 'were'} searched."
    yield from render_gaps(document)


def _make_hanging_cells(row: FrozenMap) -> Cells:
    return (
        row["topic"],
        cell(row["partition"]),
        cell(row["producer_id"]),
        cell(row["producer_epoch"]),
        cell(row["coordinator_epoch"]),
        cell(row["start_offset"]),
        cell(row["last_write"]),
        render_duration(row["idle_ms"]),
        cell(row["transactional_id"]),
        REASONS[row["reason"]],
    )
