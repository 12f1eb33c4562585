"""The plans of many folders, counted: the summary that every form of them begins with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from ..core.change import Verdict
from ..core.words import NO_WORDS, Vocabulary
from ..plan.model import Plan
from .plan_view import Counts, PlanView, make_view
from .terraform import Data
from .text import inline, render_count

HEADS = ("folder", "owner", "create", "change", "destroy", "dangers", "")
"""The columns of the summary."""


class FolderReview(Struct, frozen=True):
    """One folder as its reviewers read it."""

    path: str
    owner: str = ""
    plan: Plan | None = None
    """None if there is none: it failed or was skipped."""
    words: Vocabulary = NO_WORDS
    """Of the plan's providers."""
    fault: str = ""
    """Why it cannot be planned, or not be applied as it is; empty if it can."""
    skipped: str = ""
    """Why it was left out."""
    code: int = 0
    """The exit code of this folder alone."""
    verdicts: Mapping[str, Verdict] | None = None
    """Step id -> what the dry run said; None without a dry run."""

    @property
    def failed(self) -> bool:
        """True if there is no plan because of a fault."""
        return self.plan is None and not self.skipped


class FolderRow(Struct, frozen=True):
    """One row of the summary."""

    review: FolderReview
    view: PlanView | None
    dangers: int = 0
    """How many objects have dangers."""
    note: str = ""
    """What else there is to say: `failed`, `blocked`."""

    @property
    def counts(self) -> Counts:
        return Counts() if self.view is None else self.view.counts

    @property
    def silent(self) -> bool:
        """True if the plan has nothing to read."""
        view = self.view
        return view is not None and not (
            *view.groups,
            *view.drift,
            *view.outputs,
            *view.pending,
            *view.removals,
            *view.warnings,
            *view.diagnostics,
        )

    @property
    def numbers(self) -> tuple[int, int, int, int]:
        """What it creates, changes and destroys, and its dangers."""
        return self.counts.add, self.counts.change, self.counts.destroy, self.dangers


class FoldersSummary(Struct, frozen=True):
    """The plans of many folders, counted."""

    name: str
    """Of the repository."""
    count: int
    """How many folders the repository has."""
    rows: tuple[FolderRow, ...]
    """A row for each folder."""
    digest: str = ""
    """Approves all of them; empty if there is nothing to apply."""

    @property
    def failed(self) -> tuple[FolderRow, ...]:
        """The folders without a plan because of a fault."""
        return tuple(row for row in self.rows if row.review.failed)

    @property
    def listed(self) -> tuple[FolderRow, ...]:
        """The folders about which there is something to read: not those without changes."""
        return tuple(row for row in self.rows if not row.silent)

    @property
    def planned(self) -> tuple[FolderRow, ...]:
        """The folders with a plan that has something to read."""
        return tuple(row for row in self.listed if row.view is not None)

    def total(self) -> tuple[int, int, int, int]:
        """The sums of the rows' numbers."""
        create, change, destroy, dangers = zip(*(row.numbers for row in self.rows), strict=True)
        return sum(create), sum(change), sum(destroy), sum(dangers)


def summarise_folders(
    name: str, count: int, reviews: Iterable[FolderReview], digest: str = ""
) -> FoldersSummary:
    """Count the plans. name, count: of the repository and of all its folders."""
    return FoldersSummary(name, count, tuple(map(_make_row, reviews)), digest)


def _make_row(review: FolderReview) -> FolderRow:
    if review.plan is None:
        return FolderRow(review, None, note="skipped" if review.skipped else "failed")
    view = make_view(review.plan, review.words)
    dangers = sum(len(entry.changes) for entry in view.dangers)
    blocked = f"{view.counts.blocked:,} blocked" if view.counts.blocked else ""
    note = blocked or ("refused" if review.fault else "")
    return FolderRow(review, view, dangers, note)


def render_folder_counts(summary: FoldersSummary) -> Iterator[str]:
    """How many folders have changes and how many have none, and the sums of all."""
    if not summary.rows:
        folders = render_count(summary.count, "folder")
        yield f"None of the {folders} of the repository {inline(summary.name)} has changed."
        return
    idle = len(summary.rows) - len(summary.listed)
    if idle:
        verb = "has" if idle == 1 else "have"
        yield f"{render_count(idle, 'folder')} {verb} no changes."
    if summary.planned:
        create, change, destroy, _ = summary.total()
        folders = render_count(len(summary.planned), "folder")
        yield f"Plan of {folders}: {render_counts(create, change, destroy)}."


def render_counts(create: int, change: int, destroy: int) -> str:
    """The three counts of Terraform's last line."""
    return f"{create:,} to add, {change:,} to change, {destroy:,} to destroy"


def make_folders_data(summary: FoldersSummary) -> Data:
    """The summary as data: the counts of each folder, and the approval of all."""
    create, change, destroy, dangers = summary.total() if summary.rows else (0, 0, 0, 0)
    return {
        "name": summary.name,
        "folders": [_make_row_data(row) for row in summary.rows],
        "failed": len(summary.failed),
        "add": create,
        "change": change,
        "remove": destroy,
        "dangers": dangers,
        "approval": summary.digest,
    }


def _make_row_data(row: FolderRow) -> Data:
    review, (create, change, destroy, dangers) = row.review, row.numbers
    return {
        "folder": review.path,
        "owner": review.owner,
        "add": create,
        "change": change,
        "remove": destroy,
        "dangers": dangers,
        "blocked": row.counts.blocked,
        "planned": review.plan is not None,
        "applicable": row.view is not None and row.view.applicable,
        "token": "" if row.view is None else row.view.token,
        "error": review.fault,
        "skipped": review.skipped,
        "exit_code": review.code,
    }
