"""`who-can` from rows as a build leaves them, without Spark, against the provider's `decide`."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterable, Iterator
from itertools import product
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.errors import UsageError
from kafkaform.fleet.access.permission_rows import SUPPORTED_OPERATIONS
from kafkaform.fleet.answers.who_can import (
    WhoCanQuery,
    list_needed_rows,
    parse_acls,
    parse_query,
    who_can,
)
from kafkaform_kafka.authority.authorizer import AccessQuestion, AccessVerdict, decide
from kafkaform_kafka.protocol.acl import Acl, parse_acl_key

from ...kit.fleet import access_worlds
from ...kit.fleet.access_worlds import (
    AT,
    ELSEWHERE,
    HOSTS,
    NAMES,
    PRINCIPALS,
    STRANGER,
    World,
    shown,
    worlds,
    writing_worlds,
)

ORDERS = World("prod", (), (), False, ("orders",), ())


def permissions(world: World) -> list[dict[str, Any]]:
    """What who-can reads of effective_permissions; test_permissions holds the real rows to it."""
    found: dict[tuple[str, ...], list[str]] = {}
    for acl in world.acls:
        pattern = shown(acl.resource_name, acl.pattern_type)
        key = acl.resource_type, pattern, acl.pattern_type, acl.principal, acl.host
        found.setdefault(key, []).append(acl.key)
    for who in world.super_users or ():
        for kind in SUPPORTED_OPERATIONS:
            found.setdefault((kind, "*", "Prefixed", who, "*"), [])
    columns = ("resource_type", "resource", "pattern_type", "principal", "host")
    more = {"cluster": world.name, "pattern_level": True}
    return [{**dict(zip(columns, key, strict=True)), **more, "via": v} for key, v in found.items()]


def pushed_down(rows: Iterable[dict[str, Any]], asked: WhoCanQuery) -> Iterator[dict[str, Any]]:
    for row in rows:
        tests = {"=": lambda a, b: a == b, "in": lambda a, b: a in b}
        if all(tests[operator](row[c], value) for c, operator, value in list_needed_rows(asked)):
            yield row


def test_acls_come_back_from_the_rows_that_name_them() -> None:
    """Every field of every ACL, whatever is in the names."""
    odd = Acl("User:a|b\\c", "*", "All", "Deny", "Group", "x*|", "Prefixed")
    for world in (*worlds(seed=20, count=40), replace(ORDERS, acls=(odd,))):
        back = [acl for row in permissions(world) for acl in parse_acls(row)]
        assert sorted(back) == sorted(world.acls)


def test_every_answer_is_the_authorizers() -> None:
    """2,000 questions about one principal, with and without a host, from the rows that are needed
    for each alone; verdict, rule and what would have to be known."""
    chance, some = Random(21), worlds(seed=22, count=100)
    rows = {world.name: permissions(world) for world in some}
    verdicts = dict.fromkeys(("allowed", "denied", "unknown"), 0)
    for _ in range(2_000):
        world, kind = chance.choice(some), chance.choice(list(SUPPORTED_OPERATIONS))
        who = chance.choice((*PRINCIPALS, STRANGER, "User:root"))
        host = chance.choice((*HOSTS[1:], ELSEWHERE, None))
        name = chance.choice((*NAMES, "kafka-cluster", "y"))
        asked = WhoCanQuery(chance.choice(SUPPORTED_OPERATIONS[kind]), kind, name, who, host)
        needed = list(pushed_down(rows[world.name], asked))
        (answer,) = who_can(needed, [world.cluster()], asked)
        expected = decide(world.access, AccessQuestion(who, host, asked.operation, kind, name))
        told = answer.verdict, answer.rule, answer.needs
        assert told == (str(expected.verdict), str(expected.rule), expected.needs)
        if expected.acl and answer.verdict != "unknown":
            assert answer.via[0] == expected.acl.key
        verdicts[answer.verdict] += 1
    assert min(verdicts.values()) > 100, verdicts


def test_an_idempotent_producer_has_it_by_any_topic() -> None:
    """The rows of all topics are asked for, and the ACL that lets it in is named first."""
    verdicts = dict.fromkeys(("allowed", "denied", "unknown"), 0)
    for world in writing_worlds(seed=24, count=60):
        for who, host in product((*PRINCIPALS[:2], STRANGER), (*HOSTS[1:], None)):
            asked = parse_query("IDEMPOTENT_WRITE", "cluster", who, host)
            needed = list(pushed_down(permissions(world), asked))
            (answer,) = who_can(needed, [world.cluster()], asked)
            question = AccessQuestion(who, host, "IdempotentWrite", "Cluster", "kafka-cluster")
            expected = decide(world.access, question)
            told = answer.verdict, answer.rule, answer.needs
            assert told == (str(expected.verdict), str(expected.rule), expected.needs)
            if expected.acl and answer.verdict != "unknown":
                assert answer.via[0] == expected.acl.key
            verdicts[answer.verdict] += 1
        listed = who_can(
            permissions(world), [world.cluster()], parse_query("idempotentwrite", "cluster")
        )
        by_name = {answer.principal for answer in listed}
        for who in PRINCIPALS[:2]:
            question = AccessQuestion(who, None, "IdempotentWrite", "Cluster", "kafka-cluster")
            named = who in {acl.principal for acl in world.acls}
            if named and decide(world.access, question).verdict is not AccessVerdict.DENIED:
                assert who in by_name
    assert min(verdicts.values()) > 30, verdicts


def test_everybody_makes_tokens_of_his_own() -> None:
    """No ACL can deny it, and nobody needs one, seen or not."""
    asked = parse_query("create_tokens", "user/User:a")
    deny = parse_acl_key("User:a|*|All|Deny|User|User:a|Literal")
    for acls, cluster in (((deny,), {}), ((), {"status": "failed"})):
        world = replace(ORDERS, acls=acls)
        answers = who_can(permissions(world), [world.cluster(**cluster)], asked)
        told = {(one.principal, one.verdict, one.rule, one.via) for one in answers}
        assert ("User:a", "allowed", "own tokens", ()) in told


def test_everybody_who_can_or_might_is_listed() -> None:
    """Just those whom the authorizer does not refuse, and somebody else as `User:*`."""
    listed = 0
    for world in worlds(seed=23, count=60):
        asked = WhoCanQuery("Read", "Topic", "ab")
        answers = who_can(permissions(world), [world.cluster()], asked)
        people = {*(acl.principal for acl in world.acls), *(world.super_users or ()), "User:*"}
        expected = {
            who: str(found)
            for who in people
            if (found := _verdict(world, STRANGER if who == "User:*" else who)) != "denied"
        }
        told = {answer.principal: answer.verdict for answer in answers}
        # Whom only ACLs of other resources name is somebody else here.
        assert told.items() <= expected.items()
        rest = {who: v for who, v in expected.items() if who not in told}
        assert all(v == told.get("User:*") for v in rest.values()), (world, rest)
        listed += len(told)
    assert listed > 60


def test_an_answer_for_everybody_names_who_is_denied() -> None:
    """`User:*` may, but a DENY refuses somebody: without that name the answer would be wrong. Whom
    a DENY refuses on some hosts only is a row of its own."""
    keys = (
        "User:*|*|Read|Allow|Topic|*|Literal",
        "User:eve|*|Read|Deny|Topic|orders|Literal",
        "User:bob|*|All|Deny|Topic|ord|Prefixed",
        "User:a|1.1.1.1|Read|Deny|Topic|orders|Literal",
        "User:root|*|Read|Deny|Topic|orders|Literal",
        "User:b|*|Write|Deny|Topic|orders|Literal",
    )
    world = replace(ORDERS, acls=tuple(map(parse_acl_key, keys)), super_users=("User:root",))
    told = {answer.principal: (answer.verdict, answer.exceptions) for answer in ask(world)}
    assert told == {
        "User:*": ("allowed", ("User:bob", "User:eve")),
        "User:a": ("unknown", ()),
        "User:b": ("allowed", ()),
        "User:root": ("allowed", ()),
    }
    (answer,) = ask(world, principal="User:eve")
    assert (answer.verdict, answer.exceptions) == ("denied", ())


def test_whoever_is_missing_from_a_list_is_an_exception() -> None:
    """In many worlds that let everybody in: each principal that an ACL names is in a row, excepted,
    or decided on as anybody else, as the authorizer decides."""
    everything = parse_acl_key("User:*|*|Read|Allow|Topic|ab|Literal")
    chance, excepted = Random(30), 0
    for some in worlds(seed=29, count=300):
        extra = [
            replace(topic_acl, permission="Deny", operation="Read", resource_name="ab", host="*")
            for topic_acl in (
                access_worlds.acl(chance, "Topic") for _ in range(chance.randrange(3))
            )
            if topic_acl.principal != "User:*"
        ]
        world = replace(some, acls=tuple(dict.fromkeys((*some.acls, *extra, everything))))
        answers = who_can(permissions(world), [world.cluster()], WhoCanQuery("Read", "Topic", "ab"))
        exceptions = {name for answer in answers for name in answer.exceptions}
        assert all(_verdict(world, name) == "denied" for name in exceptions)
        rest = {acl.principal for acl in world.acls} - exceptions
        rest -= {answer.principal for answer in answers}
        if "User:*" in {answer.principal for answer in answers}:
            assert all(_verdict(world, who) == _verdict(world, STRANGER) for who in rest)
            excepted += len(exceptions)
    assert excepted > 50


def _verdict(world: World, who: str) -> str:
    return str(decide(world.access, AccessQuestion(who, None, "Read", "Topic", "ab")).verdict)


def test_all_acls_that_give_it_are_named_and_no_others() -> None:
    """What somebody would have to delete: the most special first, other operations left out."""
    keys = (
        "User:a|*|Read|Allow|Topic|orders|Literal",
        "User:a|*|All|Allow|Topic|ord|Prefixed",
        "User:*|*|Read|Allow|Topic|*|Literal",
    )
    others = (
        "User:a|*|Write|Allow|Topic|orders|Literal",
        "User:a|1.1.1.1|Read|Allow|Topic|orders|Literal",
        "User:b|*|Read|Allow|Topic|orders|Literal",
    )
    world = replace(ORDERS, acls=tuple(map(parse_acl_key, (*others, *keys))))
    (answer,) = ask(world, principal="User:a")
    assert (answer.verdict, answer.rule, answer.via) == ("allowed", "acl", keys)
    denied = "User:*|*|All|Deny|Topic|o|Prefixed"
    (answer,) = ask(replace(world, acls=(*world.acls, parse_acl_key(denied))), principal="User:a")
    assert (answer.verdict, answer.via) == ("denied", (denied,))


def ask(world: World, principal: str | None = None, **cluster: Any) -> list[Any]:
    asked = parse_query("READ", "topic/orders", principal)
    return who_can(permissions(world), [world.cluster(**cluster)], asked)


@pytest.mark.parametrize(
    "cluster",
    [
        {"status": "failed"},
        {"status": "stale"},
        {"status": "never", "coverage": {}, "captured_at": None},
        {"coverage": {"kafka_acl": "visible_only"}},
        {"coverage": [("kafka_acl", "failed")]},
    ],
)
def test_a_cluster_whose_acls_were_not_all_seen_is_unknown(cluster: dict[str, Any]) -> None:
    """A DENY may be there that nobody saw; only a super user needs none."""
    world = replace(
        ORDERS,
        acls=(parse_acl_key("User:a|*|Read|Allow|Topic|orders|Literal"),),
        super_users=("User:root",),
    )
    told = {(a.principal, a.verdict, a.needs) for a in ask(world, **cluster)}
    assert told == {
        ("User:a", "unknown", ("acls",)),
        ("User:root", "allowed", ()),
        ("User:*", "unknown", ("acls",)),
    }


def test_clusters_answer_one_by_one_with_their_time() -> None:
    """In the order of their names; one without rows answers too."""
    open_ = replace(ORDERS, name="test", allow_if_no_acl=True)
    undeclared = replace(ORDERS, name="dev", allow_if_no_acl=None)
    clusters = [world.cluster() for world in (open_, ORDERS, undeclared)]
    answers = who_can([], clusters, parse_query("read", "topic/orders"))
    assert [(a.cluster, a.principal, a.verdict, a.needs, a.as_of) for a in answers] == [
        ("dev", "User:*", "unknown", ("allow_if_no_acl",), AT),
        ("test", "User:*", "allowed", (), AT),
    ]


def test_a_question_that_makes_no_sense_is_refused() -> None:
    """Before anything is read."""
    assert parse_query("describe", "cluster") == WhoCanQuery("Describe", "Cluster", "kafka-cluster")
    with pytest.raises(UsageError, match="never asks"):
        parse_query("write", "group/g")
    with pytest.raises(UsageError, match="is not a resource"):
        parse_query("read", "orders")
    with pytest.raises(UsageError, match="not a single topic") as error:
        parse_query("read", "topic/orders.*")
    assert "fleet permissions --resource 'topic/orders.*'" in error.value.advice
    with pytest.raises(UsageError, match="not a principal"):
        parse_query("read", "topic/orders", "ci")


def test_it_needs_no_spark() -> None:
    """Nothing that a JVM or a data frame hangs on is imported."""
    heavy = "{'pyspark', 'pyarrow', 'numpy'} & {*sys.modules}"
    code = f"import sys, kafkaform.fleet.answers.who_can; print({heavy})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
