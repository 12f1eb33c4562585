"""Decides who may do what, by the rules of Kafka's authorizer and controller.

Source: StandardAuthorizerData, AclEntry and ControllerApis of Kafka 4.3; for clusters with
ZooKeeper, AclAuthorizer and KafkaApis of Kafka 3.9. The first rule that fits
decides:

1. A super user may do everything.
2. A matching DENY refuses.
3. A matching ALLOW permits.
4. If no ACL covers the resource, `allow.everyone.if.no.acl.found` decides.
5. Everything else is refused.

A decision that depends on something unknown is UNKNOWN, with the `Need`s that would settle it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from ..protocol.acl import (
    ALLOW,
    CLUSTER,
    DENY,
    EVERY_TOPIC,
    EVERYTHING,
    LITERAL,
    PREFIXED,
    Acl,
    is_known,
)
from ..protocol.acl import EVERYBODY as EVERYBODY

ALL = "All"
# Authorizer.authorizeByResourceType asks about a topic with this name.
SOME_TOPIC = "hardcode"
"""The topic that stands for any topic."""

# Only an ALLOW implies other operations; a DENY of Read leaves Describe alone.
IMPLIED_BY: Mapping[str, frozenset[str]] = {
    "Describe": frozenset({"Describe", "Read", "Write", "Delete", "Alter"}),
    "DescribeConfigs": frozenset({"DescribeConfigs", "AlterConfigs"}),
}
"""Operation -> the operations whose ALLOW also permits it."""


class AccessVerdict(StrEnum):
    """The answer to an access question."""

    ALLOWED = "allowed"
    DENIED = "denied"
    UNKNOWN = "unknown"


class DecisionRule(StrEnum):
    """The rule that decided."""

    SUPER_USER = "super user"
    ACL = "acl"
    NO_ACL = "no acl covers the resource"
    NO_MATCH = "no acl of the resource fits"
    OWN = "own tokens"
    UNDECLARED = "undeclared"


# DescribeConfigs reports super.users and allow.everyone.if.no.acl.found as sensitive, without a
# value. So only the provider block can declare them.
class Need(StrEnum):
    """A fact that is missing for a decision."""

    SUPER_USERS = "super_users"
    ALLOW_IF_NO_ACL = "allow_if_no_acl"
    PRINCIPAL = "principal"
    HOST = "host"


class AccessQuestion(Struct, frozen=True):
    """May this principal, connected from this host, do this?"""

    principal: str | None
    """None if it is unknown."""
    host: str | None
    """The address as Java writes it, IPv6 in full; None if it is unknown."""
    operation: str
    resource_type: str
    resource_name: str


class Decision(Struct, frozen=True):
    """The answer to an access question, with its reasons."""

    verdict: AccessVerdict
    rule: DecisionRule
    acl: Acl | None = None
    """The ACL that decides, the most specific of several."""
    needs: tuple[Need, ...] = ()
    """The facts that would settle an UNKNOWN."""
    on_cluster: bool = False
    """True if a right on the cluster decides a question about a topic."""
    on_topic: bool = False
    """True if Write on some topic decides a question about the cluster (KIP-679)."""


Bucket = Mapping[str, tuple[Acl, ...]]
"""Principal -> its ACLs on one resource pattern."""


class AclIndex(Struct, frozen=True):
    """ACLs by resource type and name."""

    literal: Mapping[tuple[str, str], Bucket]
    prefixed: Mapping[tuple[str, str], Bucket]
    lengths: Mapping[str, tuple[int, ...]]
    """Resource type -> the lengths of all prefixes, sorted."""
    writers: Bucket
    """The ACLs of all topics that concern Write."""


class Access(Struct, frozen=True):
    """Everything that an authorizer decides by."""

    index: AclIndex
    super_users: frozenset[str] | None = None
    """None if they are not declared."""
    allow_if_no_acl: bool | None = None
    """`allow.everyone.if.no.acl.found`, None if it is not declared."""
    zookeeper: bool = False
    """Brokers with ZooKeeper decide (AclAuthorizer and KafkaApis of Kafka 3.9)."""

    @property
    def every_topic(self) -> Set[str]:
        """The operations whose right on the cluster applies to every topic."""
        return select_for_every_topic(zookeeper=self.zookeeper)


def index_acls(acls: Iterable[Acl]) -> AclIndex:
    """Index these ACLs, without those that have codes newer than this version."""
    tables: dict[str, dict[tuple[str, str], dict[str, list[Acl]]]] = {LITERAL: {}, PREFIXED: {}}
    writers: dict[str, list[Acl]] = {}
    for acl in dict.fromkeys(acls):
        if not is_known(acl):
            continue
        bucket = tables[acl.pattern_type].setdefault((acl.resource_type, acl.resource_name), {})
        bucket.setdefault(acl.principal, []).append(acl)
        if acl.resource_type == "Topic" and fits(acl, "Write"):
            writers.setdefault(acl.principal, []).append(acl)
    lengths: dict[str, set[int]] = {}
    for kind, prefix in tables[PREFIXED]:
        lengths.setdefault(kind, set()).add(len(prefix))
    literal, prefixed = (
        {key: _freeze_bucket(bucket) for key, bucket in table.items()} for table in tables.values()
    )
    sizes = {kind: tuple(sorted(prefix_lengths)) for kind, prefix_lengths in lengths.items()}
    return AclIndex(literal, prefixed, sizes, _freeze_bucket(writers))


def _freeze_bucket(bucket: Mapping[str, Sequence[Acl]]) -> Bucket:
    return {principal: tuple(acls) for principal, acls in bucket.items()}


def find_covering(index: AclIndex, resource_type: str, name: str) -> list[Bucket]:
    """The ACLs of every pattern that covers this resource, for whatever principal."""
    # Also for others: the first ACL of a resource closes it for everybody whom no ACL names.
    buckets = [index.literal.get((resource_type, name))]
    for length in index.lengths.get(resource_type, ()):
        if length <= len(name):
            buckets.append(index.prefixed.get((resource_type, name[:length])))
    # Kafka's search in the sorted ACLs misses the wildcard for names that start with `*`.
    if not name.startswith(EVERYTHING):
        buckets.append(index.literal.get((resource_type, EVERYTHING)))
    return [bucket for bucket in buckets if bucket is not None]


def has_acl(index: AclIndex, resource_type: str, name: str) -> bool:
    """True if any ACL covers this resource."""
    return bool(find_covering(index, resource_type, name))


def select_for_every_topic(*, zookeeper: bool) -> Set[str]:
    """The operations whose right on the cluster applies to every topic."""
    # The controller of KRaft asks about the cluster before it deletes a topic
    # (ControllerApis.handleDeleteTopics), a broker with ZooKeeper only about the topic
    # (KafkaApis.handleDeleteTopicsRequest). Both ask about it before they create one.
    return EVERY_TOPIC - {"Delete"} if zookeeper else EVERY_TOPIC


def to_cluster_question(
    question: AccessQuestion, *, zookeeper: bool = False
) -> AccessQuestion | None:
    """The question about the cluster that Kafka asks before one about a topic: a yes decides."""
    every_topic = select_for_every_topic(zookeeper=zookeeper)
    if question.resource_type != "Topic" or question.operation not in every_topic:
        return None
    return replace(question, resource_type="Cluster", resource_name=CLUSTER)


def to_topics_question(question: AccessQuestion) -> AccessQuestion | None:
    """The question about any topic that Kafka asks after one about the cluster: a yes decides."""
    # Since Kafka 2.8 an idempotent producer needs no IdempotentWrite if it may Write to some topic.
    if question.resource_type != "Cluster" or question.operation != "IdempotentWrite":
        return None
    return replace(question, operation="Write", resource_type="Topic", resource_name=SOME_TOPIC)


def decide(access: Access, question: AccessQuestion) -> Decision:
    """Whether Kafka executes the request, and why.

    Delete on a topic means to delete the topic. Deleting records needs Delete on the topic itself:
    use `authorize` for that.
    """
    own = authorize(access, question)
    if own.rule is DecisionRule.SUPER_USER:
        return own
    if question.resource_type == "User":
        return _decide_tokens(own, question)
    first = to_cluster_question(question, zookeeper=access.zookeeper)
    later = to_topics_question(question)
    if first is not None:
        whole = replace(authorize(access, first), on_cluster=True)
        return _combine_decisions((whole, own), own)
    if later is not None:
        topic_decision = replace(authorize_any(access, later), on_topic=True)
        return _combine_decisions((own, topic_decision), own)
    return own


def _combine_decisions(alternatives: tuple[Decision, Decision], own: Decision) -> Decision:
    """The answer if one of two rights is enough. own: the one on the resource of the question."""
    for decision in alternatives:
        if decision.verdict is AccessVerdict.ALLOWED:
            return decision
    unsure = [decision for decision in alternatives if decision.verdict is AccessVerdict.UNKNOWN]
    if len(unsure) < 2:
        return unsure[0] if unsure else own
    needs = tuple(need for need in Need if any(need in decision.needs for decision in unsure))
    acl = own.acl or next((decision.acl for decision in unsure if decision.acl), None)
    return replace(own, acl=acl, needs=needs)


def _decide_tokens(own: Decision, question: AccessQuestion) -> Decision:
    """The answer about delegation tokens of a user (KIP-373)."""
    # Brokers do not ask the authorizer about one's own tokens.
    if question.principal == question.resource_name:
        return Decision(AccessVerdict.ALLOWED, DecisionRule.OWN)
    if question.principal is None and own.verdict is AccessVerdict.DENIED:
        return Decision(AccessVerdict.UNKNOWN, DecisionRule.UNDECLARED, own.acl, (Need.PRINCIPAL,))
    return own


def authorize_any(access: Access, question: AccessQuestion) -> Decision:
    """The authorizer's answer to whether a principal may Write to some topic, whichever it is.

    Source: Authorizer.authorizeByResourceType, and AclAuthorizer's own. A DENY of every topic
    refuses; otherwise an ALLOW permits unless a DENY covers its whole pattern.
    """
    # The first question is about SOME_TOPIC. It lets in super users, and everybody if no ACL covers
    # that name and allow.everyone.if.no.acl.found is true.
    usual = authorize(access, question)
    if usual.verdict is AccessVerdict.ALLOWED:
        return usual
    sure, perhaps = _select_fitting((access.index.writers,), question)
    # AclAuthorizer asks about no name: in an open cluster, only a DENY of every topic refuses.
    denies = sure[DENY] + perhaps[DENY]
    if access.zookeeper and access.allow_if_no_acl and not any(map(_is_wild, denies)):
        return Decision(AccessVerdict.ALLOWED, DecisionRule.NO_ACL)
    worst = _find_undenied(sure[ALLOW], denies)
    if worst is not None:
        return Decision(AccessVerdict.ALLOWED, DecisionRule.ACL, worst)
    best = _find_undenied(sure[ALLOW] + perhaps[ALLOW], sure[DENY])
    if best is None:
        return usual
    root = is_super(access, question.principal)
    answer = Decision(AccessVerdict.ALLOWED, DecisionRule.ACL, best)
    open_needs = _find_needs(question, root, [*perhaps[ALLOW], *perhaps[DENY]], answer)
    needs = tuple(need for need in Need if need in (*open_needs, *usual.needs))
    return Decision(AccessVerdict.UNKNOWN, DecisionRule.UNDECLARED, usual.acl, needs)


def _find_undenied(allows: Sequence[Acl], denies: Sequence[Acl]) -> Acl | None:
    """The most specific ALLOW that still permits to write to some topic, or None."""
    # Kafka compares patterns only: a DENY of all topics that exist does not take away a prefix.
    if any(map(_is_wild, denies)):
        return None
    denied = {(acl.pattern_type, acl.resource_name) for acl in denies}
    free = [acl for acl in allows if _is_wild(acl) or not _is_covered(acl, denied)]
    return min(free, key=_rank_acl, default=None)


def _is_covered(allow: Acl, denied: Set[tuple[str, str]]) -> bool:
    name = allow.resource_name
    return (allow.pattern_type == LITERAL and (LITERAL, name) in denied) or any(
        (PREFIXED, name[:size]) in denied for size in range(1, len(name) + 1)
    )


def _is_wild(acl: Acl) -> bool:
    return acl.pattern_type == LITERAL and acl.resource_name == EVERYTHING


def authorize(access: Access, question: AccessQuestion) -> Decision:
    """The authorizer's answer about one resource, and why."""
    root = is_super(access, question.principal)
    if root:
        return Decision(AccessVerdict.ALLOWED, DecisionRule.SUPER_USER)
    buckets = find_covering(access.index, question.resource_type, question.resource_name)
    sure, perhaps = _select_fitting(buckets, question)
    # In the worst and in the best case of what is unknown: it is certain only if both agree.
    rule = access.allow_if_no_acl
    worst = _decide_by_acls(sure[ALLOW], sure[DENY] + perhaps[DENY], buckets, rule is True)
    if worst.verdict is AccessVerdict.ALLOWED:
        return worst
    best = _decide_by_acls(sure[ALLOW] + perhaps[ALLOW], sure[DENY], buckets, rule is not False)
    if root is False and best.verdict is AccessVerdict.DENIED:
        return best
    needs = _find_needs(question, root, [*perhaps[ALLOW], *perhaps[DENY]], best)
    return Decision(AccessVerdict.UNKNOWN, DecisionRule.UNDECLARED, worst.acl, needs)


def is_super(access: Access, principal: str | None) -> bool | None:
    """True for a super user; None if that is unknown."""
    if access.super_users is None:
        return None
    if principal is None:
        return None if access.super_users else False
    return principal in access.super_users


def fits(acl: Acl, operation: str) -> bool:
    """True if the ACL applies to this operation."""
    if acl.operation in (ALL, operation):
        return True
    return acl.permission == ALLOW and acl.operation in IMPLIED_BY.get(operation, ())


def _select_fitting(
    buckets: Sequence[Bucket], question: AccessQuestion
) -> tuple[dict[str, list[Acl]], dict[str, list[Acl]]]:
    """Permission -> the ACLs that certainly fit, and those that fit if what is unknown does."""
    sure: dict[str, list[Acl]] = {ALLOW: [], DENY: []}
    perhaps: dict[str, list[Acl]] = {ALLOW: [], DENY: []}
    principal, host = question.principal, question.host
    for acl in _select_for_principal(buckets, principal):
        if not fits(acl, question.operation):
            continue
        certain = acl.host in (EVERYTHING, host) and acl.principal in (EVERYBODY, principal)
        if certain:
            sure[acl.permission].append(acl)
        elif host is None or acl.host in (EVERYTHING, host):
            perhaps[acl.permission].append(acl)
    return sure, perhaps


def _select_for_principal(buckets: Sequence[Bucket], principal: str | None) -> Iterator[Acl]:
    for bucket in buckets:
        for name in bucket if principal is None else {principal, EVERYBODY}:
            yield from bucket.get(name, ())


def _decide_by_acls(
    allows: Sequence[Acl], denies: Sequence[Acl], buckets: Sequence[Bucket], open_: bool
) -> Decision:
    """The answer for anybody but super users. open_: `allow.everyone.if.no.acl.found`."""
    if denies:
        return Decision(AccessVerdict.DENIED, DecisionRule.ACL, min(denies, key=_rank_acl))
    if allows:
        return Decision(AccessVerdict.ALLOWED, DecisionRule.ACL, min(allows, key=_rank_acl))
    if buckets:
        return Decision(AccessVerdict.DENIED, DecisionRule.NO_MATCH)
    return Decision(AccessVerdict.ALLOWED if open_ else AccessVerdict.DENIED, DecisionRule.NO_ACL)


def _rank_acl(acl: Acl) -> tuple[object, ...]:
    """A sort key: the most specific ACL first."""
    return (
        _is_wild(acl),
        acl.pattern_type == PREFIXED,
        -len(acl.resource_name),
        acl.principal == EVERYBODY,
        acl.host == EVERYTHING,
        acl.operation == ALL,
        acl.principal,
        acl.operation,
        acl.host,
    )


def _find_needs(
    question: AccessQuestion, root: bool | None, perhaps: Sequence[Acl], best: Decision
) -> tuple[Need, ...]:
    unsure = {
        Need.SUPER_USERS: root is None and question.principal is not None,
        Need.ALLOW_IF_NO_ACL: best.rule is DecisionRule.NO_ACL
        and best.verdict is AccessVerdict.ALLOWED,
        Need.PRINCIPAL: question.principal is None,
        Need.HOST: any(acl.host != EVERYTHING for acl in perhaps) and question.host is None,
    }
    return tuple(need for need, missing in unsure.items() if missing)


def list_principals(access: Access, question: AccessQuestion) -> tuple[str, ...]:
    """All super users, and all principals in ACLs that can decide the question, sorted."""
    named = set(access.super_users or ())
    later = to_topics_question(question)
    first = to_cluster_question(question, zookeeper=access.zookeeper)
    for checked in (question, first, later):
        if checked is not None:
            buckets = find_covering(access.index, checked.resource_type, checked.resource_name)
            named.update(principal for bucket in buckets for principal in bucket)
    if later is not None:
        named.update(access.index.writers)
    if question.resource_type == "User" and ":" in question.resource_name:
        named.add(question.resource_name)
    return tuple(sorted(named))


def list_acls(access: Access, resource_type: str, name: str) -> tuple[Acl, ...]:
    """All ACLs that cover the resource, the most specific first."""
    buckets = find_covering(access.index, resource_type, name)
    return tuple(sorted((a for b in buckets for acls in b.values() for a in acls), key=_rank_acl))
