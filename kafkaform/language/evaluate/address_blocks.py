"""Evaluate `removed`, `moved` and `import` blocks: instructions about addresses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from ...core.address import Address
from ...core.diagnostics import Range
from ...core.resource import Import, Moved, Removed
from ...core.schema import STRING
from ...syntax.nodes import Expression
from ..declare.addresses import parse_address_node
from ..declare.blocks import Header, ImportBlock
from ..expressions.code import Context, Env
from ..expressions.dependencies import order_names
from ..values.faults import (
    Budget,
    Deferred,
    EvalError,
    LimitError,
    Location,
    Poisoned,
    make_diagnostic,
    make_error,
    suggest_near,
)
from ..values.value import Val, marks_of
from .arguments import fit_type
from .evaluation_state import Run, Scope
from .expansion import expand_instances


class Instructions(Struct, frozen=True):
    """The evaluated instructions, each with the place to blame."""

    removed: tuple[tuple[Removed, Expression], ...] = ()
    moved: tuple[tuple[Moved, Expression], ...] = ()
    imports: tuple[tuple[Import, Location], ...] = ()


def evaluate_instructions(run: Run) -> Instructions:
    """Evaluate the blocks of all modules. A block with a fault is reported and left out."""
    removed: list[tuple[Removed, Expression]] = []
    moved: list[tuple[Moved, Expression]] = []
    # In a module, addresses are relative to each of its instances.
    for scope in (scope for scopes in run.scopes.values() for scope in scopes):
        for item in scope.module.declarations.removed:
            source = _evaluate_address(item.source, run, scope)
            if source is not None:
                block_range = Header(item.block).range
                removed.append((Removed(source, item.destroy, block_range), item.source))
        for move in scope.module.declarations.moved:
            source, target = (
                _evaluate_address(node, run, scope) for node in (move.source, move.target)
            )
            if source is not None and target is not None:
                block_range = Header(move.block).range
                moved.append((Moved(source, target, block_range), move.source))
    imports = [
        (imported, Header(block.block))
        for block in run.root.module.declarations.imports
        for imported in _evaluate_imports(block, run)
    ]
    # Moves are applied in this order: `a → b` before `b → c`, wherever they are written.
    nodes = dict(moved)
    ordered = order_names(_find_followers(list(nodes)))[0]
    moves = tuple((move, nodes[move]) for move in ordered)
    return Instructions(tuple(removed), moves, tuple(imports))


def _evaluate_address(node: Expression, run: Run, scope: Scope) -> Address | None:
    try:
        address = parse_address_node(node)
        _check_type(address, node, run)
    except EvalError as fault:
        scope.report(make_diagnostic(fault))
        return None
    return address.nest_in(scope.path)


def _check_type(address: Address, node: Expression, run: Run) -> None:
    types = run.schemas.types
    if address.type and address.type not in types:
        raise EvalError(
            node,
            f'There is no resource type "{address.type}"',
            "",
            suggest_near(address.type, types),
        )


def _evaluate_imports(block: ImportBlock, run: Run) -> Iterator[Import]:
    env, report = run.root.env, run.root.report
    try:
        env.budget.charge(1, block.id)
        for instance in expand_instances(block.block, run.context, env):
            inner = Env({**env.roots, **instance.roots}, {}, env.budget)
            yield _evaluate_import(block, run, run.context, inner)
    except EvalError as fault:
        report(make_diagnostic(fault))
    except Deferred as deferred:
        summary = f"{deferred} is not known before the apply"
        report(make_error(Header(block.block), summary, "An import cannot depend on it."))
    except Poisoned:
        return


def _evaluate_import(block: ImportBlock, run: Run, context: Context, env: Env) -> Import:
    def key(node: Expression) -> str | int:
        value = context.compile_node(node)(env)
        if isinstance(value, bool) or not isinstance(value, str | int):
            raise EvalError(node, "The key of an address must be a string or a whole number")
        return value

    env.budget.charge(1, block.id)
    target = parse_address_node(block.target, key)
    _check_type(target, block.target, run)
    if not target.type:
        raise EvalError(block.target, "An import names one object, not a module")
    value: Val = context.compile_node(block.id)(env)
    if marks_of(value):
        raise EvalError(block.id, "An import id cannot be sensitive", "The plan shows it.")
    identity = fit_type(value, STRING, block.id, "The id")
    if not isinstance(identity, str) or not identity:
        raise EvalError(block.id, "An import needs an id")
    return Import(target, identity, Header(block.block).range)


# ── against what is declared ────────────────────────────────────────────────────────────


class _DeclaredAddresses(Struct, frozen=True):
    """What is declared."""

    exact: frozenset[str]
    """The addresses of all instances, as text."""
    blocks: Mapping[Address, Range]
    """Address of a block or module, without its key -> its place."""
    bare: Mapping[Address, Range]
    """The same, also without the keys of modules."""
    faulty: frozenset[Address]
    """Blocks whose instances are not known, because of faults."""


def check_instructions(instructions: Instructions, run: Run) -> None:
    """Report instructions that contradict what is declared, or each other."""
    declared = _list_declared(run)
    try:
        for removed, node in instructions.removed:
            _check_undeclared(removed.source, declared, node, "Remove that block", run)
        for moved, node in instructions.moved:
            source, target = moved.source, moved.target
            if source == target:
                run.faults.add(make_error(node, f"{source} is moved to itself"))
            elif source.type != target.type:
                names = (source.type or "module", target.type or "module")
                detail = "An object keeps its type when it gets another address."
                run.faults.add(make_error(node, f"A {names[0]} cannot become a {names[1]}", detail))
            # The old address must not be declared, but another instance of the same block can be.
            elif not _is_same_block(source, target) or str(source) in declared.exact:
                _check_undeclared(source, declared, node, "Rename that block", run)
        _check_moves_together(instructions.moved, run)
        _check_imports(instructions.imports, declared, run)
    except LimitError as fault:
        run.faults.add(make_diagnostic(fault))
    except Poisoned:
        return


def _list_declared(run: Run) -> _DeclaredAddresses:
    exact: set[str] = set()
    blocks: dict[Address, Range] = {}
    faulty: set[Address] = set()
    for scope in (scope for scopes in run.scopes.values() for scope in scopes):
        if scope.module.call is not None:
            blocks[Address("", "", None, scope.path)] = scope.module.call.block.header_range
        for address, resource in scope.module.declarations.resources.items():
            full_address, instances = (
                address.nest_in(scope.path),
                scope.instances.get(address, Poisoned()),
            )
            blocks[full_address] = resource.block.header_range
            if isinstance(instances, Poisoned):
                faulty.add(full_address)
            else:
                exact.update(str(item.declared.address) for item in instances)
    bare: dict[Address, Range] = {}
    for address, block_range in blocks.items():
        bare.setdefault(_drop_keys(address), block_range)
    return _DeclaredAddresses(frozenset(exact), blocks, bare, frozenset(faulty))


def _drop_keys(address: Address) -> Address:
    """The address without keys, its own and those of modules."""
    module = tuple(step.partition("[")[0] for step in address.module)
    return replace(address, module=module, key=None)


def _check_undeclared(
    source: Address, declared: _DeclaredAddresses, node: Expression, advice: str, run: Run
) -> None:
    block_range = _find_declaration(source, declared, node, run.budget)
    if block_range is not None:
        run.faults.add(
            make_error(
                node,
                f"{source} is still declared",
                f"Its block is at {block_range}.",
                f"{advice}, or this one.",
            )
        )


def _find_declaration(
    source: Address, declared: _DeclaredAddresses, node: Expression, budget: Budget
) -> Range | None:
    """The place of a block that declares this address, or something in it."""
    # A key can be gone while its block stays, so an address with a key is compared exactly.
    block_range = declared.blocks.get(source.resource)
    if block_range is not None:
        is_declared = source.key is None or str(source) in declared.exact
        return block_range if is_declared else None
    bare = _drop_keys(source)
    if source.key is not None or bare not in declared.bare:
        return None
    if bare == source:
        return declared.bare[bare]
    budget.charge(len(declared.blocks), node)
    inner_ranges = (
        inner_range for block, inner_range in declared.blocks.items() if source.contains(block)
    )
    return next(inner_ranges, None)


def _check_moves_together(moves: Sequence[tuple[Moved, Expression]], run: Run) -> None:
    """Report moves that contradict each other: an object would have two addresses, or none."""
    first: dict[Address, Moved] = {}
    for moved, node in moves:
        earlier = first.setdefault(moved.source, moved)
        if earlier.target != moved.target:
            run.faults.add(
                make_error(
                    node,
                    f"{moved.source} is moved to two addresses",
                    f"To {earlier.target} at {earlier.range}, and to {moved.target} here.",
                    "Keep one of the two moved blocks.",
                )
            )
    nodes = dict(moves)
    for cycle in order_names(_find_followers(list(nodes)))[1]:
        chain = cycle[:0:-1]  # closed, and each before what comes first
        start = chain.index(min(chain, key=lambda moved: moved.range))
        chain = [*chain[start:], *chain[:start]]
        detail = "; ".join(f"{move.source} → {move.target} ({move.range})" for move in chain)
        run.faults.add(
            make_error(
                nodes[chain[0]],
                "These moved blocks lead back to where they start",
                f"{detail}. So there is no last address.",
                "Remove one of them.",
            )
        )


def _find_followers(moves: Sequence[Moved]) -> dict[Moved, tuple[Moved, ...]]:
    """Move -> the moves that come before it, because their targets are what it moves."""
    targets: dict[str, list[Moved]] = {}
    moves_inside: dict[str, list[Moved]] = {}
    for moved in moves:
        targets.setdefault(str(moved.target), []).append(moved)
        for text in _list_outer(moved.target):
            moves_inside.setdefault(text, []).append(moved)
    moves_before = {}
    for moved in moves:
        earlier = dict.fromkeys(moves_inside.get(str(moved.source), ()))
        for text in _list_outer(moved.source):
            earlier.update(dict.fromkeys(targets.get(text, ())))
        moves_before[moved] = tuple(move for move in earlier if move is not moved)
    return moves_before


def _list_outer(address: Address) -> set[str]:
    """The address, its block, and the modules that it is in, with keys and without."""
    prefixes = (address.module[:depth] for depth in range(1, len(address.module) + 1))
    modules = {Address("", "", None, prefix) for prefix in prefixes}
    return {
        text
        for outer in (address, address.resource, *modules)
        for text in (str(outer), str(_drop_keys(outer)))
    }


def _is_same_block(source: Address, target: Address) -> bool:
    """Whether both are instances of one block, or of one module."""
    if source.type:
        return source.resource == target.resource
    return [step.partition("[")[0] for step in source.module] == [
        step.partition("[")[0] for step in target.module
    ]


def _check_imports(
    imports: Sequence[tuple[Import, Location]], declared: _DeclaredAddresses, run: Run
) -> None:
    first_imports: dict[Address, Import] = {}
    for imported, location in imports:
        if run.budget.spent:
            return
        if imported.target.resource in declared.faulty:  # its instances are not known
            continue
        if str(imported.target) not in declared.exact:
            advice = (
                suggest_near(str(imported.target), declared.exact)
                or "Write a resource block for it."
            )
            summary = f"{imported.target} is imported but not declared"
            run.faults.add(make_error(location, summary, "", advice))
        if imported.target in first_imports:
            first = first_imports[imported.target].range
            summary = f"{imported.target} is imported twice"
            run.faults.add(make_error(location, summary, f"The first is at {first}."))
        first_imports.setdefault(imported.target, imported)
