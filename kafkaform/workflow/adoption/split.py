"""`import --all --split folders`: put the objects of live clusters that nobody declares into the
folders of the repository whose boundaries they fit.

Everything is read before anything is decided: an object that some folder declares or records must
not get a block in another one. So a folder or a system that cannot be read is an error.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, chdir
from functools import partial
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from ...apply.secrets import resolve_instance_secrets
from ...core.diagnostics import Diagnostic, Severity
from ...core.errors import (
    ConfigurationError,
    ConnectError,
    Interrupted,
    KafkaformError,
    UsageError,
)
from ...core.parallel import map_parallel
from ...core.resource import Fence, Identity, Reading
from ...core.secret import Secret, keep_secrets, watched
from ...core.value import FrozenMap
from ...plan.rules import NO_FACTS, covers, find_breaches
from ...provider.contract import Provider, Session
from ..configuration.repository import RepositoryFolder
from ..configuration.repository_choice import FolderChoice, choose_folders
from ..configuration.repository_folders import ANY, expand_pattern
from ..generate.blocks import UndeclaredObject, fill_defaults
from ..generate.files import GeneratedConfiguration, Stock, generate_configuration
from ..import_all import (
    ImportFilter,
    Thing,
    find_known,
    read_tree,
    refuse_unknown_types,
    refuse_unread,
    take_declared,
    take_instance_stock,
)
from ..repository.checking import place_fault
from ..stores import STATE_VARIABLE, STORES_AT_ONCE
from ..workspace import Workspace, open_workspace


class FolderImport(Struct, frozen=True):
    """The objects that fit one folder."""

    folder: RepositoryFolder
    generated: GeneratedConfiguration
    terraform: bool
    """Whether its files are Terraform's."""


class SplitImport(Struct, frozen=True):
    """The objects of the clusters, by folder."""

    repository: Path
    folders: tuple[FolderImport, ...]
    """Those that get something, sorted by their paths."""
    left_out: tuple[str, ...]
    """What fits no folder or several, with the reasons, for people."""
    gaps: tuple[str, ...]
    """What is missing or can be missing, for people."""
    complete: bool
    """Every listing answered."""


class _Login(Struct, frozen=True):
    """A session that folders share."""

    provider: str
    config: FrozenMap
    secrets: Mapping[str, Secret]
    instance: str
    """The provider instance that it was folders as. The objects that it lists have this name."""
    session: Session


class _OpenFolder(Struct, frozen=True):
    """A folder, and how it reaches its systems."""

    folder: RepositoryFolder
    space: Workspace
    recorded: frozenset[Identity]
    """What its state has."""
    fence: Fence | None
    """Its boundary, made once for many objects."""
    logins: dict[str, _Login] = field(default_factory=dict)
    """By provider instance."""

    def find_instance(self, scope: str) -> str | None:
        """The provider instance that reaches a system."""
        pairs = self.logins.items()
        return next((name for name, login in pairs if login.session.facts.scope_id == scope), None)


def import_into_folders(
    path: Path | str = ".",
    *,
    types: Sequence[str] = (),
    match: Sequence[str] = (),
    name: str = "imported.kf.hcl",
    variables: Mapping[str, object] | Sequence[str | Path] = (),
    variable_files: Sequence[Path] = (),
    exclude: Sequence[str] = (),
    owned: bool = False,
) -> SplitImport:
    """Write configuration for every live object that no folder declares or records and that fits
    the boundary of exactly one folder which uses its system. It changes nothing.

    path: a folder of the repository; types, match, exclude, owned: as in `import_all`; name: of the
    file that each folder gets, in faults; variables, variable_files: as in `open_repository`.

    Raises UsageError, ConfigurationError with the faults of all folders, StorageError, and
    ConnectError if a system cannot be reached.
    """
    filters = ImportFilter(tuple(types), tuple(match), tuple(exclude), owned)
    choice = choose_folders(Path(path), True, (), None)
    if os.environ.get(STATE_VARIABLE):
        raise UsageError(
            f"{STATE_VARIABLE} is set, and would be the state of every folder",
            "Unset it: kafkaform.hcl or the folders say where their states are.",
        )
    if not any(folder.boundary for folder in choice.folders):
        raise UsageError(
            f"no folder of the repository {choice.repository.name} has a boundary",
            "Write boundary blocks into kafkaform.hcl: they say which names belong to which "
            "folder. docs/repository.md explains them.",
        )
    with ExitStack() as stack:
        # All folders add their secrets to this one set.
        stack.enter_context(keep_secrets(watched()))
        folders = _open_folders(choice, variables, variable_files)
        refuse_unknown_types(
            (p for item in folders for p in item.space.providers.values()), filters
        )
        logins = _open_logins(folders, stack)
        split = _split(choice.repository.path, folders, logins, filters, name)
    gaps = (*split.gaps, *_describe_empty_folders(choice))
    return replace(split, gaps=gaps)


def _describe_empty_folders(choice: FolderChoice) -> Iterator[str]:
    """The folders that a block with a boundary matches, and that have no configuration yet."""
    paths = {folder.path for folder in choice.folders}
    for group in choice.repository.groups:
        # `**` matches every folder of schemas and other files as well.
        if group.block.list_blocks("boundary") and ANY not in group.pattern:
            for path in sorted({*expand_pattern(choice.repository, group)} - paths):
                yield (
                    f"{path} has no configuration, so it gets nothing. A file main.kf.hcl that is "
                    "empty is enough."
                )


def _open_folders(
    choice: FolderChoice,
    variables: Mapping[str, object] | Sequence[str | Path],
    variable_files: Sequence[Path],
) -> list[_OpenFolder]:
    """Open every folder. Raises ConfigurationError with the faults of all that cannot be
    opened."""

    def open_space(folder: RepositoryFolder) -> Workspace | KafkaformError:
        path = choice.repository.path / folder.path
        try:
            if folder.faults:
                raise ConfigurationError(f"{folder.path} cannot be used", diagnostics=folder.faults)
            space = open_workspace(path, variables=variables, variable_files=variable_files)
            refuse_unread(space)
        except Interrupted:
            raise
        except KafkaformError as error:
            return error
        return space

    spaces = [open_space(folder) for folder in choice.folders]
    recorded = map_parallel(_read_recorded, spaces, STORES_AT_ONCE)
    folders: list[_OpenFolder] = []
    faults: list[Diagnostic] = []
    unread: list[str] = []
    for folder, space, identities in zip(choice.folders, spaces, recorded, strict=True):
        if isinstance(identities, KafkaformError):
            unread.append(folder.path)
            faults += (place_fault(choice.repository, folder, f) for f in identities.diagnostics)
        elif isinstance(space, Workspace):
            folders.append(_OpenFolder(folder, space, identities, folder.fence))
    if unread:
        summary = f"nothing was written, because nobody knows what {', '.join(unread)} declare"
        reason = Diagnostic(Severity.ERROR, summary, advice="Mend these folders first.")
        raise ConfigurationError(summary, diagnostics=(*faults, reason))
    return folders


def _read_recorded(
    space: Workspace | KafkaformError,
) -> frozenset[Identity] | KafkaformError:
    """What the state of a folder has, or why nobody knows that."""
    if isinstance(space, KafkaformError):
        return space
    try:
        outline = space.backend.outline()
    except KafkaformError as error:
        return error
    rows = () if outline is None else outline.objects
    return frozenset(Identity(row.instance, row.kind, row.key) for row in rows)


def _open_logins(folders: Sequence[_OpenFolder], stack: ExitStack) -> list[_Login]:
    """Open the sessions of all folders; those that log in to the same place alike share one. Raises
    ConnectError, ConfigurationError."""
    logins: list[_Login] = []
    for item in folders:
        configuration = item.space.configuration
        for instance, block in sorted(item.space.desired.providers.items()):
            secrets = resolve_instance_secrets(block, configuration.find_secrets)
            key = (block.name, block.config, secrets)
            login = next((k for k in logins if (k.provider, k.config, k.secrets) == key), None)
            if login is None:
                # Paths in a provider block are seen from its folder.
                with chdir(configuration.folder):
                    session = _open(item, instance, block.config, secrets)
                stack.callback(session.close)
                login = _Login(*key, instance, session)
                logins.append(login)
            configuration.asking.systems.note(
                block, login.session.facts.scope_id, login.session.words
            )
            item.logins[instance] = login
    return logins


def _open(
    item: _OpenFolder, instance: str, config: FrozenMap, secrets: Mapping[str, Secret]
) -> Session:
    try:
        return item.space.providers[instance].open(instance, config, secrets)
    except ConnectError as error:
        # One of the other folders could have the same system at another address.
        raise ConnectError(
            f"nothing was written, because {instance} of {item.folder.path} was not reached: "
            f"{error.message}",
            error.advice,
        ) from None


# ── which folder ────────────────────────────────────────────────────────────────────────


def _split(
    top: Path,
    folders: Sequence[_OpenFolder],
    logins: Sequence[_Login],
    filters: ImportFilter,
    name: str,
) -> SplitImport:
    recorded: set[Thing] = set()
    for item in folders:
        sessions = {instance: login.session for instance, login in item.logins.items()}
        recorded |= find_known(item.space, sessions, item.recorded)
    stock = Stock()
    chosen: dict[str, list[UndeclaredObject]] = defaultdict(list)
    reasons: dict[tuple[str, str], list[str]] = defaultdict(list)
    for login in logins:
        users = [item for item in folders if item.find_instance(login.session.facts.scope_id)]
        space = next(item.space for item in users if login in item.logins.values())
        instance_stock = take_instance_stock(
            space, login.session, login.instance, recorded, filters
        )
        stock += replace(instance_stock, undeclared=())
        for live in instance_stock.undeclared:
            fits, reason = _find_folders(users, space.providers[login.instance], live)
            if len(fits) == 1:
                instance = fits[0].find_instance(login.session.facts.scope_id)
                identity = replace(live.identity, instance=instance)
                chosen[fits[0].folder.path].append(replace(live, identity=identity))
            else:
                label = login.session.words.name_object(live.identity.kind, live.identity.key)
                reasons[live.identity.kind, reason].append(label)
    imports = (_generate(item, chosen[item.folder.path], filters, name) for item in folders)
    written = tuple(item for item in imports if item.generated.count)
    left_out = tuple(
        f"Left out: {len(names):,} of {kind}: {reason}: {', '.join(sorted(names))}."
        for (kind, reason), names in sorted(reasons.items())
    )
    return SplitImport(top, written, left_out, stock.gaps, not stock.failed)


def _find_folders(
    users: Sequence[_OpenFolder], provider: Provider, live: UndeclaredObject
) -> tuple[list[_OpenFolder], str]:
    """The folders whose boundary an object fits, and why these are not exactly one. users: the
    folders that use its system."""
    kind = provider.types[live.identity.kind]
    attributes = kind.canonical(fill_defaults(live.arguments, kind.schema), NO_FACTS)
    reaches = provider.list_reaches(kind.name, attributes)
    if not reaches or any(not reach.noun for reach in reaches):
        return [], "no boundary can cover them"
    fits, closest, reason = [], 0, "no boundary covers them"
    for item in users:
        fence = item.fence
        if fence is None:
            continue
        inside = sum(
            any(covers(allowed, reach.pattern) for allowed in fence.lists.get(reach.noun, ()))
            for reach in reaches
        )
        if inside == len(reaches) and kind.name not in fence.denied:
            fits.append(item)
        elif inside > closest:
            breach = next(find_breaches(fence, provider, kind.name, attributes))
            closest, reason = inside, breach.text
    if len(fits) > 1:
        paths = [item.folder.path for item in fits]
        reason = f"they fit {', '.join(paths[:-1])} and {paths[-1]}"
    return fits, reason


def _generate(
    item: _OpenFolder, objects: Sequence[UndeclaredObject], filters: ImportFilter, name: str
) -> FolderImport:
    """The configuration for one folder, which can be empty."""
    space, tree = item.space, read_tree(item.space)
    stock = Stock(undeclared=tuple(objects))
    for instance, login in item.logins.items():
        stock += take_declared(space, partial(_read, login), instance, item.recorded, filters)
    # A type that the boundary denies must not stand for several objects either, as a role does.
    denied = item.fence.denied if item.fence is not None else frozenset()
    types = {name: kind for name, kind in space.types.items() if name not in denied}
    generated = generate_configuration(
        space.configuration, tree, types, stock, name=name, documents=True
    )
    return FolderImport(item.folder, generated, tree.terraform)


def _read(login: _Login, ids: Sequence[Identity]) -> Mapping[Identity, Reading]:
    """Read objects of a folder, which can have another name for its provider instance."""
    own = {identity: replace(identity, instance=login.instance) for identity in ids}
    readings = login.session.read([*own.values()])
    return {identity: readings[item] for identity, item in own.items()}
