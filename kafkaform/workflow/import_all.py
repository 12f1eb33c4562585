"""`import --all`: write configuration for objects that no block declares and no state records.

It only reads. It reports what a listing can have omitted, and never takes that for absent.
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
from ..core.schema import AttributeSchema
from ..core.value import EMPTY, FrozenMap, SecretRef, Value
from ..language.declare.folder import Tree
from ..language.declare.top_level import declare_blocks
from ..plan.diff import compare
from ..provider.contract import ResourceType, Session
from ..render.text import inline
from ..syntax.parse import parse
from .configuration.evaluation import read_configuration
from .generated_blocks import (
    TakenNames,
    UndeclaredObject,
    fill_defaults,
    generate_blocks,
    render_imports,
)
from .secrecy import keep_secrets
from .workspace import Workspace, make_first_state, open_instance

PLACEHOLDER = SecretRef("env", "")
"""Stands for a secret, which cannot be read."""
NAMES_SHOWN = 5
Thing = tuple[str, str, str]
"""Scope id, type and key of one real object, whichever provider instance leads to it. A part counts
as its container (`ResourceType.part_of`)."""


class ImportFilter(Struct, frozen=True):
    """Which objects to import."""

    types: tuple[str, ...] = ()
    """Only these; empty for all."""
    match: tuple[str, ...] = ()
    """Globs for keys; empty for all."""

    def has_match(self, identity: Identity) -> bool:
        return not self.match or any(fnmatchcase(identity.key, glob) for glob in self.match)


class Stock(Struct, frozen=True):
    """The objects to import."""

    found: tuple[UndeclaredObject, ...] = ()
    """Objects without a block."""
    declared: tuple[tuple[Address, str], ...] = ()
    """Address and import id of objects with a block."""
    gaps: tuple[str, ...] = ()
    """What can be missing, for people."""
    failed: bool = False

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
    """What `import_all` returns."""

    text: str
    """HCL: the blocks of all objects, with import blocks."""
    count: int
    gaps: tuple[str, ...]
    """What can be missing, for people."""
    complete: bool
    """No listing failed."""


def import_all(
    workspace: Workspace,
    *,
    types: Sequence[str] = (),
    match: Sequence[str] = (),
    name: str = "generated",
) -> GeneratedConfiguration:
    """Generate configuration for all live objects that are neither declared nor recorded.

    Nothing is changed; the next apply with this configuration imports the objects. types: only
    these; match: only identity keys that match one of these globs; name: of the file in faults.

    Raises UsageError for a type that no provider lists, ConnectError, and KafkaformError if the
    generated configuration would not match the live objects.
    """
    with keep_secrets(workspace.known):
        stock = take_stock(workspace, ImportFilter(tuple(types), tuple(match)))
        text = ""
        if stock.count:
            tree = read_tree(workspace)
            text = prove_text(workspace, tree, render_stock(workspace, tree, stock), stock, name)
        return GeneratedConfiguration(mask_secrets(text), stock.count, stock.gaps, not stock.failed)


def read_tree(workspace: Workspace) -> Tree:
    """The blocks of the folder, which a workspace does not keep."""
    configuration = workspace.configuration
    folder, inputs = configuration.folder, configuration.inputs
    return read_configuration(folder, inputs, configuration.registry).tree


def take_stock(space: Workspace, wanted: ImportFilter) -> Stock:
    """All objects of all systems that the state does not record. Raises UsageError for a type that
    no provider lists, ConnectError."""
    _refuse_unknown(space, wanted)
    state = space.backend.load().state or make_first_state(space.sink)
    stock = Stock()
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
    """The objects that blocks declare or the state records."""
    ids = {*recorded, *(item.identity for item in space.desired.declared)}
    return {_make_thing(i, sessions[i.instance], space) for i in ids if i.instance in sessions}


def _make_thing(identity: Identity, session: Session, space: Workspace) -> Thing:
    kind = space.types.get(identity.kind)
    container = kind.part_of if kind is not None else None
    return session.facts.scope_id, container or identity.kind, identity.key


def render_stock(space: Workspace, tree: Tree, stock: Stock) -> str:
    """The stock as a further file of the configuration."""
    names = _find_taken_names(tree)
    parts = [
        _render_header(stock),
        render_imports(sorted(stock.declared)),
        generate_blocks(stock.found, space.types, names),
    ]
    return "\n".join(part for part in parts if part)


def prove_text(space: Workspace, own: Tree, text: str, stock: Stock, name: str) -> str:
    """Check that the text, together with the files of the folder, declares exactly what was found.
    Raises KafkaformError if not."""
    # A mistake here would be a change of a live object in the next plan, one among thousands.
    file, faults = parse(text.encode(), name)
    tree = replace(own, configuration=(*own.configuration, file))
    made = replace(space.configuration, tree=tree).evaluate_desired(offline=True)
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
    """Whether a declared object has these arguments; secrets are placeholders on both sides."""
    return bool(attributes) and all(
        attributes.get(name) == value or _has_secret(attributes.get(name))
        for name, value in arguments.items()
    )


def _has_secret(value: Value) -> bool:
    parts = value.values() if isinstance(value, FrozenMap) else (value,)
    return any(isinstance(part, SecretRef) for part in parts)


def _render_header(stock: Stock) -> str:
    lines = [
        "# Written by `kafkaform import --all`. After the next apply, the import blocks can be",
        "# removed.",
        *(f"# {inline(gap)}" for gap in stock.gaps),
    ]
    return "\n".join(lines) + "\n"


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
    """The objects of one instance that are neither declared nor recorded. They are added to
    `known`, since another instance can lead to the same system."""
    stock = Stock()
    for name, kind in space.providers[instance].types.items():
        if _is_listed(kind) and (not wanted.types or name in wanted.types):
            stock += _take_listed(kind, session, known, wanted)
    known.update(_make_thing(item.identity, session, space) for item in stock.found)
    return stock


def _take_listed(
    kind: ResourceType, session: Session, known: set[Thing], wanted: ImportFilter
) -> Stock:
    """The objects of one type that are neither declared nor recorded."""
    sweep = session.sweep(kind.name, Depth.FULL)
    fault = sweep.coverage.fault
    if fault is not None and fault.code in kind.switched_off:
        return Stock()
    scope = session.facts.scope_id
    unknown = [
        item
        for item in sweep.items
        if wanted.has_match(item.identity)
        and (scope, kind.name, item.identity.key) not in known
        and item.details.get("internal") is not True
    ]
    told = [_make_found(item, kind, session.facts) for item in unknown]
    gaps = [*_describe_coverage_gaps(sweep, session), *_describe_unread(sweep, session)]
    gaps += [gap for gap in told if isinstance(gap, str)]
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
    """Live objects that a block declares and the state does not record, as after a lost state."""
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
    """The object with the arguments of its block, or why no block can declare it."""
    live = kind.canonical(item.attributes, facts)
    try:
        arguments = _choose_arguments(item, kind, facts)
        made = kind.target(fill_defaults(arguments, kind.schema), item, facts, False)
        same = kind.key(fill_defaults(arguments, kind.schema)) == item.identity.key
    except ValueError as error:
        return f"Not complete: {item.identity}: no block can declare it: {error}"
    differ = compare(live, made, schema=kind.schema)
    if differ or not same:
        paths = ", ".join(".".join(change.path) for change in differ) or "its key"
        return f"Not complete: {item.identity}: a block cannot express {paths}"
    return UndeclaredObject(item.identity, arguments, _find_import_id(item.identity, kind))


def _find_import_id(identity: Identity, kind: ResourceType) -> str | None:
    """The id of the object in an import block, None if no such id means its key."""
    try:
        return identity.key if kind.import_key(identity.key) == identity.key else None
    except ValueError:
        return None


def _choose_arguments(item: Observed, kind: ResourceType, facts: Facts) -> FrozenMap:
    """The arguments that a block needs: no defaults, and nothing that the system sets."""
    # Of two arguments that exclude each other, the first is left out: the second one leaves more to
    # the system (a replication factor instead of an assignment).
    live = kind.written(item.attributes) if kind.written else item.attributes
    schema = kind.schema
    given = {
        name: live[name]
        for name, attribute in schema.attributes.items()
        if _is_needed(live.get(name), attribute)
    }
    for one, other in schema.conflicts:
        if one in given and other in given:
            del given[one]
    secret = (a.name for a in schema.attributes.values() if a.secret and a.required)
    told = FrozenMap({**dict.fromkeys(secret, PLACEHOLDER), **given})
    return told.with_items(_select_own_entries(told, item, kind, facts))


def _is_needed(value: Value, attribute: AttributeSchema) -> bool:
    nothing = value is None or value == attribute.default or attribute.computed
    return not nothing and (attribute.required or value != FrozenMap())


def _select_own_entries(
    told: FrozenMap, item: Observed, kind: ResourceType, facts: Facts
) -> dict[str, FrozenMap]:
    """The maps without the entries that stay even if nobody declares them."""
    # Those belong to others: throttles that a move sets, or overrides that a system cannot remove.
    maps = {name: value for name, value in told.items() if isinstance(value, FrozenMap) and value}
    if not maps:
        return {}
    bare = fill_defaults(told.with_items(dict.fromkeys(maps, FrozenMap())), kind.schema)
    left = kind.target(bare, item, facts, False)
    return {name: value.without(left.get(name) or ()) for name, value in maps.items()}


def _describe_coverage_gaps(sweep: Sweep, session: Session) -> Iterator[str]:
    kind, coverage = sweep.kind, sweep.coverage
    if coverage.kind is CoverageKind.VISIBLE_ONLY:
        who = session.facts.principal or "this principal"
        yield f"These are the objects of type {kind} that {who} can see; there can be more."
    elif coverage.kind is CoverageKind.FAILED:
        fault = coverage.fault
        why = f"{fault.message} ({fault.code})" if fault else "the listing failed"
        advice = f" {fault.advice}" if fault and fault.advice else ""
        yield f"Not complete: the objects of type {kind} could not be listed: {why}.{advice}"


def _describe_unread(sweep: Sweep, session: Session) -> Iterator[str]:
    """Objects that are listed but cannot be read."""
    if sweep.coverage.kind is CoverageKind.COMPLETE:
        return
    read = {item.identity.key for item in sweep.items}
    listed = session.sweep(sweep.kind, Depth.NAMES).items
    unread = sorted({item.identity.key for item in listed} - read)
    if unread:
        shown = ", ".join(unread[:NAMES_SHOWN]) + (" ..." if len(unread) > NAMES_SHOWN else "")
        yield f"Not complete: {len(unread)} of {sweep.kind} are listed but cannot be read: {shown}"
