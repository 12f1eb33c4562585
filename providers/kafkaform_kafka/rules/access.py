"""Judges the ACL changes of a plan together: who gains and who loses what.

The simulated authorizer (`authority/`) answers for the ACLs before and after the plan. This module
says how much each answer matters. It blocks changes that take rights from the principal that runs
the plan, that open a resource to everybody, or whose effect is unknown, and names the ACL that
hides an object.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import AccessRow, Block, Breadth, Finding, Level
from kafkaform.core.resource import CoverageKind, Depth, Facts, Identity
from kafkaform.core.rule import Needs, Rule, Scene, Survey
from kafkaform.core.value import EMPTY

from ..authority import lockout
from ..authority.acl_changes import (
    AclChanges,
    Opening,
    build_access,
    collect_acls,
    find_closing,
    find_opening,
    find_producers_closing,
    generalize_name,
    is_acl_change,
    read_setting,
)
from ..authority.authorizer import Access
from ..authority.effects import (
    Effect,
    compute_effect,
    drop_covered,
    list_held,
    make_row,
)
from ..authority.lockout import GuardedPlan, assume_settings, find_lockouts, find_sight_losses
from ..authority.permissions import (
    OwnPrincipal,
    Probe,
    acts_without_acls,
    find_mismatches,
    identify_self,
    list_rights,
    pair_access,
)
from ..kinds.acl import resource_type as acls
from ..kinds.kind import KindRights
from ..kinds.topic import resource_type as topics
from ..kinds.user import resource_type as users
from ..protocol import keys
from ..protocol.acl import (
    ALLOW,
    DENY,
    EVERYTHING,
    LISTED_RIGHTS,
    LITERAL,
    OTHER,
    SUPPORTED,
    Acl,
    describe_acl,
    describe_pattern,
    is_known,
    join_words,
    parse_acl,
)
from ..protocol.cluster_facts import KafkaFacts
from . import access_rows as rows

Findings = Iterator[tuple[Identity | None, Finding]]


def list_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """The listings that the surveys need: all ACLs for ACL changes and new logins, our own rights,
    and the names of topics if an ACL is deleted."""
    actions = {change.action for change in changes if is_acl_change(change)}
    if not actions:
        return {acls.KIND: Depth.FULL} if any(_list_new_logins(changes)) else {}
    names = {topics.KIND: Depth.NAMES} if Action.DELETE in actions else {}
    return {acls.KIND: Depth.FULL, LISTED_RIGHTS: Depth.FULL, **names}


def _survey_access(kind_rights: Mapping[str, KindRights], scene: Scene) -> Findings:
    changes = [change for change in scene.changes if is_acl_change(change)]
    sweep = scene.sweeps.get(acls.KIND)
    if sweep is None or sweep.coverage.kind is not CoverageKind.COMPLETE:
        yield from block_unread(changes)
        return
    changed = collect_acls(changes, sweep)
    yield from _find_new_logins(scene, changed)
    if not changes:
        return
    plan = _prepare_plan(scene, kind_rights, changed)
    effects = _compute_effects(plan)
    closed: set[str] = set()
    for identity, effect in effects.items():
        for subject, finding in _judge_effect(plan, identity, effect):
            # Each of the first ACLs of a resource closes it.
            if finding.rule in _CLOSINGS and finding.text in closed:
                continue
            closed.add(finding.text)
            yield subject, finding
    yield from find_own_losses(plan)
    mismatch = find_mismatches(plan.before, plan.me, scene.sweeps.get(LISTED_RIGHTS))
    if mismatch:
        yield from block_unproven(plan.acls.all)
        yield None, rows.MISMATCH.find(mismatch)
    yield from _find_assumptions(plan)
    yield from _describe_order(changes, scene.facts)


def _prepare_plan(
    scene: Scene, kind_rights: Mapping[str, KindRights], changed: AclChanges
) -> AccessPlan:
    sweep = scene.sweeps.get(LISTED_RIGHTS)
    before, after = (build_access(listed, scene.facts) for listed in (changed.live, changed.after))
    me = identify_self(before, sweep, scene.facts)
    # A login without ACLs that can still act is a super user, or what has no ACLs is open.
    undecided = before.allow_if_no_acl is None and acts_without_acls(before, sweep)
    if undecided and me.root is False:
        before, after = (replace(access, allow_if_no_acl=True) for access in (before, after))
    new_topics = frozenset(
        change.identity.key
        for change in scene.changes
        if change.identity.kind == topics.KIND and change.action is Action.CREATE
    )
    return AccessPlan(
        scene,
        kind_rights,
        changed,
        before,
        after,
        me,
        maybe_open=undecided and me.root is None,
        new_topics=new_topics,
    )


# ── gains and losses ────────────────────────────────────────────────────────────────────


def _compute_effects(plan: AccessPlan) -> dict[Identity, Effect]:
    # A wider ACL of the same plan says what a narrower one does.
    worlds = pair_access(assume_settings(plan.before), assume_settings(plan.after))
    created, deleted = plan.acls.created, plan.acls.deleted
    widest = {*drop_covered(created.values()), *drop_covered(deleted.values())}
    return {
        identity: compute_effect(acl, worlds, created=identity in created)
        for identity, acl in plan.acls.all.items()
        if acl in widest
    }


def _judge_effect(plan: AccessPlan, identity: Identity, effect: Effect) -> Findings:
    acl, deleted = plan.acls.all[identity], identity in plan.acls.deleted
    lifted = deleted and acl.permission != ALLOW
    closings = () if deleted else tuple(_find_closings(plan, acl))
    opening = (
        find_opening(acl, plan.before, plan.after, plan.me, plan.scene.sweeps.get(topics.KIND))
        if deleted
        else None
    )
    for gain in effect.gains:
        rule = _choose_gain(gain.rows[0], lifted=lifted)
        yield identity, rule.find(gain.text, access=gain.rows)
    for loss in effect.losses:
        wide = loss.rows[0].breadth in (Breadth.EVERYBODY, Breadth.SYSTEM, Breadth.EVERY)
        rule = rows.LOST_WIDELY if wide else rows.LOST
        yield identity, rule.find(loss.text, access=loss.rows)
    yield from ((identity, finding) for finding in closings)
    if opening is not None:
        yield from ((identity, finding) for finding in _judge_opening(opening, plan.before))
    if effect.unasked:
        takes = deleted == (acl.permission == ALLOW)
        rule = rows.LOSS_UNCHECKED if takes else rows.GAIN_UNCHECKED
        yield identity, rule.find(effect.unasked)
    if effect.reason and not closings and opening is None:
        subject = "its deletion" if deleted else "it"
        yield identity, rows.UNCHANGED.find(f"{subject} {effect.reason}")


def _choose_gain(row: AccessRow, *, lifted: bool) -> Rule:
    """The rule for the widest row of a gain. lifted: a DENY goes away."""
    return next(rule for rule, fits in _GAINS if fits(row, lifted))


_ADMINISTRATION = frozenset({"Alter", "AlterConfigs", "ClusterAction", "CreateTokens"})
_GAINS: tuple[tuple[Rule, Callable[[AccessRow, bool], bool]], ...] = (
    (rows.EVERYBODY, lambda row, _: row.breadth is Breadth.EVERYBODY),
    (rows.DENY_REMOVED, lambda _, lifted: lifted),
    (rows.EVERYTHING, lambda row, _: row.operations == ("All",)),
    (rows.CLUSTER, lambda row, _: row.breadth is Breadth.SYSTEM),
    (rows.EVERY, lambda row, _: row.breadth is Breadth.EVERY),
    (rows.ADMINISTRATION, lambda row, _: not _ADMINISTRATION.isdisjoint(row.operations)),
    (rows.PREFIX, lambda row, _: row.breadth is Breadth.PREFIX),
    (rows.NAMED, lambda *_: True),
)
"""Rule -> whether a gain is one of it; the first that fits decides."""


_CLOSINGS = (rows.CLOSED.id, rows.PRODUCERS_CLOSED.id)


def _find_closings(plan: AccessPlan, acl: Acl) -> Iterator[Finding]:
    """What everybody loses because this ACL is the first one of an open resource."""
    # Nobody has used a topic that the plan creates.
    literal = acl.resource_type == "Topic" and acl.pattern_type == LITERAL
    unused = literal and acl.resource_name in plan.new_topics
    before, after = plan.before, plan.after
    if plan.maybe_open:
        before, after = (assume_settings(access, is_open=True) for access in (before, after))
    closing = None if unused else find_closing(acl, before, after)
    if closing is not None and plan.maybe_open:
        text = f"if allow.everyone.if.no.acl.found is true, {closing.text}"
        yield rows.CLOSED.find(text, level=Level.CAUTION, access=closing.rows)
    elif closing is not None:
        yield rows.CLOSED.find(closing.text, access=closing.rows)
    # With ZooKeeper, brokers do not ask about that topic.
    shut = None if before.zookeeper else find_producers_closing(acl, plan.before, plan.after)
    if shut is not None:
        yield rows.PRODUCERS_CLOSED.find(shut.text, access=shut.rows)


def _judge_opening(opening: Opening, before: Access) -> Iterator[Finding]:
    change, rule = opening.change, before.allow_if_no_acl
    if opening.exists:
        yield block_opening(opening, declared=rule is True)
    elif rule:
        yield rows.EVERYBODY.find(change.text, access=change.rows)


# ── new logins ──────────────────────────────────────────────────────────────────────────


def _list_new_logins(changes: Sequence[Change]) -> Iterator[tuple[Change, str]]:
    """The first credential of each user who has none that the plan knows of, with its name."""
    logins: dict[str, list[Change]] = defaultdict(list)
    for change in changes:
        if change.identity.kind == users.KIND and change.blocked is None:
            logins[keys.split(change.identity.key)[0]].append(change)
    for name, credentials in logins.items():
        if all(change.action is Action.CREATE for change in credentials):
            yield credentials[0], name


def _find_new_logins(scene: Scene, changed: AclChanges) -> Findings:
    logins = list(_list_new_logins(scene.changes))
    if not logins:
        return
    after = assume_settings(build_access(changed.after, scene.facts))
    allows: dict[str, list[Acl]] = defaultdict(list)
    for acl in sorted(changed.after):
        if acl.permission == ALLOW and is_known(acl):
            allows[acl.principal].append(acl)
    created = set(changed.created.values())
    for change, name in logins:
        own = allows[f"User:{name}"]
        gains = _list_rights(own, after)
        if not gains:
            continue
        # What the plan alone gives is a row of its ACL change.
        older = {(acl.pattern, acl.host) for acl in own if acl not in created}
        earlier = tuple(row for acl, row in gains.items() if (acl.pattern, acl.host) in older)
        grave = any(_choose_gain(row, lifted=False).level is Level.DANGER for row in earlier)
        words = [
            f"{'/'.join(row.operations)} on {describe_pattern(acl)}" for acl, row in gains.items()
        ]
        text = f"User:{name} is a new login with rights: {join_words(words)}"
        level = Level.DANGER if grave else None
        yield change.identity, rows.NEW_LOGIN.find(text, level=level, access=earlier)


def _list_rights(allows: Sequence[Acl], access: Access) -> Mapping[Acl, AccessRow]:
    """The first ALLOW of each pattern -> what its principal can do there; only where it can do
    something. allows: of one principal."""
    gains: dict[Acl, AccessRow] = {}
    patterns: set[tuple[str, str]] = set()
    for acl in allows:
        if (acl.pattern, acl.host) in patterns:
            continue
        patterns.add((acl.pattern, acl.host))
        host = OTHER if acl.host == EVERYTHING else acl.host
        point = Probe(acl.principal, host, generalize_name(acl))
        allowed = list_held(access, acl.resource_type, point)
        operations = [word for word in SUPPORTED[acl.resource_type] if word in allowed]
        if operations:
            gains[acl] = make_row(acl, point, operations, frozenset(), allowed)
    return gains


# ── what live ACLs give ─────────────────────────────────────────────────────────────────

_HARMLESS = frozenset({"Describe", "DescribeConfigs", "IdempotentWrite"})
"""Operations that neither read records nor change anything of others."""


def _check_access(scene: Scene) -> Findings:
    """The wide rights that live ACLs give: one finding for each principal and resource pattern."""
    listed = {
        parse_acl(change.after): change.identity
        for change in scene.changes
        if change.identity.kind == acls.KIND and change.after is not None
    }
    # All ACLs together decide: what a DENY takes away is not held by anybody.
    access = assume_settings(build_access(listed, scene.facts))
    allows: dict[str, list[Acl]] = defaultdict(list)
    super_users = access.super_users or ()
    # In the order of their texts, so that two checks say the same things in the same order.
    for acl in sorted(listed):
        # A super user can do everything without ACLs, so one gives it nothing.
        if acl.permission == ALLOW and is_known(acl) and acl.principal not in super_users:
            allows[acl.principal].append(acl)
    for principal, own in allows.items():
        for acl, row in _list_rights(own, access).items():
            rule = _choose_standing(row)
            if rule is not None:
                subject = "everybody" if row.breadth is Breadth.EVERYBODY else principal
                rights = "everything" if row.operations == ("All",) else ", ".join(row.operations)
                yield listed[acl], rule.find(f"{subject} has {rights} on {describe_pattern(acl)}")


def _choose_standing(row: AccessRow) -> Rule | None:
    """The rule for a right that a principal has; None for one that is narrow or harmless."""
    if _HARMLESS.issuperset(row.operations):
        return None
    if row.breadth is Breadth.EVERYBODY:
        return rows.HELD_BY_EVERYBODY
    return rows.HELD_WIDELY if row.breadth in (Breadth.SYSTEM, Breadth.EVERY) else None


CHECKS = (Survey((rows.HELD_BY_EVERYBODY, rows.HELD_WIDELY), _check_access, Needs.LIVE),)


# ── the whole system ────────────────────────────────────────────────────────────────────


def _find_assumptions(plan: AccessPlan) -> Findings:
    facts = plan.scene.facts
    # Brokers report super.users and allow.everyone.if.no.acl.found as sensitive, without a value.
    missing = [name for name in _ASSUMPTIONS if read_setting(name, facts) is None]
    if plan.before.allow_if_no_acl is not None and "allow_if_no_acl" in missing:
        missing.remove("allow_if_no_acl")
    if missing:
        assumed = " and ".join(_ASSUMPTIONS[name] for name in missing)
        yield (
            None,
            rows.ASSUMED.find(
                f"the access changes in this plan assume that {assumed}, which brokers do not "
                "expose",
                fix=f"Set authorizer {{ {', '.join(missing)} }} in the provider block.",
            ),
        )
    if facts.principal is None:
        yield (
            None,
            rows.PRINCIPAL_UNKNOWN.find(
                "the current principal is unknown, so kafkaform cannot recognise every lock-out"
            ),
        )
    unknown = sum(not is_known(acl) for acl in plan.acls.live)
    if unknown:
        yield (
            None,
            rows.NEWER_CODES.find(
                f"the cluster has {unknown} ACL{'s' if unknown > 1 else ''} with codes that are "
                "newer than this version, which does not consider them"
            ),
        )


_ASSUMPTIONS: Mapping[str, str] = {
    "super_users": "there are no super users",
    "allow_if_no_acl": "a resource without ACLs is closed",
}
"""Setting of `authorizer` -> what is assumed without it."""


def _describe_order(changes: Sequence[Change], facts: Facts) -> Findings:
    if {change.action for change in changes} == {Action.CREATE, Action.DELETE}:
        first = KafkaFacts.of(facts).acl_order == acls.DELETE_FIRST
        yield None, rows.ORDER.find(_DELETE_FIRST if first else _CREATE_FIRST)


_DELETE_FIRST = (
    'with acl_order = "delete_first", old ACLs of a resource are deleted before new ones are '
    "created, so brokers can refuse clients in between"
)
_CREATE_FIRST = (
    'with acl_order = "create_first", new ACLs are created before old ones are deleted, so both '
    "apply in between"
)


def make_surveys(kind_rights: Mapping[str, KindRights]) -> tuple[Survey, ...]:
    """The surveys of a provider. kind_rights: kind -> the rights on its objects that a plan must
    not take from the principal that runs it."""
    return (
        Survey(rows.ACCESS, partial(_survey_access, kind_rights)),
        Survey((rows.HIDDEN,), partial(find_hiding, kind_rights)),
    )


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
        acl = parse_acl(change.before or change.after or EMPTY)
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
    reported = list_rights(scene.sweeps.get(LISTED_RIGHTS))
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
