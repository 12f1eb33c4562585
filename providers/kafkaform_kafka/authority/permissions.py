"""Lists all operations that a principal may execute on a resource, in one look at its ACLs.

It is the quick way to what `authorizer.decide` says about one operation after the other, for those
who know the principal, the host, and the rules that brokers do not report.
"""

from __future__ import annotations

from collections.abc import Mapping, Set

from ..protocol.acl import ALLOW, CLUSTER, EVERYTHING, OPERATIONS
from .authorizer import (
    ALL,
    EVERYBODY,
    IMPLIED_BY,
    Access,
    AccessQuestion,
    AccessVerdict,
    decide,
    find_covering,
)

# Delete on a topic permits two things: to delete the topic, for which Delete on the cluster is
# enough, and to delete records (KIP-107), which needs the right on the topic.
RECORDS = "Delete of records"
IDEMPOTENT = "IdempotentWrite"

_EVERY = frozenset(OPERATIONS)
_NONE: frozenset[str] = frozenset()
_DENIED: Mapping[str, frozenset[str]] = {
    name: _EVERY if name == ALL else frozenset({name}) for name in OPERATIONS
}
"""Operation -> the operations that a DENY of it refuses."""
_ALLOWED: Mapping[str, frozenset[str]] = {
    name: denied | {implied for implied, by in IMPLIED_BY.items() if name in by}
    for name, denied in _DENIED.items()
}
"""Operation -> the operations that an ALLOW of it permits."""


def list_allowed(
    access: Access,
    principal: str,
    host: str,
    resource_type: str,
    name: str,
    *,
    topics: bool,
    idempotent: bool,
) -> Set[str]:
    """The operations that Kafka executes.

    topics: whether to look also at rights on the cluster that apply to every topic; idempotent:
    whether to look also for a topic that the principal may write to. What is not declared of the
    authorizer counts as Kafka's default.
    """
    own = _list_authorized(access, principal, host, resource_type, name)
    if resource_type == "Topic" and topics:
        whole = _list_authorized(access, principal, host, "Cluster", CLUSTER)
        return own | (whole & access.every_topic) | ({RECORDS} if "Delete" in own else _NONE)
    if resource_type == "User" and principal == name:
        return _EVERY
    if resource_type == "Cluster" and idempotent and IDEMPOTENT not in own:
        question = AccessQuestion(principal, host, IDEMPOTENT, resource_type, name)
        return (
            own | {IDEMPOTENT} if decide(access, question).verdict is AccessVerdict.ALLOWED else own
        )
    return own


def _list_authorized(
    access: Access, principal: str, host: str, resource_type: str, name: str
) -> Set[str]:
    """The operations that `authorize` allows."""
    if access.super_users and principal in access.super_users:
        return _EVERY
    buckets = find_covering(access.index, resource_type, name)
    if not buckets:
        return _EVERY if access.allow_if_no_acl else _NONE
    allowed: set[str] = set()
    denied: set[str] = set()
    for bucket in buckets:
        for subject in (principal, EVERYBODY):
            for acl in bucket.get(subject, ()):
                if acl.host not in (EVERYTHING, host):
                    continue
                if acl.permission == ALLOW:
                    allowed |= _ALLOWED[acl.operation]
                else:
                    denied |= _DENIED[acl.operation]
    return allowed - denied
