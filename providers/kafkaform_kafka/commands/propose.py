"""The commands of `kafkaform propose`: compute configuration that somebody can review. The page
says what moves, what that costs, and how even the brokers are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from functools import partial
from typing import Annotated

from kafkaform.core.errors import UsageError
from kafkaform.core.resource import Declared
from kafkaform.core.text import Cells, Grid, Page, Prose, parse_whole
from kafkaform.core.value import FrozenMap
from kafkaform.provider.commands import (
    Command,
    CommandGroup,
    Operand,
    Option,
    Proposal,
    Proposed,
    cell,
    offer_names,
)
from kafkaform.provider.contract import Session

from ..inspect.cells import count, size
from ..inspect.documents import open_source
from ..placement.proposal import PlacementQuery, propose_placement, read_layout
from ..protocol.config_keys import parse_size
from ..session import KafkaSession
from .completion import list_brokers, list_topics

_NAMED = 5
"""Names in a sentence; the document has all."""
_AMOUNTS = ("replicas", "leaders", "bytes")
_EXECUTE = (
    "Kafka's own tool moves topics without a block: save this proposal with --json, and give the "
    "file to kafka-reassign-partitions.sh --reassignment-json-file FILE --execute."
)


def placement_page(document: FrozenMap) -> Page:
    """The page of a document of `propose placement`."""
    changes = document["partitions"]
    if changes:
        yield from _render_changes(document)
        yield ""
    else:
        yield "The placement is already balanced: nothing has to move."
        yield ""
    yield Grid(tuple(_list_broker_rows(document)), frozenset({0, 2, 3, 4, 5}))
    yield ""
    for text in _list_notes(document):
        yield Prose(text)
    if any(change["declared"] is None for change in changes):
        yield Prose(_EXECUTE)


def _render_changes(document: FrozenMap) -> Page:
    topics: dict[str, list[FrozenMap]] = defaultdict(list)
    for change in document["partitions"]:
        topics[change["topic"]].append(change)
    moved, leaders = _count_moved(document["partitions"]), _count_leaders(document["partitions"])
    share = 100 * document["bytes_copied"] / max(1, document["bytes_total"])
    yield Prose(
        f"Moves {count(moved, 'partition')} and copies {size(document['bytes_copied'])}, "
        f"{share:.1f} % of the bytes of all replicas. {count(leaders, 'partition')} "
        f"{'gets' if leaders == 1 else 'get'} another preferred leader, which copies nothing."
    )
    yield ""
    rows: list[Cells] = [("Topic", "Moved", "Leaders", "Copied", "Declared by")]
    for name, topic_changes in sorted(topics.items()):
        copied = size(sum(c["bytes_copied"] for c in topic_changes))
        numbers = str(_count_moved(topic_changes)), str(_count_leaders(topic_changes))
        rows.append((name, *numbers, copied, cell(topic_changes[0]["declared"])))
    yield Grid(tuple(rows), frozenset({1, 2, 3}))


def _count_moved(changes: Iterable[FrozenMap]) -> int:
    """How many of these partitions get other brokers."""
    return sum(set(change["replicas"]) != set(change["before"]) for change in changes)


def _count_leaders(changes: Iterable[FrozenMap]) -> int:
    """How many of these partitions get another first replica."""
    return sum(change["replicas"][0] != change["before"][0] for change in changes)


def _list_broker_rows(document: FrozenMap) -> Iterable[Cells]:
    # Brokers before Kafka 3.3 do not say how much is free.
    shows_room = any(broker["room_bytes"] is not None for broker in document["brokers"])
    yield ("Broker", "Rack", "Replicas", "Leaders", "Bytes", *(["Free"] if shows_room else []), "")
    for broker in document["brokers"]:
        amounts = (broker[name] for name in _AMOUNTS)
        replicas, leaders, stored = amounts
        yield (
            str(broker["id"]),
            cell(broker["rack"]),
            _render_step(str(replicas["before"]), str(replicas["after"])),
            _render_step(str(leaders["before"]), str(leaders["after"])),
            _render_step(size(stored["before"]), size(stored["after"])),
            *([_render_room(broker["room_bytes"])] if shows_room else []),
            "" if broker["used"] else "left" if broker["live"] else "not live",
        )
    evenness = document["evenness"]
    tops = (
        _render_step(*(f"+{evenness[name][moment]} %" for moment in ("before", "after")))
        for name in _AMOUNTS
    )
    yield ("most", "", *tops, *([""] if shows_room else []), "above the average")


def _render_room(room: FrozenMap | None) -> str:
    if room is None:
        return cell(None)
    return _render_step(size(room["before"]), size(max(0, room["after"])))


def _render_step(before: str, after: str) -> str:
    return before if before == after else f"{before} → {after}"


def _list_notes(document: FrozenMap) -> Iterable[str]:
    """What the reader should know, in sentences."""
    if document["limited"]:
        yield (
            "The disks of the other brokers have no room for all replicas that are to be moved: "
            "add disks or brokers, or keep less."
            if document["max_bytes"] is None
            else "--max-bytes keeps replicas on brokers that are to be left, or the disks of the "
            "others have no room. Propose again after this."
        )
    for broker in document["stranded"]:
        yield (
            f"Broker {broker['broker']} keeps {count(broker['replicas'], 'replica')} of "
            f"{_render_names(broker['topics'])}."
        )
    for staying in document["staying"]:
        if staying["reason"] == "not_asked":
            continue
        names = staying["topics"]
        yield (
            f"Weighed, but not moved: {count(len(names), 'topic')} that {staying['text']}: "
            f"{_render_names(names)}."
        )
    if document["moving"]:
        yield (
            f"Moves run already, of {count(document['moving'], 'partition')}. The proposal starts "
            "from their targets."
        )
    if document["without_live_replica"]:
        number = document["without_live_replica"]
        yield f"{count(number, 'partition')} without a live replica cannot be copied, and stay."
    yield f"Others may be hidden: {document['hidden']}."


def _render_names(names: tuple[str, ...]) -> str:
    hidden_count = len(names) - _NAMED
    return ", ".join(names[:_NAMED]) + (f" and {hidden_count} more" if hidden_count > 0 else "")


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
    proposal = propose_placement(read_layout(open_source(session)), declared, query)
    # What another cluster has answered would move replicas of this one.
    session.prove()
    return Proposed(proposal.document, proposal.arguments)


GROUP = CommandGroup(
    "kafka", "Write a proposal for the configuration.", (Command("placement", place_replicas),)
)
