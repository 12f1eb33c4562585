"""Reads our own rights on the cluster and on topics (KIP-430), and explains missing ones by ACLs.

If we may read the ACLs, they show which ACL denies a right, and whether we may delete every topic.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from msgspec.structs import replace

from kafkaform.core.change import Step
from kafkaform.core.resource import Facts, Fault

from ..cluster.context import ClusterContext, attempt
from ..kinds.acl.requests import list_live_acls
from ..protocol.acl import CLUSTER, Acl, describe_acl
from ..wire.cluster import read_cluster_operations
from ..wire.topics import TopicRow, list_topics
from .acl_changes import read_setting
from .authorizer import Access, AccessQuestion, AccessVerdict, authorize, has_acl, index_acls
from .required_rights import HeldRights, find_missing, list_step_topics, name_operations


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
    return Access(index, frozenset(), rule, zookeeper=bool(facts.values.get("zookeeper")))


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
