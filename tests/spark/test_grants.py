"""grant_findings against going through the ACLs one by one."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from kafkaform.fleet.access.grants import build
from kafkaform.fleet.landed.register import FleetSettings, Owner, Register
from kafkaform.fleet.tables.definitions import TABLES, BuildContext
from kafkaform_kafka.protocol.acl import parse_acl_key

from ..kit.fleet.access_worlds import World, worlds
from ..kit.fleet.frames import frame
from .grants_oracle import findings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NOW = datetime(2026, 3, 1, tzinfo=UTC)
OWNERS = (
    Owner("team-u", principals=("User:u", "User:root", "User:*")),
    Owner("team-g", principals=("Group:g", "User:u")),
)
KINDS = ("kafka_topic", "group_usage", "kafka_user_scram_credential", "kafka_acl")
DECLARED = Register(owners=OWNERS, principals=("User:ops",), settings=FleetSettings(short_prefix=2))
Row = dict[str, Any]


def rows(
    spark: SparkSession, some: list[World], clusters: list[Row], register: Register
) -> list[Row]:
    live = [row for world in some for row in world.live()]
    frames = {"live": frame(spark, "live", live), "cluster": frame(spark, "cluster", clusters)}
    found = [r.asDict() for r in build(frames, BuildContext(register, NOW, "b1")).collect()]
    key = TABLES["grant_findings"].key
    assert max(Counter(tuple(row[name] for name in key) for row in found).values(), default=1) == 1
    return found


@pytest.mark.parametrize("register", [DECLARED, Register()], ids=["declared", "nothing declared"])
def test_findings_are_those_of_going_through_all_acls(
    spark: SparkSession, register: Register
) -> None:
    """In random clusters, some of which were not read whole."""
    chance = Random(31)
    some = [
        replace(
            world,
            users=tuple(chance.sample(("u", "v", "x"), chance.randint(0, 2))),
            quotas=tuple(chance.sample(("u", "x", "gone", "old", None), chance.randint(2, 5))),
        )
        for world in worlds(seed=30, count=70)
    ]
    clusters = []
    for world in some:
        row = world.cluster()
        for kind in KINDS:
            row["coverage"][kind] = chance.choice(("complete", "complete", "visible_only"))
        if chance.random() < 0.1:
            row["coverage"] = {}
        clusters.append(row)
    found: dict[str, set[tuple[Any, ...]]] = {world.name: set() for world in some}
    for row in rows(spark, some, clusters, register):
        columns = ("finding", "severity", "subject", "resource", "owner")
        found[row["cluster"]].add(tuple(row[name] for name in columns))
    seen: Counter[str] = Counter()
    for world, cluster in zip(some, clusters, strict=True):
        expected = findings(world, cluster, register)
        assert found[world.name] == expected, world
        seen.update(name for name, *_ in expected)
    possible = {"no_login"} if not register.owners else set()
    assert seen.keys() | possible == FINDINGS
    assert min(seen.values()) >= 5, seen


FINDINGS = {
    "any_principal",
    "any_operation",
    "any_resource",
    "short_prefix",
    "any_host",
    "shadowed",
    "matches_nothing",
    "unknown_principal",
    "no_login",
    "quota_of_nobody",
    "open_by_default",
}


def test_a_finding_says_what_is_wrong(spark: SparkSession) -> None:
    """Detail, principal and resource in the words that people use; what shadows is named."""
    keys = (
        "User:u|*|Write|Allow|Topic|pay|Prefixed",
        "User:u|*|All|Allow|Topic|pay.|Prefixed",
        "User:x|*|Read|Allow|TransactionalID|*|Literal",
        "User:x|*|Read|Allow|Group|gone|Literal",
        "User:v|*|All|Deny|Topic|*|Literal",
        "User:v|*|Read|Allow|Topic|pay.in|Literal",
    )
    world = World("prod", tuple(map(parse_acl_key, keys)), None, True, ("pay.in",), ())
    world = replace(world, users=("x",), quotas=("old", "x", "v", "ops", None))
    register = replace(DECLARED, settings=FleetSettings(short_prefix=3))
    found = rows(spark, [world], [world.cluster()], register)
    told = {
        (row["finding"], row["principal"], row["resource"], row["detail"])
        for row in found
        if row["finding"] != "any_operation" or row["resource"] != "topic/*"
    }
    assert told == {
        ("short_prefix", "User:u", "topic/pay*", "the prefix has 3 characters"),
        ("any_operation", "User:u", "topic/pay.*", "every operation is allowed"),
        (
            "any_resource",
            "User:x",
            "transactional_id/*",
            "Read is for every resource of the type",
        ),
        ("matches_nothing", "User:x", "group/gone", "there is no group that it is about"),
        ("shadowed", "User:v", "topic/pay.in", f"it allows nothing, because of {keys[4]}"),
        ("unknown_principal", "User:v", "", "it has ACLs, and nobody declares it"),
        ("no_login", "User:u", "", "it has ACLs, and no SCRAM user"),
        (
            *("quota_of_nobody", "User:old", ""),
            "its user has no SCRAM credential and no ACL, and nobody declares it",
        ),
        ("open_by_default", "User:*", "", "everybody can do everything with what has no ACL"),
    }


def test_everybody_on_everything_is_of_the_highest_severity(spark: SparkSession) -> None:
    """Whatever it reads or writes; Describe is one step above Describe of somebody."""
    severities = {
        "User:*|*|Read|Allow|Topic|*|Literal": "high",
        "User:*|*|Read|Allow|Group||Prefixed": "high",
        "User:*|*|Describe|Allow|Topic|*|Literal": "medium",
        "User:*|*|Read|Allow|Topic|pay.|Prefixed": "medium",
        "User:x|*|Read|Allow|Topic|*|Literal": "medium",
        "User:x|*|Describe|Allow|Topic|*|Literal": "low",
    }
    world = World("prod", tuple(map(parse_acl_key, severities)), None, False, (), ())
    found = rows(spark, [world], [world.cluster()], DECLARED)
    broad = ("any_principal", "any_resource")
    told = {(row["subject"], row["severity"]) for row in found if row["finding"] in broad}
    assert told == set(severities.items())
