"""The risk tables: every config of Kafka 4.3 has a row, and the rows say what hurts."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.core.change import Action, Change, PathChange
from kafkaform.core.legacy import RiskKind
from kafkaform.core.resource import Facts, Identity
from kafkaform_kafka.kinds.config import risks as config_risks
from kafkaform_kafka.kinds.config.resource_type import SCOPES, TYPES
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
