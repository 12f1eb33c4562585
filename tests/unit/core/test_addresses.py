"""Texts that are the address of an object."""

from __future__ import annotations

import re
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform.core import address
from kafkaform.core.address import is_closure, is_object_address, parse_address

from ...kit.quick import examples

SOUND = (
    "kafka_topic.orders",
    'kafka_topic.orders["eu"]',
    "kafka_topic.orders[0]",
    'module.eu["a.b"].module.x[1].kafka_acl.read["\\"é\\u0000"]',
    'pair.one["a"]/part["b"]',
    "größe.ü-1",
)
BROKEN = (
    "",
    "orders",
    "data.kafka_topic.orders",
    "kafka_topic.orders ",
    "kafka_topic.orders[01]",
    'kafka_topic.orders["\\x"]',
    'kafka_topic.orders["\n"]',
    "kafka_topic.orders[-1]",
    "kafka_topic.1",
    'kafka_topic.orders["a"]/part',
)
NOTHING = re.compile("(?!)")


@pytest.mark.parametrize("text", SOUND)
def test_addresses_of_objects(text: str) -> None:
    """They are read, and written the same way again."""
    assert is_object_address(text)
    assert parse_address(text).name


@pytest.mark.parametrize("text", [*BROKEN, None, 7])
def test_other_texts(text: object) -> None:
    """Neither a wrong name nor a key that cannot be parsed."""
    assert not is_object_address(text)


parts = st.sampled_from(
    ("module.", "data.", "a", "b-1", "ü", ".", "[", "]", '"', "\\", "0", "12", "/", "\n", "\\u0041")
)


@settings(max_examples=examples(500), deadline=None)
@given(st.lists(parts, max_size=12).map("".join) | st.from_regex(address._ADDRESS, fullmatch=True))
def test_the_short_way_finds_the_same(text: str) -> None:
    """Most addresses are recognised without parsing their keys."""
    found = is_object_address(text)
    with patch.object(address, "_compile_plain", lambda: NOTHING):
        assert is_object_address(text) == found


@pytest.mark.parametrize(
    ("address", "is_one"),
    [
        ('kafka_topic.orders/park["Read"]', True),
        ('module.a["x"].kafka_topic.orders["y"]/park["Read"]', True),
        ("kafka_topic.orders", False),
        ('kafka_access.a/acl["park"]', False),
        # A name that somebody chose must not go around a boundary.
        ('kafka_topic.orders["a/park[b"]', False),
        ('kafka_acl.a["/park[\\"Read\\"]"]', False),
        ('kafka_acl.a["x"]/acl["/park[1]"]', False),
    ],
)
def test_a_closure_is_told_by_its_child_alone(address: str, is_one: bool) -> None:
    assert is_closure(address) is is_one
