"""Render a graph in the DOT language, in the form of `terraform graph`. Alone, because nothing else
is a graph."""

from __future__ import annotations

from collections.abc import Iterable

from .text import inline


def render_dot(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> str:
    """The graph as text with a final newline. edges: a name and a name that it depends on."""
    # Sorted, so that equal graphs are equal text and a diff shows only real differences.
    drawn = [f"{quote_name(name)} [label={quote_name(name)}];" for name in sorted(set(nodes))]
    drawn += [
        f"{quote_name(source)} -> {quote_name(target)};" for source, target in sorted(set(edges))
    ]
    head = ['rankdir = "RL";', 'node [shape = rect, fontname = "sans-serif"];']
    return "digraph G {\n" + "".join(f"  {line}\n" for line in (*head, *drawn)) + "}\n"


def quote_name(text: str) -> str:
    """A name as a DOT string."""
    # Graphviz interprets escapes such as \N and \l in labels, so backslashes are doubled as well.
    return '"' + inline(text).replace("\\", "\\\\").replace('"', '\\"') + '"'
