"""What the configuration of a folder gets from outside of it: from the repository file above it
(provider blocks, owners and labels, and its boundary), and from other folders, whose outputs answer
`data "kafkaform_outputs"`.

Of another folder, only what its state records is read, and its system is not asked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.canonical import digest
from ...core.diagnostics import Range
from ...core.errors import KafkaformError, StorageError, UsageError
from ...core.resource import Declared, Desired, ProviderConfig
from ...core.value import EMPTY, FrozenMap
from ...language.declare.top_level import declare_blocks
from ...language.desired import Tree
from ...syntax.nodes import Attribute, Block, Body, File, Label, Lit
from .files import BASE_VARIABLE, Base, choose_base_ref, find_root, open_base, read_folder
from .places import find_links
from .repository import FILES, LISTS, Cluster, RepositoryFolder
from .untrusted import is_forgeable

if TYPE_CHECKING:
    from ...provider.registry import Registry

_SHORT_DIGEST = 12
"""As many digits as the other entries of `Desired.sources` have."""


class RepositoryText(Struct, frozen=True):
    """Where the file of a repository is, and what counts instead of its text there."""

    path: Path
    content: bytes | None = None
    base: Base | None = None
    """The commit that the text comes from. None: what is on the disk counts."""


def find_repository(start: Path) -> Path | None:
    """The file of the repository that a folder is in; None if there is none.

    It is looked for upwards, up to the border of the file system and not above the user's own
    folder: what is there belongs to somebody else. Not up to `.git` only: a submodule has one of
    its own, and would take its folder out of the boundary. Of several files, the uppermost counts,
    because a pull request could add one further down. Raises UsageError for a folder with both
    forms of the file.
    """
    folder = Path(os.path.normpath(start.absolute()))
    files: list[Path] = []
    home, device = Path.home(), None
    for parent in (folder, *folder.parents):
        own_device = _find_device(parent)
        if own_device is None:  # an editor can have files of a folder that does not exist yet
            continue
        device = own_device if device is None else device
        if own_device != device:
            break
        present = [parent / name for name in FILES if os.path.lexists(parent / name)]
        if len(present) > 1:
            raise UsageError(
                f"{parent} contains {' and '.join(FILES)}", "Keep one of the two files."
            )
        files += present
        if parent == home:
            break
    return files[-1] if files else None


def find_top_file(folder: Path) -> Path | None:
    """The file of a repository whose top a folder is; None if it has a configuration of its own, or
    is no top. Raises UsageError as `find_repository` does."""
    file = find_repository(folder)
    if file is None or file.parent != folder or read_folder(find_root(folder), folder):
        return None
    return file


def find_base_repository(start: Path, environment: Mapping[str, str]) -> RepositoryText | None:
    """The file of the repository that a folder is in, as it is in the branch that a pull request is
    for: the pull request could change every boundary. None if there is none.

    Raises UsageError if only the checkout has the file and git does not know that branch.
    """
    ref = choose_base_ref(environment)
    base, file = open_base(start, ref), find_repository(start)
    if base is None:
        if file is None:
            return None
        raise UsageError(
            f"--untrusted reads {file.name} as it is in the branch that the pull request is for, "
            f"and git does not know {ref} here",
            f"Fetch it, such as `git fetch --depth=1 origin BRANCH:refs/remotes/origin/BRANCH`, or "
            f"name a commit with {BASE_VARIABLE}.",
        )
    if file is not None and not file.is_relative_to(base.top):
        return RepositoryText(file)  # above the checkout, where no pull request writes
    folder = start.resolve()
    above = [p for p in (folder, *folder.parents) if p.is_relative_to(base.top)]
    for parent in reversed(above):
        for name in FILES:
            if (content := base.read(parent / name)) is not None:
                return RepositoryText(parent / name, content, base)
    return None


def _find_device(folder: Path) -> int | None:
    try:
        return folder.stat().st_dev
    except OSError:
        return None


def find_place(
    folder: Path,
    registry: Registry | None = None,
    environment: Mapping[str, str] | None = None,
    buffers: Mapping[Path, bytes] | None = None,
) -> RepositoryFolder | None:
    """What the repository file above a folder says about it; None if there is none. Raises as
    `read_repository` and `find_folder` do.

    environment: for untrusted files, whose repository file is that of the branch that it names;
    buffers: files that are open in an editor.
    """
    if environment is not None:
        text = find_base_repository(folder, environment)
    else:
        file = find_repository(folder) or find_repository(folder.resolve())
        typed = None if file is None or not buffers else buffers.get(file)
        text = None if file is None else RepositoryText(file, typed)
    if text is None or text.path.parent == folder:
        return None
    from . import repository_file, repository_folders  # noqa: PLC0415  # most folders have no such file above them

    display_name = os.path.relpath(text.path, folder).replace(os.sep, "/")
    repository = repository_file.read_repository(
        text.path, display_name, registry=registry, content=text.content, base=text.base
    )
    return repository_folders.find_folder(repository, folder)


def refuse_top(folder: Path) -> None:
    """Raises UsageError for the top of a repository, with the number of its folders, and
    ConfigurationError for faults in its file."""
    file = find_repository(folder)
    if file is None or file.parent != folder:
        return
    from . import repository_file, repository_folders  # noqa: PLC0415  # as above

    repository = repository_file.read_repository(file)
    folders = repository_folders.list_folders(repository)
    example = f", such as {folders[0].path}" if folders else ""
    raise UsageError(
        f"this is the top of the repository {repository.name}, which has {len(folders):,} "
        f"folder{'' if len(folders) == 1 else 's'} with a configuration",
        f"Run the command in one of them{example}. `validate`, `plan`, `apply`, `destroy`, `test` "
        "and `fmt` take all of them with --all, some with --folder GLOB, or those that changed "
        "with --changed-since REF.",
    )


def add_providers(folder: RepositoryFolder, tree: Tree) -> Tree:
    """The files, with a provider block for each cluster that the folder uses and has no block for.

    The blocks keep their place in the repository file, so that a fault is shown there.
    """
    if not folder.uses or not tree.configuration:
        return tree
    own_blocks = declare_blocks(tree, ("provider",))[0].providers.values()
    own = {block.instance for block in own_blocks}
    blocks = tuple(
        _make_provider_block(instance, cluster)
        for instance, cluster in folder.uses.items()
        if instance not in own
    )
    if not blocks:
        return tree
    source = blocks[0].source
    file = File(source, 0, 0, Body(source, 0, 0, {}, blocks))
    return replace(tree, configuration=(*tree.configuration, file))


def list_shared_instances(folder: RepositoryFolder, tree: Tree) -> frozenset[str]:
    """The provider instances of the folder whose blocks are those of the repository file."""
    blocks = declare_blocks(tree, ("provider",))[0].providers.values()
    return frozenset(
        own.instance
        for own in blocks
        if own.instance in folder.uses
        and own.block.source is folder.uses[own.instance].block.source
    )


def _make_provider_block(instance: str, cluster: Cluster) -> Block:
    block, (name, _, alias) = cluster.block, instance.partition(".")
    attributes = {n: item for n, item in block.body.attributes.items() if n != "provider"}
    label = block.labels[0]
    if alias:
        node = Lit(label.source, label.start, label.end, alias)
        attributes["alias"] = Attribute(label.source, label.start, label.end, "alias", node)
    return replace(
        block,
        type="provider",
        labels=(Label(label.source, label.start, label.end, name),),
        body=replace(block.body, attributes=attributes),
    )


def add_defaults(folder: RepositoryFolder, desired: Desired) -> Desired:
    """What a configuration says, with the boundary of the folder, and with its owner and labels
    where blocks do not say them."""
    declared = desired.declared
    if folder.owner is not None or folder.labels:
        declared = tuple(_add_defaults(folder, declared))
    # A plan that was made with another boundary or cluster is a plan of another configuration.
    source = digest(outline_folder(folder))
    sources = FrozenMap({**desired.sources, FILES[0]: source[:_SHORT_DIGEST]})
    whole = digest((desired.digest, source))
    return replace(desired, declared=declared, fence=folder.fence, digest=whole, sources=sources)


def outline_folder(folder: RepositoryFolder) -> FrozenMap:
    """What the file says that shapes the plans of a folder, without lines and paths: a plan is the
    same wherever it is made."""
    boundary, uses = folder.boundary, folder.uses.items()
    lists = {name: getattr(boundary, name) for name in (*LISTS, "deny")} if boundary else None
    blocks = {instance: cluster.block for instance, cluster in uses}
    return FrozenMap(
        owner=folder.owner,
        labels=folder.labels,
        boundary=None if lists is None else FrozenMap(lists),
        uses=FrozenMap({n: b.source.text[b.start : b.end] for n, b in blocks.items()}),
    )


def _add_defaults(folder: RepositoryFolder, declared: Iterable[Declared]) -> Iterator[Declared]:
    for item in declared:
        owner = folder.owner if item.owner is None else item.owner
        yield replace(item, owner=owner, labels=folder.labels.with_items(item.labels))


LoadOutputs = Callable[[Path, str | None], FrozenMap | None]
"""Reads the outputs that the state of a folder records, in the form of the state; None if there is
none yet: (folder, where its state is, None for what the folder says itself). Raises
KafkaformError."""
_NAMED_FOLDER = "Write the path from this configuration's folder to the other one: ../platform."


class FolderOutputs(Struct, frozen=True):
    """Reads outputs for the data sources of one configuration, and remembers of which folders."""

    folder: Path = Path()
    """The folder of the configuration, absolute."""
    environment: Mapping[str, str] | None = None
    """For untrusted files, whose repository file is that of the branch that it names."""
    load: LoadOutputs | None = None
    """None: no state is read, as in a test."""
    values: Mapping[str, FrozenMap] = EMPTY
    """In a test, folder -> the values that it puts out."""
    read: dict[Path, Range] = field(default_factory=dict)
    """The folders that were asked for, with the place of the first data block that did so."""

    def answer(self, config: ProviderConfig, arguments: FrozenMap) -> FrozenMap:
        """The answer to a data block. Raises KafkaformError."""
        text = str(arguments["folder"])
        if self.load is None:
            return self._find_given(text)
        target = Path(os.path.normpath(self.folder / text))
        if target == self.folder or (target.exists() and target.samefile(self.folder)):
            raise UsageError(
                f"{text} is the folder of this configuration itself",
                "Refer to its resources, locals and variables directly.",
            )
        state = None if self.environment is None else self._find_reviewed_state(text, target)
        if not target.is_dir():
            raise UsageError(f"there is no folder {text}", _NAMED_FOLDER)
        self.read.setdefault(target, config.range)
        try:
            recorded = self.load(target, state)
        except KafkaformError as error:
            # The reader does not know the folder, and the fault is at the data block.
            raise type(error)(
                f"the state of {text} cannot be read: {error.diagnostics[0].summary}",
                error.diagnostics[0].advice,
            ) from None
        if recorded is None:
            raise StorageError(
                f"{text} has no state yet",
                "Its first apply records its outputs: run `kafkaform apply` there, or `kafkaform "
                "apply --all`, which applies that folder first.",
            )
        return FrozenMap(
            outputs=FrozenMap({n: o["value"] for n, o in recorded.items() if not o["sensitive"]}),
            sensitive=tuple(sorted(n for n, o in recorded.items() if o["sensitive"])),
        )

    def _find_given(self, text: str) -> FrozenMap:
        """What a test says that the folder puts out. Raises UsageError."""
        outputs = {os.path.normpath(name): values for name, values in self.values.items()}
        if os.path.normpath(text) not in outputs:
            raise UsageError(
                "a test reads no state of another folder",
                f'Add outputs "NAME" {{ … }} with folder = "{text}" and values = {{ … }} to the '
                "test file.",
            )
        return FrozenMap(outputs=outputs[os.path.normpath(text)], sensitive=())

    def _find_reviewed_state(self, text: str, target: Path) -> str:
        """Where the state of a folder is, as a file says that a pull request cannot change. Raises
        UsageError."""
        assert self.environment is not None
        repository = find_base_repository(self.folder, self.environment)
        if repository is None or not target.is_relative_to(repository.path.parent):
            raise UsageError(
                f"--untrusted: {text} is not below a {FILES[0]} that was reviewed",
                "Untrusted files could name any folder of this computer. Only the outputs of "
                f"folders of the same repository can be read, whose states {FILES[0]} names.",
            )
        for link in find_links(target):
            raise UsageError(f"--untrusted: {link} is a link", "Name the folder itself.")
        repository_folder = find_place(target, environment=self.environment)
        state = None if repository_folder is None else repository_folder.state
        if state is None or is_forgeable(state, self.folder):
            raise UsageError(
                f"--untrusted: the state of {text} can be forged",
                f"Let {FILES[0]} name a state for it that is outside of the checkout.",
            )
        return state
