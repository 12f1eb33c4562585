"""Every expression of a block's body."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from ...syntax.nodes import Block, Body, Expression, Root

PATHS = ("ignore_changes", "ignore_changes_except", "replace_triggered_by")
"""Arguments of nested blocks that name attributes instead of using values."""


def walk_expressions(body: Body, skip: Collection[str] = ()) -> Iterator[Expression]:
    """Every expression of a body and its nested blocks."""
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
    given = block.body.attributes.get("iterator")
    if given is not None and isinstance(given.value, Root):
        return given.value.name
    return block.labels[0].text
