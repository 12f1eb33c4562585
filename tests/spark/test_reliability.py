"""Reliability of applies: made steps by hand, random ones against an oracle."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from kafkaform.fleet.landed.register import Register
from kafkaform.fleet.tables.definitions import BuildContext

from .comparison import Row, alike, filled, plain
from .oracle_attribution import tries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T0 = datetime(2026, 3, 1, 23, tzinfo=UTC)
ENDS = ("applied", "failed", "unknown", "skipped")


def event(case: str, seq: int, outcome: str | None, **more: Any) -> Row:
    """outcome None: an intent."""
    return {
        "event_id": f"{case}/{seq}",
        "cluster": case,
        "lineage": case,
        "seq": seq,
        "ts": T0 + timedelta(seconds=seq),
        "run": "r1",
        "record": "intent" if outcome is None else "outcome",
        "kind": "kafka_topic",
        "step": "a",
        "attempt": 1,
        "plan": "p",
        "outcome": outcome,
        "commit": None,
        "actor": "ada",
        **more,
    }


def run(case: str, name: str = "r1", *, complete: bool | None = True, refused: int = 0) -> Row:
    return {"lineage": case, "run": name, "complete": complete, "refused": refused}


def reliability(events: list[Row], runs: list[Row]) -> list[Row]:
    """The rows of the table, step by step."""
    about = {(r["lineage"], r["run"]): r for r in runs}
    steps: dict[Any, list[Row]] = {}
    for one in sorted(tries(events), key=lambda t: (t["attempt"], t["seq"])):
        steps.setdefault((one["lineage"], one["run"], one["step"]), []).append(one)
    groups: dict[Any, list[list[Row]]] = {}
    for all_tries in steps.values():
        last = all_tries[-1]
        codes = {t["error_code"] for t in all_tries if t.get("error_code")}
        for code in {"", *codes}:
            key = (last["ts"].date(), last["cluster"], last["kind"], code)
            groups.setdefault(key, []).append(all_tries)
    partial = {name for name in {s[:2] for s in steps} if _partial(name, steps, about.get(name))}
    return [_row(key, members, partial, about) for key, members in groups.items()]


def _partial(name: Any, steps: dict[Any, list[Row]], run: Row | None) -> bool:
    ends = [t[-1]["outcome"] for step, t in steps.items() if step[:2] == name]
    good = [end in ("applied", "started") for end in ends]
    cut_off = run is not None and not run["complete"]
    return any(good) and (not all(good) or cut_off)


def _row(key: Any, members: list[list[Row]], partial: set[Any], about: dict[Any, Row]) -> Row:
    day, cluster, kind, code = key
    ends = [member[-1]["outcome"] for member in members]
    runs = {(member[0]["lineage"], member[0]["run"]) for member in members}
    clean = {name for name in runs if name in about and not about[name]["refused"]}
    measured = sorted(
        t["duration_ms"]
        for member in members
        for t in member
        if t["record"] == "outcome" and t["outcome"] != "skipped" and t["duration_ms"] is not None
        if not code or t.get("error_code") == code
    )
    return {
        "day": day,
        "cluster": cluster,
        "kind": kind,
        "error_code": code,
        "steps": len(members),
        **{end: ends.count(end) for end in ENDS},
        "retries": sum(len(member) - 1 for member in members),
        "runs": len(runs),
        "partial_runs": len(runs & partial),
        "validated_then_failed": sum(
            m[-1]["outcome"] == "failed" and (m[0]["lineage"], m[0]["run"]) in clean
            for m in members
        ),
        "p50_ms": _percentile(measured, 0.5),
        "p95_ms": _percentile(measured, 0.95),
    }


def _percentile(values: list[int], share: float) -> float | None:
    """Between the two values that are next to it, by distance."""
    if not values:
        return None
    at = share * (len(values) - 1)
    low = int(at)
    high = min(low + 1, len(values) - 1)
    return values[low] + (at - low) * (values[high] - values[low])


def some_run(random: Random, case: str) -> tuple[list[Row], list[Row]]:
    """Steps of two runs in one log; each is tried until it ends, is left open, or recovered."""
    events: list[Row] = []
    names = ("r1", "r2")
    for name in names:
        for step in range(random.randrange(1, 6)):
            about = {
                "run": name,
                "step": f"s{step}",
                "plan": name,
                "kind": random.choice(("kafka_topic", "kafka_acl")),
            }
            for attempt in range(1, random.choice((2, 2, 2, 3, 4))):
                about["attempt"] = attempt
                at = len(events) * 300 + 1
                events.append(event(case, at, None, **about))
                end = random.choice(("applied", "applied", "failed", "started", "skipped", None))
                if end is None and random.random() < 0.5:
                    break
                more: Row = {"duration_ms": random.choice((None, random.randrange(900)))}
                if end is None:
                    more = {"record": "recover", "run": "r9", "duration_ms": 0}
                    end = random.choice(("applied", "failed"))
                if end == "failed":
                    more["error_code"] = random.choice(("NOT_CONTROLLER", "TIMEOUT", None))
                events.append(event(case, at + 100, end, **about | more))
                if end != "failed":
                    break
    runs = [
        run(case, name, complete=random.choice((True, False, None)), refused=random.choice((0, 1)))
        for name in names
        if random.random() < 0.9
    ]
    return events, runs


@pytest.fixture(scope="module")
def days() -> tuple[list[Row], list[Row]]:
    """One case by hand, and random ones."""
    first = {"attempt": 1, "error_code": "NOT_CONTROLLER", "duration_ms": 10}
    events = [
        event("hand", 1, None),
        event("hand", 2, "failed", **first),
        event("hand", 3, None, attempt=2),
        event("hand", 4, "applied", attempt=2, duration_ms=30),
        event("hand", 5, None, step="b"),
        event("hand", 6, "failed", step="b", error_code="INVALID", duration_ms=20),
        event("hand", 7, "skipped", step="c", duration_ms=0),
        event("hand", 8, None, step="d"),
        event("hand", 3601, None, step="e", run="r2", plan="q"),
        event("hand", 3602, "applied", step="e", run="r2", plan="q", duration_ms=40),
    ]
    runs = [run("hand", complete=False), run("hand", "r2")]
    for number in range(120):
        more, others = some_run(Random(number), f"c{number}")
        events += more
        runs += others
    return events, runs


@pytest.fixture(scope="module")
def made(spark: SparkSession, days: tuple[list[Row], list[Row]]) -> list[Row]:
    from kafkaform.fleet.datasets import runs as subject

    from ..kit.fleet.frames import frame

    events, runs = days
    frames = {
        "event": frame(spark, "event", filled("event", events)),
        "run": frame(spark, "run", filled("run", runs)),
    }
    return plain(subject.build_reliability(frames, BuildContext(Register(), T0, "b1")))


def test_a_step_ends_as_its_last_try_and_counts_under_each_error(made: list[Row]) -> None:
    """A retry is one step that met an error and was applied; an open intent is unknown; the next
    day is another row."""
    found = {
        (str(row["day"]), row["error_code"]): [
            row[name]
            for name in ("steps", *ENDS, "retries", "runs", "partial_runs", "validated_then_failed")
        ]
        + [row["p50_ms"], row["p95_ms"]]
        for row in made
        if row["cluster"] == "hand"
    }
    assert found == {
        ("2026-03-01", ""): [4, 1, 1, 1, 1, 1, 1, 1, 1, 20.0, 29.0],
        ("2026-03-01", "NOT_CONTROLLER"): [1, 1, 0, 0, 0, 1, 1, 1, 0, 10.0, 10.0],
        ("2026-03-01", "INVALID"): [1, 0, 1, 0, 0, 0, 1, 1, 1, 20.0, 20.0],
        ("2026-03-02", ""): [1, 1, 0, 0, 0, 0, 1, 0, 0, 40.0, 40.0],
    }


def test_random_runs_as_the_oracle_counts_them(
    made: list[Row], days: tuple[list[Row], list[Row]]
) -> None:
    """Some hundred runs with retries, open intents and late recoveries."""
    wanted = reliability(*days)
    for rows in (made, wanted):
        for row in rows:
            row.update({name: row[name] and round(row[name], 6) for name in ("p50_ms", "p95_ms")})
    alike(made, wanted, "apply_reliability")
