"""Read kafkaform.hcl. All faults are reported at once, each with its location.

Expressions are those of configurations. They see `folder.path`, `folder.name` and `cluster.NAME`,
and no variables: a pull request's pipeline could set those.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from operator import attrgetter
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Diagnostics, Range, has_errors
from ...core.errors import ConfigurationError, UsageError
from ...core.schema import ObjectSchema
from ...core.storage import read_named_file
from ...core.value import EMPTY, FrozenMap
from ...language.declare.blocks import (
    NAME,
    Header,
    ProviderBlock,
    Spot,
    find_single,
    render_title,
)
from ...language.declare.json_bodies import JsonForm, parse_json_file
from ...language.evaluate.arguments import compile_arguments, evaluate_arguments
from ...language.evaluate.providers import ProviderInfo, configure_provider
from ...language.expressions.code import Context, Env
from ...language.expressions.compilation import make_context
from ...language.expressions.references import Fixed, Space
from ...language.functions import FunctionTable
from ...language.functions.files import make_confined_reader
from ...language.values.faults import Poisoned, make_error, suggest_near
from ...language.values.value import ObjectVal
from ...provider.registry import Registry
from ...syntax.nodes import FILE_BYTES, Block, File, Lit
from ...syntax.parse import parse
from .files import Base, find_root
from .instances import complete_provider
from .repository import (
    BOUNDARY,
    CLUSTER_ACLS,
    LISTS,
    SCHEMAS,
    Boundary,
    Cluster,
    FolderGroup,
    Repository,
    RepositoryFolder,
    find_pattern_fault,
)

TYPES = ("repository", "cluster", "folders")
_JSON = JsonForm(blocks={"repository": "plain", "cluster": "provider", "folders": "folders"})
_SAMPLE = "name"
"""The folder that `*` stands for when a block is checked without any folder."""


class Scope(Struct, frozen=True):
    """Where the expressions of the file are evaluated, and the faults so far."""

    context: Context
    clusters: Mapping[str, Cluster]
    owner: str = ""
    """Who can change the file, for messages."""
    faults: list[Diagnostic] = field(default_factory=list)

    def report(self, fault: Diagnostic) -> None:
        self.faults.append(fault)

    def make_env(self, path: str = "") -> Env:
        """The names that expressions see. path: of the folder; empty where there is none."""
        roots: dict[str, Fixed | Space] = {}
        if path:
            name = path.rpartition("/")[2]
            roots["folder"] = Fixed(ObjectVal({"path": path, "name": name}))
            roots["cluster"] = Space("cluster", {name: name for name in self.clusters})
        return Env(roots, {}, self.context.budget)


def make_scope(folder: Path, clusters: Mapping[str, Cluster], owner: str | None = None) -> Scope:
    """A scope for the file of this folder. owner: of the repository."""
    read = make_confined_reader(find_root(folder), folder)
    owner_name = owner or "whoever can change the repository file"
    return Scope(make_context(FunctionTable(read)), clusters, owner_name)


def read_repository(
    path: Path,
    display_name: str = "",
    *,
    registry: Registry | None = None,
    content: bytes | None = None,
    base: Base | None = None,
) -> Repository:
    """Read the file. display_name: its name in messages, by default the last part of the path;
    content: what counts instead of the file; base: the commit that it comes from.

    Raises UsageError if it cannot be read, ConfigurationError with every fault in it.
    """
    folder, display_name = Path(os.path.normpath(path.absolute())).parent, display_name or path.name
    content = _read_content(path, display_name) if content is None else content
    file, faults = parse_repository(content, display_name)
    registry = registry or Registry()
    clusters: dict[str, Cluster] = {}
    scope = make_scope(folder, clusters)
    scope.faults.extend(_find_outside_faults(file))
    # Clusters come first: folders refer to them.
    for block in _select_blocks(file, "cluster"):
        cluster = _read_cluster(block, clusters, registry, scope)
        if cluster is not None:
            clusters[cluster.name] = cluster
    # What was not parsed is not missing.
    head = _read_head(file, scope, complete=not has_errors(faults))
    groups: dict[str, FolderGroup] = {}
    for block in _select_blocks(file, "folders"):
        group = _read_group(block, groups, registry, scope)
        if group is not None:
            groups[group.pattern] = group
    diagnostics = (*faults, *sorted(scope.faults, key=attrgetter("position")))
    if has_errors(diagnostics):
        raise ConfigurationError(f"{display_name} has faults", diagnostics=diagnostics)
    named = tuple(groups.values())
    return Repository(folder, head["name"], clusters, named, display_name, head.get("owner"), base)


def parse_repository(content: bytes, name: str) -> tuple[File, Diagnostics]:
    """Parse the file in HCL or JSON, by its name."""
    return parse_json_file(content, name, _JSON) if name.endswith(".json") else parse(content, name)


def _read_content(path: Path, display_name: str) -> bytes:
    # A link would put the file, and with it every boundary, where another repository can change it.
    if path.is_symlink():
        raise UsageError(
            f"{display_name} is a link", "Put the file itself at the top of the repository."
        )
    try:
        return read_named_file(path, FILE_BYTES)
    except OSError as fault:
        raise UsageError(f"{display_name} cannot be read: {fault.strerror}") from None


def _select_blocks(file: File, kind: str) -> Iterator[Block]:
    return (block for block in file.body.blocks if block.type == kind)


def _find_outside_faults(file: File) -> Iterator[Diagnostic]:
    for item in file.body.attributes.values():
        yield make_error(item, f'"{item.name}" is outside of any block')
    for block in file.body.blocks:
        if block.type not in TYPES:
            detail = f"The blocks are {', '.join(TYPES)}."
            advice = suggest_near(block.type, TYPES) or "Write it into a folder's own files."
            summary = f'There are no "{block.type}" blocks in this file'
            yield make_error(Header(block), summary, detail, advice)


def _find_label_fault(block: Block, noun: str) -> Diagnostic | None:
    count = 1 if noun else 0
    if len(block.labels) == count:
        return None
    label = f' "{noun}"' if noun else ""
    return make_error(
        Header(block),
        f"A {block.type} block has {f'one label, the {noun}' if noun else 'no labels'}",
        advice=f"Write {block.type}{label} {{ … }}.",
    )


def _make_twice_fault(block: Block, location: Range) -> Diagnostic:
    return make_error(
        Header(block),
        f"{render_title(block)} occurs twice",
        f"The first one is at {location}.",
        "Rename or remove one of the two.",
    )


def _read_head(file: File, scope: Scope, *, complete: bool) -> FrozenMap:
    """The arguments of the `repository` block; none after faults."""
    blocks = [*_select_blocks(file, "repository")]
    if not blocks:
        if complete:
            source = file.body.source
            advice = 'Write repository { name = "…" }.'
            spot = Spot(source.range(0, 0), source.excerpt(0))
            scope.report(make_error(spot, "The file has no repository block", advice=advice))
        return EMPTY
    for block in blocks[1:]:
        scope.report(_make_twice_fault(block, Header(blocks[0]).range))
    fault_of_labels = _find_label_fault(blocks[0], "")
    if fault_of_labels is not None:
        scope.report(fault_of_labels)
        return EMPTY
    values = evaluate_block(blocks[0], SCHEMAS["repository"], scope, scope.make_env())
    return EMPTY if values is None else values


def evaluate_block(
    block: Block, schema: ObjectSchema, scope: Scope, env: Env, inner: tuple[str, ...] = ()
) -> FrozenMap | None:
    """The values of a block; None after faults, which are reported. inner: the types of nested
    blocks that are read elsewhere."""
    title = render_title(block)
    arguments = compile_arguments(
        block.body, schema, scope.context, Header(block), title, scope.report, (), inner
    )
    try:
        return evaluate_arguments(arguments, env, scope.report, title)
    except Poisoned:
        # Its fault is reported already.
        return None


# ── clusters ────────────────────────────────────────────────────────────────────────────


def _read_cluster(
    block: Block, clusters: Mapping[str, Cluster], registry: Registry, scope: Scope
) -> Cluster | None:
    fault = _find_label_fault(block, "name")
    if fault is None and not NAME.fullmatch(block.labels[0].text):
        fault = make_error(
            block.labels[0],
            f'"{block.labels[0].text}" is not a name',
            "A name is a letter followed by letters, digits, _ and -.",
        )
    if fault is None and block.labels[0].text in clusters:
        fault = _make_twice_fault(block, clusters[block.labels[0].text].location)
    node = block.get_argument("provider")
    provider = node.value if isinstance(node, Lit) else None
    if fault is None and not isinstance(provider, str):
        fault = make_error(
            node or Header(block),
            f"{render_title(block)} names its provider as a plain string",
            advice='Write provider = "kafka".',
        )
    if fault is not None or not isinstance(provider, str):
        scope.faults.extend([fault] if fault is not None else [])
        return None
    try:
        loaded = registry.load(provider)
    except ConfigurationError as error:
        scope.report(make_error(node or Header(block), error.message, "", error.advice))
        return None
    name, inner = block.labels[0].text, drop_argument(block, "provider")
    settings = configure_provider(
        ProviderBlock(provider, name, inner),
        name,
        # What is missing can come from the environment of whoever connects. So the arguments are
        # checked together in each folder that uses them, which knows the names of its variables.
        complete_provider(ProviderInfo(loaded.config), {}, offline=True),
        scope.context,
        scope.make_env(),
        scope.report,
    )
    if settings is None:
        return None
    return Cluster(name, provider, settings.config, Header(block).range, block)


def drop_argument(block: Block, name: str) -> Block:
    """The block without an argument."""
    attributes = {key: item for key, item in block.body.attributes.items() if key != name}
    return replace(block, body=replace(block.body, attributes=attributes))


# ── folders ─────────────────────────────────────────────────────────────────────────────


def _read_group(
    block: Block, groups: Mapping[str, FolderGroup], registry: Registry, scope: Scope
) -> FolderGroup | None:
    fault = _find_label_fault(block, "pattern of folders")
    pattern = block.labels[0].text if fault is None else ""
    if fault is None and (reason := find_pattern_fault(pattern)):
        fault = make_error(
            block.labels[0], f'"{pattern}" names no folders: {reason}', "", 'Write "teams/*".'
        )
    if fault is None and pattern in groups:
        fault = _make_twice_fault(block, groups[pattern].location)
    if fault is not None:
        scope.report(fault)
        return None
    group = FolderGroup(pattern, Header(block).range, block)
    # A block without any folder is checked, too.
    sample = pattern.replace("**", _SAMPLE).replace("*", _SAMPLE)
    folder = evaluate_folder(group, sample, Path(), scope)
    state = None if folder is None or "*" not in pattern else folder.state
    if state is not None and state == _evaluate_state(group, f"{sample}-2", scope):
        node = block.body.attributes["state"].value
        summary = "All folders of the block would have the same state"
        scope.report(make_error(node, summary, advice="Write ${folder.path} into it."))
    if folder is not None and folder.boundary is not None:
        scope.faults.extend(_find_deny_faults(block, folder.boundary, registry))
    return group


def _evaluate_state(group: FolderGroup, path: str, scope: Scope) -> str | None:
    folder = evaluate_folder(group, path, Path(), replace(scope, faults=[]))
    return None if folder is None else folder.state


def evaluate_folder(
    group: FolderGroup, path: str, repository: Path, scope: Scope
) -> RepositoryFolder | None:
    """What a `folders` block says about a folder; None after faults, which are reported.

    path: of the folder, seen from the repository.
    """
    block, env = group.block, scope.make_env(path)
    before = len(scope.faults)
    values = evaluate_block(block, SCHEMAS["folders"], scope, env, ("boundary",))
    boundary, faults = find_single(block, "boundary")
    scope.faults.extend(faults)
    names = None if boundary is None else evaluate_block(boundary, BOUNDARY, scope, env)
    uses: dict[str, Cluster] = {}
    for instance, name in ((values and values["uses"]) or EMPTY).items():
        fault = _find_use_fault(block, instance, name, scope.clusters)
        if fault is not None:
            scope.report(fault)
        else:
            uses[instance] = scope.clusters[name]
    if values is None or len(scope.faults) > before:
        return None
    return RepositoryFolder(
        path,
        path.rpartition("/")[2],
        group,
        _resolve_place(values["state"], repository),
        values["owner"],
        values["labels"] or EMPTY,
        uses,
        tuple(repository / folder for folder in values["policies"] or ()),
        _make_boundary(boundary, names, scope.owner),
    )


def _resolve_place(state: str | None, repository: Path) -> str | None:
    return state if state is None or "://" in state else str(repository / state)


def _make_boundary(block: Block | None, values: FrozenMap | None, owner: str) -> Boundary | None:
    if block is None or values is None:
        return None
    lists = {name: tuple(values[name] or ()) for name in (*LISTS, "deny")}
    return Boundary(Header(block).range, **lists, owner=owner)


def _find_use_fault(
    block: Block, instance: str, name: str, clusters: Mapping[str, Cluster]
) -> Diagnostic | None:
    node = block.body.attributes["uses"].value
    if name not in clusters:
        advice = suggest_near(name, clusters) or "Write cluster.NAME."
        return make_error(node, f'There is no cluster "{name}"', advice=advice)
    provider, _, alias = instance.partition(".")
    if provider != clusters[name].provider or (alias and not NAME.fullmatch(alias)):
        return make_error(
            node,
            f'"{instance}" is no instance of the provider {clusters[name].provider}, which '
            f"cluster.{name} has",
            advice=f"Write {clusters[name].provider} = cluster.{name}, or "
            f'"{clusters[name].provider}.ALIAS" = cluster.{name}.',
        )
    return None


def _find_deny_faults(block: Block, boundary: Boundary, registry: Registry) -> Iterator[Diagnostic]:
    types = {name for p in registry.built_in for name in registry.load(p).types}
    unknown = [word for word in boundary.deny if word not in (CLUSTER_ACLS, *types)]
    if not unknown:
        return
    types |= {name for p in registry.names for name in registry.load(p).types}
    (inner,) = block.list_blocks("boundary")
    for word in unknown:
        if word not in types:
            yield make_error(
                inner.body.attributes["deny"].value,
                f'There is no resource type "{word}"',
                advice=suggest_near(word, (CLUSTER_ACLS, *types))
                or f'Write a resource type such as kafka_cluster_config, or "{CLUSTER_ACLS}".',
            )
