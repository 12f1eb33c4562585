"""What a plan says of its ACL changes, and which of them it refuses."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action, Change
from kafkaform.core.legacy import Blocker, BlockerKind, Review
from kafkaform.core.resource import Coverage, CoverageKind, Depth, Facts, Identity, Observed, Sweep
from kafkaform.core.value import FrozenMap, freeze
from kafkaform_kafka.kinds.acl import resource_type as acls
from kafkaform_kafka.kinds.acl.resource_type import Acl
from kafkaform_kafka.kinds.topic import resource_type as topics
from kafkaform_kafka.protocol import keys, rights
from kafkaform_kafka.provider import PROVIDER

ME = "User:ci"
EVERYTHING = acls.list_reported_operations("Cluster")
DECLARED = {"super_users": (), "allow_if_no_acl": False}
COMPLETE = Coverage(CoverageKind.COMPLETE)
VISIBLE = Coverage(CoverageKind.VISIBLE_ONLY)


def acl(
    principal: str = "User:app",
    operation: str = "Read",
    name: str = "orders",
    permission: str = "Allow",
    *,
    host: str = "*",
    kind: str = "Topic",
    pattern: str = "Literal",
) -> Acl:
    return Acl(principal, host, operation, permission, kind, name, pattern)


def on_cluster(operation: str = "All", principal: str = ME, permission: str = "Allow") -> Acl:
    return acl(principal, operation, acls.CLUSTER, permission, kind="Cluster")


MINE = on_cluster()


def identity(kind: str, key: str) -> Identity:
    return Identity("kafka", kind, key)


def create(one: Acl) -> Change:
    where = identity(acls.KIND, one.key)
    return Change(where, f"kafka_acl.{one.operation}", Action.CREATE, after=one.attributes)


def delete(one: Acl) -> Change:
    where = identity(acls.KIND, one.key)
    return Change(where, f"kafka_acl.{one.operation}", Action.DELETE, before=one.attributes)


def judge(
    changes: Sequence[Change],
    live: Iterable[Acl] = (MINE,),
    *,
    principal: str | None = ME,
    held: Sequence[str] | None = EVERYTHING,
    topic_rights: Sequence[tuple[str, Sequence[str]]] = (),
    names: Sequence[str] = (),
    coverage: Coverage = COMPLETE,
    order: str = "create_first",
    **authorizer: object,
) -> Review:
    """held: what the cluster says that we may do with it, None if it does not say."""
    rows = [(acls.KIND, one.key, one.attributes) for one in live]
    told = [(f"Topic|{name}", found) for name, found in topic_rights]
    told += [(keys.join(("Cluster", acls.CLUSTER)), held)] if held is not None else []
    may = [(rights.KIND, key, FrozenMap(operations=tuple(found))) for key, found in told]
    live_topics = [(topics.KIND, name, FrozenMap()) for name in names]
    values = {"authorizer": {**DECLARED, **authorizer}, "acl_order": order}
    facts = Facts("c", ("1",), principal, FrozenMap(freeze(values)))  # type: ignore[arg-type]
    sweeps = {
        acls.KIND: _sweep(acls.KIND, rows, coverage),
        rights.KIND: _sweep(rights.KIND, may, VISIBLE),
        topics.KIND: _sweep(topics.KIND, live_topics, VISIBLE),
    }
    # What it does not ask for, a plan does not list.
    asked = PROVIDER.review_needs(changes)
    return PROVIDER.review(changes, {kind: sweeps[kind] for kind in sweeps.keys() & asked}, facts)


def _sweep(kind: str, rows: Sequence[tuple[str, str, FrozenMap]], coverage: Coverage) -> Sweep:
    items = tuple(Observed(identity(kind, key), attributes) for _, key, attributes in rows)
    return Sweep(kind, Depth.FULL, items, coverage)


def note(found: Review, change: Change) -> str:
    risks = (risk.text for risk in found.risks.get(change.identity, ()))
    return "; ".join((*found.notes[change.identity], *risks))


# ── who gains and loses ─────────────────────────────────────────────────────────────────


def test_a_new_right_is_told_with_what_it_implies() -> None:
    """An ALLOW says who gains what, Describe included."""
    change = create(acl())
    assert note(judge([change]), change) == "User:app gains Read, Describe on Topic orders"


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            acl("User:*", "All", "ord", "Deny", pattern="Prefixed"),
            'gives nothing: Deny User:* All on topics with prefix "ord" from any host overrides it',
        ),
        (
            acl("User:*", name="*"),
            "gives nothing: Allow User:* Read on every topic from any host has the same effect",
        ),
    ],
)
def test_a_right_that_changes_nothing_is_said_to(other: Acl, said: str) -> None:
    """An ALLOW that a DENY hides, or that somebody has already, gives nothing, and why."""
    change = create(acl())
    assert note(judge([change], [MINE, other]), change) == said


def test_rights_on_the_cluster_are_told_with_the_topics_that_they_reach() -> None:
    """All, Create and Delete there give it on every topic, which no ACL of a topic can deny; a
    DENY there takes only what an ALLOW there gave."""
    app, deny = "User:app", acl("User:app", "Delete", permission="Deny")
    everything = create(on_cluster("All", app))
    assert note(judge([everything], [MINE, deny]), everything) == (
        "User:app gains everything on Cluster kafka-cluster; User:app gains Create, Delete on "
        "every Topic; Kafka checks the cluster before the topic, so no ACL of a topic can deny that"
    )
    one = create(on_cluster("Delete", app))
    assert "User:app gains Delete on every Topic" in note(judge([one]), one)
    held = [MINE, on_cluster("Delete", app), acl(app, "Create")]
    found = judge([delete(held[1])], held)
    assert "User:app loses Delete on Topic *" in found.losses[delete(held[1]).identity]
    useless = create(on_cluster("Create", app, "Deny"))
    assert note(judge([useless], held), useless).startswith("takes nothing")


def test_a_deny_of_delete_takes_the_records_from_who_may_delete_every_topic() -> None:
    """The topic can still be deleted, its records cannot: brokers ask for the topic alone."""
    held = [MINE, on_cluster("Delete", "User:app"), acl(operation="Delete")]
    deny = create(acl(operation="Delete", permission="Deny"))
    assert note(judge([deny], held), deny) == "User:app loses Delete of records on Topic orders"
    wide = create(acl("User:*", "Delete", "ord", "Deny", pattern="Prefixed"))
    assert "loses Delete on" not in note(judge([wide], held), wide)


def test_a_deleted_acl_that_another_one_covers_takes_nothing() -> None:
    """Nobody loses what a prefix gives too, also one that the same plan makes."""
    gone, wide = delete(acl()), acl(name="ord", operation="All", pattern="Prefixed")
    found = judge([create(wide), gone], [MINE, acl()])
    assert note(found, gone).startswith("takes nothing: Allow User:app All")
    assert gone.identity not in found.losses


def test_losses_are_listed_one_by_one() -> None:
    """What an apply compares is each single right."""
    gone = delete(acl(host="1.1.1.1"))
    found = judge([gone], [MINE, acl(host="1.1.1.1")])
    assert note(found, gone) == "User:app loses Read, Describe on Topic orders from 1.1.1.1"
    assert found.losses[gone.identity] == (
        "User:app loses Read on Topic orders from 1.1.1.1",
        "User:app loses Describe on Topic orders from 1.1.1.1",
    )


def test_exceptions_of_a_wide_acl_are_named() -> None:
    """A right on everything for everybody does not reach those whom another ACL refuses."""
    change = create(acl("User:*", name="*"))
    live = [MINE, acl("User:bob", "Read", "*", "Deny"), acl("User:*", "All", "secret", "Deny")]
    said = note(judge([change], live), change)
    assert "everybody except User:bob gains Read, Describe on every Topic" in said
    assert "but not on secret" in said


MANY = [acl(f"User:u{n:02}", name="team-", pattern="Prefixed") for n in range(14)]
DENIAL = create(acl("User:*", "Read", "team-", "Deny", pattern="Prefixed"))


def test_who_is_not_asked_about_is_told() -> None:
    """Around a wide ACL only some are asked about: the plan says how many others there are and
    how to look at them, in the summary too."""
    found = judge([DENIAL], [MINE, *MANY])
    said = note(found, DENIAL)
    assert "loses Read" in said and "other ACLs name 4 more principals" in said
    assert "`kafkaform explain access`" in said
    assert "not checked" not in note(judge([DENIAL], [MINE, *MANY[:10]]), DENIAL)
    others = [create(acl(name=f"x{n}")) for n in range(5)]
    assert "Not all affected principals were checked" in "; ".join(
        judge([DENIAL, *others], [*MANY]).warnings
    )


def test_nothing_found_is_not_called_nothing_if_some_were_not_asked() -> None:
    """Names beyond the first twenty may fare otherwise."""
    gone = delete(acl("User:app", "Read", "*"))
    names = [acl("User:app", "Read", f"t{n:02}", "Deny") for n in range(30)]
    all_ = acl("User:app", "All", "*")
    said = note(judge([gone], [MINE, all_, acl("User:app", "Read", "*"), *names]), gone)
    assert said.startswith("takes nothing as far as it was checked; other ACLs name 10 more names")


@pytest.mark.parametrize(
    "more",
    [
        acl("User:u99", name="team-", pattern="Prefixed"),
        acl("User:u99", name="team-x"),
    ],
)
def test_no_new_loss_hides_behind_a_cap(more: Acl) -> None:
    """One more who loses something, and would not be asked about, is a loss that the plan did not
    show; another order of the listing is none."""
    shown = judge([DENIAL], [MINE, *MANY]).losses[DENIAL.identity]
    assert judge([DENIAL], [*reversed(MANY), MINE]).losses[DENIAL.identity] == shown
    again = judge([DENIAL], [MINE, *MANY, more]).losses[DENIAL.identity]
    assert set(again) - set(shown)


def test_who_only_gains_loses_nothing_behind_a_cap() -> None:
    """A right that is given takes none from those who are not asked about."""
    given = create(acl("User:*", "Read", "team-", pattern="Prefixed"))
    assert given.identity not in judge([given], [MINE, *MANY]).losses


def test_super_users_gain_nothing() -> None:
    """An ACL for a declared super user is pointless, and the plan says so."""
    change = create(acl("User:root"))
    found = judge([change], super_users=("User:root",))
    assert note(found, change) == "gives nothing: super users may do everything"


def test_many_changes_are_summed_up() -> None:
    """A plan with many ACL changes says once who gains and who loses."""
    changes = [create(acl(f"User:u{n}")) for n in range(7)]
    gone = delete(acl("User:old"))
    (said,) = judge([*changes, gone], [MINE, acl("User:old")]).warnings[:1]
    assert said == (
        "8 ACL changes grant access to User:u0, User:u1, User:u2, User:u3, User:u4 "
        "and 2 more and take access from User:old."
    )


def test_what_is_not_declared_is_said() -> None:
    """Gains and losses rest on super users and a default that brokers do not tell."""
    found = judge([create(acl())], super_users=None, allow_if_no_acl=None, principal=None)
    assert (
        "set authorizer { super_users, allow_if_no_acl } in the provider block" in found.warnings[0]
    )
    assert "set principal in the provider block" in found.warnings[1]


# ── lock-out ────────────────────────────────────────────────────────────────────────────


def test_a_plan_may_not_take_its_own_rights() -> None:
    """Deleting the ACL that lets us change ACLs is refused, and says what would be lost."""
    gone = delete(MINE)
    block = judge([gone]).blocks[gone.identity]
    assert block.kind is BlockerKind.GUARD
    assert block.reason == (
        "it would take Alter on Cluster kafka-cluster from User:ci, which runs this plan: "
        "only somebody else could undo it"
    )
    assert block.waiver == ""


@pytest.mark.parametrize("principal", [ME, "User:*"])
def test_a_deny_may_not_lock_us_out(principal: str) -> None:
    """Neither by name nor with everybody else."""
    deny = create(on_cluster("Alter", principal, "Deny"))
    assert deny.identity in judge([deny]).blocks


def test_rights_that_stay_lock_nobody_out() -> None:
    """A replaced ACL, somebody else's ACL and a super user's are free to go."""
    fine = create(on_cluster("Alter")), create(on_cluster("Describe")), delete(MINE)
    assert not judge(fine).blocks
    other = on_cluster(principal="User:bob")
    assert not judge([delete(other)], [MINE, other]).blocks
    assert not judge([delete(MINE)], super_users=(ME,)).blocks


def test_deleting_first_locks_out_in_between() -> None:
    """With acl_order = "delete_first" the new ACL comes too late."""
    fine = create(on_cluster("Alter")), create(on_cluster("Describe")), delete(MINE)
    found = judge(fine, order="delete_first")
    assert set(found.blocks) == {fine[2].identity}


def test_a_super_user_is_known_by_what_it_may_do() -> None:
    """Who may do everything although no ACL says so must be a super user, declared or not."""
    other = on_cluster("Alter", "User:*")
    assert not judge([delete(other)], [other], super_users=None).blocks
    found = judge([delete(other)], [other], super_users=None, held=("Alter", "Describe"))
    assert found.blocks
    somewhere = {"super_users": None, "topic_rights": [("orders", ("Read",))]}
    live = [on_cluster(principal="User:*"), acl()]
    assert not judge([delete(live[0])], live, **somewhere).unless  # type: ignore[arg-type]


def test_what_may_be_a_lock_out_can_be_accepted() -> None:
    """Where super users are not declared, a loss is a risk and not a fact."""
    gone = delete(MINE)
    found = judge([gone], super_users=None)
    (block,) = found.unless[gone.identity]
    assert block.waiver == "unproven-access"
    assert "it may take Alter" in block.reason
    assert "set authorizer { super_users }" in block.advice
    assert not found.blocks


def test_without_a_principal_every_candidate_is_a_risk() -> None:
    """Whoever we are, the ACL that goes may be ours; an ACL on a topic is not."""
    gone = delete(on_cluster(principal="User:CN=x"))
    live = [on_cluster(principal="User:CN=x"), on_cluster(principal="User:CN=y")]
    found = judge([gone], live, principal=None)
    (block,) = found.unless[gone.identity]
    assert "set principal in the provider block" in block.advice
    elsewhere = delete(acl())
    live = [acl(), on_cluster(principal="User:CN=y")]
    assert not judge([elsewhere], live, principal=None).unless


def kept(name: str = "orders", action: Action = Action.NOOP) -> Change:
    """A topic of the state that this plan leaves as it is."""
    return Change(identity(topics.KIND, name), f"kafka_topic.{name}", action)


SEES = [on_cluster("Alter"), on_cluster("Describe"), acl(ME, "All", "ord", pattern="Prefixed")]
HELD = ("Alter", "Describe")


@pytest.mark.parametrize("operation", ["Describe", "DescribeConfigs", "All"])
@pytest.mark.parametrize("principal", [ME, "User:*"])
def test_a_plan_may_not_blind_itself(operation: str, principal: str) -> None:
    """A DENY of what it needs to see a topic that it manages is refused like any lock-out."""
    deny = create(acl(principal, operation, "o", "Deny", pattern="Prefixed"))
    block = judge([deny, kept()], SEES, held=HELD).blocks[deny.identity]
    assert (block.kind, block.waiver) == (BlockerKind.GUARD, "")
    assert "no later plan could see kafka_topic.orders" in block.reason
    gone = delete(SEES[2])
    assert gone.identity in judge([gone, kept()], SEES, held=HELD).blocks


@pytest.mark.parametrize("operation", ["Alter", "AlterConfigs"])
def test_a_plan_that_keeps_itself_from_changes_can_be_accepted(operation: str) -> None:
    """What is seen can be given back, so it is a question and not a refusal."""
    deny = create(acl(ME, operation, "orders", "Deny"))
    found = judge([deny, kept()], SEES, held=HELD)
    (block,) = found.unless[deny.identity]
    assert not found.blocks
    assert block.waiver == "unproven-access"
    assert "no later plan could change kafka_topic.orders" in block.reason


@pytest.mark.parametrize("operation", ["Delete", "Create", "Read", "Write"])
def test_what_no_plan_needs_may_be_denied(operation: str) -> None:
    """Not to be able to delete is a protection that people choose."""
    deny = create(acl(ME, operation, "orders", "Deny"))
    found = judge([deny, kept()], SEES, held=HELD)
    assert not found.blocks and not found.unless


def test_sight_is_kept_only_of_what_is_managed_and_was_seen() -> None:
    """Other topics, those that go, other principals, rights that stay or never were, and super
    users are no reason to refuse."""
    deny = create(acl(ME, "Describe", "orders", "Deny"))
    fine = [
        judge([deny], SEES, held=HELD),
        judge([deny, kept("other")], SEES, held=HELD),
        judge([deny, kept(action=Action.FORGET)], SEES, held=HELD),
        judge([deny, kept()], SEES[:2], held=HELD),
        judge([deny, kept()], SEES, super_users=(ME,)),
        judge([create(acl(name="orders", permission="Deny")), kept()], SEES, held=HELD),
        judge([create(acl(ME, "All")), delete(SEES[2]), kept()], SEES, held=HELD),
    ]
    for found in fine:
        assert not found.blocks and not found.unless


def test_a_targeted_plan_asks_before_it_blinds_itself() -> None:
    """It does not know what else the state manages, but the cluster tells what we see."""
    deny = create(acl(ME, "Describe", "orders", "Deny"))
    seen = {"held": HELD, "topic_rights": [("orders", acls.list_reported_operations("Topic"))]}
    (block,) = judge([deny], SEES, **seen).unless[deny.identity]  # type: ignore[arg-type]
    assert "if this state manages it, no later plan could see it" in block.reason
    gone = delete(SEES[2])
    found = judge([gone], SEES, **seen)  # type: ignore[arg-type]
    assert not found.blocks and not found.unless


def test_a_first_acl_must_not_blind_us_where_topics_stand_open() -> None:
    """Who sees a topic because no ACL is about it no longer does once one is; undeclared rules
    are no reason to refuse, unless the cluster proves that we are no super user and see it."""
    first, live = create(acl()), SEES[:2]
    asked = [first, kept()]
    seen = [("orders", acls.list_reported_operations("Topic"))]
    assert first.identity in judge(asked, live, held=HELD, allow_if_no_acl=True).blocks
    rule = {"allow_if_no_acl": None, "held": HELD}
    assert first.identity in judge(asked, live, topic_rights=seen, **rule).blocks  # type: ignore[arg-type]
    assert not judge(asked, live, **rule).blocks  # type: ignore[arg-type]
    unknown = judge(asked, [MINE], super_users=None, allow_if_no_acl=None)
    assert not unknown.blocks and not unknown.unless


@pytest.mark.parametrize(
    ("action", "more"), [(Action.NOOP, ""), (Action.DELETE, ", which this plan deletes: apply")]
)
def test_what_cannot_be_seen_names_the_acl_of_this_state_that_hides_it(
    action: Action, more: str
) -> None:
    """Its address is the way back; ACLs that are not there yet, of others or about other things
    are not named."""
    hidden = Blocker(BlockerKind.UNREADABLE, "it cannot be seen: the right Describe is missing")
    topic = replace(kept(), blocked=hidden)

    def managed(one: Acl, address: str, action: Action = action) -> Change:
        key, all_of_it = identity(acls.KIND, one.key), one.attributes
        return Change(key, address, action, before=all_of_it, after=all_of_it)

    changes = [
        topic,
        managed(acl(ME, "Describe", "ord", "Deny", pattern="Prefixed"), "kafka_acl.mine"),
        managed(acl("User:app", "All", "orders", "Deny"), "kafka_acl.app"),
        managed(acl(ME, "Read", "orders", "Deny"), "kafka_acl.read"),
        managed(acl(ME, "All", "orders", "Deny"), "kafka_acl.new", Action.CREATE),
    ]
    (said,) = PROVIDER.review(changes, {}, Facts("c", ("1",), ME)).notes[topic.identity]
    assert said.startswith(
        'Deny User:ci Describe on topics with prefix "ord" from any host hides it'
    )
    assert f"(kafka_acl.mine{more}" in said
    assert not PROVIDER.review(changes[:1], {}, Facts("c", ("1",), ME)).notes
    assert not PROVIDER.review(
        [replace(topic, blocked=None), *changes[1:]], {}, Facts("c", (), ME)
    ).notes


def test_other_kinds_are_kept_in_sight_too() -> None:
    """Quotas and configs of brokers are read by a right on the cluster, groups by their own."""
    quota = Change(identity("kafka_quota", "user|x"), "kafka_quota.x", Action.NOOP)
    group = Change(identity("kafka_group_config", "g"), "kafka_group_config.g", Action.UPDATE)
    for operation, waiver in (("DescribeConfigs", ""), ("AlterConfigs", "unproven-access")):
        on_group = acl(ME, "AlterConfigs", "g", kind="Group")
        for change, deny in (
            (quota, on_cluster(operation, ME, "Deny")),
            (group, acl(ME, operation, "g", "Deny", kind="Group")),
        ):
            made = create(deny)
            found = judge([made, change], [MINE, on_group])
            blocks = (*found.unless.get(made.identity, ()), found.blocks.get(made.identity))
            assert [block.waiver for block in blocks if block] == [waiver]


def test_rights_of_later_steps_are_kept() -> None:
    """A topic that the plan deletes afterwards must still be deletable then."""
    mine, alter = acl(ME, "Delete"), (on_cluster("Alter"), on_cluster("Describe"))
    topic = Change(identity(topics.KIND, "orders"), "kafka_topic.orders", Action.DELETE)
    gone, held = delete(mine), ("Alter", "Describe")
    found = judge([gone, topic], [*alter, mine], held=held, names=("orders",))
    assert "kafka_topic.orders needs it later" in found.blocks[gone.identity].reason
    assert not judge([gone], [MINE, mine], names=("orders",)).blocks
    whole = on_cluster("Delete")
    assert not judge([gone, topic], [*alter, whole, mine], held=held, names=("orders",)).blocks
    found = judge([delete(whole), topic], [*alter, whole], held=held, names=("orders",))
    assert "kafka_topic.orders needs it later" in found.blocks[delete(whole).identity].reason


# ── coverage, open access ───────────────────────────────────────────────────────────────


def test_without_all_acls_nothing_is_taken() -> None:
    """Deletes and DENYs are blocked where the listing failed; an ALLOW is not."""
    gone, deny, allow = delete(acl()), create(acl(permission="Deny")), create(acl("User:b"))
    found = judge([gone, deny, allow], coverage=Coverage(CoverageKind.FAILED))
    assert set(found.blocks) == {gone.identity, deny.identity}
    assert {block.kind for block in found.blocks.values()} == {BlockerKind.GUARD}


@pytest.mark.parametrize(("rule", "blocked"), [(True, True), (None, True), (False, False)])
def test_the_last_acl_of_a_topic(rule: bool | None, blocked: bool) -> None:
    """It may not go where no ACL means that everybody may, or where that is not known."""
    gone = delete(acl())
    found = judge([gone], [MINE, acl()], names=("orders",), allow_if_no_acl=rule)
    assert (gone.identity in found.unless) is blocked
    if blocked:
        (block,) = found.unless[gone.identity]
        assert block.waiver == "open-access"
        assert "it is the last ACL of Topic orders" in block.reason


def test_an_acl_that_is_not_the_last_one_may_go() -> None:
    """A prefix, or a new ACL of the same plan, keeps the topic closed."""
    gone, other = delete(acl()), acl("User:b", name="ord", pattern="Prefixed")
    live = [MINE, acl(), other]
    assert not judge([gone], live, names=("orders",), allow_if_no_acl=True).unless
    both = [create(acl("User:b")), gone]
    assert not judge(both, [MINE, acl()], names=("orders",), allow_if_no_acl=True).unless


def test_a_topic_that_is_not_there_stands_open_to_nobody() -> None:
    """Only somebody who would see the topic knows that it is not there."""
    gone, see = delete(acl()), acl(ME, "Describe", "*")
    root = {"super_users": (ME,), "allow_if_no_acl": True}
    assert not judge([gone], [MINE, acl()], **root).unless
    blind = judge([gone], [MINE, acl()], allow_if_no_acl=True)
    assert gone.identity in blind.unless
    assert not judge([gone], [MINE, acl(), see], allow_if_no_acl=True).unless


def test_the_last_prefix_opens_the_topics_below_it() -> None:
    """A wide ACL is looked at through the topics that it covers."""
    gone = delete(acl(name="ord", pattern="Prefixed"))
    live = [MINE, acl(name="ord", pattern="Prefixed"), acl("User:b", name="orders.eu")]
    root = {"super_users": (ME,), "allow_if_no_acl": True}
    found = judge([gone], live, names=("orders.eu", "orders.us"), **root)
    assert "Topic orders.us" in found.unless[gone.identity][0].reason
    assert not judge([gone], live, names=("orders.eu",), **root).unless


def test_where_the_cluster_stands_open_topics_are_open_to_deletion() -> None:
    """Closing a topic does not take its deletion from anybody, closing the cluster does; its last
    ACL opens every topic."""
    first, whole = create(acl()), create(on_cluster("Describe", "User:app"))
    found = judge([first], [], held=None, allow_if_no_acl=True, super_users=(ME,))
    assert "but can still create and delete it" in note(found, first)
    found = judge([first, whole], [], held=None, allow_if_no_acl=True, super_users=(ME,))
    assert "but can still" not in note(found, first)
    assert "can no longer create and delete topics that have ACLs" in note(found, whole)
    last = delete(MINE)
    found = judge([last], [MINE], allow_if_no_acl=True, super_users=(ME,))
    assert "may create and delete every topic" in note(found, last)
    (block,) = found.unless[last.identity]
    assert "and create and delete every topic" in block.reason


def test_the_first_acl_of_the_topic_that_brokers_ask_for_shuts_producers_out() -> None:
    """Where no ACL means that everybody may, idempotent producers of all topics hang on one name,
    unless the cluster has no ACL or the right is there for all."""
    change = create(replace(acl(), resource_name="hard", pattern_type="Prefixed"))
    said = "loses IdempotentWrite for all topics"
    found = judge([change], [MINE], allow_if_no_acl=True, super_users=(ME,))
    assert said in note(found, change)
    assert any(said in loss for loss in found.losses[change.identity])
    every = on_cluster("IdempotentWrite", "User:*")
    for live, rule in (([MINE], False), ([MINE, every], True), ([], True)):
        held = None if live else frozenset[str]()
        found = judge([change], live, held=held, allow_if_no_acl=rule, super_users=(ME,))
        assert said not in note(found, change)


def test_the_first_acl_closes_a_resource() -> None:
    """Where no ACL means that everybody may, the first one takes it from everybody else."""
    change = create(acl())
    found = judge([change], allow_if_no_acl=True)
    said = "everybody without an ACL loses access to Topic orders, which was open"
    assert said in [risk.text for risk in found.risks[change.identity]]
    assert said in found.losses[change.identity]


# ── calibration ─────────────────────────────────────────────────────────────────────────


def test_a_cluster_that_agrees_is_believed() -> None:
    """What the cluster says that we may do is what its ACLs say."""
    few = [on_cluster("Alter"), on_cluster("Describe"), acl(ME, "Read")]
    rights_ = [("orders", ("Read", "Describe"))]
    found = judge([create(acl())], few, held=("Alter", "Describe"), topic_rights=rights_)
    assert not found.unless
    assert not found.warnings


@pytest.mark.parametrize(
    ("held", "topic_rights", "said"),
    [
        (
            ("Alter", "Describe", "Create"),
            (),
            "The cluster reports that User:ci may Create on Cluster kafka-cluster, but by its ACLs "
            "it may not",
        ),
        (
            ("Describe",),
            (),
            "The cluster reports that User:ci may not Alter on Cluster kafka-cluster, but by Allow "
            "User:ci Alter on the cluster from any host it may",
        ),
        (
            ("Alter", "Describe"),
            (("orders", ("Describe", "Write")),),
            "The cluster reports that User:ci may Write on Topic orders, but by its ACLs it may "
            "not",
        ),
    ],
)
def test_a_cluster_that_disagrees_blocks_acl_changes(
    held: Sequence[str], topic_rights: Sequence[tuple[str, Sequence[str]]], said: str
) -> None:
    """What the cluster says, what its ACLs say and the likely causes are told; nothing is
    changed unless that is accepted."""
    live = [on_cluster("Alter"), on_cluster("Describe"), acl(ME, "Describe")]
    change = create(acl())
    found = judge([change], live, held=held, topic_rights=topic_rights)
    assert said in found.warnings[0]
    assert "Likely causes" in found.warnings[0]
    assert found.unless[change.identity][0].waiver == "unproven-access"


def test_what_is_unknown_contradicts_nothing() -> None:
    """Without declared super users everything that the cluster allows is possible."""
    found = judge([create(acl())], [], super_users=None)
    assert not found.unless
    nobody = judge([create(acl())], [], super_users=None, held=None, principal=None)
    assert not nobody.unless


def test_a_missing_describe_hides_all_other_rights() -> None:
    """Those who may not describe the cluster are told of no right, which contradicts nothing."""
    live = [on_cluster("Create")]
    assert not judge([create(acl())], live, held=()).unless
