"""Check the assertions and the expected failures of a test run: show the values that a failed
assertion was made of, and find the block that a fault belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from ...core.diagnostics import Diagnostic, Diagnostics, Range, Severity
from ...syntax.nodes import (
    Attr,
    Attribute,
    Binary,
    Block,
    Expression,
    Lit,
    Paren,
    Root,
    Tuple,
    Unary,
)
from ...syntax.write import quote_string
from ..console import render_value
from ..declare.blocks import ConditionRule, Declarations, check_rule, compile_rules
from ..desired import Built
from ..evaluate.evaluation_state import clip_fault
from ..evaluate.name_check import Names, check_expression
from ..expressions.code import Env
from ..expressions.dependencies import AllUses
from ..expressions.references import Fixed, Space
from ..values.conversion import lift_value
from ..values.faults import (
    Budget,
    Deferred,
    EvalError,
    Poisoned,
    make_diagnostic,
    make_error,
    suggest_near,
)
from ..values.value import ObjectVal

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
        "plan": Fixed(ObjectVal({name: lift_value(item) for name, item in plan.items()})),
        "output": Space("output", run.root.outputs),
    }
    faults: list[Diagnostic] = []
    for rule in compile_rules(blocks, run.context):
        unknown = [
            fault
            for node in (rule.condition, rule.message)
            for fault in check_expression(node, names)
        ]
        # Each assertion gets its own budget, so that one of them cannot fail the others.
        faults += unknown or _check_assertion(rule, built, Env(roots, {}, Budget()))
    return tuple(map(clip_fault, faults))


def _check_assertion(rule: ConditionRule, built: Built, env: Env) -> Iterator[Diagnostic]:
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
            separator = " " if joined.endswith(("{", ",")) else ", "
            joined += f"{'' if joined.endswith('[') else separator}{line}"
        else:
            joined = line
    return joined


FORMS = "var.NAME, TYPE.NAME, data.TYPE.NAME, output.NAME or check.NAME"


class Expectation(Struct, frozen=True):
    """One element of `expect_failures`."""

    block: str
    """The block that has to fail: `var.size`, `kafka_topic.orders`."""
    node: Expression


class BlockFault(Struct, frozen=True):
    """A fault, and the block of the configuration that it belongs to."""

    block: str
    """As in `Expectation`; empty if it belongs to none."""
    fault: Diagnostic


def read_expectations(
    node: Expression | None,
) -> tuple[tuple[Expectation, ...], Diagnostics]:
    """The elements of an `expect_failures`, and the faults of those that name no block."""
    if node is None:
        return (), ()
    if not isinstance(node, Tuple):
        summary = "expect_failures must be a list of blocks"
        return (), (make_error(node, summary, advice="expect_failures = [var.NAME]"),)
    named = [(_spell_reference(item), item) for item in node.items]
    faults = tuple(
        make_error(item, "This does not name a block", f"Write {FORMS}.")
        for name, item in named
        if name.count(".") < 1
    )
    return tuple(Expectation(name, item) for name, item in named if "." in name), faults


def _spell_reference(node: Expression) -> str:
    """The text of `a.b.c`; "" for any other expression."""
    words: list[str] = []
    while isinstance(node, Attr):
        words.append(node.name)
        node = node.target
    return ".".join((node.name, *reversed(words))) if isinstance(node, Root) else ""


def find_unknown_expectations(
    expected: Iterable[Expectation], declarations: Declarations
) -> Iterator[Diagnostic]:
    """An error for each block that the configuration does not have."""
    blocks = list_block_ranges(declarations)
    for expectation in expected:
        if expectation.block not in blocks:
            yield make_error(
                expectation.node,
                f"{expectation.block} is not declared, so it cannot fail",
                f"A test can expect failures of {FORMS}, without keys and not inside of modules.",
                suggest_near(expectation.block, blocks),
            )


def list_block_ranges(declarations: Declarations) -> dict[str, Range]:
    """The blocks that can fail by themselves, and the place of each."""
    named = {
        **{
            f"var.{name}": declaration.block for name, declaration in declarations.variables.items()
        },
        **{
            str(address): declaration.block
            for address, declaration in declarations.resources.items()
        },
        **{
            f"data.{address}": declaration.block
            for address, declaration in declarations.data.items()
        },
        **{
            f"output.{name}": declaration.block
            for name, declaration in declarations.outputs.items()
        },
        **{f"check.{name}": declaration.block for name, declaration in declarations.checks.items()},
    }
    return {name: block.range for name, block in named.items()}


FaultKeys = frozenset[tuple[Range | None, str]]
"""Location and summary of faults."""


def find_mistakes(faults: Iterable[Diagnostic], declarations: Declarations) -> FaultKeys:
    """The faults that the configuration has whatever its variables are, such as a misspelt name: no
    test can expect them, or it would pass for the wrong reason.

    faults: those that `validate` finds. A rule that default values do not meet is not a mistake.
    """
    conditions = {rule.get_argument("condition") for rule in _list_rules(declarations)}
    ranges = {condition.range for condition in conditions if condition is not None}
    ranges |= {variable.block.header_range for variable in declarations.variables.values()}
    return frozenset((fault.range, fault.summary) for fault in faults if fault.range not in ranges)


def _list_rules(declarations: Declarations) -> Iterator[Block]:
    for resource in (*declarations.resources.values(), *declarations.data.values()):
        yield from (*resource.preconditions, *resource.postconditions)
    for output in declarations.outputs.values():
        yield from output.preconditions
    for check in declarations.checks.values():
        yield from check.assertions


def find_failures(
    faults: Iterable[Diagnostic],
    declarations: Declarations,
    values: Mapping[str, Attribute],
    mistakes: FaultKeys,
) -> tuple[BlockFault, ...]:
    """The faults that are failures, each with its block. Other warnings are none, except those of
    `check` blocks, which exist to be noticed.

    values: what the test gives to variables; a fault of such a value is one of the variable.
    """
    block_ranges = [
        *list_block_ranges(declarations).items(),
        *((f"var.{name}", item.range) for name, item in values.items()),
    ]
    failures = []
    for fault in faults:
        block = _find_block(fault.range, block_ranges)
        if fault.severity is Severity.ERROR or block.startswith("check."):
            mistake = (fault.range, fault.summary) in mistakes
            failures.append(BlockFault("" if mistake else block, fault))
    return tuple(failures)


def _find_block(fault_range: Range | None, block_ranges: Iterable[tuple[str, Range]]) -> str:
    if fault_range is None:
        return ""
    inside = (
        name
        for name, outer in block_ranges
        if outer.file == fault_range.file
        and outer.start_byte <= fault_range.start_byte < outer.end_byte
    )
    return next(inside, "")


def compare_failures(
    failures: Iterable[BlockFault], expected: Iterable[Expectation]
) -> tuple[Diagnostics, Diagnostics]:
    """The faults that were not expected, and an error for each expected failure that is missing."""
    failures, expected = tuple(failures), tuple(expected)
    expected_blocks = {expectation.block for expectation in expected}
    failed = {failure.block for failure in failures}
    missing = tuple(
        make_error(
            expectation.node,
            f"{expectation.block} was expected to fail and did not",
            "Nothing that belongs to this block failed in the run.",
        )
        for expectation in expected
        if expectation.block not in failed
    )
    return tuple(
        failure.fault for failure in failures if failure.block not in expected_blocks
    ), missing
