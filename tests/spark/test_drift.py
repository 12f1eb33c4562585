"""Drift: every combination of who has an object, what may be unknown, and which values differ."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from itertools import product
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from kafkaform.fleet.landed.register import Owner, Register, RegisteredState
from kafkaform.fleet.tables.definitions import BuildContext

from . import oracle_drift
from .comparison import alike, filled, plain, text
from .oracle_drift import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T0 = datetime(2026, 3, 1, tzinfo=UTC)
NOW = T0 + timedelta(days=10)
INPUTS = ("desired", "recorded", "live", "cluster", "lineage", "drift")
Tables = dict[str, list[Row]]


def build(spark: SparkSession, tables: Mapping[str, list[Row]], register: Register) -> list[Row]:
    from kafkaform.fleet.datasets import drift

    from ..kit.fleet.frames import frame

    frames = {name: frame(spark, name, filled(name, tables.get(name, []))) for name in INPUTS}
    return plain(drift.build(frames, BuildContext(register, NOW, "b1")))


# ── cases ───────────────────────────────────────────────────────────────────────────────


def row(cluster: str, attrs: Mapping[str, str], lineage: str | None = None, **more: Any) -> Row:
    found = {"cluster": cluster, "kind": "kafka_topic", "key": "t", "attrs": attrs}
    found["captured_at"] = T0
    if lineage is None:
        return {**found, "snapshot": "s", **more}
    return {**found, "lineage": lineage, "address": "kafka_topic.t", **more}


def cluster(name: str, status: str = "read", coverage: str | None = "complete") -> Row:
    kinds = {} if coverage is None else {"kafka_topic": coverage}
    captured = None if status == "never" else T0 + timedelta(days=1)
    return {
        "cluster": name,
        "cluster_id": f"id-{name}",
        "registered": True,
        "status": status,
        "captured_at": captured,
        "coverage": kinds,
    }


def lineage(name: str, desired: bool = True, state: bool = True, *scopes: str | None) -> Row:
    reached = {f"kafka.{n}": scope for n, scope in enumerate(scopes)}
    at = T0 if state else None
    return {"lineage": name, "desired_known": desired, "state_at": at, "scopes": reached}


HAS = {
    "DSL": "in_sync",
    "D--": "pending_create",
    "D-L": "unadopted",
    "DS-": "deleted_out_of_band",
    "-SL": "pending_delete",
    "--L": "unmanaged",
    "-S-": "stale_state",
}
VALUES = {
    ("1", "1", "1"): "in_sync",
    ("1", "1", "2"): "drifted",
    ("2", "1", "1"): "pending_update",
    ("1", "2", "1"): "state_behind",
    ("1", "2", "3"): "conflict",
    ("1", None, None): "pending_update",
    ("1", "1", None): "drifted",
    ("1", None, "1"): "state_behind",
}

STATUSES = ("read", "partial", "failed", "stale", "never")
COVERAGES = ("complete", "visible_only", "failed", None)
UNREAD = {
    "blind": ("-SL", lineage("blind", False, True, "id-blind"), "unknown"),
    "blind2": ("-S-", lineage("blind2", False, True, "id-blind2"), "unknown"),
    "stateless": ("D-L", lineage("stateless", True, False, "id-stateless"), "unknown"),
    "reached": ("--L", lineage("reached", False, True, "id-reached"), "unknown"),
    "unread": ("--L", lineage("unread", True, False, "id-unread"), "unknown"),
    "elsewhere": ("--L", lineage("elsewhere", False, True, "id-of-another"), "unmanaged"),
    "known": ("--L", lineage("known", True, True), "unmanaged"),
    "other": ("-SL", lineage("other", True, True), "pending_delete"),
}
"""Cluster -> who has its object, what is known of the state of that name, the class."""


def put(
    tables: Tables,
    name: str,
    has: str,
    values: tuple[str | None, ...] = ("1", "1", "1"),
    held_by: str = "one",
) -> None:
    """The object of cluster `name`, on the sides that has it."""
    sides = ("desired", "recorded", "live")
    for side, letter, value in zip(sides, has, values, strict=True):
        if letter != "-":
            attrs = {"partitions": "3", **({} if value is None else {"config.x": value})}
            tables[side].append(row(name, attrs, None if side == "live" else held_by))


def classes(made: list[Row]) -> dict[tuple[str, str], str]:
    return {(item["cluster"], item["path"]): item["drift_class"] for item in made}


def put_classes(tables: Tables) -> None:
    for has in HAS:
        put(tables, f"has {has}", has)
    for values in VALUES:
        put(tables, f"values {values}", "DSL", values)
    names = [f"has {has}" for has in HAS] + [f"values {values}" for values in VALUES]
    tables["cluster"] += [cluster(name) for name in names]


def put_doubts(tables: Tables) -> None:
    for status, coverage, has in product(STATUSES, COVERAGES, HAS):
        name = f"{status} {coverage} {has}"
        put(tables, name, has)
        tables["cluster"].append(cluster(name, status, coverage))


def put_unread(tables: Tables) -> None:
    for name, (has, item, _) in UNREAD.items():
        put(tables, name, has, held_by=name)
        tables["lineage"].append(item)
        tables["cluster"].append(cluster(name))


def put_paths(tables: Tables) -> None:
    declared = {"partitions": "3", "config_mode": "additive", "version": "2", "config.a": "1"}
    recorded = {"partitions": "3", "version": "1", "config.a": "1", "config.b": "5"}
    shown = {"partitions": "3", "config.a": "1", "config.b": "6", "id": "x"}
    key = {"key": "team.t"}
    tables["desired"] += [
        row("a path", declared, "one", **key),
        row("b path", {"partitions": "3"}, "one", **key),
    ]
    tables["recorded"].append(row("a path", recorded, "one", **key))
    tables["live"] += [
        row("a path", shown, **key),
        row("b path", {"partitions": "4", "config.z": "1"}, **key),
    ]
    tables["cluster"] += [cluster("a path"), cluster("b path")]


def put_seen_before(tables: Tables) -> None:
    for name, drift_class in (("as before", "drifted"), ("not as before", "conflict")):
        put(tables, name, "DSL", ("1", "1", "2"))
        tables["cluster"].append(cluster(name))
        old = {"cluster": name, "kind": "kafka_topic", "key": "t", "drift_class": drift_class}
        for path in ("", "config.x"):
            tables["drift"].append({**old, "path": path, "first_seen": T0, "as_of": T0})
    for kind in ("topic_usage", "group_usage", "cluster"):
        tables["live"].append(row("as before", {}, kind=kind))
    tables["live"].append(row("as before", {"details.internal": "true"}, key="__offsets"))


@pytest.fixture(scope="module")
def world() -> Tables:
    """All cases and a random fleet."""
    random = Random(5)
    tables = some_tables(random, 100)
    tables["drift"] = some_before(random, oracle_drift.drift(tables, NOW))
    tables["lineage"].append(lineage("one"))
    for put_some in (put_classes, put_doubts, put_unread, put_paths, put_seen_before):
        put_some(tables)
    return tables


@pytest.fixture(scope="module")
def made(spark: SparkSession, world: Tables) -> list[Row]:
    return build(spark, world, Register(owners=(Owner("team", ("team.*",)),)))


def test_the_class_follows_from_who_has_it_and_what_is_equal(made: list[Row]) -> None:
    """Each of the eleven classes; nobody's knowledge is in the way."""
    found = classes(made)
    for has, drift_class in HAS.items():
        assert found[f"has {has}", ""] == drift_class
    for values, drift_class in VALUES.items():
        assert found[f"values {values}", ""] == drift_class
        path_class = None if drift_class == "in_sync" else drift_class
        assert found.get((f"values {values}", "config.x")) == path_class


def test_what_was_not_seen_is_not_gone(made: list[Row]) -> None:
    """Absence is proven by a complete sweep of a cluster that is readable now, presence by being
    shown; everything else is unknown."""
    found = classes(made)
    for status, coverage, (has, drift_class) in product(STATUSES, COVERAGES, HAS.items()):
        enough = ("complete", "visible_only") if has.endswith("L") else ("complete",)
        proven = status in ("read", "partial") and coverage in enough
        wanted = drift_class if proven else "unknown"
        assert found[f"{status} {coverage} {has}", ""] == wanted


def test_an_unread_configuration_or_state_leaves_its_objects_unknown(made: list[Row]) -> None:
    """Nothing is unmanaged where somebody unread may hold it, nor pending where its own
    configuration is not known."""
    found = classes(made)
    assert {name: found[name, ""] for name in UNREAD} == {
        name: drift_class for name, (_, _, drift_class) in UNREAD.items()
    }


def test_what_was_never_read_may_hold_anything(spark: SparkSession) -> None:
    """A state without scopes, or one that fleet.hcl names and nobody knows: no object is called
    unmanaged, while what is held stays as it is."""
    tables: Tables = {name: [] for name in INPUTS}
    put(tables, "a", "--L")
    put(tables, "b", "-SL")
    tables["cluster"] = [cluster("a"), cluster("b")]
    tables["lineage"] = [lineage("one")]
    wanted = {("a", ""): "unknown", ("b", ""): "pending_delete"}
    assert classes(build(spark, tables, Register(states=(RegisteredState("payments"),)))) == wanted
    tables["lineage"].append(lineage("anywhere", False))
    assert classes(build(spark, tables, Register())) == wanted


def test_paths_are_compared_where_both_sides_speak(made: list[Row]) -> None:
    """A switch of the block that no cluster shows is not drift; what a cluster does not show is
    judged by the state; live overrides outside of the block are named as such."""
    rows = [r for r in made if r["cluster"].endswith(" path")]
    found = {
        (r["cluster"][0], r["path"]): (r["drift_class"], r["desired"], r["state"], r["live"])
        for r in rows
    }
    assert found == {
        ("a", ""): ("pending_update", "present", "present", "present"),
        ("a", "version"): ("pending_update", "2", "1", None),
        ("a", "config.b"): ("undeclared_override", None, "5", "6"),
        ("b", ""): ("unadopted", "present", "absent", "present"),
        ("b", "partitions"): ("unadopted", "3", None, "4"),
        ("b", "config.z"): ("undeclared_override", None, None, "1"),
    }
    assert {r["owner"] for r in rows} == {"team"}


def test_first_seen_lasts_as_long_as_the_class(made: list[Row]) -> None:
    """The same class keeps the date, another one begins anew; kinds that nobody declares and
    Kafka's own topics are not listed."""
    rows = [r for r in made if r["cluster"].endswith("as before")]
    first, newest = text(T0), text(T0 + timedelta(days=1))
    assert {(r["cluster"], r["path"], r["first_seen"]) for r in rows} == {
        ("as before", "", first),
        ("as before", "config.x", first),
        ("not as before", "", newest),
        ("not as before", "config.x", newest),
    }
    assert {r["as_of"] for r in rows} == {newest}


# ── against the oracle ──────────────────────────────────────────────────────────────────

PATHS = ("partitions", "config.a", "config.b.c", "config_mode", "entity.user", "name")


def some_attrs(random: Random) -> dict[str, str]:
    return {path: random.choice("12") for path in PATHS if random.random() < 0.6}


def some_tables(random: Random, clusters: int) -> Tables:
    """Objects on random sides of random clusters, with random knowledge about all of it."""
    tables: Tables = {name: [] for name in INPUTS}
    names = [f"c{n}" for n in range(clusters)]
    lineages = [f"l{n}" for n in range(6)]
    statuses = ("read",) * 6 + ("partial", "failed", "stale", "never")
    coverages = ("complete",) * 6 + ("visible_only", "failed", None)
    for name in names:
        found = cluster(name, random.choice(statuses), random.choice(coverages))
        found["coverage"]["kafka_acl"] = random.choice(coverages) or "failed"
        cluster_id = None if random.random() < 0.1 else f"id-{name}"
        tables["cluster"].append({**found, "cluster_id": cluster_id})
    for number, name in enumerate(lineages[1:]):
        reached = f"id-c{random.randrange(clusters)}"
        tables["lineage"].append(lineage(name, number != 2, number != 3, reached, "id-c1"))
    tables["cluster"].pop()
    for name, kind, key in product(names, ("kafka_topic", "kafka_acl"), "tuv"):
        about = {"kind": kind, "key": key}
        owner = random.choice((None, "ops"))
        base = some_attrs(random)
        for side in ("desired", "recorded"):
            for held in random.sample(lineages, random.choice((0, 1, 1, 1, 2))):
                attrs = random.choice((base, base, some_attrs(random)))
                at = T0 + timedelta(hours=random.randrange(60))
                address = random.choice((None, "x.y"))
                tables[side].append(
                    row(name, attrs, held, **about, captured_at=at) | {"address": address}
                )
        if random.random() < 0.7:
            attrs = random.choice((base, base, some_attrs(random)))
            tables["live"].append(row(name, attrs, **about, owner=owner))
    return tables


def some_before(random: Random, wanted: list[Row]) -> list[Row]:
    """What an earlier build may have left."""
    kept = ("cluster", "kind", "key", "path")
    return [
        {
            **{name: item[name] for name in kept},
            "drift_class": random.choice((item["drift_class"], "conflict")),
            "first_seen": T0 - timedelta(days=random.randrange(1, 9)),
            "as_of": T0,
        }
        for item in wanted
        if random.random() < 0.5
    ]


def test_the_whole_fleet_as_the_oracle_finds_it(made: list[Row], world: Tables) -> None:
    """The cases and some hundred random objects; the union of all classes is that of all keys."""
    alike(made, oracle_drift.drift(world, NOW, {"team.": "team"}), "drift")
    held = [*world["desired"], *world["recorded"], *world["live"]]
    held = [r for r in held if r["kind"].startswith("kafka_") and r["key"] != "__offsets"]
    keys = {(r["cluster"], r["kind"], r["key"]) for r in held}
    whole = [(r["cluster"], r["kind"], r["key"]) for r in made if r["path"] == ""]
    assert set(whole) == keys and len(whole) == len(keys)
    assert len({r["drift_class"] for r in made}) == 13


def test_a_day_is_counted_by_objects(spark: SparkSession) -> None:
    """Paths do not count, but for undeclared overrides, which count their objects once."""
    from kafkaform.fleet.datasets import drift

    from ..kit.fleet.frames import frame

    base = {"cluster": "a", "kind": "kafka_topic", "as_of": NOW}
    found = [
        ("t", "", "drifted", 2),
        ("t", "config.x", "drifted", 1),
        ("u", "", "drifted", 3),
        ("u", "config.y", "undeclared_override", 4),
        ("u", "config.z", "undeclared_override", 3),
        ("v", "", "unknown", 0),
    ]
    rows = [
        {**base, "key": k, "path": p, "drift_class": c, "first_seen": T0 + timedelta(days=d)}
        for k, p, c, d in found
    ]
    made = plain(
        drift.build_daily(
            {"drift": frame(spark, "drift", rows)}, BuildContext(Register(), NOW, "b")
        )
    )
    key = {"day": NOW.date(), "cluster": "a", "kind": "kafka_topic"}
    wanted = [
        {**key, "drift_class": "drifted", "objects": 2, "oldest": T0 + timedelta(days=2)},
        {
            **key,
            "drift_class": "undeclared_override",
            "objects": 1,
            "oldest": T0 + timedelta(days=3),
        },
        {**key, "drift_class": "unknown", "objects": 1, "oldest": T0},
    ]
    alike(made, wanted, "drift_daily")
