"""`kafkaform describe transactions`: open transactions, and those that nobody will end."""

from __future__ import annotations

from typing import Annotated

from kafkaform.core.errors import UsageError
from kafkaform.core.value import FrozenMap
from kafkaform.provider.commands import Answer, Operand, Option, Question
from kafkaform.provider.contract import Session
from kafkaform.provider.page import Page

from .. import inspect
from ..inspect.documents import open_source
from .completion import list_topics, list_transactional_ids, offer_names, offer_words
from .describe_groups import find_words

STATES = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"),
    *("PrepareEpochFence", "Dead"),
)
"""The states of transactions (TransactionState of Kafka 4.3)."""
_MINUTE_MS = 60_000


Ids = Annotated[list[str] | None, Operand("ID…", offer_names(list_transactional_ids))]
Name = Annotated[
    str,
    Option(
        "--name",
        "Only matching ids; * stands for any text.",
        "GLOB",
        offer_names(list_transactional_ids),
    ),
]
Topic = Annotated[
    str | None,
    Option(
        "--topic",
        "Only transactions with partitions of such a topic.",
        "GLOB",
        offer_names(list_topics),
    ),
]


def ask_transactions(
    ids: Ids = None,
    name: Name = "*",
    state: Annotated[
        list[str] | None, Option("--state", "Ongoing, Empty, …", "STATE", offer_words(STATES))
    ] = None,
    topic: Topic = None,
    older_than: Annotated[
        int | None,
        Option("--older-than", "Only transactions that are open for longer.", "MINUTES"),
    ] = None,
    hanging: Annotated[
        bool,
        Option("--hanging", "Search partitions for open transactions that nobody will end."),
    ] = False,
) -> Question:
    """List transactional IDs with state and age.

    With --hanging, search the partitions of all topics, or of those that match --topic, for
    transactions that no coordinator will end (KIP-664); --older-than is 15 then if it is not given.
    """
    if "" in (ids or ()):
        raise UsageError(
            "no transactional id is empty", "`kafkaform describe transactions` lists all."
        )
    if older_than is not None and older_than < 0:
        raise UsageError(f"--older-than {older_than} is negative", "Give a number of minutes.")
    states = find_words(state or (), STATES, "--state")
    if hanging and (ids or states or name != "*"):
        raise UsageError(
            "--hanging searches partitions, so it excludes ids, --name and --state",
            "Narrow the search with --topic.",
        )
    limit = None if older_than is None else older_than * _MINUTE_MS

    def read(session: Session) -> Answer:
        source = open_source(session)
        if hanging:
            oldest = inspect.hanging_transactions.DEFAULT_MS if limit is None else limit
            return inspect.hanging_transactions.find_hanging(source, topic or "*", oldest)
        query = inspect.transactions.TransactionQuery(
            name, tuple(dict.fromkeys(ids or ())), states, topic, limit
        )
        return inspect.transactions.read_transactions(source, query)

    return Question(read, _render_hanging if hanging else _render_transactions)


def _render_transactions(document: FrozenMap) -> Page:
    return inspect.transactions.transactions_page(document)


def _render_hanging(document: FrozenMap) -> Page:
    return inspect.hanging_transactions.hanging_page(document)
