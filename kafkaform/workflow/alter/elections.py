"""`alter topic NAME --elect-preferred`: the plan by which the first replica of each partition leads
again.

It changes what no block declares and no state records, so managed topics allow it too.
"""

from __future__ import annotations

from msgspec.structs import replace

from kafkaform_kafka.kinds.leaders.resource_type import KIND

from ...core.address import Address
from ...core.change import Change
from ...core.errors import UsageError
from ...core.resource import Identity, InstanceWorld, Observed, Reading
from ...core.value import EMPTY, FrozenMap
from ...plan.amend import amend, plan_changes
from ...plan.model import Plan
from ...plan.observe import Look
from ...render.text import render_count
from ..connection import Connection
from ..run import Scene
from .amendments import Alteration
from .planning import make_header, refuse_missing


def make_election(names: tuple[str, ...], others: bool) -> Alteration:
    """What `--elect-preferred` asks for. others: other flags are given beside it. Raises
    UsageError."""
    if others:
        raise UsageError("--elect-preferred stands alone", "Use a command of its own.")
    if not names:
        raise UsageError("no topic is named", "Name those whose leaders shall be elected.")
    return Alteration("topic", tuple(dict.fromkeys(names)), (), (), elect_preferred=True)


def plan_election(scene: Scene, found: Connection, wanted: Alteration) -> Plan:
    """The plan by which first replicas lead. Raises UsageError for a topic that is not there."""
    instance, session = found.instance, scene.sessions[found.instance]
    identities = [Identity(instance, KIND, name) for name in wanted.names if name is not None]
    readings = session.read(identities)
    refuse_missing(readings)
    changes = [
        _make_election_change(scene, identity, readings[identity]) for identity in identities
    ]
    world = {instance: InstanceWorld(session.facts, readings)}
    providers = {instance: scene.space.providers[instance]}
    return plan_changes(
        changes, world, scene.planned, providers, Look(scene.sessions, world), make_header(scene)
    )


def _make_election_change(scene: Scene, identity: Identity, reading: Reading) -> Change:
    details = reading.details if isinstance(reading, Observed) else EMPTY
    first, ready = details.get("preferred") or EMPTY, details.get("ready") or ()

    def preferred(attributes: FrozenMap | None) -> FrozenMap | None:
        if attributes is None:
            return None
        leaders = {n: first[n] if n in ready else led for n, led in attributes["leaders"].items()}
        return attributes.with_items({"leaders": FrozenMap(leaders)})

    facts = scene.sessions[identity.instance].facts
    address = str(Address(identity.kind, "alter", identity.key))
    change = amend(identity, address, reading, scene.space.types[identity.kind], facts, preferred)
    return replace(
        change,
        before=_select_changing(change.before, change),
        after=_select_changing(change.after, change),
        notes=(*change.notes, *_list_notes(change, first, ready)),
    )


def _select_changing(attributes: FrozenMap | None, change: Change) -> FrozenMap | None:
    """The attributes with the leaders that change: the others are not looked at again."""
    if attributes is None:
        return None
    numbers = [item.path[1] for item in change.paths]
    leaders = FrozenMap({number: attributes["leaders"][number] for number in numbers})
    return attributes.with_items({"leaders": leaders})


def _list_notes(change: Change, first: FrozenMap, ready: tuple[str, ...]) -> tuple[str, ...]:
    if change.before is None:
        return ()
    said = (
        [f"preferred leaders of {render_count(len(change.paths), 'partition')}"]
        if change.paths
        else []
    )
    unable = [f"{number} (broker {first[number]})" for number in first if number not in ready]
    if unable:
        said.append(
            f"left out, because the first replica is not in sync and cannot lead: partition "
            f"{', '.join(unable)}"
        )
    return tuple(said)
