"""Smaller plans: --target and --exclude, and what can be recorded without a request."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from ..core.address import Address, matches, parse_address
from ..core.change import BOOKKEEPING, UNREAD, Action, Blocker, BlockerKind, Change
from ..core.diagnostics import suggest
from ..core.errors import UsageError
from ..core.resource import Unread
from .approval import seal_plan
from .model import Mode, Options, Plan


def record_only(plan: Plan) -> Plan:
    """The plan that takes objects over as they are and sends nothing."""
    changes = tuple(
        replace(
            change,
            action=Action.IMPORT,
            after=change.before,
            paths=tuple(item for item in change.paths if item.path[0] in BOOKKEEPING),
            steps=(),
        )
        for change in plan.changes
        if change.adopts
    )
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
    unread = [n for n, one in enumerate(changes) if one.blocked and one.blocked.kind in UNREAD]
    if not unread:
        return changes
    index = index_by_address(changes)
    needs = [_list_needs(change, index) for change in changes]
    users: dict[int, list[int]] = {}
    for n, others in enumerate(needs):
        for m in others:
            users.setdefault(m, []).append(n)
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
    names = sorted(str(block.source) for block in blocks)

    def is_hit(name: str, globs: Iterable[str]) -> bool:
        return any(matches(glob, name) for glob in globs)

    return tuple(
        name
        for name in names
        if (not options.target or is_hit(name, options.target))
        and not is_hit(name, options.exclude)
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


def wait_for(change: Change, reason: str) -> Change:
    """The change, left out for now. reason: what it waits for."""
    blocked = Blocker(
        BlockerKind.WAITING,
        f"it waits: {reason}",
        "The first apply that can read that makes this change. If a system is gone for good, "
        "remove its provider block and run `kafkaform state rm --provider NAME`.",
    )
    return replace(change, blocked=blocked, steps=())


def _describe_unread(change: Change) -> str:
    unreadable = change.blocked and change.blocked.kind is BlockerKind.UNREADABLE
    return "that could not be read" if unreadable else "that waits, too"


def narrow_changes(
    changes: Sequence[Change], options: Options, unasked: Container[str] = ()
) -> tuple[Change, ...]:
    """The changes that the selection keeps.

    A target pulls in what it depends on; an exclusion drops what depends on it. unasked: provider
    instances of which nothing was selected (`select_instances`). Raises UsageError for a glob that
    names nothing: a typing mistake must not widen or empty a plan.
    """
    if not options.target and not options.exclude:
        return tuple(changes)
    for flag, globs in (("--target", options.target), ("--exclude", options.exclude)):
        for glob in globs:
            if not _find_hits(changes, (glob,)):
                known = "recorded" if options.mode is Mode.REFRESH else "declared or recorded"
                raise UsageError(
                    f"{flag} {glob!r} matches no {known} object",
                    suggest(glob, (change.address for change in changes))
                    or "`kafkaform state list` and `kafkaform plan` show the addresses.",
                )
    index = index_by_address(changes)
    kept = set(range(len(changes)))
    if options.target:
        kept = _find_reachable(
            _find_hits(changes, options.target), lambda n: _list_needs(changes[n], index)
        )
    if options.exclude:
        dependents: dict[int, list[int]] = {}
        for n, change in enumerate(changes):
            for need in _list_needs(change, index):
                dependents.setdefault(need, []).append(n)
        kept -= _find_reachable(
            _find_hits(changes, options.exclude), lambda n: dependents.get(n, ())
        )
    return tuple(
        change
        for n, change in enumerate(changes)
        if n in kept and change.identity.instance not in unasked
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
    wanted = tuple(globs)
    return {
        n
        for n, change in enumerate(changes)
        if any(matches(glob, owner) for glob in wanted for owner in list_owners(change))
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
