"""`removed`, `moved` and `import` blocks: instructions about addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from ..core.address import Address
from ..core.resource import Import, Moved, Removed
from ..core.schema import STRING
from ..syntax.nodes import Block, Expression
from .addresses import address_of
from .arguments import Report, fit
from .blocks import header
from .code import Context, Env
from .declare import Declarations, ImportBlock
from .expand import instances
from .faults import Deferred, EvalError, Poisoned, as_diagnostic, error, near
from .values import Val, marks_of


@dataclass(frozen=True, slots=True)
class Instructions:
    removed: tuple[Removed, ...] = ()
    moved: tuple[Moved, ...] = ()
    imports: tuple[Import, ...] = ()


def instructions(
    found: Declarations,
    types: Mapping[str, object],
    context: Context,
    env: Env,
    report: Report,
) -> Instructions:
    """The evaluated blocks; each fault is reported and its block left out."""
    removed, moved = [], []
    for item in found.removed:
        source = _address(item.source, types, report)
        if source is not None:
            removed.append(Removed(source, item.destroy, header(item.block).range))
    for move in found.moved:
        source, target = (_address(node, types, report) for node in (move.source, move.target))
        if source is not None and target is not None:
            moved.append(Moved(source, target, header(move.block).range))
    imports = [
        one for block in found.imports for one in _imports(block, types, context, env, report)
    ]
    return Instructions(tuple(removed), tuple(moved), tuple(imports))


def _address(node: Expression, types: Mapping[str, object], report: Report) -> Address | None:
    try:
        address = address_of(node)
        _known_type(address, node, types)
    except EvalError as fault:
        report(as_diagnostic(fault))
        return None
    return address


def _known_type(address: Address, node: Expression, types: Mapping[str, object]) -> None:
    if address.type not in types:
        raise EvalError(
            node, f'There is no resource type "{address.type}"', "", near(address.type, types)
        )


def _imports(
    block: ImportBlock,
    types: Mapping[str, object],
    context: Context,
    env: Env,
    report: Report,
) -> Iterator[Import]:
    try:
        for instance in instances(block.for_each, None, context, env):
            inner = Env({**env.roots, **instance.roots}, {}, env.budget)
            yield _import(block, types, context, inner)
    except EvalError as fault:
        report(as_diagnostic(fault))
    except Deferred as deferred:
        summary = f"{deferred} is not known before the apply"
        report(error(header(block.block), summary, "An import cannot depend on it."))
    except Poisoned:
        return


def _import(block: ImportBlock, types: Mapping[str, object], context: Context, env: Env) -> Import:
    def key(node: Expression) -> str | int:
        value = context.code(node)(env)
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise EvalError(node, "The key of an address must be a string or a whole number")
        return value

    env.budget.charge(1, block.id)
    target = address_of(block.target, key)
    _known_type(target, block.target, types)
    value: Val = context.code(block.id)(env)
    if marks_of(value):
        raise EvalError(block.id, "An import id cannot be sensitive", "It is shown in the plan.")
    identity = fit(value, STRING, block.id, "The id")
    if not isinstance(identity, str) or not identity:
        raise EvalError(block.id, "An import needs an id")
    return Import(target, identity, header(block.block).range)


# ── against what is declared ────────────────────────────────────────────────────────────


def check_instructions(
    made: Instructions,
    found: Declarations,
    declared: Mapping[Address, Sequence[Address]],
    report: Report,
) -> None:
    """Report instructions that contradict what is declared, or each other. declared: resource
    -> its instances, of the resources without faults."""
    exact = {str(address) for addresses in declared.values() for address in addresses}
    blocks: Mapping[str, Block] = {str(a): r.block for a, r in found.resources.items()}
    for removed, item in zip(made.removed, found.removed, strict=False):
        _check_gone(removed.source, exact, blocks, item.source, "Remove that block", report)
    for moved, move in zip(made.moved, found.moved, strict=False):
        _check_moved(moved, move.source, exact, blocks, report)
    faulty = found.resources.keys() - declared.keys()
    imports = [one for one in made.imports if one.target.resource not in faulty]
    _check_imports(imports, found, exact, report)


def _check_gone(
    source: Address,
    exact: set[str],
    blocks: Mapping[str, Block],
    node: Expression,
    advice: str,
    report: Report,
) -> None:
    block = blocks.get(str(source.resource))
    if block is not None and (source.key is None or str(source) in exact):
        report(
            error(
                node,
                f"{source} is still declared",
                f"Its block is at {block.header_range}.",
                f"{advice}, or this one.",
            )
        )


def _check_moved(
    moved: Moved,
    node: Expression,
    exact: set[str],
    blocks: Mapping[str, Block],
    report: Report,
) -> None:
    if moved.source == moved.target:
        report(error(node, f"{moved.source} is moved to itself"))
    elif moved.source.type != moved.target.type:
        report(
            error(node, f"A {moved.source.type} cannot become a {moved.target.type}", "Types stay.")
        )
    elif moved.source.resource != moved.target.resource or str(moved.source) in exact:
        _check_gone(moved.source, exact, blocks, node, "Rename that block", report)


def _check_imports(
    imports: Sequence[Import], found: Declarations, exact: set[str], report: Report
) -> None:
    places = {header(block.block).range: block for block in found.imports}
    seen: dict[Address, Import] = {}
    for one in imports:
        place = header(places[one.range].block)
        if str(one.target) not in exact:
            advice = near(str(one.target), exact) or "Write a resource block for it."
            report(error(place, f"{one.target} is imported but not declared", "", advice))
        if one.target in seen:
            first = seen[one.target].range
            report(error(place, f"{one.target} is imported twice", f"The first is at {first}."))
        seen.setdefault(one.target, one)
