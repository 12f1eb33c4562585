"""Drift, as the newest plan found it: what was changed outside kafkaform. Nothing is asked of a
system, so it is as old as that plan."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from msgspec import Struct

from ..audit.chain import read_glances
from ..audit.event import Glance, RecordKind
from ..core.errors import KafkaformError
from ..core.resource import Identity
from ..core.text.quantity import render_count
from ..plan.codec import read_recorded_plan
from ..plan.model import Plan
from ..render.change_lines import render_brief
from ..workflow.plan_files import load_plan
from ..workflow.stores import Store
from .names import link_object
from .page import Cell, CellRow, WindowPage, WindowSection, make_id, make_table
from .plans import list_saved
from .sources import Query, Sources, read_number
from .times import render_moment

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

    found: FoundPlan | None
    faults: tuple[str, ...]
    """Why other plans could not be read."""


def make_page(sources: Sources, query: Query) -> WindowPage:
    """Find the newest plan and show its drift."""
    state = sources.open_store().backend.load().state
    recorded = state.objects.keys() if state else ()
    return show_drift(find_newest(sources), recorded, read_number(query, "first"))


def find_newest(sources: Sources) -> NewestPlan:
    """The newest of the saved plans and of those in the log."""
    found: list[FoundPlan] = []
    faults: list[str] = []
    for saved in list_saved(sources.folder):
        try:
            plan = load_plan(sources.folder / saved.name)
            found.append(FoundPlan(plan, f"the saved plan {saved.name}", f"plans/{saved.id}"))
        except KafkaformError as error:
            faults.append(error.message)
    try:
        found += _find_recorded(sources.open_store())
    except KafkaformError as error:
        faults.append(error.message)
    newest = max(found, key=lambda one: one.plan.created, default=None)
    return NewestPlan(newest, tuple(faults))


def _find_recorded(store: Store) -> Iterator[FoundPlan]:
    """The last plan in the log."""
    last: Glance | None = None
    for glance in read_glances(store.sink.lines(), store.sink.location):
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
    if newest.found is None:
        section = WindowSection("drift", "Drift", NONE, warning)
        return WindowPage("drift", "Drift", "", (section,))
    plan, title = newest.found.plan, newest.found.title
    drifted = plan.drifted
    seen = render_moment(plan.created) or "an unknown time"
    lead = [f"As {title} found it at {seen}. Later changes are not known here."]
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
    links = (Cell("The whole plan", newest.found.link),)
    section = WindowSection(
        "drift", "Drift", tuple(lead), warning, tables=tables if rows else (), links=links
    )
    return WindowPage("drift", "Drift", "Changed by others since it was recorded.", (section,))
