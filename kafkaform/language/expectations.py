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
    expected: Iterable[Expectation], found: Declarations
) -> Iterator[Diagnostic]:
    """An error for each block that the configuration does not have."""
    known = list_block_places(found)
    for one in expected:
        if one.block not in known:
            yield make_error(
                one.node,
                f"{one.block} is not declared, so it cannot fail",
                f"A test can expect failures of {FORMS}, without keys and not inside of modules.",
                suggest_near(one.block, known),
            )


def list_block_places(found: Declarations) -> dict[str, Range]:
    """The blocks that can fail by themselves, and the place of each."""
    named = {
        **{f"var.{name}": one.block for name, one in found.variables.items()},
        **{str(address): one.block for address, one in found.resources.items()},
        **{f"data.{address}": one.block for address, one in found.data.items()},
        **{f"output.{name}": one.block for name, one in found.outputs.items()},
        **{f"check.{name}": one.block for name, one in found.checks.items()},
    }
    return {name: block.range for name, block in named.items()}


Spots = frozenset[tuple[Range | None, str]]
"""Place and summary of faults."""


def find_mistakes(faults: Iterable[Diagnostic], found: Declarations) -> Spots:
    """The faults that the configuration has whatever its variables are, such as a misspelt name: no
    test can expect them, or it would pass for the wrong reason.

    faults: those that `validate` finds. A rule that is not met by default values is no mistake.
    """
    rules = {one.get_argument("condition") for one in _list_rules(found)}
    places = {one.range for one in rules if one is not None}
    places |= {one.block.header_range for one in found.variables.values()}
    return frozenset((one.range, one.summary) for one in faults if one.range not in places)


def _list_rules(found: Declarations) -> Iterator[Block]:
    for resource in (*found.resources.values(), *found.data.values()):
        yield from (*resource.preconditions, *resource.postconditions)
    for output in found.outputs.values():
        yield from output.preconditions
    for check in found.checks.values():
        yield from check.assertions


def find_failures(
    faults: Iterable[Diagnostic],
    found: Declarations,
    values: Mapping[str, Attribute],
    mistakes: Spots,
) -> tuple[Failure, ...]:
    """The faults that are failures, each with its block. Other warnings are none, except those of
    `check` blocks, which exist to be noticed.

    values: what the test gives to variables; a fault of such a value is one of the variable.
    """
    places = [
        *list_block_places(found).items(),
        *((f"var.{name}", item.range) for name, item in values.items()),
    ]
    failures = []
    for fault in faults:
        block = _find_block(fault.range, places)
        if fault.severity is Severity.ERROR or block.startswith("check."):
            mistake = (fault.range, fault.summary) in mistakes
            failures.append(Failure("" if mistake else block, fault))
    return tuple(failures)


def _find_block(place: Range | None, places: Iterable[tuple[str, Range]]) -> str:
    if place is None:
        return ""
    inside = (
        name
        for name, outer in places
        if outer.file == place.file and outer.start_byte <= place.start_byte < outer.end_byte
    )
    return next(inside, "")


def compare_failures(
    failures: Iterable[Failure], expected: Iterable[Expectation]
) -> tuple[Diagnostics, Diagnostics]:
    """The faults that nobody expected, and an error for each expected failure that is missing."""
    failures, expected = tuple(failures), tuple(expected)
    wanted = {one.block for one in expected}
    failed = {one.block for one in failures}
    missing = tuple(
        make_error(
            one.node,
            f"{one.block} was expected to fail and did not",
            "Nothing that belongs to this block failed in the run.",
        )
        for one in expected
        if one.block not in failed
    )
    return tuple(one.fault for one in failures if one.block not in wanted), missing
