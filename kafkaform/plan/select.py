"""Smaller plans: --target and --exclude, and what can be recorded without a request."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ..core.address import Address, matches, parse_address
from ..core.change import BOOKKEEPING, Action, Change, add_findings
from ..core.diagnostics import suggest
from ..core.errors import StorageError, UsageError
from ..core.finding import UNREAD, Block
from ..core.resource import Unread
from ..provider.contract import Provider
from ..state.model import Row, State
from .model import Mode, Options, Plan, seal_plan
from .rules import WAITING

_KEYS = re.compile(r'\["(?:[^"\\]|\\.)*"?\]?|\[[^\]"]*\]?')
"""The key of an instance in a glob, also one that is cut off: `["eu"]`, `[0]`, `[*`."""
NAMED = 5
"""How many objects an error names."""


def record_only(plan: Plan, addresses: Collection[str]) -> Plan:
    """The plan that takes objects over as they are and sends nothing. addresses: of the objects
    that have to be taken over, so that what stands in their way is kept."""
    changes = tuple(
        replace(
            change,
            action=Action.IMPORT,
            after=change.before,
            paths=tuple(item for item in change.paths if item.path[0] in BOOKKEEPING),
            steps=(),
        )
        if change.adopts
        else change
        for change in plan.changes
        if change.adopts or (change.blocked and change.address in addresses)
    )
    # What ends a setting is a request as well, and this plan promises to send none.
    return seal_plan(replace(plan, changes=changes, removals=()))


def drop_left_out(plan: Plan) -> Plan:
    """The plan without the objects that could not be read and the changes that wait for them."""
    left_out = set(map(id, plan.left_out))
    changes = tuple(change for change in plan.changes if id(change) not in left_out)
    return seal_plan(replace(plan, changes=changes, unevaluated=()))


def hold_dependents(changes: Sequence[Change], missing: Sequence[Unread] = ()) -> Sequence[Change]:
    """The changes; those wait that depend on an object that could not be read, or on a block that
    could not be evaluated (missing).

    An object that is created or changed waits for what it depends on. One that is deleted or
    released waits for what uses it, because nobody knows whether that has let go of it.
    """
    if missing:
        changes = [_wait_for_block(change, missing) for change in changes]
    unread = [n for n, item in enumerate(changes) if item.block in UNREAD]
    if not unread:
        return changes
    index = index_by_address(changes)
    needs = [_list_needs(change, index) for change in changes]
    users: dict[int, list[int]] = {}
    for n, needed in enumerate(needs):
        for m in needed:
            users.setdefault(m, []).append(n)
    # Waiting spreads in both directions: to what uses a change that waits, and to the deletion of
    # what it uses.
    result, queue = list(changes), unread
    while queue:
        n = queue.pop()
        waiting = {m: _needs_change(result[m], result[n]) for m in users.get(n, ())}
        waiting |= {m: f"{result[n].address} uses it" for m in needs[n] if result[m].takes_away}
        for m, reason in waiting.items():
            if reason and m != n and result[m].effective:
                result[m] = wait_for(result[m], f"{reason}, and {_describe_unread(result[n])}")
                queue.append(m)
    return result


def select_unread(blocks: Sequence[Unread], options: Options) -> tuple[str, ...]:
    """The addresses of the blocks that could not be evaluated and that the selection keeps."""
    if options.mode is not Mode.NORMAL:
        return ()
    return tuple(
        str(block.source)
        for block in sorted(blocks, key=lambda block: str(block.source))
        if (not options.target or names_unread(options.target, block))
        and not names_unread(options.exclude, block)
    )


def names_unread(globs: Iterable[str], block: Unread) -> bool:
    """True if one of the globs names the block, an instance of it or of a module around it, or a
    part of a composite: which ones there are is not known."""
    source = str(block.source)
    return any(
        matches(glob, source) or matches(_KEYS.sub("", glob).partition("/")[0], source)
        for glob in globs
    )


def _wait_for_block(change: Change, missing: Sequence[Unread]) -> Change:
    """The change, which waits if it depends on a block that could not be evaluated."""
    if not change.effective or change.action not in (Action.CREATE, Action.UPDATE):
        return change
    needs = [address for text in change.depends_on if (address := _parse_or_none(text))]
    for block in missing:
        if any(block.source.contains(need) for need in needs):
            return wait_for(change, f"it depends on {block.source}, and {block.reason}")
    return change


def _needs_change(user: Change, used: Change) -> str:
    """Why the change of a user waits for that of what it depends on, "" if it does not."""
    # Deletions run in reverse order. One that depends on an update that lets go of its object
    # waits for that, but not for an object whose update nobody could even plan.
    deletes = user.action is Action.DELETE
    if user.action not in (Action.CREATE, Action.UPDATE, Action.DELETE):
        return ""
    if deletes and used.action is Action.NOOP:
        return ""
    return f"it depends on {used.address}"


UNREAD_ADVICE = (
    "Make sure that it can be read: the first apply that reads it makes this change. If a system "
    "is gone for good, remove its provider block and run `kafkaform state rm --provider NAME`."
)


def wait_for(change: Change, reason: str, advice: str = UNREAD_ADVICE) -> Change:
    """The change, left out for now. reason: what it waits for; advice: how it can go on."""
    block = WAITING.find(f"it waits: {reason}", fix=advice)
    return replace(add_findings(change, block), steps=())


def _describe_unread(change: Change) -> str:
    unreadable = change.block is Block.UNREADABLE
    return "that could not be read" if unreadable else "that waits, too"


def set_untyped_aside(
    state: State, providers: Mapping[str, Provider], options: Options
) -> tuple[State, tuple[Row, ...]]:
    """The state without the objects whose type no provider has, and these objects.

    A newer version of kafkaform or of a provider recorded them, or their provider is gone. Raises
    StorageError if the selection does not leave all of them out.
    """
    types = {name for provider in providers.values() for name in provider.types}
    if types.issuperset({identity.kind for identity in state.objects}):
        return state, ()
    untyped = tuple(row for row in state.objects.values() if row.identity.kind not in types)
    # A selected object that nothing can judge must not look as if it stayed as it is.
    selected = [row for row in untyped if _is_selected(row, options)]
    if selected:
        raise _make_untyped_error(selected, providers)
    typed = {i: row for i, row in state.objects.items() if i.kind in types}
    return replace(state, objects=typed), untyped


def _is_selected(row: Row, options: Options) -> bool:
    def is_hit(globs: Iterable[str]) -> bool:
        return any(matches(glob, owner) for glob in globs for owner in row.owners)

    return (not options.target or is_hit(options.target)) and not is_hit(options.exclude)


def _make_untyped_error(rows: Sequence[Row], providers: Mapping[str, Provider]) -> StorageError:
    kinds = ", ".join(sorted({row.identity.kind for row in rows}))
    owners = sorted(row.owners[0] for row in rows)
    named = ", ".join(owners[:NAMED]) + (" ..." if owners[NAMED:] else "")
    instances = sorted({row.identity.instance for row in rows})
    advice = "Until then, --target plans and applies other objects. Nothing was sent."
    if not providers.keys() & set(instances):
        commands = " or ".join(f"`kafkaform state rm --provider {name}`" for name in instances)
        return StorageError(
            f"the state has objects of {kinds}, which no configured provider knows: {named}",
            "Restore the provider block, and its package. If the system is gone for good, forget "
            f"its objects with {commands}. {advice}",
        )
    return StorageError(
        f"the state has objects of {kinds}, which this version does not know: {named}",
        "Update kafkaform and its providers to the versions that recorded these objects, or newer. "
        "To manage the objects no longer, forget them with "
        f"`kafkaform state rm {shlex.quote(owners[0])}`; the objects themselves stay. {advice}",
    )


def hold_for_untyped(changes: Sequence[Change], untyped: Sequence[Row]) -> Sequence[Change]:
    """The changes; a deletion waits whose object one of these rows depends on."""
    if not untyped:
        return changes
    index, result = index_by_address(changes), list(changes)
    for row in untyped:
        for n in (n for address in row.depends_on for n in index.get(address, ())):
            # Only the provider of its type knows whether the other object lets go of this one.
            if result[n].takes_away and result[n].effective:
                result[n] = wait_for(
                    result[n],
                    f"{row.owners[0]} uses it, and this version does not know the type of that",
                    "Update kafkaform, or forget the other object with "
                    f"`kafkaform state rm {shlex.quote(row.owners[0])}`.",
                )
    return result


def narrow_changes(
    changes: Sequence[Change],
    options: Options,
    unasked: Container[str] = (),
    untyped: Collection[Row] = (),
    unread: Collection[Unread] = (),
) -> tuple[Change, ...]:
    """The changes that the selection keeps.

    A target pulls in what it depends on; an exclusion drops what depends on it. unasked: provider
    instances of which nothing was selected (`select_instances`); untyped: recorded objects without
    a change, which an exclusion can name, too; unread: blocks that could not be evaluated, which
    both can name. Raises UsageError for a glob that names nothing: a
    typing mistake must not widen or empty a plan.
    """
    if not options.target and not options.exclude:
        return tuple(changes)
    for flag, globs in (("--target", options.target), ("--exclude", options.exclude)):
        for glob in globs:
            aside = any(matches(glob, owner) for row in untyped for owner in row.owners)
            aside = aside or any(names_unread((glob,), block) for block in unread)
            if not aside and not _find_hits(changes, (glob,)):
                origin = "recorded" if options.mode is Mode.REFRESH else "declared or recorded"
                raise UsageError(
                    f"{flag} {glob!r} matches no {origin} object",
                    suggest(glob, (change.address for change in changes))
                    or "`kafkaform state list` and `kafkaform plan` show the addresses.",
                )
    index = index_by_address(changes)
    selected = set(range(len(changes)))
    if options.target:
        selected = _find_reachable(
            _find_hits(changes, options.target), lambda n: _list_needs(changes[n], index)
        )
    if options.exclude:
        dependents: dict[int, list[int]] = {}
        for n, change in enumerate(changes):
            for need in _list_needs(change, index):
                dependents.setdefault(need, []).append(n)
        selected -= _find_reachable(
            _find_hits(changes, options.exclude), lambda n: dependents.get(n, ())
        )
    return tuple(
        change
        for n, change in enumerate(changes)
        # Objects of an instance that was not asked were not read, so their changes would be
        # guesses.
        if n in selected and change.identity.instance not in unasked
    )


def index_by_address(changes: Sequence[Change]) -> Mapping[str, list[int]]:
    """Address as text -> positions of the changes that it names.

    Each owner of an object is listed under the address of the object, of the composite that it is
    a part of, of the whole block, and of the modules around it.
    """
    index: dict[str, list[int]] = {}
    for n, change in enumerate(changes):
        for name in {name for owner in list_owners(change) for name in _list_names(owner)}:
            index.setdefault(name, []).append(n)
    return index


def list_owners(change: Change) -> set[str]:
    """Every address that owns the object before or after the change."""
    return {change.address, *change.row_before.owners, *change.row_after.owners}


def _list_names(owner: str) -> set[str]:
    address = _parse_or_none(owner)
    if address is None:
        return {owner}
    whole = owner if address.child is None else str(replace(address, child=None))
    return {owner, whole, str(address.resource), *_list_modules(address)}


def _list_modules(address: Address) -> Iterator[str]:
    """Every module around the address, with the key of the innermost one and without it."""
    for depth in range(1, len(address.module) + 1):
        *outer, last = address.module[:depth]
        yield ".".join((*outer, last))
        yield ".".join((*outer, last.partition("[")[0]))


def _parse_or_none(text: str) -> Address | None:
    try:
        return parse_address(text)
    except ValueError:
        return None


def _find_hits(changes: Sequence[Change], globs: Iterable[str]) -> set[int]:
    # Every owner counts, the recorded ones too: an object whose block was just moved must not
    # escape --exclude under its older address.
    patterns = tuple(globs)
    return {
        n
        for n, change in enumerate(changes)
        if any(matches(glob, owner) for glob in patterns for owner in list_owners(change))
    }


def _list_needs(change: Change, index: Mapping[str, list[int]]) -> list[int]:
    return [n for address in change.depends_on for n in index.get(address, ())]


def _find_reachable(start: set[int], neighbours: Callable[[int], Iterable[int]]) -> set[int]:
    reached, queue = set(start), list(start)
    while queue:
        for n in neighbours(queue.pop()):
            if n not in reached:
                reached.add(n)
                queue.append(n)
    return reached
