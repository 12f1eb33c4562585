"""Unused topics: each build goes on from the one before, and says the same as reading it all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from random import Random

import pytest
from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession

from kafkaform.core.landing import GROUP_USAGE, TOPIC_USAGE
from kafkaform.fleet.datasets import unused_topics
from kafkaform.fleet.landed.register import FleetSettings, Owner, Register, RegisteredWaiver

from . import oracle_unused
from .live_rows import (
    BUILD,
    NOW,
    Row,
    acl,
    cluster,
    context,
    days,
    frames,
    live,
    past,
    rows_of,
    topic,
)
from .oracle_unused import Shot

GRACE = 30
COVERAGE = {"kafka_topic": "complete", TOPIC_USAGE: "complete", GROUP_USAGE: "complete"}
PLAIN_TOPICS = ("idle", "full", "young")
TOPICS = ("orders.a", "orders.b", "pay", "x", "__internal")
NAMES = (*TOPICS, *PLAIN_TOPICS)
"""Of all topics that snapshots list."""
OWNERS = (Owner("sales", ("orders.*",), ("User:sales", "User:etl")), Owner("risk", ("pay",)))
KEEPS = (RegisteredWaiver(NOW.date(), "it is read once a year", "c?*", "orders.*"),)
REGISTER = Register(owners=OWNERS, settings=FleetSettings(grace_days=GRACE), keeps=KEEPS)
TABLES = ("live", "history", "cluster", "snapshot", "snapshot_raw", "desired", "recorded")
Tables = dict[str, list[Row]]
Counts = Mapping[str, int | None]


# -- snapshots


def _shots(dice: Random) -> list[Shot]:
    """Snapshots of one cluster, up to two months of them; seldom does everything stand still."""
    at = days(dice.choice((3, 20, 40, 60)))
    moving, reading = dice.choice((0, 0, 0.05, 0.5)), dice.choice((0, 0, 0.05, 0.5))
    covered = dice.choice(({}, {}, {GROUP_USAGE: "visible_only"}))
    ends = {name: dice.choice((0, 0, 50)) for name in TOPICS}
    starts = {name: dice.choice((0, end)) for name, end in ends.items()}
    offsets = {("g", "x"): 4, ("g h", "pay"): 7, ("g", "orders.a"): None}
    shots = []
    while at <= days(0):
        ends = {n: end + (dice.random() < moving) for n, end in ends.items()}
        offsets = {
            k: v if dice.random() > reading or v is None else v + 1 for k, v in offsets.items()
        }
        if dice.random() < reading / 2:
            offsets.pop(dice.choice(list(offsets)), None) if offsets else None
        if dice.random() < reading / 3:
            offsets["new", dice.choice(TOPICS)] = 1
        coverage = {**COVERAGE, **covered}
        if dice.random() < 0.03:
            coverage[dice.choice((TOPIC_USAGE, GROUP_USAGE))] = "failed"
        there = {key: v for key, v in offsets.items() if dice.random() >= reading / 5}
        shots.append(_shot(dice, at, coverage, ends, starts, there))
        at += timedelta(days=dice.choice((1, 1, 2, 7, 7.5) if dice.random() < 0.1 else (1, 2)))
    return shots


def _shot(
    dice: Random,
    at: datetime,
    coverage: Mapping[str, str],
    ends: Counts,
    starts: Counts,
    offsets: Mapping[tuple[str, str], int | None],
) -> Shot:
    told = coverage[TOPIC_USAGE] != "failed"
    seen: Counts = {n: v if dice.random() > 0.02 else None for n, v in ends.items() if told}
    groups = {
        key: (value, dice.choice((0, None)) if dice.random() > 0.02 else 2)
        for key, value in offsets.items()
        if coverage[GROUP_USAGE] != "failed"
    }
    return Shot(at, coverage, seen, {n: starts[n] for n in seen}, groups)


def _usage(name: str, shot: Shot) -> list[Row]:
    """The rows of a snapshot that are about use, as `live` has them."""
    rows = []
    for key, end in shot.ends.items():
        sums = {"end_offsets_sum": end, "start_offsets_sum": shot.starts.get(key), "bytes": 12}
        rows.append(live(name, TOPIC_USAGE, key, _texts(sums), captured_at=shot.at))
    for (group, key), (committed, members) in shot.groups.items():
        told = _texts({"committed_sum": committed, "members": members})
        rows.append(live(name, GROUP_USAGE, f"{group} {key}", told, captured_at=shot.at))
    return rows


def _texts(values: Mapping[str, int | None]) -> dict[str, str]:
    return {name: str(value) for name, value in values.items() if value is not None}


def _landed(shots: Mapping[str, Sequence[Shot]], build: str) -> Tables:
    """The bronze rows of these snapshots, as far as they are about use. Before each of them one
    has failed, which tells nothing."""
    tables: Tables = {"snapshot": [], "snapshot_raw": []}
    for name, mine in shots.items():
        for number, shot in enumerate(mine):
            known = {"source": "live", "subject": name, "captured_at": shot.at, "_build": build}
            # Snapshots that ended at the same time differ in their names.
            same = sum(other.at == shot.at for other in mine[:number])
            known["snapshot"] = f"{shot.at.isoformat()}-{same}"
            tables["snapshot"].append({**known, "coverage": shot.coverage, "sha256": "0"})
            failed = {**known, "captured_at": shot.at - timedelta(hours=9), "snapshot": "failed"}
            tables["snapshot"].append({**failed, "coverage": {GROUP_USAGE: "complete"}})
            listed = [topic(name, key, [[1]]) for key in NAMES]
            for row in (*_usage(name, shot), *listed):
                about = {n: row[n] for n in ("kind", "key", "attrs")}
                tables["snapshot_raw"].append({**known, **about})
    return tables


def _now(shots: Mapping[str, Sequence[Shot]]) -> list[Row]:
    """The newest rows of each kind of use, as `live` keeps them."""
    rows = []
    for name, mine in shots.items():
        for kind in (TOPIC_USAGE, GROUP_USAGE):
            last = next((s for s in reversed(mine) if s.coverage[kind] != "failed"), None)
            rows += [row for row in _usage(name, last) if row["kind"] == kind] if last else []
    return rows


# -- all other tables


def _objects(dice: Random, name: str, shots: Sequence[Shot]) -> Tables:
    last = shots[-1]
    acls = dice.choice(({}, {"kafka_acl": "complete"}, {"kafka_acl": "visible_only"}))
    coverage = {**last.coverage, **acls}
    known = {"captured_at": last.at, "coverage": coverage}
    tables: Tables = {table: [] for table in TABLES}
    allowed = dice.choice((None, True, False))
    tables["cluster"].append(cluster(name, **known, allow_if_no_acl=allowed))
    for key in TOPICS:
        own = dice.choice((None, None, "risk"))
        row = topic(name, key, [[1]], owner=own, incarnation=dice.choice((None, "id2")))
        tables["live"].append(row)
        tables["history"] += _past(dice, row)
        if dice.random() < 0.2:
            said = {n: v for n, v in row.items() if n not in ("snapshot", "incarnation")}
            tables["desired"].append({**said, "lineage": "l", "owner": "sales"})
    tables["live"] += [_acl(dice, name) for _ in range(dice.randrange(4))]
    return tables


def _past(dice: Random, row: Row) -> list[Row]:
    begin = days(dice.choice((10, 29, 45)))
    older = past(row["cluster"], row["key"], {}, days(90), valid_to=begin, incarnation="id1")
    before = dice.choice((None, begin - timedelta(days=1)))
    now = {"incarnation": row["incarnation"], "seen_before": before}
    later = past(row["cluster"], row["key"], {"a": "1"}, days(5), **now)
    first = past(row["cluster"], row["key"], {}, begin, valid_to=days(5), **now)
    return [row for row in (older, first, later) if dice.random() < 0.8]


def _acl(dice: Random, name: str) -> Row:
    pattern, resource = dice.choice(
        (
            ("Literal", "*"),
            ("Literal", "x"),
            ("Literal", "orders.a"),
            ("Prefixed", "orders."),
            ("Prefixed", "p"),
            ("Prefixed", "pay"),
            ("Prefixed", "pays"),
        )
    )
    return acl(
        name,
        dice.choice(("User:sales", "User:etl", "User:other", "User:*")),
        acl_operation=dice.choice(("Read", "Write", "All", "Describe")),
        acl_permission_type=dice.choice(("Allow", "Allow", "Allow", "Deny")),
        resource_type=dice.choice(("Topic", "Topic", "Topic", "Group")),
        resource_name=resource,
        resource_pattern_type_filter=pattern,
        acl_host=str(dice.random()),
    )


# -- tests

CASES = 40
PLAIN = f"c{CASES}"
World = tuple[dict[str, list[Shot]], Tables]


def _plain_case() -> tuple[list[Shot], Tables]:
    """A cluster that was looked at each week for 42 days, and whose topics stand still."""
    how = {**COVERAGE, "kafka_acl": "complete"}
    ends, starts = {"idle": 0, "full": 9, "young": 0}, {"idle": 0, "full": 0, "young": 0}
    groups = {("g", "full"): (9, 0)}
    shots = [Shot(days(7 * week), how, ends, starts, groups) for week in range(6, 0, -1)]
    shots.append(Shot(days(0), how, {**ends, "full": 10}, starts, groups))
    born = {"idle": (days(90), None), "full": (days(90), None), "young": (days(7), days(8))}
    tables: Tables = {table: [] for table in TABLES}
    tables["cluster"] = [cluster(PLAIN, coverage=how, allow_if_no_acl=False)]
    tables["live"] = [topic(PLAIN, key, [[1], [1]], incarnation="i") for key in ends]
    tables["live"].append(acl(PLAIN, "User:other", resource_name="full"))
    tables["history"] = [
        past(PLAIN, key, {}, begin, seen_before=before, incarnation="i")
        for key, (begin, before) in born.items()
    ]
    return shots, tables


@pytest.fixture(scope="module")
def world() -> World:
    """Snapshots of all clusters, and all tables but those of snapshots."""
    dice = Random(9)
    shots = {f"c{number}": _shots(dice) for number in range(CASES)}
    parts = [_objects(dice, name, mine) for name, mine in shots.items()]
    shots[PLAIN], told = _plain_case()
    tables: Tables = {t: [row for part in (*parts, told) for row in part[t]] for t in TABLES}
    return shots, tables


def made(
    spark: SparkSession,
    shots: Mapping[str, Sequence[Shot]],
    tables: Tables,
    landed: Tables,
    before: DataFrame | None,
    register: Register = REGISTER,
) -> DataFrame:
    full = {**tables, **landed, "live": [*tables["live"], *_now(shots)]}
    found = frames(spark, {**full, "unused_topics": []})
    if before is not None:
        found["unused_topics"] = before
    return unused_topics.build(found, context(register))


def _plain(rows: Sequence[Row]) -> dict[tuple[str, str], Row]:
    """Without what is said in words, and what the oracle does not count."""
    left_out = ("evidence", "partitions", "bytes", "known_until", "known_snapshots")
    return {
        (row["cluster"], row["topic"]): {n: v for n, v in row.items() if n not in left_out}
        for row in rows
    }


@pytest.fixture(scope="module")
def found(spark: SparkSession, world: World) -> list[Row]:
    """What two builds make: each takes in the snapshots that are new to it, the second an old one
    again. Of some clusters there are none for the second."""
    shots, tables = world
    cut = {name: _cut(name, len(mine)) for name, mine in shots.items()}
    early = {name: mine[: cut[name]] for name, mine in shots.items()}
    late = {name: mine[max(0, cut[name] - 2) :] for name, mine in shots.items()}
    late |= {name: [] for name, mine in shots.items() if cut[name] == len(mine)}
    first = rows_of(made(spark, early, _as_of(tables, early), _landed(early, BUILD), None))
    before = frames(spark, {"unused_topics": first})["unused_topics"]
    landed = _landed(late, BUILD)
    for table, rows in _landed(early, "an older build").items():
        landed[table] += rows
    return rows_of(made(spark, shots, tables, landed, before))


def _cut(name: str, count: int) -> int:
    """How many snapshots the first build knows: all of each fourth cluster."""
    number = int(name[1:])
    return count if number % 4 == 0 else max(1, count * (number % 4) // 4)


def _as_of(tables: Tables, shots: Mapping[str, Sequence[Shot]]) -> Tables:
    """The tables as they were when the last of these snapshots was taken."""
    clusters = []
    for row in tables["cluster"]:
        last = shots[row["cluster"]][-1]
        coverage = {**row["coverage"], **last.coverage}
        clusters.append({**row, "captured_at": last.at, "coverage": coverage})
    return {**tables, "cluster": clusters}


def test_build_after_build_is_as_reading_it_all(found: list[Row], world: World) -> None:
    """The rows of the second build, against one snapshot read after the other from the first."""
    shots, tables = world
    wanted = _plain(oracle_unused.unused(shots, tables, REGISTER))
    verdicts = Counter(row["verdict"] for row in wanted.values())
    assert min(verdicts.values()) > 3
    assert len(verdicts) == 5
    assert {row["granted"] for row in wanted.values()} == {True, False, None}
    assert {row["empty"] for row in wanted.values()} == {True, False, None}
    made_of = _plain(found)
    assert made_of.keys() == wanted.keys()
    for key, row in wanted.items():
        assert made_of[key] == row


@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_landing_decides_nothing(spark: SparkSession, world: World, seed: int) -> None:
    """Snapshots land shuffled, in chunks, some of them twice; and topics are hidden from the last
    look of a build. The last build says the same as one from nothing."""
    shots, tables = world
    dice = Random(seed)
    stages = [_choose_stage(dice, mine) for mine in shots.values()]
    before: DataFrame | None = None
    for stage in range(3):
        landed_shots = {
            name: [shot for shot, first in zip(mine, chosen, strict=True) if first <= stage]
            for (name, mine), chosen in zip(shots.items(), stages, strict=True)
        }
        there = {name: mine for name, mine in landed_shots.items() if mine}
        known = _as_of({**tables, "cluster": _select(tables["cluster"], there)}, there)
        hidden = TOPICS[dice.randrange(len(TOPICS))] if stage == 1 else ""
        live_rows = [
            row for row in known["live"] if row["key"] != hidden and row["cluster"] in there
        ]
        built = made(spark, there, {**known, "live": live_rows}, _landed(there, BUILD), before)
        before = frames(spark, {"unused_topics": rows_of(built)})["unused_topics"]
    assert before is not None
    whole = rows_of(made(spark, shots, tables, _landed(shots, BUILD), None))
    assert _plain(rows_of(before)) == _plain(whole)


def _choose_stage(dice: Random, shots: Sequence[Shot]) -> list[int]:
    """In which of three builds each snapshot lands; the newest one in the last."""
    return [*(dice.randrange(3) for _ in shots[:-1]), 2]


def _select(rows: Sequence[Row], clusters: Mapping[str, object]) -> list[Row]:
    return [row for row in rows if row["cluster"] in clusters]


def test_what_is_said_of_the_signals(found: list[Row]) -> None:
    """Each topic tells what its verdict rests on."""
    said = {row["topic"]: row for row in found if row["cluster"] == PLAIN}
    assert {name: (row["verdict"], row["confidence"]) for name, row in said.items()} == {
        "idle": ("candidate", 1.0),
        "full": ("in_use", 1.0),
        "young": ("too_new", 1.0),
    }
    nobody = "nobody but its owner may read or write it"
    begin = "2026-05-04"
    idle = [f"nothing written since {begin}", f"nothing read since {begin}", "empty", nobody]
    assert said["idle"]["evidence"] == [*idle, "first seen on 2026-03-17"]
    assert said["young"]["evidence"] == [*idle, "appeared on 2026-06-08"]
    assert said["full"]["evidence"] == [
        "written, as shown on 2026-06-15",
        f"nothing read since {begin}",
        "holds records",
        "others than its owner may read or write it",
        "first seen on 2026-03-17",
    ]
    assert (said["full"]["partitions"], said["full"]["bytes"]) == (2, 12)


def test_what_a_keep_block_keeps(spark: SparkSession) -> None:
    """A candidate up to the last day, with the reason; a topic in use stays what it is."""
    (shots, tables), today = _plain_case(), NOW.date()
    keeps = (
        RegisteredWaiver(today - timedelta(days=1), "over", "*", "idle"),
        RegisteredWaiver(today, "elsewhere", "other", "*"),
        RegisteredWaiver(today, "read once a year", "*", "i*e"),
        RegisteredWaiver(today, "in vain", PLAIN, "full"),
    )
    by_cluster, register = {PLAIN: shots}, replace(REGISTER, keeps=keeps)
    built = made(spark, by_cluster, tables, _landed(by_cluster, BUILD), None, register)
    assert {row["topic"]: (row["verdict"], row["kept"]) for row in rows_of(built)} == {
        "idle": ("kept", f"fleet.hcl keeps it until {today}: read once a year"),
        "full": ("in_use", None),
        "young": ("too_new", None),
    }


def test_two_snapshots_that_ended_at_one_time(spark: SparkSession) -> None:
    """Nobody knows which came first: the larger numbers count, in whatever order they landed."""
    how = COVERAGE
    low, high = (
        Shot(NOW, how, {"x": n}, {"x": 0}, {("g", "x"): (n, 0), ("h", "x"): (None, 0)})
        for n in (3, 4)
    )
    tables: Tables = {table: [] for table in TABLES}
    tables["cluster"] = [cluster("c", coverage=how), cluster("d", coverage=how)]
    tables["live"] = [topic(name, "x", [[1]]) for name in ("c", "d")]
    shots = {"c": [low, high], "d": [high, low]}
    made_of = _plain(rows_of(made(spark, shots, tables, _landed(shots, BUILD), None)))
    for row in made_of.values():
        assert (row["end_offset"], row["committed"]) == (4, {"g": 4, "h": None})
        assert row["verdict"] == "in_use"


def test_a_topic_is_watched_from_the_first_snapshot_that_lists_it(spark: SparkSession) -> None:
    """Its use can be in an earlier one, because a snapshot is not of one moment. Builds one after
    the other say the same as one of everything."""
    groups = {("g", "x"): (3, 0)}
    shots = {"c": [Shot(days(ago), COVERAGE, {"x": 3}, {"x": 0}, groups) for ago in (2, 1, 0)]}
    tables: Tables = {table: [] for table in TABLES}
    tables["cluster"] = [cluster("c", coverage=COVERAGE)]
    tables["live"] = [topic("c", "x", [[1]])]
    tables["history"] = [past("c", "x", {}, days(1))]
    landed = _landed(shots, BUILD)
    landed["snapshot_raw"] = [
        row
        for row in landed["snapshot_raw"]
        if row["kind"] != "kafka_topic" or row["captured_at"] > days(2)
    ]
    first = {"c": shots["c"][:1]}
    early = {
        name: [row for row in landed[name] if row["captured_at"] <= days(2)] for name in landed
    }
    known = _as_of({**tables, "live": [], "history": []}, first)
    before = frames(spark, {"unused_topics": rows_of(made(spark, first, known, early, None))})
    followed = rows_of(made(spark, shots, tables, landed, before["unused_topics"]))
    whole = rows_of(made(spark, shots, tables, landed, None))
    assert _plain(followed) == _plain(whole)
    assert [row["offsets_since"] for row in whole] == [days(1)]
