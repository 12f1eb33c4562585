"""Long work: a step starts it, no run waits for it, and every later run asks how it stands.

A started move is an obligation from the record that opens it to the one that discharges it
(architecture §4.7). Nothing here waits for a move or stops one; a step with another target does.
A throttle is owed from before it is set, and the session that is asked about it removes it once
its move has ended.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ..audit.event import Record
from ..core.change import Outcome, OutcomeStatus
from ..core.dataclass import replace
from ..core.resource import MOVE, THROTTLE
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


def ask(obligations: Iterable[Record], sessions: Mapping[str, Session]) -> tuple[Work, ...]:
    """How the work of these obligations stands, as far as a session reaches its cluster. Raises
    OtherCluster."""
    scopes = {instance: session.facts.scope_id for instance, session in sessions.items()}
    asked = [o for o in obligations if scopes.get(o.body["instance"]) == o.body["scope_id"]]
    tickets: dict[str, list[str]] = {}
    for obligation in asked:
        tickets.setdefault(obligation.body["instance"], []).append(obligation.body["ticket"])
    answers: dict[WorkKey, Outcome] = {
        (instance, outcome.step): outcome
        for instance, mine in tickets.items()
        for outcome in sessions[instance].progress(mine)
    }
    for instance in tickets:
        sessions[instance].prove()
    return tuple(Work(o, answers[work_key(o)]) for o in asked)


def follow_up(
    results: dict[str, Result], ledger: Ledger, sessions: Mapping[str, Session], stop: Stop
) -> tuple[Work, ...]:
    """Ask once, at the end of a run: a short move has ended by now, the others go on alone.

    What ended becomes the result of the step that started it, and how far the others are its
    note; work of earlier runs that ended is returned.
    """
    asked = ask(ledger.obligations, sessions)
    with stop.writing():
        ledger.discharge(asked)
    ends, owed = {work_key(w.obligation): w.outcome for w in asked}, ledger.owed
    for step_id, result in results.items():
        if result.outcome.ticket is None:
            continue
        end = ends.get(result.work)
        if result.work not in owed:
            results[step_id] = replace(result, outcome=_as_ended(result.outcome, end))
        elif end is not None:
            results[step_id] = replace(result, outcome=replace(result.outcome, note=end.note))
    return tuple(w for w in asked if w.ended and w.obligation.run != ledger.journal.run)


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
    return (
        f"{body['address']}: the {_WHAT[body['what']]} that run {work.obligation.run} "
        f"{'set' if throttle else 'started'} {stands}{far}{why}."
    )
