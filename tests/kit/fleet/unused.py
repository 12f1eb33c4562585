"""A fleet of one cluster with builds written without Spark, and `fleet unused` as it is typed."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import pytest

from kafkaform.core.clock import SystemClock
from kafkaform.workflow.fleet.channels import TOKEN_VARIABLE

from ...test_format_schemas import make_validator
from ..commands.here import Here
from .lake import NOW, publish
from .landings import Landing, row

DAY = timedelta(1)
FLEET = """
fleet {
  root = "data"
}
cluster "eu" {
  connection {
    bootstrap_servers = ["127.0.0.1:1"]
  }
}
state "shop" {
  folder = "shop"
}
"""
PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["127.0.0.1:1"]\n}\n'
BLOCK = """\
# clicks of the shop
resource "kafka_topic" "clicks" {
  name       = "clicks"
  partitions = 1
}

resource "kafka_topic" "orders" {
  name = "orders"
}
"""
EVIDENCE = (
    *("nothing written since 2026-08-01", "nothing read since 2026-08-01"),
    *("holds records", "nobody but its owner may read or write it", "first seen on 2026-08-01"),
)
TOLD = ("--tell-file", "told")


@dataclass
class World:
    """A fleet of one cluster with topics, as builds see it. topics: name -> columns of
    `unused_topics`; recorded: topics that the state shop has; park: those whose row says park;
    closed: since when access was taken away."""

    here: Here
    now: datetime = NOW
    topics: dict[str, dict[str, Any]] = field(default_factory=dict)
    cluster: dict[str, Any] = field(default_factory=dict)
    cluster_attrs: dict[str, str] = field(default_factory=dict)
    recorded: tuple[str, ...] = ()
    declared: tuple[str, ...] | None = None
    park: tuple[str, ...] = ()
    closed: dict[str, datetime] = field(default_factory=dict)
    lineages: tuple[str, ...] = ("l",)
    addresses: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, **columns: Any) -> None:
        usual = {"verdict": "candidate", "owner": "shop", "bytes": 4096, "evidence": EVIDENCE}
        self.topics[name] = {**usual, "idle_since": NOW - 90 * DAY, "incarnation": "id1", **columns}

    def build(self, **days: float) -> None:
        """Make the build of a day, this long after the last one."""
        self.now += timedelta(**days)
        at, cluster = {"captured_at": self.now}, {"cluster": "eu", "kind": "kafka_topic"}
        rows = [
            {"cluster": "eu", "topic": name, **columns, "as_of": self.now}
            for name, columns in self.topics.items()
        ]
        ids = {row_["topic"]: row_.pop("incarnation") for row_ in rows}
        state = {"cluster": "eu", "instance": "kafka"}
        names = self.recorded if self.declared is None else self.declared
        acls = [
            (name, f'kafka_topic.{name}/park["{operation}"]')
            for name in self.closed
            for operation in ("Read", "Write")
        ]
        publish(
            self.here.path / "data",
            f"b-{self.now:%Y%m%dT%H%M%S}",
            {
                "unused_topics": rows,
                "cluster": [
                    {**cluster_row(), **at, **self.cluster},
                ],
                "live": [
                    *(
                        {**cluster, "key": n, "incarnation": ids[n], "snapshot": "s", **at}
                        for n in ids
                    ),
                    {"cluster": "eu", "kind": "cluster", "key": "c1", "attrs": self.cluster_attrs}
                    | {"snapshot": "s", **at},
                ],
                "lineage": [
                    {"lineage": name, "name": "shop", "desired_known": True, "scopes": {}}
                    for name in self.lineages
                ],
                "recorded": [
                    *(
                        {**cluster, "key": n, "lineage": lineage, **at}
                        | {"address": self.addresses.get(n, f"kafka_topic.{n}")}
                        for n in self.recorded
                        for lineage in self.lineages
                    ),
                    *(
                        {**state, "kind": "kafka_acl", "key": a, "lineage": "l", "address": a, **at}
                        for _, a in acls
                    ),
                ],
                "desired": [{**cluster, "key": n, "lineage": "l", **at} for n in names],
                "event": [
                    {"event_id": a, "cluster": "eu", "lineage": "l", "ts": self.closed[n], "key": a}
                    | {"address": a, "action": "create", "outcome": "applied", "record": "outcome"}
                    for n, a in acls
                ],
            },
            self.now,
        )
        landed = [row("kafka_topic", n, {}, instance="kafka", park=604_800_000) for n in self.park]
        Landing(self.here.path / "data/landing").snapshot(
            "state", "l", self.now.timestamp() / 3600, landed, scopes={"kafka": "c1"}
        )

    def list(self, *flags: str, code: int = 0) -> dict[str, Any]:
        """The document of a run, which fits its schema."""
        document: dict[str, Any] = self.here.json("fleet", "unused", "--json", *flags, code=code)
        make_validator("fleet-unused").validate(document)
        for file in (self.here.path / "data/notices").glob("*.jsonl"):
            for line in file.read_text().splitlines():
                make_validator("fleet-notice").validate(json.loads(line))
        return document

    def find(self, name: str) -> dict[str, Any]:
        (topic,) = (t for t in self.list()["topics"] if t["topic"] == name)
        return dict(topic)

    def drop(self, name: str, *flags: str, code: int = 0) -> str:
        """Why a topic has dropped out."""
        document = self.list(*flags, code=code)
        assert name not in {topic["topic"] for topic in document["topics"]}
        (topic,) = (t for t in document["dropped"] if t["topic"] == name)
        return str(topic["reason"])


def cluster_row() -> dict[str, Any]:
    return {"cluster": "eu", "cluster_id": "c1", "registered": True, "status": "read"}


@pytest.fixture
def world(here: Here, monkeypatch: pytest.MonkeyPatch) -> World:
    """A candidate that the state shop records, in a folder that declares it."""
    made = World(here)
    monkeypatch.setattr(SystemClock, "now", staticmethod(lambda: made.now.timestamp()))
    monkeypatch.delenv(TOKEN_VARIABLE, raising=False)
    here.write("fleet.hcl", FLEET)
    here.write("shop/provider.kf.hcl", PROVIDER)
    here.write("shop/main.kf.hcl", BLOCK)
    made.add("clicks")
    made.recorded = ("clicks",)
    made.build()
    return made


def tell(world: World, *flags: str) -> str:
    return world.here.done("fleet", "unused", *(flags or TOLD)).text
