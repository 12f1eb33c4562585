"""Keys of several fields."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from kafkaform_kafka.protocol.keys import join, split

fields = st.lists(st.text(alphabet="ab|\\*: ", max_size=6), min_size=1, max_size=8)


@given(fields)
def test_a_key_is_taken_apart_into_its_fields(parts: list[str]) -> None:
    """Whatever the fields hold, separators and escapes too."""
    assert split(join(parts)) == tuple(parts)


@given(fields, fields)
def test_different_fields_have_different_keys(one: list[str], other: list[str]) -> None:
    """Two objects never share a key."""
    assert (join(one) == join(other)) is (one == other)


def test_what_was_typed_without_escapes_means_itself() -> None:
    r"""A `\` that escapes nothing is part of the name."""
    assert split(r"User:CORP\ci|*") == (r"User:CORP\ci", "*")
    assert split("a\\") == ("a\\",)
