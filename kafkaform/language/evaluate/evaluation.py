"""Evaluate every node of a configuration in its order, in each instance of its module.

Resource blocks that repeat a shape are compiled once and run with the words of each block. This is
a short cut for blocks without faults. After any fault, the block is compiled from its own text, so
that the fault has the place and the words of this block.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from msgspec.structs import replace

from ...core.address import render_key
from ...core.diagnostics import Diagnostic, Severity
from ...syntax.nodes import Attribute, Block
from ...syntax.stamps import Stamped
from ..declare.addresses import split_provider_name
from ..declare.blocks import (
    Header,
    ModuleBlock,
    OutputBlock,
    ProviderBlock,
    ResourceBlock,
    VariableBlock,
    compile_rules,
    get_location,
)
from ..declare.modules import Module
from ..declare.variables import check_declaration, check_validations, compute_value, warn_deprecated
from ..expressions.code import Env
from ..expressions.references import Outcome
from ..values.conversion import require_bounded
from ..values.faults import (
    Deferred,
    EvalError,
    LimitError,
    Location,
    Poisoned,
    Skipped,
    make_diagnostic,
    make_error,
)
from .arguments import Report, make_deferred_fault
from .evaluation_state import (
    Run,
    Scope,
    defer_open,
    enter_scope,
    find_needs,
    is_open,
    read_explicit_needs,
)
from .expansion import SINGLE_INSTANCE, Instance, expand_instances
from .fault_context import add_origins
from .graph import GraphNode
from .outputs import compile_check, evaluate_check, evaluate_output
from .providers import (
    DataPlan,
    ProviderInfo,
    Unreached,
    compile_data,
    configure_provider,
    evaluate_data,
)
from .resources import (
    ProviderChoice,
    ProviderKeys,
    ResourceInstance,
    ResourcePlan,
    Site,
    choose_instance,
    compile_resource,
    evaluate_instance,
    evaluate_resource,
)


def find_shaped_plan(run: Run, module: Module, block: ResourceBlock) -> ResourcePlan | None:
    """The plan of the block's shape, for this block; None if the shape has faults."""
    assert isinstance(block.block, Stamped)
    key = module.steps, block.block.shape
    if key not in run.shapes:
        faults: list[Diagnostic] = []
        # The pattern is a copy of a block with slots, which read the words from the environment.
        pattern = replace(block, block=block.block.shape.pattern)
        info = run.schemas.types[block.address.type]
        plan = compile_resource(pattern, info, run.context, module, faults.append)
        run.shapes[key] = None if faults else plan
    shape_plan = run.shapes[key]
    if shape_plan is None:
        return None
    return replace(shape_plan, block=block, range=block.block.header_range, shaped=True)


def evaluate_shaped(plan: ResourcePlan, site: Site) -> list[ResourceInstance] | None:
    """The one instance of the block; None after any fault."""
    # Nothing of an attempt that fails may remain: its faults are dropped and its steps given back,
    # because the block is evaluated again.
    assert isinstance(plan.block.block, Stamped)
    budget, faults = site.env.budget, list[Diagnostic]()
    budget_before = budget.remaining_steps, budget.instances
    env = Env(site.env.roots, {}, budget, plan.block.block.words)
    trial = replace(site, env=env, report=faults.append)
    try:
        budget.count_instance(plan.block.block)
        instance = evaluate_instance(plan, SINGLE_INSTANCE[0], trial)
    except (EvalError, Deferred, Poisoned):
        instance = None
    if instance is not None and not faults:
        return [instance]
    budget.remaining_steps, budget.instances = budget_before
    return None


NODE_STEPS, MODULE_STEPS = 10, 100
"""Steps for evaluating a node, and for an instance of a module."""


def evaluate_run(run: Run) -> None:
    """Evaluate every node, each after what it needs."""
    # Instances of modules are added when their `module` node is evaluated, which comes before all
    # nodes inside them.
    for steps in run.graph.modules:
        run.scopes[steps], run.resources[steps] = [], {}
    enter_scope(run, Scope(run.graph.modules[()], (), run.budget, run.faults.add, run.resources[()],
                      run.settled, variables=dict(run.variables.values),
                      keys=ProviderKeys(run.keys)))  # fmt: skip
    for cycle in run.graph.cycles:
        run.faults.add(_make_cycle_fault(run, cycle))
    for node in run.graph.order:
        if run.budget.spent:
            return
        declaration, module = run.graph.declared[node], run.graph.modules[node.steps]
        compile_node = _COMPILERS.get(node.name.partition(".")[0], _compile_resource)
        evaluator = compile_node(run, module, declaration)
        for scope in run.scopes[node.steps]:
            task = partial(evaluator, scope, node in run.graph.looping)
            fault = _attempt_node(run, node, scope, task, get_location(declaration))
            if fault is not None:
                scope.report(fault)
                evaluator(scope, True)  # leaves a value that is Poisoned


def _attempt_node(
    run: Run, node: GraphNode, scope: Scope, evaluate: Callable[[], None], location: Location
) -> Diagnostic | None:
    """Evaluate a node in one instance of its module. Returns the fault if it exceeds a limit."""
    try:
        run.budget.charge(NODE_STEPS, location)
        needs = scope.needs[node.name] = find_needs(run, node, scope)
        run.budget.charge(len(needs), location)
        evaluate()
    except LimitError as fault:
        return make_diagnostic(fault, context=[f"while evaluating {node}"])
    except RecursionError:
        detail = "Its value has too many collections nested in each other."
        return make_error(location, f"{node} is nested too deeply", detail)
    except Poisoned:  # such as a budget that is spent, which has been reported
        scope.needs.setdefault(node.name, frozenset())
    return None


def _make_cycle_fault(run: Run, cycle: tuple[GraphNode, ...]) -> Diagnostic:
    nodes = cycle if len(cycle) <= 12 else (*cycle[:10], cycle[-1])
    locations = [get_location(run.graph.declared[node]) for node in nodes]
    chain = [f"{node} ({location.range})" for node, location in zip(nodes, locations, strict=True)]
    return make_error(
        locations[0],
        f"{cycle[0]} refers to itself",
        " → ".join(chain),
        "Break the chain: write one of these values as a constant.",
    )


# ── one node ────────────────────────────────────────────────────────────────────────────

Evaluator = Callable[[Scope, bool], None]
"""Evaluates a node in one instance of its module, and stores its value there. True: the node has no
value, because it is part of a cycle or exceeds a limit."""


def _compile_local(run: Run, module: Module, item: Attribute) -> Evaluator:
    code, name = run.context.compile_node(item.value), item.name
    node = GraphNode(module.steps, f"local.{name}")

    def evaluator(scope: Scope, looping: bool) -> None:
        scope.locals[name] = Poisoned()
        if looping:
            return
        reads = run.budget.open_reads
        try:
            scope.locals[name] = require_bounded(code(scope.env), item, f"The local value {name}")
        except EvalError as fault:
            if is_open(run, node, reads):
                scope.locals[name] = defer_open(run)
            else:
                scope.report(make_diagnostic(fault, context=[f"while evaluating local.{name}"]))
        except (Poisoned, Deferred) as outcome:
            scope.locals[name] = outcome
        is_open(run, node, reads)

    return evaluator


def _compile_variable(run: Run, module: Module, block: VariableBlock) -> Evaluator:
    """A variable of a module; those of the root come from outside."""
    call, name = module.call, block.name
    assert call is not None
    argument = call.block.get_argument(name)
    code = None if argument is None else run.context.compile_node(argument)

    node = GraphNode(module.steps, f"var.{name}")

    def evaluator(scope: Scope, looping: bool) -> None:
        # The value is written in the caller, so it is evaluated there, with the `each` of this
        # call, and its faults belong to the caller.
        reads = run.budget.open_reads
        caller = scope.caller
        assert caller is not None
        env = Env({**caller.env.roots, **scope.repetition}, {}, scope.budget)
        try:
            value = None if looping or code is None else code(env)
            location = Header(call.block) if argument is None else argument
            scope.variables[name] = compute_value(block, value, location, "", run.context)
            for fault in warn_deprecated(block, location) if value is not None else ():
                caller.report(fault)
        except EvalError as fault:
            title = f"{'.'.join(scope.path)}: var.{name}"
            caller.report(make_diagnostic(fault, context=[f"while evaluating {title}"]))
            scope.variables[name] = Poisoned()
        except (Poisoned, Deferred) as outcome:
            scope.variables[name] = outcome
        is_open(run, node, reads)

    return evaluator


def _compile_resource(run: Run, module: Module, block: ResourceBlock) -> Evaluator:
    if isinstance(block.block, Stamped):
        shared = find_shaped_plan(run, module, block)
        if shared is not None:
            return _compile_repeated(run, module, block, shared)
    address, name, info = block.address, str(block.address), run.schemas.types[block.address.type]
    types = run.schemas.types
    plan = compile_resource(block, info, run.context, module, run.faults.add, types)
    if plan is not None:
        run.resources[module.steps][address] = plan

    def evaluator(scope: Scope, looping: bool) -> None:
        scope.instances[address] = Poisoned()
        if plan is not None and not looping:
            site = scope.make_site(scope.needs[name])
            scope.instances[address] = evaluate_resource(plan, run.context, site)

    return evaluator


def _compile_repeated(
    run: Run, module: Module, block: ResourceBlock, shared: ResourcePlan
) -> Evaluator:
    """A block that repeats a shape. shared: the plan of the shape, for this block."""
    address, name = block.address, str(block.address)
    run.resources[module.steps][address] = shared
    plain_evaluator: Evaluator | None = None

    def evaluator(scope: Scope, looping: bool) -> None:
        nonlocal plain_evaluator
        scope.instances[address] = Poisoned()
        if looping:
            return
        instances = evaluate_shaped(shared, scope.make_site(scope.needs[name]))
        if instances is not None:
            scope.instances[address] = instances
            return
        # A fault has its place in the block's own text: from now on it is a block like any other.
        if plain_evaluator is None:
            text = block.block
            span = text.source, text.start, text.end
            plain = Block(*span, text.type, text.labels, text.body)
            plain_evaluator = _compile_resource(run, module, replace(block, block=plain))
        plain_evaluator(scope, looping)

    return evaluator


def _compile_source(run: Run, module: Module, block: ResourceBlock) -> Evaluator:
    address = block.address
    info = run.schemas.data[address.type]
    plan = compile_data(block, info, run.context, module, run.faults.add)

    def evaluator(scope: Scope, looping: bool) -> None:
        answer: Outcome = Poisoned()
        if plan is not None and not looping:
            node = GraphNode(module.steps, f"data.{address}")
            depends_on = block.block.get_argument("depends_on")
            needs = scope.needs[node.name] or (
                set() if depends_on is None else read_explicit_needs(depends_on, scope)
            )
            waits = run.waits and bool(needs)
            answer = _ask_data(run, node, plan, scope.make_site(frozenset()), waits=waits)
        scope.data[address.type][address.name] = answer

    return evaluator


def _ask_data(
    run: Run, node: GraphNode | None, plan: DataPlan, site: Site, *, waits: bool = False
) -> Outcome:
    """The answer of a data source. node: None for one of a `check` block, which nothing needs;
    waits: see `evaluate_data`."""
    try:
        return evaluate_data(
            plan,
            run.context,
            site,
            lambda name: run.get_provider(name, plan.block),
            run.query,
            waits=waits,
        )
    except Unreached as fault:
        title = ".".join((*site.path, plan.name))
        diagnostic = make_diagnostic(fault, context=[f"while evaluating {title}"])
        if run.leaves_out:
            diagnostic = replace(diagnostic, severity=Severity.WARNING)
            if node is not None:
                run.unread[node] = diagnostic
        site.report(diagnostic)
        return Poisoned()


def _compile_call(run: Run, module: Module, call: ModuleBlock) -> Evaluator:
    name, child = call.name, module.children[call.name]

    def evaluator(scope: Scope, looping: bool) -> None:
        scope.children[name] = Poisoned() if looping else _enter_instances(run, scope, call, child)

    return evaluator


def _enter_instances(
    run: Run, scope: Scope, call: ModuleBlock, child: Module
) -> dict[str | int | None, Scope] | Poisoned:
    """Make and enter the instances of a module."""
    title = ".".join((*scope.path, f"module.{call.name}"))
    inherited, depends_on = scope.inherited, call.block.get_argument("depends_on")
    if depends_on is not None:
        inherited |= read_explicit_needs(depends_on, scope)
    scopes: dict[str | int | None, Scope] = {}
    try:
        for instance in expand_instances(call.block, run.context, scope.env):
            scope.budget.count_instance(call.block)
            scope.budget.charge(MODULE_STEPS, call.block)
            path = (*scope.path, f"module.{call.name}{render_key(instance.key)}")
            keys = _hand_keys(run, scope, call, instance)
            child_scope = Scope(child, path, run.budget, run.faults.add, run.resources[child.steps],
                           run.settled, scope, instance.roots, inherited, keys=keys)  # fmt: skip
            # From now on, faults of this instance say where its variables were set.
            child_scope.report = _make_reporter(run, child_scope)
            enter_scope(run, child_scope)
            scopes[instance.key] = child_scope
    except EvalError as fault:
        scope.report(make_diagnostic(fault, context=[f"while expanding {title}"]))
    except Deferred as deferred:
        block = call.block
        repeated = block.get_argument("for_each") or block.get_argument("count")
        scope.report(make_deferred_fault(repeated or Header(block), deferred, title))
    except Poisoned as poison:
        return poison
    else:
        return scopes
    return Poisoned()


def _hand_keys(run: Run, scope: Scope, call: ModuleBlock, instance: Instance) -> ProviderKeys:
    """The keys of the provider instances that an instance of a module gets. Raises EvalError,
    Deferred or Poisoned."""
    above = scope.keys.handed
    if call.providers is None:
        return ProviderKeys(run.keys, {name: above[name] for name in above if "." not in name})
    env = Env({**scope.env.roots, **instance.roots}, {}, scope.budget)
    handed = {}
    for name, node in call.providers.items():
        provider = split_provider_name(node)
        caller_name = provider.name or ""
        base = scope.module.providers.get(caller_name)
        if caller_name in above:
            handed[name] = above[caller_name]
        elif base in run.keys and provider.key is not None:
            code = run.context.compile_node(provider.key)
            choice = ProviderChoice(name, base, provider.key, code)
            handed[name] = choose_instance(choice, scope.keys, env).removeprefix(base)
    return ProviderKeys(run.keys, handed)


def _make_reporter(run: Run, scope: Scope) -> Report:
    return lambda fault: run.faults.add(fault, lambda diagnostic: add_origins(diagnostic, scope))


def _compile_output(run: Run, module: Module, block: OutputBlock) -> Evaluator:
    code = run.context.compile_node(block.value)
    rules = compile_rules(block.preconditions, run.context)
    node = GraphNode(module.steps, f"output.{block.name}")

    def evaluator(scope: Scope, looping: bool) -> None:
        outcome: Outcome = Poisoned()
        if not looping:
            title, reads = ".".join((*scope.path, f"output.{block.name}")), run.budget.open_reads
            faults: list[Diagnostic] = []
            outcome = evaluate_output(block, code, rules, scope.env, faults.append, title)
            # What people see of the root is a value that holds; a caller can use null meanwhile.
            must_wait = is_open(run, node, reads) and (bool(faults) or not module.steps)
            if must_wait and not isinstance(outcome, Skipped):
                outcome = defer_open(run)
            else:
                for fault in faults:
                    scope.report(fault)
        scope.outputs[block.name] = outcome

    return evaluator


def _compile_provider(run: Run, module: Module, block: ProviderBlock) -> Evaluator:
    info = run.schemas.providers.get(block.name)

    def evaluator(scope: Scope, looping: bool) -> None:
        run.providers[block.instance] = None
        if block.several:
            run.keys[block.instance] = None
        if info is None or looping:
            return
        if block.several:
            run.keys[block.instance] = _configure_instances(run, scope, block, info)
        else:
            run.providers[block.instance] = configure_provider(
                block, block.instance, info, run.context, scope.env, scope.report
            )

    return evaluator


def _configure_instances(
    run: Run, scope: Scope, block: ProviderBlock, info: ProviderInfo
) -> frozenset[str] | None:
    """Configure the instances of a provider block with for_each. Returns their keys, None after
    a fault of the for_each."""
    title = f"provider.{block.instance}"
    try:
        instances = tuple(expand_instances(block.block, run.context, scope.env))
    except EvalError as fault:
        scope.report(make_diagnostic(fault, context=[f"while expanding {title}"]))
        return None
    except Deferred as deferred:
        repeated = block.block.get_argument("for_each") or Header(block.block)
        scope.report(make_deferred_fault(repeated, deferred, title))
        return None
    except Poisoned:
        return None
    for instance in instances:
        run.budget.count_instance(block.block)
        name = f"{block.instance}{render_key(instance.key)}"
        env = Env({**scope.env.roots, **instance.roots}, {}, run.budget)
        run.providers[name] = configure_provider(block, name, info, run.context, env, scope.report)
    return frozenset(str(instance.key) for instance in instances)


_COMPILERS: Mapping[str, Callable[[Run, Module, Any], Evaluator]] = {
    "local": _compile_local,
    "var": _compile_variable,
    "data": _compile_source,
    "module": _compile_call,
    "output": _compile_output,
    "provider": _compile_provider,
}


def check_variables(run: Run) -> None:
    """Check the declarations and validations of the variables of modules. Those of the root were
    checked when they were set."""
    for steps, module in run.graph.modules.items():
        for block in module.declarations.variables.values() if steps else ():
            for fault in check_declaration(block, run.context):
                run.faults.add(fault)
            for scope in run.scopes[steps]:
                for fault in check_validations(block, scope.variables, run.context):
                    scope.report(fault)


def evaluate_checks(run: Run) -> None:
    """Evaluate all `check` blocks, as the last thing."""
    for steps, module in run.graph.modules.items():
        for block in module.declarations.checks.values():
            check = compile_check(block, run.schemas.data, run.context, module, run.faults.add)
            for scope in run.scopes[steps]:
                ask_data = partial(_ask_data, run, None)
                evaluate_check(check, scope.make_site(frozenset()), scope.data, ask_data)
