"""Canonical JSON: the fast encoder and the standard one write the same text."""

from __future__ import annotations

import json
from datetime import date
from decimal import Decimal
from enum import Enum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

from kafkaform.core.canonical import Rendered, dumps, loads
from kafkaform.core.value import FrozenMap, SecretRef, freeze

TEXTS = st.text() | st.text(st.characters(max_codepoint=0x7F))
LEAVES = st.none() | st.booleans() | st.integers() | TEXTS
PLAIN = st.recursive(
    LEAVES, lambda parts: st.lists(parts) | st.dictionaries(TEXTS, parts), max_leaves=20
)


def write_plainly(value: Any) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


@given(PLAIN)
def test_plain_values_are_written_as_the_standard_encoder_writes_them(value: Any) -> None:
    assert dumps(freeze(value)) == write_plainly(value)


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


class Part(Struct, frozen=True):
    name: str
    since: date | None = None
    colour: Colour = Colour.RED
    seconds: float = 0.0


class Whole(Struct, frozen=True):
    part: Part
    more: tuple[Part, ...] = ()
    secret: SecretRef | None = None
    labels: FrozenMap = FrozenMap()


def test_a_struct_is_written_without_its_defaults() -> None:
    assert dumps(Whole(Part("é"), labels=FrozenMap())) == r'{"part":{"name":"\u00e9"}}'
    whole = Whole(
        Part("a", date(2026, 1, 2), Colour.BLUE, 300.0),
        (Part("b", seconds=0.25),),
        SecretRef("env", "X"),
        FrozenMap(z=1),
    )
    assert dumps([whole]) == (
        '[{"labels":{"z":1},"more":[{"name":"b","seconds":0.25}],'
        '"part":{"colour":"blue","name":"a","seconds":300,"since":"2026-01-02"},'
        '"secret":{"$secret":"env:X"}}]'
    )


@given(PLAIN, st.floats(allow_nan=False, allow_infinity=False))
def test_both_encoders_write_structs_alike(value: Any, seconds: float) -> None:
    """Half a character is left to the standard encoder."""
    parts = [Whole(Part("a", colour=Colour.BLUE, seconds=seconds)), freeze(value)]
    assert dumps([*parts, "\ud800"]) == f'{dumps(parts)[:-1]},"\\ud800"]'


@given(PLAIN)
def test_a_rendered_value_is_written_as_it_is(value: Any) -> None:
    frozen = freeze(value)
    assert dumps([Rendered.make(frozen), 1]) == dumps([frozen, 1])
    assert dumps([Rendered.make(frozen), "\ud800"]) == dumps([frozen, "\ud800"])


@given(PLAIN)
def test_a_decimal_changes_nothing_beside_it(value: Any) -> None:
    text = dumps(freeze({"a": value, "b": [Decimal("0.10"), value], "c": Decimal("1e-7")}))
    parts = write_plainly(value)
    assert text == f'{{"a":{parts},"b":[0.1,{parts}],"c":0.0000001}}'
    assert loads(text) == freeze({"a": value, "b": [Decimal("0.1"), value], "c": Decimal("1e-7")})


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("\x7f", r'"\u007f"', id="delete is escaped"),
        pytest.param("é\ud800", r'"\u00e9\ud800"', id="half a character is escaped"),
        pytest.param(2**70, str(2**70), id="a number beyond 64 bits is exact"),
        pytest.param(FrozenMap(b=1, B=2, a=3), '{"B":2,"a":3,"b":1}', id="keys are sorted"),
        pytest.param((SecretRef("env", "X"),), '[{"$secret":"env:X"}]', id="a secret is its name"),
        pytest.param(Decimal("1.50"), "1.5", id="a decimal has no zeros at its end"),
    ],
)
def test_what_the_fast_encoder_does_not_write(value: Any, text: str) -> None:
    assert dumps(value) == text
    assert dumps(FrozenMap(x=value)) == f'{{"x":{text}}}'


@pytest.mark.parametrize("value", [object(), {1, 2}, b"bytes", [{"deep": object()}]])
def test_other_types_have_no_canonical_form(value: Any) -> None:
    with pytest.raises(TypeError, match="no canonical form for"):
        dumps(value)


def test_a_deep_value_is_written_whole() -> None:
    value: Any = "end"
    for _ in range(300):
        value = (value,)
    assert dumps(value) == "[" * 300 + '"end"' + "]" * 300
