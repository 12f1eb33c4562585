"""Which topics a connector works with, from its configuration."""

from __future__ import annotations

import re
from collections.abc import Iterator

from kafkaform.core.value import EMPTY, FrozenMap

_LISTS = ("topics",)
"""Configs of sinks with the names of topics, separated by commas."""
_SINGLE = ("topic", "kafka.topic", "errors.deadletterqueue.topic.name", "offsets.storage.topic")
"""Configs with the name of one topic: `topic` of FileStreamSource and many other sources."""
_NAME = re.compile(r"[A-Za-z0-9._-]{1,249}")
_MIRROR = "org.apache.kafka.connect.mirror."
"""MirrorMaker's `topics` are patterns for another cluster."""


def list_topics(attributes: FrozenMap) -> Iterator[str]:
    """The names of topics that these attributes of a connector mention, each once."""
    config = attributes.get("config") or EMPTY
    if str(attributes.get("class") or "").startswith(_MIRROR):
        return
    named = [name for key in _LISTS for name in str(config.get(key) or "").split(",")]
    named += [str(config.get(key) or "") for key in _SINGLE]
    for name in dict.fromkeys(one.strip() for one in named):
        if _NAME.fullmatch(name):
            yield name
