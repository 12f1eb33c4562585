"""Kafka Connect's terms for the engine's concepts (see `kafkaform.core.words`)."""

from __future__ import annotations

from kafkaform.core.value import FrozenMap
from kafkaform.core.words import KindWords, Words

WORDS = Words(
    system="Connect cluster",
    node="worker",
    address="url",
    task="startup",
    task_on_it="startup",
    working="starting",
    kinds=FrozenMap({"kafka_connect_connector": KindWords("connectors", ("name",))}),
)
