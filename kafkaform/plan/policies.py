"""Add the policies that a plan breaks to its changes, and block what they forbid.

Policies come last, because they judge everything that is known about a change: its values, its
risks, what the provider's review found, and how much data it destroys.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from ..core.change import Action, Change, add_findings
from ..core.finding import POLICY, Finding
from ..core.resource import Facts
from .approval import seal_plan
from .model import Plan, PolicyFolders

Judge = Callable[[Change, Facts], Sequence[Finding]]
"""A change and the facts of its system -> the policies that it breaks."""


def judge_plan(plan: Plan, judge: Judge, folders: PolicyFolders) -> Plan:
    """The plan with its findings, sealed again. folders: the policies from outside the
    configuration, which the approval covers."""
    changes = tuple(_judge_change(change, plan, judge) for change in plan.changes)
    return seal_plan(replace(plan, changes=changes, policies=folders))


def _judge_change(change: Change, plan: Plan, judge: Judge) -> Change:
    # A protected or unmanaged object stays as it is, whatever the rest of the plan does.
    left_out = change.block is not None and not change.block.stops
    if change.action is Action.NOOP or left_out:
        return change
    findings = judge(change, plan.instances[change.identity.instance].facts)
    # A reviewed plan is judged again by an apply.
    others = tuple(item for item in change.findings if not item.rule.startswith(POLICY))
    change = add_findings(replace(change, findings=others), *findings)
    return replace(change, steps=()) if change.blocked is not None else change


def list_new_breaches(plan: Plan, again: Plan) -> list[Change]:
    """The changes that a plan makes and that the policies block now. again: the same plan, judged
    once more."""
    pairs = zip(plan.changes, again.changes, strict=True)
    return [now for old, now in pairs if old.blocked is None and now.blocked is not None]
