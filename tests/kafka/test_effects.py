"""Who gains and loses what by a changed ACL is what asking about everybody finds."""

from __future__ import annotations

from itertools import product

from hypothesis import given
from hypothesis import strategies as st

from kafkaform_providers.kafka.access import (
    Access,
    Question,
    Verdict,
    covering,
    decide,
    index,
)
from kafkaform_providers.kafka.acls import Acl
from kafkaform_providers.kafka.effects import Both, Effect, both, effect

NAMES = ("a", "ab", "abc", "b")
ASKED = (*NAMES, "ax", "abx", "abcx", "bx", "x", "*", "*x")
"""Every name of a pattern, and one more in each pattern that no narrower one covers."""
OPERATIONS = ("Read", "Write", "Create", "Describe", "Alter")
PEOPLE = ("User:u", "User:v", "User:w")
HOSTS = ("1.1.1.1", "2.2.2.2", "3.3.3.3")

acls = st.builds(
    Acl,
    principal=st.sampled_from(("User:u", "User:v", "User:*")),
    host=st.sampled_from(("*", "1.1.1.1", "2.2.2.2")),
    operation=st.sampled_from(("All", "Read", "Write", "Describe", "Alter")),
    permission=st.sampled_from(("Allow", "Allow", "Deny")),
    resource_type=st.just("Topic"),
    resource_name=st.sampled_from((*NAMES, "*")),
    pattern_type=st.sampled_from(("Literal", "Prefixed")),
)
many = st.lists(acls, max_size=8, unique=True)


def asked_about_everybody(acl: Acl, worlds: Both) -> tuple[set[str], set[str]]:
    """Who gains and who loses anything that the ACL is about."""
    gain, lose = set(), set()
    only = index([acl])
    names = [name for name in ASKED if any(covering(only, "Topic", name))]
    for name, who, host, operation in product(names, PEOPLE, HOSTS, OPERATIONS):
        if acl.principal not in (who, "User:*") or acl.host not in (host, "*"):
            continue
        question = Question(who, host, operation, "Topic", name)
        before, after = (decide(one, question).verdict for one in (worlds.before, worlds.after))
        concerns = decide(Access(only, frozenset(), False), question).verdict
        denies = acl.permission == "Deny" and acl.operation in ("All", operation)
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
