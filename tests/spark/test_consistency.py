"""What is odd across clusters: by made cases, and topics of one name against an oracle."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, Any

from kafkaform.fleet.landed.register import NamingRule, Owner, Register, RegisteredCluster
from kafkaform.fleet.tables.definitions import BuildContext

from .comparison import Row, alike, filled, plain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T0 = datetime(2026, 3, 1, 12, 30, tzinfo=UTC)
INPUTS = ("live", "desired", "recorded", "cluster", "lineage", "run", "event_conflict")
NAMING = (
    NamingRule("kafka_topic", r"[a-z]+(\.[a-z0-9]+)*", "*"),
    NamingRule("kafka_topic", r"[a-z]+(\.[a-z0-9]+)*", "prod*"),
    NamingRule("kafka_topic", "p.*", "pay"),
)
SEVERITIES = {"unlike": "low", "two_owners": "high", "chain_broken": "high", "failed": "high"}
SEVERITIES |= {"conflicting_event": "high"}
SEVERITIES |= {"subject_without_topic": "low", "topic_without_schema": "low"}


def topic(cluster: str, key: str, owner: str | None = None, **attrs: str) -> Row:
    shown = {name.replace("_", "."): value for name, value in attrs.items()}
    return {"cluster": cluster, "kind": "kafka_topic", "key": key, "attrs": shown, "owner": owner}


def cluster(name: str, **more: Any) -> Row:
    base = {"cluster": name, "status": "read", "registered": True, "captured_at": T0}
    return {**base, "cluster_id": f"id-{name}", **more}


def lineage(name: str, *scopes: str) -> Row:
    reached = {f"kafka.{n}": scope for n, scope in enumerate(scopes)}
    return {"lineage": name, "name": f"state {name}", "owner": "ops", "scopes": reached}


def finding(name: str, where: str, kind: str, key: str, detail: str, *clusters: str) -> Row:
    about = {"finding": name, "severity": SEVERITIES.get(name, "medium"), "cluster": where}
    return {**about, "kind": kind, "key": key, "detail": detail, "clusters": [*clusters]}


def some_topics(random: Random) -> tuple[list[Row], list[Row]]:
    """Clusters of three envs or none, and a few names in many of them."""
    clusters = [
        cluster(
            f"r{n}",
            env=random.choice(("a", "b", None)),
            status=random.choice(("read", "read", "stale")),
        )
        for n in range(30)
    ]
    live = [
        topic(
            item["cluster"],
            f"name.n{number}",
            partitions=random.choice("3336"),
            **{f"config_{c}": random.choice("112") for c in "xy" if random.random() < 0.6},
        )
        for item in clusters
        for number in range(12)
        if random.random() < 0.3
    ]
    return clusters, live


def unlike(clusters: list[Row], live: list[Row]) -> list[Row]:
    """The findings about topics of one name, by counting."""
    env = {c["cluster"]: c.get("env") for c in clusters if c["status"] in ("read", "partial")}
    groups: dict[Any, list[Row]] = {}
    for row in live:
        if row["cluster"] in env and row["attrs"].get("details.internal") != "true":
            groups.setdefault((env[row["cluster"]], row["key"]), []).append(row)
    rows = []
    for (_, key), members in groups.items():
        names = sorted(row["cluster"] for row in members)
        for path in {p for row in members for p in row["attrs"]}:
            values = Counter(row["attrs"].get(path) for row in members)
            top = max(values.values())
            usual = [value for value, count in values.items() if count == top]
            for row in members:
                value = row["attrs"].get(path)
                if len(values) == 1 or usual == [value]:
                    continue
                detail = f"{path} is {value or 'not set'}, "
                if len(usual) == 1:
                    said = usual[0] or "not set"
                    detail += f"where {top} of {len(members)} clusters have {said}"
                else:
                    detail += f"and the {len(members)} clusters differ"
                found = finding("unlike", row["cluster"], "kafka_topic", key, detail, *names[:20])
                rows.append({**found, "owner": row["owner"]})
    return rows


def made_world() -> dict[str, list[Row]]:
    clusters = [
        cluster("prod1"),
        cluster("prod2", releases=["4.0"]),
        cluster("old", status="stale", releases=["3.9", "4.0"]),
        cluster("dead", status="failed", error="no broker answered", owner="ops"),
        cluster("new", status="never", captured_at=None, cluster_id=None),
        cluster("stranger", registered=False, status="never", captured_at=None),
        cluster("was", cluster_id="id-prod1"),
        cluster("pay", env="pay", releases=["3.9", "4.0"]),
    ]
    live = [
        topic("prod1", "orders", partitions="3", config_retention_ms="1"),
        topic("prod2", "orders", "team", partitions="6", config_retention_ms="1"),
        topic("old", "orders", partitions="9"),
        topic("pay", "orders", partitions="12"),
        topic("pay", "payments\n", "team"),
        topic("prod1", "Bad"),
        topic("prod1", "__consumer_offsets", partitions="1", details_internal="true"),
        topic("prod2", "__consumer_offsets", partitions="50", details_internal="true"),
        topic("prod1", "__heartbeat", partitions="1"),
        topic("prod2", "__heartbeat", partitions="2"),
    ]
    recorded = [
        {**topic("prod1", "orders", "team"), "lineage": "one"},
        {**topic("prod1", "orders"), "lineage": "two"},
        {**topic("prod2", "orders"), "lineage": "one"},
    ]
    run = {"lineage": "one", "chain": "sound", "started_at": T0}
    return {
        "cluster": clusters,
        "live": live,
        "desired": [{**topic("prod2", "Planned", "team"), "lineage": "one"}],
        "recorded": recorded,
        "lineage": [lineage("one", "id-prod2", "id-pay"), lineage("two")],
        "run": [
            {**run, "run": "r1"},
            {**run, "run": "r3", "chain": "gap", "started_at": T0.replace(hour=13)},
            {**run, "run": "r4", "chain": "gap", "started_at": T0.replace(hour=14)},
            {**run, "run": "r0", "lineage": "gone", "chain": "broken"},
        ],
        "event_conflict": [
            {"event_id": "one/7", "lineage": "one", "payload": text, "_file": f"audit/{text}"}
            for text in ("b", "a")
        ],
    }


WANTED = [
    finding(
        "unlike", "prod1", "kafka_topic", "orders", "partitions is 3, and the 2 clusters differ",
        "prod1", "prod2",
    ) | {"owner": "team"},
    finding(
        "unlike", "prod2", "kafka_topic", "orders", "partitions is 6, and the 2 clusters differ",
        "prod1", "prod2",
    ) | {"owner": "team"},
    *(
        found
        for where, count in (("prod1", 1), ("prod2", 2))
        for found in (
            finding(
                "unlike", where, "kafka_topic", "__heartbeat",
                f"partitions is {count}, and the 2 clusters differ", "prod1", "prod2",
            ),
            finding(
                "naming", where, "kafka_topic", "__heartbeat",
                r"the name does not match [a-z]+(\.[a-z0-9]+)*", where,
            ),
        )
    ),
    finding(
        "naming", "prod1", "kafka_topic", "Bad",
        r"the name does not match [a-z]+(\.[a-z0-9]+)*", "prod1",
    ) | {"owner": "all"},
    finding(
        "naming", "prod2", "kafka_topic", "Planned",
        r"the name does not match [a-z]+(\.[a-z0-9]+)*", "prod2",
    ) | {"owner": "team"},
    finding(
        "naming", "pay", "kafka_topic", "payments\n",
        r"the name does not match [a-z]+(\.[a-z0-9]+)*", "pay",
    ) | {"owner": "team"},
    finding("naming", "pay", "kafka_topic", "payments\n", "the name does not match p.*", "pay")
    | {"owner": "team"},
    finding("naming", "pay", "kafka_topic", "orders", "the name does not match p.*", "pay"),
    finding(
        "chain_gap", "", "state", "state one", "the log lacks records, first seen in run r3",
        "pay", "prod2",
    ) | {"owner": "ops"},
    finding(
        "chain_broken", "", "state", "gone", "the log is not what was written, first seen in run r0"
    ),
    finding(
        "stale", "old", "cluster", "old", "its newest snapshot is of 2026-03-01 12:30", "old"
    ),
    finding("failed", "dead", "cluster", "dead", "no broker answered", "dead") | {"owner": "ops"},
    finding("failed", "new", "cluster", "new", "it was never read", "new"),
    finding(
        "unregistered", "stranger", "cluster", "stranger", "fleet.hcl does not name it", "stranger"
    ),
    finding(
        "two_owners", "prod1", "kafka_topic", "orders",
        "recorded in the states state one, state two", "prod1",
    ) | {"owner": "team"},
    finding(
        "conflicting_event", "", "event", "one/7",
        "2 different records have this id, in audit/a, audit/b", "pay", "prod2",
    ) | {"owner": "ops"},
    finding(
        "renamed", "prod1", "cluster", "prod1", "its id id-prod1 is also that of was",
        "prod1", "was",
    ),
    finding(
        "renamed", "was", "cluster", "was", "its id id-prod1 is also that of prod1",
        "prod1", "was",
    ),
    finding(
        "mixed_releases", "pay", "cluster", "pay", "its brokers run Kafka 3.9, 4.0", "pay",
    ),
]  # fmt: skip


PAIRED = tuple(
    RegisteredCluster(registry, kafka_cluster=name)
    for registry, name in (
        *(("schemas", "shop"), ("schemas-dark", "dark"), ("schemas-a", "two")),
        *(("schemas-b", "two"), ("schemas-none", "plain"), ("schemas-old", "past")),
    )
)


def paired_world() -> dict[str, list[Row]]:
    """Registries of clusters: read completely, in part, one of two, without subjects, stale."""
    whole = {"kafka_topic": "complete", "schema_registry_schema": "complete"}
    names = [name for pair in PAIRED for name in (pair.name, pair.kafka_cluster)]
    clusters = {str(name): cluster(str(name), env=name, coverage=whole) for name in names}
    clusters["dark"]["coverage"] = {"kafka_topic": "visible_only"}
    clusters["schemas-b"]["coverage"] = {"schema_registry_schema": "failed"}
    clusters["schemas-old"]["status"] = "stale"
    live = [
        topic(name, key, "team")
        for name in ("shop", "dark", "two", "plain", "past")
        for key in ("orders", "bare", "a-key", "_own")
    ]
    live.append(topic("shop", "inner", details_internal="true"))
    live += [
        {"cluster": registry, "kind": "schema_registry_schema", "key": key, "attrs": {}}
        for registry in ("schemas", "schemas-dark", "schemas-a", "schemas-old")
        for key in ("orders-value", "orders-key", "gone-key", "shop.Order", ":.x:gone-value")
    ]
    return {"cluster": list(clusters.values()), "live": live}


UNPAIRED = [
    finding(
        "subject_without_topic", "schemas", "schema_registry_schema", "gone-key",
        "cluster shop has no topic gone", "schemas", "shop",
    ),
    *(
        finding(
            "topic_without_schema", "shop", "kafka_topic", key,
            "no subject is named after it in schemas", "shop",
        ) | {"owner": "team"}
        for key in ("bare", "a-key")
    ),
]  # fmt: skip


def test_topics_and_subjects_that_have_no_other_half(spark: SparkSession) -> None:
    """Only of a registry whose cluster is declared, if both and all registries of the cluster were
    read completely and some subject is named after a topic."""
    from kafkaform.fleet.datasets import consistency

    from ..kit.fleet.frames import frame

    tables = {name: paired_world().get(name, []) for name in INPUTS}
    frames = {name: frame(spark, name, filled(name, tables[name])) for name in INPUTS}
    for register, wanted in ((Register(clusters=PAIRED), UNPAIRED), (Register(), [])):
        made = plain(consistency.build(frames, BuildContext(register, T0, "b1")))
        found = [row for row in made if row["finding"].endswith(("_topic", "_schema"))]
        alike(found, wanted, "fleet_consistency")


def test_every_finding_of_a_made_and_of_a_random_fleet(spark: SparkSession) -> None:
    """Each finding once, and nothing about what is as it should be; topics of one name as the
    oracle counts them."""
    from kafkaform.fleet.datasets import consistency

    from ..kit.fleet.frames import frame

    tables = made_world()
    clusters, live = some_topics(Random(3))
    tables["cluster"] += clusters
    tables["live"] += live
    frames = {name: frame(spark, name, filled(name, tables[name])) for name in INPUTS}
    context = BuildContext(Register(naming=NAMING, owners=(Owner("all", ("B*",)),)), T0, "b1")
    made = plain(consistency.build(frames, context))
    stale = [c["cluster"] for c in clusters if c["status"] == "stale"]
    old = [
        finding("stale", c, "cluster", c, "its newest snapshot is of 2026-03-01 12:30", c)
        for c in stale
    ]
    random = unlike(clusters, live)
    assert {"where" in row["detail"] for row in random} == {True, False}
    alike(made, [*WANTED, *old, *random], "fleet_consistency")
