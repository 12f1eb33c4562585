"""JSON and protobuf schemas: one spelling, names, and faults."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform_schema_registry.formats.normal_form import FORMATS, inspect_schema

from ...kit.quick import examples

PROTO = """\
syntax = 'proto3'; // the newest
option java_package = "shop";
package shop;
import "money.proto";

/* An order.
   Of the shop. */
message Order {
  message Line { string what = 1; }
  int64 id = 1 [deprecated = true];
  reserved 3, 4;
  map<string, Line> lines = 2;
  oneof payment { string card = 5; int32 cash = 6; }
  option (tag) = { a: 1, b: { c: "}" } };
}
enum State { NEW = 0; DONE = 1; }
service Orders { rpc Get (Order) returns (stream Order) {} }
"""
NORMAL = """\
syntax = "proto3";
package shop;
import "money.proto";
option java_package = "shop";
message Order {
  reserved 3, 4;
  option (tag) = { a: 1, b: { c: "}" } };
  int64 id = 1 [deprecated = true];
  map<string, Line> lines = 2;
  oneof payment {
    string card = 5;
    int32 cash = 6;
  }
  message Line {
    string what = 1;
  }
}
enum State {
  NEW = 0;
  DONE = 1;
}
service Orders {
  rpc Get (Order) returns (stream Order) {}
}"""


def test_a_protobuf_file_has_one_spelling() -> None:
    """Without comments, and with statements where registries put them."""
    assert inspect_schema("protobuf", PROTO).normal == NORMAL
    assert inspect_schema("protobuf", NORMAL).normal == NORMAL


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("message M { int32 a = 1; }", "message M { int32 a = 2; }"),
        ("message M { int32 a = 1; int32 b = 2; }", "message M { int32 b = 2; int32 a = 1; }"),
        ('message M { string a = 1; } // "x"', 'message M { string a = 1 [json_name = "x"]; }'),
    ],
)
def test_what_is_sent_otherwise_is_another_file(one: str, other: str) -> None:
    """Numbers, options and the order of fields are differences."""
    assert inspect_schema("protobuf", one).normal != inspect_schema("protobuf", other).normal


@pytest.mark.parametrize(
    ("kind", "text", "why"),
    [
        ("protobuf", "", "it is empty"),
        ("protobuf", "message M {", "is not closed"),
        ("protobuf", "message M { } }", "closes nothing"),
        ("protobuf", "message M { int32 a = 1 }", "a semicolon is missing"),
        ("protobuf", "message M { option a = { b", "is not closed"),
        ("protobuf", "message M { $ }", "is not expected here"),
        ("protobuf", "m {" * 300 + "}" * 300, "nested too deeply"),
        ("json", '{"a": 1, "a": 2}', "the same key twice"),
        ("json", "{'a': 1}", "not JSON"),
    ],
)
def test_what_is_no_schema_is_told(kind: str, text: str, why: str) -> None:
    """A fault that needs no registry to be found is found without one; the text stays as it is."""
    assert why in inspect_schema(kind, text).faults[0].text
    assert inspect_schema(kind, f" {text} ").normal == f" {text}".rstrip()


def test_the_order_of_json_makes_no_difference() -> None:
    """Neither of attributes nor of blanks; the order of a list does."""
    one, other = (
        '{"type": "object", "required": ["a", "b"]}',
        '{"required":["a","b"],"type":"object"}',
    )
    assert inspect_schema("json", one).normal == inspect_schema("json", other).normal
    assert inspect_schema("json", "[1, 2]").normal != inspect_schema("json", "[2, 1]").normal
    assert inspect_schema("json", '{"a": 1.50, "é": 1e2}').normal == '{"a":1.5,"é":100}'


def test_schemas_have_names() -> None:
    """The first message of a file, and the title of a JSON schema."""
    assert FORMATS["protobuf"].find_name(PROTO) == "shop.Order"
    assert FORMATS["json"].find_name('{"title": "Order"}') == "Order"
    for kind, text in (("protobuf", 'syntax = "proto3";'), ("json", "{}")):
        with pytest.raises(ValueError, match="no name"):
            FORMATS[kind].find_name(text)


@settings(max_examples=examples(100), deadline=None)
@given(st.sampled_from(sorted(FORMATS)), st.text(alphabet="a1 {}[]()<>=;,:\"'/*\\\n", max_size=40))
def test_any_text_has_a_normal_form(kind: str, text: str) -> None:
    """No text leads to an error, and its normal form is its own."""
    usual = inspect_schema(kind, text).normal
    assert inspect_schema(kind, usual).normal == usual
