"""Say how far each unused topic is on its way to its end, and what comes next.

    candidate   nothing was written or read for the grace days
    told        its owner was told, and can object
    parked      its block is gone, and its access was taken away
    due         the time of its parking is over: the next apply deletes it

Each step is judged again from the current build: what a notice said is no proof of what is true
now. A topic that is in use again, that an exception keeps, or whose cluster was not read lately
has dropped out. The decision about a deletion stays with a reviewed change of a configuration.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from enum import StrEnum
from typing import TYPE_CHECKING

from msgspec import Struct

from ...core.address import CLOSURE
from ..landed.register import RegisteredWaiver, describe_keep, to_regex
from ..report.rows import render_utc
from ..tables.definitions import Row, quote_text

if TYPE_CHECKING:
    from ..tables.reader import Gold

TABLES = ("cluster", "desired", "event", "lineage", "live", "recorded", "unused_topics")
CANDIDATE = "candidate"
_UNWATCHED = "insufficient_evidence"
_UNUSED = (CANDIDATE, "kept")
"""Verdicts on topics that seem to be unused. Which of them stay is what fleet.hcl says now."""
FORGET_DAYS = 90
"""A notice of a topic that has dropped out is shown for so many days."""
_READ = ("read", "partial")
"""Statuses of a cluster whose newest snapshot counts."""
_CLOSURES = frozenset(f'{CLOSURE}["{operation}"]' for operation in ("Read", "Write"))
"""What takes the access to a parked topic away."""
_KIND = "kafka_topic"


class Step(StrEnum):
    """How far a topic is."""

    CANDIDATE = "candidate"
    TOLD = "told"
    PARKED = "parked"
    DUE = "due"


class Proposal(StrEnum):
    """What a reviewed change would do next."""

    IMPORT = "import"
    PARK = "park"
    REMOVE = "remove"


class NoticeOutcome(StrEnum):
    """What became of a notice."""

    TOLD = "told"
    FAILED = "failed"
    UNKNOWN = "unknown"
    """It was sent, and nobody knows whether it arrived."""


class Notice(Struct, frozen=True):
    """What an owner was told about one topic."""

    cluster: str
    topic: str
    topic_id: str | None
    """None: the build does not know it."""
    owner: str | None
    channel: str
    """file, webhook or issue."""
    at: datetime
    outcome: NoticeOutcome


class UnusedTopic(Struct, frozen=True):
    """A topic on its way. Times are RFC 3339."""

    cluster: str
    topic: str
    topic_id: str | None
    owner: str | None
    bytes: int | None
    """On disk, of all replicas. None: not measured."""
    idle_since: str | None
    evidence: tuple[str, ...]
    """Why it seems to be unused."""
    step: Step
    since: str | None
    """When the step began. None: the build does not tell."""
    until: str | None
    """When the step ends: that of the time to object, or of the parking."""
    state: str | None
    """The state that records it, by its name in fleet.hcl. None: none does."""
    address: str | None
    """Its address there."""
    proposal: Proposal | None
    """The reviewed change that is due now."""
    next: str
    """The next thing to do."""


class DroppedTopic(Struct, frozen=True):
    """A topic whose owner was told, and that is no longer on its way."""

    cluster: str
    topic: str
    owner: str | None
    told: str
    """When its owner was told, RFC 3339."""
    reason: str


class UnusedTopics(Struct, frozen=True):
    """All topics on their way, and those that dropped out."""

    topics: tuple[UnusedTopic, ...]
    dropped: tuple[DroppedTopic, ...]


class TopicObstacle(Struct, frozen=True):
    """Why nobody may go on with a topic."""

    reason: str
    is_known: bool = True
    """False: whether the topic is in use is not known now, because nobody looked."""


class UnusedLimits(Struct, frozen=True):
    """What fleet.hcl says about unused topics."""

    notice: timedelta
    """How long an owner has to object."""
    stale_after: timedelta
    """How old a snapshot may be."""
    keeps: tuple[RegisteredWaiver, ...] = ()
    """Topics that stay."""


class Recording(Struct, frozen=True):
    """A topic in a state of kafkaform."""

    lineage: str
    state: str | None
    """Its name in fleet.hcl."""
    address: str
    declared: bool | None
    """Whether the configuration still has its block. None: it could not be read."""
    park: timedelta | None
    """How long it is parked before it is deleted."""
    closed: bool
    """Whether its access was taken away."""
    closed_at: datetime | None
    """Since when. None: no log that has landed tells."""


class TopicFacts(Struct, frozen=True):
    """What the current build knows about one topic."""

    cluster: str
    topic: str
    row: Row | None
    """Of `unused_topics`, with `incarnation`. None: no snapshot shows it any more."""
    status: str
    """Of its cluster."""
    captured_at: datetime | None
    """When its cluster was read."""
    can_park: bool = True
    """False: the cluster has no authorizer, so access cannot be taken away."""
    recordings: tuple[Recording, ...] = ()


Key = tuple[str, str]
"""Cluster and topic."""
FindPark = Callable[[str, str | None, str], timedelta | None]
"""Lineage, id of the cluster and topic -> how long the state says that the topic is parked."""


# ── what the build knows ────────────────────────────────────────────────────────────────


class Selection(Struct, frozen=True):
    """Which topics somebody asks about."""

    cluster: str | None = None
    owner: str | None = None


def read_facts(gold: Gold, noticed: Collection[Key], find_park: FindPark) -> tuple[TopicFacts, ...]:
    """Read every candidate, and every topic that somebody was told about.

    find_park: see `FindPark`. Raises UsageError: the build lacks a table; StorageError.
    """
    for table in TABLES:
        gold.require(table)
    names = ", ".join(sorted({quote_text(topic) for _, topic in noticed})) or "''"
    rows = {
        (row["cluster"], row["topic"]): row
        for row in gold.read_rows(
            "SELECT u.*, l.incarnation FROM unused_topics u LEFT JOIN live l"
            f" ON l.cluster = u.cluster AND l.key = u.topic AND l.kind = '{_KIND}'"
            f" WHERE u.verdict IN {_UNUSED} OR u.topic IN ({names})"
        )
    }
    topic_keys = {key for key, row in rows.items() if row["verdict"] in _UNUSED} | {*noticed}
    clusters = {row["cluster"]: row for row in gold.read_rows("SELECT * FROM cluster")}
    closed = gold.read_rows(
        "SELECT cluster FROM live WHERE kind = 'cluster' AND attrs['has_authorizer'] = 'false'"
    )
    without_authorizer = {row["cluster"] for row in closed}
    ids = {name: row["cluster_id"] for name, row in clusters.items()}
    recordings = _read_recordings(gold, topic_keys, ids, find_park)
    return tuple(
        TopicFacts(
            key[0],
            key[1],
            rows.get(key),
            clusters[key[0]]["status"] if key[0] in clusters else "never",
            _get_time(clusters.get(key[0], {}), "captured_at"),
            key[0] not in without_authorizer,
            recordings.get(key, ()),
        )
        for key in sorted(topic_keys)
    )


def _read_recordings(
    gold: Gold, topic_keys: Collection[Key], ids: Mapping[str, str | None], find_park: FindPark
) -> dict[Key, tuple[Recording, ...]]:
    lineages = {row["lineage"]: row for row in gold.read_rows("SELECT * FROM lineage")}
    declared = {
        (row["lineage"], row["cluster"], row["key"])
        for row in gold.read_rows(
            f"SELECT lineage, cluster, key FROM desired WHERE kind = '{_KIND}'"
        )
    }
    closures = _read_closures(gold)
    recordings: dict[Key, tuple[Recording, ...]] = {}
    for row in gold.read_rows(
        f"SELECT cluster, key, lineage, address FROM recorded WHERE kind = '{_KIND}'"
        " AND address IS NOT NULL ORDER BY lineage"
    ):
        key = row["cluster"], row["key"]
        if key not in topic_keys:
            continue
        lineage = lineages.get(row["lineage"], {})
        times = closures.get((row["lineage"], row["cluster"], row["address"]), {})
        is_closed = times.keys() >= _CLOSURES
        recording = Recording(
            row["lineage"],
            lineage.get("name"),
            row["address"],
            (row["lineage"], *key) in declared if lineage.get("desired_known") else None,
            find_park(row["lineage"], ids.get(key[0]), key[1]),
            is_closed,
            max(filter(None, times.values()), default=None)
            if is_closed and None not in times.values()
            else None,
        )
        recordings[key] = (*recordings.get(key, ()), recording)
    return recordings


def _read_closures(gold: Gold) -> dict[tuple[str, str, str], dict[str, datetime | None]]:
    """Return lineage, cluster and address of each parked object -> its recorded closures -> when
    the log says that each was made."""
    pattern = quote_text(f"%/{CLOSURE}[%")
    rows = gold.read_rows(
        "SELECT r.lineage, r.cluster, r.address, max(e.ts) AS ts FROM recorded r LEFT JOIN event e"
        " ON e.lineage = r.lineage AND e.cluster = r.cluster AND e.address = r.address"
        " AND e.action = 'create' AND e.outcome = 'applied'"
        f" WHERE r.address LIKE {pattern} GROUP BY r.lineage, r.cluster, r.address"
    )
    closures: dict[tuple[str, str, str], dict[str, datetime | None]] = {}
    for row in rows:
        address, _, child = row["address"].rpartition("/")
        object_key = row["lineage"], row["cluster"], address
        closures.setdefault(object_key, {})[child] = _get_time(row, "ts")
    return closures


def _get_time(row: Row, column: str) -> datetime | None:
    time: datetime | None = row.get(column)
    return time.replace(tzinfo=UTC) if time is not None and time.tzinfo is None else time


# ── the judgement ───────────────────────────────────────────────────────────────────────


def judge_topics(
    facts: Iterable[TopicFacts],
    notices: Iterable[Notice],
    limits: UnusedLimits,
    now: datetime,
    selection: Selection,
) -> UnusedTopics:
    """Say of each topic how far it is, or why it has dropped out."""
    by_topic: dict[Key, list[Notice]] = {}
    for notice in sorted(notices, key=lambda notice: notice.at):
        by_topic.setdefault((notice.cluster, notice.topic), []).append(notice)
    topics: list[UnusedTopic] = []
    dropped: list[DroppedTopic] = []
    for topic in facts:
        own = by_topic.get((topic.cluster, topic.topic), [])
        owner = topic.row["owner"] if topic.row else own[-1].owner if own else None
        if selection.cluster not in (None, topic.cluster) or selection.owner not in (None, owner):
            continue
        obstacle = find_obstacle(topic, limits, now)
        sent = [notice for notice in own if notice.outcome is NoticeOutcome.TOLD]
        if not obstacle:
            topics.append(_judge_topic(topic, own, limits, now))
        elif sent and now - sent[-1].at < timedelta(days=FORGET_DAYS):
            dropped.append(_drop_topic(topic, owner, sent[-1], obstacle))
    return UnusedTopics(tuple(topics), tuple(dropped))


def _drop_topic(
    topic: TopicFacts, owner: str | None, notice: Notice, obstacle: TopicObstacle
) -> DroppedTopic:
    notice_time = render_utc(notice.at)
    return DroppedTopic(topic.cluster, topic.topic, owner, notice_time, obstacle.reason)


def find_obstacle(topic: TopicFacts, limits: UnusedLimits, now: datetime) -> TopicObstacle | None:
    """Say why nobody may go on with this topic; None if nothing is known against it."""
    if topic.status not in _READ or topic.captured_at is None:
        return TopicObstacle(f"the cluster was not read: {topic.status}", is_known=False)
    if now - topic.captured_at > limits.stale_after:
        day = _render_day(topic.captured_at)
        return TopicObstacle(f"the cluster was last read on {day}", is_known=False)
    if topic.row is None:
        return TopicObstacle("the cluster does not show it any more")
    keep = find_keep(topic, limits.keeps, now.date())
    if keep is not None:
        return TopicObstacle(describe_keep(keep))
    verdict = topic.row["verdict"]
    if verdict not in _UNUSED:
        return TopicObstacle(_REASONS[verdict](topic.row), is_known=verdict != _UNWATCHED)
    return None


def find_settled_owners(
    facts: Iterable[TopicFacts],
    notices: Iterable[Notice],
    channel: str,
    limits: UnusedLimits,
    now: datetime,
) -> dict[str | None, tuple[DroppedTopic, ...]]:
    """Return each owner who was told by a channel, or may have been, and has no topic on its way
    any more, with what became of the topics.

    An owner is not among them while it is not known whether one of its topics is in use.
    """
    notices_by_topic: dict[Key, dict[str | None, Notice]] = {}
    for notice in sorted(notices, key=lambda notice: notice.at):
        if notice.channel == channel and notice.outcome is not NoticeOutcome.FAILED:
            key = notice.cluster, notice.topic
            notices_by_topic.setdefault(key, {})[notice.owner] = notice
    dropped: dict[str | None, list[DroppedTopic]] = {}
    busy: set[str | None] = set()
    for topic in facts:
        owners = notices_by_topic.get((topic.cluster, topic.topic), {})
        obstacle = find_obstacle(topic, limits, now)
        if obstacle is None or not obstacle.is_known:
            busy.update(owners)
            busy.update([topic.row["owner"]] if topic.row else [])
            continue
        for owner, notice in owners.items():
            dropped.setdefault(owner, []).append(_drop_topic(topic, owner, notice, obstacle))
    return {owner: tuple(topics) for owner, topics in dropped.items() if owner not in busy}


def find_keep(
    topic: TopicFacts, keeps: Iterable[RegisteredWaiver], today: date
) -> RegisteredWaiver | None:
    """Return the exception that keeps this topic."""
    return next(
        (
            keep
            for keep in keeps
            if today <= keep.until
            and re.fullmatch(to_regex(keep.cluster), topic.cluster)
            and re.fullmatch(to_regex(keep.key), topic.topic)
        ),
        None,
    )


def _explain_use(row: Row) -> str:
    uses = (text for text in row["evidence"] if "as shown on" in text)
    return f"it is in use: {'; '.join(uses)}"


_REASONS: Mapping[str, Callable[[Row], str]] = {
    "in_use": _explain_use,
    "too_new": lambda row: f"it is too new: {row['evidence'][-1]}",
    _UNWATCHED: lambda row: (
        f"its use was not watched all the time: {'; '.join(row['evidence'][:2])}"
    ),
}


def _judge_topic(
    topic: TopicFacts, notices: Sequence[Notice], limits: UnusedLimits, now: datetime
) -> UnusedTopic:
    valid = [notice for notice in notices if is_valid(notice, topic)]
    notice = next((n for n in valid if n.outcome is NoticeOutcome.TOLD), None)
    recording = next(iter(topic.recordings), None)
    until: datetime | None
    if recording is not None and recording.closed:
        since, until = recording.closed_at, _add(recording.closed_at, recording.park)
        step = Step.DUE if until is not None and now >= until else Step.PARKED
    elif notice is not None:
        step, since, until = Step.TOLD, notice.at, notice.at + limits.notice
    else:
        step, since, until = Step.CANDIDATE, _get_time(topic.row or {}, "idle_since"), None
    proposal, advice = None, ""
    if step is Step.TOLD and notice is not None:
        proposal, advice = _choose_proposal(topic, notice, limits, now)
    row = topic.row or {}
    return UnusedTopic(
        topic.cluster,
        topic.topic,
        row["incarnation"],
        row["owner"],
        row["bytes"],
        _render(_get_time(row, "idle_since")),
        tuple(row["evidence"]),
        step,
        _render(since),
        _render(until),
        recording.state if recording else None,
        recording.address if recording else None,
        proposal,
        advice or _advise(step, until, recording, valid),
    )


def is_valid(notice: Notice, topic: TopicFacts) -> bool:
    """Whether a notice is about this topic, and nothing was written or read since."""
    row = topic.row or {}
    topic_id = row.get("incarnation")
    idle_since = _get_time(row, "idle_since")
    return (None in (notice.topic_id, topic_id) or notice.topic_id == topic_id) and (
        idle_since is not None and idle_since <= notice.at
    )


def _choose_proposal(
    topic: TopicFacts, notice: Notice, limits: UnusedLimits, now: datetime
) -> tuple[Proposal | None, str]:
    """Return the change that is due, and the advice that replaces that of the step."""
    end = notice.at + limits.notice
    if now < end:
        return None, f"wait until {_render_day(end)}: its owner can object"
    if topic.captured_at is not None and topic.captured_at <= notice.at:
        return None, "no snapshot shows its use since the notice: run `kafkaform fleet snapshot`"
    if not topic.recordings:
        return (
            Proposal.IMPORT,
            f"{_PROPOSE} writes an import block: only what a state has is deleted",
        )
    if len(topic.recordings) > 1:
        names = ", ".join(r.state or r.lineage for r in topic.recordings)
        return None, f"several states record it ({names}): `kafkaform state rm` it in all but one"
    (recording,) = topic.recordings
    if recording.declared is None:
        return None, "its configuration could not be read: `kafkaform fleet status` says why"
    if not recording.declared:
        return None, f"its block is gone: run `kafkaform apply` in {_name_state(recording)}"
    if not topic.can_park:
        second = end + limits.notice
        if now < second:
            return None, (
                "the cluster has no authorizer, so access cannot be taken away first: wait until "
                f"{_render_day(second)}, a second time to object"
            )
        return Proposal.REMOVE, f"{_PROPOSE} writes its removal, without parking"
    if recording.park is None:
        return Proposal.PARK, f'{_PROPOSE} writes lifecycle {{ park = "7d" }} into its block'
    return Proposal.REMOVE, f"{_PROPOSE} writes its removal; the apply takes the access away first"


_PROPOSE = "`kafkaform fleet unused --propose DIR`"


def _advise(
    step: Step, until: datetime | None, recording: Recording | None, notices: Sequence[Notice]
) -> str:
    folder = _name_state(recording)
    if step is Step.DUE:
        return f"`kafkaform apply` in {folder} deletes it; to keep it, put its block back"
    if step is Step.PARKED:
        day = f"until {_render_day(until)}" if until is not None else "until its parking is over"
        return f"wait {day}; to keep it, put its block back in {folder}"
    unknown = [n for n in notices if n.outcome is NoticeOutcome.UNKNOWN]
    if unknown:
        return (
            f"nobody knows whether the {unknown[-1].channel} of {_render_day(unknown[-1].at)} "
            "arrived: look there, or tell its owner with --again"
        )
    return "tell its owner: `kafkaform fleet unused --tell-file DIR`"


def _name_state(recording: Recording | None) -> str:
    if recording is None:
        return "its folder"
    return f"the folder of state {recording.state or recording.lineage}"


def _add(time: datetime | None, length: timedelta | None) -> datetime | None:
    return time + length if time is not None and length is not None else None


def _render(time: datetime | None) -> str | None:
    return render_utc(time) if time is not None else None


def _render_day(time: datetime) -> str:
    return f"{time.astimezone(UTC):%Y-%m-%d}"


def list_untold(
    listed: UnusedTopics,
    facts: Iterable[TopicFacts],
    notices: Iterable[Notice],
    *,
    again: bool,
) -> Iterator[UnusedTopic]:
    """Yield the topics whose owner has to be told now: candidates without a notice that has
    arrived or may have arrived. again: also of those."""
    sent: dict[Key, list[Notice]] = {}
    for notice in notices:
        sent.setdefault((notice.cluster, notice.topic), []).append(notice)
    facts_by_key = {(topic.cluster, topic.topic): topic for topic in facts}
    for topic in listed.topics:
        key = topic.cluster, topic.topic
        arrived = any(
            notice.outcome is not NoticeOutcome.FAILED and is_valid(notice, facts_by_key[key])
            for notice in sent.get(key, ())
        )
        if topic.step in (Step.CANDIDATE, Step.TOLD) and (again or not arrived):
            yield topic
