"""Whatever the text, the parser answers with nodes and diagnostics, never an exception."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform.syntax.parse import parse, parse_expression, parse_template

from ...kit.quick import examples

SEED_TEXT = """\
resource "kafka_topic" "orders" {
  name       = "${var.prefix}-orders %{ if x ~} y %{ else }z%{ endif }"
  partitions = var.large ? 48 : -12.5e3
  config = merge({ "a.b" = 1, c : [1, 2] }, local.m...)
  text = <<-EOT
    line ${a[*].b.0} $${no}
  EOT
  all = [for k, v in m : upper(k) if v != null] /* c */
  obj = {for k in s : k => !true...} # tail
}
"""
_MARKS = [
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    '"',
    "${",
    "%{",
    "~",
    "\n",
    "\\",
    "<<E\n",
    "EOT\n",
    "=",
    "é",
]


@pytest.mark.parametrize("seed", range(200))
def test_damaged_text_never_raises(seed: int) -> None:
    """Cutting, doubling and inserting marks gives diagnostics with places inside the text."""
    dice = random.Random(seed)
    text = SEED_TEXT
    for _ in range(dice.randint(1, 4)):
        at, to = sorted(dice.choices(range(len(text) + 1), k=2))
        text = dice.choice(
            [text[:at] + text[to:], text[:at] + dice.choice(_MARKS) + text[at:], text[:to] * 2]
        )
    _, diagnostics = parse(text, "t.hcl")
    lines = text.count("\n") + 1
    assert all(item.range and 1 <= item.range.line <= lines for item in diagnostics)


@settings(max_examples=examples(300), deadline=None)
@given(st.text() | st.text('a1"${}%~[]()=.,*:?!-+ \n\\<E', max_size=40))
def test_any_text_is_answered(text: str) -> None:
    """Files, expressions and templates: either a node or at least one error."""
    file, diagnostics = parse(text, "t.hcl")
    assert file.body is not None or diagnostics
    for read in (parse_expression, parse_template):
        node, faults = read(text, "t.hcl")
        assert (node is None) == bool(faults)


@settings(max_examples=examples(100), deadline=None)
@given(st.binary())
def test_any_bytes_are_answered(data: bytes) -> None:
    """Bytes that are no text are refused, not crashed upon."""
    parse(data, "t.hcl")


def test_half_a_surrogate_pair_is_no_text() -> None:
    """A byte that a terminal or pipe let through as such has a place and a reason, as in a file."""
    node, (fault,) = parse_expression('[\n  "\udcf8"\n]', "console")
    assert node is None
    assert (fault.summary, str(fault.range)) == ("Not UTF-8", "console:2:1")
