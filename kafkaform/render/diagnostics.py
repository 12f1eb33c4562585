"""Render diagnostics: what happened, where, the line itself, why, and what to do next."""

from __future__ import annotations

import textwrap
from collections.abc import Hashable, Iterable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from ..core.diagnostics import Diagnostic, Range, Severity
from ..core.text import cell_width
from .change_entries import LEAST, join_names, join_sentences, mask_names
from .change_lines import ADDRESS_PARTS
from .text import Paint, inline, render_block, render_count

SAME_SUMMARY_LIMIT = 10
"""Diagnostics with one summary that are rendered in full. One mistake in a loop makes thousands."""
PLACES_SHOWN = 5
"""Places that are named of the others."""
EXCERPT_LIMIT = 160
"""Characters of a source line that are shown. Generated files have lines of megabytes."""


def render_diagnostic(diagnostic: Diagnostic, colour: bool = False, width: int = 100) -> str:
    """One diagnostic, with a final newline. width: in columns."""
    paint = Paint(colour)
    style = diagnostic.severity.value
    head = paint(style, f"{style.capitalize()}: ") + paint("title", inline(diagnostic.summary))
    bar = paint(style, "│")
    # Every line after the first starts with a bar. Foreign text at the start of a line could pass
    # for another diagnostic, or for a command to the build system that prints it.
    body = "".join(
        f"{bar} {line}".rstrip() + "\n" for line in _render_body(diagnostic, paint, width - 2)
    )
    return f"{head}\n{body}"


def render_diagnostics(
    diagnostics: Iterable[Diagnostic], colour: bool = False, width: int = 100
) -> str:
    """Several diagnostics. Of many with one summary, the first few in full and the others by place.

    width: in columns.
    """
    groups: dict[tuple[Severity, str], list[Diagnostic]] = {}
    for item in join_alike(diagnostics):
        groups.setdefault((item.severity, item.summary), []).append(item)
    # Errors last: the end of the output is what people see first in a terminal.
    ordered = sorted(groups.items(), key=lambda entry: entry[0][0] is Severity.ERROR)
    texts = []
    for (severity, summary), members in ordered:
        listed, further = members[:SAME_SUMMARY_LIMIT], members[SAME_SUMMARY_LIMIT:]
        texts += [render_diagnostic(item, colour, width) for item in listed]
        if further:
            texts.append(_render_others(severity, summary, further, Paint(colour)))
    return "\n".join(texts)


def join_alike(diagnostics: Iterable[Diagnostic]) -> Iterator[Diagnostic]:
    """The diagnostics without repetitions. Those that many objects have for one cause are one, with
    their number and a few names."""
    alike: dict[Hashable, list[Diagnostic]] = {}
    for item in dict.fromkeys(diagnostics):
        alike.setdefault(_make_key(item), []).append(item)
    for members in alike.values():
        if len(members) < LEAST:
            yield from members
        else:
            yield _join(members)


def _make_key(item: Diagnostic) -> Hashable:
    """Equal for diagnostics that differ in their objects only."""
    if not item.address:
        return item
    own = frozenset((item.address, *ADDRESS_PARTS.findall(item.address)))
    texts = tuple(
        mask_names(text.replace(item.address, ""), own)
        for text in (item.summary, item.detail, item.advice or "")
    )
    return item.severity, texts, item.range, item.context


def _join(members: Sequence[Diagnostic]) -> Diagnostic:
    first, number = members[0], f"{len(members):,} objects"
    address = first.address or ""
    named = address in first.summary
    return replace(
        first,
        summary=first.summary.replace(address, number) if named else f"{first.summary} ({number})",
        detail=join_sentences([item.detail for item in members]),
        advice=join_sentences([item.advice or "" for item in members]),
        address=join_names([item.address or "" for item in members]),
    )


def make_diagnostic_data(diagnostic: Diagnostic, block: str | None = None) -> dict[str, Any]:
    """One diagnostic in the shape of Terraform's JSON, with `advice` and `context` added.

    block: the header of the top-level block around the place.
    """
    data: dict[str, Any] = {
        "severity": diagnostic.severity.value,
        "summary": diagnostic.summary,
        "detail": diagnostic.detail,
    }
    if diagnostic.address:
        data["address"] = diagnostic.address
    if diagnostic.range is not None:
        data["range"] = {
            "filename": diagnostic.range.file,
            "start": {
                "line": diagnostic.range.line,
                "column": diagnostic.range.column,
                "byte": diagnostic.range.start_byte,
            },
            "end": {
                "line": diagnostic.range.end_line,
                "column": diagnostic.range.end_column,
                "byte": diagnostic.range.end_byte,
            },
        }
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
    label = "Hint" if diagnostic.advice.startswith("Did you mean") else "Fix"
    advice = f"{label}: {diagnostic.advice}" if diagnostic.advice else ""
    sections = (
        list(_render_place(diagnostic, paint)),
        list(_wrap_lines(diagnostic.detail, width)),
        [paint("dim", inline(line)) for line in diagnostic.context],
        list(_wrap_lines(advice, width)),
    )
    for index, lines in enumerate(section for section in sections if section):
        yield from [""] if index else []
        yield from lines


def _render_place(diagnostic: Diagnostic, paint: Paint) -> Iterator[str]:
    suffix = f", in {inline(diagnostic.address)}" if diagnostic.address else ""
    if diagnostic.range is None:
        if suffix:
            yield suffix[2:]
        return
    yield f"on {inline(str(diagnostic.range))}{suffix}"
    if diagnostic.excerpt is not None:
        number = f"{diagnostic.range.line}: "
        before, marked, after = _cut_excerpt(diagnostic.range, diagnostic.excerpt)
        plain = before + marked + after
        styled = before + paint("title", marked) + after
        # Parts that are harmless one by one can form a log command together.
        yield "  " + paint("dim", number) + (styled if inline(plain) == plain else inline(plain))
        under = "^" * max(1, cell_width(marked))
        margin = " " * (len(number) + cell_width(before))
        yield "  " + margin + paint(diagnostic.severity.value, under)


def _measure_span(span: Range, excerpt: str) -> tuple[int, int]:
    """Start and end of the marked part of the excerpt, in code points."""
    # A range can end on a later line, or lie beyond an excerpt that was cut: clamp it to the line.
    start = min(max(span.column - 1, 0), len(excerpt))
    end = span.end_column - 1 if span.end_line == span.line else len(excerpt.rstrip())
    return start, max(start, min(end, len(excerpt)))


def _cut_excerpt(span: Range, excerpt: str) -> tuple[str, str, str]:
    """The excerpt before, in and after the range, safe to print. A very long line is cut."""
    start, end = _measure_span(span, excerpt)
    first = max(0, start - EXCERPT_LIMIT // 2) if len(excerpt) > EXCERPT_LIMIT else 0
    last = min(len(excerpt), first + EXCERPT_LIMIT)
    lead, trail = "…" if first else "", "…" if last < len(excerpt) else ""
    pieces = (excerpt[first:start], excerpt[start : min(end, last)], excerpt[min(end, last) : last])
    before, marked, after = (inline(piece.replace("\t", "    ")) for piece in pieces)
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


def _render_others(
    severity: Severity, summary: str, diagnostics: list[Diagnostic], paint: Paint
) -> str:
    locations = [str(item.range) if item.range else item.address or "" for item in diagnostics]
    named = [inline(location) for location in dict.fromkeys(locations) if location]
    suffix = f": {', '.join(named[:PLACES_SHOWN])}" if named else ""
    tail = " …" if len(named) > PLACES_SHOWN else ""
    title = paint(severity.value, f"{severity.value.capitalize()}: ")
    return (
        f"{title}{inline(summary)}, {render_count(len(diagnostics), 'more time')}{suffix}{tail}\n"
    )


def _make_snippet_data(
    diagnostic: Diagnostic, span: Range, code: str, block: str | None
) -> dict[str, Any]:
    """The source line with the offsets of the marked part, in bytes of `code` as in Terraform."""
    start, end = (_count_bytes(code[:offset]) for offset in _measure_span(span, code))
    return {
        "context": block or (diagnostic.context[-1] if diagnostic.context else None),
        "code": code,
        "start_line": span.line,
        "highlight_start_offset": start,
        # Editors ignore an empty mark, so it covers at least one byte.
        "highlight_end_offset": min(max(end, start + 1), _count_bytes(code)),
        "values": [],
    }


def _count_bytes(text: str) -> int:
    """The length in UTF-8."""
    # Half of a surrogate pair has no UTF-8 and would raise. HCL can contain one as \uD800.
    return len(text.encode("utf-8", "surrogatepass"))
