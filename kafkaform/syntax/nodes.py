"""Configuration texts, with their limits, and the nodes that HCL text becomes.

Texts are limited because pull requests can be hostile. Every node knows its place: `node.range`,
computed on demand, with line, column and excerpt.

Nodes compare by identity and can be dictionary keys. A repr shows type and place, never content,
because a literal may be a secret. The depth is at most `NESTING`, with one exception: the
left side of `Binary` can be thousands of levels deep (`1+1+1+…`). So use `split_operands` to walk
it, and `walk` for whole expressions; neither recurses.
"""

from __future__ import annotations

import re
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from functools import cached_property
from itertools import accumulate, chain
from operator import attrgetter
from typing import Any, TypeAlias

from msgspec import Struct

from ..core.diagnostics import Range

FILE_BYTES = 8 * 1024 * 1024
"""Size of one file."""
ALL_FILES_BYTES = 64 * 1024 * 1024
"""Size of all configuration files together, and of all files that functions read."""
TOKENS = 800_000
"""Tokens of one file. 10,000 ordinary blocks have 600,000, which take up to 4 s and 300 MB."""

COLLECTION_ELEMENTS = 100_000
"""Elements of one list or object."""
# Python's own limit is 1,000 frames, and a level of evaluation takes several of them.
NESTING = 100
"""Brackets, blocks and templates inside each other; also the depth of an expression, in which a
chain of binary operators counts as one level."""

STRING_CHARACTERS = 1024 * 1024
NUMBER_CHARACTERS = 1000
# `1e999999999` is short, but its digits would fill the memory.
NUMBER_EXPONENT = 1000
DIAGNOSTICS = 50
"""Syntax errors shown for one file; later ones are rarely new."""

EXCERPT_CHARACTERS = 200
"""Characters of a source line in a message."""


_SECRET_NAMES = r"(?:password|passphrase|secret|token|credential|jaas|private_?key)"
_SECRET_WORD = re.compile(_SECRET_NAMES)
# The first pattern is fast and finds few lines; only those are matched with the second one.
_SECRET_LINE = re.compile(rf"(?i)^(.*?{_SECRET_NAMES}[\w.\"-]*\s*[=:]\s*)\S.*")


def _encode_text(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


class Source:
    """A configuration text and its name. Nodes refer to it instead of copying their text."""

    def __init__(self, file: str, text: str, lead: int = 0, line: int = 1) -> None:
        self.file = file
        self.text = text
        """Decoded, without a byte order mark."""
        self._lead = lead
        """How many bytes of a byte order mark were cut off."""
        self._first_line = line
        """The number of the first line; the console counts on from earlier input."""

    def __repr__(self) -> str:
        return f"Source({self.file})"

    @cached_property
    def _starts(self) -> array[int]:
        """Offset of the first character of each line."""
        return array("q", chain((0,), (newline.end() for newline in re.finditer("\n", self.text))))

    @cached_property
    def _start_bytes(self) -> array[int]:
        """The same in bytes of UTF-8, for the `byte` of diagnostics in JSON."""
        if self.text.isascii():
            return self._starts
        sizes = (len(_encode_text(line)) + 1 for line in self.text.split("\n"))
        return array("q", accumulate(sizes, initial=0))

    def range(self, start: int, end: int) -> Range:
        """The place of text[start:end]."""
        line, column, start_byte = self._locate(start)
        if self._start_bytes is self._starts and "\n" not in self.text[start:end]:
            # Every block has such a place: a part of one line of ASCII.
            size = end - start
            return Range(
                self.file, line, column, line, column + size, start_byte, start_byte + size
            )
        end_line, end_column, end_byte = self._locate(end)
        return Range(self.file, line, column, end_line, end_column, start_byte, end_byte)

    def _locate(self, offset: int) -> tuple[int, int, int]:
        index = bisect_right(self._starts, offset) - 1
        begin, begin_byte = self._starts[index], self._start_bytes[index]
        size = offset - begin
        if self._start_bytes is not self._starts:
            size = len(_encode_text(self.text[begin:offset]))
        return index + self._first_line, offset - begin + 1, self._lead + begin_byte + size

    def excerpt(self, offset: int) -> str | None:
        """The line at `offset`, for a message.

        A very long line is cut; None if the cut would remove the place itself. What follows
        `password =` and similar names is hidden.
        """
        begin = self._starts[bisect_right(self._starts, offset) - 1]
        if offset - begin > EXCERPT_CHARACTERS:
            return None
        line = self.text[begin : begin + EXCERPT_CHARACTERS + 2].partition("\n")[0]
        line = line.rstrip("\r")[: EXCERPT_CHARACTERS + 1]
        if _SECRET_WORD.search(line.casefold()):
            line = _SECRET_LINE.sub(r"\1(hidden)", line)
        return line if len(line) <= EXCERPT_CHARACTERS else line[:EXCERPT_CHARACTERS] + "…"


class Node(Struct, frozen=True, eq=False, gc=False):
    """A piece of the text."""

    # Offsets only: ten thousand blocks have half a million nodes, and few are ever shown. Lines
    # and columns are computed for those.
    source: Source
    start: int
    end: int
    """Offsets into source.text; the end is exclusive."""

    @property
    def range(self) -> Range:
        return self.source.range(self.start, self.end)

    @property
    def excerpt(self) -> str | None:
        """The source line on which the node starts, as `Diagnostic.excerpt` needs it."""
        return self.source.excerpt(self.start)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.range})"


class Lit(Node, frozen=True):
    """A constant: a number, true, false, null, or a string without interpolation."""

    value: str | int | Decimal | bool | None
    """Numbers are exact: int if written without a fraction, else Decimal. A string (quoted or
    heredoc) is decoded, trimmed, and in normal form NFC."""


class Template(Node, frozen=True):
    """A quoted string, heredoc or bare template with at least one `${}` or `%{}`."""

    parts: tuple[Expression, ...]
    """`Lit` of str for text, TemplateIf, TemplateFor, or any expression for `${…}`."""
    unwraps: bool
    """The whole template is one interpolation (`"${x}"`): its value is the value of x, of any
    type. Any other template, and each body of a directive, yields a string."""


class TemplateIf(Node, frozen=True):
    """`%{ if condition }then%{ else }otherwise%{ endif }`, a part of a template. Without `else`
    the other body has no parts."""

    condition: Expression
    then: Template
    otherwise: Template


class TemplateFor(Node, frozen=True):
    """`%{ for key, value in collection }body%{ endfor }`, a part of a template."""

    key: str | None
    value: str
    collection: Expression
    body: Template


class Tuple(Node, frozen=True):
    """`[a, b]`."""

    items: tuple[Expression, ...]


class ObjectItem(Node, frozen=True):
    """`key = value` or `key : value` in an object."""

    key: Expression
    """`Lit` of str for a bare word (`a = 1`, also `for = 1`) or a plain quoted string; `Paren` for
    `(expr) = …`; otherwise the expression that was written (number, template, …)."""
    value: Expression


class Object(Node, frozen=True):
    """`{ a = 1, b = 2 }`."""

    items: tuple[ObjectItem, ...]
    """In the order written; the last one of two equal keys wins."""


class ConstantObject(Node, frozen=True):
    """An object of constants, or of objects of constants at few levels, in a large file.
    `terms.list_items` and `terms.read_constants` read it from the text, as its items would take
    much memory."""


class ForTuple(Node, frozen=True):
    """`[for key, value in collection : result if condition]`."""

    key: str | None
    value: str
    collection: Expression
    result: Expression
    condition: Expression | None


class ForObject(Node, frozen=True):
    """`{for key, value in collection : result_key => result… if condition}`."""

    key: str | None
    value: str
    collection: Expression
    result_key: Expression
    result: Expression
    condition: Expression | None
    group: bool
    """`...` was written: the values of equal keys are collected in lists."""


class FunctionCall(Node, frozen=True):
    """`name(args)`."""

    name: str
    """A namespaced name is one string with `::` in it."""
    name_end: int
    args: tuple[Expression, ...]
    expand: bool
    """The last argument is followed by `...`, so its elements are the arguments."""

    @property
    def name_range(self) -> Range:
        return self.source.range(self.start, self.name_end)


class Root(Node, frozen=True):
    """The first word of a reference: `var` in `var.x`."""

    name: str


class SplatItem(Node, frozen=True):
    """The current element, inside the `each` of the innermost splat around it."""


class Attr(Node, frozen=True):
    """`target.name`."""

    target: Expression
    name: str
    name_start: int

    @property
    def name_range(self) -> Range:
        return self.source.range(self.name_start, self.end)


class Index(Node, frozen=True):
    """`target[key]`."""

    target: Expression
    key: Expression


class LegacyIndex(Node, frozen=True):
    """`target.0`, the old spelling of `target[0]`."""

    target: Expression
    index: int


class AttrSplat(Node, frozen=True):
    """`target.*.a.b`. Unlike with `[*]`, a following `[0]` indexes the result, so it is an Index
    around this node."""

    target: Expression
    each: Expression
    """The steps `.name` and `.0` around `SplatItem`, or `SplatItem` itself."""


class FullSplat(Node, frozen=True):
    """`target[*].a[0].b`."""

    target: Expression
    each: Expression
    """All following steps, also further splats, around `SplatItem`, or `SplatItem` itself."""


class Unary(Node, frozen=True):
    """`-operand` or `!operand`."""

    operator: str
    operand: Expression


class Binary(Node, frozen=True):
    """`left operator right`; operators of one level are left-associative."""

    operator: str
    """One of `|| && == != < > <= >= + - * / %`."""
    left: Expression
    right: Expression


class Cond(Node, frozen=True):
    """`condition ? then : otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression


class Paren(Node, frozen=True):
    """`(inner)`; kept because `(x) = 1` as a key of an object differs from `x = 1`."""

    inner: Expression


Expression: TypeAlias = (
    Lit
    | Template
    | TemplateIf
    | TemplateFor
    | Tuple
    | Object
    | ConstantObject
    | ForTuple
    | ForObject
    | FunctionCall
    | Root
    | SplatItem
    | Attr
    | Index
    | LegacyIndex
    | AttrSplat
    | FullSplat
    | Unary
    | Binary
    | Cond
    | Paren
)


class Attribute(Node, frozen=True):
    """`name = value` in a body."""

    name: str
    value: Expression

    @property
    def name_range(self) -> Range:
        return self.source.range(self.start, self.start + len(self.name))


class Label(Node, frozen=True):
    """A block label, bare or quoted; its range includes the quotes."""

    text: str
    """Without quotes and escapes."""


class Block(Node, frozen=True):
    """`type "label" … { body }`."""

    type: str
    labels: tuple[Label, ...]
    body: Body

    @property
    def type_range(self) -> Range:
        return self.source.range(self.start, self.start + len(self.type))

    @property
    def header_range(self) -> Range:
        """The place of type and labels."""
        end = self.labels[-1].end if self.labels else self.start + len(self.type)
        return self.source.range(self.start, end)

    def get_argument(self, name: str) -> Expression | None:
        """The expression of an argument; None if it is not given."""
        item = self.body.attributes.get(name)
        return None if item is None else item.value

    def list_blocks(self, kind: str) -> tuple[Block, ...]:
        """The nested blocks of a type, in the order written."""
        return tuple(inner for inner in self.body.blocks if inner.type == kind)


class Body(Node, frozen=True):
    """What a block or a file contains. The body of a block spans its braces, the body of a file
    the whole text."""

    attributes: Mapping[str, Attribute]
    """By name, in the order written."""
    blocks: tuple[Block, ...]
    """In the order written."""


class File(Node, frozen=True):
    """One parsed file; after errors the body contains the items that could be parsed."""

    body: Body


class Slot(Node, frozen=True):
    """The place of a constant in the pattern of a shape (see `stamps`); no parsed text has one."""

    index: int
    """Which of the words of a block stands there."""


def _list_none(node: object) -> tuple[Expression, ...]:
    return ()


def _list_object_parts(node: Object) -> tuple[Expression, ...]:
    return tuple([child for item in node.items for child in (item.key, item.value)])


def _list_for_tuple_parts(node: ForTuple) -> tuple[Expression, ...]:
    condition = () if node.condition is None else (node.condition,)
    return (node.collection, node.result, *condition)


def _list_for_object_parts(node: ForObject) -> tuple[Expression, ...]:
    condition = () if node.condition is None else (node.condition,)
    return (node.collection, node.result_key, node.result, *condition)


# attrgetter makes a tuple only of several attributes, so nodes with one child need a function.
_CHILDREN: Mapping[type, Callable[[Any], tuple[Expression, ...]]] = {
    Lit: _list_none,
    Slot: _list_none,
    Template: attrgetter("parts"),
    TemplateIf: attrgetter("condition", "then", "otherwise"),
    TemplateFor: attrgetter("collection", "body"),
    Tuple: attrgetter("items"),
    Object: _list_object_parts,
    ConstantObject: _list_none,
    ForTuple: _list_for_tuple_parts,
    ForObject: _list_for_object_parts,
    FunctionCall: attrgetter("args"),
    Root: _list_none,
    SplatItem: _list_none,
    Attr: lambda node: (node.target,),
    Index: attrgetter("target", "key"),
    LegacyIndex: lambda node: (node.target,),
    AttrSplat: attrgetter("target", "each"),
    FullSplat: attrgetter("target", "each"),
    Unary: lambda node: (node.operand,),
    Binary: attrgetter("left", "right"),
    Cond: attrgetter("condition", "then", "otherwise"),
    Paren: lambda node: (node.inner,),
}


def list_children(node: Expression) -> tuple[Expression, ...]:
    """The direct sub-expressions of a node, in source order; for an object, keys and values in
    turn."""
    return _CHILDREN[type(node)](node)


def walk(node: Expression) -> Iterator[Expression]:
    """The node and all expressions below it, parents first, in source order."""
    # With a list: `1+1+1+…` is too deep for recursion.
    waiting: list[Expression] = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(list_children(current)))


def split_operands(node: Binary) -> tuple[Expression, tuple[Binary, ...]]:
    """The leftmost operand of a chain of operators, and the operations in the order of evaluation.

    `a + b * c - d` gives a, and the nodes of `+` and `-`, whose `right` are `b * c` and d.
    """
    chain: list[Binary] = []
    current: Expression = node
    while isinstance(current, Binary):
        chain.append(current)
        current = current.left
    return current, tuple(reversed(chain))
