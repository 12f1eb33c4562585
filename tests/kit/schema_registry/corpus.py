"""Wrong and sound schemas of every format, for each that judges them: ours, the simulated registry,
and the real one. Sources: Avro 1.12 (`Schema` of its Java library), the metaschemas of JSON Schema,
and the specifications of the protobuf language (protobuf.dev), as protoc 31 judges it."""

from __future__ import annotations

import json

from .schemas import field, record

Case = tuple[str, str]
"""Format and text."""

_STATE = {"type": "enum", "name": "State", "symbols": ["OPEN"]}
_PROTO3 = 'syntax = "proto3";\n'


def _avro(**members: object) -> Case:
    return "avro", json.dumps(members)


def _json(**members: object) -> Case:
    return "json", json.dumps(members)


def _protobuf(body: str) -> Case:
    return "protobuf", _PROTO3 + body


_DRAFT_07 = "http://json-schema.org/draft-07/schema#"

REFUSED: tuple[Case, ...] = (
    ("avro", record(field("a-b"))),
    ("avro", record(field("a"), field("a"))),
    ("avro", record(field("a", _STATE), field("b", {**_STATE, "symbols": ["PAID"]}))),
    ("avro", record(field("a", "int", default="x"))),
    ("avro", record(field("a", "int", default=2**31))),
    ("avro", record(field("a", aliases="b"))),
    ("avro", record(field("a", "lng"))),
    ("avro", '["int", "int"]'),
    _avro(type="record", name="int", fields=[]),
    _avro(type="record", name="shop.1Order", fields=[]),
    _avro(type="enum", name="E", symbols=["A", "A"]),
    _avro(type="enum", name="E", symbols=["A"], default="B"),
    _avro(type="fixed", name="F", size=-1),
    _json(type=["string", "string"]),
    _json(type="strng"),
    _json(minContains=-1),
    _json(readOnly="yes"),
    _json(dependentRequired={"a": "b"}),
    _json(dependencies={"a": 1}),
    _json(anyOf=[]),
    _json(pattern="a[b"),
    _json(patternProperties={"(": {}}),
    _json(**{"$anchor": "1 a"}),
    _json(**{"$ref": "#money"}),
    ("protobuf", 'syntax = "proto9";\nmessage A { string a = 1; }'),
    ("protobuf", 'syntax = "proto2";\nmessage A { string a = 1; }'),
    ("protobuf", "message A { string a = 1; }"),
    _protobuf("message A { required string a = 1; }"),
    _protobuf("message A { repeated map<string, string> a = 1; }"),
    _protobuf("message A { oneof x { repeated string a = 1; } }"),
    _protobuf("message A { optional oneof x { string a = 1; } }"),
    _protobuf("enum E { A = 0; B = 3000000000; }"),
    _protobuf("message A { } message A { }"),
)
"""What Apicurio 2.6 refuses, too."""
TAKEN: tuple[Case, ...] = (
    _json(properties={"a": 1}),
    _json(exclusiveMinimum=True, **{"$schema": _DRAFT_07}),
    _protobuf("message A { map<float, string> a = 1; }"),
    _protobuf("message A { string a = 0; }"),
    _protobuf("message A { string a = 1; oneof x { int32 b = 1; } }"),
    _protobuf("message A { reserved 1; string a = 1; }"),
    _protobuf("message A { reserved 1, 1; }"),
    _protobuf("message A { reserved 5 to 2; }"),
    _protobuf("message A { oneof x { } }"),
    _protobuf("message A { oneof x { map<string, string> a = 1; } }"),
    _protobuf("message A { oneof x { string x = 1; } }"),
    _protobuf("message A { oneof B { string b = 1; } message B { } }"),
    _protobuf("message A { string B = 1; message B { } }"),
    _protobuf('message A { string a = 1 [default = "x"]; }'),
    _protobuf("message A { extensions 100 to 200; }"),
    _protobuf("message A { repeated group B = 1 { } }"),
    _protobuf("message A { google.protobuf.Timestamp a = 1; }"),
    _protobuf("message A { } service S { rpc Get (B) returns (A); }"),
    _protobuf("package a; package b; message A { }"),
    _protobuf("enum E { }"),
    _protobuf("enum E { A = 1; }"),
    _protobuf("enum E { A = 0; } enum F { A = 0; }"),
    _protobuf("message M { string A = 1; enum E { A = 0; } }"),
    ("protobuf", 'syntax = "proto2";\nmessage A { optional string a = 1 [default = 3]; }'),
    ("protobuf", 'syntax = "proto2";\nmessage A { optional bool a = 1 [default = 1]; }'),
)
"""What is wrong as well, and Apicurio 2.6 takes."""
WRONG = (*REFUSED, *TAKEN)
UNKNOWN: tuple[Case, ...] = (
    _json(type=["string", "null"], readOnly=True, minContains=0),
    _json(dependencies={"a": ["b"], "c": {"type": "object"}}, dependentRequired={"a": ["b"]}),
    _json(pattern="^[(a-z]+\\($"),
    _json(**{"$defs": {"money": {"$anchor": "money"}}, "$ref": "#money"}),
    ("protobuf", 'edition = "2023";\nmessage A { string a = 1 [default = "x"]; }'),
)
"""What is sound, and Apicurio 2.6 cannot tell the format of."""
SOUND: tuple[Case, ...] = (
    *UNKNOWN,
    ("avro", record(field("ä", ["null", "string"], default="x"))),
    _avro(type="record", name="shop.int", fields=[]),
    _avro(type="enum", name="E", symbols=["A", "B"], default="B"),
    _json(
        exclusiveMinimum=True, minimum=1, **{"$schema": "http://json-schema.org/draft-04/schema#"}
    ),
    ("protobuf", "message A { required string a = 1; }"),
    _protobuf("message A { map<sint64, A> a = 1; oneof x { string b = 2; } }"),
    _protobuf("enum E { A = 0; B = -2147483648; }\nmessage M { repeated E e = 1; }"),
    _protobuf("message A { reserved 2, 9 to 11, 15 to max; string default = 1; }"),
    _protobuf("message A { enum E { X = 0; } enum F { Y = 0; } string x = 1; }"),
    _protobuf("message A { } service S { rpc Get (stream A) returns (A); }"),
    (
        "protobuf",
        'syntax = "proto2";\nmessage A { optional sint32 a = 1 [default = -3]; '
        "optional bool b = 2 [deprecated = true, default = true]; extensions 10 to max; }",
    ),
)
