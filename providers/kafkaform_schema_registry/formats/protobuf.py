"""Protobuf files in one spelling: without comments, a statement a line, and statements in the order
in which registries print them.

Confluent's registry prints a file again from its parsed form (`ProtoFileElement.toSchema` of Wire),
which moves statements of other kinds, but keeps the order of fields.

Source: https://protobuf.dev/reference/protobuf/proto3-spec/ and proto2-spec.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

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
