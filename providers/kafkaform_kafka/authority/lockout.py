"""A plan must not saw off the branch it sits on: whoever runs it keeps the rights to change and
see ACLs, and those that its later steps need, at every moment in between. Afterwards it still sees
all that it manages, and may still change it.

Source of the order of ACL changes: architecture §4.6.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Action, Blocker, BlockerKind, Change
from kafkaform.core.resource import Facts, Identity

from ..kinds.acl import resource_type as acls
from ..kinds.acl.resource_type import ALLOW, CLUSTER, DELETE_FIRST, DENY, EVERYTHING, Acl
from ..kinds.kind import KindRights
from .authorizer import (
    EVERYBODY,
    PREFIXED,
    Access,
    AccessQuestion,
    AccessVerdict,
    Decision,
    Need,
    decide,
    find_covering,
    fits,
    has_acl,
    index_acls,
    to_cluster_question,
)
from .calibration import OwnPrincipal

Right = tuple[str, str, str]
"""operation, resource type, resource name."""

_ALTER, _DESCRIBE = ("Alter", "Cluster", CLUSTER), ("Describe", "Cluster", CLUSTER)
_KEEPS = frozenset({Action.CREATE, Action.UPDATE, Action.ADOPT, Action.IMPORT, Action.NOOP})

UNPROVEN_ACCESS = "unproven-access"
"""Accepts what cannot be proven to be harmless."""


class GuardedPlan(Struct, frozen=True):
    """What is judged."""

    changes: Sequence[Change]
    """All changes of the plan."""
    created: Mapping[Identity, Acl]
    """The ACLs that it makes."""
    deleted: Mapping[Identity, Acl]
    """The ACLs that it deletes."""
    rights: Mapping[str, KindRights]
    """Kind -> what must be allowed on its objects; kinds without a row are not guarded."""


class Moment(Struct, frozen=True):
    """What the changes have made and deleted at some time while the plan runs."""

    made: Mapping[Identity, Acl]
    gone: Mapping[Identity, Acl]

    def access(self, live: Sequence[Acl], rules: Access) -> Access:
        gone = set(self.gone.values())
        left = (acl for acl in live if acl not in gone)
        return replace(rules, index=index_acls((*left, *self.made.values())))


def find_lockouts(
    plan: GuardedPlan, before: Access, me: OwnPrincipal, facts: Facts
) -> Iterator[tuple[Identity, Blocker]]:
    """The changes that take a right which this plan or the next one needs, or may take it."""
    if me.root:
        return
    mine = me.access(before)
    wanted = {
        right: why
        for right, why in _list_needed_rights(plan).items()
        if _has_right(right, mine, me)
    }
    near = tuple({acl for right in wanted for acl in _find_acls(before, right)})
    for moment in _list_moments(plan.created, plan.deleted, facts):
        during = moment.access(near, mine)
        for right, why in wanted.items():
            decision = decide(during, AccessQuestion(me.principal, None, *right))
            if decision.verdict is not AccessVerdict.ALLOWED:
                for identity in _find_culprits(moment, right, mine, me):
                    yield identity, _make_block(right, why, decision, me)


def _list_needed_rights(plan: GuardedPlan) -> dict[Right, str]:
    """Right -> what needs it."""
    needed = {
        _ALTER: "only others could undo it",
        _DESCRIBE: "no later plan could read the ACLs",
    }
    for change in plan.changes:
        rights = plan.rights.get(change.identity.kind)
        if rights is None or not rights.deletes:
            continue
        if change.action is Action.DELETE and change.blocked is None:
            right = (rights.deletes, rights.resource_type, _get_resource_name(rights, change))
            needed.setdefault(right, f"{change.address} needs it later")
    return needed


def _get_resource_name(rights: KindRights, change: Change) -> str:
    return CLUSTER if rights.resource_type == "Cluster" else change.identity.key


def _has_right(right: Right, access: Access, me: OwnPrincipal) -> bool:
    """What the cluster says, else what its ACLs say; in doubt we have it, or nothing would work."""
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
    """Every set of ACLs that holds for a while: first what is deleted ahead, then the new ones,
    then the other deletes, ALLOW before DENY each time."""
    patterns = {acl.pattern for acl in created.values()}
    early = facts.values.get("acl_order") == DELETE_FIRST
    ahead = {i: acl for i, acl in deleted.items() if early and acl.pattern in patterns}
    if ahead:
        yield Moment({}, _select_allows(ahead))
        yield Moment({}, ahead)
    yield Moment(created, ahead)
    yield Moment(created, {**ahead, **_select_allows(deleted)})
    yield Moment(created, deleted)


def _select_allows(found: Mapping[Identity, Acl]) -> dict[Identity, Acl]:
    return {identity: acl for identity, acl in found.items() if acl.permission == ALLOW}


def _find_culprits(
    moment: Moment, right: Right, access: Access, me: OwnPrincipal
) -> Iterator[Identity]:
    """The changes without which the right would be kept."""
    operation, kind, name = right
    closes = access.allow_if_no_acl is not False and not has_acl(access.index, kind, name)
    for identity, acl in moment.made.items():
        denies = acl.permission == DENY and _concerns(acl, operation, me)
        if _covers(acl, right) and (closes or denies):
            yield identity
    for identity, acl in moment.gone.items():
        allowed = acl.permission == ALLOW and _concerns(acl, operation, me)
        if _covers(acl, right) and allowed:
            yield identity
    first = _cluster_right(right)
    if first is not None:
        yield from _find_culprits(moment, first, access, me)


def _cluster_right(right: Right) -> Right | None:
    """The right on the cluster that would do instead."""
    first = to_cluster_question(AccessQuestion(None, None, *right))
    return None if first is None else (first.operation, first.resource_type, first.resource_name)


def _find_acls(access: Access, right: Right) -> Iterator[Acl]:
    """The ACLs that decide whether we have it."""
    for _, kind, name in filter(None, (right, _cluster_right(right))):
        for bucket in find_covering(access.index, kind, name):
            for found in bucket.values():
                yield from found


# ── what later plans need ───────────────────────────────────────────────────────────────


def find_sight_losses(
    plan: GuardedPlan,
    before: Access,
    after: Access,
    me: OwnPrincipal,
    told: Mapping[tuple[str, str], frozenset[str]],
) -> Iterator[tuple[Identity, Blocker]]:
    """The changes after which we no longer see what the state manages, or may not change it.
    told: resource type and name -> what the cluster says that we may do with it.

    A DENY of sight is also caught where a plan does not say what is managed, as with --target.
    """
    if me.root:
        return
    end = Moment(
        _select_takers(plan.created, DENY, before, me),
        _select_takers(plan.deleted, ALLOW, before, me),
    )
    taking = index_acls((*end.made.values(), *end.gone.values()))
    denying = index_acls(acl for acl in end.made.values() if acl.permission == DENY)
    kept = _collect_rights(plan)
    seen = {("Describe", *one): ("", True) for one, held in told.items() if "Describe" in held}
    found = [(right, why) for right, why in kept.items() if has_acl(taking, *right[1:])]
    found += [(r, w) for r, w in seen.items() if r not in kept and has_acl(denying, *r[1:])]
    mine, then = me.access(before), me.access(after)
    for right, (address, sees) in found:
        decision = _judge_right(right, mine, then, me, told)
        if decision is not None:
            for identity in _find_culprits(end, right, mine, me):
                yield identity, _make_sight_block(right, address, sees, decision, me)


def _select_takers(
    found: Mapping[Identity, Acl], permission: str, before: Access, me: OwnPrincipal
) -> dict[Identity, Acl]:
    """The changed ACLs that may take a right of ours: those with this permission, and the first
    ones of what may stand open."""
    return {
        identity: acl
        for identity, acl in found.items()
        if (acl.permission == permission and acl.principal in (me.principal, EVERYBODY))
        or (permission == DENY and before.allow_if_no_acl is not False)
    }


def _collect_rights(plan: GuardedPlan) -> dict[Right, tuple[str, bool]]:
    """Right -> the address that needs it, and whether to see it."""
    kept: dict[Right, tuple[str, bool]] = {}
    for change in plan.changes:
        rights = plan.rights.get(change.identity.kind)
        if rights is None or change.action not in _KEEPS:
            continue
        name = _get_resource_name(rights, change)
        for operation in (*rights.sees, *rights.changes):
            right = (operation, rights.resource_type, name)
            kept.setdefault(right, (change.address, operation in rights.sees))
    return kept


def is_unreadable(change: Change) -> bool:
    """True if the object could not be read, so that its change is blocked."""
    return change.blocked is not None and change.blocked.kind is BlockerKind.UNREADABLE


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
    known = index_acls(denies)
    for change in hidden:
        needed = rights.get(change.identity.kind)
        if needed is None:
            continue
        buckets = find_covering(known, needed.resource_type, _get_resource_name(needed, change))
        near = (acl for bucket in buckets for found in bucket.values() for acl in found)
        acl = next((acl for acl in near if any(fits(acl, one) for one in needed.sees)), None)
        if acl is not None:
            yield change.identity, denies[acl], acl


def _judge_right(
    right: Right,
    before: Access,
    after: Access,
    me: OwnPrincipal,
    told: Mapping[tuple[str, str], frozenset[str]],
) -> Decision | None:
    """What decides that we lose it, None if we do not, or never had it. Where it is not declared
    what holds without an ACL, only an ACL or the cluster proves that we have it."""
    operation, kind, name = right
    question = AccessQuestion(me.principal, None, *right)
    now, then = decide(before, question).verdict, decide(after, question)
    if now is AccessVerdict.DENIED or then.verdict is AccessVerdict.ALLOWED:
        return None
    if then.verdict is AccessVerdict.DENIED:
        held = now is AccessVerdict.ALLOWED or operation in told.get((kind, name), ())
        return then if held else None
    plain = (decide(_assume_defaults(one), question).verdict for one in (before, after))
    return then if tuple(plain) == (AccessVerdict.ALLOWED, AccessVerdict.DENIED) else None


def _assume_defaults(access: Access) -> Access:
    """What is not declared is taken as Kafka's own default."""
    return Access(access.index, access.super_users or frozenset(), access.allow_if_no_acl is True)


def _make_sight_block(
    right: Right, address: str, sees: bool, decision: Decision, me: OwnPrincipal
) -> Blocker:
    if not address:
        why = "if this state manages it, no later plan could see it"
    elif sees:
        why = f"no later plan could see {address}"
    else:
        why = f"no later plan could change {address}"
    block = _make_block(right, why, decision, me)
    if block.waiver or (sees and address):
        return block
    return replace(
        block,
        advice=f"add an ACL that keeps the right, or accept it with --accept-{UNPROVEN_ACCESS}",
        waiver=UNPROVEN_ACCESS,
    )


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


def _make_block(right: Right, why: str, decision: Decision, me: OwnPrincipal) -> Blocker:
    operation, kind, name = right
    who = me.principal or "the principal that this runs as"
    what = f"{operation} on {kind} {name}"
    if decision.verdict is AccessVerdict.DENIED:
        return Blocker(
            BlockerKind.GUARD,
            f"it would take {what} from {who}, as whom this runs: {why}",
            "add an ACL that keeps the right, or let somebody apply this who does not need it",
        )
    missing = ", ".join(_DECLARE[need] for need in decision.needs)
    return Blocker(
        BlockerKind.GUARD,
        f"it may take {what} from {who}: {why}",
        f"{missing}; or take the risk with --accept-{UNPROVEN_ACCESS}",
        UNPROVEN_ACCESS,
    )


_DECLARE: Mapping[Need, str] = {
    Need.SUPER_USERS: "declare authorizer { super_users } in the provider block",
    Need.ALLOW_IF_NO_ACL: "declare authorizer { allow_if_no_acl } in the provider block",
    Need.PRINCIPAL: "declare principal in the provider block",
    Need.HOST: "add an ACL that does not depend on the address",
}
