"""Build the nodes of expressions: terms, references and operators.

Each function takes the children of a rule: its tokens and the results of its sub-rules, punctuation
included. The functions have no state; they raise SyntaxFault if the children cannot become a
node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from sys import intern
from typing import Any, TypeAlias

from ..core.diagnostics import Diagnostic
from . import nodes, templates
from .faults import SyntaxFault, make_fault
from .nodes import (
    COLLECTION_ELEMENTS,
    NESTING,
    NUMBER_CHARACTERS,
    NUMBER_EXPONENT,
    Expression,
    Source,
)
from .templates import TemplateSpan
from .tokens import CONSTANT_STEP, FLAT_ITEM, FLAT_OBJECT, MAP_END, MAP_ITEM, MAP_START, Token

Children: TypeAlias = Sequence[Any]
"""The tokens of a rule and the results of its sub-rules, punctuation included. The rule says what
stands at which index."""


def get_span(children: Children) -> tuple[Source, int, int]:
    """The place of the rule's text: the first three arguments of every node."""
    first = children[0]
    return first.source, first.start, children[-1].end


def is_token(child: object, type_: str) -> bool:
    return isinstance(child, Token) and child.type == type_


# -- terms

_CONSTANTS: Mapping[str, bool | None] = {"TRUE": True, "FALSE": False, "NULL": None}
_WORDS: Mapping[str, bool | None] = {"true": True, "false": False, "null": None}
Constant: TypeAlias = str | int | Decimal | bool | None
Constants: TypeAlias = "dict[str, Constant | Constants]"
"""The values of an object of constants."""


def make_parentheses(children: Children) -> nodes.Paren:
    return nodes.Paren(*get_span(children), children[1])


def make_root(children: Children) -> nodes.Root:
    token: Token = children[0]
    return nodes.Root(token.source, token.start, token.end, token.text)


def make_constant(children: Children) -> nodes.Lit:
    token: Token = children[0]
    return nodes.Lit(token.source, token.start, token.end, _CONSTANTS[token.type])


def make_number(children: Children) -> nodes.Lit:
    token: Token = children[0]
    value = parse_exact(token.text)
    if value is None:
        raise SyntaxFault(make_number_fault(token.source, token.start, token.end))
    return nodes.Lit(token.source, token.start, token.end, value)


def parse_exact(digits: str) -> int | Decimal | None:
    """The number that the digits spell, exactly; None if it is too long."""
    # Never a float: HCL's numbers have 512 bits, and 0.1 + 0.2 has to be 0.3.
    if len(digits) > NUMBER_CHARACTERS:
        return None
    if digits.lstrip("-").isdigit():
        return int(digits)
    try:
        number = Decimal(digits)
    except InvalidOperation:  # an exponent beyond Decimal's range
        return None
    return None if number and abs(number.adjusted()) > NUMBER_EXPONENT else number


def make_number_fault(source: Source, start: int, end: int) -> Diagnostic:
    detail = f"A number can have {NUMBER_EXPONENT} digits."
    return make_fault(source, start, end, "Number too long", detail)


def make_quoted_string(children: Children) -> nodes.Lit | nodes.Template:
    return templates.make_quoted(TemplateSpan(*get_span(children)), children[1:-1])


def make_heredoc(children: Children) -> nodes.Lit | nodes.Template:
    flush = children[0].text.startswith("<<-")
    return templates.make_bare(TemplateSpan(*get_span(children)), children[1:-1], flush)


def make_tuple(children: Children) -> nodes.Tuple:
    return nodes.Tuple(*get_span(children), _check_elements(children, children[1:-1:2]))


def make_object(children: Children) -> nodes.Object:
    items = [child for child in children if isinstance(child, nodes.ObjectItem)]
    return nodes.Object(*get_span(children), _check_elements(children, items))


def make_constant_object(children: Children) -> nodes.ConstantObject:
    return nodes.ConstantObject(*get_span(children))


def find_constants_end(text: str, start: int, depth: int) -> int | None:
    """The end of the object that begins here if a `ConstantObject` can stand for it, else None.
    depth: how many brackets are open, this one included."""
    if depth >= NESTING:
        return None
    if match := re.compile(FLAT_OBJECT).match(text, start):
        return match.end()
    opening = re.compile(MAP_START).match(text, start)
    if opening is None or depth + 1 >= NESTING:
        return None
    # A map of thousands is matched item by item, because the engine would keep them all in memory.
    item, at, items = re.compile(MAP_ITEM), opening.end(), 1
    while match := item.match(text, at):
        at, items = match.end(), items + 1
    end = re.compile(MAP_END).match(text, at)
    return end.end() if end and items <= COLLECTION_ELEMENTS else None


def list_items(node: nodes.Expression | None) -> tuple[nodes.ObjectItem, ...] | None:
    """The items of an object, in the order written; None for any other expression."""
    if isinstance(node, nodes.Object):
        return node.items
    if not isinstance(node, nodes.ConstantObject):
        return None
    items = []
    for match in re.compile(FLAT_ITEM).finditer(node.source.text, node.start + 1, node.end):
        key, value = (_make_part(node.source, *match.span(group)) for group in (1, 2))
        items.append(nodes.ObjectItem(node.source, key.start, value.end, key, value))
    return tuple(items)


def _make_part(source: Source, start: int, end: int) -> nodes.Lit | nodes.ConstantObject:
    text = source.text[start:end]
    if text[0] == "{":
        return nodes.ConstantObject(source, start, end)
    return nodes.Lit(source, start, end, _read_constant(text))


def read_constants(source: Source, start: int, end: int) -> Constants:
    """The values in the text of a `ConstantObject`; the last one of two equal keys wins."""
    values: Constants = {}
    # The objects that are open, the innermost last. One pass, because a text can be a megabyte.
    inner = [values]
    for match in re.compile(CONSTANT_STEP).finditer(source.text, start + 1, end - 1):
        key, value = match.groups()
        if key is None:
            inner.pop()
        elif value == "{":
            inner.append({})
            inner[-2][str(_read_constant(key))] = inner[-1]
        else:
            inner[-1][str(_read_constant(key))] = _read_constant(value)
    return values


def _read_constant(text: str) -> Constant:
    if text[0] == '"':
        return templates.normalize_text(text[1:-1])
    return parse_exact(text) if text[0].isdigit() else _WORDS.get(text, intern(text))


def _check_elements(children: Children, items: Children) -> tuple[Any, ...]:
    if len(items) > COLLECTION_ELEMENTS:
        source, start, _ = get_span(children)
        detail = f"It has more than {COLLECTION_ELEMENTS:,} elements."
        raise SyntaxFault(make_fault(source, start, start + 1, "Collection too large", detail))
    return tuple(items)


def make_object_item(children: Children) -> nodes.ObjectItem:
    key, _, value = children
    # A bare word is a name, also if a variable of a `for` is called so. A dotted word is refused:
    # Go's parser does the same, because readers take it for either of two things.
    if isinstance(key, nodes.Root):
        key = nodes.Lit(key.source, key.start, key.end, key.name)
    elif isinstance(key, nodes.Index | nodes.LegacyIndex):
        raise SyntaxFault(
            make_fault(
                key.source,
                key.start,
                key.end,
                "Ambiguous key",
                "It could be a name with dots or a reference.",
                'Put a name in quotes ("a.b"), and a reference in parentheses.',
            )
        )
    return nodes.ObjectItem(key.source, key.start, value.end, key, value)


def make_call(children: Children) -> nodes.FunctionCall:
    # name :: name ( arguments )
    paren = next(i for i, child in enumerate(children) if is_token(child, "LPAR"))
    args, expand = children[paren + 1] if len(children) > paren + 2 else ((), False)
    source, start, end = get_span(children)
    name = "".join(child.text for child in children[:paren])
    return nodes.FunctionCall(source, start, end, name, children[paren - 1].end, args, expand)


def make_arguments(children: Children) -> tuple[tuple[Expression, ...], bool]:
    return _check_elements(children, children[::2]), is_token(children[-1], "ELLIPSIS")


# -- references

_Splat: TypeAlias = nodes.AttrSplat | nodes.FullSplat
_SPLATS = (nodes.AttrSplat, nodes.FullSplat)


def make_index(children: Children) -> Expression:
    target, _, key, closer = children
    return _follow_term(target, nodes.Index, closer.end, key)


def make_legacy_index(children: Children) -> Expression:
    """`x.0`, which Terraform 0.11 and older used for `x[0]`."""
    digits = make_number(children[2:])
    return _follow_term(children[0], nodes.LegacyIndex, digits.end, digits.value)


def make_attr(children: Children) -> Expression:
    name: Token = children[2]
    return _follow_term(children[0], nodes.Attr, name.end, name.text, name.start)


def make_attr_splat(children: Children) -> Expression:
    return _make_splat(children, nodes.AttrSplat)


def make_full_splat(children: Children) -> Expression:
    return _make_splat(children, nodes.FullSplat)


def _make_splat(children: Children, kind: type[_Splat]) -> Expression:
    token: Token = children[1]
    item = nodes.SplatItem(token.source, token.start, token.end)
    return _follow_term(children[0], kind, token.end, item)


def _follow_term(
    target: Expression, kind: Callable[..., Expression], end: int, *operands: Any
) -> Expression:
    """The node of a step behind a term. kind: makes it from its place, its target and the rest.

    A step behind a splat applies to each of its elements, so it becomes part of the splat.
    """
    if not isinstance(target, _SPLATS):
        return kind(target.source, target.start, end, target, *operands)
    splats: list[_Splat] = []
    inner: Expression = target
    while isinstance(inner, _SPLATS) and _can_follow(inner, kind):
        splats.append(inner)
        inner = inner.each
    if len(splats) > NESTING:
        raise make_too_deep_fault(target)
    result = kind(inner.source, inner.start, end, inner, *operands)
    for splat in reversed(splats):
        result = type(splat)(splat.source, splat.start, end, splat.target, result)
    return result


def _can_follow(splat: _Splat, step: Callable[..., Expression]) -> bool:
    """Whether a step behind a splat applies to its elements: every step behind `[*]`, but only
    `.name` and `.0` behind `.*`."""
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
            f"An expression has more than {NESTING} levels.",
            "Move parts of it into local values.",
        )
    )


# -- operators

_LEVELS: Mapping[str, int] = {
    operator: level
    for level, operators in enumerate(("||", "&&", "== !=", "< > <= >=", "+ -", "* / %"))
    for operator in operators.split()
}
"""How closely an operator binds; a higher level binds closer."""


def make_operation(children: Children) -> Expression:
    """The tree of a chain: operand, operator, operand, … Operators of one level associate to the
    left."""
    # Operator precedence is here and not in the grammar: six levels of rules for each operand
    # would make the tables larger and parsing slower.
    values: list[Expression] = [children[0]]
    waiting: list[str] = []

    def combine() -> None:
        right = values.pop()
        left = values.pop()
        values.append(nodes.Binary(left.source, left.start, right.end, waiting.pop(), left, right))

    for operator, operand in zip(children[1::2], children[2::2], strict=True):
        while waiting and _LEVELS[waiting[-1]] >= _LEVELS[operator.text]:
            combine()
        waiting.append(operator.text)
        values.append(operand)
    while waiting:
        combine()
    return values[0]


def make_unary(children: Children) -> nodes.Unary:
    return nodes.Unary(*get_span(children), children[0].text, children[1])


def make_conditional(children: Children) -> nodes.Cond:
    return nodes.Cond(*get_span(children), *children[::2])
