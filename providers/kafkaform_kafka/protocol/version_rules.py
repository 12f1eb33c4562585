"""Rules about configs that the brokers of a cluster do not have yet, or do not have any more.

Two sources say which configs exist: the brokers, which list theirs (DescribeConfigs), and the
tables of this package with the release of the cluster. The brokers win, because other distributions
add and remove configs. If neither is known, nothing is refused here: the dry run decides.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from kafkaform.core.resource import Facts
from kafkaform.core.value import EMPTY

from .config_keys import AT_BROKERS, REPLACEMENTS, ConfigKey
from .releases import is_before


def presence_faults(
    definition: ConfigKey, key: str, facts: Facts, exists: str = "exists"
) -> Iterator[tuple[str, str]]:
    """The fault of a config that this cluster does not have. key: its full name; exists: the verb
    of the sentence that says since when it does."""
    if not definition.since and not definition.until:
        return
    listed = (facts.values.get("config_keys") or EMPTY).get(
        AT_BROKERS.get(definition.name, definition.name)
    )
    release = get_release(facts)
    if listed is False:
        yield f"the brokers do not list {key}, so they do not have it", f"remove {key}"
    elif listed or not release:
        return
    elif definition.since and is_before(release, definition.since):
        yield (
            f"the cluster runs Kafka {release}; {key} {exists} since Kafka {definition.since}",
            f"remove {key}, or upgrade the brokers",
        )
    elif definition.until and not is_before(release, definition.until):
        instead = " and ".join(REPLACEMENTS.get(definition.name, ()))
        yield (
            f"the cluster runs Kafka {release}; Kafka {definition.until} removed {key}",
            f"use {instead} instead" if instead else f"remove {key}",
        )


def is_certain(definition: ConfigKey, facts: Facts) -> bool:
    """True if it is known whether this cluster has the config."""
    listed = (facts.values.get("config_keys") or EMPTY).get(
        AT_BROKERS.get(definition.name, definition.name)
    )
    return listed is not None or bool(get_release(facts))


def get_release(facts: Facts) -> str:
    """The release of the brokers, empty if it is unknown."""
    release = facts.values.get("kafka_version")
    return release if isinstance(release, str) else ""


def fit_range(definition: ConfigKey, facts: Facts) -> ConfigKey:
    """The config with the lowest number that the release of this cluster accepts."""
    release = get_release(facts)
    if definition.lower is None or not release or not is_before(release, definition.lower[0]):
        return definition
    return replace(definition, low=definition.lower[1])


def fit_old_range(definition: ConfigKey) -> ConfigKey:
    """The config with the lowest number that any release accepts."""
    return definition if definition.lower is None else replace(definition, low=definition.lower[1])


def advise_topic_ids(facts: Facts) -> str:
    """What to do about a topic whose id is unknown."""
    # KIP-516: the controller gives ids, also to older topics, once it is allowed to.
    if facts.values.get("zookeeper"):
        return (
            "set inter.broker.protocol.version to 2.8 or newer on the brokers, which gives every "
            "topic an id"
        )
    return "plan again with a principal that has Describe on the topic"
