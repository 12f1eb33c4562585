"""Grammar functions for terms, references and operators: parts to expression nodes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any, TypeAlias

from ..core.diagnostics import Diagnostic
from . import limits, nodes, templates
from .faults import SyntaxFault, make_fault
from .nodes import Expression
from .parts import Parts, get_span, is_token
from .source import Source
from .templates import TemplateSpan
from .tokens import Token

# -- terms

_CONSTANTS: Mapping[str, bool | None] = {"TRUE": True, "FALSE": False, "NULL": None}


def make_parentheses(parts: Parts) -> nodes.Paren:
    return nodes.Paren(*get_span(parts), parts[1])


def make_root(parts: Parts) -> nodes.Root:
    token: Token = parts[0]
    return nodes.Root(token.source, token.start, token.end, token.text)


def make_constant(parts: Parts) -> nodes.Lit:
    token: Token = parts[0]
    return nodes.Lit(token.source, token.start, token.end, _CONSTANTS[token.type])


def make_number(parts: Parts) -> nodes.Lit:
    token: Token = parts[0]
    value = parse_exact(token.text)
    if value is None:
        raise SyntaxFault(make_number_fault(token.source, token.start, token.end))
    return nodes.Lit(token.source, token.start, token.end, value)


def parse_exact(digits: str) -> int | Decimal | None:
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


def make_number_fault(source: Source, start: int, end: int) -> Diagnostic:
    detail = f"Numbers have at most {limits.NUMBER_EXPONENT} digits."
    return make_fault(source, start, end, "Number too long", detail)


def make_quoted_string(parts: Parts) -> nodes.Lit | nodes.Template:
    return templates.make_quoted(TemplateSpan(*get_span(parts)), parts[1:-1])


def make_heredoc(parts: Parts) -> nodes.Lit | nodes.Template:
    flush = parts[0].text.startswith("<<-")
    return templates.make_bare(TemplateSpan(*get_span(parts)), parts[1:-1], flush)


def make_tuple(parts: Parts) -> nodes.Tuple:
    return nodes.Tuple(*get_span(parts), _check_elements(parts, parts[1:-1:2]))


def make_object(parts: Parts) -> nodes.Object:
    items = [part for part in parts if isinstance(part, nodes.ObjectItem)]
    return nodes.Object(*get_span(parts), _check_elements(parts, items))


def _check_elements(parts: Parts, items: Parts) -> tuple[Any, ...]:
    if len(items) > limits.COLLECTION_ELEMENTS:
        source, start, _ = get_span(parts)
        detail = f"It has more than {limits.COLLECTION_ELEMENTS} elements."
        raise SyntaxFault(make_fault(source, start, start + 1, "Collection too large", detail))
    return tuple(items)


def make_object_item(parts: Parts) -> nodes.ObjectItem:
    key, _, value = parts
    if isinstance(key, nodes.Root):
        key = nodes.Lit(key.source, key.start, key.end, key.name)
    elif isinstance(key, nodes.Index | nodes.LegacyIndex):
        raise SyntaxFault(
            make_fault(
                key.source,
                key.start,
                key.end,
                "Ambiguous key",
                "This can be read as a name with dots or as a reference.",
                'Quote it ("a.b") for a name; put it in parentheses for a reference.',
            )
        )
    return nodes.ObjectItem(key.source, key.start, value.end, key, value)


def make_call(parts: Parts) -> nodes.Call:
    paren = next(i for i, part in enumerate(parts) if is_token(part, "LPAR"))
    args, expand = parts[paren + 1] if len(parts) > paren + 2 else ((), False)
    source, start, end = get_span(parts)
    name = "".join(part.text for part in parts[:paren])
    return nodes.Call(source, start, end, name, parts[paren - 1].end, args, expand)


def make_arguments(parts: Parts) -> tuple[tuple[Expression, ...], bool]:
    return _check_elements(parts, parts[::2]), is_token(parts[-1], "ELLIPSIS")


# -- references

_Splat: TypeAlias = nodes.AttrSplat | nodes.FullSplat
_SPLATS = (nodes.AttrSplat, nodes.FullSplat)


def make_index(parts: Parts) -> Expression:
    target, _, key, closer = parts
    return _follow_term(target, nodes.Index, closer.end, key)


def make_legacy_index(parts: Parts) -> Expression:
    digits = make_number(parts[2:])
    return _follow_term(parts[0], nodes.LegacyIndex, digits.end, digits.value)


def make_attr(parts: Parts) -> Expression:
    name: Token = parts[2]
    return _follow_term(parts[0], nodes.Attr, name.end, name.text, name.start)


def make_attr_splat(parts: Parts) -> Expression:
    return _make_splat(parts, nodes.AttrSplat)


def make_full_splat(parts: Parts) -> Expression:
    return _make_splat(parts, nodes.FullSplat)


def _make_splat(parts: Parts, kind: type[_Splat]) -> Expression:
    token: Token = parts[1]
    item = nodes.SplatItem(token.source, token.start, token.end)
    return _follow_term(parts[0], kind, token.end, item)


def _follow_term(
    target: Expression, kind: Callable[..., Expression], end: int, *rest: Any
) -> Expression:
    """A step after a term; steps after a splat belong inside it, to each of its elements.

    kind: makes the node from its place, its target and the rest.
    """
    if not isinstance(target, _SPLATS):
        return kind(target.source, target.start, end, target, *rest)
    splats: list[_Splat] = []
    inner: Expression = target
    while isinstance(inner, _SPLATS) and _can_follow(inner, kind):
        splats.append(inner)
        inner = inner.each
    if len(splats) > limits.NESTING:
        raise make_too_deep_fault(target)
    result = kind(inner.source, inner.start, end, inner, *rest)
    for splat in reversed(splats):
        result = type(splat)(splat.source, splat.start, end, splat.target, result)
    return result


def _can_follow(splat: _Splat, step: Callable[..., Expression]) -> bool:
    if isinstance(splat, nodes.FullSplat):
        return True
    if step is nodes.AttrSplat:
        detail = "A .* cannot follow another .* in one reference."
        raise SyntaxFault(
            make_fault(splat.source, splat.start, splat.end, "Nested splat", detail, "Use [*].")
        )
    return step in (nodes.Attr, nodes.LegacyIndex)


def make_too_deep_fault(node: Expression) -> SyntaxFault:
    return SyntaxFault(
        make_fault(
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


def make_operation(parts: Parts) -> Expression:
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


def make_unary(parts: Parts) -> nodes.Unary:
    return nodes.Unary(*get_span(parts), parts[0].text, parts[1])


def make_conditional(parts: Parts) -> nodes.Cond:
    return nodes.Cond(*get_span(parts), *parts[::2])
