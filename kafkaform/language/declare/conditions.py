"""Compile and check conditions: `validation`, `precondition`, `postcondition`, `assert`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec import Struct

from ...core.diagnostics import Diagnostic
from ...syntax.nodes import Block, Expression
from ..expressions.code import Code, Context, Env
from ..expressions.loops import render_piece
from ..expressions.operators import require_truth
from ..values.faults import Deferred, EvalError, Poisoned, make_diagnostic, make_error
from ..values.value import unmark


class Rule(Struct, frozen=True):
    """A compiled condition with its message."""

    word: str
    """Its name in messages."""
    condition: Expression
    message: Expression
    holds: Code
    """The code of the condition."""
    says: Code
    """The code of the message."""


_WORDS = {"assert": "check"}
"""Type of a block -> its name in messages, where that differs."""


def compile_rules(blocks: Iterable[Block], context: Context) -> tuple[Rule, ...]:
    """Compile rules whose shape was checked."""
    rules = []
    for block in blocks:
        condition, message = block.get_argument("condition"), block.get_argument("error_message")
        assert condition is not None and message is not None  # the shape was checked
        holds, says = context.compile_node(condition), context.compile_node(message)
        word = _WORDS.get(block.type, block.type)
        rules.append(Rule(word, condition, message, holds, says))
    return tuple(rules)


def check_rules(rules: Iterable[Rule], title: str, env: Env) -> Iterator[Diagnostic]:
    """One error for each rule that is not met or cannot be evaluated. title: whose rules
    they are, for messages.

    A rule is left out if it needs a value that is faulty, that is known only after the apply, or
    that its block leaves to the system; it is checked again then.
    """
    for rule in rules:
        reads_before = env.budget.open_reads
        try:
            message = check_rule(rule, env)
        except (Poisoned, Deferred):
            continue
        except EvalError as fault:
            if env.budget.open_reads > reads_before:
                continue
            yield make_diagnostic(fault, context=[f"while checking {title}"])
            continue
        if message is not None and env.budget.open_reads == reads_before:
            summary = f"The {rule.word} of {title} is not met"
            if rule.word == "check":
                summary = f"{title} has failed"
            yield make_error(rule.condition, summary, message)


def check_rule(rule: Rule, env: Env) -> str | None:
    """The message of a rule that is not met, else None. Raises EvalError, Poisoned or Deferred."""
    env.budget.charge(1, rule.condition)
    # A condition can depend on sensitive values: whether it holds may be known, but the message
    # may contain the values themselves.
    if require_truth(unmark(rule.holds(env))[0], rule.condition):
        return None
    text, marks = render_piece(rule.says(env), rule.message)
    return "The message is hidden because it contains a sensitive value." if marks else text
