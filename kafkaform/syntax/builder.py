"""Grammar rules to nodes: one function per rule.

`parts` are the rule's tokens and what the functions of its sub-rules returned, punctuation
included. The functions hold no state; what cannot be built raises SyntaxFault.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ..core.diagnostics import Diagnostic
from . import limits, nodes, terms
from .faults import SyntaxFault, fault
from .nodes import Expression
from .parts import Parts, is_token, span
from .source import Source
from .templates import Directive, Hole
from .tokens import Token

# -- structure


def body(source: Source, start: int, end: int, items: Iterable[Any]) -> nodes.Body:
    """Attributes and blocks as a body; raises SyntaxFault where a name is set twice."""
    attributes: dict[str, nodes.Attribute] = {}
    blocks: list[nodes.Block] = []
    faults: list[Diagnostic] = []
    for item in items:
        if isinstance(item, nodes.Block):
            blocks.append(item)
        elif attributes.setdefault(item.name, item) is item:
            continue
        elif len(faults) < limits.DIAGNOSTICS:
            faults.append(redefined(attributes[item.name], item))
    if faults:
        raise SyntaxFault(*faults)
    return nodes.Body(source, start, end, attributes, tuple(blocks))


def redefined(first: nodes.Attribute, second: nodes.Attribute) -> Diagnostic:
    """The error for a second attribute of one name in one body."""
    return fault(
        second.source,
        second.start,
        second.start + len(second.name),
        f'"{second.name}" is set twice',
        f"It was first set at {first.name_range}.",
        "Keep one of the two.",
    )


def _items(parts: Parts) -> tuple[Any, ...]:
    return tuple(parts[::2])


def _attribute(parts: Parts) -> nodes.Attribute:
    name, _, value = parts
    check_depth(value)
    return nodes.Attribute(name.source, name.start, value.end, name.text, value)


def _block(parts: Parts) -> nodes.Block:
    inside = parts[-2]
    if type(inside) is tuple:
        brace, items = -4, inside
    elif isinstance(inside, nodes.Attribute):
        brace, items = -3, (inside,)
    else:
        brace, items = -2, ()
    source, start, end = span(parts)
    return nodes.Block(
        source,
        start,
        end,
        parts[0].text,
        tuple([_label(part) for part in parts[1:brace]]),
        body(source, parts[brace].start, end, items),
    )


def _label(part: Token | nodes.Lit | nodes.Template) -> nodes.Label:
    if isinstance(part, nodes.Lit):
        return nodes.Label(part.source, part.start, part.end, str(part.value))
    if isinstance(part, Token):
        return nodes.Label(part.source, part.start, part.end, part.text)
    summary = "A label cannot be a template"
    detail = "Labels are fixed names; they are read before any value is known."
    advice = "Write $${ or %%{ if the marks themselves are meant."
    raise SyntaxFault(fault(part.source, part.start, part.end, summary, detail, advice))


# -- for


class _Intro(NamedTuple):
    key: str | None
    value: str
    collection: Expression


def _for_intro(parts: Parts) -> _Intro:
    names = [part.text for part in parts[1:-3:2]]
    return _Intro(names[0] if len(names) == 2 else None, names[-1], parts[-2])


def _for_tuple(parts: Parts) -> nodes.ForTuple:
    _, intro, result, *condition, _ = parts
    return nodes.ForTuple(
        *span(parts),
        intro.key,
        intro.value,
        intro.collection,
        result,
        condition[0] if condition else None,
    )


def _for_object(parts: Parts) -> nodes.ForObject:
    _, intro, key, _, value, *rest, _ = parts
    group = bool(rest) and is_token(rest[0], "ELLIPSIS")
    condition = rest[group] if len(rest) > group else None
    return nodes.ForObject(
        *span(parts), intro.key, intro.value, intro.collection, key, value, condition, group
    )


def _for_condition(parts: Parts) -> Expression:
    return parts[1]  # type: ignore[no-any-return]  # parts are untyped


# -- templates


def _hole(parts: Parts) -> Hole:
    inner, trim = _untrimmed(parts)
    return Hole(parts[0].start, parts[-1].end, trim, inner[0])


def _directive(parts: Parts) -> Directive:
    (word, *rest), trim = _untrimmed(parts)
    start, end = parts[0].start, parts[-1].end
    if not rest:
        return Directive(start, end, trim, word.text)
    names = tuple(part.text for part in rest[:-2] if part.type != "COMMA")
    return Directive(start, end, trim, word.text, rest[-1], names)


def _untrimmed(parts: Parts) -> tuple[Parts, tuple[bool, bool]]:
    left = is_token(parts[1], "STRIP_MARKER")
    right = is_token(parts[-2], "STRIP_MARKER")
    return parts[1 + left : -1 - right], (left, right)


# -- depth


def _checked(parts: Parts) -> Expression:
    check_depth(parts[0])
    return parts[0]  # type: ignore[no-any-return]  # parts are untyped


def check_depth(root: Expression) -> None:
    """Raise SyntaxFault when evaluating the expression would nest too deeply.

    Shorter texts than the limit cannot; the left side of a chain of operators counts once.
    """
    if root.end - root.start <= limits.NESTING:
        return
    waiting: list[tuple[Expression, int]] = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > limits.NESTING:
            raise terms.too_deep(node)
        below: tuple[Expression, ...]
        if isinstance(node, nodes.Binary):
            head, chain = nodes.operands(node)
            below = (head, *(link.right for link in chain))
        else:
            below = nodes.children(node)
        waiting.extend((child, depth + 1) for child in below)


RULES: Mapping[str, Callable[[Parts], Any]] = {
    "template": tuple,
    "expression_only": _checked,
    "body": _items,
    "attribute": _attribute,
    "block": _block,
    "int_lit": terms.number,
    "float_lit": terms.number,
    "plain_string": terms.plain_string,
    "quoted_string": terms.quoted_string,
    "heredoc_template": terms.heredoc,
    "interpolation": _hole,
    "template_if_start": _directive,
    "template_else": _directive,
    "template_endif": _directive,
    "template_for_start": _directive,
    "template_endfor": _directive,
    "conditional": terms.conditional,
    "operation": terms.operation,
    "unary_op": terms.unary,
    "parentheses": terms.parentheses,
    "root": terms.root,
    "constant": terms.constant,
    "tuple": terms.tuple_,
    "object": terms.object_,
    "object_elem": terms.object_item,
    "function_call": terms.call,
    "arguments": terms.arguments,
    "index": terms.index,
    "legacy_index": terms.legacy_index,
    "get_attr": terms.get_attr,
    "attr_splat": terms.attr_splat,
    "full_splat": terms.full_splat,
    "for_tuple_expr": _for_tuple,
    "for_object_expr": _for_object,
    "for_intro": _for_intro,
    "for_cond": _for_condition,
}
"""By the names in the grammar's corrections."""
