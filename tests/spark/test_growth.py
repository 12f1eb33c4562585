"""What snapshots measure from day to day, compared with counting by hand: the same however the
snapshots land."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Any

import pytest
from pyspark.sql import SparkSession

from kafkaform.core.landing import DISK_USAGE, GROUP_USAGE, TOPIC_USAGE
from kafkaform.fleet.datasets import growth
from kafkaform.fleet.landed.register import Owner, Register

from . import oracle_growth
from .live_rows import NOW, Row, cluster, context, days, frames, live, rows_of, topic
from .oracle_growth import KINDS, Shot

TOPICS = ("orders.a", "orders.b", "pay", "__consumer_offsets")
REGISTER = Register(owners=(Owner("sales", ("orders.*",)),))
Tables = dict[str, list[Row]]


def _shots(dice: Random) -> list[Shot]:
    """Snapshots of one cluster: some days with two, some with none; topics come, grow, shrink, are
    created again and are hidden; disks fill; groups read, stop and leave."""
    at = days(dice.choice((5, 12, 29, 40, 50)) + dice.random() / 9)
    sizes = {name: dice.randrange(10**6) for name in dice.sample(TOPICS, 3)}
    ends = dict.fromkeys(TOPICS, 1000)
    speed = {name: dice.choice((-200, 0, 500, 10**5)) for name in TOPICS}
    reading = dice.choice((0, 0, 0.02, 0.8))
    committed: dict[str, int | None] = {"g pay": 400, "g h orders.a": 7, "new pay": None}
    committed |= {"r orders.b": 9, "r pay": 9}
    members = {key: dice.choice((0, 1, 2)) for key in committed}
    used, rate = 5000, dice.choice((0, -3, 50, 90, 1))
    shots = []
    while at <= NOW:
        if dice.random() < 0.05:
            sizes.setdefault(dice.choice(TOPICS), 0)
        if dice.random() < 0.03:
            ends[dice.choice(TOPICS)] = 3
        sizes = {n: max(0, s + speed[n] + dice.randrange(9)) for n, s in sizes.items()}
        ends = {name: end + dice.randrange(40) for name, end in ends.items()}
        committed = {
            key: v if v is None or dice.random() > reading else v + 5
            for key, v in committed.items()
        }
        if dice.random() < 0.05:
            members[dice.choice(list(members))] = dice.choice((0, 0, 3))
        used = used + rate + dice.randrange(3)
        shots.append(_shot(dice, at, sizes, ends, committed, members, used))
        at += timedelta(days=dice.choice((1, 1, 1, 1, 0.3, 2.01)))
    return shots


def _shot(
    dice: Random,
    at: Any,
    sizes: Mapping[str, int],
    ends: Mapping[str, int],
    committed: Mapping[str, int | None],
    members: Mapping[str, int],
    used: int,
) -> Shot:
    coverage = dict.fromkeys(KINDS, "complete")
    if dice.random() < 0.2:
        coverage[GROUP_USAGE] = dice.choice(("visible_only", "failed"))
    if dice.random() < 0.1:
        coverage[TOPIC_USAGE] = dice.choice(("visible_only", "failed"))
    rows: dict[tuple[str, str], dict[str, int | None]] = {}
    for name, size in sizes.items():
        if coverage[TOPIC_USAGE] == "complete" or (
            coverage[TOPIC_USAGE] == "visible_only" and dice.random() < 0.5
        ):
            told = dice.random() > 0.05
            rows[TOPIC_USAGE, name] = {
                **{"bytes": size if told else None, "start_offsets_sum": 1},
                **{"end_offsets_sum": ends[name] if dice.random() > 0.05 else None},
                **{"partition_bytes_max": size, "partition_records_max": 5},
            }
    for key, offset in committed.items():
        lag = dice.choice((0, 4, 4, None))
        some = {"committed_sum": offset, "members": members[key], "lag": lag}
        rows[GROUP_USAGE, key] = some
        if dice.random() < 0.03:
            del some["members"]
    for key, total in (("1 /d", 8000), ("2 /x,/y", None)):
        usable = None if total is None else max(0, total - used)
        rows[DISK_USAGE, key] = {"total_bytes": total, "usable_bytes": usable, "log_bytes": 7}
    return Shot(at, coverage, rows)


def _attrs(kind: str, key: str, values: Mapping[str, int | None]) -> dict[str, str]:
    attrs = {name: str(value) for name, value in values.items() if value is not None}
    if kind == DISK_USAGE:
        broker, _, paths = key.partition(" ")
        listed = ",".join(f'"{path}"' for path in paths.split(","))
        attrs |= {"broker": broker, "log_dirs": f"[{listed}]", "failed": "false"}
    return attrs


def _landed(shots: Mapping[str, Sequence[Shot]], build: str) -> Tables:
    tables: Tables = {"snapshot": [], "snapshot_raw": []}
    for name, some in shots.items():
        for shot in some:
            known = {"source": "live", "subject": name, "captured_at": shot.at, "_build": build}
            known["snapshot"] = shot.at.isoformat()
            tables["snapshot"].append({**known, "coverage": shot.coverage, "sha256": "0"})
            tables["snapshot_raw"] += [
                {**known, "kind": kind, "key": key, "attrs": _attrs(kind, key, values)}
                for (kind, key), values in shot.rows.items()
            ]
    return tables


def _worlds(seed: int, count: int) -> dict[str, list[Shot]]:
    dice = Random(seed)
    return {f"c{number}": _shots(dice) for number in range(count)}


def _measured(spark: SparkSession, tables: Tables) -> list[Row]:
    rows = rows_of(growth.build_measured(frames(spark, tables), context(REGISTER)))
    for row in rows:
        row["points"] = [
            {**point.asDict(), "at": point["at"].astimezone(NOW.tzinfo)} for point in row["points"]
        ]
    return rows


def _in_one(spark: SparkSession, worlds: Mapping[str, list[Shot]]) -> list[Row]:
    return _measured(spark, {"measured": [], **_landed(worlds, "b")})


@pytest.mark.parametrize("seed", [1, 2])
def test_points_are_the_same_however_they_land(spark: SparkSession, seed: int) -> None:
    """In three builds of random chunks, late snapshots among them, as in one, and as by hand."""
    worlds, dice = _worlds(seed, 8), Random(seed)
    chunks: list[dict[str, list[Shot]]] = [{}, {}, {}]
    for name, shots in worlds.items():
        early = dice.random() < 0.5
        for number, shot in enumerate(shots):
            place = number * 3 // len(shots) if early else dice.randrange(3)
            chunks[place].setdefault(name, []).append(shot)
    rows: list[Row] = []
    landed: Tables = {"snapshot": [], "snapshot_raw": []}
    for number, chunk in enumerate(chunks):
        for table, more in _landed(chunk, f"b{number}").items():
            landed[table] += more
        tables = frames(spark, {"measured": rows, "snapshot": landed["snapshot"]})
        builds = {row["_build"] for row in growth.find_measured_builds(tables).collect()}
        needed = [row for row in landed["snapshot_raw"] if row["_build"] in builds]
        rows = _measured(spark, {"measured": rows, **landed, "snapshot_raw": needed})
    wanted = {
        (name, *key): [tuple(point) for point in points]
        for name, shots in worlds.items()
        for key, points in oracle_growth.list_points(shots).items()
    }
    assert {
        (row["cluster"], row["kind"], row["key"]): [tuple(p.values()) for p in row["points"]]
        for row in rows
    } == wanted
    key = ("cluster", "kind", "key")
    both = [
        sorted(found, key=lambda row: [row[name] for name in key])
        for found in (rows, _in_one(spark, worlds))
    ]
    assert both[0] == both[1]


@pytest.fixture(scope="module")
def worlds() -> dict[str, list[Shot]]:
    return _worlds(9, 40)


@pytest.fixture(scope="module")
def tables(spark: SparkSession, worlds: Mapping[str, list[Shot]]) -> Tables:
    """What the pipeline knows after these snapshots."""
    tables: Tables = {"measured": _in_one(spark, worlds), "live": [], "cluster": []}
    tables |= {"desired": [], "recorded": [], "snapshot": _landed(worlds, "b")["snapshot"]}
    for name, shots in worlds.items():
        last = shots[-1]
        tables["cluster"].append(cluster(name, captured_at=last.at, coverage=last.coverage))
        for (kind, key), values in shots[-1].rows.items():
            attrs = _attrs(kind, key, values)
            tables["live"].append(live(name, kind, key, attrs, captured_at=shots[-1].at))
        tables["live"] += [_configured(name, key) for key in TOPICS]
        if default := _list_configs(name, "")["log.cleanup.policy"]:
            attrs = {"config.log.cleanup.policy": default}
            tables["live"].append(live(name, "kafka_cluster_config", "default", attrs))
    return tables


def _list_configs(name: str, key: str) -> dict[str, str]:
    """What is set on a topic and on its cluster."""
    dice = Random(f"{name}/{key}")
    policy = dice.choice(("", "", "", "delete", "compact", "compact,delete"))
    default = Random(name).choice(("", "", "", "delete", "compact"))
    tiered = dice.choice(("", "", "", "false", "true"))
    return {"cleanup.policy": policy, "log.cleanup.policy": default, "remote": tiered}


def _configured(name: str, key: str) -> Row:
    row, configs = topic(name, key, [[1, 2]] * 3), _list_configs(name, key)
    set_configs = {
        "config.cleanup.policy": configs["cleanup.policy"],
        "config.remote.storage.enable": configs["remote"],
    }
    row["attrs"] |= {path: value for path, value in set_configs.items() if value}
    return row


def _traffic(
    name: str, key: str, shot: Shot, written: float | None, points: Mapping[Any, Any]
) -> Row:
    configs = _list_configs(name, key)
    in_force = {
        "cleanup.policy": configs["cleanup.policy"] or configs["log.cleanup.policy"],
        **({"tiered": "yes"} if configs["remote"] == "true" else {}),
    }
    groups = {
        of: points[name, GROUP_USAGE, of]
        for (kind, of), values in shot.rows.items()
        if kind == GROUP_USAGE and of.endswith(f" {key}") and values["committed_sum"] is not None
    }
    shown = groups if shot.coverage[GROUP_USAGE] == "complete" else None
    usage = shot.rows.get((TOPIC_USAGE, key), {})
    return oracle_growth.weigh_traffic(in_force, usage, written, shown)


def _same(found: Sequence[Row], wanted: Mapping[tuple[Any, ...], Row], key: Sequence[str]) -> None:
    rows = {tuple(row[name] for name in key): row for row in found}
    assert rows.keys() == wanted.keys()
    for name, expected in wanted.items():
        for column, value in expected.items():
            exact = value if not isinstance(value, float) else pytest.approx(value, abs=1e-6)
            assert rows[name][column] == exact, (name, column)


def _points(tables: Tables) -> dict[tuple[str, str, str], list[tuple[Any, ...]]]:
    return {
        (row["cluster"], row["kind"], row["key"]): [tuple(p.values()) for p in row["points"]]
        for row in tables["measured"]
    }


def test_topics(spark: SparkSession, worlds: Mapping[str, list[Shot]], tables: Tables) -> None:
    """Slope, records, days and traffic of each topic; a new one has grown from nothing."""
    rows = rows_of(growth.build_topics(frames(spark, tables), context(REGISTER)))
    points, wanted = _points(tables), {}
    for name, shots in worlds.items():
        for key in TOPICS:
            mine = points.get((name, TOPIC_USAGE, key), [])
            row = oracle_growth.grow_topic(key, shots, shots[-1].at, mine)
            owner = "sales" if key.startswith("orders") else None
            traffic = _traffic(name, key, shots[-1], row["records_per_day"], points)
            wanted[name, key] = {**row, "owner": owner, "partitions": 3, **traffic}
    _same(rows, wanted, ("cluster", "topic"))
    for part in ("ingress_per_day", "egress_per_day"):
        values = [row[part] for row in rows]
        assert sum(value is None for value in values) > 10
        assert sum(value is not None and value > 0 for value in values) > 5
    assert any(row["egress_per_day"] == 0 for row in rows), "no group commits"
    rates = [row["bytes_per_day"] for row in rows]
    assert sum(rate is None for rate in rates) > 10 and sum(rate is not None for rate in rates) > 60


def test_skew(spark: SparkSession) -> None:
    """By bytes against the average replica, by records against the average partition; an empty
    topic has none."""
    usage = {
        **{"bytes": "600", "partition_bytes_max": "250", "end_offsets_sum": "40"},
        **{"start_offsets_sum": "10", "partition_records_max": "25"},
    }
    empty = {**dict.fromkeys(usage, "0")}
    rows = [
        *(topic("c", "t", [[1, 2]] * 3), live("c", TOPIC_USAGE, "t", usage)),
        *(topic("c", "void", [[1]]), live("c", TOPIC_USAGE, "void", empty), topic("c", "dark")),
    ]
    given: Tables = dict.fromkeys(("measured", "snapshot", "desired", "recorded"), [])
    given |= {"live": rows, "cluster": [cluster("c")]}
    found = rows_of(growth.build_topics(frames(spark, given), context()))
    skews = {row["topic"]: (row["bytes_skew"], row["records_skew"]) for row in found}
    assert skews == {"t": (2.5, 2.5), "void": (None, None), "dark": (None, None)}


def test_unknown_traffic_is_never_zero(spark: SparkSession) -> None:
    """What was written to a topic that holds no records now, one without a size, and a compacted
    one: nobody knows how large the records were. Of none, nobody needs to."""
    usage = {"bytes": "800", "end_offsets_sum": "80", "start_offsets_sum": "40"}
    cases: dict[str, tuple[dict[str, str], dict[str, str], int, int | None]] = {
        "kept": (usage, {}, 8, 160),
        "gone": ({**usage, "start_offsets_sum": "80"}, {}, 8, None),
        "unsized": ({name: v for name, v in usage.items() if name != "bytes"}, {}, 8, None),
        "blank": ({**usage, "bytes": "0"}, {}, 8, None),
        "latest": (usage, {"config.cleanup.policy": "compact"}, 8, None),
        "tiered": (usage, {"config.remote.storage.enable": "true"}, 8, None),
        "quiet": ({**usage, "start_offsets_sum": "80"}, {}, 0, 0),
    }
    tables: Tables = {"measured": [], "live": [], "cluster": [cluster("c")]}
    tables |= {"snapshot": [], "desired": [], "recorded": []}
    for name, (values, configs, step, _) in cases.items():
        row = topic("c", name)
        row["attrs"] |= configs
        tables["live"] += [row, live("c", TOPIC_USAGE, name, values)]
        dates = [days(count) for count in range(9, -1, -1)]
        points = [
            {"day": at.date(), "at": at, "bytes": 1, "records": step * n, "members": None}
            for n, at in enumerate(dates)
        ]
        point_row = {"cluster": "c", "kind": TOPIC_USAGE, "key": name, "points": points}
        tables["measured"].append(point_row)
    made = rows_of(growth.build_topics(frames(spark, tables), context()))
    wanted = {name: ingress for name, (_, _, _, ingress) in cases.items()}
    # 20 bytes a record, 8 records a day.
    assert {row["topic"]: row["ingress_per_day"] for row in made} == wanted
    assert {row["egress_per_day"] for row in made} == {None}, "groups were not listed"


def test_disks(spark: SparkSession, worlds: Mapping[str, list[Shot]], tables: Tables) -> None:
    """How full each volume is, how fast it fills, and when it is full."""
    rows = rows_of(growth.build_disks(frames(spark, tables), context(REGISTER)))
    points, wanted = _points(tables), {}
    for name, shots in worlds.items():
        for (kind, key), values in shots[-1].rows.items():
            if kind == DISK_USAGE:
                broker, _, paths = key.partition(" ")
                mine = points[name, DISK_USAGE, key]
                row = oracle_growth.project_disk(values, shots[-1].at, mine)
                wanted[name, int(broker), paths] = {**row, "log_bytes": 7, "failed": False}
    _same(rows, wanted, ("cluster", "broker", "log_dirs"))
    full = [row["full_on"] for row in rows if row["full_on"] is not None]
    assert len({*full}) > 5


def test_groups(spark: SparkSession, worlds: Mapping[str, list[Shot]], tables: Tables) -> None:
    """What each group does with each topic; a group may have spaces in its name."""
    rows = rows_of(growth.build_groups(frames(spark, tables), context(REGISTER)))
    points, wanted = _points(tables), {}
    for name, shots in worlds.items():
        for (kind, key), values in shots[-1].rows.items():
            if kind == GROUP_USAGE:
                group, _, of = key.rpartition(" ")
                row = oracle_growth.judge_group(
                    values, shots[-1].at, points[name, GROUP_USAGE, key]
                )
                wanted[name, group, of] = {
                    **row,
                    "owner": "sales" if of.startswith("orders") else None,
                }
    _same(rows, wanted, ("cluster", "group_id", "topic"))
    verdicts = Counter(row["verdict"] for row in rows)
    assert min(verdicts[name] for name in ("progressing", "idle", "stuck", "stopped", "unused")) > 2
