"""Configs that are set without a plan: a few lines that the tests of several files share."""

from __future__ import annotations

from collections.abc import Mapping

from kafkaform_kafka.protocol.faults import code_name
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire.answers import ConfigEntry
from kafkaform_kafka.wire.configs import alter_configs, describe_configs

TOPIC, BROKER, GROUP, METRICS = "topic", "broker", "group", "client_metrics"
ALL = ""
"""The name of all brokers (KIP-226)."""


def alter(
    session: KafkaSession,
    resource: str,
    name: str,
    config: Mapping[str, str | None],
    *,
    dry: bool = False,
) -> str:
    """Set configs, or remove them with None; the refusal, or an empty text."""
    change = {
        "resource": resource,
        "name": name,
        "set": {key: value for key, value in config.items() if value is not None},
        "delete": [key for key, value in config.items() if value is None],
    }
    wire, seconds = session.context.wire, session.context.timeout
    answers = alter_configs(wire, [change], seconds, validate_only=dry, node=_find_node(name))
    (item,) = answers.items.values()
    return f"{code_name(item.code)}: {item.message}" if item.code else ""


def read_rows(session: KafkaSession, number: str = "1") -> Mapping[str, ConfigEntry]:
    """The configs of a broker as it answers itself."""
    wire, seconds = session.context.wire, session.context.timeout
    answer = describe_configs(wire, BROKER, [number], seconds, node=number)[number]
    return {row.name: row for row in answer.configs or ()}


def _find_node(name: str) -> str:
    return name if name.isdecimal() else "1"
