"""`resource` blocks to declared objects."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..core.address import Address
from ..core.diagnostics import Diagnostic
from ..core.resource import Declared, Identity, Lifecycle
from ..core.schema import BOOL, STRING, ObjectSchema, map_of
from ..core.value import EMPTY, FrozenMap, Value
from ..syntax.nodes import Expression
from .addresses import ignored, provider_instance
from .arguments import (
    Arguments,
    Report,
    compile_arguments,
    deferred_fault,
    drop_nulls,
    evaluate_arguments,
    fit,
)
from .blocks import attribute, header
from .code import Code, Context, Env
from .convert import lift
from .declare import ResourceBlock
from .expand import Instance, instances
from .faults import Deferred, EvalError, Poisoned, as_diagnostic, error
from .types import plain
from .values import Computed, Null, ObjectVal, TupleVal, Val, marks_of

META = ("provider", "for_each", "count", "depends_on", "owner", "labels")
FAULTY_INSTANCES = 1_000
"""After so many the rest of a block is not evaluated; they say the same."""
META_BLOCKS = ("lifecycle",)
_LABELS = map_of(STRING)


@dataclass(frozen=True, slots=True)
class TypeInfo:
    """What the language knows of a resource type. key(attributes): its identity's key, raises
    ValueError; provider: the name of its provider; expand(declared): the objects that a
    composite stands for."""

    schema: ObjectSchema
    key: Callable[[FrozenMap], str]
    provider: str
    expand: Callable[[Declared], Sequence[Declared]] | None = None


@dataclass(frozen=True, slots=True)
class Meta:
    """A compiled meta-argument."""

    node: Expression
    code: Code


@dataclass(frozen=True, slots=True)
class ResourcePlan:
    """A compiled resource block; evaluate it once per instance."""

    block: ResourceBlock
    info: TypeInfo
    instance: str
    arguments: Arguments
    meta: Mapping[str, Meta]
    ignored: tuple[str, ...]
    needs: tuple[Address, ...]
    secrets: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Made:
    """One instance of a resource block, before a composite is expanded."""

    key: str | int | None
    declared: Declared


def compile_resource(
    block: ResourceBlock,
    info: TypeInfo,
    context: Context,
    known: Collection[str],
    needs: Iterable[Address],
    report: Report,
) -> ResourcePlan | None:
    """Compile a block. known: provider instances; needs: the resources that it refers to."""
    body, place = block.block.body, header(block.block)
    title = f"{block.address}"
    arguments = compile_arguments(
        body, info.schema, context, place, title, report, META, META_BLOCKS
    )
    lifecycle = block.lifecycle
    nodes = {name: block.argument(name) for name in ("owner", "labels")}
    if lifecycle is not None:
        nodes |= {name: attribute(lifecycle, name) for name in ("prevent_destroy", "adopt")}
    try:
        instance = provider_instance(block.argument("provider"), info.provider, known)
        paths = ignored(None if lifecycle is None else attribute(lifecycle, "ignore_changes"))
    except EvalError as fault:
        report(as_diagnostic(fault))
        return None
    for fault_of_path in _path_faults(paths, info.schema):
        report(fault_of_path)
    return ResourcePlan(
        block,
        info,
        instance,
        arguments,
        {name: Meta(node, context.code(node)) for name, node in nodes.items() if node is not None},
        tuple(path for path, _ in paths),
        tuple(sorted(set(needs), key=str)),
        tuple(_version_names(info.schema)),
    )


def _path_faults(
    paths: tuple[tuple[str, Expression], ...], schema: ObjectSchema
) -> Iterator[Diagnostic]:
    known = (*schema.attributes, *schema.blocks)
    for path, node in paths:
        first = path.split(".", 1)[0]
        if "*" not in first and "?" not in first and first not in known:
            yield error(
                node, f'There is no attribute "{first}" to ignore', f"There are {', '.join(known)}."
            )


def _version_names(schema: ObjectSchema) -> Iterator[tuple[str, str]]:
    """Secret attributes with the attribute whose change sends them again."""
    for name, found in schema.attributes.items():
        if found.secret:
            for version in (f"{name}_wo_version", f"{name}_version"):
                other = schema.find(version)
                if other is not None:
                    yield name, other.name
                    break


def evaluate_resource(
    plan: ResourcePlan, context: Context, env: Env, report: Report
) -> list[Made] | Poisoned:
    """Every instance of a block; Poisoned if it has faults, which are reported."""
    block = plan.block
    made: list[Made] = []
    faulty = 0
    try:
        found = instances(block.argument("for_each"), block.argument("count"), context, env)
        for instance in found:
            env.budget.instance(block.block)
            one = _instance(plan, instance, env, report)
            if isinstance(one, Made):
                made.append(one)
            else:
                faulty += 1
            if faulty >= FAULTY_INSTANCES:
                break
    except EvalError as fault:
        report(as_diagnostic(fault, context=[f"while expanding {block.address}"]))
        return Poisoned()
    except Deferred as deferred:
        node = block.argument("for_each") or block.argument("count")
        place = header(block.block) if node is None else node
        report(deferred_fault(place, deferred, str(block.address)))
        return Poisoned()
    except Poisoned as poison:
        return poison
    return Poisoned() if faulty else made


def _instance(plan: ResourcePlan, instance: Instance, env: Env, report: Report) -> Made | None:
    base = plan.block.address
    address = Address(base.type, base.name, instance.key)
    inner = env if not instance.roots else Env({**env.roots, **instance.roots}, {}, env.budget)
    where = str(address)
    try:
        env.budget.charge(1 + 2 * len(plan.arguments.given), plan.block.block)
        attributes = evaluate_arguments(plan.arguments, inner, report, where)
        meta = {name: _meta(name, item, inner) for name, item in plan.meta.items()}
        if attributes is None:
            return None
        return Made(instance.key, _declared(plan, address, attributes, meta))
    except EvalError as fault:
        report(as_diagnostic(fault, context=[f"while evaluating {where}"]))
    except Deferred as deferred:
        report(deferred_fault(header(plan.block.block), deferred, where))
    return None


_META_TYPES = {"owner": STRING, "labels": _LABELS, "prevent_destroy": BOOL, "adopt": BOOL}


def _meta(name: str, meta: Meta, env: Env) -> Value:
    value = meta.code(env)
    if marks_of(value):
        raise EvalError(meta.node, f'A sensitive value cannot go into "{name}"')
    kind = _META_TYPES[name]
    return drop_nulls(fit(value, kind, meta.node, f'"{name}"'), kind)


def _declared(
    plan: ResourcePlan, address: Address, attributes: FrozenMap, meta: Mapping[str, Value]
) -> Declared:
    place = header(plan.block.block)
    try:
        key = str(address) if plan.info.expand is not None else plan.info.key(attributes)
    except ValueError as fault:
        raise EvalError(place, f"{address} does not name an object", str(fault)) from None
    owner, labels = meta.get("owner"), meta.get("labels")
    prevent = meta.get("prevent_destroy")
    return Declared(
        Identity(plan.instance, address.type, key),
        address,
        attributes,
        place.range,
        Lifecycle(
            prevent if isinstance(prevent, bool) else None,
            meta.get("adopt") is True,
            plan.ignored,
        ),
        plan.needs,
        owner if isinstance(owner, str) else None,
        labels if isinstance(labels, FrozenMap) else EMPTY,
        _secret_version(plan, attributes),
    )


def _secret_version(plan: ResourcePlan, attributes: FrozenMap) -> str | None:
    versions = {
        name: attributes.get(version)
        for name, version in plan.secrets
        if attributes.get(name) is not None and attributes.get(version) is not None
    }
    if len(versions) == 1:
        return str(next(iter(versions.values())))
    return ",".join(f"{name}={version}" for name, version in versions.items()) or None


def expanded(plan: ResourcePlan, made: Iterable[Made], report: Report) -> Iterator[Declared]:
    """The objects themselves: a composite is replaced by what it stands for."""
    expand = plan.info.expand
    for one in made:
        if expand is None:
            yield one.declared
            continue
        try:
            yield from expand(one.declared)
        except ValueError as fault:
            place = header(plan.block.block)
            report(error(place, f"{one.declared.address} cannot be expanded", str(fault)))


Settled = Mapping[str, FrozenMap]
"""str(address) -> attributes that the server has set."""


def published(plan: ResourcePlan, made: Sequence[Made], settled: Settled) -> Val:
    """What other expressions see under `TYPE.NAME`: one object, one by key, or a list."""
    schema = plan.info.schema
    values = {one.key: _object(one.declared, schema, settled) for one in made}
    if plan.block.argument("for_each") is not None:
        return ObjectVal({str(key): value for key, value in values.items()})
    if plan.block.argument("count") is not None:
        return TupleVal(tuple(values.values()))
    return values[None]


def _object(declared: Declared, schema: ObjectSchema, settled: Settled) -> Val:
    address = str(declared.address)
    server = settled.get(address, EMPTY)
    fields: dict[str, Val] = {}
    for name, found in schema.attributes.items():
        if not found.computed:
            fields[name] = lift(declared.attributes.get(name), found.type)
        elif server.get(name) is not None:
            fields[name] = lift(server[name], found.type)
        else:
            fields[name] = Computed(address, name, plain(found.type))
    for name, inner in schema.blocks.items():
        fields[name] = _block(declared.attributes.get(name), inner)
    return ObjectVal(fields)


def _block(value: Value, schema: ObjectSchema) -> Val:
    if not isinstance(value, FrozenMap):
        return Null()
    fields = {n: lift(value.get(n), a.type) for n, a in schema.attributes.items()}
    return ObjectVal(fields | {n: _block(value.get(n), b) for n, b in schema.blocks.items()})
