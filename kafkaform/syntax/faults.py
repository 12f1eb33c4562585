"""Syntax errors: the texts of lexical errors, the search for characters that a reader does not see,
and why the parser stopped at a token.

Reviewers see another text than the parser if a file contains invisible characters or characters
that change the direction of text (Trojan Source, CVE-2021-42574).

Why the parser stopped is explained by one small rule for each likely mistake. A rule looks at the
token, at the ones before it, and at the types that the grammar would have accepted. Messages name
types of tokens, never the content of a string or number: that could be a password.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from ..core.diagnostics import Diagnostic, Diagnostics, Severity
from .nodes import Source
from .tokens import CLOSER_OF, CLOSERS, OPENERS, OPERATORS, UNINDENTED_ITEM, Frame, Token

_QUOTES = 'Use double quotes: "text".'
_CONTROL = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""All of them that a text of ASCII can contain; it is found in a tenth of the time."""
_HIDDEN = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e"
    "\u2060-\u206f\ufeff\ufff9-\ufffb\U000e0000-\U000e007f]|(?<![^\x00-\x7f])[\u200c\u200d]"
)
"""Control characters except tabs and line ends, direction marks, characters without width, tags.
Joiners count only behind ASCII, because other scripts and emoji need them."""
_END = "$END"
_NAMES = frozenset({"NAME", "IN", "IF", "TRUE", "FALSE", "NULL", "FOR"})
_WORDS: Mapping[str, str] = {
    **dict.fromkeys(_NAMES, "a name"),
    "NL_OR_COMMENT": "the end of the line",
    "INT_LITERAL": "a number",
    "FLOAT_LITERAL": "a number",
    "DBLQUOTE": "a string",
    "PLAIN_STRING": "a string",
    "STRING_CHARS": "text",
    "HEREDOC_TEMPLATE": "a heredoc",
    "HEREDOC_END": "the end of a heredoc",
    "FOR": '"for"',
    "IN": '"in"',
    "IF": '"if"',
    "STRIP_MARKER": '"~"',
    "INTERP_START": '"${"',
    "DIRECTIVE_START": '"%{"',
    "ATTR_SPLAT": '".*"',
    "FULL_SPLAT_START": '"[*]"',
    _END: "the end of the text",
    **{type_: f'"{mark}"' for mark, (type_, _) in OPENERS.items()},
    **{type_: f'"{mark}"' for mark, type_ in CLOSERS.items()},
    **{type_: f'"{mark}"' for mark, type_ in OPERATORS.items()},
}
"""Type of a token -> how messages call it."""
_STRINGS = frozenset({"DBLQUOTE", "PLAIN_STRING"})
_LEADING_OPERATORS = frozenset(OPERATORS.values()) - {"EQ", "FOR_OBJECT_ARROW", "COMMA", "NOT"}
"""Operators at the start of a line: the writer meant to continue the line before."""
_CLOSER_OF: Mapping[str, str] = {
    "BODY": "RBRACE",
    "LBRACE": "RBRACE",
    "LPAR": "RPAR",
    "LSQB": "RSQB",
    "INTERP_START": "RBRACE",
    "DIRECTIVE_START": "RBRACE",
    "HEREDOC_TEMPLATE": "HEREDOC_END",
}
_CLOSING = frozenset(_CLOSER_OF.values())
_BODIES = frozenset({"", "BODY"})
_LINE_STARTS = frozenset({"NL_OR_COMMENT", "LBRACE"})
_DOTTED_SHOWN = 5
"""Names with dots that an advice repeats."""
_Message: TypeAlias = tuple[str, str, str]
"""Summary, detail, advice."""
_HEADER_MISTAKES: Mapping[str, _Message] = {
    "COLON": ('Expected "=" instead of ":"', "Use = to set an argument.", ""),
    "DOUBLE_EQ": (
        'Expected "=" instead of "=="',
        "One = sets an argument; == compares two values.",
        "",
    ),
    "FOR_OBJECT_ARROW": ('Expected "=" instead of "=>"', "Use = to set an argument.", ""),
}


class SyntaxFault(Exception):
    """An item cannot become a node. `parse` catches it, so it never leaves this package."""

    def __init__(self, *diagnostics: Diagnostic) -> None:
        super().__init__()
        self.diagnostics: Diagnostics = diagnostics


def make_fault(
    source: Source, start: int, end: int, summary: str, detail: str = "", advice: str = ""
) -> Diagnostic:
    """An error at text[start:end]. The texts never contain literals, which may be secrets."""
    return Diagnostic(
        Severity.ERROR,
        summary,
        detail,
        source.range(start, end),
        source.excerpt(start),
        advice,
    )


def is_repeated(earlier: Diagnostic, later: Diagnostic) -> bool:
    """Whether the later error repeats the earlier one, on the same line or the next."""
    near = earlier.range and later.range and later.range.line <= earlier.range.line + 1
    return bool(near) and earlier.summary == later.summary


class Complaint(NamedTuple):
    """The text of an error; its place is added where it is found."""

    summary: str
    detail: str = ""
    advice: str = ""


UNCLOSED_STRING = Complaint(
    "Unclosed string",
    "A quoted string ends on the line on which it begins.",
    'Add the closing ", write \\n for a newline, or use a heredoc (<<EOT).',
)
UNCLOSED_COMMENT = Complaint("Unclosed comment", "No */ follows this /*.")
BAD_HEREDOC = Complaint(
    "Invalid heredoc start",
    "Only one word and the end of the line can follow << or <<-.",
    "Write <<EOT; delete spaces and quotes around the word.",
)
CONFLICT = Complaint(
    "Conflict marker",
    "Git wrote this line where two versions of the file differ; the conflict is not resolved.",
    "Keep the right lines of both versions and delete the <<<<<<<, ======= and >>>>>>> lines.",
)
# The marker ends up in a regular expression and in messages, so it has to be short.
LONG_MARKER = Complaint("Heredoc marker too long", "The word after << must be short.")
TOO_COMPLEX = Complaint("File too complex", "It has too many tokens.", "Split the file.")

_CHARACTERS: Mapping[str, Complaint] = {
    "'": Complaint("Single quotes do not make a string", advice=_QUOTES),
    "`": Complaint("Backquotes do not make a string", advice=_QUOTES),
    **dict.fromkeys("“”„«»‘’", Complaint("Curly quotes do not make a string", advice=_QUOTES)),
    ";": Complaint(
        "A semicolon does not separate anything", advice="Write one argument on each line."
    ),
    "&": Complaint("A single & is not an operator", advice="Use && for a logical and."),
    "|": Complaint("A single | is not an operator", advice="Use || for a logical or."),
    "$": Complaint(
        "A $ has no meaning outside a string",
        advice='Write the reference itself (var.x), or a template in quotes ("${var.x}").',
    ),
    "\\": Complaint("A backslash has no meaning outside a string"),
    "\r": Complaint(
        "A carriage return alone does not end a line",
        advice="Save the file with LF or CRLF line endings.",
    ),
    "~": Complaint("A ~ is allowed only inside the braces of a template", advice="Write ${~ x ~}."),
    "\ufeff": Complaint(
        "A byte order mark is allowed only at the start of a file", advice="Delete it."
    ),
}
"""Character -> what people mean by it, for those that other languages use."""


def make_unexpected(character: str) -> Complaint:
    complaint = _CHARACTERS.get(character)
    rendered = f'"{character}"' if character.isprintable() else f"U+{ord(character):04X}"
    return complaint or Complaint(f"Unexpected character {rendered}")


def make_unclosed_heredoc(marker: str) -> Complaint:
    return Complaint(
        "Unclosed heredoc",
        f"The file ends before a line that contains only {marker}.",
        f"Put {marker} on a line of its own, followed by a newline.",
    )


def make_too_deep(limit: int) -> Complaint:
    detail = f"More than {limit} brackets, blocks and strings are nested in each other."
    return Complaint("Nested too deeply", detail, "Move parts of it into local values.")


def make_nothing_open(mark: str) -> Complaint:
    advice = f'Delete it, or look above for a missing opening bracket or an extra "{mark}".'
    return Complaint(f'Unexpected "{mark}"', "No open bracket matches it.", advice)


def make_mismatch(mark: str, frame: Frame, opener: str, line: int) -> Complaint:
    """mark: the closing bracket that was found; frame, opener, line: what is open."""
    expected = CLOSER_OF[frame]
    return Complaint(
        f'Expected "{expected}" before "{mark}"',
        f'"{opener}" in line {line} is still open.',
        f'Add the missing "{expected}".',
    )


def make_unclosed(source: Source, frame: Frame, opener: str, after: int) -> Complaint:
    """after: offset of the end of the opener's line."""
    closer = CLOSER_OF[frame]
    # A line further down that begins like a top-level item is probably where the writer thought
    # that the bracket was closed.
    suspect = UNINDENTED_ITEM.search(source.text, after)
    advice = f'Add the missing "{closer}".'
    if suspect:
        line = source.range(suspect.start(), suspect.end()).line
        advice = f'The missing "{closer}" probably belongs before line {line}.'
    detail = f'The file ends before the matching "{closer}".'
    return Complaint(f'Unclosed "{opener}"', detail, advice)


def find_hidden(source: Source) -> Diagnostics:
    """One warning at the first such character of a text, with the number of all of them."""
    # A warning and not an error, because a description in another script can need such characters.
    # One for all of them: a hostile file could have a million.
    hidden = _CONTROL if source.text.isascii() else _HIDDEN
    first = hidden.search(source.text)
    if first is None:
        return ()
    start, end = first.span()
    count = sum(1 for _ in hidden.finditer(source.text))
    count_note = f" There are {count} such characters in this file." if count > 1 else ""
    return (
        Diagnostic(
            Severity.WARNING,
            f"Invisible character U+{ord(first.group()):04X}",
            f"The text can mean something else than what you see.{count_note}",
            source.range(start, end),
            source.excerpt(start),
            "Delete it. If you need it, write it in quotes as \\uNNNN.",
        ),
    )


class _Stop(NamedTuple):
    """Where the parser stopped, in types of tokens."""

    type: str
    """The refused token, or $END."""
    before: tuple[str, ...]
    """The tokens before it, in order."""
    expected: frozenset[str]
    """What the grammar would have accepted."""
    inside: str
    """The innermost open bracket; BODY for the brace of a block, empty if nothing is open."""
    block: str
    """The type of the innermost block, empty if it has labels or if there is none."""
    dotted: tuple[str, ...]
    """The names with dots that begin the lines of this body, from the stop on."""

    @property
    def last(self) -> str:
        return self.before[-1] if self.before else ""

    @property
    def found(self) -> str:
        return f"Found {_name_type(self.type)}"

    def can_take(self, *types: str) -> bool:
        return self.expected.issuperset(types)


def explain_error(
    source: Source, tokens: Sequence[Token], index: int, expected: frozenset[str]
) -> Diagnostic:
    """The error for tokens[index]; an index past the last token stands for the end of the text.

    expected: types of tokens that the grammar would have accepted there.
    """
    before = tuple(token.type for token in tokens[:index])
    type_ = tokens[index].type if index < len(tokens) else _END
    inside, opener = _find_innermost(before)
    block = _get_block_type(tokens, opener) if inside == "BODY" else ""
    dotted = tuple(_list_dotted_names(tokens, index)) if type_ == "DOT" else ()
    stop = _Stop(type_, before, expected, inside, block, dotted)
    message = next(explanation for rule in _RULES if (explanation := rule(stop)))
    start, end = _find_place(source, tokens, index)
    return make_fault(source, start, end, *message)


def _find_place(source: Source, tokens: Sequence[Token], index: int) -> tuple[int, int]:
    """The token itself; for the end of a line or of the text, the place behind the last token."""
    if index < len(tokens) and tokens[index].type != "NL_OR_COMMENT":
        return tokens[index].start, tokens[index].end
    end = tokens[index - 1].end if index else len(source.text)
    return end, end


def _find_innermost(types: Sequence[str]) -> tuple[str, int]:
    """The type and the index of the innermost open bracket."""
    # The grammar's states know this, too, but are only numbers here. A brace opens a body unless
    # it follows a `=` on its line, which is how the scanner tells blocks from objects.
    stack: list[tuple[str, int]] = []
    in_value = False
    for index, type_ in enumerate(types):
        if type_ == "LBRACE" and not in_value and (not stack or stack[-1][0] == "BODY"):
            stack.append(("BODY", index))
        elif type_ in _CLOSER_OF:
            stack.append((type_, index))
        elif type_ in _CLOSING and stack:
            stack.pop()
        if not stack or stack[-1][0] == "BODY":
            in_value = type_ == "EQ" or (in_value and type_ != "NL_OR_COMMENT")
    return stack[-1] if stack else ("", -1)


def _get_block_type(tokens: Sequence[Token], opener: int) -> str:
    """The word directly before the brace of a block; empty if there is none, or if labels are
    between them."""
    before = tokens[max(opener - 2, 0) : opener]
    starts = len(before) == 1 or (len(before) == 2 and before[0].type in _LINE_STARTS)
    return before[-1].text if starts and before[-1].type == "NAME" else ""


def _list_dotted_names(tokens: Sequence[Token], index: int) -> Iterator[str]:
    """The dotted names that begin the lines of a body, from the one of tokens[index], its first
    dot, to the end of the body."""
    depth = 0
    for at in range(index - 1, len(tokens)):
        depth += (tokens[at].type in _CLOSER_OF) - (tokens[at].type in _CLOSING)
        if depth < 0:
            return
        if depth or (at >= index and tokens[at - 1].type != "NL_OR_COMMENT"):
            continue
        end = at
        while end + 2 < len(tokens) and tokens[end + 1].type == "DOT":
            end += 2
        if end > at and all(token.type in _NAMES for token in tokens[at : end + 1 : 2]):
            yield "".join(token.text for token in tokens[at : end + 1])


def _explain_item_start(stop: _Stop) -> _Message | None:
    """At the place where an argument or a block should begin."""
    starts = stop.last in ("", "NL_OR_COMMENT", "LBRACE") and stop.inside in _BODIES
    if not starts or not stop.can_take("NAME") or stop.can_take("INT_LITERAL"):
        return None
    if stop.type in _LEADING_OPERATORS:
        advice = "Put the whole expression in parentheses, or on one line."
        detail = "A newline ends an expression, except inside brackets."
        return f"A line cannot begin with {_name_type(stop.type)} here", detail, advice
    if stop.type in _STRINGS:
        advice = "Remove the quotes from the name."
        if stop.block:
            advice = f"If {stop.block} is a map, write {stop.block} = {{ … }}; otherwise " + (
                f"{advice[0].lower()}{advice[1:]}"
            )
        detail = "An argument or a block begins with a name."
        return "Expected a name without quotes", detail, advice
    if stop.type == "LBRACE":
        advice = "Put it at the end of the line with the block's type and labels."
        detail = "The { of a block must be on the line of its type."
        return 'Expected a name before "{"', detail, advice
    detail = f"{stop.found}. A body contains arguments (name = value) and blocks (type {{ … }})."
    return "Expected an argument or a block", detail, ""


def _explain_header(stop: _Stop) -> _Message | None:
    """Behind the name of an argument or the type of a block."""
    in_header = stop.inside in _BODIES and stop.can_take("LBRACE", "DBLQUOTE", "NAME")
    if not in_header or stop.can_take("INT_LITERAL"):
        return None
    if stop.type == "DOT":
        return _explain_dotted_name(stop)
    if stop.type in _HEADER_MISTAKES:
        return _HEADER_MISTAKES[stop.type]
    if stop.can_take("EQ"):
        advice = "An argument is name = value; a block is type { … }."
        return 'Expected "=" or "{"', f"{stop.found} after a name.", advice
    if stop.type == "EQ":
        return 'A block has no "="', "An argument has no labels, and a block has no =.", ""
    advice = "The { of a block must be on this line; an argument has = between name and value."
    return 'Expected "{"', f"{stop.found} after a label.", advice


def _explain_dotted_name(stop: _Stop) -> _Message:
    ellipsis = ", …" * (len(stop.dotted) > _DOTTED_SHOWN)
    keys = ", ".join(f'"{name}" = …' for name in stop.dotted[:_DOTTED_SHOWN])
    form = f"{stop.block} = " if stop.block else ""
    return (
        "A dot cannot be part of a name here",
        "Names of arguments and blocks have no dots.",
        f"Names with dots belong inside a map, in quotes: {form}{{ {keys}{ellipsis} }}.",
    )


def _explain_one_line_block(stop: _Stop) -> _Message | None:
    if stop.inside != "BODY" or stop.expected != {"EQ"}:
        return None
    detail = "A block on one line can contain one argument and no blocks."
    return 'Expected "="', f"{stop.found}. {detail}", "Use several lines."


def _explain_missing_value(stop: _Stop) -> _Message | None:
    if not stop.can_take("INT_LITERAL", "LPAR"):
        return None
    if stop.type == "NL_OR_COMMENT":
        advice = "Put the value on this line; only inside brackets can it be on a later line."
        return "Expected a value before the end of the line", "", advice
    return "Expected a value", f"{stop.found}.", ""


def _explain_after_dot(stop: _Stop) -> _Message | None:
    if stop.last != "DOT":
        return None
    advice = "Write x[0][1] for two indexes." if stop.type == "FLOAT_LITERAL" else ""
    return "Expected a name after the dot", f"{stop.found}.", advice


def _explain_after_for(stop: _Stop) -> _Message | None:
    if stop.last != "FOR":
        return None
    advice = 'To use it as a key, write "for" in quotes.'
    return '"for" begins a for expression here', f"{stop.found} after it.", advice


def _explain_conditional(stop: _Stop) -> _Message | None:
    if not stop.can_take("COLON") or "QMARK" not in stop.before:
        return None
    detail = "A conditional has the form condition ? value : other value."
    advice = "Add the second value. To use several lines, put all of it in parentheses."
    return f'Expected ":" before {_name_type(stop.type)}', detail, advice


def _explain_after_item(stop: _Stop) -> _Message | None:
    """Behind a complete argument or block."""
    if stop.inside == "BODY" and stop.can_take("RBRACE") and _is_one_line(stop.before):
        detail = "A block on one line can contain one argument."
        advice = "Write one argument on each line."
        return f'Expected "}}" before {_name_type(stop.type)}', detail, advice
    if stop.inside not in _BODIES or not stop.can_take("NL_OR_COMMENT"):
        return None
    if stop.type == "RBRACE":
        detail = "The } of a block with several lines must be on its own line."
        return 'Expected a newline before "}"', detail, "Put the } on the next line."
    if stop.type == "COMMA":
        return "A comma is not allowed here", "A newline ends each argument and block.", ""
    advice = "Write each argument and block on its own line, or look for a missing operator."
    return "Expected the end of the line", f"{stop.found}.", advice


def _is_one_line(before: Sequence[str]) -> bool:
    """Whether the innermost block had no newline after its brace."""
    # Looks back from the end: only the tokens since the last newline matter.
    since = next((i for i, type_ in enumerate(reversed(before)) if type_ == "NL_OR_COMMENT"), None)
    start = 0 if since is None else len(before) - since
    return "LBRACE" in before[start:]


def _explain_in_template(stop: _Stop) -> _Message | None:
    if stop.inside not in ("INTERP_START", "DIRECTIVE_START") or not stop.can_take("RBRACE"):
        return None
    detail = f"{stop.found} after the expression."
    advice = "To write the characters ${ themselves, write $${."
    return 'Expected "}" to end the template part', detail, advice


def _explain_directive_word(stop: _Stop) -> _Message | None:
    if not stop.can_take("ENDIF", "ENDFOR"):
        return None
    detail = "%{ is followed by if, else, endif, for or endfor."
    advice = "To write the characters %{ themselves, write %%{."
    return "Unknown template directive", detail, advice


def _explain_in_object(stop: _Stop) -> _Message | None:
    if stop.inside != "LBRACE":
        return None
    items = stop.before[_find_object_start(stop.before) :]
    if stop.can_take("EQ", "COLON") and not ("EQ" in items or "COLON" in items):
        return 'Expected "=" after the key', f"{stop.found}.", "Write key = value."
    if stop.can_take("COMMA"):
        detail = f"{stop.found} after an item of an object."
        return "Expected a comma or a newline", detail, "Separate items with a comma or a newline."
    return None


def _find_object_start(before: Sequence[str]) -> int:
    """The index behind the innermost open brace, or behind the last complete item in it."""
    depth = 0
    for index in range(len(before) - 1, -1, -1):
        type_ = before[index]
        if type_ in _CLOSING:
            depth += 1
        elif type_ in _CLOSER_OF and depth:
            depth -= 1
        elif not depth and (type_ in ("COMMA", "NL_OR_COMMENT") or type_ in _CLOSER_OF):
            return index + 1
    return 0


def _explain_in_list(stop: _Stop) -> _Message | None:
    """Behind an element of a tuple or of an argument list."""
    if stop.inside not in ("LPAR", "LSQB") or "IN" in stop.expected:
        return None
    closer = _name_type(_CLOSER_OF[stop.inside])
    if not stop.can_take("COMMA", _CLOSER_OF[stop.inside]):
        return None
    advice = "Look for a missing comma or operator before it."
    return f"Expected a comma or {closer}", f"{stop.found} after an element.", advice


def _explain_anything(stop: _Stop) -> _Message:
    expected = sorted({_name_type(type_) for type_ in stop.expected})
    detail = f"Expected {' or '.join(expected)}." if len(expected) <= 4 else ""
    return f"Unexpected {_name_type(stop.type)}", detail, ""


# The first rule that answers wins, so the order matters: narrow situations before wide ones.
_RULES: tuple[Callable[[_Stop], _Message | None], ...] = (
    _explain_item_start,
    _explain_header,
    _explain_one_line_block,
    _explain_after_dot,
    _explain_after_for,
    _explain_missing_value,
    _explain_directive_word,
    _explain_conditional,
    _explain_after_item,
    _explain_in_template,
    _explain_in_object,
    _explain_in_list,
    _explain_anything,
)


def _name_type(type_: str) -> str:
    return _WORDS.get(type_, type_.lower())
