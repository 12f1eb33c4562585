"""JSON texts become values that know their place; hostile ones become diagnostics."""

from __future__ import annotations

import json
import random
import time
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform.core.diagnostics import Diagnostics
from kafkaform.syntax import nodes
from kafkaform.syntax import nodes as limits
from kafkaform.syntax.faults import SyntaxFault
from kafkaform.syntax.json import (
    Json,
    JsonArray,
    JsonAtom,
    JsonObject,
    JsonString,
    StringMode,
    make_expression,
    parse_json,
)

from ...kit.quick import examples
from .shape import shape

K = 1024


def _plain(value: Json) -> object:
    """The value as Python's own decoder would give it."""
    if isinstance(value, JsonString):
        return value.text
    if isinstance(value, JsonAtom):
        return value.value
    if isinstance(value, JsonArray):
        return [_plain(item) for item in value.items]
    return {member.name.text: _plain(member.value) for member in value.members}


def _node(text: str, mode: StringMode = StringMode.TEMPLATE) -> nodes.Expression:
    value, faults = parse_json(text, "t.json")
    assert value is not None, faults
    return make_expression(value, mode)


def _faults(text: str | bytes, mode: StringMode = StringMode.TEMPLATE) -> Diagnostics:
    value, faults = parse_json(text, "t.json")
    if value is None:
        return faults
    try:
        make_expression(value, mode)
    except SyntaxFault as error:
        return error.diagnostics
    return ()


_ANY = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text('abé"\\', max_size=3), inner),
    max_leaves=20,
)


@settings(max_examples=examples(200), deadline=None)
@given(_ANY, st.booleans(), st.sampled_from([None, 1]))
def test_what_json_writes_is_read(value: object, ascii_only: bool, indent: int | None) -> None:
    """Whatever another program writes as JSON has the same value here."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    found, faults = parse_json(text.encode(), "t.json")
    assert found is not None, faults
    assert _plain(found) == value


NUMBERS = [
    ("0", 0),
    ("-12", -12),
    ("123456789012345678901234567890", 123456789012345678901234567890),
    ("0.1234567890123456789012345", Decimal("0.1234567890123456789012345")),
    ("-1.5e3", Decimal(-1500)),
    ("2E+2", Decimal(200)),
]


@pytest.mark.parametrize(("text", "expected"), NUMBERS)
def test_numbers_are_exact(text: str, expected: int | Decimal) -> None:
    """No digit is lost to floating point."""
    found = _node(text)
    assert isinstance(found, nodes.Lit)
    assert found.value == expected


STRINGS = [
    ('"plain"', "'plain'"),
    ('"a ${var.x} b"', "<'a '|var.x|' b'>"),
    ('"${var.x}"', "<var.x>!"),
    ('"${f(\\"q\\", [1])}"', "<f('q', [1])>!"),
    ('"$${x} %%{y}"', "'${x} %{y}'"),
    ('"%{ if a }b%{ endif }"', "<if a <'b'> else <>>"),
    ('"\\u0024{a}"', "<a>!"),
    ('"\\ud83d\\ude00 \\u00e9 \\/ \\n"', "'😀 é / \\n'"),
    ('"e\\u0301"', "'é'"),
    ('{"${k}": 1, "b": "${c}"}', "{<k>!: 1, 'b': <c>!}"),
]


@pytest.mark.parametrize(("text", "expected"), STRINGS)
def test_strings_are_templates(text: str, expected: str) -> None:
    """A string is a template after its escapes are decoded; one interpolation alone unwraps."""
    assert shape(_node(text)) == expected


MODES = [
    (StringMode.LITERAL, '"${x"', "'${x'"),
    (StringMode.LITERAL, '{"${k}": "%{"}', "{'${k}': '%{'}"),
    (StringMode.SPELLED, '"map(object({n=optional(number,3)}))"',
     "map(object({'n': optional(number, 3)}))"),
    (StringMode.SPELLED, '["kafka_topic.a[\\"x\\"]", "data.a.b"]',
     "[kafka_topic.a['x'], data.a.b]"),
    (StringMode.SPELLED, '{"kafka": "kafka.eu"}', "{'kafka': kafka.eu}"),
    (StringMode.PATH, '["config[\\"a.b\\"]", "config.a.*", "all"]',
     "[config['a.b'], 'config.a.*', all]"),
]  # fmt: skip


@pytest.mark.parametrize(("mode", "text", "expected"), MODES)
def test_strings_that_are_no_templates(mode: StringMode, text: str, expected: str) -> None:
    """Where references or plain texts are wanted, strings are read as such."""
    assert shape(_node(text, mode)) == expected


def test_places_are_those_of_the_file() -> None:
    """Every node lies on the text that it came from, behind escapes and in later lines too."""
    text = '{\n  "é\\n": "a\\"b ${var.x[\\"k\\"]} \\ud83d\\ude00${y}",\n  "n": [1, true]\n}'
    found = {}
    for node in nodes.walk(_node(text)):
        place = node.range
        source = text.encode()[place.start_byte : place.end_byte].decode()
        found[source] = (place.line, place.column)
    assert found['var.x[\\"k\\"]'] == (2, 18)
    assert found["var"] == (2, 18)
    assert found['\\"k\\"'] == (2, 24)
    assert found["y"] == (2, 46)
    assert found["1"] == (3, 9)
    assert found["true"] == (3, 12)
    faults = _faults('{\n  "a": "\\n\\t ${var.}"\n}')
    assert [str(fault.range) for fault in faults] == ["t.json:2:20"]
    assert faults[0].excerpt == '  "a": "\\n\\t ${var.}"'


WRONG = [
    ("", "1:1", "The file is empty"),
    ("{", "1:1", 'Unclosed "{"'),
    ('{"a": [1,\n2', "1:7", 'Unclosed "["'),
    ('{"a": 1,}', "1:8", "JSON allows no comma after the last element"),
    ("[1 2]", "1:4", 'Expected "," or "]"'),
    ('{"a": 1 "b": 2}', "1:9", 'Expected "," or "}"'),
    ("[1}", "1:3", 'Expected "," or "]"'),
    ("{'a': 1}", "1:2", "Single quotes do not make a string"),
    ("{a: 1}", "1:2", "The name of a property must be in double quotes"),
    ('{"a" = 1}', "1:6", "JSON needs a colon between name and value"),
    ('{"a" 1}', "1:6", "JSON needs a colon between name and value"),
    ("// x\n{}", "1:1", "JSON has no comments"),
    ("{} # x", "1:4", "JSON has no comments"),
    ("{} {}", "1:4", "Unexpected text after the end of the JSON value"),
    ("[True]", "1:2", "This word is not a JSON value"),
    ("[NaN, Infinity]", "1:2", "This word is not a JSON value"),
    ("[01]", "1:2", "This is not a JSON number"),
    ("[1.]", "1:2", "This is not a JSON number"),
    ("[-]", "1:2", "This is not a JSON number"),
    ("[.5]", "1:2", "This is not a JSON number"),
    ('["a\nb"]', "1:2", "Unclosed string"),
    ('["a\tb"]', "1:4", "A string cannot contain control characters"),
    ('["\\x41"]', "1:3", "Invalid escape sequence"),
    ('["\\ud83d"]', "1:3", "Half a character"),
    ('["\\ude00\\ud83d"]', "1:3", "Half a character"),
    ('{"a": {"b": 1, "c": 2, "b": 3}}', "1:24", '"b" is set twice'),
    ('["%{ if x }"]', "1:3", "Misplaced %{ if }"),
    (b"\xff[]", "1:1", "Not UTF-8"),
]


@pytest.mark.parametrize(("text", "place", "summary"), WRONG)
def test_errors_name_the_place_and_what_is_wrong(
    text: str | bytes, place: str, summary: str
) -> None:
    """Each typical mistake has its own words."""
    faults = _faults(text)
    assert [(str(fault.range), fault.summary) for fault in faults][:1] == [
        (f"t.json:{place}", summary)
    ]


def test_a_repeated_name_tells_both_places() -> None:
    """Which of two equal names counts is not guessed."""
    (fault,) = _faults('{"a": 1,\n "a": 2}')
    assert str(fault.range) == "t.json:2:2"
    assert fault.detail == "It was first set at t.json:1:2."


BOMBS = {
    "arrays": ("[" * 1_000_000, "Nested too deeply"),
    "objects": ('{"a":' * 200_000, "Nested too deeply"),
    "one bracket too many": ("[" * 101 + "]" * 101, "Nested too deeply"),
    "depth of a template": ('["${' + "[" * 99 + "1" + "]" * 99 + '}"]', "Nested too deeply"),
    "templates": ('["${' + "(" * 50_000 + '"]', "Nested too deeply"),
    "string": ('["' + "x" * 1100 * K + '"]', "String too long"),
    "unclosed string": ('["' + "\\n" * 2_000 * K, "Unclosed string"),
    "number": ("[" + "9" * 200_000 + "]", "Number too long"),
    "exponent": ("[1e99999999999999999999]", "Number too long"),
    "list": ("[" + "1," * 100_001 + "1]", "Collection too large"),
    "names": ("{" + ",".join(f'"{n}":1' for n in range(100_002)) + "}", "Collection too large"),
    "repeated names": ("{" + '"a":1,' * 50_000 + '"a":1}', '"a" is set twice'),
    "tokens": ("[" + "[]," * 400_000 + "[]]", "File too complex"),
    "blanks": (" " * 8 * K * K, "The file is empty"),
    "file": (" " * (8 * K * K + 1), "File too large"),
}


SLOW_BOMBS = ("unclosed string", "names", "repeated names", "tokens")


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow("megabytes") if name in SLOW_BOMBS else ())
        for name in BOMBS
    ],
)
@pytest.mark.timeout(60)
def test_bomb_is_refused(name: str) -> None:
    """A hostile text ends with its diagnostic in seconds."""
    text, words = BOMBS[name]
    started = time.process_time()
    faults = _faults(text)
    assert time.process_time() - started < 20
    assert words in faults[0].summary
    assert faults[0].range is not None
    assert len(faults) <= limits.DIAGNOSTICS


SEED = (
    '{"a": ["x ${var.y[0]} \\u00e9", -1.5e3, true, null, {"b": "%{ if c }d%{ endif }", '
    '"${k}": []}], "\\ud83d\\ude00": {}}'
)
_MARKS = ["{", "}", "[", "]", '"', ",", ":", "\\", "${", "%{", "\n", "\ud800", "\0", "1e9", "é"]


@pytest.mark.parametrize("seed", range(200))
def test_damaged_text_never_raises(seed: int) -> None:
    """Cutting, doubling and inserting marks gives a value, or diagnostics inside the text."""
    dice = random.Random(seed)
    text = SEED
    for _ in range(dice.randint(1, 4)):
        at, to = sorted(dice.choices(range(len(text) + 1), k=2))
        text = dice.choice(
            [text[:at] + text[to:], text[:at] + dice.choice(_MARKS) + text[at:], text[:to] * 2]
        )
    lines = text.count("\n") + 1
    assert all(item.range and 1 <= item.range.line <= lines for item in _faults(text))


@settings(max_examples=examples(300), deadline=None)
@given(
    st.text() | st.text('{}[]",:\\u0d8 \n1e-+.truefalsn${%', max_size=40),
    st.sampled_from(StringMode),
)
def test_any_text_is_answered(text: str, mode: StringMode) -> None:
    """No text and no reading of it raises anything else than its faults."""
    _faults(text, mode)


@settings(max_examples=examples(100), deadline=None)
@given(st.binary())
def test_any_bytes_are_answered(data: bytes) -> None:
    """Bytes that are no text are refused."""
    value, faults = parse_json(data, "t.json")
    assert (value is None) == bool(faults)


def test_a_comment_mark_is_a_plain_name_here() -> None:
    """Only bodies pass over "//"; in an expression it is a name like others."""
    value, _ = parse_json('{"//": 1}', "t.json")
    assert isinstance(value, JsonObject)
    assert value.members[0].name.text == "//"
    assert shape(_node('{"//": 1}')) == "{'//': 1}"
