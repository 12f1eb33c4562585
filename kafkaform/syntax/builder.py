"""Build nodes from the rules of the grammar: one function for each rule.

`parts` are the rule's tokens and the results of its sub-rules, punctuation included. The functions
have no state; they raise SyntaxFault if the parts cannot become a node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

from ..core.diagnostics import Diagnostic
from . import limits, nodes, templates, terms
from .faults import SyntaxFault, make_fault
from .nodes import Expression
from .parts import Parts, get_span, is_token
from .source import Source
from .templates import Directive, Hole
from .tokens import Token

# -- structure


def make_body(source: Source, start: int, end: int, items: Iterable[Any]) -> nodes.Body:
    """Make a body of attributes and blocks. Raises SyntaxFault if a name is set twice."""
    attributes: dict[str, nodes.Attribute] = {}
    blocks: list[nodes.Block] = []
    faults: list[Diagnostic] = []
    # Go's parser refuses a second attribute of one name. python-hcl2 takes the last one, so that
    # a line far below could undo a setting without anyone seeing it in a review.
    for item in items:
        if isinstance(item, nodes.Block):
            blocks.append(item)
        elif attributes.setdefault(item.name, item) is item:
            continue
        elif len(faults) < limits.DIAGNOSTICS:
            faults.append(make_redefinition_fault(attributes[item.name], item))
    if faults:
        raise SyntaxFault(*faults)
    return nodes.Body(source, start, end, attributes, tuple(blocks))


def make_redefinition_fault(first: nodes.Attribute, second: nodes.Attribute) -> Diagnostic:
    """The error for an attribute whose name is set twice in one body."""
    return make_fault(
        second.source,
        second.start,
        second.start + len(second.name),
        f'"{second.name}" is set twice',
        f"It was first set at {first.name_range}.",
        "Keep one of the two.",
    )


def _take_items(children: Parts) -> tuple[Any, ...]:
    return tuple(children[::2])


def _make_attribute(children: Parts) -> nodes.Attribute:
    name, _, value = children
    check_depth(value)
    return nodes.Attribute(name.source, name.start, value.end, name.text, value)


def _make_block(children: Parts) -> nodes.Block:
    # Three forms: the items of several lines (a tuple, with a newline before it), one attribute
    # on the line of the block, or nothing between the braces. What stands before the opening
    # brace is the type and the labels.
    inside = children[-2]
    if type(inside) is tuple:
        brace, items = -4, inside
    elif isinstance(inside, nodes.Attribute):
        brace, items = -3, (inside,)
    else:
        brace, items = -2, ()
    source, start, end = get_span(children)
    return nodes.Block(
        source,
        start,
        end,
        children[0].text,
        tuple([_make_label(label) for label in children[1:brace]]),
        make_body(source, children[brace].start, end, items),
    )


def _make_label(child: Token | nodes.Lit | nodes.Template) -> nodes.Label:
    if isinstance(child, nodes.Lit):
        return nodes.Label(child.source, child.start, child.end, str(child.value))
    if isinstance(child, Token):
        return nodes.Label(child.source, child.start, child.end, child.text)
    summary = "A label cannot be a template"
    detail = "Labels are fixed names; they are read before any value is known."
    advice = "To write the characters ${ or %{ themselves, double the first one: $${ or %%{."
    raise SyntaxFault(make_fault(child.source, child.start, child.end, summary, detail, advice))


# -- for


class _Intro(NamedTuple):
    """`for key, value in collection :`."""

    key: str | None
    value: str
    collection: Expression


def _make_for_intro(children: Parts) -> _Intro:
    # for NAME , NAME in EXPRESSION : — the names are every second part, from behind `for`.
    names = [name.text for name in children[1:-3:2]]
    return _Intro(names[0] if len(names) == 2 else None, names[-1], children[-2])


def _make_for_tuple(children: Parts) -> nodes.ForTuple:
    _, intro, result, *condition, _ = children
    return nodes.ForTuple(
        *get_span(children),
        intro.key,
        intro.value,
        intro.collection,
        result,
        condition[0] if condition else None,
    )


def _make_for_object(children: Parts) -> nodes.ForObject:
    _, intro, key, _, value, *options, _ = children
    group = bool(options) and is_token(options[0], "ELLIPSIS")
    condition = options[group] if len(options) > group else None
    return nodes.ForObject(
        *get_span(children), intro.key, intro.value, intro.collection, key, value, condition, group
    )


def _take_for_condition(children: Parts) -> Expression:
    return children[1]  # type: ignore[no-any-return]  # parts are untyped


# -- templates


def _make_hole(children: Parts) -> Hole:
    inner, trim = _split_strip_markers(children)
    return Hole(children[0].start, children[-1].end, trim, inner[0])


def _make_directive(children: Parts) -> Directive:
    (word, *operands), trim = _split_strip_markers(children)
    start, end = children[0].start, children[-1].end
    if not operands:
        return Directive(start, end, trim, word.text)
    names = tuple(operand.text for operand in operands[:-2] if operand.type != "COMMA")
    return Directive(start, end, trim, word.text, operands[-1], names)


def _split_strip_markers(children: Parts) -> tuple[Parts, tuple[bool, bool]]:
    # Inside the braces, the first and the last part can be a `~`.
    trims_left = is_token(children[1], "STRIP_MARKER")
    trims_right = is_token(children[-2], "STRIP_MARKER")
    return children[1 + trims_left : -1 - trims_right], (trims_left, trims_right)


# -- depth


def _check_expression(children: Parts) -> Expression:
    check_depth(children[0])
    return children[0]  # type: ignore[no-any-return]  # parts are untyped


def check_depth(root: Expression) -> None:
    """Raise SyntaxFault if the expression is nested too deeply to be evaluated.

    The left side of a chain of operators counts as one level, however long the chain is.
    """
    # A level takes a character at least, so most expressions need no look.
    if root.end - root.start <= limits.NESTING:
        return
    # With a list instead of recursion, which would fail for exactly the texts that are refused.
    waiting: list[tuple[Expression, int]] = [(root, 0)]
    while waiting:
        node, depth = waiting.pop()
        if depth > limits.NESTING:
            raise terms.make_too_deep_fault(node)
        below: tuple[Expression, ...]
        if isinstance(node, nodes.Binary):
            head, chain = nodes.split_operands(node)
            below = (head, *(link.right for link in chain))
        else:
            below = nodes.list_children(node)
        deeper = depth + 1
        room = limits.NESTING - deeper
        waiting.extend([(child, deeper) for child in below if child.end - child.start > room])


RULES: Mapping[str, Callable[[Parts], Any]] = {
    "template": tuple,
    "expression_only": _check_expression,
    "body": _take_items,
    "attribute": _make_attribute,
    "block": _make_block,
    "int_lit": terms.make_number,
    "float_lit": terms.make_number,
    "plain_string": templates.make_plain,
    "quoted_string": terms.make_quoted_string,
    "heredoc_template": terms.make_heredoc,
    "interpolation": _make_hole,
    "template_if_start": _make_directive,
    "template_else": _make_directive,
    "template_endif": _make_directive,
    "template_for_start": _make_directive,
    "template_endfor": _make_directive,
    "conditional": terms.make_conditional,
    "operation": terms.make_operation,
    "unary_op": terms.make_unary,
    "parentheses": terms.make_parentheses,
    "root": terms.make_root,
    "constant": terms.make_constant,
    "tuple": terms.make_tuple,
    "object": terms.make_object,
    "object_elem": terms.make_object_item,
    "flat_object": terms.make_constant_object,
    "function_call": terms.make_call,
    "arguments": terms.make_arguments,
    "index": terms.make_index,
    "legacy_index": terms.make_legacy_index,
    "get_attr": terms.make_attr,
    "attr_splat": terms.make_attr_splat,
    "full_splat": terms.make_full_splat,
    "for_tuple_expr": _make_for_tuple,
    "for_object_expr": _make_for_object,
    "for_intro": _make_for_intro,
    "for_cond": _take_for_condition,
}
"""Name of a rule -> the function that builds its node. The names are those of the corrected
grammar in `tests/unit/syntax/compile.py`."""
