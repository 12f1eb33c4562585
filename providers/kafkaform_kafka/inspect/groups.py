"""The document and the page of `describe groups`: groups of all types with members, offsets and
lag."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import Fault
from kafkaform.core.text import Cells, Grid, Page, inline
from kafkaform.core.value import FrozenMap, Value
from kafkaform.provider.commands import NOTHING, Answer, cell

from ..protocol.cluster_facts import KafkaFacts
from ..wire.groups import DescribedGroup, MemberRow
from ..wire.usage import CONSUMER, Place
from .cells import count
from .group_details import (
    SHARE,
    ListedGroup,
    Position,
    Positions,
    describe_groups,
    explain_missing,
    list_all_groups,
    read_positions,
)
from .source import (
    PROBLEMS,
    READ_THE_ANSWER,
    DescribeSource,
    End,
    Gap,
    add_suggestion,
    describe_fault,
    document_gap,
    read_ends,
    render_gaps,
    render_problem,
)

HIDDEN = "Kafka leaves out groups that this principal may not describe, and offsets of such topics"
OFFSETS_HIDDEN = "Kafka leaves out the offsets of topics that this principal may not describe"
CLASSIC, STREAMS = "classic", "streams"


class GroupQuery(Struct, frozen=True):
    """Which groups to describe, and what of them."""

    name: str = "*"
    """A glob."""
    exact: tuple[str, ...] = ()
    """Full names. Each of them must exist."""
    states: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    topic: str | None = None
    """A glob: only groups that use such a topic, and only what they do with it."""
    members: bool = False
    """Include the members."""
    offsets: bool = False
    """Include the offset of each partition."""


class _Group(Struct, frozen=True):
    """All that was read about one group."""

    listed: ListedGroup
    described: DescribedGroup | Fault
    positions: Positions | Fault


def read_groups(source: DescribeSource, query: GroupQuery) -> Answer:
    """The document `groups`, and an error if it lacks something. Raises KafkaformError if no group
    can be listed."""
    listing = list_all_groups(source)
    chosen = [group for group in listing.groups if _is_wanted(group, query)]
    listed_names = {group.name for group in listing.groups}
    absent = [name for name in query.exact if name not in listed_names]
    faults = explain_missing(source, absent, listing.gaps) if absent else {}
    missing = {name: add_suggestion(fault, name, listed_names) for name, fault in faults.items()}
    described, positions = describe_groups(source, chosen), read_positions(source, chosen)
    groups = [
        _narrow_group(_Group(group, described[group.name], positions[group.name]), query)
        for group in chosen
    ]
    if query.topic is not None:
        groups = [group for group in groups if _list_topics(group) or _find_fault(group)]
    ends = read_ends(source, {partition for group in groups for partition in _list_places(group)})
    rows = [
        *(_document_group(group, ends, query) for group in groups),
        *(_document_missing(name, fault) for name, fault in missing.items()),
    ]
    rights = KafkaFacts.of(source.context.facts).rights
    document = FrozenMap(
        format_version="1.0",
        kind="groups",
        cluster_id=source.context.facts.scope_id,
        groups=tuple(sorted(rows, key=lambda row: row["name"])),
        complete=False,
        hidden=OFFSETS_HIDDEN if query.exact or "Describe" in rights else HIDDEN,
        gaps=tuple(map(document_gap, listing.gaps)),
    )
    return Answer(document, _make_error(document, missing, listing.gaps))


def _is_wanted(group: ListedGroup, query: GroupQuery) -> bool:
    return (
        (not query.exact or group.name in query.exact)
        and fnmatchcase(group.name, query.name)
        and (not query.types or group.type in query.types)
        and (not query.states or group.state in query.states)
    )


def _make_error(
    document: FrozenMap, missing: Mapping[str, Fault], gaps: Sequence[Gap]
) -> KafkaformError | None:
    """What is raised after the document is shown."""
    for name, fault in missing.items():
        return KafkaformError(f'group "{inline(name)}": {fault.message}', f"{fault.advice}.")
    unread = sum(row["error"] is not None for row in document["groups"])
    if gaps or unread:
        amount = f"{unread:,} {'group' if unread == 1 else 'groups'}"
        summary = (
            "the list of groups is incomplete" if gaps else f"{amount} could not be read in full"
        )
        return KafkaformError(summary, READ_THE_ANSWER)
    return None


# ── one group ───────────────────────────────────────────────────────────────────────────


def _narrow_group(group: _Group, query: GroupQuery) -> _Group:
    """The group with only those topics that were asked for."""
    glob = query.topic
    if glob is None:
        return group
    described, positions = group.described, group.positions
    if isinstance(described, DescribedGroup):
        topics = frozenset(name for name in described.topics if fnmatchcase(name, glob))
        members = tuple(_narrow_member(entry, glob, group.listed) for entry in described.members)
        described = replace(described, topics=topics, members=members)
    if not isinstance(positions, Fault):
        positions = {
            partition: entry
            for partition, entry in positions.items()
            if fnmatchcase(partition[0], glob)
        }
    return _Group(group.listed, described, positions)


def _narrow_member(member: MemberRow, glob: str, group: ListedGroup) -> MemberRow:
    # Tasks of streams groups have numbers and no topics.
    if group.type == STREAMS:
        return member
    assigned = {
        topic: partitions
        for topic, partitions in member.assigned.items()
        if fnmatchcase(topic, glob)
    }
    return replace(member, assigned=assigned)


def _find_fault(group: _Group) -> Fault | None:
    for answer in (group.described, group.positions):
        if isinstance(answer, Fault):
            return answer
    return None


def _find_readers(group: _Group) -> Mapping[Place, MemberRow]:
    """Partition -> the member that reads it; in a share group several do, and nobody is named."""
    if isinstance(group.described, Fault) or group.listed.type in (SHARE, STREAMS):
        return {}
    return {
        (topic, number): member
        for member in group.described.members
        for topic, numbers in member.assigned.items()
        for number in numbers
    }


def _list_places(group: _Group) -> Iterator[Place]:
    if not isinstance(group.positions, Fault):
        yield from group.positions
    yield from _find_readers(group)


def _list_topics(group: _Group) -> list[str]:
    """The topics that the group reads, or of which it has offsets."""
    topics = {topic for topic, _ in _list_places(group)}
    if isinstance(group.described, DescribedGroup):
        topics |= group.described.topics
        if group.listed.type == SHARE:
            topics |= {topic for member in group.described.members for topic in member.assigned}
    return sorted(topics)


def _document_group(group: _Group, ends: Mapping[Place, End], query: GroupQuery) -> FrozenMap:
    listed, described = group.listed, group.described
    description = None if isinstance(described, Fault) else described
    offsets = tuple(_document_offsets(group, ends))
    lags = [row["lag"] for row in offsets if row["lag"] is not None]
    values: dict[str, Value] = {
        "name": listed.name,
        # Brokers before Kafka 3.8 do not list types; they describe only classic groups.
        "type": listed.type or (CLASSIC if description else None),
        "protocol": listed.protocol,
        "state": description.state if description else listed.state,
        "coordinator": int(listed.node),
        "assignor": description.assignor if description else None,
        "epoch": description.epoch if description else None,
        "member_count": len(description.members) if description else None,
        "topics": None if _find_fault(group) else tuple(_list_topics(group)),
        "lag": sum(lags) if lags else None,
        "lag_complete": len(lags) == len(offsets) and not isinstance(group.positions, Fault),
        "error": describe_fault(_find_fault(group)),
    }
    if query.members:
        values["members"] = (
            None
            if description is None
            else tuple(
                _document_member(member, listed, description.state)
                for member in description.members
            )
        )
    if query.offsets:
        values["offsets"] = None if isinstance(group.positions, Fault) else offsets
    return FrozenMap(values)


def _document_missing(name: str, fault: Fault) -> FrozenMap:
    """A group that was named and cannot be found or seen."""
    unknown = ("type", "protocol", "state", "coordinator", "assignor", "epoch", "member_count")
    values = dict.fromkeys((*unknown, "topics", "lag"))
    return FrozenMap(name=name, **values, lag_complete=False, error=describe_fault(fault))


def _document_member(member: MemberRow, group: ListedGroup, state: str) -> FrozenMap:
    values: dict[str, Value] = {
        "member_id": member.member_id,
        "client_id": member.client_id,
        "host": member.host,
        "instance_id": member.instance_id,
        "rack": member.rack,
    }
    if group.type == STREAMS:
        tasks = {"active": member.assigned, "standby": member.standby, "warmup": member.warmup}
        values["tasks"] = FrozenMap(
            {
                # As Kafka Streams writes the id of a task.
                role: tuple(
                    f"{sub}_{n}" for sub, ns in sorted(subtopologies.items()) for n in sorted(ns)
                )
                for role, subtopologies in tasks.items()
            }
        )
        return FrozenMap(values)
    rows = tuple(
        FrozenMap(topic=topic, partitions=tuple(sorted(numbers)))
        for topic, numbers in sorted(member.assigned.items())
    )
    return FrozenMap(**values, assignment=rows if _tells_assignment(group, state) else None)


def _tells_assignment(group: ListedGroup, state: str) -> bool:
    """Whether a group without assigned partitions reads none."""
    # DescribeGroups has the assignments of a stable group only. Of groups that are no consumers,
    # such as those of Kafka Connect, nobody but their members can read them.
    if group.type not in (None, CLASSIC):
        return True
    return state == "Stable" and group.protocol == CONSUMER


def _document_offsets(group: _Group, ends: Mapping[Place, End]) -> Iterator[FrozenMap]:
    """One row for each partition that has an offset or a reader."""
    positions = {} if isinstance(group.positions, Fault) else group.positions
    readers = _find_readers(group)
    name = "start_offset" if group.listed.type == SHARE else "committed_offset"
    for partition in sorted({*positions, *readers}):
        position, end = positions.get(partition, Position(None)), ends.get(partition, End(None))
        lag, problem = _measure_lag(position, end, group.listed.type == SHARE)
        reader = readers.get(partition)
        yield FrozenMap(
            {
                "topic": partition[0],
                "partition": partition[1],
                name: position.offset,
                "leader_epoch": position.leader_epoch,
                "end_offset": end.offset,
                "lag": lag,
                "problem": problem,
                "member_id": reader.member_id if reader else None,
                "client_id": reader.client_id if reader else None,
            }
        )


def _measure_lag(position: Position, end: End, shared: bool) -> tuple[int | None, str | None]:
    """The lag in records, and what is wrong."""
    # In a share group, records after the start offset may be done with already. So only the cluster
    # can count the others (KIP-1226).
    if shared:
        return position.lag, end.problem
    if position.offset is None or end.offset is None:
        return None, end.problem
    # The offset was read before the end, so that it can only be larger if the log was cut off.
    return max(0, end.offset - position.offset), (
        "ahead_of_end" if position.offset > end.offset else end.problem
    )


_TOPICS_SHOWN = 3
"""Topics that a row of the list names, before it counts them."""
_HEAD = ("Group", "Type", "State", "Members", "Coordinator", "Lag", "Topics")
_MEMBER_HEAD = ("Client", "Host", "Instance", "Member", "Reads")


def groups_page(document: FrozenMap) -> Page:
    """The page of the document `groups`."""
    groups = document["groups"]
    if groups:
        yield Grid((_HEAD, *map(_list_cells, groups)), frozenset({3, 4, 5}), "Groups")
    details = [line for group in groups for line in _render_details(group)]
    yield from (*details, "") if details else ()
    yield f"{count(len(groups), 'group')}."
    for group in groups:
        if group["error"] is not None:
            yield f"{group['name']}: {render_problem(group['error'])}"
    yield from render_gaps(document)


def _list_cells(group: FrozenMap) -> Cells:
    return (
        group["name"],
        cell(group["type"]),
        cell(group["state"]),
        cell(group["member_count"]),
        cell(group["coordinator"]),
        _render_lag(group),
        _render_topics(group["topics"]),
    )


def _render_lag(group: FrozenMap) -> str:
    if group["lag"] is None:
        return NOTHING
    return f"{'' if group['lag_complete'] else 'at least '}{group['lag']:,}"


def _render_topics(topics: tuple[str, ...] | None) -> str:
    if topics is None or len(topics) <= _TOPICS_SHOWN:
        return cell(topics)
    return f"{cell(topics[:_TOPICS_SHOWN])} and {len(topics) - _TOPICS_SHOWN:,} more"


def _render_details(group: FrozenMap) -> Page:
    members, offsets = group.get("members"), group.get("offsets")
    if members is not None:
        yield ""
        assignor = f" (assignor {group['assignor']})" if group["assignor"] else ""
        yield f"Members of {group['name']}{assignor}"
        if members:
            yield Grid((_MEMBER_HEAD, *map(_member_cells, members)))
        else:
            yield "  It has no members."
    if offsets is not None:
        yield ""
        yield f"Offsets of {group['name']}"
        if offsets:
            yield _make_offset_grid(offsets)
        else:
            yield "  There are none that we can see."


def _member_cells(member: FrozenMap) -> Cells:
    return (
        cell(member["client_id"]),
        cell(member["host"]),
        cell(member["instance_id"]),
        cell(member["member_id"]),
        _render_reads(member),
    )


def _render_reads(member: FrozenMap) -> str:
    """What the member reads: `orders 0,1`, or the tasks of a streams application."""
    if "tasks" in member:
        sources = [f"{role} {cell(tasks)}" for role, tasks in member["tasks"].items() if tasks]
    elif member["assignment"] is None:
        return NOTHING
    else:
        sources = [f"{row['topic']} {cell(row['partitions'])}" for row in member["assignment"]]
    return "; ".join(sources) or "nothing"


def _make_offset_grid(offsets: tuple[FrozenMap, ...]) -> Grid:
    """The offsets; the column of problems only if there are any."""
    shared = "start_offset" in offsets[0]
    sick = any(row["problem"] for row in offsets)
    head = ("Topic", "Partition", "Start" if shared else "Committed", "End", "Lag", "Epoch")
    columns = (*(() if shared else ("Client",)), *(("Problem",) if sick else ()))
    rows = [
        (
            row["topic"],
            cell(row["partition"]),
            cell(row["start_offset" if shared else "committed_offset"]),
            cell(row["end_offset"]),
            cell(row["lag"]),
            cell(row["leader_epoch"]),
            *(() if shared else (cell(row["client_id"]),)),
            *((PROBLEMS.get(row["problem"] or "", ""),) if sick else ()),
        )
        for row in offsets
    ]
    return Grid(((*head, *columns), *rows), frozenset({1, 2, 3, 4, 5}))
