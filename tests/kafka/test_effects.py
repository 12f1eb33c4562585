"""Who gains and loses what by a changed ACL is what asking about everybody finds."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from kafkaform_providers.kafka.access import (
    Access,
    Question,
    Verdict,
    authorize,
    covering,
    decide,
    index,
)
from kafkaform_providers.kafka.acls import Acl
from kafkaform_providers.kafka.effects import Both, Effect, both, effect

NAMES = ("a", "ab", "abc", "b")
ASKED = (*NAMES, "ax", "abx", "abcx", "bx", "x", "*", "*x")
"""Every name of a pattern, and one more in each pattern that no narrower one covers."""
OPERATIONS = ("Read", "Write", "Create", "Delete", "Describe", "Alter")
PEOPLE = ("User:u", "User:v", "User:w")
HOSTS = ("1.1.1.1", "2.2.2.2", "3.3.3.3")

CLUSTER = ("Cluster", "kafka-cluster", "Literal")
resources = st.sampled_from(
    (*((("Topic", n, p)) for n in (*NAMES, "*") for p in ("Literal", "Prefixed")), *[CLUSTER] * 4)
)
acls = st.builds(
    lambda who, host, operation, permission, resource: Acl(
        who, host, operation, permission, *resource
    ),
    st.sampled_from(("User:u", "User:v", "User:*")),
    st.sampled_from(("*", "1.1.1.1", "2.2.2.2")),
    st.sampled_from(("All", "Read", "Create", "Delete", "Delete", "Describe", "Alter")),
    st.sampled_from(("Allow", "Allow", "Deny")),
    resources,
)
many = st.lists(acls, max_size=8, unique=True)


def asked_about_everybody(acl: Acl, worlds: Both) -> tuple[set[str], set[str]]:
    """Who gains and who loses anything that the ACL is about: an answer of the authorizer about
    its own resource, or the creation or deletion of a topic."""
    gain, lose = set(), set()
    only = index([acl])
    own = ("kafka-cluster",) if acl.resource_type == "Cluster" else ASKED
    names = [name for name in own if any(covering(only, acl.resource_type, name))]
    asked = [(authorize, acl.resource_type, *one) for one in product(names, OPERATIONS)]
    topics = ASKED if acl.resource_type == "Cluster" else names
    asked += [(decide, "Topic", *one) for one in product(topics, ("Create", "Delete"))]
    for (asks, kind, name, operation), who, host in product(asked, PEOPLE, HOSTS):
        if acl.principal not in (who, "User:*") or acl.host not in (host, "*"):
            continue
        question = Question(who, host, operation, kind, name)
        before, after = (asks(one, question).verdict for one in (worlds.before, worlds.after))
        about = Question(who, host, operation, acl.resource_type, names[0])
        concerns = authorize(Access(only, frozenset(), False), about).verdict
        denies = acl.permission == "Deny" and acl.operation in ("All", operation)
        # To create a topic there is nothing but `decide`, and what the cluster allows counts.
        if (asks, kind, operation) == (authorize, "Topic", "Create"):
            continue
        if before is not after and (denies or concerns is Verdict.ALLOWED):
            (gain if after is Verdict.ALLOWED else lose).add(who)
    return gain, lose


def worlds_of(before: list[Acl], after: list[Acl]) -> Both:
    return both(*(Access(index(found), frozenset(), False) for found in (before, after)))


def said(found: Effect) -> tuple[bool, bool]:
    """Whether it tells of gains, and of losses."""
    text = "; ".join(found.notes)
    assert (" nothing" in text) == (not found.gainers and not found.losers)
    assert bool(found.losses) == bool(found.losers)
    return " gains " in text, " loses " in text


@given(many, acls, many, many)
def test_a_change_tells_of_every_gain_and_loss(
    live: list[Acl], changed: Acl, made: list[Acl], gone: list[Acl]
) -> None:
    """A created ACL, among other changes of the same plan, tells of a gain or a loss exactly if
    somebody somewhere has one."""
    before = [one for one in live if one != changed]
    after = [*(one for one in before if one not in gone), *made, changed]
    worlds = worlds_of(before, after)
    gain, lose = asked_about_everybody(changed, worlds)
    assert said(effect(changed, worlds, created=True)) == (bool(gain), bool(lose))


@given(many, acls, many)
def test_a_deleted_acl_tells_of_every_gain_and_loss(
    live: list[Acl], changed: Acl, made: list[Acl]
) -> None:
    """The same for an ACL that goes, and those by name who are concerned are named."""
    before = [*live, changed]
    after = [*(one for one in live if one != changed), *(one for one in made if one != changed)]
    worlds = worlds_of(before, after)
    gain, lose = asked_about_everybody(changed, worlds)
    found = effect(changed, worlds, created=False)
    assert said(found) == (bool(gain), bool(lose))
    if changed.principal != "User:*":
        assert (found.gainers, found.losers) == (gain, lose)
