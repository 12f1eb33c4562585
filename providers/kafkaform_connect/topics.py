"""Which topics and consumer groups a connector works with, from its configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from msgspec.structs import replace

from kafkaform.core.resource import Use
from kafkaform.core.value import EMPTY, FrozenMap

TOPIC, GROUP = "kafka_topic", "kafka_consumer_group"
"""The resource types of topics and of consumer groups in the rights that a user needs."""
USED_KINDS = frozenset({TOPIC, GROUP})
READS, WRITES = "reads", "writes to"
READ, WRITE = "Read", "Write"

_SINGLE: Mapping[str, tuple[str, tuple[str, ...]]] = {
    # FileStreamSource and many other sources; the second is that of several vendors.
    "topic": (WRITES, (WRITE,)),
    "kafka.topic": (WRITES, (WRITE,)),
    "errors.deadletterqueue.topic.name": ("sends what fails to", (WRITE,)),
    # KIP-618: a source can keep its offsets in a topic of its own.
    "offsets.storage.topic": ("keeps its offsets in", (READ, WRITE)),
}
"""Configs with the name of one topic -> what a connector does with it, and the rights for it."""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
MIRROR = "org.apache.kafka.connect.mirror."
"""MirrorMaker's `topics` are patterns, and for another Kafka cluster."""
_CLIENTS = ("producer", "consumer", "admin")
ELSEWHERE = {f"{client}.override.bootstrap.servers" for client in _CLIENTS}
_LOGINS = tuple(
    f"{client}.override.{prefix}" for client in _CLIENTS for prefix in ("sasl.", "ssl.")
)
"""How the configs begin that let a client log in as somebody else than the workers."""


NAMING = tuple(_SINGLE)
"""Configs with the name of one topic."""
TARGETS = ("topic", "kafka.topic")
"""Configs with the topic that a source writes to."""


def is_sink(attributes: FrozenMap) -> bool:
    """True for a connector that reads topics of the workers' own cluster. Every sink has `topics`
    or `topics.regex` (SinkConnectorConfig), and hardly a source has."""
    config = attributes.get("config") or EMPTY
    names = config.get("topics") or config.get("topics.regex")
    return bool(names) and not str(attributes.get("class") or "").startswith(MIRROR)


def reads_pattern(attributes: FrozenMap) -> bool:
    """True for a sink that reads whatever topics fit a pattern."""
    return bool((attributes.get("config") or EMPTY).get("topics.regex"))


def name_group(attributes: FrozenMap) -> str:
    """The consumer group of a sink."""
    config = attributes.get("config") or EMPTY
    return str(config.get("consumer.override.group.id") or f"connect-{attributes.get('name')}")


def list_uses(attributes: FrozenMap) -> Sequence[Use]:
    """What these attributes of a connector name, each once. Topics that only the connector's code
    knows are none of it."""
    config = attributes.get("config") or EMPTY
    if not ELSEWHERE.isdisjoint(config) or str(attributes.get("class") or "").startswith(MIRROR):
        return ()
    uses = _find_uses(attributes, config)
    if any(key.startswith(_LOGINS) for key in (*config, *(attributes.get("secret_keys") or ()))):
        uses = (replace(use, rights=()) for use in uses)
    uses_by_object: dict[tuple[str, str], Use] = {}
    for use in uses:
        uses_by_object.setdefault((use.kind, use.key), use)
    return tuple(sorted(uses_by_object.values()))


def _find_uses(attributes: FrozenMap, config: FrozenMap) -> Iterator[Use]:
    pattern = str(config.get("topics.regex") or "").strip()
    for topic in (topics := list_topics(config, "topics")):
        yield Use(TOPIC, topic, READS, rights=(READ,))
    if pattern:
        # The connector goes on without one of the topics.
        yield Use(TOPIC, pattern, READS, needed=False, rights=(READ,), pattern=True)
    if topics or pattern:
        yield Use(
            GROUP, name_group(attributes), "keeps its offsets in", needed=False, rights=(READ,)
        )
    for key, (verb, rights) in _SINGLE.items():
        for topic in list_topics(config, key):
            yield Use(TOPIC, topic, verb, rights=rights)


def list_topics(config: FrozenMap, key: str) -> list[str]:
    """The topics that a config names."""
    names = (name.strip() for name in str(config.get(key) or "").split(","))
    return [name for name in names if _NAME.fullmatch(name)]
