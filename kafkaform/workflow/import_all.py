"""`import --all`: write configuration for live objects that are neither recorded nor declared.

It only reads. If a listing can be incomplete, the result says so; what a listing lacks never counts
as absent.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from fnmatch import fnmatchcase

from msgspec import Struct
from msgspec.structs import replace

from ..core.change import PathChange
from ..core.diagnostics import Severity, suggest
from ..core.errors import ConfigurationError, ConnectError, UsageError
from ..core.resource import CoverageKind, Depth, Facts, Identity, Observed, Reading, Sweep
from ..core.secret import keep_secrets
from ..language.declare.folder import Tree
from ..plan.diff import compare
from ..provider.contract import OwnerFinder, Provider, ResourceType, Session, load_owners
from .configuration.evaluation import read_configuration
from .generate.blocks import UndeclaredObject, choose_arguments, fill_defaults, find_import_id
from .generate.files import (
    NAMES_SHOWN,
    GeneratedConfiguration,
    Stock,
    generate_configuration,
)
from .workspace import Workspace, make_first_state, open_instance, require_workspace

Thing = tuple[str, str, str]
"""Scope id, type and key: one real object, whichever provider instance leads to it."""


class ImportFilter(Struct, frozen=True):
    """Which objects to import."""

    types: tuple[str, ...] = ()
    """Resource types; all if empty."""
    match: tuple[str, ...] = ()
    """Globs over the keys; everything if empty."""

    exclude: tuple[str, ...] = ()
    """Globs over the keys that are left out."""
    owned: bool = False
    """Also what applications and services make for themselves."""

    def has_match(self, identity: Identity) -> bool:
        if any(fnmatchcase(identity.key, glob) for glob in self.exclude):
            return False
        return not self.match or any(fnmatchcase(identity.key, glob) for glob in self.match)


def import_all(
    workspace: Workspace,
    *,
    types: Sequence[str] = (),
    match: Sequence[str] = (),
    name: str = "generated",
    split: bool = False,
    documents: bool = False,
    exclude: Sequence[str] = (),
    owned: bool = False,
) -> GeneratedConfiguration:
    """Write configuration for every live object that is neither declared nor recorded.

    It changes nothing: the configuration takes the objects over with the next apply. types: only
    these types; match: only keys that one of these globs matches; name: of the file in faults;
    split: write a text of its own for each first part of the names (`parts`); documents: keep long
    texts, such as schemas, in files of their own (`documents`); exclude: without the keys that one
    of these globs matches; owned: also what applications and services make for themselves.

    Raises UsageError for a type that no provider lists, ConnectError, and KafkaformError if the
    generated configuration differs from the live objects.
    """
    require_workspace(workspace)
    with keep_secrets(workspace.known_secrets):
        stock = take_stock(
            workspace, ImportFilter(tuple(types), tuple(match), tuple(exclude), owned)
        )
        return generate_configuration(
            workspace.configuration,
            read_tree(workspace),
            workspace.types,
            stock,
            name=name,
            split=split,
            documents=documents,
        )


def read_tree(workspace: Workspace) -> Tree:
    """Parse the folder again, because a workspace does not keep the blocks."""
    return read_configuration(workspace.configuration.folder, workspace.configuration.inputs).tree


def take_stock(space: Workspace, filters: ImportFilter) -> Stock:
    """List all live objects that the state lacks. A system that cannot be reached is a gap. Raises
    UsageError, ConnectError if none can be reached, ConfigurationError."""
    refuse_unknown_types(space.providers.values(), filters)
    refuse_unread(space)
    state = space.backend.load().state or make_first_state(space.sink)
    stock = Stock()
    # All systems at once, because two instances can lead to one system (`Thing`).
    with ExitStack() as stack:
        sessions: dict[str, Session] = {}
        errors: list[ConnectError] = []
        for instance, provider in sorted(space.providers.items()):
            if filters.types and not {*filters.types} & provider.types.keys():
                continue
            try:
                sessions[instance] = open_instance(space, instance)
            except ConnectError as error:
                errors.append(error)
                gap = (
                    f"Left out: everything of {instance}, which could not be asked: {error.message}"
                )
                stock += Stock(gaps=(gap,), failed=True)
            else:
                stack.callback(sessions[instance].close)
        if errors and not sessions:
            raise errors[0]
        recorded = find_known(space, sessions, state.objects)
        for instance, session in sessions.items():
            stock += take_instance_stock(space, session, instance, recorded, filters)
            stock += take_declared(space, session.read, instance, state.objects.keys(), filters)
    return stock


def find_known(
    space: Workspace, sessions: Mapping[str, Session], recorded: Iterable[Identity]
) -> set[Thing]:
    """The real objects that blocks declare or the state records, through whichever instance."""
    ids = {*recorded, *(item.identity for item in space.desired.declared)}
    return {make_thing(i, sessions[i.instance], space) for i in ids if i.instance in sessions}


def make_thing(identity: Identity, session: Session, space: Workspace) -> Thing:
    # A part and its container are one object here: a block of either manages both.
    kind = space.types.get(identity.kind)
    container = kind.part_of if kind is not None else None
    return session.facts.scope_id, container or identity.kind, identity.key


def refuse_unread(space: Workspace) -> None:
    """Raises ConfigurationError if a data source was not read: what its blocks declare would be
    found as undeclared."""
    if space.desired.unread:
        faults = (replace(fault, severity=Severity.ERROR) for fault in space.desired.diagnostics)
        raise ConfigurationError("a data source could not be read", diagnostics=tuple(faults))


def refuse_unknown_types(providers: Iterable[Provider], filters: ImportFilter) -> None:
    """Raises UsageError for a type that no provider lists."""
    listed = {name for provider in providers for name, t in provider.types.items() if _is_listed(t)}
    for name in filters.types:
        if name not in listed:
            raise UsageError(
                f"--type {name!r} is nothing that a provider of this configuration lists",
                suggest(name, listed) or f"It is one of: {', '.join(sorted(listed))}.",
            )


def _is_listed(kind: ResourceType) -> bool:
    return kind.expand is None and kind.part_of is None


# ── one system ──────────────────────────────────────────────────────────────────────────


def take_instance_stock(
    space: Workspace, session: Session, instance: str, recorded: set[Thing], filters: ImportFilter
) -> Stock:
    """The objects that are neither declared nor recorded. Adds them to `recorded`."""
    stock = Stock()
    for name, kind in space.providers[instance].types.items():
        if _is_listed(kind) and (not filters.types or name in filters.types):
            find_owned = load_owners(space.providers[instance])
            stock += _take_listed(kind, session, recorded, filters, find_owned)
    # Another instance can lead to the same system, and must not find them again.
    recorded.update(make_thing(item.identity, session, space) for item in stock.undeclared)
    return stock


def _take_listed(
    kind: ResourceType,
    session: Session,
    recorded: set[Thing],
    filters: ImportFilter,
    find_owned: OwnerFinder,
) -> Stock:
    """The objects of one kind."""
    sweep = session.sweep(kind.name, Depth.FULL)
    fault = sweep.coverage.fault
    # Nothing failed: without this feature the system cannot have such objects. Only somebody who
    # asks for them by type is told.
    if fault is not None and fault.code in kind.switched_off:
        return Stock(gaps=(f"{kind.name}: {fault.message}.",) if filters.types else ())
    scope = session.facts.scope_id
    unknown = [
        item
        for item in sweep.items
        if filters.has_match(item.identity)
        and (scope, kind.name, item.identity.key) not in recorded
        and _may_be_taken(item)
    ]
    own = {item.identity for item in unknown if _is_own(item, kind, session.facts)}
    remaining = [item for item in unknown if item.identity not in own]
    owned = {} if filters.owned or not remaining else find_owned(session, kind.name, remaining)
    remaining = [item for item in remaining if item.identity not in owned]
    findings = [_make_found(item, kind, session.facts) for item in remaining]
    gaps = [*_describe_gaps(sweep, session), *(gap for _, gap in findings if gap)]
    gaps += _describe_owned(kind.name, owned)
    if own:
        own_names = ", ".join(_name_keys((identity.key for identity in own), kind.name, session))
        gaps.append(
            f"Left out: {len(own)} of {kind.name} belong to {session.facts.principal}, which this "
            f"command logs in as: {own_names}{' ...' if len(own) > NAMES_SHOWN else ''}. A plan "
            "that changes them could lock you out."
        )
    return Stock(
        undeclared=tuple(live for live, _ in findings if live is not None),
        gaps=tuple(gaps),
        failed=sweep.coverage.kind is CoverageKind.FAILED,
    )


def _describe_owned(kind: str, owned: Mapping[Identity, str]) -> Iterator[str]:
    """All objects that somebody else makes, by their owner."""
    groups: dict[str, list[str]] = defaultdict(list)
    for identity, owner in owned.items():
        groups[owner].append(identity.key)
    for owner, keys in sorted(groups.items()):
        yield (
            f"Left out: {len(keys)} of {kind}, made by {owner}: {', '.join(sorted(keys))}. "
            "--include-owned writes them too."
        )


def take_declared(
    space: Workspace,
    read: Callable[[Sequence[Identity]], Mapping[Identity, Reading]],
    instance: str,
    recorded: Collection[Identity],
    filters: ImportFilter,
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
        and filters.has_match(d.identity)
        and (not filters.types or d.identity.kind in filters.types)
    ]
    readings = read([d.identity for d in chosen]) if chosen else {}
    takeable = [d for d in chosen if _may_be_taken(readings[d.identity])]
    ids = {d.address: find_import_id(d.identity, types[d.identity.kind]) for d in takeable}
    adopt = {a for a, id in ids.items() if id is None or a.child is not None}
    return Stock(
        declared=tuple((a, id) for a, id in ids.items() if id is not None and a not in adopt),
        gaps=tuple(
            f"No import block can name the objects of {address}: apply with --adopt='{address}'."
            for address in sorted({str(replace(address, child=None)) for address in adopt})
        ),
    )


def _may_be_taken(reading: Reading) -> bool:
    """Whether the object exists, and the system has not made it for itself."""
    return isinstance(reading, Observed) and reading.details.get("internal") is not True


def _is_own(item: Observed, kind: ResourceType, facts: Facts) -> bool:
    """Whether the object is the login of whoever runs this, or one of its rights."""
    if kind.belongs_to is None or facts.principal is None:
        return False
    return kind.belongs_to(item.attributes, facts.principal)


# ── one object ──────────────────────────────────────────────────────────────────────────


def _make_found(
    item: Observed, kind: ResourceType, facts: Facts
) -> tuple[UndeclaredObject | None, str]:
    """The object with the arguments of its block, None if no block can declare it; and what to know
    about it, or why there is none."""
    # Proved by the way back: what the arguments mean must be exactly what is live.
    live = kind.canonical(item.attributes, facts)
    try:
        arguments = choose_arguments(item, kind, facts)
        target = kind.target(fill_defaults(arguments, kind.schema), item, facts, False)
        keeps_key = kind.key(fill_defaults(arguments, kind.schema)) == item.identity.key
    except ValueError as error:
        return None, f"Not complete: {item.identity}: no block can declare it: {error}"
    differ = compare(live, target, schema=kind.schema)
    # What nobody declares is as it is for now, such as a task that has failed.
    passing = [change for change in differ if _is_computed(change, kind)]
    if len(passing) < len(differ) or not keeps_key:
        paths = ", ".join(".".join(change.path) for change in differ) or "its key"
        return None, f"Not complete: {item.identity} has no block that declares it: {paths}"
    paths = ", ".join(".".join(change.path) for change in passing)
    note = f"{item.identity}: the next apply changes {paths} too." if paths else ""
    return UndeclaredObject(item.identity, arguments, find_import_id(item.identity, kind)), note


def _is_computed(change: PathChange, kind: ResourceType) -> bool:
    attribute = kind.schema.attributes.get(change.path[0])
    return attribute is not None and attribute.computed


# ── what may be missing ─────────────────────────────────────────────────────────────────


def _name_keys(keys: Iterable[str], kind: str, session: Session) -> list[str]:
    """The first few objects, as people call them."""
    return [session.words.name_object(kind, key) for key in sorted(keys)[:NAMES_SHOWN]]


def _describe_gaps(sweep: Sweep, session: Session) -> Iterator[str]:
    """Why a listing can be incomplete, and the objects that could not be read."""
    kind, coverage = sweep.kind, sweep.coverage
    if coverage.kind is CoverageKind.VISIBLE_ONLY:
        principal = session.facts.principal or "this principal"
        yield f"{kind}: this is what {principal} can see; there can be more."
    elif coverage.kind is CoverageKind.FAILED:
        fault = coverage.fault
        cause = f"{fault.message} ({fault.code})" if fault else "the listing failed"
        advice = f" {fault.advice}" if fault and fault.advice else ""
        yield f"Not complete: {kind} could not be listed whole: {cause}.{advice}"
    else:
        return
    # What the principal can see by name and cannot read is listed with the names only.
    read = {item.identity.key for item in sweep.items}
    listed = session.sweep(sweep.kind, Depth.NAMES).items
    unread = sorted({item.identity.key for item in listed} - read)
    if unread:
        names = ", ".join(_name_keys(unread, kind, session))
        names += " ..." if len(unread) > NAMES_SHOWN else ""
        yield f"Not complete: {len(unread)} of {sweep.kind} are listed but cannot be read: {names}"
