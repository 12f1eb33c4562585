"""Computes who gains and loses what through one changed ACL.

The simulated authorizer is asked the same questions (`probes`) before and after the plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from functools import cache
from itertools import product

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.canonical import digest
from kafkaform.core.value import FrozenMap

from ..kinds.acl.resource_type import ALLOW, EVERY_TOPIC, SUPPORTED, Acl
from .acl_words import OTHER as OTHER
from .acl_words import describe_acl as describe_acl
from .acl_words import describe_name, describe_names, describe_principals, join_words
from .acl_words import describe_pattern as describe_pattern
from .authorizer import (
    ALL,
    EVERYBODY,
    IMPLIED_BY,
    PREFIXED,
    AccessQuestion,
    AccessVerdict,
    DecisionRule,
    decide,
    fits,
)
from .permissions import IDEMPOTENT, RECORDS
from .probes import AccessPair, Probe, ProbeResults, ask_about, find_deciding

WRITERS = "principals with Write on a topic do not need IdempotentWrite (KIP-679)"
FIRST = "Kafka checks the cluster before the topic, so no ACL of a topic can deny that"


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


def compute_effect(acl: Acl, worlds: AccessPair, *, created: bool) -> Effect:
    """The effect of creating or deleting this ACL, together with the rest of the plan."""
    concerned = _list_operations(acl.resource_type, acl.operation, acl.permission)
    own = _probe_effect(acl, concerned, worlds, created=created)
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
    asked = ask_about(acl, operations, worlds)
    points = list(asked.changed)
    gains: dict[tuple[str, ...], list[Probe]] = defaultdict(list)
    losses: dict[tuple[str, ...], list[Probe]] = defaultdict(list)
    for point, (gained, lost) in asked.changed.items():
        gains[_select(operations, gained)].append(point)
        losses[_select(operations, lost)].append(point)
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


# ── decisions ───────────────────────────────────────────────────────────────────────────


@cache
def _list_operations(resource_type: str, operation: str, permission: str) -> tuple[str, ...]:
    """The operations that such an ACL concerns, with those that it implies."""
    supported = SUPPORTED.get(resource_type, ())
    records = (RECORDS,) if resource_type == "Topic" and operation in (ALL, "Delete") else ()
    if operation == ALL:
        return (*supported, *records)
    implied = (
        one for one in supported if one != operation and operation in IMPLIED_BY.get(one, ())
    )
    return (operation, *(implied if permission == ALLOW else ()), *records)


def _list_topic_operations(acl: Acl) -> tuple[str, ...]:
    """The operations on every topic that an ACL on the cluster decides."""
    if acl.resource_type != "Cluster":
        return ()
    return tuple(one for one in SUPPORTED["Topic"] if one in EVERY_TOPIC and fits(acl, one))


def _select(operations: Sequence[str], changed: Set[str]) -> tuple[str, ...]:
    """Those of the operations that are in `changed`."""
    # Who gains or loses Delete on a topic need not be told about its records.
    more = "Delete" in changed
    return tuple(one for one in operations if one in changed and not (more and one == RECORDS))


def _render_unasked(
    acl: Acl, operations: Sequence[str], asked: ProbeResults, worlds: AccessPair
) -> Iterator[str]:
    """A text that stands for the losses of those who are not asked about."""
    if not asked.left:
        return
    # The digest changes with any ACL there, so that no new loss hides behind the limits. It covers
    # the ACLs after the plan, which stay the same while the plan is applied.
    near = find_deciding(acl, operations, worlds)
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


def _note_unasked(asked: ProbeResults) -> str:
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
