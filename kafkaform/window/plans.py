"""Saved plans of the folder: a listing, and each one as its page for a review."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from ..core.change import Action
from ..core.errors import KafkaformError
from ..core.finding import Level
from ..plan.model import Plan
from ..render.review.html_page import render_html
from ..workflow.plan_files import load_plan, read_words
from ..workflow.planning import render_apply_command
from .page import Cell, CellRow, WindowPage, WindowSection, make_id, make_table
from .sources import Query, Sources
from .times import render_moment

LARGEST = 1 << 28
"""Bytes of the largest plan that is read."""
MOST = 100
"""How many plans are listed, the newest ones."""
_BEGINNING = b'{"checksum":"'
"""Of every saved plan: members are sorted, and the checksum is the first."""


class SavedPlan(Struct, frozen=True):
    """A file that begins like a saved plan."""

    name: str
    size: int
    changed: float
    """When the file was written, in seconds since the epoch."""

    @property
    def id(self) -> str:
        return make_id(self.name)


class ReadPlan(Struct, frozen=True):
    """A saved plan, or why it cannot be used."""

    saved: SavedPlan
    plan: Plan | None
    fault: str = ""


def make_page(sources: Sources, query: Query) -> WindowPage:
    """Read and list them."""
    return show_plans([_read_plan(sources.folder, one) for one in list_saved(sources.folder)])


def list_saved(folder: Path) -> Sequence[SavedPlan]:
    """The files directly in the folder that begin like saved plans, the newest first."""
    found = sorted(_find_saved(folder), key=lambda one: (-one.changed, one.name))
    return found[:MOST]


def _find_saved(folder: Path) -> Iterator[SavedPlan]:
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        try:
            # Links may lead out of the folder, and reading from a pipe would wait for its writer.
            if not entry.is_file(follow_symlinks=False):
                continue
            about = entry.stat(follow_symlinks=False)
            if about.st_size <= LARGEST and _begins_like_plan(entry.path):
                yield SavedPlan(entry.name, about.st_size, about.st_mtime)
        except OSError:
            continue


def _begins_like_plan(path: str) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        whole = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return whole and os.read(descriptor, len(_BEGINNING)) == _BEGINNING
    finally:
        os.close(descriptor)


def _read_plan(folder: Path, saved: SavedPlan) -> ReadPlan:
    try:
        return ReadPlan(saved, load_plan(folder / saved.name))
    except KafkaformError as error:
        return ReadPlan(saved, None, error.message)


def show_plans(found: Sequence[ReadPlan]) -> WindowPage:
    """The listing."""
    if not found:
        lead = ("There is no saved plan in this folder. kafkaform plan --out FILE saves one.",)
        return WindowPage("plans", "Plans", "", (WindowSection("saved", "Saved plans", lead),))
    columns = (
        *("File", "Made", "Create", "Change", "Destroy", "Blocked", "Dangers", "Cautions"),
        *("Drift", "Approval"),
    )
    table = make_table("Files, the newest first", columns, [_make_row(one) for one in found])
    bad = [one for one in found if one.plan is None]
    warning = f"{bad[0].fault}." if bad else ""
    section = WindowSection("saved", "Saved plans", warning=warning, tables=(table,))
    return WindowPage("plans", "Plans", "Saved with kafkaform plan --out FILE.", (section,))


def _make_row(one: ReadPlan) -> CellRow:
    plan = one.plan
    if plan is None:
        return (Cell(one.saved.name), Cell("cannot be used", style="bad"), *[Cell("")] * 8)
    numbers = (
        plan.count(Action.CREATE),
        sum(one.action is Action.UPDATE and not one.moves for one in plan.effective),
        plan.count(Action.DELETE),
        sum(1 for change in plan.changes if change.blocked),
        _count_findings(plan, Level.DANGER),
        _count_findings(plan, Level.CAUTION),
        len(plan.drifted),
    )
    return (
        Cell(one.saved.name, f"plans/{one.saved.id}"),
        Cell(render_moment(plan.created)),
        *(Cell(f"{number:,}", style="number") for number in numbers),
        Cell(plan.approval[:12], style="code"),
    )


def _count_findings(plan: Plan, level: Level) -> int:
    """How many findings of this level the changes that an apply makes have."""
    return sum(finding.level is level for change in plan.effective for finding in change.findings)


def render_saved(sources: Sources, id: str, root: str) -> str | None:
    """The page of a plan for its review."""
    saved = next((one for one in list_saved(sources.folder) if one.id == id), None)
    if saved is None:
        return None
    return render_review(load_plan(sources.folder / saved.name), f"{root}plans")


def render_review(plan: Plan, back: str) -> str:
    """The page of any plan. back: the path of the page that lists it."""
    words, command = read_words(plan), render_apply_command(plan)
    return render_html(plan, words=words, command=command, back=back)
