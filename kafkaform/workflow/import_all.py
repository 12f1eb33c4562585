"""`import --all`: write configuration for live objects that are neither recorded nor declared.

It only reads. If a listing can be incomplete, the result says so; what a listing lacks never counts
as absent.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from ..core.address import Address
from ..core.diagnostics import Diagnostic, Severity, suggest
from ..core.errors import KafkaformError, UsageError
from ..core.redaction import mask_secrets
from ..core.resource import CoverageKind, Depth, Facts, Identity, Observed, Sweep
from ..core.value import EMPTY, FrozenMap, SecretRef
from ..language.declare.folder import Tree
from ..language.declare.top_level import declare_blocks
from ..plan.diff import compare
from ..provider.contract import ResourceType, Session
from ..render.text import inline
from ..syntax.parse import parse
from .configuration.evaluation import read_configuration
from .generate.arguments import choose_arguments, fill_defaults
from .generate.blocks import TakenNames, UndeclaredObject, generate_blocks, render_imports
from .secrecy import keep_secrets
from .workspace import Workspace, make_first_state, open_instance

NAMES_SHOWN = 5
Thing = tuple[str, str, str]
"""Scope id, type and key: one real object, whichever provider instance leads to it."""


class ImportFilter(Struct, frozen=True):
    """Which objects to import."""

    types: tuple[str, ...] = ()
    """Resource types; all if empty."""
    match: tuple[str, ...] = ()
    """Globs over the keys; everything if empty."""

    def has_match(self, identity: Identity) -> bool:
        return not self.match or any(fnmatchcase(identity.key, glob) for glob in self.match)


class Stock(Struct, frozen=True):
    """The live objects that the state lacks."""

    found: tuple[UndeclaredObject, ...] = ()
    """Objects without a block."""
    declared: tuple[tuple[Address, str], ...] = ()
    """The address and the import id of objects that have a block."""
    gaps: tuple[str, ...] = ()
    """What can be missing, for people."""
    failed: bool = False
    """A listing did not answer."""

    def __add__(self, other: Stock) -> Stock:
        return Stock(
            self.found + other.found,
            self.declared + other.declared,
            tuple(dict.fromkeys((*self.gaps, *other.gaps))),
            self.failed or other.failed,
        )

    @property
    def count(self) -> int:
        return len(self.found) + len(self.declared)


class GeneratedConfiguration(Struct, frozen=True):
    """Configuration for live objects."""

    text: str
    """HCL with a block for each object, and import blocks that take the objects over."""
    count: int
    """The number of objects."""
    gaps: tuple[str, ...]
    """What can be missing, for people."""
    complete: bool
    """Every listing answered."""


def import_all(
    workspace: Workspace,
    *,
    types: Sequence[str] = (),
    match: Sequence[str] = (),
    name: str = "generated",
) -> GeneratedConfiguration:
    """Write configuration for every live object that is neither declared nor recorded.

    It changes nothing: the configuration takes the objects over with the next apply. types: only
    these types; match: only keys that one of these globs matches; name: of the file in faults.

    Raises UsageError for a type that no provider lists, ConnectError, and KafkaformError if the
    generated configuration differs from the live objects.
    """
    with keep_secrets(workspace.known):
        stock = take_stock(workspace, ImportFilter(tuple(types), tuple(match)))
        text = ""
        if stock.count:
            tree = read_tree(workspace)
            text = prove_text(workspace, tree, render_stock(workspace, tree, stock), stock, name)
        # The second line of defence: a plain attribute of a live object can contain a known secret.
        return GeneratedConfiguration(mask_secrets(text), stock.count, stock.gaps, not stock.failed)


def read_tree(workspace: Workspace) -> Tree:
    """Parse the folder again, because a workspace does not keep the blocks."""
    return read_configuration(workspace.configuration.folder, workspace.configuration.inputs).tree


def take_stock(space: Workspace, wanted: ImportFilter) -> Stock:
    """List all live objects that the state lacks. Raises UsageError, ConnectError."""
    _refuse_unknown(space, wanted)
    state = space.backend.load().state or make_first_state(space.sink)
    stock = Stock()
    # All systems at once, because two instances can lead to one system (`Thing`).
    with ExitStack() as stack:
        sessions: dict[str, Session] = {}
        for instance in sorted(space.providers):
            sessions[instance] = open_instance(space, instance)
            stack.callback(sessions[instance].close)
        known = _find_known(space, sessions, state.objects)
        for instance, session in sessions.items():
            stock += _take_instance_stock(space, session, instance, known, wanted)
            stock += _take_declared(space, session, instance, state.objects.keys(), wanted)
    return stock


def _find_known(
    space: Workspace, sessions: Mapping[str, Session], recorded: Iterable[Identity]
) -> set[Thing]:
    """The real objects that blocks declare or the state records, through whichever instance."""
    ids = {*recorded, *(item.identity for item in space.desired.declared)}
    return {_make_thing(i, sessions[i.instance], space) for i in ids if i.instance in sessions}


def _make_thing(identity: Identity, session: Session, space: Workspace) -> Thing:
    # A part and its container are one object here: a block of either manages both.
    kind = space.types.get(identity.kind)
    container = kind.part_of if kind is not None else None
    return session.facts.scope_id, container or identity.kind, identity.key


def render_stock(space: Workspace, tree: Tree, stock: Stock) -> str:
    """Write the stock as one more configuration file of the folder."""
    names, types = _find_taken_names(tree), space.types
    if tree.terraform:
        # Terraform, which may read the same files, has no function for a time or a size.
        types = {name: replace(kind, unit=None) for name, kind in types.items()}
    parts = [
        _render_header(stock),
        render_imports(sorted(stock.declared)),
        generate_blocks(stock.found, types, names),
    ]
    return "\n".join(part for part in parts if part)


def prove_text(space: Workspace, own: Tree, text: str, stock: Stock, name: str) -> str:
    """Evaluate the generated text together with the folder's files, and return it.

    Raises KafkaformError if it does not declare exactly what was found.
    """
    # A wrong generator must not become a plan that changes the live objects.
    file, faults = parse(text.encode(), name)
    tree = replace(own, configuration=(*own.configuration, file))
    made = replace(space.configuration, tree=tree).evaluate(offline=True).desired
    said = {item.identity: item.attributes for item in made.declared}
    wrong = [
        str(item.identity)
        for item in stock.found
        if not _has_arguments(said.get(item.identity, EMPTY), item.arguments)
    ]
    broken = tuple(d for d in (*faults, *made.diagnostics) if d.severity is Severity.ERROR)
    if broken or wrong:
        what = f": {', '.join(wrong[:NAMES_SHOWN])}" if wrong else ""
        fault = Diagnostic(
            Severity.ERROR,
            f"The generated text does not match the live objects{what}; nothing was written",
            advice="Exclude these objects with --match or --type.",
        )
        raise KafkaformError(fault.summary, diagnostics=(fault, *broken))
    return text


def _has_arguments(attributes: FrozenMap, arguments: FrozenMap) -> bool:
    """Whether a declared object has these arguments. Secrets are placeholders on both sides."""
    for name, value in arguments.items():
        said = attributes.get(name)
        parts = said.values() if isinstance(said, FrozenMap) else (said,)
        if said != value and not any(isinstance(part, SecretRef) for part in parts):
            return False
    return bool(attributes)


def _render_header(stock: Stock) -> str:
    head = (
        "# Written by `kafkaform import --all`. Once it is applied, the import blocks have done\n"
        "# their work and can go.\n"
    )
    return head + "".join(f"# {inline(gap)}\n" for gap in stock.gaps)


def _find_taken_names(tree: Tree) -> TakenNames:
    """The names of the folder's own blocks and locals."""
    names = TakenNames()
    found, _ = declare_blocks(tree)
    names.locals.update(found.locals)
    for address in found.resources:
        names.blocks[address.type].add(address.name)
    return names


def _refuse_unknown(space: Workspace, wanted: ImportFilter) -> None:
    providers = space.providers.values()
    listed = {name for one in providers for name, t in one.types.items() if _is_listed(t)}
    for name in wanted.types:
        if name not in listed:
            raise UsageError(
                f"--type {name!r} is nothing that a provider of this configuration lists",
                suggest(name, listed) or f"It is one of: {', '.join(sorted(listed))}.",
            )


def _is_listed(kind: ResourceType) -> bool:
    return kind.expand is None and kind.part_of is None


# ── one system ──────────────────────────────────────────────────────────────────────────


def _take_instance_stock(
    space: Workspace, session: Session, instance: str, known: set[Thing], wanted: ImportFilter
) -> Stock:
    """The objects that are neither declared nor recorded."""
    stock = Stock()
    for name, kind in space.providers[instance].types.items():
        if _is_listed(kind) and (not wanted.types or name in wanted.types):
            stock += _take_listed(kind, session, known, wanted)
    # Another instance can lead to the same system, and must not find them again.
    known.update(_make_thing(item.identity, session, space) for item in stock.found)
    return stock


def _take_listed(
    kind: ResourceType, session: Session, known: set[Thing], wanted: ImportFilter
) -> Stock:
    """The objects of one kind."""
    sweep = session.sweep(kind.name, Depth.FULL)
    fault = sweep.coverage.fault
    # Nothing failed: without this feature the system cannot have such objects. Only somebody who
    # asks for them by type is told.
    if fault is not None and fault.code in kind.switched_off:
        return Stock(gaps=(f"{kind.name}: {fault.message}.",) if wanted.types else ())
    scope = session.facts.scope_id
    unknown = [
        item
        for item in sweep.items
        if wanted.has_match(item.identity)
        and (scope, kind.name, item.identity.key) not in known
        # The system has made these for itself, and nobody declares them.
        and item.details.get("internal") is not True
    ]
    told = [_make_found(item, kind, session.facts) for item in unknown]
    gaps = [*_describe_gaps(sweep, session), *(gap for gap in told if isinstance(gap, str))]
    return Stock(
        found=tuple(found for found in told if isinstance(found, UndeclaredObject)),
        gaps=tuple(gaps),
        failed=sweep.coverage.kind is CoverageKind.FAILED,
    )


def _take_declared(
    space: Workspace,
    session: Session,
    instance: str,
    recorded: Collection[Identity],
    wanted: ImportFilter,
) -> Stock:
    """The live objects that a block declares and the state lacks, as after a lost state."""
    # Import blocks of the folder record their objects with the next apply anyway.
    types = space.providers[instance].types
    coming = {block.target for block in space.desired.imports}
    chosen = [
        d
        for d in space.desired.declared
        if d.identity.instance == instance
        and d.identity not in recorded
        and d.address not in coming
        and wanted.has_match(d.identity)
        and (not wanted.types or d.identity.kind in wanted.types)
    ]
    readings = session.read([d.identity for d in chosen]) if chosen else {}
    there = [d for d in chosen if isinstance(readings[d.identity], Observed)]
    ids = {d.address: _find_import_id(d.identity, types[d.identity.kind]) for d in there}
    adopt = {a for a, id in ids.items() if id is None or a.child is not None}
    return Stock(
        declared=tuple((a, id) for a, id in ids.items() if id is not None and a not in adopt),
        gaps=tuple(
            f"No import block can name the objects of {address}: apply with --adopt='{address}'."
            for address in sorted({str(replace(address, child=None)) for address in adopt})
        ),
    )


# ── one object ──────────────────────────────────────────────────────────────────────────


def _make_found(item: Observed, kind: ResourceType, facts: Facts) -> UndeclaredObject | str:
    """The object with the arguments of its block, or the reason why no block can declare it."""
    # Proved by the way back: what the arguments mean must be exactly what is live.
    live = kind.canonical(item.attributes, facts)
    try:
        arguments = choose_arguments(item, kind, facts)
        made = kind.target(fill_defaults(arguments, kind.schema), item, facts, False)
        same = kind.key(fill_defaults(arguments, kind.schema)) == item.identity.key
    except ValueError as error:
        return f"Not complete: {item.identity}: no block can declare it: {error}"
    differ = compare(live, made, schema=kind.schema)
    if differ or not same:
        paths = ", ".join(".".join(change.path) for change in differ) or "its key"
        return f"Not complete: {item.identity} has no block that declares it: {paths}"
    return UndeclaredObject(item.identity, arguments, _find_import_id(item.identity, kind))


def _find_import_id(identity: Identity, kind: ResourceType) -> str | None:
    """The id that an import block has for the object, None if it cannot name the object."""
    try:
        return identity.key if kind.import_key(identity.key) == identity.key else None
    except ValueError:
        return None


# ── what may be missing ─────────────────────────────────────────────────────────────────


def _describe_gaps(sweep: Sweep, session: Session) -> Iterator[str]:
    """Why a listing can be incomplete, and the objects that could not be read."""
    kind, coverage = sweep.kind, sweep.coverage
    if coverage.kind is CoverageKind.VISIBLE_ONLY:
        who = session.facts.principal or "this principal"
        yield f"{kind}: this is what {who} can see; there can be more."
    elif coverage.kind is CoverageKind.FAILED:
        fault = coverage.fault
        why = f"{fault.message} ({fault.code})" if fault else "the listing failed"
        advice = f" {fault.advice}" if fault and fault.advice else ""
        yield f"Not complete: {kind} could not be listed whole: {why}.{advice}"
    else:
        return
    # What the principal can see by name and cannot read is listed with the names only.
    read = {item.identity.key for item in sweep.items}
    listed = session.sweep(sweep.kind, Depth.NAMES).items
    unread = sorted({item.identity.key for item in listed} - read)
    if unread:
        shown = ", ".join(unread[:NAMES_SHOWN]) + (" ..." if len(unread) > NAMES_SHOWN else "")
        yield f"Not complete: {len(unread)} of {sweep.kind} are listed but cannot be read: {shown}"
