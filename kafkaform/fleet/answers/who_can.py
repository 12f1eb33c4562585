"""Answer `who-can READ topic/orders` from the tables of a build, without Spark.

Rows of effective_permissions name their ACLs, so the ACLs about a resource are rebuilt from them,
and the provider's own `authorizer.decide` answers. An answer is certain or it is not: what depends
on undeclared super users, on an undeclared rule, on the host, or on ACLs that were not all seen is
unknown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct

from kafkaform_kafka.authority.authorizer import (
    EVERYBODY,
    Access,
    AccessQuestion,
    AccessVerdict,
    Decision,
    DecisionRule,
    decide,
    fits,
    index_acls,
    list_acls,
    list_principals,
    to_cluster_question,
    to_topics_question,
)
from kafkaform_kafka.protocol.acl import ALLOW, CLUSTER, DENY, EVERYTHING, PREFIXED, Acl

from ...core.errors import UsageError
from ..access.operation_bits import BITS, parse_operation, parse_principal, parse_resource

ACL_KIND = "kafka_acl"
ACLS = "acls"
"""The need of an answer for which not all ACLs were seen, or only long ago."""
_FRESH = ("read", "partial")
"""Statuses of a cluster whose rows tell how it is now."""
_PERMISSIONS = {
    AccessVerdict.ALLOWED: (ALLOW,),
    AccessVerdict.DENIED: (DENY,),
    AccessVerdict.UNKNOWN: (ALLOW, DENY),
}
_CERTAIN = (DecisionRule.SUPER_USER, DecisionRule.OWN)
"""Rules whose decision holds whatever ACLs there are."""
SOMEBODY = "User:\0"
"""A principal that no ACL and no declaration names. Names cannot contain NUL."""

Row = Mapping[str, Any]


class WhoCanQuery(Struct, frozen=True):
    """A question."""

    operation: str
    resource_type: str
    resource_name: str
    principal: str | None = None
    """None: everybody who can."""
    host: str | None = None
    """As the broker sees it. None: not known."""


class WhoCanAnswer(Struct, frozen=True):
    """The answer for one cluster and principal."""

    cluster: str
    principal: str
    """`User:*` stands for everybody whom nothing names."""
    verdict: str
    """allowed, denied or unknown."""
    rule: str
    """What decided, in words."""
    via: tuple[str, ...]
    """Keys of the ACLs that allow or deny it, or might, the most specific first."""
    needs: tuple[str, ...]
    """What would have to be known, as in `authorizer.Need`, or ACLS."""
    as_of: datetime | None
    """When the snapshot was taken. None: there is none."""


def parse_query(
    operation: str, resource: str, principal: str | None = None, host: str | None = None
) -> WhoCanQuery:
    """Parse `READ`, `topic/orders`. Raises UsageError."""
    kind, name = parse_resource(resource)
    if kind == "Topic" and any(sign in name for sign in "*?"):
        raise UsageError(
            f"{resource} is not a single topic",
            f"`kafkaform fleet permissions --resource '{resource}'` shows several.",
        )
    who = None if principal is None else parse_principal(principal)
    return WhoCanQuery(parse_operation(operation, kind), kind, name, who, host)


def list_needed_rows(asked: WhoCanQuery) -> tuple[tuple[str, str, Any], ...]:
    """Return conditions on effective_permissions, as (column, operator, value), all of which must
    hold: the rows of the patterns that cover the resource, and maybe some more."""
    question = _make_question(asked, SOMEBODY)
    if to_topics_question(question) is not None:
        return (("resource_type", "in", ["Cluster", "Topic"]), ("pattern_level", "=", True))
    first = to_cluster_question(question) is not None
    names = (asked.resource_name, *([CLUSTER] if first else []))
    begun = (f"{name[:length]}{EVERYTHING}" for name in names for length in range(len(name) + 1))
    types = sorted({asked.resource_type, *(["Cluster"] if first else [])})
    return (
        ("resource_type", "in", types),
        ("pattern_level", "=", True),
        ("resource", "in", sorted({*names, EVERYTHING, *begun})),
    )


def who_can(
    permissions: Iterable[Row], clusters: Iterable[Row], asked: WhoCanQuery
) -> list[WhoCanAnswer]:
    """Return the answers of every cluster, by name and principal: everything about one principal,
    or else all who can or might.

    permissions: rows of effective_permissions, at least those of `list_needed_rows`; clusters: rows
    of `cluster` to answer for.
    """
    found: dict[str, list[Row]] = {}
    for row in permissions:
        if row["pattern_level"]:
            found.setdefault(row["cluster"], []).append(row)
    ordered = sorted(clusters, key=lambda cluster: str(cluster["cluster"]))
    return [one for c in ordered for one in _answer_cluster(c, found.get(c["cluster"], ()), asked)]


def _answer_cluster(
    cluster: Row, rows: Sequence[Row], asked: WhoCanQuery
) -> Iterator[WhoCanAnswer]:
    access, seen = _build_access(cluster, rows), _is_seen(cluster)
    for who in _list_people(access, asked):
        question = _make_question(asked, who)
        decision = decide(access, question)
        needs = tuple(map(str, decision.needs))
        # An ACL that was not seen could be a DENY, so even "allowed" is uncertain.
        if not seen and decision.rule not in _CERTAIN:
            needs = (*needs, ACLS)
            decision = Decision(
                AccessVerdict.UNKNOWN, DecisionRule.UNDECLARED, decision.acl, decision.needs
            )
        if asked.principal is not None or decision.verdict is not AccessVerdict.DENIED:
            yield WhoCanAnswer(
                cluster["cluster"],
                EVERYBODY if who == SOMEBODY else who,
                str(decision.verdict),
                str(decision.rule),
                _find_via(access, question, decision),
                needs,
                cluster["captured_at"],
            )


def _make_question(asked: WhoCanQuery, who: str) -> AccessQuestion:
    return AccessQuestion(
        who, asked.host, asked.operation, asked.resource_type, asked.resource_name
    )


def _build_access(cluster: Row, rows: Sequence[Row]) -> Access:
    supers = cluster["super_users"]
    return Access(
        index_acls(acl for row in rows for acl in parse_acls(row)),
        None if supers is None else frozenset(supers),
        cluster["allow_if_no_acl"],
    )


def parse_acls(row: Row) -> Iterator[Acl]:
    """Yield the ACLs that a row about a pattern names."""
    via = frozenset(row["via"])
    name, pattern_type = row["resource"], row["pattern_type"]
    if pattern_type == PREFIXED:
        name = name.removesuffix(EVERYTHING)
    for permission in (ALLOW, DENY):
        for operation in BITS:
            acl = Acl(
                row["principal"],
                row["host"],
                operation,
                permission,
                row["resource_type"],
                name,
                pattern_type,
            )
            # A key is not parsed back: each possible ACL of the row is built and its key compared.
            if acl.key in via:
                yield acl


def _is_seen(cluster: Row) -> bool:
    """True if all ACLs of the cluster were seen, and not too long ago."""
    coverage = dict(cluster["coverage"])  # Arrow gives a map as pairs
    return cluster["status"] in _FRESH and coverage.get(ACL_KIND) == "complete"


def _list_people(access: Access, asked: WhoCanQuery) -> tuple[str, ...]:
    if asked.principal is not None:
        return (asked.principal,)
    named = list_principals(access, _make_question(asked, SOMEBODY))
    return (*(who for who in named if who != EVERYBODY), SOMEBODY)


def _find_via(access: Access, question: AccessQuestion, decision: Decision) -> tuple[str, ...]:
    """Return the ACLs that decide, or that could."""
    if decision.rule in _CERTAIN:
        return ()
    permissions = _PERMISSIONS[decision.verdict]
    unsure = decision.verdict is AccessVerdict.UNKNOWN
    anywhere = unsure and question.host is None
    concerned = (
        acl
        for acl, operation in _find_deciding(access, question, decision)
        if acl.permission in permissions
        and acl.principal in (question.principal, EVERYBODY)
        and (anywhere or acl.host in (question.host, EVERYTHING))
        and fits(acl, operation)
    )
    return tuple(dict.fromkeys(acl.key for acl in concerned))


def _find_deciding(
    access: Access, question: AccessQuestion, decision: Decision
) -> Iterator[tuple[Acl, str]]:
    """Yield the ACLs that the decision rests on, each with the operation that is asked there."""
    unsure = decision.verdict is AccessVerdict.UNKNOWN
    first, later = to_cluster_question(question), to_topics_question(question)
    elsewhere = decision.on_cluster or decision.on_topic
    if not elsewhere or unsure:
        found = list_acls(access, question.resource_type, question.resource_name)
        yield from ((acl, question.operation) for acl in found)
    if first is not None and (decision.on_cluster or unsure):
        found = list_acls(access, first.resource_type, first.resource_name)
        yield from ((acl, first.operation) for acl in found)
    if later is not None and (decision.on_topic or unsure):
        who = (question.principal or EVERYBODY, EVERYBODY)
        mine = (acl for one in who for acl in access.index.writers.get(one, ()))
        yield from ((acl, later.operation) for acl in sorted(mine, key=_make_order(decision)))


def _make_order(decision: Decision) -> Callable[[Acl], tuple[bool, Acl]]:
    """The order of ACLs of topics: the one that decides comes first."""
    return lambda acl: (acl != decision.acl, acl)
