"""One truth: whatever the order in which files land, however many builds take them in, and whatever
dies on the way, all tables are those that one build makes of all files.

KAFKAFORM_SEEDS=7,8 tries these seeds again; each failure names its own. KAFKAFORM_LONG=1 tries
many, and kills processes.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace
from pyspark.sql import DataFrame, SparkSession

from kafkaform import __version__
from kafkaform.core.landing import META
from kafkaform.core.objects import Folder
from kafkaform.fleet.build.driver import DATASETS, BuildOptions, run_build
from kafkaform.fleet.spark.store import TableStore
from kafkaform.fleet.tables import manifest
from kafkaform.fleet.tables.definitions import TABLES, BuildContext, Frames

from ..kit.fleet.landings import Landing, collected, in_order, log, row, step
from .killing import after, killed

LONG = "KAFKAFORM_LONG" in os.environ
SEEDS = tuple(
    int(seed) for seed in os.environ.get("KAFKAFORM_SEEDS", "").split(",") if seed
) or tuple(range(20 if LONG else 1))
PIECES = 5 if LONG else 3
"""How many builds take in what has landed."""
DAYS = 7
CLUSTERS = {"a": "id-a", "b": "id-b", "c": "id-c"}
LINEAGES = {"one": ("a", "b"), "two": ("b", "c")}
"""State -> the clusters that it is about."""
KINDS = ("kafka_topic", "kafka_acl", "kafka_quota", "topic_usage", "group_usage", "cluster")
OF_BUILDS = {"_build", "_ingested_at"}
"""Columns that tell which build took a row in, and when."""
Rows = list[dict[str, Any]]


class Died(BaseException):
    """Nobody catches this."""


# -- what lands


@dataclass
class World:
    """A fleet that changes from day to day, and snapshots of it."""

    landing: Landing
    dice: Random

    def write(self) -> None:
        live = {name: self._make_objects() for name in CLUSTERS}
        held = {
            lineage: {name: dict(list(live[name].items())[:4]) for name in names}
            for lineage, names in LINEAGES.items()
        }
        declared = {lineage: dict(sides) for lineage, sides in held.items()}
        for day in range(DAYS):
            hours = 24 * day + self.dice.choice((3, 5.5))
            self._land_register(hours - 0.1, day)
            for name in CLUSTERS:
                self._change(live[name])
                self._land_live(name, hours + self.dice.random() / 100, live[name], day)
            for lineage in LINEAGES:
                name = self.dice.choice(LINEAGES[lineage])
                self._change(declared[lineage][name])
                if self.dice.random() < 0.6:
                    held[lineage][name] = dict(declared[lineage][name])
                    live[name].update(declared[lineage][name])
                self._land_declared(lineage, hours + 0.02, day, held[lineage], declared[lineage])
            self._land_log(day)

    def _make_objects(self) -> dict[tuple[str, str], dict[str, str]]:
        topics = {
            ("kafka_topic", f"t{number}"): {
                "name": f"t{number}",
                "partitions": "1",
                "replication_factor": "1",
                "replica_assignment": "[[1]]",
            }
            for number in range(5)
        }
        quota = {"entity.user": "ci", "config.producer_byte_rate": "1"}
        return {**topics, ("kafka_quota", "user=ci"): quota, **dict([_make_acl("User:ci")])}

    def _change(self, objects: dict[tuple[str, str], dict[str, str]]) -> None:
        """Set, unset, remove and add something, or nothing."""
        for _ in range(self.dice.choice((0, 1, 1, 3))):
            topic = ("kafka_topic", f"t{self.dice.randrange(6)}")
            what = self.dice.random()
            if what < 0.2:
                objects.pop(topic, None)
            elif what < 0.3:
                objects.update([_make_acl(f"User:u{self.dice.randrange(2)}")])
            else:
                before = objects.get(topic, {"name": topic[1], "partitions": "1"})
                value = self.dice.choice(("1", "2"))
                objects[topic] = {**before, self.dice.choice(PATHS): value}

    def _land_register(self, hours: float, day: int) -> None:
        rules = [
            {"name": "x", "severity": "low", "kind": "kafka_*", "message": "m", **more}
            for more in (
                {"name": "x", "where": "attrs['config.x'] = '1'"},
                {"name": "y", "where": "attrs['config.y'] = '2'", "source": "desired"},
                {"name": "z", "kind": "topic_usage", "where": "attrs['bytes'] > 0"},
            )
        ]
        waivers = [{"cluster": "a", "key": "*", "reason": "r", "until": "2026-01-04"}]
        rules[0] = {**rules[0], "waivers": waivers}
        self.landing.register(
            hours,
            clusters=[{"name": name} for name in CLUSTERS],
            states=[{"name": name, "lineage": name} for name in LINEAGES],
            owners=[{"name": "team", "topics": ["t1*"], "principals": []}],
            rules=rules,
            settings={"grace_days": 2 if day < DAYS - 1 else 3, "stale_after_hours": 30},
        )

    def _land_live(self, name: str, hours: float, objects: Any, day: int) -> None:
        luck = self.dice.random()
        if luck < 0.1:
            return
        about = {"scope_id": CLUSTERS[name], "snapshot": f"{day:04d}"}
        if luck < 0.2:
            self.landing.snapshot("live", name, hours, None, error="no answer", **about)
            return
        coverage = {
            kind: self.dice.choice(("complete",) * 8 + ("visible_only", "failed")) for kind in KINDS
        }
        shown = [
            row(kind, key, attrs)
            for (kind, key), attrs in objects.items()
            if coverage[kind] == "complete"
            or (coverage[kind] == "visible_only" and self.dice.random() < 0.8)
        ]
        shown += self._list_counters(objects, day, coverage)
        whole = set(coverage.values()) == {"complete"}
        self.landing.snapshot(
            *("live", name, hours, shown), coverage=coverage, complete=whole, **about
        )

    def _list_counters(self, objects: Any, day: int, coverage: Mapping[str, str]) -> Rows:
        rows = [row("cluster", "cluster", {"brokers": "1", "default_replication_factor": "1"})]
        for kind, key in objects:
            if kind == "kafka_topic" and self.dice.random() < 0.9:
                sums = {"end_offsets_sum": str(day // 3), "start_offsets_sum": "0", "bytes": "9"}
                rows.append(row("topic_usage", key, sums))
                told = {"committed_sum": str(day // 2), "members": "0"}
                rows.append(row("group_usage", f"g {key}", told))
        return [each for each in rows if coverage[each["kind"]] != "failed"]

    def _land_declared(
        self, lineage: str, hours: float, day: int, held: Any, declared: Any
    ) -> None:
        scopes = {f"kafka.{name}": CLUSTERS[name] for name in LINEAGES[lineage]}
        about = {"scopes": scopes, "snapshot": f"{day:04d}"}
        for source, sides in (("state", held), ("desired", declared)):
            luck = self.dice.random()
            rows = [
                row(
                    *(kind, key, attrs),
                    instance=f"kafka.{name}",
                    scope_id=CLUSTERS[name],
                    address=f"{kind}.{lineage}",
                )
                for name, objects in sides.items()
                for (kind, key), attrs in objects.items()
            ]
            if luck > 0.1:
                bad = source == "desired" and luck < 0.25
                self.landing.snapshot(source, lineage, hours, None if bad else rows, **about)

    def _land_log(self, day: int) -> None:
        for lineage, names in LINEAGES.items():
            records = []
            for number in range(3 * DAYS):
                topic = f"t{number % 5}"
                about = step(topic, scope_id=CLUSTERS[names[number % 2]])
                records.append(
                    ("intent" if number % 2 == 0 else "outcome", f"r{number // 2}", about)
                )
                if number % 2:
                    records[-1][2]["outcome"] = "applied"
            lines = log(lineage, records)[3 * day : 3 * day + 3]
            self.landing.audit(lineage, 3 * day + 1, lines)


PATHS = ("config.x", "config.y", "partitions")


def _make_acl(principal: str) -> tuple[tuple[str, str], dict[str, str]]:
    attrs = {
        "acl_principal": principal,
        "acl_host": "*",
        "acl_operation": "Read",
        "acl_permission_type": "Allow",
        "resource_type": "Topic",
        "resource_name": "t",
        "resource_pattern_type_filter": "Prefixed",
    }
    return ("kafka_acl", "|".join(attrs.values())), attrs


# -- builds


@dataclass
class Fleet:
    spark: SparkSession
    root: Path
    dice: Random

    def take(self, source: Landing, names: list[str]) -> None:
        for name in names:
            target = self.root / "landing" / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source.root / name, target)

    def build(self, dies: str | None = None) -> None:
        """dies: the table at which the build dies."""
        datasets = [replace(each, build=_die) if each.table == dies else each for each in DATASETS]
        options = BuildOptions(__version__)
        run_build(lambda _: self.spark, Folder(self.root), str(self.root), datasets, options)

    def die(self) -> None:
        """A build that comes to no end, at any of its moments."""
        if LONG:
            killed(self.root, after(self.dice.uniform(3, 40)), ())
        else:
            with pytest.raises(Died):
                self.build(dies=self.dice.choice(DATASETS).table)

    def read(self) -> dict[str, list[str]]:
        current = manifest.read_current(Folder(self.root))
        assert current is not None
        store = TableStore(self.spark, str(self.root))
        return {
            name: in_order(
                {n: v for n, v in each.items() if n not in OF_BUILDS}
                for each in collected(store.read(name, current.tables[name].version))
            )
            for name in TABLES
        }


def _die(frames: Frames, context: BuildContext) -> DataFrame:
    raise Died


def _list_units(landing: Landing) -> Iterator[list[str]]:
    """Files that land together: the rows of a snapshot come with its `.meta.json`."""
    files = landing.files()
    for name in files:
        if name.endswith(META):
            rows = name.removesuffix(META) + ".jsonl"
            yield [each for each in (rows, name) if each in files]
        elif name.startswith(("register/", "audit/")):
            yield [name]


def _cut(units: list[list[str]], dice: Random) -> list[list[str]]:
    """The units in random order, in a few pieces; the first has a register, which a build needs."""
    mixed = dice.sample(units, len(units))
    register = next(unit for unit in mixed if unit[0].startswith("register/"))
    mixed.sort(key=lambda unit: unit is not register)
    ends = sorted(dice.sample(range(1, len(mixed)), PIECES - 1))
    pieces = [mixed[start:end] for start, end in zip([0, *ends], [*ends, None], strict=True)]
    return [[name for unit in piece for name in unit] for piece in pieces]


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", SEEDS)
def test_tables_follow_from_the_files_alone(spark: SparkSession, tmp_path: Path, seed: int) -> None:
    print(f"KAFKAFORM_SEEDS={seed}")
    dice = Random(seed)
    source = Landing(tmp_path / "source")
    World(source, dice).write()
    units = list(_list_units(source))
    whole = Fleet(spark, tmp_path / "whole", dice)
    whole.take(source, [name for unit in units for name in unit])
    whole.build()
    wanted = whole.read()

    fleet = Fleet(spark, tmp_path / "pieces", dice)
    landed: list[str] = []
    for piece in _cut(units, dice):
        # What landed before may land again.
        again = dice.sample(landed, len(landed) // 5)
        fleet.take(source, [*piece, *again])
        landed += piece
        if dice.random() < 0.4:
            fleet.die()
        fleet.build()
        fleet.build()
    made = fleet.read()
    for name in TABLES:
        assert made[name] == wanted[name], f"KAFKAFORM_SEEDS={seed}: {name}"
