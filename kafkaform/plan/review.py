"""The provider's say about changes: its rules, its review, its requests, and what they destroy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from ..core.change import Action, Change, Impact
from ..core.diagnostics import Diagnostic, Severity
from ..core.legacy import Blocker, BlockerKind, Review, RiskKind
from ..core.redaction import mask_secrets
from ..core.resource import Facts, Identity
from ..provider.contract import Provider, ResourceType
from ..state.model import State
from .observe import Look
from .risks import join_risks
from .select import wait_for
from .uses import name_users

MEASURED = (RiskKind.DATA_LOSS, RiskKind.MOVE)
"""Risks of which it is worth knowing how much data they are about."""


def check_change(
    change: Change, types: Mapping[str, ResourceType], facts: Mapping[str, Facts]
) -> Change:
    """The change, blocked if a rule that needs no system forbids it; warnings become notes."""
    if change.blocked is not None and change.blocked.kind is not BlockerKind.UNMANAGED:
        return change
    found = types[change.identity.kind].check(change, facts[change.identity.instance])
    if not found:
        return change
    errors = [d for d in found if d.severity is Severity.ERROR]
    if change.blocked is not None:
        # The advice for an unmanaged object is to adopt it. Whoever follows it should know first
        # that the adoption could not be applied as the block stands.
        hurdles = tuple(f"it could not be adopted as declared: {d.summary}" for d in errors)
        return replace(change, notes=(*change.notes, *hurdles))
    warnings = tuple(d.summary for d in found if d.severity is Severity.WARNING)
    blocked = _block_impossible(errors) if errors else None
    return replace(change, notes=(*change.notes, *warnings), blocked=blocked)


def _block_impossible(errors: Sequence[Diagnostic]) -> Blocker:
    reasons = [f"{d.summary}: {d.detail}" if d.detail else d.summary for d in errors]
    advice = [d.advice for d in errors]
    if len(set(advice)) > 1:
        # Numbers say which advice belongs to which reason.
        reasons = [f"({number}) {text}" for number, text in enumerate(reasons, 1)]
        advice = [f"({number}) {text}" for number, text in enumerate(advice, 1) if text]
    return Blocker(BlockerKind.IMPOSSIBLE, "; ".join(reasons), "; ".join(dict.fromkeys(advice)))


def review_changes(
    changes: Sequence[Change],
    providers: Mapping[str, Provider],
    look: Look,
    facts: Mapping[str, Facts],
    accepted: Sequence[str] = (),
) -> tuple[Sequence[Change], Mapping[str, Review]]:
    """The changes as their providers judge all of an instance together, and the whole judgements by
    instance.

    accepted: the waivers of blocks that the user lifts.
    """
    judged: dict[Identity, Change] = {}
    reviews: dict[str, Review] = {}
    for instance, provider in providers.items():
        mine = [change for change in changes if change.identity.instance == instance]
        sweeps = look.collect_sweeps(instance, provider.review_needs(mine))
        review = provider.review(mine, sweeps, facts[instance])
        named = {*review.blocks, *review.unless, *review.notes, *review.losses, *review.risks}
        concerned = (change for change in mine if named and change.identity in named)
        judged.update({one.identity: _apply_review(one, review, accepted) for one in concerned})
        reviews[instance] = review
    if not judged:
        return changes, reviews
    return [judged.get(change.identity, change) for change in changes], reviews


def _apply_review(change: Change, review: Review, accepted: Sequence[str]) -> Change:
    unless = review.unless.get(change.identity, ())
    left = [block for block in unless if block.waiver not in accepted]
    lifted = [block for block in unless if block.waiver in accepted]
    notes = review.notes.get(change.identity, ())
    blocked = change.blocked or review.blocks.get(change.identity) or next(iter(left), None)
    return replace(
        join_risks(change, review.risks.get(change.identity, ())),
        notes=(
            *change.notes,
            *notes,
            # A risk that was accepted stays visible in the plan that somebody approves.
            *(f"{block.reason} (accepted: --accept-{block.waiver})" for block in lifted),
        ),
        losses=review.losses.get(change.identity, ()),
        blocked=blocked,
    )


def add_steps(
    change: Change, types: Mapping[str, ResourceType], facts: Mapping[str, Facts]
) -> Change:
    """The change with the requests that make it true, if an apply makes it at all."""
    if not change.effective:
        return change
    steps = types[change.identity.kind].steps(change, facts[change.identity.instance])
    return replace(change, steps=steps)


def add_impacts(
    changes: Sequence[Change], look: Look, providers: Mapping[str, Provider], state: State
) -> Sequence[Change]:
    """The changes, with how much data those would destroy or move that could do so, and with the
    objects that use what they delete."""
    endangered: dict[str, list[Change]] = {}
    deletes = False
    for change in changes:
        deletes = deletes or change.action is Action.DELETE
        if change.action is Action.DELETE or any(risk.kind in MEASURED for risk in change.risks):
            endangered.setdefault(change.identity.instance, []).append(change)
    if deletes:
        changes = name_users(changes, providers, look, state)
    impacts = {
        identity: impact
        for instance, group in endangered.items()
        for identity, impact in look.assess_impacts(instance, group).items()
    }
    if not impacts:
        return changes
    return [
        _add_impact(change, impacts[change.identity]) if change.identity in impacts else change
        for change in changes
    ]


def _add_impact(change: Change, impact: Impact) -> Change:
    measured = replace(change, impact=impact)
    if not impact.unasked or change.action is not Action.DELETE or not change.effective:
        return measured
    return wait_for(measured, f"who uses it is not known: {mask_secrets(impact.unasked)}")
