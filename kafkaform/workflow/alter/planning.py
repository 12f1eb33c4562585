"""KIP-248's alter: from names and configs on the command line to a plan of their changes.

The plan, its dry run, its log and its checks are those of every apply; only what is wanted comes
from flags. In a configuration folder that is its state's lock and log; else a log for each
cluster, below the user's folder for state.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import field
from msgspec.structs import replace

from ...audit.event import render_time
from ...audit.sinks.local import LocalSink
from ...core.address import Address
from ...core.canonical import digest
from ...core.change import Change
from ...core.clock import SystemClock
from ...core.diagnostics import has_errors, suggest
from ...core.errors import Blocked, ConfigurationError, StorageError, UsageError
from ...core.resource import Absent, Desired, Hidden, Identity, InstanceWorld
from ...core.secret import Secret
from ...core.value import EMPTY, SecretRef
from ...language.desired import load_tree
from ...plan.amend import amend, plan_changes
from ...plan.instances import PlanHeader
from ...plan.model import Plan
from ...plan.observe import Look
from ...provider.contract import Secrets
from ...provider.registry import Registry
from ...render.text import inline
from ...state.backends.files import make_private_folder
from ...state.backends.local import LocalBackend
from ...version import VERSION
from ..configuration.data_answers import DataAnswers
from ..configuration.evaluation import Configuration, Inputs
from ..configuration.places import find_state_home
from ..connection import Connection
from ..events import Note
from ..run import Scene
from ..stores import AUDIT_FILE, STATE_FILE, open_store
from ..workspace import Workspace, list_display_settings
from .amendments import DRAFTS, TOPIC, TOPIC_CONFIG, Alteration, Draft

UNKNOWN_OWNER = (
    "No configuration is at hand, so nobody can say whether one manages this. If one does, its "
    "next plan shows what is changed here."
)
_SAFE_ID = re.compile(r"[\w-]{1,64}", re.ASCII)


# ── the plan ────────────────────────────────────────────────────────────────────────────


def plan_alteration(scene: Scene, found: Connection, wanted: Alteration) -> Plan:
    """The plan of an `alter`. Raises UsageError for what is not there, Blocked for an object that
    the configuration manages."""
    drafts = [draft for name in wanted.names for draft in DRAFTS[wanted.entity](wanted, name)]
    instance, session = found.instance, scene.sessions[found.instance]
    identities = [Identity(instance, draft.kind, draft.key) for draft in drafts]
    for identity in identities:
        _refuse_managed(scene, identity)
    if found.configuration is None:
        scene.announce(Note(UNKNOWN_OWNER))
    for topic in (i.key for i in identities if i.kind in (TOPIC, TOPIC_CONFIG)):
        refuse_missing(session.read([Identity(instance, TOPIC, topic)]))
    readings = session.read(identities)
    version = f"alter-{scene.ledger.journal.run}"
    changes = [
        _note_idle_keys(
            amend(
                identity,
                str(Address(identity.kind, "alter", identity.key)),
                readings[identity],
                scene.space.types[identity.kind],
                session.facts,
                draft.edit,
                version if draft.secret else None,
            ),
            draft,
        )
        for identity, draft in zip(identities, drafts, strict=True)
    ]
    world = {instance: InstanceWorld(session.facts, readings)}
    providers = {instance: scene.space.providers[instance]}
    look = Look(scene.sessions, world)
    return plan_changes(changes, world, scene.planned, providers, look, make_header(scene))


def make_header(scene: Scene) -> PlanHeader:
    """What the plan of an `alter` says about itself."""
    head = scene.ledger.state.audit_head
    return PlanHeader(
        created=render_time(scene.space.clock.now()),
        kafkaform_version=VERSION,
        audit_head=f"{head.seq}/{head.hash}" if head else "",
        display=list_display_settings(scene.space),
    )


def _refuse_managed(scene: Scene, identity: Identity) -> None:
    """Raises Blocked: two hands on one object undo each other."""
    same = {identity}
    if identity.kind in (TOPIC, TOPIC_CONFIG):
        same = {replace(identity, kind=TOPIC), replace(identity, kind=TOPIC_CONFIG)}
    for item in scene.space.desired.declared:
        if item.identity in same:
            raise Blocked(
                f"{inline(identity.key)} is managed: {item.address} ({item.range}) declares it",
                "Change the block and run `kafkaform apply`. Nothing was sent.",
            )
    for row in (scene.ledger.state.objects.get(one) for one in same):
        if row is not None:
            raise Blocked(
                f"{inline(identity.key)} is managed: the state has it as {', '.join(row.owners)}",
                "Declare it and run `kafkaform apply`, or let it go with `kafkaform state rm`. "
                "Nothing was sent.",
            )


def refuse_missing(readings: Mapping[Identity, object]) -> None:
    """Raises UsageError: alter never creates a topic."""
    for identity, reading in readings.items():
        if isinstance(reading, Absent):
            raise UsageError(
                f'there is no topic "{inline(identity.key)}"',
                "Correct the name; `kafkaform describe topics` lists those that there are.",
            )
        if isinstance(reading, Hidden):
            raise UsageError(
                f'topic "{inline(identity.key)}" is not there, or may not be seen: '
                f"{reading.right} is missing",
                f"Grant {reading.right}, or run as a principal that has it.",
            )


def _note_idle_keys(change: Change, draft: Draft) -> Change:
    """The change with a word about keys that were not there to be removed."""
    before = change.before or EMPTY
    there = {*(before.get("config") or EMPTY), *(before.get("secret_keys") or EMPTY)}
    idle = [key for key in draft.gone if key not in there and change.blocked is None]
    notes = tuple(
        f"{inline(key)} is not set here, so there is nothing to remove. "
        f"{suggest(key, there)}".rstrip()
        for key in idle
    )
    return replace(change, notes=(*change.notes, *notes))


# ── the state and the log ───────────────────────────────────────────────────────────────


class NoConfiguration(Configuration, frozen=True):
    """No configuration at all, for a cluster that the command line names. secrets: those that
    connecting needs."""

    _unshown = frozenset({"texts", "secrets"})

    secrets: Secrets = field(default_factory=dict)

    def find_secret(self, ref: SecretRef) -> Secret | None:
        return self.secrets.get(str(ref)) or Configuration.find_secret(self, ref)


def make_workspace(
    found: Connection, cluster_id: str, state_file: str | None, *, keep: bool = True
) -> Workspace:
    """The folder's state and log, or those of the cluster below the user's folder for state.
    cluster_id: who answered; the sessions to come must have the same; keep: something will be
    written there. Raises ConfigurationError, StorageError, and UsageError for a state file beside a
    cluster that flags name."""
    if found.configuration is not None:
        found.configuration.asking.systems.note(found.settings, cluster_id, found.provider.words)
        desired = found.configuration.evaluate().desired
        found.configuration.asking.close()
        if has_errors(desired.diagnostics):
            raise ConfigurationError(
                "the configuration has faults", diagnostics=desired.diagnostics
            )
        store = open_store(state_file)
        registry = found.configuration.registry
        providers = {i: registry.load(p.name) for i, p in desired.providers.items()}
        configuration = found.configuration
        return Workspace(
            configuration, desired, providers, store.backend, store.sink, SystemClock()
        )
    if state_file is not None:
        raise UsageError(
            "--state goes with the configuration of a folder, and this cluster is named by flags",
            "Leave it out: state and log of the cluster are in "
            f"{locate_cluster_folder(cluster_id)}.",
        )
    folder = make_cluster_folder(cluster_id) if keep else locate_cluster_folder(cluster_id)
    asking = DataAnswers(lambda _: found.open())
    asking.systems.note(found.settings, cluster_id, found.provider.words)
    bare = NoConfiguration(
        folder,
        folder,
        load_tree({}),
        Inputs(),
        Registry(),
        asking,
        secrets=found.secrets,
    )
    desired = Desired((), {found.instance: found.settings}, digest="no configuration")
    return Workspace(
        bare,
        desired,
        {found.instance: found.provider},
        LocalBackend(folder / STATE_FILE),
        LocalSink(folder / AUDIT_FILE),
        SystemClock(),
    )


def locate_cluster_folder(cluster_id: str) -> Path:
    """Where the folder of a cluster's log is, or would be."""
    name = cluster_id if _SAFE_ID.fullmatch(cluster_id) else digest(cluster_id)
    return find_state_home() / "clusters" / name


def make_cluster_folder(cluster_id: str) -> Path:
    """The folder of a cluster's log, made if it is not there; others may not look into
    it. Raises StorageError."""
    folder = locate_cluster_folder(cluster_id)
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return make_private_folder(folder)
    except OSError as error:
        raise StorageError(
            f"{folder.parent} cannot be written: {error.strerror}",
            "Set XDG_STATE_HOME to another folder.",
        ) from None
