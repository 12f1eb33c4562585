"""The failures that a test expects: which block a fault belongs to, and whether it was expected."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from msgspec import Struct

from ..core.diagnostics import Diagnostic, Diagnostics, Range, Severity
from ..syntax.nodes import Attr, Attribute, Block, Expression, Root, Tuple
from .declare.declarations import Declarations
from .values.faults import make_error, suggest_near

FORMS = "var.NAME, TYPE.NAME, data.TYPE.NAME, output.NAME or check.NAME"


class Expectation(Struct, frozen=True):
    """One element of `expect_failures`."""

    block: str
    """The block that has to fail: `var.size`, `kafka_topic.orders`."""
    node: Expression


class Failure(Struct, frozen=True):
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
    blocks = list_block_places(declarations)
    for expectation in expected:
        if expectation.block not in blocks:
            yield make_error(
                expectation.node,
                f"{expectation.block} is not declared, so it cannot fail",
                f"A test can expect failures of {FORMS}, without keys and not inside of modules.",
                suggest_near(expectation.block, blocks),
            )


def list_block_places(declarations: Declarations) -> dict[str, Range]:
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

    faults: those that `validate` finds. A rule that is not met by default values is no mistake.
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
) -> tuple[Failure, ...]:
    """The faults that are failures, each with its block. Other warnings are none, except those of
    `check` blocks, which exist to be noticed.

    values: what the test gives to variables; a fault of such a value is one of the variable.
    """
    block_ranges = [
        *list_block_places(declarations).items(),
        *((f"var.{name}", item.range) for name, item in values.items()),
    ]
    failures = []
    for fault in faults:
        block = _find_block(fault.range, block_ranges)
        if fault.severity is Severity.ERROR or block.startswith("check."):
            mistake = (fault.range, fault.summary) in mistakes
            failures.append(Failure("" if mistake else block, fault))
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
    failures: Iterable[Failure], expected: Iterable[Expectation]
) -> tuple[Diagnostics, Diagnostics]:
    """The faults that nobody expected, and an error for each expected failure that is missing."""
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
