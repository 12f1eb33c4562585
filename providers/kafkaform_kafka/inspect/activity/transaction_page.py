"""The pages of `describe transactions`."""

from __future__ import annotations

from kafkaform.core.text.quantity import render_amount
from kafkaform.core.value import FrozenMap
from kafkaform.provider.page import Cells, Grid, Page

from ..cells import NOTHING, cell, count
from .gap_lines import render_gaps, render_problem
from .hanging_transactions import REASONS

_HEAD = (
    *("Transactional id", "State", "Producer", "Epoch", "Coordinator"),
    *("Started", "Open for", "Partitions"),
)
_HANGING_HEAD = (
    *("Topic", "Partition", "Producer", "Epoch", "Coordinator epoch", "Start offset"),
    *("Last write", "Idle for", "Transactional id", "Why"),
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


def _make_cells(row: FrozenMap) -> Cells:
    return (
        row["transactional_id"],
        cell(row["state"]),
        cell(row["producer_id"]),
        cell(row["producer_epoch"]),
        cell(row["coordinator"]),
        cell(row["started"]),
        _render_duration(row["duration_ms"]),
        "; ".join(
            f"{partition['topic']} {cell(partition['partitions'])}"
            for partition in row["partitions"] or ()
        )
        or NOTHING,
    )


def _make_hanging_cells(row: FrozenMap) -> Cells:
    return (
        row["topic"],
        cell(row["partition"]),
        cell(row["producer_id"]),
        cell(row["producer_epoch"]),
        cell(row["coordinator_epoch"]),
        cell(row["start_offset"]),
        cell(row["last_write"]),
        _render_duration(row["idle_ms"]),
        cell(row["transactional_id"]),
        REASONS[row["reason"]],
    )


def _render_duration(milliseconds: int | None) -> str:
    return NOTHING if milliseconds is None else render_amount(milliseconds, "ms")
