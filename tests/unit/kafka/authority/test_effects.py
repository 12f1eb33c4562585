"""Who gains and loses what by a changed ACL is what asking about everybody finds."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from kafkaform.core.finding import AccessRow
from kafkaform_kafka.authority.authorizer import (
    Access,
    AccessQuestion,
    AccessVerdict,
    authorize,
    decide,
    find_covering,
    has_acl,
    index_acls,
)
from kafkaform_kafka.authority.effects import Effect, compute_effect
from kafkaform_kafka.authority.permissions import RECORDS, AccessPair, ask_about, pair_access
from kafkaform_kafka.protocol.acl import OTHER, Acl

from ....kit.quick import examples

NAMES = ("a", "ab", "abc", "b")
ASKED = (*NAMES, "ax", "abx", "abcx", "bx", "x", "*", "*x")
"""Every name of a pattern, and one more in each pattern that no narrower one covers."""
OPERATIONS = ("Read", "Write", "Create", "Delete", "Describe", "Alter", "IdempotentWrite")
WORDS = (*OPERATIONS, "All", RECORDS)
PEOPLE = ("User:u", "User:v", "User:w")
HOSTS = ("1.1.1.1", "2.2.2.2", "3.3.3.3")

CLUSTER = ("Cluster", "kafka-cluster", "Literal")
IDEMPOTENT = ("IdempotentWrite", "IdempotentWrite")
resources = st.sampled_from(
    (*((("Topic", n, p)) for n in (*NAMES, "*") for p in ("Literal", "Prefixed")), *[CLUSTER] * 4)
)
acls = st.builds(
    lambda who, host, operation, permission, resource: Acl(
        who, host, operation, permission, *(CLUSTER if operation in IDEMPOTENT else resource)
    ),
    st.sampled_from(("User:u", "User:v", "User:*")),
    st.sampled_from(("*", "1.1.1.1", "2.2.2.2")),
    st.sampled_from(
        ("All", "Read", "Write", "Create", "Delete", "Delete", "Describe", "Alter", *IDEMPOTENT)
    ),
    st.sampled_from(("Allow", "Allow", "Deny")),
    resources,
)
many = st.lists(acls, max_size=8, unique=True)


def asked_about_everybody(acl: Acl, worlds: AccessPair) -> tuple[set[str], set[str]]:
    """Who gains and who loses anything that the ACL is about: an answer of the authorizer about
    its own resource, the creation or deletion of a topic, or an idempotent producer."""
    gain, lose = set(), set()
    only = index_acls([acl])
    own = ("kafka-cluster",) if acl.resource_type == "Cluster" else ASKED
    names = [name for name in own if any(find_covering(only, acl.resource_type, name))]
    asked = [(authorize, acl.resource_type, *one) for one in product(names, OPERATIONS)]
    whole = acl.resource_type == "Cluster"
    topics = ASKED if whole else names
    asked += [(decide, "Topic", *one) for one in product(topics, ("Create", "Delete"))]
    asked += [(decide, "Cluster", "kafka-cluster", "IdempotentWrite")] * whole
    for (asks, kind, name, operation), who, host in product(asked, PEOPLE, HOSTS):
        if acl.principal not in (who, "User:*") or acl.host not in (host, "*"):
            continue
        question = AccessQuestion(who, host, operation, kind, name)
        before, after = (asks(one, question).verdict for one in (worlds.before, worlds.after))
        about = AccessQuestion(who, host, operation, acl.resource_type, names[0])
        concerns = authorize(Access(only, frozenset(), False), about).verdict
        denies = acl.permission == "Deny" and acl.operation in ("All", operation)
        # To create a topic there is nothing but `decide`, and what the cluster allows counts.
        # Neither is there for an idempotent producer.
        if asks is authorize and operation in ("Create" * (kind == "Topic"), "IdempotentWrite"):
            continue
        if before is not after and (denies or concerns is AccessVerdict.ALLOWED):
            (gain if after is AccessVerdict.ALLOWED else lose).add(who)
    return gain, lose


def worlds_of(before: list[Acl], after: list[Acl]) -> AccessPair:
    return pair_access(
        *(Access(index_acls(found), frozenset(), False) for found in (before, after))
    )


def said(effect: Effect) -> tuple[bool, bool]:
    """Whether it tells of gains, and of losses."""
    assert bool(effect.reason) == (not effect.gains and not effect.losses)
    assert all(" gains " in gain.text and gain.rows for gain in effect.gains)
    assert all(" loses " in loss.text and loss.rows for loss in effect.losses)
    return bool(effect.gains), bool(effect.losses)


def list_concerned(effect: Effect) -> tuple[set[str], set[str]]:
    """Who gains, and who loses."""
    gains, losses = (
        {row.principal for change in changes for row in change.rows}
        for changes in (effect.gains, effect.losses)
    )
    return gains, losses


@settings(max_examples=examples(200))
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
    assert said(compute_effect(changed, worlds, created=True)) == (bool(gain), bool(lose))


@settings(max_examples=examples(200))
@given(many, acls, many)
def test_a_deleted_acl_tells_of_every_gain_and_loss(
    live: list[Acl], changed: Acl, made: list[Acl]
) -> None:
    """The same for an ACL that goes, and those by name who are concerned are named."""
    before = [*live, changed]
    after = [*(one for one in live if one != changed), *(one for one in made if one != changed)]
    worlds = worlds_of(before, after)
    gain, lose = asked_about_everybody(changed, worlds)
    found = compute_effect(changed, worlds, created=False)
    assert said(found) == (bool(gain), bool(lose))
    if changed.principal != "User:*":
        assert list_concerned(found) == (gain, lose)


writers = st.builds(
    lambda who, host, permission, kind: Acl(
        who, host, "Write" if kind[0] == "Topic" else "IdempotentWrite", permission, *kind
    ),
    st.sampled_from(("User:u", "User:v", "User:*")),
    st.sampled_from(("*", "1.1.1.1", "2.2.2.2")),
    st.sampled_from(("Allow", "Deny")),
    st.sampled_from((CLUSTER, *(("Topic", name, "Prefixed") for name in ("a", "ab", "b")))),
)
few = st.lists(writers, max_size=3, unique=True)


@settings(max_examples=examples(500))
@given(few, writers.filter(lambda acl: acl.resource_type == "Cluster"), few, st.booleans())
def test_idempotent_producers_are_told_of(
    live: list[Acl], changed: Acl, made: list[Acl], created: bool
) -> None:
    """A changed ACL of IdempotentWrite tells of a gain or a loss exactly if somebody has one, who
    may write to a topic from somewhere or not."""
    less = [one for one in (*live, *made) if one != changed]
    worlds = worlds_of(live, [*less, changed]) if created else worlds_of([*live, changed], less)
    gain, lose = asked_about_everybody(changed, worlds)
    found = compute_effect(changed, worlds, created=created)
    assert said(found) == (bool(gain), bool(lose))
    if changed.principal != "User:*":
        assert list_concerned(found) == (gain, lose)


def test_a_right_that_a_writer_has_anyway_is_no_gain_and_no_loss() -> None:
    """IdempotentWrite on the cluster changes nothing for who may write to a topic, and what it
    changes for everybody is told with that."""
    write = Acl("User:u", "*", "Write", "Allow", "Topic", "a", "Literal")
    more = Acl("User:u", "*", "IdempotentWrite", "Allow", *CLUSTER)
    effect = compute_effect(more, worlds_of([write], [write, more]), created=True)
    assert effect.reason == (
        "gives nothing: principals with Write on a topic do not need IdempotentWrite (KIP-679), by "
        'Allow User:u Write on topic "a" from any host'
    )
    deny = replace(more, permission="Deny")
    effect = compute_effect(deny, worlds_of([write, more], [write, more, deny]), created=True)
    assert effect.reason.startswith("takes nothing: principals with Write")
    (loss,) = compute_effect(deny, worlds_of([more], [more, deny]), created=True).losses
    assert loss.text == "User:u loses IdempotentWrite on Cluster kafka-cluster"
    assert [row.operations for row in loss.rows] == [("IdempotentWrite",)]
    every, all_write = (replace(one, principal="User:*") for one in (more, write))
    denied = [all_write, replace(write, permission="Deny")]
    (gain,) = compute_effect(every, worlds_of(denied, [*denied, every]), created=True).gains
    assert gain.text.startswith("User:u gains IdempotentWrite on Cluster kafka-cluster")
    (gain,) = compute_effect(every, worlds_of([write], [write, every]), created=True).gains
    assert gain.text == (
        "everybody gains IdempotentWrite on Cluster kafka-cluster, which principals with Write on "
        "a topic do not need (KIP-679)"
    )


# ── rows ────────────────────────────────────────────────────────────────────────────────


@settings(max_examples=examples(200))
@given(many, acls.filter(lambda acl: acl.fields[-2:] != ("*", "Prefixed")), many)
def test_rows_have_all_that_is_lost_and_what_is_gained_at_its_widest(
    live: list[Acl], changed: Acl, made: list[Acl]
) -> None:
    """Every point at which somebody loses something has a row, so that an approval covers it; every
    point at which somebody gains something is covered by a row."""
    before, after = [*live, changed], [one for one in (*live, *made) if one != changed]
    for worlds, created in ((worlds_of(before, after), False), (worlds_of(after, before), True)):
        effect = compute_effect(changed, worlds, created=created)
        losses, gains = (
            [row for part in parts for row in part.rows] for parts in (effect.losses, effect.gains)
        )
        for row in (*losses, *gains):
            assert row.operations and row.before != row.after
        asked = ask_about(changed, _concerned(changed), worlds).changed
        for point, (gained, lost) in asked.items():
            place = _place(point.principal, point.host, point.name)
            if lost & {*_concerned(changed)}:
                assert place in {(row.principal, row.host, _named(row)) for row in losses}
            if gained & {*_concerned(changed)}:
                assert any(_covers(row, place) for row in gains), (place, gains)


def _concerned(acl: Acl) -> Sequence[str]:
    return OPERATIONS if acl.operation == "All" else (acl.operation,)


def _place(principal: str, host: str, name: str) -> tuple[str, str, str]:
    return (
        "User:*" if principal.endswith(OTHER) else principal,
        "*" if host == OTHER else host,
        name,
    )


def _named(row: AccessRow) -> str:
    """The name of the row as questions have it."""
    if row.pattern == "prefixed":
        return row.name + OTHER
    return OTHER if row.name == "*" else row.name


def _covers(row: AccessRow, place: tuple[str, str, str]) -> bool:
    principal, host, name = place
    end = _named(row)
    return (
        row.principal in (principal, "User:*")
        and row.host in (host, "*")
        and (end == name or (end.endswith(OTHER) and name.startswith(end[:-1])))
    )


# ── the questions ───────────────────────────────────────────────────────────────────────


def plain_points(
    acl: Acl, operations: Sequence[str], before: Sequence[Acl], after: Sequence[Acl]
) -> list[tuple[str, str, str]]:
    """Each principal, host and name that may differ from the others whom the ACL concerns, found by
    going through all ACLs."""
    found, kind, name = [*before, *after], acl.resource_type, acl.resource_name
    prefix = name if acl.pattern_type == "Prefixed" else ""
    names = [name]
    if acl.pattern_type == "Prefixed" or name == "*":
        general = prefix + OTHER
        others = {
            one.resource_name + (OTHER if one.pattern_type == "Prefixed" else "")
            for one in found
            if one.resource_type == kind
            and one.resource_name.startswith(prefix)
            and (acl.principal == "User:*" or one.principal in (acl.principal, "User:*"))
        }
        wild = {one for one in others if not prefix and one.startswith("*")}
        names = [general, *sorted(others - wild - {general})]
    asked = [(kind, one) for one in names]
    if kind == "Topic" and {"Create", "Delete"} & {*operations}:
        asked.append(("Cluster", "kafka-cluster"))
    near = [one for one in found if any(has_acl(index_acls([one]), *place) for place in asked)]
    if kind == "Cluster" and "IdempotentWrite" in operations:
        near += [one for one in found if is_writer(one) and may_write_less(one, acl, before, after)]
    people, hosts = [acl.principal], [acl.host]
    if acl.principal == "User:*":
        people = [f"User:{OTHER}", *sorted({one.principal for one in near} - {"User:*"})]
    if acl.host == "*":
        mine = [one for one in near if one.principal in ("User:*", *people)]
        hosts = [OTHER, *sorted({one.host for one in mine} - {"*"})]
    return [(who, host, one) for one, who, host in product(names, people, hosts)]


def is_writer(acl: Acl) -> bool:
    return acl.resource_type == "Topic" and acl.operation in ("All", "Write")


def may_write_less(one: Acl, acl: Acl, before: Sequence[Acl], after: Sequence[Acl]) -> bool:
    """Whether the ACL of a topic can make its principal an exception for an ACL of the cluster."""
    if acl.principal != "User:*":
        return one.principal in (acl.principal, "User:*")
    had, has = (
        {other for other in found if is_writer(other) and other.principal == one.principal}
        for found in (before, after)
    )
    return one.principal == "User:*" or had != has or one.permission == "Deny"


def plain_changes(
    acl: Acl, operations: Sequence[str], point: tuple[str, str, str], worlds: AccessPair
) -> tuple[set[str], set[str]]:
    """What is gained and lost there, with a question to the authorizer for each operation."""
    who, host, name = point
    gained: set[str] = set()
    lost: set[str] = set()
    for operation in operations:
        asks, word = (authorize, "Delete") if operation == RECORDS else (decide, operation)
        question = AccessQuestion(who, host, word, acl.resource_type, name)
        before, after = (asks(one, question).verdict for one in (worlds.before, worlds.after))
        if before is not after:
            (gained if after is AccessVerdict.ALLOWED else lost).add(operation)
    return gained, lost


@settings(max_examples=examples(200))
@given(
    many,
    st.lists(acls, min_size=1, max_size=8, unique=True),
    many,
    st.frozensets(st.sampled_from(PEOPLE), max_size=1),
    st.booleans(),
)
def test_all_changes_of_a_plan_are_asked_about_as_each_would_be(
    live: list[Acl], made: list[Acl], gone: list[Acl], super_users: frozenset[str], rule: bool
) -> None:
    """Looking up the ACLs of a plan once asks the same questions, in the same order and with the
    same answers, as going through all ACLs and asking about one operation after the other."""
    after = [*(one for one in live if one not in gone), *made]
    worlds = pair_access(*(Access(index_acls(x), super_users, rule) for x in (live, after)))
    for acl, operations in product((*made, *gone), (WORDS, WORDS[:-1], ("Read", "Describe"))):
        if RECORDS in operations and acl.resource_type != "Topic":
            continue
        asked = ask_about(acl, operations, worlds).changed
        points = [(point.principal, point.host, point.name) for point in asked]
        assert points == plain_points(acl, operations, live, after)
        for point, found in zip(points, asked.values(), strict=True):
            plain = plain_changes(acl, operations, point, worlds)
            assert tuple({*one} & {*operations} for one in found) == plain
