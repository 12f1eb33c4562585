"""Wrong and sound schemas of every format, for each that judges them: ours, the simulated registry,
and whatever real one is at hand. Sources: Avro 1.12 (`Schema` of its Java library), the metaschemas
of JSON Schema, and the specifications of the protobuf language (protobuf.dev).

Apicurio 2.6 refuses the wrong ones but these: a property whose schema is a number; and of protobuf
keys of a map that are floats, the number 0, reserved numbers, doubled numbers across a oneof, and
enums that are empty or do not begin with 0. It takes the sound ones but both JSON schemas and the
file of an edition, from which it does not find out the format."""

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


WRONG: tuple[Case, ...] = (
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
    _json(properties={"a": 1}),
    ("protobuf", 'syntax = "proto9";\nmessage A { string a = 1; }'),
    _protobuf("message A { required string a = 1; }"),
    _protobuf("message A { map<float, string> a = 1; }"),
    _protobuf("message A { repeated map<string, string> a = 1; }"),
    _protobuf("message A { oneof x { repeated string a = 1; } }"),
    _protobuf("message A { string a = 0; }"),
    _protobuf("message A { string a = 1; oneof x { int32 b = 1; } }"),
    _protobuf("message A { reserved 1; string a = 1; }"),
    _protobuf("enum E { }"),
    _protobuf("enum E { A = 1; }"),
    _protobuf("enum E { A = 0; B = 3000000000; }"),
    _protobuf("message A { } message A { }"),
)
SOUND: tuple[Case, ...] = (
    ("avro", record(field("ä", ["null", "string"], default="x"))),
    _avro(type="record", name="shop.int", fields=[]),
    _avro(type="enum", name="E", symbols=["A", "B"], default="B"),
    _json(type=["string", "null"], readOnly=True, minContains=0),
    _json(dependencies={"a": ["b"], "c": {"type": "object"}}, dependentRequired={"a": ["b"]}),
    ("protobuf", 'edition = "2023";\nmessage A { string a = 1; }'),
    ("protobuf", "message A { required string a = 1; }"),
    _protobuf("message A { map<sint64, A> a = 1; oneof x { string b = 2; } }"),
    _protobuf("enum E { A = 0; B = -2147483648; }\nmessage M { repeated E e = 1; }"),
)
