"""Tell owners about unused topics, and keep what they were told.

    notices/<time>-<digest>.jsonl          what is sent, a line for each topic, before it is sent
    notices/<time>-<digest>.outcome.json   what became of it

Both are written once and never changed. A topic counts as told only if the second file says so. If
it is missing, the run died while it sent: nobody knows whether the notice arrived, and it is not
sent again unless somebody asks for that.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import TypeVar

from msgspec import Struct

from ...core.canonical import Misfit, dumps, from_data, parse_json
from ...core.errors import StorageError
from ...core.secret import mask_secrets
from ...core.text import render_quantity
from ...core.value import FrozenMap
from ...fleet.answers.unused import DroppedTopic, Notice, NoticeOutcome, UnusedTopic
from ...fleet.report.rows import render_utc
from ...inventory.landing import LandingPlace, make_snapshot_name, write_new
from ...render.review.comment_rows import render_cell, render_code, render_prose
from ...render.text import inline, render_count
from ...syntax.write import NewBlock, write_blocks

FOLDER = "notices"
FORMAT = 1
"""The format of both files; a reader refuses later ones."""
LINES, OUTCOME = ".jsonl", ".outcome.json"
NOBODY = "nobody"
"""Stands for the owner of topics that nobody owns."""
HEADING = "# Unused topics of"
"""How every notice begins."""
ROWS = 200
"""A notice lists so many topics, because a forge limits the length of an issue."""
T = TypeVar("T", bound=Struct)


class NoticeLine(Struct, frozen=True):
    """One topic of a notice, as one line. Times are RFC 3339."""

    at: str
    channel: str
    owner: str | None
    cluster: str
    topic: str
    topic_id: str | None
    idle_since: str | None
    evidence: tuple[str, ...]
    format: int = FORMAT


class OutcomeFile(Struct, frozen=True):
    """What became of a notice."""

    outcome: NoticeOutcome
    at: str
    error: str | None = None
    format: int = FORMAT


class OwnerNotice(Struct, frozen=True):
    """What one owner is told."""

    owner: str | None
    topics: tuple[UnusedTopic, ...]
    """All topics of the owner that are candidates or told."""
    title: str
    markdown: str


class Delivery(Struct, frozen=True):
    """What became of telling one owner."""

    owner: str | None
    topics: int
    """How many topics it was told about now. 0: that none of its topics is left."""
    channel: str
    outcome: NoticeOutcome
    location: str
    """Where the notice went, for people; without secrets."""
    error: str = ""


class NotDelivered(Exception):
    """The notice has not arrived. Its text says why."""


class MaybeDelivered(Exception):
    """Nobody knows whether the notice has arrived. Its text says why."""


class Channel(Struct, frozen=True):
    """A way to tell owners."""

    name: str
    """file, webhook or issue."""
    deliver: Callable[[OwnerNotice], str]
    """Sends the notice once, and returns where it went. Raises NotDelivered, MaybeDelivered."""
    withdraw: Callable[[OwnerNotice], str] | None = None
    """Replaces what stands of the owner's earlier notice by one without topics, and returns where;
    empty: nothing stands. It looks first, so it can be repeated. None: nothing can stand. Raises
    NotDelivered, MaybeDelivered."""


# ── what was told ───────────────────────────────────────────────────────────────────────


def read_notices(place: LandingPlace) -> tuple[Notice, ...]:
    """Return every notice that was ever sent. Raises StorageError: one of them cannot be read."""
    keys = {entry.key for entry in place.names(f"{FOLDER}/")}
    return tuple(
        notice
        for key in sorted(keys)
        if key.endswith(LINES)
        for notice in _read_file(place, key.removesuffix(LINES), keys)
    )


def _read_file(place: LandingPlace, stem: str, keys: Iterable[str]) -> Iterator[Notice]:
    outcome = NoticeOutcome.UNKNOWN
    if stem + OUTCOME in keys:
        (members,) = _read_lines(place, stem + OUTCOME) or (None,)
        outcome = _parse(place, stem + OUTCOME, OutcomeFile, members).outcome
    for members in _read_lines(place, stem + LINES):
        line = _parse(place, stem + LINES, NoticeLine, members)
        yield Notice(
            line.cluster,
            line.topic,
            line.topic_id,
            line.owner,
            line.channel,
            datetime.fromisoformat(line.at),
            outcome,
        )


def _read_lines(place: LandingPlace, key: str) -> tuple[bytes, ...]:
    stored = place.read(key)
    return tuple(stored.data.splitlines()) if stored is not None else ()


def _parse(place: LandingPlace, key: str, cls: type[T], line: bytes | None) -> T:
    """Raises StorageError."""
    try:
        members = parse_json(line or b"")
        if isinstance(members, FrozenMap) and members.get("format") not in (None, FORMAT):
            raise Misfit(f"has format {members['format']}; this kafkaform reads up to {FORMAT}")
        return from_data(cls, members)
    except Misfit as error:
        raise StorageError(
            f"{place.location}/{key} cannot be used: {error}",
            "Restore it from a backup: without it, nobody knows what its owner was told.",
        ) from None


# ── telling ─────────────────────────────────────────────────────────────────────────────


def tell_owners(
    place: LandingPlace,
    untold: Iterable[UnusedTopic],
    listed: Iterable[UnusedTopic],
    channel: Channel,
    notice_time: timedelta,
    now: float,
) -> Iterator[Delivery]:
    """Tell each owner once about all of its topics; yield what became of each notice.

    untold: the topics that are new; listed: all that are candidates or told; notice_time: how long
    an owner can object; now: seconds since the epoch. Raises StorageError: nothing was sent that
    is not recorded.
    """
    new, topics = _group_by_owner(untold), _group_by_owner(listed)
    for owner, owner_topics in sorted(new.items(), key=lambda item: item[0] or ""):
        notice = make_notice(owner, topics[owner], owner_topics, notice_time, now)
        stem = _record_lines(place, channel.name, owner, owner_topics, now)
        delivery = _deliver(channel.deliver, channel, notice, len(owner_topics))
        file = OutcomeFile(delivery.outcome, _render_time(now), delivery.error or None)
        write_new(place, stem + OUTCOME, _render_line(file))
        yield delivery


def withdraw_notices(
    channel: Channel, settled: Mapping[str | None, Iterable[DroppedTopic]]
) -> Iterator[Delivery]:
    """Say in what stands of earlier notices that nothing is left to do; yield what became of each.

    settled: owner -> what became of its topics. Nothing is recorded, because each run looks again
    at what stands.
    """
    if channel.withdraw is None:
        return
    for owner, topics in sorted(settled.items(), key=lambda item: item[0] or ""):
        delivery = _deliver(channel.withdraw, channel, make_ending(owner, topics), 0)
        if delivery.location:
            yield delivery


def _deliver(
    send: Callable[[OwnerNotice], str], channel: Channel, notice: OwnerNotice, topics: int
) -> Delivery:
    location, outcome, error = f"the {channel.name}", NoticeOutcome.TOLD, ""
    try:
        location = send(notice)
    except NotDelivered as cause:
        outcome, error = NoticeOutcome.FAILED, mask_secrets(str(cause))
    except MaybeDelivered as cause:
        outcome, error = NoticeOutcome.UNKNOWN, mask_secrets(str(cause))
    return Delivery(notice.owner, topics, channel.name, outcome, location, error)


def _group_by_owner(
    topics: Iterable[UnusedTopic],
) -> dict[str | None, list[UnusedTopic]]:
    groups: dict[str | None, list[UnusedTopic]] = defaultdict(list)
    for topic in topics:
        groups[topic.owner].append(topic)
    return groups


def _record_lines(
    place: LandingPlace,
    channel: str,
    owner: str | None,
    topics: Iterable[UnusedTopic],
    now: float,
) -> str:
    """Write what is about to be sent; return the key without its ending. Raises StorageError."""
    at = _render_time(now)
    data = b"".join(
        _render_line(
            NoticeLine(
                at,
                channel,
                owner,
                topic.cluster,
                topic.topic,
                topic.topic_id,
                topic.idle_since,
                topic.evidence,
            )
        )
        for topic in topics
    )
    # Two owners can be told in the same microsecond.
    stem = f"{FOLDER}/{make_snapshot_name(now)}-{sha256(data).hexdigest()[:12]}"
    write_new(place, stem + LINES, data)
    return stem


def _render_line(record: NoticeLine | OutcomeFile) -> bytes:
    members = {name: getattr(record, name) for name in record.__struct_fields__}
    return dumps(members).encode() + b"\n"


def _render_time(now: float) -> str:
    return render_utc(datetime.fromtimestamp(now, UTC))


# ── the text ────────────────────────────────────────────────────────────────────────────


def make_notice(
    owner: str | None,
    topics: Iterable[UnusedTopic],
    new: Iterable[UnusedTopic],
    notice_time: timedelta,
    now: float,
) -> OwnerNotice:
    """Return what an owner is told. new: the topics that it is told about for the first time."""
    listed = tuple(topics)
    deadline = datetime.fromtimestamp(now, UTC) + notice_time
    hidden = len(listed) - ROWS
    fresh = {(topic.cluster, topic.topic) for topic in new}
    name = inline(owner) if owner is not None else NOBODY
    title = f"Unused topics of {name}: {render_count(len(listed), 'topic')}"
    rows = [
        "| cluster | topic | bytes | idle since | object until | why |",
        "|---|---|---|---|---|---|",
        *(_render_row(topic, fresh, f"{deadline:%Y-%m-%d}") for topic in listed[:ROWS]),
    ]
    if hidden > 0:
        rows += [
            "",
            f"And {render_count(hidden, 'more topic')}: `kafkaform fleet unused` lists all.",
        ]
    lines = (
        f"{HEADING} {render_code(name)}",
        "",
        "Snapshots show neither a write to these topics nor a read of them. A reader that commits "
        "no offsets leaves no trace, so please look.",
        "",
        *rows,
        "",
        "**If you need one of them**, do one of the following before its day in the table:",
        "",
        "- Use it. A write or a read that a snapshot shows takes it off this list.",
        "- Keep it with a reason, by a block in `fleet.hcl`:",
        "",
        "```hcl",
        _render_keep(listed[0], deadline + timedelta(days=365)),
        "```",
        "",
        "**What happens next.** Nothing is deleted now. After that day, a change of the "
        "configuration is proposed and reviewed. Its apply first takes away the access to the "
        "topic, where the cluster can do that, and deletes the topic days later. Before each "
        "step, its use is looked at again.",
        "",
    )
    return OwnerNotice(owner, listed, title, "\n".join(lines))


def make_ending(owner: str | None, topics: Iterable[DroppedTopic]) -> OwnerNotice:
    """Return what replaces the notice of an owner who has nothing left to do."""
    dropped = tuple(topics)
    name = inline(owner) if owner is not None else NOBODY
    rows = [
        f"| {render_cell(topic.cluster)} | {render_cell(topic.topic)}"
        # A reason is foreign text: fleet.hcl says why it keeps a topic.
        f" | {render_prose(topic.reason)} |"
        for topic in dropped[:ROWS]
    ]
    if len(dropped) > ROWS:
        rows += ["", f"And {render_count(len(dropped) - ROWS, 'more topic')}."]
    lines = (
        f"{HEADING} {render_code(name)}",
        "",
        "None of these topics is on the list any more. There is nothing left to do.",
        "",
        "| cluster | topic | why |",
        "|---|---|---|",
        *rows,
        "",
    )
    return OwnerNotice(owner, (), f"Unused topics of {name}: none left", "\n".join(lines))


def _render_keep(topic: UnusedTopic, until: datetime) -> str:
    """The block with which an owner can keep a topic."""
    arguments = {
        "topic": topic.topic,
        "cluster": topic.cluster,
        "until": f"{until:%Y-%m-%d}",
        "reason": "…",
    }
    return write_blocks([NewBlock("keep", (), arguments)]).rstrip("\n")


def _render_row(topic: UnusedTopic, fresh: set[tuple[str, str]], deadline: str) -> str:
    until = topic.until or deadline
    day = deadline if (topic.cluster, topic.topic) in fresh else until[:10]
    size = "not measured" if topic.bytes is None else str(topic.bytes)
    size = render_quantity(topic.bytes, "bytes") or size
    cells = (
        str(render_cell(topic.cluster)),
        str(render_cell(topic.topic)),
        size,
        (topic.idle_since or "not known")[:10],
        day,
        inline("; ".join(topic.evidence)),
    )
    return f"| {' | '.join(cells)} |"


def render_delivery(delivery: Delivery) -> str:
    """Say what became of a notice, in one sentence."""
    owner = delivery.owner if delivery.owner is not None else NOBODY
    topics, advice = f"{inline(owner)}: none of its topics is left", "The next run looks again"
    if delivery.topics:
        topics = f"{inline(owner)}: {render_count(delivery.topics, 'topic')}"
        advice = "Look there; --again sends it once more"
    texts: Mapping[NoticeOutcome, str] = {
        NoticeOutcome.TOLD: f"{topics}, told by {inline(delivery.location)}.",
        NoticeOutcome.FAILED: f"{topics}, NOT told: {inline(delivery.error)}. Run it again.",
        NoticeOutcome.UNKNOWN: f"{topics}, nobody knows whether it was told: "
        f"{inline(delivery.error)}. {advice}.",
    }
    return texts[delivery.outcome]
