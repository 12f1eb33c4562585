"""Compile `resource` blocks, choose their provider instances, and evaluate them to declared
objects."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from ...core.address import Address, render_key
from ...core.change import PARK
from ...core.diagnostics import Diagnostic, Range
from ...core.resource import Declared, Identity, Lifecycle
from ...core.schema import BOOL, META_ARGUMENTS, META_BLOCKS, STRING, ObjectSchema, map_of
from ...core.text import make_sentence, parse_amount
from ...core.value import EMPTY, FrozenMap, Value
from ...syntax.nodes import Block, Expression
from ..declare.addresses import read_ignored_paths, read_provider_instance
from ..declare.blocks import ConditionRule, Header, ResourceBlock, check_rules, compile_rules
from ..declare.modules import Module
from ..expressions.code import Code, Context, Env
from ..expressions.references import Fixed
from ..values.conversion import compute_look_cost, convert_value, lift_value
from ..values.faults import (
    Budget,
    ConvertFault,
    Deferred,
    EvalError,
    Location,
    Poisoned,
    Skipped,
    make_diagnostic,
    make_error,
    suggest_near,
)
from ..values.types import drop_optional
from ..values.value import Computed, Null, ObjectVal, TupleVal, Val, marks_of, unmark
from .arguments import (
    Arguments,
    Report,
    compile_arguments,
    drop_nulls,
    evaluate_arguments,
    fit_type,
    make_deferred_fault,
)
from .expansion import Instance, expand_instances

Settled = Mapping[str, FrozenMap]
"""str(address) -> the attributes that the server has set."""
FAULTY_INSTANCES = 1_000
"""After so many faulty instances, the rest of a block is not evaluated: it has the same faults."""
_LABELS = map_of(STRING)
_SWITCHES = ("prevent_destroy", "adopt", "shared")
"""The arguments of `lifecycle` whose values can differ between instances."""
_META_TYPES = {"owner": STRING, "labels": _LABELS, PARK: STRING, **dict.fromkeys(_SWITCHES, BOOL)}
_LONGEST_PARK = 3650 * 86_400_000
_LEFT_OUT = (None, -1)
"""Values that leave an attribute to the system; -1 is the number that the system chooses."""


class ProviderChoice(Struct, frozen=True):
    """The provider instance that a block uses."""

    name: str
    """Its name in the module of the block."""
    instance: str
    """The instance of the root, without the key of a block with for_each."""
    key: Expression | None = None
    """The key that the block names."""
    code: Code | None = None
    """The compiled key."""


class ProviderKeys(Struct, frozen=True):
    """The provider instances with keys, as one instance of a module sees them."""

    declared: Mapping[str, frozenset[str] | None] = EMPTY
    """Provider block with for_each -> its keys, None after a fault."""
    handed: Mapping[str, str] = EMPTY
    """Name in the module -> the key that its caller chose, as in `["eu"]`."""


def compile_choice(
    node: Expression | None, provider: str, module: Module, context: Context, location: Location
) -> ProviderChoice:
    """Which instance a block uses. node: its argument `provider`; provider: the name of the one
    that its type belongs to. Raises EvalError."""
    providers, repeated = module.providers, module.repeated
    name, key = read_provider_instance(node, provider, providers, repeated, location)
    code = None if key is None else context.compile_node(key)
    return ProviderChoice(name, providers[name], key, code)


def choose_instance(choice: ProviderChoice, keys: ProviderKeys, env: Env) -> str:
    """The name of the instance. Raises EvalError, Deferred or Poisoned."""
    if choice.key is None or choice.code is None:
        return f"{choice.instance}{keys.handed.get(choice.name, '')}"
    declared = keys.declared.get(choice.instance)
    if declared is None:  # its block has a fault
        raise Poisoned
    value, marks = unmark(choice.code(env))
    if marks:
        raise EvalError(
            choice.key,
            "The key of a provider instance cannot depend on a sensitive value",
            "It becomes part of the name of the instance, which is shown everywhere.",
        )
    if isinstance(value, Computed):
        raise value.defer()
    try:
        key = convert_value(value, STRING)
    except ConvertFault as fault:
        summary = "The key of a provider instance must be a string"
        raise EvalError(choice.key, summary, make_sentence(fault)) from None
    if not isinstance(key, str) or key not in declared:
        suffix = render_key(key) if isinstance(key, str) else "[null]"
        raise EvalError(
            choice.key,
            f"There is no provider instance {choice.instance}{suffix}",
            f"The keys of its for_each are {', '.join(sorted(declared)) or 'none'}.",
            suggest_near(key, declared) if isinstance(key, str) else "",
        )
    return f"{choice.instance}{render_key(key)}"


class TypeInfo(Struct, frozen=True):
    """What the language knows about a resource type."""

    schema: ObjectSchema
    key: Callable[[FrozenMap], str]
    """Attributes -> the key of the object's identity. Raises ValueError."""
    provider: str
    """The name of its provider."""
    expand: Callable[[Declared], Sequence[Declared]] | None = None
    """Of a composite type: a declared composite -> the objects that it consists of."""
    shareable: bool = False
    """Several configurations can declare the same object (`ResourceType.shareable`)."""
    parkable: bool = False
    """Access to an object can be taken away before it is deleted (`ResourceType.closures`)."""


class MetaArgument(Struct, frozen=True):
    """A compiled meta-argument."""

    node: Expression
    code: Code


class ResourcePlan(Struct, frozen=True):
    """A compiled resource block, which is evaluated once for each instance."""

    block: ResourceBlock
    info: TypeInfo
    provider: ProviderChoice
    """The provider instance."""
    arguments: Arguments
    meta: Mapping[str, MetaArgument]
    """Meta-arguments with values, by name."""
    secrets: tuple[tuple[str, str], ...]
    """Secret attributes, each with the attribute of its version."""
    range: Range
    lifecycle: Lifecycle = Lifecycle()
    """The part of the lifecycle that is the same for all instances."""
    preconditions: tuple[ConditionRule, ...] = ()
    postconditions: tuple[ConditionRule, ...] = ()
    shaped: bool = False
    """Whether it was compiled from the shape that the block repeats."""


class Site(Struct, frozen=True):
    """Where a block is evaluated: in an instance of its module."""

    env: Env
    path: tuple[str, ...]
    """The modules in the address."""
    report: Report
    needs: tuple[Address, ...] = ()
    """The objects that come before those of the block."""
    settled: Settled = EMPTY
    keys: ProviderKeys = ProviderKeys()
    """The provider instances with keys."""


class ResourceInstance(Struct, frozen=True):
    """One instance of a resource block, before a composite is expanded."""

    key: str | int | None
    declared: Declared


def compile_resource(
    block: ResourceBlock,
    info: TypeInfo,
    context: Context,
    module: Module,
    report: Report,
    types: Mapping[str, TypeInfo] = EMPTY,
) -> ResourcePlan | None:
    """Compile a block of a module; None after a fault. types: all types, one of which can have an
    unknown argument."""
    written, schema = block.block, info.schema
    location, title = Header(written), str(block.address)
    other_schemas = {
        name: other_info.schema
        for name, other_info in types.items()
        if other_info.schema is not schema
    }
    arguments = compile_arguments(
        written.body,
        schema,
        context,
        location,
        title,
        report,
        META_ARGUMENTS,
        META_BLOCKS,
        other_schemas,
    )
    try:
        node = written.get_argument("provider")
        plan = ResourcePlan(
            block,
            info,
            compile_choice(node, info.provider, module, context, location),
            arguments,
            _compile_meta(written, ("owner", "labels"), context),
            tuple(_list_version_names(schema)),
            written.header_range,
        )
        if block.lifecycle is None:
            return plan
        return _add_lifecycle(plan, block.lifecycle, context, report)
    except EvalError as fault:
        report(make_diagnostic(fault))
        return None


def _compile_meta(
    block: Block, names: Iterable[str], context: Context
) -> Mapping[str, MetaArgument]:
    nodes = {name: block.get_argument(name) for name in names}
    return {
        name: MetaArgument(node, context.compile_node(node))
        for name, node in nodes.items()
        if node is not None
    }


def _add_lifecycle(
    plan: ResourcePlan, lifecycle: Block, context: Context, report: Report
) -> ResourcePlan:
    """The plan with what its `lifecycle` block says. Raises EvalError."""
    ignored = read_ignored_paths(lifecycle, "ignore_changes")
    managed = read_ignored_paths(lifecycle, "ignore_changes_except")
    if ignored is not None and managed is not None:
        summary = '"ignore_changes" and "ignore_changes_except" exclude each other'
        report(make_error(Header(plan.block.block), summary, advice="Keep one of them."))
    for fault in (*_check_shared(lifecycle, plan), *_check_park(lifecycle, plan)):
        report(fault)
    for fault in _check_paths((*(ignored or ()), *(managed or ())), plan.info.schema):
        report(fault)
    return replace(
        plan,
        meta={**plan.meta, **_compile_meta(lifecycle, (*_SWITCHES, PARK), context)},
        lifecycle=Lifecycle(
            ignore_changes=tuple(path for path, _ in ignored or ()),
            ignore_changes_except=None if managed is None else tuple(path for path, _ in managed),
        ),
        preconditions=compile_rules(plan.block.preconditions, context),
        postconditions=compile_rules(plan.block.postconditions, context),
    )


def _check_shared(lifecycle: Block, plan: ResourcePlan) -> Iterator[Diagnostic]:
    node = lifecycle.get_argument("shared")
    if node is None:
        return
    if not plan.info.shareable:
        yield make_error(
            node,
            f"A {plan.block.address.type} cannot be shared",
            "What one folder changes or deletes, the other folder would change back or miss.",
            "Declare it in one folder. Other folders can name it without a block.",
        )
    elif lifecycle.get_argument("prevent_destroy") is not None:
        summary = '"shared" and "prevent_destroy" exclude each other'
        detail = "A shared object is never deleted."
        yield make_error(node, summary, detail, "Keep one of them.")


def _check_park(lifecycle: Block, plan: ResourcePlan) -> Iterator[Diagnostic]:
    node = lifecycle.get_argument(PARK)
    if node is None:
        return
    if not plan.info.parkable:
        yield make_error(
            node,
            f"A {plan.block.address.type} cannot be parked",
            "Only an object that others have access to can lose that access before it is deleted.",
            'Remove "park".',
        )
    elif lifecycle.get_argument("shared") is not None:
        summary = '"shared" and "park" exclude each other'
        yield make_error(node, summary, "A shared object is never deleted.", "Keep one of them.")


def _check_paths(
    paths: tuple[tuple[str, Expression], ...], schema: ObjectSchema
) -> Iterator[Diagnostic]:
    # Only the first word is checked: what is below can be keys of a map, which have no schema.
    names = (*schema.attributes, *schema.blocks)
    for path, node in paths:
        first = path.split(".", 1)[0]
        if "*" not in first and "?" not in first and first not in names:
            yield make_error(
                node, f'There is no attribute "{first}" to ignore', f"There are {', '.join(names)}."
            )


def _list_version_names(schema: ObjectSchema) -> Iterator[tuple[str, str]]:
    """Secret attributes, each with the attribute whose change sends it again."""
    # Secrets can't be read back, so a changed one is not seen; a changed version is. The first
    # name is Terraform's, for write-only arguments.
    for name, attribute in schema.attributes.items():
        if attribute.secret:
            for version in (f"{name}_wo_version", f"{name}_version"):
                version_attribute = schema.find(version)
                if version_attribute is not None:
                    yield name, version_attribute.name
                    break


def evaluate_resource(
    plan: ResourcePlan, context: Context, site: Site
) -> list[ResourceInstance] | Poisoned:
    """Every instance of a block; Poisoned after faults, which are reported."""
    block, env = plan.block, site.env
    title = str(block.address.nest_in(site.path))
    instances: list[ResourceInstance] = []
    faulty = 0
    try:
        for instance in expand_instances(block.block, context, env):
            env.budget.count_instance(block.block)
            evaluated = evaluate_instance(plan, instance, site)
            if isinstance(evaluated, ResourceInstance):
                instances.append(evaluated)
            else:
                faulty += 1
            if faulty >= FAULTY_INSTANCES:
                break
    except EvalError as fault:
        site.report(make_diagnostic(fault, context=[f"while expanding {title}"]))
        return Poisoned()
    except Deferred as deferred:
        repeated = block.block.get_argument("for_each") or block.block.get_argument("count")
        site.report(make_deferred_fault(repeated or Header(block.block), deferred, title))
        return Poisoned()
    except Skipped as skipped:
        site.report(
            make_error(
                Header(block.block),
                f"{title} needs {skipped}, which is skipped",
                "kafkaform does not have its provider, so its values are not known.",
                'For a secret, write secret_env("NAME"), secret_file("PATH") or '
                "secret_command([…]), or use a variable with sensitive = true. For anything else, "
                "write the value itself, or use a variable.",
            )
        )
        return skipped
    except Poisoned as poison:
        return poison
    return Poisoned() if faulty else instances


def evaluate_instance(
    plan: ResourcePlan, instance: Instance, site: Site
) -> ResourceInstance | None:
    """One instance of a block; None after faults, which are reported. Raises Poisoned."""
    # Preconditions first: if one is not met, the faults of the arguments would only repeat it.
    base, env, report = plan.block.address, site.env, site.report
    address = Address(base.type, base.name, instance.key, site.path)
    inner = env if not instance.roots else Env({**env.roots, **instance.roots}, {}, env.budget)
    try:
        # Charged for each instance, so that a `count` of a large number ends at the limit.
        cost = 1 + 2 * len(plan.arguments.entries) + len(site.needs)
        env.budget.charge(cost, plan.block.block)
        if plan.preconditions and (
            faults := [*check_rules(plan.preconditions, str(address), inner)]
        ):
            for fault_of_rule in faults:
                report(fault_of_rule)
            return None
        attributes = evaluate_arguments(plan.arguments, inner, report, address)
        meta = {name: _evaluate_meta(name, item, inner) for name, item in plan.meta.items()}
        if attributes is None:
            return None
        provider = choose_instance(plan.provider, site.keys, inner)
        evaluated = ResourceInstance(
            instance.key, _make_declared(plan, provider, address, attributes, meta, site.needs)
        )
    except EvalError as fault:
        report(make_diagnostic(fault, context=[f"while evaluating {address}"]))
        return None
    except Deferred as deferred:
        report(make_deferred_fault(Header(plan.block.block), deferred, str(address)))
        return None
    # The object is kept even if a postcondition is not met: others that refer to it are checked.
    if plan.postconditions:
        self_object = Fixed(_make_object(evaluated.declared, plan.info, site.settled, env.budget))
        with_self = Env({**inner.roots, "self": self_object}, {}, env.budget)
        for fault_of_rule in check_rules(plan.postconditions, str(address), with_self):
            report(fault_of_rule)
    return evaluated


def _evaluate_meta(name: str, meta: MetaArgument, env: Env) -> Value:
    value = meta.code(env)
    env.budget.charge(compute_look_cost(value, meta.node), meta.node)
    if marks_of(value):
        raise EvalError(meta.node, f'"{name}" cannot contain a sensitive value')
    kind = _META_TYPES[name]
    fitting = drop_nulls(fit_type(value, kind, meta.node, f'"{name}"'), kind)
    return _read_park(fitting, meta.node) if isinstance(fitting, str) and name == PARK else fitting


def _read_park(text: str, node: Expression) -> int:
    """The milliseconds of a text such as `7d`. Raises EvalError."""
    try:
        milliseconds = parse_amount(text, "ms")
    except ValueError as error:
        raise EvalError(node, f'"{PARK}" is not a time', f"{error}") from None
    if not 0 < milliseconds <= _LONGEST_PARK:
        raise EvalError(node, f'"{PARK}" must be between 1 ms and 3650 days')
    return milliseconds


def _make_declared(
    plan: ResourcePlan,
    provider: str,
    address: Address,
    attributes: FrozenMap,
    meta: Mapping[str, Value],
    needs: tuple[Address, ...],
) -> Declared:
    try:
        # A composite is not an object of the system, so its address takes the place of a key.
        key = str(address) if plan.info.expand is not None else plan.info.key(attributes)
    except ValueError as fault:
        location = Header(plan.block.block)
        raise EvalError(location, f"{address} does not name an object", str(fault)) from None
    owner, labels = meta.get("owner"), meta.get("labels")
    return Declared(
        Identity(provider, address.type, key),
        address,
        attributes,
        plan.range,
        _make_lifecycle(plan.lifecycle, meta) if meta else plan.lifecycle,
        needs,
        owner if isinstance(owner, str) else None,
        labels if isinstance(labels, FrozenMap) else EMPTY,
        _compute_secret_version(plan, attributes) if plan.secrets else None,
    )


def _make_lifecycle(common: Lifecycle, meta: Mapping[str, Value]) -> Lifecycle:
    """The lifecycle of one instance. The instances share one object if nothing differs."""
    prevent, shared = meta.get("prevent_destroy"), meta.get("shared") is True
    # Whichever folder comes second finds a shared object there, and its block says that it may.
    adopt = meta.get("adopt") is True or shared
    park = meta.get(PARK)
    if prevent is None and park is None and not adopt:
        return common
    return replace(
        common,
        prevent_destroy=prevent if isinstance(prevent, bool) else None,
        adopt=adopt,
        shared=shared,
        park=park if isinstance(park, int) else None,
    )


def _compute_secret_version(plan: ResourcePlan, attributes: FrozenMap) -> str | None:
    versions = {
        name: attributes.get(version)
        for name, version in plan.secrets
        if attributes.get(name) is not None and attributes.get(version) is not None
    }
    if len(versions) == 1:
        return str(next(iter(versions.values())))
    return ",".join(f"{name}={version}" for name, version in versions.items()) or None


def expand_composites(
    plan: ResourcePlan, instances: Iterable[ResourceInstance], report: Report
) -> Iterator[Declared]:
    """The objects that the instances of a composite block consist of."""
    assert plan.info.expand is not None
    for instance in instances:
        try:
            yield from plan.info.expand(instance.declared)
        except ValueError as fault:
            location = Header(plan.block.block)
            report(
                make_error(location, f"{instance.declared.address} cannot be expanded", str(fault))
            )


class OpenFields(dict[str, Val]):
    """The fields of an object some of whose attributes its block leaves to the system. They are
    null until the system has set them, and an expression that reads one is evaluated again.

    `values` does not count as a read: marks and sizes are computed with it."""

    __slots__ = ("address", "budget", "left_out")

    def __init__(
        self, fields: Mapping[str, Val], left_out: frozenset[str], address: str, budget: Budget
    ) -> None:
        super().__init__(fields)
        self.left_out, self.address, self.budget = left_out, address, budget

    def __getitem__(self, name: str) -> Val:
        if name in self.left_out:
            self._note_read(name)
        return super().__getitem__(name)

    def __iter__(self) -> Iterator[str]:
        # With this method, `{**fields}` and `|` read each field, too.
        return iter(self.keys())

    def get(self, name: str, default: Any = None) -> Any:
        if name in self.left_out:
            self._note_read(name)
        return super().get(name, default)

    def items(self) -> Any:
        self._note_read(min(self.left_out))
        return super().items()

    def _note_read(self, name: str) -> None:
        self.budget.open_reads += 1
        self.budget.open_read = self.address, name


def publish_value(
    plan: ResourcePlan, instances: Sequence[ResourceInstance], settled: Settled, budget: Budget
) -> Val:
    """What other expressions see as `TYPE.NAME`: one object, objects by key, or a list."""
    values = {
        instance.key: _make_object(instance.declared, plan.info, settled, budget)
        for instance in instances
    }
    if plan.block.block.get_argument("for_each") is not None:
        return ObjectVal({str(key): value for key, value in values.items()})
    if plan.block.block.get_argument("count") is not None:
        return TupleVal(tuple(values.values()))
    return values.get(None, Null())


def _make_object(declared: Declared, info: TypeInfo, settled: Settled, budget: Budget) -> ObjectVal:
    schema, address = info.schema, str(declared.address)
    # A composite block is not an object of the system.
    server = EMPTY if info.expand is not None else settled.get(address)
    # Computed attributes have their value once the server's answer is known, after the apply.
    fields: dict[str, Val] = {"id": declared.identity.key}
    left_out: list[str] = []
    for name, attribute in schema.attributes.items():
        if not attribute.computed:
            value = declared.attributes.get(name)
            if value is None and attribute.names:
                value = declared.identity.key
            elif value in _LEFT_OUT and not (attribute.secret or attribute.sensitive):
                # The system will choose what is None in a prediction.
                if server is None or server.get(name, value) is None and name in server:
                    left_out.append(name)
                else:
                    value = server.get(name, value)
            fields[name] = lift_value(value, attribute.type)
        elif server is not None and server.get(name) is not None and not attribute.secret:
            fields[name] = lift_value(server[name], attribute.type)
        else:
            fields[name] = Computed(address, name, drop_optional(attribute.type), attribute.instead)
    for name, inner in schema.blocks.items():
        fields[name] = _make_block(declared.attributes.get(name), inner)
    if left_out:
        fields = OpenFields(fields, frozenset(left_out), address, budget)
    return ObjectVal(fields)


def _make_block(value: Value, schema: ObjectSchema) -> Val:
    if not isinstance(value, FrozenMap):
        return Null()
    fields = {n: lift_value(value.get(n), a.type) for n, a in schema.attributes.items()}
    return ObjectVal(fields | {n: _make_block(value.get(n), b) for n, b in schema.blocks.items()})
