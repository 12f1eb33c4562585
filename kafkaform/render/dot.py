"""A graph in the DOT language, in the form of `terraform graph`."""

from __future__ import annotations

from collections.abc import Iterable

from .text import inline


def render_dot(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> str:
    """nodes: names; edges: (name, what it needs). Sorted, so that equal graphs are equal text."""
    drawn = [f"{quote_name(name)} [label={quote_name(name)}];" for name in sorted(set(nodes))]
    drawn += [f"{quote_name(one)} -> {quote_name(other)};" for one, other in sorted(set(edges))]
    head = ['rankdir = "RL";', 'node [shape = rect, fontname = "sans-serif"];']
    return "digraph G {\n" + "".join(f"  {line}\n" for line in (*head, *drawn)) + "}\n"


def quote_name(text: str) -> str:
    """A name as a DOT string. Graphviz reads escapes such as \\N and \\l in labels, so that a
    backslash must be doubled as well as a quote escaped."""
    return '"' + inline(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
