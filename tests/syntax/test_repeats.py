"""Blocks that repeat an earlier one's shape become the nodes that they become alone."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform.syntax.nodes import File, Node
from kafkaform.syntax.parse import parse

_PLAIN = st.text("ab1 -_.:/", max_size=6)
_WORDS = st.one_of(_PLAIN, _PLAIN, _PLAIN, _PLAIN, st.text('ab1é"$%{}\\~#/', max_size=4))
_NUMBERS = st.sampled_from(["0", "7", "12", "345", "007", "1.5", "1e3", "-3", "123456789012345678"])
_LITERALS = _WORDS.map('"{}"'.format) | _NUMBERS
_FORMS = (
    "  name = {0}\n",
    '  name = "{1}${{var.x}}{2}"\n',
    "  n = {3} # {1}\n",
    "  c = var.a ? {0} : [{3}, {4}]\n",
    '  config = {{\n    "a.b" = {0}\n    {5} = {3}\n  }}\n',
    "  m = merge(local.a, {{ b = {0}, c = {4} }})\n",
    '  i = a.b["{5}"][{3}].c[*].d\n',
    "  h = <<-E\n    {1} {5}\n  E\n",
    "  lifecycle {{\n    d = {4}\n  }}\n",
    "  count = {3}\n",
    "  x = {{ for k, v in {0} : k => v }} /* {2} */\n",
    '  "{5}" = {3}\n',
)


@st.composite
def texts(draw: st.DrawFn) -> list[str]:
    """Blocks of few shapes in a row, each with words and numbers of its own; some are wrong."""
    shape = st.lists(st.sampled_from(_FORMS), max_size=3, unique=True).map("".join)
    shapes = draw(st.lists(shape, min_size=1, max_size=2))
    blocks = []
    for _ in range(draw(st.integers(2, 6))):
        name = draw(st.sampled_from(["a", "b-1", "c_d", "e f"]))
        spaces = draw(st.sampled_from(["", "", "\n", "# c\n"]))
        values = [draw(_LITERALS), draw(_WORDS), draw(_WORDS), draw(_NUMBERS), draw(_NUMBERS)]
        key = draw(st.sampled_from(["k", "l"]))
        body = draw(st.sampled_from(shapes)).format(*values, key)
        blocks.append(f'{spaces}resource "t" "{name}" {{\n{body}}}\n')
    return blocks


def dump(node: Any) -> Any:
    """The tree as plain data: kinds, places and content."""
    if isinstance(node, Node):
        kind = next(cls for cls in type(node).__mro__ if cls.__module__.endswith(".nodes"))
        parts = {field.name: dump(getattr(node, field.name)) for field in fields(kind)}
        return kind.__name__, repr(node.range), node.excerpt, parts | {"source": None}
    if isinstance(node, tuple):
        return [dump(part) for part in node]
    return {k: dump(v) for k, v in node.items()} if isinstance(node, dict) else repr(node)


def blank(text: str) -> str:
    """As many characters and lines, none of which says anything."""
    return "".join("\n" if character == "\n" else " " for character in text)


def alone(blocks: list[str]) -> list[Any]:
    """The blocks, each parsed with nothing before it but empty lines."""
    found: list[Any] = []
    for index, block in enumerate(blocks):
        before = [blank(earlier) for earlier in blocks[:index]]
        file, faults = parse("".join([*before, block]), "t.hcl")
        assert not faults
        found.extend(file.body.blocks)
    return found


def comparable(file: File, blocks: list[str]) -> bool:
    """Columns and lines are those of the blanked text, bytes only where letters are ASCII."""
    return "".join(blocks).isascii() and len(file.body.blocks) == len(blocks)


@settings(max_examples=300, deadline=None)
@given(texts())
def test_blocks_are_read_as_if_alone(blocks: list[str]) -> None:
    """Trees, places and excerpts of all blocks of a file are those of each block alone; a fault
    in one is the fault that it has alone."""
    file, faults = parse("".join(blocks), "t.hcl")
    if faults:
        assert any(parse(block, "t.hcl")[1] for block in blocks)
    elif comparable(file, blocks):
        assert [dump(b) for b in file.body.blocks] == [dump(b) for b in alone(blocks)]
