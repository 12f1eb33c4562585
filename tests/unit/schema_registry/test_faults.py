"""What is no schema is told with its line and column, of every format, without a registry."""

from __future__ import annotations

import json
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform.provider.http.exchange import HttpAnswer
from kafkaform_schema_registry.formats.faults import MAX_FAULTS
from kafkaform_schema_registry.formats.normal_form import FORMATS, inspect_schema
from kafkaform_schema_registry.memory import SimulatedRegistry
from kafkaform_schema_registry.requests import register

from ...kit.quick import examples
from ...kit.schema_registry.corpus import SOUND, WRONG
from ...kit.schema_registry.schemas import field, record

RECORD = """{
  "type": "record",
  "name": "Order",
  "fields": [
    {"name": "id", "type": "lng"},
    {"name": "id", "type": "int", "default": "x"}
  ]
}
"""
OBJECT = """{
  "type": "object",
  "required": true,
  "properties": {
    "a": {"type": "strng"},
    "b": {"$ref": "#/definitions/Money"}
  }
}
"""
FILE = """syntax = "proto3";
message Order {
  string id = 1
  int32 amount = 2;
}
"""

Places = list[tuple[int, int, str]]


def find(kind: str, text: str, *, elsewhere: bool = False) -> Places:
    """Line, column and text of each fault."""
    faults = inspect_schema(kind, text, elsewhere=elsewhere).faults
    return [(fault.line, fault.column, fault.text) for fault in faults]


@pytest.mark.parametrize(
    ("kind", "text", "places"),
    [
        (
            "avro",
            RECORD,
            [
                (5, 28, 'there is no type "lng"'),
                (6, 14, "the field id is there twice"),
                (6, 46, 'the default "x" of the field id is no int'),
            ],
        ),
        ("avro", '{"type": "record",\n', [(2, 1, "it is not JSON: it ends too early")]),
        ("avro", '{"type": "int"}}', [(1, 16, "it is not JSON: extra data")]),
        ("avro", '["int",\n "int"]', [(2, 2, "a union contains int twice")]),
        ("avro", '["int", ["null"]]', [(1, 9, "a union contains a union")]),
        (
            "avro",
            '{"type": "enum", "name": "E", "symbols": ["A", "A"]}',
            [(1, 48, "the symbol A is there twice")],
        ),
        (
            "avro",
            '{"type": "enum", "name": "E", "symbols": ["A"], "default": "B"}',
            [(1, 60, 'the default "B" of the enum is none of its symbols')],
        ),
        ("avro", '{"type": "fixed", "name": "F"}', [(1, 1, "the fixed F has no size in bytes")]),
        ("avro", "7", [(1, 1, "a type is a name, a list or an object, and not 7")]),
        (
            "avro",
            '{"type": "map", "values": 7}',
            [(1, 27, "a type is a name, a list or an object, and not 7")],
        ),
        (
            "json",
            OBJECT,
            [
                (3, 15, "required is not a list of different names: true"),
                (5, 19, 'there is no type "strng"'),
                (6, 19, "$ref leads to #/definitions/Money, which is not in the schema"),
            ],
        ),
        ("json", "[1]", [(1, 1, "a schema is an object or a bool, and not [1]")]),
        ("json", '{"allOf": []}', [(1, 11, "allOf is not a list of schemas")]),
        ("json", '{"minLength": -1}', [(1, 15, "minLength is not a whole number from 0 on: -1")]),
        (
            "json",
            '{"properties": []}',
            [(1, 16, "properties is not an object with a schema for each name")],
        ),
        ("protobuf", FILE, [(3, 16, "a semicolon is missing after 'string id = 1'")]),
        (
            "protobuf",
            FILE.replace("= 1", "= 2;"),
            [(4, 3, "the fields id and amount of Order both have the number 2")],
        ),
        ("protobuf", FILE.replace("= 1", "= 1;")[:-2], [(2, 15, "a { is not closed")]),
        (
            "protobuf",
            'syntax = "proto3"\nmessage A { string a = 1; }',
            [(1, 18, "a semicolon is missing after 'syntax = \"proto3\"'")],
        ),
        (
            "protobuf",
            "message A {\n  reserved 2 to 4;\n  optional int32 a = 3;\n}",
            [(3, 3, "A.a has the number 3, which is reserved")],
        ),
        (
            "protobuf",
            "message A { optional int32 a = 19000; }",
            [
                (
                    1,
                    13,
                    "A.a has the number 19,000: possible are 1 to 536,870,911 without 19,000 to "
                    "19,999",
                )
            ],
        ),
        (
            "protobuf",
            'syntax = "proto3"; enum E { A = 1; }',
            [(1, 29, "the first value of the enum E, A, is not 0")],
        ),
        (
            "protobuf",
            "enum E { A = 0; B = 0; }",
            [(1, 17, "the values A and B of the enum E are both 0")],
        ),
        (
            "protobuf",
            "message A { optional strng a = 1; }",
            [(1, 13, 'there is no type "strng" for A.a')],
        ),
        ("protobuf", "message A { string a; }", [(1, 13, "the field 'string a' has no number")]),
    ],
)
def test_a_fault_is_told_with_its_place(kind: str, text: str, places: Places) -> None:
    """Line and column are those of the text as it is written."""
    assert find(kind, text) == places


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("avro", '"int"'),
        ("avro", "[]"),
        ("avro", record(field("next", ["null", "Order"], default=None))),
        ("avro", record(field("a", ["null", "string"], default="x"))),
        (
            "avro",
            record(
                field(
                    "a",
                    {"type": "record", "name": "I", "fields": [field("b", default="")]},
                    default={},
                )
            ),
        ),
        ("json", "true"),
        ("json", '{"type": ["null", "string"], "exclusiveMaximum": true, "x-own": [1]}'),
        ("json", '{"$ref": "#/$defs/A~1b", "$defs": {"A/b": {"enum": [1, null]}}}'),
        ("json", '{"default": {"type": "no schema"}, "items": [{}, true], "dependentSchemas": {}}'),
        ("protobuf", "message A { optional group G = 1 { required int32 x = 1; } }"),
        (
            "protobuf",
            'import "google/protobuf/any.proto"; option (a) = { b: 1 c { d: 2 } };\n'
            "message A { oneof q { string z = 3 [deprecated = true]; google.protobuf.Any y = 4; }\n"
            '  map<string, A.E> m = 0x5; reserved 7 to 9, "old"; extensions 100 to max;\n'
            "  enum E { option allow_alias = true; X = 0; Y = 0; Z = -1; } }\n"
            "extend A { optional int32 w = 100; } service S { rpc R (A) returns (A); }",
        ),
        ("protobuf", 'import "other.proto"; message A { optional Other o = 1; }'),
    ],
)
def test_a_sound_schema_has_no_fault(kind: str, text: str) -> None:
    """Unusual as it is."""
    assert find(kind, text) == []


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        ("avro", '{"type": "array", "items": "Order"}'),
        ("json", '{"$ref": "#/definitions/Order"}'),
        ("protobuf", "message A { optional Order o = 1; }"),
    ],
)
def test_what_other_schemas_define_is_known_with_references(kind: str, text: str) -> None:
    """Without references it is a fault."""
    assert find(kind, text) and not find(kind, text, elsewhere=True)


def test_a_misspelt_type_has_the_right_one_as_its_fix() -> None:
    """Of each format."""
    texts = {
        "avro": '"strng"',
        "json": '{"type": "strng"}',
        "protobuf": "message A { optional strng a = 1; }",
    }
    for kind, text in texts.items():
        (fault,) = inspect_schema(kind, text).faults
        assert fault.fix == 'Did you mean "string"?'


def test_many_faults_are_cut() -> None:
    """What is wrong everywhere is told ten times."""
    assert len(find("avro", record(*(field(f"f{n}", "nope") for n in range(50))))) == MAX_FAULTS


@settings(max_examples=examples(300), deadline=None)
@given(
    st.sampled_from(sorted(FORMATS)),
    st.sampled_from([RECORD, OBJECT, FILE]),
    st.integers(0, 120),
    st.text(alphabet='{}[]",:;=1a ', max_size=3),
)
def test_a_damaged_schema_leads_to_no_error(kind: str, text: str, at: int, more: str) -> None:
    """Cut or changed anywhere, it has faults within the text, or none."""
    damaged = text[:at] + more + text[at + 1 :]
    lines = damaged.split("\n")
    for line, column, _ in find(kind, damaged):
        assert line == 0 or (line <= len(lines) and 1 <= column <= len(lines[line - 1]) + 1)


VALUES = st.sampled_from(
    ["string", "strng", 1, 0, -1, 1.5, True, None, [], {}, ["a"], ["a", "a"], ["string", "null"]]
)
KEYWORDS = (
    *("type", "required", "items", "enum", "minimum", "minLength", "maxItems", "multipleOf"),
    *("pattern", "title", "additionalProperties", "allOf", "not", "if", "patternProperties"),
    *("propertyNames", "contains", "uniqueItems", "format", "const", "default", "x-own"),
    *("readOnly", "$comment", "contentEncoding", "dependencies"),
)
SCHEMAS = st.recursive(
    st.dictionaries(st.sampled_from(KEYWORDS), VALUES, max_size=3),
    lambda inner: (
        st.dictionaries(st.sampled_from(KEYWORDS), st.one_of(VALUES, inner), max_size=3)
        | st.dictionaries(st.just("properties"), st.dictionaries(st.sampled_from("ab"), inner))
        | st.dictionaries(st.just("anyOf"), st.lists(inner, min_size=1, max_size=2))
    ),
    max_leaves=6,
)


def is_valid(document: Any, *drafts: Any) -> list[bool]:
    """Whether the metaschemas of these drafts take the document."""
    return [not list(draft(draft.META_SCHEMA).iter_errors(document)) for draft in drafts]


@settings(max_examples=examples(500), deadline=None)
@given(SCHEMAS)
def test_what_metaschemas_take_has_no_fault(document: Any) -> None:
    """Draft-07, as most registries read schemas, and the newest one: no block for what both of them
    take, and one for what neither takes."""
    drafts = jsonschema.Draft7Validator, jsonschema.Draft202012Validator
    sound = is_valid(document, *drafts)
    faults = find("json", json.dumps(document))
    assert not (all(sound) and faults)
    # Draft-04 and draft-06 allow empty lists and other limits in single places.
    if not any(is_valid(document, *drafts, jsonschema.Draft4Validator)):
        assert faults or _has_empty_items(document)


def _has_empty_items(node: Any) -> bool:
    """Draft-04 allows an empty list of items, newer ones do not."""
    inner = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return (isinstance(node, dict) and node.get("items") == []) or any(map(_has_empty_items, inner))


@pytest.mark.parametrize(("kind", "text"), WRONG)
def test_wrong_schemas_are_refused_by_us_and_by_the_simulation(kind: str, text: str) -> None:
    """With a place for us, and with the code of real registries there."""
    assert inspect_schema(kind, text).faults
    answer = _register(kind, text)
    assert (answer.status, answer.body["error_code"]) == (422, 42201)


@pytest.mark.parametrize(("kind", "text"), SOUND)
def test_sound_schemas_are_taken_by_us_and_by_the_simulation(kind: str, text: str) -> None:
    """A block of a schema that is none would stop a plan."""
    assert not inspect_schema(kind, text).faults
    assert _register(kind, text).status == 200


def _register(kind: str, text: str) -> HttpAnswer:
    payload = {"subject": "a", "format": kind, "schema": text, "references": ()}
    return SimulatedRegistry().answer(register(payload))
