"""The audit log: its verification, its runs, and the records behind one run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from ..audit.event import Glance, Record, RecordKind, summarize_record
from ..audit.segments import ArchivedRecords, read_archived
from ..audit.sink import read_present
from ..core.errors import KafkaformError
from ..core.head import GENESIS, Head
from ..core.resource import Identity
from ..core.text.quantity import render_count
from ..core.value import EMPTY
from ..plan.codec import read_recorded_plan
from ..workflow.stores import Store
from .page import (
    ROWS,
    Cell,
    CellRow,
    WindowPage,
    WindowSection,
    WindowTable,
    link_object,
    make_id,
    make_pager,
    make_table,
    render_moment,
)
from .plans import render_review
from .sources import Query, Sources, read_number

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
    """A log without its archived records, read and verified as by `audit verify`."""

    location: str
    anchor: Head | None
    """The record that the state follows from."""
    head: Head = GENESIS
    """The last sound record."""
    runs: dict[str, RunEntry] = field(default_factory=dict)
    """In the order of their first records."""
    fault: str = ""
    """Why it cannot be trusted after its head."""
    unread: ArchivedRecords = ArchivedRecords()
    """What was not read."""


def make_page(sources: Sources, query: Query) -> WindowPage:
    """Verify the log and list its runs."""
    return show_log(survey_log(sources.open_store()), read_number(query, "first"))


def survey_log(store: Store) -> LogSurvey:
    """Read what is not archived of a log. Raises StorageError if the state cannot be read, not for
    a bad log."""
    state = store.backend.load().state
    survey = LogSurvey(store.sink.location, state.audit_head if state else None)
    try:
        survey.unread = read_archived(store.sink.sealed)
        survey.head = survey.unread.head
        for glance in read_present(store.sink, survey.anchor):
            _survey_record(survey, glance)
    except KafkaformError as error:
        survey.fault = f"{error.message}. {error.advice}"
    return survey


def _survey_record(survey: LogSurvey, glance: Glance) -> None:
    glance.check()
    run = survey.runs.setdefault(glance.run, RunEntry(glance.run))
    run.records += 1
    if glance.kind == RecordKind.RUN_BEGIN:
        record = glance.read_whole()
        run.actor, run.began = record.actor, record.time
        run.command = str(record.body.get("command", ""))
    elif glance.kind == RecordKind.RUN_END:
        record = glance.read_whole()
        run.ended, run.complete = record.time, bool(record.body["complete"])
        run.counts = record.body.get("counts", EMPTY)
    survey.head = Head(glance.seq, glance.hash)


def show_log(survey: LogSurvey, first: int = 0) -> WindowPage:
    """The page of a survey."""
    runs = [_make_run_row(run) for run in reversed(survey.runs.values())]
    columns = ("Run", "Began", "By", "Command", "End", "Steps", "Records")
    table = make_table("Runs, the newest first", columns, runs, first, "log")
    sections = (_show_verification(survey), WindowSection("runs", "Runs", tables=(table,)))
    return WindowPage("log", "Audit log", survey.location, sections)


def _show_verification(survey: LogSurvey) -> WindowSection:
    anchor = "none" if survey.anchor is None else f"record {survey.anchor.seq:,}"
    facts = (
        ("Sound records", Cell(f"{survey.head.seq - survey.unread.head.seq:,}")),
        ("Head", Cell(str(survey.head), style="code")),
        ("Anchor in the state", Cell(anchor)),
    )
    if survey.fault:
        return WindowSection("verification", "Verification", warning=survey.fault, facts=facts)
    sound = "Every record is as it was written, and the log contains the state's anchor."
    if survey.anchor is None:
        sound = "Every record is as it was written. The state has no anchor to compare with."
    lead = tuple(filter(None, (sound, survey.unread.sentence)))
    return WindowSection("verification", "Verification", lead, facts=facts)


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
    row_slice: slice
    records: tuple[Record, ...]
    """Those of `row_slice`, without the values of the plan."""
    total: int
    has_plan: bool
    fault: str
    """Why the log cannot be trusted after its last sound record."""


def make_records_page(sources: Sources, id: str, query: Query) -> WindowPage | None:
    """The records of a run; None if the log has no such run."""
    run_records = read_run(sources.open_store(), id, read_number(query, "first"))
    return None if run_records is None else show_records(run_records, id)


def read_run(store: Store, id: str, first: int = 0) -> RunRecords | None:
    """The run with this id, and its records around number `first`; None if there is none."""
    start = first // ROWS * ROWS
    records: list[Record] = []
    run, actor, fault, has_plan, total = "", "", "", False, 0
    try:
        for glance in _find_records(store, id):
            # Whole records take far more memory than lines, and a run can have a million.
            if not total:
                run, actor = glance.run, glance.read_whole().actor
            if start <= total < start + ROWS:
                records.append(_drop_plan(glance.read_whole()))
            has_plan = has_plan or glance.kind == RecordKind.PLAN
            total += 1
    except KafkaformError as error:
        fault = f"{error.message}. {error.advice}"
    row_slice = slice(start, start + ROWS)
    run_records = RunRecords(run, actor, row_slice, tuple(records), total, has_plan, fault)
    return run_records if total else None


def _find_records(store: Store, id: str) -> Iterator[Glance]:
    matches: dict[str, bool] = {}
    for glance in read_present(store.sink):
        if glance.run not in matches:
            matches[glance.run] = make_id(glance.run) == id
        if matches[glance.run]:
            yield glance


def _drop_plan(record: Record) -> Record:
    # A plan can be as large as the rest of the log.
    return replace(record, body=record.body.without(["plan"]))


def show_records(run_records: RunRecords, id: str) -> WindowPage:
    """The page of the records of a run."""
    rows = tuple(
        (
            Cell(f"{record.seq:,}", style="number"),
            Cell(render_moment(record.time)),
            Cell(record.kind, style="code"),
            _find_object(record),
            Cell(summarize_record(record)),
        )
        for record in run_records.records
    )
    columns = ("Record", "Time", "Kind", "Object", "What it says")
    pager = make_pager(f"records/{id}", run_records.row_slice, run_records.total)
    table = WindowTable("Records in order", columns, rows, run_records.total, pager)
    plan = (Cell("The plan of this run", f"recorded/{id}"),) if run_records.has_plan else ()
    links = (Cell("The summary of this run", f"log/{id}"), *plan, Cell("All runs", "log"))
    summary = f"{render_count(run_records.total, 'record')} by {run_records.actor}"
    section = WindowSection(
        "records", "Records", warning=run_records.fault, tables=(table,), links=links
    )
    return WindowPage("log", f"Records of run {run_records.run}", summary, (section,))


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
