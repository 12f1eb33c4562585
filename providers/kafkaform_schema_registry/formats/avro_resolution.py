"""Who can read what: Avro's schema resolution, as its Java library decides it.

Source: https://avro.apache.org/docs/1.12.0/specification/#schema-resolution, and
`SchemaCompatibility` of Avro's Java library for names: it compares them without namespaces.
"""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from .avro import NAMED, AvroType

PROMOTIONS = frozenset(
    {
        ("int", "long"),
        ("int", "float"),
        ("int", "double"),
        ("long", "float"),
        ("long", "double"),
        ("float", "double"),
        ("string", "bytes"),
        ("bytes", "string"),
    }
)
"""(written type, read type): readers convert these."""


class Unreadable(Struct, frozen=True):
    """Why a reader cannot read what a writer wrote."""

    path: str
    """The field, with dots: `address.zip`; empty for the schema as a whole."""
    text: str
    """A part of a sentence: `has no default, and the writer does not write it`."""


Pair = tuple[str, str]


def find_unreadable(reader: AvroType, writer: AvroType) -> tuple[Unreadable, ...]:
    """Everything that keeps this reader from reading; nothing if it can read."""
    return tuple(dict.fromkeys(_check(reader, writer, "", frozenset())))


def _check(
    reader: AvroType, writer: AvroType, path: str, visited: frozenset[Pair]
) -> Iterator[Unreadable]:
    """visited: pairs of named types that are being checked already, which ends recursive types."""
    if writer.kind == "union":
        for branch in writer.list_branches():
            yield from _check(reader, branch, path, visited)
        return
    if reader.kind == "union":
        branches = reader.list_branches()
        if not any(_reads(branch, writer, path, visited) for branch in branches):
            yield Unreadable(
                path, f"is written as {writer.describe()}, read as {reader.describe()}"
            )
        return
    # What another subject defines is not here to be compared.
    if not (reader.is_known and writer.is_known):
        return
    kind = reader.kind
    if kind != writer.kind:
        if (writer.kind, kind) not in PROMOTIONS:
            yield Unreadable(
                path, f"is written as {writer.describe()}, read as {reader.describe()}"
            )
    elif kind in NAMED:
        names = reader.name, writer.name
        if names not in visited:
            yield from _check_named(reader, writer, path, visited | {names})
    elif kind in ("array", "map"):
        yield from _check(reader.get_content(), writer.get_content(), path, visited)


def _reads(reader: AvroType, writer: AvroType, path: str, visited: frozenset[Pair]) -> bool:
    return next(_check(reader, writer, path, visited), None) is None


def _check_named(
    reader: AvroType, writer: AvroType, path: str, visited: frozenset[Pair]
) -> Iterator[Unreadable]:
    reader_type, writer_type = reader.resolve(), writer.resolve()
    if not _has_name(reader_type, writer_type):
        yield _make_mismatch(reader, writer, path)
    elif reader.kind == "enum":
        missing = [s for s in writer_type.node["symbols"] if s not in reader_type.node["symbols"]]
        if missing and "default" not in reader_type.node:
            symbols = ", ".join(missing[:5])
            yield Unreadable(path, f"can be {symbols}, which the reader does not know")
    elif reader.kind == "fixed":
        if reader_type.node.get("size") != writer_type.node.get("size"):
            yield Unreadable(path, "has another size")
    else:
        yield from _check_fields(reader_type, writer_type, path, visited)


def _check_fields(
    reader: AvroType, writer: AvroType, path: str, visited: frozenset[Pair]
) -> Iterator[Unreadable]:
    written = {field["name"]: field for field in writer.list_fields()}
    for field in reader.list_fields():
        names = (field["name"], *field.get("aliases", ()))
        source = next((written[name] for name in names if name in written), None)
        field_path = f"{path}.{field['name']}" if path else field["name"]
        if source is not None:
            inner = reader.go_into(field["type"]), writer.go_into(source["type"])
            yield from _check(*inner, field_path, visited)
        elif "default" not in field:
            yield Unreadable(field_path, "is not written, and the reader has no default for it")


def _has_name(reader: AvroType, writer: AvroType) -> bool:
    aliases = reader.node.get("aliases", ())
    full = {alias if "." in alias else f"{reader.inner_space}.{alias}" for alias in aliases}
    return reader.node["name"] == writer.node["name"] or bool({*full, *aliases} & {writer.name})


def _make_mismatch(reader: AvroType, writer: AvroType, path: str) -> Unreadable:
    text = f"is written as {writer.describe()} and read as {reader.describe()}"
    return Unreadable(path, text)
