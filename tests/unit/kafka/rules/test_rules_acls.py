"""What a new ACL says: each rule finds its fault, and nothing else does."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Block, Finding, Level
from kafkaform.core.resource import Facts, Identity
from kafkaform.core.rule import Needs
from kafkaform_kafka.protocol import acl as acls
from kafkaform_kafka.protocol.acl import Acl
from kafkaform_kafka.rules.names import ACL_JUDGES

from ....kit.kafka.changes import facts

NOTHING = Facts("")
READ = Acl("User:ci", "*", "Read", "Allow", "Topic", "orders", "Literal")


def change(acl: Acl, action: Action = Action.CREATE) -> Change:
    """A create or a delete of this ACL."""
    created = action is Action.CREATE
    return Change(
        Identity("kafka", acls.KIND, acl.key),
        "kafka_acl.x",
        action,
        before=None if created else acl.attributes,
        after=acl.attributes if created else None,
    )


def check(facts: Facts = NOTHING, **fields: str) -> list[Finding]:
    """What all judges find about an ACL with these fields; `validate` has no facts."""
    created = change(replace(READ, **fields))
    return [finding for judge in ACL_JUDGES for finding in judge.find(created, facts)]


def faults(**fields: str) -> list[str]:
    """The rules that block it."""
    return [finding.rule for finding in check(**fields) if finding.level is Level.BLOCK]


@pytest.mark.parametrize("kind", acls.RESOURCE_TYPES)
def test_every_operation_of_a_resource_is_accepted(kind: str) -> None:
    """And All, and no operation that Kafka never asks of it."""
    name = {"Cluster": acls.CLUSTER, "User": "User:x"}.get(kind, "x")
    good = {
        operation
        for operation in acls.OPERATIONS
        if not faults(resource_type=kind, resource_name=name, operation=operation)
    }
    assert good == {"All", *acls.SUPPORTED[kind]}


@pytest.mark.parametrize(
    ("rule", "fields", "why", "fix"),
    [
        ("acl-resource-name-missing", {"resource_name": ""}, "resource_name is empty", "*"),
        (
            "acl-cluster-resource",
            {"resource_type": "Cluster", "operation": "Alter"},
            "kafka-cluster",
            "kafka-cluster",
        ),
        (
            "acl-cluster-resource",
            {
                "resource_type": "Cluster",
                "resource_name": "kafka-cluster",
                "operation": "Alter",
                "pattern_type": "Prefixed",
            },
            "cannot be Prefixed",
            "Literal",
        ),
        (
            "acl-operation-unchecked",
            {"operation": "ClusterAction"},
            "is not a topic operation",
            "DescribeConfigs",
        ),
        ("acl-principal-incomplete", {"principal": "ci"}, "not a principal", "write User:ci"),
        ("acl-principal-incomplete", {"principal": ":ci"}, "not a principal", "write User:ci"),
        (
            "acl-principal-incomplete",
            {"principal": "User:"},
            "not a principal",
            "write User:NAME, or User:*",
        ),
        ("acl-host-unmatched", {"host": "build.example"}, "not an IP address", "one address"),
        ("acl-host-unmatched", {"host": "10.0.0.0/8"}, "not an IP address", "one address"),
        ("acl-host-unmatched", {"host": ""}, "not an IP address", "one address"),
        (
            "acl-host-unmatched",
            {"host": "::1"},
            "spells the address ::1 as 0:0:0:0:0:0:0:1",
            "0:0:0:0:0:0:0:1",
        ),
        ("acl-host-unmatched", {"host": "::ffff:10.1.2.3"}, "as 10.1.2.3", "10.1.2.3"),
        (
            "acl-host-unmatched",
            {"host": "0.0.0.0"},
            "no client connects from 0.0.0.0",
            "* for all hosts",
        ),
        ("acl-host-unmatched", {"host": "::"}, "no client connects from ::", "* for all hosts"),
        (
            "acl-topic-unmatched",
            {"resource_name": "shop.*"},
            "no topic matches 'shop.*'",
            "'shop.' with the pat",
        ),
        (
            "acl-topic-unmatched",
            {"resource_name": "shop.*", "pattern_type": "Prefixed"},
            "no topic matches",
            "'shop.' wi",
        ),
        (
            "acl-topic-unmatched",
            {"resource_name": "*", "pattern_type": "Prefixed"},
            "no topic matches",
            "'*' with",
        ),
        (
            "acl-topic-unmatched",
            {"resource_name": "shop orders"},
            "no topic matches",
            "letters, digits",
        ),
        (
            "acl-topic-unmatched",
            {"resource_name": "a/", "pattern_type": "Prefixed"},
            "no topic matches",
            "letters, digits",
        ),
        ("acl-topic-unmatched", {"resource_name": ".."}, "no topic matches", "a letter or a digit"),
        ("acl-topic-unmatched", {"resource_name": "a" * 250}, "no topic matches", "shorter"),
        (
            "acl-user-unmatched",
            {"resource_type": "User", "operation": "CreateTokens", "resource_name": "x"},
            "no user matches",
            "write User:x",
        ),
    ],
)
def test_what_could_never_match_is_refused(
    rule: str, fields: dict[str, str], why: str, fix: str
) -> None:
    """With the reason and the way out."""
    findings = [finding for finding in check(**fields) if finding.level is Level.BLOCK]
    assert {finding.rule for finding in findings} == {rule}
    assert any(why in one.text and fix.lower() in one.fix.lower() for one in findings), findings
    assert all(one.block is Block.IMPOSSIBLE and one.path for one in findings)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"principal": "User:*"},
        {"principal": "User:CN=ci,O=Example: Berlin"},
        {"principal": "Group:ops"},
        {"resource_name": "*"},
        {"host": "10.1.2.3"},
        {"host": "2001:db8:0:0:0:0:0:1"},
        {"pattern_type": "Prefixed"},
        {"pattern_type": "Prefixed", "resource_name": ".."},
        {"resource_type": "Group", "resource_name": "shop orders/1"},
        {"permission": "Deny"},
        {"resource_type": "User", "operation": "CreateTokens", "resource_name": "User:x"},
        {"resource_type": "TransactionalID", "operation": "TwoPhaseCommit"},
    ],
)
def test_what_kafka_understands_passes(fields: dict[str, str]) -> None:
    """Without a fault and without a warning."""
    assert check(**fields) == []


@pytest.mark.parametrize(
    ("rule", "fields"),
    [
        ("acl-principal-type", {"principal": "user:ci"}),
        ("acl-principal-star", {"principal": "User:ci*"}),
        (
            "acl-name-star",
            {"resource_type": "Group", "pattern_type": "Prefixed", "resource_name": "*"},
        ),
        ("acl-name-star", {"resource_type": "Group", "resource_name": "shop.*"}),
        (
            "acl-name-star",
            {"resource_type": "TransactionalID", "operation": "Write", "resource_name": "shop.*"},
        ),
    ],
)
def test_what_is_rarely_meant_is_a_caution(rule: str, fields: dict[str, str]) -> None:
    """It can be made all the same."""
    (finding,) = check(**fields)
    assert (finding.rule, finding.level) == (rule, Level.CAUTION)


@pytest.mark.parametrize(
    "fields",
    [
        {"resource_type": "User", "operation": "CreateTokens", "resource_name": "User:x"},
        {
            "resource_type": "TransactionalID",
            "operation": "TwoPhaseCommit",
            "resource_name": "x",
        },
    ],
)
def test_an_acl_that_the_brokers_do_not_know_is_refused(fields: dict[str, str]) -> None:
    """Only where their version is known."""
    (finding,) = check(facts(kafka_version="3.0"), **fields)
    assert (finding.rule, finding.block) == ("acl-too-new", Block.IMPOSSIBLE)
    assert check(facts(kafka_version="4.3"), **fields) == check(**fields) == []


def test_an_acl_that_is_there_may_go_whatever_it_says() -> None:
    """Only new ACLs are judged."""
    odd = change(replace(READ, principal="ci", host="::1"), Action.DELETE)
    assert not [finding for judge in ACL_JUDGES for finding in judge.find(odd, facts())]


def test_validate_finds_all_but_versions() -> None:
    """They need nothing but the block."""
    needs = {rule.id: judge.needs for judge in ACL_JUDGES for rule in judge.rules}
    assert [id for id, need in needs.items() if need is not Needs.BLOCK] == ["acl-too-new"]
