"""`kafkaform audit show|verify|archive|mend|head|export|publish`: read, check, archive, repair and
copy the log."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Annotated

import typer

from .... import workflow
from ....audit.history import RECORDED
from ....audit.records import Record, encode, summarize_record
from ....audit.records import verify_log as verify_chain
from ....audit.sink import ArchivedRecords, find_start
from ....core.change import Action, OutcomeStatus
from ....core.clock import SystemClock
from ....core.diagnostics import suggest
from ....core.errors import UsageError
from ....core.head import Head, parse_head
from ....core.text import Grid, escape_log_commands
from ....provider.registry import Registry
from ....render.history import list_change_rows
from ....render.text import inline, render_count, render_json, render_page
from ....workflow.history import (
    ChangeFilter,
    list_words,
    make_change_document,
    make_period,
    read_newest,
    read_newest_records,
)
from ....workflow.stores import Store, open_store, parse_duration
from ...options.flags import LockTimeout, Since, StateFile, Until, complete_objects, complete_runs
from ...options.provider_commands import Opener, connects, get_terminal_width
from ...terminal.console import Console, outlive_output

app = typer.Typer(help="Read, check, mend and copy the audit log.", no_args_is_help=True)
SHOWN = 50
ACTIONS = tuple(a.value for a in Action if a is not Action.NOOP)
OUTCOMES = (*(status.value for status in OutcomeStatus), RECORDED)


@app.command()
def show(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[ADDRESS|KIND/NAME]",
            autocompletion=complete_objects,
            help="Show only changes of this object or principal.",
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            "--run", metavar="RUN", autocompletion=complete_runs, help="Show only this run."
        ),
    ] = None,
    actor: Annotated[
        str | None, typer.Option("--actor", metavar="NAME", help="Show only what this user did.")
    ] = None,
    action: Annotated[
        str | None,
        typer.Option("--action", metavar="ACTION", help="Show only creates, updates, deletes, …"),
    ] = None,
    outcome: Annotated[
        str | None,
        typer.Option(
            "--outcome", metavar="OUTCOME", help="Show only what ended so: applied, failed, …"
        ),
    ] = None,
    since: Since = None,
    until: Until = None,
    last: Annotated[
        int, typer.Option("--last", metavar="N", min=1, help="Show this many, the newest.")
    ] = SHOWN,
    records: Annotated[
        bool, typer.Option("--records", help="Show whole records, and not only changes.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")] = False,
    state: StateFile = None,
) -> None:
    """Show the newest changes, oldest first."""
    store, console = open_store(state), Console.make_standard()
    selection = ChangeFilter(
        name or "",
        actor or "",
        _check_word(action, "--action", ACTIONS),
        _check_word(outcome, "--outcome", OUTCOMES),
        run or "",
        make_period(since, until, SystemClock().now()),
    )
    if records:
        lines, unread = _list_records(store, selection, last, json=json)
    else:
        lines, unread = _list_changes(store, selection, last, console, json=json)
    if not lines and not json:
        noun = "records" if records else "changes"
        scope = f"of run {inline(run)} " if run else ""
        console.note(f"No {noun} {scope}in {store.sink.location}.")
    console.write_lines(lines)
    if unread.place:
        console.note(inline(unread.sentence))


def _check_word(word: str | None, flag: str, words: Sequence[str]) -> str:
    if word is not None and word not in words:
        raise UsageError(
            f"{flag} {word!r} does not exist",
            suggest(word, words) or f"Use one of {', '.join(words)}.",
        )
    return word or ""


def _list_records(
    store: Store, selection: ChangeFilter, last: int, *, json: bool
) -> tuple[list[str], ArchivedRecords]:
    if selection.needs_changes:
        raise UsageError(
            "--records goes with --run, --since, --until and --last only",
            "Leave out --records, or the other filters.",
        )
    newest, unread = read_newest_records(store, selection, last)
    if json:
        return [escape_log_commands(encode(r).decode("ascii")) for r in newest], unread
    return [_render_record(record) for record in newest], unread


def _list_changes(
    store: Store, selection: ChangeFilter, last: int, console: Console, *, json: bool
) -> tuple[list[str], ArchivedRecords]:
    reading = read_newest(store, selection, last)
    documents = [make_change_document(change, reading.runs) for change in reading.changes]
    if json:
        return [render_json(document) for document in documents], reading.unread
    words = list_words(Registry(), (change.identity for change in reading.changes))
    rows = tuple(tuple(row) for row in list_change_rows(documents, words))
    page = iter((Grid(rows),) if rows else ())
    return list(render_page(page, get_terminal_width(console))), reading.unread


def _render_record(record: Record) -> str:
    text = inline(summarize_record(record))
    return f"{record.seq:>6}  {record.time}  {record.run}  {record.kind:<10}  {text}".rstrip()


@app.command()
def verify(
    anchor: Annotated[
        str | None,
        typer.Option("--anchor", metavar="HEAD", help="A head that `audit head` printed earlier."),
    ] = None,
    archive: Annotated[
        str | None,
        typer.Option("--archive", metavar="URL", help="Also check the records archived there."),
    ] = None,
    state: StateFile = None,
) -> None:
    """Check every record.

    The log must also contain the record that the state is anchored at.
    """
    typed_anchor = _parse_anchor(anchor) if anchor is not None else None
    copy = workflow.sealing.open_archive(archive) if archive is not None else None
    verified = workflow.sealing.verify_store(open_store(state), typed_anchor, copy)
    console = Console.make_standard()
    for stray in verified.strays:
        console.note(
            f"{inline(stray)} is not a part of the audit log, and kafkaform does not read it: a "
            "run that had lost its lock wrote it, or somebody else did. Look at it, then delete it."
        )
    if verified.missing is not None:
        console.note(
            f"{inline(verified.missing)} is missing: plan and apply read the whole log until the "
            "next apply that changes something stores another checkpoint. A copy of a log has none."
        )
    if verified.unread.seq:
        console.note(
            f"Records 1 to {verified.unread.seq:,} are archived in {inline(verified.archive)} and "
            f"were not checked: `kafkaform audit verify --archive {inline(verified.archive)}` "
            "checks them, too."
        )
    sealed = f" ({verified.sealed:,} in {render_count(verified.segments, 'segment')})"
    against = " and the state's anchor" if verified.anchored else ""
    console.write(
        f"The audit log is sound: {render_count(verified.records, 'record')}"
        f"{sealed if verified.segments else ''}{against}, head {verified.head}."
    )


def _parse_anchor(text: str) -> Head:
    try:
        return parse_head(text)
    except ValueError as error:
        raise UsageError(str(error), "Use what `kafkaform audit head` printed.") from None


@app.command("archive")
def archive_(
    before: Annotated[
        str | None,
        typer.Option("--before", metavar="DATE", help="Move segments that are older than this."),
    ] = None,
    to: Annotated[
        str | None, typer.Option("--to", metavar="URL", help="A folder or an address of a store.")
    ] = None,
    restore: Annotated[
        str | None,
        typer.Option("--restore", metavar="URL", help="Bring all segments back from there."),
    ] = None,
    state: StateFile = None,
    lock_timeout: LockTimeout = "0s",
) -> None:
    """Move old parts of the log to another place, or back.

    Plans and applies do not need them. `audit verify --archive URL` checks them there.
    """
    store, clock = open_store(state), SystemClock()
    timeout, console = parse_duration(lock_timeout, "--lock-timeout"), Console.make_standard()
    if restore is not None and before is None and to is None:
        moved = workflow.sealing.restore_log(
            store, workflow.sealing.open_archive(restore), clock, timeout
        )
        console.write(f"Brought back {render_count(moved.segments, 'segment')}.")
        return
    if restore is not None or before is None or to is None:
        raise UsageError(
            "audit archive needs --before and --to, or --restore alone",
            "For example: kafkaform audit archive --before 2026-01-01 --to s3://cold/kafka-prod",
        )
    moved = workflow.sealing.archive_log(
        store, workflow.sealing.open_archive(to), _check_date(before), clock, timeout
    )
    content = f"it has records 1 to {moved.last:,}" if moved.last else "it is empty"
    console.write(f"Moved {render_count(moved.segments, 'segment')} to {inline(to)}: {content}.")
    if not moved.segments and moved.obstacle:
        console.note(inline(moved.obstacle))


def _check_date(text: str) -> str:
    try:
        return date.fromisoformat(text).isoformat()
    except ValueError:
        raise UsageError(
            f"--before {text!r} is not a date", "Write it as YYYY-MM-DD; days are in UTC."
        ) from None


@app.command("mend")
def mend_(state: StateFile = None, lock_timeout: LockTimeout = "0s") -> None:
    """Join what two runs wrote to the log at one time.

    Nothing is lost: a copy of the original log stays beside it, and a later apply recovers both
    runs.
    """
    store, console = open_store(state), Console.make_standard()
    mended = workflow.audit_log.mend_log(
        store, SystemClock(), parse_duration(lock_timeout, "--lock-timeout")
    )
    if mended is None:
        console.write("The audit log is sound: there is nothing to mend.")
        return
    for record in mended.records:
        console.write(_render_record(record))
    console.write(
        f"Joined {render_count(len(mended.records), 'record')} that had the same numbers as "
        f"others, from record {mended.first} on. The original log is kept in "
        f".kafkaform/{mended.copy}."
    )
    console.note("Next: `kafkaform apply` finds out what the runs left open.")


@app.command()
def head(state: StateFile = None) -> None:
    """Print the log's head.

    Keep it elsewhere, such as in a CI log.
    """
    sink = open_store(state).sink
    # If the beginning is archived, the manifest has the head that the other records follow.
    start = find_start(sink.sealed)
    Console.make_standard().write(str(verify_chain(sink.lines(start.seq), start=start).head))


@app.command()
def export(
    csv: Annotated[
        bool, typer.Option("--csv", help="Print CSV. Default: one JSON object per line.")
    ] = False,
    run: Annotated[
        str | None, typer.Option("--run", metavar="RUN", help="Show only this run.")
    ] = None,
    after: Annotated[
        int, typer.Option("--after", metavar="SEQ", min=0, help="Only records after this number.")
    ] = 0,
    state: StateFile = None,
) -> None:
    """Print every record as a row of plain columns.

    Use this for spreadsheets and data frames.
    """
    rows = workflow.audit_log.list_rows(open_store(state), run, after)
    Console.make_standard().write_lines(
        workflow.audit_log.render_csv(rows) if csv else map(render_json, rows)
    )


@app.command()
@connects
def publish(
    opener: Opener,
    to_topic: Annotated[
        str,
        typer.Option("--to-topic", metavar="TOPIC", help="An existing topic; one key per state."),
    ],
    state: StateFile = None,
) -> None:
    """Copy missing records to a Kafka topic, in order.

    The copy is for readers. Recovery and proof still use the original log.
    """
    outlive_output()
    published, cut = workflow.audit_log.publish_log(
        open_store(state), opener.resolve_connection(), to_topic
    )
    new = published.last - published.before
    text = (
        f"Published {render_count(new, 'record')} to {inline(to_topic)}: "
        f"it has 1 to {published.last}."
    )
    if not new:
        text = f"{inline(to_topic)} has all {render_count(published.last, 'record')} already."
    Console.make_standard().write(text)
    if cut:
        opener.console.note(
            f"{render_count(cut, 'record')} too large for a topic: published without the body."
        )
