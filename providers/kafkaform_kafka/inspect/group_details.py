"""List groups, and describe them with their offsets, each at the broker that coordinates it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from kafkaform.core.resource import Fault, FaultClass

from ..kinds.context import live_nodes
from ..protocol.faults import fault_of
from ..wire.groups import (
    DESCRIBERS,
    DescribedGroup,
    ShareOffset,
    describe_classic_groups,
    describe_share_offsets,
)
from ..wire.usage import CommittedOffset, Place, fetch_offsets, list_groups
from .source import (
    DescribeSource,
    Gap,
    NodeRequest,
    ask_all_brokers,
    cut_batches,
    explain_gap,
    find_leaderless,
    send_each,
)

GROUPS_TOPIC = "__consumer_offsets"
"""Kafka's topic of groups. The leader of one of its partitions coordinates the groups in it."""
_DENIED = 30
"""GROUP_AUTHORIZATION_FAILED."""


class ListedGroup(Struct, frozen=True):
    """One group of a listing."""

    name: str
    type: str | None
    """`classic`, `consumer`, `share` or `streams`; None before Kafka 3.8."""
    protocol: str
    """`consumer`, `connect`, `share`, …"""
    state: str | None
    """None before Kafka 2.6."""
    node: str
    """The broker that coordinates it."""


class GroupListing(Struct, frozen=True):
    """The groups that we can see, by name."""

    groups: tuple[ListedGroup, ...]
    gaps: tuple[Gap, ...]
    """Why the list may be incomplete."""


def list_all_groups(source: DescribeSource) -> GroupListing:
    """The groups of all live brokers. Raises KafkaformError if no broker lists any."""
    # Each broker lists the groups that it coordinates and no others. So a silent broker leaves a
    # gap, and so does a partition of Kafka's own topic without a leader.
    answers, gaps = ask_all_brokers(source, "ListGroups", list_groups, (), "groups")
    groups = {
        row.name: ListedGroup(
            row.name, row.type.lower() if row.type else None, row.protocol, row.state, node
        )
        for node, answer in answers.items()
        for row in answer.groups
    }
    gaps += find_leaderless(source, GROUPS_TOPIC, "groups")
    return GroupListing(tuple(groups[name] for name in sorted(groups)), tuple(gaps))


def explain_missing(
    source: DescribeSource, names: Sequence[str], gaps: Sequence[Gap]
) -> dict[str, Fault]:
    """Name -> why a group that somebody has named is in no list."""
    # DescribeGroups checks the right on the group before it looks for the group, at every broker.
    # FindCoordinator would tell the same, but it can create Kafka's topic of groups.
    node = next(iter(live_nodes(source.context)), "")
    answer = source.ask("DescribeGroups", describe_classic_groups, names, node, node=node)
    faults: dict[str, Fault] = {}
    for name in names:
        row = None if isinstance(answer, Fault) else answer.get(name)
        if isinstance(answer, Fault):
            faults[name] = answer
        elif row is not None and row.code == _DENIED:
            faults[name] = fault_of("DescribeGroups", _DENIED, name)
        elif gaps:
            faults[name] = explain_gap(gaps[0])
        else:
            faults[name] = Fault(
                "GROUP_ID_NOT_FOUND",
                "there is no such group",
                FaultClass.DEFINITE,
                advice="`kafkaform describe groups` lists all; a group exists as long as it has "
                "members or offsets",
            )
    return faults


GROUPS_AT_ONCE = 100
"""Groups in one request: the answer has all of their members or offsets."""
DEAD, GONE = "Dead", 69
"""The state of a group that is not there, and the code GROUP_ID_NOT_FOUND."""
TYPES = tuple(DESCRIBERS)
"""The types of groups."""
SHARE = "share"


class Position(Struct, frozen=True):
    """How far a group has come in one partition."""

    offset: int | None
    """The committed offset; of a share group the start offset of the share partition."""
    leader_epoch: int | None = None
    lag: int | None = None
    """Records, if the cluster counts them itself."""


Positions = Mapping[Place, Position]


def describe_groups(
    source: DescribeSource, groups: Sequence[ListedGroup]
) -> Mapping[str, DescribedGroup | Fault]:
    """Name -> the group with its members."""
    rows: dict[str, DescribedGroup | Fault] = {}
    for api, batch, answer in _ask_coordinators(
        source, groups, lambda group: DESCRIBERS.get(group.type or TYPES[0])
    ):
        for group in batch:
            row = answer if isinstance(answer, Fault) else answer.get(group.name)
            rows[group.name] = _judge_description(api, group, row)
    for group in groups:
        if group.name not in rows:
            rows[group.name] = Fault(
                "UNKNOWN_TYPE",
                f"this version of kafkaform does not know groups of type {group.type}",
                FaultClass.DEFINITE,
                advice="upgrade kafkaform",
            )
    return {group.name: rows[group.name] for group in groups}


def read_positions(
    source: DescribeSource, groups: Iterable[ListedGroup]
) -> Mapping[str, Positions | Fault]:
    """Name -> how far the group has come, in all topics that we can see."""
    positions: dict[str, Positions | Fault] = {}
    for api, batch, answer in _ask_coordinators(source, groups, _choose_offsets):
        for group in batch:
            row = answer if isinstance(answer, Fault) else answer.get(group.name)
            if row is None:
                positions[group.name] = _make_left_out(api)
            elif isinstance(row, Fault):
                positions[group.name] = row
            elif row.code and row.code != GONE:
                positions[group.name] = fault_of(api, row.code, group.name, None, group.node)
            else:
                positions[group.name] = {
                    partition: _make_position(committed)
                    for partition, committed in row.offsets.items()
                }
    return positions


def _choose_offsets(group: ListedGroup) -> tuple[str, Callable[..., Any]]:
    # Share groups commit no offsets: the cluster moves the start of each of their partitions.
    if group.type == SHARE:
        return "DescribeShareGroupOffsets", describe_share_offsets
    return "OffsetFetch", fetch_offsets


def _make_position(committed: CommittedOffset | ShareOffset) -> Position:
    if isinstance(committed, ShareOffset):
        return Position(committed.start_offset, committed.leader_epoch, committed.lag)
    return Position(committed.offset, committed.leader_epoch)


def _ask_coordinators(
    source: DescribeSource,
    groups: Iterable[ListedGroup],
    choose: Callable[[ListedGroup], tuple[str, Callable[..., Any]] | None],
) -> list[tuple[str, Sequence[ListedGroup], Any]]:
    """API, groups and answer of each request. choose: group -> API and function, None for nothing
    to ask."""
    batches: dict[tuple[str, str, Callable[..., Any]], list[ListedGroup]] = defaultdict(list)
    for group in groups:
        chosen = choose(group)
        if chosen is not None:
            batches[group.node, chosen[0], chosen[1]].append(group)
    requests = [
        (api, batch, NodeRequest(api, node, call, ([group.name for group in batch],)))
        for (node, api, call), members in batches.items()
        for batch in cut_batches(members, GROUPS_AT_ONCE)
    ]
    answers = send_each(source, [request for _, _, request in requests])
    return [(api, batch, answer) for (api, batch, _), answer in zip(requests, answers, strict=True)]


def _judge_description(
    api: str, group: ListedGroup, row: DescribedGroup | Fault | None
) -> DescribedGroup | Fault:
    if row is None:
        return _make_left_out(api)
    if isinstance(row, Fault):
        return row
    if row.code == GONE:
        # It ended between the listing and this request.
        return DescribedGroup(0, None, DEAD)
    if row.code:
        return fault_of(api, row.code, group.name, row.message, group.node)
    if group.type is None and row.state == DEAD and group.state not in (None, DEAD):
        # Kafka 3.7 has a preview of KIP-848 and does not list types. Its DescribeGroups says of
        # groups of the new protocol what it says of missing ones.
        return Fault(
            "UNKNOWN_TYPE",
            "the broker does not list the types of groups, and this one is not classic",
            FaultClass.DEFINITE,
            api,
            "upgrade the brokers to Kafka 3.8 or newer",
        )
    return row


def _make_left_out(api: str) -> Fault:
    return Fault("NO_ANSWER", "the broker left it out of its answer", FaultClass.DEFINITE, api)
