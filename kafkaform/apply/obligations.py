"""Long work: a step starts it, no run waits for it, and every later run asks how it stands.

A started move is an obligation from the record that opens it to the one that discharges it
(architecture §4.7). Nothing here waits for a move or stops one; a step with another target does.
A throttle is owed from before it is set. It is removed once its move has ended, by a run whose
approved plan says so, and only if the log shows the approved step that set it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from msgspec.structs import replace

from ..audit.event import Record
from ..core.change import Outcome, OutcomeStatus
from ..core.resource import MOVE, THROTTLE
from ..plan.model import Plan
from ..provider.contract import Session
from .ledger import Ledger
from .report import Result, Work, WorkKey, work_key
from .stop import Stop

_WHAT = {MOVE: "move of its replicas", THROTTLE: "throttle of its move"}
_STANDS = {
    OutcomeStatus.APPLIED: "has ended",
    OutcomeStatus.STARTED: "still runs",
    OutcomeStatus.FAILED: "ended short of its target",
    OutcomeStatus.UNKNOWN: "could not be asked about",
}
_THROTTLE_STANDS = {
    OutcomeStatus.APPLIED: "is removed",
    OutcomeStatus.STARTED: "stays until the move has ended",
    OutcomeStatus.FAILED: "was not removed",
    OutcomeStatus.UNKNOWN: "could not be removed yet",
}
_DUE = "is still set, and its move has ended: a plan lists its removal"


def ask(obligations: Iterable[Record], sessions: Mapping[str, Session]) -> tuple[Work, ...]:
    """How the work of these obligations stands, as far as a session reaches its cluster. Changes
    nothing. Raises OtherCluster."""
    asked = [o for o in obligations if _reaches(o, sessions)]
    moves = _tickets(o for o in asked if o.body["what"] != THROTTLE)
    throttles = _tickets(o for o in asked if o.body["what"] == THROTTLE)
    answers: dict[WorkKey, Outcome] = {
        (instance, outcome.step): outcome
        for instance in dict.fromkeys((*moves, *throttles))
        for outcome in sessions[instance].progress(
            moves.get(instance, ()), throttles.get(instance, ())
        )
    }
    for instance in dict.fromkeys((*moves, *throttles)):
        sessions[instance].prove()
    return tuple(_work(o, answers[work_key(o)]) for o in asked)


def _reaches(obligation: Record, sessions: Mapping[str, Session]) -> bool:
    session = sessions.get(obligation.body["instance"])
    return session is not None and session.facts.scope_id == obligation.body["scope_id"]


def _tickets(obligations: Iterable[Record]) -> dict[str, list[str]]:
    """Provider instance -> tickets."""
    tickets: dict[str, list[str]] = {}
    for obligation in obligations:
        tickets.setdefault(obligation.body["instance"], []).append(obligation.body["ticket"])
    return tickets


def _work(obligation: Record, answer: Outcome) -> Work:
    due = obligation.body["what"] == THROTTLE and answer.status is OutcomeStatus.APPLIED
    return Work(obligation, answer, due)


def follow_up(
    plan: Plan,
    results: dict[str, Result],
    ledger: Ledger,
    sessions: Mapping[str, Session],
    stop: Stop,
) -> tuple[Work, ...]:
    """Ask once, at the end of a run: a short move has ended by now, the others go on alone. Then
    remove what this plan may remove.

    What ended becomes the result of the step that started it, and how far the others are its
    note; what became of work of earlier runs is returned.
    """
    asked = _undone(ask(ledger.obligations, sessions), _removable(plan), sessions)
    with stop.writing():
        ledger.discharge(asked)
    ends, owed = {w.key: w.outcome for w in asked}, ledger.owed
    for step_id, result in results.items():
        if result.outcome.ticket is None:
            continue
        end = ends.get(result.work)
        if result.work not in owed:
            results[step_id] = replace(result, outcome=_as_ended(result.outcome, end))
        elif end is not None:
            results[step_id] = replace(result, outcome=replace(result.outcome, note=end.note))
    listed = {(one.identity.instance, one.ticket) for one in plan.removals}
    run = ledger.journal.run
    return tuple(w for w in asked if (w.ended or w.key in listed) and w.obligation.run != run)


def _removable(plan: Plan) -> set[WorkKey]:
    """What this approved plan lists, and what its own steps owe."""
    listed = {(one.identity.instance, one.ticket) for one in plan.removals}
    steps = (step for change in plan.effective for step in change.steps)
    return listed | {(step.identity.instance, step.owes) for step in steps if step.owes}


def _undone(
    asked: Sequence[Work], allowed: Collection[WorkKey], sessions: Mapping[str, Session]
) -> tuple[Work, ...]:
    """The work, after what is due and allowed was removed."""
    throttles = [work.obligation for work in asked if work.obligation.body["what"] == THROTTLE]
    going = [work.obligation for work in asked if work.due and work.key in allowed]
    staying = _tickets(o for o in throttles if o not in going)
    ends = {
        (instance, outcome.step): outcome
        for instance, mine in _tickets(going).items()
        for outcome in sessions[instance].undo(mine, staying.get(instance, ()))
    }
    return tuple(
        Work(work.obligation, ends[work.key]) if work.key in ends else work for work in asked
    )


def _as_ended(started: Outcome, end: Outcome | None) -> Outcome:
    """end: None if recovery saw the end; a step is taken from a resumed run only if it holds."""
    if end is None:
        return replace(started, status=OutcomeStatus.APPLIED)
    return replace(started, status=end.status, fault=end.fault)


def told(work: Work) -> str:
    """One sentence for people."""
    body, fault = work.obligation.body, work.outcome.fault
    why = f": {fault.message} ({fault.code})" if fault else ""
    far = f": {work.outcome.note}" if work.outcome.note else ""
    throttle = body["what"] == THROTTLE
    stands = (_THROTTLE_STANDS if throttle else _STANDS)[work.outcome.status]
    if work.due:
        stands = _DUE
    return (
        f"{body['address']}: the {_WHAT[body['what']]} that run {work.obligation.run} "
        f"{'set' if throttle else 'started'} {stands}{far}{why}."
    )
