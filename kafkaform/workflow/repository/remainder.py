"""The folders that a command is not about. An object that one of them records cannot belong to a
chosen folder, too.

What they only declare is not looked at: whoever applies it later finds it in the state of the
folder that was applied first. Their systems are not asked; states have the ids of theirs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.diagnostics import Diagnostics, has_errors
from ...core.errors import KafkaformError
from ...core.resource import Desired, FolderObjects, Identity
from ...provider.contract import Provider
from ...state.model import ListedObject, StateOutline
from ..configuration.evaluation import Inputs, read_configuration
from ..configuration.judgement import load_providers
from ..configuration.repository import Repository
from ..stores import FolderState, outline_listed_states
from .checking import FolderClaim, find_conflicts, list_claims
from .folders import OpenFolder, OpenRepository

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
