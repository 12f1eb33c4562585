"""Saved plans of the folder: a listing, each plan as its page for a review, and the drift that the
newest plan found. No system is asked, so drift is as old as that plan."""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from ..audit.records import Glance, RecordKind
from ..audit.sink import read_present
from ..core.change import Action
from ..core.errors import KafkaformError
from ..core.finding import Level
from ..core.resource import Identity
from ..core.text import render_count
from ..plan.codec import read_recorded_plan
from ..plan.model import Plan
from ..render.change_lines import render_brief
from ..render.review.html_page import render_html
from ..workflow.plan_documents import load_plan, read_words
from ..workflow.planning import render_apply_command
from ..workflow.stores import Store
from .page import (
    Cell,
    CellRow,
    WindowPage,
    WindowSection,
    link_object,
    make_id,
    make_table,
    render_moment,
)
from .sources import Query, Sources, read_number

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
    return show_plans([_read_plan(sources.folder, saved) for saved in list_saved(sources.folder)])


def list_saved(folder: Path) -> Sequence[SavedPlan]:
    """The files directly in the folder that begin like saved plans, the newest first."""
    plans = sorted(_find_saved(folder), key=lambda plan: (-plan.changed, plan.name))
    return plans[:MOST]


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
            status = entry.stat(follow_symlinks=False)
            if status.st_size <= LARGEST and _begins_like_plan(entry.path):
                yield SavedPlan(entry.name, status.st_size, status.st_mtime)
        except OSError:
            # The file was removed since the folder was listed, or belongs to another user.
            continue


def _begins_like_plan(path: str) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
        return regular and os.read(descriptor, len(_BEGINNING)) == _BEGINNING
    finally:
        os.close(descriptor)


def _read_plan(folder: Path, saved: SavedPlan) -> ReadPlan:
    try:
        return ReadPlan(saved, load_plan(folder / saved.name))
    except KafkaformError as error:
        return ReadPlan(saved, None, error.message)


def show_plans(plans: Sequence[ReadPlan]) -> WindowPage:
    """The listing."""
    if not plans:
        lead = ("There is no saved plan in this folder. kafkaform plan --out FILE saves one.",)
        return WindowPage("plans", "Plans", "", (WindowSection("saved", "Saved plans", lead),))
    columns = (
        *("File", "Made", "Create", "Change", "Destroy", "Blocked", "Dangers", "Cautions"),
        *("Drift", "Approval"),
    )
    table = make_table("Files, the newest first", columns, [_make_row(plan) for plan in plans])
    bad = [plan for plan in plans if plan.plan is None]
    warning = f"{bad[0].fault}." if bad else ""
    section = WindowSection("saved", "Saved plans", warning=warning, tables=(table,))
    return WindowPage("plans", "Plans", "Saved with kafkaform plan --out FILE.", (section,))


def _make_row(file: ReadPlan) -> CellRow:
    plan = file.plan
    if plan is None:
        return (Cell(file.saved.name), Cell("cannot be used", style="bad"), *[Cell("")] * 8)
    numbers = (
        plan.count(Action.CREATE),
        sum(file.action is Action.UPDATE and not file.moves for file in plan.effective),
        plan.count(Action.DELETE),
        sum(1 for change in plan.changes if change.blocked),
        count_objects(plan, Level.DANGER),
        count_objects(plan, Level.CAUTION),
        len(plan.drifted),
    )
    return (
        Cell(file.saved.name, f"plans/{file.saved.id}"),
        Cell(render_moment(plan.created)),
        *(Cell(f"{number:,}", style="number") for number in numbers),
        Cell(plan.approval[:12], style="code"),
    )


def count_objects(plan: Plan, level: Level) -> int:
    """How many objects have findings of this level, of those that an apply of the plan concerns."""
    return sum(
        any(finding.level is level for finding in change.findings)
        for change in plan.changes
        # As in the list of dangers of the plan: what is left out of an apply endangers nothing.
        if change.block is None or change.block.stops
    )


def render_saved(sources: Sources, id: str, root: str) -> str | None:
    """The page of a plan for its review."""
    saved = next((plan for plan in list_saved(sources.folder) if plan.id == id), None)
    if saved is None:
        return None
    return render_review(load_plan(sources.folder / saved.name), f"{root}plans")


def render_review(plan: Plan, back: str) -> str:
    """The page of any plan. back: the path of the page that lists it."""
    words, command = read_words(plan), render_apply_command(plan)
    return render_html(plan, words=words, command=command, back=back)


NONE = (
    "No plan was saved in this folder, and none is in the audit log. kafkaform plan --out FILE "
    "looks for drift.",
)


class FoundPlan(Struct, frozen=True):
    """A plan and where it is."""

    plan: Plan
    title: str
    link: str


class NewestPlan(Struct, frozen=True):
    """What the page shows."""

    plan: FoundPlan | None
    faults: tuple[str, ...]
    """Why other plans could not be read."""


def make_drift_page(sources: Sources, query: Query) -> WindowPage:
    """Find the newest plan and show its drift."""
    state = sources.open_store().backend.load().state
    recorded = state.objects.keys() if state else ()
    return show_drift(find_newest(sources), recorded, read_number(query, "first"))


def find_newest(sources: Sources) -> NewestPlan:
    """The newest of the saved plans and of those in the log."""
    plans: list[FoundPlan] = []
    faults: list[str] = []
    for saved in list_saved(sources.folder):
        try:
            plan = load_plan(sources.folder / saved.name)
            plans.append(FoundPlan(plan, f"the saved plan {saved.name}", f"plans/{saved.id}"))
        except KafkaformError as error:
            faults.append(error.message)
    try:
        plans += _find_recorded(sources.open_store())
    except KafkaformError as error:
        faults.append(error.message)
    newest = max(plans, key=lambda candidate: candidate.plan.created, default=None)
    return NewestPlan(newest, tuple(faults))


def _find_recorded(store: Store) -> Iterator[FoundPlan]:
    """The last plan in the log."""
    last: Glance | None = None
    for glance in read_present(store.sink):
        if glance.kind == RecordKind.PLAN:
            last = glance
    if last is not None:
        plan = read_recorded_plan(last.read_whole().body["plan"], last.run)
        yield FoundPlan(plan, f"the plan of run {last.run}", f"recorded/{make_id(last.run)}")


def show_drift(newest: NewestPlan, recorded: Collection[Identity], first: int = 0) -> WindowPage:
    """The page of the newest plan. recorded: the objects that the state has, which have pages."""
    warning = ""
    if newest.faults:
        warning = f"{render_count(len(newest.faults), 'plan')} cannot be used: {newest.faults[0]}."
    if newest.plan is None:
        section = WindowSection("drift", "Drift", NONE, warning)
        return WindowPage("drift", "Drift", "", (section,))
    plan, title = newest.plan.plan, newest.plan.title
    drifted = plan.drifted
    moment = render_moment(plan.created) or "an unknown time"
    lead = [f"As {title} found it at {moment}. Later changes are not known here."]
    chosen = (*plan.options.target, *plan.options.exclude)
    if chosen:
        lead.append(f"That plan looked at a part of the objects only: {' '.join(chosen)}.")
    if not drifted:
        lead.append("Nothing that it looked at had been changed outside kafkaform.")
    rows: list[CellRow] = [
        (
            link_object(change.identity, recorded),
            Cell(change.address, style="code"),
            Cell(change.identity.kind, style="code"),
            Cell(change.identity.instance),
            Cell(", ".join(map(render_brief, change.drift)), style="code"),
            Cell(change.last_set),
        )
        for change in drifted
    ]
    columns = ("Object", "Address", "Kind", "Provider", "Recorded → live", "Last set")
    tables = (make_table("Changed outside kafkaform", columns, rows, first, "drift"),)
    links = (Cell("The whole plan", newest.plan.link),)
    section = WindowSection(
        "drift", "Drift", tuple(lead), warning, tables=tables if rows else (), links=links
    )
    return WindowPage("drift", "Drift", "Changed by others since it was recorded.", (section,))
