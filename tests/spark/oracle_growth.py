"""Growth, disks and groups, counted day by day from all snapshots at once."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

from msgspec import Struct

from kafkaform.core.landing import DISK_USAGE, GROUP_USAGE, TOPIC_USAGE

Row = dict[str, Any]
Values = Mapping[str, int | None]


class Shot(Struct, frozen=True):
    """A snapshot: rows by kind and key."""

    at: datetime
    coverage: Mapping[str, str]
    rows: Mapping[tuple[str, str], Values]


def measure(kind: str, values: Values) -> tuple[int | None, int | None, int | None]:
    """bytes, records, members."""
    if kind == DISK_USAGE:
        total, usable = values.get("total_bytes"), values.get("usable_bytes")
        used = None if total is None or usable is None else total - usable
        return used, None, None
    if kind == TOPIC_USAGE:
        return values.get("bytes"), values.get("end_offsets_sum"), None
    return None, values.get("committed_sum"), values.get("members")


def list_points(shots: Sequence[Shot]) -> dict[tuple[str, str], list[tuple[Any, ...]]]:
    """Kind and key -> day, at, bytes, records, members of each day's last snapshot that shows it,
    for 31 days."""
    last = max(shot.at for shot in shots).date()
    points: dict[tuple[str, str], dict[date, tuple[Any, ...]]] = {}
    for shot in sorted(shots, key=lambda shot: shot.at):
        day = shot.at.date()
        if day > last - timedelta(days=31):
            for (kind, key), values in shot.rows.items():
                point = (day, shot.at, *measure(kind, values))
                points.setdefault((kind, key), {})[day] = point
    return {key: [days[day] for day in sorted(days)] for key, days in points.items()}


def slope(points: Iterable[tuple[date, float]]) -> float | None:
    rows = list(points)
    if len(rows) < 7:
        return None
    xs = [(day - date(2026, 1, 1)).days for day, _ in rows]
    mean_x, mean_y = sum(xs) / len(xs), sum(y for _, y in rows) / len(rows)
    above = sum((x - mean_x) * (y - mean_y) for x, (_, y) in zip(xs, rows, strict=True))
    return above / sum((x - mean_x) ** 2 for x in xs)


def grow_topic(
    key: str, shots: Sequence[Shot], as_of: datetime, points: Sequence[tuple[Any, ...]]
) -> Row:
    whole = {s.at.date() for s in shots if s.coverage.get(TOPIC_USAGE) == "complete"}
    window = as_of.date() - timedelta(days=31)
    zeros = [
        (day, None, 0, 0, None) for day in sorted(whole) if points and window < day < points[0][0]
    ]
    rows = [*zeros, *points]
    records = [(day, value) for day, _, _, value, _ in rows if value is not None]
    steps = [max(0, b - a) for (_, a), (_, b) in zip(records, records[1:], strict=False)]
    days = (records[-1][0] - records[0][0]).days if records else 0
    sizes = [(day, size) for day, _, size, *_ in rows if size is not None]
    return {
        "bytes_per_day": slope(sizes),
        "records_per_day": sum(steps) / days if len(records) >= 7 else None,
        "days": len(sizes),
    }


def weigh_traffic(
    config: Mapping[str, str],
    values: Values,
    written: float | None,
    groups: Mapping[str, Sequence[tuple[Any, ...]]] | None,
) -> Row:
    """Bytes that are written and read a day. config: of the topic or, below it, of its cluster;
    values: what was measured last; groups: the points of each group that commits, None if some may
    be hidden."""
    held = _subtract(values.get("end_offsets_sum"), values.get("start_offsets_sum"))
    size, mean = values.get("bytes"), None
    is_whole = "compact" not in config.get("cleanup.policy", "") and not config.get("tiered")
    if is_whole and held and held > 0 and size:
        mean = size / 2 / held
    reads = None if groups is None else [_advance(points) for points in groups.values()]
    known = None if reads is None or None in reads else sum(rate for rate in reads if rate)
    return {"ingress_per_day": _weigh(written, mean), "egress_per_day": _weigh(known, mean)}


def _subtract(end: int | None, start: int | None) -> int | None:
    return None if end is None or start is None else end - start


def _advance(points: Sequence[tuple[Any, ...]]) -> float | None:
    """Records a day by which the committed offsets went on."""
    known = [(day, offset) for day, _, _, offset, _ in points if offset is not None]
    if len(known) < 7:
        return None
    steps = [max(0, b - a) for (_, a), (_, b) in zip(known, known[1:], strict=False)]
    return sum(steps) / (known[-1][0] - known[0][0]).days


def _weigh(records: float | None, mean: float | None) -> int | None:
    if records == 0:
        return 0
    return None if records is None or mean is None else round(records * mean)


def project_disk(values: Values, as_of: datetime, points: Sequence[tuple[Any, ...]]) -> Row:
    sizes = [(day, size) for day, _, size, *_ in points if size is not None]
    rate, total, usable = slope(sizes), values.get("total_bytes"), values.get("usable_bytes")
    left = None
    if usable is not None and usable <= 0:
        left = 0
    elif usable is not None and rate is not None and rate > 0:
        left = math.ceil(usable / rate)
    full = None
    if left is not None and left <= 5 * 365:
        full = as_of.date() + timedelta(days=left)
    share = None
    if total is not None and usable is not None:
        share = (total - usable) / total
    return {"used_per_day": rate, "full_on": full, "used_share": share, "days": len(sizes)}


def judge_group(values: Values, as_of: datetime, points: Sequence[tuple[Any, ...]]) -> Row:
    pairs = zip(points, points[1:], strict=False)
    moved = max((later[1] for earlier, later in pairs if earlier[3] != later[3]), default=None)
    joined = max((at for _, at, _, _, members in points if members), default=None)
    since = points[0][1]
    members, committed, lag = (values.get(n) for n in ("members", "committed_sum", "lag"))
    stall, old = as_of - timedelta(hours=20), as_of - timedelta(days=14)
    used = max(filter(None, (moved, joined)), default=None)
    if members is None or committed is None:
        verdict = "insufficient_evidence"
    elif moved is not None and moved > stall:
        verdict = "progressing"
    elif since > stall:
        verdict = "insufficient_evidence"
    elif members > 0:
        verdict = "insufficient_evidence" if lag is None else "stuck" if lag > 0 else "idle"
    else:
        quiet = since <= old and (used is None or used <= old)
        verdict = "unused" if quiet else "stopped"
    return {"moved_at": moved, "joined_at": joined, "since": since, "verdict": verdict}


KINDS = (TOPIC_USAGE, GROUP_USAGE, DISK_USAGE)
