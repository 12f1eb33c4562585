"""effective_permissions against the provider's `decide`, question by question."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from datetime import UTC, datetime
from itertools import product
from pathlib import Path
from random import Random
from typing import TYPE_CHECKING, Any

import pyspark.sql.functions as F
import pytest

from kafkaform.core.errors import UsageError
from kafkaform.core.progress import ignore_event
from kafkaform.fleet.access import acl_masks
from kafkaform.fleet.access.permission_rows import (
    COLUMNS,
    FILE_COLUMNS,
    KEY,
    SUPPORTED_OPERATIONS,
    PermissionFilter,
    make_supported_mask,
    parse_operation,
    parse_principal,
    parse_resource,
)
from kafkaform.fleet.access.permission_rows import add_words as in_words
from kafkaform.fleet.access.permissions import build, expand_permissions
from kafkaform.fleet.answers.who_can import parse_acls
from kafkaform.fleet.landed.register import Register
from kafkaform.fleet.tables.definitions import TABLES, BuildContext
from kafkaform.workflow.fleet import answers
from kafkaform.workflow.fleet.answers import PermissionsRequest, export_by_resource
from kafkaform.workflow.fleet.runs import SparkOptions
from kafkaform_kafka.authority.authorizer import Access, AccessVerdict, index_acls
from kafkaform_kafka.protocol.acl import Acl

from ..kit.fleet.access_worlds import (
    ELSEWHERE,
    HOSTS,
    PRINCIPALS,
    STRANGER,
    World,
    covers,
    reaches_every_topic,
    reaches_some_topic,
    told,
    verdict,
    worlds,
    writing_worlds,
)
from ..kit.fleet.frames import frame
from ..kit.fleet.lake import publish

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

CONTEXT = BuildContext(Register(), datetime(2026, 3, 1, tzinfo=UTC), "b1")
WORLDS = [*worlds(seed=7, count=150), *writing_worlds(seed=9, count=60)]
EVERYTHING = PermissionFilter()
Row = dict[str, Any]


def frames_of(spark: SparkSession, some: Sequence[World]) -> dict[str, DataFrame]:
    return {
        "live": frame(spark, "live", (row for world in some for row in world.live())),
        "cluster": frame(spark, "cluster", (world.cluster() for world in some)),
    }


@pytest.fixture(scope="module")
def frames(spark: SparkSession) -> Mapping[str, DataFrame]:
    return frames_of(spark, WORLDS)


@pytest.fixture(scope="module")
def built(frames: Mapping[str, DataFrame]) -> list[Row]:
    return rows(build(frames, CONTEXT))


@pytest.fixture(scope="module")
def expanded(frames: Mapping[str, DataFrame]) -> list[Row]:
    return expansion(frames)


def expansion(
    frames: Mapping[str, DataFrame],
    only: PermissionFilter = EVERYTHING,
    most: int = acl_masks.PAIRS,
) -> list[Row]:
    return rows(expand_permissions(frames, only, most))


def rows(frame: DataFrame) -> list[Row]:
    return [row.asDict() for row in frame.collect()]


def keyed(found: Sequence[Row]) -> dict[tuple[Any, ...], Row]:
    """By the table's key, which no two rows share."""
    key = TABLES["effective_permissions"].key
    table = {tuple(row[name] for name in key): row for row in found}
    assert len(table) == len(found)
    return table


def test_rows_about_patterns_say_what_the_authorizer_says(built: list[Row]) -> None:
    """Each row holds for a name that its pattern covers and no narrower one: asked with the ACLs
    that cover the whole pattern, for everyone from everywhere whom the row stands for."""
    found = keyed(built)
    wanted = {
        (world.name, acl.resource_type, _shown(acl), acl.pattern_type, acl.principal, acl.host)
        for world in WORLDS
        for acl in world.acls
    }
    supers = {
        (world.name, kind, "*", "Prefixed", who, "*")
        for world in WORLDS
        for who in world.super_users or ()
        for kind in SUPPORTED_OPERATIONS
    }
    by_cluster = {
        (world.name, *_EVERY_TOPIC, acl.principal, acl.host)
        for world in WORLDS
        for acl in world.acls
        if acl in _first(world)
    }
    anybody = {
        (world.name, *_EVERY_TOPIC, "User:*", "*")
        for world in WORLDS
        if world.allow_if_no_acl and not any(map(reaches_every_topic, world.acls))
    }
    producers = {
        (world.name, "Cluster", "*", "Prefixed", acl.principal, acl.host)
        for world in WORLDS
        for acl in world.acls
        if acl.resource_type == "Topic" and acl.operation in ("All", "Write")
    }
    idempotent = {
        (world.name, "Cluster", "*", "Prefixed", "User:*", "*")
        for world in WORLDS
        if world.allow_if_no_acl and not any(map(reaches_some_topic, world.acls))
    }
    assert found.keys() == wanted | supers | by_cluster | anybody | producers | idempotent
    assert by_cluster and anybody and producers and idempotent
    asked = 0
    by_name = {world.name: world for world in WORLDS}
    for row in found.values():
        world = by_name[row["cluster"]]
        assert row["via"] == _own(world, row)
        asked += _compare(world, row)
    assert asked > 5_000


_EVERY_TOPIC = ("Topic", "*", "Prefixed")
"""Where rows stand that the rights on the cluster alone make."""


def _first(world: World) -> list[Acl]:
    """The ACLs that are asked before those of topics."""
    asked = ("All", "Create", "Delete")
    return [acl for acl in world.acls if reaches_every_topic(acl) and acl.operation in asked]


def _shown(acl: Acl) -> str:
    return acl.resource_name + "*" * (acl.pattern_type == "Prefixed")


def _own(world: World, row: Row) -> list[str]:
    """The ACLs of a row's pattern, principal and host: DENYs first, All last, else by key."""
    fields = ("resource_type", "pattern_type", "principal", "host")
    own = [
        acl
        for acl in world.acls
        if all(getattr(acl, name) == row[name] for name in fields)
        and _shown(acl) == row["resource"]
    ]
    if (row["resource_type"], row["resource"], row["pattern_type"]) == _EVERY_TOPIC:
        who = (row["principal"], row["host"])
        own += [acl for acl in _first(world) if (acl.principal, acl.host) == who]

    def rank(acl: Acl) -> tuple[bool, bool, str]:
        last = acl.operation == "All" and acl.resource_type == row["resource_type"]
        return acl.permission == "Allow", last, acl.key

    return [acl.key for acl in sorted(own, key=rank)]


def _compare(world: World, row: Row) -> int:
    """How many questions were asked."""
    kind, prefixed = row["resource_type"], row["pattern_type"] == "Prefixed"
    name = row["resource"].removesuffix("*") if prefixed else row["resource"]
    pattern = (name, row["pattern_type"])
    wider = (
        acl
        for acl in world.acls
        if acl.resource_type == kind and covers((acl.resource_name, acl.pattern_type), pattern)
    )
    # All that covers the pattern covers any name; so names no longer matter.
    everything = [
        Acl(a.principal, a.host, a.operation, a.permission, kind, "", "Prefixed") for a in wider
    ]
    full = world.access
    cluster = [acl for acl in world.acls if acl.resource_type == "Cluster" != kind]
    cluster += [acl for acl in world.acls if acl.resource_type == "Topic" and kind == "Cluster"]
    access = Access(index_acls([*everything, *cluster]), full.super_users, full.allow_if_no_acl)
    who = STRANGER if row["principal"] == "User:*" else row["principal"]
    host = ELSEWHERE if row["host"] == "*" else row["host"]
    for operation in SUPPORTED_OPERATIONS[kind]:
        assert told(row, operation) is verdict(access, operation, kind, "name", who, host), row
    return len(SUPPORTED_OPERATIONS[kind])


def test_rows_about_patterns_name_all_acls(built: list[Row]) -> None:
    """Each ACL once, so that `who-can` can ask the authorizer's own rules."""
    found: dict[str, list[Acl]] = {world.name: [] for world in WORLDS}
    for row in built:
        found[row["cluster"]] += parse_acls(row)
    assert {name: sorted(some) for name, some in found.items()} == {
        world.name: sorted(world.acls) for world in WORLDS
    }


def test_rows_about_resources_say_what_the_authorizer_says(expanded: list[Row]) -> None:
    """Every question about a resource that is there, with people and hosts that no ACL names
    among them, whatever is declared of super users and of resources without ACLs."""
    by_resource: dict[tuple[str, str, str], list[Row]] = {}
    for row in keyed(expanded).values():
        resource = row["cluster"], row["resource_type"], row["resource"]
        by_resource.setdefault(resource, []).append(row)
    by_name = {world.name: world for world in WORLDS}
    chance, seen = Random(8), dict.fromkeys(AccessVerdict, 0)
    for (cluster, kind, name), some in by_resource.items():
        access = by_name[cluster].access
        people = (*PRINCIPALS, STRANGER, "User:root")
        questions = list(product(people, (*HOSTS[1:], ELSEWHERE), SUPPORTED_OPERATIONS[kind]))
        for who, host, operation in chance.sample(questions, min(8, len(questions))):
            answer = told(_row(some, who, host), operation)
            expected = verdict(access, operation, kind, name, who, host)
            assert answer is expected, (cluster, kind, name, who, host, operation)
            seen[answer] += 1
    assert min(seen.values()) > 500 and sum(seen.values()) > 8_000, seen


def test_rows_about_the_cluster_know_who_may_write_to_a_topic(expanded: list[Row]) -> None:
    """IdempotentWrite, asked for everybody from everywhere: a producer has it by any topic."""
    cluster = ("Cluster", "kafka-cluster")
    seen = dict.fromkeys(AccessVerdict, 0)
    for world in WORLDS:
        about = (world.name, *cluster)
        some = [
            row
            for row in expanded
            if (row["cluster"], row["resource_type"], row["resource"]) == about
        ]
        for who, host in product((*PRINCIPALS, STRANGER), (*HOSTS[1:], ELSEWHERE)):
            expected = verdict(world.access, "IdempotentWrite", *cluster, who, host)
            answer = told(_row(some, who, host), "IdempotentWrite")
            assert answer is expected, (world, who, host)
            seen[answer] += 1
    assert min(seen.values()) > 200, seen


def _row(some: Sequence[Row], who: str, host: str) -> Row:
    """As the table is read: whoever has no row is everybody, and so with hosts."""
    mine = [row for row in some if row["principal"] == who]
    mine = mine or [row for row in some if row["principal"] == "User:*"]
    (found,) = [r for r in mine if r["host"] == host] or [r for r in mine if r["host"] == "*"]
    return found


def test_all_that_is_there_has_rows(expanded: list[Row]) -> None:
    """Topics, groups and the cluster as they are live; of other types what literal ACLs name."""
    found = {(row["cluster"], row["resource_type"], row["resource"]) for row in expanded}
    expected = set()
    for world in WORLDS:
        expected |= {(world.name, "Topic", name) for name in world.topics}
        expected |= {(world.name, "Group", name) for name in world.groups}
        expected.add((world.name, "Cluster", "kafka-cluster"))
        expected |= {
            (world.name, acl.resource_type, acl.resource_name)
            for acl in world.acls
            if acl.pattern_type == "Literal"
            and acl.resource_name != "*"
            and acl.resource_type not in ("Topic", "Cluster")
        }
    assert found == expected


def test_a_row_about_a_resource_names_what_decides(expanded: list[Row]) -> None:
    """At most three ACLs; a DENY that takes something is among them."""
    for row in expanded:
        assert len(row["via"]) == len(set(row["via"])) <= 3
        assert bool(row["via"]) or not row["allow_mask"] | row["deny_mask"]
        assert not row["deny_mask"] or "|Deny|" in row["via"][0]


def test_a_part_of_the_expansion_is_as_in_the_whole(
    frames: Mapping[str, DataFrame], expanded: list[Row]
) -> None:
    """Asking for one cluster, principal or resource gives just their rows; whoever is asked for
    has a row even where no ACL names him."""
    busy = max(WORLDS, key=lambda world: len(world.acls)).name
    whole = keyed(expanded)
    one = keyed(expansion(frames, PermissionFilter(busy, "User:u")))
    assert (
        one.items()
        >= {
            key: row
            for key, row in whole.items()
            if row["cluster"] == busy and row["principal"] == "User:u"
        }.items()
    )
    resources = {(r["resource_type"], r["resource"]) for r in expanded if r["cluster"] == busy}
    assert {(row["resource_type"], row["resource"]) for row in one.values()} == resources
    assert {row["principal"] for row in one.values()} == {"User:u"}
    some = keyed(expansion(frames, PermissionFilter(resource="topic/abc")))
    assert (
        some.items()
        >= {
            key: row
            for key, row in whole.items()
            if (row["resource_type"], row["resource"]) == ("Topic", "abc")
        }.items()
    )
    cluster = keyed(expansion(frames, PermissionFilter(resource="cluster")))
    assert cluster == {key: row for key, row in whole.items() if row["resource_type"] == "Cluster"}
    # It is told of clusters that have no such topic too.
    assert {row["cluster"] for row in some.values()} == {world.name for world in WORLDS}
    begun = keyed(expansion(frames, PermissionFilter(resource="topic/a*")))
    assert begun == {
        key: row
        for key, row in whole.items()
        if row["resource_type"] == "Topic" and row["resource"].startswith("a")
    }


def test_a_large_cluster_is_cut_by_principals(
    frames: Mapping[str, DataFrame], expanded: list[Row]
) -> None:
    """With a limit that nearly all clusters are over, the rows are the same, each once, and the
    ACLs of principals that are elsewhere close a resource as before."""
    some = [world.name for world in WORLDS[:40]]
    of_some = {name: frame.where(F.col("cluster").isin(some)) for name, frame in frames.items()}
    expected = keyed([row for row in expanded if row["cluster"] in some])
    assert keyed(expansion(of_some, most=2)) == expected


def test_operations_in_words_are_the_bits(expanded: list[Row]) -> None:
    """Spark words them as Python does."""
    for row in expanded:
        assert in_words(row) == {name: row[name] for name in FILE_COLUMNS}


def test_the_command_expands_what_a_build_has(
    spark: SparkSession,
    expanded: list[Row],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To the screen, as CSV and as Parquet the same rows; too many for a screen need a file."""
    two = sorted(WORLDS, key=lambda world: len(world.acls))[-2:]
    live = [row for world in two for row in world.live()]
    publish(tmp_path, "b-1", {"live": live, "cluster": [world.cluster() for world in two]})
    monkeypatch.setattr(answers, "_start_session", lambda *_: nullcontext(spark))

    def told(form: str, out: Path | None = None) -> str:
        only = PermissionFilter(two[0].name, resource="topic/a*")
        return export_by_resource(
            PermissionsRequest(str(tmp_path), only, form, out), SparkOptions(), ignore_event
        )

    wanted = (two[0].name, "Topic")
    expected = sorted(
        tuple(row[name] for name in TABLES["effective_permissions"].key)
        for row in expanded
        if (row["cluster"], row["resource_type"]) == wanted and row["resource"].startswith("a")
    )
    found = json.loads(told("json"))["rows"]
    assert [tuple(row[name] for name in KEY) for row in found] == expected != []
    told("csv", tmp_path / "a.csv")
    (header, *lines) = (tmp_path / "a.csv").read_text().splitlines()
    assert header == ",".join(COLUMNS) and len(lines) == len(expected)
    told("parquet", tmp_path / "p")
    made = [row.asDict() for row in spark.read.parquet(str(tmp_path / "p")).collect()]
    assert {name: tuple(kept[name] for name in COLUMNS) for name, kept in keyed(made).items()} == {
        name: tuple(row[name] for name in COLUMNS) for name, row in keyed(found).items()
    }
    monkeypatch.setattr(answers, "SCREEN_ROWS", len(expected) - 1)
    with pytest.raises(UsageError, match="more than") as error:
        told("table")
    assert "--out" in error.value.advice


def test_super_users_can_do_everything(built: list[Row], expanded: list[Row]) -> None:
    """In every row about one, even against a DENY."""
    by_name = {world.name: world for world in WORLDS}
    for row in (*built, *expanded):
        world = by_name[row["cluster"]]
        if row["principal"] in (world.super_users or ()):
            assert row["effective_mask"] == make_supported_mask(row["resource_type"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("topic/orders", ("Topic", "orders")),
        ("Topic/a/b", ("Topic", "a/b")),
        ("cluster", ("Cluster", "kafka-cluster")),
        ("transactional_id/*", ("TransactionalID", "*")),
        ("user/User:u", ("User", "User:u")),
    ],
)
def test_a_resource_is_written_as_type_and_name(text: str, expected: tuple[str, str]) -> None:
    assert parse_resource(text) == expected


def test_what_names_no_resource_or_operation_is_refused() -> None:
    """The message lists what there is."""
    for text in ("orders", "topic/", "queue/x", ""):
        with pytest.raises(UsageError) as error:
            parse_resource(text)
        assert "topic" in error.value.advice
    assert [parse_operation(text, "Topic") for text in ("READ", "describe_configs", "Alter")] == [
        "Read",
        "DescribeConfigs",
        "Alter",
    ]
    with pytest.raises(UsageError, match="never asks") as error:
        parse_operation("Write", "Group")
    assert "Read, Delete" in error.value.advice
    assert parse_principal("User:a:b") == "User:a:b"
    for text in ("ci", ":ci", "User:", ""):
        with pytest.raises(UsageError, match="is not a principal") as error:
            parse_principal(text)
    with pytest.raises(UsageError) as error:
        parse_principal("ci")
    assert error.value.advice == "Write TYPE:NAME, such as User:ci."
