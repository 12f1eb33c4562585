"""The outline of a file in JSON, from its nodes. Such a file has no references of its own here:
they stand inside of texts."""

from __future__ import annotations

from ..syntax.nodes import Block, Body, Lit
from .outline import BlockOutline, ItemOutline, TextOutline, Word


def outline_nodes(body: Body) -> TextOutline:
    """The blocks and arguments of a file that was parsed."""
    root = BlockOutline(Word("", 0, 0), (), 0, body.end + 1, 0)
    _fill_section(root, body)
    return TextOutline(root, (), (), (), ())


def _fill_section(section: BlockOutline, body: Body) -> None:
    for name, attribute in body.attributes.items():
        node = attribute.value
        word = Word(name, attribute.start, attribute.start + len(name))
        item = ItemOutline(word, node.start, node.end)
        if isinstance(node, Lit) and isinstance(node.value, str):
            item.literal = Word(node.value, node.start, node.end)
        section.items.append(item)
    section.sections += [_make_section(block) for block in body.blocks]


def _make_section(block: Block) -> BlockOutline:
    kind = Word(block.type, block.start, block.start + len(block.type))
    labels = tuple(Word(label.text, label.start, label.end) for label in block.labels)
    section = BlockOutline(kind, labels, block.start, block.end, block.body.start)
    _fill_section(section, block.body)
    return section
