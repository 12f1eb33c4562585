"""Computes who gains and loses what through one changed ACL.

The simulated authorizer is asked the same questions before and after the plan. An ACL can concern
any number of principals, hosts and names. So the questions are about one that no ACL names, which
stands for all of these, and about those that other ACLs name, because only they can differ.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.canonical import digest
from kafkaform.core.value import FrozenMap

from ..kinds.acl.resource_type import ALLOW, CLUSTER, DENY, EVERY_TOPIC, EVERYTHING, SUPPORTED, Acl
from .acl_words import OTHER as OTHER
from .acl_words import describe_acl as describe_acl
from .acl_words import describe_name, describe_names, describe_principals, join_words
from .acl_words import describe_pattern as describe_pattern
from .authorizer import (
    ALL,
    EVERYBODY,
    IMPLIED_BY,
    PREFIXED,
    Access,
    AccessQuestion,
    AccessVerdict,
    DecisionRule,
    authorize,
    decide,
    find_covering,
    fits,
)

# A limit for plans of clusters with thousands of ACLs. A note says what was not asked about, and
# `_render_unasked` stands for what the others may lose.
NAMES, PRINCIPALS, HOSTS = 20, 10, 5
"""How many that other ACLs name are asked about for one ACL."""
# Delete on a topic permits two things: to delete the topic, for which Delete on the cluster is
# enough, and to delete records (KIP-107), which needs the right on the topic.
RECORDS = "Delete of records"
IDEMPOTENT = "IdempotentWrite"
WRITERS = "principals with Write on a topic do not need IdempotentWrite (KIP-679)"
FIRST = "Kafka checks the cluster before the topic, so no ACL of a topic can deny that"


class AccessPair(Struct, frozen=True):
    """The authorizer before and after a plan."""

    before: Access
    after: Access
    names: Mapping[str, Sequence[str]]
    """Resource type -> the names of all patterns, sorted; OTHER follows a prefix."""


class Probe(Struct, frozen=True):
    """One principal, host and resource name to ask about."""

    principal: str
    host: str
    name: str


class Effect(Struct, frozen=True):
    """The effect of one changed ACL."""

    notes: tuple[str, ...]
    """Who gains what, or why nobody gains or loses anything."""
    harms: tuple[str, ...] = ()
    """Who loses what, one sentence each."""
    losses: tuple[str, ...] = ()
    """Each lost right as a text; an apply that would take more is refused."""
    gainers: frozenset[str] = frozenset()
    losers: frozenset[str] = frozenset()
    partial: bool = False
    """True if the ACL concerns more than was asked about."""


class _Probes(Struct, frozen=True):
    """The questions about one ACL."""

    points: tuple[Probe, ...]
    """The most general one first."""
    left: tuple[str, ...]
    """What is not asked about, such as `3 more names`."""


def pair_access(before: Access, after: Access) -> AccessPair:
    """Both authorizers with the names of their patterns."""
    names: dict[str, set[str]] = defaultdict(set)
    for access in (before, after):
        for kind, name in access.index.literal:
            names[kind].add(name)
        for kind, prefix in access.index.prefixed:
            names[kind].add(prefix + OTHER)
    return AccessPair(before, after, {kind: sorted(found) for kind, found in names.items()})


def compute_effect(acl: Acl, worlds: AccessPair, *, created: bool) -> Effect:
    """The effect of creating or deleting this ACL, together with the rest of the plan."""
    own = _probe_effect(acl, _list_operations(acl), worlds, created=created)
    if acl.operation == IDEMPOTENT and acl.principal == EVERYBODY and (own.gainers or own.losers):
        return replace(own, notes=(*own.notes, WRITERS))
    # Create and Delete on the cluster apply to every topic, so such an ACL is probed a second time,
    # as if it were an ACL on all topics.
    operations = _list_topic_operations(acl)
    if not operations:
        return own
    every = replace(acl, resource_type="Topic", resource_name="", pattern_type=PREFIXED)
    more = _probe_effect(every, operations, worlds, created=created)
    if not (more.gainers or more.losers or more.partial):
        return own
    empty = not (own.gainers or own.losers or own.partial)
    first = (FIRST,) if more.gainers else ()
    return Effect(
        (*(() if empty else own.notes), *more.notes, *first),
        (*own.harms, *more.harms),
        (*own.losses, *more.losses),
        own.gainers | more.gainers,
        own.losers | more.losers,
        own.partial or more.partial,
    )


def _probe_effect(
    acl: Acl, operations: Sequence[str], worlds: AccessPair, *, created: bool
) -> Effect:
    asked = _choose_probes(acl, operations, worlds)
    points = asked.points
    gains: dict[tuple[str, ...], list[Probe]] = defaultdict(list)
    losses: dict[tuple[str, ...], list[Probe]] = defaultdict(list)
    for point in points:
        gained, lost = _compare_decisions(acl, operations, point, worlds)
        gains[gained].append(point)
        losses[lost].append(point)
    notes, harms = (
        tuple(
            _render_sentence(acl, verb, operations, found, points)
            for operations, found in table.items()
            if operations
        )
        for verb, table in (("gains", gains), ("loses", losses))
    )
    if asked.left:
        if not notes and not harms:
            notes = (f"{_choose_verb(acl, created)} nothing as far as it was checked",)
        notes = (*notes, _note_unasked(asked))
    elif not notes and not harms:
        notes = (_explain_no_effect(acl, operations, points[0], worlds, created=created),)
    takes = created != (acl.permission == ALLOW)
    return Effect(
        notes,
        harms,
        (
            *_render_losses(acl, losses),
            *(_render_unasked(acl, operations, asked, worlds) if takes else ()),
        ),
        _collect_affected(gains),
        _collect_affected(losses),
        bool(asked.left),
    )


# ── questions ───────────────────────────────────────────────────────────────────────────


def _choose_probes(acl: Acl, operations: Sequence[str], worlds: AccessPair) -> _Probes:
    # Sorted by name, so that a plan and its apply ask the same questions.
    all_names = list(_list_names(acl, worlds))
    names = all_names[: 1 + NAMES]
    near = [found for name in names for found in _find_acls(worlds, acl, operations, name)]
    all_principals, all_hosts = [acl.principal], [acl.host]
    if acl.principal == EVERYBODY:
        named = {one.principal for one in near} - {EVERYBODY}
        all_principals = [f"User:{OTHER}", *sorted(named)]
    principals = all_principals[: 1 + PRINCIPALS]
    if acl.host == EVERYTHING:
        who = {*principals, EVERYBODY}
        places = {one.host for one in near if one.principal in who} - {EVERYTHING}
        all_hosts = [OTHER, *sorted(places)]
    hosts = all_hosts[: 1 + HOSTS]
    counts = {
        "name": len(all_names) - len(names),
        "principal": len(all_principals) - len(principals),
        "host": len(all_hosts) - len(hosts),
    }
    left = tuple(f"{n} more {what}{'s' if n > 1 else ''}" for what, n in counts.items() if n)
    return _Probes(tuple(Probe(p, h, n) for n, p, h in product(names, principals, hosts)), left)


def _list_names(acl: Acl, worlds: AccessPair) -> Iterator[str]:
    if not _is_wide(acl):
        yield acl.resource_name
        return
    prefix = _prefix(acl)
    yield prefix + OTHER
    yield from (name for name in _find_names(acl, worlds) if _may_differ(acl, name, prefix, worlds))


def _prefix(acl: Acl) -> str:
    return acl.resource_name if acl.pattern_type == PREFIXED else ""


def _find_names(acl: Acl, worlds: AccessPair) -> Sequence[str]:
    """The names of all patterns that the pattern of a wide ACL contains."""
    known, prefix = worlds.names.get(acl.resource_type, ()), _prefix(acl)
    return known[bisect_left(known, prefix) : bisect_right(known, prefix + OTHER)]


def _may_differ(acl: Acl, name: str, prefix: str, worlds: AccessPair) -> bool:
    """True if another ACL of that name can make it an exception."""
    if name == prefix + OTHER or (not prefix and name.startswith(EVERYTHING)):
        return False
    if acl.principal == EVERYBODY:
        return True
    kind = acl.resource_type
    return any(one.principal in (acl.principal, EVERYBODY) for one in _find_own(worlds, kind, name))


def _find_own(worlds: AccessPair, kind: str, name: str) -> Iterator[Acl]:
    for access in (worlds.before, worlds.after):
        index = access.index
        literal = index.literal.get((kind, name), {})
        prefixed = index.prefixed.get((kind, name.removesuffix(OTHER)), {})
        for bucket in (literal, prefixed if name.endswith(OTHER) else {}):
            for found in bucket.values():
                yield from found


def _find_acls(worlds: AccessPair, acl: Acl, operations: Sequence[str], name: str) -> Iterator[Acl]:
    """The ACLs that decide about this name, including those of the cluster and of other topics."""
    resources = [(acl.resource_type, name)]
    if acl.resource_type == "Topic" and not EVERY_TOPIC.isdisjoint(operations):
        resources.append(("Cluster", CLUSTER))
    for access, resource in product((worlds.before, worlds.after), resources):
        for bucket in find_covering(access.index, *resource):
            for found in bucket.values():
                yield from found
    if acl.resource_type == "Cluster" and IDEMPOTENT in operations:
        yield from _find_write_acls(worlds, acl.principal)


def _find_write_acls(worlds: AccessPair, principal: str) -> Iterator[Acl]:
    """The ACLs of topics that decide about an idempotent producer (KIP-679)."""
    # For an ACL of everybody, writers whose ACLs do not change are skipped: they keep their right.
    one, other = (access.index.writers for access in (worlds.before, worlds.after))
    for who in {*one, *other} if principal == EVERYBODY else {principal, EVERYBODY}:
        before, after = one.get(who, ()), other.get(who, ())
        every = principal != EVERYBODY or who == EVERYBODY or set(before) != set(after)
        yield from (acl for acl in (*before, *after) if every or acl.permission == DENY)


def _is_wide(acl: Acl) -> bool:
    return acl.pattern_type == PREFIXED or acl.resource_name == EVERYTHING


def _list_operations(acl: Acl) -> tuple[str, ...]:
    """The operations that the ACL concerns, with those that it implies."""
    supported = SUPPORTED.get(acl.resource_type, ())
    records = (RECORDS,) if acl.resource_type == "Topic" and fits(acl, "Delete") else ()
    if acl.operation == ALL:
        return (*supported, *records)
    implied = (
        one
        for one in supported
        if one != acl.operation and acl.operation in IMPLIED_BY.get(one, ())
    )
    return (acl.operation, *(implied if acl.permission == ALLOW else ()), *records)


def _list_topic_operations(acl: Acl) -> tuple[str, ...]:
    """The operations on every topic that an ACL on the cluster decides."""
    if acl.resource_type != "Cluster":
        return ()
    return tuple(one for one in SUPPORTED["Topic"] if one in EVERY_TOPIC and fits(acl, one))


def _compare_decisions(
    acl: Acl, operations: Sequence[str], point: Probe, worlds: AccessPair
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The operations that are gained, and those that are lost."""
    gained: list[str] = []
    lost: list[str] = []
    for operation in operations:
        asks, word = (authorize, "Delete") if operation == RECORDS else (decide, operation)
        question = AccessQuestion(point.principal, point.host, word, acl.resource_type, point.name)
        before, after = (asks(one, question).verdict for one in (worlds.before, worlds.after))
        found = gained if after is AccessVerdict.ALLOWED else lost
        if before is not after and word not in found:
            found.append(operation)
    return tuple(gained), tuple(lost)


def _render_unasked(
    acl: Acl, operations: Sequence[str], asked: _Probes, worlds: AccessPair
) -> Iterator[str]:
    """A text that stands for the losses of those who are not asked about."""
    if not asked.left:
        return
    # The digest changes with any ACL there, so that no new loss hides behind the limits. It covers
    # the ACLs after the plan, which stay the same while the plan is applied.
    left, kind = replace(worlds, before=worlds.after), acl.resource_type
    near = {*_find_acls(left, acl, operations, asked.points[0].name)}
    for name in _find_names(acl, worlds) if _is_wide(acl) else ():
        near.update(_find_own(left, kind, name))
    seen = digest(FrozenMap(acls=tuple(sorted(one.fields for one in near))))[:8]
    yield (
        f"{join_words(asked.left)} may lose something on {describe_pattern(acl)} (ACLs there: "
        f"{seen})"
    )


# ── in words ────────────────────────────────────────────────────────────────────────────


def _render_sentence(
    acl: Acl, verb: str, operations: Sequence[str], found: Sequence[Probe], asked: Sequence[Probe]
) -> str:
    what = (
        "everything"
        if set(operations) == set(SUPPORTED[acl.resource_type])
        else join_words(operations)
    )
    names = describe_names(acl, [point.name for point in found], [point.name for point in asked])
    who = describe_principals(
        [point.principal for point in found], [point.principal for point in asked]
    )
    hosts = {point.host for point in found}
    where = "" if OTHER in hosts else f" from {join_words(sorted(hosts))}"
    return f"{who} {verb} {what} on {names}{where}"


def _note_unasked(asked: _Probes) -> str:
    return (
        f"other ACLs name {join_words(asked.left)}, which were not checked; "
        "use `kafkaform explain access` to check one"
    )


def _choose_verb(acl: Acl, created: bool) -> str:
    return "gives" if created == (acl.permission == ALLOW) else "takes"


def _explain_no_effect(
    acl: Acl, operations: Sequence[str], point: Probe, worlds: AccessPair, *, created: bool
) -> str:
    """Why the change has no effect, for its most general question."""
    operation = (*operations, acl.operation)[0]
    question = AccessQuestion(point.principal, point.host, operation, acl.resource_type, point.name)
    verb = _choose_verb(acl, created)
    without, with_ = (worlds.before, worlds.after)[:: 1 if created else -1]
    decision = decide(without, question)
    if (decision.verdict is AccessVerdict.ALLOWED) != (acl.permission == ALLOW):
        decision = decide(with_, question)  # something stronger than this ACL decides
    if decision.on_topic and decision.verdict is AccessVerdict.ALLOWED:
        return f"{verb} nothing: {WRITERS}" + (
            f", by {describe_acl(decision.acl)}" if decision.acl else ""
        )
    if decision.rule is DecisionRule.ACL and decision.acl is not None:
        same = decision.acl.permission == acl.permission
        return (
            f"{verb} nothing: {describe_acl(decision.acl)} "
            f"{'has the same effect' if same else 'overrides it'}"
        )
    reason = {
        DecisionRule.SUPER_USER: "super users may do everything",
        DecisionRule.NO_ACL: f"without any ACL, {operation} is {decision.verdict}",
        DecisionRule.NO_MATCH: "no ACL allows it",
        DecisionRule.OWN: "everybody may create and see their own tokens",
    }.get(decision.rule, "")
    return f"{verb} nothing" + (f": {reason}" if reason else "")


def _render_losses(acl: Acl, losses: Mapping[tuple[str, ...], Sequence[Probe]]) -> Iterator[str]:
    for operations, found in losses.items():
        for operation, point in product(operations, found):
            where = "" if point.host == OTHER else f" from {point.host}"
            what = f"{acl.resource_type} {describe_name(point.name)}"
            yield f"{_describe_who(point.principal)} loses {operation} on {what}{where}"


def _collect_affected(table: Mapping[tuple[str, ...], Iterable[Probe]]) -> frozenset[str]:
    return frozenset(
        _describe_who(point.principal)
        for operations, found in table.items()
        if operations
        for point in found
    )


def _describe_who(principal: str) -> str:
    return "everybody" if principal.endswith(OTHER) else principal
