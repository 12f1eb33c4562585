"""HCL's JSON form: parse JSON text into values that know their position, and make expressions of
them by HCL's json/spec.md ("Expressions" and "Static Analysis").

Members keep their order and can repeat, because only the language knows which of them are blocks.
What the values mean (block or argument, template or literal) is decided by `make_expression` and
the language. Positions in the decoded text of a string are mapped back to positions in the file.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from enum import StrEnum
from typing import TypeAlias
from unicodedata import normalize

from msgspec import Struct, field

from ..core.diagnostics import Diagnostic, Diagnostics, Range
from . import faults, nodes, parse
from .faults import Complaint, SyntaxFault, make_fault
from .nodes import (
    COLLECTION_ELEMENTS,
    DIAGNOSTICS,
    NESTING,
    STRING_CHARACTERS,
    TOKENS,
    Expression,
    Lit,
    Node,
    Source,
)
from .parse import make_source, parse_expression_source, parse_template_source, pause_collector
from .terms import make_number_fault, parse_exact

OffsetMarks: TypeAlias = tuple[tuple[int, int], ...]
"""Pairs (offset in the decoded text, offset in the JSON text): from each pair on, both texts are
the same until the next escape."""

_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})"
    r"|u([0-9a-fA-F]{4})|([\"\\/bfnrt])|(.))",
    re.DOTALL,
)
_SIMPLE: Mapping[str, str] = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_PART = re.compile(r'"(?:[^"\\\x00-\x1f]++|\\[^\x00-\x1f])*')


def decode_string(source: Source, start: int, end: int) -> tuple[str, OffsetMarks]:
    """Decode the string between the quotes at `start` and before `end`. Raises SyntaxFault."""
    raw = source.text[start + 1 : end - 1]
    if "\\" not in raw:  # most strings have no escapes
        return raw, ((0, start + 1),)
    pieces: list[str] = []
    marks = [(0, start + 1)]
    faults: list[Diagnostic] = []
    at = size = 0
    for escape in _ESCAPE.finditer(raw):
        character = _decode_escape(escape)
        if character is None:
            span = start + 1 + escape.start(), start + 1 + escape.end()
            faults.append(_make_escape_fault(source, *span, half=escape[3] is not None))
        pieces += [raw[at : escape.start()], character or ""]
        size += escape.start() - at + len(character or "")
        at = escape.end()
        marks.append((size, start + 1 + at))
    if faults:
        raise SyntaxFault(*faults[:DIAGNOSTICS])
    pieces.append(raw[at:])
    return "".join(pieces), tuple(marks)


def _decode_escape(escape: re.Match[str]) -> str | None:
    """The character that an escape stands for; None if it is not a valid escape."""
    high, low, code, simple, _ = escape.groups()
    if high:  # JSON writes characters beyond U+FFFF as two halves, a surrogate pair
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    if code:
        number = int(code, 16)
        return None if 0xD800 <= number <= 0xDFFF else chr(number)
    return _SIMPLE.get(simple, simple)


def _make_escape_fault(source: Source, start: int, end: int, half: bool) -> Diagnostic:
    if half:
        detail = "It is one half of a surrogate pair, and the other half is missing."
        return make_fault(source, start, end, "Half a character", detail)
    detail = 'Valid are \\", \\\\, \\/, \\b, \\f, \\n, \\r, \\t and \\uNNNN.'
    advice = "Write \\\\ for a backslash."
    return make_fault(source, start, end, "Invalid escape sequence", detail, advice)


def explain_string(source: Source, start: int) -> SyntaxFault:
    """The error for a quote at which no valid string begins."""
    match = _PART.match(source.text, start)
    assert match is not None
    at = match.end()
    character = source.text[at : at + 1]
    if character in ("", "\n", "\r", "\\"):
        summary, detail, _ = faults.UNCLOSED_STRING
        advice = 'Add the closing ", or write \\n for a newline.'
        return SyntaxFault(make_fault(source, start, at, summary, detail, advice))
    summary = "A string cannot contain control characters"
    advice = f"Write \\u{ord(character):04x} instead."
    return SyntaxFault(make_fault(source, at, at + 1, summary, advice=advice))


class EmbeddedSource(Source):
    """The decoded text of a JSON string; its places are places in the file.

    So an error in a template is shown where the user wrote it, though escapes came before it.
    """

    def __init__(self, outer: Source, start: int, end: int) -> None:
        text, marks = decode_string(outer, start, end)
        super().__init__(outer.file, text)
        self._outer = outer
        self._inside = [inside for inside, _ in marks]
        self._outside = [outside for _, outside in marks]

    def range(self, start: int, end: int) -> Range:
        return self._outer.range(self._map_offset(start), self._map_offset(end))

    def excerpt(self, offset: int) -> str | None:
        return self._outer.excerpt(self._map_offset(offset))

    def _map_offset(self, offset: int) -> int:
        index = bisect_right(self._inside, offset) - 1
        return self._outside[index] + offset - self._inside[index]


class JsonSource(Source):
    """A JSON text, in which a property can be a block or an argument."""


class JsonString(Node, frozen=True):
    """A string; its range includes the quotes."""

    text: str
    """Without quotes and escapes."""


class JsonAtom(Node, frozen=True):
    """A number (int if written without a fraction, else Decimal), true, false or null."""

    value: int | Decimal | bool | None


class JsonArray(Node, frozen=True):
    """`[a, b]`."""

    items: tuple[Json, ...]


class JsonMember(Node, frozen=True):
    """`"name": value`."""

    name: JsonString
    value: Json


class JsonObject(Node, frozen=True):
    """A JSON object; a name can occur more than once."""

    members: tuple[JsonMember, ...]


Json: TypeAlias = JsonString | JsonAtom | JsonArray | JsonObject


def parse_json(text: str | bytes, file: str) -> tuple[Json | None, Diagnostics]:
    """Parse a JSON text (RFC 8259); None after the first error."""
    # The standard library's parser is not used: it knows no places, takes NaN and repeated names,
    # and fails with a RecursionError on nested brackets.
    source, refused = make_source(text, file, kind=JsonSource)
    if refused:
        return None, refused
    try:
        with pause_collector():
            return _JsonReader(source).read_whole(), ()
    except SyntaxFault as error:
        return None, error.diagnostics


# ── what may stand where ────────────────────────────────────────────────────────────────

_TOKEN = re.compile(
    r"""[ \t\r\n]*(?:
      (?P<text>"(?:[^"\\\x00-\x1f]++|\\[^\x00-\x1f])*")
    | (?P<number>-?[0-9][0-9A-Za-z.+-]*)
    | (?P<word>[A-Za-z_$][\w$]*)
    | (?P<array>\[)
    | (?P<record>\{)
    | (?P<mark>[\]}:,])
    | (?P<end>\Z)
    | (?P<bad>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
"""Takes linear time: alternatives start with different characters, and runs inside strings are
possessive."""

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_CONSTANTS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}
_VALUE = "A value is text in double quotes, a number, true, false, null, [ … ] or { … }."
_COMMENT = Complaint(
    "JSON has no comments", advice='Write a property "//": "text", which is ignored.'
)
_NO_NUMBER = Complaint("This is not a JSON number", advice="Write it as 12, -0.5 or 1e3.")
_NO_VALUE = Complaint("This word is not a JSON value", _VALUE, 'Put text in quotes: "text".')
_COLON = Complaint("JSON needs a colon between name and value", advice='Write "name": value.')
_BAD: Mapping[str, Complaint] = {
    "'": Complaint("Single quotes do not make a string", advice='Use double quotes: "text".'),
    **dict.fromkeys("#/", _COMMENT),
    **dict.fromkeys("+-.", _NO_NUMBER),
    "=": _COLON,
}


class _JsonReader(Struct, eq=False):
    """A recursive descent over the tokens of a JSON text."""

    source: Source
    count: int = 0
    """How many tokens were read."""
    kind: str = ""
    """The current token: a group of _TOKEN."""
    start: int = 0
    end: int = 0
    """The offsets of the current token."""
    opened: list[int] = field(default_factory=list)
    """The offsets of the open brackets."""

    def read_whole(self) -> Json:
        """The one value of the text."""
        self.advance()
        value = self.read_value()
        if self.kind != "end":
            raise self.explain_unexpected("Unexpected text after the end of the JSON value")
        return value

    def advance(self) -> None:
        match = _TOKEN.match(self.source.text, self.end)
        assert match is not None and match.lastgroup is not None
        self.kind, (self.start, self.end) = match.lastgroup, match.span(match.lastgroup)
        self.count += 1
        if self.count > TOKENS:
            raise self.make_fault(faults.TOO_COMPLEX)

    def is_mark(self, mark: str) -> bool:
        return self.source.text[self.start : self.end] == mark

    def read_value(self) -> Json:
        read = _VALUES.get(self.kind)
        if read is None:
            raise self.explain_unexpected("A value is missing here", _VALUE)
        return read(self)

    # -- values

    def read_string(self) -> JsonString:
        start, end = self.start, self.end
        node = JsonString(self.source, start, end, decode_string(self.source, start, end)[0])
        if len(node.text) > STRING_CHARACTERS:
            detail = f"It has more than {STRING_CHARACTERS} characters."
            raise self.make_fault(Complaint("String too long", detail), width=1)
        self.advance()
        return node

    def read_number(self) -> JsonAtom:
        digits = self.source.text[self.start : self.end]
        if not _NUMBER.fullmatch(digits):
            raise self.make_fault(_NO_NUMBER)
        value = parse_exact(digits)
        if value is None:
            raise SyntaxFault(make_number_fault(self.source, self.start, self.end))
        return self.take_atom(value)

    def read_word(self) -> JsonAtom:
        word = self.source.text[self.start : self.end]
        if word in _CONSTANTS:
            return self.take_atom(_CONSTANTS[word])
        if word.lower() in _CONSTANTS:
            raise self.make_fault(_NO_VALUE._replace(advice=f"Write {word.lower()}."))
        raise self.make_fault(_NO_VALUE)

    def take_atom(self, value: int | Decimal | bool | None) -> JsonAtom:
        atom = JsonAtom(self.source, self.start, self.end, value)
        self.advance()
        return atom

    def read_array(self) -> JsonArray:
        start = self.enter_brackets()
        items: list[Json] = []
        while self.has_another("]", bool(items)):
            items.append(self.read_value())
        return JsonArray(self.source, start, self.leave_brackets(), tuple(items))

    def read_object(self) -> JsonObject:
        start = self.enter_brackets()
        members: list[JsonMember] = []
        while self.has_another("}", bool(members)):
            members.append(self.read_member())
        return JsonObject(self.source, start, self.leave_brackets(), tuple(members))

    def read_member(self) -> JsonMember:
        if self.kind != "text":
            raise self.explain_unexpected("The name of a property must be in double quotes")
        name = self.read_string()
        if not self.is_mark(":"):
            raise self.explain_unexpected(_COLON.summary, advice=_COLON.advice)
        self.advance()
        value = self.read_value()
        return JsonMember(self.source, name.start, value.end, name, value)

    # -- brackets

    def enter_brackets(self) -> int:
        start = self.start
        self.opened.append(start)
        if len(self.opened) > NESTING:
            raise self.make_fault(faults.make_too_deep(NESTING))
        self.advance()
        return start

    def leave_brackets(self) -> int:
        end = self.end
        self.opened.pop()
        self.advance()
        return end

    def has_another(self, closer: str, nonempty: bool) -> bool:
        """Whether another element follows; passes over the comma before it. begun: whether there
        was an element before."""
        if self.is_mark(closer):
            return False
        if not nonempty:
            return True
        if not self.is_mark(","):
            raise self.explain_unexpected(f'Expected "," or "{closer}"')
        comma = self.start
        self.advance()
        if self.is_mark(closer):
            summary, advice = "JSON allows no comma after the last element", "Delete this comma."
            raise SyntaxFault(make_fault(self.source, comma, comma + 1, summary, advice=advice))
        return True

    # -- faults

    def make_fault(self, complaint: Complaint, width: int = 0) -> SyntaxFault:
        end = self.start + width if width else self.end
        return SyntaxFault(make_fault(self.source, self.start, end, *complaint))

    def explain_unexpected(self, summary: str, detail: str = "", advice: str = "") -> SyntaxFault:
        """The error for the current token: what is wrong with the token itself, or else that it
        is not what the summary asks for."""
        if self.kind == "end":
            return self.explain_end()
        if self.kind == "bad" and self.is_mark('"'):
            return explain_string(self.source, self.start)
        if self.kind == "bad":
            mark = self.source.text[self.start]
            return self.make_fault(_BAD.get(mark) or faults.make_unexpected(mark))
        return self.make_fault(Complaint(summary, detail, advice))

    def explain_end(self) -> SyntaxFault:
        """The error for a text that ends too early."""
        if not self.opened:
            advice = "Write {} if it contains nothing."
            return self.make_fault(Complaint("The file is empty", "", advice))
        start = self.opened[-1]
        mark = self.source.text[start]
        closer = "]" if mark == "[" else "}"
        detail = f'The file ends before the matching "{closer}".'
        advice = f'Add the missing "{closer}".'
        return SyntaxFault(
            make_fault(self.source, start, start + 1, f'Unclosed "{mark}"', detail, advice)
        )


_VALUES: Mapping[str, Callable[[_JsonReader], Json]] = {
    "text": _JsonReader.read_string,
    "number": _JsonReader.read_number,
    "word": _JsonReader.read_word,
    "array": _JsonReader.read_array,
    "record": _JsonReader.read_object,
}


class StringMode(StrEnum):
    """What the strings of an argument are."""

    TEMPLATE = "template"
    """Templates, which can contain `${ }` and `%{ }`."""
    LITERAL = "literal"
    """Plain text."""
    SPELLED = "spelled"
    """The text of an expression, such as a reference or a type."""
    PATH = "path"
    """The text of a reference if it is one, else plain text such as `config.retention.*`."""


def make_expression(value: Json, mode: StringMode) -> Expression:
    """The expression of a JSON value. Raises SyntaxFault with every fault in it."""
    faults: list[Diagnostic] = []
    node = _make_node(value, mode, faults)
    if faults:
        raise SyntaxFault(*faults[:DIAGNOSTICS])
    parse.check_depth(node)
    return node


def _make_node(value: Json, mode: StringMode, faults: list[Diagnostic]) -> Expression:
    match value:
        case JsonString():
            return _STRINGS[mode](value, faults)
        case JsonAtom():
            return Lit(value.source, value.start, value.end, value.value)
        case JsonArray():
            _check_size(value, value.items, faults)
            items = tuple(_make_node(item, mode, faults) for item in value.items)
            return nodes.Tuple(value.source, value.start, value.end, items)
        case JsonObject():
            _check_size(value, value.members, faults)
            faults.extend(find_repeated(value.members))
            entries = tuple(_make_item(member, mode, faults) for member in value.members)
            return nodes.Object(value.source, value.start, value.end, entries)


def _make_item(member: JsonMember, mode: StringMode, faults: list[Diagnostic]) -> nodes.ObjectItem:
    # Names of properties are templates where values are, as the specification has it.
    read = _STRINGS[StringMode.TEMPLATE if mode is StringMode.TEMPLATE else StringMode.LITERAL]
    key, value = read(member.name, faults), _make_node(member.value, mode, faults)
    return nodes.ObjectItem(member.source, member.start, member.end, key, value)


def _check_size(value: Json, items: tuple[object, ...], faults: list[Diagnostic]) -> None:
    if len(items) > COLLECTION_ELEMENTS:
        detail = f"It has more than {COLLECTION_ELEMENTS} elements."
        end = value.start + 1
        faults.append(make_fault(value.source, value.start, end, "Collection too large", detail))


def find_repeated(members: Iterable[JsonMember]) -> Iterable[Diagnostic]:
    """An error for each member with the name of an earlier one."""
    first: dict[str, JsonMember] = {}
    for member in members:
        name = member.name.text
        if first.setdefault(name, member) is not member:
            yield make_fault(
                member.source,
                member.name.start,
                member.name.end,
                f'"{name}" is set twice',
                f"It was first set at {first[name].name.range}.",
                "Keep one of the two.",
            )


# ── strings ─────────────────────────────────────────────────────────────────────────────


def _make_literal(value: JsonString, _: list[Diagnostic]) -> Lit:
    return Lit(value.source, value.start, value.end, normalize("NFC", value.text))


def _parse_template(value: JsonString, faults: list[Diagnostic]) -> Expression:
    if "${" not in value.text and "%{" not in value.text:
        return _make_literal(value, faults)
    node, problems = parse_template_source(EmbeddedSource(value.source, value.start, value.end))
    faults.extend(problems)
    return node or _make_literal(value, faults)


def _parse_spelled(value: JsonString, faults: list[Diagnostic]) -> Expression:
    node, problems = parse_expression_source(EmbeddedSource(value.source, value.start, value.end))
    faults.extend(problems)
    return node or _make_literal(value, faults)


def _parse_path(value: JsonString, faults: list[Diagnostic]) -> Expression:
    node, _ = parse_expression_source(EmbeddedSource(value.source, value.start, value.end))
    plain = node is not None and all(isinstance(step, _STEPS) for step in nodes.walk(node))
    return node if node is not None and plain else _make_literal(value, faults)


_STEPS = (nodes.Root, nodes.Attr, nodes.Index, nodes.LegacyIndex, nodes.Lit)
_STRINGS: Mapping[StringMode, Callable[[JsonString, list[Diagnostic]], Expression]] = {
    StringMode.TEMPLATE: _parse_template,
    StringMode.LITERAL: _make_literal,
    StringMode.SPELLED: _parse_spelled,
    StringMode.PATH: _parse_path,
}
