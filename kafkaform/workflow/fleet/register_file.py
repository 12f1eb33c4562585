"""Read fleet.hcl: the clusters and states of a fleet, and how they are judged.

Expressions are those of configurations: functions, and variables from the environment or the
command line. All faults are reported at once, each with its place.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...apply.secrets import Lookup
from ...core.canonical import dumps
from ...core.diagnostics import Diagnostic, Diagnostics, has_errors, suggest
from ...core.errors import ConfigurationError, UsageError
from ...core.landing import CLUSTER, GROUP_USAGE, TOPIC_USAGE
from ...core.resource import ProviderConfig
from ...core.schema import ObjectSchema
from ...core.secret import PartialRepr
from ...core.storage import read_named_file
from ...core.value import EMPTY, FrozenMap, Value
from ...fleet.landed import register as model
from ...fleet.landed.globs import to_regex
from ...language.declare.blocks import (
    Header,
    Shape,
    find_shape_faults,
    find_single,
    render_title,
)
from ...language.declare.declarations import ProviderBlock
from ...language.declare.top_level import declare_blocks
from ...language.declare.variables import resolve_variables
from ...language.desired import ProviderInfo, Tree
from ...language.desired import VariableInputs as Values
from ...language.evaluate.arguments import compile_arguments, evaluate_arguments
from ...language.evaluate.provider_blocks import configure_provider
from ...language.expressions.code import Context, Env
from ...language.expressions.compilation import make_context as make_context
from ...language.expressions.namespaces import Space
from ...language.functions import FunctionTable
from ...language.functions.confined_files import make_confined_reader
from ...language.values.faults import Poisoned, make_error, suggest_near
from ...provider.contract import Provider
from ...provider.registry import Registry
from ...syntax.limits import FILE_BYTES
from ...syntax.nodes import Block, File
from ...syntax.parse import parse
from ..configuration.evaluation import Configuration, DataAnswers, Inputs
from ..configuration.files import find_exposed_files, find_root
from .register_blocks import Blocks, make_register, select_set
from .register_schema import BLOCKS, INNER, NAMED, ONCE, WAIVER

DEFAULT_FILE = "fleet.hcl"
PROVIDER = "kafka"
VARIABLE = "variable"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,127}", re.ASCII)


class ClusterEntry(Struct, frozen=True):
    """A `cluster` block."""

    name: str
    settings: ProviderConfig
    """How to connect."""
    provider: Provider


class StateEntry(PartialRepr, frozen=True):
    """A `state` block."""

    _unshown = frozenset({"variables"})

    name: str
    location: str | None
    """A path or URL. None: as the configuration in `folder` says."""
    folder: Path | None
    var_files: tuple[str, ...] = ()
    """Paths relative to the folder."""
    variables: tuple[str, ...] = ()
    """`NAME=TEXT`."""


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


class _FileScope(Struct, frozen=True):
    context: Context
    env: Env
    faults: list[Diagnostic]

    def report(self, fault: Diagnostic) -> None:
        self.faults.append(fault)


def read_fleet(path: Path, inputs: Inputs = Inputs()) -> Fleet:  # noqa: B008  # it is frozen
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
    found = _evaluate_blocks(file, scope)
    providers = dict(_load_providers(found["cluster"], configuration.registry, scope))
    clusters = tuple(_read_clusters(file, providers, scope))
    states = tuple(_read_states(found["state"], folder, scope))
    # Every check runs even after faults: the user gets the whole list, not one fault per run.
    scope.faults.extend(_find_kind_faults(found, configuration.registry, providers.values()))
    register = make_register(found, _read_waivers(file, scope))
    users = [(f'cluster "{e.name}"', e.settings.range, e.settings.config) for e in clusters]
    scope.faults.extend(find_exposed_files(users, folder))
    told = (*faults, *sorted(scope.faults, key=_get_place))
    if has_errors(told):
        raise ConfigurationError(f"{path.name} has faults", diagnostics=told)
    root = next((values["root"] for _, values in found["fleet"]), None)
    place = None if root is None else resolve_place(root, folder)
    return Fleet(path, place, clusters, states, register, told, configuration.find_secrets)


def _get_place(fault: Diagnostic) -> tuple[int, int]:
    return (fault.range.line, fault.range.column) if fault.range else (0, 0)


def resolve_place(place: str, folder: Path) -> str:
    """Return a path relative to the file's folder; a URL stays as it is."""
    return place if "://" in place else str(folder / place)


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
    values = Values(inputs.variables, inputs.given)
    variables = resolve_variables(tree, declared.variables, values, context)
    env = Env({"var": Space("variable", variables.values)}, {}, context.budget)
    found = _FileScope(context, env, [*faults, *variables.diagnostics])
    known = Configuration(folder, root, tree, inputs, Registry(), DataAnswers(_refuse_question))
    return found, known


def _refuse_question(config: ProviderConfig) -> Any:
    raise AssertionError(f"{config.instance} has no data sources")


def _evaluate_blocks(file: File, scope: _FileScope) -> Blocks:
    """Return the sound blocks by type, with their values."""
    found: dict[str, list[tuple[Block, FrozenMap]]] = {name: [] for name in BLOCKS}
    seen: dict[tuple[str, str], Block] = {}
    for item in file.body.attributes.values():
        scope.report(make_error(item, f'"{item.name}" is outside of any block'))
    for block in file.body.blocks:
        if block.type == VARIABLE:
            continue
        if block.type not in BLOCKS:
            known = (*BLOCKS, VARIABLE)
            detail, advice = f"The blocks are {', '.join(known)}.", suggest_near(block.type, known)
            scope.report(
                make_error(Header(block), f'There are no "{block.type}" blocks', detail, advice)
            )
            continue
        faults = tuple(_find_label_faults(block, seen))
        scope.faults.extend(faults)
        values = _evaluate_block(block, BLOCKS[block.type], scope, INNER.get(block.type, ()))
        if values is not None and not faults:
            found[block.type].append((block, values))
    return found


def _find_label_faults(block: Block, seen: dict[tuple[str, str], Block]) -> Iterator[Diagnostic]:
    shape = Shape(("the name",) if block.type in NAMED else (), open=True)
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
    first = seen.setdefault((block.type, label), block)
    if first is not block and block.type in (*NAMED, *ONCE):
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
    what = render_title(block)
    arguments = compile_arguments(
        block.body, schema, scope.context, Header(block), what, scope.report, (), tuple(inner)
    )
    try:
        return evaluate_arguments(arguments, scope.env, scope.report, what)
    except Poisoned:
        return None


# ── clusters and states ─────────────────────────────────────────────────────────────────


def _load_providers(
    found: Sequence[tuple[Block, FrozenMap]], registry: Registry, scope: _FileScope
) -> Iterator[tuple[Block, Provider]]:
    """Yield the provider of each cluster that names one that is installed."""
    for block, values in found:
        try:
            yield block, registry.load(values["provider"])
        except ConfigurationError as fault:
            node = block.body.attributes["provider"]
            scope.report(make_error(node, fault.message, "", fault.advice))


def _read_clusters(
    file: File, providers: Mapping[Block, Provider], scope: _FileScope
) -> Iterator[ClusterEntry]:
    """Yield the clusters with a sound connection, even if other arguments have faults."""
    for block in file.body.blocks:
        if block.type != "cluster" or len(block.labels) != 1 or block not in providers:
            continue
        provider = providers[block]
        name = block.labels[0].text
        connection, faults = find_single(block, "connection")
        scope.faults.extend(faults)
        if connection is None:
            address = (
                'bootstrap_servers = ["host:9092"]' if provider.name == PROVIDER else "url = …"
            )
            advice = f"Write connection {{ {address} … }}."
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
    found: Sequence[tuple[Block, FrozenMap]], folder: Path, scope: _FileScope
) -> Iterator[StateEntry]:
    for block, values in found:
        place, home = values["location"], values["folder"]
        if place is None and home is None:
            advice = "Write location, or the folder of its configuration, or both."
            scope.report(
                make_error(Header(block), f"{render_title(block)} has no place", "", advice)
            )
        given = values["vars"] if values["vars"] is not None else EMPTY
        if not isinstance(given, FrozenMap):
            node = block.body.attributes["vars"]
            scope.report(make_error(node, '"vars" must be an object: variables by name'))
            continue
        yield StateEntry(
            block.labels[0].text,
            None if place is None else resolve_place(place, folder),
            None if home is None else folder / home,
            values["var_files"] or (),
            tuple(f"{name}={_render_variable(value)}" for name, value in sorted(given.items())),
        )


def _render_variable(value: Value) -> str:
    """Return a value as --var takes it: a text as it is, everything else as an expression."""
    if isinstance(value, str):
        return value
    return dumps(value).replace("${", "$${").replace("%{", "%%{")


# ── the register ────────────────────────────────────────────────────────────────────────


def _find_kind_faults(
    found: Blocks, registry: Registry, used: Iterable[Provider]
) -> Iterator[Diagnostic]:
    """Yield a fault for each kind, in a rule or naming block, of which there are no objects."""
    # Also of providers that no cluster uses: a state can have their objects.
    every = registry.names if found["rule"] or found["naming"] else ()
    providers = {one.name: one for one in (*used, *map(registry.load, every))}
    declared = tuple(name for one in providers.values() for name in one.types)
    shown = (*declared, CLUSTER, TOPIC_USAGE, GROUP_USAGE)
    for block, values in (*found["rule"], *found["naming"]):
        kinds, kind = declared if values.get("source") == "desired" else shown, values["kind"]
        fits = re.compile(to_regex(kind) if block.type == "rule" else re.escape(kind))
        if not any(map(fits.fullmatch, kinds)):
            advice = suggest(kind, kinds) or f"There are {', '.join(kinds)}."
            yield make_error(
                block.body.attributes["kind"], f'No object has the kind "{kind}"', "", advice
            )


def _read_waivers(file: File, scope: _FileScope) -> Mapping[Block, tuple[model.Waiver, ...]]:
    """Return the waivers of each rule, even if the rule has faults."""
    rules = [block for block in file.body.blocks if block.type == "rule"]
    inner = {rule: [one for one in rule.body.blocks if one.type == "waiver"] for rule in rules}
    read = {
        rule: [_evaluate_block(one, WAIVER, scope) for one in blocks]
        for rule, blocks in inner.items()
    }
    return {
        rule: tuple(_make_waiver(one) for one in values if one is not None)
        for rule, values in read.items()
    }


def _make_waiver(values: FrozenMap) -> model.Waiver:
    return model.Waiver(**{**select_set(values), "until": date.fromisoformat(values["until"])})
