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
    before = {_key(row): row["first_seen"] for row in tables["policy_findings"]}
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
                finding = _finding(rule, whole, today)
                known = found.setdefault(_key(finding), finding)
                known["owner"] = min(known["owner"] or "~", finding["owner"] or "~")
                known["first_seen"] = min(known["first_seen"], finding["first_seen"])
    for key, finding in found.items():
        finding["first_seen"] = before.get(key, finding["first_seen"])
        finding["owner"] = None if finding["owner"] == "~" else finding["owner"]
    return list(found.values())


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
        "first_seen": row["captured_at"],
    }
