"""The commands of `kafkaform propose`: compute configuration that somebody can review."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Annotated

from kafkaform.core.errors import UsageError
from kafkaform.core.resource import Declared
from kafkaform.core.text.quantity import parse_whole
from kafkaform.provider.commands import (
    Command,
    CommandGroup,
    Operand,
    Option,
    Proposal,
    Proposed,
)
from kafkaform.provider.contract import Session

from ..placement.page import placement_page
from ..placement.proposal import PlacementQuery, propose_placement, read_layout
from ..protocol.config_values import parse_size
from ..session import KafkaSession
from .completion import list_brokers, list_topics, offer_names


def place_replicas(
    topics: Annotated[list[str] | None, Operand("TOPIC…", offer_names(list_topics))] = None,
    drain: Annotated[
        list[str] | None,
        Option("--drain", "Move replicas off this broker.", "BROKER", offer_names(list_brokers)),
    ] = None,
    brokers: Annotated[
        str | None,
        Option("--brokers", "Only these brokers may have replicas of the topics.", "ID,…"),
    ] = None,
    max_bytes: Annotated[
        str | None, Option("--max-bytes", "Copy at most this much, for example 500GiB.", "SIZE")
    ] = None,
    undeclared: Annotated[
        bool,
        Option("--undeclared", "Also move topics that no block declares, with Kafka's own tool."),
    ] = False,
) -> Proposal:
    """Balance replicas and leaders over brokers and racks.

    The fewest bytes that are needed are copied. By default, all topics that the configuration
    declares can move; TOPIC can be a glob. Nothing is sent: the proposal is an override file, and
    `kafkaform plan` shows its moves.
    """
    limit = None if max_bytes is None else parse_size(max_bytes)
    if max_bytes is not None and limit is None:
        raise UsageError(f"--max-bytes {max_bytes!r} is not a size", "For example 500GiB or 20 GB.")
    query = PlacementQuery(
        topics=tuple(topics or ()),
        undeclared=undeclared,
        drain=_read_ids("--drain", drain or ()),
        brokers=_read_ids("--brokers", brokers.split(",") if brokers is not None else ()),
        max_bytes=limit,
    )
    return Proposal(partial(_compute, query=query), placement_page)


def _read_ids(flag: str, texts: Sequence[str]) -> frozenset[int]:
    """Broker ids. Raises UsageError."""
    numbers = [parse_whole(text.strip()) for text in texts]
    for text, number in zip(texts, numbers, strict=True):
        if number is None:
            raise UsageError(
                f"{flag} {text[:80]!r} is not the id of a broker",
                "Ids are numbers: `kafkaform describe brokers` lists them.",
            )
    return frozenset(number for number in numbers if number is not None)


def _compute(
    session: Session, declared: Sequence[Declared] | None, query: PlacementQuery
) -> Proposed:
    if not isinstance(session, KafkaSession):
        raise UsageError("only Kafka clusters have a placement", "Choose a kafka provider block.")
    proposal = propose_placement(read_layout(session.context), declared, query)
    # What another cluster has answered would move replicas of this one.
    session.prove()
    return Proposed(proposal.document, proposal.arguments)


GROUP = CommandGroup(
    "Write a proposal for the configuration.", (Command("placement", place_replicas),)
)
