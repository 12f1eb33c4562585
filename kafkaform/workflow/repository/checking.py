"""Check the configurations of many folders of a repository offline, each alone and all together. A
folder that cannot be evaluated fails with its reasons, and the others go on.

Two folders conflict if they have the same object: both declare it, or one declares it and the state
of the other one would make its next plan delete it. What the boundary of a folder refuses is no
conflict: it harms no other folder, and fails already.

Conflicts need no system: provider blocks with the same address, or from the same block of the
repository file, lead to the same one. Where the systems were asked, their ids count.

A command can be about some folders only. An object that another folder records cannot belong to one
of them, too. What the others only declare is not looked at: whoever applies it later finds it in
the state of the folder that was applied first. Their systems are not asked; states have the ids of
theirs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from os.path import normpath

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.address import parse_address
from ...core.canonical import digest
from ...core.change import Path
from ...core.diagnostics import Diagnostic, Diagnostics, Range, Severity, has_errors
from ...core.errors import ConfigurationError, KafkaformError, exit_code
from ...core.finding import Finding
from ...core.resource import Desired, Fence, FolderObjects, Identity, ProviderConfig
from ...core.value import EMPTY, FrozenMap, Value
from ...core.words import NEUTRAL
from ...language.declare.modules import is_git
from ...plan.claims import Claim, make_claims
from ...plan.diff import flatten, render_path
from ...plan.model import Options
from ...plan.rules import NO_FACTS, SHARED_BY_TWO, SHARED_UNEQUALLY, find_breaches
from ...provider.contract import Provider
from ...state.model import ListedObject, State, StateOutline
from ..configuration.evaluation import Inputs, read_configuration
from ..configuration.judgement import find_faults, load_providers
from ..configuration.repository import Repository, RepositoryFolder
from ..stores import FolderState, outline_listed_states
from .folders import OpenFolder, OpenRepository

NAMED = 3
"""How many other folders a message names."""


class FolderClaim(Struct, frozen=True):
    """One object that a folder declares, or that its state records and its next plan would
    delete."""

    folder: str
    """The path of the folder in its repository."""
    connection: str
    """Equal for provider blocks that lead to the same system, as far as the text says it. Empty
    without a block: then a state has recorded the id of the system."""
    scope_id: str
    """The id of the system; empty if nobody knows it."""
    identity: Identity
    container: str
    """The resource type of the whole object (`ResourceType.part_of`)."""
    provider: Provider | None
    """None if the folder has no block of it."""
    attributes: FrozenMap
    """What the block says, or what the state records."""
    fence: Fence | None
    """The boundary of the folder."""
    address: str
    location: str
    """The place of the folder's state."""
    range: Range | None = None
    """The block, as the folder sees it; None for an object that is only recorded."""
    shared: bool = False
    """The block says that other folders declare the object, too."""
    shareable: bool = False
    """Objects of its type can be shared."""
    values: Mapping[Path, Value] = field(default_factory=dict)
    """What the block wants, of a shared object."""

    @property
    def name(self) -> str:
        """What people call the object, with its type."""
        kind, key = self.identity.kind, self.identity.key
        words = NEUTRAL if self.provider is None else self.provider.words
        return f"{kind} {words.name_object(kind, key)}"

    @property
    def place(self) -> str:
        """The file and line of the block, seen from the top of the repository; for an object that
        is only recorded, the place of the state."""
        if self.range is None:
            return f"recorded in {self.location}"
        file = self.range.file
        return f"{file if is_git(file) else normpath(f'{self.folder}/{file}')}:{self.range.line}"

    @property
    def is_refused(self) -> bool:
        """True if the boundary of the folder refuses it, so that nothing is ever sent for it."""
        if self.fence is None:
            return False
        kind, attributes = self.identity.kind, self.attributes
        if self.provider is not None and self.range is not None:
            attributes = self.provider.types[kind].canonical(attributes, NO_FACTS)
        block_type = parse_address(self.address).type
        breaches = find_breaches(self.fence, self.provider, kind, attributes, block_type)
        return next(breaches, None) is not None


def list_claims(
    folder: RepositoryFolder,
    desired: Desired,
    providers: Mapping[str, Provider],
    state: State | None = None,
    location: str = "",
    scopes: Mapping[str, str] = EMPTY,
) -> Iterator[FolderClaim]:
    """The objects of one folder.

    providers, scopes: provider instance -> its provider, and the id of its system if that was
    asked; state: None if it was not read; location: the place of the state, for messages.
    """
    state = state or State("")
    bound = {**state.providers, **scopes}
    types = {n: kind for provider in providers.values() for n, kind in provider.types.items()}
    connections = {
        instance: _find_connection(folder, config, providers[instance].words.address)
        for instance, config in desired.providers.items()
    }
    for claim in make_claims(desired, state, types, Options())[0]:
        identity, blocks = claim.identity, claim.declared
        if identity.kind not in types or _is_let_go(claim):
            continue
        kind = types[identity.kind]
        shared = any(block.lifecycle.shared for block in blocks)
        yield FolderClaim(
            folder.path,
            connections.get(identity.instance, ""),
            str(bound.get(identity.instance, "")),
            identity,
            kind.part_of or identity.kind,
            providers.get(identity.instance),
            _get_attributes(claim),
            desired.fence,
            claim.address,
            location,
            blocks[0].range if blocks else None,
            shared,
            kind.shareable,
            flatten(kind.target(blocks[0].attributes, None, NO_FACTS, False)) if shared else {},
        )


def _get_attributes(claim: Claim) -> FrozenMap:
    if claim.declared:
        return claim.declared[0].attributes
    assert claim.row is not None  # a claim that nothing declares comes from a row
    return claim.row.attributes


def _is_let_go(claim: Claim) -> bool:
    """True if the next plan only forgets the object."""
    if claim.declared or claim.row is None:
        return False
    is_removed = claim.removed is not None and not claim.removed.destroy
    return is_removed or claim.row.protected == "shared"


def _find_connection(folder: RepositoryFolder, config: ProviderConfig, argument: str) -> str:
    """A text that is equal for provider blocks that lead to the same system. argument: the one that
    says where the system is."""
    if config.config.get(argument) is not None:
        return digest((config.name, config.config[argument]))
    used = folder.uses.get(config.instance)
    if used is not None and used.location == config.range:
        return used.name
    return digest((config.name, config.config))


# ── conflicts ───────────────────────────────────────────────────────────────────────────


def find_conflicts(claims: Iterable[FolderClaim]) -> Mapping[str, Diagnostics]:
    """Path of a folder -> its objects that another folder has, too. Each conflict is an error of
    all its folders, with the places of the others."""
    faults: dict[str, list[Diagnostic]] = {}
    for group in _group_claims(claims):
        # A boundary is judged where it matters only, which is hardly ever.
        if _has_rivals(group) and _has_rivals(sound := [c for c in group if not c.is_refused]):
            for claim in sound:
                rivals = [rival for rival in sound if rival.folder != claim.folder]
                finding = _compare_claims(claim, rivals)
                if finding is not None:
                    faults.setdefault(claim.folder, []).append(
                        Diagnostic(
                            Severity.ERROR,
                            f"{finding.text} [{finding.rule}]",
                            range=claim.range,
                            advice=finding.fix,
                            address=claim.address,
                        )
                    )
    return {folder: tuple(items) for folder, items in sorted(faults.items())}


def _has_rivals(group: Sequence[FolderClaim]) -> bool:
    """True if several folders have the object, and one of them declares it."""
    return len({claim.folder for claim in group}) > 1 and any(claim.range for claim in group)


def _group_claims(claims: Iterable[FolderClaim]) -> Iterable[Sequence[FolderClaim]]:
    """The claims of each object. What is part of another object belongs to it."""
    listed = [*claims]
    # A folder whose system did not answer uses the same connection as one whose system did.
    scopes = {c.connection: c.scope_id for c in listed if c.connection and c.scope_id}
    groups: dict[tuple[str, str, str], list[FolderClaim]] = {}
    for claim in listed:
        system = claim.scope_id or scopes.get(claim.connection, claim.connection)
        if system:
            key = (system, claim.container, claim.identity.key)
            groups.setdefault(key, []).append(claim)
    return groups.values()


def _compare_claims(claim: FolderClaim, rivals: Sequence[FolderClaim]) -> Finding | None:
    """What is wrong with a claim beside those of other folders; None if all share the object."""
    # Two folders that only record an object do not fight over it: both want it to go.
    rivals = rivals if claim.range is not None else [r for r in rivals if r.range is not None]
    if not rivals:
        return None
    if all(item.shared for item in (claim, *rivals)):
        return _compare_values(claim, rivals)
    verb = "is recorded in the state" if claim.range is None else "is declared here"
    places = _name_rivals(rivals)
    return SHARED_BY_TWO.find(
        f"{claim.name} {verb}, and another folder has it, too: {places}"
        if len(rivals) == 1
        else f"{claim.name} {verb}, and other folders have it, too: {places}",
        fix=_advise(claim, rivals),
    )


def _compare_values(claim: FolderClaim, rivals: Sequence[FolderClaim]) -> Finding | None:
    differing = [rival for rival in rivals if rival.values != claim.values]
    if not differing:
        return None
    values = differing[0].values
    paths = sorted(claim.values.keys() | values.keys())
    names = ", ".join(
        render_path(path) for path in paths if claim.values.get(path) != values.get(path)
    )
    return SHARED_UNEQUALLY.find(
        f"{claim.name} is shared, but with other values of {names} in: {_name_rivals(differing)}"
    )


def _name_rivals(rivals: Sequence[FolderClaim]) -> str:
    texts = [f"{rival.folder} ({rival.place})" for rival in rivals[:NAMED]]
    hidden = len(rivals) - NAMED
    return ", ".join(texts) + (f" and {hidden:,} more" if hidden > 0 else "")


def _advise(claim: FolderClaim, rivals: Sequence[FolderClaim]) -> str:
    loser = next((item for item in (claim, *rivals) if item.range is None), None)
    if loser is not None:
        return (
            f"Let {loser.folder} forget it: add a `removed` block with from = {loser.address} to "
            f"it, or run `kafkaform state rm '{loser.address}'` there."
        )
    if all(item.shareable for item in (claim, *rivals)):
        return "Keep one of the blocks, or write lifecycle { shared = true } in all of them."
    return "Keep one of the blocks."


class CheckedFolder(Struct, frozen=True):
    """What was found in one folder."""

    folder: RepositoryFolder
    faults: Diagnostics
    """With paths seen from the top of the repository."""
    objects: int = 0
    """How many objects are declared."""
    code: int = 0
    """The exit code of this folder alone."""
    claims: tuple[FolderClaim, ...] = ()
    """What it declares."""

    @property
    def errors(self) -> int:
        """How many of the faults are errors."""
        return sum(item.severity is Severity.ERROR for item in self.faults)


def check_folders(
    repository: Repository, folders: Sequence[RepositoryFolder], inputs: Inputs
) -> tuple[CheckedFolder, ...]:
    """Check these folders, and whether several of them declare the same object."""
    checked = [_check_folder(repository, folder, inputs) for folder in folders]
    conflicts = find_conflicts(claim for item in checked for claim in item.claims)
    return tuple(
        _add_faults(repository, item, conflicts.get(item.folder.path, ())) for item in checked
    )


def _check_folder(
    repository: Repository, folder: RepositoryFolder, inputs: Inputs
) -> CheckedFolder:
    empty = CheckedFolder(folder, ())
    try:
        if folder.faults:
            raise ConfigurationError(f"{folder.path} cannot be used", diagnostics=folder.faults)
        path = repository.path / folder.path
        configuration = read_configuration(path, inputs, repository_folder=folder)
        built = configuration.evaluate(offline=True)
    except KafkaformError as error:
        return replace(_add_faults(repository, empty, error.diagnostics), code=exit_code(error))
    providers = load_providers(configuration, built)
    return replace(
        _add_faults(repository, empty, find_faults(configuration, built)),
        objects=len(built.desired.declared),
        claims=tuple(list_claims(folder, built.desired, providers)),
    )


def _add_faults(
    repository: Repository, checked: CheckedFolder, faults: Diagnostics
) -> CheckedFolder:
    located = (place_fault(repository, checked.folder, fault) for fault in faults)
    code = max(checked.code, int(has_errors(faults)))
    return replace(checked, faults=(*checked.faults, *located), code=code)


def place_fault(repository: Repository, folder: RepositoryFolder, fault: Diagnostic) -> Diagnostic:
    """The fault with a path that is seen from the top of the repository."""
    location = fault.range
    if location is None or location.file == repository.file or is_git(location.file):
        return fault
    file = normpath(f"{folder.path}/{location.file}")
    return replace(fault, range=replace(location, file=file))


_NAMED = 3
"""How many folders a message names."""
_ObjectKey = tuple[str, str]
"""The id of a system, and the key of an object. Objects of several kinds can have the same one."""


class RemainingFolders(Struct, frozen=True):
    """What the states of folders record that were not chosen."""

    repository: Repository
    inputs: Inputs
    states: tuple[FolderState[StateOutline], ...] = ()
    claims: dict[str, tuple[FolderClaim, ...]] = field(default_factory=dict)
    """Path -> all objects of a folder, of those that had to be evaluated so far."""
    collected: dict[tuple[FolderObjects, frozenset[tuple[str, str]]], FolderObjects] = field(
        default_factory=dict
    )
    """What `add_objects` has made so far."""

    def find_conflicts(self, claims: Collection[FolderClaim]) -> Mapping[str, Diagnostics]:
        """Path of a chosen folder -> its objects that another folder has, too. claims: those of the
        chosen folders."""
        chosen = {claim.folder for claim in claims}
        conflicts = find_conflicts((*claims, *self.list_rivals(claims)))
        return {path: faults for path, faults in conflicts.items() if path in chosen}

    def list_rivals(self, claims: Collection[FolderClaim]) -> Iterator[FolderClaim]:
        """What these folders have of the objects that chosen folders claim. Only a folder that
        records one of them is evaluated: it may let the object go, and its block has a line."""
        claims_by_key = {
            (claim.scope_id, claim.identity.key): claim for claim in claims if claim.scope_id
        }
        for item in self.states:
            if not any(_is_claimed(row, key, claims_by_key) for key, row in _list_rows(item)):
                continue
            if item.folder.path not in self.claims:
                providers = {
                    row.instance: claim.provider
                    for key, row in _list_rows(item)
                    if (claim := claims_by_key.get(key)) and claim.provider
                }
                self.claims[item.folder.path] = tuple(self._list_claims(item, providers))
            for rival in self.claims[item.folder.path]:
                if (rival.scope_id, rival.identity.key) in claims_by_key:
                    yield rival

    def _list_claims(
        self, item: FolderState[StateOutline], providers: Mapping[str, Provider]
    ) -> Iterator[FolderClaim]:
        """The objects of a folder. providers: those of the objects that others claim, in case that
        the folder cannot be evaluated; then what it records counts."""
        folder, state = item.folder, item.state.decode() if item.state is not None else None
        desired = Desired((), {}, fence=folder.fence)
        try:
            path = self.repository.path / folder.path
            configuration = read_configuration(path, self.inputs, repository_folder=folder)
            built = configuration.evaluate(offline=True)
            if not has_errors(built.desired.diagnostics):
                desired, providers = built.desired, load_providers(configuration, built)
        except KafkaformError:
            pass  # whoever plans the folder says why
        return list_claims(folder, desired, providers, state, item.location)

    def add_objects(self, opened: OpenFolder, scopes: Mapping[str, str]) -> OpenFolder:
        """A chosen folder, which knows what these folders record in its systems. scopes: provider
        instance -> the id of its system."""
        space = opened.workspace
        if space is None:
            return opened
        # Folders of one system share the objects, and what is derived from them.
        key = space.desired.elsewhere, frozenset(scopes.items())
        if key not in self.collected:
            recorded = frozenset(self._list_identities(scopes))
            self.collected[key] = FolderObjects(key[0].identities | recorded)
        desired = replace(space.desired, elsewhere=self.collected[key])
        return replace(opened, workspace=replace(space, desired=desired))

    def _list_identities(self, scopes: Mapping[str, str]) -> Iterator[Identity]:
        """The recorded objects of these systems, as a folder with these instances names them."""
        instances = defaultdict[str, list[str]](list)
        for instance, scope_id in scopes.items():
            instances[scope_id].append(instance)
        for item in self.states:
            for (scope_id, key), row in _list_rows(item):
                for instance in instances.get(scope_id, ()):
                    yield Identity(instance, row.kind, key)

    def describe_unread(self) -> str:
        """Which folders could not be compared, and why; empty if all were."""
        unread = [item for item in self.states if item.error is not None]
        if not unread:
            return ""
        names = ", ".join(item.folder.path for item in unread[:_NAMED])
        suffix = f" and {len(unread) - _NAMED:,} more" if len(unread) > _NAMED else ""
        assert unread[0].error is not None
        return (
            f"Whether {names}{suffix} {'has' if len(unread) == 1 else 'have'} objects of these "
            f"folders is unknown: {unread[0].error.diagnostics[0].summary}"
        )


def load_remainder(repository: OpenRepository) -> RemainingFolders:
    """What the folders of the repository record that were not chosen."""
    choice, inputs = repository.choice, repository.inputs
    is_needed = any(item.workspace is not None for item in repository.folders)
    folders = choice.remainder if is_needed else ()
    states = outline_listed_states(choice.repository, folders, untrusted=inputs.untrusted)
    return RemainingFolders(choice.repository, inputs, states)


def _list_rows(item: FolderState[StateOutline]) -> Iterator[tuple[_ObjectKey, ListedObject]]:
    if item.state is not None:
        scopes = item.state.providers
        for row in item.state.objects:
            yield (scopes.get(row.instance, ""), row.key), row


def _is_claimed(
    row: ListedObject, key: _ObjectKey, claims_by_key: Mapping[_ObjectKey, FolderClaim]
) -> bool:
    claim = claims_by_key.get(key)
    # What both share can have equal values only, which `validate --all` compares.
    return claim is not None and not (claim.shared and row.protected == "shared")
