"""What dangerous changes do to those who use their systems now, as far as the systems say so.

Only changes that can do harm are looked at: a plan without one asks nothing here. What is found
differs from one second to the next, so it is shown and judged, and no approval covers it
(docs/decisions/035-figures-are-not-approved.md).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial

from msgspec.structs import replace

from ..core.change import Action, Change, add_findings
from ..core.errors import KafkaformError, OtherSystem
from ..core.finding import Finding, Harm
from ..core.lazy import load
from ..core.parallel import map_parallel
from ..core.resource import Identity
from ..core.secret import mask_secrets
from ..provider.contract import ConsequenceFinder, LookBounds, Provider
from ..state.model import State
from .model import Extent, Options
from .observe import BOUNDS, Look, LookBudget
from .rules import CONSEQUENCES_UNKNOWN, PARKED, RELIED_ON
from .uses import find_used, join_first, list_managed, list_partners

HARMFUL = (
    Harm.DATA_LOSS,
    Harm.DURABILITY,
    Harm.ACCESS_LOST,
    Harm.AVAILABILITY,
    Harm.REFUSED_WRITES,
    Harm.ORDERING,
    Harm.MOVE,
    Harm.CAPACITY,
)
"""Harms that hit those who use an object."""
SYSTEMS_AT_ONCE = 8

Remarks = Mapping[str, tuple[Finding, ...]]
"""Provider instance -> findings about its system."""


def tell_consequences(
    changes: Sequence[Change],
    remarks: Remarks,
    providers: Mapping[str, Provider],
    look: Look,
    options: Options,
) -> tuple[Sequence[Change], Remarks]:
    """The changes and the remarks, with whom the changes hit and with what was not looked at.

    providers: provider instance -> its provider, of systems that can be asked. Raises OtherSystem.
    """
    harmful: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        provider = providers.get(change.identity.instance)
        if provider is None or not provider.consequences:
            continue
        facts = look.world[change.identity.instance].facts
        if can_harm(change) or (change.effective and provider.needs_look(change, facts)):
            harmful[change.identity.instance].append(change)
    if not harmful or options.impact not in BOUNDS:
        return changes, remarks
    fast = options.impact is Extent.FAST
    # A fast look shares what a run has with the plans of other folders. Any other was asked for.
    budget = look.budget if fast else LookBudget(BOUNDS[options.impact])
    bounds = replace(budget.bounds, sample=options.sample)
    ask = partial(_ask_system, harmful, providers, look, bounds)
    with budget.spend(sum(map(len, harmful.values()))):
        # Side by side, so that several systems take no longer than one.
        answers = map_parallel(ask, harmful, SYSTEMS_AT_ONCE)
    of_objects: dict[Identity, list[Finding]] = defaultdict(list)
    of_systems = dict(remarks)
    for instance, answer in zip(harmful, answers, strict=True):
        for identity, finding in answer:
            if identity is None:
                of_systems[instance] = (*of_systems.get(instance, ()), finding)
            else:
                of_objects[identity].append(finding)
    changes_after = [
        add_findings(change, *of_objects.get(change.identity, ())) for change in changes
    ]
    return changes_after, of_systems


def tell_managed_users(
    changes: Sequence[Change], providers: Mapping[str, Provider], look: Look, state: State
) -> Sequence[Change]:
    """The changes; each that can do harm and deletes nothing names the declared and recorded
    objects that need its object. What deletions take from them is said by `name_users`."""
    endangered = {
        change.identity: number
        for number, change in enumerate(changes)
        if change.action is not Action.DELETE and can_harm(change)
    }
    types = {name: kind for item in providers.values() for name, kind in item.types.items()}
    if not endangered or all(kind.uses is None for kind in types.values()):
        return changes
    partners = list_partners({name: world.facts for name, world in look.world.items()})
    users: dict[Identity, set[str]] = defaultdict(set)
    for user in list_managed(changes, types, look, state):
        for identity, use in find_used(user.identity, user.attributes, types, partners, endangered):
            if use.needed:
                users[identity].add(f"{user.name} {use.verb} it")
    result = list(changes)
    for identity, names in users.items():
        number = endangered[identity]
        result[number] = add_findings(changes[number], RELIED_ON.find(join_first(sorted(names))))
    return result


def can_harm(change: Change) -> bool:
    """True if somebody who uses the object can notice what an apply makes of it, or what a later
    apply will: whoever still wants a parked object is told while it waits for its deletion."""
    if change.action is Action.DELETE:
        return change.effective or (change.blocked is not None and change.blocked.rule == PARKED.id)
    return change.effective and change.has_harm(*HARMFUL)


def _make_unasked() -> Finding:
    limits = BOUNDS[Extent.FAST]
    return CONSEQUENCES_UNKNOWN.find(
        "it was not looked at whom this plan hits: the plans of other folders have used up what a "
        f"run has for that ({limits.seconds:g} s and {limits.objects} objects)",
        fix="Plan this folder alone, or with --impact full.",
    )


def _ask_system(
    harmful: Mapping[str, Sequence[Change]],
    providers: Mapping[str, Provider],
    look: Look,
    bounds: LookBounds,
    instance: str,
) -> Sequence[tuple[Identity | None, Finding]]:
    if 0 in (bounds.seconds, bounds.objects):
        return [(None, _make_unasked())]
    find: ConsequenceFinder = load(providers[instance].consequences)
    try:
        return find(look.sessions[instance], harmful[instance], bounds)
    except OtherSystem:
        # Nothing that another system says is believed, not even why a look at it failed.
        raise
    except KafkaformError as error:
        cause = error.message
    except Exception as error:  # noqa: BLE001  # a look decides nothing, so its bugs stop nothing
        cause = f"{type(error).__name__}: {error}. This is a bug in kafkaform"
    text = f"it could not be found out whom this plan hits: {mask_secrets(cause)}"
    return [(None, CONSEQUENCES_UNKNOWN.find(text))]
