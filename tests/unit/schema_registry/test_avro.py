"""Avro: one spelling for equal schemas, what differs between two, and who can read what."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform_schema_registry.formats.avro import (
    AvroType,
    NotAvro,
    find_record_name,
    normalize_avro,
    open_schema,
    parse_avro,
)
from kafkaform_schema_registry.formats.avro_judgements import find_unreadable, list_avro_edits

from ...kit.quick import examples
from ...kit.schema_registry.schemas import AMOUNT, ID, NOTE, field, record


def opened(text: str) -> AvroType:
    return open_schema(parse_avro(text))


def changes(before: str, after: str) -> tuple[str, ...]:
    return tuple(edit.text for edit in list_avro_edits(opened(before), opened(after)))


def causes(reader: str, writer: str) -> list[tuple[str, str]]:
    return [(one.path, one.text) for one in find_unreadable(opened(reader), opened(writer))]


@pytest.mark.parametrize(
    ("given", "usual"),
    [
        (' { "type" : "string" } ', '"string"'),
        ('{"type": {"type": "long"}}', '"long"'),
        ('["null", {"type": "int"}]', '["null","int"]'),
        ('{"values":"bytes","type":"map"}', '{"type":"map","values":"bytes"}'),
        (
            '{"logicalType":"timestamp-millis","type":"long"}',
            '{"type":"long","logicalType":"timestamp-millis"}',
        ),
        (
            '{"symbols":["B","A"],"name":"a.b.E","type":"enum"}',
            '{"type":"enum","name":"E","namespace":"a.b","symbols":["B","A"]}',
        ),
        (
            '{"size":16,"name":"F","type":"fixed","aliases":["H","G"]}',
            '{"type":"fixed","name":"F","size":16,"aliases":["G","H"]}',
        ),
        (
            '{"type":"record","name":"R","namespace":"n","fields":[{"order":"ascending",'
            '"type":"n.R","name":"next","default":{"b":1,"a":2}}]}',
            '{"type":"record","name":"R","namespace":"n","fields":[{"name":"next","type":"R",'
            '"default":{"a":2,"b":1}}]}',
        ),
        (
            '{"type":"record","name":"R","namespace":"n","fields":[{"name":"e","type":'
            '{"name":"E","namespace":"n","type":"enum","symbols":["A"]}}]}',
            '{"type":"record","name":"R","namespace":"n","fields":[{"name":"e","type":'
            '{"type":"enum","name":"E","symbols":["A"]}}]}',
        ),
    ],
)
def test_equal_schemas_have_one_spelling(given: str, usual: str) -> None:
    """The spelling is the one in which Avro's Java library prints a schema."""
    assert normalize_avro(given) == usual
    assert normalize_avro(usual) == usual


@pytest.mark.parametrize(
    "other",
    [
        record(field("id", "long", doc="what")),
        record(field("id", "long", default=0)),
        record(field("id", "long", aliases=["key"])),
        record(field("id", "int")),
        record(field("id", "long", order="ignore")),
        record(ID, name="Other"),
        record(field("id", {"type": "long", "logicalType": "timestamp-micros"})),
    ],
)
def test_what_clients_can_see_makes_another_schema(other: str) -> None:
    """doc, default, aliases, order and properties are differences, and each of them is told."""
    assert normalize_avro(other) != normalize_avro(record(ID))
    assert changes(record(ID), other)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "not JSON"),
        ('{"type":"record","name":"R"}', "has no fields"),
        ('{"type":"record","fields":[]}', "has no name"),
        ('{"type":"record","name":"R","fields":[{"name":"a"}]}', "has no type"),
        ('{"type":"record","name":"R","fields":[1]}', "has no name"),
        ('{"type":"enum","name":"E"}', "has no symbols"),
        ('{"type":"array"}', "has no items"),
        ('{"name":"x"}', "an object with a type"),
        ("7", "a schema is"),
        ('{"type":"string","type":"int"}', "the same key twice"),
        ('{"type":"record","name":"R","fields":[],"x":NaN}', "NaN"),
        ("[" * 500 + "]" * 500, "too deeply"),
    ],
)
def test_what_is_no_avro_schema_is_told(text: str, why: str) -> None:
    """The message says what is missing, and nothing hostile gets further."""
    with pytest.raises(NotAvro, match=why):
        normalize_avro(text)


def test_a_record_is_called_by_its_full_name() -> None:
    """As the strategies of serializers name subjects."""
    assert find_record_name('{"type":"record","name":"R","namespace":"a.b","fields":[]}') == "a.b.R"
    assert find_record_name('{"type":"record","name":"c.R","fields":[]}') == "c.R"
    with pytest.raises(NotAvro, match="has no name"):
        find_record_name('"string"')


# ── differences ─────────────────────────────────────────────────────────────────────────


def test_each_difference_is_told_by_its_field() -> None:
    """Added with and without a default, removed, changed, deep inside as well."""
    inner = {"type": "record", "name": "In", "fields": [field("zip"), field("old", "int")]}
    changed = {"type": "record", "name": "In", "fields": [field("zip", "bytes"), AMOUNT]}
    before = record(ID, field("gone"), field("place", inner))
    after = record(field("id", "string"), NOTE, field("place", changed), field("more", "int"))
    assert changes(before, after) == (
        "field id: the type changes from long to string",
        "field note is added: null or string, default null",
        "field place.zip: the type changes from string to bytes",
        "field place.amount is added: int, no default",
        "field place.old is removed: int, no default",
        "field more is added: int, no default",
        "field gone is removed: string, no default",
    )


def test_symbols_and_order_are_told() -> None:
    """Of enums, of unions, and of the fields of a record."""
    kind = {"type": "enum", "name": "E", "symbols": ["A", "B"]}
    assert changes(json.dumps(kind), json.dumps({**kind, "symbols": ["B", "C"]})) == (
        "enum E: symbol C is added",
        "enum E: symbol A is removed",
    )
    assert changes('["int","string"]', '["string","int"]') == (
        "the schema: the branches of the union change order",
    )
    assert changes(record(ID, AMOUNT), record(AMOUNT, ID)) == (
        "record Order: fields change their order",
    )


def test_recursive_records_end() -> None:
    """A list that contains itself is compared once."""
    text = record(field("next", ["null", "Order"]))
    longer = record(field("next", ["null", "Order"]), NOTE)
    assert changes(text, longer) == ("field note is added: null or string, default null",)
    assert causes(longer, text) == []


# ── readers and writers ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("reader", "writer", "path"),
    [
        (record(ID), record(ID, AMOUNT), None),
        (record(ID, AMOUNT), record(ID), "amount"),
        (record(ID, NOTE), record(ID), None),
        (record(field("id", "long")), record(field("id", "int")), None),
        (record(field("id", "int")), record(field("id", "long")), "id"),
        (record(field("id", "bytes")), record(field("id", "string")), None),
        (record(field("id", ["null", "long"])), record(field("id", "int")), None),
        (record(field("id", "long")), record(field("id", ["null", "long"])), "id"),
        (record(field("key", "long", aliases=["id"])), record(ID), None),
        (record(ID, name="Other"), record(ID), ""),
        (
            '{"type":"enum","name":"E","symbols":["A"]}',
            '{"type":"enum","name":"E","symbols":["A","B"]}',
            "",
        ),
        (
            '{"type":"enum","name":"E","symbols":["A"],"default":"A"}',
            '{"type":"enum","name":"E","symbols":["A","B"]}',
            None,
        ),
        (
            '{"type":"fixed","name":"F","size":1}',
            '{"type":"fixed","name":"F","size":2}',
            "",
        ),
        ('{"type":"array","items":"long"}', '{"type":"array","items":"int"}', None),
        ('{"type":"map","values":"int"}', '{"type":"map","values":"long"}', ""),
        ('"defined.Elsewhere"', '"int"', None),
    ],
)
def test_schema_resolution(reader: str, writer: str, path: str | None) -> None:
    """The rules of the specification; None: it can be read."""
    found = causes(reader, writer)
    assert [place for place, _ in found] == ([] if path is None else [path])


NAMES = st.sampled_from(["a", "b", "c"])
PLAIN = st.sampled_from(["null", "boolean", "int", "long", "float", "double", "bytes", "string"])


def _records(depth: int) -> st.SearchStrategy[Any]:
    inner = PLAIN if depth == 0 else st.one_of(PLAIN, _records(depth - 1), _containers(depth - 1))
    fields = st.dictionaries(NAMES, st.tuples(inner, st.booleans()), max_size=3)
    return fields.map(
        lambda found: {
            "type": "record",
            "name": f"R{depth}",
            "fields": [
                field(name, ["null", kind] if maybe and kind != "null" else kind)
                | ({"default": None} if maybe else {})
                for name, (kind, maybe) in found.items()
            ],
        }
    )


def _containers(depth: int) -> st.SearchStrategy[Any]:
    inner = PLAIN if depth == 0 else _records(depth)
    return inner.map(lambda kind: {"type": "array", "items": kind})


def _shuffle(value: Any, dice: random.Random) -> Any:
    """The same document with the keys of all objects in another order."""
    if isinstance(value, dict):
        keys = list(value)
        dice.shuffle(keys)
        return {key: _shuffle(value[key], dice) for key in keys}
    return [_shuffle(item, dice) for item in value] if isinstance(value, list) else value


@settings(max_examples=examples(100), deadline=None)
@given(_records(2), st.integers(0, 9))
def test_order_and_blanks_make_no_difference(schema: Any, seed: int) -> None:
    """Whatever a schema looks like: its normal form is stable, nothing differs, and it reads what
    it writes."""
    other = json.dumps(_shuffle(schema, random.Random(seed)), indent=seed)  # noqa: S311  # no secret
    usual = normalize_avro(json.dumps(schema))
    assert normalize_avro(other) == usual == normalize_avro(usual)
    assert changes(json.dumps(schema), other) == ()
    assert causes(other, usual) == []


@settings(max_examples=examples(100), deadline=None)
@given(_records(2), _records(2))
def test_different_schemas_are_told_apart(one: Any, two: Any) -> None:
    """Two schemas are equal if and only if nothing differs between them."""
    equal = normalize_avro(json.dumps(one)) == normalize_avro(json.dumps(two))
    assert (changes(json.dumps(one), json.dumps(two)) == ()) is equal


@settings(max_examples=examples(100), deadline=None)
@given(st.text(max_size=60))
def test_any_text_is_a_schema_or_not_avro(text: str) -> None:
    """No text leads to another error."""
    try:
        normalize_avro(text)
    except NotAvro as error:
        assert str(error)
