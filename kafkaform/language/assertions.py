"""Check the assertions of a test run, and show the values that a failed one was made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ..core.diagnostics import Diagnostic
from ..syntax.nodes import Binary, Block, Expression, Lit, Paren, Unary
from ..syntax.write import quote_string
from .console import render_value
from .declare.conditions import Rule, check_rule, compile_rules
from .desired import Built
from .evaluate.diagnostics import clip_fault
from .evaluate.name_check import Names, check_expression
from .expressions.code import Env
from .expressions.dependencies import AllUses
from .expressions.namespaces import Fixed, Space
from .values.conversion import lift_value
from .values.faults import Deferred, EvalError, Poisoned, make_diagnostic, make_error
from .values.limits import Budget
from .values.value import ObjectVal

WORDS = ("plan", "output")
"""First words that only assertions know."""
VALUES_SHOWN = 8
VALUE_CHARACTERS = 200
_ALIGNED = re.compile(r'^("(?:[^"\\]|\\.)*") += ')
_LOGICAL, _COMPARISONS = ("&&", "||"), ("==", "!=", "<", ">", "<=", ">=")


def check_assertions(
    blocks: Iterable[Block], built: Built, plan: Mapping[str, Any]
) -> tuple[Diagnostic, ...]:
    """An error for each assertion that is not met or cannot be evaluated.

    built: the configuration, whose names assertions can use; plan: what they find behind `plan.`.
    """
    run = built.run
    names = Names(
        run.root.module, run.schemas, run.context.functions, AllUses(), allowed=frozenset(WORDS)
    )
    roots = {
        **run.root.env.roots,
        "plan": Fixed(_lift_object(plan)),
        "output": Space("output", run.root.outputs),
    }
    faults: list[Diagnostic] = []
    for rule in compile_rules(blocks, run.context):
        unknown = [
            fault
            for node in (rule.condition, rule.message)
            for fault in check_expression(node, names)
        ]
        # Each assertion gets a budget of its own, so that one of them cannot fail the others.
        faults += unknown or _check_assertion(rule, built, Env(roots, {}, Budget()))
    return tuple(map(clip_fault, faults))


def _check_assertion(rule: Rule, built: Built, env: Env) -> Iterator[Diagnostic]:
    node = rule.condition
    try:
        message = check_rule(rule, env)
    except EvalError as fault:
        yield make_diagnostic(fault, context=["while checking an assertion"])
    except Deferred as deferred:
        yield make_error(
            node,
            "The assertion needs a value that is known only after the apply",
            f"The server sets {deferred}.",
            'Write command = "apply" in the run, or leave this value out.',
        )
    except Poisoned:
        yield make_error(node, "The assertion needs a value that has faults")
    else:
        if message is not None:
            values = "\n".join(_list_values(node, built, env))
            detail = f"{message}\n\n{values}" if values else message
            yield make_error(node, "The assertion is not met", detail)


def _list_values(condition: Expression, built: Built, env: Env) -> Iterator[str]:
    """What the parts of the condition are: the sides of its comparisons, and what they refer to."""
    uses, shown_texts = AllUses(), set[str]()
    sides = list(_list_sides(condition))
    references = [
        reference.node for side in sides or [condition] for reference in uses[side].references
    ]
    for node in (*sides, *references):
        text = " ".join(node.source.text[node.start : node.end].split())
        if text in shown_texts or isinstance(node, Lit) or len(shown_texts) >= VALUES_SHOWN:
            continue
        shown_texts.add(text)
        value = _render_part(node, built, env)
        if value not in (None, text):
            yield f"  {text} is {value}"


def _list_sides(node: Expression) -> Iterator[Expression]:
    if isinstance(node, Paren):
        yield from _list_sides(node.inner)
    elif isinstance(node, Unary):
        yield from _list_sides(node.operand)
    elif isinstance(node, Binary) and node.operator in (*_LOGICAL, *_COMPARISONS):
        for side in (node.left, node.right):
            inner = list(_list_sides(side)) if node.operator in _LOGICAL else []
            yield from inner or [side]


def _render_part(node: Expression, built: Built, env: Env) -> str | None:
    """The value on one line; None if it has none by itself, such as the key of a loop."""
    try:
        value = built.run.context.compile_node(node)(env)
        text = quote_string(value) if isinstance(value, str) else _join_lines(render_value(value))
    except (EvalError, Deferred, Poisoned):
        return None
    return text if len(text) <= VALUE_CHARACTERS else f"{text[:VALUE_CHARACTERS]}…"


def _join_lines(text: str) -> str:
    """A rendered collection on one line: `{ "a" = 1, "b" = [2, 3] }`."""
    joined = ""
    for line in text.split("\n"):
        line = _ALIGNED.sub(r"\1 = ", line.strip())
        if line[:1] in ("}", "]"):
            joined = f"{joined.removesuffix(',')}{' ' if line[0] == '}' else ''}{line}"
        elif joined:
            joined += f"{_find_separator(joined)}{line}"
        else:
            joined = line
    return joined


def _find_separator(before: str) -> str:
    if before.endswith("["):
        return ""
    return " " if before.endswith(("{", ",")) else ", "


def _lift_object(data: Mapping[str, Any]) -> ObjectVal:
    return ObjectVal({name: lift_value(item) for name, item in data.items()})
