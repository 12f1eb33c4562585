"""Grammar functions for terms, references and operators: parts to expression nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from typing import Any, NamedTuple

from . import limits, nodes, templates
from .faults import SyntaxFault, fault
from .nodes import Expression
from .parts import Parts, is_token, span
from .templates import Place
from .tokens import Token

# -- terms

_CONSTANTS: Mapping[str, bool | None] = {"TRUE": True, "FALSE": False, "NULL": None}


def only(parts: Parts) -> Any:
    return parts[0]


def term(parts: Parts) -> Expression:
    if len(parts) == 3:
        return nodes.Paren(*span(parts), parts[1])
    part = parts[0]
    if not isinstance(part, Token):
        return part  # type: ignore[no-any-return]  # lark's parts are untyped
    if part.type in _CONSTANTS:
        return nodes.Lit(part.source, part.start, part.end, _CONSTANTS[part.type])
    return nodes.Root(part.source, part.start, part.end, part.text)


def number(parts: Parts) -> nodes.Lit:
    token: Token = parts[0]
    digits = token.text
    if len(digits) > limits.NUMBER_CHARACTERS:
        raise _number_fault(token)
    if token.type == "INT_LITERAL":
        return nodes.Lit(token.source, token.start, token.end, int(digits))
    number = Decimal(digits)
    if number and abs(number.adjusted()) > limits.NUMBER_EXPONENT:
        raise _number_fault(token)
    return nodes.Lit(token.source, token.start, token.end, number)


def _number_fault(token: Token) -> SyntaxFault:
    detail = f"Numbers have at most {limits.NUMBER_EXPONENT} digits."
    return SyntaxFault(fault(token.source, token.start, token.end, "Number too long", detail))


def string(parts: Parts) -> nodes.Lit | nodes.Template:
    if len(parts) > 1:
        return templates.quoted(Place(*span(parts)), parts[1:-1])
    return templates.plain(parts[0])


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
    elif isinstance(key, nodes.Attr | nodes.Index | nodes.LegacyIndex):
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

_SPLATS = (nodes.AttrSplat, nodes.FullSplat)


class _Step(NamedTuple):
    """make: the node around its target; end: where the step ends; kind: what make makes."""

    make: Callable[[Expression], Expression]
    end: int
    kind: type


def index(parts: Parts) -> _Step:
    key, end = parts[1], parts[2].end
    return _Step(lambda on: nodes.Index(on.source, on.start, end, on, key), end, nodes.Index)


def legacy_index(parts: Parts) -> _Step:
    digits = number(parts[1:])
    value, end = digits.value, digits.end
    assert isinstance(value, int)
    return _Step(
        lambda on: nodes.LegacyIndex(on.source, on.start, end, on, value), end, nodes.LegacyIndex
    )


def get_attr(parts: Parts) -> _Step:
    token: Token = parts[1]
    name, start, end = token.text, token.start, token.end
    return _Step(lambda on: nodes.Attr(on.source, on.start, end, on, name, start), end, nodes.Attr)


def splat(parts: Parts) -> _Step:
    token: Token = parts[0]
    kind = nodes.FullSplat if token.type == "FULL_SPLAT_START" else nodes.AttrSplat
    item = nodes.SplatItem(token.source, token.start, token.end)
    return _Step(lambda on: kind(on.source, on.start, item.end, on, item), item.end, kind)


def follow(parts: Parts) -> Expression:
    """A step after a term; steps after a splat belong inside it, to each of its elements."""
    target: Expression = parts[0]
    step: _Step = parts[1]
    splats: list[nodes.AttrSplat | nodes.FullSplat] = []
    inner = target
    while _takes(inner, step.kind):
        assert isinstance(inner, _SPLATS)
        splats.append(inner)
        inner = inner.each
    if len(splats) > limits.NESTING:
        raise too_deep(target)
    result = step.make(inner)
    for splat in reversed(splats):
        result = replace(splat, end=step.end, each=result)
    return result


def _takes(node: Expression, step: type) -> bool:
    if isinstance(node, nodes.FullSplat):
        return True
    if isinstance(node, nodes.AttrSplat):
        if step is nodes.AttrSplat:
            detail = "A .* cannot follow another .* in one reference."
            raise SyntaxFault(
                fault(node.source, node.start, node.end, "Nested splat", detail, "Use [*].")
            )
        return step in (nodes.Attr, nodes.LegacyIndex)
    return False


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
