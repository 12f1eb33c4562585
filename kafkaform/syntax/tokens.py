"""The tokens of a text, and the tables of their types."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from msgspec import Struct

from ..core.diagnostics import Diagnostic
from .source import Source
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
