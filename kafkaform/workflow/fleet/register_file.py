"""Read fleet.hcl: the clusters and states of a fleet, and how they are judged.

Expressions are those of configurations: functions, and variables from the environment or the
command line. All faults are reported at once, each with its location.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from decimal import Decimal
from operator import attrgetter
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kafkaform_kafka.protocol.rates import read_rates

from ...apply.secrets import Lookup
from ...core.canonical import dumps
from ...core.diagnostics import Diagnostic, Diagnostics, has_errors, suggest
from ...core.errors import ConfigurationError, UsageError
from ...core.landing import MEASURED
from ...core.resource import ProviderConfig
from ...core.schema import ObjectSchema
from ...core.secret import PartialRepr
from ...core.storage import read_named_file
from ...core.value import EMPTY, FrozenMap, Value
from ...fleet.landed import register as model
from ...fleet.landed.register import to_regex
from ...language.declare.blocks import (
    Header,
    ProviderBlock,
    Shape,
    find_shape_faults,
    find_single,
    render_title,
)
from ...language.declare.top_level import declare_blocks
from ...language.declare.variables import resolve_variables
from ...language.desired import ProviderInfo, Tree
from ...language.desired import VariableInputs as Values
from ...language.evaluate.arguments import compile_arguments, evaluate_arguments
from ...language.evaluate.providers import configure_provider
from ...language.expressions.code import Context, Env
from ...language.expressions.compilation import make_context
from ...language.expressions.references import Space
from ...language.functions import FunctionTable
from ...language.functions.files import make_confined_reader
from ...language.values.faults import Poisoned, make_error, suggest_near
from ...provider.contract import Provider
from ...provider.registry import Registry
from ...syntax.nodes import FILE_BYTES, Block, File
from ...syntax.parse import parse
from ..configuration.evaluation import Configuration, DataAnswers, Inputs
from ..configuration.files import find_exposed_files, find_root
from ..configuration.repository import Cluster
from .entries import (
    BLOCKS,
    INNER_BLOCKS,
    LABELLED_BLOCKS,
    NOTICE_DAYS,
    SINGLE_BLOCKS,
    WAIVER,
    ClusterEntry,
    Listed,
    StateEntry,
    add_listed,
    find_block_faults,
    list_clusters,
    list_states,
    parse_seconds,
    read_listed,
)

_DURATIONS = (("stale_after", "stale_after_hours", 3_600.0), ("skew", "skew_seconds", 1.0))
"""Argument, the setting that it becomes, and the unit of that setting in seconds."""

Blocks = Mapping[str, list[tuple[Block, FrozenMap]]]
"""Type -> the sound blocks, with their values."""
DEFAULT_FILE = "fleet.hcl"
PROVIDER = "kafka"
VARIABLE = "variable"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,127}", re.ASCII)


def make_register(
    blocks: Blocks, waivers: Mapping[Block, tuple[model.RegisteredWaiver, ...]]
) -> model.Register:
    """What the blocks say. waivers: rule -> its waivers."""
    named: dict[str, list[tuple[str, FrozenMap]]] = defaultdict(list)
    for kind in LABELLED_BLOCKS:
        named[kind] = [(block.labels[0].text, values) for block, values in blocks[kind]]
    fleet = next((values for _, values in blocks["fleet"]), EMPTY)
    rates = next((read_rates(values) for _, values in blocks["rates"]), None)
    return model.Register(
        tuple(
            model.RegisteredCluster(name, **select_set(values.without(("provider",))))
            for name, values in named["cluster"]
        ),
        tuple(
            model.RegisteredState(name, folder=arguments["folder"], owner=arguments["owner"])
            for name, arguments in named["state"]
        ),
        tuple(model.Owner(name, **select_set(values)) for name, values in named["owner"]),
        tuple(fleet.get("principals") or ()),
        rates,
        tuple(
            model.PolicyRule(block.labels[0].text, **select_set(values), waivers=waivers[block])
            for block, values in blocks["rule"]
        ),
        tuple(model.NamingRule(**select_set(values)) for _, values in blocks["naming"]),
        _read_settings(fleet),
        tuple(_read_keeps(blocks)),
    )


def select_set(values: FrozenMap) -> dict[str, Any]:
    """Return the arguments that were written."""
    return {
        name: float(value) if isinstance(value, Decimal) else value
        for name, value in values.items()
        if value is not None
    }


def _read_settings(fleet: FrozenMap) -> model.FleetSettings:
    """Return durations in the units of the settings: hours and seconds."""
    settings = select_set(fleet.without(["root", "repository", "principals", "notice_days"]))
    for name, setting, unit in _DURATIONS:
        if name in settings:
            settings[setting] = parse_seconds(settings.pop(name)) / unit
    return model.FleetSettings(**settings)


class Fleet(PartialRepr, frozen=True):
    """Everything that the file says."""

    _unshown = frozenset({"find_secrets"})

    file: Path
    root: str | None
    """Where landing files go. None: not said."""
    clusters: tuple[ClusterEntry, ...]
    states: tuple[StateEntry, ...]
    register: model.Register
    warnings: Diagnostics
    find_secrets: Lookup
    """Looks up the secrets that the settings of clusters refer to."""
    notice_days: int
    """How many days the owner of an unused topic has to object."""


class _FileScope(Struct, frozen=True):
    context: Context
    env: Env
    faults: list[Diagnostic]

    def report(self, fault: Diagnostic) -> None:
        self.faults.append(fault)


def read_fleet(path: Path, inputs: Inputs = Inputs()) -> Fleet:
    """Read the file. Raises UsageError if it cannot be read, ConfigurationError with every fault in
    it."""
    try:
        content = read_named_file(path, FILE_BYTES)
    except OSError as fault:
        raise UsageError(
            f"{path} cannot be read: {fault.strerror}",
            f"Write the clusters and states of the fleet into {DEFAULT_FILE}, or give --file.",
        ) from None
    file, faults = parse(content, path.name)
    folder = path.resolve().parent
    scope, configuration = _make_scope(file, folder, inputs)
    blocks, registry = _evaluate_blocks(file, scope), configuration.registry
    listed = _read_repository(blocks, folder, scope)
    repository_clusters = {} if listed is None else listed.repository.clusters
    providers = dict(_load_providers(blocks["cluster"], repository_clusters, registry, scope))
    clusters = tuple(_read_clusters(file, providers, repository_clusters, scope))
    states = tuple(_read_states(blocks["state"], folder, scope))
    if listed is not None:
        own = {block.labels[0].text for block in providers if block.list_blocks("connection")}
        listed_clusters = list_clusters(listed, own, registry, inputs.environment, scope.report)
        clusters = (*clusters, *listed_clusters)
        states = (*states, *list_states(listed))
    # Every check runs even after faults: the user gets the whole list, not one fault per run.
    scope.faults.extend(_find_name_faults(blocks, registry, providers.values(), clusters))
    register = make_register(blocks, dict(_read_waivers(file, scope)))
    if listed is not None:
        register = add_listed(register, listed, folder)
    users = [(f'cluster "{e.name}"', e.settings.range, e.settings.config) for e in clusters]
    scope.faults.extend(find_exposed_files(users, folder))
    diagnostics = (*faults, *sorted(scope.faults, key=attrgetter("position")))
    if has_errors(diagnostics):
        raise ConfigurationError(f"{path.name} has faults", diagnostics=diagnostics)
    root = next((values["root"] for _, values in blocks["fleet"]), None)
    location = None if root is None else resolve_place(root, folder)
    return Fleet(
        path,
        location,
        clusters,
        states,
        register,
        diagnostics,
        configuration.find_secrets,
        next((values["notice_days"] for _, values in blocks["fleet"]), NOTICE_DAYS),
    )


def _read_waivers(
    file: File, scope: _FileScope
) -> Iterator[tuple[Block, tuple[model.RegisteredWaiver, ...]]]:
    """Yield the waivers of each rule, also of a rule with faults."""
    for rule in file.body.blocks:
        if rule.type == "rule":
            blocks = rule.list_blocks("waiver")
            evaluated = [_evaluate_block(waiver, WAIVER, scope) for waiver in blocks]
            yield (
                rule,
                tuple(
                    model.RegisteredWaiver(
                        **{**select_set(waiver), "until": date.fromisoformat(waiver["until"])}
                    )
                    for waiver in evaluated
                    if waiver is not None
                ),
            )


def _read_keeps(blocks: Blocks) -> Iterator[model.RegisteredWaiver]:
    for _, values in blocks["keep"]:
        until = date.fromisoformat(values["until"])
        yield model.RegisteredWaiver(until, values["reason"], values["cluster"], values["topic"])


def resolve_place(location: str, folder: Path) -> str:
    """Return a path relative to the file's folder; a URL stays as it is."""
    return location if "://" in location else str(folder / location)


# ── evaluation ──────────────────────────────────────────────────────────────────────────


def _make_scope(file: File, folder: Path, inputs: Inputs) -> tuple[_FileScope, Configuration]:
    """Return where expressions are evaluated, and the configuration that knows the secrets of
    variables."""
    root = find_root(folder)
    blocks = tuple(block for block in file.body.blocks if block.type == VARIABLE)
    own = replace(file, body=replace(file.body, attributes={}, blocks=blocks))
    tree = Tree((own,), (), {})
    declared, faults = declare_blocks(tree)
    context = make_context(FunctionTable(make_confined_reader(root, folder)))
    values = Values(inputs.variables, inputs.assignments)
    variables = resolve_variables(tree, declared.variables, values, context)
    env = Env({"var": Space("variable", variables.values)}, {}, context.budget)
    scope = _FileScope(context, env, [*faults, *variables.diagnostics])
    configuration = Configuration(
        folder, root, tree, inputs, Registry(), DataAnswers(_refuse_question)
    )
    return scope, configuration


def _refuse_question(config: ProviderConfig) -> Any:
    raise AssertionError(f"{config.instance} has no data sources")


def _evaluate_blocks(file: File, scope: _FileScope) -> Blocks:
    """Return the sound blocks by type, with their values."""
    blocks: dict[str, list[tuple[Block, FrozenMap]]] = {name: [] for name in BLOCKS}
    labelled: dict[tuple[str, str], Block] = {}
    for item in file.body.attributes.values():
        scope.report(make_error(item, f'"{item.name}" is outside of any block'))
    for block in file.body.blocks:
        if block.type == VARIABLE:
            continue
        if block.type not in BLOCKS:
            types = (*BLOCKS, VARIABLE)
            detail, advice = f"The blocks are {', '.join(types)}.", suggest_near(block.type, types)
            scope.report(
                make_error(Header(block), f'There are no "{block.type}" blocks', detail, advice)
            )
            continue
        faults = tuple(_find_label_faults(block, labelled))
        scope.faults.extend(faults)
        values = _evaluate_block(block, BLOCKS[block.type], scope, INNER_BLOCKS.get(block.type, ()))
        if values is not None and not faults:
            blocks[block.type].append((block, values))
    return blocks


def _find_label_faults(
    block: Block, labelled: dict[tuple[str, str], Block]
) -> Iterator[Diagnostic]:
    shape = Shape(("the name",) if block.type in LABELLED_BLOCKS else (), open=True)
    if len(block.labels) != len(shape.labels):
        yield from find_shape_faults(block, shape)
        return
    label = block.labels[0].text if block.labels else ""
    if block.type in ("cluster", "state", "rule") and not _NAME.fullmatch(label):
        yield make_error(
            block.labels[0],
            f'"{label}" is not a name',
            advice="A name has letters, digits, _ and -, at most 128, and begins with a letter.",
        )
    first = labelled.setdefault((block.type, label), block)
    if first is not block and block.type in (*LABELLED_BLOCKS, *SINGLE_BLOCKS):
        yield make_error(
            Header(block),
            f"{render_title(block)} occurs twice",
            f"The first one is at {Header(first).range}.",
            "Rename or remove one of the two.",
        )


def _evaluate_block(
    block: Block, schema: ObjectSchema, scope: _FileScope, inner: Sequence[str] = ()
) -> FrozenMap | None:
    """Return the values of a block; None after faults, which are reported."""
    title = render_title(block)
    arguments = compile_arguments(
        block.body, schema, scope.context, Header(block), title, scope.report, (), tuple(inner)
    )
    try:
        return evaluate_arguments(arguments, scope.env, scope.report, title)
    except Poisoned:
        return None


# ── clusters and states ─────────────────────────────────────────────────────────────────


def _read_repository(blocks: Blocks, folder: Path, scope: _FileScope) -> Listed | None:
    """What the repository has that the fleet block names."""
    block, values = next(iter(blocks["fleet"]), (None, EMPTY))
    if block is None or values["repository"] is None:
        return None
    node = block.body.attributes["repository"].value
    listed = read_listed(node, values["repository"], folder, scope.report)
    if listed is not None:
        named = {kind: [block for block, _ in blocks[kind]] for kind in ("cluster", "state")}
        scope.faults.extend(find_block_faults(listed, named))
    return listed


def _load_providers(
    blocks: Sequence[tuple[Block, FrozenMap]],
    repository_clusters: Mapping[str, Cluster],
    registry: Registry,
    scope: _FileScope,
) -> Iterator[tuple[Block, Provider]]:
    """Yield the provider of each cluster that names one that is installed. repository_clusters:
    name -> cluster of the repository."""
    for block, values in blocks:
        cluster = repository_clusters.get(block.labels[0].text)
        try:
            yield block, registry.load(cluster.provider if cluster else values["provider"])
        except ConfigurationError as fault:
            node = block.body.attributes["provider"]
            scope.report(make_error(node, fault.message, "", fault.advice))


def _read_clusters(
    file: File,
    providers: Mapping[Block, Provider],
    repository_clusters: Mapping[str, Cluster],
    scope: _FileScope,
) -> Iterator[ClusterEntry]:
    """Yield the clusters with a sound connection, even if other arguments have faults.
    repository_clusters: name -> cluster of the repository, which needs no connection here."""
    for block in file.body.blocks:
        if block.type != "cluster" or len(block.labels) != 1 or block not in providers:
            continue
        provider = providers[block]
        name = block.labels[0].text
        connection, faults = find_single(block, "connection")
        scope.faults.extend(faults)
        if connection is None and name in repository_clusters:
            continue
        if connection is None:
            address = (
                'bootstrap_servers = ["host:9092"]' if provider.name == PROVIDER else "url = …"
            )
            advice = f"Write connection {{ {address} … }}."
            if repository_clusters:
                listed = ", ".join(repository_clusters)
                advice = f"{advice} The clusters of the repository need none: {listed}."
            scope.report(
                make_error(Header(block), f"{render_title(block)} needs a connection", "", advice)
            )
            continue
        settings = configure_provider(
            ProviderBlock(provider.name, name, connection),
            name,
            ProviderInfo(provider.config, provider.check),
            scope.context,
            scope.env,
            scope.report,
        )
        if settings is not None:
            yield ClusterEntry(name, settings, provider)


def _read_states(
    blocks: Sequence[tuple[Block, FrozenMap]], folder: Path, scope: _FileScope
) -> Iterator[StateEntry]:
    for block, values in blocks:
        location, configuration = values["location"], values["folder"]
        if location is None and configuration is None:
            advice = "Write location, or the folder of its configuration, or both."
            scope.report(
                make_error(Header(block), f"{render_title(block)} has no place", "", advice)
            )
        variables = values["vars"] if values["vars"] is not None else EMPTY
        if not isinstance(variables, FrozenMap):
            node = block.body.attributes["vars"]
            scope.report(make_error(node, '"vars" must be an object: variables by name'))
            continue
        yield StateEntry(
            block.labels[0].text,
            None if location is None else resolve_place(location, folder),
            None if configuration is None else folder / configuration,
            values["var_files"] or (),
            tuple(f"{name}={_render_variable(value)}" for name, value in sorted(variables.items())),
        )


def _render_variable(value: Value) -> str:
    """Return a value as --var takes it: a text as it is, everything else as an expression."""
    if isinstance(value, str):
        return value
    return dumps(value).replace("${", "$${").replace("%{", "%%{")


# ── the register ────────────────────────────────────────────────────────────────────────


def _find_name_faults(
    blocks: Blocks,
    registry: Registry,
    used: Iterable[Provider],
    clusters: Iterable[ClusterEntry],
) -> Iterator[Diagnostic]:
    """Yield a fault for each kind and cluster that an argument names and that does not exist."""
    yield from _find_kind_faults(blocks, registry, used)
    yield from _find_registry_faults(blocks["cluster"], clusters)


def _find_registry_faults(
    blocks: Iterable[tuple[Block, FrozenMap]], clusters: Iterable[ClusterEntry]
) -> Iterator[Diagnostic]:
    """Yield a fault for each `kafka_cluster` that names no Kafka cluster."""
    providers = {entry.name: entry.provider.name for entry in clusters}
    names = sorted(name for name, provider in providers.items() if provider == PROVIDER)
    for block, values in blocks:
        name = values.get("kafka_cluster")
        node = block.get_argument("kafka_cluster")
        if name is None or node is None:
            continue
        if name not in names:
            advice = suggest(name, names) or f"There are {', '.join(names) or 'none'}."
            yield make_error(node, f'"{name}" is no Kafka cluster of this fleet', "", advice)
        elif values.get("provider") == PROVIDER:
            yield make_error(
                node,
                "a Kafka cluster has no kafka_cluster",
                advice="Write it into the block of its schema registry.",
            )


def _find_kind_faults(
    blocks: Blocks, registry: Registry, used: Iterable[Provider]
) -> Iterator[Diagnostic]:
    """Yield a fault for each kind, in a rule or naming block, that no object has."""
    # Also of providers that no cluster uses: a state can have their objects.
    installed = registry.names if blocks["rule"] or blocks["naming"] else ()
    providers = {provider.name: provider for provider in (*used, *map(registry.load, installed))}
    declared = tuple(name for provider in providers.values() for name in provider.types)
    live_kinds = (*declared, *MEASURED)
    for block, values in (*blocks["rule"], *blocks["naming"]):
        kinds, kind = declared if values.get("source") == "desired" else live_kinds, values["kind"]
        fits = re.compile(to_regex(kind) if block.type == "rule" else re.escape(kind))
        if not any(map(fits.fullmatch, kinds)):
            advice = suggest(kind, kinds) or f"There are {', '.join(kinds)}."
            yield make_error(
                block.body.attributes["kind"], f'No object has the kind "{kind}"', "", advice
            )
