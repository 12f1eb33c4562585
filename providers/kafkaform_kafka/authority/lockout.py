"""The lock-out guard: finds ACL changes that take rights from the principal that runs the plan.

While a plan runs, its principal must keep the rights to see and change ACLs, and those that later
steps need. After the plan, it must still see what the state manages, and be able to change it. The
order of ACL changes is in architecture §4.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Action, Change
from kafkaform.core.resource import Facts, Identity

from ..kinds.acl.resource_type import DELETE_FIRST
from ..kinds.kind import KindRights
from ..protocol import acl as acls
from ..protocol.acl import ALLOW, CLUSTER, DENY, EVERYTHING, PREFIXED, Acl
from ..protocol.cluster_facts import KafkaFacts
from .authorizer import (
    EVERYBODY,
    Access,
    AccessQuestion,
    AccessVerdict,
    AclIndex,
    Decision,
    Need,
    decide,
    find_covering,
    fits,
    has_acl,
    index_acls,
    to_cluster_question,
)
from .permissions import OwnPrincipal

Right = tuple[str, str, str]
"""operation, resource type, resource name."""

_ALTER, _DESCRIBE = ("Alter", "Cluster", CLUSTER), ("Describe", "Cluster", CLUSTER)
_KEEPS = frozenset({Action.CREATE, Action.UPDATE, Action.ADOPT, Action.IMPORT, Action.NOOP})


class Lockout(Struct, frozen=True):
    """A change that takes, or may take, a right from the principal that runs the plan."""

    text: str
    """What it takes and why that matters, one sentence."""
    fix: str
    """What the user can do."""
    certain: bool
    """False if something that decides about it is unknown, or if the right can be given back: the
    user can accept it then."""


class GuardedPlan(Struct, frozen=True):
    """The plan that the guard judges."""

    changes: Sequence[Change]
    """All changes of the plan."""
    created: Mapping[Identity, Acl]
    """The ACLs that it creates."""
    deleted: Mapping[Identity, Acl]
    """The ACLs that it deletes."""
    rights: Mapping[str, KindRights]
    """Kind -> the rights on its objects; kinds without a row are not guarded."""
    maybe_open: bool = False
    """A resource without ACLs may be open: nothing declares it, and we act without any ACL."""


class Moment(Struct, frozen=True):
    """The ACL changes that have taken effect at some moment of the apply."""

    created: Mapping[Identity, Acl]
    deleted: Mapping[Identity, Acl]

    def access(self, live: frozenset[Acl], new: frozenset[Acl], rules: Access) -> Access:
        """The authorizer at this moment. live, new: the ACLs that it is asked about, as far as they
        are there before the plan, and as far as the plan creates them; rules: its settings."""
        remaining = live.difference(self.deleted.values())
        return replace(
            rules, index=index_acls((*remaining, *new.intersection(self.created.values())))
        )


def find_lockouts(
    plan: GuardedPlan, before: Access, me: OwnPrincipal, facts: Facts
) -> Iterator[tuple[Identity, Lockout]]:
    """The changes that take, or may take, a right that this plan or the next one needs."""
    # No ACL stops a super user.
    if me.root:
        return
    own_access = me.access(before)
    needed = {
        right: reason
        for right, reason in _list_needed_rights(plan).items()
        if _has_right(right, own_access, me)
    }
    created = index_acls(plan.created.values())
    live, new = (
        frozenset(acl for right in needed for acl in _find_acls(index, right, before))
        for index in (before.index, created)
    )
    for moment in _list_moments(plan.created, plan.deleted, facts):
        during = moment.access(live, new, own_access)
        for right, reason in needed.items():
            decision = decide(during, AccessQuestion(me.principal, None, *right))
            if decision.verdict is not AccessVerdict.ALLOWED:
                for identity in _find_culprits(moment, right, own_access, me):
                    yield identity, _make_lockout(right, reason, decision, me)


def _list_needed_rights(plan: GuardedPlan) -> dict[Right, str]:
    """Right -> why it is needed."""
    needed = {
        _ALTER: "only somebody else could undo it",
        _DESCRIBE: "no later plan could read the ACLs",
    }
    for change in plan.changes:
        rights = plan.rights.get(change.identity.kind)
        if rights is None or not rights.deletes:
            continue
        if change.action is Action.DELETE and change.blocked is None:
            right = (rights.deletes, rights.resource_type, _get_resource_name(rights, change))
            needed.setdefault(right, f"the deletion of {change.address} needs it later")
    return needed


def _get_resource_name(rights: KindRights, change: Change) -> str:
    return CLUSTER if rights.resource_type == "Cluster" else change.identity.key


def _has_right(right: Right, access: Access, me: OwnPrincipal) -> bool:
    """True if the cluster reports the right, or if its ACLs do not refuse it."""
    # In doubt we have it, since otherwise the plan could not run at all.
    operation, kind, _ = right
    if kind == "Cluster" and me.cluster is not None:
        return operation in me.cluster
    return (
        decide(access, AccessQuestion(me.principal, None, *right)).verdict
        is not AccessVerdict.DENIED
    )


def _list_moments(
    created: Mapping[Identity, Acl], deleted: Mapping[Identity, Acl], facts: Facts
) -> Iterator[Moment]:
    """The sets of ACLs that are in force one after the other while the plan runs."""
    # First the deletes ahead (`delete_first`), then the creates, then the other deletes, each time
    # ALLOW before DENY. An apply can stop after any of them.
    patterns = {acl.pattern for acl in created.values()}
    early = KafkaFacts.of(facts).acl_order == DELETE_FIRST
    ahead = {i: acl for i, acl in deleted.items() if early and acl.pattern in patterns}
    if ahead:
        yield Moment({}, _select_allows(ahead))
        yield Moment({}, ahead)
    yield Moment(created, ahead)
    yield Moment(created, {**ahead, **_select_allows(deleted)})
    yield Moment(created, deleted)


def _select_allows(acl_by_identity: Mapping[Identity, Acl]) -> dict[Identity, Acl]:
    return {identity: acl for identity, acl in acl_by_identity.items() if acl.permission == ALLOW}


def _find_culprits(
    moment: Moment, right: Right, access: Access, me: OwnPrincipal
) -> Iterator[Identity]:
    """The changes without which we would keep the right."""
    operation, kind, name = right
    # The first ACL of an open resource closes it for everybody whom it does not name.
    closes = access.allow_if_no_acl is not False and not has_acl(access.index, kind, name)
    for identity, acl in moment.created.items():
        denies = acl.permission == DENY and _concerns(acl, operation, me)
        if _covers(acl, right) and (closes or denies):
            yield identity
    for identity, acl in moment.deleted.items():
        allowed = acl.permission == ALLOW and _concerns(acl, operation, me)
        if _covers(acl, right) and allowed:
            yield identity
    first = _cluster_right(right, access)
    if first is not None:
        yield from _find_culprits(moment, first, access, me)


def _cluster_right(right: Right, access: Access) -> Right | None:
    """The right on the cluster that is enough instead, if there is one."""
    question = AccessQuestion(None, None, *right)
    first = to_cluster_question(question, zookeeper=access.zookeeper)
    return None if first is None else (first.operation, first.resource_type, first.resource_name)


def _find_acls(index: AclIndex, right: Right, access: Access) -> Iterator[Acl]:
    """The ACLs of this index that decide about this right. access: the authorizer."""
    for _, kind, name in filter(None, (right, _cluster_right(right, access))):
        for bucket in find_covering(index, kind, name):
            for bucket_acls in bucket.values():
                yield from bucket_acls


# ── what later plans need ───────────────────────────────────────────────────────────────


def find_sight_losses(
    plan: GuardedPlan,
    before: Access,
    after: Access,
    me: OwnPrincipal,
    reported: Mapping[tuple[str, str], frozenset[str]],
) -> Iterator[tuple[Identity, Lockout]]:
    """The changes after which we could no longer see or change what the state manages.

    reported: (resource type, name) -> our operations on it as the cluster reports them.
    """
    if me.root:
        return
    # Topics that the cluster reports are checked too: with --target, a plan does not contain
    # everything that the state manages.
    end = Moment(
        _select_takers(plan.created, DENY, before, me),
        _select_takers(plan.deleted, ALLOW, before, me),
    )
    taking = index_acls((*end.created.values(), *end.deleted.values()))
    denying = index_acls(acl for acl in end.created.values() if acl.permission == DENY)
    collected = _collect_rights(plan)
    visible = {
        ("Describe", *resource): ("", True)
        for resource, operations in reported.items()
        if "Describe" in operations
    }
    concerned = [
        (right, reason) for right, reason in collected.items() if has_acl(taking, *right[1:])
    ]
    concerned += [
        (r, w) for r, w in visible.items() if r not in collected and has_acl(denying, *r[1:])
    ]
    access_before, access_after = me.access(before), me.access(after)
    for right, (address, sees) in concerned:
        decision = _judge_right(
            right, access_before, access_after, me, reported, maybe_open=plan.maybe_open
        )
        if decision is not None:
            for identity in _find_culprits(end, right, access_before, me):
                yield identity, _make_sight_lockout(right, address, sees, decision, me)


def _select_takers(
    acl_by_identity: Mapping[Identity, Acl], permission: str, before: Access, me: OwnPrincipal
) -> dict[Identity, Acl]:
    """The changed ACLs that can take a right from us: those with this permission, and the first
    ones of resources that can be open."""
    return {
        identity: acl
        for identity, acl in acl_by_identity.items()
        if (acl.permission == permission and acl.principal in (me.principal, EVERYBODY))
        or (permission == DENY and before.allow_if_no_acl is not False)
    }


def _collect_rights(plan: GuardedPlan) -> dict[Right, tuple[str, bool]]:
    """Right -> the address that needs it, and whether it is needed to see the object."""
    collected: dict[Right, tuple[str, bool]] = {}
    for change in plan.changes:
        rights = plan.rights.get(change.identity.kind)
        if rights is None or change.action not in _KEEPS:
            continue
        name = _get_resource_name(rights, change)
        for operation in (*rights.sees, *rights.changes):
            right = (operation, rights.resource_type, name)
            collected.setdefault(right, (change.address, operation in rights.sees))
    return collected


def find_hiding(
    hidden: Sequence[Change],
    changes: Sequence[Change],
    rights: Mapping[str, KindRights],
    principal: str | None,
) -> Iterator[tuple[Identity, Change, Acl]]:
    """Hidden objects, each with the change of an ACL of the same state that hides it.

    hidden: changes of objects that could not be read; changes: all changes of the plan.
    """
    denies = {
        acl: change
        for change in changes
        if change.identity.kind == acls.KIND and change.action is not Action.CREATE
        for acl in [acls.parse_acl_key(change.identity.key)]
        if acl.permission == DENY and acl.principal in (principal, EVERYBODY)
    }
    denied = index_acls(denies)
    for change in hidden:
        needed = rights.get(change.identity.kind)
        if needed is None:
            continue
        buckets = find_covering(denied, needed.resource_type, _get_resource_name(needed, change))
        near = (acl for bucket in buckets for bucket_acls in bucket.values() for acl in bucket_acls)
        acl = next(
            (acl for acl in near if any(fits(acl, question) for question in needed.sees)), None
        )
        if acl is not None:
            yield change.identity, denies[acl], acl


def _judge_right(
    right: Right,
    before: Access,
    after: Access,
    me: OwnPrincipal,
    reported: Mapping[tuple[str, str], frozenset[str]],
    *,
    maybe_open: bool,
) -> Decision | None:
    """The decision by which we lose the right; None if we keep it, or never had it."""
    operation, kind, name = right
    question = AccessQuestion(me.principal, None, *right)
    now, then = decide(before, question).verdict, decide(after, question)
    if now is AccessVerdict.DENIED or then.verdict is AccessVerdict.ALLOWED:
        return None
    # While allow_if_no_acl is undeclared, only an ACL or the cluster's report proves that we have
    # the right now.
    if then.verdict is AccessVerdict.DENIED:
        certain = now is AccessVerdict.ALLOWED or operation in reported.get((kind, name), ())
        return then if certain else None
    for is_open in (False, True) if maybe_open else (False,):
        had, has = (
            decide(assume_settings(access, is_open=is_open), question).verdict
            for access in (before, after)
        )
        if (had, has) == (AccessVerdict.ALLOWED, AccessVerdict.DENIED):
            return then
    return None


def assume_settings(access: Access, *, is_open: bool = False) -> Access:
    """The authorizer without unknown settings: no super users and, unless told otherwise, closed
    resources, which are Kafka's defaults."""
    rule = access.allow_if_no_acl
    return replace(
        access,
        super_users=access.super_users or frozenset(),
        allow_if_no_acl=is_open if rule is None else rule,
    )


def _make_sight_lockout(
    right: Right, address: str, sees: bool, decision: Decision, me: OwnPrincipal
) -> Lockout:
    if not address:
        reason = "if this state manages it, no later plan could see it"
    elif sees:
        reason = f"no later plan could see {address}"
    else:
        reason = f"no later plan could change {address}"
    lockout = _make_lockout(right, reason, decision, me)
    if not lockout.certain or (sees and address):
        return lockout
    fix = "Add an ACL that keeps the right, or accept the risk with --accept access-unproven."
    return Lockout(lockout.text, fix, certain=False)


def _concerns(acl: Acl, operation: str, me: OwnPrincipal) -> bool:
    return fits(acl, operation) and (
        me.principal is None or acl.principal in (me.principal, EVERYBODY)
    )


def _covers(acl: Acl, right: Right) -> bool:
    _, kind, name = right
    if acl.resource_type != kind:
        return False
    if acl.pattern_type == PREFIXED:
        return name.startswith(acl.resource_name)
    return acl.resource_name in (name, EVERYTHING)


def _make_lockout(right: Right, reason: str, decision: Decision, me: OwnPrincipal) -> Lockout:
    operation, kind, name = right
    owner = f"{me.principal}, which runs this plan" if me.principal else "the current principal"
    right_words = f"{operation} on {kind} {name}"
    if decision.verdict is AccessVerdict.DENIED:
        return Lockout(
            f"it would take {right_words} from {owner}: {reason}",
            "Add an ACL that keeps the right, or run as a principal that does not need it.",
            certain=True,
        )
    missing = ", ".join(_DECLARE[need] for need in decision.needs)
    return Lockout(
        f"it may take {right_words} from {owner}: {reason}",
        f"{missing}, or accept the risk with --accept access-unproven.",
        certain=False,
    )


_DECLARE: Mapping[Need, str] = {
    Need.SUPER_USERS: "set authorizer { super_users } in the provider block",
    Need.ALLOW_IF_NO_ACL: "set authorizer { allow_if_no_acl } in the provider block",
    Need.PRINCIPAL: "set principal in the provider block",
    Need.HOST: "add an ACL that does not depend on the address",
}
"""Missing fact -> how to provide it."""
