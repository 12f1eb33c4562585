"""Run `fleet unused`: list unused topics, tell their owners, propose what comes next.

It reads a build, what landed and the notices of the root, and writes notices and files to review.
It never changes a cluster, a state or a configuration.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeVar

from msgspec import Struct, to_builtins

from ...core.canonical import Misfit, from_data, parse_json
from ...core.errors import StorageError
from ...core.landing import META, ROOT, ROWS, STATE, LandedRow, Meta
from ...core.value import FrozenMap
from ...fleet import answers, tables
from ...fleet.answers.unused import (
    DroppedTopic,
    FindPark,
    Notice,
    NoticeOutcome,
    Selection,
    Step,
    TopicFacts,
    UnusedLimits,
    UnusedTopic,
    UnusedTopics,
)
from ...fleet.report.rows import Sheet, render_table, render_utc
from ...inventory.landing import LandingPlace, open_place
from ...render.text import inline
from . import notices, proposals
from .register_file import Fleet
from .runs import need_reader

FORMAT_VERSION = "1.0"
"""Of the JSON document."""
_EXIT_CODES: Mapping[NoticeOutcome, int] = {NoticeOutcome.UNKNOWN: 6, NoticeOutcome.FAILED: 5}
"""The worst one counts, which is the first."""
T = TypeVar("T", bound=Struct)
_COLUMNS = ("cluster", "topic", "owner", "bytes", "idle_since", "step", "since", "next")


class SkippedTopic(Struct, frozen=True):
    """A topic whose change could not be written."""

    cluster: str
    topic: str
    reason: str


class UnusedDocument(Struct, frozen=True):
    """What `fleet unused --json` prints."""

    build: str
    as_of: str
    """The newest capture that the build has seen, RFC 3339."""
    topics: tuple[UnusedTopic, ...]
    dropped: tuple[DroppedTopic, ...]
    deliveries: tuple[notices.Delivery, ...] = ()
    """What became of the notices that were sent now."""
    files: tuple[str, ...] = ()
    """The files to review that were written now."""
    skipped: tuple[SkippedTopic, ...] = ()
    """Topics whose change is due and could not be written."""
    format_version: str = FORMAT_VERSION


class UnusedView(Struct, frozen=True):
    """What is known about unused topics now."""

    place: LandingPlace
    build: str
    as_of: datetime
    facts: tuple[TopicFacts, ...]
    sent: tuple[Notice, ...]
    """Every notice that was ever sent."""
    selection: Selection
    listed: UnusedTopics
    """Of the selection."""
    limits: UnusedLimits
    now: float
    """Seconds since the epoch."""


def read_view(
    fleet: Fleet,
    root: str,
    now: float,
    *,
    cluster: str | None = None,
    owner: str | None = None,
    notice_days: int | None = None,
) -> UnusedView:
    """Judge all unused topics. now: seconds since the epoch; cluster, owner: None for all;
    notice_days: None for those of fleet.hcl. Raises UsageError, StorageError."""
    need_reader()
    gold = tables.reader.Gold(tables.reader.read_current(root))
    place = open_place(root)
    sent = notices.read_notices(place)
    limits = UnusedLimits(
        timedelta(days=fleet.notice_days if notice_days is None else notice_days),
        timedelta(hours=fleet.register.settings.stale_after_hours),
        fleet.register.keeps,
    )
    noticed = {(notice.cluster, notice.topic) for notice in sent}
    facts = answers.unused.read_facts(gold, noticed, _make_finder(place))
    moment, selection = datetime.fromtimestamp(now, UTC), Selection(cluster, owner)
    listed = answers.unused.judge_topics(facts, sent, limits, moment, selection)
    build = gold.build
    return UnusedView(place, build.name, build.as_of, facts, sent, selection, listed, limits, now)


def tell_owners(
    view: UnusedView, channel: notices.Channel, *, again: bool
) -> Iterator[notices.Delivery]:
    """Tell the owners of the topics that they were not told about; and, if all topics were looked
    at, those of whose topics none is left. again: also of topics that owners were told about.
    Raises StorageError."""
    untold = answers.unused.list_untold(view.listed, view.facts, view.sent, again=again)
    listed = (t for t in view.listed.topics if t.step in (Step.CANDIDATE, Step.TOLD))
    yield from notices.tell_owners(
        view.place, tuple(untold), tuple(listed), channel, view.limits.notice, view.now
    )
    if view.selection == Selection():
        moment = datetime.fromtimestamp(view.now, UTC)
        settled = answers.unused.find_settled_owners(
            view.facts, view.sent, channel.name, view.limits, moment
        )
        yield from notices.withdraw_notices(channel, settled)


def propose_changes(
    view: UnusedView, fleet: Fleet, folder: Path
) -> tuple[tuple[Path, ...], tuple[SkippedTopic, ...]]:
    """Write the changes that are due into a new folder; return its files, none if nothing is due,
    and the topics that need a hand. Raises UsageError, StorageError."""
    made = proposals.make_proposals(view.listed.topics, fleet.states)
    skipped = tuple(SkippedTopic(t.cluster, t.topic, reason) for t, reason in made.skipped)
    if not made.files:
        return (), skipped
    moment = datetime.fromtimestamp(view.now, UTC)
    return proposals.save_proposals(folder, made, moment), skipped


def make_document(
    view: UnusedView,
    deliveries: Iterable[notices.Delivery] = (),
    files: Iterable[Path] = (),
    skipped: Iterable[SkippedTopic] = (),
) -> dict[str, Any]:
    """Return everything for programs: an UnusedDocument in JSON's types."""
    document = UnusedDocument(
        view.build,
        render_utc(view.as_of),
        view.listed.topics,
        view.listed.dropped,
        tuple(deliveries),
        tuple(map(str, files)),
        tuple(skipped),
    )
    members: dict[str, Any] = to_builtins(document)
    return members


def render_view(view: UnusedView) -> str:
    """Return the table for people, and below it what has dropped out."""
    rows = tuple(
        tuple(getattr(topic, name) for name in _COLUMNS)
        for topic in sorted(view.listed.topics, key=lambda t: (-(t.bytes or 0), t.cluster, t.topic))
    )
    lines = [render_table(Sheet(_COLUMNS, rows)).rstrip("\n")]
    for topic in view.listed.dropped:
        name = inline(f"{topic.cluster}/{topic.topic}")
        lines.append(f"No longer: {name}, told on {topic.told[:10]}: {inline(topic.reason)}.")
    return "\n".join(lines) + "\n"


def render_actions(
    deliveries: Iterable[notices.Delivery], files: Iterable[Path], skipped: Iterable[SkippedTopic]
) -> Iterator[str]:
    """Yield what was done and what was not, a line each."""
    yield from map(notices.render_delivery, deliveries)
    yield from (f"Wrote {file}." for file in files)
    for topic in skipped:
        yield inline(f"Not proposed: {topic.cluster}/{topic.topic}: {topic.reason}.")


def choose_exit_code(deliveries: Iterable[notices.Delivery]) -> int:
    """Return 6 if nobody knows whether an owner was told, 5 if one was not, else 0."""
    outcomes = {delivery.outcome for delivery in deliveries}
    return next((code for outcome, code in _EXIT_CODES.items() if outcome in outcomes), 0)


# ── what states say ─────────────────────────────────────────────────────────────────────


def _make_finder(place: LandingPlace) -> FindPark:
    """Return what finds out for how long a state parks a topic, from its newest snapshot.

    The snapshot may be newer than the build. That is safe: a removal is proposed only where the
    state is known to say `park`.
    """

    @cache
    def read(lineage: str) -> dict[tuple[str | None, str], timedelta]:
        return dict(_read_parks(place, lineage))

    return lambda lineage, scope_id, topic: read(lineage).get((scope_id, topic))


def _read_parks(
    place: LandingPlace, lineage: str
) -> Iterator[tuple[tuple[str | None, str], timedelta]]:
    """Yield id of the cluster and topic, and the time. Raises StorageError."""
    keys = {entry.key for entry in place.names(f"{ROOT}/{STATE}/{lineage}/")}
    for key in sorted(keys, reverse=True):
        if not key.endswith(META):
            continue
        described = place.read(key)
        meta = _read_struct(place, key, Meta, described.data if described else b"")
        if meta.sha256 is None:
            continue
        rows_key = key.removesuffix(META) + ROWS
        stored = place.read(rows_key)
        if stored is None or sha256(stored.data).hexdigest() != meta.sha256:
            raise _make_damage_error(place, rows_key, "it does not match its checksum")
        for line in stored.data.splitlines():
            row = _read_struct(place, rows_key, LandedRow, line)
            if row.park is not None:
                scope_id = row.scope_id or meta.scopes.get(row.instance or "")
                yield (scope_id, row.key), timedelta(milliseconds=row.park)
        return


def _read_struct(place: LandingPlace, key: str, cls: type[T], line: bytes) -> T:
    try:
        members = parse_json(line)
        if not isinstance(members, FrozenMap):
            raise Misfit("is not an object")
        # A later minor version may add members.
        known = {name: members[name] for name in cls.__struct_fields__ if name in members}
        return from_data(cls, FrozenMap(known))
    except Misfit as error:
        raise _make_damage_error(place, key, str(error)) from None


def _make_damage_error(place: LandingPlace, key: str, problem: str) -> StorageError:
    return StorageError(
        f"{place.location}/{key} cannot be used: {problem}",
        "Take a new snapshot with `kafkaform fleet snapshot`.",
    )
