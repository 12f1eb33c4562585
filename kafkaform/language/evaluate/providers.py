"""Evaluate `provider` blocks, make the default instances that have none, and evaluate `data`
blocks, which read from a provider's system while the configuration is evaluated.

`data "kafkaform_outputs"` is what another folder has recorded, and the one data source that no
provider answers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...core.address import render_key
from ...core.diagnostics import Diagnostic
from ...core.errors import ConnectError, KafkaformError, MissingObject, OtherSystem
from ...core.resource import ProviderConfig
from ...core.schema import (
    ANY,
    META_BLOCKS,
    STRING,
    AttributeSchema,
    ObjectSchema,
    list_of,
    make_schema,
)
from ...core.value import EMPTY, FrozenMap, Value
from ..declare.blocks import (
    ConditionRule,
    Header,
    ProviderBlock,
    ResourceBlock,
    check_rules,
    compile_rules,
    render_title,
)
from ..declare.modules import Module
from ..expressions.code import Context, Env
from ..expressions.references import Fixed, Outcome, RecordedOutputs, Unset
from ..values.conversion import lift_value
from ..values.faults import Deferred, EvalError, Poisoned, Skipped, make_diagnostic, make_error
from ..values.value import Computed, Null, ObjectVal, TupleVal, Val
from .arguments import Arguments, Report, compile_arguments, evaluate_arguments, make_deferred_fault
from .expansion import Instance, expand_instances
from .resources import ProviderChoice, Site, choose_instance, compile_choice

OWN_PREFIX = "kafkaform"
"""What the names of kafkaform's own data sources begin with, in place of a provider's name."""
OUTPUTS = f"{OWN_PREFIX}_outputs"
OUTPUTS_SCHEMA = make_schema(
    "The outputs that the last apply of another folder has recorded.",
    AttributeSchema(
        "folder",
        STRING,
        'Path of the other folder, seen from this configuration: `"../platform"`.',
        required=True,
    ),
    AttributeSchema(
        "outputs",
        ANY,
        "Name of an output -> its value. Sensitive outputs are left out, because their values are "
        "never recorded.",
        computed=True,
    ),
    AttributeSchema(
        "sensitive", list_of(STRING), "The names of the sensitive outputs.", computed=True
    ),
)


def lift_answer(answer: FrozenMap) -> Mapping[str, Val]:
    """The answer as expressions see it. An output that is not there has a fault of its own."""
    folder: str = answer["folder"]
    sensitive: Iterable[str] = answer["sensitive"]
    values = {name: lift_value(value) for name, value in answer["outputs"].items()}
    return {
        "folder": folder,
        "outputs": ObjectVal(RecordedOutputs(values, folder, frozenset(sensitive))),
        "sensitive": lift_value(tuple(sensitive), list_of(STRING)),
    }


_META_ARGUMENTS = ("for_each", "count", "depends_on")

Query = Callable[[ProviderConfig, str, FrozenMap], Value]
"""Reads a data source: (provider instance, data source, arguments) -> its attributes. Raises
KafkaformError. For what kafkaform answers itself, the instance has no name, and the place of the
data block."""


Configure = Callable[[str], ProviderConfig | None]
"""The configuration of a provider instance; None after a fault."""


class Unreached(EvalError):
    """The system of a data source could not be reached."""


class DataInfo(Struct, frozen=True):
    """What the language knows about a data source."""

    schema: ObjectSchema
    provider: str | None
    """The name of its provider. None: kafkaform itself answers."""


class DataPlan(Struct, frozen=True):
    """A compiled data block, which is evaluated once for each instance."""

    block: ResourceBlock
    info: DataInfo
    provider: ProviderChoice | None
    arguments: Arguments
    preconditions: tuple[ConditionRule, ...]
    postconditions: tuple[ConditionRule, ...]

    @property
    def name(self) -> str:
        return f"data.{self.block.address}"


def compile_data(
    block: ResourceBlock,
    info: DataInfo,
    context: Context,
    module: Module,
    report: Report,
) -> DataPlan | None:
    """Compile a block of a module; None after a fault."""
    location, title = Header(block.block), f"data.{block.address}"
    arguments = compile_arguments(
        block.block.body,
        info.schema,
        context,
        location,
        title,
        report,
        _META_ARGUMENTS if info.provider is None else ("provider", *_META_ARGUMENTS),
        META_BLOCKS,
    )
    try:
        provider = None
        if info.provider is not None:
            node = block.block.get_argument("provider")
            provider = compile_choice(node, info.provider, module, context, location)
    except EvalError as fault:
        report(make_diagnostic(fault))
        return None
    preconditions, postconditions = block.preconditions, block.postconditions
    rules = compile_rules(preconditions, context), compile_rules(postconditions, context)
    return DataPlan(block, info, provider, arguments, *rules)


def evaluate_data(
    plan: DataPlan,
    context: Context,
    site: Site,
    configure: Configure,
    query: Query | None,
    *,
    waits: bool = False,
) -> Outcome:
    """What other expressions see of the block: one object, objects by key, or a list of objects.

    Without a query (`validate`), it is Unset, and what needs it is checked for names only. waits:
    an object that does not exist is not known before the apply, which may create it. Raises
    Unreached.
    """
    block = plan.block
    title = ".".join((*site.path, plan.name))
    values: dict[str | int | None, Val] = {}
    try:
        for instance in expand_instances(block.block, context, site.env):
            site.env.budget.count_instance(block.block)
            values[instance.key] = _evaluate_instance(
                plan, instance, site, title, configure, query, waits=waits
            )
    except Unreached:
        raise
    except EvalError as fault:
        site.report(make_diagnostic(fault, context=[f"while evaluating {title}"]))
        return Poisoned()
    except Deferred as deferred:
        site.report(make_deferred_fault(Header(block.block), deferred, title))
        return Poisoned()
    except Poisoned as poison:
        return poison
    if block.block.get_argument("for_each") is not None:
        return ObjectVal({str(key): value for key, value in values.items()})
    return TupleVal(tuple(values.values())) if block.several else values.get(None, Null())


def _evaluate_instance(
    plan: DataPlan,
    instance: Instance,
    site: Site,
    title: str,
    configure: Configure,
    query: Query | None,
    *,
    waits: bool,
) -> Val:
    """The answer for one instance. Raises EvalError, Deferred or Poisoned."""
    env = Env({**site.env.roots, **instance.roots}, {}, site.env.budget)
    # Arguments are checked without a query, too, so that `validate` finds their faults.
    faults = [*check_rules(plan.preconditions, title, env)]
    for fault in faults:
        site.report(fault)
    arguments = None if faults else evaluate_arguments(plan.arguments, env, site.report, title)
    if arguments is None:
        raise Poisoned
    chosen = None if plan.provider is None else choose_instance(plan.provider, site.keys, env)
    if query is None:
        raise Unset
    # What kafkaform answers itself has no provider block: the place is that of the data block.
    header = plan.block.block.header_range
    config = ProviderConfig("", "", EMPTY, header) if chosen is None else configure(chosen)
    if config is None:
        raise Poisoned
    try:
        answer = _ask_query(plan, arguments, config, query)
    except MissingObject as error:
        if waits:
            return ObjectVal(_lift_awaited(plan, arguments, f"{title}{render_key(instance.key)}"))
        raise _make_fault(plan, error) from None
    value = ObjectVal(_lift_answer(plan, answer))
    with_self = Env({**env.roots, "self": Fixed(value)}, {}, env.budget)
    for fault in check_rules(plan.postconditions, title, with_self):
        site.report(fault)
    return value


def _lift_answer(plan: DataPlan, answer: FrozenMap) -> Mapping[str, Val]:
    if plan.info.provider is None:
        return lift_answer(answer)
    attributes = plan.info.schema.attributes
    return {name: lift_value(answer.get(name), item.type) for name, item in attributes.items()}


def _lift_awaited(plan: DataPlan, arguments: FrozenMap, address: str) -> Mapping[str, Val]:
    """The arguments, and what is only known once the object exists."""
    return {
        name: Computed(address, name, item.type, item.instead)
        if item.computed
        else lift_value(arguments.get(name), item.type)
        for name, item in plan.info.schema.attributes.items()
    }


def _ask_query(
    plan: DataPlan, arguments: FrozenMap, config: ProviderConfig, query: Query
) -> FrozenMap:
    try:
        answer = query(config, plan.block.address.type, arguments)
    except (OtherSystem, MissingObject):
        raise  # if another system answers than the one of the state, the run must stop
    except KafkaformError as error:
        raise _make_fault(plan, error) from None
    # The object has its arguments and the answer; the answer wins, such as a normalised name.
    argument_values = {name: value for name, value in arguments.items() if value is not None}
    return FrozenMap({**argument_values, **(answer if isinstance(answer, FrozenMap) else {})})


def _make_fault(plan: DataPlan, error: KafkaformError) -> EvalError:
    first, location = error.diagnostics[0], Header(plan.block.block)
    kind_of_fault = Unreached if isinstance(error, ConnectError) else EvalError
    return kind_of_fault(
        location, f"{plan.name} cannot be read: {first.summary}", advice=first.advice
    )


Check = Callable[[FrozenMap], Sequence[tuple[str, Diagnostic]]]
"""Finds faults that a schema cannot express: pairs of (attribute, fault without a place)."""

Connect = Callable[[str, FrozenMap], tuple[FrozenMap, Sequence[tuple[str, Diagnostic]]]]
"""Completes the settings of an instance, by the environment: (instance, settings of its block) ->
the settings to connect with, and what is refused."""


class ProviderInfo(Struct, frozen=True):
    """What the language knows about a provider."""

    schema: ObjectSchema
    check: Check = lambda _: ()
    connect: Connect = lambda _, config: (config, ())


def configure_provider(
    block: ProviderBlock,
    instance: str,
    info: ProviderInfo,
    context: Context,
    env: Env,
    report: Report,
) -> ProviderConfig | None:
    """One provider instance; None after faults, which are reported."""
    location, title = Header(block.block), f"provider.{instance}"
    arguments = compile_arguments(
        block.block.body,
        info.schema,
        context,
        location,
        render_title(block.block),
        report,
        ("alias", "for_each") if block.several else ("alias",),
    )
    try:
        config = evaluate_arguments(arguments, env, report, title)
    except Skipped as skipped:
        report(make_error(location, f"{title} needs {skipped}, which is skipped"))
        return None
    except Poisoned:
        return None
    except Deferred as deferred:
        report(make_deferred_fault(location, deferred, title))
        return None
    if config is None:
        return None
    # The check sees the completed settings, since the environment can set what the block lacks.
    config, refused = info.connect(instance, config)
    for name, fault in refused or info.check(config):
        report(_locate_fault(name, fault, block, info.schema))
    if refused:
        return None
    return ProviderConfig(block.name, instance, config, block.block.header_range)


def _locate_fault(
    name: str, fault: Diagnostic, block: ProviderBlock, schema: ObjectSchema
) -> Diagnostic:
    """The fault at the argument that sets this attribute. The source line of a secret is left
    out."""
    attribute = schema.attributes.get(name)
    hide = attribute is not None and (attribute.secret or attribute.sensitive)
    for spelling, item in block.block.body.attributes.items():
        if schema.find(spelling) is attribute:
            return replace(fault, range=item.range, excerpt=None if hide else item.excerpt)
    header = Header(block.block)
    return replace(fault, range=header.range, excerpt=header.excerpt)


def make_default_provider(
    instance: str, info: ProviderInfo, block: ResourceBlock, title: str, report: Report
) -> ProviderConfig:
    """The default instance of a provider without a provider block. block: what needs it; title: its
    name in messages."""
    location, schema = Header(block.block), info.schema
    missing = [name for name, a in schema.attributes.items() if a.required and a.default is None]
    if missing:
        report(
            make_error(
                location,
                f"{title} needs the provider {instance}, which is not configured",
                f"A provider block with {', '.join(missing)} is missing.",
                f'Write provider "{instance}" {{ {missing[0]} = … }}.',
            )
        )
    # It is completed also after a fault, so that the same fault is not reported for every object.
    defaults: dict[str, Value] = {name: a.default for name, a in schema.attributes.items()}
    defaults.update(dict.fromkeys(schema.blocks))
    config, refused = info.connect(instance, FrozenMap(defaults))
    for _, fault in refused:
        report(replace(fault, range=location.range, excerpt=location.excerpt))
    return ProviderConfig(instance, instance, config, location.range)
