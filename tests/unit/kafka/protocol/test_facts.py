"""The facts of a cluster, which plans record and policies see."""

from __future__ import annotations

from pathlib import Path

from kafkaform.core.canonical import list_defaults
from kafkaform.core.resource import Facts
from kafkaform_kafka.protocol.cluster_facts import KafkaFacts

PLANS = Path(__file__).parents[4] / "docs" / "formats" / "plan.md"


def test_the_format_of_plans_describes_every_fact() -> None:
    """Policies read the facts, and their authors have only that page."""
    _, _, table = PLANS.read_text(encoding="utf-8").partition("`facts.values` of a Kafka cluster")
    table = table.partition("###")[0]
    assert [name for name, _ in list_defaults(KafkaFacts) if f"`{name}`" not in table] == []


def test_a_vendor_is_recorded_only_if_there_is_one() -> None:
    """Apache Kafka's plans have no `profile`; a vendor without own topic configs records null."""
    assert "profile" not in Facts("c", values=KafkaFacts()).recorded_values
    vendor = KafkaFacts(profile="strimzi", acls_read_singly=False, topic_configs=None)
    values = Facts("c", values=vendor).recorded_values
    assert (values["profile"], values["acls_read_singly"], values["topic_configs"]) == (
        "strimzi",
        False,
        None,
    )
