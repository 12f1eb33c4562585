"""Protobuf files in one spelling: without comments, a statement a line, and statements in the order
in which registries print them.

Confluent's registry prints a file again from its parsed form (`ProtoFileElement.toSchema` of Wire),
which moves statements of other kinds, but keeps the order of fields.

Source: https://protobuf.dev/reference/protobuf/proto3-spec/ and proto2-spec.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

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
    """The text is no protobuf file. The message says why."""


class _Statement:
    """Tokens up to a semicolon, or up to a block with statements of its own."""

    def __init__(self, words: list[str], inner: list[_Statement] | None) -> None:
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
        body = [one.render(indent + "  ") for one in sort_statements(self.inner)]
        return "\n".join([f"{words} {{", *body, f"{indent}}}"]) if body else f"{words} {{}}"


def normalize_protobuf(text: str) -> str:
    """The same file in the usual spelling. Raises NotProtobuf."""
    return "\n".join(one.render("") for one in sort_statements(_parse(text)))


def find_message_name(text: str) -> str:
    """The full name of the first message. Raises NotProtobuf if there is none."""
    statements = _parse(text)
    package = next((one.words[1] for one in statements if one.words[:1] == ["package"]), "")
    for one in statements:
        if one.words[:1] == ["message"] and one.inner is not None and len(one.words) > 1:
            return f"{package}.{one.words[1]}" if package else one.words[1]
    raise NotProtobuf("it has no message, so it has no name")


def sort_statements(statements: list[_Statement]) -> list[_Statement]:
    """In the usual order. Statements of one kind stay as they are."""
    return sorted(statements, key=lambda one: one.rank)


def _join(words: list[str]) -> str:
    """The tokens with blanks where a person would write them."""
    text = ""
    for word in words:
        tight = not text or word in _BEFORE or text[-1] in "([<"
        text += word if tight else f" {word}"
    return text


def _parse(text: str) -> list[_Statement]:
    tokens = list(_scan(text))
    statements, end = _read_statements(tokens, 0, 0)
    if end < len(tokens):
        raise NotProtobuf("a } closes nothing")
    if not statements:
        raise NotProtobuf("it is empty")
    return statements


def _scan(text: str) -> Iterator[str]:
    position = 0
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            raise NotProtobuf(f"{text[position : position + 10]!r} is not expected here")
        position = match.end()
        if match.lastgroup == "text":
            body = match[0][1:-1]
            yield match[0] if match[0][0] == '"' else '"' + body.replace('"', '\\"') + '"'
        elif match.lastgroup != "space":
            yield match[0]


def _read_statements(tokens: list[str], position: int, depth: int) -> tuple[list[_Statement], int]:
    """The statements up to the end of a block, and where it is."""
    if depth > MAX_DEPTH:
        raise NotProtobuf("it is nested too deeply")
    found: list[_Statement] = []
    words: list[str] = []
    while position < len(tokens) and (tokens[position] != "}" or words):
        token = tokens[position]
        position += 1
        if token == ";":
            if words:
                found.append(_Statement(words, None))
            words = []
        elif token == "{" and ("=" not in words or "group" in words[:2]):
            inner, position = _read_statements(tokens, position, depth + 1)
            if position >= len(tokens):
                raise NotProtobuf("a { is not closed")
            position += 1
            found.append(_Statement(words, inner))
            words = []
        else:
            # The braces of an option's value are a part of its statement.
            words.append(token)
            if token == "{":
                position = _read_value(tokens, position, words)
    if words:
        raise NotProtobuf(f"a semicolon is missing after {' '.join(words)[:40]!r}")
    return found, position


def _read_value(tokens: list[str], position: int, words: list[str]) -> int:
    open_braces = 1
    while open_braces:
        if position >= len(tokens):
            raise NotProtobuf("a { is not closed")
        token = tokens[position]
        open_braces += {"{": 1, "}": -1}.get(token, 0)
        words.append(token)
        position += 1
    return position
