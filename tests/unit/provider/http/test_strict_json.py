"""JSON of a foreign server: exact, or refused."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform.provider.http.exchange import (
    MAX_DEPTH,
    MAX_DIGITS,
    NotJson,
    parse_json,
    parse_slowly,
)

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
        b"1e399999999999999999999",
        b"1e-999999999",
        b"1" * 5000,
        b"0." + b"1" * 5000,
        nest(MAX_DEPTH + 1),
        nest(100_000),
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"1 2",
    ],
    ids=range(20),
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


PIECES = (
    *("{", "}", "[", "]", ",", ":", '"', '"a"', '"a:b"', '"{"', "1", "-0", "1.50", "1e3", "E", "."),
    *(
        "-",
        "null",
        "true",
        "NaN",
        " ",
        "\n",
        "\\u0061",
        "\\",
        "é",
        "\ud800",
        "\0",
        "\x0b",
        "\ufeff",
    ),
    *("9" * 20, "7" * MAX_DIGITS, "7" * (MAX_DIGITS + 1), "[" * 60, "]" * 60, '{"a":1,"a":1}'),
)


def judge(parse: Callable[[bytes], Any], data: bytes) -> str:
    """The value with its types, or that there is none."""
    try:
        return repr(parse(data))
    except NotJson:
        return "refused"


@settings(max_examples=examples(2000), deadline=None)
@given(st.lists(st.sampled_from(PIECES)).map("".join) | JSON.map(json.dumps))
def test_the_short_way_gives_what_the_whole_check_gives(text: str) -> None:
    """The same values of the same types; and it lets nothing pass that the check refuses."""
    data = text.encode("utf-8", "surrogatepass")
    assert judge(parse_json, data) == judge(parse_slowly, data)


@pytest.mark.parametrize(
    "text",
    [
        '{"a":1,"b":{"c":":","c":1}}',
        '{"a:":1,"a:":1}',
        '[{"a":1,"a":{"b":2}}]',
        '{"a":{"b":1,"c":2},"a":{}}',
        "7" * (MAX_DIGITS + 1),
        "-" + "7" * MAX_DIGITS,
        '{"a":' * MAX_DEPTH + "[]" + "}" * MAX_DEPTH,
        '"' + "]" * 200 + '"' + "[" * 101 + "]" * 101,
        "[" * 101 + '"' + "]" * 200 + '"' + "]" * 101,
    ],
    ids=range(9),
)
def test_the_short_way_does_not_pass_what_it_cannot_see(text: str) -> None:
    """Equal keys whose values hide colons, long numbers, and depth among brackets of texts."""
    assert judge(parse_json, text.encode()) == "refused"
