"""Evaluate resource blocks that repeat a shape: compiled once, run with the words of each block.

This is a short cut for blocks without faults. After any fault, the block is compiled from its own
text, so that the fault has the place and the words of this block.
"""

from __future__ import annotations

from msgspec.structs import replace

from ...core.diagnostics import Diagnostic
from ...syntax.stamps import Stamped
from ..declare.declarations import ResourceBlock
from ..declare.modules import Module
from ..expressions.code import Env
from ..values.faults import Deferred, EvalError, Poisoned
from .expansion import SINGLE
from .resources import MadeInstance, ResourcePlan, Site, compile_resource, evaluate_instance
from .run import Run


def find_shaped_plan(run: Run, module: Module, block: ResourceBlock) -> ResourcePlan | None:
    """The plan of the block's shape, for this block; None if the shape has faults."""
    assert isinstance(block.block, Stamped)
    key = module.steps, block.block.shape
    if key not in run.shapes:
        faults: list[Diagnostic] = []
        # The pattern is a copy of a block with slots, which read the words from the environment.
        pattern = replace(block, block=block.block.shape.pattern)
        info = run.schemas.types[block.address.type]
        plan = compile_resource(pattern, info, run.context, module.providers, faults.append)
        run.shapes[key] = None if faults else plan
    shape_plan = run.shapes[key]
    if shape_plan is None:
        return None
    return replace(shape_plan, block=block, range=block.block.header_range, shaped=True)


def evaluate_shaped(plan: ResourcePlan, site: Site) -> list[MadeInstance] | None:
    """The one instance of the block; None after any fault."""
    # Nothing of an attempt that fails may remain: its faults are dropped and its steps given back,
    # because the block is evaluated again.
    assert isinstance(plan.block.block, Stamped)
    budget, faults = site.env.budget, list[Diagnostic]()
    budget_before = budget.remaining_steps, budget.instances
    env = Env(site.env.roots, {}, budget, plan.block.block.words)
    trial = Site(env, site.path, faults.append, site.needs, site.settled)
    try:
        budget.count_instance(plan.block.block)
        instance = evaluate_instance(plan, SINGLE[0], trial)
    except (EvalError, Deferred, Poisoned):
        instance = None
    if instance is not None and not faults:
        return [instance]
    budget.remaining_steps, budget.instances = budget_before
    return None
