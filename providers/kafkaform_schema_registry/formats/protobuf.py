"""Protobuf files in one spelling, and what they declare: messages with their fields, and enums with
their values.

The spelling has no comments, a statement a line, and statements in the order in which registries
print them. Confluent's registry prints a file again from its parsed form
(`ProtoFileElement.toSchema` of Wire), which moves statements of other kinds, but keeps the order
of fields.

Source: https://protobuf.dev/reference/protobuf/proto3-spec/ and proto2-spec.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import pairwise

from msgspec import Struct

MAX_DEPTH = 50
"""Messages inside of messages."""

_TOKEN = re.compile(
    r"""
    (?P<space>\s+|//[^\n]*|/\*.*?\*/)
    | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<word>[.\w+-]+)
    | (?P<sign>[{}\[\]()<>=;,:/])
    """,
    re.VERBOSE | re.DOTALL,
)
_ORDER = (
    "syntax",
    "edition",
    "package",
    "import",
    "reserved",
    "option",
    "",
    "oneof",
    "extensions",
    "message",
    "enum",
    "extend",
    "service",
    "rpc",
)
"""First words of statements in the order in which they are printed; "" stands for fields."""
_BLOCKS = frozenset({"message", "enum", "extend", "service", "oneof"})
_BEFORE = frozenset({")", "]", ">", ",", ";", ":", "<"})
"""Tokens without a blank before them."""


class NotProtobuf(ValueError):
    """The text is no protobuf file. The message says why; offset: at which character."""

    def __init__(self, message: str, offset: int = 0) -> None:
        super().__init__(message)
        self.offset = offset


class Token(str):
    """A word or sign of a file. offset: at which character it begins."""

    offset = 0

    @property
    def end(self) -> int:
        """The character after it."""
        return self.offset + len(self)


class Statement:
    """Tokens up to a semicolon, or up to a block with statements of its own."""

    def __init__(self, words: list[Token], inner: list[Statement] | None) -> None:
        self.words = words
        self.inner = inner

    @property
    def rank(self) -> int:
        head = self.words[0] if self.words else ""
        # A field can be called `message`: then a name and a number follow, and no block does.
        is_keyword = head in _ORDER and (self.inner is not None or head not in _BLOCKS)
        return _ORDER.index(head if is_keyword else "")

    def render(self, indent: str) -> str:
        words = indent + _join(self.words)
        if self.inner is None:
            return f"{words};"
        body = [statement.render(indent + "  ") for statement in sort_statements(self.inner)]
        return "\n".join([f"{words} {{", *body, f"{indent}}}"]) if body else f"{words} {{}}"


def normalize_protobuf(text: str) -> str:
    """The same file in the usual spelling. Raises NotProtobuf."""
    return "\n".join(statement.render("") for statement in sort_statements(parse_protobuf(text)))


def find_message_name(text: str) -> str:
    """The full name of the first message. Raises NotProtobuf if there is none."""
    statements = parse_protobuf(text)
    package = next(
        (statement.words[1] for statement in statements if statement.words[:1] == ["package"]), ""
    )
    for statement in statements:
        if (
            statement.words[:1] == ["message"]
            and statement.inner is not None
            and len(statement.words) > 1
        ):
            return f"{package}.{statement.words[1]}" if package else statement.words[1]
    raise NotProtobuf("it has no message, so it has no name")


def sort_statements(statements: list[Statement]) -> list[Statement]:
    """In the usual order. Statements of one kind stay as they are."""
    return sorted(statements, key=lambda statement: statement.rank)


def _join(words: Sequence[str]) -> str:
    """The tokens with blanks where a person would write them."""
    text = ""
    for word in words:
        tight = not text or word in _BEFORE or text[-1] in "([<"
        text += word if tight else f" {word}"
    return text


def parse_protobuf(text: str) -> list[Statement]:
    """The statements of a file. Raises NotProtobuf."""
    tokens = list(_scan(text))
    statements, end = _read_statements(tokens, 0, 0)
    if end < len(tokens):
        raise NotProtobuf("a } closes nothing", tokens[end].offset)
    if not statements:
        raise NotProtobuf("it is empty")
    return statements


def _scan(text: str) -> Iterator[Token]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise NotProtobuf(f"{text[position : position + 10]!r} is not expected here", position)
        if match.lastgroup != "space":
            token = Token(_quote(match[0]) if match.lastgroup == "text" else match[0])
            token.offset = position
            yield token
        position = match.end()


def _quote(text: str) -> str:
    """A text in double quotes, however it is written."""
    return text if text[0] == '"' else '"' + text[1:-1].replace('"', '\\"') + '"'


def _read_statements(tokens: list[Token], position: int, depth: int) -> tuple[list[Statement], int]:
    """The statements up to the end of a block, and where it is."""
    if depth > MAX_DEPTH:
        raise NotProtobuf("it is nested too deeply", tokens[position - 1].offset)
    statements: list[Statement] = []
    words: list[Token] = []
    while position < len(tokens) and tokens[position] != "}":
        token = tokens[position]
        position += 1
        if token == ";":
            if words:
                statements.append(Statement(words, None))
            words = []
        elif token == "{" and words[-1:] != ["="]:
            inner, position = _read_statements(tokens, position, depth + 1)
            if position >= len(tokens):
                raise NotProtobuf("a { is not closed", token.offset)
            position += 1
            statements.append(Statement(words, inner))
            words = []
        else:
            # The braces of an option's value are a part of its statement.
            words.append(token)
            if token == "{":
                position = _read_value(tokens, position, words)
    if words:
        raise make_missing_semicolon(words)
    return statements, position


def make_missing_semicolon(words: Sequence[Token]) -> NotProtobuf:
    """The fault of a statement without its end. words: of the statement, up to where it ends."""
    return NotProtobuf(f"a semicolon is missing after {_join(words)[-40:]!r}", words[-1].end)


def _read_value(tokens: list[Token], position: int, words: list[Token]) -> int:
    open_braces = 1
    while open_braces:
        if position >= len(tokens):
            raise NotProtobuf("a { is not closed", tokens[position - 1].offset)
        token = tokens[position]
        open_braces += {"{": 1, "}": -1}.get(token, 0)
        words.append(token)
        position += 1
    return position


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
    default: str = ""
    """The value of its option `default`, as it is written; empty for none."""
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
    extensions: tuple[int, ...] = ()
    """At which characters its ranges for extensions begin."""


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
    messages_of_services: tuple[tuple[str, int], ...] = ()
    """The types of what services take and return, and at which characters they are."""


# Names, faults and differences of one text are asked for one after the other.
@lru_cache(maxsize=64)
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
    sent = tuple(_list_sent(statements))
    syntax = [*heads["syntax"], *heads["edition"], "proto2"][0]
    if len(heads["package"]) > 1:
        raise NotProtobuf("it names two packages")
    package = "".join(heads["package"])
    return ProtobufFile(package, syntax, tuple(heads["import"]), messages, enums, sent)


def _list_sent(statements: Sequence[Statement]) -> Iterator[tuple[str, int]]:
    """`rpc Get (stream Ask) returns (Answer)`: the words before the closing brackets."""
    for service in statements:
        for item in (service.inner or ()) if service.words[:1] == ["service"] else ():
            for word, bracket in pairwise(item.words) if item.words[:1] == ["rpc"] else ():
                if bracket == ")" and word != "(":
                    yield str(word), word.offset


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
    extensions: list[int] = []
    messages[path] = ProtobufMessage(())
    for item in inner:
        head = item.words[0] if item.words else Token()
        if head == "reserved":
            reserved += item.words[1:]
        elif head == "extensions" and "=" not in item.words[:3]:
            extensions.append(head.offset)
        elif item.words[1:2] == ["oneof"] and head in LABELS and item.inner is not None:
            raise NotProtobuf(f"a oneof cannot be {head}", head.offset)
        elif head == "oneof" and item.inner is not None:
            name = item.words[1] if len(item.words) > 1 else Token()
            members = [
                _read_field(field, name)
                for field in item.inner
                if field.words and field.words[0] != "option"
            ]
            if not members:
                raise NotProtobuf(f"the oneof {name} has no field", head.offset)
            fields += members
        elif _is_field(item):
            fields.append(_read_field(item, ""))
        else:
            _read_block(item, f"{path}.", messages, enums)
    messages[path] = ProtobufMessage(tuple(fields), *_read_reserved(reserved), tuple(extensions))


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


def _read_field(statement: Statement, oneof: str) -> ProtobufField:
    words = statement.words
    start = words[0].offset
    if "=" not in words:
        raise NotProtobuf(f"the field {' '.join(words)[:40]!r} has no number", start)
    at = words.index(Token("="))
    label = words[0] if words[0] in LABELS and at > 2 else ""
    kind, name = words[1 if label else 0 : at - 1], words[at - 1]
    number = read_integer(words[at + 1]) if len(words) > at + 1 else None
    if not kind or not name.isidentifier():
        raise NotProtobuf(f"{' '.join(words)[:40]!r} is no field: TYPE NAME = NUMBER", start)
    if number is None:
        raise NotProtobuf(f"the field {name} has no number", start)
    if len(words) > at + 2 and words[at + 2] != "[":
        raise make_missing_semicolon(words[: at + 2])
    type_text = "".join(kind).replace(",", ", ")
    options = words[at + 2 :]
    # The last word is the bracket, so that a value follows.
    named = [n for n, word in enumerate(options[:-2]) if word == "default"]
    default = next((str(options[n + 2]) for n in named if options[n + 1] == "="), "")
    return ProtobufField(str(name), number, type_text, str(label), str(oneof), default, start)


def _read_enum(statements: Sequence[Statement]) -> ProtobufEnum:
    values: list[tuple[str, int, int]] = []
    aliases = False
    for item in statements:
        words = item.words
        if words[:2] == ["option", "allow_alias"]:
            aliases = words[-1] == "true"
        elif words and words[0] not in ("option", "reserved"):
            number = read_integer(words[2]) if len(words) > 2 and words[1] == "=" else None
            if number is None:
                text = f"{' '.join(words)[:40]!r} is no value of an enum: NAME = NUMBER"
                raise NotProtobuf(text, words[0].offset)
            if len(words) > 3 and words[3] != "[":
                raise make_missing_semicolon(words[:3])
            values.append((str(words[0]), number, words[0].offset))
    return ProtobufEnum(tuple(values), aliases)


def read_integer(word: str) -> int | None:
    """A number in decimal, hexadecimal or octal digits; None if it is none."""
    for base in (0, 8):
        try:
            return int(word, base)
        except ValueError:
            continue
    return None


def _read_reserved(words: Sequence[Token]) -> tuple[tuple[Range, ...], tuple[str, ...]]:
    """Numbers and names of reserved statements: `2, 9 to 11, "old"`. Raises NotProtobuf."""
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
            first = int(word)
            if first > last:
                raise NotProtobuf(f"reserved {first} to {last} is no range", word.offset)
            if any(first <= end and last >= begin for begin, end in ranges):
                raise NotProtobuf(f"the number {first} is reserved twice", word.offset)
            ranges.append((first, last))
        position += 1
    return tuple(ranges), tuple(names)
