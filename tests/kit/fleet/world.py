"""A fleet of any size, from a seed: landing files as `fleet snapshot` writes them.

`python -m tests.kit.fleet.world FOLDER CLUSTERS [SIZE]`. SIZE 1 is a cluster of 2,000 topics,
10,000 ACLs and 25,000 audit records; 0.1 a tenth of that. Each cluster has one state with the same
lineage name, and drifts a little: each kind of difference occurs in about one of a hundred
objects. A second day adds a snapshot in which one object of a hundred has changed.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

from kafkaform.core import landing
from kafkaform.core.canonical import dumps
from kafkaform.core.head import GENESIS

TOPICS, ACLS, EVENTS = 2_000, 10_000, 25_000
START = datetime(2026, 1, 1, tzinfo=UTC)
PIECE = 10_000
"""Audit records of one segment."""
RATE = 0.01
"""The share of objects that differ in one given way."""
OPERATIONS = ("Read", "Write", "Describe", "All")
CLEANUP = ("delete", "compact")

Row = dict[str, Any]


@dataclass(frozen=True)
class Size:
    topics: int = TOPICS
    acls: int = ACLS
    events: int = EVENTS

    @classmethod
    def scaled(cls, share: float) -> Size:
        return cls(*(max(4, round(n * share)) for n in (TOPICS, ACLS, EVENTS)))


@dataclass(frozen=True)
class World:
    """seed: of everything; days: how many snapshots there are of each cluster."""

    root: Path
    seed: int = 7
    size: Size = Size()

    def write(self, clusters: Iterable[int], days: Sequence[int] = (0,)) -> None:
        """These clusters, on these days. Files that are there stay as they are."""
        for number in clusters:
            for day in days:
                self._cluster(number, day)

    def register(self, clusters: int, day: int = 0) -> None:
        """fleet.hcl of so many clusters, as data."""
        taken = _time(day)
        names = range(clusters)
        data = {
            "format": landing.FORMAT,
            "taken": taken,
            "clusters": [self._registered(number) for number in names],
            "states": [{"name": f"s{n:04}", "lineage": f"lineage-{n:04}"} for n in names],
            "owners": [
                {"name": f"team{team}", "topics": [f"app{team}*"], "principals": []}
                for team in range(5)
            ],
            "principals": [f"User:u{user}" for user in range(450)],
            "rates": {"currency": "EUR", "partition": 0.1, "replica": 0.05},
            "rules": [
                {
                    "name": "short",
                    "severity": "medium",
                    "kind": "kafka_topic",
                    "where": "try_cast(attrs['config.retention.ms'] AS BIGINT) < 3600000",
                    "message": "It keeps less than an hour.",
                }
            ],
            "naming": [{"kind": "kafka_topic", "pattern": "[a-z0-9.]+"}],
            "settings": {},
        }
        path = self.root / landing.ROOT / landing.REGISTER / f"{_stamp(taken)}.json"
        _create(path, [dumps(data)])

    def _registered(self, number: int) -> Row:
        return {
            "name": f"c{number:04}",
            "env": ("prod", "test")[number % 2],
            "super_users": ["User:admin"],
            "allow_if_no_acl": number % 7 == 0,
        }

    def _cluster(self, number: int, day: int) -> None:
        random = Random(f"{self.seed}/{number}/{day}")
        live = list(self._live(number, day))
        own = [row for row in live if row["kind"] != landing.TOPIC_USAGE]
        state = [_owned(row, number) for row in own if random.random() > RATE]
        state = [self._other(row, random) for row in state]
        desired = [self._other(row, random) for row in state if random.random() > RATE]
        instance = {"kafka": f"id-{number:04}"}
        usage = [row for row in live if row["kind"] == landing.TOPIC_USAGE]
        shown = [row for row in own if random.random() > RATE] + usage
        self._snapshot(landing.LIVE, f"c{number:04}", day, shown, scope=f"id-{number:04}")
        self._snapshot(landing.STATE, f"lineage-{number:04}", day, state, scopes=instance)
        self._snapshot(landing.DESIRED, f"lineage-{number:04}", day, desired, scopes=instance)
        if day == 0:
            self._audit(number, live)

    def _live(self, number: int, day: int) -> Iterator[Row]:
        """The same objects every day, one of a hundred changed."""
        random = Random(f"{self.seed}/{number}")
        later = Random(f"{self.seed}/{number}/{day}/live")
        yield _row(landing.CLUSTER, f"id-{number:04}", brokers="3", default_replication_factor="3")
        for topic in range(self.size.topics):
            name = f"app{random.randrange(200)}.topic{topic}"
            hours = random.randrange(1, 200) + (day if later.random() < RATE else 0)
            yield _row(
                "kafka_topic",
                name,
                incarnation=f"{number}-{topic}",
                name=name,
                partitions=str(random.choice((1, 3, 6, 12))),
                replication_factor=str(random.choice((2, 3, 3, 3))),
                **{
                    "config.retention.ms": str(hours * 3_600_000),
                    "config.cleanup.policy": random.choice(CLEANUP),
                },
            )
            end = topic * 100 + (day if topic % 3 else 0)
            yield _row(landing.TOPIC_USAGE, name, end_offsets_sum=str(end), start_offsets_sum="0")
        for _ in range(self.size.acls):
            yield _acl(random)

    def _other(self, row: Row, random: Random) -> Row:
        if row["kind"] != "kafka_topic" or random.random() > RATE:
            return row
        return {**row, "attrs": {**row["attrs"], "config.retention.ms": "1234567"}}

    def _snapshot(
        self,
        source: str,
        subject: str,
        day: int,
        rows: Sequence[Row],
        scope: str | None = None,
        scopes: Mapping[str, str] | None = None,
    ) -> None:
        time = _time(day)
        folder = self.root / landing.ROOT / source / subject
        lines = list(dict.fromkeys(json.dumps(row, sort_keys=True) for row in rows))
        digest = _create(folder / f"{_stamp(time)}{landing.ROWS}", lines)
        meta = {
            "source": source,
            "subject": subject,
            "snapshot": _stamp(time),
            "started": time,
            "ended": time,
            "complete": True,
            "rows": len(lines),
            "sha256": digest,
            "scope_id": scope,
            "coverage": dict.fromkeys(sorted({row["kind"] for row in rows}), "complete"),
            "error": None,
            "scopes": scopes or {},
            "format": landing.FORMAT,
        }
        _create(folder / f"{_stamp(time)}{landing.META}", [dumps(meta)])

    def _audit(self, number: int, live: Sequence[Row]) -> None:
        lineage, prev = f"lineage-{number:04}", GENESIS.hash
        random = Random(f"{self.seed}/{number}/audit")
        topics = [row for row in live if row["kind"] == "kafka_topic"]
        folder = self.root / landing.ROOT / landing.AUDIT / lineage
        for first in range(1, self.size.events + 1, PIECE):
            last = min(first + PIECE - 1, self.size.events)
            lines = []
            for seq in range(first, last + 1):
                line, prev = _record(seq, prev, lineage, number, random.choice(topics), random)
                lines.append(line)
            _create(folder / f"{first:012}-{last:012}{landing.ROWS}", lines)


def _row(kind: str, key: str, incarnation: str | None = None, **attrs: str) -> Row:
    row: Row = {"kind": kind, "key": key, "attrs": attrs}
    return row if incarnation is None else {**row, "incarnation": incarnation}


def _owned(row: Row, number: int) -> Row:
    about = {"instance": "kafka", "scope_id": f"id-{number:04}"}
    return {**row, **about, "address": f"{row['kind']}.all[{json.dumps(row['key'])}]"}


def _acl(random: Random) -> Row:
    """60 % literal, 30 % prefix of an app, 9.8 % of a team, 0.2 % everything; 3 % DENY."""
    drawn, app = random.random(), random.randrange(200)
    pattern, name = "Prefixed", f"app{app}."
    if drawn < 0.6:
        pattern, name = "Literal", f"app{app}.topic{random.randrange(TOPICS)}"
    elif drawn >= 0.998:
        pattern, name = "Literal", "*"
    elif drawn >= 0.9:
        name = f"app{app // 10}"
    values = (
        f"User:u{random.randrange(500)}",
        "*" if random.random() < 0.95 else "10.0.0.7",
        random.choice(OPERATIONS),
        "Deny" if random.random() < 0.03 else "Allow",
        "Topic",
        name,
        pattern,
    )
    names = (
        *("acl_principal", "acl_host", "acl_operation", "acl_permission_type"),
        *("resource_type", "resource_name", "resource_pattern_type_filter"),
    )
    return _row("kafka_acl", "|".join(values), **dict(zip(names, values, strict=True)))


def _record(
    seq: int, prev: str, lineage: str, number: int, topic: Row, random: Random
) -> tuple[str, str]:
    """The outcome of one step that changed a retention, sealed."""
    outcome = random.choices(("applied", "failed", "unknown"), (96, 3, 1))[0]
    error = None
    if outcome != "applied":
        error = {"code": "REQUEST_TIMED_OUT", "kind": "ambiguous", "message": "", "where": ""}
    value = str(random.randrange(200) * 3_600_000)
    path = {"path": "config.retention.ms", "before": "1", "after": value, "sensitive": False}
    about = {"lineage": lineage, "instance": "kafka", "scope_id": f"id-{number:04}"}
    step = {"step": f"kafka/kafka_topic/{topic['key']}#1", "address": "kafka_topic.all"}
    what = {"kind": "kafka_topic", "key": topic["key"], "action": "update", "adopts": False}
    how = {"plan": "p", "approval": "a", "phase": "1.1", "attempt": 1, "ticket": None}
    body = {
        **about,
        **step,
        **what,
        **how,
        "incarnation": topic["incarnation"],
        "paths": [path],
        "outcome": outcome,
        "error": error,
        "duration_ms": random.randrange(5, 500),
    }
    time = (START - timedelta(days=30) + timedelta(seconds=seq * 100)).isoformat()
    record = {
        "seq": seq,
        "time": time.replace("+00:00", ".000000Z"),
        "run": f"run-{seq // 20}",
        "actor": "ci@runner",
        "kind": "outcome",
        "body": body,
        "prev": prev,
    }
    digest = hashlib.sha256(_json(record).encode()).hexdigest()
    return _json({**record, "hash": digest}), digest


def _json(value: Any) -> str:
    """What canonical JSON is for these values."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def _time(day: int) -> str:
    moment = START + timedelta(days=day)
    return moment.isoformat(timespec="microseconds").removesuffix("+00:00") + "Z"


def _stamp(time: str) -> str:
    return time.replace("-", "").replace(":", "")


def _create(path: Path, lines: Sequence[str]) -> str:
    """Write the lines; the digest of the bytes."""
    data = "".join(f"{line}\n" for line in lines).encode()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    return hashlib.sha256(data).hexdigest()


def main(words: Sequence[str]) -> None:
    folder, clusters = Path(words[0]), int(words[1])
    world = World(folder, size=Size.scaled(float(words[2]) if len(words) > 2 else 1.0))
    world.register(clusters)
    world.write(range(clusters))


if __name__ == "__main__":
    main(sys.argv[1:])
