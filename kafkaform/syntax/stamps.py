"""Recognise blocks that repeat an earlier one except for plain words and numbers.

Generated configurations consist of thousands of such blocks. They are neither scanned nor parsed,
so reading and evaluating ten thousand of them takes a third of the time. The text of such a block
equals that of an earlier one except for words that are plain: without quotes, escapes, `$` or `%`,
so that they cannot end a string or begin a template. Both blocks therefore have the same tokens,
and the nodes of the earlier block say what the words of the later one stand for.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from msgspec import Struct, field
from msgspec.structs import force_setattr

from .nodes import Block, Body, Expression, Index, Label, Lit, Node, ObjectItem, Slot, Source

StampWord: TypeAlias = str | int

_BEGIN, _END = 'resource "', "\n}\n"
_LONGEST = 20_000
"""Characters of the longest block that is considered."""
_STENCILS = 16
"""Shapes that are tried for each block, the last used one first."""
_ROOM = 40_000
"""Characters of all blocks of a file that become patterns; compiling takes 6 microseconds each."""
_PATIENCE = 200
"""After so many blocks that repeat nothing, the file counts as handwritten."""

_PLAIN = r"[ !#&-\[\]-~]"  # printable ASCII without " $ % and backslash
_STRING, _NUMBER = rf"{_PLAIN}{{1,1000}}", r"\d{1,15}"
_WORDS = re.compile(
    rf'((?<=[\s(\[,=]"){_STRING}(?=")(?!"[ \t]*=(?!=))'  # a string that is no key
    rf'|(?<="){_STRING}(?=\$\{{)'  # the first text of a template
    rf'|(?<=\}})[\w.:/-]{_PLAIN}{{0,999}}(?=\$\{{|")'  # a later one
    rf'|(?<![\w."-]){_NUMBER}(?![\w.]))'
)
_BLANK = re.compile(r"\s*")


class Stencil(Struct, eq=False):
    """The text that blocks of one shape have in common."""

    first: int
    """The offset of the block that is parsed."""
    numbers: tuple[bool, ...]
    """For each word, whether it is a number."""
    pattern: re.Pattern[str]
    """Matches a block of the shape, with a group for each word."""


Stamp: TypeAlias = tuple[Stencil, int, int, tuple[str, ...]]
"""A block that was skipped: its shape, its start and end, its words."""


class Stamper(Struct, eq=False):
    """Decides at the beginning of each top-level item whether the scanner can pass it over."""

    text: str
    patience: int = _PATIENCE
    """How many more blocks may repeat nothing; 0 for a text in which nothing is skipped."""
    stamps: list[Stamp] = field(default_factory=list)
    """The blocks that were skipped."""
    candidate_starts: dict[tuple[str, ...], int] = field(default_factory=dict)
    """What is left of a scanned block without its words -> the offset of the block."""
    stencils: list[Stencil] = field(default_factory=list)
    """The shapes that are tried, the last used one first."""
    candidate: tuple[int, int, tuple[str, ...]] | None = None
    """The block that is being scanned: its start, its end, and what is left without its words."""
    room: int = _ROOM
    """What is left of _ROOM."""

    def pass_over(self, at: int) -> int:
        """The offset behind all blocks that follow at `at` and repeat earlier ones."""
        while self.patience > 0:
            begin = _BLANK.match(self.text, at).end()  # type: ignore[union-attr]  # always matches
            if not self.text.startswith(_BEGIN, begin):
                return at
            end = self._match_block(begin)
            if end is None:
                return at
            at = end + 1
        return at

    def note_item(self, end: int) -> None:
        """Note that an item was scanned which ends there."""
        # Only a block that the scanner has seen as one whole item can be repeated: its text could
        # also be a part of something else, such as a heredoc.
        if self.candidate is not None and self.candidate[1] == end:
            self.candidate_starts[self.candidate[2]] = self.candidate[0]
        self.candidate = None

    def _match_block(self, begin: int) -> int | None:
        """The end of the block that begins there, if it repeats an earlier one."""
        for stencil in self.stencils:
            match = stencil.pattern.match(self.text, begin)
            if match is not None:
                return self._note_stamp(stencil, match)
        close = self.text.find(_END, begin, begin + _LONGEST)
        if close < 0:
            return None
        end = close + 2
        kind = self.text.find('"', begin + len(_BEGIN))  # the type is part of the shape
        pieces = _WORDS.split(self.text[kind:end])
        pieces[0] = self.text[begin:kind] + pieces[0]
        fixed = tuple(pieces[::2])
        first = self.candidate_starts.get(fixed)
        if first is None:  # the first block of its shape
            self.candidate = (begin, end, fixed)
            self.patience -= 1
            return None
        self.room -= end - begin
        if self.room < 0:
            return None
        stencil = _make_stencil(first, pieces)
        self.stencils = [stencil, *self.stencils[: _STENCILS - 1]]
        match = stencil.pattern.match(self.text, begin)
        return None if match is None else self._note_stamp(stencil, match)

    def _note_stamp(self, stencil: Stencil, match: re.Match[str]) -> int:
        if stencil is not self.stencils[0]:
            self.stencils.remove(stencil)
            self.stencils.insert(0, stencil)
        self.patience = _PATIENCE
        self.stamps.append((stencil, match.start(), match.end(), match.groups()))
        return match.end()


def _make_stencil(first: int, pieces: list[str]) -> Stencil:
    """The stencil of a shape. pieces: the fixed texts and the words of a block, in turn."""
    # Digits in quotes, or behind a `}` of a template, are text.
    numbers = tuple(
        word[0].isdigit() and not before.endswith(('"', "}"))
        for before, word in zip(pieces[::2], pieces[1::2], strict=False)
    )
    regexes = [re.escape(pieces[0])]
    for number, fixed in zip(numbers, pieces[2::2], strict=True):
        regexes.append(f"({_NUMBER})(?![\\w.])" if number else f"({_STRING})")
        regexes.append(re.escape(fixed))
    return Stencil(first, numbers, re.compile("".join(regexes) + r"(?=\n)"))


# ── what the words stand for ────────────────────────────────────────────────────────────


Parse: TypeAlias = Callable[[Source, int, int], Block]
"""Parses the block between two offsets, which is known to have no fault."""


class StencilShape(Struct, frozen=True, eq=False):
    """What the blocks of one shape have in common. The first word is the name of the block."""

    block: Block
    """The block that was parsed."""
    pattern: Block
    """A copy of it with slots in the place of the constants, in the order of the words."""
    parse: Parse


class Stamped(Block, frozen=True):
    """A block that was skipped. Its body is parsed when it is asked for."""

    # The field `body` of Block has the body of the shape; the property below hides it.
    shape: StencilShape
    words: tuple[StampWord, ...]
    """In the order of the slots of the shape."""
    _parsed: Body | None = None

    @property  # type: ignore[misc]  # parsed when asked for
    def body(self) -> Body:
        if self._parsed is not None:
            return self._parsed
        body = self.shape.parse(self.source, self.start, self.end).body
        force_setattr(self, "_parsed", body)
        return body

    # Most questions are about arguments and blocks that no block of the shape has. The shape
    # answers these, because parsing the body would undo what passing over the block gained.

    def get_argument(self, name: str) -> Expression | None:
        if name not in self.shape.block.body.attributes:
            return None
        return self.body.attributes[name].value

    def list_blocks(self, kind: str) -> tuple[Block, ...]:
        return ()  # no block with blocks is skipped


def stamp_block(source: Source, stamp: Stamp, shape: StencilShape) -> Stamped:
    """The block of a stamp."""
    stencil, begin, end, texts = stamp
    # The name is the first word, so everything before it is at the same distance from the start.
    first, moved = shape.block, begin - shape.block.start
    kind, name = first.labels
    text = texts[0]
    start = name.start + moved
    labels = (
        Label(source, kind.start + moved, kind.end + moved, kind.text),
        Label(source, start, start + len(text) + 2, text),
    )
    words = [
        int(word) if number else word for word, number in zip(texts, stencil.numbers, strict=True)
    ]
    return Stamped(source, begin, end, first.type, labels, first.body, shape, tuple(words))


def make_shape(stencil: Stencil, block: Block, parse: Parse) -> StencilShape | None:
    """The shape of a stencil; None if one of its words is not a constant of the block or its
    name, such as a key, an index or a part of a comment."""
    match = stencil.pattern.match(block.source.text, block.start)
    # A `~` changes the text beside it, so a word would not be what the string says. A `#` in a
    # string, nested blocks and instances are rare in generated files; they take the usual way.
    if match is None or "~" in match.group() or block.body.blocks or len(block.labels) != 2:
        return None
    if any(name in block.body.attributes for name in ("for_each", "count")):
        return None
    name, spans = block.labels[1], [match.span(n + 1) for n in range(len(stencil.numbers))]
    if not spans or spans[0] != (name.start + 1, name.end - 1):
        return None
    slots = {span: number for number, span in enumerate(spans)}
    swapped: set[int] = set()
    attributes = {
        key: _swap_constants(item, slots, swapped) for key, item in block.body.attributes.items()
    }
    if len(swapped) != len(spans) - 1:
        return None
    body = Body(block.source, block.body.start, block.body.end, attributes, ())
    pattern = Block(block.source, block.start, block.end, block.type, block.labels, body)
    return StencilShape(block, pattern, parse)


def _swap_constants(node: Any, slots: Mapping[tuple[int, int], int], swapped: set[int]) -> Any:
    """The node with slots in the place of constants; the same node if it has none. slots: span of
    a word -> its number; swapped: gets the numbers of the words that were found."""
    if isinstance(node, tuple):
        children = tuple(_swap_constants(child, slots, swapped) for child in node)
        return (
            children
            if any(new is not old for new, old in zip(children, node, strict=True))
            else node
        )
    if isinstance(node, Lit):
        number = slots.get((node.start, node.end), slots.get((node.start + 1, node.end - 1)))
        if number is None:
            return node
        swapped.add(number)
        return Slot(node.source, node.start, node.end, number)
    if not isinstance(node, Node):
        return node
    # Keys and indexes say which names exist, so they must be the same in all blocks of a shape.
    fixed_field = "key" if isinstance(node, ObjectItem | Index) else ""
    fields = [(name, getattr(node, name)) for name in node.__struct_fields__]
    values = [
        child if name == fixed_field else _swap_constants(child, slots, swapped)
        for name, child in fields
    ]
    unchanged = all(new is old for new, (_, old) in zip(values, fields, strict=True))
    return node if unchanged else type(node)(*values)
