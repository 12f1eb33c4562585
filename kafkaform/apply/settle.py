"""Settle ambiguous results: the object is read again, and the request is never blindly repeated.

A lost answer leaves three possibilities: the request was executed, it will be, or it never will.
As long as some node may still keep the request, only the target proves anything, if every live node
shows it: one node alone may show a past that looks like the target. After that the pre-image proves
that the request was not executed, if every live node shows it. A task that leads to the target
counts as the target, and has started. A request that only writes hidden data cannot be read back:
it stays unknown, without waiting (decisions/008).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from msgspec.structs import replace

from ..core.change import Action, Outcome, OutcomeStatus, Step
from ..core.clock import Clock
from ..core.progress import Reporter, ignore_event
from ..core.resource import Absent, Facts, Failed, Fault, FaultClass, Identity, Observed, Reading
from ..provider.contract import ResourceType, Session
from .rate_limits import say_silent
from .report import Result
from .verify import HAPPENED, Judgement, is_untellable, judge_step

# The nodes measure their timeouts by their own clocks, and a write becomes visible some time after
# it was committed.
MARGIN_SECONDS = 5.0
POLL_SECONDS = 0.25
INTENT_SECONDS = 60.0
"""How long after its intent a request may be sent again without a new one, after the system has
refused it for now. Whoever recovers the intent later reckons with a request of that age."""


def is_in_vain(result: Result) -> bool:
    """True for a step about which reading revealed nothing while any node could keep its request.

    The answer to a further request would most likely be waited for as long.
    """
    unknown = result.outcome.status is OutcomeStatus.UNKNOWN
    return unknown and not is_untellable(result.change, result.step)


def compute_patience(facts: Facts) -> float:
    """How long after the intent, in seconds, an unchanged object proves that the request was not
    executed."""
    # A node that knows no leader keeps a request for its own timeout before it forwards it, and the
    # node that executes it may take as long as the operation timeout in the request allows.
    return facts.request_timeout + facts.operation_timeout + MARGIN_SECONDS


def settle_results(
    results: Sequence[Result],
    session: Session,
    types: Mapping[str, ResourceType],
    deadline: float,
    clock: Clock,
    report: Reporter = ignore_event,
) -> tuple[Result, ...]:
    """The results with their true outcomes, as far as reading reveals them by `deadline`.

    deadline: seconds on `Clock.monotonic`; what cannot be read by then stays unknown. report: gets
    messages about nodes that do not answer. Raises OtherSystem.
    """
    settled: dict[str, Outcome] = {}
    pending = list(results)
    quiet: set[str] = set()
    while pending:
        final = clock.monotonic() >= deadline
        readings, mute = _read_everywhere(session, sorted({r.step.identity for r in pending}))
        faults = {
            result.step.id: outcome
            for result in pending
            if (
                outcome := _decide_outcome(
                    result, readings[result.step.identity], session, types, final=final
                )
            )
        }
        if faults:
            # What these readings say becomes a record. A proxy may lead a connection to another
            # system, where an object of the same name proves nothing.
            session.prove()
        settled.update(faults)
        pending = [r for r in pending if r.step.id not in settled]
        if pending and not final and mute - quiet:
            say_silent(report, mute - quiet, deadline - clock.monotonic(), session.words.node)
            quiet |= mute
        if pending:
            clock.sleep(POLL_SECONDS)
    return tuple(
        Result(r.change, r.step, settled[r.step.id], r.attempt, r.duration_ms) for r in results
    )


def _read_everywhere(
    session: Session, ids: Sequence[Identity]
) -> tuple[dict[Identity, list[Reading]], set[str]]:
    """What each live node says about each object, and the nodes that did not answer at all."""
    # Who is live is asked anew at each look: a node that died in between must not be waited for,
    # and one that came back may have kept the request.
    answers: dict[Identity, list[Reading]] = {identity: [] for identity in ids}
    mute: set[str] = set()
    for node in session.live_nodes() or (None,):
        readings = session.read(ids, at=node)
        for identity, reading in readings.items():
            answers[identity].append(reading)
        if node is not None and all(isinstance(r, Failed) for r in readings.values()):
            mute.add(node)
    return answers, mute


def _decide_outcome(
    result: Result,
    readings: Sequence[Reading],
    session: Session,
    types: Mapping[str, ResourceType],
    *,
    final: bool,
) -> Outcome | None:
    """The outcome that these readings prove, None if more have to be read. final: nobody can keep
    the request any more."""
    step, change = result.step, result.change
    kind, facts = types[step.identity.kind], session.facts
    live = [r for r in readings if isinstance(r, Observed)]
    if live and is_untellable(change, step):
        return Outcome(step.id, OutcomeStatus.UNKNOWN, fault=result.outcome.fault)
    judgements = {judge_step(change, step, reading, kind, facts) for reading in readings}
    silent = Judgement.UNKNOWN in judgements
    if not any(isinstance(reading, Absent) for reading in readings):
        # An absence has to be confirmed by every node. The target proves itself: a node that does
        # not answer cannot take it back.
        judgements.discard(Judgement.UNKNOWN)
    if change.action is Action.DELETE and judgements == {Judgement.DONE}:
        return Outcome(step.id, OutcomeStatus.APPLIED)
    if judgements and judgements <= HAPPENED and len({r.incarnation for r in live}) <= 1:
        return _make_happened(step, live, judgements)
    if not final:
        return None
    if silent:
        # Without a majority of the nodes that lead it, a system keeps requests that it cannot
        # commit, and commits them once these nodes are back, after any deadline. It counts no node
        # as dead meanwhile, so a listed node that does not answer means that nothing is proven.
        return Outcome(step.id, OutcomeStatus.UNKNOWN, fault=_make_unknown_fault(result, readings))
    if judgements == {Judgement.OTHER}:
        return Outcome(step.id, OutcomeStatus.FAILED, fault=_make_conflict(step.identity, session))
    if judgements == {Judgement.NOT_YET}:
        return Outcome(step.id, OutcomeStatus.FAILED, fault=_make_not_applied(result))
    return Outcome(step.id, OutcomeStatus.UNKNOWN, fault=_make_unknown_fault(result, readings))


def _make_unknown_fault(result: Result, readings: Sequence[Reading]) -> Fault | None:
    """Why nobody knows: no answer came, and the reason why no reading helped."""
    silence = result.outcome.fault
    failed = next((r.fault for r in readings if isinstance(r, Failed)), None)
    if silence is None or failed is None or failed.message in silence.message:
        return silence or failed
    message = f"{silence.message}; reading it again failed: {failed.message}"
    return replace(silence, message=message, advice=failed.advice or silence.advice)


def _make_happened(step: Step, live: Sequence[Observed], judgements: Set[Judgement]) -> Outcome:
    incarnation = live[0].incarnation if live else None  # none if an update removed the last of it
    if Judgement.STARTED not in judgements:
        return Outcome(step.id, OutcomeStatus.APPLIED, incarnation=incarnation)
    ticket = next((r.ticket for r in live if r.ticket is not None), None)
    return Outcome(step.id, OutcomeStatus.STARTED, ticket=ticket, incarnation=incarnation)


def _make_conflict(identity: Identity, session: Session) -> Fault:
    name = session.words.name_object(identity.kind, identity.key)
    return Fault(
        "CONFLICT",
        f"{name} matches neither its planned start nor its target: somebody else changed "
        "it meanwhile",
        FaultClass.DEFINITE,
        advice="Plan again and check what is there now.",
    )


def _make_not_applied(result: Result) -> Fault:
    silence = result.outcome.fault
    return Fault(
        silence.code if silence else "NOT_APPLIED",
        "no answer came, and the object was unchanged after the timeout: the request was not "
        "executed",
        FaultClass.NOT_APPLIED,
        where=silence.where if silence else "",
    )
