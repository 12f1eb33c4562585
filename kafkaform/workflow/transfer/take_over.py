"""`import --from`: write configuration for the objects that files of another tool declare.

Nothing connects. The import blocks name exactly the objects of the files, so that the next plan
compares each with the live object, and never creates one.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from ...core.diagnostics import Diagnostic, Severity, has_errors, suggest
from ...core.errors import ConfigurationError, UsageError
from ...core.resource import Desired, Identity
from ...core.schema import AttributeSchema
from ...core.secret import keep_secrets, watched
from ...core.value import FrozenMap, Value
from ...provider.contract import (
    FileReader,
    ForeignFiles,
    ForeignObject,
    Omission,
    ResourceType,
    collect_types,
)
from ...provider.registry import Registry
from ..configuration.evaluation import Configuration
from ..generate.blocks import PLACEHOLDER, UndeclaredObject, fill_defaults, find_import_id
from ..generate.files import GeneratedConfiguration, Stock, generate_configuration


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
