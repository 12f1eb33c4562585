"""Who may do what, decided as Kafka's brokers and controllers decide it.

Source: StandardAuthorizerData, AclEntry and ControllerApis of Kafka 4.3. The authorizer: super
users may do everything; else one matching DENY refuses; else one matching ALLOW permits; else,
where no ACL at all covers the resource, `allow.everyone.if.no.acl.found` decides; else the answer
is no. An ACL covers a resource whoever it is for, so the first ACL of a resource closes it for
everybody whom it does not name.

Whoever creates or deletes a topic needs Create or Delete on the cluster or on the topic: the
controller asks the authorizer about the cluster first, and about the topic only if that is a no.
An idempotent producer needs IdempotentWrite on the cluster, or Write on any topic (KIP-679). Tokens
of oneself need no right.

Brokers do not tell their super users and their rule for resources without ACLs, and a session may
not know its principal or its address. What hangs on such a thing is UNKNOWN: the question is
answered twice, as well and as badly as it can be, and only what is the same both times is certain.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from enum import StrEnum

from msgspec import Struct
from msgspec.structs import replace

from ..kinds.acl.resource_type import ALLOW, CLUSTER, DENY, EVERYTHING, Acl, is_known
from ..kinds.acl.resource_type import EVERY_TOPIC as EVERY_TOPIC
from ..kinds.acl.resource_type import OPERATIONS as OPERATIONS
from ..kinds.acl.resource_type import SUPPORTED as SUPPORTED

EVERYBODY = "User:*"
ALL = "All"
LITERAL, PREFIXED = "Literal", "Prefixed"
SOME_TOPIC = "hardcode"
"""The topic that authorizers ask about when they are asked about any."""

IMPLIED_BY: Mapping[str, frozenset[str]] = {
    "Describe": frozenset({"Describe", "Read", "Write", "Delete", "Alter"}),
    "DescribeConfigs": frozenset({"DescribeConfigs", "AlterConfigs"}),
}
"""Operation -> the operations whose ALLOW permits it too. A DENY implies nothing."""


class AccessVerdict(StrEnum):
    ALLOWED = "allowed"
    DENIED = "denied"
    UNKNOWN = "unknown"


class DecisionRule(StrEnum):
    """What decided."""

    SUPER_USER = "super user"
    ACL = "acl"
    NO_ACL = "no acl covers the resource"
    NO_MATCH = "no acl of the resource fits"
    OWN = "own tokens"
    UNDECLARED = "undeclared"


class Need(StrEnum):
    """What would have to be known for a decision."""

    SUPER_USERS = "super_users"
    ALLOW_IF_NO_ACL = "allow_if_no_acl"
    PRINCIPAL = "principal"
    HOST = "host"


class AccessQuestion(Struct, frozen=True):
    """May `principal`, connected from `host`, do this? None: it is not known who or where from.
    host: as Java writes an address, IPv6 in full."""

    principal: str | None
    host: str | None
    operation: str
    resource_type: str
    resource_name: str


class Decision(Struct, frozen=True):
    """acl: the one that decides, the most special of several; needs: what leaves it UNKNOWN;
    on_cluster: it rests on rights on the cluster, although the question is about a topic; on_topic:
    it rests on Write on some topic, although the question is about the cluster."""

    verdict: AccessVerdict
    rule: DecisionRule
    acl: Acl | None = None
    needs: tuple[Need, ...] = ()
    on_cluster: bool = False
    on_topic: bool = False


Bucket = Mapping[str, tuple[Acl, ...]]
"""principal -> its ACLs on one resource pattern."""


class AclIndex(Struct, frozen=True):
    """ACLs by (resource type, name); lengths: of the prefixes that there are, by type; writers:
    those of all topics that are about Write."""

    literal: Mapping[tuple[str, str], Bucket]
    prefixed: Mapping[tuple[str, str], Bucket]
    lengths: Mapping[str, tuple[int, ...]]
    writers: Bucket


class Access(Struct, frozen=True):
    """Everything that an authorizer decides by; None: not declared."""

    index: AclIndex
    super_users: frozenset[str] | None = None
    allow_if_no_acl: bool | None = None


def index_acls(acls: Iterable[Acl]) -> AclIndex:
    """The ACLs in the form in which questions are answered fast; those with words that are newer
    than this version are left out."""
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
    sizes = {kind: tuple(sorted(found)) for kind, found in lengths.items()}
    return AclIndex(literal, prefixed, sizes, _freeze_bucket(writers))


def _freeze_bucket(bucket: Mapping[str, Sequence[Acl]]) -> Bucket:
    return {who: tuple(found) for who, found in bucket.items()}


def find_covering(index: AclIndex, resource_type: str, name: str) -> Iterator[Bucket]:
    """The ACLs of every pattern that covers this resource, whoever they are for."""
    yield from _find_bucket(index.literal, resource_type, name)
    for length in index.lengths.get(resource_type, ()):
        if length > len(name):
            break
        yield from _find_bucket(index.prefixed, resource_type, name[:length])
    # Kafka's search passes over the wildcard for names that begin with its own character.
    if not name.startswith(EVERYTHING):
        yield from _find_bucket(index.literal, resource_type, EVERYTHING)


def has_acl(index: AclIndex, resource_type: str, name: str) -> bool:
    """Whether there is any ACL for this resource."""
    return next(find_covering(index, resource_type, name), None) is not None


def _find_bucket(
    table: Mapping[tuple[str, str], Bucket], resource_type: str, name: str
) -> Iterator[Bucket]:
    bucket = table.get((resource_type, name))
    if bucket is not None:
        yield bucket


def to_cluster_question(question: AccessQuestion) -> AccessQuestion | None:
    """What is asked about the cluster before the topic: a yes to it is the answer."""
    if question.resource_type != "Topic" or question.operation not in EVERY_TOPIC:
        return None
    return replace(question, resource_type="Cluster", resource_name=CLUSTER)


def to_topics_question(question: AccessQuestion) -> AccessQuestion | None:
    """What is asked about all topics together after the cluster: a yes to it is the answer too."""
    if question.resource_type != "Cluster" or question.operation != "IdempotentWrite":
        return None
    return replace(question, operation="Write", resource_type="Topic", resource_name=SOME_TOPIC)


def decide(access: Access, question: AccessQuestion) -> Decision:
    """Whether a client gets its way, and what that rests on. Delete on a topic is to delete the
    topic; deleting records asks for Delete on the topic alone, which is `authorize`."""
    own = authorize(access, question)
    if own.rule is DecisionRule.SUPER_USER:
        return own
    if question.resource_type == "User":
        return _decide_tokens(own, question)
    first, later = to_cluster_question(question), to_topics_question(question)
    if first is not None:
        whole = replace(authorize(access, first), on_cluster=True)
        return _combine_decisions((whole, own), own)
    if later is not None:
        some = replace(authorize_any(access, later), on_topic=True)
        return _combine_decisions((own, some), own)
    return own


def _combine_decisions(asked: tuple[Decision, Decision], own: Decision) -> Decision:
    """The answer where two rights open the same door, asked for in this order; own: the one on the
    resource of the question."""
    for one in asked:
        if one.verdict is AccessVerdict.ALLOWED:
            return one
    unsure = [one for one in asked if one.verdict is AccessVerdict.UNKNOWN]
    if len(unsure) < 2:
        return unsure[0] if unsure else own
    needs = tuple(need for need in Need if any(need in one.needs for one in unsure))
    acl = own.acl or next((one.acl for one in unsure if one.acl), None)
    return replace(own, acl=acl, needs=needs)


def _decide_tokens(own: Decision, question: AccessQuestion) -> Decision:
    """Everybody makes and sees tokens of his own, for which no broker asks the authorizer."""
    if question.principal == question.resource_name:
        return Decision(AccessVerdict.ALLOWED, DecisionRule.OWN)
    if question.principal is None and own.verdict is AccessVerdict.DENIED:
        return Decision(AccessVerdict.UNKNOWN, DecisionRule.UNDECLARED, own.acl, (Need.PRINCIPAL,))
    return own


def authorize_any(access: Access, question: AccessQuestion) -> Decision:
    """The authorizer's answer to whether somebody may Write to some topic, whichever it is.

    Source: Authorizer.authorizeByResourceType. It asks about a topic of a fixed name first, which
    lets super users in, and everybody where no ACL covers that name. Then a DENY of every topic
    refuses, else an ALLOW of every topic permits, else an ALLOW that no DENY takes away as a whole.
    """
    usual = authorize(access, question)
    if usual.verdict is AccessVerdict.ALLOWED:
        return usual
    sure, perhaps = _select_fitting((access.index.writers,), question)
    worst = _find_undenied(sure[ALLOW], sure[DENY] + perhaps[DENY])
    if worst is not None:
        return Decision(AccessVerdict.ALLOWED, DecisionRule.ACL, worst)
    best = _find_undenied(sure[ALLOW] + perhaps[ALLOW], sure[DENY])
    if best is None:
        return usual
    root = is_super(access, question.principal)
    answer = Decision(AccessVerdict.ALLOWED, DecisionRule.ACL, best)
    found = _find_needs(question, root, [*perhaps[ALLOW], *perhaps[DENY]], answer)
    needs = tuple(need for need in Need if need in (*found, *usual.needs))
    return Decision(AccessVerdict.UNKNOWN, DecisionRule.UNDECLARED, usual.acl, needs)


def _find_undenied(allows: Sequence[Acl], denies: Sequence[Acl]) -> Acl | None:
    """The ALLOW that lets somebody write to a topic, the most special of several: one of every
    topic, or one of a pattern that no DENY covers, told by the patterns alone."""
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
    """The authorizer's answer about one resource, and what it rests on."""
    root = is_super(access, question.principal)
    if root:
        return Decision(AccessVerdict.ALLOWED, DecisionRule.SUPER_USER)
    buckets = tuple(find_covering(access.index, question.resource_type, question.resource_name))
    sure, perhaps = _select_fitting(buckets, question)
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
    """Whether this is a super user; None: it cannot be told."""
    if access.super_users is None:
        return None
    if principal is None:
        return None if access.super_users else False
    return principal in access.super_users


def fits(acl: Acl, operation: str) -> bool:
    """Whether the ACL is about this operation."""
    if acl.operation in (ALL, operation):
        return True
    return acl.permission == ALLOW and acl.operation in IMPLIED_BY.get(operation, ())


def _select_fitting(
    buckets: Sequence[Bucket], question: AccessQuestion
) -> tuple[dict[str, list[Acl]], dict[str, list[Acl]]]:
    """permission -> the ACLs that fit the question for sure, and those that fit if the unknown
    principal or host is theirs."""
    sure: dict[str, list[Acl]] = {ALLOW: [], DENY: []}
    perhaps: dict[str, list[Acl]] = {ALLOW: [], DENY: []}
    principal, host = question.principal, question.host
    for acl in _select_for_principal(buckets, principal):
        if not fits(acl, question.operation):
            continue
        known = acl.host in (EVERYTHING, host) and acl.principal in (EVERYBODY, principal)
        if known:
            sure[acl.permission].append(acl)
        elif host is None or acl.host in (EVERYTHING, host):
            perhaps[acl.permission].append(acl)
    return sure, perhaps


def _select_for_principal(buckets: Sequence[Bucket], principal: str | None) -> Iterator[Acl]:
    for bucket in buckets:
        for who in bucket if principal is None else {principal, EVERYBODY}:
            yield from bucket.get(who, ())


def _decide_by_acls(
    allows: Sequence[Acl], denies: Sequence[Acl], buckets: Sequence[Bucket], open_: bool
) -> Decision:
    """What the authorizer says to one who is no super user. open_: its rule where no ACL is."""
    if denies:
        return Decision(AccessVerdict.DENIED, DecisionRule.ACL, min(denies, key=_rank_acl))
    if allows:
        return Decision(AccessVerdict.ALLOWED, DecisionRule.ACL, min(allows, key=_rank_acl))
    if buckets:
        return Decision(AccessVerdict.DENIED, DecisionRule.NO_MATCH)
    return Decision(AccessVerdict.ALLOWED if open_ else AccessVerdict.DENIED, DecisionRule.NO_ACL)


def _rank_acl(acl: Acl) -> tuple[object, ...]:
    """The order in which one of several ACLs is named: the most special one first."""
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
    """Everybody whom the super users or the ACLs that decide the question name, sorted."""
    named = set(access.super_users or ())
    later = to_topics_question(question)
    for asked in (question, to_cluster_question(question), later):
        if asked is not None:
            buckets = find_covering(access.index, asked.resource_type, asked.resource_name)
            named.update(who for bucket in buckets for who in bucket)
    if later is not None:
        named.update(access.index.writers)
    if question.resource_type == "User" and ":" in question.resource_name:
        named.add(question.resource_name)
    return tuple(sorted(named))


def list_acls(access: Access, resource_type: str, name: str) -> tuple[Acl, ...]:
    """Every ACL that covers the resource, the most special first."""
    buckets = find_covering(access.index, resource_type, name)
    return tuple(sorted((a for b in buckets for found in b.values() for a in found), key=_rank_acl))
