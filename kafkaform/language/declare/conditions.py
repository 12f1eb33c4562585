"""Rules that must hold: `precondition`, `postcondition`, `assert`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ...core.diagnostics import Diagnostic
from ...syntax.nodes import Block, Expression
from ..expressions.code import Code, Context, Env
from ..expressions.operators import require_truth
from ..expressions.templates import render_piece
from ..values.faults import Deferred, EvalError, Poisoned, make_diagnostic, make_error
from ..values.value import unmark


class Rule(Struct, frozen=True):
    """A compiled rule. word: how messages call it."""

    word: str
    condition: Expression
    message: Expression
    holds: Code
    says: Code


_WORDS = {"assert": "check"}


def compile_rules(blocks: Iterable[Block], context: Context) -> tuple[Rule, ...]:
    """Rules whose shape was checked."""
    return tuple(_compile_rule(block, context) for block in blocks)


def _compile_rule(block: Block, context: Context) -> Rule:
    condition, message = block.get_argument("condition"), block.get_argument("error_message")
    assert condition is not None and message is not None  # the shape was checked
    word = _WORDS.get(block.type, block.type)
    return Rule(
        word, condition, message, context.compile_node(condition), context.compile_node(message)
    )


def check_rules(rules: Iterable[Rule], what: str, env: Env) -> Iterator[Diagnostic]:
    """One error for each rule that does not hold or cannot be evaluated; a rule that needs what
    is not known yet, or what is faulty itself, is passed over. what: whose rules they are."""
    for rule in rules:
        try:
            message = check_rule(rule, env)
        except (Poisoned, Deferred):
            continue
        except EvalError as fault:
            yield make_diagnostic(fault, context=[f"while checking {what}"])
            continue
        if message is not None:
            summary = f"The {rule.word} of {what} does not hold"
            if rule.word == "check":
                summary = f"{what} does not hold"
            yield make_error(rule.condition, summary, message)


def check_rule(rule: Rule, env: Env) -> str | None:
    """The message of a rule that does not hold, else None. Raises EvalError, Poisoned or
    Deferred."""
    env.budget.charge(1, rule.condition)
    if require_truth(unmark(rule.holds(env))[0], rule.condition):
        return None
    text, marks = render_piece(rule.says(env), rule.message)
    return "The message is hidden since it holds a sensitive value." if marks else text
