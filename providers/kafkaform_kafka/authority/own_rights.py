"""Our own rights: what we may do by the ACLs that we can read, and whether that is enough for the
steps of a plan.

A dry run finds missing rights only of the first steps, and later steps would fail half way through
the plan. So the rights that the steps need are compared with those that the cluster reports. Rights
that it does not report are left to the dry run: on topics that do not exist yet or are hidden, on
groups, and the right to create a topic.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from msgspec import Struct, field
from msgspec.structs import replace

from kafkaform.core.change import Step, Verdict
from kafkaform.core.resource import Facts, Fault, FaultClass

from ..kinds.acl.requests import list_live_acls
from ..kinds.context import ClusterContext, attempt
from ..protocol.acl import CLUSTER, EVERYBODY, Acl, decode_operations, describe_acl
from ..protocol.apis import APIS, RightTarget
from ..protocol.cluster_facts import KafkaFacts
from ..protocol.faults import code_name, name_right
from ..wire.cluster import read_cluster_operations
from ..wire.topics import TopicRow, list_topics
from .acl_changes import read_setting
from .authorizer import Access, AccessQuestion, AccessVerdict, authorize, has_acl, index_acls

Right = tuple[str, str, str]
"""operation, resource type, resource name."""

_GRANTING = "CreateAcls"
_TOPIC_DENIED, _CLUSTER_DENIED = 29, 31


class HeldRights(Struct, frozen=True):
    """Our rights, with the operation names that ACLs use."""

    cluster: Set[str] | None
    """Operations on the cluster, None if it does not report them."""
    topics: Mapping[str, Set[str]]
    """Topic -> operations, for topics that are reported."""
    # Kafka checks Delete on the cluster first, and no broker reports that right.
    every_topic: bool | None = None
    """Whether we may delete every topic, None if that is unknown."""
    hidden: bool = False
    """True if `every_topic` follows from a missing Describe on the cluster, which can also be the
    effect of a DENY."""
    denied: Mapping[Right, str] = field(default_factory=dict)
    """Missing right -> the ACL that denies it, in words."""


def list_step_topics(steps: Sequence[Step]) -> tuple[str, ...]:
    """The topics on which these steps need rights, each once."""
    return tuple(dict.fromkeys(name for name in map(_get_topic, steps) if name is not None))


def judge_steps(
    steps: Sequence[Step], held_rights: HeldRights, principal: str | None
) -> Iterator[Verdict]:
    """A verdict for each step whose right is missing for certain. principal: ours, None if it is
    unknown."""
    # A plan that grants us rights needs only the right to do that beforehand.
    granting = any(_grants(step, principal) for step in steps)
    for step, right in find_missing(steps, held_rights):
        if _may_succeed_anyway(right, held_rights) or (granting and step.request.name != _GRANTING):
            continue
        yield Verdict(
            step.id, step.evidence, _make_fault(step.request.name, right, held_rights, principal)
        )


def find_missing(steps: Sequence[Step], held_rights: HeldRights) -> Iterator[tuple[Step, Right]]:
    """The steps with a right on their resource that we lack according to the cluster."""
    for step in steps:
        name = _get_topic(step)
        operations = held_rights.cluster if name is None else held_rights.topics.get(name)
        operation = _find_operation(step, name)
        if operations is not None and operation is not None and operation not in operations:
            yield (
                step,
                (operation, "Cluster", CLUSTER) if name is None else (operation, "Topic", name),
            )


def _may_succeed_anyway(right: Right, held_rights: HeldRights) -> bool:
    """True if the step can succeed without this right."""
    # Delete on the cluster is enough to delete a topic. While it is unknown whether we have it, the
    # broker decides.
    operation, kind, _ = right
    return kind == "Topic" and operation == "Delete" and held_rights.every_topic is not False


def _grants(step: Step, principal: str | None) -> bool:
    if step.request.name != _GRANTING or step.payload["acl_permission_type"] != "Allow":
        return False
    return principal is None or step.payload["acl_principal"] in (principal, EVERYBODY)


def _get_topic(step: Step) -> str | None:
    """The topic on which this step needs a right; None for other objects."""
    api = APIS.get(step.request.name)
    if api is None or not api.reports_right or api.on is RightTarget.CLUSTER:
        return None
    if api.on is RightTarget.CONFIGS and step.payload.get("resource", "topic") != "topic":
        return None
    return str(step.payload["name"])


def _find_operation(step: Step, topic: str | None) -> str | None:
    """The operation that the step needs on this topic, or without a topic on the cluster; None if
    the cluster does not report it."""
    api = APIS.get(step.request.name)
    if api is None or not api.reports_right:
        return None
    if topic is None and api.on is RightTarget.CONFIGS and step.payload.get("resource") == "group":
        return None
    return api.operation or None


def _make_fault(api: str, right: Right, held_rights: HeldRights, principal: str | None) -> Fault:
    operation, kind, name = right
    resource, code = (
        ("Cluster", _CLUSTER_DENIED) if kind == "Cluster" else (f"Topic {name}", _TOPIC_DENIED)
    )
    denied = held_rights.denied.get(right)
    return Fault(
        code_name(code),
        f"{principal or 'the current user'} lacks {operation} on {resource}"
        + (f", because of the ACL {denied}" if denied else ""),
        FaultClass.PERMISSION,
        api,
        _choose_advice(denied, name_right(api, name, code)) + _explain_unseen(right, held_rights),
    )


def _choose_advice(denied: str | None, right: str) -> str:
    # No ALLOW is stronger than a DENY.
    if denied:
        return "delete that ACL, or run as a principal to which it does not apply"
    return f"grant {right}, or run as a principal that has it"


def _explain_unseen(right: Right, held_rights: HeldRights) -> str:
    """Advice for a principal with Delete on Cluster that cannot see its own right."""
    if not held_rights.hidden or right[:2] != ("Delete", "Topic"):
        return ""
    return "; if it has Delete on Cluster, grant Describe on Cluster, so that kafkaform can see it"


def name_operations(codes: Set[int] | None) -> Set[str] | None:
    """The names of these operations; None for None."""
    return None if codes is None else frozenset(decode_operations(codes))


def read_held(context: ClusterContext, steps: Sequence[Step]) -> HeldRights:
    """The rights that these steps need, as far as the cluster reports them. Never raises."""
    return explain_missing(context, steps, _ask_rights(context, steps))


def explain_missing(
    context: ClusterContext, steps: Sequence[Step], rights: HeldRights
) -> HeldRights:
    """The same rights, with what ACLs say about those that these steps lack. Never raises."""
    wanting = tuple(dict.fromkeys(right for _, right in find_missing(steps, rights)))
    if not wanting:
        return rights
    live = list_live_acls(context)
    if isinstance(live, Fault):
        # Delete implies Describe, so a missing Describe on the cluster shows that Delete is missing
        # as well, unless a DENY takes only Describe away.
        hidden = rights.cluster is not None and "Describe" not in rights.cluster
        return replace(rights, every_topic=False if hidden else None, hidden=hidden)
    access = _build_authorizer(live, context.facts, rights.cluster)
    me = context.facts.principal
    whole = AccessVerdict.DENIED
    if "Delete" in access.every_topic:
        whole = authorize(access, AccessQuestion(me, None, "Delete", "Cluster", CLUSTER)).verdict
    deciding = {right: authorize(access, AccessQuestion(me, None, *right)) for right in wanting}
    return replace(
        rights,
        every_topic=None if whole is AccessVerdict.UNKNOWN else whole is AccessVerdict.ALLOWED,
        denied={
            right: describe_acl(decision.acl)
            for right, decision in deciding.items()
            if decision.acl is not None and decision.verdict is AccessVerdict.DENIED
        },
    )


def _build_authorizer(acls: Sequence[Acl], facts: Facts, cluster: Set[str] | None) -> Access:
    index = index_acls(acls)
    rule = read_setting("allow_if_no_acl", facts)
    # If no ACL covers the cluster, our rights on it show what allow.everyone.if.no.acl.found is.
    # We are not a super user, because a right is missing.
    if rule is None and cluster is not None and not has_acl(index, "Cluster", CLUSTER):
        rule = bool(cluster)
    return Access(index, frozenset(), rule, zookeeper=bool(KafkaFacts.of(facts).zookeeper))


def _ask_rights(context: ClusterContext, steps: Sequence[Step]) -> HeldRights:
    operations = attempt(
        "DescribeCluster", lambda: read_cluster_operations(context.wire, context.timeout)
    )
    cluster = None if isinstance(operations, Fault) else name_operations(operations)
    names = list_step_topics(steps)
    if not names:
        return HeldRights(cluster, {})
    rows = attempt(
        "Metadata", lambda: list_topics(context.wire, names, context.timeout, operations=True)
    )
    if isinstance(rows, Fault):
        return HeldRights(cluster, {})
    return HeldRights(cluster, list_operations(rows))


def list_operations(rows: Sequence[TopicRow]) -> Mapping[str, Set[str]]:
    """Topic -> our operations on it."""
    # A topic without any operation does not exist, or is hidden: that says nothing.
    return {
        row.name: frozenset(name_operations(row.operations) or ())
        for row in rows
        if row.code == 0 and row.operations
    }
