"""Read the text between quotes or heredoc markers: decode, trim, unindent, nest directives."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from sys import intern
from typing import NamedTuple, TypeAlias
from unicodedata import normalize

from msgspec import Struct

from ..core.diagnostics import Diagnostic
from .faults import SyntaxFault, make_fault
from .nodes import (
    DIAGNOSTICS,
    NESTING,
    STRING_CHARACTERS,
    Expression,
    Lit,
    Source,
    Template,
    TemplateFor,
    TemplateIf,
)
from .tokens import Token


class Hole(NamedTuple):
    """`${ expression }`."""

    start: int
    end: int
    trim: tuple[bool, bool]
    """Whether there is a `~` on the left and on the right."""
    expression: Expression


class Directive(NamedTuple):
    """`%{ word … }`."""

    start: int
    end: int
    trim: tuple[bool, bool]
    """Whether there is a `~` on the left and on the right."""
    word: str
    expression: Expression | None = None
    names: tuple[str, ...] = ()
    """The variables of a `for`, the key first."""


TemplatePart: TypeAlias = Token | Hole | Directive


class _Text(Struct):
    """Literal text, which is still changed: decoded, trimmed, unindented."""

    start: int
    end: int
    value: str


_Piece: TypeAlias = _Text | Hole | Directive


class TemplateSpan(NamedTuple):
    """The place of a whole template, quotes or heredoc markers included."""

    source: Source
    start: int
    end: int


def make_plain(pieces: Sequence[Token]) -> Lit:
    """A quoted string that stands for its own text, without escapes or parts; one token."""
    source, start, end = pieces[0].source, pieces[0].start, pieces[0].end
    return make_literal(source, start, end, source.text[start + 1 : end - 1])


def make_quoted(span: TemplateSpan, pieces: Sequence[TemplatePart]) -> Lit | Template:
    """A quoted string. Raises SyntaxFault for invalid escapes and misplaced directives."""
    return _build_template(
        span, [_decode_token(piece) if isinstance(piece, Token) else piece for piece in pieces]
    )


def make_bare(
    span: TemplateSpan, pieces: Sequence[TemplatePart], flush: bool = False
) -> Lit | Template:
    """A template without quotes, or a heredoc. flush: whether it is a `<<-` heredoc.

    Raises SyntaxFault for misplaced directives.
    """
    # Backslashes are ordinary characters here: only quoted strings have escapes.
    return _build_template(span, _split_lines(pieces), flush)


def _build_template(
    span: TemplateSpan, pieces: list[_Piece], flush: bool = False
) -> Lit | Template:
    # Go's parser trims first, too: what `~` removes no longer counts as indentation.
    _trim_pieces(pieces)
    if flush:
        _unindent_lines(pieces)
    if all(isinstance(piece, _Text) for piece in pieces):
        return _join_texts(span.source, span.start, span.end, pieces)
    return _Assembly(span, pieces).assemble()


# -- decoding

_SIMPLE_ESCAPES: Mapping[str, str] = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}
_SPECIAL = re.compile(
    r"\\(?:([nrt\"\\])|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(.))|(\$\$\{)|(%%\{)", re.DOTALL
)
_INTRODUCER = re.compile(r"\$\$\{|%%\{")


def _decode_token(token: Token) -> _Text:
    text = token.text
    if "\\" not in text and "{" not in text:
        return _Text(token.start, token.end, text)
    faults: list[Diagnostic] = []

    def replacement(escape: re.Match[str]) -> str:
        simple, short, long, unknown, *_ = escape.groups()
        if simple:
            return _SIMPLE_ESCAPES[simple]
        digits = short or long
        if digits and _is_character(int(digits, 16)):
            return chr(int(digits, 16))
        if (digits or unknown) and len(faults) < DIAGNOSTICS:
            start = token.start + escape.start()
            faults.append(
                make_fault(
                    token.source,
                    start,
                    start + len(escape.group()),
                    "Invalid escape sequence",
                    'Valid are \\n, \\r, \\t, \\", \\\\, \\uNNNN and \\UNNNNNNNN.',
                    "Write \\\\ for a backslash, $${ for ${, and %%{ for %{.",
                )
            )
        return escape.group()[1:]

    value = _SPECIAL.sub(replacement, text)
    if faults:
        raise SyntaxFault(*faults)
    return _Text(token.start, token.end, value)


def _is_character(code: int) -> bool:
    """Whether a code point is a character; halves of surrogate pairs are not."""
    return code <= 0x10FFFF and not 0xD800 <= code <= 0xDFFF


def _split_lines(tokens: Iterable[TemplatePart]) -> list[_Piece]:
    """The raw text, cut behind each newline."""
    # `~` and `<<-` work line by line in HCL: `${x ~}` removes the blanks behind it and one
    # newline, but not the indentation of the next line.
    pieces: list[_Piece] = []
    for piece in tokens:
        if not isinstance(piece, Token):
            pieces.append(piece)
            continue
        start = piece.start
        for line in re.findall(r"[^\n]*\n|[^\n]+", piece.text):
            value = _INTRODUCER.sub(lambda introducer: introducer.group()[1:], line)
            pieces.append(_Text(start, start + len(line), value))
            start += len(line)
    return pieces


# -- white space


def _trim_pieces(pieces: Sequence[_Piece]) -> None:
    """Remove the white space that `~` asks for."""
    for index, piece in enumerate(pieces):
        if isinstance(piece, _Text):
            continue
        trims_left, trims_right = piece.trim
        before = pieces[index - 1] if index else None
        after = pieces[index + 1] if index + 1 < len(pieces) else None
        if trims_left and isinstance(before, _Text):
            before.value = before.value.rstrip()
        if trims_right and isinstance(after, _Text):
            after.value = after.value.lstrip()


def _unindent_lines(pieces: Sequence[_Piece]) -> None:
    """Remove the smallest indentation of all lines that are not blank."""
    leading = [piece for piece in _list_line_starts(pieces) if not _is_blank(piece)]
    # A line that begins with `${` has no indentation, so nothing can be removed.
    if not all(isinstance(piece, _Text) for piece in leading):
        return
    texts = [piece for piece in leading if isinstance(piece, _Text)]
    least = min((len(piece.value) - len(piece.value.lstrip()) for piece in texts), default=0)
    for piece in texts:
        piece.value = piece.value[least:]


def _list_line_starts(pieces: Sequence[_Piece]) -> list[_Piece]:
    starts: list[_Piece] = []
    fresh = True
    for piece in pieces:
        if fresh:
            starts.append(piece)
        fresh = isinstance(piece, _Text) and piece.value.endswith("\n")
    return starts


def _is_blank(piece: _Piece) -> bool:
    return isinstance(piece, _Text) and piece.value.endswith("\n") and not piece.value.strip()


# -- directives


def _join_texts(source: Source, start: int, end: int, pieces: Iterable[_Piece]) -> Lit:
    texts = [piece.value for piece in pieces if isinstance(piece, _Text)]
    return make_literal(source, start, end, "".join(texts))


def make_literal(source: Source, start: int, end: int, value: str) -> Lit:
    """A constant string. Raises SyntaxFault if it is too long."""
    if len(value) > STRING_CHARACTERS:
        detail = f"It has more than {STRING_CHARACTERS} characters."
        raise SyntaxFault(make_fault(source, start, start + 1, "String too long", detail))
    return Lit(source, start, end, normalize_text(value))


def normalize_text(text: str) -> str:
    """The text in normal form NFC. Thousands of blocks consist of few different words, so each word
    is kept in memory once."""
    return intern(text if text.isascii() else normalize("NFC", text))


class _OpenBody(Struct):
    """A body that is being filled."""

    directive: Directive | None
    """The `if` or `for` that opened it; None for the template itself."""
    children: list[Expression]
    else_directive: Directive | None = None
    """The `else`, if it was found."""
    consequent: Template | None = None
    """The body before the `else`."""


class _Assembly:
    """Nests the bodies of directives, with a stack of those that are open."""

    def __init__(self, span: TemplateSpan, pieces: Sequence[_Piece]) -> None:
        self._span = span
        self._pieces = pieces
        self._open = [_OpenBody(None, [])]

    def assemble(self) -> Template:
        index = 0
        while index < len(self._pieces):
            piece = self._pieces[index]
            if isinstance(piece, _Text):
                index = self._add_text(index)
                continue
            if isinstance(piece, Hole):
                self._open[-1].children.append(piece.expression)
            else:
                _WORDS[piece.word](self, piece)
            index += 1
        if len(self._open) > 1:
            unclosed = self._open[-1].directive
            assert unclosed is not None
            raise self._make_stray_fault(unclosed, f"There is no %{{ end{unclosed.word} }}.")
        unwraps = len(self._pieces) == 1 and isinstance(self._pieces[0], Hole)
        span = self._span
        return Template(span.source, span.start, span.end, tuple(self._open[0].children), unwraps)

    def _add_text(self, first: int) -> int:
        last = first
        while last < len(self._pieces) and isinstance(self._pieces[last], _Text):
            last += 1
        run = self._pieces[first:last]
        self._open[-1].children.append(
            _join_texts(self._span.source, run[0].start, run[-1].end, run)
        )
        return last

    def open_directive(self, directive: Directive) -> None:
        self._open.append(_OpenBody(directive, []))
        if len(self._open) > NESTING:
            raise self._make_stray_fault(
                directive, f"More than {NESTING} directives are nested in each other."
            )

    def start_otherwise(self, directive: Directive) -> None:
        top = self._open[-1]
        if top.directive is None or top.directive.word != "if" or top.else_directive:
            raise self._make_stray_fault(
                directive, "It is allowed once between %{ if } and %{ endif }."
            )
        top.consequent = self._make_body(top.directive.end, directive.start)
        top.else_directive = directive
        top.children = []

    def end_if(self, directive: Directive) -> None:
        # Without an `else`, the body that was filled last is the first one.
        top, opener, condition = self._check_closer("if", directive)
        otherwise = self._make_body((top.else_directive or directive).start, directive.start)
        if top.consequent is None:
            empty = Template(self._span.source, directive.start, directive.start, (), False)
            consequent, otherwise = self._make_body(opener.end, directive.start), empty
        else:
            consequent = top.consequent
        self._open.pop()
        self._open[-1].children.append(
            TemplateIf(
                self._span.source, opener.start, directive.end, condition, consequent, otherwise
            )
        )

    def end_for(self, directive: Directive) -> None:
        _, opener, collection = self._check_closer("for", directive)
        *key, value = opener.names
        body = self._make_body(opener.end, directive.start)
        self._open.pop()
        self._open[-1].children.append(
            TemplateFor(
                self._span.source,
                opener.start,
                directive.end,
                key[0] if key else None,
                value,
                collection,
                body,
            )
        )

    def _check_closer(
        self, word: str, closer: Directive
    ) -> tuple[_OpenBody, Directive, Expression]:
        top = self._open[-1]
        opener = top.directive
        if opener is None or opener.word != word or opener.expression is None:
            raise self._make_stray_fault(closer, f"No %{{ {word} }} is open here.")
        return top, opener, opener.expression

    def _make_body(self, start: int, end: int) -> Template:
        return Template(self._span.source, start, end, tuple(self._open[-1].children), False)

    def _make_stray_fault(self, directive: Directive, detail: str) -> SyntaxFault:
        summary = f"Misplaced %{{ {directive.word} }}"
        span = self._span
        return SyntaxFault(make_fault(span.source, directive.start, directive.end, summary, detail))


_WORDS: Mapping[str, Callable[[_Assembly, Directive], None]] = {
    "if": _Assembly.open_directive,
    "for": _Assembly.open_directive,
    "else": _Assembly.start_otherwise,
    "endif": _Assembly.end_if,
    "endfor": _Assembly.end_for,
}
