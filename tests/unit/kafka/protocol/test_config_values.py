"""Config values: equal things get one spelling, and nothing else changes."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaform.core.value import FrozenMap, Value
from kafkaform_kafka.protocol.config_keys import TOPIC_KEYS, config_map, config_value

SPELLINGS = [
    ("retention.ms", " +5 ", "5"),
    ("retention.ms", "-1", "-1"),
    ("retention.ms", 604800000, "604800000"),
    ("retention.ms", "007", "7"),
    ("retention.ms", "7d", "7d"),
    ("retention.ms", "1_000", "1_000"),
    ("retention.ms", "٣", "٣"),
    ("preallocate", "TRUE", "true"),
    ("preallocate", True, "true"),
    ("preallocate", "yes", "yes"),
    ("cleanup.policy", "delete,compact", "compact,delete"),
    ("cleanup.policy", "compact, delete", "compact,delete"),
    ("cleanup.policy", "delete,delete", "delete"),
    ("cleanup.policy", "", ""),
    ("cleanup.policy", ("delete", "compact"), "compact,delete"),
    ("leader.replication.throttled.replicas", "1:2, 0:1", "1:2,0:1"),
    ("min.cleanable.dirty.ratio", "0.50", "0.5"),
    ("min.cleanable.dirty.ratio", ".5", "0.5"),
    ("min.cleanable.dirty.ratio", "5e-1", "0.5"),
    ("min.cleanable.dirty.ratio", "1.0", "1"),
    ("min.cleanable.dirty.ratio", Decimal("0.25"), "0.25"),
    ("min.cleanable.dirty.ratio", "NaN", "NaN"),
    ("min.cleanable.dirty.ratio", "1e9999999", "1e9999999"),
    ("compression.type", " zstd ", "zstd"),
    ("compression.type", "ZSTD", "ZSTD"),
    ("made.up.key", " x ", "x"),
    ("retention.ms", None, None),
]


@pytest.mark.parametrize(("key", "written", "expected"), SPELLINGS)
def test_a_value_gets_the_spelling_that_a_broker_prints(
    key: str, written: Value, expected: Value
) -> None:
    """What a broker treats as equal is spelled alike, so that it never shows as a change."""
    assert config_value(key, written) == expected


@pytest.mark.parametrize(("key", "written", "expected"), SPELLINGS)
def test_canonical_values_stay_as_they_are(key: str, written: Value, expected: Value) -> None:
    """Making a value canonical twice gives the same as once."""
    assert config_value(key, config_value(key, written)) == expected


@given(st.sampled_from(sorted(TOPIC_KEYS)), st.text(alphabet=" +-.,0123456789eEtrufalsNdcompx"))
def test_any_text_has_one_canonical_spelling(key: str, written: str) -> None:
    """Whatever a user writes, the spelling of its spelling is itself."""
    once = config_value(key, written)
    assert config_value(key, once) == once


def test_values_that_are_equal_in_python_keep_their_own_texts() -> None:
    """What was found for one value is not taken for another."""
    for first, second in ((True, 1), (1, True)):
        assert config_value("x.y", first) != config_value("x.y", second)
        assert config_value("x.y", (first,)) != config_value("x.y", (second,))


def test_a_missing_map_is_an_empty_one() -> None:
    """Leaving config out means the same as an empty map."""
    assert config_map(None) == config_map(FrozenMap()) == {}
