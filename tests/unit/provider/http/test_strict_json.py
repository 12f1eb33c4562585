"""JSON of a foreign server: exact, or refused."""

from __future__ import annotations

import json
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform.provider.http.strict_json import MAX_DEPTH, NotJson, parse_json

from ....kit.quick import examples


def nest(levels: int) -> bytes:
    return b"[" * levels + b"]" * levels


@pytest.mark.parametrize(
    ("data", "value"),
    [
        (b'{"a": [1, null, true, "x"]}', {"a": [1, None, True, "x"]}),
        (b"1.10", Decimal("1.10")),
        (b"1e3", Decimal(1000)),
        (b'{"$secret": "env:HOME"}', {"$secret": "env:HOME"}),
        (b'"\\ud83d\\ude00"', "\U0001f600"),
        (nest(MAX_DEPTH), json.loads(nest(MAX_DEPTH))),
    ],
)
def test_values_are_exact(data: bytes, value: Any) -> None:
    """No binary floats; and an object that looks like our reference to a secret is an object."""
    assert parse_json(data) == value
    assert type(parse_json(data)) is type(value)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"{",
        b"NaN",
        b"[Infinity]",
        b"[-Infinity]",
        b'{"a": 1, "a": 1}',
        b'{"x": {"a": 1, "\\u0061": 2}}',
        b'"\\ud800"',
        b'{"\\udc00": 1}',
        b"\xff",
        b'"\xed\xa0\x80"',
        b"1e999999999",
        b"1e-999999999",
        b"1" * 5000,
        b"0." + b"1" * 5000,
        nest(MAX_DEPTH + 1),
        nest(100_000),
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"1 2",
    ],
    ids=range(19),
)
def test_what_readers_could_understand_differently_is_refused(data: bytes) -> None:
    """With a sentence that repeats nothing of it but the place."""
    with pytest.raises(NotJson) as caught:
        parse_json(data)
    assert len(str(caught.value)) < 100


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**20), 10**20) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)


@settings(max_examples=examples(300), deadline=None)
@given(JSON)
def test_what_was_written_is_read(value: Any) -> None:
    """Every value without fractions comes back as it was."""
    try:
        data = json.dumps(value, ensure_ascii=False).encode("utf-8")
    except UnicodeEncodeError:
        return
    assert parse_json(data) == value


@settings(max_examples=examples(500), deadline=None)
@given(st.binary() | st.text().map(lambda text: text.encode("utf-8", "replace")))
def test_nothing_but_not_json_is_raised(data: bytes) -> None:
    """Whatever a server sends."""
    with suppress(NotJson):
        parse_json(data)
