"""Attribution: what the snapshots show against what the logs say, on made and on random days."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from kafkaform.fleet.landed.register import Register
from kafkaform.fleet.tables.definitions import BuildContext

from . import oracle_attribution
from .comparison import alike, filled, plain
from .oracle_drift import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T0 = datetime(2026, 3, 1, tzinfo=UTC)
KIND = "kafka_topic"
COMPLETE = {KIND: "complete"}
Tables = dict[str, list[Row]]


def at(minutes: float) -> datetime:
    return T0 + timedelta(minutes=minutes)


def build(spark: SparkSession, tables: Tables) -> list[Row]:
    from kafkaform.fleet.datasets import history

    from ..kit.fleet.frames import frame

    frames = {name: frame(spark, name, filled(name, rows)) for name, rows in tables.items()}
    return plain(history.build(frames, BuildContext(Register(), at(999), "b1")))


def span(
    case: str, start: float, end: float | None, attrs: dict[str, str], *, deleted: bool = False,
    before: float | None = None, incarnation: str | None = None,
) -> Row:  # fmt: skip
    """What history says of the topic `t` of this cluster, in minutes."""
    return {
        "cluster": case,
        "kind": KIND,
        "key": "t",
        "attrs": {"partitions": "3", **attrs},
        "incarnation": incarnation,
        "seen_before": None if before is None else at(before),
        "valid_from": at(start),
        "valid_to": None if end is None else at(end),
        "deleted": deleted,
    }


def look(case: str, minutes: float, coverage: dict[str, str] | None = None) -> Row:
    """A snapshot that took half a minute."""
    return {
        "source": "live",
        "subject": case,
        "snapshot": f"s{minutes}",
        "started_at": at(minutes - 0.5),
        "captured_at": at(minutes),
        "complete": coverage is None,
        "rows": 1,
        "coverage": COMPLETE if coverage is None else coverage,
        "scopes": {},
    }


def event(case: str, minutes: float, outcome: str | None = "applied", **more: Any) -> Row:
    """An update of `config.a` to 2; outcome None: an intent."""
    seq = more.pop("seq", int(minutes * 10))
    path, after = more.pop("path", "config.a"), more.pop("after", "2")
    change = {"path": path, "before": "1", "after": after, "sensitive": more.pop("hidden", False)}
    return {
        "event_id": f"{case}/{seq}",
        "cluster": case,
        "lineage": case,
        "seq": seq,
        "ts": at(minutes),
        "run": f"run-{seq}",
        "actor": "ada",
        "record": "intent" if outcome is None else "outcome",
        "scope_id": "x",
        "instance": "kafka",
        "kind": KIND,
        "key": "t",
        "action": "update",
        "step": "t#0",
        "attempt": 1,
        "plan": f"p{seq}",
        "outcome": outcome,
        "commit": "c0ffee",
        "incarnation": None,
        "changes": [change],
        **more,
    }


ONE, TWO = {"config.a": "1"}, {"config.a": "2"}


def changed(case: str) -> list[Row]:
    """`config.a` goes from 1 to 2 between minute 10 and minute 20."""
    return [span(case, 0, 20, ONE), span(case, 20, None, TWO, before=10)]


def stays(case: str) -> list[Row]:
    return [span(case, 0, None, ONE)]


CASES: dict[str, tuple[list[Row], list[Row], list[tuple[str, str, str]]]] = {
    "ours": (changed("ours"), [event("ours", 15)], [("config.a", "applied", "150")]),
    "a detail": (
        [
            span("a detail", 0, 20, ONE),
            span("a detail", 20, None, {**ONE, "details.leaders": "2"}, before=10),
        ],
        [],
        [],
    ),
    "nobody's": (changed("nobody's"), [], [("config.a", "out_of_band", "")]),
    "failed": (
        changed("failed"),
        [event("failed", 15, "failed")],
        [("config.a", "out_of_band", "")],
    ),
    "skewed": (changed("skewed"), [event("skewed", 22)], [("config.a", "applied", "220")]),
    "too late": (changed("too late"), [event("too late", 22.1)], [("config.a", "out_of_band", "")]),
    "early": (changed("early"), [event("early", 8.1)], [("config.a", "applied", "81")]),
    "too early": (
        changed("too early"),
        [event("too early", 8)],
        [("config.a", "out_of_band", "")],
    ),
    "other value": (
        changed("other value"),
        [event("other value", 15, after="7")],
        [("config.a", "not_effective", "150"), ("config.a", "out_of_band", "")],
    ),
    "started long ago": (
        changed("started long ago"),
        [event("started long ago", 2, "started")],
        [("config.a", "applied", "20")],
    ),
    "intent alone": (
        changed("intent alone"),
        [event("intent alone", 15, None)],
        [("config.a", "unclear", "150")],
    ),
    "recovered later": (
        changed("recovered later"),
        [
            event("recovered later", 15, None, plan="p", run="sender"),
            event("recovered later", 45, plan="p", record="recover", run="later"),
        ],
        [("config.a", "applied", "450")],
    ),
    "refused later": (
        changed("refused later"),
        [
            event("refused later", 15, None, plan="p"),
            event("refused later", 15.2, "failed", plan="p"),
        ],
        [("config.a", "out_of_band", "")],
    ),
    "certain before unclear": (
        changed("certain before unclear"),
        [event("certain before unclear", 12), event("certain before unclear", 15, "unknown")],
        [("config.a", "applied", "120")],
    ),
    "hidden value": (
        changed("hidden value"),
        [event("hidden value", 15, after=None, hidden=True)],
        [("config.a", "applied", "150")],
    ),
    "no effect": (
        stays("no effect"),
        [event("no effect", 15)],
        [("config.a", "not_effective", "150")],
    ),
    "not looked yet": (stays("not looked yet"), [event("not looked yet", 38)], []),
    "said twice": (
        stays("said twice"),
        [event("said twice", 15), event("said twice", 16, after="1")],
        [],
    ),
    "nobody shows it": (
        stays("nobody shows it"),
        [event("nobody shows it", 15, path="password_version")],
        [],
    ),
    "appeared": (
        [span("appeared", 20, None, ONE, before=10)],
        [event("appeared", 15, action="create", path="config.a", after="1")],
        [("", "applied", "150")],
    ),
    "appeared by itself": (
        [span("appeared by itself", 20, None, ONE, before=10)],
        [event("appeared by itself", 15)],
        [("", "out_of_band", ""), ("config.a", "not_effective", "150")],
    ),
    "never made": (
        [],
        [event("never made", 15, action="create")],
        [("", "not_effective", "150")],
    ),
    "there from the start": ([span("there from the start", 0, None, ONE)], [], []),
    "made before the first look": (
        [span("made before the first look", 10, None, ONE)],
        [event("made before the first look", 5, action="create", after="1")],
        [("", "applied", "50")],
    ),
    "went": (
        [span("went", 0, 20, ONE, deleted=True)],
        [event("went", 15, action="delete")],
        [("", "applied", "150")],
    ),
    "went by itself": (
        [span("went by itself", 0, 20, ONE, deleted=True)],
        [event("went by itself", 5, "unknown")],
        [("", "out_of_band", "")],
    ),
    "still there": (
        stays("still there"),
        [event("still there", 15, action="delete")],
        [("", "not_effective", "150")],
    ),
    "another one": (
        [
            span("another one", 0, 20, ONE, incarnation="x"),
            span("another one", 20, None, ONE, before=10, incarnation="y"),
        ],
        [event("another one", 15, action="delete", incarnation="x")],
        [("", "out_of_band", "")],
    ),
}
"""Snapshots are complete at the minutes 0, 10, 20, 30 and 40. What history shows, what the logs
say, and (path, verdict, seq of the event)."""


@pytest.fixture(scope="module")
def days() -> Tables:
    """The cases above, and random ones."""
    tables: Tables = {"history": [], "event": [], "snapshot": []}
    for case, (history, events, _) in CASES.items():
        tables["history"] += history
        tables["event"] += events
        tables["snapshot"] += [look(case, minutes) for minutes in (0, 10, 20, 30, 40)]
        tables["snapshot"].append(look(case, 25, {KIND: "visible_only"}))
    for number in range(80):
        some_day(Random(number), f"r{number}", tables)
    return tables


@pytest.fixture(scope="module")
def made(spark: SparkSession, days: Tables) -> list[Row]:
    return build(spark, days)


def test_each_case_has_its_verdict(made: list[Row]) -> None:
    """Windows with their skew, outcomes, values, and what nobody can tell."""
    found: dict[str, list[tuple[str, str, str]]] = {case: [] for case in CASES}
    for row in made:
        if row["cluster"] in CASES:
            seq = row["event_id"].rpartition("/")[2]
            found[row["cluster"]].append((row["path"], row["verdict"], seq))
    assert {case: sorted(rows) for case, rows in found.items()} == {
        case: rows for case, (_, _, rows) in CASES.items()
    }


def test_a_change_names_its_window_and_its_sender(made: list[Row]) -> None:
    """The run is the one that sent it, not the one that closed its intent; the window lies between
    complete snapshots."""
    rows = {row["cluster"]: row for row in made}
    assert rows["recovered later"]["run"] == "sender"
    assert rows["went"]["window_start"] == "2026-03-01 00:10:00"
    assert rows["no effect"]["window_start"] == "2026-03-01 00:10:00"
    assert rows["no effect"]["window_end"] == "2026-03-01 00:20:00"
    assert (rows["ours"]["actor"], rows["ours"]["commit"]) == ("ada", "c0ffee")


def test_random_days_as_the_oracle_finds_them(made: list[Row], days: Tables) -> None:
    """Snapshots of a topic that our runs and others change, make and delete."""
    wanted = oracle_attribution.attribution(
        days["history"], days["event"], days["snapshot"], Register().settings.skew_seconds
    )
    random = [row for row in wanted if row["cluster"] not in CASES]
    assert {row["verdict"] for row in random} == {
        "applied",
        "out_of_band",
        "not_effective",
        "unclear",
    }
    assert {row["path"] for row in random} >= {"", "partitions", "config.a"}
    alike(made, wanted, "change_attribution")


# ── random days ─────────────────────────────────────────────────────────────────────────

PATHS = ("partitions", "config.a", "version")
SHOWN = ("partitions", "config.a")


def some_day(random: Random, case: str, tables: Tables) -> None:
    """A topic through two hours: minute by minute somebody may do something to it."""
    now: dict[str, str] | None = None
    incarnation, seq, open_intents = 0, 0, []
    views: list[tuple[datetime, dict[str, str] | None, str]] = []
    for minute in range(0, 120, 2):
        if minute % 10 == 6:
            if random.random() < 0.85:
                tables["snapshot"].append(look(case, minute))
                views.append((at(minute), now, str(incarnation)))
            else:
                tables["snapshot"].append(look(case, minute, {KIND: "visible_only"}))
        if random.random() > 0.3:
            continue
        action = "create" if now is None else random.choice(("update", "update", "delete"))
        values = {path: random.choice("123") for path in PATHS if random.random() < 0.6}
        outcome = random.choice(("applied", "applied", "applied", "unknown", "failed", "started"))
        who = random.choice(("ours", "ours", "others"))
        happens = outcome not in ("failed",) and random.random() < 0.8
        if who == "others" or happens:
            if action == "create":
                incarnation += 1
            now = None if action == "delete" else {"partitions": "9", **(now or {}), **values}
        if who == "others":
            continue
        seq += 2
        changes = [
            {"path": p, "before": None, "after": v, "sensitive": p == "version"}
            for p, v in values.items()
        ]
        about = {
            "seq": seq,
            "plan": f"p{seq}",
            "step": f"t#{seq}",
            "action": action,
            "changes": changes,
            "incarnation": random.choice((None, str(incarnation))),
        }
        tables["event"].append(event(case, minute - 0.5, None, **about))
        if outcome == "unknown":
            open_intents.append((about, minute))
        else:
            tables["event"].append(event(case, minute, outcome, **about | {"seq": seq + 1}))
        if open_intents and random.random() < 0.3:
            old, _ = open_intents.pop()
            seq += 2
            more = {**old, "seq": seq, "record": "recover"}
            outcome = random.choice(("applied", "failed", "unknown"))
            tables["event"].append(event(case, minute + 0.5, outcome, **more))
    tables["history"] += _history(case, views)


def _history(case: str, views: list[tuple[datetime, dict[str, str] | None, str]]) -> list[Row]:
    """Intervals of equal views, as the pipeline makes them."""
    spans: list[Row] = []
    last: datetime | None = None
    for time, attrs, incarnation in views:
        shown = None if attrs is None else {p: v for p, v in attrs.items() if p in SHOWN}
        running = spans[-1] if spans and spans[-1]["valid_to"] is None else None
        same = (running and running["attrs"], running and running["incarnation"])
        if running and same != (shown, incarnation):
            running.update(valid_to=time, deleted=shown is None)
        if shown is not None and same != (shown, incarnation):
            new = span(case, 0, None, {}, incarnation=incarnation)
            spans.append({**new, "attrs": shown, "valid_from": time, "seen_before": last})
        last = time
    return spans
