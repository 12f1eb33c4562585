"""Findings of rules, row by row; a rule's condition is a Python function here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import date
from fnmatch import fnmatchcase
from typing import Any

from kafkaform.fleet.landed.register import PolicyRule, Register, RegisteredWaiver

Row = dict[str, Any]
Meaning = Callable[[Row], bool | None]
OBJECT = ("cluster", "kind", "key")
NAMED_ONLY = ("cluster", "topic_usage", "group_usage")


def glob(pattern: str, name: str) -> bool:
    return fnmatchcase(name, pattern.replace("[", "[[]"))


def owner_of(row: Row, declared: Sequence[Row], register: Register) -> str | None:
    """declared: desired rows before recorded ones."""
    if row.get("owner") is not None:
        return str(row["owner"])
    for other in declared:
        if other.get("owner") is not None and all(other[n] == row[n] for n in OBJECT):
            return str(other["owner"])
    if row["kind"] in ("kafka_topic", "kafka_topic_config", "topic_usage"):
        for owner in register.owners:
            if any(glob(pattern, row["key"]) for pattern in owner.topics):
                return owner.name
    return None


def findings(
    tables: Mapping[str, Sequence[Row]],
    register: Register,
    meanings: Mapping[str, Meaning],
    today: date,
) -> list[Row]:
    """meanings: rule -> condition."""
    declared = [
        row
        for name in ("desired", "recorded")
        for row in sorted(tables[name], key=lambda row: row["lineage"])
    ]
    clusters = {row["cluster"]: row for row in tables["cluster"]}
    past = _list_past(tables)
    found: dict[tuple[Any, ...], Row] = {}
    for rule in register.rules:
        for row in tables[rule.source]:
            named = row["kind"] == rule.kind or row["kind"] not in NAMED_ONLY
            if not named or not glob(rule.kind, row["kind"]):
                continue
            place = clusters.get(row["cluster"], {})
            owner = owner_of(row, declared, register)
            whole = {**row, "owner": owner, "env": place.get("env"), "region": place.get("region")}
            if meanings[rule.name](whole) is True:
                since = row["captured_at"]
                end = None
                for interval in past.get(_object(rule.source, row), ()):
                    broken = meanings[rule.name]({**whole, "attrs": interval["attrs"]}) is True
                    if not broken or interval.get("valid_to") != end:
                        break
                    since = end = interval["valid_from"]
                finding = {**_finding(rule, whole, today), "first_seen": since}
                known = found.setdefault(_key(finding), finding)
                known["owner"] = min(known["owner"] or "~", finding["owner"] or "~")
                known["first_seen"] = min(known["first_seen"], finding["first_seen"])
    for finding in found.values():
        finding["owner"] = None if finding["owner"] == "~" else finding["owner"]
    return list(found.values())


def _list_past(tables: Mapping[str, Sequence[Row]]) -> Mapping[tuple[Any, ...], list[Row]]:
    """Source and object -> its intervals, the newest first."""
    names = {row.get("cluster_id"): row["cluster"] for row in tables["cluster"]}
    intervals = [(_object("live", row), row) for row in tables["history"]]
    for row in tables["declared_history"]:
        if row["source"] == "desired":
            scope = row["scope_id"]
            intervals.append((_object("desired", {**row, "cluster": names.get(scope, scope)}), row))
    past: dict[tuple[Any, ...], list[Row]] = {}
    for key, row in sorted(intervals, key=lambda pair: pair[1]["valid_from"], reverse=True):
        past.setdefault(key, []).append(row)
    return past


def _object(source: str, row: Row) -> tuple[Any, ...]:
    return (source, row.get("lineage"), *(row[name] for name in OBJECT))


def _key(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in ("rule", *OBJECT, "path"))


def _finding(rule: PolicyRule, row: Row, today: date) -> Row:
    covering = [
        w for w in rule.waivers if glob(w.cluster, row["cluster"]) and glob(w.key, row["key"])
    ]
    valid: Iterable[RegisteredWaiver] = [w for w in covering if w.until >= today]
    waiver = next(iter(valid), None)
    ended = max((w.until for w in covering), default=None) if waiver is None else None
    return {
        "rule": rule.name,
        "severity": rule.severity,
        **{name: row[name] for name in OBJECT},
        "path": "",
        "message": rule.message + (f" (its waiver ended on {ended})" if ended else ""),
        "owner": rule.owner or row["owner"],
        "waived": waiver is not None,
        "waiver": waiver.reason if waiver else None,
        "waived_until": waiver.until if waiver else None,
    }
