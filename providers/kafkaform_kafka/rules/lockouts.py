"""Blocks ACL changes that take rights from the principal that runs the plan, that open a resource
to everybody, or whose effect is unknown. It also names the ACL that hides an object."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Block, Finding, Level
from kafkaform.core.resource import Identity
from kafkaform.core.rule import Scene
from kafkaform.core.value import EMPTY

from ..authority import lockout
from ..authority.acl_changes import AclChanges, Opening
from ..authority.authorizer import Access
from ..authority.calibration import OwnPrincipal, list_rights
from ..authority.lockout import GuardedPlan, find_lockouts, find_sight_losses
from ..kinds.kind import KindRights
from ..protocol import acl as acls
from ..protocol import listings
from ..protocol.acl import DENY, describe_acl
from . import access_rows as rows

Findings = Iterator[tuple[Identity | None, Finding]]


class AccessPlan(Struct, frozen=True):
    """The ACL changes of a plan, and what is known about the cluster that decides by them."""

    scene: Scene
    rights: Mapping[str, KindRights]
    """Kind -> the rights on its objects that a plan must not take from its own principal."""
    acls: AclChanges
    before: Access
    """The authorizer before the plan."""
    after: Access
    """The authorizer after the plan."""
    me: OwnPrincipal
    maybe_open: bool
    """Resources without ACLs may be open: nothing declares it, and we act without any ACL."""
    new_topics: frozenset[str]
    """The topics that the plan creates."""


def block_unread(changes: Sequence[Change]) -> Findings:
    """Blocks of the ACL changes that can take rights, because the other ACLs are unknown."""
    for change in changes:
        acl = acls.parse_acl(change.before or change.after or EMPTY)
        if change.action is Action.DELETE or acl.permission == DENY:
            text = "the ACLs could not be read, so it is unknown which rights this takes"
            yield change.identity, rows.UNREAD.find(text)
    if changes:
        text = "the ACLs could not be read, so the plan cannot show who gains or loses access"
        yield None, rows.UNREAD.find(text, level=Level.CAUTION)


def find_own_losses(plan: AccessPlan) -> Findings:
    """Blocks of the changes that take, or may take, rights from the principal that runs the plan:
    for each change the first of either kind."""
    scene, me = plan.scene, plan.me
    created, deleted = plan.acls.created, plan.acls.deleted
    guarded = GuardedPlan(scene.changes, created, deleted, plan.rights, plan.maybe_open)
    reported = list_rights(scene.sweeps.get(listings.RIGHTS))
    blocks: dict[tuple[Identity, bool], Finding] = {}
    for identity, loss in (
        *find_lockouts(guarded, plan.before, me, scene.facts),
        *find_sight_losses(guarded, plan.before, plan.after, me, reported),
    ):
        rule = rows.OWN_LOST if loss.certain else rows.UNPROVEN
        blocks.setdefault((identity, loss.certain), rule.find(loss.text, fix=loss.fix))
    certain_first = sorted(blocks.items(), key=lambda item: not item[0][1])
    yield from ((identity, finding) for (identity, _), finding in certain_first)


def block_unproven(identities: Iterable[Identity]) -> Findings:
    """Blocks of all ACL changes, because the cluster contradicts the simulated authorizer."""
    for identity in identities:
        yield (
            identity,
            rows.UNPROVEN.find(
                "the cluster's decisions do not follow from its ACLs, so the effect is unknown",
                fix="Find the cause, or accept the risk with --accept access-unproven.",
            ),
        )


def block_opening(opening: Opening, *, declared: bool) -> Finding:
    """The block of a change that deletes the last ACL of a resource. declared: it is known that
    resources without ACLs are open."""
    reason = "because allow.everyone.if.no.acl.found is true"
    fix = None
    if not declared:
        reason = "if allow.everyone.if.no.acl.found is true, which is not declared"
        fix = (
            "Keep an ACL there, set authorizer { allow_if_no_acl = false } if that is the case, "
            "or accept the risk with --accept access-opened."
        )
    return rows.OPENED.find(
        f"it is the last ACL of {opening.resource}: {opening.change.text}, {reason}",
        fix=fix,
        access=opening.change.rows,
    )


# ── hidden objects ──────────────────────────────────────────────────────────────────────


def find_hiding(rights: Mapping[str, KindRights], scene: Scene) -> Findings:
    """For each object that cannot be read, the managed ACL that hides it from our own principal.

    rights: kind -> the rights on its objects.
    """
    hidden = [change for change in scene.changes if change.block is Block.UNREADABLE]
    if not hidden:
        return
    pairs = lockout.find_hiding(hidden, scene.changes, rights, scene.facts.principal)
    for identity, change, acl in pairs:
        deleted = change.action is Action.DELETE and change.blocked is None
        fix = f"apply --target='{change.address}' first"
        deletion = f", which this plan deletes: {fix}" if deleted else ""
        text = f"{describe_acl(acl)} hides it ({change.address}{deletion})"
        yield identity, rows.HIDDEN.find(text)
