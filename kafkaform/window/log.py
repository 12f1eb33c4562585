"""The audit log: its verification, its runs, and the records behind one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from ..audit.chain import read_glances
from ..audit.event import Glance, Record, RecordKind
from ..audit.summary import summarize_record
from ..core.errors import KafkaformError
from ..core.head import GENESIS, Head
from ..core.resource import Identity
from ..core.text.quantity import render_count
from ..core.value import EMPTY
from ..plan.codec import read_recorded_plan
from ..workflow.stores import Store
from .names import link_object
from .page import (
    ROWS,
    Cell,
    CellRow,
    WindowPage,
    WindowSection,
    WindowTable,
    make_id,
    make_pager,
    make_table,
)
from .plans import render_review
from .sources import Query, Sources, read_number
from .times import render_moment

UNUSUAL = ("failed", "unknown", "skipped")
"""Outcomes that the listing of runs shows in colour."""


class RunEntry(Struct):
    """One run, as far as the log tells."""

    run: str
    actor: str = ""
    command: str = ""
    began: str = ""
    ended: str = ""
    complete: bool | None = None
    """None without an end."""
    counts: Mapping[str, object] = EMPTY
    """Outcome -> steps."""
    records: int = 0


class LogSurvey(Struct):
    """A whole log, read and verified as by `audit verify`."""

    place: str
    anchor: Head | None
    """The record that the state follows from."""
    head: Head = GENESIS
    """The last sound record."""
    runs: dict[str, RunEntry] = field(default_factory=dict)
    """In the order of their first records."""
    fault: str = ""
    """Why it cannot be trusted after its head."""


def make_page(sources: Sources, query: Query) -> WindowPage:
    """Verify the log and list its runs."""
    return show_log(survey_log(sources.open_store()), read_number(query, "first"))


def survey_log(store: Store) -> LogSurvey:
    """Read a whole log. Raises StorageError if the state cannot be read, not for a bad log."""
    state = store.backend.load().state
    found = LogSurvey(store.sink.location, state.audit_head if state else None)
    try:
        for glance in read_glances(store.sink.lines(), found.place, found.anchor):
            _survey_record(found, glance)
    except KafkaformError as error:
        found.fault = f"{error.message}. {error.advice}"
    return found


def _survey_record(found: LogSurvey, glance: Glance) -> None:
    glance.check()
    run = found.runs.setdefault(glance.run, RunEntry(glance.run))
    run.records += 1
    if glance.kind == RecordKind.RUN_BEGIN:
        record = glance.read_whole()
        run.actor, run.began = record.actor, record.time
        run.command = str(record.body.get("command", ""))
    elif glance.kind == RecordKind.RUN_END:
        record = glance.read_whole()
        run.ended, run.complete = record.time, bool(record.body["complete"])
        run.counts = record.body.get("counts", EMPTY)
    found.head = Head(glance.seq, glance.hash)


def show_log(found: LogSurvey, first: int = 0) -> WindowPage:
    """The page of a survey."""
    runs = [_make_run_row(run) for run in reversed(found.runs.values())]
    columns = ("Run", "Began", "By", "Command", "End", "Steps", "Records")
    table = make_table("Runs, the newest first", columns, runs, first, "log")
    sections = (_show_verification(found), WindowSection("runs", "Runs", tables=(table,)))
    return WindowPage("log", "Audit log", found.place, sections)


def _show_verification(found: LogSurvey) -> WindowSection:
    anchor = "none" if found.anchor is None else f"record {found.anchor.seq:,}"
    facts = (
        ("Sound records", Cell(f"{found.head.seq:,}")),
        ("Head", Cell(str(found.head), style="code")),
        ("Anchor in the state", Cell(anchor)),
    )
    if found.fault:
        return WindowSection("verification", "Verification", warning=found.fault, facts=facts)
    sound = "Every record is as it was written, and the log contains the state's anchor."
    if found.anchor is None:
        sound = "Every record is as it was written. The state has no anchor to compare with."
    return WindowSection("verification", "Verification", (sound,), facts=facts)


def _make_run_row(run: RunEntry) -> CellRow:
    ends = {
        True: Cell("complete", style="good"),
        False: Cell("not complete", style="warn"),
        None: Cell("no end" if run.began else "", style="warn" if run.began else ""),
    }
    counts = ", ".join(f"{number} {outcome}" for outcome, number in sorted(run.counts.items()))
    unusual = any(run.counts.get(outcome) for outcome in UNUSUAL)
    return (
        Cell(run.run, f"log/{make_id(run.run)}"),
        Cell(render_moment(run.began)),
        Cell(run.actor),
        Cell(run.command),
        ends[run.complete],
        Cell(counts, style="warn" if unusual else ""),
        Cell(f"{run.records:,}", style="number"),
    )


# ── one run ─────────────────────────────────────────────────────────────────────────────


class RunRecords(Struct, frozen=True):
    """One run, with the records that a page shows."""

    run: str
    actor: str
    shown: slice
    records: tuple[Record, ...]
    """Those of `shown`, without the values of the plan."""
    total: int
    has_plan: bool
    fault: str
    """Why the log cannot be trusted after its last sound record."""


def make_records_page(sources: Sources, id: str, query: Query) -> WindowPage | None:
    """The records of a run; None if the log has no such run."""
    found = read_run(sources.open_store(), id, read_number(query, "first"))
    return None if found is None else show_records(found, id)


def read_run(store: Store, id: str, first: int = 0) -> RunRecords | None:
    """The run with this id, and its records around number `first`; None if there is none."""
    start = first // ROWS * ROWS
    kept: list[Record] = []
    run, actor, fault, has_plan, total = "", "", "", False, 0
    try:
        for glance in _find_records(store, id):
            # Whole records take far more memory than lines, and a run can have a million.
            if not total:
                run, actor = glance.run, glance.read_whole().actor
            if start <= total < start + ROWS:
                kept.append(_drop_plan(glance.read_whole()))
            has_plan = has_plan or glance.kind == RecordKind.PLAN
            total += 1
    except KafkaformError as error:
        fault = f"{error.message}. {error.advice}"
    shown = slice(start, start + ROWS)
    found = RunRecords(run, actor, shown, tuple(kept), total, has_plan, fault)
    return found if total else None


def _find_records(store: Store, id: str) -> Iterator[Glance]:
    known: dict[str, bool] = {}
    for glance in read_glances(store.sink.lines(), store.sink.location):
        if glance.run not in known:
            known[glance.run] = make_id(glance.run) == id
        if known[glance.run]:
            yield glance


def _drop_plan(record: Record) -> Record:
    # A plan can be as large as the rest of the log.
    return replace(record, body=record.body.without(["plan"]))


def show_records(found: RunRecords, id: str) -> WindowPage:
    """The page of the records of a run."""
    rows = tuple(
        (
            Cell(f"{record.seq:,}", style="number"),
            Cell(render_moment(record.time)),
            Cell(record.kind, style="code"),
            _find_object(record),
            Cell(summarize_record(record)),
        )
        for record in found.records
    )
    columns = ("Record", "Time", "Kind", "Object", "What it says")
    pager = make_pager(f"records/{id}", found.shown, found.total)
    table = WindowTable("Records in order", columns, rows, found.total, pager)
    plan = (Cell("The plan of this run", f"recorded/{id}"),) if found.has_plan else ()
    links = (Cell("The summary of this run", f"log/{id}"), *plan, Cell("All runs", "log"))
    about = f"{render_count(found.total, 'record')} by {found.actor}"
    section = WindowSection("records", "Records", warning=found.fault, tables=(table,), links=links)
    return WindowPage("log", f"Records of run {found.run}", about, (section,))


def _find_object(record: Record) -> Cell:
    body = record.body
    if not {"instance", "kind", "key"} <= body.keys():
        return Cell("")
    identity = Identity(body["instance"], body["kind"], body["key"])
    return link_object(identity)


def render_recorded(sources: Sources, id: str, root: str) -> str | None:
    """The page of the plan that a run recorded; None if there is none."""
    plan = None
    for glance in _find_records(sources.open_store(), id):
        if glance.kind == RecordKind.PLAN:
            plan = read_recorded_plan(glance.read_whole().body["plan"], glance.run)
    return None if plan is None else render_review(plan, f"{root}log/{id}")
