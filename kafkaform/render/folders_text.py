"""The plans of many folders for terminals: what failed first, then the summary, then each plan."""

from __future__ import annotations

from collections.abc import Iterator

from .dry_run import render_validation
from .folders import HEADS, FoldersSummary, render_folder_counts
from .plan_text import render_plan_text
from .text import Detail, Paint, inline, render_count, render_table, wrap_lines

_NUMBERS = frozenset({2, 3, 4, 5})
"""The columns with numbers."""


def render_folder_plans(
    summary: FoldersSummary,
    *,
    colour: bool = False,
    width: int = 100,
    detail: Detail = "grouped",
    approval: bool = True,
) -> str:
    """The summary, and below it each plan that has something to read, under the path of its
    folder. approval: show the digest, for readers who apply the plans later."""
    paint = Paint(colour)
    texts = ["\n".join(wrap_lines(_render_failed(summary, paint), width))]
    texts.append("\n".join(_render_table(summary, paint)))
    for row in summary.planned:
        review = row.review
        assert review.plan is not None, "a folder with a view has a plan"
        title = paint("title", f"── {inline(review.path)} ".ljust(width, "─"))
        plan = render_plan_text(
            review.plan,
            words=review.words,
            colour=colour,
            width=width,
            detail=detail,
            approval=False,
        )
        texts.append(f"{title}\n\n{plan.rstrip()}")
        if review.verdicts is not None:
            checked = render_validation(review.plan, review.verdicts, review.words)
            texts.append(checked.rstrip())
    texts.append("\n".join(wrap_lines(render_folder_counts(summary), width)))
    if approval and summary.digest:
        texts[-1] += f"\nApproval: {summary.digest}"
    return "\n\n".join(filter(None, texts)) + "\n"


def _render_failed(summary: FoldersSummary, paint: Paint) -> Iterator[str]:
    """What failed and what was skipped, with the reason."""
    if summary.failed:
        folders = render_count(len(summary.rows), "folder")
        name = inline(summary.name)
        yield paint("error", f"{len(summary.failed):,} of {folders} of {name} cannot be planned")
    for row in summary.failed:
        yield paint("error", f"  ! {inline(row.review.path)}: {inline(row.review.fault)}")
    for row in summary.rows:
        if row.review.skipped:
            yield f"  {inline(row.review.path)} is skipped: {inline(row.review.skipped)}"


def _render_table(summary: FoldersSummary, paint: Paint) -> Iterator[str]:
    if not summary.planned:
        return
    rows = [[*HEADS]]
    for row in summary.planned:
        numbers = (f"{number:,}" if number else "·" for number in row.numbers)
        rows.append([inline(row.review.path), inline(row.review.owner), *numbers, row.note])
    head, *lines = render_table(rows, _NUMBERS)
    yield paint("dim", head)
    for row, line in zip(summary.planned, lines, strict=True):
        yield paint("error", line) if row.dangers or row.counts.stopping else line
