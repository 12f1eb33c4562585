"""Locals and resources in the order of their references, with what one build gathers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..core.address import Address
from ..core.diagnostics import Diagnostic
from ..core.value import EMPTY
from ..syntax.nodes import Expression
from .addresses import depends_on
from .blocks import header
from .check import STATIC, expressions
from .code import Context, Env, Namespace
from .collect import Collector
from .declare import Declarations, ResourceBlock
from .faults import Deferred, EvalError, LimitError, Poisoned, as_diagnostic, error, near
from .limits import LIMITS, Budget
from .references import ordered, references
from .resources import Made, ResourcePlan, TypeInfo, compile_resource, evaluate_resource, published
from .scope import HERE, Found, Space
from .values import Composite, size_of
from .variables import Variables


@dataclass
class Run:
    """What one build gathers. made: the instances of each block; needs: local value -> the
    resources behind it; wanted: names that something refers to."""

    found: Declarations
    types: Mapping[str, TypeInfo]
    context: Context
    budget: Budget
    faults: Collector
    variables: Variables
    locals: dict[str, Found] = field(default_factory=dict)
    resources: dict[str, dict[str, Found]] = field(default_factory=dict)
    needs: dict[str, frozenset[Address]] = field(default_factory=dict)
    plans: dict[Address, ResourcePlan] = field(default_factory=dict)
    made: dict[Address, list[Made]] = field(default_factory=dict)
    wanted: frozenset[str] = frozenset()

    def env(self) -> Env:
        roots: dict[str, Namespace] = {
            "var": Space("variable", self.variables.values),
            "local": Space("local value", self.locals),
            "path": HERE,
            **{kind: Space(kind, found) for kind, found in self.resources.items()},
        }
        return Env(roots, {}, self.budget)


# ── order ───────────────────────────────────────────────────────────────────────────────


def _graph(run: Run) -> dict[str, list[str]]:
    """Local values and resources, each with what it refers to."""
    found = run.found
    graph = {f"local.{name}": _named(run, [item.value]) for name, item in found.locals.items()}
    for address, resource in found.resources.items():
        if address.type in run.types:
            nodes = list(expressions(resource.block.body, STATIC))
            graph[str(address)] = _named(run, nodes)
    return graph


def _named(run: Run, nodes: Iterable[Expression]) -> list[str]:
    names: dict[str, None] = {}
    for node in nodes:
        for reference in references(node):
            if reference.steps and reference.steps[0].attribute is not None:
                names[f"{reference.root.name}.{reference.steps[0].attribute}"] = None
    return list(names)


def _cycle_fault(run: Run, cycle: list[str]) -> Diagnostic:
    shown = cycle if len(cycle) <= 12 else [*cycle[:10], cycle[-1]]
    chain = [f"{name} ({_place(run, name)})" for name in shown]
    first = cycle[0]
    node = (
        run.found.locals[first[6:]]
        if first.startswith("local.")
        else header(run.found.resources[_address(first)].block)
    )
    return error(
        node,
        f"{first} refers to itself",
        " → ".join(chain),
        "Break the chain by writing one of these values out.",
    )


def _place(run: Run, name: str) -> str:
    if name.startswith("local."):
        return str(run.found.locals[name[6:]].range)
    return str(run.found.resources[_address(name)].block.header_range)


def _address(name: str) -> Address:
    kind, _, rest = name.partition(".")
    return Address(kind, rest)


# ── locals and resources ────────────────────────────────────────────────────────────────


def evaluate(run: Run) -> None:
    """Every local value and resource, each after what it refers to."""
    graph = _graph(run)
    order, cycles = ordered(graph)
    for cycle in cycles:
        run.faults.add(_cycle_fault(run, cycle))
    looping = {name for cycle in cycles for name in cycle}
    outside = [node for output in run.found.outputs.values() for node in [output.value]]
    run.wanted = frozenset(name for names in graph.values() for name in names).union(
        _named(run, outside), _named(run, [block.id for block in run.found.imports])
    )
    env = run.env()
    for name in order:
        if name.startswith("local."):
            short = name[6:]
            run.needs[short] = _needs(run, [run.found.locals[short].value])
            run.locals[short] = Poisoned() if name in looping else evaluate_local(run, short, env)
        else:
            _resource(run, _address(name), env, poisoned=name in looping)


def evaluate_local(run: Run, name: str, env: Env) -> Found:
    item = run.found.locals[name]
    try:
        run.budget.charge(1, item)
        value = run.context.code(item.value)(env)
        if size_of(value) > LIMITS.size or (
            isinstance(value, Composite) and value.depth > LIMITS.depth
        ):
            raise LimitError(
                item,
                f"The local value {name} is too large",
                f"{LIMITS.size:,} elements and characters, {LIMITS.depth} levels are the limit.",
            )
        return value
    except EvalError as fault:
        run.faults.add(as_diagnostic(fault, context=[f"while evaluating local.{name}"]))
        return Poisoned()
    except (Poisoned, Deferred) as outcome:
        return outcome


def _needs(run: Run, nodes: Iterable[Expression]) -> frozenset[Address]:
    """The resources that expressions refer to, directly or through local values."""
    needs: set[Address] = set()
    for node in nodes:
        for reference in references(node):
            word = reference.root.name
            name = reference.steps[0].attribute if reference.steps else None
            if name is None:
                continue
            if word == "local":
                needs |= run.needs.get(name, frozenset())
            elif Address(word, name) in run.found.resources:
                key = reference.steps[1].key if len(reference.steps) > 1 else None
                needs.add(Address(word, name, key))
    return frozenset(needs)


def _resource(run: Run, address: Address, env: Env, poisoned: bool) -> None:
    block, info = run.found.resources[address], run.types[address.type]
    report = run.faults.add
    needs = set(_needs(run, expressions(block.block.body, STATIC)))
    needs |= _explicit(run, block)
    known = [name for name, one in run.found.providers.items() if one.name == info.provider]
    plan = compile_resource(block, info, run.context, known, needs, report)
    result: list[Made] | Poisoned = Poisoned()
    if plan is not None and not poisoned:
        run.plans[address] = plan
        result = evaluate_resource(plan, run.context, env, report)
    if isinstance(result, Poisoned):
        run.resources[address.type][address.name] = result
        return
    run.made[address] = result
    if plan is not None and str(address) in run.wanted:
        run.resources[address.type][address.name] = published(plan, result, EMPTY)


def _explicit(run: Run, block: ResourceBlock) -> set[Address]:
    """The addresses of `depends_on` that exist; others are reported."""
    needs = set()
    try:
        listed = depends_on(block.argument("depends_on"))
    except EvalError as fault:
        run.faults.add(as_diagnostic(fault))
        return set()
    for address, node in listed:
        if address.resource in run.found.resources:
            needs.add(address)
        else:
            known = [str(one) for one in run.found.resources if one != block.address]
            advice = near(str(address.resource), known)
            run.faults.add(error(node, f"{address} is not declared", advice=advice))
    return needs
