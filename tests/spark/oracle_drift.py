"""Drift as a person would find it: object by object, with nothing but dicts; and since when, by
looking at each moment anew."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

Row = dict[str, Any]
Attrs = Mapping[str, str]

EMPTY: Mapping[str, str] = {}
SKIPPED = {"topic_usage", "group_usage", "cluster"}
WORDS = {True: "present", False: "absent", None: None}


def drift(tables: Mapping[str, list[Row]], teams: Mapping[str, str] = EMPTY) -> list[Row]:
    """The rows of the table, without their order and without first_seen. teams: start of a topic's
    name -> owner."""
    clusters = {row["cluster"]: row for row in tables["cluster"]}
    lineages = {row["lineage"]: row for row in tables["lineage"]}
    held: dict[Any, dict[str, list[Row | None]]] = {}
    for side, name in enumerate(("desired", "recorded")):
        for row in tables[name]:
            held.setdefault(_key(row), {}).setdefault(row["lineage"], [None, None])[side] = row
    live = {_key(row): row for row in tables["live"] if row["kind"] not in SKIPPED}
    tried = {
        row["subject"]: max(
            r["captured_at"] for r in tables["snapshot"] if r["subject"] == row["subject"]
        )
        for row in tables["snapshot"]
        if row["source"] == "live"
    }
    rows = []
    for key in {*live, *held}:
        some = held.get(key, {})
        if not some and live[key]["attrs"].get("details.internal") == "true":
            continue
        lineage = min(
            some, key=lambda name: (_rank(some[name], lineages.get(name)), name), default=None
        )
        declared, recorded = some[lineage] if lineage else (None, None)
        cluster = clusters.get(key[0], {"status": "never", "coverage": {}, "cluster_id": None})
        doubt = any(_may_hold(item, cluster) for item in lineages.values())
        if key[0] not in clusters:
            doubt = False
        for row in _object(
            key,
            declared,
            recorded,
            live.get(key),
            lineage,
            lineages.get(lineage),
            cluster,
            doubt,
            tried.get(key[0]),
        ):
            team = next((teams[start] for start in teams if key[2].startswith(start)), None)
            owner = row["owner"] or (team if key[1] == "kafka_topic" else None)
            rows.append({**row, "owner": owner})
    return rows


def _key(row: Row) -> tuple[str, str, str]:
    return row["cluster"], row["kind"], row["key"]


def _rank(pair: list[Row | None], lineage: Row | None) -> int:
    declared, recorded = pair
    if declared:
        return 0 if recorded else 1
    return 2 if lineage and lineage["desired_known"] else 3


def _may_hold(lineage: Row, cluster: Row) -> bool:
    if lineage["desired_known"] and lineage["state_at"] is not None:
        return False
    scopes = list(lineage["scopes"].values())
    return (
        not scopes
        or None in scopes
        or cluster["cluster_id"] is None
        or cluster["cluster_id"] in scopes
    )


def _object(
    key: tuple[str, str, str],
    declared: Row | None,
    recorded: Row | None,
    live: Row | None,
    name: str | None,
    lineage: Row | None,
    cluster: Row,
    doubt: bool,
    tried: datetime | None,
) -> Iterable[Row]:
    readable = cluster["status"] in ("read", "partial")
    coverage = cluster["coverage"].get(key[1]) if readable else None
    known_d = bool(lineage and lineage["desired_known"]) if name else not doubt
    known_s = bool(lineage and lineage["state_at"]) if name else not doubt
    has_d = True if declared else (False if known_d else None)
    has_s = True if recorded else (False if known_s else None)
    if live:
        has_l = True if coverage in ("complete", "visible_only") else None
    else:
        has_l = False if coverage == "complete" else None
    d, s = (row["attrs"] if row else None for row in (declared, recorded))
    shown = live["attrs"] if live and has_l else None
    times = [tried, *(row["captured_at"] for row in (declared, recorded) if row)]
    common = {
        **dict(zip(("cluster", "kind", "key"), key, strict=True)),
        "lineage": name,
        "address": next(
            (r["address"] for r in (declared, recorded) if r and r.get("address")), None
        ),
        "owner": next(
            (r["owner"] for r in (declared, recorded, live) if r and r.get("owner")), None
        ),
        "as_of": max((time for time in times if time), default=None),
    }
    differing = list(_differing(d, s, shown))
    has_all = (has_d, has_s, has_l) == (True, True, True)
    if has_all:
        whole = _by_values(*(all(eq[i] for _, eq in differing) for i in range(3)))
    else:
        whole = {
            (True, False, False): "pending_create",
            (True, False, True): "unadopted",
            (True, True, False): "deleted_out_of_band",
            (False, True, True): "pending_delete",
            (False, False, True): "unmanaged",
            (False, True, False): "stale_state",
        }.get((has_d, has_s, has_l), "unknown")  # type: ignore[arg-type]
    words = (WORDS[has_d], WORDS[has_s], WORDS[has_l])
    yield {**common, **_row("", words, whole)}
    for path, equal in differing:
        values = tuple((side or {}).get(path) for side in (d, s, shown))
        yield {**common, **_row(path, values, _by_values(*equal) if has_all else whole)}
    if d is not None and shown is not None:
        for path in shown.keys() - d.keys():
            if path.startswith("config."):
                values = (None, (s or {}).get(path), shown[path])
                yield {**common, **_row(path, values, "undeclared_override")}


def _row(path: str, values: tuple[str | None, ...], drift_class: str) -> Row:
    names = ("desired", "state", "live")
    return {"path": path, **dict(zip(names, values, strict=True)), "drift_class": drift_class}


def _differing(d: Attrs | None, s: Attrs | None, shown: Attrs | None) -> Iterable[Any]:
    paths = d.keys() if d is not None else {*(s or {}), *(shown or {})}
    for path in sorted(paths):
        told = {"d": _told(d, path), "s": _told(s, path), "l": _told(shown, path)}
        if d is not None:
            told["d"] = [d.get(path)]
        s_says = told["s"] or told["l"] or told["d"]
        l_says = told["l"] or told["s"] or told["d"]
        d_says = told["d"] if d is not None else s_says
        equal = (d_says == s_says, d_says == l_says, s_says == l_says)
        if not all(equal):
            yield path, equal


def _told(side: Attrs | None, path: str) -> list[str | None]:
    """What this side says of the path; empty: it says nothing."""
    head = path.split(".")[0]
    if side is None or not (head == "config" or any(p.split(".")[0] == head for p in side)):
        return []
    return [side.get(path)]


def _by_values(ds: bool, dl: bool, sl: bool) -> str:
    names = {
        (True, True, True): "in_sync",
        (True, False, False): "drifted",
        (False, True, False): "state_behind",
        (False, False, True): "pending_update",
        (False, False, False): "conflict",
    }
    return names[ds, dl, sl]


# -- since when


@dataclass(frozen=True)
class Past:
    """All snapshots of a fleet. metas: rows of `snapshot`; rows: (source, subject, snapshot) -> its
    rows; names: scope id -> cluster; scopes: lineage -> scope ids that it may be about."""

    metas: Sequence[Row]
    rows: Mapping[tuple[str, str, str], Sequence[Row]]
    names: Mapping[str, str]
    scopes: Mapping[str, Sequence[str | None]]
    stale_after: timedelta
    as_of: datetime

    def good(self, source: str, subject: str | None = None) -> list[Row]:
        return [m for m in self.tries(source, subject) if m["sha256"] is not None]

    def tries(self, source: str, subject: str | None = None) -> list[Row]:
        chosen = (m for m in self.metas if m["source"] == source)
        return sorted(
            (m for m in chosen if subject in (None, m["subject"])),
            key=lambda meta: meta["captured_at"],
        )

    def shown(self, meta: Row) -> Sequence[Row]:
        return self.rows[meta["source"], meta["subject"], meta["snapshot"]]


Classes = Mapping[tuple[str, str, str], str]
"""kind, key, path -> class; none for what is unknown."""


def moments(past: Past, cluster: str) -> list[tuple[datetime, Classes, Mapping[Any, str | None]]]:
    """Each moment at which something about the cluster was read, the classes at that time, with
    each side as it was last read, and the state that decides for each kind and key."""
    readings = [(m["captured_at"], m) for m in past.good("live", cluster)]
    together = {m["snapshot"]: m["captured_at"] for m in past.good("live", cluster)}
    for source in ("state", "desired"):
        for meta in past.good(source):
            about = {past.names.get(scope) for scope in meta["scopes"].values()}
            at = meta["captured_at"]
            at = together.get(meta["snapshot"], at) if cluster in about else at
            readings.append((at, meta))
    found = []
    for time in sorted({at for at, _ in readings}):
        until = sorted((r for r in readings if r[0] <= time), key=lambda r: r[0])
        found.append((time, *_classes_at(past, cluster, [meta for _, meta in until])))
    return found


def _classes_at(past: Past, cluster: str, metas: Sequence[Row]) -> tuple[Classes, Any]:
    live: dict[tuple[str, str], Row] = {}
    whole: set[str] = set()
    held: dict[tuple[str, str], dict[str, list[Row | None]]] = {}
    newest = {}
    for meta in metas:
        if meta["source"] != "live":
            newest[meta["subject"], meta["source"]] = meta
            continue
        shown = {(r["kind"], r["key"]): r for r in past.shown(meta) if r["kind"] not in SKIPPED}
        whole |= {kind for kind, how in meta["coverage"].items() if how == "complete"}
        for pair in [p for p in live if p not in shown]:
            if meta["coverage"].get(pair[0]) == "complete":
                del live[pair]
        live |= {p: r for p, r in shown.items() if meta["coverage"].get(p[0]) in SHOWN}
    for (lineage, source), meta in newest.items():
        for row in past.shown(meta):
            if past.names[row["scope_id"]] == cluster:
                sides = held.setdefault((row["kind"], row["key"]), {})
                sides.setdefault(lineage, [None, None])[source == "state"] = row
    classes: dict[tuple[str, str, str], str] = {}
    deciding: dict[tuple[str, str], str | None] = {}
    for pair in {*live, *held}:
        some = held.get(pair, {})
        read = {
            name: {
                "desired_known": (name, "desired") in newest,
                "state_at": (name, "state") in newest or None,
            }
            for name in some
        }
        lineage = min(some, key=lambda name: (_rank(some[name], read[name]), name), default=None)
        declared, recorded = some[lineage] if lineage else (None, None)
        deciding[pair] = lineage
        known = {"status": "read", "coverage": {pair[0]: "complete"}}
        if pair not in live and pair[0] not in whole:
            known["coverage"] = {}
        sides = [r and {"captured_at": None, **r} for r in (declared, recorded)]
        for row in _object(
            (cluster, *pair),
            *sides,
            live.get(pair),
            lineage,
            read.get(lineage or ""),
            known,
            False,
            None,
        ):
            if row["drift_class"] != "unknown":
                classes[*pair, row["path"]] = row["drift_class"]
    return classes, deciding


SHOWN = ("complete", "visible_only")
Span = tuple[datetime, datetime | None]


def unread_kind(past: Past, cluster: str, kind: str) -> list[Span]:
    """When nobody could read the kind; the end is None if it lasts."""
    tries = past.tries("live", cluster)
    times: list[tuple[datetime, bool]] = []
    for number, meta in enumerate(tries):
        good = meta["sha256"] is not None and meta["coverage"].get(kind) in SHOWN
        times.append((meta["captured_at"], good))
        after = tries[number + 1]["captured_at"] if number + 1 < len(tries) else past.as_of
        stale = meta["captured_at"] + past.stale_after
        if good and after > stale:
            times.append((stale, False))
    return _spans(times)


def unread_lineage(past: Past, lineage: str) -> list[Span]:
    tries = past.tries("desired", lineage)
    return _spans([(m["captured_at"], m["sha256"] is not None) for m in tries])


def _spans(times: Sequence[tuple[datetime, bool]]) -> list[Span]:
    spans: list[Span] = []
    begin = None
    for at, good in times:
        if good and begin is not None:
            spans.append((begin, at))
            begin = None
        elif not good and begin is None:
            begin = at
    return spans + ([(begin, None)] if begin is not None else [])


def unread(past: Past, cluster: str, kind: str, lineage: str | None) -> list[Span]:
    """When objects of this kind and this deciding state were unknown, for each reason."""
    scope = next((scope for scope, name in past.names.items() if name == cluster), None)
    reaching = [
        name
        for name, scopes in past.scopes.items()
        if not scopes or scope is None or scope in scopes or None in scopes
    ]
    concerned = [n for n in reaching if lineage in (None, n)]
    of_lineages = [span for name in concerned for span in unread_lineage(past, name)]
    return unread_kind(past, cluster, kind) + of_lineages


def first_seen(past: Past, row: Row, seen: Sequence[tuple[datetime, Classes, Any]]) -> datetime:
    """row: of `drift`; seen: the moments of its cluster."""
    place = (row["kind"], row["key"], row["path"])
    if row["drift_class"] == "unknown":
        spans = unread(past, row["cluster"], row["kind"], row["lineage"])
        return min((since for since, until in spans if until is None), default=row["as_of"])
    since = None
    for at, classes, _ in reversed(seen):
        if classes.get(place) != row["drift_class"]:
            break
        since = at
    return since or row["as_of"]


def daily(past: Past, cluster: str, seen: Sequence[tuple[datetime, Classes, Any]]) -> list[Row]:
    """The rows of `drift_daily` of one cluster."""
    tries = [m["captured_at"].date() for m in past.tries("live", cluster)]
    counts: Counter[tuple[date, str, str]] = Counter()
    days = (
        [min(tries) + timedelta(n) for n in range((max(tries) - min(tries)).days + 1)]
        if tries
        else []
    )
    for day in days:
        until = [moment for moment in seen if moment[0].date() <= day]
        if not until:
            continue
        _, classes, deciding = until[-1]
        counted = {
            (kind, key, name)
            for (kind, key, path), name in classes.items()
            if path == "" or name == "undeclared_override"
        }
        for kind, key, name in counted:
            spans = unread(past, cluster, kind, deciding[kind, key])
            if any(a.date() <= day and (b is None or b.date() > day) for a, b in spans):
                name = "unknown" if name != "undeclared_override" else ""
            if name:
                counts[day, kind, name] += 1
    return [
        {"day": day, "cluster": cluster, "kind": kind, "drift_class": name, "objects": count}
        for (day, kind, name), count in counts.items()
    ]
