"""Answer `who-can READ topic/orders` from the tables of a build, without Spark.

Rows of effective_permissions name their ACLs, so the ACLs about a resource are rebuilt from them,
and the provider's own `authorizer.decide` answers. An answer is certain or it is not: what depends
on undeclared super users, on an undeclared rule, on the host, or on ACLs that were not all seen is
unknown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
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
from ..access.permission_rows import BITS, parse_operation, parse_principal, parse_resource

ACL_KIND = "kafka_acl"
ACLS = "acls"
"""The need of an answer for which not all ACLs were seen, or only long ago."""
_FRESH_STATUSES = ("read", "partial")
"""Statuses of a cluster whose rows tell how it is now."""
_PERMISSIONS = {
    AccessVerdict.ALLOWED: (ALLOW,),
    AccessVerdict.DENIED: (DENY,),
    AccessVerdict.UNKNOWN: (ALLOW, DENY),
}
_CERTAIN_RULES = (DecisionRule.SUPER_USER, DecisionRule.OWN)
"""Rules whose decision holds whatever ACLs there are."""
UNNAMED_PRINCIPAL = "User:\0"
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
    """`User:*`: every principal that nothing names."""
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
    exceptions: tuple[str, ...] = ()
    """In the answer for `User:*` of a list: the principals that are denied it, in order."""


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
    parsed_principal = None if principal is None else parse_principal(principal)
    return WhoCanQuery(parse_operation(operation, kind), kind, name, parsed_principal, host)


def list_needed_rows(query: WhoCanQuery) -> tuple[tuple[str, str, Any], ...]:
    """Return conditions on effective_permissions, as (column, operator, value), which must all
    hold: the rows of the patterns that cover the resource, and maybe some more."""
    question = _make_question(query, UNNAMED_PRINCIPAL)
    if to_topics_question(question) is not None:
        return (("resource_type", "in", ["Cluster", "Topic"]), ("pattern_level", "=", True))
    on_cluster = to_cluster_question(question) is not None
    names = (query.resource_name, *([CLUSTER] if on_cluster else []))
    prefixes = (f"{name[:length]}{EVERYTHING}" for name in names for length in range(len(name) + 1))
    types = sorted({query.resource_type, *(["Cluster"] if on_cluster else [])})
    return (
        ("resource_type", "in", types),
        ("pattern_level", "=", True),
        ("resource", "in", sorted({*names, EVERYTHING, *prefixes})),
    )


def who_can(
    permissions: Iterable[Row], clusters: Iterable[Row], query: WhoCanQuery
) -> list[WhoCanAnswer]:
    """Return the answers of every cluster, by name and principal: everything about one principal,
    or else all who can or might.

    permissions: rows of effective_permissions, at least those of `list_needed_rows`; clusters: rows
    of `cluster` to answer for.
    """
    rows: dict[str, list[Row]] = {}
    for row in permissions:
        if row["pattern_level"]:
            rows.setdefault(row["cluster"], []).append(row)
    ordered = sorted(clusters, key=lambda cluster: str(cluster["cluster"]))
    return [
        answer for c in ordered for answer in _answer_cluster(c, rows.get(c["cluster"], ()), query)
    ]


def _answer_cluster(
    cluster: Row, rows: Sequence[Row], query: WhoCanQuery
) -> Iterator[WhoCanAnswer]:
    super_users = cluster["super_users"]
    access = Access(
        index_acls(acl for row in rows for acl in parse_acls(row)),
        None if super_users is None else frozenset(super_users),
        cluster["allow_if_no_acl"],
    )
    coverage = dict(cluster["coverage"])  # Arrow gives a map as pairs
    # All ACLs of the cluster were seen, and not too long ago.
    all_seen = cluster["status"] in _FRESH_STATUSES and coverage.get(ACL_KIND) == "complete"
    principals: tuple[str, ...] = (query.principal,) if query.principal is not None else ()
    if query.principal is None:
        named = list_principals(access, _make_question(query, UNNAMED_PRINCIPAL))
        principals = (*(name for name in named if name != EVERYBODY), UNNAMED_PRINCIPAL)
    denied: list[str] = []
    for principal in principals:
        question = _make_question(query, principal)
        decision = decide(access, question)
        needs = tuple(map(str, decision.needs))
        # An ACL that was not seen could be a DENY, so even "allowed" is uncertain.
        if not all_seen and decision.rule not in _CERTAIN_RULES:
            needs = (*needs, ACLS)
            decision = Decision(
                AccessVerdict.UNKNOWN, DecisionRule.UNDECLARED, decision.acl, decision.needs
            )
        if query.principal is None and decision.verdict is AccessVerdict.DENIED:
            denied.append(principal)
        else:
            yield WhoCanAnswer(
                cluster["cluster"],
                EVERYBODY if principal == UNNAMED_PRINCIPAL else principal,
                str(decision.verdict),
                str(decision.rule),
                _find_via(access, question, decision),
                needs,
                cluster["captured_at"],
                tuple(denied) if principal == UNNAMED_PRINCIPAL else (),
            )


def _make_question(query: WhoCanQuery, principal: str) -> AccessQuestion:
    return AccessQuestion(
        principal, query.host, query.operation, query.resource_type, query.resource_name
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


def _find_via(access: Access, question: AccessQuestion, decision: Decision) -> tuple[str, ...]:
    """Return the ACLs that decide, or that could."""
    if decision.rule in _CERTAIN_RULES:
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
    cluster_question, topics_question = to_cluster_question(question), to_topics_question(question)
    elsewhere = decision.on_cluster or decision.on_topic
    if not elsewhere or unsure:
        acls = list_acls(access, question.resource_type, question.resource_name)
        yield from ((acl, question.operation) for acl in acls)
    if cluster_question is not None and (decision.on_cluster or unsure):
        acls = list_acls(access, cluster_question.resource_type, cluster_question.resource_name)
        yield from ((acl, cluster_question.operation) for acl in acls)
    if topics_question is not None and (decision.on_topic or unsure):
        principals = (question.principal or EVERYBODY, EVERYBODY)
        writers = (
            acl for principal in principals for acl in access.index.writers.get(principal, ())
        )
        # The order of ACLs of topics: the one that decides comes first.
        yield from (
            (acl, topics_question.operation)
            for acl in sorted(writers, key=lambda acl: (acl != decision.acl, acl))
        )
