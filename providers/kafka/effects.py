"""What one changed ACL really gives and takes: the authorizer is asked before and after the plan.

An ACL concerns more principals, hosts and names than can be asked about one by one. So one asks
about somebody, somewhere, something that no ACL names, and about those that other ACLs name,
because only these can fare differently.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice, product

from kafkaform.core.dataclass import dataclass

from .access import (
    ALL,
    EVERYBODY,
    IMPLIED_BY,
    PREFIXED,
    Access,
    Question,
    Rule,
    Verdict,
    covering,
    decide,
)
from .acls import ALLOW, EVERYTHING, SUPPORTED, Acl

OTHER = "\U0010fffd"
"""What nobody calls anything, and what is behind everything that begins the same."""
NAMES, PRINCIPALS, HOSTS, SHOWN = 20, 10, 5, 3
"""So many that other ACLs name are asked about for one ACL, and so many are shown."""


@dataclass(frozen=True, slots=True)
class Both:
    """The authorizer before and after a plan; names: resource type -> the names of all patterns,
    sorted, a prefix followed by OTHER."""

    before: Access
    after: Access
    names: Mapping[str, Sequence[str]]


@dataclass(frozen=True, slots=True)
class Point:
    """One who, from one place, for one name."""

    principal: str
    host: str
    name: str


@dataclass(frozen=True, slots=True)
class Effect:
    """notes: who gains and loses what, or why nobody does; losses: each lost right as a text;
    gainers and losers: who they are."""

    notes: tuple[str, ...]
    losses: tuple[str, ...] = ()
    gainers: frozenset[str] = frozenset()
    losers: frozenset[str] = frozenset()


def both(before: Access, after: Access) -> Both:
    """Both authorizers, with the names of their patterns."""
    names: dict[str, set[str]] = defaultdict(set)
    for access in (before, after):
        for kind, name in access.index.literal:
            names[kind].add(name)
        for kind, prefix in access.index.prefixed:
            names[kind].add(prefix + OTHER)
    return Both(before, after, {kind: sorted(found) for kind, found in names.items()})


def effect(acl: Acl, worlds: Both, *, created: bool) -> Effect:
    """What the creation or deletion of this ACL does, together with the rest of the plan."""
    points = list(_points(acl, worlds))
    gains: dict[tuple[str, ...], list[Point]] = defaultdict(list)
    losses: dict[tuple[str, ...], list[Point]] = defaultdict(list)
    for point in points:
        gained, lost = _difference(acl, point, worlds)
        gains[gained].append(point)
        losses[lost].append(point)
    notes = [
        _sentence(acl, verb, operations, found, points)
        for verb, table in (("gains", gains), ("loses", losses))
        for operations, found in table.items()
        if operations
    ]
    return Effect(
        tuple(notes) or (_nothing(acl, points[0], worlds, created=created),),
        tuple(_losses(acl, losses)),
        _affected(gains),
        _affected(losses),
    )


def told(acl: Acl) -> str:
    """An ACL in words."""
    where = "" if acl.host == EVERYTHING else f" from {acl.host}"
    return f"{acl.permission} {acl.operation} for {acl.principal} on {pattern(acl)}{where}"


def pattern(acl: Acl) -> str:
    """What an ACL is about, in words."""
    if acl.pattern_type == PREFIXED:
        return f"{acl.resource_type} {acl.resource_name}* (prefix)"
    if acl.resource_name == EVERYTHING:
        return f"every {acl.resource_type}"
    return f"{acl.resource_type} {acl.resource_name}"


# ── what is asked about ─────────────────────────────────────────────────────────────────


def _points(acl: Acl, worlds: Both) -> Iterator[Point]:
    """The most general one first."""
    names = list(_names(acl, worlds))
    near = [found for name in names for found in _acls(worlds, acl.resource_type, name)]
    principals, hosts = [acl.principal], [acl.host]
    if acl.principal == EVERYBODY:
        named = dict.fromkeys(one.principal for one in near if one.principal != EVERYBODY)
        principals = [f"User:{OTHER}", *islice(named, PRINCIPALS)]
    if acl.host == EVERYTHING:
        named = dict.fromkeys(
            one.host
            for one in near
            if one.host != EVERYTHING and one.principal in (*principals, EVERYBODY)
        )
        hosts = [OTHER, *islice(named, HOSTS)]
    for name, principal, host in product(names, principals, hosts):
        yield Point(principal, host, name)


def _names(acl: Acl, worlds: Both) -> Iterator[str]:
    if not _is_wide(acl):
        yield acl.resource_name
        return
    prefix = "" if acl.pattern_type != PREFIXED else acl.resource_name
    yield prefix + OTHER
    known = worlds.names.get(acl.resource_type, ())
    some = known[bisect_left(known, prefix) : bisect_right(known, prefix + OTHER)]
    yield from islice((name for name in some if _matters(acl, name, prefix, worlds)), NAMES)


def _matters(acl: Acl, name: str, prefix: str, worlds: Both) -> bool:
    """Whether another ACL of that name may make it an exception."""
    if name == prefix + OTHER or (not prefix and name.startswith(EVERYTHING)):
        return False
    if acl.principal == EVERYBODY:
        return True
    kind = acl.resource_type
    return any(one.principal in (acl.principal, EVERYBODY) for one in _own(worlds, kind, name))


def _own(worlds: Both, kind: str, name: str) -> Iterator[Acl]:
    for access in (worlds.before, worlds.after):
        index = access.index
        literal = index.literal.get((kind, name), {})
        prefixed = index.prefixed.get((kind, name.removesuffix(OTHER)), {})
        for bucket in (literal, prefixed if name.endswith(OTHER) else {}):
            for found in bucket.values():
                yield from found


def _acls(worlds: Both, kind: str, name: str) -> Iterator[Acl]:
    for access in (worlds.before, worlds.after):
        for bucket in covering(access.index, kind, name):
            for found in bucket.values():
                yield from found


def _is_wide(acl: Acl) -> bool:
    return acl.pattern_type == PREFIXED or acl.resource_name == EVERYTHING


def _operations(acl: Acl) -> tuple[str, ...]:
    """What the ACL is about, what it implies included."""
    supported = SUPPORTED.get(acl.resource_type, ())
    if acl.operation == ALL:
        return supported
    implied = (
        one
        for one in supported
        if one != acl.operation and acl.operation in IMPLIED_BY.get(one, ())
    )
    return (acl.operation, *(implied if acl.permission == ALLOW else ()))


def _difference(acl: Acl, point: Point, worlds: Both) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The operations that are gained, and those that are lost."""
    gained: list[str] = []
    lost: list[str] = []
    for operation in _operations(acl):
        question = Question(point.principal, point.host, operation, acl.resource_type, point.name)
        before, after = (decide(one, question).verdict for one in (worlds.before, worlds.after))
        if before is not after:
            (gained if after is Verdict.ALLOWED else lost).append(operation)
    return tuple(gained), tuple(lost)


# ── in words ────────────────────────────────────────────────────────────────────────────


def _sentence(
    acl: Acl, verb: str, operations: Sequence[str], found: Sequence[Point], asked: Sequence[Point]
) -> str:
    what = (
        "everything" if set(operations) == set(SUPPORTED[acl.resource_type]) else _and(operations)
    )
    names = _some(acl, [point.name for point in found], [point.name for point in asked])
    who = _people([point.principal for point in found], [point.principal for point in asked])
    hosts = {point.host for point in found}
    where = "" if OTHER in hosts else f" from {_and(sorted(hosts))}"
    return f"{who} {verb} {what} on {names}{where}"


def _some(acl: Acl, found: Sequence[str], asked: Sequence[str]) -> str:
    """The names, those that are an exception from the general one last."""
    kind = acl.resource_type
    if asked[0] not in found:
        return f"{kind} {_and([_name(name) for name in dict.fromkeys(found)])}"
    left = [_name(name) for name in dict.fromkeys(asked) if name not in found]
    return pattern(acl) + (f", but not on {_and(left)}" if left else "")


def _people(found: Sequence[str], asked: Sequence[str]) -> str:
    if asked[0] not in found or not asked[0].endswith(OTHER):
        return _and(list(dict.fromkeys(found)))
    left = [one for one in dict.fromkeys(asked) if one not in found]
    return "everybody" + (f" but {_and(left)}" if left else "")


def _name(name: str) -> str:
    return f"{name.removesuffix(OTHER)}*" if name.endswith(OTHER) else name


def _and(words: Sequence[str]) -> str:
    shown = [*words[:SHOWN]] if len(words) > SHOWN + 1 else [*words]
    more = len(words) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")


def _nothing(acl: Acl, point: Point, worlds: Both, *, created: bool) -> str:
    """Why the change has no effect, as seen from its most general point."""
    operation = (*_operations(acl), acl.operation)[0]
    question = Question(point.principal, point.host, operation, acl.resource_type, point.name)
    verb = "gives" if created == (acl.permission == ALLOW) else "takes"
    without, with_ = (worlds.before, worlds.after)[:: 1 if created else -1]
    decision = decide(without, question)
    if (decision.verdict is Verdict.ALLOWED) != (acl.permission == ALLOW):
        decision = decide(with_, question)  # something stronger than the ACL decides
    if decision.rule is Rule.ACL and decision.acl is not None:
        same = decision.acl.permission == acl.permission
        return f"{verb} nothing: {told(decision.acl)} {'says the same' if same else 'hides it'}"
    reason = {
        Rule.SUPER_USER: "super users may do everything",
        Rule.NO_ACL: f"{operation} is {decision.verdict} where no ACL is",
        Rule.NO_MATCH: "no ACL allows it",
    }.get(decision.rule, "")
    return f"{verb} nothing" + (f": {reason}" if reason else "")


def _losses(acl: Acl, losses: Mapping[tuple[str, ...], Sequence[Point]]) -> Iterator[str]:
    for operations, found in losses.items():
        for operation, point in product(operations, found):
            where = "" if point.host == OTHER else f" from {point.host}"
            what = f"{acl.resource_type} {_name(point.name)}"
            yield f"{_who(point.principal)} loses {operation} on {what}{where}"


def _affected(table: Mapping[tuple[str, ...], Iterable[Point]]) -> frozenset[str]:
    return frozenset(
        _who(point.principal)
        for operations, found in table.items()
        if operations
        for point in found
    )


def _who(principal: str) -> str:
    return "everybody" if principal.endswith(OTHER) else principal
