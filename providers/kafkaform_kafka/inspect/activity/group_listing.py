"""List the groups of all brokers, with what the list lacks."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from kafkaform.core.resource import Fault, FaultClass

from ...cluster.context import live_nodes
from ...protocol.faults import fault_of
from ...wire.groups import describe_classic_groups
from ...wire.usage import list_groups
from ..source import DescribeSource
from .gaps import Gap, explain_gap, find_leaderless
from .node_requests import ask_all_brokers

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
    found = {
        row.name: ListedGroup(
            row.name, row.type.lower() if row.type else None, row.protocol, row.state, node
        )
        for node, answer in answers.items()
        for row in answer.groups
    }
    gaps += find_leaderless(source, GROUPS_TOPIC, "groups")
    return GroupListing(tuple(found[name] for name in sorted(found)), tuple(gaps))


def explain_missing(
    source: DescribeSource, names: Sequence[str], gaps: Sequence[Gap]
) -> dict[str, Fault]:
    """Name -> why a group that somebody has named is in no list."""
    # DescribeGroups checks the right on the group before it looks for the group, at every broker.
    # FindCoordinator would tell the same, but it can create Kafka's topic of groups.
    node = next(iter(live_nodes(source.context)), "")
    answer = source.ask("DescribeGroups", describe_classic_groups, names, node, node=node)
    found: dict[str, Fault] = {}
    for name in names:
        row = None if isinstance(answer, Fault) else answer.get(name)
        if isinstance(answer, Fault):
            found[name] = answer
        elif row is not None and row.code == _DENIED:
            found[name] = fault_of("DescribeGroups", _DENIED, name)
        elif gaps:
            found[name] = explain_gap(gaps[0])
        else:
            found[name] = Fault(
                "GROUP_ID_NOT_FOUND",
                "there is no such group",
                FaultClass.DEFINITE,
                advice="`kafkaform describe groups` lists all; a group exists as long as it has "
                "members or offsets",
            )
    return found
