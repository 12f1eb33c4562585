"""What HCL text becomes. Every node knows its place: `node.range` (computed when asked).

Nodes compare by identity and may be dictionary keys. A repr shows kind and place, never content,
since a literal may be a secret. Depth is bounded by `limits.NESTING`, with one exception: the
left side of `Binary` can be thousands deep (`1+1+1+…`), so walk it with `split_operands`, and walk
whole expressions with `walk`; neither recurses.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from operator import attrgetter
from typing import Any, TypeAlias

from msgspec import Struct

from ..core.diagnostics import Range
from .source import Source


class Node(Struct, frozen=True, eq=False):
    """start, end: offsets into source.text, end exclusive."""

    source: Source
    start: int
    end: int

    @property
    def range(self) -> Range:
        return self.source.range(self.start, self.end)

    @property
    def excerpt(self) -> str | None:
        """The source line on which the node starts, for `Diagnostic.excerpt`."""
        return self.source.excerpt(self.start)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.range})"


class Lit(Node, frozen=True):
    """A constant: number (int when whole as written, else Decimal; exact), true, false, null, or
    a string without interpolation (quoted or heredoc; decoded, trimmed, NFC)."""

    value: str | int | Decimal | bool | None


class Template(Node, frozen=True):
    """A quoted string, heredoc or bare template with at least one `${}` or `%{}`.

    parts: `Lit` of str for text, TemplateIf, TemplateFor, or any expression for `${…}`.
    unwraps: the whole is one interpolation (`"${x}"`), so its value is x's own, of any type;
    otherwise, and always in the bodies of directives, a template yields a string.
    """

    parts: tuple[Expression, ...]
    unwraps: bool


class TemplateIf(Node, frozen=True):
    """`%{ if condition }then%{ else }otherwise%{ endif }`; only ever a template part. Without
    `else` the other body has no parts."""

    condition: Expression
    then: Template
    otherwise: Template


class TemplateFor(Node, frozen=True):
    """`%{ for key, value in collection }body%{ endfor }`; only ever a template part."""

    key: str | None
    value: str
    collection: Expression
    body: Template


class Tuple(Node, frozen=True):
    items: tuple[Expression, ...]


class ObjectItem(Node, frozen=True):
    """key: `Lit` of str for a bare word (`a = 1`, `for = 1` too) or a plain quoted string; `Paren`
    for `(expr) = …`; else the expression that was written (number, template, …)."""

    key: Expression
    value: Expression


class Object(Node, frozen=True):
    """items: in the order written; of two equal keys the last one wins."""

    items: tuple[ObjectItem, ...]


class ForTuple(Node, frozen=True):
    """`[for key, value in collection : result if condition]`."""

    key: str | None
    value: str
    collection: Expression
    result: Expression
    condition: Expression | None


class ForObject(Node, frozen=True):
    """`{for key, value in collection : result_key => result… if condition}`; group: `...` was
    written, so that equal keys collect their values."""

    key: str | None
    value: str
    collection: Expression
    result_key: Expression
    result: Expression
    condition: Expression | None
    group: bool


class Call(Node, frozen=True):
    """`name(args)`; expand: the last argument is followed by `...`. A namespaced name is one
    string with `::` in it."""

    name: str
    name_end: int
    args: tuple[Expression, ...]
    expand: bool

    @property
    def name_range(self) -> Range:
        return self.source.range(self.start, self.name_end)


class Root(Node, frozen=True):
    """The first word of a reference: `var` in `var.x`."""

    name: str


class SplatItem(Node, frozen=True):
    """Stands for the current element inside the `each` of the nearest enclosing splat."""


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
    """`target.*.a.b`: each: Attr and LegacyIndex steps around `SplatItem`. A following `[0]`
    indexes the result and is an Index around this node."""

    target: Expression
    each: Expression


class FullSplat(Node, frozen=True):
    """`target[*].a[0].b`: each: every following step, further splats too, around `SplatItem`
    (or `SplatItem` itself)."""

    target: Expression
    each: Expression


class Unary(Node, frozen=True):
    """operator: `-` or `!`."""

    operator: str
    operand: Expression


class Binary(Node, frozen=True):
    """operator: one of `|| && == != < > <= >= + - * / %`; left-associative."""

    operator: str
    left: Expression
    right: Expression


class Cond(Node, frozen=True):
    """`condition ? then : otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression


class Paren(Node, frozen=True):
    """`(inner)`; kept since `(x) = 1` as an object key differs from `x = 1`."""

    inner: Expression


Expression: TypeAlias = (
    Lit
    | Template
    | TemplateIf
    | TemplateFor
    | Tuple
    | Object
    | ForTuple
    | ForObject
    | Call
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
    """A block label, bare or quoted; text is decoded, the range includes the quotes."""

    text: str


class Block(Node, frozen=True):
    """`type "label" … { body }`; header_range: type and labels."""

    type: str
    labels: tuple[Label, ...]
    body: Body

    @property
    def type_range(self) -> Range:
        return self.source.range(self.start, self.start + len(self.type))

    @property
    def header_range(self) -> Range:
        end = self.labels[-1].end if self.labels else self.start + len(self.type)
        return self.source.range(self.start, end)

    def get_argument(self, name: str) -> Expression | None:
        """The expression of an argument, if it is given."""
        item = self.body.attributes.get(name)
        return None if item is None else item.value

    def list_blocks(self, kind: str) -> tuple[Block, ...]:
        """The nested blocks of a type, in their order."""
        return tuple(inner for inner in self.body.blocks if inner.type == kind)


class Body(Node, frozen=True):
    """attributes: by name, in the order written (names are unique); blocks: in that order too.
    A block's body spans its braces, a file's the whole text."""

    attributes: Mapping[str, Attribute]
    blocks: tuple[Block, ...]


class File(Node, frozen=True):
    """One parsed file; after errors the body holds what could be read."""

    body: Body


class Slot(Node, frozen=True):
    """The place of a constant in the pattern of a shape (see `stamps`); never in a parsed text."""

    index: int


def _list_none(node: object) -> tuple[Expression, ...]:
    return ()


def _list_object_parts(node: Object) -> tuple[Expression, ...]:
    return tuple([part for item in node.items for part in (item.key, item.value)])


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
    ForTuple: _list_for_tuple_parts,
    ForObject: _list_for_object_parts,
    Call: attrgetter("args"),
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
    """The direct sub-expressions of a node, in source order (keys and values of an object
    alternate)."""
    return _CHILDREN[type(node)](node)


def walk(node: Expression) -> Iterator[Expression]:
    """The node and everything below it, parents first, in source order."""
    waiting: list[Expression] = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(list_children(current)))


def split_operands(node: Binary) -> tuple[Expression, tuple[Binary, ...]]:
    """The leftmost operand of a chain and its operations in the order of evaluation:
    `a + b * c - d` gives a and the nodes of `+` and `-`, whose `right` are `b * c` and d."""
    chain: list[Binary] = []
    current: Expression = node
    while isinstance(current, Binary):
        chain.append(current)
        current = current.left
    return current, tuple(reversed(chain))
