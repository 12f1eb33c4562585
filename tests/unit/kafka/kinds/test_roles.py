"""`kafka_access`: what each role stands for, and what does not fit it."""

from __future__ import annotations

import pytest

from kafkaform.core.resource import Declared
from kafkaform_kafka.kinds.acl import roles
from kafkaform_kafka.protocol import acl as acls
from kafkaform_kafka.protocol.acl import SUPPORTED, parse_acl
from kafkaform_kafka.provider import TYPES

from ....kit.kafka.terraform import BLOCK, desired, faults


def role(name: str, body: str, more: str = "") -> str:
    return (
        f'{BLOCK}resource "kafka_access" "app" {{\n  principal = "User:app"\n'
        f'  role = "{name}"\n  {body}\n}}\n{more}'
    )


def parts(name: str, body: str) -> list[Declared]:
    found = desired(role(name, body))
    assert not found.diagnostics, found.diagnostics
    return list(found.declared)


def granted(name: str, body: str) -> set[str]:
    """Every ACL as `Operation Type name` with a trailing … for a prefix."""
    rules = [parse_acl(item.attributes) for item in parts(name, body)]
    assert {(a.principal, a.host, a.permission) for a in rules} == {("User:app", "*", "Allow")}
    dots = {"Literal": "", "Prefixed": "…"}
    return {
        f"{a.operation} {a.resource_type} {a.resource_name}{dots[a.pattern_type]}" for a in rules
    }


@pytest.mark.parametrize(
    ("name", "body", "expected"),
    [
        (
            "producer",
            'topics = ["a"]\n topic_prefixes = ["b."]',
            {"Write Topic a", "Describe Topic a", "Write Topic b.…", "Describe Topic b.…"},
        ),
        (
            "transactional_producer",
            'topics = ["a"]\n transactional_ids = ["t"]',
            {
                "Write Topic a",
                "Describe Topic a",
                "Write TransactionalID t",
                "Describe TransactionalID t",
            },
        ),
        (
            "consumer",
            'topics = ["a"]\n group = "g"',
            {"Read Topic a", "Describe Topic a", "Read Group g"},
        ),
        (
            "consumer",
            'topics = ["*"]\n group_prefixes = ["g-"]',
            {"Read Topic *", "Describe Topic *", "Read Group g-…"},
        ),
        ("consumer", 'topics = ["a"]', {"Read Topic a", "Describe Topic a"}),
        (
            "streams",
            'topics = ["a"]\n group = "app"\n transactional_id_prefixes = ["app-"]',
            {
                "Read Topic a",
                "Describe Topic a",
                "Read Group app",
                *(f"{op} Topic app-…" for op in ("Read", "Write", "Create", "Delete", "Describe")),
                "Write TransactionalID app-…",
                "Describe TransactionalID app-…",
            },
        ),
        (
            "connect",
            'topics = ["c"]\n group = "w"',
            {*(f"{op} Topic c" for op in ("Read", "Write", "Create", "Describe")), "Read Group w"},
        ),
        (
            "admin",
            'topics = ["*"]',
            {
                *(
                    f"{op} Cluster kafka-cluster"
                    for op in ("Alter", "AlterConfigs", "Describe", "DescribeConfigs")
                ),
                *(
                    f"{op} Topic *"
                    for op in (
                        "Create",
                        "Delete",
                        "Alter",
                        "AlterConfigs",
                        "Describe",
                        "DescribeConfigs",
                    )
                ),
            },
        ),
        (
            "custom",
            'operations = ["DescribeConfigs"]\n topics = ["a"]\n group = "g"\n cluster = true',
            {
                "DescribeConfigs Topic a",
                "DescribeConfigs Group g",
                "DescribeConfigs Cluster kafka-cluster",
            },
        ),
        (
            "custom",
            'operations = ["Create", "Delete"]\n cluster = true',
            {"Create Cluster kafka-cluster", "Delete Cluster kafka-cluster"},
        ),
        ("custom", 'operations = ["All"]\n topic_prefixes = ["a."]', {"All Topic a.…"}),
    ],
)
def test_a_role_is_these_rules_and_no_others(name: str, body: str, expected: set[str]) -> None:
    """Every role, with everything that it takes."""
    assert granted(name, body) == expected


@pytest.mark.parametrize(
    ("name", "body", "why"),
    [
        ("producer", "", "needs topics or topic_prefixes"),
        ("producer", 'topics = ["a"]\n group = "g"', "does not use group"),
        ("transactional_producer", 'topics = ["a"]', "needs transactional_ids or"),
        ("consumer", 'group = "g"', "needs topics or topic_prefixes"),
        (
            "consumer",
            'topics = ["a"]\n transactional_ids = ["t"]',
            "does not use transactional_ids",
        ),
        ("streams", 'topics = ["a"]', "needs group or groups"),
        ("streams", 'group_prefixes = ["a"]', "whole application id"),
        ("connect", 'topics = ["a"]', "needs group or groups"),
        ("producer", 'topics = ["a"]\n operations = ["Read"]', 'only for role = "custom"'),
        ("consumer", 'topics = ["a"]\n cluster = true', 'only for role = "custom"'),
        ("custom", 'topics = ["a"]', "needs operations"),
        (
            "custom",
            'operations = ["Raed"]\n topics = ["a"]',
            "'Raed' is not a topic operation; use All, Read",
        ),
        ("custom", 'operations = ["Read"]', "needs one of topics"),
        ("custom", 'operations = ["Write"]\n group = "g"', "'Write' is not a group operation"),
    ],
)
def test_what_does_not_fit_the_role_is_named(name: str, body: str, why: str) -> None:
    """With the block's line, before anything is asked of a cluster."""
    (found,) = desired(role(name, body)).diagnostics
    assert found.summary == "kafka_access.app cannot be expanded"
    assert why in found.detail
    assert found.range and found.range.line == 4


def test_a_role_that_there_is_not_is_a_fault_of_the_schema() -> None:
    """With what there is."""
    (fault,) = faults(role("reader", 'topics = ["a"]'))
    assert '"role" must be one of producer' in fault


def test_parts_carry_what_the_block_says_of_itself() -> None:
    """Lifecycle, owner, labels, dependencies and place are those of the block."""
    text = role(
        "consumer",
        """topics = ["a"]
  owner = "team-a"
  labels = { tier = "1" }
  depends_on = [kafka_topic.a]
  lifecycle {
    prevent_destroy = true
    adopt           = true
  }""",
        'resource "kafka_topic" "a" {\n  name = "a"\n}\n',
    )
    found = [item for item in desired(text).declared if item.address.type == roles.KIND]
    assert [str(item.address) for item in found] == [
        'kafka_access.app/acl["Describe|Topic|a|Literal"]',
        'kafka_access.app/acl["Read|Topic|a|Literal"]',
    ]
    for item in found:
        assert item.identity.kind == acls.KIND
        assert (item.owner, item.labels) == ("team-a", {"tier": "1"})
        assert item.lifecycle.prevent_destroy and item.lifecycle.adopt
        assert [str(a) for a in item.depends_on] == ["kafka_topic.a"]
        assert item.range.line == 4


def test_a_topic_that_a_role_names_by_reference_comes_first() -> None:
    """No depends_on is needed where the name is an expression."""
    text = role("producer", "topics = [kafka_topic.a.name]")
    text += 'resource "kafka_topic" "a" {\n  name = "a"\n}\n'
    found = [item for item in desired(text).declared if item.address.type == roles.KIND]
    assert {str(a) for item in found for a in item.depends_on} == {"kafka_topic.a"}


def test_two_roles_may_share_a_rule_and_two_blocks_may_not() -> None:
    """A role and a block may, too: the rule then has both owners."""
    block = """resource "kafka_acl" "{name}" {{
  acl_principal       = "User:app"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "a"
}}
"""
    one, two = block.format(name="one"), block.format(name="two")
    again = role("consumer", 'topics = ["a"]')[len(BLOCK) :].replace('"app"', '"again"', 1)
    assert not desired(role("consumer", 'topics = ["a"]', one + again)).diagnostics
    (fault,) = desired(BLOCK + one + two).diagnostics
    assert "kafka_acl.two and kafka_acl.one are the same object" in fault.summary
    assert "main.tf:4" in fault.detail and "main.tf:12" in fault.detail


def test_roles_ask_only_for_what_resources_know() -> None:
    """The tables agree with Kafka's own of operations."""
    for needed in roles.ROLES.values():
        for kind, operations in needed.items():
            assert {*operations} <= {*SUPPORTED[kind]}
    assert {*roles.INTERNAL} <= {*SUPPORTED["Topic"]}
    assert roles.ROLES.keys() == {*(TYPES["kafka_access"].schema.attributes["role"].choices)}
