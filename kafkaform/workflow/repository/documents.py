"""The plans of many folders as documents: text, a review comment, a page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from ...core.errors import KafkaformError
from ...core.secret import mask_secrets
from ...render import review
from ...render.folders import (
    FolderEnd,
    FolderReview,
    FoldersSummary,
    render_folder_ends,
    render_folder_plans,
    summarise_folders,
)
from ...render.text import Detail
from ..configuration.repository_choice import FolderChoice
from ..plan_documents import read_words
from .approval import make_approval
from .planning import FolderOutcome

_FEW = 3
"""How many faults of a folder are named."""


def make_review(outcome: FolderOutcome) -> FolderReview:
    """The folder as its reviewers read it."""
    plan, error = outcome.plan, outcome.error
    return FolderReview(
        outcome.folder.path,
        outcome.folder.owner or "",
        plan,
        read_words(plan) if plan is not None else {},
        "" if error is None else _describe_error(error),
        outcome.skipped,
        outcome.code,
        held=outcome.changed and not outcome.applicable,
        verdicts=outcome.verdicts,
    )


def _describe_error(error: KafkaformError) -> str:
    """The message, and the first faults that the error carries, with their places in the folder."""
    faults = [item for item in error.diagnostics if item.summary != error.message]
    named = [f"{f.range}: {f.summary}" if f.range else f.summary for f in faults[:_FEW]]
    more = [f"and {len(faults) - _FEW:,} more"] if len(faults) > _FEW else []
    return f"{error.message}: {'; '.join((*named, *more))}" if faults else error.message


def summarise_outcomes(choice: FolderChoice, outcomes: Iterable[FolderOutcome]) -> FoldersSummary:
    """Count the plans of these folders of a repository, with the approval of all of them."""
    outcomes = tuple(outcomes)
    approval = make_approval(outcomes)
    digest = approval.digest if approval.tokens else ""
    reviews = map(make_review, outcomes)
    return summarise_folders(choice.repository.name, choice.count, reviews, digest)


def render_folders_text(
    summary: FoldersSummary,
    *,
    colour: bool = False,
    width: int = 100,
    detail: Detail = "grouped",
    approval: bool = True,
) -> str:
    """The plans as text, as in `render_plan`."""
    return mask_secrets(
        render_folder_plans(summary, colour=colour, width=width, detail=detail, approval=approval)
    )


def render_ends_text(ends: Sequence[FolderEnd], *, colour: bool = False, width: int = 100) -> str:
    """What became of folders after an apply, as text."""
    return mask_secrets(render_folder_ends(ends, colour=colour, width=width))


def render_folders_comment(
    summary: FoldersSummary, *, command: str, whole: Path | None = None
) -> str:
    """The plans as one review comment. command: applies exactly these plans; whole: a file that has
    all of them."""
    name = whole.name if whole is not None else ""
    return mask_secrets(
        review.folders_comment.render_folders_markdown(summary, command=command, whole=name)
    )


def render_folders_page(summary: FoldersSummary, command: str) -> str:
    """The plans as one HTML page. command: applies exactly these plans."""
    # Secrets are masked before the page escapes them.
    return review.html_page.render_folders_html(summary, command=command)
