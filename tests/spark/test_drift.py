"""Drift: who has an object, what may be unknown, which values differ, and since when."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import product
from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from kafkaform.fleet.landed.register import FleetSettings, Owner, Register, RegisteredState
from kafkaform.fleet.tables.definitions import BuildContext

from ..kit.fleet.landings import collected, snapshot_rows
from . import oracle_drift
from .comparison import alike, filled, plain
from .oracle_drift import Row

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T0 = datetime(2026, 3, 1, tzinfo=UTC)
NOW = T0 + timedelta(days=10)
INPUTS = ("desired", "recorded", "live", "cluster", "lineage", "snapshot")
PAST = ("history", "declared_history")
Tables = dict[str, list[Row]]


def build(spark: SparkSession, tables: Mapping[str, list[Row]], register: Register) -> list[Row]:
    from kafkaform.fleet.datasets import drift

    from ..kit.fleet.frames import frame

    names = (*INPUTS, *PAST)
    frames = {name: frame(spark, name, filled(name, tables.get(name, []))) for name in names}
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


def put_skipped(tables: Tables) -> None:
    """Kinds that nobody declares, and Kafka's own topics."""
    put(tables, "skipped", "DSL")
    tables["cluster"].append(cluster("skipped"))
    for kind in ("topic_usage", "group_usage", "cluster"):
        tables["live"].append(row("skipped", {}, kind=kind))
    tables["live"].append(row("skipped", {"details.internal": "true"}, key="__offsets"))


def put_tries(tables: Tables) -> None:
    """A try to read each cluster: what fails is newer than what is read."""
    names = {each["cluster"]: each.get("status") for each in tables["cluster"]}
    names |= {each["cluster"]: None for each in tables["live"] if each["cluster"] not in names}
    for name, status in names.items():
        at = T0 + timedelta(days=2 if status in ("failed", "never") else 1)
        about = {"source": "live", "subject": name, "snapshot": "s", "captured_at": at}
        tables["snapshot"].append({**about, "sha256": None if status == "never" else "0"})


@pytest.fixture(scope="module")
def world() -> Tables:
    """All cases and a random fleet."""
    random = Random(5)
    tables = some_tables(random, 100)
    tables["lineage"].append(lineage("one"))
    for put_some in (put_classes, put_doubts, put_unread, put_paths, put_skipped, put_tries):
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
    put_tries(tables)
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


def test_the_whole_fleet_as_the_oracle_finds_it(made: list[Row], world: Tables) -> None:
    """The cases and some hundred random objects; the union of all classes is that of all keys."""
    wanted = oracle_drift.drift(world, {"team.": "team"})
    # No snapshot has landed that tells since when: what is newest.
    wanted = [{**each, "first_seen": each["as_of"]} for each in wanted]
    alike(made, wanted, "drift")
    held = [*world["desired"], *world["recorded"], *world["live"]]
    held = [r for r in held if r["kind"].startswith("kafka_") and r["key"] != "__offsets"]
    keys = {(r["cluster"], r["kind"], r["key"]) for r in held}
    whole = [(r["cluster"], r["kind"], r["key"]) for r in made if r["path"] == ""]
    assert set(whole) == keys and len(whole) == len(keys)
    assert len({r["drift_class"] for r in made}) == 13


# ── since when ──────────────────────────────────────────────────────────────────────────

TOPIC = "kafka_topic"
WHOLE = {TOPIC: "complete", "kafka_acl": "complete"}
STALE_HOURS = 40.0
Snapshot = tuple[Row, list[Row]]


@dataclass(frozen=True)
class Landed:
    """Snapshots of a fleet whose clusters are called by their ids without `id-`."""

    snapshots: list[Snapshot]

    def live(self, name: str, hours: float, objects: Mapping[Any, Any] | None, **meta: Any) -> None:
        rows = objects and [land(kind, key, attrs) for (kind, key), attrs in objects.items()]
        about = {"coverage": WHOLE, "scope_id": f"id-{name}", **meta}
        rows = None if objects is None else rows or []
        self.snapshots.append(snapshot_rows("live", name, hours, rows, **about))

    def declared(
        self, source: str, lineage: str, hours: float, sides: Mapping[str, Any] | None, **meta: Any
    ) -> None:
        """sides: cluster -> its objects."""
        rows = None if sides is None else []
        for name, objects in (sides or {}).items():
            about = {"instance": f"kafka.{name}", "scope_id": f"id-{name}"}
            rows += [land(kind, key, attrs, **about) for (kind, key), attrs in objects.items()]
        self.snapshots.append(snapshot_rows(source, lineage, hours, rows, **meta))

    def make(self, spark: SparkSession) -> tuple[dict[str, list[Row]], list[Row], list[Row]]:
        """The tables that drift is made of, and its own."""
        from kafkaform.fleet.datasets import drift, history, resources

        from ..kit.fleet.frames import frame

        metas = [meta for meta, _ in self.snapshots]
        newest = max(meta["captured_at"] for meta in metas)
        settings = FleetSettings(stale_after_hours=STALE_HOURS)
        context = BuildContext(Register(settings=settings), newest, "b1")
        frames = {
            "snapshot": frame(spark, "snapshot", metas),
            "snapshot_raw": frame(
                spark, "snapshot_raw", [r for _, rows in self.snapshots for r in rows]
            ),
            **{name: frame(spark, name, []) for name in ("run", "audit_raw", *PAST)},
        }
        for name, function in (
            ("cluster", resources.build_cluster),
            ("lineage", resources.build_lineage),
            ("live", resources.build_live),
            ("recorded", resources.build_recorded),
            ("desired", resources.build_desired),
            ("history", history.build_history),
            ("declared_history", history.build_declared_history),
        ):
            frames[name] = frame(spark, name, collected(function(frames, context)))
        tables = {name: collected(rows) for name, rows in frames.items()}
        made = (drift.build(frames, context), drift.build_daily(frames, context))
        return tables, *map(plain, made)


def land(kind: str, key: str, attrs: Mapping[str, str], **more: Any) -> Row:
    return {"kind": kind, "key": key, "attrs": attrs, **more}


def since(made: list[Row]) -> dict[tuple[str, str, str], tuple[str, str]]:
    """Cluster, key and path -> class and day of the month on which it was first seen."""
    return {
        (r["cluster"], r["key"], r["path"]): (r["drift_class"], r["first_seen"][8:13]) for r in made
    }


def test_the_same_class_lasts_whatever_could_not_be_read(spark: SparkSession) -> None:
    """Day 1: all is well. Day 2: somebody sets x to 9. Day 3: the cluster does not answer. Day 4:
    another path changes, by an apply. Day 5: topics are not listed completely, and the topic is not
    among them. Day 6: all is read again. x has drifted since day 2."""
    landed = Landed([])
    good, other = {"config.x": "1", "partitions": "1"}, {"config.x": "1", "partitions": "2"}
    shown = (good, {**good, "config.x": "9"}, None, {**other, "config.x": "9"}, (), None)
    for day, (live, own) in enumerate(
        zip(shown, (good, good, good, other, other, other), strict=True), 1
    ):
        hours, own_objects = 24 * day, {"a": {(TOPIC, "t"): own}}
        if live == ():
            landed.live("a", hours, {}, coverage={TOPIC: "visible_only"}, snapshot=f"{day}")
        elif live is None and day == 3:
            landed.live("a", hours, None, snapshot=f"{day}")
        else:
            landed.live("a", hours, {(TOPIC, "t"): live or shown[3]}, snapshot=f"{day}")
        # Read a minute later: an apply is no drift meanwhile.
        for source in ("state", "desired"):
            landed.declared(
                *(source, "one", hours + 0.02, own_objects),
                scopes={"kafka.a": "id-a"},
                snapshot=f"{day}",
            )
    _, made, days = landed.make(spark)
    assert since(made) == {
        ("a", "t", ""): ("drifted", "03 00"),
        ("a", "t", "config.x"): ("drifted", "03 00"),
    }
    assert [
        (str(row["day"])[8:], row["drift_class"], row["objects"]) for row in sorted(days, key=repr)
    ] == [
        ("02", "in_sync", 1),
        ("03", "drifted", 1),
        ("04", "unknown", 1),
        ("05", "drifted", 1),
        ("06", "drifted", 1),
        ("07", "drifted", 1),
    ]


def some_past(random: Random, clusters: int) -> Landed:
    """Clusters in pairs, two states for each pair; all of it changes, fails and hides at random."""
    landed = Landed([])
    pairs = [(f"c{n}", f"c{n + 1}") for n in range(0, clusters, 2)]
    for number, names in enumerate(pairs):
        sides = {
            (source, lineage): {name: some_objects(random) for name in names}
            for source in ("live", "state", "desired")
            for lineage in (f"l{number}a", f"l{number}b")
        }
        live = sides["live", f"l{number}a"]
        for day in range(random.randint(3, 8)):
            hours = 24 * day + random.choice((1, 7, 20))
            for name in names:
                land_live(landed, random, name, hours + random.random() / 10, day, live[name])
            for (source, lineage), objects in sides.items():
                if source != "live" and random.random() < 0.7:
                    bad = source == "desired" and random.random() < 0.2
                    at = hours + random.choice((-0.01, 0.02, 5))
                    shown = {name: dict(some) for name, some in objects.items()}
                    landed.declared(
                        *(source, lineage, at, None if bad else shown),
                        scopes={f"kafka.{name}": f"id-{name}" for name in names},
                        snapshot=f"{day}" if at < hours + 1 else f"{day}.5",
                    )
                for name in names:
                    if random.random() < 0.5:
                        objects[name] = random.choice(
                            (dict(live[name]), some_objects(random), objects[name])
                        )
    return landed


def land_live(
    landed: Landed, random: Random, name: str, hours: float, day: int, objects: Any
) -> None:
    if random.random() < 0.15:
        return
    coverage = {
        kind: random.choice(("complete",) * 5 + ("visible_only", "failed"))
        for kind in (TOPIC, "kafka_acl")
    }
    shown = {
        place: attrs
        for place, attrs in objects.items()
        if coverage[place[0]] == "complete"
        or (coverage[place[0]] == "visible_only" and random.random() < 0.7)
    }
    failed = random.random() < 0.15
    landed.live(name, hours, None if failed else shown, coverage=coverage, snapshot=f"{day}")
    if random.random() < 0.6:
        place = (random.choice((TOPIC, "kafka_acl")), random.choice("tu"))
        objects[place] = some_attrs(random)
        if random.random() < 0.3:
            del objects[place]


def some_objects(random: Random) -> dict[tuple[str, str], dict[str, str]]:
    places = product((TOPIC, "kafka_acl"), "tu")
    base = {"partitions": "1", "config.a": random.choice("12")}
    return {place: dict(base) for place in places if random.random() < 0.6}


def test_the_past_as_the_oracle_finds_it(spark: SparkSession) -> None:
    """40 clusters: since when each row has been so, and how many there were on each day."""
    landed = some_past(Random(3), 40)
    tables, made, days = landed.make(spark)
    metas = [meta for meta, _ in landed.snapshots]
    past = oracle_drift.Past(
        metas,
        {(m["source"], m["subject"], m["snapshot"]): rows for m, rows in landed.snapshots},
        {f"id-c{n}": f"c{n}" for n in range(40)},
        {row["lineage"]: list(row["scopes"].values()) for row in tables["lineage"]},
        timedelta(hours=STALE_HOURS),
        max(meta["captured_at"] for meta in metas),
    )
    names = sorted({row["cluster"] for row in tables["cluster"]})
    seen = {name: oracle_drift.moments(past, name) for name in names}
    wanted = oracle_drift.drift(tables)
    dated = [
        {**row, "first_seen": oracle_drift.first_seen(past, row, seen[row["cluster"]])}
        for row in wanted
    ]
    alike(made, dated, "drift")
    alike(
        days,
        [row for name in names for row in oracle_drift.daily(past, name, seen[name])],
        "drift_daily",
    )
    assert len({row["first_seen"] for row in dated}) > 30
    assert len({row["drift_class"] for row in days}) > 8
