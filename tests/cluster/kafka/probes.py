"""Random ACLs, and real requests whose answers show what an authorizer decided.

A request is refused for want of a right before anything else is looked at, so most probes need
no topic, group or transaction to be there. Where several rights open the same door, the door is
open if one of them is held; some doors ask for another right besides.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    AlterPartitionReassignmentsRequest,
    CreateAclsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    DeleteAclsRequest,
    DeleteGroupsRequest,
    DeleteRecordsRequest,
    DeleteTopicsRequest,
    DescribeAclsRequest,
    DescribeClientQuotasRequest,
    DescribeGroupsRequest,
    DescribeTransactionsRequest,
)
from kafka.protocol.consumer import (
    FetchRequest,
    HeartbeatRequest,
    ListOffsetsRequest,
    OffsetFetchRequest,
    OffsetForLeaderEpochRequest,
)
from kafka.protocol.metadata import MetadataRequest
from kafka.protocol.producer import InitProducerIdRequest, ProduceRequest
from msgspec.structs import replace

from kafkaform_kafka.protocol.acl import (
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    SUPPORTED,
    Acl,
    decode_operations,
    list_reported_operations,
)
from kafkaform_kafka.wire.client import Wire
from kafkaform_kafka.wire.cluster import describe_cluster
from kafkaform_kafka.wire.configs import alter_configs, describe_configs
from kafkaform_kafka.wire.security import (
    CreateDelegationTokenRequest,
    DescribeDelegationTokenRequest,
)

HOST, ELSEWHERE = "127.0.0.1", "10.1.2.3"
USERS = ("u0", "u1", "u2")
NAMES: Mapping[str, tuple[str, ...]] = {
    "Topic": ("a", "ab", "abc", "abd", "b", "ba", "c.d", "*x"),
    "Group": ("a", "ab", "abc", "b", "ba", "*", "*x", "ü"),
    "TransactionalID": ("a", "ab", "b", "*x"),
    "Cluster": ("kafka-cluster",),
    "User": ("User:t1", "User:t2", "User:u0", "User:u1"),
}
"""Resource type -> the names that are asked about; what they share makes prefixes meet."""
NEVER = ("a*", "ab!", "abc*", "b!", "*x")
"""Names that brokers ask the authorizer about, and then refuse: no topic can have them."""
OWNERS = ("t1", "t2", "u1")
"""Whose tokens there are; the last one is a user who asks too."""
PATTERNS: Mapping[str, tuple[str, ...]] = {
    **{kind: (*names, "*", *sorted({name[:1] for name in names})) for kind, names in NAMES.items()},
    # Brokers ask for this topic when they ask whether somebody may write to any.
    "Topic": (*NAMES["Topic"], "*", *sorted({name[:1] for name in NAMES["Topic"]}), "hardcode"),
    "Cluster": ("kafka-cluster",),
    "User": (*NAMES["User"], "*", "User:", "User:t"),
}
REFUSED = frozenset({29, 30, 31, 53, 65})
"""TOPIC_, GROUP_, CLUSTER_, TRANSACTIONAL_ID_ and DELEGATION_TOKEN_AUTHORIZATION_FAILED."""
SECONDS = 15.0


class Right(NamedTuple):
    operation: str
    resource_type: str
    resource_name: str


class Probe(NamedTuple):
    """user did `api`; allowed: what the broker said; rights: each of them would do; alone: no
    right on another resource would; besides: needed as well."""

    user: str
    api: str
    rights: tuple[Right, ...]
    allowed: bool
    alone: bool = False
    besides: Right | None = None


# ── ACLs ────────────────────────────────────────────────────────────────────────────────


def random_acls(chance: random.Random, count: int, tokens: Sequence[str] = ()) -> tuple[Acl, ...]:
    """ACLs of every kind, dense enough to meet, to hide and to contradict each other. tokens: ids
    of those that there are."""
    return tuple({_acl(chance, tokens) for _ in range(count)})


def random_writers(chance: random.Random, count: int) -> tuple[Acl, ...]:
    """ACLs of Write on topics alone, as many DENYs as ALLOWs: whether somebody may write to any
    topic hangs on a few of them. One ACL of the cluster closes it, or all might write anyway."""
    made = (replace(_acl(chance, ()), resource_type="Topic") for _ in range(count))
    closed = Acl("User:other", "*", "Alter", "Allow", "Cluster", "kafka-cluster", "Literal")
    return tuple(
        {closed}
        | {
            replace(
                acl,
                operation=chance.choice(("Write", "Write", "All")),
                permission=chance.choice(("Allow", "Deny")),
                resource_name=chance.choice(PATTERNS["Topic"]),
            )
            for acl in made
        }
    )


KINDS = (
    *("Topic", "Topic", "Topic", "Topic", "Group", "Group", "Group", "Group"),
    *("TransactionalID", "TransactionalID", "Cluster", "Cluster", "User", "DelegationToken"),
)
"""Resource types, as often as ACLs are made of them."""


def _acl(chance: random.Random, tokens: Sequence[str]) -> Acl:
    kind = chance.choice(KINDS)
    names = PATTERNS.get(kind) or ("*", *tokens, *(token[:1] for token in tokens))
    pattern = chance.choice(tuple(PATTERN_TYPES))
    return Acl(
        chance.choice((*(f"User:{user}" for user in USERS), "User:*", "User:other", "Group:g")),
        chance.choice(("*", "*", HOST, ELSEWHERE)),
        chance.choice(("All", *SUPPORTED[kind], *SUPPORTED[kind])),
        "Deny" if chance.random() < 0.25 else "Allow",
        kind,
        chance.choice(names),
        pattern,
    )


def create_acls(wire: Wire, acls: Sequence[Acl]) -> None:
    row = CreateAclsRequest.AclCreation
    request = CreateAclsRequest(
        creations=[
            row(
                resource_type=RESOURCE_TYPES[acl.resource_type],
                resource_name=acl.resource_name,
                resource_pattern_type=PATTERN_TYPES[acl.pattern_type],
                principal=acl.principal,
                host=acl.host,
                operation=OPERATIONS[acl.operation],
                permission_type=PERMISSIONS[acl.permission],
            )
            for acl in acls
        ],
        min_version=1,
    )
    answer = wire.send(request, SECONDS)
    faults = [(row.error_code, row.error_message) for row in answer.results if row.error_code]
    assert not faults, faults[:3]


def delete_all_acls(wire: Wire) -> None:
    row = DeleteAclsRequest.DeleteAclsFilter
    anything = row(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    wire.send(DeleteAclsRequest(filters=[anything], min_version=1), SECONDS)


def count_acls(wire: Wire) -> int:
    request = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
        min_version=1,
    )
    answer = wire.send(request, SECONDS)
    return sum(len(resource.acls) for resource in answer.resources)


# ── requests ────────────────────────────────────────────────────────────────────────────


def everything(user: str, wire: Wire) -> Iterator[Probe]:
    """Every kind of request once for every name."""
    for ask in (*_TOPICS, *_GROUPS, *_TRANSACTIONS, *_CLUSTER, create_tokens):
        yield from ask(user, wire)


Codes = Iterator[tuple[str, int]]
_INVALID_NAME, _INVALID_PRINCIPAL_TYPE = 17, 67


def _door(
    kind: str,
    operation: str,
    *more: Right,
    alone: bool = False,
    besides: str = "",
    names: Sequence[str] = (),
) -> Callable[[Callable[[Wire, Sequence[str]], Codes]], Callable[[str, Wire], Iterator[Probe]]]:
    """Makes a function that gives error codes by name one that gives probes. besides: an operation
    on the same resource that is asked for too."""

    def decorate(
        codes: Callable[[Wire, Sequence[str]], Codes],
    ) -> Callable[[str, Wire], Iterator[Probe]]:
        def ask(user: str, wire: Wire) -> Iterator[Probe]:
            asked = names or NAMES[kind]
            answered = dict(codes(wire, asked))
            assert answered.keys() == set(asked), (codes.__name__, answered)
            for name, code in answered.items():
                rights = (Right(operation, kind, name), *more)
                also = Right(besides, kind, name) if besides else None
                yield Probe(user, codes.__name__, rights, code not in REFUSED, alone, also)

        return ask

    return decorate


@_door("Topic", "Describe")
def metadata(wire: Wire, names: Sequence[str]) -> Codes:
    row = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(
        topics=[row(name=name) for name in names], allow_auto_topic_creation=False, max_version=9
    )
    yield from ((row.name, row.error_code) for row in wire.send(request, SECONDS).topics)


@_door("Topic", "Create", besides="Describe", names=NEVER)
def create_automatically(wire: Wire, names: Sequence[str]) -> Codes:
    """A consumer or producer that asks for a topic that is not there has it made."""
    row = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(
        topics=[row(name=name) for name in names], allow_auto_topic_creation=True, max_version=9
    )
    for topic in wire.send(request, SECONDS).topics:
        assert topic.error_code in (29, _INVALID_NAME), topic
        yield topic.name, topic.error_code


@_door("Topic", "Write")
def produce(wire: Wire, names: Sequence[str]) -> Codes:
    topic = ProduceRequest.TopicProduceData
    partition = topic.PartitionProduceData(index=0, records=b"")
    request = ProduceRequest(
        transactional_id=None,
        acks=1,
        timeout_ms=5000,
        topic_data=[topic(name=name, partition_data=[partition]) for name in names],
        max_version=9,
    )
    for row in wire.send(request, SECONDS).responses:
        yield row.name, row.partition_responses[0].error_code


@_door("Topic", "Read")
def fetch(wire: Wire, names: Sequence[str]) -> Codes:
    topic = FetchRequest.FetchTopic
    partition = topic.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1)
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        max_bytes=1,
        topics=[topic(topic=name, partitions=[partition]) for name in names],
        forgotten_topics_data=[],
        rack_id="",
        max_version=12,
    )
    for row in wire.send(request, SECONDS).responses:
        yield row.topic, row.partitions[0].error_code


@_door("Topic", "Describe")
def list_offsets(wire: Wire, names: Sequence[str]) -> Codes:
    topic = ListOffsetsRequest.ListOffsetsTopic
    partition = topic.ListOffsetsPartition(partition_index=0, timestamp=-1)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=0,
        topics=[topic(name=name, partitions=[partition]) for name in names],
        max_version=6,
    )
    for row in wire.send(request, SECONDS).topics:
        yield row.name, row.partitions[0].error_code


@_door("Topic", "Create")
def create_topics(wire: Wire, names: Sequence[str]) -> Codes:
    row = CreateTopicsRequest.CreatableTopic
    request = CreateTopicsRequest(
        topics=[
            row(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])
            for name in names
        ],
        timeout_ms=5000,
        validate_only=True,
    )
    yield from ((row.name, row.error_code) for row in wire.send(request, SECONDS).topics)


@_door("Topic", "Delete", alone=True)
def delete_records(wire: Wire, names: Sequence[str]) -> Codes:
    """Asked by brokers, about the topic and nothing else."""
    topic = DeleteRecordsRequest.DeleteRecordsTopic
    partition = topic.DeleteRecordsPartition(partition_index=7, offset=0)
    request = DeleteRecordsRequest(
        topics=[topic(name=name, partitions=[partition]) for name in names], timeout_ms=5000
    )
    for row in wire.send(request, SECONDS).topics:
        yield row.name, row.partitions[0].error_code


@_door("Topic", "Describe", Right("ClusterAction", "Cluster", "kafka-cluster"))
def leader_epochs(wire: Wire, names: Sequence[str]) -> Codes:
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    partition = topic.OffsetForLeaderPartition(partition=0, current_leader_epoch=-1, leader_epoch=0)
    request = OffsetForLeaderEpochRequest(
        replica_id=-2, topics=[topic(topic=name, partitions=[partition]) for name in names]
    )
    for row in wire.send(request, SECONDS).topics:
        yield row.topic, row.partitions[0].error_code


@_door("Topic", "Alter")
def create_partitions(wire: Wire, names: Sequence[str]) -> Codes:
    row = CreatePartitionsRequest.CreatePartitionsTopic
    request = CreatePartitionsRequest(
        topics=[row(name=name, count=9, assignments=None) for name in names],
        timeout_ms=5000,
        validate_only=True,
    )
    yield from ((row.name, row.error_code) for row in wire.send(request, SECONDS).results)


@_door("Topic", "DescribeConfigs")
def topic_configs(wire: Wire, names: Sequence[str]) -> Codes:
    answers = describe_configs(wire, "topic", names, SECONDS)
    yield from ((name, answer.code) for name, answer in answers.items())


@_door("Topic", "AlterConfigs")
def alter_topic_configs(wire: Wire, names: Sequence[str]) -> Codes:
    yield from _alter(wire, "topic", names)


@_door("Group", "AlterConfigs")
def alter_group_configs(wire: Wire, names: Sequence[str]) -> Codes:
    yield from _alter(wire, "group", names)


def _alter(wire: Wire, kind: str, names: Sequence[str]) -> Codes:
    key = {"topic": ("retention.ms", "1000"), "group": ("consumer.session.timeout.ms", "45000")}
    changes = [
        {"resource": kind, "name": name, "set": dict([key[kind]]), "delete": ()} for name in names
    ]
    answers = alter_configs(wire, changes, SECONDS, validate_only=True)
    yield from ((name, answer.code) for (_, name), answer in answers.items.items())


@_door("Group", "DescribeConfigs")
def group_configs(wire: Wire, names: Sequence[str]) -> Codes:
    answers = describe_configs(wire, "group", names, SECONDS)
    yield from ((name, answer.code) for name, answer in answers.items())


@_door("Group", "Describe")
def describe_groups(wire: Wire, names: Sequence[str]) -> Codes:
    request = DescribeGroupsRequest(groups=list(names), include_authorized_operations=False)
    yield from ((row.group_id, row.error_code) for row in wire.send(request, SECONDS).groups)


@_door("Group", "Describe")
def offset_fetch(wire: Wire, names: Sequence[str]) -> Codes:
    row = OffsetFetchRequest.OffsetFetchRequestGroup
    groups = [row(group_id=name, member_id=None, member_epoch=-1, topics=None) for name in names]
    request = OffsetFetchRequest(groups=groups, require_stable=False, min_version=8, max_version=9)
    yield from ((row.group_id, row.error_code) for row in wire.send(request, SECONDS).groups)


@_door("Group", "Delete")
def delete_groups(wire: Wire, names: Sequence[str]) -> Codes:
    request = DeleteGroupsRequest(groups_names=list(names))
    yield from ((row.group_id, row.error_code) for row in wire.send(request, SECONDS).results)


@_door("Group", "Read")
def heartbeat(wire: Wire, names: Sequence[str]) -> Codes:
    for name in names:
        request = HeartbeatRequest(group_id=name, generation_id=1, member_id="nobody")
        yield name, wire.send(request, SECONDS).error_code


@_door("TransactionalID", "Write")
def init_producer_id(wire: Wire, names: Sequence[str]) -> Codes:
    for name in names:
        request = InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=10_000, max_version=4
        )
        yield name, wire.send(request, SECONDS).error_code


@_door("TransactionalID", "Write", besides="TwoPhaseCommit")
def two_phase_commit(wire: Wire, names: Sequence[str]) -> Codes:
    for name in names:
        request = InitProducerIdRequest(
            transactional_id=name, transaction_timeout_ms=10_000, enable2_pc=True, min_version=6
        )
        yield name, wire.send(request, SECONDS).error_code


@_door("Cluster", "IdempotentWrite")
def idempotent_producer(wire: Wire, names: Sequence[str]) -> Codes:
    request = InitProducerIdRequest(
        transactional_id=None, transaction_timeout_ms=10_000, max_version=4
    )
    yield names[0], wire.send(request, SECONDS).error_code


@_door("TransactionalID", "Describe")
def describe_transactions(wire: Wire, names: Sequence[str]) -> Codes:
    request = DescribeTransactionsRequest(transactional_ids=list(names))
    answer = wire.send(request, SECONDS)
    yield from ((row.transactional_id, row.error_code) for row in answer.transaction_states)


@_door("Cluster", "Describe")
def describe_acls(wire: Wire, names: Sequence[str]) -> Codes:
    request = DescribeAclsRequest(
        resource_type_filter=2,
        resource_name_filter="none",
        pattern_type_filter=3,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
        min_version=1,
    )
    yield names[0], wire.send(request, SECONDS).error_code


@_door("Cluster", "Alter")
def alter_reassignments(wire: Wire, names: Sequence[str]) -> Codes:
    request = AlterPartitionReassignmentsRequest(timeout_ms=5000, topics=[])
    yield names[0], wire.send(request, SECONDS).error_code


@_door("Cluster", "DescribeConfigs")
def describe_quotas(wire: Wire, names: Sequence[str]) -> Codes:
    request = DescribeClientQuotasRequest(components=[], strict=False)
    yield names[0], wire.send(request, SECONDS).error_code


@_door("Cluster", "AlterConfigs")
def alter_quotas(wire: Wire, names: Sequence[str]) -> Codes:
    row = AlterClientQuotasRequest.EntryData
    entry = row(
        entity=[row.EntityData(entity_type="user", entity_name="nobody")],
        ops=[row.OpData(key="request_percentage", value=50.0, remove=False)],
    )
    answer = wire.send(AlterClientQuotasRequest(entries=[entry], validate_only=True), SECONDS)
    yield names[0], answer.entries[0].error_code


@_door("User", "CreateTokens")
def create_tokens(wire: Wire, names: Sequence[str]) -> Codes:
    """Nobody may renew a token but users, which is looked at last: so none is made."""
    renewer = CreateDelegationTokenRequest.CreatableRenewers(
        principal_type="Group", principal_name="g"
    )
    for name in names:
        request = CreateDelegationTokenRequest(
            owner_principal_type="User",
            owner_principal_name=name.removeprefix("User:"),
            renewers=[renewer],
            max_lifetime_ms=-1,
            min_version=3,
        )
        code = wire.send(request, SECONDS).error_code
        assert code in (65, _INVALID_PRINCIPAL_TYPE), code
        yield name, code


_TOPICS = (
    metadata,
    create_automatically,
    produce,
    fetch,
    list_offsets,
    create_topics,
    delete_records,
    leader_epochs,
    create_partitions,
    topic_configs,
    alter_topic_configs,
)
_GROUPS = (
    describe_groups,
    offset_fetch,
    delete_groups,
    heartbeat,
    group_configs,
    alter_group_configs,
)
_TRANSACTIONS = (init_producer_id, two_phase_commit, idempotent_producer, describe_transactions)
_CLUSTER = (describe_acls, alter_reassignments, describe_quotas, alter_quotas)


# ── deleting topics ─────────────────────────────────────────────────────────────────────

_TWICE = 42
"""INVALID_REQUEST."""


def deletions(
    user: str, wire: Wire, topics: Mapping[str, UUID], recreate: Callable[[str], None]
) -> Iterator[Probe]:
    """Delete topics that are there, mostly without doing it: a topic that is named both by its
    name and by its id is refused as named twice, but to those who may delete it only. Who may
    delete and not describe it does delete it, because the name alone is refused then.

    topics: name -> id; recreate: makes a topic that was deleted again.
    """
    row = DeleteTopicsRequest.DeleteTopicState
    for name, number in dict(topics).items():
        both = [row(name=name, topic_id=UUID(int=0)), row(name=None, topic_id=number)]
        request = DeleteTopicsRequest(topics=both, timeout_ms=5000, min_version=6)
        codes = {answer.error_code for answer in wire.send(request, SECONDS).responses}
        assert codes <= {_TWICE, 29, 0}, codes
        if 0 in codes:
            recreate(name)
        right = Right("Delete", "Topic", name)
        yield Probe(user, "delete_topics", (right,), codes != {29})


# ── tokens ──────────────────────────────────────────────────────────────────────────────


def make_token(admin: Wire, owner: str) -> str:
    """The id of a new token of this user, which the super user asked for."""
    request = CreateDelegationTokenRequest(
        owner_principal_type="User",
        owner_principal_name=owner,
        renewers=[],
        max_lifetime_ms=-1,
        min_version=3,
    )
    answer = admin.send(request, SECONDS)
    assert answer.error_code == 0, answer
    return str(answer.token_id)


def list_tokens(wire: Wire) -> frozenset[str]:
    """The ids of the tokens that we may see."""
    answer = wire.send(DescribeDelegationTokenRequest(owners=None, min_version=3), SECONDS)
    assert answer.error_code == 0, answer
    return frozenset(token.token_id for token in answer.tokens)


def sights(user: str, wire: Wire, tokens: Mapping[str, str]) -> Iterator[Probe]:
    """Whether each token is seen: by a right on it, or on the user whose it is.

    tokens: id -> owner.
    """
    seen = list_tokens(wire)
    for token, owner in tokens.items():
        rights_ = (
            Right("DescribeTokens", "User", f"User:{owner}"),
            Right("Describe", "DelegationToken", token),
        )
        yield Probe(user, "describe_tokens", rights_, token in seen)


# ── authorized operations ───────────────────────────────────────────────────────────────


def told(user: str, wire: Wire, topics: Sequence[str]) -> Iterator[Probe]:
    """What the broker says that we may do, with the cluster and with topics that are there."""
    held = decode_operations(describe_cluster(wire, SECONDS).operations)
    yield from _told(user, "Cluster", "kafka-cluster", held)
    row = MetadataRequest.MetadataRequestTopic
    request = MetadataRequest(
        topics=[row(name=name) for name in topics],
        allow_auto_topic_creation=False,
        include_topic_authorized_operations=True,
    )
    for topic in wire.send(request, SECONDS).topics:
        if topic.error_code == 0:
            yield from _told(
                user, "Topic", topic.name, decode_operations(topic.authorized_operations)
            )


def _told(user: str, kind: str, name: str, held: Sequence[str]) -> Iterator[Probe]:
    """Those who may not describe something are told that they may do nothing with it."""
    for operation in list_reported_operations(kind) if held else ("Describe",):
        right = Right(operation, kind, name)
        yield Probe(user, "authorized operations", (right,), operation in held, alone=True)
