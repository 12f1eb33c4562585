"""What the rules do with changes: they block and warn, also in a whole plan."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import UNSET

from kafkaform.core.change import Action
from kafkaform.core.errors import KafkaformError
from kafkaform.core.finding import Block, Finding, Level
from kafkaform.plan.model import Plan
from kafkaform_kafka.rules.vendors import ROWS

from ....kit.kafka import judgement
from ....kit.kafka.changes import change, facts, topic
from ....kit.simulated.engine import House, apply, desired, house, plan
from ....kit.simulated.engine import topic as declare

SERVERLESS, CONFLUENT, REDPANDA = "amazon-msk-serverless", "confluent-cloud", "redpanda"


def judge(profile: str | None, made: Any) -> list[Finding]:
    """What the rules of a profile find about a change."""
    findings = judgement.judge(made, facts(profile=profile or UNSET))
    return [finding for finding in findings if finding.rule in ROWS]


def survey(profile: str, *changes: Any) -> list[Finding]:
    """What the rules of a profile find about the cluster."""
    pairs = judgement.survey(changes, facts=facts(profile=profile))
    return [finding for identity, finding in pairs if finding.rule in ROWS and identity is None]


def acl(**attributes: str) -> Any:
    """A create of an ACL."""
    usual = {
        "name": "x",
        "resource_name": "orders",
        "resource_type": "Topic",
        "resource_pattern_type_filter": "Literal",
        "acl_principal": "User:sa-1",
        "acl_host": "*",
        "acl_operation": "Read",
        "acl_permission_type": "Allow",
    }
    return change(Action.CREATE, None, {**usual, **attributes}, kind="kafka_acl")


def test_a_config_that_the_vendor_fixes_is_blocked_with_its_source() -> None:
    """The sentence names the vendor, the config and the page; the advice, the way out."""
    bad = change(Action.CREATE, None, topic(config={"segment.bytes": "104857600"}))
    (finding,) = judge(SERVERLESS, bad)
    assert (finding.rule, finding.level) == ("amazon-msk-serverless-topic-config", Level.BLOCK)
    assert finding.block is Block.IMPOSSIBLE
    assert finding.text.startswith("MSK Serverless does not let a topic set segment.bytes (https")
    assert finding.fix.startswith("Remove it from config. ") and 'profile = "apache"' in finding.fix


def test_each_reason_is_a_finding() -> None:
    """Nobody has to guess which advice belongs to which reason."""
    config = {"segment.bytes": "104857600", "max.message.bytes": "8388609"}
    findings = judge(SERVERLESS, change(Action.CREATE, None, topic(config=config)))
    assert {finding.rule: finding.fix.partition(" ")[0] for finding in findings} == {
        "amazon-msk-serverless-topic-config": "Remove",
        "amazon-msk-serverless-message-size": "Write",
    }


def test_an_update_of_the_bookkeeping_is_no_change_of_the_cluster() -> None:
    """A new owner of an object that the vendor does not offer to change sends nothing."""
    same = {"name": "x", "entity": {"user": "x"}, "config": {"producer_byte_rate": 9999}}
    other = change(
        Action.UPDATE, {**same, "owner": "a"}, {**same, "owner": "b"}, kind="kafka_quota"
    )
    assert not judge(SERVERLESS, other)


def test_what_is_about_the_cluster_is_told_once_for_many_changes() -> None:
    """Strimzi's operators concern each topic, and are named once; nothing without a change."""
    changes = [change(Action.CREATE, None, topic(name)) for name in "abc"]
    (finding,) = survey("strimzi", *changes)
    assert finding.level is Level.CAUTION and "Topic Operator" in finding.text
    assert not any(judge("strimzi", made) for made in changes)
    assert not survey("strimzi")


def test_a_principal_of_another_form_is_a_caution() -> None:
    """Confluent Cloud's principals are ids of accounts; another form may be right one day."""
    assert not judge(CONFLUENT, acl())
    assert not judge(CONFLUENT, acl(acl_principal="User:4711"))
    (finding,) = judge(CONFLUENT, acl(acl_principal="User:alice"))
    assert finding.level is Level.CAUTION and "not acl_principal = User:alice" in finding.text


def test_the_default_entity_of_a_quota_has_a_key_without_a_value() -> None:
    """Redpanda has no quotas of addresses, also not for the default address."""
    for name in (None, "10.0.0.1"):
        limits = {"connection_creation_rate": 1}
        ip = {"name": "x", "entity": {"ip": name}, "config": limits}
        (finding,) = judge(REDPANDA, change(Action.CREATE, None, ip, kind="kafka_quota"))
        assert "not ip" in finding.text
    user = {"name": "x", "entity": {"user": None}, "config": {"producer_byte_rate": 9999}}
    assert not judge(REDPANDA, change(Action.CREATE, None, user, kind="kafka_quota"))


def test_the_facts_of_a_session_name_the_profile() -> None:
    """Without one, nothing but Kafka's rules holds."""
    bad = change(Action.CREATE, None, topic(replication_factor=2))
    assert judge(REDPANDA, bad)
    assert not judge(None, bad)


# ── whole plans on a simulated cluster ──────────────────────────────────────────────────


def make_plan(where: House, profile: str | None, *topics: Any) -> Plan:
    """A plan of these topics with this profile in the provider block."""
    return plan(where, desired(*topics, profile=profile))


def test_a_plan_names_the_profile_and_refuses() -> None:
    """The change is blocked, an apply sends nothing, and without the profile it goes through."""
    where = house(brokers=3)
    bad = declare("a", replication_factor=2)
    seen = make_plan(where, REDPANDA, bad)
    assert seen.instances["kafka"].facts.profile == "profile redpanda, as the provider block says"
    assert seen.changes[0].blocked is not None
    with pytest.raises(KafkaformError):
        apply(where, desired(bad, profile=REDPANDA))
    assert not where.cluster.topics
    assert make_plan(where, "apache", bad).changes[0].blocked is None
    assert make_plan(where, None, bad).instances["kafka"].facts.profile == ""
    apply(where, desired(bad))
    assert set(where.cluster.topics) == {"a"}


def test_what_the_vendor_sets_stays() -> None:
    """MSK Serverless sets configs that nobody can remove: no plan wants to, and a declared config
    beside them is changed."""
    where = house(brokers=3)
    said = {"retention.ms": "1000"}
    apply(where, desired(declare("a", config=said), profile=SERVERLESS))
    with where.cluster.others() as outside:
        outside.alter("a", {"segment.bytes": "104857600"})
    assert not make_plan(where, SERVERLESS, declare("a", config=said)).changes
    (changed,) = make_plan(where, SERVERLESS, declare("a", config={"retention.ms": "2000"})).changes
    assert changed.blocked is None
    assert [item.path for item in changed.paths] == [("config", "retention.ms")]
    (kafka,) = make_plan(where, "apache", declare("a", config=said)).changes
    assert [item.path for item in kafka.paths] == [("config", "segment.bytes")]
