"""Who gains and who loses what by the ACL changes of a plan, and which changes are blocked."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action, Change, add_findings
from kafkaform.core.finding import AccessRow, Block, Breadth, Finding, Harm, Level
from kafkaform.core.resource import Coverage, CoverageKind, Depth, Facts, Identity, Observed, Sweep
from kafkaform.core.rule import Scene
from kafkaform.core.value import FrozenMap, freeze
from kafkaform.plan.rules import UNREADABLE
from kafkaform_kafka.kinds.topic import resource_type as topics
from kafkaform_kafka.kinds.user import resource_type as users
from kafkaform_kafka.protocol import acl as acls
from kafkaform_kafka.protocol import keys
from kafkaform_kafka.protocol.acl import LISTED_RIGHTS, Acl
from kafkaform_kafka.provider import PROVIDER
from kafkaform_kafka.rules import access, access_rows

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


class Judged:
    """What the surveys find."""

    def __init__(self, scene: Scene) -> None:
        self.findings = [
            pair for survey in access.make_surveys(PROVIDER.rights) for pair in survey.find(scene)
        ]

    def find(self, change: Change) -> list[Finding]:
        """What is found about this change."""
        return [finding for identity, finding in self.findings if identity == change.identity]

    def note(self, change: Change) -> str:
        """All texts about this change that do not block it."""
        findings = (one for one in self.find(change) if one.level is not Level.BLOCK)
        return "; ".join(finding.text for finding in findings)

    def losses(self, change: Change) -> list[tuple[str, tuple[str, ...], str]]:
        """Who loses which operations on what."""
        rows = (row for one in self.find(change) for row in _list_lost(one))
        return [(row.principal, row.operations, row.name) for row in rows]

    def rules(self, change: Change) -> list[str]:
        """The rules that find something about this change."""
        return [finding.rule for finding in self.find(change)]

    @property
    def blocks(self) -> dict[Identity, Finding]:
        """The blocks that nobody can accept."""
        return {identity: one for identity, one in self._list_blocks() if not one.accept}

    @property
    def unless(self) -> dict[Identity, list[Finding]]:
        """The blocks that the user can accept."""
        pairs = [(identity, one) for identity, one in self._list_blocks() if one.accept]
        return {key: [one for identity, one in pairs if identity == key] for key, _ in pairs}

    def _list_blocks(self) -> list[tuple[Identity, Finding]]:
        pairs = [(identity, one) for identity, one in self.findings if one.level is Level.BLOCK]
        return [(identity, one) for identity, one in pairs if identity is not None]

    @property
    def system(self) -> list[Finding]:
        """What is found about the cluster."""
        return [finding for identity, finding in self.findings if identity is None]


def _list_lost(finding: Finding) -> tuple[AccessRow, ...]:
    return finding.access if finding.harm is Harm.ACCESS_LOST else ()


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
    listed: Sequence[str] | None = None,
    zookeeper: bool = False,
    **authorizer: object,
) -> Judged:
    """held: what the cluster says that we may do with it, None if it does not say; listed: the
    settings of the authorizer that the brokers list."""
    rows = [(acls.KIND, one.key, one.attributes) for one in live]
    told = [(f"Topic|{name}", found) for name, found in topic_rights]
    told += [(keys.join(("Cluster", acls.CLUSTER)), held)] if held is not None else []
    may = [(LISTED_RIGHTS, key, FrozenMap(operations=tuple(found))) for key, found in told]
    live_topics = [(topics.KIND, name, FrozenMap()) for name in names]
    values = {
        "authorizer": {**DECLARED, **authorizer},
        "acl_order": order,
        "authorizer_settings": listed,
        "zookeeper": zookeeper,
    }
    facts = Facts("c", ("1",), principal, FrozenMap(freeze(values)))  # type: ignore[arg-type]
    sweeps = {
        acls.KIND: _sweep(acls.KIND, rows, coverage),
        LISTED_RIGHTS: _sweep(LISTED_RIGHTS, may, VISIBLE),
        topics.KIND: _sweep(topics.KIND, live_topics, VISIBLE),
    }
    # What it does not ask for, a plan does not list.
    asked = access.list_needs(changes)
    return Judged(Scene(changes, {kind: sweeps[kind] for kind in sweeps.keys() & asked}, facts))


def _sweep(kind: str, rows: Sequence[tuple[str, str, FrozenMap]], coverage: Coverage) -> Sweep:
    items = tuple(Observed(identity(kind, key), attributes) for _, key, attributes in rows)
    return Sweep(kind, Depth.FULL, items, coverage)


# ── who gains and loses ─────────────────────────────────────────────────────────────────


def test_a_new_right_is_told_with_what_it_implies() -> None:
    """An ALLOW says who gains what, Describe included."""
    change = create(acl())
    assert judge([change]).note(change) == "User:app gains Read, Describe on Topic orders"


@pytest.mark.parametrize(
    ("other", "said"),
    [
        (
            acl("User:*", "All", "ord", "Deny", pattern="Prefixed"),
            'it gives nothing: Deny User:* All on topics with prefix "ord" from any host overrides '
            "it",
        ),
        (
            acl("User:*", name="*"),
            "it gives nothing: Allow User:* Read on every topic from any host has the same effect",
        ),
    ],
)
def test_a_right_that_changes_nothing_is_said_to(other: Acl, said: str) -> None:
    """An ALLOW that a DENY hides, or that somebody has already, gives nothing, and why."""
    change = create(acl())
    assert judge([change], [MINE, other]).note(change) == said


def test_rights_on_the_cluster_are_told_with_the_topics_that_they_reach() -> None:
    """All, Create and Delete there give it on every topic, which no ACL of a topic can deny; a
    DENY there takes only what an ALLOW there gave."""
    app, deny = "User:app", acl("User:app", "Delete", permission="Deny")
    everything = create(on_cluster("All", app))
    assert judge([everything], [MINE, deny]).note(everything) == (
        "User:app gains everything on Cluster kafka-cluster; User:app gains Create, Delete on "
        "every Topic, because Kafka checks the cluster before the topic, so no ACL of a topic can "
        "deny that"
    )
    one = create(on_cluster("Delete", app))
    assert "User:app gains Delete on every Topic" in judge([one]).note(one)
    held = [MINE, on_cluster("Delete", app), acl(app, "Create")]
    assert ("User:app", ("Delete",), "*") in judge([delete(held[1])], held).losses(delete(held[1]))
    useless = create(on_cluster("Create", app, "Deny"))
    assert judge([useless], held).note(useless).startswith("it takes nothing")


def test_a_deny_of_delete_takes_the_records_from_who_may_delete_every_topic() -> None:
    """The topic can still be deleted, its records cannot: brokers ask for the topic alone."""
    held = [MINE, on_cluster("Delete", "User:app"), acl(operation="Delete")]
    deny = create(acl(operation="Delete", permission="Deny"))
    assert judge([deny], held).note(deny) == "User:app loses Delete of records on Topic orders"
    wide = create(acl("User:*", "Delete", "ord", "Deny", pattern="Prefixed"))
    assert "loses Delete on" not in judge([wide], held).note(wide)


def test_a_deleted_acl_that_another_one_covers_takes_nothing() -> None:
    """Nobody loses what a prefix gives too, also one that the same plan makes."""
    gone, wide = delete(acl()), acl(name="ord", operation="All", pattern="Prefixed")
    found = judge([create(wide), gone], [MINE, acl()])
    assert found.note(gone).startswith("its deletion takes nothing: Allow User:app All")
    assert found.rules(gone) == ["access-unchanged"]


def test_a_loss_has_its_operations_and_its_host() -> None:
    """What an apply compares is the text and each row."""
    gone = delete(acl(host="1.1.1.1"))
    (finding,) = judge([gone], [MINE, acl(host="1.1.1.1")]).find(gone)
    assert finding.text == "User:app loses Read, Describe on Topic orders from 1.1.1.1"
    assert finding.access == (
        AccessRow(
            "User:app",
            "Topic",
            "orders",
            "literal",
            ("Read", "Describe"),
            Breadth.ONE,
            "1.1.1.1",
            before=("Read", "Describe"),
        ),
    )


def test_exceptions_of_a_wide_acl_are_named() -> None:
    """A right on everything for everybody does not reach those whom another ACL refuses."""
    change = create(acl("User:*", name="*"))
    live = [MINE, acl("User:bob", "Read", "*", "Deny"), acl("User:*", "All", "secret", "Deny")]
    said = judge([change], live).note(change)
    assert "everybody except User:bob gains Read, Describe on every Topic" in said
    assert "but not on secret" in said


MANY = [acl(f"User:u{n:02}", name="team-", pattern="Prefixed") for n in range(14)]
DENIAL = create(acl("User:*", "Read", "team-", "Deny", pattern="Prefixed"))


def test_who_is_not_asked_about_is_told() -> None:
    """Around a wide ACL only some are asked about: the plan says how many others there are and
    how to look at them."""
    found = judge([DENIAL], [MINE, *MANY])
    assert found.rules(DENIAL) == ["access-lost", "access-lost-unchecked"]
    lost, unchecked = found.find(DENIAL)
    assert "loses Read" in lost.text and "other ACLs name 4 more principals" in unchecked.text
    assert "`kafkaform explain access`" in unchecked.fix
    assert judge([DENIAL], [MINE, *MANY[:10]]).rules(DENIAL) == ["access-lost"]


def test_nothing_found_is_not_called_nothing_if_some_were_not_asked() -> None:
    """Names beyond the first twenty may fare otherwise."""
    gone = delete(acl("User:app", "Read", "*"))
    names = [acl("User:app", "Read", f"t{n:02}", "Deny") for n in range(30)]
    all_ = acl("User:app", "All", "*")
    found = judge([gone], [MINE, all_, acl("User:app", "Read", "*"), *names])
    unchecked, unchanged = found.find(gone)
    assert unchanged.text == "its deletion takes nothing as far as it was checked"
    assert unchecked.text.startswith("other ACLs name 10 more names, which were not checked")


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
    shown = _list_texts(judge([DENIAL], [MINE, *MANY]))
    assert _list_texts(judge([DENIAL], [*reversed(MANY), MINE])) == shown
    again = _list_texts(judge([DENIAL], [MINE, *MANY, more]))
    assert set(again) - set(shown)


def _list_texts(judged: Judged) -> list[str]:
    return [one.text for one in judged.find(DENIAL) if one.harm is Harm.ACCESS_LOST]


def test_who_only_gains_loses_nothing_behind_a_cap() -> None:
    """A right that is given takes none from those who are not asked about."""
    given = create(acl("User:*", "Read", "team-", pattern="Prefixed"))
    judged = judge([given], [MINE, *MANY])
    assert judged.rules(given) == ["access-gained-by-everybody", "access-gained-unchecked"]


def test_super_users_gain_nothing() -> None:
    """An ACL for a declared super user is pointless, and the plan says so."""
    change = create(acl("User:root"))
    found = judge([change], super_users=("User:root",))
    assert found.note(change) == "it gives nothing: super users may do everything"


def test_what_a_wider_acl_gives_is_told_once() -> None:
    """An ACL for Read also gives Describe. Another host is another right."""
    read, describe = create(acl(operation="Read")), create(acl(operation="Describe"))
    near = create(replace(acl(operation="Describe"), host="10.0.0.7", principal="User:near"))
    judged = judge([describe, read, near])
    assert judged.rules(read) == ["access-gained"] and not judged.rules(describe)
    assert "Read, Describe" in judged.note(read)
    assert judged.rules(near) == ["access-gained"]
    gone = [delete(acl(operation=operation)) for operation in ("Describe", "Read")]
    judged = judge(gone, [MINE, acl(operation="Describe"), acl(operation="Read")])
    assert [judged.rules(change) for change in gone] == [[], ["access-lost"]]
    # Without the wider one, what the narrower one takes is not hidden.
    assert judge(gone[:1], [MINE, acl(operation="Describe")]).rules(gone[0]) == ["access-lost"]


def test_the_first_acls_of_a_resource_close_it_once() -> None:
    """Each would take the same from everybody."""
    first = [create(acl(f"User:u{number}")) for number in range(3)]
    judged = judge(first, [MINE], **ROOT)
    assert ["access-closed" in judged.rules(change) for change in first] == [True, False, False]


def test_what_is_not_declared_is_said() -> None:
    """Gains and losses rest on super users and a default that brokers do not tell."""
    found = judge([create(acl())], super_users=None, allow_if_no_acl=None, principal=None)
    assumed, unknown = found.system
    assert (assumed.rule, unknown.rule) == ("access-assumed", "access-principal-unknown")
    assert "Set authorizer { super_users, allow_if_no_acl }" in assumed.fix
    assert not judge([create(acl())]).system


def test_settings_that_brokers_do_not_list_have_their_defaults() -> None:
    """A broker hides the values of both settings, but not that its properties have them."""
    nothing = {"super_users": None, "allow_if_no_acl": None}
    found = judge([create(acl())], listed=("super_users",), **nothing)
    (assumed,) = found.system
    assert "there are no super users" in assumed.text and "closed" not in assumed.text
    assert not judge([create(acl())], listed=(), **nothing).system
    gone = delete(acl())
    live = [MINE, acl()]
    assert not judge([gone], live, names=("orders",), listed=(), **nothing).unless
    open_ = judge([gone], live, names=("orders",), listed=("allow_if_no_acl",), **nothing)
    assert open_.unless


# ── lock-out ────────────────────────────────────────────────────────────────────────────


def test_a_plan_may_not_take_its_own_rights() -> None:
    """Deleting the ACL that lets us change ACLs is refused, and says what would be lost."""
    gone = delete(MINE)
    block = judge([gone]).blocks[gone.identity]
    assert (block.rule, block.block, block.accept) == ("access-own-lost", Block.GUARD, False)
    assert block.text == (
        "it would take Alter on Cluster kafka-cluster from User:ci, which runs this plan: "
        "only somebody else could undo it"
    )


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
    assert block.rule == "access-unproven"
    assert "it may take Alter" in block.text
    assert "Set authorizer { super_users }" in block.fix
    assert not found.blocks


def test_without_a_principal_every_candidate_is_a_risk() -> None:
    """Whoever we are, the ACL that goes may be ours; an ACL on a topic is not."""
    gone = delete(on_cluster(principal="User:CN=x"))
    live = [on_cluster(principal="User:CN=x"), on_cluster(principal="User:CN=y")]
    found = judge([gone], live, principal=None)
    (block,) = found.unless[gone.identity]
    assert "Set principal in the provider block" in block.fix
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
    assert (block.rule, block.block) == ("access-own-lost", Block.GUARD)
    assert "no later plan could see kafka_topic.orders" in block.text
    gone = delete(SEES[2])
    assert gone.identity in judge([gone, kept()], SEES, held=HELD).blocks


@pytest.mark.parametrize("operation", ["Alter", "AlterConfigs"])
def test_a_plan_that_keeps_itself_from_changes_can_be_accepted(operation: str) -> None:
    """What is seen can be given back, so it is a question and not a refusal."""
    deny = create(acl(ME, operation, "orders", "Deny"))
    found = judge([deny, kept()], SEES, held=HELD)
    (block,) = found.unless[deny.identity]
    assert not found.blocks
    assert block.rule == "access-unproven"
    assert "no later plan could change kafka_topic.orders" in block.text


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
    assert "if this state manages it, no later plan could see it" in block.text
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


def look(changes: Sequence[Change]) -> Judged:
    """What is found where nothing could be listed."""
    return Judged(Scene(changes, {}, Facts("c", ("1",), ME)))


@pytest.mark.parametrize(
    ("action", "more"), [(Action.NOOP, ""), (Action.DELETE, ", which this plan deletes: apply")]
)
def test_what_cannot_be_seen_names_the_acl_of_this_state_that_hides_it(
    action: Action, more: str
) -> None:
    """Its address is the way back; ACLs that are not there yet, of others or about other things
    are not named."""
    hidden = UNREADABLE.find("it cannot be seen: the right Describe is missing")
    topic = add_findings(kept(), hidden)

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
    (finding,) = look(changes).find(topic)
    assert finding.rule == "access-hides-object"
    assert finding.text.startswith(
        'Deny User:ci Describe on topics with prefix "ord" from any host hides it'
    )
    assert f"(kafka_acl.mine{more}" in finding.text
    assert not look(changes[:1]).findings
    assert not look([kept(), *changes[1:]]).find(topic)


def test_other_kinds_are_kept_in_sight_too() -> None:
    """Quotas and configs of brokers are read by a right on the cluster, groups by their own."""
    quota = Change(identity("kafka_quota", "user|x"), "kafka_quota.x", Action.NOOP)
    group = Change(identity("kafka_group_config", "g"), "kafka_group_config.g", Action.UPDATE)
    for operation, rule in (
        ("DescribeConfigs", "access-own-lost"),
        ("AlterConfigs", "access-unproven"),
    ):
        on_group = acl(ME, "AlterConfigs", "g", kind="Group")
        for change, deny in (
            (quota, on_cluster(operation, ME, "Deny")),
            (group, acl(ME, operation, "g", "Deny", kind="Group")),
        ):
            made = create(deny)
            found = judge([made, change], [MINE, on_group])
            blocks = [one.rule for one in found.find(made) if one.level is Level.BLOCK]
            assert blocks == [rule]


def test_rights_of_later_steps_are_kept() -> None:
    """A topic that the plan deletes afterwards must still be deletable then."""
    mine, alter = acl(ME, "Delete"), (on_cluster("Alter"), on_cluster("Describe"))
    topic = Change(identity(topics.KIND, "orders"), "kafka_topic.orders", Action.DELETE)
    gone, held = delete(mine), ("Alter", "Describe")
    found = judge([gone, topic], [*alter, mine], held=held, names=("orders",))
    assert "kafka_topic.orders needs it later" in found.blocks[gone.identity].text
    assert not judge([gone], [MINE, mine], names=("orders",)).blocks
    whole = on_cluster("Delete")
    assert not judge([gone, topic], [*alter, whole, mine], held=held, names=("orders",)).blocks
    found = judge([delete(whole), topic], [*alter, whole], held=held, names=("orders",))
    assert "kafka_topic.orders needs it later" in found.blocks[delete(whole).identity].text


# ── coverage, open access ───────────────────────────────────────────────────────────────


def test_without_all_acls_nothing_is_taken() -> None:
    """Deletes and DENYs are blocked where the listing failed; an ALLOW is not."""
    gone, deny, allow = delete(acl()), create(acl(permission="Deny")), create(acl("User:b"))
    found = judge([gone, deny, allow], coverage=Coverage(CoverageKind.FAILED))
    assert set(found.blocks) == {gone.identity, deny.identity}
    assert {block.block for block in found.blocks.values()} == {Block.GUARD}


@pytest.mark.parametrize(("rule", "blocked"), [(True, True), (None, True), (False, False)])
def test_the_last_acl_of_a_topic(rule: bool | None, blocked: bool) -> None:
    """It may not go where no ACL means that everybody may, or where that is not known."""
    gone = delete(acl())
    found = judge([gone], [MINE, acl()], names=("orders",), allow_if_no_acl=rule)
    assert (gone.identity in found.unless) is blocked
    if blocked:
        (block,) = found.unless[gone.identity]
        assert block.rule == "access-opened"
        assert "it is the last ACL of Topic orders" in block.text


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
    assert "Topic orders.us" in found.unless[gone.identity][0].text
    assert not judge([gone], live, names=("orders.eu",), **root).unless


ROOT: dict[str, Any] = {"allow_if_no_acl": True, "super_users": (ME,)}


def test_where_the_cluster_stands_open_topics_are_open_to_deletion() -> None:
    """Closing a topic does not take its deletion from anybody, closing the cluster does; its last
    ACL opens every topic."""
    first, whole = create(acl()), create(on_cluster("Describe", "User:app"))
    found = judge([first], [], held=None, **ROOT)
    assert "everybody can still create and delete it, because the cluster has no ACL" in found.note(
        first
    )
    found = judge([first], [], held=None, zookeeper=True, **ROOT)
    assert "access-closed" in found.rules(first) and "can still" not in found.note(first)
    found = judge([whole], [], held=None, zookeeper=True, **ROOT)
    assert "topics that have ACLs can no longer be created by everybody" in found.note(whole)
    found = judge([first, whole], [], held=None, **ROOT)
    assert "can still" not in found.note(first)
    assert "topics that have ACLs can no longer be created and deleted by everybody" in found.note(
        whole
    )
    last = delete(MINE)
    (block,) = judge([last], [MINE], **ROOT).unless[last.identity]
    assert "and can create and delete every topic" in block.text
    (row,) = block.access
    assert (row.principal, row.operations, row.breadth) == ("User:*", ("All",), Breadth.EVERYBODY)


def test_delete_on_the_cluster_deletes_no_topic_of_a_cluster_with_zookeeper() -> None:
    """Who gets All on the cluster can create every topic there, and delete none."""
    change = create(on_cluster("All", "User:app"))
    for zookeeper, text in (
        (False, "Create, Delete on every Topic"),
        (True, "Create on every Topic"),
    ):
        assert f"User:app gains {text}, " in judge([change], zookeeper=zookeeper).note(change)


def test_the_first_acl_of_the_topic_that_brokers_ask_for_shuts_producers_out() -> None:
    """Where no ACL means that everybody may, idempotent producers of all topics hang on one name,
    unless the cluster has no ACL or the right is there for all."""
    change = create(replace(acl(), resource_name="hard", pattern_type="Prefixed"))
    found = judge([change], [MINE], **ROOT)
    assert "loses IdempotentWrite for all topics" in found.note(change)
    assert ("User:*", ("IdempotentWrite",), acls.CLUSTER) in found.losses(change)
    assert "access-closed-to-producers" not in judge(
        [change], [MINE], zookeeper=True, **ROOT
    ).rules(change)
    every = on_cluster("IdempotentWrite", "User:*")
    for live, rule in (([MINE], False), ([MINE, every], True), ([], True)):
        held = None if live else frozenset[str]()
        found = judge([change], live, held=held, allow_if_no_acl=rule, super_users=(ME,))
        assert "access-closed-to-producers" not in found.rules(change)


def test_the_first_acl_closes_a_resource() -> None:
    """Where no ACL means that everybody may, the first one takes it from everybody else."""
    change = create(acl())
    found = judge([change], allow_if_no_acl=True)
    assert (
        "everybody loses access to Topic orders, which was open, except for what ACLs allow"
        in found.note(change)
    )
    assert ("User:*", ("All",), "orders") in found.losses(change)
    assert "access-closed" not in judge([change]).rules(change)


def test_the_first_acl_of_a_new_topic_takes_nothing() -> None:
    """Nobody has used a topic that the same plan creates."""
    change = create(acl())
    found = judge([kept(action=Action.CREATE), change], [MINE], **ROOT)
    assert "access-closed" not in found.rules(change)
    other = judge([kept("other", Action.CREATE), change], [MINE], **ROOT)
    assert "access-closed" in other.rules(change)


@pytest.mark.parametrize(
    ("first", "lost"),
    [
        (on_cluster("All", "User:*"), None),
        (acl("User:*", "All"), None),
        (acl("User:*", "All", "*"), None),
        (acl("User:*", "All", "ord", pattern="Prefixed"), None),
        (acl("User:*"), ("Write", "Create", "Delete", "Alter", "DescribeConfigs", "AlterConfigs")),
        (acl("User:*", "All", host="10.0.0.1"), ("All",)),
        (acl("User:*", "Read", permission="Deny"), ("All",)),
    ],
)
def test_a_first_acl_that_allows_everybody_takes_nothing_that_it_gives(
    first: Acl, lost: tuple[str, ...] | None
) -> None:
    """What it allows everybody is open as before; only the rest is lost."""
    change, whole = create(first), on_cluster("Describe")
    live = [] if first.resource_type == "Cluster" else [whole]
    found = judge([change], live, held=None, **ROOT)
    closings = [one for one in found.find(change) if one.rule == "access-closed"]
    assert [row.operations for one in closings for row in one.access] == ([lost] if lost else [])
    assert not found.blocks and not found.unless


# ── a cluster that may be open ──────────────────────────────────────────────────────────

EVERY = acls.list_reported_operations("Topic")
UNDECLARED: dict[str, Any] = {"super_users": None, "allow_if_no_acl": None}
ACTS: dict[str, Any] = {"topic_rights": [("orders", EVERY)], "held": EVERYTHING}
"""We can do everything with the cluster and a topic."""


def test_a_login_without_acls_that_acts_may_be_locked_out_by_a_first_acl() -> None:
    """Nothing says whether it is a super user or everything is open, so the first ACL of its own
    topic may lock it out: that needs a declaration, or has to be accepted."""
    first = create(acl())
    found = judge([first, kept()], [], **ACTS, **UNDECLARED)
    (block,) = found.unless[first.identity]
    assert block.rule == "access-unproven"
    assert "it may take Describe on Topic orders from User:ci" in block.text
    assert "Set authorizer" in block.fix
    closed = next(one for one in found.find(first) if one.rule == "access-closed")
    assert closed.level is Level.CAUTION
    assert closed.text.startswith("if allow.everyone.if.no.acl.found is true, everybody loses")


@pytest.mark.parametrize(
    "known",
    [
        {"allow_if_no_acl": False, "super_users": None},
        {"allow_if_no_acl": None, "super_users": (ME,)},
        {**UNDECLARED, "listed": ("super_users",)},
    ],
)
def test_a_login_that_cannot_be_locked_out_is_not_asked(known: dict[str, Any]) -> None:
    """What is closed without ACLs is not open to us by that, and no ACL stops a super user."""
    first = create(acl())
    found = judge([first, kept()], [], **ACTS, **known)
    assert not found.blocks and not found.unless
    assert "access-closed" not in found.rules(first)


def test_a_login_whose_acls_explain_what_it_can_do_is_not_asked() -> None:
    """Then nothing speaks for an open cluster."""
    first = create(acl())
    live = [MINE, acl(ME, "All", "*")]
    found = judge([first, kept()], live, **ACTS, **UNDECLARED)
    assert not found.blocks and not found.unless


def test_a_login_that_is_no_super_user_proves_that_the_cluster_is_open() -> None:
    """It acts without any ACL, so what has none is open: the lock-out is certain."""
    first = create(acl())
    declared = {"super_users": ("User:root",), "allow_if_no_acl": None}
    found = judge([first, kept()], [], **ACTS, **declared)
    assert found.blocks[first.identity].rule == "access-own-lost"
    closed = next(one for one in found.find(first) if one.rule == "access-closed")
    assert closed.level is Level.DANGER
    assert not found.system
    keeps = [create(acl(ME, "All")), first, kept()]
    assert not judge(keeps, [], **ACTS, **declared).blocks


# ── how much it matters ─────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("gain", "rule", "level"),
    [
        (acl("User:*"), "access-gained-by-everybody", "danger"),
        (acl(operation="All"), "access-gained-everything", "danger"),
        (on_cluster("Describe", "User:app"), "access-gained-on-cluster", "danger"),
        (acl(name="*"), "access-gained-widely", "danger"),
        (acl(operation="Alter"), "access-gained-administration", "danger"),
        (acl(operation="AlterConfigs"), "access-gained-administration", "danger"),
        (
            acl(operation="CreateTokens", name="User:root", kind="User"),
            "access-gained-administration",
            "danger",
        ),
        (acl(name="ord", pattern="Prefixed"), "access-gained-by-prefix", "caution"),
        (acl(), "access-gained", "note"),
        (acl(operation="Describe", name="x", kind="DelegationToken"), "access-gained", "note"),
    ],
)
def test_a_gain_matters_by_its_breadth(gain: Acl, rule: str, level: str) -> None:
    """The widest that is true decides; to take the same right away is a danger to its clients."""
    change = create(gain)
    finding = judge([change]).find(change)[0]
    assert (finding.rule, finding.level) == (rule, level)
    assert finding.harm is Harm.ACCESS_GAINED and finding.access
    gone = delete(gain)
    loss = judge([gone], [MINE, gain]).find(gone)[0]
    wide = (
        gain.principal == "User:*" or gain.resource_type == "Cluster" or gain.resource_name == "*"
    )
    assert loss.rule == ("access-lost-widely" if wide else "access-lost")
    assert (loss.level, loss.harm) == (Level.DANGER, Harm.ACCESS_LOST)


def test_a_deny_that_goes_away_is_a_danger_if_it_gives_something() -> None:
    """An ALLOW that it overrode applies again; without one, nobody gains anything."""
    deny = acl("User:app", "All", "ord", "Deny", pattern="Prefixed")
    gone = delete(deny)
    found = judge([gone], [MINE, deny, acl()])
    assert found.rules(gone) == ["access-deny-removed"]
    assert found.find(gone)[0].level is Level.DANGER
    assert judge([gone], [MINE, deny]).rules(gone) == ["access-unchanged"]


def test_rows_say_what_was_and_what_will_be() -> None:
    """Before and after have all that the principal can do there; a wide row covers its parts."""
    change = create(acl("User:app", "All", "*"))
    (finding,) = judge([change], [MINE, acl(), acl("User:b", name="x")]).find(change)[:1]
    first = finding.access[0]
    assert (first.name, first.breadth, first.operations) == ("*", Breadth.EVERY, ("All",))
    assert (first.before, first.after) == ((), ("All",))
    rest = [row for one in judge([change], [MINE, acl()]).find(change)[1:] for row in one.access]
    assert [(row.name, row.before) for row in rest] == [("orders", ("Read", "Describe"))]


# ── new logins ──────────────────────────────────────────────────────────────────────────


def login(name: str = "app", action: Action = Action.CREATE) -> Change:
    where = identity(users.KIND, users.identity_key(name, "SCRAM-SHA-256"))
    return Change(where, f"kafka_user_scram_credential.{name}", action)


def test_a_new_login_has_the_rights_that_wait_for_it() -> None:
    """ACLs of its name apply with its first password: a caution, a danger if they reach far."""
    (finding,) = judge([login()], [MINE, acl()]).find(login())
    assert finding.text == "User:app is a new login with rights: Read/Describe on Topic orders"
    assert (finding.rule, finding.level) == ("access-gained-by-new-login", Level.CAUTION)
    assert [row.name for row in finding.access] == ["orders"]
    (finding,) = judge([login()], [MINE, on_cluster("All", "User:app")]).find(login())
    assert finding.level is Level.DANGER


def test_what_the_plan_gives_a_new_login_is_a_row_of_its_acl() -> None:
    """The caution names it, and nothing is counted twice."""
    changes = [login(), create(acl())]
    found = judge(changes)
    (finding,) = found.find(login())
    assert "Read/Describe on Topic orders" in finding.text
    assert not finding.access
    assert found.rules(changes[1]) == ["access-gained"]


@pytest.mark.parametrize(
    ("change", "live"),
    [
        (login(), [MINE]),
        (login(), [MINE, acl(), acl("User:*", "All", "*", "Deny")]),
        (login(action=Action.NOOP), [MINE, acl()]),
        (login(action=Action.DELETE), [MINE, acl()]),
    ],
)
def test_a_login_without_new_rights_is_none(change: Change, live: Sequence[Acl]) -> None:
    """Nobody gains anything without an ACL, under a DENY, or with a login that is there."""
    assert not judge([change], live).findings


def test_where_acls_cannot_be_read_a_new_login_is_no_reason_for_a_block() -> None:
    """The plan changes no ACL."""
    assert not judge([login()], coverage=Coverage(CoverageKind.FAILED)).findings


# ── calibration ─────────────────────────────────────────────────────────────────────────


def test_a_cluster_that_agrees_is_believed() -> None:
    """What the cluster says that we may do is what its ACLs say."""
    few = [on_cluster("Alter"), on_cluster("Describe"), acl(ME, "Read")]
    rights_ = [("orders", ("Read", "Describe"))]
    found = judge([create(acl())], few, held=("Alter", "Describe"), topic_rights=rights_)
    assert not found.unless
    assert not found.system


@pytest.mark.parametrize(
    ("held", "topic_rights", "said"),
    [
        (
            ("Alter", "Describe", "Create"),
            (),
            "the cluster reports that User:ci may Create on Cluster kafka-cluster, but by its ACLs "
            "it may not",
        ),
        (
            ("Describe",),
            (),
            "the cluster reports that User:ci may not Alter on Cluster kafka-cluster, but by Allow "
            "User:ci Alter on the cluster from any host it may",
        ),
        (
            ("Alter", "Describe"),
            (("orders", ("Describe", "Write")),),
            "the cluster reports that User:ci may Write on Topic orders, but by its ACLs it may "
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
    assert said in found.system[0].text
    assert found.system[0].rule == "access-mismatch"
    assert found.unless[change.identity][0].rule == "access-unproven"


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


# ── the table ───────────────────────────────────────────────────────────────────────────

WIDE = acl("User:*", name="team-", pattern="Prefixed")
DENY = acl("User:app", "All", "ord", "Deny", pattern="Prefixed")
FAILED = Coverage(CoverageKind.FAILED)
BLIND = Change(
    identity(topics.KIND, "orders"),
    "kafka_topic.orders",
    Action.NOOP,
    findings=(UNREADABLE.find("it cannot be seen"),),
)
HIDES = Change(
    identity(acls.KIND, acl(ME, "Describe", permission="Deny").key), "kafka_acl.x", Action.NOOP
)
CASES: dict[str, Callable[[], Judged]] = {
    "access-closed": lambda: judge([create(acl())], [MINE], **ROOT),
    "access-closed-to-producers": lambda: judge(
        [create(acl(name="h", pattern="Prefixed"))], [MINE], **ROOT
    ),
    "access-deny-removed": lambda: judge([delete(DENY)], [MINE, DENY, acl()]),
    "access-gained": lambda: judge([create(acl())]),
    "access-gained-administration": lambda: judge([create(acl(operation="Alter"))]),
    "access-gained-by-everybody": lambda: judge([create(WIDE)]),
    "access-gained-by-new-login": lambda: judge([login()], [MINE, acl()]),
    "access-gained-by-prefix": lambda: judge([create(acl(name="o", pattern="Prefixed"))]),
    "access-gained-everything": lambda: judge([create(acl(operation="All"))]),
    "access-gained-on-cluster": lambda: judge([create(on_cluster("Alter", "User:app"))]),
    "access-gained-unchecked": lambda: judge([create(WIDE)], [MINE, *MANY]),
    "access-gained-widely": lambda: judge([create(acl(name="*"))]),
    "access-hides-object": lambda: look([BLIND, HIDES]),
    "access-lost": lambda: judge([delete(acl())], [MINE, acl()]),
    "access-lost-unchecked": lambda: judge([DENIAL], [MINE, *MANY]),
    "access-lost-widely": lambda: judge([delete(acl(name="*"))], [MINE, acl(name="*")]),
    "access-mismatch": lambda: judge([create(acl())], held=("Describe",)),
    "access-newer-acls": lambda: judge([create(acl())], [MINE, acl(operation="77")]),
    "access-opened": lambda: judge([delete(acl())], [MINE, acl()], allow_if_no_acl=True),
    "access-order": lambda: judge([create(acl(operation="Write")), delete(acl())], [MINE, acl()]),
    "access-own-lost": lambda: judge([delete(MINE)]),
    "access-principal-unknown": lambda: judge([create(acl())], principal=None),
    "access-assumed": lambda: judge([create(acl())], super_users=None),
    "access-unchanged": lambda: judge([create(acl())], [MINE, DENY]),
    "access-unproven": lambda: judge([delete(MINE)], super_users=None),
    "access-unread": lambda: judge([delete(acl())], coverage=FAILED),
}
"""Rule -> a plan in which it finds something."""


def test_the_table_has_every_rule() -> None:
    """No rule is without a plan that breaks it."""
    assert {rule.id for rule in (*access_rows.ACCESS, access_rows.HIDDEN)} == CASES.keys()


@pytest.mark.parametrize("rule", CASES)
def test_each_rule_finds_something(rule: str) -> None:
    """And a plan that says something else does not break it."""
    assert rule in {finding.rule for _, finding in CASES[rule]().findings}
    usual = judge([create(acl()), create(acl(ME))])
    assert {finding.rule for _, finding in usual.findings} == {"access-gained"}
    rare = judge([create(acl(operation="All"))])
    assert {finding.rule for _, finding in rare.findings} == {"access-gained-everything"}


def check(*live: Acl, **settings: Any) -> list[tuple[str, str, str]]:
    """What `check` finds about these live ACLs: rule, principal, sentence. settings: of the
    authorizer."""
    changes = [
        Change(identity(acls.KIND, one.key), "", Action.NOOP, one.attributes, one.attributes)
        for one in live
    ]
    values = freeze({"authorizer": {**DECLARED, **settings}})
    scene = Scene(changes, {}, Facts("c", ("1",), ME, FrozenMap(values)))  # type: ignore[arg-type]
    (survey,) = access.CHECKS
    pairs = list(survey.find(scene))
    assert {finding.rule for _, finding in pairs} <= {rule.id for rule in survey.rules}
    return [
        (finding.rule, acls.parse_acl_key(subject.key).principal, finding.text)
        for subject, finding in pairs
        if subject is not None
    ]


def test_live_acls_that_give_much_are_told() -> None:
    """What everybody has, and what a principal has on the cluster or on every topic: once for each
    principal and pattern, with all that it can do there."""
    everything = on_cluster(principal="User:tool")
    reads = acl("User:audit", "Read", "*")
    assert check(acl("User:*"), everything, reads, replace(reads, operation="Write")) == [
        ("access-held-by-everybody", "User:*", "everybody has Read, Describe on Topic orders"),
        (
            *("access-held-widely", "User:audit"),
            "User:audit has Read, Write, Describe on every Topic",
        ),
        ("access-held-widely", "User:tool", "User:tool has everything on Cluster kafka-cluster"),
    ]


def test_live_acls_that_give_little_are_not_told() -> None:
    """Named topics and prefixes, what only describes, what a DENY takes away, and super users."""
    reads = acl("User:audit", "Read", "*")
    narrow = (
        *(acl(), acl(pattern="Prefixed"), acl("User:app", "All"), on_cluster("Describe")),
        *(acl("User:*", "Describe"), on_cluster("IdempotentWrite", "User:*")),
        *(reads, replace(reads, operation="All", permission="Deny")),
    )
    assert check(*narrow) == []
    assert check(on_cluster(principal="User:root"), super_users=("User:root",)) == []
