"""HCL text as kafkaform writes it: values as text that reads back as the same values, for `import`,
and text formatted as `terraform fmt` does.

In every string, `${`, `%{`, quotes, backslashes and control characters are escaped, so that no
value of a live system can become code.

Formatting changes blanks only, never words, newlines or comments. A line is indented by two blanks
for each enclosing line that opens brackets. Operators have one blank on each side. `=` and trailing
comments are aligned over consecutive lines.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import cache
from typing import TypeAlias

from msgspec import Struct, field

from ..core.canonical import render_number
from ..core.value import SecretRef, Value
from .nodes import Source
from .scan import scan
from .tokens import KEYWORDS, TRIVIA, Scan, Token

_INDENT = 2
_OPENERS = frozenset({"LBRACE", "LSQB", "LPAR", "INTERP_START", "DIRECTIVE_START"})
_CLOSERS = frozenset({"RBRACE", "RSQB", "RPAR", "TEMPLATE_END"})
_SPLATS = frozenset({"FULL_SPLAT_START", "ATTR_SPLAT"})
_NAMES = frozenset({"NAME", "IN", "IF", "FOR", "ELSE", "TRUE", "FALSE", "NULL"})
_NEWLINES = frozenset({"NL_OR_COMMENT", "BREAK"})
_NONE_BEFORE = frozenset({"COMMA", "ELLIPSIS"})
_DOTS = frozenset({"DOT", "ATTR_SPLAT"})
_NONE_AFTER_LITERAL = frozenset({"STRING_CHARS", "QUOTE_OPEN", "HEREDOC_TEMPLATE"})
_NONE_BEFORE_LITERAL = frozenset({"STRING_CHARS", "QUOTE_CLOSE", "HEREDOC_END"})
_INDEXED = _NAMES | _CLOSERS | {"INT_LITERAL", "FLOAT_LITERAL", "ATTR_SPLAT", "FULL_SPLAT_START"}
_VALUE_ENDS = _INDEXED | {"QUOTE_CLOSE", "PLAIN_STRING", "HEREDOC_END", "COMMENT"}
_TEMPLATE_OPENERS = frozenset({"INTERP_START", "DIRECTIVE_START"})
# What people take for one character: flags are pairs, and marks, joiners and skin tones belong to
# the character before them. Go's formatter counts these, too, so columns agree with Terraform's.
_GRAPHEME = re.compile(
    "[\U0001f1e6-\U0001f1ff]{2}"
    "|.(?:[\u0300-\u036f\u20d0-\u20ff\ufe0e\ufe0f\U0001f3fb-\U0001f3ff]|\u200d.)*",
    re.DOTALL,
)
_LINE = 80
"""A list that is longer than this on one line gets a line for each element."""
_IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")  # ASCII only, though HCL allows more
# The last alternative is a command to the logs of build servers (see `core.text`), which
# obey it wherever it stands in a line.
_ESCAPED = re.compile(r'["\\]|[$%](?=\{)|[^\x20-\x7e]|(?<=#)#(?=\w*\[)')
_SHORT: Mapping[str, str] = {
    '"': '\\"',
    "\\": "\\\\",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "$": "$$",
    "%": "%%",
    "#": "\\u0023",
}


def format_text(text: str) -> str:
    """The text in the standard layout.

    Returns the text unchanged if it has a lexical error, which `parse` reports. Line ends (LF or
    CRLF) stay as they are.
    """
    mark = "\ufeff" if text.startswith("\ufeff") else ""
    scanned = _scan_whole(text[len(mark) :])
    if scanned.faults:
        return text
    lines = list(_split_lines(scanned.tokens))
    _indent_lines(lines)
    for line in lines:
        _space_words(line.lead)
        _space_words(line.assign)
    _align_cells(lines, lambda line: line.lead, lambda line: line.assign)
    _align_cells(lines, lambda line: line.lead + line.assign, lambda line: line.comment)
    result = mark + "".join(_render_lines(lines))
    # A fault in these rules must not change what a configuration means, so the result is proved.
    after = _scan_whole(result[len(mark) :])
    return result if _list_words(after.tokens) == _list_words(scanned.tokens) else text


class _Word(Struct):
    """A token with the blanks before it."""

    kind: str
    """The token's type; TEMPLATE_END, QUOTE_OPEN and QUOTE_CLOSE for marks that share a type."""
    text: str
    gap: int = 0
    """How many blanks stand before it."""


class _Line(Struct):
    """The cells of a line; a heredoc counts as one line."""

    lead: list[_Word] = field(default_factory=list)
    """What stands before `=`; everything if there is no cell to align."""
    assign: list[_Word] = field(default_factory=list)
    """`=` and a value that ends on the line."""
    comment: list[_Word] = field(default_factory=list)
    """A comment behind something else."""
    end: str = ""
    """The line end."""


def _split_lines(tokens: Sequence[Token]) -> Iterator[_Line]:
    words: list[_Word] = []
    last_end = 0
    namer = _Namer()
    for token in tokens:
        # The scanner adds an empty newline at the end of a text that lacks one.
        if token.type in _NEWLINES and token.end > token.start:
            # The carriage return of CRLF belongs to no token.
            carriage = token.start > last_end and token.source.text[token.start - 1] == "\r"
            yield _make_line(words, "\r\n" if carriage else "\n")
            words = []
        elif token.type == "STRIP_MARKER" and words and words[-1].kind in _OPENERS:
            words[-1].text += token.text  # `${~` is one word
        elif token.end > token.start:
            namer.add_word(token, words)
        last_end = token.end
    if words:
        yield _make_line(words, "")


class _Namer(Struct):
    """Makes words of tokens."""

    opened: list[str] = field(default_factory=list)
    """The open brackets and quotes, the innermost last."""
    strip: str = ""
    """A `~` that belongs to the closing brace behind it."""

    def add_word(self, token: Token, words: list[_Word]) -> None:
        if token.type == "STRIP_MARKER":
            self.strip = token.text
            return
        words.append(_Word(self._choose_kind(token.type), self.strip + _get_text(token)))
        self.strip = ""

    def _choose_kind(self, type_: str) -> str:
        if type_ == "DBLQUOTE":
            if self.opened and self.opened[-1] == "QUOTE_OPEN":
                self.opened.pop()
                return "QUOTE_CLOSE"
            self.opened.append("QUOTE_OPEN")
            return "QUOTE_OPEN"
        if type_ in _OPENERS:
            self.opened.append(type_)
        elif type_ in _CLOSERS and self.opened.pop() in ("INTERP_START", "DIRECTIVE_START"):
            return "TEMPLATE_END"
        return type_


def _make_line(words: list[_Word], end: str) -> _Line:
    line = _Line(words, end=end)
    if len(words) > 1 and words[-1].kind == "COMMENT":
        line.lead, line.comment = words[:-1], words[-1:]
    equals = next((i for i, word in enumerate(line.lead) if i and word.kind == "EQ"), None)
    if equals is not None and _count_net_brackets(line.lead[equals:]) == 0:
        line.lead, line.assign = line.lead[:equals], line.lead[equals:]
    return line


def _count_net_brackets(words: Sequence[_Word]) -> int:
    return sum((word.kind in _OPENERS) - (word.kind in _CLOSERS) for word in words)


def _indent_lines(lines: Sequence[_Line]) -> None:
    """Indent what follows a line by one step if the line opens more brackets than it closes."""
    # Each step is the number of brackets that its line left open. `foo([{` is one step, and
    # `}])` ends it: that is how Terraform's formatter keeps such lines flat.
    steps: list[int] = []
    for line in lines:
        if not line.lead:
            continue
        net = _count_net_brackets(_cut_at_heredoc(line.lead)) + _count_net_brackets(line.assign)
        closing = -net
        while closing > 0 and steps:
            removed = min(closing, steps[-1])
            closing -= removed
            steps[-1] -= removed
            if not steps[-1]:
                steps.pop()
        line.lead[0].gap = _INDENT * len(steps)
        if net > 0:
            steps.append(net)


def _cut_at_heredoc(words: Sequence[_Word]) -> Sequence[_Word]:
    """The words before a heredoc: a bracket behind its end stands on a line further down."""
    kinds = [word.kind for word in words]
    return words[: kinds.index("HEREDOC_TEMPLATE")] if "HEREDOC_TEMPLATE" in kinds else words


# -- blanks between words


def _space_words(words: Sequence[_Word]) -> None:
    """Set the gaps inside one cell; the gap of its first word depends on the columns."""
    before = ""
    for left, right in zip(words, words[1:], strict=False):
        right.gap = int(_is_spaced(before, left.kind, right.kind))
        before = left.kind


@cache
def _is_spaced(before: str, left: str, right: str) -> bool:
    """Whether there is a blank between two words, by their kinds. before: the word before both."""
    for rule in _RULES:
        verdict = rule(before, left, right)
        if verdict is not None:
            return verdict
    return True


def _judge_tight(before: str, left: str, right: str) -> bool | None:
    """Calls, namespaces, references, literal text, and words before a comma."""
    if left == "COMMA" and right not in _DOTS | _NONE_BEFORE:
        return True
    tight = (
        (left in _NAMES and right == "LPAR")
        or (left in _NAMES and right == "COLONS")
        or (left == "COLONS" and right in _NAMES)
        or left == "DOT"
        or right in _DOTS
        or right in _NONE_BEFORE
        or left in _NONE_AFTER_LITERAL
        or right in _NONE_BEFORE_LITERAL
    )
    return False if tight else None


def _judge_indexes(before: str, left: str, right: str) -> bool | None:
    # `in` behind a name is the keyword of a for, so its list gets a blank: `[for x in [1] : x]`.
    if left == "IN" and before in _NAMES:
        return True
    if right in ("LSQB", "FULL_SPLAT_START") and left in _INDEXED:
        return False
    return None


def _judge_signs(before: str, left: str, right: str) -> bool | None:
    """A minus behind a value subtracts; any other minus is a sign."""
    if left == "NOT":
        return False
    if left == "MINUS":
        return before in _VALUE_ENDS
    return None


def _judge_braces(before: str, left: str, right: str) -> bool | None:
    if left == "LBRACE" or right == "RBRACE":
        return (left, right) != ("LBRACE", "RBRACE")
    if left in _TEMPLATE_OPENERS and right == "LBRACE":
        return True
    if left == "RBRACE" and right == "TEMPLATE_END":
        return True
    if left == "TEMPLATE_END" and right in _TEMPLATE_OPENERS:
        return False
    return None


def _judge_brackets(before: str, left: str, right: str) -> bool | None:
    return False if left in _OPENERS or right in _CLOSERS else None


_RULES: Sequence[Callable[[str, str, str], bool | None]] = (
    _judge_tight,
    _judge_indexes,
    _judge_signs,
    _judge_braces,
    _judge_brackets,
)


# -- columns


def _align_cells(
    lines: Sequence[_Line],
    read_left: Callable[[_Line], list[_Word]],
    cell: Callable[[_Line], list[_Word]],
) -> None:
    """Start the same cell of consecutive lines in one column, behind the widest left part."""
    group: list[_Line] = []
    for line in (*lines, _Line()):  # the empty line ends the last group
        if cell(line):
            group.append(line)
            continue
        width = max((_measure_width(read_left(member)) for member in group), default=0)
        for member in group:
            cell(member)[0].gap = width - _measure_width(read_left(member)) + 1
        group = []


def _measure_width(words: Sequence[_Word]) -> int:
    return sum(word.gap + _graphemes(word.text) for word in words)


def _graphemes(text: str) -> int:
    return len(text) if text.isascii() else sum(1 for _ in _GRAPHEME.finditer(text))


def _render_lines(lines: Sequence[_Line]) -> Iterator[str]:
    for line in lines:
        for word in (*line.lead, *line.assign, *line.comment):
            yield " " * word.gap + word.text
        yield line.end


def _scan_whole(text: str) -> Scan:
    """Every token of the text."""
    # With an end, no block is skipped (see `stamps`): each of them has to be printed.
    return scan(Source("", text), end=len(text))


def _list_words(tokens: Sequence[Token]) -> list[tuple[str, str]]:
    ignored = TRIVIA - {"COMMENT"}
    return [(token.type, _get_text(token)) for token in tokens if token.type not in ignored]


def _get_text(token: Token) -> str:
    """The text of a token. `[ * ]` is one token, whose inner blanks are dropped."""
    return "".join(token.text.split()) if token.type in _SPLATS else token.text


class Code(Struct, frozen=True):
    """An expression that is already text, such as the reference `var.prefix`."""

    text: str


Writable: TypeAlias = "Value | Code | Mapping[str, Writable]"


class NewBlock(Struct, frozen=True):
    """A block to write."""

    type: str
    labels: tuple[str, ...] = ()
    """Any strings; they are quoted."""
    attributes: Mapping[str, Writable] = field(default_factory=dict)
    """In the order to write them; an attribute with the value None is left out."""
    blocks: tuple[NewBlock, ...] = ()


def write_blocks(blocks: Iterable[NewBlock]) -> str:
    """The blocks as formatted text, with an empty line between them.

    Raises ValueError for a type or attribute name that is not an identifier, and for a number that
    is not finite.
    """
    return format_text("\n".join("\n".join(_render_block(block)) + "\n" for block in blocks))


def write_value(value: Writable) -> str:
    """One value as formatted text, on several lines if it is a map or a long list. Keys are
    sorted."""
    return format_text(f"x = {_render_value(value)}\n").removeprefix("x = ").removesuffix("\n")


def quote_string(text: str) -> str:
    """The text as a quoted string."""
    # What reads it normalises it to NFC, so a text in another form comes back changed.
    return f'"{_ESCAPED.sub(_escape_character, text)}"'


def is_identifier(text: str) -> bool:
    """Whether the text can be a name or key without quotes in every place."""
    return bool(_IDENTIFIER.fullmatch(text)) and text not in KEYWORDS


def _escape_character(match: re.Match[str]) -> str:
    character = match.group()
    if character in _SHORT:
        return _SHORT[character]
    if character.isprintable():
        return character
    code = ord(character)
    if 0xD800 <= code <= 0xDFFF:
        raise ValueError("half of a surrogate pair is not text")
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def _render_block(block: NewBlock) -> Iterator[str]:
    labels = "".join(f" {quote_string(label)}" for label in block.labels)
    header = f"{_check_name(block.type)}{labels} {{"
    lines = [
        f"{_check_name(name)} = {_render_value(value)}"
        for name, value in block.attributes.items()
        if value is not None
    ]
    for inner in block.blocks:
        lines.extend(["", *_render_block(inner)] if lines else _render_block(inner))
    if not lines:
        yield header + "}"
        return
    yield header
    yield from lines
    yield "}"


def _check_name(text: str) -> str:
    if not _IDENTIFIER.fullmatch(text):
        raise ValueError("not an identifier")
    return text


def _render_value(value: Writable) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case int() | Decimal():
            return _render_number(value)
        case str():
            return quote_string(value)
        case tuple():
            return _render_list([_render_value(item) for item in value])
        case Mapping():
            return _render_map(value)
        case SecretRef():
            return _render_secret(value)
        case Code():
            return value.text


def _render_number(value: int | Decimal) -> str:
    if isinstance(value, Decimal) and not value.is_finite():
        raise ValueError("not a finite number")
    return render_number(value)


def _render_list(items: list[str]) -> str:
    line = f"[{', '.join(items)}]"
    if len(line) <= _LINE and "\n" not in line:
        return line
    return "[\n" + "".join(f"{item},\n" for item in items) + "]"


def _render_map(value: Mapping[str, Writable]) -> str:
    if not value:
        return "{}"
    items = (
        f"{key if is_identifier(key) else quote_string(key)} = {_render_value(value[key])}\n"
        for key in sorted(value)
    )
    return "{\n" + "".join(items) + "}"


def _render_secret(reference: SecretRef) -> str:
    if reference.source == "variable":
        return f"var.{_check_name(reference.name)}"
    if reference.words:
        return f"secret_command({_render_list(list(map(quote_string, reference.words)))})"
    return f"secret_{_check_name(reference.source)}({quote_string(reference.name)})"
