"""The dry run: pass 1 before anything is sent, pass 2 before each later wave.

The system validates what it can (`validate_only`). For the rest the provider reads again and checks
rules and rights, and says so: each verdict carries its evidence.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ..core.change import Batch, Evidence, Step, Verdict
from ..core.clock import Clock
from ..core.diagnostics import Diagnostic, Severity
from ..core.errors import DryRunRefused
from ..core.progress import Progress, Reporter
from ..core.resource import Fault, FaultClass
from ..plan.lower import find_needs, lower_plan
from ..plan.model import Plan, Wave
from ..provider.contract import Session
from .rate_limits import Limited, Paces, Wait, send_in_parts
from .recovery import compute_patience

_PASSED, _REFUSED, _UNCHECKED = "passed", "refused", "not checked"
_JUDGEMENTS = (FaultClass.DEFINITE, FaultClass.PERMISSION, FaultClass.CONVERGED)
"""What a system says of a step that it has looked at."""


def run_first_pass(
    plan: Plan,
    applied: Collection[str],
    sessions: Mapping[str, Session],
    clock: Clock,
    report: Reporter,
    paces: Paces | None = None,
) -> dict[str, Verdict]:
    """Pass 1: check the rights of all steps, and dry-run each step that waits for no other.

    done: ids of steps that are left out; paces: what the run knows about limits, which it learns
    here. Returns step id -> verdict.
    """
    # Rights of all steps, because a right that a later step lacks would stop the run half way
    # (decisions/013). A step that depends on another cannot be validated before that is applied.
    steps = [step for change in plan.effective for step in change.steps if step.id not in applied]
    verdicts = examine_steps(steps, sessions)
    before = find_needs(plan.effective)
    first = {step.id for step in steps if not before[step.id] and step.id not in verdicts}
    asking = DryRun(sessions, report, clock, clock.sleep, paces or Paces())
    return {**verdicts, **dry_run(lower_plan(plan), first, asking)}


def narrow_batches(batches: Iterable[Batch], keep: Collection[str]) -> Iterator[Batch]:
    """The batches with only these steps; empty ones are left out."""
    for batch in batches:
        steps = tuple(step for step in batch.steps if step.id in keep)
        if steps:
            yield batch if steps == batch.steps else replace(batch, steps=steps)


class DryRun(Struct, frozen=True):
    """Everything that a dry run works with."""

    sessions: Mapping[str, Session]
    """Provider instance -> its session."""
    report: Reporter
    """Gets progress and messages."""
    clock: Clock
    """Measures the time."""
    wait: Wait
    """Waits for a system that limits changes."""
    paces: Paces
    """What the run knows about such limits."""


def dry_run(waves: Iterable[Wave], keep: Collection[str], asking: DryRun) -> dict[str, Verdict]:
    """Step id -> verdict, for these steps of these waves. Nothing is changed by it."""
    batches = list(narrow_batches((batch for wave in waves for batch in wave.batches), keep))
    verdicts: dict[str, Verdict] = {}
    if not batches:
        return verdicts
    mute: dict[str, Fault] = {}

    def show_progress(running: int = 0, *, finished: bool = False) -> None:
        count, ends = len(verdicts) + running, _count_ends(verdicts.values()) if finished else {}
        asking.report(
            Progress("dry-run", "Dry run", count, len(keep), "steps", finished=finished, ends=ends)
        )

    for batch in batches:
        if (silence := mute.get(batch.instance)) is not None:
            verdicts.update(_skip_batch(batch, silence))
            continue
        batch_verdicts = _preflight_batch(batch, asking, show_progress)
        verdicts.update(batch_verdicts)
        faults = [
            verdict.fault
            for verdict in batch_verdicts.values()
            if verdict.fault and verdict.fault.kind is FaultClass.AMBIGUOUS
        ]
        if len(faults) == len(batch_verdicts):
            mute[batch.instance] = faults[0]
        show_progress()
    show_progress(finished=True)
    return verdicts


def _count_ends(verdicts: Iterable[Verdict]) -> dict[str, int]:
    tally = Counter(_name_end(verdict) for verdict in verdicts)
    return {end: tally[end] for end in (_PASSED, _REFUSED, _UNCHECKED) if tally[end]}


def _name_end(verdict: Verdict) -> str:
    if verdict.fault is None:
        return _PASSED
    # Only these say no. Whatever else went wrong, the system has not judged the step.
    return _REFUSED if verdict.fault.kind in _JUDGEMENTS else _UNCHECKED


def _skip_batch(batch: Batch, silence: Fault) -> dict[str, Verdict]:
    # A system that did not answer for a whole batch is not asked about the next one: the wait would
    # be as long, and nothing that was not checked is sent.
    fault = Fault(
        "NOT_ASKED", f"not checked: {silence.message}", FaultClass.NOT_APPLIED, silence.where
    )
    return {step.id: Verdict(step.id, step.evidence, fault) for step in batch.steps}


def examine_steps(steps: Iterable[Step], sessions: Mapping[str, Session]) -> dict[str, Verdict]:
    """Step id -> verdict with a fault, for the steps that are known to fail."""
    groups: dict[str, list[Step]] = defaultdict(list)
    for step in steps:
        groups[step.identity.instance].append(step)
    verdicts = (
        verdict for name, group in groups.items() for verdict in sessions[name].examine(group)
    )
    return {verdict.step: verdict for verdict in verdicts}


def _preflight_batch(
    batch: Batch, asking: DryRun, show_progress: Callable[[int], None]
) -> dict[str, Verdict]:
    """The verdicts on one batch, after as many rounds as the quotas of the system require."""
    # A dry run spends the quota for changes, too (KIP-599; it is charged before the system looks at
    # validate_only). A step that the system asks to come back with is asked about again, alone: the
    # others have their verdicts, and asking again would spend quota for them.
    session, verdicts = asking.sessions[batch.instance], dict[str, Verdict]()

    def ask(steps: tuple[Step, ...]) -> dict[str, Fault]:
        answers = session.preflight(replace(batch, steps=steps))
        verdicts.update({verdict.step: verdict for verdict in answers})
        return {v.step: v.fault for v in answers if v.fault is not None and v.fault.is_for_now}

    def show(remaining: int) -> None:
        show_progress(len(batch.steps) - remaining)

    # Where the system does not validate the request itself, nothing is spent but reads.
    remote = any(step.evidence is Evidence.REMOTE for step in batch.steps)
    name = batch.request.name if remote else f"{batch.request.name} dry run"
    pace = asking.paces.find(batch.instance, name)
    patience, system = compute_patience(session.facts), session.words.system
    limited = Limited(pace, asking.clock, asking.wait, patience, asking.report, system, show)
    for step in send_in_parts(batch.steps, ask, limited):
        fault = Fault("NOT_ASKED", f"not checked: {pace.closed_reason}", FaultClass.NOT_APPLIED)
        verdicts.setdefault(step.id, Verdict(step.id, step.evidence, fault))
    return verdicts


def refuse_failed(verdicts: Mapping[str, Verdict], steps: Mapping[str, Step]) -> None:
    """Raises DryRunRefused naming every refused step, if any."""
    faults = [
        _describe_refusal(steps[verdict.step], verdict, verdict.fault)
        for verdict in verdicts.values()
        if verdict.fault is not None
    ]
    if not faults:
        return
    if any(_name_end(verdict) == _REFUSED for verdict in verdicts.values()):
        raise DryRunRefused("the dry run was refused; nothing was sent", diagnostics=tuple(faults))
    raise DryRunRefused("the dry run did not finish; nothing was sent", diagnostics=tuple(faults))


def _describe_refusal(step: Step, verdict: Verdict, fault: Fault) -> Diagnostic:
    return Diagnostic(
        Severity.ERROR,
        f"{step.address}: {step.request.name} was refused in the dry run"
        if _name_end(verdict) == _REFUSED
        else f"{step.address}: {step.request.name} could not be checked in the dry run",
        detail=f"{fault.message} ({fault.code}{', ' if fault.where else ''}{fault.where})",
        advice=fault.advice,
        address=step.address,
    )
