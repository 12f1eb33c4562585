"""List the expressions of a block's body."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ...syntax.nodes import Block, Body, Expression, Root

PATHS = ("ignore_changes", "ignore_changes_except", "replace_triggered_by")
"""Arguments of nested blocks whose expressions are names of attributes and are not evaluated."""


def walk_expressions(body: Body, skip: Collection[str] = ()) -> Iterator[Expression]:
    """Every expression of a body and of its nested blocks. skip: arguments of the body itself."""
    for name, attribute in body.attributes.items():
        if name not in skip:
            yield attribute.value
    for block in body.blocks:
        yield from walk_expressions(block.body, PATHS)


def find_iterator(block: Block) -> str | None:
    """The word that a `dynamic` block sets for its content: what `iterator` says, else its label.
    None if the block has not exactly one label, which is a fault."""
    if len(block.labels) != 1:
        return None
    iterator = block.body.attributes.get("iterator")
    if iterator is not None and isinstance(iterator.value, Root):
        return iterator.value.name
    return block.labels[0].text
