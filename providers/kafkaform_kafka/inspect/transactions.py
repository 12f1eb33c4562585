"""The documents and the pages of `describe transactions`."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from msgspec import Struct

from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import Fault, FaultClass
from kafkaform.core.text.display import inline
from kafkaform.core.text.quantity import render_amount
from kafkaform.core.value import FrozenMap, Value
from kafkaform.provider.commands import Answer
from kafkaform.provider.page import Cells, Grid, Page

from ..cluster.context import live_nodes
from ..protocol.faults import fault_of
from ..wire.transactions import (
    DescribedTransaction,
    TransactionRow,
    describe_transactions,
    list_transactions,
)
from .cells import NOTHING, cell, count
from .node_requests import (
    READ_THE_ANSWER,
    Gap,
    NodeRequest,
    ask_all_brokers,
    cut_batches,
    document_gap,
    explain_gap,
    find_leaderless,
    render_gaps,
    render_problem,
    send_each,
)
from .source import DescribeSource, add_suggestion, describe_fault

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
