"""Parse JSON text into values that know their place: the first half of HCL's JSON form.

Members keep their order and can repeat, because only the language knows which of them are blocks.
What the values mean (block or argument, template or literal) is decided by `jsonvalues` and the
language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TypeAlias

from msgspec import Struct, field

from ..core.diagnostics import Diagnostics
from . import complaints, limits
from .complaints import Complaint
from .faults import SyntaxFault, make_fault
from .jsontext import decode_string, explain_string
from .nodes import Node
from .parse import make_source, pause_collector
from .source import Source
from .terms import make_number_fault, parse_exact


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
        if self.count > limits.TOKENS:
            raise self.make_fault(complaints.TOO_COMPLEX)

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
        if len(node.text) > limits.STRING_CHARACTERS:
            detail = f"It has more than {limits.STRING_CHARACTERS} characters."
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
        if len(self.opened) > limits.NESTING:
            raise self.make_fault(complaints.make_too_deep(limits.NESTING))
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
            return self.make_fault(_BAD.get(mark) or complaints.make_unexpected(mark))
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
