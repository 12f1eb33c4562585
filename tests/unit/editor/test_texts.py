"""Positions of the protocol in every encoding, and offsets of a text."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform.editor.project import Text, TextPosition

from ...kit.quick import examples

TEXTS = st.text(st.sampled_from("ab \n\r\u00fc\u4e2d\U0001f600\ufeff"), max_size=30)
ENCODINGS = {"utf-8": (2, 3, 4), "utf-16": (1, 1, 2), "utf-32": (1, 1, 1)}


@pytest.mark.parametrize(("encoding", "sizes"), ENCODINGS.items())
def test_each_encoding_counts_its_own_units(encoding: str, sizes: tuple[int, ...]) -> None:
    """A letter can have several, and a place inside of one is the place before it."""
    text = Text("x\r\n\u00fc\u4e2d\U0001f600!", encoding)
    at = 0
    for number, size in enumerate(sizes):
        at += size
        assert text.locate(3 + number + 1) == TextPosition(1, at)
        assert text.find_offset(TextPosition(1, at)) == 3 + number + 1
    assert text.find_offset(TextPosition(1, 99)) == 7
    assert text.find_offset(TextPosition(9, 0)) == 7
    assert text.find_offset(TextPosition(0, 99)) == 1
    if encoding != "utf-32":
        assert text.find_offset(TextPosition(1, at - 1)) == 5


@pytest.mark.parametrize("encoding", ENCODINGS)
@given(content=TEXTS)
@settings(max_examples=examples(300), deadline=None)
def test_a_position_leads_back_to_its_offset(encoding: str, content: str) -> None:
    """At every offset, except between the two characters of a line end."""
    text = Text(content, encoding)
    for offset in range(len(text.text) + 1):
        if text.text[offset - 1 : offset + 1] != "\r\n" or offset == 0:
            assert text.find_offset(text.locate(offset)) == offset


def test_a_byte_order_mark_counts_for_the_editor_only() -> None:
    """Columns of messages do not count it."""
    text = Text("\ufeffab")
    assert text.text == "ab"
    assert text.locate(0) == TextPosition(0, 1)
    assert text.find_offset(TextPosition(0, 0)) == 0
    assert text.find_line(1, 2) == 1
