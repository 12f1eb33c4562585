"""Files, blocks and attributes with their places."""

from __future__ import annotations

import pytest

from kafkaform.core.diagnostics import Range
from kafkaform.syntax.nodes import File, Lit
from kafkaform.syntax.parse import parse

TEXT = """\
# head
name = "x"

resource "kafka_topic" orders {
  partitions = 3 # tail
  nested {}
  one { a = [
    1] }
}
"""


def read(text: str | bytes) -> File:
    file, diagnostics = parse(text, "main.kf.hcl")
    assert diagnostics == ()
    return file


def test_blocks_and_attributes() -> None:
    """Types, labels, attributes and nested blocks come out as written."""
    body = read(TEXT).body
    (block,) = body.blocks
    assert list(body.attributes) == ["name"]
    assert (block.type, [label.text for label in block.labels]) == (
        "resource",
        ["kafka_topic", "orders"],
    )
    assert list(block.body.attributes) == ["partitions"]
    assert [inner.type for inner in block.body.blocks] == ["nested", "one"]


def test_ranges() -> None:
    """Names, labels, values and blocks know line, column and byte, ends exclusive."""
    block = read(TEXT).body.blocks[0]
    partitions = block.body.attributes["partitions"]
    assert partitions.name_range == Range("main.kf.hcl", 5, 3, 5, 13, 53, 63)
    assert partitions.value.range == Range("main.kf.hcl", 5, 16, 5, 17, 66, 67)
    assert block.type_range == Range("main.kf.hcl", 4, 1, 4, 9, 19, 27)
    assert block.labels[0].range == Range("main.kf.hcl", 4, 10, 4, 23, 28, 41)
    assert block.header_range.end_column == 30
    assert (block.range.line, block.range.end_line, block.range.end_column) == (4, 9, 2)
    assert partitions.excerpt == "  partitions = 3 # tail"


def test_columns_count_characters_and_bytes_count_utf8() -> None:
    """Behind a byte order mark and two-byte letters, columns and bytes differ as documented."""
    attribute = read("\ufeffé = 1\nb = é\n".encode()).body.attributes["b"]
    assert attribute.value.range == Range("main.kf.hcl", 2, 5, 2, 6, 14, 16)


ACCEPTED = [
    "",
    "\n\n# only a comment",
    "a = 1",
    "a = 1 // c\r\nb {\r\n}\r\n",
    "in = 3\nfor = 1\ntrue = 2\nif {}\n",
    'b "x" y in {}\n',
    "b { a = 1 }\n",
    "b { # c\n}\n",
    "b {\n\n  # c\n}\n",
    "a = {\n  b = 1\n\n  c = 2, d = 3\n}\n",
    "a = (\n  1 +\n  2\n)\n",
]


@pytest.mark.parametrize("text", ACCEPTED)
def test_accepted(text: str) -> None:
    """Each of these is a valid file."""
    read(text)


def test_repr_shows_no_content() -> None:
    """A node that reaches a log line does not carry a literal along."""
    value = read('password = "hunter2"\n').body.attributes["password"].value
    assert isinstance(value, Lit)
    assert repr(value) == "Lit(main.kf.hcl:1:12)"
