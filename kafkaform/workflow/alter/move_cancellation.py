"""`alter topic NAME --cancel-move`: the plan that stops a move and leaves replicas where they are.

Stopping is a move to where the replicas stand, so it is planned, shown, approved, logged and
recovered like any other change. It is the one `alter` that a managed topic allows: what is
declared stays declared, and the next plan shows the difference again.
"""

from __future__ import annotations

from msgspec.structs import replace

from ...core.change import Change
from ...core.errors import UsageError
from ...core.resource import Identity, InstanceWorld, Observed, Reading
from ...core.value import FrozenMap
from ...plan.amend import amend, plan_changes
from ...plan.model import Plan
from ...plan.observe import Look
from ...render.text import inline
from ..connection import Connection
from ..run import Scene
from .amendments import TOPIC, Alteration
from .planning import make_header, refuse_missing

STOPPED = "the move that runs is stopped; its replicas stay where they are"


def make_cancellation(names: tuple[str, ...], others: tuple[str, ...]) -> Alteration:
    """What `--cancel-move` asks for. Raises UsageError for other flags beside it."""
    if others:
        raise UsageError("--cancel-move stands alone", "Change configs with another command.")
    if not names:
        raise UsageError("no topic is named", "Name the topics whose moves shall stop.")
    return Alteration("topic", tuple(dict.fromkeys(names)), (), (), cancel_move=True)


def plan_cancellation(scene: Scene, found: Connection, wanted: Alteration) -> Plan:
    """The plan that stops the moves of these topics. Raises UsageError for a topic that is not
    there or of which no move runs."""
    instance, session = found.instance, scene.sessions[found.instance]
    identities = [Identity(instance, TOPIC, name) for name in wanted.names if name is not None]
    readings = session.read(identities)
    refuse_missing(readings)
    changes = [
        _make_cancellation_change(scene, identity, readings[identity]) for identity in identities
    ]
    world = {instance: InstanceWorld(session.facts, readings)}
    providers = {instance: scene.space.providers[instance]}
    return plan_changes(
        changes, world, scene.planned, providers, Look(scene.sessions, world), make_header(scene)
    )


def _make_cancellation_change(scene: Scene, identity: Identity, reading: Reading) -> Change:
    if isinstance(reading, Observed) and reading.moving is None:
        raise UsageError(
            f'no move of the topic "{inline(identity.key)}" runs',
            "`kafkaform plan` shows the moves that run.",
        )
    row = scene.ledger.state.objects.get(identity)
    session = scene.sessions[identity.instance]

    def back(attributes: FrozenMap | None) -> FrozenMap | None:
        if attributes is None or not isinstance(reading, Observed):
            return attributes
        names = (reading.moving or {}).keys()
        return attributes.with_items({name: reading.attributes[name] for name in names})

    address = row.owners[0] if row else f"{TOPIC}.{identity.key}"
    kind = scene.space.types[identity.kind]
    change = amend(identity, address, reading, kind, session.facts, back)
    kept = replace(change, notes=(*change.notes, STOPPED))
    if row is None:
        return kept
    return replace(
        kept,
        row_before=row.ownership,
        row_after=row.ownership,
        owner=row.owner,
        labels=row.labels,
        depends_on=row.depends_on,
    )
