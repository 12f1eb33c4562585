"""Rules of those who use a cluster at the moment of a plan: groups, producers, and what of them is
hidden.

The looks in `impact/` find these, because only they ask the brokers. No approval covers what they
find: it is another number a second later (docs/decisions/035-figures-are-not-approved.md).
"""

from __future__ import annotations

from kafkaform.core.finding import Harm, Level
from kafkaform.core.rule import Needs, Rule

_TOPICS = ("kafka_topic", "kafka_topic_config", "kafka_cluster_config", "kafka_broker_config")
_CLAIMS = "tests/cluster/claims/test_users_now.py"

UNREAD_LOST = Rule(
    "topic-unread-lost",
    "A group has not read what the change deletes",
    Level.DANGER,
    Harm.DATA_LOSS,
    _TOPICS,
    Needs.SYSTEM,
    "A group goes on at its committed offset. If that record is gone, auto.offset.reset decides, "
    "and what lay between is never read. Brokers delete whole segments, so some of it can stay for "
    "a while.",
    '"retention.ms" = retention("1h")   # was "7d", and billing is 2 h behind',
    "Wait until the group has read on, or keep the records longer.",
    proof=f"{_CLAIMS}::test_a_slow_group_misses_what_the_plan_said",
)
READERS = Rule(
    "topic-readers",
    "Groups read the topic",
    Level.NOTE,
    Harm.NONE,
    _TOPICS,
    Needs.SYSTEM,
    "Groups of all protocols that have offsets or assigned partitions in it. The lag is what "
    "Kafka's own kafka-consumer-groups counts; the time is the age of the first unread record.",
    'resource "kafka_topic" "orders" { … }   # the block is removed, and billing reads it',
    "Tell those who run these groups before you apply.",
    proof=f"{_CLAIMS}::test_the_lag_is_that_of_kafkas_own_tool",
)
WRITERS = Rule(
    "topic-writers",
    "Producers write to the topic",
    Level.NOTE,
    Harm.NONE,
    _TOPICS,
    Needs.SYSTEM,
    "DescribeProducers (KIP-664) has the idempotent producers of a partition, and ListOffsets the "
    "newest record (KIP-734). Producers without idempotence are in no list.",
    'resource "kafka_topic" "orders" { … }   # the block is removed, and something writes to it',
    "Tell those who run these producers before you apply.",
    proof=f"{_CLAIMS}::test_producers_and_their_last_write_are_seen",
)
ACCESS_USED = Rule(
    "access-used-now",
    "A group uses what the lost right is about",
    Level.NOTE,
    Harm.NONE,
    ("kafka_acl",),
    Needs.SYSTEM,
    "Brokers show the client ids and hosts of a group's members, and not their principals. So the "
    "group can be one of the principal that loses the right, or of another one.",
    'resource "kafka_acl" "billing" { … }   # the block is removed, and billing reads the topic',
    "Check whether these clients log in as the principal that loses the right.",
    proof=f"{_CLAIMS}::test_the_clients_of_a_lost_right_are_named",
)
KEYS_SAMPLED = Rule(
    "topic-keys-sampled",
    "The records of a topic that gets more partitions have keys, or none",
    Level.NOTE,
    Harm.ORDERING,
    ("kafka_topic",),
    Needs.SYSTEM,
    "With --sample, a plan reads one of the newest records of each partition and keeps nothing of "
    "it but whether it has a key; without, it reads none. Only the order of records with keys "
    "depends on the number of partitions. Brokers refuse records without a key in a compacted "
    "topic, so that one is not read.",
    "kafkaform plan --sample   # and partitions = 6 was 3",
    "Make sure that consumers do not need the order of older and newer records of a key.",
    proof=f"{_CLAIMS}::test_sampled_records_have_keys_or_none",
)
USERS_UNSEEN = Rule(
    "users-unseen",
    "Not all users of dangerous changes were looked at",
    Level.NOTE,
    Harm.NONE,
    (),
    Needs.SYSTEM,
    "The looks take 5 s and 500 topics, and brokers leave out what the principal may not see: "
    "groups need Describe on Group, producers need Read on Topic.",
    "kafkaform plan --impact fast   # of 10,000 dangerous changes",
    "Grant the missing rights, or plan with --impact full.",
    proof=f"{_CLAIMS}::test_what_may_not_be_seen_is_said",
)
RULES = (ACCESS_USED, KEYS_SAMPLED, READERS, UNREAD_LOST, USERS_UNSEEN, WRITERS)
"""The rows; no judge finds them."""
