"""The dry run. Pass 1 before anything is sent, pass 2 before each later wave.

The broker validates what it can (`validate_only`); for the rest the provider reads again and
checks rules and rights, and says so: a verdict carries its evidence.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from ..core.change import Batch, Step, Verdict
from ..core.dataclass import replace
from ..core.diagnostics import Diagnostic, Severity
from ..core.errors import DryRunRefused
from ..core.progress import Progress, Report
from ..plan.model import Wave
from ..provider.contract import Session


def narrowed(batches: Iterable[Batch], keep: Collection[str]) -> Iterator[Batch]:
    """The batches with only these steps; empty ones are left out."""
    for batch in batches:
        steps = tuple(step for step in batch.steps if step.id in keep)
        if steps:
            yield batch if steps == batch.steps else replace(batch, steps=steps)


def dry_run(
    waves: Iterable[Wave], keep: Collection[str], sessions: Mapping[str, Session], report: Report
) -> dict[str, Verdict]:
    """step id -> verdict, for these steps of these waves. Sends nothing that changes anything."""
    batches = list(narrowed((batch for wave in waves for batch in wave.batches), keep))
    verdicts: dict[str, Verdict] = {}
    if not batches:
        return verdicts
    for batch in batches:
        verdicts.update({v.step: v for v in sessions[batch.instance].preflight(batch)})
        report(Progress("dry-run", "Dry run", len(verdicts), len(keep), "steps"))
    report(Progress("dry-run", "Dry run", len(verdicts), len(keep), "steps", finished=True))
    return verdicts


def refuse(verdicts: Mapping[str, Verdict], steps: Mapping[str, Step]) -> None:
    """Raises DryRunRefused naming every refused step, if there is one."""
    faults = [
        Diagnostic(
            Severity.ERROR,
            f"{steps[v.step].address}: {steps[v.step].request.name} was refused in the dry run",
            detail=f"{v.fault.message} ({v.fault.code}{', ' if v.fault.where else ''}"
            f"{v.fault.where})",
            advice=v.fault.advice,
            address=steps[v.step].address,
        )
        for v in verdicts.values()
        if v.fault is not None
    ]
    if faults:
        raise DryRunRefused("the dry run was refused; nothing was sent", diagnostics=tuple(faults))
