"""The tokens of a text, the tables of their types, and the regular expressions that find them.

All expressions take linear time. Runs of one character class are possessive, and alternatives start
with different characters, so nothing is tried twice. Groups are not possessive, because Python
before 3.11.5 matches those wrongly (CPython gh-106052). They repeat a limited number of times
instead: the engine keeps every repetition in memory.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from msgspec import Struct

from ..core.diagnostics import Diagnostic
from .nodes import Source
from .stamps import Stamp


class Token(NamedTuple):
    """A word, a punctuation mark, or a piece of literal text."""

    type: str
    """A terminal of the grammar, or one of TRIVIA."""
    start: int
    end: int
    """Offsets into source.text."""
    source: Source

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]


TRIVIA = frozenset({"COMMENT", "BREAK"})
"""Tokens that the parser does not see: comments, and newlines that do not count."""


class Frame(Enum):
    """What surrounds a place in the text. It decides what the text there means."""

    # Enum's own hash is a Python function, and the scanner would call it for every newline.
    __hash__ = object.__hash__

    BODY = "body"
    OBJECT = "object"
    FOR_OBJECT = "for object"
    PAREN = "parentheses"
    BRACKET = "brackets"
    INTERPOLATION = "interpolation"
    DIRECTIVE = "directive"
    EXPRESSION = "expression"
    QUOTED = "quoted string"
    HEREDOC = "heredoc"
    BARE = "bare template"


class OpenFrame(Struct, eq=False):
    """What is open at an offset, such as a bracket or a string."""

    frame: Frame
    start: int
    marker: str = ""
    """The word that ends a heredoc."""
    in_value: bool = False
    """In a body: `=` was seen on this line, so a `{` opens an object and not a block."""


class Scan(NamedTuple):
    """The result of a scan."""

    tokens: list[Token]
    """In order, with TRIVIA."""
    item_ends: list[int]
    """For each top-level item, the index behind its last token."""
    broken: frozenset[int]
    """Indexes of items with a lexical error, which `faults` explains."""
    faults: list[Diagnostic]
    stamps: list[Stamp]
    """Blocks that were skipped."""
    flat: bool
    """Whether there are flat objects that are one token."""


OPERATORS: Mapping[str, str] = {
    "==": "DOUBLE_EQ",
    "!=": "NEQ",
    "<": "LT",
    ">": "GT",
    "<=": "LEQ",
    ">=": "GEQ",
    "-": "MINUS",
    "*": "ASTERISK",
    "/": "SLASH",
    "%": "PERCENT",
    "&&": "DOUBLE_AMP",
    "||": "DOUBLE_PIPE",
    "+": "PLUS",
    "!": "NOT",
    "?": "QMARK",
    "=": "EQ",
    ":": "COLON",
    "::": "COLONS",
    ",": "COMMA",
    ".": "DOT",
    "=>": "FOR_OBJECT_ARROW",
    "...": "ELLIPSIS",
}
KEYWORDS: Mapping[str, str] = {
    "true": "TRUE",
    "false": "FALSE",
    "null": "NULL",
    "if": "IF",
    "in": "IN",
    "for": "FOR",
    "else": "ELSE",
    "endif": "ENDIF",
    "endfor": "ENDFOR",
}
OPENERS: Mapping[str, tuple[str, Frame]] = {
    "{": ("LBRACE", Frame.OBJECT),
    "(": ("LPAR", Frame.PAREN),
    "[": ("LSQB", Frame.BRACKET),
}
CLOSERS: Mapping[str, str] = {")": "RPAR", "]": "RSQB", "}": "RBRACE"}
CLOSER_OF: Mapping[Frame, str] = {
    Frame.BODY: "}",
    Frame.OBJECT: "}",
    Frame.FOR_OBJECT: "}",
    Frame.INTERPOLATION: "}",
    Frame.DIRECTIVE: "}",
    Frame.PAREN: ")",
    Frame.BRACKET: "]",
}


# Described by the characters that are not in a name: a class of letters that reaches to U+10FFFF
# would take 5 ms to compile, for each use.
_NAME = r"[^\x00-@\[-^`{-\x7f][^\x00-,./:-@\[-^`{-\x7f]*+"
_COMMENT = r"(?:\#|//)[^\n]*+|/\*.*?\*/"

CODE = re.compile(
    rf"""[ \t]*+(?:\r(?=\n))? (?:
      (?P<NAME>{_NAME})
    | (?P<newline>\n)
    | (?P<PLAIN_STRING>"[^"\\$%\r\n]*+")
    | (?P<quote>")
    | (?P<FLOAT_LITERAL>[0-9]++(?=[.eE])(?:\.[0-9]++(?:[eE][+-]?[0-9]++)?|[eE][+-]?[0-9]++))
    | (?P<INT_LITERAL>[0-9]++)
    | (?P<EQ>=(?![=>]))
    | (?P<comment>{_COMMENT})
    | (?P<heredoc><<-?{_NAME}\r?\n)
    | (?P<FULL_SPLAT_START>\[[ \t]*+\*[ \t]*+\])
    | (?P<ATTR_SPLAT>\.[ \t]*+\*)
    | (?P<open>[\[({{])
    | (?P<close>[\])}}])
    | (?P<mark>/(?!\*)|==|!=|<=|>=|<(?!<)|&&|\|\||=>|\.\.\.|::|[-+*%>!?:,.])
    | (?P<strip>~(?=\}}))
    | (?P<end>\Z)
    | (?P<bad>.)
    )""",
    re.VERBOSE | re.DOTALL,
)
"""One token of code, after blanks. Groups in capitals are types of tokens, the others are handled
by a method of the scanner. A name contains every character beyond ASCII; the scanner checks it
(`é = 1` is valid HCL)."""

_PLAIN_STRING = r'"[^"\\$%\r\n]{0,100000}+"'
_KEY = rf"{_PLAIN_STRING}|(?!(?:{'|'.join(KEYWORDS)})(?![\w-]))[A-Za-z_][\w-]*+"
_CONSTANT = rf"{_PLAIN_STRING}|[0-9]{{1,300}}+(?:\.[0-9]{{1,300}}+)?|true|false|null"


def _make_item(value: str) -> str:
    """The pattern of an item with such a value, and the blanks behind it."""
    return rf"(?:{_KEY})[ \t]*+=[ \t]*+(?:{value})[ \t]*+"


def _make_object(value: str, most: int) -> str:
    """The pattern of an object with such values, at most so many."""
    item = _make_item(value)
    return rf"\{{[ \t\n]*+(?:{item}[,\n][ \t\n]*+){{0,{most}}}(?:{item})?\}}"


_FLAT = _make_object(rf"{_CONSTANT}|{_make_object(_CONSTANT, 100)}", 1000)
# Texts, because compiling them takes milliseconds, and only large files have a use for them.
FLAT_OBJECT = rf"(?a){_FLAT}"
"""An object without comments whose keys are words or plain strings and whose values are constants,
or objects of constants. No constant is longer than the language allows. Outside of strings it has
no other braces, so no part of a text is tried more than a few times."""
FLAT_ITEM = rf"(?a)({_KEY})[ \t]*+=[ \t]*+({_CONSTANT}|{_FLAT})"
"""An item whose value is a constant or such an object, with groups for key and value."""
CONSTANT_STEP = rf"(?a)({_KEY})[ \t]*+=[ \t]*+({_CONSTANT}|\{{)|\}}"
"""What a flat object consists of: a key with a constant, with groups for both; a key with the
beginning of an object; the end of an object."""
MAP_START = r"\{[ \t\n]*+"
MAP_ITEM = rf"(?a){_make_item(f'{_CONSTANT}|{_FLAT}')}[,\n][ \t\n]*+"
MAP_END = rf"(?a)(?:{_make_item(f'{_CONSTANT}|{_FLAT}')})?\}}"
"""An object of any number of such items: its beginning, an item, and its end, with the last item if
nothing parts them."""

QUOTED_TEXT = re.compile(r'(?:[^"\\$%\r\n]++|\\[^\r\n]|\$\$\{|%%\{|[$%](?!\{)){1,1000}')
BARE_TEXT = re.compile(r"(?:[^$%]++|\$\$\{|%%\{|[$%](?!\{)){1,1000}")
"""Literal text, or the first part of it."""

NOTHING = re.compile(rf"[ \t\r\n]++|{_COMMENT}", re.DOTALL)
FOR = re.compile(r"for(?![\w-])")
# hcl2's own terminal ends a heredoc by `\s*`, which also matches newlines: 20 KB of blank lines
# took it more than a second, and the time grew with the square of the size.
HEREDOC_STOP = re.compile(
    rf"^[^\S\n]*+({_NAME})[^\S\n]*+(?=\n)|\$\$\{{|%%\{{|\$\{{|%\{{", re.MULTILINE
)
"""A line with one word (group 1), as the last line of a heredoc has it, or `${` or `%{`, doubled
or not."""

NEXT_ITEM = re.compile(r"\n(?=[^\W\d])")
"""Where scanning goes on after an error: a name in the first column begins an item."""
UNINDENTED_ITEM = re.compile(
    r'^[^\W\d][\w-]*+(?:(?:[ \t]++"[^"\n]*+")*[ \t]*+\{[ \t]*+\r?$|[ \t]*+=[ \t])', re.MULTILINE
)
MISWRITTEN_HEREDOC = re.compile(r"<<-?[ \t]*+[\"']?([\w-]++)[^\n]*+")
"""The first line of a heredoc with blanks or quotes around the marker, as a shell allows them."""
# As git writes them: seven times one character at the start of a line, then a blank or the end.
CONFLICT = re.compile(r"(?<![^\n])(?:<{7}|>{7}|={7}|\|{7})(?=[ \r\n]|\Z)")
