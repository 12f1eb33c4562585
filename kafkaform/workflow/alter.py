"""The plan of an `alter`: changes that the command line names instead of a configuration.

Its dry run, its log and its checks are those of every apply. In a configuration folder it uses the
lock and the log of the folder's state; elsewhere, each system has a log in the user's folder for
state. A rehearsal makes the plan without applying it; like `plan`, it takes no lock and writes
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from msgspec import field
from msgspec.structs import replace

from ..apply.ledger import Ledger
from ..apply.preflight import run_first_pass
from ..apply.stop import Stop
from ..audit.journal import Journal
from ..audit.records import render_time
from ..audit.sinks.local import LocalSink
from ..core.address import Address
from ..core.canonical import digest
from ..core.change import Change
from ..core.clock import SystemClock
from ..core.diagnostics import has_errors
from ..core.errors import Blocked, ConfigurationError, StorageError, UsageError
from ..core.resource import Desired, Identity, InstanceWorld, Reading
from ..core.secret import NoSecret, Secret, keep_secrets
from ..core.storage import make_private_folder
from ..core.value import SecretRef
from ..language.desired import load_tree
from ..plan.build import PlanHeader, amend, plan_changes
from ..plan.claims import block_reserved
from ..plan.model import Plan
from ..plan.observe import Look, hide_all_reported
from ..provider.commands import Alteration, Draft
from ..provider.contract import Secrets
from ..provider.registry import Registry
from ..render.text import inline
from ..state.backends.local import LocalBackend
from ..state.model import Held
from ..version import VERSION
from .configuration.evaluation import Configuration, DataAnswers, Inputs
from .configuration.places import find_state_home
from .configuration.policies import choose_policies, find_today
from .configuration.repository import Repository
from .configuration.repository_folders import list_folders
from .connection import Connection
from .judgement import refuse_unmatched
from .model import Announcer, ApplyRequest, Listener, Note, Scene, list_named
from .plan_choice import choose_plan
from .planning import judge_by_policies, refuse_dry_run, refuse_if_blocked
from .stores import AUDIT_FILE, STATE_FILE, load_listed_states, open_store
from .workspace import (
    Workspace,
    list_display_settings,
    make_first_state,
    make_run_id,
    open_sessions,
    read_log,
    refuse_lost_state,
)

UNKNOWN_OWNER = (
    "There is no configuration here, so it is unknown whether one manages this object. If one "
    "does, its next plan shows this change."
)
NOT_RECORDED = (
    "No state of the repository that could be read has this object. If a block declares it that "
    "was not applied yet, its next plan shows this change."
)
_SAFE_ID = re.compile(r"[\w-]{1,64}", re.ASCII)


# ── the plan ────────────────────────────────────────────────────────────────────────────


def plan_alteration(scene: Scene, connection: Connection, alteration: Alteration) -> Plan:
    """The plan of an `alter`. Raises UsageError for missing objects, Blocked for an object that the
    configuration manages."""
    instance, session = connection.instance, scene.sessions[connection.instance]
    identities = [Identity(instance, draft.kind, draft.key) for draft in alteration.drafts]
    free = [i for i, draft in zip(identities, alteration.drafts, strict=True) if not draft.managed]
    for identity in free:
        _refuse_managed(scene, identity)
    if free and connection.repository is not None:
        _refuse_recorded(scene, connection.repository, free)
        scene.announce(Note(NOT_RECORDED))
    elif free and connection.configuration is None:
        scene.announce(Note(UNKNOWN_OWNER))
    needs = [Identity(instance, kind, key) for kind, key in alteration.needs]
    # In one call: what must exist is mostly what changes.
    read = hide_all_reported(session.read([*needs, *identities]), scene.ledger.state)
    alteration.refuse({identity: read[identity] for identity in needs})
    readings = {identity: read[identity] for identity in identities}
    changes = [
        _make_change(scene, identity, readings[identity], draft)
        for identity, draft in zip(identities, alteration.drafts, strict=True)
    ]
    world = {instance: InstanceWorld(session.facts, readings)}
    providers = {instance: scene.space.providers[instance]}
    look, options = Look(scene.sessions, world), scene.ask.options
    addresses = [change.address for change in changes]
    refuse_unmatched(options.accept, addresses, f"The plan has {', '.join(addresses[:5])}.")
    lifted = scene.space.policies.list_lifted(find_today(scene.space.clock))
    plan = plan_changes(
        changes, world, scene.planned, providers, look, make_header(scene), options, tuple(lifted)
    )
    return judge_by_policies(plan, scene.space)


def _make_change(scene: Scene, identity: Identity, reading: Reading, draft: Draft) -> Change:
    """The change of one object. What the state records of a managed one stays as it is."""
    row = scene.ledger.state.objects.get(identity)
    address = draft.address or str(Address(identity.kind, "alter", identity.key))
    kind = scene.space.types[identity.kind]
    change = amend(
        identity,
        row.owners[0] if row else address,
        reading,
        kind,
        scene.sessions[identity.instance].facts,
        lambda attributes: draft.edit(attributes, reading),
        # A version of its own for each run: nobody can read whether the secret is the same already.
        f"alter-{scene.ledger.journal.run}" if draft.secret else None,
    )
    change = draft.finish(block_reserved(change, kind, reading, requested=True), reading)
    if row is None:
        return change
    return replace(
        change,
        row_before=row.ownership,
        row_after=row.ownership,
        owner=row.owner,
        labels=row.labels,
        park=row.park,
        depends_on=row.depends_on,
    )


def make_header(scene: Scene) -> PlanHeader:
    """The header of the plan."""
    head = scene.ledger.state.audit_head
    return PlanHeader(
        created=render_time(scene.space.clock.now()),
        kafkaform_version=VERSION,
        audit_head=f"{head.seq}/{head.hash}" if head else "",
        display=list_display_settings(scene.space),
    )


def _refuse_managed(scene: Scene, identity: Identity) -> None:
    """Raise Blocked for an object that the configuration manages."""
    # An apply would undo the change.
    alternatives, name = _find_alternatives(scene, identity), _name_object(scene, identity)
    for item in scene.space.desired.declared:
        if item.identity in alternatives:
            raise Blocked(
                f"{name} is managed: {item.address} ({item.range}) declares it",
                "Change the block and run `kafkaform apply`. Nothing was sent.",
            )
    for row in (
        scene.ledger.state.objects.get(identity_of_kind) for identity_of_kind in alternatives
    ):
        if row is not None:
            raise Blocked(
                f"{name} is managed: the state has it as {', '.join(row.owners)}",
                "Declare it and run `kafkaform apply`, or let it go with `kafkaform state rm`. "
                "Nothing was sent.",
            )


def _find_alternatives(scene: Scene, identity: Identity) -> set[Identity]:
    """The object as its container and as its parts have it: both would change one object."""
    types = scene.space.types
    whole = types[identity.kind].part_of or identity.kind
    kinds = (kind for kind, type_ in types.items() if whole in (kind, type_.part_of))
    return {replace(identity, kind=kind) for kind in kinds}


def _name_object(scene: Scene, identity: Identity) -> str:
    words = scene.sessions[identity.instance].words
    return inline(words.name_object(identity.kind, identity.key))


def _refuse_recorded(
    scene: Scene, repository: Repository, identities: Collection[Identity]
) -> None:
    """Raise Blocked for an object that the state of a folder of the repository has."""
    for folder, state, error, _ in load_listed_states(repository, list_folders(repository)):
        # The unreadable state of one folder must not stop every command, so the doubt is only told.
        if error is not None:
            reason = error.diagnostics[0].summary
            scene.announce(Note(f"Whether {folder.path} manages this is unknown: {reason}"))
        if state is None:
            continue
        for identity in identities:
            scope = scene.sessions[identity.instance].facts.scope_id
            instances = [name for name, system in state.providers.items() if system == scope]
            for item in _find_alternatives(scene, identity):
                rows = (state.objects.get(replace(item, instance=name)) for name in instances)
                if row := next(filter(None, rows), None):
                    raise Blocked(
                        f"{_name_object(scene, identity)} is managed: the state of {folder.path} "
                        f"has it as {', '.join(row.owners)}",
                        f"Change its block in {folder.path} and run `kafkaform apply` there. "
                        "Nothing was sent.",
                    )


# ── the state and the log ───────────────────────────────────────────────────────────────


class NoConfiguration(Configuration, frozen=True):
    """No configuration at all, for a system that the command line names."""

    _unshown = frozenset({"texts", "printed", "secrets"})

    secrets: Secrets = field(default_factory=dict)
    """Those that connecting needs."""

    def find_secrets(
        self, refs: Collection[SecretRef]
    ) -> Mapping[SecretRef, Secret | NoSecret | None]:
        own = {ref: self.secrets[str(ref)] for ref in refs if str(ref) in self.secrets}
        return {**Configuration.find_secrets(self, [ref for ref in refs if ref not in own]), **own}


def make_workspace(
    connection: Connection,
    scope_id: str,
    state_file: str | None,
    policies: Sequence[Path] = (),
    *,
    keep: bool = True,
) -> Workspace:
    """The state, the log and the policies of the configuration folder; without one, state and log
    of the system in the user's folder for state.

    scope_id: of the system that answered, which all further sessions must have; policies: further
    folders of policies, by default those that the environment names; keep: something will be
    written. Raises ConfigurationError, StorageError, and UsageError for a state file beside a
    system that flags name.
    """
    if connection.configuration is not None:
        configuration = connection.configuration
        configuration.asking.systems.note(connection.settings, scope_id, connection.provider.words)
        built = configuration.evaluate()
        configuration.asking.close()
        desired, registry = built.desired, configuration.registry
        if has_errors(desired.diagnostics):
            raise ConfigurationError(
                "the configuration has faults", diagnostics=desired.diagnostics
            )
        store = open_store(state_file)
        providers = {i: registry.load(p.name) for i, p in desired.providers.items()}
        return Workspace(
            configuration,
            desired,
            providers,
            store.backend,
            store.sink,
            SystemClock(),
            policies=choose_policies(configuration, built, policies),
        )
    if state_file is not None:
        system = connection.provider.words.system
        raise UsageError(
            f"--state goes with the configuration of a folder, and this {system} is named by flags",
            f"Leave it out: state and log of the {system} are in {locate_system_folder(scope_id)}.",
        )
    return _make_bare_workspace(connection, scope_id, policies, keep)


def _make_bare_workspace(
    connection: Connection, scope_id: str, policies: Sequence[Path], keep: bool
) -> Workspace:
    """The workspace of a system that flags name."""
    folder = make_system_folder(scope_id) if keep else locate_system_folder(scope_id)
    asking = DataAnswers(lambda _: connection.open())
    asking.systems.note(connection.settings, scope_id, connection.provider.words)
    bare = NoConfiguration(
        folder,
        folder,
        load_tree({}),
        Inputs(),
        Registry(),
        asking,
        secrets=connection.secrets,
    )
    # Like a configuration that declares nothing, so that all rules of an apply hold.
    desired = Desired((), {connection.instance: connection.settings}, digest="no configuration")
    return Workspace(
        bare,
        desired,
        {connection.instance: connection.provider},
        LocalBackend(folder / STATE_FILE),
        LocalSink(folder / AUDIT_FILE),
        SystemClock(),
        policies=choose_policies(bare, bare.evaluate(ask=False), policies),
    )


def locate_system_folder(scope_id: str) -> Path:
    """Where the folder with the log of a system is, or would be."""
    name = scope_id if _SAFE_ID.fullmatch(scope_id) else digest(scope_id)
    return find_state_home() / "clusters" / name


def make_system_folder(scope_id: str) -> Path:
    """Make the folder with the log of a system, if it is missing, so that only its owner can look
    into it. Raises StorageError."""
    folder = locate_system_folder(scope_id)
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return make_private_folder(folder)
    except OSError as error:
        raise StorageError(
            f"{folder.parent} cannot be written: {error.strerror}",
            "Set XDG_STATE_HOME to another folder.",
        ) from None


def rehearse(
    workspace: Workspace, ask: ApplyRequest, listener: Listener, *, validate: bool
) -> Plan:
    """Make the plan with `ask.make`. validate: make its dry run, too. Raises Blocked for a plan
    that cannot be applied, DryRunRefused with all refused steps."""
    announce = Announcer(listener)
    with keep_secrets(workspace.known_secrets):
        loaded = workspace.backend.load()
        state = loaded.state or make_first_state(workspace.sink)
        index = read_log(workspace.sink, loaded.state)
        refuse_lost_state(loaded.state, index, workspace)
        journal = Journal(
            workspace.sink, workspace.clock, make_run_id(), workspace.actor, state.lineage
        )
        ledger = Ledger(workspace.backend, journal, state, loaded.version, index.obligations)
        needed = list_named(ask) or None
        with open_sessions(workspace, state, index, needed, ask.further) as reached:
            lineage = state.lineage
            scene = Scene(workspace, ask, announce, Stop(), reached, ledger, index, lineage, Held())
            plan = choose_plan(scene).plan
            if validate:
                verdicts = run_first_pass(plan, (), reached.sessions, workspace.clock, announce)
                refuse_dry_run(workspace, plan, verdicts, announce)
        refuse_if_blocked(plan, (), leaves_out=False)
        return plan
