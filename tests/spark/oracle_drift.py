"""Drift as a person would find it: object by object, with nothing but dicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

Row = dict[str, Any]
Attrs = Mapping[str, str]

EMPTY: Mapping[str, str] = {}
SKIPPED = {"topic_usage", "group_usage", "cluster"}
WORDS = {True: "present", False: "absent", None: None}


def drift(
    tables: Mapping[str, list[Row]], as_of: datetime, teams: Mapping[str, str] = EMPTY
) -> list[Row]:
    """The rows of the table, without their order. teams: start of a topic's name -> owner."""
    clusters = {row["cluster"]: row for row in tables["cluster"]}
    lineages = {row["lineage"]: row for row in tables["lineage"]}
    held: dict[Any, dict[str, list[Row | None]]] = {}
    for side, name in enumerate(("desired", "recorded")):
        for row in tables[name]:
            held.setdefault(_key(row), {}).setdefault(row["lineage"], [None, None])[side] = row
    live = {_key(row): row for row in tables["live"] if row["kind"] not in SKIPPED}
    old = {(*_key(r), r["path"], r["drift_class"]): r["first_seen"] for r in tables["drift"]}
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
            as_of,
        ):
            before = old.get((*key, row["path"], row["drift_class"]))
            team = next((teams[start] for start in teams if key[2].startswith(start)), None)
            owner = row["owner"] or (team if key[1] == "kafka_topic" else None)
            rows.append({**row, "owner": owner, "first_seen": before or row["as_of"]})
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
    as_of: datetime,
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
    times = [row["captured_at"] for row in (declared, recorded) if row] + [
        cluster.get("captured_at")
    ]
    common = {
        **dict(zip(("cluster", "kind", "key"), key, strict=True)),
        "lineage": name,
        "address": next(
            (r["address"] for r in (declared, recorded) if r and r.get("address")), None
        ),
        "owner": next(
            (r["owner"] for r in (declared, recorded, live) if r and r.get("owner")), None
        ),
        "as_of": max(t for t in times if t) if readable else as_of,
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
