"""Graphs as Graphviz reads them."""

from __future__ import annotations

import pytest

from kafkaform.render.terraform import quote_name, render_dot


def test_equal_graphs_are_equal_text() -> None:
    """Nodes and edges come sorted and once, in Terraform's frame."""
    assert render_dot(["b", "a", "b"], [("b", "a"), ("b", "a")]) == (
        "digraph G {\n"
        '  rankdir = "RL";\n'
        '  node [shape = rect, fontname = "sans-serif"];\n'
        '  "a" [label="a"];\n'
        '  "b" [label="b"];\n'
        '  "b" -> "a";\n'
        "}\n"
    )


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ('module.m["a"]', r'"module.m[\"a\"]"'),
        ("a\\N", r'"a\\N"'),
        ('x"];evil', r'"x\"];evil"'),
        ("a\nb", r'"a\\nb"'),
        ("\x1b[31m", r'"\\x1b[31m"'),
    ],
)
def test_names_cannot_break_out(name: str, text: str) -> None:
    """Quotes, backslashes and control characters stay inside the string, and are shown."""
    assert quote_name(name) == text
