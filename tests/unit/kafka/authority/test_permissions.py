"""All operations that a principal may execute, listed at once, are those of single questions."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform_kafka.authority.authorizer import (
    Access,
    AccessQuestion,
    AccessVerdict,
    authorize,
    decide,
    index_acls,
)
from kafkaform_kafka.authority.permissions import RECORDS, list_allowed
from kafkaform_kafka.protocol.acl import OPERATIONS, Acl

from ....kit.quick import examples

CLUSTER = ("Cluster", "kafka-cluster", "Literal")
NAMES = ("a", "ab", "abc", "b", "*", "*x", "hardcode", "User:u")
HOSTS = ("1.1.1.1", "2.2.2.2")
places = st.just(CLUSTER) | st.tuples(
    st.sampled_from(("Topic", "Topic", "Group", "User")),
    st.sampled_from((*NAMES, "")),
    st.sampled_from(("Literal", "Prefixed")),
)
acls = st.builds(
    lambda who, host, operation, permission, place: Acl(who, host, operation, permission, *place),
    st.sampled_from(("User:u", "User:v", "User:*")),
    st.sampled_from(("*", "*", *HOSTS)),
    st.sampled_from((*OPERATIONS, "All", "Read", "Write", "Delete", "Create", "IdempotentWrite")),
    st.sampled_from(("Allow", "Allow", "Deny")),
    places,
)
resources = st.just(CLUSTER[:2]) | st.tuples(
    st.sampled_from(("Topic", "Group", "User")), st.sampled_from(NAMES)
)


@settings(max_examples=examples(1_000))
@given(
    st.lists(acls, max_size=12),
    st.sampled_from(("User:u", "User:v", "User:w")),
    st.sampled_from((*HOSTS, "3.3.3.3")),
    resources,
    st.frozensets(st.sampled_from(("User:u", "User:x"))),
    st.booleans(),
)
def test_the_list_has_what_single_questions_allow(
    found: list[Acl],
    who: str,
    host: str,
    resource: tuple[str, str],
    super_users: frozenset[str],
    rule: bool,
) -> None:
    """The list has exactly the operations that `decide` allows one by one, and says of the records
    of a topic what `authorize` says of Delete: with all patterns, a DENY, hosts, everybody, super
    users, implied operations, rights on the cluster, and writers of some topic."""
    access = Access(index_acls(found), super_users, rule)
    listed = list_allowed(access, who, host, *resource, topics=True, idempotent=True)
    asked = {one: AccessQuestion(who, host, one, *resource) for one in OPERATIONS}
    plain = {
        one
        for one, question in asked.items()
        if decide(access, question).verdict is AccessVerdict.ALLOWED
    }
    assert listed - {RECORDS} == plain
    if resource[0] == "Topic":
        records = authorize(access, asked["Delete"]).verdict is AccessVerdict.ALLOWED
        assert (RECORDS in listed) is records
