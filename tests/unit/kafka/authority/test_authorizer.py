"""Decisions about access, without a broker (`test_access_broker` holds them to a real one)."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kafkaform_kafka.authority.authorizer import (
    Access,
    AccessQuestion,
    AccessVerdict,
    Decision,
    DecisionRule,
    Need,
    authorize,
    decide,
    index_acls,
    list_acls,
    list_principals,
)
from kafkaform_kafka.inspect.explanations import AccessQuery, explain_access
from kafkaform_kafka.protocol.acl import Acl

from ....kit.quick import examples

TEXT = st.sampled_from(("a", "ab", "abc", "b", "*", "*x", ""))
NAMES = st.sampled_from(("a", "ab", "abc", "abd", "b", "*", "*x"))
WHO = ("User:u", "User:v", "User:*", "Group:g")
HOSTS = ("1.1.1.1", "2.2.2.2")
OPERATIONS = (
    "All",
    "Read",
    "Write",
    "IdempotentWrite",
    "Create",
    "Delete",
    "Describe",
    "Alter",
    "DescribeConfigs",
    "AlterConfigs",
)
KINDS = ("Topic", "Group")
CLUSTER = "kafka-cluster"

PLACES = st.tuples(st.sampled_from(KINDS), TEXT, st.sampled_from(("Literal", "Prefixed")))
acls = st.builds(
    lambda who, host, operation, permission, place: Acl(who, host, operation, permission, *place),
    st.sampled_from(WHO),
    st.sampled_from(("*", *HOSTS)),
    st.sampled_from(OPERATIONS),
    st.sampled_from(("Allow", "Allow", "Deny")),
    PLACES | st.just(("Cluster", CLUSTER, "Literal")),
)
writes = st.builds(
    lambda who, host, operation, permission, name, pattern: Acl(
        who, host, operation, permission, "Topic", name, pattern
    ),
    st.sampled_from(WHO[:3]),
    st.sampled_from(("*", *HOSTS)),
    st.sampled_from(("All", "Write", "Write", "Read")),
    st.sampled_from(("Allow", "Deny")),
    st.sampled_from(("a", "ab", "abc", "b", "*", "hardcode", "h", "")),
    st.sampled_from(("Literal", "Prefixed")),
)
many = st.lists(acls, max_size=12) | st.lists(writes, max_size=5)
people = st.sampled_from(("User:u", "User:v", "User:w", "Group:g"))
idempotent = st.builds(
    lambda who, host: AccessQuestion(who, host, "IdempotentWrite", "Cluster", CLUSTER),
    people,
    st.sampled_from(HOSTS),
)
tokens = st.builds(
    lambda who, name: AccessQuestion(who, HOSTS[0], "CreateTokens", "User", name),
    people,
    st.sampled_from(("User:u", "User:v")),
)
questions = (
    st.builds(
        AccessQuestion,
        principal=people,
        host=st.sampled_from(HOSTS),
        operation=st.sampled_from(OPERATIONS[1:]),
        resource_type=st.sampled_from(KINDS),
        resource_name=NAMES,
    )
    | idempotent
    | tokens
)
supers = st.none() | st.frozensets(st.sampled_from(("User:u", "User:x")))
rules = st.none() | st.booleans()


def acl(
    principal: str = "User:u",
    operation: str = "Read",
    permission: str = "Allow",
    name: str = "orders",
    *,
    host: str = "*",
    kind: str = "Topic",
    pattern: str = "Literal",
) -> Acl:
    return Acl(principal, host, operation, permission, kind, name, pattern)


def ask(
    found: Sequence[Acl],
    operation: str = "Read",
    name: str = "orders",
    *,
    principal: str | None = "User:u",
    host: str | None = "1.1.1.1",
    super_users: frozenset[str] | None = frozenset(),
    allow_if_no_acl: bool | None = False,
    kind: str = "Topic",
    zookeeper: bool = False,
) -> Decision:
    access = Access(index_acls(found), super_users, allow_if_no_acl, zookeeper)
    return decide(access, AccessQuestion(principal, host, operation, kind, name))


def naive(
    found: Sequence[Acl], question: AccessQuestion, super_users: frozenset[str], rule: bool
) -> AccessVerdict:
    """The authorizer as its documentation puts it, one ACL after the other; whoever creates or
    deletes a topic may do it by a right on the cluster too."""
    if question.resource_type == "User" and question.principal == question.resource_name:
        return AccessVerdict.ALLOWED
    idempotent = question.resource_type == "Cluster" and question.operation == "IdempotentWrite"
    if idempotent and naive_writer(found, question, super_users, rule):
        return AccessVerdict.ALLOWED
    if question.resource_type == "Topic" and question.operation in ("Create", "Delete"):
        whole = replace(question, resource_type="Cluster", resource_name=CLUSTER)
        if naive(found, whole, super_users, rule) is AccessVerdict.ALLOWED:
            return AccessVerdict.ALLOWED
    implied = {
        "Describe": ("Read", "Write", "Delete", "Alter"),
        "DescribeConfigs": ("AlterConfigs",),
    }
    if question.principal in super_users:
        return AccessVerdict.ALLOWED
    name, allowed, denied, covered = question.resource_name, False, False, False
    for one in found:
        literal = one.pattern_type == "Literal"
        wildcard = literal and one.resource_name == "*" and not name.startswith("*")
        exact = literal and one.resource_name == name
        prefix = not literal and name.startswith(one.resource_name)
        if one.resource_type != question.resource_type or not (wildcard or exact or prefix):
            continue
        covered = True
        if one.principal not in (question.principal, "User:*"):
            continue
        if one.host not in ("*", question.host):
            continue
        same = one.operation in ("All", question.operation)
        if one.permission == "Deny":
            denied |= same
        else:
            allowed |= same or one.operation in implied.get(question.operation, ())
    verdict = allowed if covered else rule
    return AccessVerdict.ALLOWED if verdict and not denied else AccessVerdict.DENIED


def naive_writer(
    found: Sequence[Acl], question: AccessQuestion, super_users: frozenset[str], rule: bool
) -> bool:
    """Whether somebody may write to some topic, in the order in which brokers look for it."""
    fixed = replace(question, operation="Write", resource_type="Topic", resource_name="hardcode")
    if naive(found, fixed, super_users, rule) is AccessVerdict.ALLOWED:
        return True
    mine = [
        one
        for one in found
        if one.resource_type == "Topic"
        and one.operation in ("All", "Write")
        and one.principal in (question.principal, "User:*")
        and one.host in ("*", question.host)
    ]
    denies = {(one.resource_name, one.pattern_type) for one in mine if one.permission == "Deny"}
    allows = {(one.resource_name, one.pattern_type) for one in mine if one.permission == "Allow"}
    if ("*", "Literal") in denies:
        return False
    if ("*", "Literal") in allows:
        return True
    for name, pattern in allows:
        dominated = [one for one, kind in denies if one and kind == "Prefixed"]
        if pattern == "Literal" and (name, "Literal") in denies:
            continue
        if not any(name.startswith(prefix) for prefix in dominated):
            return True
    return False


# ── properties ──────────────────────────────────────────────────────────────────────────


@given(many, questions, st.frozensets(st.sampled_from(("User:u", "User:x"))), st.booleans())
def test_the_index_answers_as_a_list_would(
    found: list[Acl], question: AccessQuestion, super_users: frozenset[str], rule: bool
) -> None:
    """Looking ACLs up gives what going through all of them gives."""
    access = Access(index_acls(found), super_users, rule)
    assert decide(access, question).verdict == naive(found, question, super_users, rule)


closed = acl("User:x", "Alter", name=CLUSTER, kind="Cluster")
"""Where there is no ACL of the cluster, everybody writes idempotently who can write without one."""
writing = st.lists(writes, max_size=5).map(lambda found: [*found, closed])
somebody = st.sampled_from(("User:u", "User:v"))


@settings(max_examples=examples(1_000))
@given(writing, somebody, st.sampled_from(HOSTS), st.booleans())
def test_who_may_write_to_any_topic_is_who_brokers_let_in(
    found: list[Acl], who: str, host: str, rule: bool
) -> None:
    """An idempotent producer needs no right on the cluster if it may write to some topic, as a
    list of ACLs about nothing else says."""
    question = AccessQuestion(who, host, "IdempotentWrite", "Cluster", CLUSTER)
    decision = decide(Access(index_acls(found), frozenset(), rule), question)
    assert decision.verdict == naive(found, question, frozenset(), rule)
    assert decision.on_topic or rule or decision.verdict is AccessVerdict.DENIED


@settings(max_examples=examples(1_000))
@given(writing, somebody, st.booleans())
def test_an_unknown_host_or_rule_lets_in_only_whom_each_would(
    found: list[Acl], who: str, rule_known: bool
) -> None:
    """Whether it may write somewhere is certain only if it is the same from everywhere."""
    asked = AccessQuestion(who, None, "IdempotentWrite", "Cluster", CLUSTER)
    access = Access(index_acls(found), frozenset(), False if rule_known else None)
    decision = decide(access, asked)
    if decision.verdict is AccessVerdict.UNKNOWN:
        assert decision.needs
        return
    for host in (*HOSTS, "3.3.3.3"):
        for rule in (False,) if rule_known else (False, True):
            sure = naive(found, replace(asked, host=host), frozenset(), rule)
            assert sure is decision.verdict


@given(many, st.randoms(use_true_random=False), questions, supers, rules)
def test_the_order_of_acls_is_irrelevant(
    found: list[Acl],
    chance: object,
    question: AccessQuestion,
    super_users: frozenset[str] | None,
    rule: bool | None,
) -> None:
    """The same ACLs in any order give the same decision with the same reason."""
    other = list(found)
    chance.shuffle(other)  # type: ignore[attr-defined]  # hypothesis' Random
    first, second = (
        decide(Access(index_acls(order), super_users, rule), question) for order in (found, other)
    )
    assert first == second


ORDER = [AccessVerdict.DENIED, AccessVerdict.UNKNOWN, AccessVerdict.ALLOWED]


@given(many, acls, questions, supers, rules)
def test_a_deny_never_allows(
    found: list[Acl],
    deny: Acl,
    question: AccessQuestion,
    super_users: frozenset[str] | None,
    rule: bool | None,
) -> None:
    """One more DENY takes rights or leaves them, whatever is known."""
    more = [*found, replace(deny, permission="Deny")]
    before, after = (
        decide(Access(index_acls(some), super_users, rule), question).verdict
        for some in (found, more)
    )
    assert ORDER.index(after) <= ORDER.index(before)


@given(many, acls, questions, supers)
def test_an_allow_never_refuses_where_no_acl_means_no(
    found: list[Acl], allow: Acl, question: AccessQuestion, super_users: frozenset[str] | None
) -> None:
    """One more ALLOW gives rights or leaves them, unless it closes what stood open."""
    more = [*found, replace(allow, permission="Allow")]
    before, after = (
        decide(Access(index_acls(some), super_users, False), question).verdict
        for some in (found, more)
    )
    assert ORDER.index(after) >= ORDER.index(before)


@given(many, questions, st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_what_is_certain_holds_whatever_the_unknown_is(
    found: list[Acl],
    question: AccessQuestion,
    no_supers: bool,
    no_rule: bool,
    no_principal: bool,
    no_host: bool,
) -> None:
    """A decision made without knowing something is the decision that knowing it gives."""
    access = Access(index_acls(found), None if no_supers else frozenset({"User:u"}), None)
    access = access if no_rule else replace_rule(access)
    asked = AccessQuestion(
        None if no_principal else question.principal,
        None if no_host else question.host,
        question.operation,
        question.resource_type,
        question.resource_name,
    )
    decision = decide(access, asked)
    assert (decision.verdict is AccessVerdict.UNKNOWN) == bool(decision.needs)
    if decision.verdict is AccessVerdict.UNKNOWN:
        return
    for super_users in (frozenset[str](), frozenset({"User:u"})):
        for rule in (True, False):
            if (no_supers or super_users) and (no_rule or not rule):
                sure = Access(access.index, super_users, rule)
                assert decide(sure, question).verdict is decision.verdict


def replace_rule(access: Access) -> Access:
    return Access(access.index, access.super_users, False)


# ── examples ────────────────────────────────────────────────────────────────────────────


def test_the_deciding_acl_is_named() -> None:
    """A DENY for everybody hides an ALLOW by name; of several the most special one is named."""
    allow, deny = acl(), acl("User:*", "All", "Deny", "ord", pattern="Prefixed")
    assert ask([allow]) == Decision(AccessVerdict.ALLOWED, DecisionRule.ACL, allow)
    assert ask([allow, deny]) == Decision(AccessVerdict.DENIED, DecisionRule.ACL, deny)
    wide = acl(name="*")
    assert ask([wide, allow]).acl == allow


def test_the_first_acl_closes_a_resource() -> None:
    """Where no ACL means yes, an ACL for somebody else means no."""
    assert ask([], allow_if_no_acl=True) == Decision(AccessVerdict.ALLOWED, DecisionRule.NO_ACL)
    assert ask([acl("User:v")], allow_if_no_acl=True) == Decision(
        AccessVerdict.DENIED, DecisionRule.NO_MATCH
    )


@pytest.mark.parametrize(
    ("known", "needs"),
    [
        ({"super_users": None}, (Need.SUPER_USERS,)),
        ({"allow_if_no_acl": None}, (Need.ALLOW_IF_NO_ACL,)),
        ({"super_users": None, "allow_if_no_acl": None}, (Need.SUPER_USERS, Need.ALLOW_IF_NO_ACL)),
        ({"principal": None, "super_users": frozenset({"User:x"})}, (Need.PRINCIPAL,)),
    ],
)
def test_what_is_missing_is_named(known: dict[str, object], needs: tuple[Need, ...]) -> None:
    """An answer that hangs on something undeclared says what to declare."""
    decision = ask([], **known)  # type: ignore[arg-type]
    assert (decision.verdict, decision.needs) == (AccessVerdict.UNKNOWN, needs)


def test_brokers_with_zookeeper_ask_about_a_topic_alone_before_they_delete_it() -> None:
    """Delete on the cluster deletes no topic there; Create on the cluster creates every topic."""
    whole = acl(operation="All", kind="Cluster", name=CLUSTER)
    assert ask([whole], "Create", zookeeper=True).on_cluster
    decision = ask([whole], "Delete", zookeeper=True)
    assert (decision.verdict, decision.on_cluster) == (AccessVerdict.DENIED, False)
    own = acl(operation="Delete")
    assert ask([whole, own], "Delete", zookeeper=True).acl == own
    # Nor does an open cluster make up for a topic that has an ACL.
    other = acl(operation="Read")
    assert ask([other], "Delete", allow_if_no_acl=True).on_cluster
    open_ = ask([other], "Delete", allow_if_no_acl=True, zookeeper=True)
    assert open_.verdict is AccessVerdict.DENIED
    access = Access(index_acls([whole]), zookeeper=True)
    assert list_principals(access, AccessQuestion(None, None, "Delete", "Topic", "orders")) == ()


def test_an_open_cluster_with_zookeeper_lets_all_producers_be_idempotent() -> None:
    """AclAuthorizer asks about no topic of a certain name; only a DENY of every topic refuses."""
    every = acl("User:v", "Write", name="*")
    about = {"operation": "IdempotentWrite", "kind": "Cluster", "name": CLUSTER}
    found = [every, acl("User:v", "Read", kind="Cluster", name=CLUSTER)]
    for zookeeper, verdict in ((True, AccessVerdict.ALLOWED), (False, AccessVerdict.DENIED)):
        decision = ask(found, **about, allow_if_no_acl=True, zookeeper=zookeeper)
        assert decision.verdict is verdict
    deny = acl(operation="Write", name="*", permission="Deny")
    decision = ask([*found, deny], **about, allow_if_no_acl=True, zookeeper=True)
    assert decision.verdict is AccessVerdict.DENIED


def test_the_cluster_is_asked_before_a_topic() -> None:
    """Create and Delete there hold for every topic, also against a DENY on it; a DENY there takes
    nothing from who has it on the topic; other operations are the topic's own."""
    whole = acl(operation="All", kind="Cluster", name=CLUSTER)
    deny = acl(operation="All", permission="Deny")
    by_cluster = Decision(AccessVerdict.ALLOWED, DecisionRule.ACL, whole, on_cluster=True)
    for operation in ("Create", "Delete"):
        assert ask([whole, deny], operation) == by_cluster
        own = acl(operation=operation)
        assert ask([replace(whole, permission="Deny"), own], operation).acl == own
        assert ask([deny], operation, allow_if_no_acl=True).verdict is AccessVerdict.ALLOWED
    for operation in ("Describe", "Read", "Alter", "AlterConfigs"):
        assert ask([whole, deny], operation).acl == deny
    assert ask([deny], "Delete", allow_if_no_acl=None).needs == (Need.ALLOW_IF_NO_ACL,)
    here = replace(whole, host="1.1.1.1")
    unsure = ask([here, deny], "Delete", host=None)
    assert (unsure.verdict, unsure.needs, unsure.on_cluster) == (
        AccessVerdict.UNKNOWN,
        (Need.HOST,),
        True,
    )


def test_records_are_deleted_by_rights_on_the_topic_alone() -> None:
    """Brokers ask the authorizer about the topic and nothing else."""
    whole = acl(operation="Delete", kind="Cluster", name=CLUSTER)
    access = Access(index_acls([whole]), frozenset(), False)
    question = AccessQuestion("User:u", "1.1.1.1", "Delete", "Topic", "orders")
    assert authorize(access, question).verdict is AccessVerdict.DENIED
    assert decide(access, question).verdict is AccessVerdict.ALLOWED
    assert list_principals(access, question) == ("User:u",)


def test_an_unknown_host_or_principal_leaves_only_what_holds_for_all() -> None:
    """An ALLOW for one address or one name is no promise to somebody unknown; a DENY for one is
    a doubt."""
    here = acl(host="1.1.1.1")
    assert ask([here], host=None).needs == (Need.HOST,)
    assert ask([acl()], host=None).verdict is AccessVerdict.ALLOWED
    assert ask([acl("User:*")], principal=None).verdict is AccessVerdict.ALLOWED
    assert ask([acl("User:*"), acl("User:v", permission="Deny")], principal=None).needs == (
        Need.PRINCIPAL,
    )
    assert ask([acl("User:*", permission="Deny")], principal=None).verdict is AccessVerdict.DENIED


def test_who_is_named() -> None:
    """The principals of a resource are those of its ACLs and the super users."""
    found = [acl("User:a"), acl("User:b", name="ord", pattern="Prefixed"), acl("User:c", name="x")]
    access = Access(index_acls(found), frozenset({"User:root"}))
    question = AccessQuestion(None, None, "Read", "Topic", "orders")
    assert list_principals(access, question) == ("User:a", "User:b", "User:root")


def test_fifty_thousand_acls_are_looked_up_not_searched() -> None:
    """Among 50,000 ACLs a question touches those of its resource and no others."""
    found = [acl(f"User:u{n % 100}", name=f"team{n % 997}.topic{n}") for n in range(50_000)]
    found += [acl(name=f"team{n}.", pattern="Prefixed") for n in range(997)]
    access = Access(index_acls(found), frozenset(), False)
    for number in range(0, 50_000, 500):
        name = f"team{number % 997}.topic{number}"
        assert [one.resource_name for one in list_acls(access, "Topic", name)] == [
            name,
            f"team{number % 997}.",
        ]


# ── explained ───────────────────────────────────────────────────────────────────────────


def told_why(found: Sequence[Acl], who: str, operation: str, **place: str) -> tuple[str, str]:
    """The verdict and the reason that `explain access` shows."""
    kind, name = place.get("kind", "Cluster"), place.get("name", CLUSTER)
    access = Access(index_acls(found), frozenset(), False)
    (answer,) = explain_access(access, AccessQuery(kind, name, (operation,), who), "")["answers"]
    return answer["verdict"], answer["why"]


def test_the_reason_is_told_where_another_right_opens_the_door() -> None:
    """A producer by the ACL of its topic, which stands among the ACLs; and tokens of one's own."""
    write, deny = acl(operation="Write"), acl("User:u", "All", "Deny", CLUSTER, kind="Cluster")
    verdict, why = told_why([write, deny], "User:u", "IdempotentWrite")
    assert verdict == "allowed" and why.startswith(
        'Allow User:u Write on topic "orders" from any host: who can'
    )
    verdict, why = told_why([deny], "User:u", "IdempotentWrite")
    assert verdict == "denied" and why.endswith("no ACL allows Write to a topic (KIP-679)")
    access = Access(index_acls([write, deny, acl("User:v", "Write")]), frozenset(), False)
    wanted = AccessQuery("Cluster", CLUSTER, ("IdempotentWrite",))
    document = explain_access(access, wanted, "")
    assert [one["principal"] for one in document["answers"]] == ["User:u", "User:v"]
    assert len(document["acls"]) == 3
    tokens = told_why([], "User:u", "CreateTokens", kind="User", name="User:u")
    assert tokens == ("allowed", "everybody can create and see own tokens (KIP-48)")
    assert told_why([], "User:v", "CreateTokens", kind="User", name="User:u")[0] == "denied"
