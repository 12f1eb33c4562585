"""Ambiguous results are read again, never blindly repeated.

A lost answer leaves three possibilities: it happened, it will happen, it never will. Until the
operation timeout (plus a margin for clocks) has passed since the intent, only the target seen
is an answer; after it the pre-image is one too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..core.change import Action, Outcome, OutcomeStatus
from ..core.clock import Clock
from ..core.resource import Facts, Fault, FaultClass, Identity, Observed, Reading
from ..provider.contract import ResourceType, Session
from .judge import Judgement, judge
from .report import Result

MARGIN_SECONDS = 5.0
POLL_SECONDS = 0.25


def patience(facts: Facts) -> float:
    """Seconds after an intent from when on its pre-image proves that it did not happen."""
    return float(facts.values.get("operation_timeout", 30)) + MARGIN_SECONDS


def settle(
    results: Sequence[Result],
    session: Session,
    types: Mapping[str, ResourceType],
    deadline: float,
    clock: Clock,
) -> tuple[Result, ...]:
    """The results with their true outcomes, as far as reading can tell by `deadline`
    (monotonic seconds). What cannot be read then stays unknown."""
    settled: dict[str, Outcome] = {}
    left = list(results)
    while left:
        readings = session.read(sorted({r.step.identity for r in left}))
        final = clock.monotonic() >= deadline
        for result in left:
            outcome = _decide(result, readings[result.step.identity], session, types, final=final)
            if outcome is not None:
                settled[result.step.id] = outcome
        left = [r for r in left if r.step.id not in settled]
        if left:
            clock.sleep(POLL_SECONDS)
    return tuple(
        Result(r.change, r.step, settled[r.step.id], r.attempt, r.duration_ms) for r in results
    )


def _decide(
    result: Result,
    reading: Reading,
    session: Session,
    types: Mapping[str, ResourceType],
    *,
    final: bool,
) -> Outcome | None:
    """The outcome that this reading proves, or None: ask again."""
    step, change = result.step, result.change
    judgement = judge(change, step, reading, types[step.identity.kind], session.facts)
    if judgement is Judgement.DONE:
        return Outcome(
            step.id, OutcomeStatus.APPLIED, incarnation=_incarnation(reading, change.action)
        )
    if judgement is Judgement.OTHER:
        # Reads lag but never run ahead: what is neither pre-image nor target is foreign.
        return Outcome(step.id, OutcomeStatus.FAILED, fault=_conflict(step.identity))
    if not final:
        return None
    if judgement is Judgement.UNKNOWN:
        return Outcome(step.id, OutcomeStatus.UNKNOWN, fault=result.outcome.fault)
    return Outcome(step.id, OutcomeStatus.FAILED, fault=_never(result))


def _incarnation(reading: Reading, action: Action) -> str | None:
    made = isinstance(reading, Observed) and action is not Action.DELETE
    return reading.incarnation if made and isinstance(reading, Observed) else None


def _conflict(identity: Identity) -> Fault:
    return Fault(
        "CONFLICT",
        f"{identity.key} is neither as it was planned from nor as it was planned to be: somebody "
        "else changed it meanwhile",
        FaultClass.DEFINITE,
        advice="Plan again and look at what is there now.",
    )


def _never(result: Result) -> Fault:
    lost = result.outcome.fault
    return Fault(
        lost.code if lost else "NOT_APPLIED",
        "no answer came, and reading again after the timeout shows that it did not happen",
        FaultClass.NOT_APPLIED,
        where=lost.where if lost else "",
        advice="Run apply again.",
    )
