"""Histories of objects, against a reading of all snapshots one by one."""

from __future__ import annotations

import random
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from kafkaform.core.landing import MEASURED
from kafkaform.fleet.datasets.history import build_history
from kafkaform.fleet.landed.register import Register
from kafkaform.fleet.tables.definitions import BuildContext

from ..kit.fleet.frames import frame
from ..kit.fleet.landings import collected, in_order, moment, row, snapshot_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

TOPIC, ACL = "kafka_topic", "kafka_acl"
Rows = list[dict[str, Any]]
Snapshot = tuple[dict[str, Any], Rows]
CONTEXT = BuildContext(Register(), moment(1000), "b1")


# -- the oracle


def oracle(snapshots: Iterable[Snapshot]) -> Rows:
    """Walk through each cluster's snapshots, object by object."""
    found: Rows = []
    by_cluster: dict[str, list[Snapshot]] = {}
    for one in snapshots:
        if one[0]["sha256"] is not None:
            by_cluster.setdefault(one[0]["subject"], []).append(one)
    for cluster, all_of_it in by_cluster.items():
        marks = {
            "known_until": max(meta["captured_at"] for meta, _ in all_of_it),
            "known_snapshots": len({meta["snapshot"] for meta, _ in all_of_it}),
        }
        last_of_moment = {
            meta["captured_at"]: (meta, rows)
            for meta, rows in sorted(all_of_it, key=lambda one: one[0]["snapshot"])
        }
        in_time = [last_of_moment[at] for at in sorted(last_of_moment)]
        keys = {(r["kind"], r["key"]) for _, rows in in_time for r in rows}
        for kind, key in sorted(keys):
            if kind not in MEASURED:
                about = {"cluster": cluster, "kind": kind, "key": key}
                found += [about | marks | interval for interval in walk(in_time, kind, key)]
    return found


def walk(in_time: list[Snapshot], kind: str, key: str) -> Rows:
    intervals: Rows = []
    proven = began = None
    for meta, rows in in_time:
        how, at = meta["coverage"].get(kind), meta["captured_at"]
        if how not in ("complete", "visible_only"):
            continue
        shown = next((r for r in rows if (r["kind"], r["key"]) == (kind, key)), None)
        now = intervals[-1] if intervals and intervals[-1]["valid_to"] is None else None
        if shown is not None:
            form = {"incarnation": shown.get("incarnation"), "attrs": shown["attrs"]}
            if now is None or {name: now[name] for name in form} != form:
                if now is not None:
                    now["valid_to"] = at
                before = max((t for t in (proven, began) if t is not None), default=None)
                ends = {"valid_to": None, "deleted": False}
                intervals.append({**form, "seen_before": before, "valid_from": at, **ends})
                began = at
        elif how == "complete" and now is not None:
            now |= {"valid_to": at, "deleted": True}
        proven = at if how == "complete" else proven
    return intervals


# -- random clusters


def snapshots_of(cluster: str, dice: random.Random) -> list[Snapshot]:
    taken: list[Snapshot] = []
    hours = 0.0
    for number in range(dice.randint(1, 9)):
        hours += dice.choice((0, 1, 1, 2))
        rows = [
            row(
                kind,
                key,
                {"b": "2", "a": dice.choice("xxxy")} if dice.random() < 0.9 else {},
                incarnation=dice.choice(("i", "i", "i", "j", None)) if kind == TOPIC else None,
            )
            for kind in (TOPIC, ACL, "topic_usage")
            for key in ("k1", "k2")
            if dice.random() < 0.75
        ]
        coverage = {
            kind: dice.choice(("complete", "complete", "visible_only", "failed"))
            for kind in (TOPIC, ACL)
        }
        failed = dice.random() < 0.1
        about = {"coverage": {**coverage, "topic_usage": "complete"}, "snapshot": f"{number:04d}"}
        taken.append(snapshot_rows("live", cluster, hours, None if failed else rows, **about))
    return taken


def cases(count: int) -> list[list[Snapshot]]:
    return [snapshots_of(f"c{n:03d}", random.Random(n)) for n in range(count)]


def built(spark: SparkSession, snapshots: Iterable[Snapshot], before: Iterable[Any] = ()) -> Rows:
    given = list(snapshots)
    raw = [one for _, rows in given for one in rows]
    frames = {
        "snapshot": frame(spark, "snapshot", [meta for meta, _ in given]),
        "snapshot_raw": frame(spark, "snapshot_raw", raw),
        "history": frame(spark, "history", before),
    }
    return collected(build_history(frames, CONTEXT))


def flat(groups: Iterable[Iterable[Snapshot]]) -> list[Snapshot]:
    return [one for group in groups for one in group]


# -- tests


@pytest.fixture(scope="module")
def clusters() -> list[list[Snapshot]]:
    return cases(150)


@pytest.fixture(scope="module")
def expected(clusters: list[list[Snapshot]]) -> Rows:
    return oracle(flat(clusters))


def test_all_at_once(spark: SparkSession, clusters: list[list[Snapshot]], expected: Rows) -> None:
    """In whatever order and however often it has landed, the history is what the snapshots say."""
    given = flat(clusters)
    random.Random(1).shuffle(given)
    twice = [(meta, rows + [dict(r) for r in rows]) for meta, rows in given]
    assert in_order(built(spark, twice + given[:20])) == in_order(expected)


def test_bit_by_bit(spark: SparkSession, clusters: list[list[Snapshot]], expected: Rows) -> None:
    """What a build adds to the one before is what one build makes of all: also where something
    lands late, or for a moment that is known already. Where nothing does, old rows are not read:
    here they are not there any more."""
    old, new = [], []
    for number, group in enumerate(clusters):
        ordered = group[::-1] if number % 3 == 0 else group
        cut = len(ordered) * 2 // 3
        old.append(ordered[:cut])
        new.append(ordered[cut:])
    before = oracle(flat(old))
    known = {row["cluster"]: row["known_until"] for row in before}
    assert len(known) > 100
    for number, (first, rest) in enumerate(zip(old, new, strict=True)):
        until = known.get(f"c{number:03d}")
        good = [meta["captured_at"] for meta, _ in rest if meta["sha256"]]
        if until is not None and all(at > until for at in good):
            old[number] = [(meta, []) for meta, _ in first]
    made = built(spark, flat(old) + flat(new), before)
    assert in_order(made) == in_order(expected)


def test_intervals_meet_and_never_overlap(expected: Rows) -> None:
    """The oracle's own promise: an interval ends where the next begins, but for deletions."""
    by_object: dict[tuple[str, ...], Rows] = {}
    for one in expected:
        by_object.setdefault((one["cluster"], one["kind"], one["key"]), []).append(one)
    gaps = 0
    for intervals in by_object.values():
        ordered = sorted(intervals, key=lambda one: one["valid_from"])
        for one, following in zip(ordered, ordered[1:], strict=False):
            assert one["valid_from"] < one["valid_to"] <= following["valid_from"]
            assert one["deleted"] or one["valid_to"] == following["valid_from"]
            gaps += one["valid_to"] < following["valid_from"]
    assert gaps > 10


def test_what_was_never_proven_gone_is_still_there() -> None:
    """The oracle: seen, not visible, not read, seen again: one interval. And no snapshot that
    shows a new form at once counts as a deletion."""
    shown = [row(TOPIC, "t", {"p": "1"})]
    changed = [row(TOPIC, "t", {"p": "2"})]
    taken = [
        snapshot_rows("live", "a", 1, shown, coverage={TOPIC: "complete"}),
        snapshot_rows("live", "a", 2, [], coverage={TOPIC: "visible_only"}),
        snapshot_rows("live", "a", 3, [], coverage={TOPIC: "failed"}),
        snapshot_rows("live", "a", 4, shown, coverage={TOPIC: "complete"}),
        snapshot_rows("live", "a", 5, changed, coverage={TOPIC: "complete"}),
        snapshot_rows("live", "a", 6, [], coverage={TOPIC: "complete"}),
    ]
    found = [
        tuple(r[n] for n in ("seen_before", "valid_from", "valid_to", "deleted"))
        for r in oracle(taken)
    ]
    assert found == [
        (None, moment(1), moment(5), False),
        (moment(4), moment(5), moment(6), True),
    ]
