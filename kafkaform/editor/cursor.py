"""What surrounds a cursor, by the text before it: what is typed, and what belongs there."""

from __future__ import annotations

from enum import StrEnum

from msgspec import Struct

from ..syntax.tokens import KEYWORDS
from .outline import BlockOutline, OpenPart, make_outline

_NAMES = {"NAME", *KEYWORDS.values()}


class CursorSlot(StrEnum):
    """What belongs at a cursor."""

    ITEM = "item"
    """An argument or a block."""
    LABEL = "label"
    KEY = "key"
    """A key of an object."""
    VALUE = "value"
    NOTHING = "nothing"
    """Such as in a comment."""


class CursorPlace(Struct, frozen=True):
    """A cursor in a text."""

    slot: CursorSlot
    word: str
    """What is typed of the word at the cursor."""
    start: int
    """Where that word begins."""
    quoted: bool = False
    """Whether the word stands in quotes."""
    chain: tuple[str, ...] = ()
    """The words of a reference before it."""
    frames: tuple[OpenPart, ...] = ()
    """What is open, the innermost last, without the quotes."""
    label: int = 0
    """In a label: its number."""
    line: tuple[str, ...] = ()
    """In a label: the words before it, the type of the block first."""

    @property
    def argument(self) -> str:
        """The argument whose value the cursor is in."""
        item = next((f.item for f in reversed(self.frames) if f.kind == "body"), None)
        return "" if item is None else item.name.text

    @property
    def keys(self) -> tuple[str, ...]:
        """The keys of objects that the cursor is in the values of, inside of that argument."""
        keys: list[str] = []
        for frame in self.frames:
            if frame.kind == "body":
                keys.clear()
            elif frame.kind == "object":
                keys.append(frame.name)
        return tuple(keys)

    @property
    def call(self) -> str:
        """The innermost function that is being called."""
        names = (f.name for f in reversed(self.frames) if f.kind == "call" and f.name)
        return next(names, "")

    @property
    def section(self) -> BlockOutline:
        """The innermost block."""
        return self.frames[-1].section


def find_place(text: str, offset: int) -> CursorPlace:
    """The place of a cursor."""
    before = text[:offset]
    outline = make_outline(before)
    frames, tokens = outline.frames, outline.tokens
    end = tokens[-1].end if tokens else 0
    # The scanner ends a text that has no newline with an empty token.
    while tokens and tokens[-1].start == tokens[-1].end:
        tokens = tokens[:-1]
    line_end = before[end:].lstrip()
    if (tokens and tokens[-1].type == "COMMENT" and tokens[-1].end == offset) or line_end[
        :2
    ] == "/*":
        return CursorPlace(CursorSlot.NOTHING, "", offset)
    last = tokens[-1] if tokens and tokens[-1].end == offset else None
    if frames[-1].kind == "string":
        typed = last if last is not None and last.type == "STRING_CHARS" else None
        start = offset if typed is None else typed.start
        inner = CursorPlace(CursorSlot.VALUE, before[start:], start, True, (), frames[:-1])
    else:
        typed = last if last is not None and last.type in _NAMES else None
        start = offset if typed is None else typed.start
        words = tuple(word.text for word in outline.open_chain.words) if outline.open_chain else ()
        words = words[:-1] if typed is not None else words
        dotted = last is not None and last.type == "DOT"
        chain = words if typed is not None or dotted else ()
        inner = CursorPlace(CursorSlot.VALUE, before[start:], start, False, chain, frames)
    return _choose_slot(inner)


def _choose_slot(cursor: CursorPlace) -> CursorPlace:
    top = cursor.frames[-1]
    typed = [token for token in top.line if token.end <= cursor.start and token.type != "DBLQUOTE"]
    words = tuple(token.text.strip('"') for token in typed)
    slot, number = CursorSlot.VALUE, 0
    if top.kind == "object" and not top.name:
        slot = CursorSlot.KEY if not words else CursorSlot.NOTHING
    elif top.kind == "body" and top.item is None:
        slot = CursorSlot.LABEL if words else CursorSlot.ITEM
        number = len(words) - 1
        if slot is CursorSlot.ITEM and cursor.quoted:
            slot = CursorSlot.NOTHING
    return CursorPlace(
        slot, cursor.word, cursor.start, cursor.quoted, cursor.chain, cursor.frames, number, words
    )
