"""How a plan is made. `make_plan` is the story; every line of it is one idea.

Declared, observed and recorded objects meet in claims; each claim becomes one change; the
selection narrows them; rules, guards and the provider's review block what must not happen;
what is left gets its steps, and the approval digest covers exactly that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ..core.change import BOOKKEEPING, Action, Blocker, BlockerKind, Change, Review
from ..core.diagnostics import Diagnostic, Severity, has_errors
from ..core.errors import ConfigurationError, PlanRefused
from ..core.resource import Desired, Facts, Identity, Output, Pending, World
from ..core.value import FrozenMap
from ..core.words import NEUTRAL, Vocabulary
from ..provider.contract import Provider, ResourceType
from ..state.model import State
from .approval import seal_plan
from .drafts import DecisionContext
from .guards import apply_guards
from .lifecycle import decide
from .model import Options, OutputChange, Plan, PlanInstance, Unmanaged
from .observe import Look, has_ended, list_unmanaged, note_progress
from .ownership import make_claims
from .risks import add_risks, join_risks, list_endangered
from .select import narrow_changes

NAMES_SHOWN = 10


class PlanHeader(Struct, frozen=True):
    """What a plan says about itself; shown, never approved. created: RFC 3339, UTC."""

    created: str
    kafkaform_version: str
    audit_head: str = ""
    display: FrozenMap = FrozenMap()


def make_plan(
    desired: Desired,
    world: World,
    state: State,
    pending: Sequence[Pending],
    providers: Mapping[str, Provider],
    look: Look,
    options: Options,
    header: PlanHeader,
) -> Plan:
    """The plan that brings the world to what is desired.

    providers: provider instance -> its provider. Raises PlanRefused if an instance answers with
    another scope id than the state recorded, ConfigurationError for faults of import blocks.
    """
    words = {instance: provider.words for instance, provider in providers.items()}
    _require_same_scopes(world, state, words)
    types = _collect_types(providers, state)
    claimed, faults = make_claims(desired, state, types, options)
    if has_errors(faults):
        raise ConfigurationError("the import blocks have faults", diagnostics=faults)
    facts = {instance: seen.facts for instance, seen in world.items()}
    still = {item.identity: item for item in pending if not has_ended(item, world)}
    context = DecisionContext(types, facts, options, still, words)
    drafts: Sequence[Change] = [
        decide(claim, world[claim.identity.instance].readings[claim.identity], context)
        for claim in claimed
    ]
    drafts = narrow_changes(drafts, options)
    drafts = [add_risks(check_change(change, types, facts), types, facts) for change in drafts]
    drafts = apply_guards(drafts, desired, state, options)
    drafts, warnings = review_changes(drafts, providers, look, facts, options.accept)
    changes = _add_impacts([add_steps(change, types, facts) for change in drafts], look)
    shown = tuple(change for change in changes if is_shown(change))
    made = Plan(
        lineage=state.lineage,
        serial=state.serial,
        configuration=desired.digest,
        instances=describe_instances(world, header, warnings),
        changes=shown,
        unchanged=len(changes) - len(shown),
        options=options,
        outputs=_compare_outputs(desired, state),
        diagnostics=desired.diagnostics,
        pending=tuple(note_progress(item, world) for item in pending),
        audit_head=header.audit_head,
        created=header.created,
        kafkaform_version=header.kafkaform_version,
    )
    return seal_plan(made)


def record_only(plan: Plan) -> Plan:
    """The plan that takes objects over as they are and sends nothing."""
    changes = tuple(
        replace(
            change,
            action=Action.IMPORT,
            after=change.before,
            paths=tuple(item for item in change.paths if item.path[0] in BOOKKEEPING),
            steps=(),
        )
        for change in plan.changes
        if change.adopts
    )
    return seal_plan(replace(plan, changes=changes, removals=()))


def is_shown(change: Change) -> bool:
    """Everything but objects that need nothing at all."""
    return change.action is not Action.NOOP or change.blocked is not None or bool(change.drift)


def _require_same_scopes(world: World, state: State, words: Vocabulary) -> None:
    for instance, recorded in state.providers.items():
        scope = world[instance].facts.scope_id if instance in world else recorded
        if scope != recorded:
            said = words.get(instance, NEUTRAL)
            raise PlanRefused(
                f'provider instance "{instance}" answers as {said.system} {scope}, but this state '
                f"belongs to {said.system} {recorded}",
                f"{said.check_address} A new {said.system} needs a new state (another folder).",
            )


def _collect_types(providers: Mapping[str, Provider], state: State) -> dict[str, ResourceType]:
    types = {name: kind for item in providers.values() for name, kind in item.types.items()}
    unknown = sorted({i.kind for i in state.objects} - types.keys())
    if unknown:
        raise ConfigurationError(
            f"the state has objects of {', '.join(unknown)}, which no configured provider knows",
            "Keep the provider block until these objects are removed or forgotten.",
        )
    return types


def check_change(
    change: Change, types: Mapping[str, ResourceType], facts: Mapping[str, Facts]
) -> Change:
    """Blocked if a rule that needs no system forbids it; warnings become notes."""
    if change.blocked is not None and change.blocked.kind is not BlockerKind.UNMANAGED:
        return change
    found = types[change.identity.kind].check(change, facts[change.identity.instance])
    notes = tuple(d.summary for d in found if d.severity is Severity.WARNING)
    errors = [d for d in found if d.severity is Severity.ERROR]
    if change.blocked is not None:
        hurdles = tuple(f"it could not be adopted as declared: {d.summary}" for d in errors)
        return replace(change, notes=(*change.notes, *hurdles))
    if not found:
        return change
    blocked = _block_impossible(errors) if errors else None
    return replace(change, notes=(*change.notes, *notes), blocked=blocked)


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
) -> tuple[Sequence[Change], dict[str, tuple[str, ...]]]:
    """The provider's judgement of all changes of an instance together. accepted: the waivers of
    blocks that the user lifts."""
    judged: dict[Identity, Change] = {}
    warnings: dict[str, tuple[str, ...]] = {}
    for instance, provider in providers.items():
        mine = [change for change in changes if change.identity.instance == instance]
        sweeps = look.collect_sweeps(instance, provider.review_needs(mine))
        review = provider.review(mine, sweeps, facts[instance])
        told = {*review.blocks, *review.unless, *review.notes, *review.losses, *review.risks}
        concerned = (change for change in mine if told and change.identity in told)
        judged.update({one.identity: _apply_review(one, review, accepted) for one in concerned})
        warnings[instance] = review.warnings
    if not judged:
        return changes, warnings
    return [judged.get(change.identity, change) for change in changes], warnings


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
            *(f"{block.reason} (accepted: --accept-{block.waiver})" for block in lifted),
        ),
        losses=review.losses.get(change.identity, ()),
        blocked=blocked,
    )


def add_steps(
    change: Change, types: Mapping[str, ResourceType], facts: Mapping[str, Facts]
) -> Change:
    if not change.effective:
        return change
    steps = types[change.identity.kind].steps(change, facts[change.identity.instance])
    return replace(change, steps=steps)


def _add_impacts(changes: Sequence[Change], look: Look) -> tuple[Change, ...]:
    """The changes, with how much data those would destroy that could destroy any."""
    impacts = {
        identity: impact
        for instance, group in list_endangered(changes).items()
        for identity, impact in look.assess_impacts(instance, group).items()
    }
    if not impacts:
        return tuple(changes)
    return tuple(
        replace(change, impact=impacts[change.identity]) if change.identity in impacts else change
        for change in changes
    )


def describe_instances(
    world: World, header: PlanHeader, warnings: Mapping[str, tuple[str, ...]]
) -> dict[str, PlanInstance]:
    return {
        instance: PlanInstance(
            seen.facts.recorded,
            header.display.get(instance, FrozenMap()),
            tuple(
                Unmanaged(kind, len(keys), tuple(keys[:NAMES_SHOWN]))
                for kind, keys in sorted(list_unmanaged(seen).items())
                if keys
            ),
            warnings.get(instance, ()),
        )
        for instance, seen in world.items()
    }


def _compare_outputs(desired: Desired, state: State) -> tuple[OutputChange, ...]:
    """Recorded against evaluated; one that waits for a computed value always shows."""
    after = {output.name: _hide_sensitive(output) for output in desired.outputs}
    before = {name: _read_recorded(name, data) for name, data in state.outputs.items()}
    return tuple(
        OutputChange(before.get(name), after.get(name))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
    )


def _hide_sensitive(output: Output) -> Output:
    """A sensitive output without its value: plans are saved, shown and recorded in the log."""
    return replace(output, value=None) if output.sensitive else output


def _read_recorded(name: str, data: FrozenMap) -> Output:
    return Output(name, data.get("value"), bool(data.get("sensitive")), False)
