"""`who-can READ topic/orders`, from the tables of a build, without Spark.

Rows of effective_permissions name their ACLs, so that the ACLs about a resource are made from them
again and the provider's own `access.decide` answers. An answer is certain or it is not: what hangs
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
    PREFIXED,
    Access,
    Decision,
    Question,
    Rule,
    Verdict,
    acls_of,
    asked_first,
    asked_of_topics,
    decide,
    fits,
    index,
    principals,
)
from kafkaform_kafka.kinds.acl.resource_type import ALLOW, CLUSTER, DENY, EVERYTHING, Acl

from ...core.errors import UsageError
from ..access.operation_bits import BITS, operation_of, principal_of, resource_of

ACL_KIND = "kafka_acl"
ACLS = "acls"
"""What is missing where not all ACLs were seen, or only long ago."""
_FRESH = ("read", "partial")
"""Statuses of a cluster whose rows tell how it is now."""
_PERMISSIONS = {
    Verdict.ALLOWED: (ALLOW,),
    Verdict.DENIED: (DENY,),
    Verdict.UNKNOWN: (ALLOW, DENY),
}
_CERTAIN = (Rule.SUPER_USER, Rule.OWN)
"""What holds whatever ACLs there are."""
SOMEBODY = "User:\0"
"""Whom no ACL and nothing declared names; names have no NUL."""

Row = Mapping[str, Any]


class Wanted(Struct, frozen=True):
    """principal: None for everybody who can; host: as brokers see it, None: it is not known."""

    operation: str
    resource_type: str
    resource_name: str
    principal: str | None = None
    host: str | None = None


class Answer(Struct, frozen=True):
    """principal: `User:*` for everybody whom nothing names; verdict: allowed, denied or unknown;
    rule: what decided, in words; via: keys of the ACLs that allow or deny it, or might, the most
    special first; needs: what would have to be known, as in `access.Need`, or ACLS; as_of: the
    time of the snapshot, None: there is none."""

    cluster: str
    principal: str
    verdict: str
    rule: str
    via: tuple[str, ...]
    needs: tuple[str, ...]
    as_of: datetime | None


def wanted(
    operation: str, resource: str, principal: str | None = None, host: str | None = None
) -> Wanted:
    """`READ`, `topic/orders` as a question. Raises UsageError."""
    kind, name = resource_of(resource)
    if kind == "Topic" and any(sign in name for sign in "*?"):
        raise UsageError(
            f"{resource} names no single topic",
            f"`kafkaform fleet permissions --resource '{resource}'` tells of several.",
        )
    who = None if principal is None else principal_of(principal)
    return Wanted(operation_of(operation, kind), kind, name, who, host)


def needed_rows(asked: Wanted) -> tuple[tuple[str, str, Any], ...]:
    """Which rows of effective_permissions a question needs, as (column, operator, value): all must
    hold. They are those of the patterns that cover the resource, and maybe some more."""
    question = _question(asked, SOMEBODY)
    if asked_of_topics(question) is not None:
        return (("resource_type", "in", ["Cluster", "Topic"]), ("pattern_level", "=", True))
    first = asked_first(question) is not None
    names = (asked.resource_name, *([CLUSTER] if first else []))
    begun = (f"{name[:length]}{EVERYTHING}" for name in names for length in range(len(name) + 1))
    types = sorted({asked.resource_type, *(["Cluster"] if first else [])})
    return (
        ("resource_type", "in", types),
        ("pattern_level", "=", True),
        ("resource", "in", sorted({*names, EVERYTHING, *begun})),
    )


def who_can(permissions: Iterable[Row], clusters: Iterable[Row], asked: Wanted) -> list[Answer]:
    """The answers of every cluster, by name and principal: all for one principal, else all who can
    or might.

    permissions: rows of effective_permissions, at least `needed_rows`; clusters: rows of `cluster`,
    those that are asked about.
    """
    found: dict[str, list[Row]] = {}
    for row in permissions:
        if row["pattern_level"]:
            found.setdefault(row["cluster"], []).append(row)
    ordered = sorted(clusters, key=lambda cluster: str(cluster["cluster"]))
    return [one for c in ordered for one in _of_cluster(c, found.get(c["cluster"], ()), asked)]


def _of_cluster(cluster: Row, rows: Sequence[Row], asked: Wanted) -> Iterator[Answer]:
    access, seen = _access(cluster, rows), _seen(cluster)
    for who in _people(access, asked):
        question = _question(asked, who)
        decision = decide(access, question)
        needs = tuple(map(str, decision.needs))
        if not seen and decision.rule not in _CERTAIN:
            needs = (*needs, ACLS)
            decision = Decision(Verdict.UNKNOWN, Rule.UNDECLARED, decision.acl, decision.needs)
        if asked.principal is not None or decision.verdict is not Verdict.DENIED:
            yield Answer(
                cluster["cluster"],
                EVERYBODY if who == SOMEBODY else who,
                str(decision.verdict),
                str(decision.rule),
                _via(access, question, decision),
                needs,
                cluster["captured_at"],
            )


def _question(asked: Wanted, who: str) -> Question:
    return Question(who, asked.host, asked.operation, asked.resource_type, asked.resource_name)


def _access(cluster: Row, rows: Sequence[Row]) -> Access:
    supers = cluster["super_users"]
    return Access(
        index(acl for row in rows for acl in acls_in(row)),
        None if supers is None else frozenset(supers),
        cluster["allow_if_no_acl"],
    )


def acls_in(row: Row) -> Iterator[Acl]:
    """The ACLs that a row about a pattern names."""
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
            if acl.key in via:
                yield acl


def _seen(cluster: Row) -> bool:
    """Whether all ACLs of the cluster were seen, not too long ago."""
    coverage = dict(cluster["coverage"])  # Arrow gives a map as pairs
    return cluster["status"] in _FRESH and coverage.get(ACL_KIND) == "complete"


def _people(access: Access, asked: Wanted) -> tuple[str, ...]:
    if asked.principal is not None:
        return (asked.principal,)
    named = principals(access, _question(asked, SOMEBODY))
    return (*(who for who in named if who != EVERYBODY), SOMEBODY)


def _via(access: Access, question: Question, decision: Decision) -> tuple[str, ...]:
    """The ACLs that decide so, or that could."""
    if decision.rule in _CERTAIN:
        return ()
    permissions = _PERMISSIONS[decision.verdict]
    unsure = decision.verdict is Verdict.UNKNOWN
    anywhere = unsure and question.host is None
    concerned = (
        acl
        for acl, operation in _deciding(access, question, decision)
        if acl.permission in permissions
        and acl.principal in (question.principal, EVERYBODY)
        and (anywhere or acl.host in (question.host, EVERYTHING))
        and fits(acl, operation)
    )
    return tuple(dict.fromkeys(acl.key for acl in concerned))


def _deciding(access: Access, question: Question, decision: Decision) -> Iterator[tuple[Acl, str]]:
    """The ACLs of whatever the decision rests on, each with the operation that is asked there."""
    unsure = decision.verdict is Verdict.UNKNOWN
    first, later = asked_first(question), asked_of_topics(question)
    elsewhere = decision.on_cluster or decision.on_topic
    if not elsewhere or unsure:
        found = acls_of(access, question.resource_type, question.resource_name)
        yield from ((acl, question.operation) for acl in found)
    if first is not None and (decision.on_cluster or unsure):
        found = acls_of(access, first.resource_type, first.resource_name)
        yield from ((acl, first.operation) for acl in found)
    if later is not None and (decision.on_topic or unsure):
        who = (question.principal or EVERYBODY, EVERYBODY)
        mine = (acl for one in who for acl in access.index.writers.get(one, ()))
        yield from ((acl, later.operation) for acl in sorted(mine, key=_decides(decision)))


def _decides(decision: Decision) -> Callable[[Acl], tuple[bool, Acl]]:
    """The order of ACLs of topics: the one that decides comes first."""
    return lambda acl: (acl != decision.acl, acl)
