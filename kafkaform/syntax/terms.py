"""Grammar functions for terms, references and operators: parts to expression nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

from ..core.diagnostics import Diagnostic
from . import limits, nodes, templates
from .faults import SyntaxFault, fault
from .nodes import Expression
from .parts import Parts, is_token, span
from .source import Source
from .templates import Place
from .tokens import Token

# -- terms

_CONSTANTS: Mapping[str, bool | None] = {"TRUE": True, "FALSE": False, "NULL": None}


def parentheses(parts: Parts) -> nodes.Paren:
    return nodes.Paren(*span(parts), parts[1])


def root(parts: Parts) -> nodes.Root:
    token: Token = parts[0]
    return nodes.Root(token.source, token.start, token.end, token.text)


def constant(parts: Parts) -> nodes.Lit:
    token: Token = parts[0]
    return nodes.Lit(token.source, token.start, token.end, _CONSTANTS[token.type])


def number(parts: Parts) -> nodes.Lit:
    token: Token = parts[0]
    value = exact(token.text)
    if value is None:
        raise SyntaxFault(number_fault(token.source, token.start, token.end))
    return nodes.Lit(token.source, token.start, token.end, value)


def exact(digits: str) -> int | Decimal | None:
    """The number that the digits spell; None if it is too long."""
    if len(digits) > limits.NUMBER_CHARACTERS:
        return None
    if digits.lstrip("-").isdigit():
        return int(digits)
    try:
        found = Decimal(digits)
    except InvalidOperation:  # an exponent that no Decimal can hold
        return None
    return None if found and abs(found.adjusted()) > limits.NUMBER_EXPONENT else found


def number_fault(source: Source, start: int, end: int) -> Diagnostic:
    detail = f"Numbers have at most {limits.NUMBER_EXPONENT} digits."
    return fault(source, start, end, "Number too long", detail)


def plain_string(parts: Parts) -> nodes.Lit:
    return templates.plain(parts[0])


def quoted_string(parts: Parts) -> nodes.Lit | nodes.Template:
    return templates.quoted(Place(*span(parts)), parts[1:-1])


def heredoc(parts: Parts) -> nodes.Lit | nodes.Template:
    flush = parts[0].text.startswith("<<-")
    return templates.bare(Place(*span(parts)), parts[1:-1], flush)


def tuple_(parts: Parts) -> nodes.Tuple:
    return nodes.Tuple(*span(parts), _elements(parts, parts[1:-1:2]))


def object_(parts: Parts) -> nodes.Object:
    items = [part for part in parts if isinstance(part, nodes.ObjectItem)]
    return nodes.Object(*span(parts), _elements(parts, items))


def _elements(parts: Parts, items: Parts) -> tuple[Any, ...]:
    if len(items) > limits.COLLECTION_ELEMENTS:
        source, start, _ = span(parts)
        detail = f"It has more than {limits.COLLECTION_ELEMENTS} elements."
        raise SyntaxFault(fault(source, start, start + 1, "Collection too large", detail))
    return tuple(items)


def object_item(parts: Parts) -> nodes.ObjectItem:
    key, _, value = parts
    if isinstance(key, nodes.Root):
        key = nodes.Lit(key.source, key.start, key.end, key.name)
    elif isinstance(key, nodes.Index | nodes.LegacyIndex):
        raise SyntaxFault(
            fault(
                key.source,
                key.start,
                key.end,
                "Ambiguous key",
                "This can be read as a name with dots or as a reference.",
                'Quote it ("a.b") for a name; put it in parentheses for a reference.',
            )
        )
    return nodes.ObjectItem(key.source, key.start, value.end, key, value)


def call(parts: Parts) -> nodes.Call:
    paren = next(i for i, part in enumerate(parts) if is_token(part, "LPAR"))
    args, expand = parts[paren + 1] if len(parts) > paren + 2 else ((), False)
    source, start, end = span(parts)
    name = "".join(part.text for part in parts[:paren])
    return nodes.Call(source, start, end, name, parts[paren - 1].end, args, expand)


def arguments(parts: Parts) -> tuple[tuple[Expression, ...], bool]:
    return _elements(parts, parts[::2]), is_token(parts[-1], "ELLIPSIS")


# -- references

_Splat: TypeAlias = nodes.AttrSplat | nodes.FullSplat
_SPLATS = (nodes.AttrSplat, nodes.FullSplat)


def index(parts: Parts) -> Expression:
    target, _, key, closer = parts
    return _follow(target, nodes.Index, closer.end, key)


def legacy_index(parts: Parts) -> Expression:
    digits = number(parts[2:])
    return _follow(parts[0], nodes.LegacyIndex, digits.end, digits.value)


def get_attr(parts: Parts) -> Expression:
    name: Token = parts[2]
    return _follow(parts[0], nodes.Attr, name.end, name.text, name.start)


def attr_splat(parts: Parts) -> Expression:
    return _splat(parts, nodes.AttrSplat)


def full_splat(parts: Parts) -> Expression:
    return _splat(parts, nodes.FullSplat)


def _splat(parts: Parts, kind: type[_Splat]) -> Expression:
    token: Token = parts[1]
    item = nodes.SplatItem(token.source, token.start, token.end)
    return _follow(parts[0], kind, token.end, item)


def _follow(
    target: Expression, kind: Callable[..., Expression], end: int, *rest: Any
) -> Expression:
    """A step after a term; steps after a splat belong inside it, to each of its elements.

    kind: makes the node from its place, its target and the rest.
    """
    if not isinstance(target, _SPLATS):
        return kind(target.source, target.start, end, target, *rest)
    splats: list[_Splat] = []
    inner: Expression = target
    while isinstance(inner, _SPLATS) and _takes(inner, kind):
        splats.append(inner)
        inner = inner.each
    if len(splats) > limits.NESTING:
        raise too_deep(target)
    result = kind(inner.source, inner.start, end, inner, *rest)
    for splat in reversed(splats):
        result = type(splat)(splat.source, splat.start, end, splat.target, result)
    return result


def _takes(splat: _Splat, step: Callable[..., Expression]) -> bool:
    if isinstance(splat, nodes.FullSplat):
        return True
    if step is nodes.AttrSplat:
        detail = "A .* cannot follow another .* in one reference."
        raise SyntaxFault(
            fault(splat.source, splat.start, splat.end, "Nested splat", detail, "Use [*].")
        )
    return step in (nodes.Attr, nodes.LegacyIndex)


def too_deep(node: Expression) -> SyntaxFault:
    return SyntaxFault(
        fault(
            node.source,
            node.start,
            node.start + 1,
            "Nested too deeply",
            f"An expression has more than {limits.NESTING} levels.",
            "Name parts of it as locals.",
        )
    )


# -- operators

_LEVELS: Mapping[str, int] = {
    operator: level
    for level, operators in enumerate(("||", "&&", "== !=", "< > <= >=", "+ -", "* / %"))
    for operator in operators.split()
}


def operation(parts: Parts) -> Expression:
    """Operand, operator, operand, … as a tree: higher levels bind closer, equal ones from the
    left."""
    values: list[Expression] = [parts[0]]
    waiting: list[str] = []

    def combine() -> None:
        right = values.pop()
        left = values.pop()
        values.append(nodes.Binary(left.source, left.start, right.end, waiting.pop(), left, right))

    for operator, operand in zip(parts[1::2], parts[2::2], strict=True):
        while waiting and _LEVELS[waiting[-1]] >= _LEVELS[operator.text]:
            combine()
        waiting.append(operator.text)
        values.append(operand)
    while waiting:
        combine()
    return values[0]


def unary(parts: Parts) -> nodes.Unary:
    return nodes.Unary(*span(parts), parts[0].text, parts[1])


def conditional(parts: Parts) -> nodes.Cond:
    return nodes.Cond(*span(parts), *parts[::2])
