"""Find the policies that a change breaks.

A policy that cannot be evaluated counts as broken: a rule that could not be checked must not pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import date

from ...core.diagnostics import Severity
from ...core.finding import Block, Finding, Harm, Level, Waiver
from ...syntax.nodes import Expression
from ..expressions.code import Code, Env, Namespace
from ..expressions.loops import render_piece
from ..expressions.operators import require_truth
from ..expressions.references import Fixed
from ..values.faults import Deferred, EvalError, Poisoned
from ..values.limits import Budget
from ..values.value import ObjectVal, unmark
from .compilation import Policy

MESSAGE_LIMIT = 1_000
"""Characters of a message; the rest is left out."""
HIDDEN_MESSAGE = "The message is hidden because it contains a sensitive value."


def find_findings(
    policies: Iterable[Policy], change: ObjectVal, address: str, today: date, budget: Budget
) -> Iterator[Finding]:
    """The policies that a change breaks, with the waivers that cover it.

    change: what expressions find behind `change.`, with a value for each of `FIELDS`. budget: the
    steps that all these policies have for a whole plan.
    """
    for policy in policies:
        roots = {"change": Fixed(change), "setting": Fixed(policy.settings)}
        message = _judge_change(policy, roots, budget)
        if message is None:
            continue
        # The waiver that counts longest among those that cover the object.
        covering = (row for row in policy.waivers if row.covers(address))
        block = max(covering, key=lambda row: row.until, default=None)
        waiver = None
        if block is not None:
            waiver = Waiver(block.reason, block.until, today <= block.until)
        level = Level.BLOCK if policy.severity is Severity.ERROR else Level.CAUTION
        if waiver is not None and waiver.holds:
            level = Level.NOTE
        exception = f"If this object needs an exception, add a waiver at {policy.range}."
        yield Finding(
            policy.id,
            level,
            Harm.NONE,
            f"policy {policy.name}: {message}" + (f" ({waiver.text})" if waiver else ""),
            fix=f"Change the block. {exception}",
            block=Block.POLICY if level is Level.BLOCK else None,
            waiver=waiver,
            range=policy.range,
        )


def _judge_change(policy: Policy, roots: Mapping[str, Namespace], budget: Budget) -> str | None:
    """Why the change breaks the policy; None if it does not."""
    env, location = Env(roots, {}, budget), policy.condition_node
    try:
        budget.charge(1, location)
        if policy.when is not None and not _is_true(policy.when, env, location):
            return None
        if _is_true(policy.condition, env, location):
            return None
        text, marks = render_piece(policy.message(env), location)
        if marks:
            return HIDDEN_MESSAGE
        # A plan has a message for each change, so long ones could fill the memory of a review.
        return text if len(text) <= MESSAGE_LIMIT else f"{text[:MESSAGE_LIMIT]}…"
    except EvalError as fault:
        detail = f" {fault.detail}" if fault.detail else ""
        return f"it cannot be evaluated ({fault.location.range}): {fault.summary}.{detail}"
    except Deferred as error:
        return f"it cannot be evaluated: {error} is not known yet."
    except Poisoned:
        return "it cannot be evaluated: the policies take too many steps."


def _is_true(code: Code, env: Env, location: Expression) -> bool:
    # What a condition says about a hidden value can be known, but not the value itself.
    return require_truth(unmark(code(env))[0], location)
