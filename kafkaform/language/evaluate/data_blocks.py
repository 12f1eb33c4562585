"""Evaluate `data` blocks, which read from a system while the configuration is evaluated."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from ...core.errors import ConnectError, KafkaformError, OtherSystem
from ...core.resource import ProviderConfig
from ...core.schema import META_BLOCKS, ObjectSchema
from ...core.value import FrozenMap, Value
from ..declare.blocks import Header
from ..declare.conditions import Rule, check_rules, compile_rules
from ..declare.declarations import ResourceBlock
from ..declare.modules import Module
from ..expressions.code import Context, Env
from ..expressions.namespaces import Fixed, Found, Unset
from ..values.conversion import lift_value
from ..values.faults import Deferred, EvalError, Poisoned, make_diagnostic
from ..values.value import Null, ObjectVal, TupleVal, Val
from .arguments import Arguments, Report, compile_arguments, evaluate_arguments, make_deferred_fault
from .expansion import Instance, expand_instances
from .provider_blocks import ProviderChoice, choose_instance, compile_choice
from .resources import Site

META = ("provider", "for_each", "count", "depends_on")

Query = Callable[[ProviderConfig, str, FrozenMap], Value]
"""Reads a data source: (provider instance, data source, arguments) -> its attributes. Raises
KafkaformError."""


Configure = Callable[[str], ProviderConfig | None]
"""The configuration of a provider instance; None after a fault."""


class Unreached(EvalError):
    """The system of a data source could not be reached."""


class DataInfo(Struct, frozen=True):
    """What the language knows about a data source."""

    schema: ObjectSchema
    provider: str
    """The name of its provider."""


class DataPlan(Struct, frozen=True):
    """A compiled data block, which is evaluated once for each instance."""

    block: ResourceBlock
    info: DataInfo
    provider: ProviderChoice
    arguments: Arguments
    before: tuple[Rule, ...]
    after: tuple[Rule, ...]

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
    place, title = Header(block.block), f"data.{block.address}"
    arguments = compile_arguments(
        block.block.body, info.schema, context, place, title, report, META, META_BLOCKS
    )
    try:
        node = block.block.get_argument("provider")
        provider = compile_choice(node, info.provider, module, context, place)
    except EvalError as fault:
        report(make_diagnostic(fault))
        return None
    before, after = block.preconditions, block.postconditions
    rules = compile_rules(before, context), compile_rules(after, context)
    return DataPlan(block, info, provider, arguments, *rules)


def evaluate_data(
    plan: DataPlan, context: Context, site: Site, configure: Configure, query: Query | None
) -> Found:
    """What other expressions see of the block: one object, objects by key, or a list of objects.

    configure: name of a provider instance -> its configuration. Without a query (`validate`), it is
    Unset, and what needs it is checked for names only. Raises Unreached.
    """
    block = plan.block
    what = ".".join((*site.path, plan.name))
    found: dict[str | int | None, Val] = {}
    try:
        for instance in expand_instances(block.block, context, site.env):
            site.env.budget.count_instance(block.block)
            found[instance.key] = _evaluate_instance(plan, instance, site, what, configure, query)
    except Unreached:
        raise
    except EvalError as fault:
        site.report(make_diagnostic(fault, context=[f"while evaluating {what}"]))
        return Poisoned()
    except Deferred as deferred:
        site.report(make_deferred_fault(Header(block.block), deferred, what))
        return Poisoned()
    except Poisoned as poison:
        return poison
    if block.block.get_argument("for_each") is not None:
        return ObjectVal({str(key): value for key, value in found.items()})
    return TupleVal(tuple(found.values())) if block.several else found.get(None, Null())


def _evaluate_instance(
    plan: DataPlan,
    instance: Instance,
    site: Site,
    what: str,
    configure: Configure,
    query: Query | None,
) -> Val:
    """The answer for one instance. Raises EvalError, Deferred or Poisoned."""
    env = Env({**site.env.roots, **instance.roots}, {}, site.env.budget)
    # Arguments are checked without a query, too, so that `validate` finds their faults.
    faults = [*check_rules(plan.before, what, env)]
    for fault in faults:
        site.report(fault)
    arguments = None if faults else evaluate_arguments(plan.arguments, env, site.report, what)
    if arguments is None:
        raise Poisoned
    provider = choose_instance(plan.provider, site.keys, env)
    if query is None:
        raise Unset
    config = configure(provider)
    if config is None:
        raise Poisoned
    answer = _ask_query(plan, arguments, config, query)
    value = ObjectVal(
        {n: lift_value(answer.get(n), a.type) for n, a in plan.info.schema.attributes.items()}
    )
    with_self = Env({**env.roots, "self": Fixed(value)}, {}, env.budget)
    for fault in check_rules(plan.after, what, with_self):
        site.report(fault)
    return value


def _ask_query(
    plan: DataPlan, arguments: FrozenMap, config: ProviderConfig, query: Query
) -> FrozenMap:
    place, kind = Header(plan.block.block), plan.block.address.type
    try:
        answer = query(config, kind, arguments)
    except OtherSystem:  # another system answers than the one of the state: the run must stop
        raise
    except KafkaformError as fault:
        first = fault.diagnostics[0]
        kind_of_fault = Unreached if isinstance(fault, ConnectError) else EvalError
        raise kind_of_fault(
            place, f"{plan.name} cannot be read: {first.summary}", advice=first.advice
        ) from None
    # The object has its arguments and the answer; the answer wins, such as a normalised name.
    given = {name: value for name, value in arguments.items() if value is not None}
    return FrozenMap({**given, **(answer if isinstance(answer, FrozenMap) else {})})
