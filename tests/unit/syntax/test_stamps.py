"""Blocks that repeat others are passed over, and nobody can tell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform.core.diagnostics import Diagnostics
from kafkaform.syntax.nodes import Block, ConstantObject, File, Node, Object
from kafkaform.syntax.parse import parse
from kafkaform.syntax.stamps import Stamped, Stamper
from kafkaform.syntax.terms import list_items

from ...kit.quick import examples


def plainly(text: str) -> tuple[File, Diagnostics]:
    """The text parsed without passing over anything."""
    with patch.object(Stamper, "pass_over", lambda self, at: at):
        return parse(text, "x")


def told(node: object) -> Iterator[object]:
    """Everything that can be seen of a node: kind, place, words, parts."""
    if isinstance(node, ConstantObject):
        node = Object(node.source, node.start, node.end, list_items(node))
    if isinstance(node, Node):
        yield type(node).__name__.replace("Stamped", "Block")
        yield str(node.range), node.excerpt, node.start, node.end
        kind = Block if isinstance(node, Block) else type(node)
        for name in kind.__struct_fields__[3:]:
            yield from told(getattr(node, name))
        if isinstance(node, Block):
            yield str(node.header_range), str(node.type_range)
    elif isinstance(node, tuple):
        for part in node:
            yield from told(part)
    elif isinstance(node, dict):
        for name, part in node.items():
            yield name
            yield from told(part)
    else:
        yield type(node).__name__, node


def same(text: str) -> int:
    """How many blocks of the text are passed over. It is read as if none were."""
    found, faults = parse(text, "x")
    plain, expected = plainly(text)
    assert faults == expected
    passed = sum(isinstance(block, Stamped) for block in found.body.blocks)
    assert list(told(found)) == list(told(plain))
    return passed


TOPIC = """resource "kafka_topic" "NAME" {
  name       = "${var.prefix}.NAME-${local.x}"
  partitions = var.large ? NUMBER : 3
  config = merge(local.base, {
    "retention.ms" = "NUMBER"
    cleanup        = lower("DELETE")
  }, ["NAME", NUMBER, -1, 1.5])
}
"""


def topic(name: str, number: int, text: str = TOPIC) -> str:
    return text.replace("NAME", name).replace("NUMBER", str(number))


def test_generated_blocks_are_passed_over() -> None:
    """The first two show the shape; blank lines and comments between them do no harm."""
    text = topic("a", 1) + "\n" + topic("b", 22) + "\n\n" + topic("c-d_e", 333)
    text += "# one more\n" + topic("e", 4) + "// and\n\n# then\n" + topic("f", 5)
    assert same(text) == 4


def test_shapes_take_turns() -> None:
    """Several shapes are known at a time, also those that come back after others."""
    other = TOPIC.replace("partitions", "replication_factor")
    third = TOPIC.replace("merge", "concat")
    texts = (TOPIC, other, third, TOPIC, third, other) * 2
    assert same("".join(topic(f"t{n}", n, text) for n, text in enumerate(texts))) == 9


NOT_PASSED_OVER = {
    "an index": 'resource "t" "NAME" {\n  a = x["NAME"].b\n}\n',
    "a key": 'resource "t" "NAME" {\n  a = { NUMBER = 1 }\n}\n',
    "trimmed text": 'resource "t" "NAME" {\n  a = "NAME  ${~ 1 ~}  NAME"\n}\n',
    "nested blocks": 'resource "t" "NAME" {\n  lifecycle {\n    adopt = true\n  }\n}\n',
    "for_each": 'resource "t" "NAME" {\n  for_each = { a = NUMBER }\n}\n',
    "heredocs": 'resource "t" "NAME" {\n  a = <<EOT\n"NAME" NUMBER\nEOT\n}\n',
    "comments": 'resource "t" "NAME" {\n  a = 1 # NUMBER\n}\n',
    "three labels": 'resource "t" "NAME" "z" {\n  a = 1\n}\n',
}


@pytest.mark.parametrize("text", NOT_PASSED_OVER.values(), ids=NOT_PASSED_OVER)
def test_words_that_are_no_constants(text: str) -> None:
    """Where a word is more than a constant, blocks are parsed as ever."""
    assert same("".join(topic(f"n{n}", n + 1, text) for n in range(4))) == 0


def test_what_looks_like_a_block_inside_something_else() -> None:
    """A heredoc and a comment may hold the text of a block that is known."""
    known = topic("a", 1) + topic("b", 2)
    inside = "locals {\n  x = <<EOT\n" + topic("c", 3) + "EOT\n}\n"
    comment = "/*\n" + topic("d", 4) + "*/\n"
    assert same(known + inside + comment + topic("e", 5)) == 2


def test_faults_of_a_shape_are_told_at_each_block() -> None:
    """A block with a mistake has no shape, and neither have its copies."""
    wrong = 'resource "t" "NAME" {\n  a = = NUMBER\n}\n'
    text = "".join(topic(f"n{n}", n, wrong) for n in range(3))
    assert same(text) == 0
    assert len(parse(text, "x")[1]) == 3


words = st.text("ab1 -.,(){}[]=:?#/'\"$%\\é\n~", max_size=6)
lines = st.sampled_from(
    (
        "  a = W\n",
        '  b = "W"\n',
        '  c = "W${x.W}W"\n',
        "  d = [W, W]\n",
        '  e = f("W", W)\n',
        '  "W" = W\n',
        "  # W\n",
        "}\n",
        "  g = { W = W }\n",
        '  h = "%{ if true }W%{ endif }"\n',
    )
)


@st.composite
def generated(draw: st.DrawFn) -> str:
    """Blocks of one to three shapes, each with words of its own."""
    shapes = draw(st.lists(st.lists(lines, max_size=4), min_size=1, max_size=3))
    blocks = []
    for _ in range(draw(st.integers(2, 6))):
        body = "".join(draw(st.sampled_from(shapes)))
        plain = st.sampled_from(("7", "12", "x", "a b", "q-r"))
        word = draw(st.sampled_from((plain, words)))
        filled = re.sub("W", lambda _, word=word: str(draw(word)), body)
        blocks.append(f'resource "t" "n{draw(plain)}" {{\n{filled}}}\n')
    return draw(st.sampled_from(("", "\n", "# c\n"))).join(blocks)


@settings(max_examples=examples(400), deadline=None)
@given(generated())
def test_any_text_is_read_as_if_nothing_were_passed_over(text: str) -> None:
    """Trees, places and faults are equal, whatever stands in the blocks."""
    same(text)
