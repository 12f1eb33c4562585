"""Attribution, change by change, with nothing but lists."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from typing import Any

Row = dict[str, Any]
KEY = ("cluster", "kind", "key")


def tries(events: list[Row]) -> list[Row]:
    """Each intent with its end; since, until, and who sent it."""
    steps: dict[Any, list[Row]] = {}
    for event in sorted(events, key=lambda e: e["seq"]):
        name = tuple(event[n] for n in ("lineage", "plan", "step", "attempt"))
        steps.setdefault(name, []).append(event)
    return [item for records in steps.values() for item in _tries(records)]


def _tries(records: list[Row]) -> Iterator[Row]:
    for before, record, after in zip([None, *records], records, [*records[1:], None], strict=False):
        if record["record"] == "intent":
            if after is None or after["record"] == "intent":
                yield {**record, "since": record["ts"], "until": None, "outcome": "unknown"}
        else:
            sender = before if before and before["record"] == "intent" else record
            about = {name: sender[name] for name in ("run", "actor", "commit")}
            yield {**record, **about, "since": sender["ts"], "until": record["ts"]}


def effects(sent: list[Row]) -> list[Row]:
    found = []
    for one in sent:
        if one["outcome"] not in ("applied", "started", "unknown"):
            continue
        changes = [] if one["action"] in ("delete", "forget") else list(one["changes"])
        if one["action"] in ("create", "delete"):
            words = ("absent", "present") if one["action"] == "create" else ("present", "absent")
            whole = dict(zip(("before", "after"), words, strict=True))
            changes.append({"path": "", **whole, "sensitive": False})
        found += [{**one, **change} for change in changes]
    return found


def attribution(
    history: list[Row], events: list[Row], snapshots: list[Row], skew: float
) -> list[Row]:
    """The rows of the table, without their order."""
    rows = []
    for cluster in sorted({row["cluster"] for row in (*history, *events)}):
        own = [[r for r in rows_of if r["cluster"] == cluster] for rows_of in (history, events)]
        looks = [s for s in snapshots if s["subject"] == cluster]
        rows += _of_cluster(own[0], own[1], looks, timedelta(seconds=skew))
    return rows


def _of_cluster(
    history: list[Row], events: list[Row], snapshots: list[Row], skew: timedelta
) -> list[Row]:
    sent = effects(tries(events))
    changes = list(_changes(history, snapshots))
    return [*_explained(changes, sent, skew), *_missing(sent, history, snapshots, skew)]


def _key(row: Row) -> tuple[str, ...]:
    return tuple(row[name] for name in KEY)


def _complete(snapshots: list[Row], cluster: str, kind: str) -> list[Row]:
    found = [
        s
        for s in snapshots
        if (s["source"], s["subject"]) == ("live", cluster)
        and s["coverage"].get(kind) == "complete"
    ]
    return sorted(found, key=lambda s: s["captured_at"])


def _changes(history: list[Row], snapshots: list[Row]) -> Iterator[Row]:
    spans: dict[Any, list[Row]] = {}
    for span in sorted(history, key=lambda s: s["valid_from"]):
        spans.setdefault(_key(span), []).append(span)
    for key, chain in spans.items():
        about = dict(zip(KEY, key, strict=True))
        for last, span in pairwise([None, *chain]):
            assert span is not None
            window = {"window_start": span["seen_before"], "window_end": span["valid_from"]}
            if last is None or last["valid_to"] != span["valid_from"]:
                yield {**about, **window, "path": "", "before": "absent", "after": "present"}
            else:
                for path, before, after in _differing(last, span):
                    yield {**about, **window, "path": path, "before": before, "after": after}
            if span["deleted"]:
                times = [s["captured_at"] for s in _complete(snapshots, *key[:2])]
                seen = (
                    [t for t in times if t < span["valid_to"]] if span["valid_to"] in times else []
                )
                start = max([*seen, span["valid_from"]])
                window = {"window_start": start, "window_end": span["valid_to"]}
                yield {**about, **window, "path": "", "before": "present", "after": "absent"}


def _differing(last: Row, span: Row) -> Iterator[tuple[str, Any, Any]]:
    known = None not in (last["incarnation"], span["incarnation"])
    if known and last["incarnation"] != span["incarnation"]:
        yield "", "present", "present"
    for path in sorted(last["attrs"].keys() | span["attrs"].keys()):
        before, after = last["attrs"].get(path), span["attrs"].get(path)
        if before != after and not path.startswith("details."):
            yield path, before, after


def _explained(changes: list[Row], sent: list[Row], skew: timedelta) -> Iterator[Row]:
    used: dict[Any, Row] = {}
    for change in sorted(changes, key=lambda c: c["window_end"]):
        for effect in sent:
            if _fits(change, effect, skew):
                name = (*_key(effect), effect["path"], effect["event_id"])
                used.setdefault(name, change)
    for change in changes:
        own = [e for e in sent if used.get((*_key(e), e["path"], e["event_id"])) is change]
        own.sort(key=lambda e: e["event_id"])
        own.sort(key=lambda e: e["since"], reverse=True)
        own.sort(key=lambda e: e["outcome"] == "unknown")
        if own:
            verdict = "unclear" if own[0]["outcome"] == "unknown" else "applied"
            yield {**change, "verdict": verdict, **_sender(own[0])}
        elif change["window_start"] is not None:
            yield {**change, "verdict": "out_of_band", "event_id": ""}


def _fits(change: Row, effect: Row, skew: timedelta) -> bool:
    if (_key(change), change["path"]) != (_key(effect), effect["path"]):
        return False
    if not effect["sensitive"] and change["after"] != effect["after"]:
        return False
    if effect["since"] > change["window_end"] + skew:
        return False
    long = effect["outcome"] in ("started", "unknown") or effect["record"] == "recover"
    if long or change["window_start"] is None:
        return True
    return bool(effect["until"] > change["window_start"] - skew)


def _sender(effect: Row) -> Row:
    return {name: effect[name] for name in ("event_id", "run", "actor", "commit")}


def _missing(
    sent: list[Row], history: list[Row], snapshots: list[Row], skew: timedelta
) -> Iterator[Row]:
    for effect in sent:
        if effect["outcome"] != "applied" or effect["sensitive"]:
            continue
        looks = _complete(snapshots, *_key(effect)[:2])
        after = [s for s in looks if s["started_at"] > effect["until"] + skew]
        if not after:
            continue
        look = min(after, key=lambda s: s["started_at"])["captured_at"]
        if any(_follows(other, effect) and other["since"] <= look + skew for other in sent):
            continue
        spans = [s for s in history if _key(s) == _key(effect)]
        later = [s for s in spans if not s["valid_to"] or s["valid_to"] > effect["since"] - skew]
        at_look = [
            s
            for s in spans
            if s["valid_from"] <= look and not (s["valid_to"] and s["valid_to"] <= look)
        ]
        if _gone(effect, later, at_look):
            before = [s["captured_at"] for s in looks if s["captured_at"] < look]
            window = {"window_start": max(before, default=None), "window_end": look}
            kept = {n: effect[n] for n in (*KEY, "path", "before", "after")}
            yield {**kept, **window, "verdict": "not_effective", **_sender(effect)}


def _gone(effect: Row, later: list[Row], at_look: list[Row]) -> bool:
    """True if what should be seen is not."""
    path = effect["path"]
    if path == "" and effect["after"] == "present":
        return not later
    if path == "":
        return (
            bool(at_look)
            and not any(s["deleted"] for s in later)
            and not any(
                None not in (s["incarnation"], effect["incarnation"])
                and s["incarnation"] != effect["incarnation"]
                for s in at_look
            )
        )
    heads = {p.split(".")[0] for s in at_look for p in s["attrs"]} | {"config"}
    if not at_look or path.split(".")[0] not in heads:
        return False
    return not any(s["attrs"].get(path) == effect["after"] for s in later)


def _follows(other: Row, effect: Row) -> bool:
    """True if it was sent after the effect, and touches the same."""
    if _key(other) != _key(effect) or other["path"] not in ("", effect["path"]):
        return False
    if (other["since"], other["event_id"]) == (effect["since"], effect["event_id"]):
        return False
    if other["since"] != effect["since"]:
        return bool(other["since"] > effect["since"])
    if other["lineage"] != effect["lineage"]:
        return bool(other["lineage"] < effect["lineage"])
    return bool(other["seq"] > effect["seq"])
