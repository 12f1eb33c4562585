"""Check the words that policies compare findings with: a misspelt rule would never be found.

Only what the text alone decides is checked: constants that `contains` looks for in a list of
`change`, and constants that a member of one of `change.findings` is compared with.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from ...core.diagnostics import Diagnostic, suggest
from ...core.finding import Breadth, Harm, Level
from ...syntax.nodes import (
    Attr,
    AttrSplat,
    Binary,
    Expression,
    ForObject,
    ForTuple,
    FullSplat,
    FunctionCall,
    Lit,
    Paren,
    Root,
    Tuple,
    list_children,
    walk,
)
from ..values.faults import make_error

_LISTS = {"rules": "rule", "harms": "harm"}
"""List of `change` -> the member of a finding whose words it has."""
_ROWS = {
    "findings": ("rule", "harm", "level"),
    "gains": ("breadth",),
    "losses": ("breadth",),
}
"""Rows of `change` -> their members with a fixed set of words."""
_NOUNS = {"rule": "rule", "harm": "kind of harm", "level": "level", "breadth": "breadth"}

Names = Mapping[str, Collection[str]]
"""Variable of a `for` -> the members with a fixed set of words that its values have."""


def find_unknown_words(node: Expression, rules: Collection[str]) -> Iterator[Diagnostic]:
    """A fault for each constant that is compared with findings and that none can have.

    rules: the ids of all rules.
    """
    words: Mapping[str, Collection[str]] = {
        "rule": rules,
        "harm": [harm.value for harm in Harm],
        "level": [level.value for level in Level],
        "breadth": [breadth.value for breadth in Breadth],
    }
    pending: list[tuple[Expression, Names]] = [(node, {})]
    while pending:
        current, names = pending.pop()
        for member, constant in _list_comparisons(current, names):
            if constant.value not in words[member]:
                yield _make_fault(member, constant, words[member])
        inner = names
        if isinstance(current, ForTuple | ForObject):
            inner = {**names, current.value: _ROWS.get(_find_list(current.collection), ())}
        pending.extend((child, inner) for child in reversed(list_children(current)))


def _make_fault(member: str, constant: Lit, words: Collection[str]) -> Diagnostic:
    advice = suggest(str(constant.value), words)
    if member == "rule":
        advice = advice or "`kafkaform explain rule` lists the rules."
        return make_error(constant, f'There is no rule "{constant.value}"', advice=advice)
    detail = f"It is one of {', '.join(words)}."
    return make_error(constant, f'"{constant.value}" is no {_NOUNS[member]}', detail, advice)


def _list_comparisons(node: Expression, names: Names) -> Iterator[tuple[str, Lit]]:
    """The constants that a node itself compares, each with the member that it is compared with."""
    if isinstance(node, Binary) and node.operator in ("==", "!="):
        for side, operand in ((node.left, node.right), (node.right, node.left)):
            member = _find_member(side, names)
            if member and (constant := _read_constant(operand)) is not None:
                yield member, constant
    if not isinstance(node, FunctionCall) or node.name != "contains" or len(node.args) != 2:
        return
    collection, word = node.args
    member = _find_words(collection)
    if member and (constant := _read_constant(word)) is not None:
        yield member, constant
    member = _find_member(word, names)
    for item in collection.items if member and isinstance(collection, Tuple) else ():
        if (constant := _read_constant(item)) is not None:
            yield member, constant


def _read_constant(node: Expression) -> Lit | None:
    while isinstance(node, Paren):
        node = node.inner
    return node if isinstance(node, Lit) and isinstance(node.value, str) else None


def _find_member(node: Expression, names: Names) -> str:
    """The member of a row that `NAME.member` reads; empty for anything else."""
    if not isinstance(node, Attr) or not isinstance(node.target, Root):
        return ""
    return node.name if node.name in names.get(node.target.name, ()) else ""


def _find_list(node: Expression) -> str:
    """`x` for `change.x`; empty for anything else."""
    while isinstance(node, Paren):
        node = node.inner
    if not isinstance(node, Attr) or not isinstance(node.target, Root):
        return ""
    return node.name if node.target.name == "change" else ""


def _find_words(node: Expression) -> str:
    """The member whose words a list has: of `change.rules`, or `change.findings[*].rule`."""
    if isinstance(node, FullSplat | AttrSplat):
        members = [item.name for item in walk(node.each) if isinstance(item, Attr)]
        rows = _ROWS.get(_find_list(node.target), ())
        return members[0] if len(members) == 1 and members[0] in rows else ""
    return _LISTS.get(_find_list(node), "")
