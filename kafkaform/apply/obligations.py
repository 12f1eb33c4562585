"""Long work: a step starts it, no run waits for it, and every later run asks how far it is.

A started task is an obligation from the record that opens it to the one that discharges it
(architecture §4.7). Nothing here waits for a task or stops one; a step with another target does. A
setting for the time of a task is owed before it is set. It is removed once its task has ended, by a
run whose approved plan says so, and only if the log shows the step that set it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from ..audit.event import Record
from ..core.change import Outcome, OutcomeStatus
from ..core.resource import SETTING
from ..plan.model import Plan
from ..provider.contract import Session
from .ledger import Ledger
from .report import Result, Work, WorkKey, get_work_key
from .stop import Stop

_STANDS = {
    OutcomeStatus.APPLIED: "has ended",
    OutcomeStatus.STARTED: "is still running",
    OutcomeStatus.FAILED: "ended before it reached its target",
    OutcomeStatus.UNKNOWN: "could not be checked",
}
_SETTING_STANDS = {
    OutcomeStatus.APPLIED: "was removed",
    OutcomeStatus.STARTED: "stays until the {task} has ended",
    OutcomeStatus.FAILED: "was not removed",
    OutcomeStatus.UNKNOWN: "could not be removed yet",
}
_DUE = "is still set, although its {task} has ended: the next plan lists its removal"


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
        noun, verb, stands = f"{words.setting} of its {words.task}", "set", _SETTING_STANDS
    else:
        noun, verb, stands = words.task_on_it, "started", _STANDS
    ending = (_DUE if work.due else stands[work.outcome.status]).format(task=words.task)
    return (
        f"{body['address']}: the {noun} that run {work.obligation.run} {verb} {ending}{far}{cause}."
    )
