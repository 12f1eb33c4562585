"""Write foreign text so that it cannot become Markdown or HTML.

Names stand in code spans. Prose is written with character references, which CommonMark (2.5) never
reads as structure. Differences stand in fences that are longer than any run of backticks in them.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable

from markupsafe import Markup

from ...text import inline

_ACTIVE = re.compile(r"[\\`*\[\]<>#|~&@!$]|:(?=//)|(?<=www)\.|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_JOINER = "\u200d"
_JOINED = frozenset("@#!")


def render_code(text: str) -> Markup:
    """A code span."""
    return _render_span(inline(text))


def render_cell(text: str) -> Markup:
    """A code span in a table cell."""
    # `\|` in a cell is a pipe to one parser and the end of the cell to another, so a pipe after a
    # backslash is written as \x7c.
    line = inline(text)
    return _render_span(re.sub(r"(?<=\\)\|", "x7c", line).replace("|", r"\|"))


def _render_span(line: str) -> Markup:
    ticks = "`" * (_measure_longest_run(line) + 1)
    gap = " " if not line.strip() or line[0] in "` " or line[-1] in "` " else ""
    return Markup(f"{ticks}{gap}{line}{gap}{ticks}")


def render_prose(text: str) -> Markup:
    """A sentence with foreign parts, its active characters as references."""
    # GitHub looks for @names and #numbers after it has resolved references, so a zero-width joiner
    # breaks those.
    return Markup(_ACTIVE.sub(_render_reference, inline(text.strip())))


def render_tag(text: str) -> Markup:
    """Foreign text inside an HTML block."""
    return Markup(f"<code>{html.escape(inline(text))}</code>")


def render_fence(lines: Iterable[str], language: str) -> Markup:
    """A fenced block that its content cannot close."""
    body = "\n".join(lines)
    ticks = "`" * max(3, _measure_longest_run(body) + 1)
    return Markup(f"{ticks}{language}\n{body}\n{ticks}")


def _render_reference(match: re.Match[str]) -> str:
    char = match[0]
    return f"&#{ord(char)};{_JOINER if char in _JOINED else ''}"


def _measure_longest_run(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
