"""Who writes to the topics of dangerous changes: idempotent producers, and the newest record of
each topic, which says when anybody wrote last. And whether with keys, if somebody asks for that."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from kafkaform.core.finding import Finding, Harm, Level
from kafkaform.core.installation import render_extra_command
from kafkaform.core.resource import Fault
from kafkaform.core.text import render_count, render_span
from kafkaform.core.value import FrozenMap, Value

from ..inspect.source import Gap, NodeRequest, cut_batches, send_each
from ..protocol.faults import fault_of
from ..rules.looks import KEYS_SAMPLED, WRITERS
from ..rules.topics.life import OLD_VALUES_KEPT, PARTITIONS_ADDED
from ..wire.describe import describe_producers, describe_topics
from ..wire.samples import KeySample, Sample, sample_key
from ..wire.usage import EARLIEST, LATEST, NEWEST, Place, group_by_topic
from .inquiry import Inquiry, Sighting, Target, ask_offsets, render_gap

RECENT_MS = 3_600_000
"""A producer that wrote in this time counts as one that writes now."""
_PARTITIONS_AT_ONCE = 500
_TOPICS_AT_ONCE = 2_000


class Writing(Struct, frozen=True):
    """What is known about who writes to one topic."""

    producers: int | None
    """Idempotent producers that wrote lately; None if they are hidden or unknown."""
    newest: int | None
    """Milliseconds since the newest record; None without one, or if nobody says."""


class WriterSurvey(Struct, frozen=True):
    """Who writes to the topics of an inquiry."""

    writing: Mapping[str, Writing]
    """Topic -> what is known."""
    gaps: tuple[Gap, ...]


def survey_writers(inquiry: Inquiry) -> WriterSurvey:
    """The producers of the topics, and the age of their newest records."""
    topics = list(dict.fromkeys(target.topic for target in inquiry.targets))
    leaders = _find_leaders(inquiry, topics)
    (newest,) = ask_offsets(inquiry.source, leaders, (dict.fromkeys(leaders, NEWEST),))
    active, faults = _count_producers(inquiry, leaders)
    ages: dict[str, int] = {}
    for (topic, _), row in newest.items():
        if row.ms is not None:
            age = max(0, inquiry.now - row.ms)
            ages[topic] = min(ages.get(topic, age), age)
    led_topics = {topic for topic, _ in leaders}
    writing = {}
    for topic in topics:
        hidden = topic in faults or topic not in led_topics
        count = None if hidden else len(active.get(topic, ()))
        writing[topic] = Writing(count, ages.get(topic))
    return WriterSurvey(writing, tuple(_explain_faults(faults)))


def look_at_writers(inquiry: Inquiry) -> Sighting:
    """The findings of what a survey shows."""
    if not inquiry.targets:
        return Sighting(is_blank=True)
    survey = survey_writers(inquiry)
    findings = [
        (target.change.identity, row)
        for target in inquiry.targets
        for row in _describe(target, survey.writing[target.topic])
    ]
    return Sighting(tuple(findings), tuple(map(render_gap, survey.gaps)))


def _find_leaders(inquiry: Inquiry, topics: Sequence[str]) -> Mapping[Place, int]:
    """All partitions of these topics that have a leader -> its broker."""
    leaders: dict[Place, int] = {}
    for names in cut_batches(topics, _TOPICS_AT_ONCE):
        rows = inquiry.source.ask("Metadata", describe_topics, names)
        for row in () if isinstance(rows, Fault) else rows:
            for partition in row.partitions if not row.code else ():
                if partition.leader is not None:
                    leaders[row.name, partition.number] = partition.leader
    return leaders


def _count_producers(
    inquiry: Inquiry, leaders: Mapping[Place, int]
) -> tuple[Mapping[str, set[int]], Mapping[str, Fault]]:
    """Topic -> ids of the producers that wrote lately, and topic -> why they are unknown."""
    led: dict[int, list[Place]] = defaultdict(list)
    for partition in sorted(leaders):
        led[leaders[partition]].append(partition)
    requests = [
        NodeRequest("DescribeProducers", str(leader), describe_producers, (group_by_topic(batch),))
        for leader, partitions in led.items()
        for batch in cut_batches(partitions, _PARTITIONS_AT_ONCE)
    ]
    active: dict[str, set[int]] = defaultdict(set)
    faults: dict[str, Fault] = {}
    for request, answer in zip(requests, send_each(inquiry.source, requests), strict=True):
        if isinstance(answer, Fault):
            faults |= dict.fromkeys(request.arguments[0], answer)
            continue
        for (topic, _), row in answer.items():
            if row.code:
                faults[topic] = fault_of("DescribeProducers", row.code, topic, row.message)
            # A broker lists a producer as long as its state lasts, by default until a day after its
            # last write (producer.id.expiration.ms). Most of them may have ended since.
            since = inquiry.now - RECENT_MS
            active[topic] |= {item.producer_id for item in row.rows if item.last_ms >= since}
    return active, faults


def render_writing(producers: int | None, newest: int | None) -> str:
    """`2 producers wrote to it in the last hour, its newest record is 3 s old`; empty if nobody
    writes or nothing is known. newest: milliseconds since the newest record."""
    texts = []
    if producers:
        verb = "wrote" if producers > 1 else "has written"
        texts.append(f"{render_count(producers, 'producer')} {verb} to it in the last hour")
    if newest is not None:
        age = render_span(newest // 1000) if newest >= 1000 else "less than 1 s"
        texts.append(f"its newest record is {age} old")
    return ", ".join(texts)


def _describe(target: Target, writing: Writing) -> Iterator[Finding]:
    producers, newest = writing.producers, writing.newest
    text = render_writing(producers, newest)
    if not text:
        return
    figures: dict[str, Value] = {} if producers is None else {"producers": producers}
    if newest is not None:
        figures["newest_record_seconds"] = newest // 1000
    writes = bool(producers) or (newest is not None and newest < RECENT_MS)
    stops = target.deleted or target.change.has_harm(Harm.REFUSED_WRITES)
    yield WRITERS.find(
        f"{target.prefix}{text}",
        figures=FrozenMap(figures),
        level=Level.CAUTION if writes and stops else None,
    )


def _explain_faults(faults: Mapping[str, Fault]) -> Iterator[Gap]:
    """One gap for each cause."""
    topics: dict[str, list[str]] = defaultdict(list)
    for topic, fault in faults.items():
        topics[fault.message].append(topic)
    for names in topics.values():
        of = names[0] if len(names) == 1 else render_count(len(names), "topic")
        yield Gap(f"the producers of {of}", faults[names[0]])


# ── keys ────────────────────────────────────────────────────────────────────────────────

_BACK = 20
"""How far before the end of a partition its sample is: what ends it can be markers alone."""


def look_at_keys(inquiry: Inquiry) -> Sighting:
    """Whether the records of topics that get more partitions have keys, by one of each partition if
    somebody has asked for that; otherwise how to find out."""
    grown = [target for target in inquiry.targets if _has_finding(target, PARTITIONS_ADDED.id)]
    # Brokers refuse records without a key there (INVALID_RECORD, 87).
    compacted = [target for target in grown if _has_finding(target, OLD_VALUES_KEPT.id)]
    sampled = [target for target in grown if target not in compacted]
    text = "keys exist: the topic is compacted, and brokers refuse records without a key there"
    findings = [
        (target.change.identity, KEYS_SAMPLED.find(text, level=Level.CAUTION))
        for target in compacted
    ]
    if not inquiry.sample:
        text = (
            "whether its records have keys is unknown: `plan --sample` reads one of each partition"
        )
        findings += [
            (target.change.identity, KEYS_SAMPLED.find(text, fix="")) for target in sampled
        ]
    if not sampled or not inquiry.sample:
        return Sighting(tuple(findings), is_blank=True)
    samples, faults = _sample_keys(inquiry, [target.topic for target in sampled])
    for target in sampled:
        if target.topic in samples or target.topic not in faults:
            finding = _describe_keys(samples.get(target.topic, ()))
            findings.append((target.change.identity, finding))
    gaps = (f"the keys of {topic}: {cause}" for topic, cause in faults.items())
    return Sighting(tuple(findings), tuple(gaps))


def _has_finding(target: Target, rule: str) -> bool:
    return any(finding.rule == rule for finding in target.change.findings)


def _sample_keys(
    inquiry: Inquiry, topics: Sequence[str]
) -> tuple[Mapping[str, Sequence[Sample]], Mapping[str, str]]:
    """Topic -> its samples, without partitions that have no record; and topic -> why some are
    missing."""
    leaders = _find_leaders(inquiry, topics)
    ends, starts = ask_offsets(
        inquiry.source, leaders, [dict.fromkeys(leaders, time) for time in (LATEST, EARLIEST)]
    )
    faults = dict.fromkeys(
        (topic for topic, _ in leaders.keys() - (ends.keys() & starts.keys())),
        "the brokers do not say which records there are",
    )
    faults |= dict.fromkeys(set(topics) - {topic for topic, _ in leaders}, "no partition answers")
    requests: list[NodeRequest[KeySample]] = []
    for partition in sorted(ends.keys() & starts.keys()):
        end, start = ends[partition].offset, starts[partition].offset
        if end > start:
            arguments = (*partition, max(start, end - _BACK))
            node = str(leaders[partition])
            requests.append(NodeRequest("Fetch", node, sample_key, arguments))
    samples: dict[str, list[Sample]] = defaultdict(list)
    for request, answer in zip(requests, send_each(inquiry.source, requests), strict=True):
        topic = request.arguments[0]
        if isinstance(answer, Fault):
            faults[topic] = answer.message
        elif answer.code:
            faults[topic] = fault_of("Fetch", answer.code, topic, None).message
        elif answer.unreadable:
            command = render_extra_command("codecs")
            faults[topic] = f"to read records compressed with {answer.unreadable}, run `{command}`"
        elif answer.broken:
            faults[topic] = "its newest records cannot be decoded"
        elif answer.sample is not Sample.NONE:
            samples[topic].append(answer.sample)
    return samples, faults


def _describe_keys(samples: Sequence[Sample]) -> Finding:
    keys, count = samples.count(Sample.KEY), len(samples)
    sampled = render_count(count, "sampled record")
    text = f"no keys in {sampled}" if count else "there is no record to sample"
    if keys:
        text = f"keys exist: {keys:,} of {sampled} {'has' if keys == 1 else 'have'} one"
    return KEYS_SAMPLED.find(
        text,
        figures=FrozenMap(sampled_records=count, records_with_key=keys),
        fix=None if keys else "",
        level=Level.CAUTION if keys else None,
    )
