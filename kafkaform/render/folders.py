"""The plans of many folders, counted, for every form of them; the summary as text for terminals and
as an event for programs; and what became of the folders after an apply.

What failed comes first, then what was not tried, then the others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ..core.change import Action, Verdict
from ..core.words import NO_WORDS, Vocabulary
from ..plan.model import Plan
from .plan_text import render_plan_text
from .plan_view import Counts, PlanView, make_view
from .report import ApplyReport, count_applied, render_amounts, render_validation
from .stream import make_event
from .terraform import Data
from .text import Detail, Paint, inline, render_count, render_table, wrap_lines

HEADS = ("folder", "owner", "create", "change", "destroy", "dangers", "")
"""The columns of the summary."""
_FURTHER = (
    ("imports", "import"),
    ("adopt", "adopt"),
    ("forget", "forget"),
    ("move", "move"),
    ("refresh", "refresh"),
)
"""What has no column: the name of a count, and its verb."""


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
    withheld: bool = False
    """True if it has changes, and the approval of all does not cover them."""
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

    @property
    def extras(self) -> str:
        """What has no column: `1 to adopt`; or the outputs, if nothing else changes."""
        further = ", ".join(_list_further((self,)))
        number = 0 if self.view is None or any(self.numbers) else len(self.view.outputs)
        return further or (render_count(number, "output") if number else "")


def _list_further(rows: Collection[FolderRow]) -> Iterator[str]:
    for name, verb in _FURTHER:
        if number := sum(getattr(row.counts, name) for row in rows):
            yield f"{number:,} to {verb}"


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
    def refresh(self) -> bool:
        """True if the plans only look for drift."""
        return any(row.view is not None and row.view.refresh for row in self.rows)

    @property
    def held(self) -> tuple[FolderRow, ...]:
        """The folders whose changes the approval does not cover."""
        return tuple(row for row in self.rows if row.review.withheld)

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
    reason = blocked or ("refused" if review.fault else "")
    note = ": ".join(filter(None, ("not applied", reason))) if review.withheld else reason
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
        folders = render_count(len(summary.planned), "folder")
        blocked = sum(row.counts.blocked for row in summary.rows)
        suffix = f" {blocked:,} blocked." if blocked else ""
        yield f"Plan of {folders}: {render_counts(summary)}.{suffix}"


def render_totals(summary: FoldersSummary) -> str:
    """The sums of all folders, and what stands in the way of some: `2 to add, 0 to change, 0 to
    destroy, 1 blocked, 1 folder not planned`. Of a look for drift, the objects that drifted."""
    if summary.refresh:
        drift = sum(row.counts.drift for row in summary.rows)
        totals = f"drift of {render_count(drift, 'object')}"
    else:
        totals = render_counts(summary)
    blocked = sum(row.counts.blocked for row in summary.rows)
    unplanned = sum(row.view is None for row in summary.rows)
    counts = [f"{blocked:,} blocked"] * bool(blocked)
    counts += [f"{render_count(unplanned, 'folder')} not planned"] * bool(unplanned)
    return ", ".join((totals, *counts))


def render_counts(summary: FoldersSummary) -> str:
    """The three counts of Terraform's last line, and then what it does not count."""
    create, change, destroy, _ = summary.total()
    counts = f"{create:,} to add, {change:,} to change, {destroy:,} to destroy"
    return ", ".join((counts, *_list_further(summary.rows)))


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


class FolderEnd(Struct, frozen=True):
    """What became of one folder."""

    path: str
    owner: str = ""
    report: ApplyReport | None = None
    """How its requests ended; None if nothing was sent."""
    fault: str = ""
    """Why something was not applied; empty if everything was."""
    skipped: str = ""
    """Why it was not tried; empty if it was."""
    code: int = 0
    """The exit code of this folder alone."""

    @property
    def numbers(self) -> tuple[int, int, int]:
        """How many objects were created, changed and destroyed."""
        counts = self.counts
        return counts[Action.CREATE], counts[Action.UPDATE], counts[Action.DELETE]

    @property
    def counts(self) -> Counter[Action]:
        """Action -> how many objects it was done to."""
        return count_applied(() if self.report is None else self.report.rows)

    @property
    def is_idle(self) -> bool:
        """True if there was nothing to send."""
        return self.report is None and not self.fault and not self.skipped


def _sum_numbers(ends: Sequence[FolderEnd]) -> tuple[int, int, int]:
    added, changed, destroyed = zip(*(end.numbers for end in ends), strict=True)
    return sum(added), sum(changed), sum(destroyed)


def render_folder_ends(ends: Sequence[FolderEnd], *, colour: bool = False, width: int = 100) -> str:
    """The summary for people, with a final newline."""
    paint = Paint(colour)
    faults = [*_list_faults(ends, paint)]
    counts = [*render_end_counts(ends)]
    return "\n".join(wrap_lines((*faults, *([""] if faults else []), *counts), width)) + "\n"


def _list_faults(ends: Sequence[FolderEnd], paint: Paint) -> Iterator[str]:
    failed = [end for end in ends if end.fault]
    if failed:
        folders = render_count(len(ends), "folder")
        yield paint("error", f"{len(failed):,} of {folders} failed")
    for end in failed:
        yield paint("error", f"  ! {inline(end.path)}: {inline(end.fault)}")
    for end in ends:
        if end.skipped:
            yield f"  {inline(end.path)} was skipped: {inline(end.skipped)}"


def render_end_counts(ends: Sequence[FolderEnd]) -> Iterator[str]:
    """How many folders had nothing to send, and the sums of the others."""
    if not ends:
        yield "No folder has changed, so nothing was sent."
    idle = sum(end.is_idle for end in ends)
    if idle:
        yield f"{render_count(idle, 'folder')} had nothing to send."
    sent = [end for end in ends if end.report is not None]
    if sent:
        counts = sum((end.counts for end in sent), Counter[Action]())
        folders = render_count(len(sent), "folder")
        yield f"Applied in {folders}: {', '.join(render_amounts(counts))}."
    elif idle < len(ends):
        yield "Nothing was sent."


def make_ends_data(name: str, ends: Sequence[FolderEnd]) -> Data:
    """The summary for programs. name: of the repository."""
    added, changed, destroyed = _sum_numbers(ends) if ends else (0, 0, 0)
    return {
        "name": name,
        "operation": "apply",
        "folders": [_make_end_data(end) for end in ends],
        "failed": sum(bool(end.fault) for end in ends),
        "skipped": sum(bool(end.skipped) for end in ends),
        "add": added,
        "change": changed,
        "remove": destroyed,
    }


def _make_end_data(end: FolderEnd) -> Data:
    added, changed, destroyed = end.numbers
    return {
        "folder": end.path,
        "owner": end.owner,
        "add": added,
        "change": changed,
        "remove": destroyed,
        "run": "" if end.report is None else end.report.run,
        "error": end.fault,
        "skipped": end.skipped,
        "exit_code": end.code,
    }


def make_repository_summary(summary: FoldersSummary) -> Data:
    """The last event of a command about many folders."""
    failed = f"{render_count(len(summary.failed), 'folder')} cannot be planned."
    text = " ".join((*([failed] if summary.failed else []), *render_folder_counts(summary)))
    return make_event("repository_summary", text, repository=make_folders_data(summary))


def make_repository_result(name: str, ends: Sequence[FolderEnd]) -> Data:
    """The last event of an apply of many folders. name: of the repository."""
    failed = sum(bool(end.fault) for end in ends)
    first = [f"{render_count(failed, 'folder')} failed."] if failed else []
    text = " ".join((*first, *render_end_counts(ends)))
    return make_event("repository_summary", text, repository=make_ends_data(name, ends))


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
        rows.append(
            [inline(row.review.path), inline(row.review.owner), *numbers, row.note or row.extras]
        )
    head, *lines = render_table(rows, _NUMBERS)
    yield paint("dim", head)
    for row, line in zip(summary.planned, lines, strict=True):
        yield paint("error", line) if row.dangers or row.counts.stopping else line
