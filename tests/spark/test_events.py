"""Steps, conflicts and runs out of audit logs, against a reading of the lines one by one."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping
from datetime import datetime
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from kafkaform.fleet.datasets.runs import GENESIS, build_event, build_event_conflict, build_run
from kafkaform.fleet.landed.register import Register
from kafkaform.fleet.tables.definitions import BuildContext

from ..kit.fleet.frames import frame
from ..kit.fleet.landings import audit_rows, collected, in_order, log, moment, step

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

GOLDEN = Path(__file__).parent.parent / "cases" / "audit" / "golden.jsonl"
LINEAGE = "0d9c6f5e-lineage"
CONTEXT = BuildContext(Register(), moment(1000), "b1")
CLUSTERS = [
    {"cluster": "a", "cluster_id": "scope-a", "registered": True, "captured_at": moment(1)},
    {"cluster": "old-a", "cluster_id": "scope-a", "registered": True, "captured_at": moment(0)},
    {"cluster": "x", "cluster_id": "scope-x", "registered": False},
    {"cluster": "never", "cluster_id": None, "registered": True},
]
NAMES = {"scope-a": "a", "scope-x": "x"}
Rows = list[dict[str, Any]]


# -- the oracle


def sound(raw: Iterable[Mapping[str, Any]]) -> dict[tuple[str, int], dict[str, Mapping[str, Any]]]:
    """(lineage, seq) -> hash -> row."""
    found: dict[tuple[str, int], dict[str, Mapping[str, Any]]] = {}
    for one in raw:
        if one.get("seq") is not None:
            found.setdefault((one["lineage"], one["seq"]), {})[one["hash"]] = one
    return found


def conflicts(raw: Rows) -> set[tuple[str, str]]:
    rivals = {place for place, rows in sound(raw).items() if len(rows) > 1}
    return {
        (f"{one['lineage']}/{one['seq']}", one["line"])
        for one in raw
        if (one["lineage"], one.get("seq")) in rivals
    }


def begins(raw: Rows) -> dict[tuple[str, str], str | None]:
    """Commit of each run that began."""
    found = {}
    for (lineage, _), rows in sorted(sound(raw).items()):
        one = rows[max(rows)]
        if one["kind"] == "run_begin":
            found[lineage, one["run"]] = json.loads(one["body"]).get("commit")
    return found


def steps(raw: Rows) -> Rows:
    made, commits = [], begins(raw)
    for (lineage, seq), rows in sound(raw).items():
        one = next(iter(rows.values()))
        body = json.loads(one["body"])
        if len(rows) > 1 or one["kind"] not in ("intent", "outcome", "recover"):
            continue
        if "step" not in body:
            continue
        of_run, error = body.get("of_run", one["run"]), body.get("error") or {}
        same = ("address", "kind", "key", "action", "adopts", "incarnation", "phase", "step")
        more = ("attempt", "outcome", "duration_ms", "plan", "approval", "scope_id", "instance")
        made.append(
            {
                **{name: body.get(name) for name in (*same, *more)},
                **{"event_id": f"{lineage}/{seq}", "lineage": lineage, "seq": seq},
                **{"ts": datetime.fromisoformat(one["time"]), "run": of_run},
                **{"actor": one["actor"], "record": one["kind"]},
                **{"cluster": NAMES.get(body["scope_id"], body["scope_id"])},
                **{"error_code": error.get("code"), "error": error.get("message")},
                **{"changes": tuple(map(shown, body["paths"]))},
                **{"commit": commits.get((lineage, of_run))},
            }
        )
    return made


def shown(path: Mapping[str, Any]) -> dict[str, Any]:
    return path | {name: as_text(path[name]) for name in ("before", "after")}


def as_text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, separators=(",", ":"), sort_keys=True)


def chains(raw: Rows, lineage: str) -> dict[int, str]:
    """seq -> what the log is worth up to there."""
    places = {seq: rows for (of, seq), rows in sound(raw).items() if of == lineage}
    bad = {one["claims"] for one in raw if one["lineage"] == lineage and "claims" in one}
    worth, last, hashes = 0, 0, {GENESIS}
    found = {}
    for seq in sorted(places | dict.fromkeys(bad)):
        rows = places.get(seq, {})
        follows = {one["prev"] for one in rows.values()} <= hashes
        if len(rows) != 1:
            worth = 2
        elif seq != last + 1:
            worth = max(worth, 1)
        elif not follows:
            worth = 2
        last, hashes = seq, set(rows) or {"?"}
        found[seq] = ("sound", "gap", "broken")[worth]
    return found


def runs(raw: Rows) -> Rows:
    by_run: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for (lineage, _), rows in sorted(sound(raw).items()):
        for _, one in sorted(rows.items()):
            by_run.setdefault((lineage, one["run"]), []).append(one)
    return [told(raw, *key, records) for key, records in by_run.items() if ran(records)]


def ran(records: list[Mapping[str, Any]]) -> bool:
    return any(one["kind"] not in ("state", "recover", "checkpoint") for one in records)


def told(raw: Rows, lineage: str, name: str, records: list[Mapping[str, Any]]) -> dict[str, Any]:
    begin = next((r for r in reversed(records) if r["kind"] == "run_begin"), None)
    end = next((r for r in reversed(records) if r["kind"] == "run_end"), None)
    if begin and end and end["seq"] < begin["seq"]:
        end = None
    about = json.loads(begin["body"]) if begin else {}
    refused = [
        item
        for one in records
        if one["kind"] == "validate"
        for item in json.loads(one["body"])["steps"]
        if item["error"]
    ]
    return {
        **{"lineage": lineage, "run": name, "actor": records[0]["actor"]},
        **{"command": about.get("command"), "host": about.get("host")},
        **{"commit": about.get("commit"), "version": about.get("kafkaform_version")},
        **{"started_at": min(datetime.fromisoformat(r["time"]) for r in records)},
        "scopes": about.get("scopes"),
        "ended_at": datetime.fromisoformat(end["time"]) if end else None,
        "complete": json.loads(end["body"])["complete"] if end else None,
        **{"refused": len(refused), "chain": chains(raw, lineage)[records[-1]["seq"]]},
    }


# -- random logs


VALUES = (
    None,
    "x",
    "",
    "12",
    12,
    Decimal("12345678.5"),
    True,
    [1, "b"],
    {"b": 1, "a": None},
    10**20,
)


def body_of(kind: str, dice: random.Random) -> dict[str, Any]:
    if kind == "run_begin":
        about = {"commit": dice.choice(("e5", "f6", None)), "scopes": {"kafka": "scope-a"}}
        return {**about, "command": "apply", "host": "h", "kafkaform_version": "0.1"}
    if kind == "run_end":
        return {"complete": dice.random() < 0.5, "counts": {}}
    if kind == "validate":
        faults = [None, {"code": "X", "message": "m"}]
        return {"steps": [{"step": str(n), "error": dice.choice(faults)} for n in range(3)]}
    if kind in ("state", "plan"):
        return {"serial": 1}
    if kind == "recover" and dice.random() < 0.3:
        return {"torn": []}
    paths = [
        {"path": p, "before": dice.choice(VALUES), "after": dice.choice(VALUES), "sensitive": False}
        for p in ("a", "b")[: dice.randint(0, 2)]
    ]
    more: dict[str, Any] = {"paths": paths, "scope_id": dice.choice(("scope-a", "scope-x", "s"))}
    if kind == "recover":
        more["of_run"] = dice.choice(("r1", "r2"))
    if kind != "intent":
        error = dice.choice((None, {"code": "C", "message": "m", "kind": "k", "where": None}))
        more |= {"outcome": dice.choice(("applied", "failed")), "error": error}
    return step("orders", **more)


KINDS = ("run_begin", "validate", "intent", "outcome", "recover", "run_end", "state", "plan")


def log_of(lineage: str, dice: random.Random) -> Rows:
    """A log with what can happen to one: repeated lines, missing ones, rivals, changed ones."""
    count = dice.randint(1, 12)
    records = [
        (kind, dice.choice(("r1", "r2", "r3")), body_of(kind, dice))
        for kind in dice.choices(KINDS, k=count)
    ]
    rows = audit_rows(lineage, log(lineage, records))
    fate = dice.random()
    if fate < 0.15 and count > 1:
        del rows[dice.randrange(count)]
    elif fate < 0.3:
        place = dice.randrange(count)
        other = [(k, r, {**b, "_actor": "eve"}) for k, r, b in records]
        rows.append(audit_rows(lineage, log(lineage, other))[place])
    elif fate < 0.45:
        rows[dice.randrange(count)] = changed(rows[dice.randrange(count)])
    return rows + dice.choices(rows, k=dice.randint(0, 2))


def changed(row: Mapping[str, Any]) -> dict[str, Any]:
    """As intake leaves a line whose hash is wrong: no record, but it says which one it would be."""
    kept = ("line", "lineage", "origin", "_file", "_build", "_ingested_at")
    return {name: row[name] for name in kept} | {"claims": row["seq"]}


@pytest.fixture(scope="module")
def raw() -> Rows:
    golden = audit_rows(LINEAGE, GOLDEN.read_bytes().splitlines())
    dice = random.Random(7)
    rows = golden + [row for n in range(120) for row in log_of(f"l{n}", dice)]
    dice.shuffle(rows)
    return rows


def table(spark: SparkSession, raw: Rows) -> DataFrame:
    names = {name for row in raw for name in row} - {"claims"}
    return frame(spark, "audit_raw", [{n: row.get(n) for n in names} for row in raw])


# -- tests


def test_steps_and_conflicts(spark: SparkSession, raw: Rows) -> None:
    """Every sound record of a step is one event, with values as landing files write them; rivals
    are none, and are told of line by line."""
    audit = table(spark, raw)
    found = collected(build_event_conflict({"audit_raw": audit}, CONTEXT))
    assert {(row["event_id"], row["payload"]) for row in found} == conflicts(raw)
    assert len(found) == len(conflicts(raw)) > 10
    frames = {
        "audit_raw": audit,
        "run": frame(spark, "run", runs(raw)),
        "event_conflict": frame(spark, "event_conflict", found),
        "cluster": frame(
            spark, "cluster", [{"status": "read", "coverage": {}, **c} for c in CLUSTERS]
        ),
    }
    events = collected(build_event(frames, CONTEXT))
    assert in_order(events) == in_order(steps(raw))
    assert len({row["event_id"] for row in events}) == len(events) > 150


def test_runs_and_their_chains(spark: SparkSession, raw: Rows) -> None:
    """Who ran what and how it ended, and whether the log can be believed up to there."""
    found = collected(build_run({"audit_raw": table(spark, raw)}, CONTEXT))
    assert in_order(found) == in_order(runs(raw))
    assert {row["chain"] for row in found} == {"sound", "gap", "broken"}
    of_golden = {row["run"]: row for row in found if row["lineage"] == LINEAGE}
    assert {name: row["chain"] for name, row in of_golden.items()} == {
        "run-1": "sound",
        "run-2": "sound",
    }
    assert of_golden["run-2"]["complete"] is True
    assert of_golden["run-1"]["ended_at"] is None
