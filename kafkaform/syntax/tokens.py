"""The words and marks of a text, and the tables that name them."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import NamedTuple

from ..core.diagnostics import Diagnostic
from .source import Source
from .stamps import Stamp


class Token(NamedTuple):
    """type: a terminal of the grammar, or one of TRIVIA; offsets into source.text."""

    type: str
    start: int
    end: int
    source: Source

    @property
    def text(self) -> str:
        return self.source.text[self.start : self.end]


TRIVIA = frozenset({"COMMENT", "BREAK"})
"""Comments, and newlines that do not count."""


class Frame(Enum):
    """What surrounds an offset; it decides what the text there means."""

    __hash__ = object.__hash__  # that of Enum is written in Python, and asked for at every newline

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


class Scan(NamedTuple):
    """tokens: with trivia, in order; item_ends: for each top-level item the index after its
    last token; broken: indexes of items with a lexical error, which `faults` explains; stamps:
    blocks that were passed over."""

    tokens: list[Token]
    item_ends: list[int]
    broken: frozenset[int]
    faults: list[Diagnostic]
    stamps: list[Stamp]


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
