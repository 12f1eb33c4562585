"""Reads the configs of topics, and the values that take effect without them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TypeVar

from kafkaform.core.resource import Facts, Fault
from kafkaform.core.value import EMPTY, FrozenMap, Value

from ...cluster.context import ClusterContext, attempt
from ...protocol.config_keys import ALL_TOPIC_KEYS, BROKER_TIMES
from ...protocol.config_values import config_value
from ...wire.answers import ConfigEntry, ItemAnswer
from ...wire.client import Unsupported
from ...wire.configs import describe_configs
from ...wire.fast_decoding import describe_own

# A topic has some 35 configs, about 10 kB of answer with synonyms, which a broker builds in memory.
CONFIGS_AT_ONCE = 250
"""Topics in one DescribeConfigs request."""
IN_FLIGHT = 4
"""DescribeConfigs requests at the same time."""
# Not `is_default`: an override that equals the default is an override all the same.
OWN = 1
"""The source of a topic's own override (ConfigSource DYNAMIC_TOPIC_CONFIG)."""

ConfigAnswers = Mapping[str, ItemAnswer | Fault]
"""Topic -> its configs, or why they could not be read."""
T = TypeVar("T")


def read_configs(context: ClusterContext, names: Sequence[str], node: str | None) -> ConfigAnswers:
    """The configs of each topic, or why they could not be read."""
    items: dict[str, ItemAnswer | Fault] = {}
    with ThreadPoolExecutor(IN_FLIGHT, "describe-configs") as pool:
        chunks = split_chunks(list(dict.fromkeys(names)), CONFIGS_AT_ONCE)
        for answers in pool.map(partial(_read_chunk, context, node), chunks):
            items.update(answers)
    return items


def _read_chunk(context: ClusterContext, node: str | None, names: Sequence[str]) -> ConfigAnswers:
    answers = attempt("DescribeConfigs", lambda: _describe_own(context, names, node), node)
    if isinstance(answers, Fault):
        return dict.fromkeys(names, answers)
    left_out = ItemAnswer(-1, "the broker left it out of its answer")
    return {name: answers.get(name, left_out) for name in names}


def _describe_own(
    context: ClusterContext, names: Sequence[str], node: str | None
) -> Mapping[str, ItemAnswer]:
    try:
        return describe_own(context.wire, names, context.timeout, node)
    except Unsupported:
        return describe_configs(
            context.wire, "topic", names, context.timeout, source=OWN, node=node
        )


def read_fallbacks(context: ClusterContext, answers: ConfigAnswers, node: str | None) -> FrozenMap:
    """Config -> the value that takes effect without an override, from the synonyms (KIP-226)."""
    # The value comes from the broker, so it is the same for all topics: one topic with each key is
    # asked instead of all of them, since synonyms make answers large.
    sample = {
        entry.name: name
        for name, answer in answers.items()
        if not isinstance(answer, Fault)
        for entry in answer.configs or ()
        if entry.source == OWN
    }
    if not sample:
        return EMPTY
    fallbacks = attempt(
        "DescribeConfigs",
        lambda: describe_configs(
            context.wire,
            "topic",
            sorted(set(sample.values())),
            context.timeout,
            keys=sorted(sample),
            synonyms=True,
            node=node,
        ),
    )
    if isinstance(fallbacks, Fault):
        return EMPTY
    values = {
        entry.name: find_fallback(entry, context.facts)
        for answer in fallbacks.values()
        for entry in answer.configs or ()
        if entry.source == OWN
    }
    return FrozenMap({key: value for key, value in values.items() if value is not None})


def find_fallback(entry: ConfigEntry, facts: Facts) -> Value:
    """The value that takes effect without this override, canonical; None if it is unknown."""
    if entry.below is not None:
        return config_value(entry.name, entry.below)
    # No synonym: log.retention.hours and others like it have another name and another unit.
    if entry.name in BROKER_TIMES:
        return (facts.values.get("topic_defaults") or EMPTY).get(entry.name)
    row = ALL_TOPIC_KEYS.get(entry.name)
    return config_value(entry.name, row.default) if row else None


def split_chunks(items: Sequence[T], size: int) -> Iterator[Sequence[T]]:
    return (items[start : start + size] for start in range(0, len(items), size))
