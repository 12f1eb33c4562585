"""The rules that `policy_set "kafka"` switches on: each finds a breach and lets the right pass."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.value import FrozenMap, freeze
from kafkaform.language.policy.blocks import select_policy_blocks
from kafkaform.language.policy.compilation import FIELDS, compile_policies, find_findings
from kafkaform.language.values.conversion import lift_value
from kafkaform.language.values.faults import Budget
from kafkaform.language.values.value import ObjectVal
from kafkaform.syntax.parse import parse
from kafkaform_kafka.provider import PROVIDER

from ..language.policies import TODAY

DOCUMENT = Path(__file__).parents[3] / "docs/policies.md"
SET, _ = select_policy_blocks([parse('policy_set "kafka" {}\n', "main.kf.hcl")[0]])
RULES, FAULTS = compile_policies(SET, {"kafka": PROVIDER.read_rules}, ["cluster"])

DEFAULTS = {"min.insync.replicas": "1", "unclean.leader.election.enable": "false"}
TOPIC = {"name": "a", "partitions": 3, "replication_factor": 3, "config": None}
ACL = {
    "resource_type": "Topic",
    "resource_name": "a",
    "resource_pattern_type_filter": "Literal",
    "acl_principal": "User:ci",
    "acl_host": "*",
    "acl_operation": "Read",
    "acl_permission_type": "Allow",
}
LOSS = {"harm": "data-loss", "text": "retention.ms: records are deleted", "path": ""}


def create(key: str = "a", **attributes: Any) -> dict[str, Any]:
    """A new topic."""
    return {"action": "create", "key": key, "owner": "ann", "after": {**TOPIC, **attributes}}


def update(path: str, **attributes: Any) -> dict[str, Any]:
    """A topic of which this path is written."""
    return {**create(**attributes), "action": "update", "paths": [{"path": path}]}


def allow(**fields: str) -> dict[str, Any]:
    """A new ACL."""
    return {"type": "kafka_acl", "action": "create", "after": {**ACL, **fields}}


def unclean(value: str) -> dict[str, Any]:
    return {"config": {"unclean.leader.election.enable": value}}


def in_sync(value: str) -> dict[str, Any]:
    return {"config": {"min.insync.replicas": value}}


DELETED: dict[str, Any] = {"action": "delete", "before": TOPIC, "harms": ["data-loss"]}
CONFIG = {"type": "kafka_topic_config", "action": "create"}

BREACHES: Mapping[str, list[tuple[dict[str, Any], str]]] = {
    "min_replication_factor": [
        (create(replication_factor=2), "would be 2, and must be at least 3"),
        (create(replication_factor=None), "would be unknown"),
        (update("replication_factor", replication_factor=1), "would be 1"),
    ],
    "min_in_sync_replicas": [
        (create(), "min.insync.replicas of a would be 1; it must be at least 2"),
        (create(**in_sync("3")), "less than the number of replicas (3)"),
        (update("config.min.insync.replicas", **in_sync("1")), "would be 1"),
        (update("replication_factor", replication_factor=2, **in_sync("2")), "(2)"),
        (
            {**CONFIG, "after": in_sync("1"), "paths": [{"path": "config.min.insync.replicas"}]},
            "would be 1",
        ),
    ],
    "no_unclean_leader_election": [
        (create(**unclean("true")), "unclean"),
        (update("config.unclean.leader.election.enable", **unclean("true")), "unclean"),
        ({**CONFIG, "type": "kafka_broker_config", "after": unclean("true")}, "unclean"),
        (
            {**create(), "facts": {"topic_defaults": {"unclean.leader.election.enable": "true"}}},
            "a would allow unclean leader elections",
        ),
    ],
    "no_data_loss": [
        ({**update("x"), "harms": ["data-loss"], "findings": [LOSS]}, LOSS["text"]),
    ],
    "no_deletion_with_records": [
        ({**DELETED, "impact": {"offsets": 7}}, "a has up to 7 records"),
        ({**DELETED, "impact": {}}, "an unknown number of records"),
        (DELETED, "an unknown number of records"),
    ],
    "max_partitions": [
        (create(partitions=101), "would have 101 partitions, and at most 100 are allowed"),
        (create(partitions=None), "an unknown number"),
        (update("partitions", partitions=200), "200"),
    ],
    "topic_names": [
        (create("Orders"), "the name Orders does not match"),
        (create("orders..eu"), "orders..eu"),
    ],
    "topic_owners": [({**create(), "owner": None}, "names no owner")],
    "no_wildcard_principals": [(allow(acl_principal="User:*"), "would get Read on Topic a")],
    "no_all_on_wildcards": [
        (allow(acl_operation="All", resource_name="*"), "everything on Topic *"),
        (allow(acl_operation="All", resource_type="Cluster"), "everything on Cluster"),
    ],
    "no_cluster_wide_changes": [
        (allow(acl_operation="Delete", resource_name="*"), "allowed Delete on every Topic"),
        (allow(acl_operation="Alter", resource_type="Cluster"), "allowed Alter on the cluster"),
        (allow(acl_operation="AlterConfigs", resource_type="Cluster"), "AlterConfigs"),
    ],
}
PASSES: Mapping[str, list[dict[str, Any]]] = {
    "min_replication_factor": [
        create(),
        update("partitions", replication_factor=1),
        {**create(replication_factor=1), "action": "adopt"},
    ],
    "min_in_sync_replicas": [
        create(**in_sync("2")),
        update("partitions", **in_sync("1")),
        {**create(), "facts": {"topic_defaults": {"min.insync.replicas": "2"}}},
        {**CONFIG, "after": in_sync("2"), "paths": [{"path": "config.min.insync.replicas"}]},
    ],
    "no_unclean_leader_election": [
        create(**unclean("false")),
        update("partitions", **unclean("true")),
        {**CONFIG, "after": {"config": {"retention.ms": "1"}}},
        allow(),
    ],
    "no_data_loss": [{**update("x"), "harms": ["availability"]}, DELETED],
    "no_deletion_with_records": [{**DELETED, "impact": {"offsets": 0}}, create()],
    "max_partitions": [create(partitions=100), update("config.x", partitions=200)],
    "topic_names": [create("orders.eu-1_x"), {**update("partitions"), "key": "Orders"}],
    "topic_owners": [create(), {**update("partitions"), "owner": None}],
    "no_wildcard_principals": [
        allow(),
        allow(acl_principal="User:*", acl_permission_type="Deny"),
        {**allow(acl_principal="User:*"), "action": "delete", "after": None},
    ],
    "no_all_on_wildcards": [
        allow(acl_operation="All"),
        allow(acl_operation="Read", resource_name="*"),
        allow(acl_operation="All", resource_name="*", acl_permission_type="Deny"),
    ],
    "no_cluster_wide_changes": [
        allow(acl_operation="Delete"),
        allow(acl_operation="Describe", resource_type="Cluster"),
    ],
}


def judge(rule: str, change: Mapping[str, Any]) -> list[str]:
    """What one rule says about a change."""
    usual: dict[str, Any] = {
        **dict.fromkeys((*FIELDS, "cluster")),
        **{"type": "kafka_topic", "address": "kafka_topic.a", "key": "a"},
        **{"findings": [], "harms": [], "paths": [], "facts": {"topic_defaults": DEFAULTS}},
    }
    data: Any = freeze({**usual, **change})
    lifted = lift_value(FrozenMap(data))
    assert isinstance(lifted, ObjectVal)
    mine = [one for one in RULES if one.name == rule]
    return [f.text for f in find_findings(mine, lifted, "kafka_topic.a", TODAY, Budget())]


def test_the_rules_have_no_faults() -> None:
    """They compile, and each has a breach and a pass here."""
    assert not FAULTS
    assert [rule.name for rule in RULES] == list(BREACHES) == list(PASSES)


@pytest.mark.parametrize(
    ("rule", "change", "said"),
    [(rule, change, said) for rule, found in BREACHES.items() for change, said in found],
)
def test_a_rule_finds_a_breach(rule: str, change: Mapping[str, Any], said: str) -> None:
    """The message names the object and the value."""
    (message,) = judge(rule, change)
    assert said in message and "cannot be evaluated" not in message


@pytest.mark.parametrize(
    ("rule", "change"), [(rule, change) for rule, found in PASSES.items() for change in found]
)
def test_a_rule_lets_the_right_pass(rule: str, change: Mapping[str, Any]) -> None:
    """What a change does not make is no breach."""
    assert judge(rule, change) == []


def test_the_document_lists_every_rule_and_its_settings() -> None:
    """With the usual values of the settings in brackets, as the rules have them."""
    table = DOCUMENT.read_text("utf-8").split("| rule | a change must obey |")[1].split("\n\n")[0]
    rows = re.findall(r"^\| `(\w+)` \| (.*) \|$", table, re.MULTILINE)
    told = {
        name: dict(re.findall(r"`(\w+)` \[`?(.*?)`?\](?=[ ,;]|$)", text)) for name, text in rows
    }
    assert told == {
        rule.name: {name: str(value) for name, value in rule.settings.fields.items()}
        for rule in RULES
    }


def test_each_rule_is_described() -> None:
    """Whoever reads the file learns what a rule is for."""
    blocks, _ = select_policy_blocks([parse(PROVIDER.read_rules(), "rules")[0]])
    assert all(block.get_argument("description") is not None for block in blocks)
