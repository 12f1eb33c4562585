"""Who reads the topics of dangerous changes: groups of all protocols, with their lag in records and
in time, and with what they have not read of the records that go."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from kafkaform.core.change import Change
from kafkaform.core.finding import AccessRow, Finding, Level
from kafkaform.core.resource import Fault, Identity
from kafkaform.core.text import render_count, render_quantity, render_span
from kafkaform.core.value import FrozenMap, Value

from ..inspect.group_details import (
    SHARE,
    ListedGroup,
    Positions,
    describe_groups,
    list_all_groups,
    read_positions,
)
from ..inspect.group_details import Position as GroupPosition
from ..inspect.source import Gap, NodeRequest, find_leaders, send_each
from ..protocol.cluster_facts import KafkaFacts
from ..rules.looks import ACCESS_USED, READERS, UNREAD_LOST
from ..wire.cluster import read_log_sizes
from ..wire.groups import DescribedGroup, list_read_topics
from ..wire.usage import CLASSIC, CONSUMER, EARLIEST, LATEST, DatedOffset, Place
from .inquiry import (
    Inquiry,
    Position,
    Sighting,
    Target,
    ask_offsets,
    date_positions,
    render_gap,
)

GROUPS_NAMED = 3
"""Groups that a sentence names before it counts them."""
CLIENTS_NAMED = 3
_IDLE = (None, "Empty", "Dead")
"""States of groups without members."""
HIDDEN = "groups that this principal may not describe"


class Reader(Struct, frozen=True):
    """One group, and how far it has come in one topic."""

    group: str
    members: int | None
    """None if nobody says."""
    lag: int | None = None
    """Records; None if nobody says."""
    unread: int = 0
    """Records that it has not read and that the change deletes."""
    position: Position | None = None
    """The first unread record of the partition in which it is most behind."""
    loss: Position | None = None
    """The same of the partition in which it loses most."""
    by_size: bool = False
    """The size of that partition decides what goes, and not the age."""


class Groups(Struct, frozen=True):
    """All groups that matter, as they were read."""

    listed: Sequence[ListedGroup]
    positions: Mapping[tuple[str, str], Positions]
    """Group and topic -> how far it has come there."""
    described: Mapping[str, DescribedGroup]
    """Group -> its members."""
    topics: Mapping[str, frozenset[str]]
    """Group -> the topics that it reads now, or of which it has offsets."""
    of_topics: Mapping[str, Sequence[ListedGroup]]
    """Topic -> these groups."""
    gaps: tuple[Gap, ...]
    hides_others: bool
    """There may be groups that this principal may not describe."""

    def count_members(self, name: str) -> int | None:
        group = self.described.get(name)
        return None if group is None else len(group.members)


class Logs(Struct, frozen=True):
    """The offsets of partitions."""

    leaders: Mapping[Place, int]
    ends: Mapping[Place, DatedOffset]
    starts: Mapping[Place, DatedOffset]
    cut_ends: Mapping[Place, int]
    """The first offset that the change keeps, of partitions from which it deletes something."""
    cut_by_size: frozenset[Place]
    """Partitions of which the size decides that, and not the age."""


class ReaderSurvey(Struct, frozen=True):
    """Who reads the topics of an inquiry."""

    groups: Groups
    readers: Sequence[Sequence[Reader]]
    """Of each target: those that lose most first, then those with members."""
    ages: Mapping[Position, int]
    """Position -> age of its record in milliseconds, of the readers that are named."""


def survey_readers(
    inquiry: Inquiry, named: int = GROUPS_NAMED, *, every: bool = False
) -> ReaderSurvey:
    """The readers of the targets. named: the readers of a target whose time is found out; every:
    read also the groups that have nothing to do with the targets."""
    topics = frozenset(target.topic for target in inquiry.targets)
    groups = _read_groups(inquiry, topics, every=every)
    logs = _read_logs(inquiry, groups)
    readers = [_measure_readers(target, groups, logs) for target in inquiry.targets]
    undated = dict.fromkeys(_list_undated([rows[:named] for rows in readers]))
    ages = date_positions(inquiry.source, logs.leaders, list(undated), inquiry.now)
    return ReaderSurvey(groups, readers, ages)


def look_at_readers(inquiry: Inquiry) -> Sighting:
    """The groups that read the topics, and those that use what a lost right is about."""
    closed = [change for change in inquiry.changes if change.losses]
    if not inquiry.targets and not closed:
        return Sighting(is_blank=True)
    survey = survey_readers(inquiry, every=bool(closed))
    findings = [
        (target.change.identity, finding)
        for target, rows in zip(inquiry.targets, survey.readers, strict=True)
        if rows
        for finding in _describe_readers(target, rows, survey.ages)
    ]
    findings += [pair for change in closed for pair in _find_closed(change, survey.groups)]
    hidden = (HIDDEN,) if survey.groups.hides_others else ()
    return Sighting(tuple(findings), (*map(render_gap, survey.groups.gaps), *hidden))


# ── groups ──────────────────────────────────────────────────────────────────────────────


def _read_groups(inquiry: Inquiry, topics: frozenset[str], *, every: bool) -> Groups:
    """every: also what is not about these topics."""
    source = inquiry.source
    listing = list_all_groups(source)
    # Groups also divide other work, such as that between the workers of Kafka Connect.
    readers = [
        group
        for group in listing.groups
        if group.protocol in ("", CONSUMER) or group.type not in (None, CLASSIC)
    ]
    answers = read_positions(source, readers)
    positions: dict[tuple[str, str], dict[Place, GroupPosition]] = defaultdict(dict)
    committed: dict[str, set[str]] = defaultdict(set)
    for name, answer in answers.items():
        for partition, position in () if isinstance(answer, Fault) else answer.items():
            if every or partition[0] in topics:
                positions[name, partition[0]][partition] = position
                committed[name].add(partition[0])
    concerned = [group for group in readers if committed[group.name] or group.state not in _IDLE]
    descriptions = describe_groups(source, concerned)
    gaps = (
        *listing.gaps,
        *_count_faults("the offsets of {}", answers.values()),
        *_count_faults("the members of {}", descriptions.values()),
    )
    hides_others = "Describe" not in KafkaFacts.of(source.context.facts).rights
    described = {name: row for name, row in descriptions.items() if not isinstance(row, Fault)}
    topics_read: dict[str, frozenset[str]] = {}
    of_topics: dict[str, list[ListedGroup]] = defaultdict(list)
    for group in concerned:
        row = described.get(group.name)
        assigned = list_read_topics(row, group.type or CLASSIC) if row else frozenset[str]()
        topics_read[group.name] = assigned | committed[group.name]
        for topic in topics_read[group.name]:
            of_topics[topic].append(group)
    return Groups(concerned, positions, described, topics_read, of_topics, gaps, hides_others)


def _count_faults(subject: str, answers: Iterable[object]) -> Iterator[Gap]:
    """One gap for each cause. subject: what is missing of the groups."""
    faults: dict[str, list[Fault]] = defaultdict(list)
    for answer in answers:
        if isinstance(answer, Fault):
            faults[answer.message].append(answer)
    for group_faults in faults.values():
        yield Gap(subject.format(render_count(len(group_faults), "group")), group_faults[0])


# ── offsets ─────────────────────────────────────────────────────────────────────────────


def _read_logs(inquiry: Inquiry, groups: Groups) -> Logs:
    """The offsets of all partitions in which these groups have come somewhere."""
    source, now = inquiry.source, inquiry.now
    # Of two changes of one topic, the graver one comes first.
    targets = {target.topic: target for target in reversed(inquiry.targets)}
    partitions = {
        partition
        for (_, topic), rows in groups.positions.items()
        if topic in targets
        for partition in rows
    }
    leaders, _ = find_leaders(source, sorted(partitions))
    cuts = {
        partition: now - limit
        for partition in leaders
        if (limit := targets[partition[0]].retention.ms) is not None
    }
    sized = {
        partition for partition in leaders if targets[partition[0]].retention.bytes is not None
    }
    ends, starts, dated = ask_offsets(
        source, leaders, (dict.fromkeys(leaders, LATEST), dict.fromkeys(leaders, EARLIEST), cuts)
    )
    cut_ends: dict[Place, int] = {}
    for partition, row in dated.items():
        if partition in ends:
            cut_ends[partition] = ends[partition].offset if row.offset < 0 else row.offset
    sizes = _read_sizes(inquiry, sized) if sized else {}
    cut_by_size = set()
    for partition in sized:
        limit = targets[partition[0]].retention.bytes
        if partition in sizes and partition in ends and partition in starts and limit is not None:
            first, end = starts[partition].offset, ends[partition].offset
            # As if all records were equally large: brokers tell no offset of a size.
            share = max(0, sizes[partition] - limit) / sizes[partition] if sizes[partition] else 0
            by_size = first + int((end - first) * share)
            if by_size > cut_ends.get(partition, 0):
                cut_ends[partition] = by_size
                cut_by_size.add(partition)
    return Logs(leaders, ends, starts, cut_ends, frozenset(cut_by_size))


def _read_sizes(inquiry: Inquiry, partitions: Iterable[Place]) -> Mapping[Place, int]:
    """Partition -> bytes of its largest replica; nothing of brokers that do not answer."""
    counts: dict[str, int] = defaultdict(int)
    for topic, number in partitions:
        counts[topic] = max(counts[topic], number + 1)
    requests = [
        NodeRequest("DescribeLogDirs", node, read_log_sizes, (counts,))
        for node in inquiry.source.list_brokers()
    ]
    sizes: dict[Place, int] = defaultdict(int)
    for answer in send_each(inquiry.source, requests):
        for log in () if isinstance(answer, Fault) or answer is None else answer:
            partition = (log.topic, log.partition)
            sizes[partition] = max(sizes[partition], log.size)
    return sizes


# ── who reads a topic ───────────────────────────────────────────────────────────────────


def _measure_readers(target: Target, groups: Groups, logs: Logs) -> list[Reader]:
    """The groups of a topic: those that lose most first, then those with members."""
    readers = [
        _measure_reader(group, target, groups, logs)
        for group in groups.of_topics.get(target.topic, ())
    ]
    return sorted(
        readers, key=lambda row: (-row.unread, not row.members, -(row.lag or 0), row.group)
    )


def _measure_reader(group: ListedGroup, target: Target, groups: Groups, logs: Logs) -> Reader:
    lags: list[int | None] = []
    behind: list[tuple[int, Position]] = []
    losses: list[tuple[int, Position]] = []
    for partition, position in groups.positions.get((group.name, target.topic), {}).items():
        if position.offset is None:
            continue
        end, start = logs.ends.get(partition), logs.starts.get(partition)
        if end is None or start is None:
            lags.append(None)
            continue
        distance = max(0, end.offset - position.offset)
        # In a share group, records after the start offset may be done with already.
        lags.append(position.lag if group.type == SHARE else distance)
        first = max(position.offset, start.offset)
        behind.append((end.offset - first, (partition, first)))
        cut_end = end.offset if target.deleted else logs.cut_ends.get(partition, 0)
        losses.append((max(0, cut_end - first), (partition, first)))
    most_behind = max(behind, default=(0, None), key=lambda row: row[0])
    unread = sum(number for number, _ in losses)
    largest = max(losses, default=(0, None), key=lambda row: row[0])
    return Reader(
        group.name,
        groups.count_members(group.name),
        sum(lag for lag in lags if lag is not None) if lags and None not in lags else None,
        unread,
        most_behind[1] if most_behind[0] > 0 else None,
        largest[1] if unread else None,
        largest[1] is not None and largest[1][0] in logs.cut_by_size,
    )


def _list_undated(readers: Sequence[Sequence[Reader]]) -> Iterator[Position]:
    """The positions whose time the sentences tell: first those of what is lost."""
    rows = [row for topic_readers in readers for row in topic_readers]
    yield from (row.loss for row in rows if row.loss is not None)
    yield from (row.position for row in rows if row.position is not None)


# ── findings ────────────────────────────────────────────────────────────────────────────

Ages = Mapping[Position, int]
"""Position -> age of its record in milliseconds."""


def _describe_readers(target: Target, readers: Sequence[Reader], ages: Ages) -> Iterator[Finding]:
    losers = [row for row in readers if row.unread]
    if losers:
        named = [_render_loss(row, target, ages) for row in losers[:GROUPS_NAMED]]
        figures: dict[str, Value] = {
            "groups": tuple(row.group for row in losers),
            "unread_records": tuple(f"{row.group}={row.unread}" for row in losers),
            "most_unread_records": losers[0].unread,
        }
        yield UNREAD_LOST.find(
            f"{target.prefix}{'; '.join(named)}{_count_remainder(losers)}",
            figures=FrozenMap(figures),
            level=Level.DANGER if any(row.members for row in losers) else Level.CAUTION,
        )
    named = [_render_reader(row, ages) for row in readers[:GROUPS_NAMED]]
    alive = any(row.members for row in readers)
    verbs = ("reads it", "read it") if alive else ("has offsets in it", "have offsets in it")
    ages_behind = [age for row in readers if row.position and (age := ages.get(row.position))]
    lags = [row.lag for row in readers if row.lag is not None]
    figures = {
        "groups": tuple(row.group for row in readers),
        "members": sum(row.members or 0 for row in readers),
        **({"lag_records": max(lags)} if lags else {}),
        **({"lag_seconds": max(ages_behind) // 1000} if ages_behind else {}),
    }
    yield READERS.find(
        f"{target.prefix}{render_count(len(readers), 'group')} {verbs[len(readers) > 1]}: "
        f"{', '.join(named)}{_count_remainder(readers)}",
        figures=FrozenMap(figures),
        level=Level.CAUTION if target.deleted and alive else None,
    )


def _count_remainder(groups: Sequence[object]) -> str:
    number = len(groups) - GROUPS_NAMED
    return f", and {number:,} more" if number > 0 else ""


def _render_reader(row: Reader, ages: Ages) -> str:
    """`billing (3 members, 18,400 records and about 2 h 10 min behind)`."""
    members = "members unknown" if row.members is None else render_count(row.members, "member")
    if row.members == 0:
        members = "no members"
    return f"{row.group} ({members}, {_render_lag(row, ages)})"


def _render_lag(row: Reader, ages: Ages) -> str:
    if row.lag is None:
        return "lag unknown"
    age = ages.get(row.position) if row.position else None
    records = render_count(row.lag, "record")
    return f"{records} behind" if age is None else f"{records} and {render_age(age)} behind"


def render_age(milliseconds: int) -> str:
    """`about 2 h 10 min`."""
    return f"about {render_span(round(milliseconds / 1000))}"


def _render_loss(row: Reader, target: Target, ages: Ages) -> str:
    """`billing is about 2 h 10 min behind: retention of 1 h deletes about 1 h 10 min, 18,400
    records, that it has not read`."""
    age = ages.get(row.loss) if row.loss else None
    start = f"{row.group} is {render_age(age)} behind: " if age is not None else f"{row.group}: "
    limit = target.retention.ms
    time = ""
    if target.deleted:
        cause = "the deletion takes"
    elif row.by_size or limit is None:
        cause = f"retention of {render_quantity(target.retention.bytes, 'bytes')} deletes"
    else:
        cause = f"retention of {render_quantity(limit, 'ms') or '0 s'} deletes"
        time = f"{render_age(age - limit)}, " if age is not None and age > limit else ""
    return f"{start}{cause} {time}{render_count(row.unread, 'record')} that it has not read"


# ── lost rights ─────────────────────────────────────────────────────────────────────────


def _find_closed(change: Change, groups: Groups) -> Iterator[tuple[Identity, Finding]]:
    """The groups that use what somebody loses a right to."""
    users = []
    for group in groups.listed:
        if not groups.count_members(group.name):
            continue
        topics = groups.topics[group.name]
        rights = [f"Read on Group {group.name}", *(f"Read on Topic {topic}" for topic in topics)]
        if any(row.covers(right) for row in change.losses for right in rights):
            users.append(group.name)
    if users:
        named = [f"{name} ({_render_clients(groups.described[name])})" for name in users]
        text = f"{', '.join(named[:GROUPS_NAMED])}{_count_remainder(users)}"
        yield (
            change.identity,
            ACCESS_USED.find(
                f"{render_count(len(users), 'group')} with members "
                f"{'uses' if len(users) == 1 else 'use'} what {_name_losers(change.losses)} loses: "
                f"{text}; brokers do not show the principals of members",
                figures=FrozenMap(groups=tuple(users)),
            ),
        )


def _name_losers(rows: Sequence[AccessRow]) -> str:
    principals = sorted({row.principal for row in rows})
    return principals[0] if len(principals) == 1 else "somebody"


def _render_clients(group: DescribedGroup) -> str:
    clients = sorted({f"{member.client_id} at {member.host}" for member in group.members})
    remainder = f" and {len(clients) - CLIENTS_NAMED} more" if len(clients) > CLIENTS_NAMED else ""
    return f"{', '.join(clients[:CLIENTS_NAMED])}{remainder}"
