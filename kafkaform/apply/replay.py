"""Replay the log over a state that is older than it: a save failed, or a backup was restored.

Everything that happened since is done again in the order of the log: steps that were applied, and
edits of the state. So an object that somebody had let go does not become ours again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import groupby

from msgspec import Struct
from msgspec.structs import replace

from ..audit.event import Record, RecordKind
from ..audit.index import LogIndex, get_identity, get_run, is_vague
from ..core.change import Change, Outcome, OutcomeStatus, Step
from ..core.errors import StorageError
from ..core.resource import Identity
from ..plan.codec import read_recorded_plan
from ..plan.diff import parse_path
from ..plan.model import Plan
from ..state.codec import DAMAGED_EDIT, decode_row
from ..state.model import Row, State, drop_instance, put_rows, set_scope
from .ledger import lay_results_over, make_bookkeeping_step
from .report import Result

SETTING_AGAIN, REMOVING = "~set", "~remove"
"""Ends of the ids of two requests that repair a step whose removals stayed without effect: one sets
the values as they are, one removes them again. Their step is in the plan without the end."""


class Replayed(Struct, frozen=True):
    """A state that was brought up to date with its log."""

    state: State
    """The state with everything that it lacked, not saved yet."""
    outcomes: int = 0
    """How many outcomes it lacked."""
    edits: int = 0
    """How many edits it lacked."""
    released: tuple[Identity, ...] = ()
    """Objects that a vague edit may have let go, so that they are not managed any more."""


def replay_log(index: LogIndex, state: State) -> Replayed:
    """The state with all that the log has after its anchor. Raises StorageError if the log lacks
    the plan of a run, or if a row in it is damaged."""
    plans: dict[str, Plan] = {}
    released: list[Identity] = []
    counts = {True: 0, False: 0}
    for (is_edit, run), group in groupby(index.unsaved, _get_group_key):
        records = tuple(group)
        counts[is_edit] += len(records)
        if not is_edit:
            plan = plans.setdefault(run, read_plan(run, index))
            state = lay_results_over(state, plan, _read_results(plan, records))
            continue
        for record in records:
            rows = read_rows(record)
            if is_vague(record):
                released += [i for i, row in rows.items() if row is None and i in state.objects]
            gone = [identity for identity, row in rows.items() if row is None]
            state = put_rows(state, (row for row in rows.values() if row is not None), gone)
            if record.body.get("instance"):
                state = drop_instance(state, record.body["instance"])
            for instance, scope in (record.body.get("scopes") or {}).items():
                state = set_scope(state, instance, scope)
    return Replayed(state, counts[False], counts[True], tuple(released))


def read_plan(run: str, index: LogIndex) -> Plan:
    """The recorded plan of a run. Raises StorageError if the log lacks it."""
    data = index.runs[run].plan if run in index.runs else None
    if data is None:
        raise StorageError(
            f"the audit log has an open intent of run {run}, but not its plan",
            "Run `kafkaform audit verify` to find out whether records are missing. Nothing was "
            "sent.",
        )
    return read_recorded_plan(data, run)


def read_outcome(record: Record) -> Outcome:
    """The outcome in a record, without its fault."""
    body = record.body
    status = OutcomeStatus(body["outcome"])
    return Outcome(body["step"], status, ticket=body["ticket"], incarnation=body["incarnation"])


def index_steps(plan: Plan) -> dict[str, tuple[Change, Step]]:
    """Step id -> the change and the step, bookkeeping steps included."""
    return {
        step.id: (change, step)
        for change in plan.effective
        for step in change.steps or (make_bookkeeping_step(change),)
    }


def find_step(steps: Mapping[str, tuple[Change, Step]], record: Record) -> tuple[Change, Step]:
    """The step of an intent or outcome. steps: those of its run's plan. Raises StorageError if the
    plan has no such step, or the step belongs to another object."""
    step_id: str = record.body["step"]
    planned = steps.get(step_id) or steps.get(cut_repair(step_id))
    if planned is None or planned[1].identity != get_identity(record):
        raise StorageError(
            f"record {record.seq} of the audit log ({record.kind}) names step "
            f"{record.body['step']} of {get_identity(record)}, which the plan of run "
            f"{get_run(record)} does not have",
            "Plan and record do not belong together: one of them was edited. Restore the log and "
            "its state from the same backup. Nothing was sent.",
        )
    change, step = planned
    if step.id == step_id:
        return planned
    # Such a request wrote a part of what its step wrote.
    paths = tuple(path for text in record.body["paths"] if (path := parse_path(text["path"])))
    step = replace(step, id=step_id, paths=tuple(path for path in paths if path in step.paths))
    return replace(change, steps=(step,)), step


def cut_repair(step_id: str) -> str:
    """The id of the step that a repair belongs to; any other id stays as it is."""
    return step_id.removesuffix(SETTING_AGAIN).removesuffix(REMOVING)


def _get_group_key(record: Record) -> tuple[bool, str]:
    return record.kind == RecordKind.STATE, get_run(record)


def _read_results(plan: Plan, records: Iterable[Record]) -> list[tuple[Result, Record]]:
    pairs = index_steps(plan)
    return [(Result(*find_step(pairs, r), read_outcome(r), r.body["attempt"]), r) for r in records]


def read_rows(record: Record) -> Mapping[Identity, Row | None]:
    """The row that an edit left for each object that it touched, None if it has none any more.
    Raises StorageError."""
    # An edit of an earlier version does not say what it left. Then all are taken to be let go: an
    # object that is not managed any more is deleted by nobody.
    rows = {}
    for item in record.body.get("objects", ()):
        identity = Identity(item["instance"], item["kind"], item["key"])
        data = item.get("row")
        source = f"record {record.seq} of the audit log"
        row = None if data is None else decode_row(data, source)
        if row is not None and row.identity != identity:
            raise StorageError(
                f"{source}: the row of {identity} is one of {row.identity}", DAMAGED_EDIT
            )
        rows[identity] = row
    return rows
