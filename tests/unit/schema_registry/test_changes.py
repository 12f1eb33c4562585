"""What differs between two schemas is told by path, with both sides, in every format."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafkaform.core.value import FrozenMap
from kafkaform_schema_registry.formats.faults import cut_sides, write_edit
from kafkaform_schema_registry.formats.normal_form import (
    DIFF_LINES,
    FORMATS,
    MAX_LINES,
    describe_texts,
)
from kafkaform_schema_registry.provider_block import WORDS

from ...kit.schema_registry.schemas import AMOUNT, ID, NOTE, ORDER, field, record

ENUM = {"type": "enum", "name": "State", "symbols": ["OPEN", "PAID"]}
FEWER = {"type": "enum", "name": "State", "symbols": ["OPEN", "SENT"]}

Lines = list[tuple[str, str]]


def obj(required: tuple[str, ...] = (), **properties: Any) -> str:
    return json.dumps({"type": "object", "required": required, "properties": properties})


STRING, MONEY = {"type": "string"}, {"$ref": "#/$defs/Money"}


def list_lines(kind: str, before: str, after: str) -> Lines:
    """Kind of each difference, and its line with both sides."""
    return [(edit.kind.value, write_edit(edit)) for edit in FORMATS[kind].list_edits(before, after)]


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (ORDER, record(ID, NOTE), [("field-added", "+ note: null or string, default null")]),
        (ORDER, record(ID, AMOUNT), [("field-demanded", "+ amount: int, no default")]),
        (record(ID, NOTE), ORDER, [("field-removed", "- note: null or string, default null")]),
        (ORDER, record(field("id", "string")), [("type-changed", "~ id: long → string")]),
        (ORDER, record(ID, name="Purchase"), [("name-changed", "~ the schema: Order → Purchase")]),
        (
            record(field("s", ENUM)),
            record(field("s", FEWER)),
            [("symbol-added", "+ s: symbol SENT"), ("symbol-removed", "- s: symbol PAID")],
        ),
        (
            record(field("id", "long", doc="a")),
            record(field("id", "long", doc="b")),
            [("remark", '~ id: doc "a" → doc "b"')],
        ),
        (record(ID, NOTE), record(NOTE, ID), [("remark", "~ the schema: id, note → note, id")]),
    ],
)
def test_avro(before: str, after: str, lines: Lines) -> None:
    """Fields by their names."""
    assert list_lines("avro", before, after) == lines


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (obj(a=STRING), obj(a=STRING, b=STRING), [("field-added", "+ b: string, optional")]),
        (
            obj(a=STRING),
            obj(("b",), a=STRING, b=STRING),
            [("field-demanded", "+ b: string, required")],
        ),
        (obj(a=STRING), obj(("a",), a=STRING), [("field-demanded", "~ a: optional → required")]),
        (obj(("a",), a=STRING), obj(a=STRING), [("remark", "~ a: required → optional")]),
        (obj(a=STRING, b=STRING), obj(b=STRING), [("field-removed", "- a: string")]),
        (obj(a=STRING), obj(a={"type": "integer"}), [("type-changed", "~ a: string → integer")]),
        (obj(a=STRING), obj(a=MONEY), [("type-changed", "~ a: string → Money")]),
        (
            obj(a={"type": "array", "items": STRING}),
            obj(a={"type": "array", "items": {"type": "number"}}),
            [("type-changed", "~ a[]: string → number")],
        ),
        (
            obj(a={"enum": [1, 2]}),
            obj(a={"enum": [1, 3]}),
            [("symbol-added", "+ a: value 3"), ("symbol-removed", "- a: value 2")],
        ),
        (obj(a=STRING), obj(a={**STRING, "enum": ["x"]}), [("values-limited", '~ a: any → ["x"]')]),
        (obj(a={**STRING, "enum": ["x"]}), obj(a=STRING), [("symbol-added", '~ a: ["x"] → any')]),
        (
            '{"x": 1}',
            '{"additionalProperties": false, "x": 1}',
            [("values-limited", "+ the schema: additionalProperties false")],
        ),
        (
            '{"additionalProperties": false}',
            '{"additionalProperties": true}',
            [("remark", "~ the schema: additionalProperties false → additionalProperties true")],
        ),
        (
            '{"$defs": {"M": {"type": "string"}}}',
            '{"$defs": {"M": {"type": "number"}}}',
            [("type-changed", "~ $defs.M: string → number")],
        ),
        ('{"title": "A"}', '{"title": "B"}', [("remark", '~ the schema: title "A" → title "B"')]),
        ("true", "false", [("type-changed", "~ the schema: anything → nothing")]),
    ],
)
def test_json(before: str, after: str, lines: Lines) -> None:
    """Properties by their paths."""
    assert list_lines("json", before, after) == lines


def message(*fields: str) -> str:
    return f"message Order {{ {' '.join(fields)} }}"


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        (
            message("string a = 1;"),
            message("string a = 1; repeated int32 b = 2;"),
            [("field-added", "+ Order.b: repeated int32 = 2")],
        ),
        (
            message("string a = 1;"),
            message("string a = 1; required int32 b = 2;"),
            [("field-demanded", "+ Order.b: required int32 = 2")],
        ),
        (
            message("string a = 1; string b = 2;"),
            message("string a = 1; reserved 2;"),
            [("field-removed", "- Order.b: string = 2"), ("remark", "~ Order reserved: none → 2")],
        ),
        (
            message("string a = 1;"),
            message("bytes a = 1;"),
            [("type-changed", "~ Order.a: string → bytes")],
        ),
        (
            message("string a = 1;"),
            message("oneof o { string a = 1; }"),
            [("type-changed", "~ Order.a: string → string, in oneof o")],
        ),
        (
            message("string a = 1;"),
            message("string b = 1;"),
            [("field-renamed", "~ Order.b: a → b")],
        ),
        (
            message("enum E { A = 0; B = 1; }"),
            message("enum E { A = 0; C = 2; }"),
            [
                ("symbol-added", "+ Order.E: value C = 2"),
                ("symbol-removed", "- Order.E: value B = 1"),
            ],
        ),
        (
            f"package a; {message('string a = 1;')}",
            f"package b; {message('string a = 1;')}",
            [("name-changed", "~ package: a → b")],
        ),
        (
            message("string a = 1;"),
            "message Other { string a = 1; }",
            [
                ("field-added", "+ Other: message, 1 field"),
                ("field-removed", "- Order: message, 1 field"),
            ],
        ),
        (
            message("string a = 1;"),
            'import "x.proto"; ' + message("string a = 1;"),
            [("remark", "~ import: none → x.proto")],
        ),
        (
            'syntax = "proto2"; message A { }',
            'syntax = "proto3"; message A { }',
            [("type-changed", "~ syntax: proto2 → proto3")],
        ),
    ],
)
def test_protobuf(before: str, after: str, lines: Lines) -> None:
    """Fields by their numbers."""
    assert list_lines("protobuf", before, after) == lines


def test_a_number_that_is_not_reserved_is_told() -> None:
    """A later field could take it, and then old records have another meaning."""
    (edit,) = FORMATS["protobuf"].list_edits(
        message("string a = 1; string b = 2;"), message("string a = 1;")
    )
    assert edit.text == "field Order.b is removed: string = 2, and the number 2 is not reserved"


def test_equal_schemas_have_no_difference() -> None:
    """Of each format, in whatever spelling."""
    pairs = {
        "avro": (ORDER, json.dumps(json.loads(ORDER), indent=2)),
        "json": ("{}", "{ }"),
        "protobuf": (message(), "message Order{}"),
    }
    for kind, (one, other) in pairs.items():
        assert list_lines(kind, one, other) == []


# ── lines of objects ────────────────────────────────────────────────────────────────────


def make_object(text: str, kind: str = "avro") -> FrozenMap:
    return FrozenMap(subject="s", format=kind, schema=text, references=())


@pytest.mark.parametrize(
    ("kind", "text", "line"),
    [
        ("avro", ORDER, "record Order: 1 field, 79 B"),
        ("avro", json.dumps(ENUM), "enum State: 2 symbols, 62 B"),
        ("avro", '"int"', "int, 5 B"),
        ("avro", "{", "no Avro schema, 1 B"),
        (
            "json",
            '{"title":"Order","type":"object","properties":{"a":{}}}',
            "object Order: 1 property, 55 B",
        ),
        (
            "protobuf",
            "package shop; message A { string a = 1; } message B { }",
            "message shop.A: 1 field; message shop.B: 0 fields, 55 B",
        ),
    ],
)
def test_a_new_schema_is_one_line(kind: str, text: str, line: str) -> None:
    """What it is, how many fields it has, and its size."""
    assert WORDS.describe_texts("schema_registry_schema", None, make_object(text, kind)) == (line,)
    assert describe_texts(make_object(text, kind), None) == (line,)


def test_a_change_is_a_line_for_each_difference() -> None:
    """The sizes first, then each path with both sides; nothing for the same schema."""
    before, after = make_object(ORDER), make_object(record(ID, AMOUNT))
    assert describe_texts(before, after) == (
        "record Order: 1 field, 79 B → record Order: 2 fields, 114 B",
        "+ amount: int, no default (new readers stop at old records)",
        "the text:",
        '      {"name":"id","type":"long"},',
        '+     {"name":"amount","type":"int"}',
        "    ],",
    )
    assert describe_texts(before, before) == ()


def test_another_format_and_a_text_that_is_no_schema_have_no_lines_of_their_own() -> None:
    """There is nothing to compare field by field."""
    sides = describe_texts(make_object(ORDER), make_object("{}", "json"))
    assert sides == ("record Order: 1 field, 79 B → anything, 2 B",)
    assert describe_texts(make_object(ORDER), make_object("{")) == (
        "record Order: 1 field, 79 B → no Avro schema, 1 B",
    )


def test_many_differences_are_counted() -> None:
    """A line for each of a hundred fields would hide everything else."""
    wide = record(ID, *(field(f"f{number}", default="") for number in range(100)))
    lines = describe_texts(make_object(ORDER), make_object(wide))
    at = lines.index("the text:")
    assert at == MAX_LINES + 2
    assert lines[at - 1] == f"and {100 - MAX_LINES} more differences"
    assert len(lines) == at + 1 + DIFF_LINES + 1 and lines[-1] == "and more lines"


@pytest.mark.parametrize("kind", ["avro", "json", "protobuf"])
def test_a_wide_schema_stays_short(kind: str) -> None:
    """Two thousand fields with long texts: what is shown does not grow with them, and a difference
    at the end of a long value can be seen."""
    before, after = (_make_wide(kind, end) for end in ("old", "new"))
    lines = describe_texts(make_object(before, kind), make_object(after, kind))
    assert len(lines) <= MAX_LINES + DIFF_LINES + 4
    assert sum(map(len, lines)) < 20_000
    text = "\n".join(lines)
    assert "2,000" in lines[0] and "old" in text and "new" in text


def _make_wide(kind: str, end: str) -> str:
    """A schema of 2,000 fields, about a megabyte."""
    names, doc = [f"field_{number}" for number in range(2000)], "x" * 400 + end
    if kind == "avro":
        return record(*(field(name, default="", doc=doc) for name in names))
    if kind == "json":
        properties = {name: {"type": "string", "description": doc} for name in names}
        return json.dumps({"type": "object", "properties": properties})
    lines = (f"  string {name}_{end} = {n};" for n, name in enumerate(names, 1))
    return "\n".join(('syntax = "proto3";', "message Wide {", *lines, "}"))


@pytest.mark.parametrize(
    ("before", "after", "effect"),
    [
        (record(ID), record(ID, NOTE), "new readers see the default in old records"),
        (record(ID, NOTE), record(ID), "old readers see their default in new records"),
        (record(ID, AMOUNT), record(ID), "old readers stop at new records"),
        (
            record(field("a", "int")),
            record(field("a", "long")),
            "new readers convert it, old readers stop at new records",
        ),
        (record(field("a", "string")), record(field("a", "bytes")), "readers convert it"),
        (
            record(field("a", "string")),
            record(field("a", "long")),
            "new readers stop at old records",
        ),
    ],
)
def test_a_field_says_what_readers_see(before: str, after: str, effect: str) -> None:
    """By Avro's rules of schema resolution."""
    line = describe_texts(make_object(before), make_object(after))[1]
    assert line.endswith(f"({effect})"), line


def test_a_new_message_has_no_value_that_readers_see() -> None:
    """A field of protobuf has one, a message has none."""
    old = "message A { string a = 1; }"
    new = "message A { string a = 1; int32 b = 2; } message B { string c = 1; }"
    lines = describe_texts(make_object(old, "protobuf"), make_object(new, "protobuf"))
    assert lines[1] == "+ A.b: int32 = 2 (old readers keep it as an unknown field)"
    assert lines[2] == "+ B: message, 1 field"


def test_long_values_begin_at_their_difference() -> None:
    """What is the same at the beginning of both would hide it."""
    sides = cut_sides("x" * 90 + "old", "x" * 90 + "new")
    assert sides == ("…" + "x" * 12 + "old", "…" + "x" * 12 + "new")
    assert cut_sides("a", "x" * 61) == ("a", "x" * 60 + "…")


def test_other_objects_have_no_documents() -> None:
    """Levels are values as all others."""
    assert WORDS.describe_texts("schema_registry_config", None, FrozenMap()) == ()
