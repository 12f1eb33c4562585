"""Read open transactions, and find those that nobody will end (KIP-664): a partition shows one as
open, and no coordinator has to write the marker of its end."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence, Set
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from msgspec import Struct

from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import Fault, FaultClass
from kafkaform.core.text import Cells, Grid, Page, inline, render_amount
from kafkaform.core.value import FrozenMap, Value
from kafkaform.provider.commands import NOTHING, Answer, cell

from ..kinds.context import live_nodes
from ..protocol.faults import code_name, fault_of
from ..wire.describe import (
    DescribedTransaction,
    ProducerRow,
    ProducerRows,
    TransactionRow,
    describe_producers,
    describe_topics,
    describe_transactions,
    list_transactions,
)
from ..wire.usage import Place, group_by_topic
from .cells import count
from .source import (
    READ_THE_ANSWER,
    DescribeSource,
    Gap,
    NodeRequest,
    add_suggestion,
    ask_all_brokers,
    cut_batches,
    describe_fault,
    document_gap,
    explain_gap,
    find_leaderless,
    render_gaps,
    render_problem,
    send_each,
)

TRANSACTIONS_TOPIC = "__transaction_state"
"""Kafka's topic of transactions. The leader of one of its partitions coordinates those in it."""
IDS_AT_ONCE = 500
"""Transactional ids in one request."""
OPEN = frozenset({"Ongoing", "PrepareCommit", "PrepareAbort", "PrepareEpochFence"})
"""The states of transactions that have not ended: readers of committed records wait for them."""
HIDDEN = "Kafka leaves out transactional ids and topics that this principal may not describe"
_FIELDS = (
    *("transactional_id", "state", "producer_id", "producer_epoch", "coordinator"),
    *("timeout_ms", "started", "duration_ms", "partitions", "error"),
)
_DENIED, _NOT_FOUND = 53, 105
"""TRANSACTIONAL_ID_AUTHORIZATION_FAILED and TRANSACTIONAL_ID_NOT_FOUND."""


class TransactionQuery(Struct, frozen=True):
    """Which transactions to describe."""

    name: str = "*"
    """A glob."""
    exact: tuple[str, ...] = ()
    """Full transactional ids. Each of them must exist."""
    states: tuple[str, ...] = ()
    topic: str | None = None
    """A glob: only transactions with partitions of such a topic."""
    older_than_ms: int | None = None
    """Only transactions that have been open for longer, in milliseconds."""


class ListedTransaction(Struct, frozen=True):
    """One transactional id, and the broker that coordinates it."""

    row: TransactionRow
    node: str


class TransactionListing(Struct, frozen=True):
    """The transactional ids that we can see."""

    transactions: tuple[ListedTransaction, ...]
    gaps: tuple[Gap, ...]
    """Why the list may be incomplete."""


def read_transactions(source: DescribeSource, query: TransactionQuery) -> Answer:
    """The document `transactions`, and an error if it lacks something. Raises KafkaformError if no
    transaction can be listed."""
    # With names, a state is no reason why a name is not there.
    listing = list_all_transactions(source, () if query.exact else query.states)
    chosen = [
        transaction
        for transaction in listing.transactions
        if (not query.exact or transaction.row.transactional_id in query.exact)
        and fnmatchcase(transaction.row.transactional_id, query.name)
        and (not query.states or transaction.row.state in query.states)
    ]
    listed_ids = {transaction.row.transactional_id for transaction in listing.transactions}
    absent = [name for name in query.exact if name not in listed_ids]
    faults = _explain_missing(source, absent, listing.gaps) if absent else {}
    missing = {name: add_suggestion(fault, name, listed_ids) for name, fault in faults.items()}
    described = describe_listed(source, chosen)
    now = read_clock()
    rows = [
        *(
            row
            for transaction in chosen
            if _is_wanted(
                row := _document_transaction(
                    transaction, described[transaction.row.transactional_id], now
                ),
                query,
            )
        ),
        *(
            FrozenMap(
                {
                    **dict.fromkeys(_FIELDS),
                    "transactional_id": name,
                    "error": describe_fault(fault),
                }
            )
            for name, fault in missing.items()
        ),
    ]
    document = FrozenMap(
        format_version="1.0",
        kind="transactions",
        cluster_id=source.context.facts.scope_id,
        transactions=tuple(sorted(rows, key=lambda row: row["transactional_id"])),
        complete=False,
        hidden=HIDDEN,
        gaps=tuple(map(document_gap, listing.gaps)),
    )
    return Answer(document, _make_error(document, missing))


def list_all_transactions(
    source: DescribeSource, states: Sequence[str] = (), producers: Sequence[int] = ()
) -> TransactionListing:
    """The transactional ids of all live brokers. states, producers: only these, all if it is empty.
    Raises KafkaformError if no broker lists any."""
    answers, gaps = ask_all_brokers(
        source, "ListTransactions", list_transactions, (states, producers), "transactions"
    )
    transactions = {
        row.transactional_id: ListedTransaction(row, node)
        for node, answer in answers.items()
        for row in answer.rows
    }
    gaps += find_leaderless(source, TRANSACTIONS_TOPIC, "transactions")
    return TransactionListing(
        tuple(transactions[name] for name in sorted(transactions)), tuple(gaps)
    )


def describe_listed(
    source: DescribeSource, listed: Sequence[ListedTransaction]
) -> Mapping[str, DescribedTransaction | Fault]:
    """Transactional id -> its last transaction."""
    api = "DescribeTransactions"
    by_node: dict[str, list[str]] = defaultdict(list)
    for transaction in listed:
        by_node[transaction.node].append(transaction.row.transactional_id)
    requests = [
        NodeRequest(api, node, describe_transactions, (names,))
        for node, coordinated in by_node.items()
        for names in cut_batches(coordinated, IDS_AT_ONCE)
    ]
    rows: dict[str, DescribedTransaction | Fault] = {}
    for request, answer in zip(requests, send_each(source, requests), strict=True):
        for name in request.arguments[0]:
            row = answer if isinstance(answer, Fault) else answer.get(name)
            if row is None:
                row = Fault("NO_ANSWER", "the broker left it out", FaultClass.DEFINITE, api)
            elif not isinstance(row, Fault) and row.code:
                row = fault_of(api, row.code, name, None, request.node)
            rows[name] = row
    return rows


def read_clock() -> int:
    """Milliseconds since 1970 by the clock of this computer, which Kafka's own tool uses, too."""
    return int(time.time() * 1000)


def render_time(milliseconds: int | None) -> str | None:
    """`2026-01-31T23:59:59.000Z` for milliseconds since 1970."""
    if milliseconds is None:
        return None
    moment = datetime.fromtimestamp(milliseconds / 1000, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _is_wanted(row: FrozenMap, query: TransactionQuery) -> bool:
    # What could not be read can be what was asked for.
    if row["error"] is not None:
        return True
    if query.topic is not None and not any(
        fnmatchcase(partition["topic"], query.topic) for partition in row["partitions"]
    ):
        return False
    return query.older_than_ms is None or (row["duration_ms"] or 0) > query.older_than_ms


def _document_transaction(
    listed: ListedTransaction, description: DescribedTransaction | Fault, now: int
) -> FrozenMap:
    row = listed.row
    values: dict[str, Value] = {
        **dict.fromkeys(_FIELDS),
        "transactional_id": row.transactional_id,
        "state": row.state,
        "producer_id": row.producer_id,
        "coordinator": int(listed.node),
    }
    if isinstance(description, Fault):
        return FrozenMap({**values, "error": describe_fault(description)})
    started = description.start_ms
    values |= {
        "state": description.state,
        "producer_id": description.producer_id,
        "producer_epoch": description.producer_epoch,
        "timeout_ms": description.timeout_ms,
        "started": render_time(started),
        "duration_ms": max(0, now - started) if started and description.state in OPEN else None,
        "partitions": tuple(
            FrozenMap(topic=topic, partitions=numbers)
            for topic, numbers in sorted(description.partitions.items())
        ),
    }
    return FrozenMap(values)


def _explain_missing(
    source: DescribeSource, names: Sequence[str], gaps: Sequence[Gap]
) -> Mapping[str, Fault]:
    """Name -> why a transactional id that somebody has named is in no list."""
    # Any broker checks the right on the id before it looks for it.
    api = "DescribeTransactions"
    node = next(iter(live_nodes(source.context)), "")
    answer = source.ask(api, describe_transactions, names, node, node=node)
    if isinstance(answer, Fault):
        return dict.fromkeys(names, answer)
    denied = {name for name, row in answer.items() if row.code == _DENIED}
    return {
        name: fault_of(api, _DENIED, name)
        if name in denied
        else explain_gap(gaps[0])
        if gaps
        else fault_of(api, _NOT_FOUND, name)
        for name in names
    }


def _make_error(document: FrozenMap, missing: Mapping[str, Fault]) -> KafkaformError | None:
    """What is raised after the document is shown."""
    for name, fault in missing.items():
        return KafkaformError(f'transactional id "{inline(name)}": {fault.message}', fault.advice)
    unread = sum(row["error"] is not None for row in document["transactions"])
    if document["gaps"]:
        return KafkaformError("the list of transactions is incomplete", READ_THE_ANSWER)
    if unread:
        amount = f"{unread:,} {'transaction' if unread == 1 else 'transactions'}"
        return KafkaformError(f"{amount} could not be read", READ_THE_ANSWER)
    return None


_HEAD = (
    *("Transactional id", "State", "Producer", "Epoch", "Coordinator"),
    *("Started", "Open for", "Partitions"),
)


def transactions_page(document: FrozenMap) -> Page:
    """The page of the document `transactions`."""
    rows = document["transactions"]
    if rows:
        yield Grid((_HEAD, *map(_make_cells, rows)), frozenset({2, 3, 4}))
    yield f"{count(len(rows), 'transactional id')}."
    for row in rows:
        if row["error"] is not None:
            yield f"{row['transactional_id']}: {render_problem(row['error'])}"
    yield from render_gaps(document)


def _make_cells(row: FrozenMap) -> Cells:
    return (
        row["transactional_id"],
        cell(row["state"]),
        cell(row["producer_id"]),
        cell(row["producer_epoch"]),
        cell(row["coordinator"]),
        cell(row["started"]),
        render_duration(row["duration_ms"]),
        "; ".join(
            f"{partition['topic']} {cell(partition['partitions'])}"
            for partition in row["partitions"] or ()
        )
        or NOTHING,
    )


def render_duration(milliseconds: int | None) -> str:
    return NOTHING if milliseconds is None else render_amount(milliseconds, "ms")


DEFAULT_MS = 15 * 60 * 1000
"""Milliseconds for which a transaction may be open before it is examined: the brokers' default of
transaction.max.timeout.ms, after which a coordinator ends it."""
# ── hanging transactions ────────────────────────────────────────────────────────────────


HIDDEN_PRODUCERS = (
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
_NO_LEADER = 5
"""LEADER_NOT_AVAILABLE."""


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
        hidden=HIDDEN_PRODUCERS,
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
