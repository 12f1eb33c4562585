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
_MIRROR = "org.apache.kafka.connect.mirror."
"""MirrorMaker's `topics` are patterns, and for another Kafka cluster."""
_CLIENTS = ("producer", "consumer", "admin")
_ELSEWHERE = {f"{client}.override.bootstrap.servers" for client in _CLIENTS}
_LOGINS = tuple(f"{client}.override.{how}" for client in _CLIENTS for how in ("sasl.", "ssl."))
"""How the configs begin that let a client log in as somebody else than the workers."""


def list_uses(attributes: FrozenMap) -> Sequence[Use]:
    """What these attributes of a connector name, each once. Topics that only the connector's code
    knows are none of it."""
    config = attributes.get("config") or EMPTY
    if not _ELSEWHERE.isdisjoint(config) or str(attributes.get("class") or "").startswith(_MIRROR):
        return ()
    uses = _find_uses(str(attributes.get("name") or ""), config)
    if any(key.startswith(_LOGINS) for key in (*config, *(attributes.get("secret_keys") or ()))):
        uses = (replace(use, rights=()) for use in uses)
    found: dict[tuple[str, str], Use] = {}
    for use in uses:
        found.setdefault((use.kind, use.key), use)
    return tuple(sorted(found.values()))


def _find_uses(name: str, config: FrozenMap) -> Iterator[Use]:
    pattern = str(config.get("topics.regex") or "").strip()
    for topic in (topics := _list_names(config, "topics")):
        yield Use(TOPIC, topic, READS, rights=(READ,))
    if pattern:
        # The connector goes on without one of the topics.
        yield Use(TOPIC, pattern, READS, needed=False, rights=(READ,), pattern=True)
    if topics or pattern:
        group = str(config.get("consumer.override.group.id") or f"connect-{name}")
        yield Use(GROUP, group, "keeps its offsets in", needed=False, rights=(READ,))
    for key, (verb, rights) in _SINGLE.items():
        for topic in _list_names(config, key):
            yield Use(TOPIC, topic, verb, rights=rights)


def _list_names(config: FrozenMap, key: str) -> list[str]:
    names = (name.strip() for name in str(config.get(key) or "").split(","))
    return [name for name in names if _NAME.fullmatch(name)]
