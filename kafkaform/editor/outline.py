"""The outline of a text: its blocks, attributes and references.

The outline of HCL is found by its tokens alone, so it exists for every text, also for one that does
not parse: that is the usual state of a text while somebody types. The outline of JSON is made of
its nodes and has no references, because they are inside of texts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from ..language.declare.blocks import SHAPES
from ..language.tests.suites import SHAPES as TEST_SHAPES
from ..syntax.nodes import Block, Body, Lit, Source
from ..syntax.scan import scan
from ..syntax.tokens import KEYWORDS, Token
from ..workflow.configuration.repository import PAGES

MAX_CHARACTERS = 1_000_000
"""The longest text that has an outline: a key press must not wait for a hostile file."""


# Nested blocks and arguments can stand in the first column as long as nobody has formatted them.
_TOP_LEVEL = re.compile(
    rf'(?:{"|".join((*SHAPES, *TEST_SHAPES, *PAGES, "terraform"))})(?=[ \t"{{])[^\n={{]*+\{{'
)
"""A line that begins a block of a file."""


class Word(Struct, frozen=True):
    """A word, and its place."""

    text: str
    start: int
    end: int
    """Offsets; quotes are not part of it."""

    def covers(self, offset: int) -> bool:
        """Whether a cursor at this offset touches the word."""
        return self.start <= offset <= self.end


class ItemOutline(Struct):
    """`name = value` in a body."""

    name: Word
    value: int
    """Where the value begins."""
    end: int
    """Where the value ends."""
    literal: Word | None = None
    """The value, if it is a plain string."""


class BlockOutline(Struct):
    """A block."""

    type: Word
    labels: tuple[Word, ...]
    start: int
    end: int
    body: int
    """The offset behind its opening brace."""
    items: list[ItemOutline] = field(default_factory=list)
    sections: list[BlockOutline] = field(default_factory=list)

    def find_item(self, name: str) -> ItemOutline | None:
        """The argument with this name, None if it is not given."""
        return next((item for item in self.items if item.name.text == name), None)

    def list_names(self) -> set[str]:
        """The names of its arguments, and the types of its blocks."""
        return {child.name.text for child in self.items} | {
            child.type.text for child in self.sections
        }


class Chain(Struct):
    """The words of a reference: `kafka_topic`, `a` and `name` of `kafka_topic.a["x"].name`."""

    words: list[Word]


class OpenPart(Struct):
    """Something that is open: the text, a block, an object, brackets, a call, a string."""

    kind: str
    """body, object, bracket, call, template or string."""
    section: BlockOutline
    """The innermost block."""
    start: int
    line: list[Token] = field(default_factory=list)
    """The tokens since the last newline or comma that counts."""
    item: ItemOutline | None = None
    """In a body: the argument whose value is open."""
    name: str = ""
    """Of a call: the function. In an object: the key whose value is open."""
    outer_chain: Chain | None = None
    """In brackets behind a reference: that reference."""
    keys: set[str] = field(default_factory=set)
    """Of an object: the keys that were given."""
    commas: int = 0
    """In a call: how many arguments are complete."""


class TextOutline(Struct, frozen=True):
    """What was found in a text."""

    root: BlockOutline
    """Has the top-level items; its type is empty."""
    chains: tuple[Chain, ...]
    calls: tuple[Word, ...]
    """The names of functions that are called."""
    frames: tuple[OpenPart, ...]
    """What is open at the end, the innermost last; the first one is the text."""
    tokens: tuple[Token, ...]
    open_chain: Chain | None = None
    """The reference that the text ends in."""

    def walk(self) -> Iterator[tuple[BlockOutline, ...]]:
        """Every block, with the blocks around it before it; parents first."""
        waiting: list[tuple[BlockOutline, ...]] = [
            (section,) for section in reversed(self.root.sections)
        ]
        while waiting:
            path = waiting.pop()
            yield path
            waiting += [(*path, inner) for inner in reversed(path[-1].sections)]

    def find_path(self, offset: int) -> tuple[BlockOutline, ...]:
        """The blocks whose bodies an offset is in, the outermost first."""
        path: tuple[BlockOutline, ...] = ()
        inside = self.root.sections
        while inner_section := next(
            (section for section in inside if section.body <= offset < section.end), None
        ):
            path, inside = (*path, inner_section), inner_section.sections
        return path


def make_outline(text: str) -> TextOutline:
    """The outline of a text; an empty one if the text is too long."""
    if len(text) > MAX_CHARACTERS:
        text = ""
    scanned = scan(Source("", text), end=len(text))
    return _OutlineWalk.over(text, scanned.tokens, bool(scanned.faults))


_NAMES = {"NAME", *KEYWORDS.values()}
_SEPARATORS = ("NL_OR_COMMENT", "COMMA")


class _OutlineWalk(Struct):
    """A walk over the tokens of a text."""

    text: str
    faulty: bool
    """Whether brackets can be missing."""
    frames: list[OpenPart]
    chains: list[Chain] = field(default_factory=list)
    calls: list[Word] = field(default_factory=list)
    chain: Chain | None = None
    """The reference that the last token belongs to."""
    last: Token | None = None

    @staticmethod
    def over(text: str, tokens: list[Token], faulty: bool) -> TextOutline:
        root = BlockOutline(Word("", 0, 0), (), 0, len(text) + 1, 0)
        walk = _OutlineWalk(text, faulty, [OpenPart("body", root, 0)])
        for token in tokens:
            # The scanner ends a text that has no newline with an empty token.
            if token.type in ("COMMENT", "BREAK") or token.start == token.end:
                continue
            if faulty and len(walk.frames) > 1 and walk._starts_item(token):
                walk._close_all(token.start)
            _STEPS.get(token.type, _OutlineWalk.plain)(walk, token)
            walk.last = token
        open_frames = tuple(walk.frames)
        for frame in walk.frames:
            if frame.item is not None:
                frame.item.end = len(text)
            if frame.section is not root and frame.kind == "body":
                frame.section.end = len(text) + 1
        names = tuple(walk.chains), tuple(walk.calls), open_frames, tuple(tokens)
        return TextOutline(root, *names, walk.chain)

    @property
    def top(self) -> OpenPart:
        return self.frames[-1]

    def _starts_item(self, token: Token) -> bool:
        """Whether a line begins here as top-level items do. In a text that does not parse, what is
        open then has no end."""
        first = token.start == 0 or self.text[token.start - 1] == "\n"
        literal = self.top.kind == "string"
        return first and not literal and bool(_TOP_LEVEL.match(self.text, token.start))

    def _close_all(self, at: int) -> None:
        while len(self.frames) > 1:
            self._pop(at)
        self._end_line(at)

    def _push(self, kind: str, token: Token, **settings: Any) -> None:
        self.frames.append(
            OpenPart(kind, settings.pop("section", self.top.section), token.start, **settings)
        )
        self.chain = None

    def _pop(self, end: int) -> OpenPart:
        frame = self.frames.pop()
        if frame.kind == "body":
            frame.section.end = end
            self._finish_item(frame, end)
        self.chain = frame.outer_chain
        return frame

    def _finish_item(self, frame: OpenPart, end: int) -> None:
        item = frame.item
        if item is None:
            return
        item.end = end
        value = [word for word in frame.line if word.start >= item.value]
        if len(value) == 1 and value[0].type == "PLAIN_STRING":
            word = value[0]
            item.literal = Word(word.text[1:-1], word.start + 1, word.end - 1)
        frame.item = None

    def _end_line(self, at: int) -> None:
        top = self.top
        self._finish_item(top, at)
        top.line, top.name = [], ""
        self.chain = None

    # -- tokens

    def plain(self, token: Token) -> None:
        self.chain = None
        self.top.line.append(token)

    def keep(self, token: Token) -> None:
        """A token inside of a reference: a dot, a splat, a legacy index."""
        self.top.line.append(token)

    def name(self, token: Token) -> None:
        top = self.top
        top.line.append(token)
        word = Word(token.text, token.start, token.end)
        if self.last is not None and self.last.type == "DOT" and self.chain is not None:
            self.chain.words.append(word)
            return
        self.chain = Chain([word])
        if not (top.kind == "body" and top.item is None):
            self.chains.append(self.chain)

    def number(self, token: Token) -> None:
        if self.last is None or self.last.type != "DOT":
            self.chain = None
        self.top.line.append(token)

    def equals(self, token: Token) -> None:
        top, self.chain = self.top, None
        if top.kind == "body" and top.item is None and top.line:
            first = top.line[0]
            top.item = ItemOutline(Word(first.text, first.start, first.end), token.end, token.end)
            top.section.items.append(top.item)
            top.line = []
        elif top.kind == "object" and not top.name:
            top.name = _read_key(top.line)
            top.keys.add(top.name)
        top.line.append(token) if top.kind != "body" else None

    def open_brace(self, token: Token) -> None:
        top = self.top
        if top.kind != "body" or top.item is not None:
            top.line.append(token)
            self._push("object", token)
            return
        words = [_get_word(word) for word in top.line if word.type in _NAMES | _TEXTS]
        words = words or [Word("", token.start, token.start)]
        section = BlockOutline(words[0], tuple(words[1:]), words[0].start, token.end, token.end)
        top.section.sections.append(section)
        self._push("body", token, section=section)

    def close_brace(self, token: Token) -> None:
        while len(self.frames) > 1 and self.top.kind not in ("body", "object", "template"):
            self._pop(token.start)
        if len(self.frames) > 1:
            block = self._pop(token.end).kind == "body"
            if block:
                self.top.line = []
        self.chain = None

    def open_bracket(self, token: Token) -> None:
        chain = self.chain
        self.top.line.append(token)
        self._push("bracket", token, outer_chain=chain)

    def close_bracket(self, token: Token) -> None:
        if self.top.kind == "bracket":
            self._pop(token.end)
        self.top.line.append(token)

    def open_call(self, token: Token) -> None:
        called = None
        if self.chain is not None and self.last is not None and self.last.type in _NAMES:
            called = self.chain.words[0]
        if called is not None:
            self.calls.append(called)
            if self.chains and self.chains[-1] is self.chain:
                self.chains.pop()
        self.top.line.append(token)
        self._push("call", token, name=called.text if called else "")

    def close_call(self, token: Token) -> None:
        if self.top.kind == "call":
            self._pop(token.end)
        self.top.line.append(token)
        self.chain = None

    def open_template(self, token: Token) -> None:
        self._push("template", token)

    def quote(self, token: Token) -> None:
        if self.top.kind == "string":
            self._pop(token.end)
            self.top.line.append(token)
            self.chain = None
        else:
            self.top.line.append(token)
            self._push("string", token)

    def literal(self, token: Token) -> None:
        self.top.line.append(token)
        # The parts of a label or key with quotes are looked for in the line around it.
        if len(self.frames) > 1:
            self.frames[-2].line.append(token)

    def close_heredoc(self, token: Token) -> None:
        if self.top.kind == "string":
            self._pop(token.end)

    def separate(self, token: Token) -> None:
        top = self.top
        if top.kind == "body" and token.type == "COMMA":
            self.plain(token)
            return
        self._end_line(token.start)
        top.commas += 1


_TEXTS = {"PLAIN_STRING", "STRING_CHARS"}


def _get_word(token: Token) -> Word:
    if token.type == "PLAIN_STRING":
        return Word(token.text[1:-1], token.start + 1, token.end - 1)
    return Word(token.text, token.start, token.end)


def _read_key(line: list[Token]) -> str:
    key = next((token for token in line if token.type in _NAMES | _TEXTS), None)
    return "" if key is None else _get_word(key).text


_STEPS: Mapping[str, Callable[[_OutlineWalk, Token], None]] = {
    **dict.fromkeys(_NAMES, _OutlineWalk.name),
    **dict.fromkeys(_SEPARATORS, _OutlineWalk.separate),
    **dict.fromkeys(("DOT", "ATTR_SPLAT", "FULL_SPLAT_START"), _OutlineWalk.keep),
    **dict.fromkeys(("INTERP_START", "DIRECTIVE_START"), _OutlineWalk.open_template),
    **dict.fromkeys(("INT_LITERAL", "FLOAT_LITERAL"), _OutlineWalk.number),
    "EQ": _OutlineWalk.equals,
    "COLON": _OutlineWalk.equals,
    "LBRACE": _OutlineWalk.open_brace,
    "RBRACE": _OutlineWalk.close_brace,
    "LSQB": _OutlineWalk.open_bracket,
    "RSQB": _OutlineWalk.close_bracket,
    "LPAR": _OutlineWalk.open_call,
    "RPAR": _OutlineWalk.close_call,
    "DBLQUOTE": _OutlineWalk.quote,
    "HEREDOC_TEMPLATE": _OutlineWalk.quote,
    "HEREDOC_END": _OutlineWalk.close_heredoc,
    "STRING_CHARS": _OutlineWalk.literal,
}


def outline_nodes(body: Body) -> TextOutline:
    """The blocks and arguments of a file that was parsed."""
    root = BlockOutline(Word("", 0, 0), (), 0, body.end + 1, 0)
    _fill_section(root, body)
    return TextOutline(root, (), (), (), ())


def _fill_section(section: BlockOutline, body: Body) -> None:
    for name, attribute in body.attributes.items():
        node = attribute.value
        word = Word(name, attribute.start, attribute.start + len(name))
        item = ItemOutline(word, node.start, node.end)
        if isinstance(node, Lit) and isinstance(node.value, str):
            item.literal = Word(node.value, node.start, node.end)
        section.items.append(item)
    section.sections += [_make_section(block) for block in body.blocks]


def _make_section(block: Block) -> BlockOutline:
    kind = Word(block.type, block.start, block.start + len(block.type))
    labels = tuple(Word(label.text, label.start, label.end) for label in block.labels)
    section = BlockOutline(kind, labels, block.start, block.end, block.body.start)
    _fill_section(section, block.body)
    return section
