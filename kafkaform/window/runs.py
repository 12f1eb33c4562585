"""The audit log: its verification, its runs, and one run: a summary of what it changed, object by
object, with the records behind it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ..audit.records import Glance, Record, RecordKind, summarize_record
from ..audit.sink import ArchivedRecords, read_archived, read_present
from ..core.change import OutcomeStatus
from ..core.errors import KafkaformError
from ..core.head import GENESIS, Head
from ..core.resource import SETTING, TASK, Identity
from ..core.text import render_count
from ..core.value import EMPTY
from ..plan.codec import read_recorded_plan
from ..workflow.stores import Store
from .page import (
    ROWS,
    Cell,
    CellRow,
    Types,
    WindowPage,
    WindowSection,
    WindowTable,
    cut_rows,
    describe_paths,
    link_object,
    make_id,
    make_link,
    make_pager,
    make_table,
    render_moment,
)
from .plans import render_review
from .related import read_types
from .sources import Query, Sources, read_number

UNKNOWN = OutcomeStatus.UNKNOWN.value
STYLES = {
    OutcomeStatus.APPLIED.value: "good",
    OutcomeStatus.STARTED.value: "note",
    OutcomeStatus.FAILED.value: "bad",
    OutcomeStatus.SKIPPED.value: "warn",
    UNKNOWN: "warn",
}
_LATE = (RecordKind.RECOVER, RecordKind.DISCHARGED)
_STEPS = (RecordKind.INTENT, RecordKind.OUTCOME, *_LATE)
_ENDED = {TASK: "end of earlier work", SETTING: f"removal of a {SETTING}"}
_NAMED = frozenset({"instance", "kind", "key"})


class ObjectEntry(Struct):
    """One object, as far as the run is about it. A run can have a million of them."""

    actions: dict[str, str] = field(default_factory=dict)
    """Step -> its action, in the order of the intents."""
    outcomes: dict[str, str] = field(default_factory=dict)
    """Step -> how its last attempt ended; a step without an outcome is not in it."""
    seqs: list[int] = field(default_factory=list)
    """The numbers of the records about it."""
    first: int = 0
    """The place of the first of them among the records of the run."""

    @property
    def results(self) -> tuple[str, ...]:
        """How its steps ended, each result once."""
        return tuple(dict.fromkeys(self.outcomes.get(step, UNKNOWN) for step in self.actions))


class RunSurvey(Struct):
    """A whole run."""

    run: str = ""
    frame: dict[str, Record] = field(default_factory=dict)
    """Kind -> the first record of a kind that a run has once; of `run_end` the last."""
    objects: dict[Identity, ObjectEntry] = field(default_factory=dict)
    """In the order of their first records."""
    total: int = 0
    """Records of the run."""
    has_plan: bool = False
    tickets: dict[str, str] = field(default_factory=dict)
    """Ticket of long work that it started -> the step."""
    obligations: set[int] = field(default_factory=set)
    """The numbers of the records that say so."""
    late: tuple[str, ...] = ()
    """Later runs that found out what became of a step."""
    fault: str = ""
    """Why the log cannot be trusted after its last sound record."""


def make_run_page(sources: Sources, id: str, query: Query) -> WindowPage | None:
    """The summary of a run; None if the log has no such run."""
    store = sources.open_store()
    survey = survey_run(store, id)
    if survey is None:
        return None
    row_slice = cut_rows(len(survey.objects), read_number(query, "first"))
    page_objects = list(survey.objects.items())[row_slice]
    records = read_steps(store, {seq for _, entry in page_objects for seq in entry.seqs})
    types = read_types(store.backend.load().state)
    return show_run(survey, id, row_slice, records, types)


def survey_run(store: Store, id: str) -> RunSurvey | None:
    """Read the log for the run with this id; None if there is none."""
    survey, late = RunSurvey(), dict[str, None]()
    matches: dict[str, bool] = {}
    try:
        for glance in read_present(store.sink):
            if glance.run not in matches:
                matches[glance.run] = make_id(glance.run) == id
            if matches[glance.run]:
                survey.run = glance.run
                _note_record(survey, glance)
                survey.total += 1
            elif survey.run and _is_late(survey, glance):
                _note_step(survey, glance)
                late[glance.run] = None
            # Almost all of what was parsed is not shown.
            glance.forget()
    except KafkaformError as error:
        survey.fault = f"{error.message}. {error.advice}"
    survey.late = tuple(late)
    return survey if survey.run else None


def _is_late(survey: RunSurvey, glance: Glance) -> bool:
    """True if a later run found out here what became of a step of this one."""
    if glance.kind == RecordKind.RECOVER:
        return glance.body.get("of_run") == survey.run
    return glance.kind == RecordKind.DISCHARGED and glance.body["discharges"] in survey.obligations


def _note_record(survey: RunSurvey, glance: Glance) -> None:
    if glance.kind in _STEPS:
        _note_step(survey, glance)
    elif glance.kind == RecordKind.OBLIGATION:
        survey.obligations.add(glance.seq)
    elif glance.kind == RecordKind.STATE:
        reason = str(glance.body.get("reason", ""))
        for item in glance.body.get("objects", ()):
            # Records of earlier versions do not say what was left.
            result = "removed from the state" if item.get("row", 0) is None else "recorded"
            _note_object(survey, glance, item, reason, reason, result)
    elif glance.kind == RecordKind.PLAN:
        # It can be as large as the rest of the log, and has a page of its entry_records.
        survey.has_plan = True
    elif glance.kind == RecordKind.RUN_END or glance.kind not in survey.frame:
        survey.frame[glance.kind] = glance.read_whole()


def _note_step(survey: RunSurvey, glance: Glance) -> None:
    body = glance.body
    if not body.keys() >= _NAMED:
        return  # a seal of a torn append is about no object
    step, action = str(body.get("step", "")), str(body.get("action", ""))
    if glance.kind == RecordKind.OUTCOME and body.get("ticket"):
        survey.tickets[str(body["ticket"])] = step
    if glance.kind == RecordKind.DISCHARGED:
        ticket = str(body["ticket"])
        step, action = survey.tickets.get(ticket, ticket), _ENDED.get(body["what"], "end of work")
    elif glance.kind == RecordKind.RECOVER and glance.run == survey.run:
        action = f"{action} of run {body['of_run']}"
        step = f"{body['of_run']} {step}"
    _note_object(survey, glance, body, step, action, body.get("outcome"))


def _note_object(
    survey: RunSurvey,
    glance: Glance,
    names: Mapping[str, object],
    step: str,
    action: str,
    outcome: object,
) -> None:
    identity = Identity(str(names["instance"]), str(names["kind"]), str(names["key"]))
    entry = survey.objects.setdefault(identity, ObjectEntry(first=survey.total))
    entry.actions.setdefault(step, action)
    entry.seqs.append(glance.seq)
    if outcome is not None:
        entry.outcomes[step] = str(outcome)


def read_steps(store: Store, seqs: set[int]) -> Mapping[int, Record]:
    """The records with these numbers."""
    records: dict[int, Record] = {}
    try:
        for glance in read_present(store.sink):
            if glance.seq in seqs:
                records[glance.seq] = glance.read_whole()
    except KafkaformError:
        return records  # the survey has said why the log ends here
    return records


# ── the page ────────────────────────────────────────────────────────────────────────────


def show_run(
    survey: RunSurvey, id: str, row_slice: slice, records: Mapping[int, Record], types: Types
) -> WindowPage:
    """The page of a run. row_slice: which of its objects; records: those about them."""
    plan = (Cell("The plan of this run", f"recorded/{id}"),) if survey.has_plan else ()
    number = render_count(survey.total, "record")
    links = (*plan, Cell(f"Its {number} in the log", f"records/{id}"), Cell("All runs", "log"))
    facts = tuple((name, cell) for name, cell in _list_facts(survey) if cell.text)
    tables = (_count_changes(survey),) if survey.objects else ()
    lead = [] if survey.objects else ["It has no record about an object."]
    if skipped := _count_skipped(survey):
        lead.append(f"{render_count(skipped, 'step')} not sent; the plan of this run has them.")
    summary = WindowSection(
        "summary", "Summary", tuple(lead), survey.fault, facts=facts, tables=tables, links=links
    )
    if not survey.objects:
        return WindowPage("log", f"Run {survey.run}", "", (summary,))
    rows = tuple(
        _make_object_row(identity, entry, id, records, types)
        for identity, entry in list(survey.objects.items())[row_slice]
    )
    columns = ("Object", "Kind", "Action", "Result", "Before → after", "Record")
    pager = make_pager(f"log/{id}", row_slice, len(survey.objects))
    table = WindowTable("In order", columns, rows, len(survey.objects), pager)
    changed = WindowSection("objects", "Objects", tables=(table,))
    return WindowPage("log", f"Run {survey.run}", "", (summary, changed))


def _count_skipped(survey: RunSurvey) -> int:
    end = survey.frame.get(RecordKind.RUN_END)
    counts = end.body.get("counts", EMPTY) if end else EMPTY
    return int(counts.get(OutcomeStatus.SKIPPED.value, 0))


def _list_facts(survey: RunSurvey) -> Iterator[tuple[str, Cell]]:
    """Who, what, when, and how it ended."""
    frame = survey.frame
    begin, end = frame.get(RecordKind.RUN_BEGIN), frame.get(RecordKind.RUN_END)
    if begin is not None:
        yield "By", Cell(begin.actor)
        yield "Command", Cell(str(begin.body.get("command", "")), style="code")
        yield "Began", Cell(render_moment(begin.time))
    yield "Ended", Cell(render_moment(end.time) if end else "no end in the log")
    yield "Result", _describe_end(survey)
    if end is not None:
        counts = sorted(end.body.get("counts", EMPTY).items())
        yield "Steps", Cell(", ".join(f"{number:,} {outcome}" for outcome, number in counts))
    if approval := frame.get(RecordKind.APPROVAL):
        yield "Approved by", Cell(str(approval.body.get("how", "")), style="code")
    if verify := frame.get(RecordKind.VERIFY):
        yield "Last look", Cell(_describe_verification(verify))
    if begin is not None:
        yield "Host", Cell(str(begin.body.get("host", "")))
        yield "Commit", Cell(str(begin.body.get("commit") or ""), style="code")
        yield "Pull request", Cell(str(begin.body.get("pull_request") or ""))
        undone = str(begin.body.get("undoes") or "")
        yield "Undoes", Cell(undone, f"log/{make_id(undone)}")
        if survey.objects:
            yield "Undo", Cell(f"kafkaform undo {survey.run}", style="code")
        yield "Version", Cell(str(begin.body.get("kafkaform_version") or ""))
    if survey.late:
        yield "Settled by run", Cell(survey.late[0], f"log/{make_id(survey.late[0])}")


def _describe_end(survey: RunSurvey) -> Cell:
    end = survey.frame.get(RecordKind.RUN_END)
    if end is None:
        has_begin = RecordKind.RUN_BEGIN in survey.frame
        return Cell("it did not end", style="warn") if has_begin else Cell("recorded", style="good")
    if end.body["complete"]:
        return Cell("complete", style="good")
    return Cell("not complete", style="bad")


def _describe_verification(verify: Record) -> str:
    late = len(verify.body["invisible"])
    return f"{render_count(verify.body['checked'], 'object')} checked" + (
        f", {late:,} not visible yet" if late else ", all visible"
    )


def _count_changes(survey: RunSurvey) -> WindowTable:
    """Kind and action -> results."""
    numbers: Counter[tuple[str, str, str]] = Counter()
    for identity, entry in survey.objects.items():
        action = ", ".join(dict.fromkeys(entry.actions.values()))
        for result in entry.results:
            numbers[identity.kind, action, result] += 1
    rows = tuple(
        (
            Cell(kind, style="code"),
            Cell(action),
            Cell(result, style=STYLES.get(result, "")),
            Cell(f"{number:,}", style="number"),
        )
        for (kind, action, result), number in sorted(numbers.items())
    )
    return WindowTable("What changed", ("Kind", "Action", "Result", "Objects"), rows, len(rows))


def _make_object_row(
    identity: Identity,
    entry: ObjectEntry,
    id: str,
    records: Mapping[int, Record],
    types: Types,
) -> CellRow:
    entry_records = [records[seq] for seq in entry.seqs if seq in records]
    results = entry.results
    style = STYLES.get(results[0], "") if len(results) == 1 else "warn"
    first = entry.first // ROWS * ROWS
    return (
        link_object(identity),
        Cell(identity.kind, style="code"),
        Cell(", ".join(dict.fromkeys(entry.actions.values()))),
        Cell(", ".join(results), style=style),
        Cell("; ".join(_describe_records(identity, entry_records, types)), style="code"),
        Cell(f"{entry.seqs[0]:,}", make_link(f"records/{id}", first=first)),
    )


def _describe_records(
    identity: Identity, entry_records: Sequence[Record], types: Types
) -> Iterator[str]:
    """The values, and why what failed did."""
    # The outcome repeats the paths of its intent.
    paths = {
        path["path"]: path for record in entry_records for path in record.body.get("paths", ())
    }
    action = str(entry_records[0].body.get("action", "")) if entry_records else ""
    yield from describe_paths(identity.kind, action, paths.values(), types)
    for record in entry_records:
        if record.body.get("error"):
            yield str(record.body["error"]["message"])


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
