"""What takes effect below an override, where the broker does not say it plainly."""

from __future__ import annotations

import pytest

from kafkaform.core.value import FrozenMap
from kafkaform_kafka.kinds.topic.configs import list_fallbacks
from kafkaform_kafka.kinds.topic.requests import find_fallback
from kafkaform_kafka.protocol.config_keys import TOPIC_KEYS
from kafkaform_kafka.wire.answers import ConfigEntry

from ....kit.kafka.changes import FACTS, facts

HOURS = facts(topic_defaults=FrozenMap({"retention.ms": "86400000"}))


def test_the_brokers_own_setting_comes_first() -> None:
    """A value that somebody set on the broker is what a removal brings back."""
    entry = ConfigEntry("cleanup.policy", "delete", 1, below="delete, compact")
    assert find_fallback(entry, FACTS) == "compact,delete"


def test_settings_in_hours_come_from_the_facts() -> None:
    """Kafka hides log.retention.hours below retention.ms, so the broker's configs are asked."""
    assert find_fallback(ConfigEntry("retention.ms", "1", 1), HOURS) == "86400000"


def test_without_the_right_to_know_nothing_is_guessed() -> None:
    """The broker may be set to anything in hours: no number is better than a wrong one."""
    assert find_fallback(ConfigEntry("retention.ms", "1", 1), FACTS) is None


@pytest.mark.parametrize("key", ["max.compaction.lag.ms", "preallocate", "segment.bytes"])
def test_otherwise_it_is_kafkas_default(key: str) -> None:
    """A key that no broker setting stands behind has Kafka's own default."""
    assert find_fallback(ConfigEntry(key, "1", 1), FACTS) == TOPIC_KEYS[key].default


def test_an_unknown_key_has_no_known_fallback() -> None:
    """A newer broker's key is shown without a value that takes effect."""
    assert find_fallback(ConfigEntry("made.up", "1", 1), FACTS) is None


def test_the_value_without_an_override_is_the_brokers() -> None:
    """Kafka's own for a config that brokers do not report, and what they said about one first."""
    below = list_fallbacks(HOURS, FrozenMap({"segment.ms": "1"}))
    assert below["config.retention.ms"] == "86400000" and below["config.segment.ms"] == "1"
    assert below["config.segment.bytes"] == TOPIC_KEYS["segment.bytes"].default


def test_without_the_brokers_configs_the_value_in_effect_is_unknown() -> None:
    """Nothing is guessed: only what brokers said about overrides is known."""
    assert list_fallbacks(FACTS) == {}
    said = FrozenMap({"retention.ms": "1"})
    assert list_fallbacks(FACTS, said) == {"config.retention.ms": "1"}
