"""Diagnostics for people: what happened, where, the line itself, why, and what to do next."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator
from typing import Any

from ..core.diagnostics import Diagnostic, Range, Severity
from ..core.text.cell_width import cell_width
from .style import Paint
from .text import inline, render_block, render_count

SAME_SUMMARY_LIMIT = 10
PLACES_SHOWN = 5
EXCERPT_LIMIT = 160


def render_diagnostic(diagnostic: Diagnostic, colour: bool = False, width: int = 100) -> str:
    """One diagnostic, with a final newline. Every line after the first starts with a bar, so
    that foreign text never starts a line."""
    paint = Paint(colour)
    style = diagnostic.severity.value
    head = paint(style, f"{style.capitalize()}: ") + paint("title", inline(diagnostic.summary))
    bar = paint(style, "│")
    body = "".join(
        f"{bar} {line}".rstrip() + "\n" for line in _render_body(diagnostic, paint, width - 2)
    )
    return f"{head}\n{body}"


def render_diagnostics(
    diagnostics: Iterable[Diagnostic], colour: bool = False, width: int = 100
) -> str:
    """Several, warnings before errors, so that what stops the run is read last; of many with one
    summary the first few are shown whole and the others by place."""
    groups: dict[tuple[Severity, str], list[Diagnostic]] = {}
    for item in dict.fromkeys(diagnostics):
        groups.setdefault((item.severity, item.summary), []).append(item)
    ordered = sorted(groups.items(), key=lambda entry: entry[0][0] is Severity.ERROR)
    texts = []
    for (severity, summary), members in ordered:
        shown, rest = members[:SAME_SUMMARY_LIMIT], members[SAME_SUMMARY_LIMIT:]
        texts += [render_diagnostic(item, colour, width) for item in shown]
        if rest:
            texts.append(_render_others(severity, summary, rest, Paint(colour)))
    return "\n".join(texts)


def make_diagnostic_data(diagnostic: Diagnostic, block: str | None = None) -> dict[str, Any]:
    """The shape of Terraform's JSON diagnostics, with `advice` and `context` added. block: the
    header of the top-level block around the place."""
    data: dict[str, Any] = {
        "severity": diagnostic.severity.value,
        "summary": diagnostic.summary,
        "detail": diagnostic.detail,
    }
    if diagnostic.address:
        data["address"] = diagnostic.address
    if diagnostic.range is not None:
        data["range"] = _make_range_data(diagnostic.range)
        if diagnostic.excerpt is not None:
            data["snippet"] = _make_snippet_data(
                diagnostic, diagnostic.range, diagnostic.excerpt, block
            )
    if diagnostic.advice:
        data["advice"] = diagnostic.advice
    if diagnostic.context:
        data["context"] = list(diagnostic.context)
    return data


def _render_body(diagnostic: Diagnostic, paint: Paint, width: int) -> Iterator[str]:
    advice = f"To do: {diagnostic.advice}" if diagnostic.advice else ""
    parts = (
        list(_render_place(diagnostic, paint)),
        list(_wrap_lines(diagnostic.detail, width)),
        [paint("dim", inline(line)) for line in diagnostic.context],
        list(_wrap_lines(advice, width)),
    )
    for index, lines in enumerate(part for part in parts if part):
        yield from [""] if index else []
        yield from lines


def _render_place(diagnostic: Diagnostic, paint: Paint) -> Iterator[str]:
    where = f", in {inline(diagnostic.address)}" if diagnostic.address else ""
    if diagnostic.range is None:
        if where:
            yield where[2:]
        return
    yield f"on {inline(str(diagnostic.range))}{where}"
    if diagnostic.excerpt is not None:
        number = f"{diagnostic.range.line}: "
        before, marked, after = _cut_excerpt(diagnostic.range, diagnostic.excerpt)
        plain = before + marked + after
        styled = before + paint("title", marked) + after
        # Parts that are harmless alone can be a log command together.
        yield "  " + paint("dim", number) + (styled if inline(plain) == plain else inline(plain))
        under = "^" * max(1, cell_width(marked))
        margin = " " * (len(number) + cell_width(before))
        yield "  " + margin + paint(diagnostic.severity.value, under)


def _measure_span(place: Range, excerpt: str) -> tuple[int, int]:
    """The marked part of the excerpt as offsets in code points."""
    start = min(max(place.column - 1, 0), len(excerpt))
    end = place.end_column - 1 if place.end_line == place.line else len(excerpt.rstrip())
    return start, max(start, min(end, len(excerpt)))


def _cut_excerpt(place: Range, excerpt: str) -> tuple[str, str, str]:
    """The excerpt, ready to be shown, before, in and after the range; of a very long line only
    the part around it."""
    start, end = _measure_span(place, excerpt)
    first = max(0, start - EXCERPT_LIMIT // 2) if len(excerpt) > EXCERPT_LIMIT else 0
    last = min(len(excerpt), first + EXCERPT_LIMIT)
    lead, trail = "…" if first else "", "…" if last < len(excerpt) else ""
    parts = (excerpt[first:start], excerpt[start : min(end, last)], excerpt[min(end, last) : last])
    before, marked, after = (inline(part.replace("\t", "    ")) for part in parts)
    return lead + before, marked, (after + trail).rstrip()


def _wrap_lines(text: str, width: int) -> Iterator[str]:
    if not text:
        return
    for line in render_block(text).split("\n"):
        indent = line[: len(line) - len(line.lstrip())]
        yield from textwrap.wrap(
            line,
            max(width, 40),
            subsequent_indent=indent,
            break_long_words=False,
            break_on_hyphens=False,
        ) or [""]


def _render_others(severity: Severity, summary: str, rest: list[Diagnostic], paint: Paint) -> str:
    places = [str(item.range) if item.range else item.address or "" for item in rest]
    named = [inline(place) for place in dict.fromkeys(places) if place]
    where = f": {', '.join(named[:PLACES_SHOWN])}" if named else ""
    tail = " …" if len(named) > PLACES_SHOWN else ""
    title = paint(severity.value, f"{severity.value.capitalize()}: ")
    return f"{title}{inline(summary)}, {render_count(len(rest), 'more time')}{where}{tail}\n"


def _make_snippet_data(
    diagnostic: Diagnostic, place: Range, code: str, block: str | None
) -> dict[str, Any]:
    """Offsets count bytes of `code`, as Terraform's do, and never mark nothing."""
    start, end = (_count_bytes(code[:offset]) for offset in _measure_span(place, code))
    return {
        "context": block or (diagnostic.context[-1] if diagnostic.context else None),
        "code": code,
        "start_line": place.line,
        "highlight_start_offset": start,
        "highlight_end_offset": min(max(end, start + 1), _count_bytes(code)),
        "values": [],
    }


def _count_bytes(text: str) -> int:
    """Its length in UTF-8; half of a surrogate pair counts as if it could be written."""
    return len(text.encode("utf-8", "surrogatepass"))


def _make_range_data(place: Range) -> dict[str, Any]:
    return {
        "filename": place.file,
        "start": {"line": place.line, "column": place.column, "byte": place.start_byte},
        "end": {"line": place.end_line, "column": place.end_column, "byte": place.end_byte},
    }
