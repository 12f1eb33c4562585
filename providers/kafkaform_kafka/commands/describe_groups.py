"""`kafkaform describe groups` and `describe transactions`: what consumers and producers do at the
moment."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from kafkaform.core.diagnostics import suggest
from kafkaform.core.errors import UsageError
from kafkaform.core.value import FrozenMap
from kafkaform.provider.commands import Answer, Operand, Option, Question
from kafkaform.provider.contract import Session
from kafkaform.provider.page import Page

from .. import inspect
from ..inspect.documents import open_source
from .completion import (
    list_active_groups,
    list_topics,
    list_transactional_ids,
    offer_names,
    offer_words,
)

STATES = (
    *("Stable", "Empty", "Dead", "PreparingRebalance", "CompletingRebalance"),  # classic
    *("Assigning", "Reconciling", "NotReady"),  # the newer protocols
)
"""The states of groups (GroupState of Kafka 4.3)."""
TYPES = ("classic", "consumer", "share", "streams")
"""The types of groups (GroupType of Kafka 4.3)."""


Names = Annotated[list[str] | None, Operand("GROUP…", offer_names(list_active_groups))]
Name = Annotated[
    str,
    Option(
        "--name",
        "Only matching names; * stands for any text.",
        "GLOB",
        offer_names(list_active_groups),
    ),
]
Topic = Annotated[
    str | None,
    Option(
        "--topic",
        "Only groups that read such a topic, and only what they read of it.",
        "GLOB",
        offer_names(list_topics),
    ),
]


def ask_groups(
    names: Names = None,
    name: Name = "*",
    type_: Annotated[
        list[str] | None,
        Option("--type", ", ".join(TYPES) + ".", "TYPE", offer_words(TYPES)),
    ] = None,
    state: Annotated[
        list[str] | None,
        Option("--state", "Stable, Empty, …", "STATE", offer_words(STATES)),
    ] = None,
    topic: Topic = None,
    members: Annotated[
        bool, Option("--members", "Show the members and what they are assigned.")
    ] = False,
    offsets: Annotated[
        bool, Option("--offsets", "Show the offset and lag of each partition.")
    ] = False,
) -> Question:
    """List groups with their state, members and lag.

    If you name groups, their members and offsets are shown, too: with --members or --offsets only
    these. Lags are in records.
    """
    if "" in (names or ()):
        raise UsageError("no group has an empty name", "`kafkaform describe groups` lists all.")
    types = find_words(type_ or (), TYPES, "--type")
    states = find_words(state or (), STATES, "--state")
    everything = bool(names) and not members and not offsets

    def read(session: Session) -> Answer:
        exact = tuple(dict.fromkeys(names or ()))
        details = (members or everything, offsets or everything)
        query = inspect.groups.GroupQuery(name, exact, states, types, topic, *details)
        return inspect.groups.read_groups(open_source(session), query)

    return Question(read, _render_groups)


def find_words(typed: Sequence[str], words: Sequence[str], flag: str) -> tuple[str, ...]:
    """The words that were typed, as Kafka spells them. Raises UsageError for an unknown one."""
    spellings = {word.lower(): word for word in words}
    for text in typed:
        if text.lower() not in spellings:
            raise UsageError(
                f"{flag} {text!r} does not exist",
                suggest(text, words) or f"It is one of {', '.join(words)}.",
            )
    return tuple(dict.fromkeys(spellings[text.lower()] for text in typed))


def _render_groups(document: FrozenMap) -> Page:
    return inspect.groups.groups_page(document)


# ── transactions ────────────────────────────────────────────────────────────────────────


TRANSACTION_STATES = (
    *("Empty", "Ongoing", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"),
    *("PrepareEpochFence", "Dead"),
)
"""The states of transactions (TransactionState of Kafka 4.3)."""
_MINUTE_MS = 60_000


Ids = Annotated[list[str] | None, Operand("ID…", offer_names(list_transactional_ids))]
TransactionalId = Annotated[
    str,
    Option(
        "--name",
        "Only matching ids; * stands for any text.",
        "GLOB",
        offer_names(list_transactional_ids),
    ),
]
WrittenTopic = Annotated[
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
    name: TransactionalId = "*",
    state: Annotated[
        list[str] | None,
        Option("--state", "Ongoing, Empty, …", "STATE", offer_words(TRANSACTION_STATES)),
    ] = None,
    topic: WrittenTopic = None,
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
    states = find_words(state or (), TRANSACTION_STATES, "--state")
    if hanging and (ids or states or name != "*"):
        raise UsageError(
            "--hanging searches partitions, so it excludes ids, --name and --state",
            "Narrow the search with --topic.",
        )
    limit = None if older_than is None else older_than * _MINUTE_MS

    def read(session: Session) -> Answer:
        source = open_source(session)
        if hanging:
            oldest = inspect.transactions.DEFAULT_MS if limit is None else limit
            return inspect.transactions.find_hanging(source, topic or "*", oldest)
        query = inspect.transactions.TransactionQuery(
            name, tuple(dict.fromkeys(ids or ())), states, topic, limit
        )
        return inspect.transactions.read_transactions(source, query)

    return Question(read, _render_hanging if hanging else _render_transactions)


def _render_transactions(document: FrozenMap) -> Page:
    return inspect.transactions.transactions_page(document)


def _render_hanging(document: FrozenMap) -> Page:
    return inspect.transactions.hanging_page(document)
