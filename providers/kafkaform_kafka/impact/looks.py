"""All looks at those whom dangerous changes hit, side by side, until a deadline; and the same looks
at topics, groups and disks for people who ask for them without a change."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import NamedTuple

from kafkaform.core.change import Action, Change
from kafkaform.core.errors import KafkaformError, OtherSystem, UsageError
from kafkaform.core.finding import Finding
from kafkaform.core.parallel import map_parallel
from kafkaform.core.resource import Fault, FaultClass, Identity
from kafkaform.core.secret import mask_secrets
from kafkaform.core.text import Page, Prose, make_sentence, render_count
from kafkaform.core.value import FrozenMap, Value
from kafkaform.provider.commands import (
    NOTHING,
    Answer,
    Column,
    Command,
    CommandGroup,
    Question,
    cell,
    make_grid,
    render_field,
)
from kafkaform.provider.contract import LookBounds, Session

from ..capacity.amounts import compute_costs, find_rates
from ..capacity.projection import NO_GROWTH, Disk, LogGrowth, Place
from ..capacity.readings import (
    measure_partitions,
    read_disks,
    read_forecast,
    read_growth,
    read_settings,
)
from ..inspect.broker_disks import DISK_COLUMNS, RIGHT_COLUMNS, document_disks, render_disks
from ..inspect.groups import GroupQuery, groups_page, read_groups
from ..inspect.source import (
    DescribeSource,
    Gap,
    describe_fault,
    document_gap,
    make_read_error,
    render_problem,
)
from ..kinds.context import ClusterContext
from ..kinds.topic.configs import KIND as TOPIC_CONFIG
from ..kinds.topic.resource_type import KIND as TOPIC
from ..protocol.faults import fault_of
from ..rules.groups import GROUP as GROUP_CONFIG
from ..rules.looks import USERS_UNSEEN, find_costs, find_exceeded_limits, find_full_disks
from ..wire.describe import describe_brokers
from ..wire.topics import TopicRow, list_topics
from .inquiry import Inquiry, Position, Sighting, Target, list_targets
from .readers import (
    HIDDEN,
    Reader,
    look_at_readers,
    render_age,
    survey_readers,
)
from .writers import look_at_keys, look_at_writers, render_writing, survey_writers


def look_at_disks(inquiry: Inquiry) -> Sighting:
    """The disks and brokers that get more by the changes, if they may not hold it; and what the
    changes cost."""
    facts = inquiry.source.context.facts
    forecast = read_forecast(inquiry.source, inquiry.changes, inquiry.objects)
    rates = find_rates(facts)
    findings: list[tuple[Identity | None, Finding]] = []
    if forecast is not None:
        findings += [*find_full_disks(forecast), *find_exceeded_limits(forecast, facts)]
    if rates is not None:
        costs = compute_costs(forecast, inquiry.changes, facts)
        findings += find_costs(costs, rates.currency)
    if forecast is None:
        return Sighting(tuple(findings), is_blank=True)
    return Sighting(tuple(findings), forecast.gaps)


LOOKS: Mapping[str, Callable[[Inquiry], Sighting]] = {
    "disks": look_at_disks,
    "keys": look_at_keys,
    "readers": look_at_readers,
    "writers": look_at_writers,
}
"""What a look is about -> the look."""


def find_consequences(
    session: Session, changes: Sequence[Change], bounds: LookBounds
) -> Sequence[tuple[Identity | None, Finding]]:
    """Whom these changes hit, as a `ConsequenceFinder` says it."""
    context = getattr(session, "context", None)
    # The users of a simulated cluster exist in nobody's mind.
    if not isinstance(context, ClusterContext):
        return ()
    targets = list_targets(changes, context.facts)
    inquiry = Inquiry(
        _open_source(session, context, bounds),
        changes,
        targets[: bounds.objects],
        int(time.time() * 1000),
        bounds.objects,
        bounds.sample,
    )
    sightings = map_parallel(partial(_look, inquiry), LOOKS, len(LOOKS))
    if not all(sighting.is_blank for sighting in sightings):
        # A proxy may have led an open connection to another cluster meanwhile.
        session.prove()
    gaps = list(dict.fromkeys(gap for sighting in sightings for gap in sighting.gaps))
    if len(inquiry.targets) < len(targets):
        gaps.insert(0, f"{len(targets) - len(inquiry.targets):,} of {len(targets):,} topics")
    findings = [pair for sighting in sightings for pair in sighting.findings]
    if not gaps:
        return findings
    return [*findings, (None, USERS_UNSEEN.find(f"not looked at: {'; '.join(gaps)}"))]


def _open_source(session: Session, context: ClusterContext, bounds: LookBounds) -> DescribeSource:
    deadline = None if bounds.seconds is None else time.monotonic() + bounds.seconds
    return DescribeSource(context, session.sweep, deadline)


def _look(inquiry: Inquiry, subject: str) -> Sighting:
    """What a look sees. One that fails says so, and the others go on."""
    try:
        return LOOKS[subject](inquiry)
    except OtherSystem:
        raise
    except KafkaformError as error:
        return Sighting(gaps=(f"{subject}: {mask_secrets(error.message)}",))


# ── looks that people ask for ───────────────────────────────────────────────────────────

GROUPS_DATED = 20
"""Groups of a topic whose lag in time is found out."""
GROUPS_SHOWN = 100


def ask_topics(keys: Sequence[str], bounds: LookBounds) -> Question:
    """Who reads and writes it now, and how much room it takes."""

    def read(source: DescribeSource) -> FrozenMap:
        answer = source.ask("Metadata", list_topics, tuple(keys))
        if isinstance(answer, Fault):
            raise make_read_error(answer)
        rows = [row for row in answer if not row.code]
        targets = [_make_target(source, row.name) for row in rows]
        inquiry = Inquiry(source, (), targets, int(time.time() * 1000))
        surveys: Mapping[str, Callable[[], _SurveyAnswer]] = {
            "who reads it": partial(_document_readers, inquiry),
            "who writes to it": partial(_document_writers, inquiry),
            "the room that it takes": partial(_document_room, source, rows),
        }
        answers = map_parallel(partial(_survey, surveys), surveys, len(surveys))
        errors = {row.name: fault_of("Metadata", row.code, row.name) for row in answer if row.code}
        return FrozenMap(
            topics=tuple(_document_topic(row, answers) for row in rows),
            unread=tuple(
                FrozenMap(name=name, error=describe_fault(error)) for name, error in errors.items()
            ),
            hides_groups=any(survey.hides_groups for survey in answers),
            gaps=tuple(gap for survey in answers for gap in survey.gaps),
        )

    return _make_question(read, _render_topics, bounds)


def _make_target(source: DescribeSource, topic: str) -> Target:
    identity = Identity(source.context.instance, TOPIC, topic)
    return Target(Change(identity, topic, Action.NOOP), topic)


def ask_groups(keys: Sequence[str], bounds: LookBounds) -> Question:
    """The members of the group now, and how far it has come."""
    query = GroupQuery(exact=tuple(keys), members=True, offsets=True)
    return _make_question(lambda source: read_groups(source, query).document, groups_page, bounds)


def ask_disks(keys: Sequence[str], bounds: LookBounds) -> Question:
    """How full the disks of the brokers are, how fast they fill, and when they are full."""

    def read(source: DescribeSource) -> FrozenMap:
        brokers = source.ask("DescribeCluster", describe_brokers)
        if isinstance(brokers, Fault):
            raise make_read_error(brokers)
        rows = [FrozenMap(id=row.id, fenced=row.fenced) for row in brokers]
        fenced = tuple(row.id for row in brokers if row.fenced)
        return FrozenMap(document_disks(source, rows), fenced=fenced)

    return _make_question(read, _render_brokers, bounds)


def _render_brokers(document: FrozenMap) -> Page:
    yield from render_disks(document)
    for broker in document["fenced"]:
        yield f"Broker {broker} is fenced: it does not serve, and its disks are unknown."


GROUP = CommandGroup(
    "kafka",
    "Look at who uses the cluster now.",
    (
        Command(TOPIC, ask_topics),
        Command(TOPIC_CONFIG, ask_topics),
        Command(GROUP_CONFIG, ask_groups),
        Command("", ask_disks),
    ),
)
"""The looks of `serve --live` and `lsp --live`, by type; without one, at the whole cluster."""


def _make_question(
    read: Callable[[DescribeSource], FrozenMap],
    page: Callable[[FrozenMap], Page],
    bounds: LookBounds,
) -> Question:
    def answer(session: Session) -> Answer:
        context = getattr(session, "context", None)
        if not isinstance(context, ClusterContext):
            raise UsageError("nobody uses a simulated cluster", "Look at a real one.")
        document = read(_open_source(session, context, bounds))
        # A proxy may have led an open connection to another cluster meanwhile.
        session.prove()
        return Answer(document)

    return Question(answer, page)


class _SurveyAnswer(NamedTuple):
    """What one survey adds to the document of topics."""

    members: Mapping[str, Mapping[str, Value]]
    """Topic -> members of its document."""
    gaps: Sequence[FrozenMap]
    hides_groups: bool = False


def _survey(surveys: Mapping[str, Callable[[], _SurveyAnswer]], subject: str) -> _SurveyAnswer:
    """What a survey shows. One that fails says so, and the others go on."""
    try:
        return surveys[subject]()
    except OtherSystem:
        raise
    except KafkaformError as error:
        gap = {"what": subject, "code": "", "message": error.message, "advice": error.advice}
        return _SurveyAnswer({}, (FrozenMap(gap),))


def _document_topic(row: TopicRow, answers: Iterable[_SurveyAnswer]) -> FrozenMap:
    """What no survey knows is None."""
    values: dict[str, Value] = {
        "name": row.name,
        "partitions": len(row.replicas),
        "leaderless": row.leaderless,
        **dict.fromkeys(("groups", "producers", "newest_record_ms", "disks")),
    }
    for survey in answers:
        values |= survey.members.get(row.name, {})
    return FrozenMap(values)


def _document_readers(inquiry: Inquiry) -> _SurveyAnswer:
    survey = survey_readers(inquiry, GROUPS_DATED)
    gaps = tuple(map(document_gap, survey.groups.gaps))
    members = {
        target.topic: {"groups": tuple(_document_reader(reader, survey.ages) for reader in rows)}
        for target, rows in zip(inquiry.targets, survey.readers, strict=True)
    }
    return _SurveyAnswer(members, gaps, survey.groups.hides_others)


def _document_reader(reader: Reader, ages: Mapping[Position, int]) -> FrozenMap:
    return FrozenMap(
        group=reader.group,
        members=reader.members,
        lag_records=reader.lag,
        lag_ms=ages.get(reader.position) if reader.position else None,
    )


def _document_writers(inquiry: Inquiry) -> _SurveyAnswer:
    survey = survey_writers(inquiry)
    members = {
        topic: {"producers": writing.producers, "newest_record_ms": writing.newest}
        for topic, writing in survey.writing.items()
    }
    return _SurveyAnswer(members, tuple(map(document_gap, survey.gaps)))


def _document_room(source: DescribeSource, rows: Sequence[TopicRow]) -> _SurveyAnswer:
    """What the topics take on each disk that has a part of them."""
    brokers = {broker for row in rows for replicas in row.replicas for broker in replicas}
    live = source.list_brokers()
    advice = f"start it; the live brokers are {', '.join(live)}"
    down = Fault("BROKER_NOT_AVAILABLE", "it is not live", FaultClass.NOT_APPLIED, advice=advice)
    dead = {broker: down for broker in brokers if str(broker) not in live}
    topics = {row.name: len(row.replicas) for row in rows}
    reading = read_disks(source, brokers - dead.keys(), topics)
    settings = read_settings(source, [row.name for row in rows])
    growth = read_growth(source, rows, settings, measure_partitions(reading.disks))
    gaps = [
        document_gap(Gap(f"the disks of broker {broker}", fault, str(broker)))
        for broker, fault in sorted({**dead, **reading.faults}.items())
    ]
    members = {
        row.name: {"disks": tuple(_document_disks(row.name, reading.disks, growth))} for row in rows
    }
    return _SurveyAnswer(members, gaps)


def _document_disks(
    topic: str, disks: Iterable[Disk], growth: Mapping[Place, LogGrowth]
) -> Iterator[FrozenMap]:
    for disk in disks:
        stored = [
            (partition, size)
            for replicas in (disk.replicas, disk.future)
            for partition, size in replicas.items()
            if partition[0] == topic
        ]
        rates = [growth.get(partition, NO_GROWTH).rate for partition, _ in stored]
        if stored:
            yield FrozenMap(
                broker=disk.broker,
                log_dirs=disk.directories,
                replicas=len(stored),
                log_bytes=sum(size for _, size in stored),
                total_bytes=disk.total,
                usable_bytes=disk.usable,
                growth_bytes_per_day=round(sum(rate for rate in rates if rate is not None)),
                growth_unknown=rates.count(None),
            )


def _render_topics(document: FrozenMap) -> Page:
    for topic in document["topics"]:
        if len(document["topics"]) > 1:
            yield topic["name"]
        yield from _render_topic(topic)
    for row in document["unread"]:
        yield Prose(f"{row['name']}: {render_problem(row['error'])}")
    for gap in document["gaps"]:
        yield Prose(f"Incomplete: {gap['what']}: {render_problem(gap)}")
    if document["hides_groups"]:
        yield Prose(f"There may be {HIDDEN}.")


def _render_topic(topic: FrozenMap) -> Page:
    groups, disks = topic["groups"], topic["disks"]
    if groups:
        yield make_grid(groups[:GROUPS_SHOWN], _READER, frozenset({1, 2, 3}), "Groups")
        if len(groups) > GROUPS_SHOWN:
            yield Prose(
                f"{len(groups) - GROUPS_SHOWN:,} groups more read it or have offsets in it."
            )
    elif groups is not None:
        yield Prose("No group that could be seen reads it or has offsets in it.")
    text = render_writing(topic["producers"], topic["newest_record_ms"])
    if topic["producers"] == 0:
        text = ", ".join(filter(None, ("no producer has written to it in the last hour", text)))
    yield Prose(make_sentence(text or "nobody says who writes to it"))
    if topic["leaderless"]:
        count = render_count(topic["partitions"], "partition")
        yield Prose(f"{topic['leaderless']:,} of {count} have no leader: nobody answers for them.")
    if disks:
        yield make_grid(disks, DISK_COLUMNS[:-1], RIGHT_COLUMNS, "Disks that have it")


_READER: tuple[Column, ...] = (
    ("Group", render_field("group")),
    ("Members", lambda row: cell(row["members"])),
    ("Lag", lambda row: _render_lag(row["lag_records"])),
    ("Lag in time", lambda row: NOTHING if row["lag_ms"] is None else render_age(row["lag_ms"])),
)


def _render_lag(records: int | None) -> str:
    return NOTHING if records is None else render_count(records, "record")
