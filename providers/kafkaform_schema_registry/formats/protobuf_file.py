"""What a protobuf file declares: messages with their fields, and enums with their values.

Source: https://protobuf.dev/reference/protobuf/proto3-spec/ and proto2-spec.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from .protobuf import NotProtobuf, Statement, Token, make_missing_semicolon, parse_protobuf

LABELS = ("optional", "repeated", "required")
MAX_NUMBER = 2**29 - 1
"""Of a field."""
Range = tuple[int, int]


class ProtobufField(Struct, frozen=True):
    """One field of a message."""

    name: str
    number: int
    type: str
    """As it is written: `string`, `shop.Money`, `map<string, int32>`."""
    label: str = ""
    """`repeated`, `optional`, `required`; empty for none."""
    oneof: str = ""
    """The oneof that it is in; empty for none."""
    offset: int = 0
    """At which character it begins."""

    def describe(self) -> str:
        """Its type for people: `repeated string`, `Card, in oneof payment`."""
        kind = f"{self.label} {self.type}" if self.label else self.type
        return f"{kind}, in oneof {self.oneof}" if self.oneof else kind


class ProtobufMessage(Struct, frozen=True):
    """One message."""

    fields: tuple[ProtobufField, ...]
    reserved: tuple[Range, ...] = ()
    """Numbers that no field may have, first and last."""
    reserved_names: tuple[str, ...] = ()


class ProtobufEnum(Struct, frozen=True):
    """One enum. values: name, number, at which character it begins."""

    values: tuple[tuple[str, int, int], ...]
    aliases: bool = False
    """Several names may have one number."""


class ProtobufFile(Struct, frozen=True):
    """All of a file that decides how records are written."""

    package: str
    syntax: str
    """`proto2` (also without a syntax statement), `proto3`, or an edition."""
    imports: tuple[str, ...]
    messages: Mapping[str, ProtobufMessage]
    """Path inside of the file (`Order.Line`) -> the message."""
    enums: Mapping[str, ProtobufEnum]


def open_protobuf(text: str) -> ProtobufFile:
    """What a file declares. Raises NotProtobuf."""
    statements = parse_protobuf(text)
    messages: dict[str, ProtobufMessage] = {}
    enums: dict[str, ProtobufEnum] = {}
    heads: dict[str, list[str]] = {"syntax": [], "edition": [], "package": [], "import": []}
    for statement in statements:
        head = statement.words[0] if statement.words else ""
        if head in heads:
            heads[head].append(_read_head(statement).strip('"'))
        else:
            _read_block(statement, "", messages, enums)
    syntax = [*heads["syntax"], *heads["edition"], "proto2"][0]
    package = "".join(heads["package"][:1])
    return ProtobufFile(package, syntax, tuple(heads["import"]), messages, enums)


_HEADS: Mapping[str, tuple[int, ...]] = {
    "syntax": (3,),
    "edition": (3,),
    "package": (2,),
    "import": (2, 3),
}
"""First word -> how many words the statement has. `import` may have `public` or `weak`."""


def _read_head(statement: Statement) -> str:
    """The last word of a statement of `_HEADS`."""
    words = statement.words
    length = max(_HEADS[words[0]])
    if words[0] == "import" and len(words) > 1 and words[1].startswith('"'):
        length = 2
    if len(words) > length or statement.inner is not None:
        raise make_missing_semicolon(words[:length])
    if len(words) not in _HEADS[words[0]]:
        raise NotProtobuf(f"{words[0]} says nothing", words[0].offset)
    return str(words[-1])


def _read_block(
    statement: Statement,
    outer: str,
    messages: dict[str, ProtobufMessage],
    enums: dict[str, ProtobufEnum],
) -> None:
    """Note what a statement declares that is no field. outer: the message around it, with a dot."""
    words, inner = statement.words, statement.inner
    if not words:
        raise NotProtobuf("a block in braces has no name")
    if inner is None or words[0] not in ("message", "enum"):
        if inner is None and words[0] in ("message", "enum", "service", "oneof"):
            raise NotProtobuf(f"{' '.join(words)[:40]!r} has no block in braces", words[0].offset)
        if words[0] == "option" and inner is not None:
            raise make_missing_semicolon(words[:4])
        return
    if len(words) != 2 or not words[1].isidentifier():
        raise NotProtobuf(f"{' '.join(words)[:40]!r} is no name of a {words[0]}", words[0].offset)
    path = f"{outer}{words[1]}"
    if path in messages or path in enums:
        raise NotProtobuf(f"{path} is defined twice", words[1].offset)
    if words[0] == "enum":
        enums[path] = _read_enum(inner)
        return
    fields: list[ProtobufField] = []
    reserved: list[Token] = []
    messages[path] = ProtobufMessage(())
    for item in inner:
        head = item.words[0] if item.words else Token()
        if head == "reserved":
            reserved += item.words[1:]
        elif head == "oneof" and item.inner is not None:
            name = item.words[1] if len(item.words) > 1 else ""
            fields += (_read_field(field, name) for field in _list_fields(item.inner))
        elif _is_field(item):
            fields.append(_read_field(item, ""))
        else:
            _read_block(item, f"{path}.", messages, enums)
    messages[path] = ProtobufMessage(tuple(fields), *_read_reserved(reserved))


def _is_field(statement: Statement) -> bool:
    """A field can be called `message` or `option`: then a name and a number follow."""
    words = statement.words
    if not words:
        return False
    if statement.inner is not None:
        return words[0] not in ("message", "enum", "oneof", "extend", "service") and "=" in words
    if words[0] in ("option", "extensions"):
        return False
    return words[0] not in ("message", "enum", "oneof") or "=" in words


def _list_fields(statements: Sequence[Statement]) -> Iterator[Statement]:
    return (item for item in statements if item.words and item.words[0] != "option")


def _read_field(statement: Statement, oneof: str) -> ProtobufField:
    words = statement.words
    start = words[0].offset
    if "=" not in words:
        raise NotProtobuf(f"the field {' '.join(words)[:40]!r} has no number", start)
    at = words.index(Token("="))
    label = words[0] if words[0] in LABELS and at > 2 else ""
    kind, name = words[1 if label else 0 : at - 1], words[at - 1]
    number = _read_integer(words[at + 1]) if len(words) > at + 1 else None
    if not kind or not name.isidentifier():
        raise NotProtobuf(f"{' '.join(words)[:40]!r} is no field: TYPE NAME = NUMBER", start)
    if number is None:
        raise NotProtobuf(f"the field {name} has no number", start)
    if len(words) > at + 2 and words[at + 2] != "[":
        raise make_missing_semicolon(words[: at + 2])
    type_text = "".join(kind).replace(",", ", ")
    return ProtobufField(str(name), number, type_text, str(label), str(oneof), start)


def _read_enum(statements: Sequence[Statement]) -> ProtobufEnum:
    values: list[tuple[str, int, int]] = []
    aliases = False
    for item in statements:
        words = item.words
        if words[:2] == ["option", "allow_alias"]:
            aliases = words[-1] == "true"
        elif words and words[0] not in ("option", "reserved"):
            number = _read_integer(words[2]) if len(words) > 2 and words[1] == "=" else None
            if number is None:
                text = f"{' '.join(words)[:40]!r} is no value of an enum: NAME = NUMBER"
                raise NotProtobuf(text, words[0].offset)
            if len(words) > 3 and words[3] != "[":
                raise make_missing_semicolon(words[:3])
            values.append((str(words[0]), number, words[0].offset))
    return ProtobufEnum(tuple(values), aliases)


def _read_integer(word: str) -> int | None:
    """A number in decimal, hexadecimal or octal digits; None if it is none."""
    for base in (0, 8):
        try:
            return int(word, base)
        except ValueError:
            continue
    return None


def _read_reserved(words: Sequence[Token]) -> tuple[tuple[Range, ...], tuple[str, ...]]:
    """Numbers and names of reserved statements: `2, 9 to 11, "old"`."""
    ranges: list[Range] = []
    names: list[str] = []
    position = 0
    while position < len(words):
        word = words[position]
        if word.startswith('"'):
            names.append(word.strip('"'))
        elif word.isdigit():
            last = int(word)
            if words[position + 1 : position + 2] == ["to"] and position + 2 < len(words):
                end = words[position + 2]
                last = int(end) if end.isdigit() else MAX_NUMBER
                position += 2
            ranges.append((int(word), last))
        position += 1
    return tuple(ranges), tuple(names)
