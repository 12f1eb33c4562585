"""The provider instances of a plan: which systems they are, and what else exists there; and the
outputs of the configuration: recorded values against evaluated ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct
from msgspec.structs import replace

from ..core.change import Change
from ..core.errors import PlanRefused
from ..core.finding import UNREAD, Finding
from ..core.redaction import mask_secrets
from ..core.resource import Desired, InstanceWorld, Output, World
from ..core.value import EMPTY, FrozenMap
from ..core.words import NEUTRAL
from ..provider.contract import Provider
from ..state.model import State
from .model import OutputChange, PlanInstance, Unmanaged
from .observe import Look

NAMES_SHOWN = 10
"""How many unmanaged objects of a kind a plan names."""


class PlanHeader(Struct, frozen=True):
    """What a plan says about itself. It is shown, never approved."""

    created: str
    """When the plan was made, RFC 3339, UTC."""
    kafkaform_version: str
    """The version that made it."""
    audit_head: str = ""
    """The end of the log that the plan follows from."""
    display: FrozenMap = FrozenMap()
    """Provider instance -> its connection settings, without secrets."""


def refuse_other_scopes(world: World, state: State, providers: Mapping[str, Provider]) -> None:
    """Raises PlanRefused if an instance answers with another scope id than the state recorded."""
    for instance, recorded in state.providers.items():
        scope = world[instance].facts.scope_id if instance in world else recorded
        if scope != recorded:
            words = providers[instance].words if instance in providers else NEUTRAL
            raise PlanRefused(
                f'provider instance "{instance}" answers as {words.system} {scope}, but this state '
                f"belongs to {words.system} {recorded}",
                f"{words.check_address} A new {words.system} needs a new state (another folder).",
            )


def describe_instances(
    world: World,
    header: PlanHeader,
    remarks: Mapping[str, tuple[Finding, ...]],
    look: Look,
    settings: Mapping[str, tuple[Finding, ...]] = EMPTY,
) -> dict[str, PlanInstance]:
    """Each provider instance that the plan is about, as it was read. remarks: what
    rules found about the system; settings: what was read of its objects' settings."""
    return {
        instance: PlanInstance(
            observation.facts.recorded,
            header.display.get(instance, FrozenMap()),
            count_unmanaged(observation),
            (*remarks.get(instance, ()), *settings.get(instance, ())),
            mask_secrets(look.unread[instance].message) if instance in look.unread else "",
        )
        for instance, observation in world.items()
        if instance not in look.unasked
    }


def count_unmanaged(world: InstanceWorld) -> tuple[Unmanaged, ...]:
    """The live objects of each kind that nothing declares or records, without the system's own."""
    unmanaged = []
    for kind, sweep in sorted(world.sweeps.items()):
        keys = sorted(
            item.identity.key
            for item in sweep.items
            if item.identity not in world.readings and not item.details.get("internal", False)
        )
        if keys:
            unmanaged.append(Unmanaged(kind, len(keys), tuple(keys[:NAMES_SHOWN])))
    return tuple(unmanaged)


# ── outputs ─────────────────────────────────────────────────────────────────────────────


def compare_outputs(
    desired: Desired, state: State, changes: Iterable[Change]
) -> tuple[OutputChange, ...]:
    """The outputs that differ. One that waits for a computed value always does, unless an object
    could not be read: then it may be the value of that one, and stays as it is recorded."""
    unread = bool(desired.unread) or any(change.block in UNREAD for change in changes)
    # Plans are saved, shown and recorded in the log, so a sensitive value must not enter them.
    after = {
        output.name: replace(output, value=None) if output.sensitive else output
        for output in desired.outputs
    }
    before = {
        name: Output(name, data.get("value"), bool(data.get("sensitive")), False)
        for name, data in state.outputs.items()
    }
    return tuple(
        OutputChange(before.get(name), after.get(name))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
        and not (unread and name in before and name in after and after[name].deferred)
    )
