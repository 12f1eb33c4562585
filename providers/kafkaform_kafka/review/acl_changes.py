"""Reviews the ACL changes of a plan: who gains and loses what, and which changes are blocked.

A change is blocked if it takes rights from the principal that runs the plan, if it opens a resource
by deleting its last ACL, or if the cluster contradicts the simulated authorizer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Action, Change
from kafkaform.core.legacy import Blocker, BlockerKind, Review, Risk, RiskKind
from kafkaform.core.resource import CoverageKind, Depth, Facts, Identity, Sweep
from kafkaform.core.value import EMPTY

from ..authority.authorizer import (
    PREFIXED,
    SOME_TOPIC,
    Access,
    AccessQuestion,
    AccessVerdict,
    decide,
    has_acl,
    index_acls,
)
from ..authority.calibration import OwnPrincipal, find_mismatches, identify_self, list_rights
from ..authority.effects import OTHER, Effect, compute_effect, describe_pattern
from ..authority.lockout import UNPROVEN_ACCESS, GuardedPlan, find_lockouts, find_sight_losses
from ..authority.permissions import IDEMPOTENT
from ..authority.probes import AccessPair, pair_access
from ..kinds.acl import resource_type as acls
from ..kinds.acl.resource_type import DENY, Acl
from ..kinds.kind import KindRights
from ..kinds.topic import resource_type as topics
from ..protocol import rights

FoundBlocks = Iterator[tuple[Identity, Blocker]]

OPEN_ACCESS = "open-access"
"""The waiver for deleting the last ACL of a resource (`--accept-open-access`)."""
MANY = 5
"""From this many ACL changes on, a warning sums up who gains and loses."""
SHOWN = 5
"""Principals that the summary names."""


class AclChanges(Struct, frozen=True):
    """The ACL changes of a plan."""

    created: Mapping[Identity, Acl]
    deleted: Mapping[Identity, Acl]
    live: tuple[Acl, ...]
    """The ACLs of the cluster before the plan."""

    @property
    def after(self) -> tuple[Acl, ...]:
        """The ACLs of the cluster after the plan."""
        gone = set(self.deleted.values())
        return (*(acl for acl in self.live if acl not in gone), *self.created.values())


def needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """The listings that `review` needs: all ACLs, our own rights, and the names of topics if an
    ACL is deleted."""
    actions = {change.action for change in changes if is_acl_change(change)}
    if not actions:
        return {}
    names = {topics.KIND: Depth.NAMES} if Action.DELETE in actions else {}
    return {acls.KIND: Depth.FULL, rights.KIND: Depth.FULL, **names}


def review(
    changes: Sequence[Change],
    sweeps: Mapping[str, Sweep],
    facts: Facts,
    kind_rights: Mapping[str, KindRights],
) -> Review:
    """Blocks, notes, losses and warnings of all ACL changes."""
    mine = [change for change in changes if is_acl_change(change)]
    sweep = sweeps.get(acls.KIND)
    if not mine:
        return Review()
    if sweep is None or sweep.coverage.kind is not CoverageKind.COMPLETE:
        return Review(blocks=dict(_block_unread(mine)), warnings=(UNREAD,))
    plan = collect_acls(mine, sweep)
    before, after = (build_access(found, facts) for found in (plan.live, plan.after))
    me = identify_self(before, sweeps.get(rights.KIND), facts)
    effects = _compute_effects(plan, before, after)
    guarded = GuardedPlan(changes, plan.created, plan.deleted, kind_rights)
    caught = [
        *find_lockouts(guarded, before, me, facts),
        *find_sight_losses(guarded, before, after, me, list_rights(sweeps.get(rights.KIND))),
    ]
    wrong = find_mismatches(before, me, sweeps.get(rights.KIND))
    return Review(
        blocks=_select_first((identity, block) for identity, block in caught if not block.waiver),
        unless=_group_by_waiver(
            (
                *(pair for pair in caught if pair[1].waiver),
                *((identity, UNPROVEN) for identity in effects if wrong),
                *_find_openings(plan, before, after, me, sweeps.get(topics.KIND)),
            )
        ),
        notes={identity: found.notes for identity, found in effects.items()},
        risks={
            identity: tuple(Risk(RiskKind.ACCESS, harm) for harm in found.harms)
            for identity, found in effects.items()
            if found.harms
        },
        losses={identity: found.losses for identity, found in effects.items() if found.losses},
        warnings=(
            *wrong,
            *_warn_unread_words(plan.live),
            *_warn_undeclared(facts),
            *_summarize_effects(effects),
        ),
    )


UNREAD = "The ACLs could not be read, so the plan cannot show who gains or loses access."


def is_acl_change(change: Change) -> bool:
    """True if the plan creates or deletes an ACL."""
    made = change.action in (Action.CREATE, Action.DELETE)
    return change.identity.kind == acls.KIND and made and change.blocked is None


def _block_unread(changes: Sequence[Change]) -> Iterator[tuple[Identity, Blocker]]:
    """Block the changes that can take rights, because the other ACLs are unknown."""
    for change in changes:
        acl = acls.parse_acl(change.before or change.after or EMPTY)
        if change.action is Action.DELETE or acl.permission == DENY:
            reason = "the ACLs could not be read, so it is unknown which rights this takes"
            advice = "run as a principal with Describe on Cluster"
            yield change.identity, Blocker(BlockerKind.GUARD, reason, advice)


def collect_acls(changes: Sequence[Change], sweep: Sweep) -> AclChanges:
    """The ACLs before and after these changes of ACLs. sweep: all ACLs of the cluster."""
    parse = acls.parse_acl
    return AclChanges(
        {c.identity: parse(c.after or EMPTY) for c in changes if c.action is Action.CREATE},
        {c.identity: parse(c.before or EMPTY) for c in changes if c.action is Action.DELETE},
        tuple(parse(item.attributes) for item in sweep.items),
    )


def build_access(found: Iterable[Acl], facts: Facts) -> Access:
    """The authorizer with these ACLs, and with what the provider block declares of it."""
    declared = facts.values.get("authorizer") or EMPTY
    supers = declared.get("super_users")
    return Access(
        index_acls(found),
        None if supers is None else frozenset(supers),
        declared.get("allow_if_no_acl"),
    )


# ── gains and losses ────────────────────────────────────────────────────────────────────


def _compute_effects(plan: AclChanges, before: Access, after: Access) -> dict[Identity, Effect]:
    worlds = _assume_defaults(before, after)
    made = {**dict.fromkeys(plan.created, True), **dict.fromkeys(plan.deleted, False)}
    found = {**plan.created, **plan.deleted}
    effects = {
        identity: compute_effect(found[identity], worlds, created=created)
        for identity, created in made.items()
    }
    for identity, acl in plan.created.items():
        closed = _note_closed(acl, effects[identity], before, after)
        effects[identity] = _note_closed_to_producers(acl, closed, before, after)
    for identity, acl in plan.deleted.items():
        effects[identity] = _note_open(acl, effects[identity], before, after)
    return effects


def _assume_defaults(before: Access, after: Access) -> AccessPair:
    """The authorizers with Kafka's defaults for what is not declared; a warning says so."""
    return pair_access(
        *(
            Access(one.index, one.super_users or frozenset(), one.allow_if_no_acl is True)
            for one in (before, after)
        )
    )


def _warn_unread_words(live: Sequence[Acl]) -> tuple[str, ...]:
    unknown = sum(not acls.is_known(acl) for acl in live)
    if not unknown:
        return ()
    return (
        f"The cluster has {unknown} ACL{'s' if unknown > 1 else ''} with codes that are newer than "
        "this version; they are ignored here.",
    )


def _warn_undeclared(facts: Facts) -> tuple[str, ...]:
    # Brokers report super.users and allow.everyone.if.no.acl.found as sensitive, without a value.
    declared = facts.values.get("authorizer") or EMPTY
    missing = [n for n in _ASSUMPTIONS if declared.get(n) is None]
    unknown = []
    if missing:
        assumed = " and ".join(_ASSUMPTIONS[n] for n in missing)
        unknown.append(
            f"The access changes in this plan assume that {assumed}. Brokers do not expose this: "
            f"set authorizer {{ {', '.join(missing)} }} in the provider block."
        )
    if facts.principal is None:
        unknown.append(
            "The current principal is unknown, so kafkaform cannot recognise every lock-out: set "
            "principal in the provider block."
        )
    return tuple(unknown)


_ASSUMPTIONS: Mapping[str, str] = {
    "super_users": "there are no super users",
    "allow_if_no_acl": "a resource without ACLs is closed",
}
"""Setting of `authorizer` -> what is assumed without it."""


def _summarize_effects(effects: Mapping[Identity, Effect]) -> tuple[str, ...]:
    if len(effects) < MANY:
        return ()
    gain = sorted({who for found in effects.values() for who in found.gainers})
    lose = sorted({who for found in effects.values() for who in found.losers})
    said = [
        f"{verb} {_join_names(who)}"
        for verb, who in (("grant access to", gain), ("take access from", lose))
        if who
    ]
    partial = any(found.partial for found in effects.values())
    more = " Not all affected principals were checked." if partial else ""
    text = " and ".join(said) or "change nobody's access"
    return (f"{len(effects)} ACL changes {text}.{more}",)


def _join_names(who: Sequence[str]) -> str:
    more = len(who) - SHOWN
    return ", ".join(who[:SHOWN]) + (f" and {more} more" if more > 0 else "")


def _note_closed(acl: Acl, found: Effect, before: Access, after: Access) -> Effect:
    """Add that the first ACL of an open resource takes access from everybody else."""
    if before.allow_if_no_acl is not True or not _is_only_acl(acl, after, before):
        return found
    closed = f"everybody without an ACL loses access to {describe_pattern(acl)}, which was open"
    if acl.resource_type == "Cluster":
        closed += ", and can no longer create and delete topics that have ACLs"
    # The controller asks about the cluster before the topic.
    elif acl.resource_type == "Topic" and not has_acl(after.index, "Cluster", acls.CLUSTER):
        closed += ", but can still create and delete it, because the cluster has no ACL"
    return replace(found, harms=(*found.harms, closed), losses=(*found.losses, closed))


def _note_open(acl: Acl, found: Effect, before: Access, after: Access) -> Effect:
    """Add that deleting the last ACL of a resource opens it to everybody."""
    if before.allow_if_no_acl is not True or not _is_only_acl(acl, before, after):
        return found
    more = ", and may create and delete every topic" if acl.resource_type == "Cluster" else ""
    opened = f"everybody gains everything on {describe_pattern(acl)}{more}"
    return replace(found, notes=(*found.notes, opened))


def _note_closed_to_producers(acl: Acl, found: Effect, before: Access, after: Access) -> Effect:
    """Add that the first ACL of SOME_TOPIC shuts out idempotent producers of all topics."""
    # Brokers ask whether a producer may write to SOME_TOPIC (KIP-679). In an open cluster that is a
    # yes for everybody until an ACL covers that name.
    if before.allow_if_no_acl is not True or acl.resource_name == acls.EVERYTHING:
        return found
    if acl.resource_type != "Topic" or not has_acl(index_acls([acl]), "Topic", SOME_TOPIC):
        return found
    somebody = AccessQuestion(f"User:{OTHER}", OTHER, IDEMPOTENT, "Cluster", acls.CLUSTER)
    had, has = (decide(one, somebody).verdict for one in (before, after))
    if had is not AccessVerdict.ALLOWED or has is AccessVerdict.ALLOWED:
        return found
    shut = (
        "everybody without an ACL for Write loses IdempotentWrite for all topics, because brokers "
        f"check it on a topic with the name '{SOME_TOPIC}'"
    )
    return replace(found, harms=(*found.harms, shut), losses=(*found.losses, shut))


def _is_only_acl(acl: Acl, one: Access, other: Access) -> bool:
    """True if the resource of the ACL has an ACL in `one` and none in `other`."""
    kind, name = acl.resource_type, _generalize_name(acl)
    return has_acl(one.index, kind, name) and not has_acl(other.index, kind, name)


def _generalize_name(acl: Acl) -> str:
    """A name that this ACL covers, but no narrower pattern."""
    if acl.pattern_type == PREFIXED:
        return acl.resource_name + OTHER
    return OTHER if acl.resource_name == acls.EVERYTHING else acl.resource_name


# ── blocks with a waiver ────────────────────────────────────────────────────────────────


def _find_openings(
    plan: AclChanges, before: Access, after: Access, me: OwnPrincipal, live: Sweep | None
) -> FoundBlocks:
    for identity, acl in plan.deleted.items():
        opened = _find_opened(acl, before, after, me, live)
        if opened:
            more = ", and create and delete every topic" * (acl.resource_type == "Cluster")
            yield identity, _make_open_block(opened, more, before.allow_if_no_acl)


def _select_first(found: FoundBlocks) -> dict[Identity, Blocker]:
    blocks: dict[Identity, Blocker] = {}
    for identity, block in found:
        blocks.setdefault(identity, block)
    return blocks


def _group_by_waiver(
    found: Iterable[tuple[Identity, Blocker]],
) -> dict[Identity, tuple[Blocker, ...]]:
    """The first block of each change for each waiver."""
    blocks: dict[Identity, dict[str, Blocker]] = {}
    for identity, block in found:
        blocks.setdefault(identity, {}).setdefault(block.waiver, block)
    return {identity: tuple(by_waiver.values()) for identity, by_waiver in blocks.items()}


UNPROVEN = Blocker(
    BlockerKind.GUARD,
    "the cluster's decisions do not follow from its ACLs (see the warning), so the effect is "
    "unknown",
    "find the cause, or accept the risk with --accept-unproven-access",
    UNPROVEN_ACCESS,
)


def _make_open_block(what: str, more: str, rule: bool | None) -> Blocker:
    """more: further things that everybody may do then."""
    why = (
        "because allow.everyone.if.no.acl.found is true"
        if rule
        else "if allow.everyone.if.no.acl.found is true, which is not declared"
    )
    return Blocker(
        BlockerKind.GUARD,
        f"it is the last ACL of {what}: everybody may then do everything with it{more}, {why}",
        "keep an ACL there"
        + ("" if rule else ", set authorizer { allow_if_no_acl = false } if that is the case,")
        + " or accept the risk with --accept-open-access",
        OPEN_ACCESS,
    )


def _find_opened(
    acl: Acl, before: Access, after: Access, me: OwnPrincipal, live: Sweep | None
) -> str:
    """The resource that has an ACL now and none after the plan; empty if there is none."""
    if before.allow_if_no_acl is False:
        return ""
    kind = acl.resource_type
    general = _generalize_name(acl)
    for name in (general, *_list_live_topics(acl, live)):
        lost = has_acl(before.index, kind, name) and not has_acl(after.index, kind, name)
        if lost and _may_exist(kind, name, before, me, live):
            return describe_pattern(acl) if name == general else f"{kind} {name}"
    return ""


def _list_live_topics(acl: Acl, live: Sweep | None) -> Iterator[str]:
    """The live topics that an ACL with a wide pattern covers."""
    if acl.resource_type != "Topic" or not _generalize_name(acl).endswith(OTHER):
        return
    prefix = _generalize_name(acl).removesuffix(OTHER)
    for item in live.items if live else ():
        if item.identity.key.startswith(prefix):
            yield item.identity.key


def _may_exist(kind: str, name: str, before: Access, me: OwnPrincipal, live: Sweep | None) -> bool:
    """True unless it is certain that the resource does not exist."""
    # A listing hides topics that we may not describe, so it proves nothing about those.
    if kind != "Topic" or live is None or live.coverage.kind is CoverageKind.FAILED:
        return True
    if any(item.identity.key == name for item in live.items):
        return True
    question = AccessQuestion(me.principal, None, "Describe", kind, name)
    return not me.root and decide(me.access(before), question).verdict is not AccessVerdict.ALLOWED
