"""Unused topics, snapshot by snapshot: all of them read again, in the order of their times."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from fnmatch import fnmatchcase
from typing import Any

from kafkaform.fleet.landed.register import Register

from .live_rows import NOW
from .oracle_policy import owner_of

Row = dict[str, Any]
WEEK = timedelta(days=7)


@dataclass(frozen=True)
class Shot:
    """One snapshot. ends: topic -> sum of end offsets, None: not told; starts: the same; groups:
    (group, topic) -> committed, members; coverage: as in its meta."""

    at: datetime
    coverage: Mapping[str, str]
    ends: Mapping[str, int | None] = field(default_factory=dict)
    starts: Mapping[str, int | None] = field(default_factory=dict)
    groups: Mapping[tuple[str, str], tuple[int | None, int | None]] = field(default_factory=dict)


@dataclass
class Known:
    """What all snapshots together tell of one topic."""

    end_offset: int | None = None
    written_at: datetime | None = None
    offsets_since: datetime | None = None
    offsets_at: datetime | None = None
    committed: dict[str, int | None] | None = None
    read_at: datetime | None = None
    groups_since: datetime | None = None
    groups_at: datetime | None = None


def known(topic: str, shots: Sequence[Shot]) -> Known:
    found = Known()
    for shot in shots:
        _writes(found, shot.ends.get(topic), shot.at)
        how = shot.coverage.get("group_usage")
        if how in ("complete", "visible_only"):
            mine = {group: v for (group, t), v in shot.groups.items() if t == topic}
            _reads(found, mine, shot.at, how == "complete")
    return found


def _writes(found: Known, end: int | None, at: datetime) -> None:
    if end is None:
        return
    if found.end_offset is not None and end != found.end_offset:
        found.written_at = at
    found.end_offset, found.offsets_at = end, at
    found.offsets_since = found.offsets_since or at


def _reads(
    found: Known, groups: Mapping[str, tuple[int | None, int | None]], at: datetime, whole: bool
) -> None:
    before = found.committed
    for group, (committed, members) in groups.items():
        moved = before is not None and before.get(group, "gone") != committed
        if members or moved:
            found.read_at = at
    near = found.groups_at is not None and at - found.groups_at <= WEEK
    if not whole:
        found.groups_since = None
    elif not near or found.groups_since is None:
        found.groups_since = at
    found.committed = {group: committed for group, (committed, _) in groups.items()}
    found.groups_at = at


def unused(
    shots: Mapping[str, Sequence[Shot]],
    tables: Mapping[str, Sequence[Row]],
    register: Register,
) -> list[Row]:
    """shots: cluster -> its snapshots, the oldest first."""
    clusters = {row["cluster"]: row for row in tables["cluster"]}
    rows = []
    for row in tables["live"]:
        internal = row["attrs"].get("details.internal") == "true"
        if row["kind"] == "kafka_topic" and not internal:
            cluster = clusters[row["cluster"]]
            rows.append(_judged(row, cluster, shots[row["cluster"]], tables, register))
    return rows


def _judged(
    row: Row,
    cluster: Row,
    shots: Sequence[Shot],
    tables: Mapping[str, Sequence[Row]],
    register: Register,
) -> Row:
    as_of, topic = cluster["captured_at"], row["key"]
    since = as_of - timedelta(days=register.settings.grace_days)
    found = known(topic, shots)
    owner = owner_of(row, [*tables["desired"], *tables["recorded"]], register)
    written = _idle(found.written_at, found.offsets_since, found.offsets_at, since, as_of)
    read = _idle(found.read_at, found.groups_since, found.groups_at, since, as_of)
    last = shots[-1]
    start, end = last.starts.get(topic), last.ends.get(topic)
    granted = _granted(topic, owner, cluster, tables["live"], register)
    aged = _aged(row, tables["history"], since)
    signals = {
        "written": written,
        "read": read,
        "empty": None if start is None or end is None else start == end,
        "granted": granted,
    }
    verdict = _verdict(written, read, aged)
    kept = _find_keep(row["cluster"], topic, register) if verdict == "candidate" else None
    judged = sum(value is not None for value in (*signals.values(), aged))
    return {
        **{"cluster": row["cluster"], "topic": topic, "owner": owner, "as_of": as_of},
        **signals,
        **vars(found),
        "verdict": "kept" if kept else verdict,
        "kept": kept,
        "confidence": round(judged / 5, 2),
        "idle_since": _latest(found.written_at, found.read_at)
        or _latest(found.offsets_since, found.groups_since),
    }


def _idle(
    last: datetime | None,
    first: datetime | None,
    newest: datetime | None,
    since: datetime,
    as_of: datetime,
) -> bool | None:
    if last is not None and last > since:
        return True
    if first is not None and first <= since and newest == as_of:
        return False
    return None


def _verdict(written: bool | None, read: bool | None, aged: bool | None) -> str:
    if written or read:
        return "in_use"
    if aged is False:
        return "too_new"
    return "candidate" if written is False and read is False else "insufficient_evidence"


def _find_keep(cluster: str, topic: str, register: Register) -> str | None:
    return next(
        (
            f"fleet.hcl keeps it until {keep.until}: {keep.reason}"
            for keep in register.keeps
            if NOW.date() <= keep.until
            and fnmatchcase(cluster, keep.cluster)
            and fnmatchcase(topic, keep.key)
        ),
        None,
    )


def _latest(*times: datetime | None) -> datetime | None:
    return max((time for time in times if time is not None), default=None)


def _aged(row: Row, history: Iterable[Row], since: datetime) -> bool | None:
    mine = [
        past
        for past in history
        if all(past[n] == row[n] for n in ("cluster", "kind", "key"))
        and past.get("incarnation") == row.get("incarnation")
    ]
    first = min(mine, key=lambda past: past["valid_from"], default=None)
    if first is None:
        return None
    if first["valid_from"] <= since:
        return True
    return None if first.get("seen_before") is None else False


def _granted(
    topic: str, owner: str | None, cluster: Row, live: Iterable[Row], register: Register
) -> bool | None:
    how = cluster["coverage"].get("kafka_acl")
    if how not in ("complete", "visible_only"):
        return None
    mine = next((o.principals for o in register.owners if o.name == owner), ())
    covering = [
        row["attrs"]
        for row in live
        if (row["cluster"], row["kind"]) == (cluster["cluster"], "kafka_acl")
        and row["attrs"]["resource_type"] == "Topic"
        and _covers(row["attrs"], topic)
    ]
    others = any(
        acl["acl_permission_type"] == "Allow"
        and acl["acl_operation"] in ("Read", "Write", "All")
        and acl["acl_principal"] not in mine
        for acl in covering
    )
    if how == "visible_only":
        return others or None
    return others if covering else cluster.get("allow_if_no_acl")


def _covers(acl: Mapping[str, str], topic: str) -> bool:
    name = acl["resource_name"]
    if acl["resource_pattern_type_filter"] == "Prefixed":
        return topic.startswith(name)
    return name in ("*", topic)
