"""Long work: a step starts it, no run waits for it, and every later run asks how far it is.

Obligations of earlier runs are sorted by the proof that the log has of each. A setting is removed
only if the log shows the step that set it, in a recorded and approved plan. Somebody else may have
written to the log, and a record that merely claims a setting must not remove one that an operator
made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ..audit.index import get_identity
from ..audit.records import Glance, Record, RecordKind, Seen
from ..core.change import Outcome, OutcomeStatus
from ..core.errors import StorageError
from ..core.resource import SETTING, Fault, FaultClass, Pending
from ..plan.codec import read_recorded_plan
from ..plan.model import RULE, Plan, Removal, compute_approval, seal_plan
from ..provider.contract import Session
from .ledger import Ledger
from .report import Result, Work, WorkKey, get_work_key
from .stop import Stop

_TASK_STATUS = {
    OutcomeStatus.APPLIED: "has ended",
    OutcomeStatus.STARTED: "is still running",
    OutcomeStatus.FAILED: "ended before it reached its target",
    OutcomeStatus.UNKNOWN: "could not be checked",
}
_SETTING_STATUS = {
    OutcomeStatus.APPLIED: "was removed",
    OutcomeStatus.STARTED: "stays until the {task} has ended",
    OutcomeStatus.FAILED: "was not removed",
    OutcomeStatus.UNKNOWN: "could not be removed yet",
}
_STILL_SET = "is still set, although its {task} has ended: the next plan lists its removal"

REMOVAL_NOTE = "its {task} has ended: this apply removes it"
LATER_REMOVAL_NOTE = "once its {task} has ended, this apply removes it"
NEVER_SENT_NOTE = "it was never set; the next apply records that"
UNFOUNDED_NOTE = "no approved plan in this log set it, so it is left alone"
_Key = tuple[object, str, str]


def ask_progress(
    obligations: Iterable[Record], sessions: Mapping[str, Session]
) -> tuple[Work, ...]:
    """How far the work of these obligations is, if a session reaches its system. Nothing is
    changed. Raises OtherSystem."""
    reachable = [o for o in obligations if _is_reachable(o, sessions)]
    tasks = _group_tickets(o for o in reachable if o.body["what"] != SETTING)
    settings = _group_tickets(o for o in reachable if o.body["what"] == SETTING)
    # One call for each instance, with all its open tickets: whether a setting is still needed
    # depends on the other tasks.
    answers: dict[WorkKey, Outcome] = {
        (instance, outcome.step): outcome
        for instance in dict.fromkeys((*tasks, *settings))
        for outcome in sessions[instance].progress(
            tasks.get(instance, ()), settings.get(instance, ())
        )
    }
    for instance in dict.fromkeys((*tasks, *settings)):
        sessions[instance].prove()
    return tuple(_make_work(o, answers[get_work_key(o)], sessions) for o in reachable)


def _is_reachable(obligation: Record, sessions: Mapping[str, Session]) -> bool:
    session = sessions.get(obligation.body["instance"])
    return session is not None and session.facts.scope_id == obligation.body["scope_id"]


def _group_tickets(obligations: Iterable[Record]) -> dict[str, list[str]]:
    """Provider instance -> tickets."""
    tickets: dict[str, list[str]] = {}
    for obligation in obligations:
        tickets.setdefault(obligation.body["instance"], []).append(obligation.body["ticket"])
    return tickets


def _make_work(obligation: Record, answer: Outcome, sessions: Mapping[str, Session]) -> Work:
    due = obligation.body["what"] == SETTING and answer.status is OutcomeStatus.APPLIED
    return Work(obligation, answer, due, sessions[obligation.body["instance"]].words)


def follow_up(
    plan: Plan,
    results: dict[str, Result],
    ledger: Ledger,
    sessions: Mapping[str, Session],
    stop: Stop,
) -> tuple[Work, ...]:
    """Ask once, at the end of a run, how far all work is, and remove what this plan can remove.

    A short task has ended by now, others go on alone. The end of a task becomes the result of the
    step that started it, or its progress the note of that result. What became of the work of
    earlier runs is returned.
    """
    works = _undo_due(ask_progress(ledger.obligations, sessions), _find_removable(plan), sessions)
    with stop.delay_second_signal():
        ledger.discharge_ended(works)
    ends, owed_removals = {w.key: w.outcome for w in works}, ledger.owed
    for step_id, result in results.items():
        if result.outcome.ticket is None:
            continue
        end = ends.get(result.work)
        if result.work not in owed_removals:
            results[step_id] = replace(result, outcome=_apply_end(result.outcome, end))
        elif end is not None:
            results[step_id] = replace(result, outcome=replace(result.outcome, note=end.note))
    listed = {(removal.identity.instance, removal.ticket) for removal in plan.removals}
    run = ledger.journal.run
    return tuple(
        work
        for work in works
        if (work.ended or work.due or work.key in listed) and work.obligation.run != run
    )


def _find_removable(plan: Plan) -> set[WorkKey]:
    """What the approved plan lists, and what its own steps owe."""
    listed = {(removal.identity.instance, removal.ticket) for removal in plan.removals}
    steps = (step for change in plan.effective for step in change.steps)
    return listed | {(step.identity.instance, step.owes) for step in steps if step.owes}


def _undo_due(
    works: Sequence[Work], allowed: Collection[WorkKey], sessions: Mapping[str, Session]
) -> tuple[Work, ...]:
    """The work, after the removal of what is due and allowed."""
    settings = [work.obligation for work in works if work.obligation.body["what"] == SETTING]
    going = [work.obligation for work in works if work.due and work.key in allowed]
    staying = _group_tickets(o for o in settings if o not in going)
    ends = {
        (instance, outcome.step): outcome
        for instance, tickets in _group_tickets(going).items()
        for outcome in sessions[instance].undo(tickets, staying.get(instance, ()))
    }
    return tuple(
        replace(work, outcome=ends[work.key], due=False) if work.key in ends else work
        for work in works
    )


def _apply_end(started: Outcome, end: Outcome | None) -> Outcome:
    """The outcome of a started step whose work has ended. end: None if recovery saw the end."""
    if end is None:
        # A step is taken over from a resumed run only if a reading still shows what it made.
        return replace(started, status=OutcomeStatus.APPLIED)
    return replace(started, status=end.status, fault=end.fault)


def describe_work(work: Work) -> str:
    """One sentence for people about the work."""
    body, fault, words = work.obligation.body, work.outcome.fault, work.words
    cause = f": {fault.message} ({fault.code})" if fault else ""
    far = f": {work.outcome.note}" if work.outcome.note else ""
    if body["what"] == SETTING:
        noun, verb, status_texts = f"{words.setting} of its {words.task}", "set", _SETTING_STATUS
    else:
        noun, verb, status_texts = words.task_on_it, "started", _TASK_STATUS
    ending = (_STILL_SET if work.due else status_texts[work.outcome.status]).format(task=words.task)
    return (
        f"{body['address']}: the {noun} that run {work.obligation.run} {verb} {ending}{far}{cause}."
    )


class Owed(Struct, frozen=True):
    """The open obligations of a log."""

    open: tuple[Record, ...] = ()
    """Those that can be acted on."""
    never_sent: tuple[Record, ...] = ()
    """Those without an intent, so that nothing was ever set."""
    unfounded: tuple[Record, ...] = ()
    """Those that no approved step explains."""


class _Grounds(Struct):
    """What the log has of one run."""

    plan: Record | None = None
    """The first record with its plan."""
    approval: Record | None = None
    """The first record of its approval."""
    intents: dict[str, Record] = field(default_factory=dict)
    """Step id -> its last intent."""


def find_owed(records: Iterable[Seen], obligations: Sequence[Record]) -> Owed:
    """Sort the open obligations of a log. records: all of it, or at least the plans, approvals and
    later intents of their runs (`LogIndex.grounds`), trusted, in order."""
    # A task needs no grounds: asking about it sends nothing that changes anything.
    settings = find_settings(obligations)
    if not settings:
        return Owed(tuple(obligations))
    runs = {obligation.run: _Grounds() for obligation in settings}
    for record in records:
        if record.run in runs:
            _collect_grounds(runs[record.run], record)
    never_sent = [o for o in settings if not _find_intents(o, runs[o.run])]
    plans = {run: _read_approved_plan(grounds) for run, grounds in runs.items()}
    unfounded = [
        o for o in settings if o not in never_sent and not _is_founded(o, runs[o.run], plans[o.run])
    ]
    remaining = tuple(o for o in obligations if o not in never_sent and o not in unfounded)
    return Owed(remaining, tuple(never_sent), tuple(unfounded))


def find_settings(obligations: Iterable[Record]) -> tuple[Record, ...]:
    """The obligations to remove a setting."""
    return tuple(o for o in obligations if o.body["what"] == SETTING)


def _collect_grounds(grounds: _Grounds, record: Seen) -> None:
    if record.kind == RecordKind.PLAN and grounds.plan is None:
        grounds.plan = record.read_whole()
    elif record.kind == RecordKind.APPROVAL and grounds.approval is None:
        grounds.approval = record.read_whole()
    elif record.kind == RecordKind.INTENT:
        grounds.intents[record.body["step"]] = record.read_whole()
    if isinstance(record, Glance):
        record.forget()


def _find_intents(obligation: Record, grounds: _Grounds) -> list[Record]:
    """The intents that the obligation can belong to: later ones of its object."""
    identity = get_identity(obligation)
    intents = grounds.intents.values()
    return [i for i in intents if i.seq > obligation.seq and get_identity(i) == identity]


def _read_approved_plan(grounds: _Grounds) -> Plan | None:
    """The plan of a run, if it is the one that was approved."""
    if grounds.plan is None or grounds.approval is None:
        return None
    try:
        plan = read_recorded_plan(grounds.plan.body["plan"], grounds.plan.run)
        named = {grounds.plan.body["approval"], grounds.approval.body["approval"], plan.approval}
        # An approval by older rules cannot be computed again. Its records have to agree at least.
        sound = plan.rule != RULE or compute_approval(plan) == plan.approval
    except StorageError:
        # Somebody else may have written it, and what is not proven is not removed.
        return None
    return plan if sound and len(named) == 1 else None


def _is_founded(obligation: Record, grounds: _Grounds, plan: Plan | None) -> bool:
    """True if a step of the approved plan owes exactly this, and its intent followed."""
    if plan is None or grounds.approval is None or grounds.approval.seq > obligation.seq:
        return False
    body, identity = obligation.body, get_identity(obligation)
    instance = plan.instances.get(identity.instance)
    if instance is None or instance.facts.scope_id != body["scope_id"]:
        return False
    sent = {intent.body["step"] for intent in _find_intents(obligation, grounds)}
    return any(
        step.owes == body["ticket"] and step.identity == identity and step.id in sent
        for change in plan.effective
        for step in change.steps
    )


def end_never_sent(obligations: Iterable[Record]) -> tuple[Work, ...]:
    """The end of obligations whose run died between the obligation and the intent."""
    fault = Fault("NOT_SENT", "the run ended before anything was set", FaultClass.NOT_APPLIED)
    return tuple(
        Work(o, Outcome(o.body["ticket"], OutcomeStatus.FAILED, fault)) for o in obligations
    )


def add_owed_removals(plan: Plan, grounds: Owed, works: Iterable[Work]) -> Plan:
    """The plan with what earlier runs owe: settings whose task has ended, or may end by this plan.

    asked: how far the tasks of the open settings are.
    """
    # A change of the object may end its task, so the approval has to cover its setting, too.
    touched = {change.identity for change in plan.effective}
    notes = {_get_key(o): UNFOUNDED_NOTE for o in grounds.unfounded}
    notes |= {_get_key(o): NEVER_SENT_NOTE for o in grounds.never_sent}
    removals: list[Removal] = []
    for work in works:
        duty, identity = work.obligation, get_identity(work.obligation)
        if not (work.due or identity in touched):
            continue
        notes[_get_key(duty)] = (REMOVAL_NOTE if work.due else LATER_REMOVAL_NOTE).format(
            task=work.words.task
        )
        removals.append(Removal(identity, duty.body["address"], duty.run, duty.body["ticket"]))
    if not notes:
        return plan
    pending = tuple(_add_note(item, notes) for item in plan.pending)
    removals.sort(key=lambda removal: (removal.address, removal.ticket))
    return seal_plan(replace(plan, pending=pending, removals=tuple(removals)))


def drop_removals(plan: Plan) -> Plan:
    """The plan that leaves what earlier runs owe to a later plan."""
    return seal_plan(replace(plan, removals=()))


def _get_key(obligation: Record) -> _Key:
    return get_identity(obligation), obligation.run, obligation.body["ticket"]


def _add_note(item: Pending, notes: dict[_Key, str]) -> Pending:
    note = notes.get((item.identity, item.run, item.step))
    return item if note is None or item.action != SETTING else replace(item, note=note)
