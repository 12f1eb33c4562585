"""Which topics a connector works with, from its configuration."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from kafkaform.core.resource import Use
from kafkaform.core.value import EMPTY, FrozenMap

TOPIC = "kafka_topic"
"""The resource type of topics."""
READS, WRITES = "reads", "writes to"

_SINGLE: Mapping[str, str] = {
    # FileStreamSource and many other sources; the second is that of several vendors.
    "topic": WRITES,
    "kafka.topic": WRITES,
    "errors.deadletterqueue.topic.name": "sends what fails to",
    # KIP-618: a source can keep its offsets in a topic of its own.
    "offsets.storage.topic": "keeps its offsets in",
}
"""Configs with the name of one topic -> what a connector does with it."""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
_MIRROR = "org.apache.kafka.connect.mirror."
"""MirrorMaker's `topics` are patterns, and for another Kafka cluster."""
_ELSEWHERE = {
    f"{client}.override.bootstrap.servers" for client in ("producer", "consumer", "admin")
}


def list_uses(attributes: FrozenMap) -> Sequence[Use]:
    """The topics that these attributes of a connector name, each once. Patterns (`topics.regex`)
    and topics that only the connector's code knows are none of them."""
    config = attributes.get("config") or EMPTY
    if not _ELSEWHERE.isdisjoint(config) or str(attributes.get("class") or "").startswith(_MIRROR):
        return ()
    named = [(name.strip(), READS) for name in str(config.get("topics") or "").split(",")]
    named += [(str(config.get(key) or "").strip(), verb) for key, verb in _SINGLE.items()]
    verbs = {name: verb for name, verb in reversed(named) if _NAME.fullmatch(name)}
    return tuple(Use(TOPIC, name, verb) for name, verb in sorted(verbs.items()))
