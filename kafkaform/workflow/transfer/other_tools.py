"""Configuration of other tools. `import --from` reads it, and writes ours for its objects. `export`
writes what this folder manages in its form, and with `export acls --for folders GLOB` the rights
that a login of each folder needs for what its boundary covers.

Nothing connects for `--from`. The import blocks name exactly the objects of the files, so that the
next plan never creates one. The rights for folders need nothing but the repository file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Severity, has_errors, suggest
from ...core.errors import ConfigurationError, UsageError
from ...core.resource import Desired, Identity, Observed
from ...core.schema import AttributeSchema
from ...core.secret import keep_secrets, mask_secrets, watched
from ...core.value import FrozenMap, SecretRef, Value
from ...provider.contract import (
    Exporter,
    FileReader,
    ForeignFiles,
    ForeignObject,
    ForeignResource,
    Omission,
    ResourceType,
    Session,
    collect_types,
)
from ...provider.registry import Registry
from ...render.text import inline
from ...syntax.write import Code, NewBlock, Writable, quote_string, write_blocks
from ..configuration.evaluation import Configuration
from ..configuration.repository import RepositoryFolder
from ..configuration.repository_choice import choose_folders
from ..generate.blocks import (
    PLACEHOLDER,
    UndeclaredObject,
    fill_defaults,
    find_import_id,
    get_noun,
    make_identifier,
    make_unique,
)
from ..generate.files import (
    GeneratedConfiguration,
    Stock,
    choose_path,
    generate_configuration,
    list_texts,
)
from ..workspace import Workspace, open_instance


class ForeignSource(Struct, frozen=True):
    """Files of another tool."""

    tool: str
    """The name of the tool."""
    paths: tuple[Path, ...]
    """Files and folders."""
    systems: Sequence[str] = ()
    """Only objects that the files say are in these systems, one of each kind; empty for all."""

    @property
    def words(self) -> str:
        return " ".join((self.tool, *map(str, self.paths)))


def take_over(
    configuration: Configuration,
    source: ForeignSource,
    instances: Sequence[str] = (),
    name: str = "generated",
    *,
    split: bool = False,
    documents: bool = False,
) -> GeneratedConfiguration:
    """Write configuration for what the files declare. It changes nothing.

    instances: the provider instances that lead to the objects, where the folder has several of one
    provider. name: of the generated file in faults. split, documents: see `import_all`.

    Raises ConfigurationError if the folder has faults; UsageError for a tool that no provider
    reads, for a folder without a block of that provider, and for files that cannot be read.
    """
    with keep_secrets(watched()):
        desired = configuration.evaluate(offline=True).desired
        if has_errors(desired.diagnostics):
            raise ConfigurationError(
                "the configuration has faults", diagnostics=desired.diagnostics
            )
        registry = configuration.registry
        instance, load = _choose_instance(desired, registry, source.tool, instances)
        homes = _find_homes(desired, registry, instance, instances)
        own = registry.load(desired.providers[instance].name).types
        read = _select_system(load()(source.paths), source.systems, own)
        types = collect_types(
            [registry.load(name) for name in {config.name for config in desired.providers.values()}]
        )
        items, gaps = _make_objects(read, types, homes)
        if not items:
            _refuse_empty(gaps, source)
        return generate_configuration(
            configuration,
            configuration.tree,
            types,
            _divide(items, desired) + Stock(gaps=gaps),
            name=name,
            source=source.words,
            split=split,
            documents=documents,
        )


def _choose_instance(
    desired: Desired, registry: Registry, tool: str, provider_names: Sequence[str]
) -> tuple[str, Callable[[], FileReader]]:
    """The provider instance that the objects belong to, and a function that imports the reader."""
    names = sorted({*registry.built_in, *(config.name for config in desired.providers.values())})
    readers = {name: registry.load_readers(name) for name in names}
    tools = sorted({tool_name for tools_read in readers.values() for tool_name in tools_read})
    if tool not in tools:
        raise UsageError(
            f"--from {tool!r} is no tool whose files kafkaform reads",
            suggest(tool, tools) or f"It is one of: {', '.join(tools)}.",
        )
    fit = {
        instance: readers[config.name][tool]
        for instance, config in sorted(desired.providers.items())
        if tool in readers[config.name]
    }
    if not fit:
        (name, *_) = (name for name in names if tool in readers[name])
        raise UsageError(
            f'this folder has no provider "{name}" block, so nothing says where the objects are',
            f'Write a provider "{name}" block into a file of this folder.',
        )
    for name in provider_names:
        if name not in desired.providers:
            instances = ", ".join(sorted(desired.providers))
            raise UsageError(
                f"--provider {name!r} is not in this folder", f"It is one of: {instances}."
            )
    chosen = _choose_one([name for name in fit if name in provider_names] or list(fit))
    return chosen, fit[chosen]


def _choose_one(instances: Sequence[str]) -> str:
    # To choose one would write the objects of one system into the plan of another.
    if len(instances) > 1:
        raise UsageError(
            f"--provider is needed: the folder has {', '.join(instances)}",
            "Name the one that leads to the objects of these files.",
        )
    return instances[0]


def _find_homes(
    desired: Desired, registry: Registry, chosen: str, provider_names: Sequence[str]
) -> Mapping[str, Sequence[str]]:
    """Resource type -> the provider instances that can have the objects of these files."""
    homes: dict[str, list[str]] = defaultdict(list)
    name = desired.providers[chosen].name
    for instance, block in sorted(desired.providers.items()):
        if block.name != name or instance == chosen:
            for kind in registry.load(block.name).types:
                homes[kind].append(instance)
    return {
        kind: [instance for instance in instances if instance in provider_names] or instances
        for kind, instances in homes.items()
    }


def _refuse_empty(gaps: Iterable[str], source: ForeignSource) -> None:
    """Raises UsageError, with everything that was left out."""
    warnings = tuple(Diagnostic(Severity.WARNING, gap) for gap in gaps)
    message = f"nothing could be taken over from {source.words}"
    advice = (
        "Correct what the warnings above name, and run this again."
        if warnings
        else "None of these files declares an object: look whether the path and the tool are right."
    )
    raise UsageError(
        message, advice, (*warnings, Diagnostic(Severity.ERROR, message, advice=advice))
    )


def _select_system(
    read: ForeignFiles, systems: Collection[str], own: Mapping[str, ResourceType]
) -> ForeignFiles:
    """Only the objects of one system. Those of other providers are in systems of their own, so each
    kind of system has to be clear. own: the types of the provider that reads the files.

    Raises UsageError if it is not clear which.
    """
    groups: dict[str, set[str]] = defaultdict(set)
    for item in read.objects:
        groups["" if item.kind in own else item.kind].add(item.system)
    every = sorted(set[str]().union(*groups.values()))
    for system in systems:
        if system not in every:
            raise UsageError(
                f"--only {system!r} is nothing that the files name",
                suggest(system, every) or f"They name {', '.join(filter(None, every)) or 'none'}.",
            )
    for group in groups.values():
        if len(group) > 1 and len(group.intersection(systems)) != 1:
            names = ", ".join(sorted(group))
            raise UsageError(
                f"the files describe objects of {len(group)} systems: {names}",
                "Choose the one that the provider block leads to with --only.",
            )
    selected, omissions = [], list(read.omissions)
    for item in read.objects:
        chosen = groups["" if item.kind in own else item.kind].intersection(systems)
        if not chosen or item.system in chosen:
            selected.append(item)
        else:
            reason = f"it is in {item.system or 'another system'}, not in {chosen.pop()}"
            omissions.append(Omission(item.place, reason))
    return replace(read, objects=tuple(selected), omissions=tuple(omissions))


# ── objects ─────────────────────────────────────────────────────────────────────────────


def _make_objects(
    read: ForeignFiles, types: Mapping[str, ResourceType], homes: Mapping[str, Sequence[str]]
) -> tuple[list[UndeclaredObject], tuple[str, ...]]:
    """The objects of the files, and as gaps what is not taken over and why."""
    objects: dict[Identity, UndeclaredObject] = {}
    sources: dict[Identity, str] = {}
    omissions, spoiled = list(read.omissions), set[Identity]()
    for item in read.objects:
        if item.kind not in homes:
            reason = (
                f"a {item.kind}, and this folder has no provider block for it: write one, and run "
                "this again"
            )
            omissions.append(Omission(item.place, reason))
            continue
        declared = _make_object(item, types[item.kind], _choose_one(homes[item.kind]))
        if isinstance(declared, Omission):
            omissions.append(declared)
            continue
        identity = declared.identity
        if identity in objects and objects[identity] != declared:
            # Which of the two is live is unknown, so neither may become a plan.
            spoiled.add(identity)
            omissions.append(
                Omission(
                    item.place, f"{identity} is also at {sources[identity]}, and differs there"
                )
            )
        objects.setdefault(identity, declared)
        sources.setdefault(identity, item.place)
    gaps = [f"Not taken over: {omission.place}: {omission.reason}." for omission in omissions]
    remaining = [item for identity, item in objects.items() if identity not in spoiled]
    return remaining, tuple(dict.fromkeys((*read.notes, *gaps)))


def _divide(items: Iterable[UndeclaredObject], desired: Desired) -> Stock:
    """Objects without a block get one. Those with a block get an import block only, and nothing if
    that is there already."""
    blocks = {item.identity: item.address for item in desired.declared}
    coming = {block.target for block in desired.imports}
    undeclared, declared, gaps = [], [], []
    for item in items:
        address = blocks.get(item.identity)
        if address is None:
            undeclared.append(item)
        elif address.child is not None or item.id is None:
            whole = replace(address, child=None)
            gaps.append(f"{whole} declares {item.identity}: apply with --adopt='{whole}'.")
        elif address not in coming:
            declared.append((address, item.id))
    return Stock(tuple(undeclared), declared=tuple(declared), gaps=tuple(dict.fromkeys(gaps)))


def _make_object(
    item: ForeignObject, kind: ResourceType, instance: str
) -> UndeclaredObject | Omission:
    """The object with the arguments of its block, or why no block can declare it."""
    item = replace(item, arguments=_hide_secrets(item.arguments, kind))
    faults = list(_find_faults(item, kind))
    if not faults:
        try:
            key = kind.key(fill_defaults(item.arguments, kind.schema))
        except ValueError as error:
            faults = [(item.place, str(error))]
    if faults:
        values = (item.arguments.get(name) for name in kind.schema.attributes)
        title = f"{kind.name} {next((v for v in values if isinstance(v, str)), '')}".rstrip()
        reasons = "; ".join(dict.fromkeys(reason for _, reason in faults))
        return Omission(faults[0][0], f"{title} is left out whole: {reasons}")
    attributes = {
        name: value
        for name, value in item.arguments.items()
        if value is not None and value != kind.schema.attributes[name].default
    }
    secrets = [a.name for a in kind.schema.attributes.values() if a.secret and a.required]
    identity = Identity(instance, kind.name, key)
    arguments = FrozenMap({**dict.fromkeys(secrets, PLACEHOLDER), **attributes})
    return UndeclaredObject(identity, arguments, find_import_id(identity, kind))


def _hide_secrets(arguments: FrozenMap, kind: ResourceType) -> FrozenMap:
    """The arguments with a reference in `secret_NAME` for each entry of a map NAME that the type
    refuses there, as it refuses secrets in plain text."""
    hidden: dict[str, Value] = {}
    for name, value in arguments.items():
        secret = kind.schema.attributes.get(f"secret_{name}")
        refuses = kind.schema.attributes[name].refuses
        if secret is None or refuses is None or not isinstance(value, FrozenMap):
            continue
        # Files of other tools can have passwords in plain text, which must not get into files of
        # ours.
        keys = [key for key, entry in value.items() if any(refuses(FrozenMap({key: entry})))]
        if keys:
            hidden[name] = value.without(keys)
            hidden[secret.name] = FrozenMap(dict.fromkeys(keys, PLACEHOLDER))
    return arguments.with_items(hidden) if hidden else arguments


def _find_faults(item: ForeignObject, kind: ResourceType) -> Iterator[tuple[str, str]]:
    """Why a block cannot have these arguments, each with its place in the files."""
    for name, attribute in kind.schema.attributes.items():
        value = item.arguments.get(name)
        if value is None:
            if attribute.required and not attribute.secret:
                yield item.place, f"{name} is missing"
            continue
        if isinstance(value, FrozenMap) and attribute.refuses is not None:
            # Entry by entry, so that the one with the fault is known.
            entries = {f"{name}.{key}": FrozenMap({key: entry}) for key, entry in value.items()}
        else:
            entries = {name: value}
        for path, item_value in entries.items():
            source = item.places.get(path) or item.places.get(name) or item.place
            yield from (
                (source, reason) for reason in _judge_part(path, item_value, attribute, kind)
            )


def _judge_part(
    path: str, item_value: Value, attribute: AttributeSchema, kind: ResourceType
) -> Iterator[str]:
    """Why an argument, or an entry of one, cannot have its value. It is shown unless objects of
    this type can have secrets."""
    secret = any(schema.secret for schema in kind.schema.attributes.values())
    value = (
        next(iter(item_value.values()))
        if isinstance(item_value, FrozenMap) and item_value
        else item_value
    )
    argument = path if secret or len(str(value)) > _LONGEST else f"{path} = {value!r}"
    if attribute.choices and item_value not in attribute.choices:
        yield f"{argument}: it is not one of {', '.join(attribute.choices)}"
    elif attribute.refuses is not None:
        key = path.removeprefix(f"{attribute.name}.")
        for summary, _ in attribute.refuses(item_value):
            self_explaining = summary.startswith(key) and str(value) in summary
            yield summary if self_explaining else f"{argument}: {summary}"


_LONGEST = 60
"""Characters of a value in a message."""


class _Export(Struct, frozen=True):
    """What was written so far."""

    blocks: list[NewBlock] = field(default_factory=list)
    variables: list[NewBlock] = field(default_factory=list)
    requirements: dict[str, FrozenMap] = field(default_factory=dict)
    names: dict[str, set[str]] = field(default_factory=dict)
    gaps: list[str] = field(default_factory=list)
    count: list[Identity] = field(default_factory=list)
    documents: dict[str, str] | None = None
    """Path -> text of the files that the blocks read; None keeps the texts in the blocks."""
    paths: set[str] = field(default_factory=set)
    """The paths of these files in small letters."""


def export(workspace: Workspace, tool: str, *, documents: bool = False) -> GeneratedConfiguration:
    """Write every object that the folder declares or the state records, as it is live, for this
    tool. documents: keep long texts, such as schemas, in files of their own. Raises UsageError for
    a tool that no provider writes for, ConnectError."""
    with keep_secrets(workspace.known_secrets):
        exporters = _find_exporters(workspace, tool)
        state = workspace.backend.load().state
        recorded = state.objects.keys() if state is not None else ()
        ids = {*recorded, *(item.identity for item in workspace.desired.declared)}
        draft, complete = _Export(documents={} if documents else None), True
        for instance, exporter in exporters.items():
            instance_ids = sorted(identity for identity in ids if identity.instance == instance)
            session = open_instance(workspace, instance)
            try:
                complete &= _write_instance(session, instance_ids, exporter, workspace.types, draft)
            finally:
                session.close()
        unexported = sorted({identity.instance for identity in ids} - exporters.keys())
        draft.gaps.extend(f"Not exported: the objects of {instance}." for instance in unexported)
        text = mask_secrets(_render(tool, draft)) if draft.count else ""
        texts = {path: mask_secrets(text) for path, text in (draft.documents or {}).items()}
        return GeneratedConfiguration(
            text, {}, len(draft.count), tuple(draft.gaps), complete, texts
        )


def _find_exporters(space: Workspace, tool: str) -> dict[str, Exporter]:
    """Provider instance -> what writes its objects."""
    registry = space.configuration.registry
    names = {instance: block.name for instance, block in space.desired.providers.items()}
    offers = {name: registry.load_exporters(name) for name in {*names.values(), *registry.built_in}}
    tools = sorted({tool_name for offer in offers.values() for tool_name in offer})
    if tool not in tools:
        raise UsageError(
            f"{tool!r} is no tool that kafkaform writes for",
            suggest(tool, tools) or f"It is one of: {', '.join(tools)}.",
        )
    return {i: offers[name][tool]() for i, name in sorted(names.items()) if tool in offers[name]}


def _write_instance(
    session: Session,
    ids: list[Identity],
    exporter: Exporter,
    types: Mapping[str, ResourceType],
    draft: _Export,
) -> bool:
    """Write the objects of one system; whether all of them could be read."""
    complete = True
    draft.requirements.update(exporter.requirements)
    readings = session.read(ids) if ids else {}
    # An open connection can have been led to another system, whose objects must not be written.
    session.prove()
    for identity in ids:
        reading = readings[identity]
        if not isinstance(reading, Observed):
            reading_kind = type(reading).__name__.lower()
            draft.gaps.append(f"Not exported: {identity}: it is {reading_kind}.")
            # An export that lacks an unreadable object must not pass for a whole one.
            complete &= reading_kind == "absent"
            continue
        resource = exporter.write(identity.kind, reading.attributes)
        if isinstance(resource, str):
            draft.gaps.append(f"Not exported: {identity}: {resource}.")
            continue
        draft.count.append(identity)
        codes = _move_texts(identity, resource, reading.attributes, types[identity.kind], draft)
        _write_resource(identity, resource, codes, next(iter(exporter.requirements)), draft)
    return complete


def _move_texts(
    identity: Identity,
    resource: ForeignResource,
    live: FrozenMap,
    kind: ResourceType,
    draft: _Export,
) -> Mapping[str, Code]:
    """The arguments whose texts are in files of their own, which are added to the draft."""
    codes: dict[str, Code] = {}
    if draft.documents is None:
        return codes
    for attribute, ending in list_texts(live, kind):
        text = resource.arguments.get(attribute.name)
        if isinstance(text, str):
            path = choose_path(identity, ending, draft.paths)
            draft.documents[path] = text
            # Terraform runs a module in the folder of its caller.
            codes[attribute.name] = Code(f'file("${{path.module}}/{path}")')
    return codes


def _write_resource(
    identity: Identity,
    resource: ForeignResource,
    codes: Mapping[str, Code],
    provider: str,
    draft: _Export,
) -> None:
    """codes: argument -> what is written in place of its value; provider: its name there."""
    names = draft.names.setdefault(resource.type, set())
    name = make_unique(make_identifier(identity.key, get_noun(resource.type)), names)
    _, dot, label = identity.instance.partition(".")
    alias = {"provider": Code(f"{provider}.{label}")} if dot else {}
    arguments = {
        n: codes.get(n) or _write_argument(value, draft) for n, value in resource.arguments.items()
    }
    draft.blocks.append(NewBlock("resource", (resource.type, name), {**alias, **arguments}))
    if resource.id is None:
        draft.gaps.append(
            f"{identity} has no import block, since its provider there cannot import it: the first "
            "apply sets the same values again."
        )
        return
    target: dict[str, Writable] = {"to": Code(f"{resource.type}.{name}"), "id": resource.id}
    draft.blocks.append(NewBlock("import", (), target))


def _write_argument(value: Writable, draft: _Export) -> Writable:
    """A value; a secret becomes a sensitive variable, whose value somebody has to give."""
    if isinstance(value, FrozenMap) and any(isinstance(v, SecretRef) for v in value.values()):
        return {key: _write_argument(entry, draft) for key, entry in value.items()}
    if not isinstance(value, SecretRef):
        return value
    names = draft.names.setdefault("variable", set())
    name = make_unique(make_identifier(value.name, "secret"), names)
    # Terraform prints the value of a variable in its plans unless it is sensitive.
    settings: dict[str, Writable] = {"type": Code("string"), "sensitive": True}
    draft.variables.append(NewBlock("variable", (name,), settings))
    return Code(f"var.{name}")


def _render(tool: str, draft: _Export) -> str:
    head = (
        f"# Written by `kafkaform export {tool}`. Once it is applied, the import blocks have done\n"
        "# their work and can go.\n"
    )
    head += "".join(f"# {inline(gap)}\n" for gap in draft.gaps)
    providers = {
        name: Code(_render_map(requirement))
        for name, requirement in sorted(draft.requirements.items())
    }
    needs = NewBlock("terraform", (), {}, (NewBlock("required_providers", (), providers),))
    return f"{head}\n{write_blocks((needs, *draft.variables, *draft.blocks))}"


def _render_map(values: Mapping[str, str]) -> str:
    inner = "\n".join(f"{name} = {quote_string(text)}" for name, text in sorted(values.items()))
    return f"{{\n{inner}\n}}"


TOOL, NOUN = "acls", "folders"
VARIABLE = "logins"
_HEAD = """\
# Written by `kafkaform export acls`: the rights of each folder's login.
"""


def export_login_rights(tool: str, chosen: tuple[str, str] | None) -> GeneratedConfiguration:
    """The rights for the folders that the flag chooses: the word folders, and a glob. Raises
    UsageError, and ConfigurationError for a fault of the repository file."""
    if tool != TOOL or chosen is None or chosen[0] != NOUN:
        raise UsageError(
            "the rights of logins are exported for folders of a repository",
            f'Write: kafkaform export {TOOL} --for {NOUN} "teams/*"',
        )
    choice = choose_folders(Path(), False, (chosen[1],), None)
    registry, names = Registry(), set[str]()
    blocks: list[NewBlock] = []
    gaps: dict[str, None] = {}
    for folder in choice.folders:
        fence = folder.fence
        if fence is None:
            gaps[f"{folder.path} has no boundary, so any right can be needed there"] = None
            continue
        for block_or_gap in _list_rights(folder, fence.lists, registry, names):
            if isinstance(block_or_gap, str):
                gaps[block_or_gap] = None
            else:
                blocks.append(block_or_gap)
    variable = NewBlock(
        "variable",
        (VARIABLE,),
        {
            "type": Code("map(string)"),
            "description": "Folder -> the principal of its login, such as User:shop-pipeline.",
        },
    )
    comments = "".join(f"# {inline(gap)}.\n" for gap in gaps)
    text = f"{_HEAD}{comments}\n{write_blocks((variable, *blocks))}" if blocks else ""
    notes = tuple(f"{gap}." for gap in gaps)
    return GeneratedConfiguration(text, {}, len(blocks), notes, True, {})


def _list_rights(
    folder: RepositoryFolder,
    lists: Mapping[str, tuple[str, ...]],
    registry: Registry,
    names: set[str],
) -> Iterator[NewBlock | str]:
    """The blocks for one folder, and what no block can permit alone."""
    principal = Code(f"var.{VARIABLE}[{quote_string(folder.path)}]")
    for name in sorted({cluster.provider for cluster in folder.uses.values()} or registry.built_in):
        blocks, gaps = registry.load(name).list_login_rights(principal, lists)
        for kind, arguments in blocks:
            label = make_unique(make_identifier(folder.path, "login"), names)
            written: dict[str, Writable] = dict(arguments)
            yield NewBlock("resource", (kind, label), written)
        yield from gaps
