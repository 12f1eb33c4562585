"""Computes who gains and loses what through one changed ACL.

The simulated authorizer is asked the same questions before and after the plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence, Set
from functools import cache
from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.canonical import digest
from kafkaform.core.finding import AccessRow, Breadth
from kafkaform.core.value import FrozenMap

from ..protocol.acl import (
    ALLOW,
    EVERYTHING,
    OTHER,
    PREFIXED,
    SUPPORTED,
    Acl,
    describe_acl,
    describe_names,
    describe_pattern,
    describe_principals,
    join_words,
)
from .authorizer import (
    ALL,
    EVERYBODY,
    IMPLIED_BY,
    Access,
    AccessQuestion,
    AccessVerdict,
    DecisionRule,
    decide,
    fits,
)
from .permissions import (
    IDEMPOTENT,
    RECORDS,
    AccessPair,
    Probe,
    ProbeResults,
    ask_about,
    find_deciding,
    list_allowed,
)

IDEMPOTENT_WRITERS = "which principals with Write on a topic do not need (KIP-679)"
WRITERS = "principals with Write on a topic do not need IdempotentWrite (KIP-679)"
FIRST = "because Kafka checks the cluster before the topic, so no ACL of a topic can deny that"


class AccessChange(Struct, frozen=True):
    """The same operations that one or several principals gain, or lose, by one changed ACL."""

    text: str
    """One sentence: who gains or loses what."""
    rows: tuple[AccessRow, ...]
    """All of it as data. Of a gain without the rows that a wider one covers; of a loss every
    principal, name and host that was asked about."""


class Effect(Struct, frozen=True):
    """The effect of one changed ACL."""

    gains: tuple[AccessChange, ...] = ()
    losses: tuple[AccessChange, ...] = ()
    reason: str = ""
    """Why nobody gains or loses anything: `gives nothing: …`; empty if somebody does."""
    unasked: str = ""
    """Who was not asked about, one sentence; empty if the answers are complete. If the ACL takes
    rights, its text differs as soon as any ACL there does."""


def compute_effect(acl: Acl, worlds: AccessPair, *, created: bool) -> Effect:
    """The effect of creating or deleting this ACL, together with the rest of the plan."""
    concerned = _list_operations(acl.resource_type, acl.operation, acl.permission)
    own = _probe_effect(acl, concerned, worlds, created=created)
    if acl.operation == IDEMPOTENT and acl.principal == EVERYBODY:
        own = replace(
            own,
            gains=_add_reason(own.gains, IDEMPOTENT_WRITERS),
            losses=_add_reason(own.losses, IDEMPOTENT_WRITERS),
        )
    # Create and Delete on the cluster apply to every topic, so such an ACL is probed a second time,
    # as if it were an ACL on all topics.
    operations = _list_topic_operations(acl, worlds.after.every_topic)
    if not operations:
        return own
    every = replace(acl, resource_type="Topic", resource_name="", pattern_type=PREFIXED)
    topics = _probe_effect(every, operations, worlds, created=created)
    if not (topics.gains or topics.losses or topics.unasked):
        return own
    return Effect(
        (*own.gains, *_add_reason(topics.gains, FIRST)),
        (*own.losses, *topics.losses),
        (own.reason or topics.reason) if not (topics.gains or topics.losses) else "",
        "; ".join(filter(None, (own.unasked, topics.unasked))),
    )


def _add_reason(changes: tuple[AccessChange, ...], reason: str) -> tuple[AccessChange, ...]:
    return tuple(replace(change, text=f"{change.text}, {reason}") for change in changes)


def _probe_effect(
    acl: Acl, operations: Sequence[str], worlds: AccessPair, *, created: bool
) -> Effect:
    results = ask_about(acl, operations, worlds)
    points = list(results.changed)
    gains: dict[tuple[str, ...], list[Probe]] = defaultdict(list)
    losses: dict[tuple[str, ...], list[Probe]] = defaultdict(list)
    for point, (gained_operations, lost_operations) in results.changed.items():
        gains[_select(operations, gained_operations)].append(point)
        losses[_select(operations, lost_operations)].append(point)
    changes = {
        verb: tuple(
            AccessChange(
                _render_sentence(acl, verb, names, concerned, points),
                _list_rows(acl, names, concerned, worlds),
            )
            for names, concerned in table.items()
            if names
        )
        for verb, table in (("gains", gains), ("loses", losses))
    }
    gain = tuple(replace(change, rows=_drop_covered(change.rows)) for change in changes["gains"])
    reason = ""
    if not gain and not changes["loses"]:
        reason = (
            f"{_choose_verb(acl, created)} nothing as far as it was checked"
            if results.unasked
            else _explain_no_effect(acl, operations, points[0], worlds, created=created)
        )
    takes = created != (acl.permission == ALLOW)
    unasked = (
        _render_unasked(acl, operations, results, worlds, takes=takes) if results.unasked else ""
    )
    return Effect(gain, changes["loses"], reason, unasked)


def drop_covered(acls: Iterable[Acl]) -> Iterator[Acl]:
    """The ACLs without those that decide nothing beyond another one of them: of the ACLs of a role,
    the one for Read also gives Describe."""
    alike: dict[tuple[str, ...], dict[Acl, Set[str]]] = defaultdict(dict)
    for acl in acls:
        decided = {*_list_operations(acl.resource_type, acl.operation, acl.permission)}
        alike[acl.principal, acl.host, acl.permission, acl.pattern][acl] = decided
    for group in alike.values():
        for acl, operations in group.items():
            if not any(operations < wider for wider in group.values()):
                yield acl


def list_held(access: Access, resource_type: str, point: Probe) -> Set[str]:
    """All operations that a principal may do at this point."""
    return list_allowed(
        access,
        point.principal,
        point.host,
        resource_type,
        point.name,
        topics=True,
        idempotent=True,
    )


# ── rows ────────────────────────────────────────────────────────────────────────────────


def make_row(
    acl: Acl, point: Probe, operations: Sequence[str], before: Set[str], after: Set[str]
) -> AccessRow:
    """What a principal gains or loses at this point. acl: of which type the resource is; before,
    after: all that it can do there."""
    principal = EVERYBODY if point.principal.endswith(OTHER) else point.principal
    name, pattern = point.name, "literal"
    if name == OTHER:
        name = EVERYTHING
    elif name.endswith(OTHER):
        name, pattern = name.removesuffix(OTHER), "prefixed"
    return AccessRow(
        principal,
        acl.resource_type,
        name,
        pattern,
        _sum_up(acl.resource_type, set(operations), operations),
        _measure_breadth(principal, acl.resource_type, name, pattern),
        EVERYTHING if point.host == OTHER else point.host,
        _sum_up_held(acl.resource_type, before, operations),
        _sum_up_held(acl.resource_type, after, operations),
    )


def _sum_up(
    resource_type: str, operations: Set[str], besides: Sequence[str] = ()
) -> tuple[str, ...]:
    """The operations that exist on this type, in the order of the table; ("All",) for all.

    besides: further ones that are named if they are in the set. A live ACL can have an operation
    that Kafka never checks on its type.
    """
    supported = SUPPORTED[resource_type]
    names = tuple(name for name in supported if name in operations)
    whole = len(names) == len(supported) > 1
    implied = tuple(name for name in besides if name in operations and name not in supported)
    return ((ALL,) if whole else names) + implied


def _sum_up_held(
    resource_type: str, operations: Set[str], besides: Sequence[str]
) -> tuple[str, ...]:
    """The same for all that a principal can do: a topic whose records it cannot delete is not all
    of it."""
    names = _sum_up(resource_type, operations, besides)
    if resource_type != "Topic" or (names[:1] == (ALL,) and RECORDS in operations):
        return names
    held_operations = SUPPORTED[resource_type] if names[:1] == (ALL,) else names
    return (
        (*held_operations, RECORDS)
        if RECORDS in operations and RECORDS not in held_operations
        else held_operations
    )


def _measure_breadth(principal: str, resource_type: str, name: str, pattern: str) -> Breadth:
    if principal == EVERYBODY:
        return Breadth.EVERYBODY
    if resource_type == "Cluster":
        return Breadth.SYSTEM
    if pattern == "prefixed":
        return Breadth.PREFIX
    return Breadth.EVERY if name == EVERYTHING else Breadth.ONE


def _list_rows(
    acl: Acl, operations: Sequence[str], points: Sequence[Probe], worlds: AccessPair
) -> tuple[AccessRow, ...]:
    rows = []
    for point in points:
        before, after = (
            list_held(access, acl.resource_type, point) for access in (worlds.before, worlds.after)
        )
        rows.append(make_row(acl, point, operations, before, after))
    return tuple(sorted(rows, key=_rank_row))


def _rank_row(row: AccessRow) -> tuple[object, ...]:
    """A sort key: the widest first."""
    return row.breadth.rank, row.principal, row.name != EVERYTHING, row.name, row.host


def _drop_covered(rows: Sequence[AccessRow]) -> tuple[AccessRow, ...]:
    """The rows without those that a row of everybody, of the widest name or of any host covers."""
    # All rows have the same operations, and the widest comes first.
    patterns = {_find_place(row) for row in rows}
    return tuple(
        row
        for row in rows
        if not any(
            pattern in patterns and pattern != _find_place(row)
            for pattern in product(
                {row.principal, EVERYBODY},
                {_find_place(row)[1], *(_find_place(wide)[1] for wide in rows[:1])},
                {row.host, EVERYTHING},
            )
            if _covers_name(pattern[1], row.name)
        )
    )


def _find_place(row: AccessRow) -> tuple[str, tuple[str, str], str]:
    return row.principal, (row.name, row.pattern), row.host


def _covers_name(resource: tuple[str, str], name: str) -> bool:
    wide, pattern = resource
    return name.startswith(wide) if pattern == "prefixed" else wide in (name, EVERYTHING)


# ── decisions ───────────────────────────────────────────────────────────────────────────


@cache
def _list_operations(resource_type: str, operation: str, permission: str) -> tuple[str, ...]:
    """The operations that such an ACL concerns, with those that it implies."""
    supported = SUPPORTED.get(resource_type, ())
    records = (RECORDS,) if resource_type == "Topic" and operation in (ALL, "Delete") else ()
    if operation == ALL:
        return (*supported, *records)
    implied = (
        candidate
        for candidate in supported
        if candidate != operation and operation in IMPLIED_BY.get(candidate, ())
    )
    return (operation, *(implied if permission == ALLOW else ()), *records)


def _list_topic_operations(acl: Acl, every_topic: Set[str]) -> tuple[str, ...]:
    """The operations on every topic that an ACL on the cluster decides."""
    if acl.resource_type != "Cluster":
        return ()
    return tuple(
        operation
        for operation in SUPPORTED["Topic"]
        if operation in every_topic and fits(acl, operation)
    )


def _select(operations: Sequence[str], changed: Set[str]) -> tuple[str, ...]:
    """Those of the operations that are in `changed`."""
    # Who gains or loses Delete on a topic need not be told about its records.
    with_records = "Delete" in changed
    return tuple(
        operation
        for operation in operations
        if operation in changed and not (with_records and operation == RECORDS)
    )


def _render_unasked(
    acl: Acl, operations: Sequence[str], results: ProbeResults, worlds: AccessPair, *, takes: bool
) -> str:
    """A sentence that stands for the gains or losses of those who are not asked about."""
    named_acls = f"other ACLs name {join_words(results.unasked)}, which were not checked and may"
    if not takes:
        return f"{named_acls} gain something on {describe_pattern(acl)}"
    # The digest changes with any ACL there, so that no new loss hides behind the limits. It covers
    # the ACLs after the plan, which stay the same while the plan is applied.
    near = find_deciding(acl, operations, worlds)
    mark = digest(FrozenMap(acls=tuple(sorted(acl.fields for acl in near))))[:8]
    return f"{named_acls} lose something on {describe_pattern(acl)} (ACLs there: {mark})"


# ── in words ────────────────────────────────────────────────────────────────────────────


def _render_sentence(
    acl: Acl,
    verb: str,
    operations: Sequence[str],
    changed: Sequence[Probe],
    probes: Sequence[Probe],
) -> str:
    object_words = (
        "everything"
        if set(operations) == set(SUPPORTED[acl.resource_type])
        else join_words(operations)
    )
    names = describe_names(acl, [point.name for point in changed], [point.name for point in probes])
    subjects = describe_principals(
        [point.principal for point in changed], [point.principal for point in probes]
    )
    hosts = {point.host for point in changed}
    hosts_words = "" if OTHER in hosts else f" from {join_words(sorted(hosts))}"
    return f"{subjects} {verb} {object_words} on {names}{hosts_words}"


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
        agrees = decision.acl.permission == acl.permission
        return (
            f"{verb} nothing: {describe_acl(decision.acl)} "
            f"{'has the same effect' if agrees else 'overrides it'}"
        )
    reason = {
        DecisionRule.SUPER_USER: "super users may do everything",
        DecisionRule.NO_ACL: f"without any ACL, {operation} is {decision.verdict}",
        DecisionRule.NO_MATCH: "no ACL allows it",
        DecisionRule.OWN: "everybody may create and see their own tokens",
    }.get(decision.rule, "")
    return f"{verb} nothing" + (f": {reason}" if reason else "")
