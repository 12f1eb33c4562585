"""The risk tables: every config of Kafka 4.3 has a row, and the rows say what hurts."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.core.change import Action, Change, Ownership, PathChange
from kafkaform.core.legacy import RiskKind
from kafkaform.core.resource import Facts, Identity
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.kinds.config import risks as config_risks
from kafkaform_kafka.kinds.config.resource_type import SCOPES, TYPES
from kafkaform_kafka.kinds.quota.risks import find_quota_risks
from kafkaform_kafka.kinds.user.risks import find_user_risks
from kafkaform_kafka.protocol.broker_keys import UpdateMode, broker_keys, find_broker_key
from kafkaform_kafka.protocol.config_keys import GROUP_KEYS, METRICS_KEYS

FACTS = Facts("cluster", ("1", "2", "3"))


def test_every_dynamic_broker_config_has_a_row() -> None:
    """Configs that need a restart cannot be declared, but for those of one listener's login."""
    known = broker_keys()
    dynamic = {name for name, key in known.items() if key.mode is not UpdateMode.READ_ONLY}
    assert dynamic <= set(config_risks.BROKER_HARMS)
    assert all(find_broker_key(name) for name in config_risks.BROKER_HARMS)


def test_every_group_and_metrics_config_has_a_row() -> None:
    """Both tables name exactly what Kafka 4.3 has."""
    assert set(config_risks.GROUP_HARMS) == set(GROUP_KEYS)
    assert set(config_risks.METRICS_HARMS) == set(METRICS_KEYS)
    assert all(scope.harms for scope in SCOPES) and all(kind.risks for kind in TYPES)


def config_change(kind: str, key: str, before: Any, after: Any, effective: Any = None) -> Change:
    item = PathChange(("config", key), before, after, effective)
    return Change(Identity("kafka", kind, "1"), f"{kind}.a", Action.UPDATE, paths=(item,))


@pytest.mark.parametrize(
    ("key", "before", "after", "found"),
    [
        ("log.retention.ms", None, "1000", [RiskKind.DATA_LOSS]),
        ("log.retention.ms", "1000", "-1", []),
        ("min.insync.replicas", "1", "2", [RiskKind.AVAILABILITY]),
        ("max.connections", None, "5", [RiskKind.ACCESS]),
        ("max.connections", "5", None, []),
        ("ssl.client.auth", "none", "required", [RiskKind.ACCESS]),
        ("listener.name.sasl.ssl.client.auth", "none", "required", [RiskKind.ACCESS]),
        ("unclean.leader.election.enable", None, "true", [RiskKind.AVAILABILITY]),
        ("log.cleaner.threads", "4", "1", []),
        ("my.plugin.key", "4", "1", []),
    ],
)
def test_broker_configs(key: str, before: Any, after: Any, found: list[RiskKind]) -> None:
    """By the same rules on one broker and on all; a plugin's config is nobody's business."""
    for kind in TYPES[:2]:
        assert kind.risks is not None
        risks = kind.risks(config_change(kind.name, key, before, after), FACTS)
        assert [risk.kind for risk in risks] == found


def test_quotas_that_get_tighter() -> None:
    """A new or lower limit slows clients down, in people's units; a higher one does not."""
    lower = config_change("kafka_quota", "producer_byte_rate", 10_485_760, 1_048_576)
    (risk,) = find_quota_risks(lower, FACTS)
    assert risk.kind is RiskKind.THROUGHPUT
    assert risk.text == (
        "producer_byte_rate: clients over 1 MiB/s (1048576) are throttled "
        "(10 MiB/s (10485760) before)"
    )
    assert (
        find_quota_risks(config_change("kafka_quota", "request_percentage", 50, 100), FACTS) == ()
    )
    (new,) = find_quota_risks(config_change("kafka_quota", "request_percentage", None, 50), FACTS)
    assert "over 50 % of one thread" in new.text


def test_logins_that_end() -> None:
    """A credential that goes, and another password."""
    identity = Identity("kafka", "kafka_user_scram_credential", "u|SCRAM-SHA-256")
    before = FrozenMap(username="u", scram_mechanism="SCRAM-SHA-256", scram_iterations=4096)
    gone = Change(identity, "a", Action.DELETE, before)
    assert [r.text for r in find_user_risks(gone, FACTS)] == [
        "User:u can no longer log in with SCRAM-SHA-256"
    ]
    rows = (Ownership(secret_version="1"), Ownership(secret_version="2"))
    turned = Change(
        identity, "a", Action.UPDATE, before, before, row_before=rows[0], row_after=rows[1]
    )
    assert [r.kind for r in find_user_risks(turned, FACTS)] == [RiskKind.ACCESS]
