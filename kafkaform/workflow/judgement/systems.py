"""Judge live systems by the rules, without a configuration. It only reads."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...core.errors import Blocked
from ...core.finding import CheckedSystem, Harm
from ...core.resource import CoverageKind, Depth, Observed, Sweep
from ...plan.block_judge import load_books
from ...provider.contract import Provider, ResourceType, Session
from .conditions import LEVELS, list_held
from .standing import judge_standing, make_standing_changes

WORDS = (*LEVELS, *(harm.value for harm in Harm if harm is not Harm.NONE))
"""What `check --fail-on` can name besides rules."""


def check_system(instance: str, provider: Provider, session: Session) -> CheckedSystem:
    """Read every object of a system and judge it. Raises OtherSystem; what cannot be read is a
    gap."""
    types = {name: kind for name, kind in provider.types.items() if _is_listed(kind)}
    facts, gaps, items, failed = session.facts, list[str](), list[Observed](), False
    for name, kind in types.items():
        sweep = session.sweep(name, Depth.FULL)
        fault = sweep.coverage.fault
        # Without this feature the system cannot have such objects.
        if fault is not None and fault.code in kind.switched_off:
            continue
        gaps += _describe_gaps(sweep, facts.principal or "this principal")
        failed = failed or sweep.coverage.kind is CoverageKind.FAILED
        items += sweep.items
    changes = make_standing_changes(items, types, facts)
    needs = provider.review_needs(changes)
    sweeps = {name: session.sweep(name, depth) for name, depth in needs.items()}
    book = load_books({instance: provider})[instance]
    rows = judge_standing(changes, types, book, sweeps, facts)
    numbers = {name: sum(change.identity.kind == name for change in changes) for name in types}
    return CheckedSystem(
        instance,
        facts.scope_id,
        session.words,
        tuple((name, number) for name, number in numbers.items() if number),
        tuple(rows),
        tuple(gaps),
        failed,
    )


def _is_listed(kind: ResourceType) -> bool:
    # A part of an object is judged with the object.
    return kind.expand is None and kind.part_of is None


def _describe_gaps(sweep: Sweep, principal: str) -> Iterator[str]:
    if sweep.coverage.kind is CoverageKind.VISIBLE_ONLY:
        yield f"{sweep.kind}: this is what {principal} can see; there can be more."
    elif sweep.coverage.kind is CoverageKind.FAILED:
        fault = sweep.coverage.fault
        cause = "the listing failed" if fault is None else f"{fault.message} ({fault.code})"
        advice = f" {fault.advice}" if fault is not None and fault.advice else ""
        yield f"Not checked: {sweep.kind} could not be listed whole: {cause}.{advice}"


def refuse_findings(systems: Iterable[CheckedSystem], fail_on: Sequence[str]) -> None:
    """Raises Blocked if a system has what `--fail-on` names, or if not everything could be read,
    because what was not read may have it."""
    if not fail_on:
        return
    systems = tuple(systems)
    findings = list_held((row.finding for system in systems for row in system.rows), fail_on)
    if findings:
        raise Blocked(
            f"--fail-on: there are findings of {', '.join(findings)}",
            "See what the check says of each object.",
        )
    if any(system.failed for system in systems):
        raise Blocked(
            "--fail-on: not everything could be read, so nobody knows whether it holds",
            "The check names what is missing. Grant the rights to read it.",
        )
