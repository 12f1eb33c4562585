"""Rules of names: names that match nothing, and names of what does not exist."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action, Change, add_findings
from kafkaform.core.finding import Finding, Level
from kafkaform.core.resource import Coverage, CoverageKind, Depth, Facts, Identity, Observed, Sweep
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform_kafka.kinds.quota import resource_type as quotas
from kafkaform_kafka.kinds.topic import resource_type as topics
from kafkaform_kafka.kinds.user import resource_type as users
from kafkaform_kafka.protocol import acl as acls
from kafkaform_kafka.protocol import keys
from kafkaform_kafka.protocol.acl import HELD_OPERATIONS, LISTED_GROUPS, LISTED_RIGHTS, Acl
from kafkaform_kafka.provider import PROVIDER
from kafkaform_kafka.rules import missing_names
from kafkaform_kafka.rules.missing_names import list_needs

from ....kit.kafka.changes import FACTS, change, facts, topic
from ....kit.kafka.judgement import judge, name_rules, survey

ALL_ON_CLUSTER = acls.list_reported_operations("Cluster")


def acl(
    principal: str = "User:ci",
    kind: str = "Topic",
    name: str = "orders",
    *,
    operation: str = "Read",
    pattern: str = "Literal",
    permission: str = "Allow",
    action: Action = Action.CREATE,
    address: str = "",
    host: str = "*",
) -> Change:
    """A change of an ACL."""
    rule = Acl(principal, host, operation, permission, kind, name, pattern)
    identity = Identity("kafka", acls.KIND, rule.key)
    sides = (None, rule.attributes) if action is Action.CREATE else (rule.attributes, None)
    return Change(identity, address or f'kafka_access.x/acl["{rule.key}"]', action, *sides)


def quota(**entity: str | None) -> Change:
    """A new quota of an entity."""
    parts = FrozenMap({name.replace("_", "-"): value for name, value in entity.items()})
    identity = Identity("kafka", quotas.KIND, quotas.entity_key(parts))
    after = FrozenMap(entity=parts, config=FrozenMap(request_percentage=50))
    return Change(identity, "kafka_quota.x", Action.CREATE, None, after)


def user(name: str, action: Action = Action.CREATE) -> Change:
    """A change of a SCRAM credential."""
    identity = Identity("kafka", users.KIND, users.identity_key(name, "SCRAM-SHA-256"))
    attributes = users.make_attributes(name, "SCRAM-SHA-256", 4096)
    sides = (None, attributes) if action is Action.CREATE else (attributes, None)
    return Change(identity, "kafka_user_scram_credential.x", action, *sides)


def sweep(kind: str, items: Iterable[Observed | str], coverage: CoverageKind) -> Sweep:
    """A listing of these objects or names."""
    listed = tuple(
        item if isinstance(item, Observed) else Observed(Identity("kafka", kind, item), EMPTY)
        for item in items
    )
    return Sweep(kind, Depth.FULL, listed, Coverage(coverage))


def list_all(
    *,
    live_topics: Iterable[str] = (),
    live_groups: Iterable[str] = (),
    live_users: Iterable[str] = (),
    live_acls: Iterable[Change] = (),
    held: Iterable[str] = ALL_ON_CLUSTER,
    users_coverage: CoverageKind = CoverageKind.COMPLETE,
) -> Mapping[str, Sweep]:
    """The listings of a cluster that a super user made. held: our operations on the cluster."""
    rules = [Observed(item.identity, item.after or item.before or EMPTY) for item in live_acls]
    own = Observed(
        Identity("kafka", LISTED_RIGHTS, keys.join(("Cluster", acls.CLUSTER))),
        FrozenMap({HELD_OPERATIONS: tuple(held)}),
    )
    credentials = [users.identity_key(name, "SCRAM-SHA-256") for name in live_users]
    visible, complete = CoverageKind.VISIBLE_ONLY, CoverageKind.COMPLETE
    return {
        topics.KIND: sweep(topics.KIND, live_topics, visible),
        LISTED_GROUPS: sweep(LISTED_GROUPS, live_groups, visible),
        users.KIND: sweep(users.KIND, credentials, users_coverage),
        acls.KIND: sweep(acls.KIND, rules, complete),
        LISTED_RIGHTS: sweep(LISTED_RIGHTS, [own], visible),
    }


def find(
    rule: str, *changes: Change, sweeps: Mapping[str, Sweep] | None = None, of: Facts = FACTS
) -> list[Finding]:
    """What a rule finds about changes together."""
    pairs = survey(changes, sweeps or list_all(), of)
    return [finding for _, finding in pairs if finding.rule == rule]


# ── names that match nothing ────────────────────────────────────────────────────────────

MATCHLESS: tuple[tuple[str, Change, str], ...] = (
    ("name-blank-at-end", acl("User:ci "), "the principal 'ci ' ends with a blank"),
    ("name-blank-at-end", acl("User: ci"), "the principal ' ci' begins with a blank"),
    ("name-blank-at-end", acl(kind="Group", name="app "), "the group 'app ' ends with a blank"),
    ("name-blank-at-end", quota(user="ci "), "the user 'ci ' ends with a blank"),
    ("name-blank-at-end", quota(client_id=" app"), "the client id ' app' begins with a blank"),
    ("name-blank-at-end", user("ci "), "the user 'ci ' ends with a blank"),
    ("name-quoted", acl("User:'ci'"), "the quotes are a part of the principal 'ci'"),
    ("name-quoted", quota(user='"ci"'), 'the quotes are a part of the user "ci"'),
    ("name-several", acl("User:a,User:b"), "'User:a,User:b' is one principal with exactly"),
    ("name-several", acl("User:a; User:b"), "'User:a; User:b' is one principal"),
    ("name-several", acl("User:a User:b"), "'User:a User:b' is one principal"),
    ("name-several", quota(user="a,b"), "'a,b' is one user with exactly this name"),
    ("name-with-type", quota(user="User:ci"), "'User:ci' is a principal; quotas and credentials"),
    ("name-with-type", user("User:ci"), "'User:ci' is a principal; quotas and credentials"),
    ("quota-name-pattern", quota(user="*"), "a quota is for one user, and none is called '*'"),
    ("quota-name-pattern", quota(user="<default>"), "none is called '<default>'"),
    ("quota-name-pattern", quota(client_id="app-*"), "a quota is for one client id, and none is"),
    ("acl-principal-group", acl("Group:ops"), "Group:ops is nobody: Kafka's logins are users"),
)
FINE = (
    acl(),
    acl("User:*"),
    acl("User:CN=app,OU=shop,O=Shop"),
    acl("User:app/host@REALM"),
    acl("ServiceAccount:x"),
    quota(user="ci"),
    quota(user=None),
    quota(client_id="my app"),
    quota(user="CN=app,OU=shop"),
    quota(ip="192.0.2.7"),
    user("zoe smith"),
)


@pytest.mark.parametrize(("rule", "change", "says"), MATCHLESS)
def test_a_name_that_matches_nothing(rule: str, change: Change, says: str) -> None:
    """Found in the plan and by `validate`, as a caution that says what to write."""
    for only_block in (True, False):
        (finding,) = [f for f in judge(change, only_block=only_block) if f.rule == rule]
        assert finding.level is Level.CAUTION and says in finding.text and finding.fix


@pytest.mark.parametrize("change", FINE)
def test_names_as_they_should_be(change: Change) -> None:
    """Names of certificates and of Kerberos, the default and everybody are fine."""
    assert {f.rule for f in judge(change)} & {rule for rule, _, _ in MATCHLESS} == set()


def test_only_what_a_plan_makes_is_judged() -> None:
    """A deletion of such a name is welcome."""
    assert judge(acl("User:ci ", action=Action.DELETE)) == []


# ── topics ──────────────────────────────────────────────────────────────────────────────


def test_a_topic_that_is_neither_declared_nor_live() -> None:
    """With the nearest name, once for each block, however many ACLs it has."""
    changes = [acl(name="ordres", operation=what) for what in ("Read", "Describe")]
    sweeps = list_all(live_topics=["orders", "payments"])
    (finding,) = find("acl-topic-missing", *changes, sweeps=sweeps)
    assert finding.level is Level.CAUTION and finding.path == ("resource_name",)
    assert finding.text == (
        "the topic 'ordres' is neither declared nor live; there is a topic 'orders'"
    )
    assert finding.fix == "Write 'orders' if that is meant."
    (plain,) = find("acl-topic-missing", acl(name="billing"), sweeps=sweeps)
    assert plain.text == "the topic 'billing' is neither declared nor live"


@pytest.mark.parametrize(
    "changes",
    [
        [acl(name="orders")],
        [acl(name="new"), change(Action.CREATE, None, topic("new"))],
        [acl(name="kept"), change(Action.NOOP, topic("kept"), topic("kept"))],
        [acl(name="*")],
        [acl(name="billing", pattern="Prefixed")],
        [acl(name="billing", action=Action.DELETE)],
    ],
)
def test_topics_that_are_there(changes: list[Change]) -> None:
    """Live, created or declared; patterns and deletions are not asked about."""
    assert find("acl-topic-missing", *changes, sweeps=list_all(live_topics=["orders"])) == []


def test_a_topic_that_the_same_plan_deletes_is_missing() -> None:
    """It is gone when the ACL begins to count."""
    gone = change(Action.DELETE, topic("orders"), None)
    sweeps = list_all(live_topics=["orders"])
    assert len(find("acl-topic-missing", acl(), gone, sweeps=sweeps)) == 1


def test_where_topics_can_be_hidden_only_a_near_name_is_told() -> None:
    """Brokers leave out what we may not describe, so a name that is missing proves nothing."""
    ours = acl("User:admin", "Cluster", acls.CLUSTER, operation="Describe")
    hidden = list_all(live_topics=["orders"], held=("Describe",), live_acls=[ours])
    assert find("acl-topic-missing", acl(name="billing"), sweeps=hidden) == []
    assert len(find("acl-topic-missing", acl(name="ordres"), sweeps=hidden)) == 1
    every = acl("User:admin", name="*", operation="Describe")
    seeing = list_all(live_topics=["orders"], held=("Describe",), live_acls=[ours, every])
    assert len(find("acl-topic-missing", acl(name="billing"), sweeps=seeing)) == 1


def test_a_right_that_no_acl_explains_shows_all_topics_without_acls() -> None:
    """We are a super user, or what has no ACL is open; an ACL of others can hide its topic."""
    others = acl("User:other", name="billing")
    open_to_us = list_all(live_topics=["orders"], live_acls=[others])
    assert len(find("acl-topic-missing", acl(name="shipping"), sweeps=open_to_us)) == 1
    assert find("acl-topic-missing", acl(name="billing"), sweeps=open_to_us) == []


def test_a_listing_that_failed_tells_nothing() -> None:
    """Neither topics nor users nor groups are missing then."""
    failed = {
        kind: replace(listing, coverage=Coverage(CoverageKind.FAILED))
        for kind, listing in list_all(live_topics=["orders"], live_users=["cj"]).items()
    }
    changes = [acl(name="ordres"), acl(kind="Group", name="ordres"), quota(user="ci")]
    assert survey(changes, failed) == [
        pair for pair in survey(changes, failed) if pair[1].rule == "quota-limit-new"
    ]


# ── groups ──────────────────────────────────────────────────────────────────────────────


def test_a_group_is_told_only_if_its_name_is_nearly_that_of_another() -> None:
    """New groups are normal; those that exist, and their siblings, are fine."""
    sweeps = list_all(live_groups=["order-service", "billing-1"])
    (finding,) = find("acl-group-misspelt", acl(kind="Group", name="order-servcie"), sweeps=sweeps)
    assert finding.text == (
        "the group 'order-servcie' is neither declared nor live; there is a group 'order-service'"
    )
    for name in ("order-service", "shipping", "billing-2", "*"):
        assert find("acl-group-misspelt", acl(kind="Group", name=name), sweeps=sweeps) == []


def test_where_many_names_are_missing_the_nearest_are_not_looked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are no typos, and a large plan must not wait for that."""
    monkeypatch.setattr(missing_names, "COMPARED", 2)
    made = [acl(name=name, address=f"kafka_acl.{name}") for name in ("ordres", "odrers", "oders")]
    findings = find("acl-topic-missing", *made, sweeps=list_all(live_topics=["orders"]))
    assert ["'orders'" in finding.text for finding in findings] == [True, True, False]


# ── logins ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("named", [quota(user="paymnets"), acl("User:paymnets")])
def test_a_user_without_a_login(named: Change) -> None:
    """On a cluster with SCRAM users, with the nearest name; declared users count."""
    (finding,) = find("user-login-missing", named, sweeps=list_all(live_users=["payments"]))
    assert finding.level is Level.CAUTION
    assert finding.text == (
        "no user with a SCRAM credential is called 'paymnets', declared or live; there is a user "
        "'payments'"
    )
    (declared,) = find("user-login-missing", named, user("payments"))
    assert "'payments'" in declared.text
    there = list_all(live_users=["paymnets"])
    assert find("user-login-missing", named, sweeps=there) == []
    assert find("user-login-missing", named, user("paymnets")) == []
    assert find("user-login-missing", named) == []
    gone = user("paymnets", Action.DELETE)
    assert find("user-login-missing", named, gone, user("other"), sweeps=there)


@pytest.mark.parametrize(
    "named",
    [
        acl("User:CN=app"),
        acl("User:app/host"),
        acl("User:app@REALM"),
        acl("User:*"),
        acl("Group:ops"),
        acl("User:ANONYMOUS"),
        acl("User:admin"),
        acl("User:root"),
        quota(user="CN=app"),
        quota(user="*"),
        quota(user=None),
        quota(client_id="app"),
    ],
)
def test_users_of_other_logins(named: Change) -> None:
    """Certificates, Kerberos, patterns, super users and ourselves need no SCRAM credential."""
    of = facts(authorizer=FrozenMap(super_users=("User:root",)))
    sweeps = list_all(live_users=["payments"])
    assert find("user-login-missing", named, sweeps=sweeps, of=of) == []


# ── roles without a group ───────────────────────────────────────────────────────────────


def test_rights_to_read_without_a_group() -> None:
    """Told once for each principal."""
    changes = [acl(operation="Read"), acl(name="other"), acl(operation="Describe")]
    (finding,) = find("access-without-group", *changes)
    assert finding.level is Level.CAUTION
    assert finding.text.startswith("User:ci can read topics, and has no right on any consumer")


@pytest.mark.parametrize(
    ("more", "live", "of"),
    [
        ([acl(kind="Group", name="app")], [], FACTS),
        ([], [acl(kind="Group", name="app", operation="All")], FACTS),
        ([], [acl("User:*", kind="Group", name="*")], FACTS),
        ([], [], facts(authorizer=FrozenMap(super_users=("User:ci",)))),
        ([], [], facts(authorizer=FrozenMap(allow_if_no_acl=True))),
    ],
)
def test_groups_that_can_be_read_in(more: list[Change], live: list[Change], of: Facts) -> None:
    """Granted by this plan or before, to everybody, to super users, and where nothing is closed."""
    assert find("access-without-group", acl(), *more, sweeps=list_all(live_acls=live), of=of) == []


def test_rights_that_a_deny_takes_away_are_none() -> None:
    """Whoever cannot read the topic needs no group; a right for one host is one."""
    deny = acl(name="*", permission="Deny", operation="All")
    assert find("access-without-group", acl(), sweeps=list_all(live_acls=[deny])) == []
    assert find("access-without-group", acl(), deny) == []
    assert len(find("access-without-group", acl(host="192.0.2.7"))) == 1


def test_a_group_that_the_same_plan_takes_away_is_none() -> None:
    """Its ACL goes, and the reader stays without one."""
    right = acl(kind="Group", name="app")
    gone = acl(kind="Group", name="app", action=Action.DELETE)
    assert find("access-without-group", acl(), gone, sweeps=list_all(live_acls=[right]))


# ── what is listed for it ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("made", "listed"),
    [
        (acl(), {topics.KIND, users.KIND, acls.KIND, LISTED_RIGHTS}),
        (acl(kind="Group"), {LISTED_GROUPS, users.KIND, acls.KIND, LISTED_RIGHTS}),
        (acl(pattern="Prefixed"), {users.KIND, acls.KIND, LISTED_RIGHTS}),
        (quota(user="ci"), {users.KIND}),
        (quota(client_id="app"), set()),
        (user("ci"), set()),
    ],
)
def test_only_created_objects_are_asked_about(made: Change, listed: set[str]) -> None:
    """A plan without them costs no request."""
    assert set(list_needs([made])) == listed


def test_a_survey_has_no_part_of_blocked_changes() -> None:
    """What is not made is not asked about."""
    row: Any = next(rule for rule in PROVIDER.load_rules().rules if rule.id == "quota-empty")
    blocked = add_findings(quota(user="ordres"), row.find("x", fix="y"))
    assert find("user-login-missing", blocked, sweeps=list_all(live_users=["orders"])) == []
    assert name_rules(judge(quota(user="ordres"))) == []


def test_other_objects_of_a_plan_are_passed_over() -> None:
    """Topics beside ACLs and quotas have no users in them."""
    sweeps = list_all(live_users=["payments"])
    others = [change(Action.CREATE, None, topic("orders")), user("other")]
    assert find("user-login-missing", *others, sweeps=sweeps) == []
    assert len(find("user-login-missing", *others, acl("User:x"), sweeps=sweeps)) == 1
