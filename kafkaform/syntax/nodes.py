"""What HCL text becomes. Every node knows its place: `node.range` (computed when asked).

Nodes compare by identity and may be dictionary keys. A repr shows kind and place, never content,
since a literal may be a secret. Depth is bounded by `limits.NESTING`, with one exception: the
left side of `Binary` can be thousands deep (`1+1+1+…`), so walk it with `operands`, and walk
whole expressions with `walk`; neither recurses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import TypeAlias

from ..core.diagnostics import Range
from .source import Source


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Node:
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Lit(Node):
    """A constant: number (int when whole as written, else Decimal; exact), true, false, null, or
    a string without interpolation (quoted or heredoc; decoded, trimmed, NFC)."""

    value: str | int | Decimal | bool | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Template(Node):
    """A quoted string, heredoc or bare template with at least one `${}` or `%{}`.

    parts: `Lit` of str for text, TemplateIf, TemplateFor, or any expression for `${…}`.
    unwraps: the whole is one interpolation (`"${x}"`), so its value is x's own, of any type;
    otherwise, and always in the bodies of directives, a template yields a string.
    """

    parts: tuple[Expression, ...]
    unwraps: bool


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TemplateIf(Node):
    """`%{ if condition }then%{ else }otherwise%{ endif }`; only ever a template part. Without
    `else` the other body has no parts."""

    condition: Expression
    then: Template
    otherwise: Template


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TemplateFor(Node):
    """`%{ for key, value in collection }body%{ endfor }`; only ever a template part."""

    key: str | None
    value: str
    collection: Expression
    body: Template


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tuple(Node):
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ObjectItem(Node):
    """key: `Lit` of str for a bare word (`a = 1`, `for = 1` too) or a plain quoted string; `Paren`
    for `(expr) = …`; else the expression that was written (number, template, …)."""

    key: Expression
    value: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Object(Node):
    """items: in the order written; of two equal keys the last one wins."""

    items: tuple[ObjectItem, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ForTuple(Node):
    """`[for key, value in collection : result if condition]`."""

    key: str | None
    value: str
    collection: Expression
    result: Expression
    condition: Expression | None


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ForObject(Node):
    """`{for key, value in collection : result_key => result… if condition}`; group: `...` was
    written, so that equal keys collect their values."""

    key: str | None
    value: str
    collection: Expression
    result_key: Expression
    result: Expression
    condition: Expression | None
    group: bool


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Call(Node):
    """`name(args)`; expand: the last argument is followed by `...`. A namespaced name is one
    string with `::` in it."""

    name: str
    name_end: int
    args: tuple[Expression, ...]
    expand: bool

    @property
    def name_range(self) -> Range:
        return self.source.range(self.start, self.name_end)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Root(Node):
    """The first word of a reference: `var` in `var.x`."""

    name: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SplatItem(Node):
    """Stands for the current element inside the `each` of the nearest enclosing splat."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Attr(Node):
    """`target.name`."""

    target: Expression
    name: str
    name_start: int

    @property
    def name_range(self) -> Range:
        return self.source.range(self.name_start, self.end)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Index(Node):
    """`target[key]`."""

    target: Expression
    key: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class LegacyIndex(Node):
    """`target.0`, the old spelling of `target[0]`."""

    target: Expression
    index: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class AttrSplat(Node):
    """`target.*.a.b`: each: Attr and LegacyIndex steps around `SplatItem`. A following `[0]`
    indexes the result and is an Index around this node."""

    target: Expression
    each: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FullSplat(Node):
    """`target[*].a[0].b`: each: every following step, further splats too, around `SplatItem`
    (or `SplatItem` itself)."""

    target: Expression
    each: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Unary(Node):
    """operator: `-` or `!`."""

    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Binary(Node):
    """operator: one of `|| && == != < > <= >= + - * / %`; left-associative."""

    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Cond(Node):
    """`condition ? then : otherwise`."""

    condition: Expression
    then: Expression
    otherwise: Expression


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Paren(Node):
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Attribute(Node):
    """`name = value` in a body."""

    name: str
    value: Expression

    @property
    def name_range(self) -> Range:
        return self.source.range(self.start, self.start + len(self.name))


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Label(Node):
    """A block label, bare or quoted; text is decoded, the range includes the quotes."""

    text: str


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Block(Node):
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


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Body(Node):
    """attributes: by name, in the order written (names are unique); blocks: in that order too.
    A block's body spans its braces, a file's the whole text."""

    attributes: Mapping[str, Attribute]
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class File(Node):
    """One parsed file; after errors the body holds what could be read."""

    body: Body


def children(node: Expression) -> tuple[Expression, ...]:
    """The direct sub-expressions of a node, in source order (keys and values of an object
    alternate)."""
    match node:
        case Template(parts=items) | Tuple(items=items) | Call(args=items):
            return items
        case TemplateIf(condition=a, then=b, otherwise=c):
            return (a, b, c)
        case TemplateFor(collection=a, body=b):
            return (a, b)
        case Object(items=pairs):
            return tuple(part for pair in pairs for part in (pair.key, pair.value))
        case ForTuple():
            return _present(node.collection, node.result, node.condition)
        case ForObject():
            return _present(node.collection, node.result_key, node.result, node.condition)
        case Attr(target=a) | LegacyIndex(target=a) | Unary(operand=a) | Paren(inner=a):
            return (a,)
        case Index(target=a, key=b):
            return (a, b)
        case AttrSplat(target=a, each=b) | FullSplat(target=a, each=b):
            return (a, b)
        case Binary(left=a, right=b):
            return (a, b)
        case Cond(condition=a, then=b, otherwise=c):
            return (a, b, c)
        case Lit() | Root() | SplatItem():
            return ()


def _present(*nodes: Expression | None) -> tuple[Expression, ...]:
    return tuple(node for node in nodes if node is not None)


def walk(node: Expression) -> Iterator[Expression]:
    """The node and everything below it, parents first, in source order."""
    waiting: list[Expression] = [node]
    while waiting:
        current = waiting.pop()
        yield current
        waiting.extend(reversed(children(current)))


def operands(node: Binary) -> tuple[Expression, tuple[Binary, ...]]:
    """The leftmost operand of a chain and its operations in the order of evaluation:
    `a + b * c - d` gives a and the nodes of `+` and `-`, whose `right` are `b * c` and d."""
    chain: list[Binary] = []
    current: Expression = node
    while isinstance(current, Binary):
        chain.append(current)
        current = current.left
    return current, tuple(reversed(chain))
