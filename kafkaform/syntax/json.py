"""JSON text to values that know their place: the first half of the language's JSON form.

Members keep their order and may repeat, since which of them are blocks is not known here. What
the values mean (block or argument, template or literal) is for `jsonvalues` and the language.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import TypeAlias

from ..core.diagnostics import Diagnostics
from . import complaints, limits
from .complaints import Complaint
from .faults import SyntaxFault, fault
from .jsontext import decoded, string_fault
from .nodes import Node
from .parse import collector_paused, source_of
from .source import Source
from .terms import exact, number_fault


class JsonSource(Source):
    """A JSON text, in which a property may be a block or an argument."""


class Text(Node, frozen=True):
    """A string; the range includes the quotes. text: decoded."""

    text: str


class Atom(Node, frozen=True):
    """A number (int when whole as written, else Decimal; exact), true, false or null."""

    value: int | Decimal | bool | None


class Array(Node, frozen=True):
    items: tuple[Json, ...]


class Member(Node, frozen=True):
    """`"name": value`."""

    name: Text
    value: Json


class Record(Node, frozen=True):
    """A JSON object; a name may occur more than once."""

    members: tuple[Member, ...]


Json: TypeAlias = Text | Atom | Array | Record


def parse_json(text: str | bytes, file: str) -> tuple[Json | None, Diagnostics]:
    """The value that a JSON text (RFC 8259) holds; None after the first error."""
    source, refused = source_of(text, file, kind=JsonSource)
    if refused:
        return None, refused
    try:
        with collector_paused():
            return _Reader(source).whole(), ()
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
"""Linear: alternatives start differently, and each run inside a string is possessive."""

_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_CONSTANTS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}
_VALUE = "A value is text in double quotes, a number, true, false, null, [ … ] or { … }."
_COMMENT = Complaint(
    "JSON has no comments", advice='Write a property "//": "text", which is passed over.'
)
_NO_NUMBER = Complaint("This is not a JSON number", advice="Write it as 12, -0.5 or 1e3.")
_NO_VALUE = Complaint("This word is not a JSON value", _VALUE, 'Put texts in quotes: "text".')
_COLON = Complaint("JSON puts a colon between name and value", advice='Write "name": value.')
_BAD: Mapping[str, Complaint] = {
    "'": Complaint("Single quotes do not make a string", advice='Use double quotes: "text".'),
    **dict.fromkeys("#/", _COMMENT),
    **dict.fromkeys("+-.", _NO_NUMBER),
    "=": _COLON,
}


class _Reader:
    """kind, start, end: the token at hand; opened: where the open brackets stand."""

    def __init__(self, source: Source) -> None:
        self.source = source
        self.count = 0
        self.kind = ""
        self.start = self.end = 0
        self.opened: list[int] = []
        self.next()

    def whole(self) -> Json:
        """The one value of the text."""
        value = self.value()
        if self.kind != "end":
            raise self.unexpected("Something follows the end of the JSON value")
        return value

    def next(self) -> None:
        found = _TOKEN.match(self.source.text, self.end)
        assert found is not None and found.lastgroup is not None
        self.kind, (self.start, self.end) = found.lastgroup, found.span(found.lastgroup)
        self.count += 1
        if self.count > limits.TOKENS:
            raise self.fault(complaints.TOO_COMPLEX)

    def is_mark(self, mark: str) -> bool:
        return self.source.text[self.start : self.end] == mark

    def value(self) -> Json:
        read = _VALUES.get(self.kind)
        if read is None:
            raise self.unexpected("A value is missing here", _VALUE)
        return read(self)

    # -- values

    def text(self) -> Text:
        start, end = self.start, self.end
        found = Text(self.source, start, end, decoded(self.source, start, end)[0])
        if len(found.text) > limits.STRING_CHARACTERS:
            detail = f"It has more than {limits.STRING_CHARACTERS} characters."
            raise self.fault(Complaint("String too long", detail), width=1)
        self.next()
        return found

    def number(self) -> Atom:
        digits = self.source.text[self.start : self.end]
        if not _NUMBER.fullmatch(digits):
            raise self.fault(_NO_NUMBER)
        value = exact(digits)
        if value is None:
            raise SyntaxFault(number_fault(self.source, self.start, self.end))
        return self.atom(value)

    def word(self) -> Atom:
        word = self.source.text[self.start : self.end]
        if word in _CONSTANTS:
            return self.atom(_CONSTANTS[word])
        if word.lower() in _CONSTANTS:
            raise self.fault(_NO_VALUE._replace(advice=f"Write {word.lower()}."))
        raise self.fault(_NO_VALUE)

    def atom(self, value: int | Decimal | bool | None) -> Atom:
        found = Atom(self.source, self.start, self.end, value)
        self.next()
        return found

    def array(self) -> Array:
        start = self.enter()
        items: list[Json] = []
        while self.another("]", bool(items)):
            items.append(self.value())
        return Array(self.source, start, self.leave(), tuple(items))

    def record(self) -> Record:
        start = self.enter()
        members: list[Member] = []
        while self.another("}", bool(members)):
            members.append(self.member())
        return Record(self.source, start, self.leave(), tuple(members))

    def member(self) -> Member:
        if self.kind != "text":
            raise self.unexpected("The name of a property is text in double quotes")
        name = self.text()
        if not self.is_mark(":"):
            raise self.unexpected(_COLON.summary, advice=_COLON.advice)
        self.next()
        value = self.value()
        return Member(self.source, name.start, value.end, name, value)

    # -- brackets

    def enter(self) -> int:
        start = self.start
        self.opened.append(start)
        if len(self.opened) > limits.NESTING:
            raise self.fault(complaints.too_deep(limits.NESTING))
        self.next()
        return start

    def leave(self) -> int:
        end = self.end
        self.opened.pop()
        self.next()
        return end

    def another(self, closer: str, begun: bool) -> bool:
        """Whether one more element follows; the comma before it is passed."""
        if self.is_mark(closer):
            return False
        if not begun:
            return True
        if not self.is_mark(","):
            raise self.unexpected(f'Expected "," or "{closer}"')
        comma = self.start
        self.next()
        if self.is_mark(closer):
            summary, advice = "JSON has no comma after the last element", "Delete this comma."
            raise SyntaxFault(fault(self.source, comma, comma + 1, summary, advice=advice))
        return True

    # -- faults

    def fault(self, complaint: Complaint, width: int = 0) -> SyntaxFault:
        end = self.start + width if width else self.end
        return SyntaxFault(fault(self.source, self.start, end, *complaint))

    def unexpected(self, summary: str, detail: str = "", advice: str = "") -> SyntaxFault:
        """What stands here is wrong in itself, or else it is not what the summary asks for."""
        if self.kind == "end":
            return self.ended()
        if self.kind == "bad" and self.is_mark('"'):
            return string_fault(self.source, self.start)
        if self.kind == "bad":
            mark = self.source.text[self.start]
            return self.fault(_BAD.get(mark) or complaints.unexpected(mark))
        return self.fault(Complaint(summary, detail, advice))

    def ended(self) -> SyntaxFault:
        """The text ended too early."""
        if not self.opened:
            return self.fault(Complaint("The file is empty", "", "Write {} for nothing."))
        start = self.opened[-1]
        mark = self.source.text[start]
        closer = "]" if mark == "[" else "}"
        detail = f'The file ends before the "{closer}" that closes it.'
        advice = f'Add the missing "{closer}".'
        return SyntaxFault(
            fault(self.source, start, start + 1, f'Unclosed "{mark}"', detail, advice)
        )


_VALUES: Mapping[str, Callable[[_Reader], Json]] = {
    "text": _Reader.text,
    "number": _Reader.number,
    "word": _Reader.word,
    "array": _Reader.array,
    "record": _Reader.record,
}
