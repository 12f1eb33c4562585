"""Explain from the ACLs why somebody can or cannot do something: the document and the page of
`explain access`."""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.resource import Facts, Sweep
from kafkaform.core.text.display import Cells, Grid, Page
from kafkaform.core.value import FrozenMap

from ..authority import acl_changes
from ..authority.authorizer import (
    EVERYBODY,
    SOME_TOPIC,
    Access,
    AccessQuestion,
    AccessVerdict,
    Decision,
    DecisionRule,
    Need,
    authorize,
    decide,
    fits,
    list_acls,
    list_principals,
    to_cluster_question,
    to_topics_question,
)
from ..protocol import acl as acls
from ..protocol.acl import CLUSTER, OTHER, Acl, describe_acl
from .cells import count

DECLARE = {
    Need.SUPER_USERS: "whether it is a super user: declare authorizer { super_users = […] } in "
    "the provider block, or give --super-user",
    Need.ALLOW_IF_NO_ACL: "what holds where no ACL is: declare authorizer { allow_if_no_acl = … "
    "} in the provider block, or give --allow-if-no-acl or --no-allow-if-no-acl",
    Need.HOST: "where it connects from: give --host",
}
"""What is unknown, and how to provide it."""
FIRST = "the controller checks the cluster before the topic"
WRITES = "who can Write to a topic needs no IdempotentWrite (KIP-679)"


class AccessQuery(Struct, frozen=True):
    """A question about access to one resource."""

    resource_type: str
    resource_name: str
    operations: Sequence[str]
    """Answers are in this order."""
    principal: str | None = None
    """None: list all principals that can."""
    host: str | None = None


def build_access(
    sweep: Sweep,
    facts: Facts,
    super_users: Sequence[str] | None = None,
    allow_if_no_acl: bool | None = None,
) -> Access:
    """The authorizer of a cluster: its ACLs with the settings that are known or given here."""
    access = acl_changes.build_access(
        (acls.parse_acl(item.attributes) for item in sweep.items), facts
    )
    return replace(
        access,
        super_users=access.super_users if super_users is None else frozenset(super_users),
        allow_if_no_acl=access.allow_if_no_acl if allow_if_no_acl is None else allow_if_no_acl,
    )


def normalize_host(host: str) -> str:
    """An address as brokers write it. Raises ValueError for a name or a network."""
    # ACLs compare the text of Java's InetAddress, which writes IPv6 without `::`.
    address = ip_address(host)
    return acls.format_java_address(address) if isinstance(address, IPv6Address) else str(address)


def find_principal_fault(principal: str) -> tuple[str, str] | None:
    """Why a text is no principal, and what to do; None for a principal."""
    kind, colon, name = principal.partition(":")
    if not colon:
        return "has no type", f"Write User:{principal or 'NAME'}."
    return None if kind and name else ("is no principal", "Write User:NAME.")


def explain_access(access: Access, query: AccessQuery, cluster_id: str) -> FrozenMap:
    """The document: answers, all ACLs of the resource, and what has to be known for certainty."""
    answers = [
        (principal, operation, decide(access, _make_question(query, principal, operation)))
        for principal in _list_principals(access, query)
        for operation in query.operations
    ]
    if query.principal is None:
        answers = [answer for answer in answers if answer[2].verdict is not AccessVerdict.DENIED]
    needs = dict.fromkeys(need for _, _, decision in answers for need in decision.needs)
    return FrozenMap(
        format_version="1.0",
        kind="access_explanation",
        cluster_id=cluster_id,
        resource_type=query.resource_type,
        resource_name=query.resource_name,
        host=query.host,
        principal=query.principal,
        super_users=None if access.super_users is None else tuple(sorted(access.super_users)),
        allow_if_no_acl=access.allow_if_no_acl,
        answers=tuple(_describe_answer(access, query, *answer) for answer in answers),
        acls=tuple(
            FrozenMap(text=describe_acl(acl), **acl.attributes) for acl in _list_acls(access, query)
        ),
        unknown=tuple(DECLARE[need] for need in needs if need in DECLARE),
    )


def _list_principals(access: Access, query: AccessQuery) -> tuple[str, ...]:
    """The principals to answer for: one, or all that ACLs name and one that none names."""
    if query.principal is not None:
        return (query.principal,)
    questions = (_make_question(query, EVERYBODY, operation) for operation in query.operations)
    named = sorted(
        {principal for question in questions for principal in list_principals(access, question)}
    )
    return (*(principal for principal in named if principal != EVERYBODY), f"User:{OTHER}")


def _make_question(query: AccessQuery, principal: str, operation: str) -> AccessQuestion:
    return AccessQuestion(
        principal, query.host, operation, query.resource_type, query.resource_name
    )


def _list_acls(access: Access, query: AccessQuery) -> tuple[Acl, ...]:
    """All ACLs of the resource, followed by those of the cluster and of topics that can decide
    instead."""
    own = list_acls(access, query.resource_type, query.resource_name)
    questions = [_make_question(query, EVERYBODY, operation) for operation in query.operations]
    operations = [
        question.operation
        for question in questions
        if to_cluster_question(question, zookeeper=access.zookeeper)
    ]
    cluster = list_acls(access, "Cluster", CLUSTER) if operations else ()
    writers = access.index.writers if any(map(to_topics_question, questions)) else {}
    principals = writers if query.principal is None else {query.principal, EVERYBODY}
    topics = sorted(acl for name in principals for acl in writers.get(name, ()))
    return (
        *own,
        *(
            acl
            for acl in cluster
            if any(fits(acl, cluster_operation) for cluster_operation in operations)
        ),
        *topics,
    )


def _describe_answer(
    access: Access, query: AccessQuery, principal: str, operation: str, decision: Decision
) -> FrozenMap:
    reason = _explain_decision(decision)
    if decision.on_cluster and decision.verdict is AccessVerdict.ALLOWED:
        reason = f"{reason}: {FIRST}"
        own = authorize(access, _make_question(query, principal, operation))
        if operation == "Delete" and own.verdict is not AccessVerdict.ALLOWED:
            # DeleteRecords is checked by the leader of the partition, not by the controller.
            reason = (
                f"{reason}. Not its records: for these, brokers check Delete on the topic itself"
            )
    if decision.on_topic and decision.verdict is AccessVerdict.ALLOWED:
        reason = f"{reason}: {WRITES}"
    if operation == "IdempotentWrite" and decision.verdict is AccessVerdict.DENIED:
        reason = f"{reason}, and no ACL allows Write to a topic (KIP-679)"
    return FrozenMap(
        principal=None if principal.endswith(OTHER) else principal,
        operation=operation,
        verdict=str(decision.verdict),
        rule=str(decision.rule),
        acl=decision.acl.attributes if decision.acl else None,
        why=reason,
        on_cluster=decision.on_cluster,
        on_topic=decision.on_topic,
    )


def _explain_decision(decision: Decision) -> str:
    if decision.acl is not None and decision.rule is DecisionRule.ACL:
        return describe_acl(decision.acl)
    if decision.rule is DecisionRule.UNDECLARED:
        missing = ", ".join(decision.needs)
        alternative = f"; without that: {describe_acl(decision.acl)}" if decision.acl else ""
        return f"not known: {missing}{alternative}"
    scope = "the cluster" if decision.on_cluster else "this resource"
    if decision.on_topic:
        scope = f"a topic named {SOME_TOPIC}, which brokers check"
    return {
        DecisionRule.SUPER_USER: "super users are allowed everything",
        DecisionRule.NO_ACL: f"no ACL applies to {scope},"
        " and allow_if_no_acl is "
        + ("true" if decision.verdict is AccessVerdict.ALLOWED else "false"),
        DecisionRule.NO_MATCH: "there are ACLs for this resource, but none that allows it",
        DecisionRule.OWN: "everybody can create and see own tokens (KIP-48)",
    }[decision.rule]


ANYBODY = "anybody else"
_DECIDES = "*"


def access_page(document: FrozenMap) -> Page:
    """The page of a document of `explain access`."""
    host = "any address" if document["host"] is None else document["host"]
    resource = f"{document['resource_type']} {document['resource_name']}"
    yield f"{resource}, from {host}"
    yield ""
    if document["answers"]:
        yield Grid(
            (("Principal", "Operation", "Answer", "Why"), *map(_render_row, document["answers"]))
        )
    else:
        yield "Nobody can."
    yield ""
    foreign = any(acl["resource_type"] != document["resource_type"] for acl in document["acls"])
    scopes = " and of topics" if document["resource_type"] == "Cluster" else " and of the cluster"
    yield f"{count(len(document['acls']), 'ACL')} of this resource" + (
        f"{scopes * foreign} ({_DECIDES} decides):" if document["acls"] else "."
    )
    deciding = [answer["acl"] for answer in document["answers"] if answer["acl"]]
    for acl in document["acls"]:
        mark = _DECIDES if acl.without(["text"]) in deciding else " "
        yield f"{mark} {acl['text']}"
    for unknown in document["unknown"]:
        yield f"Not known: {unknown}."


def _render_row(answer: FrozenMap) -> Cells:
    return answer["principal"] or ANYBODY, answer["operation"], answer["verdict"], answer["why"]
