"""What a user manages on a cluster: a configuration of each kind, and the versions that have it."""

from __future__ import annotations

from dataclasses import dataclass

from .versions import Choice


@dataclass(frozen=True)
class Subject:
    """first, second: blocks, the second with another value; {p} is a name that nobody else has.
    since, zookeeper: the version that brought it, and whether it is there with ZooKeeper."""

    title: str
    kind: str
    first: str
    second: str
    since: str = "3.0"
    zookeeper: bool = True

    def is_in(self, choice: Choice) -> bool:
        return not choice.lacks(self.since, zookeeper=self.zookeeper)


def _config(kind: str, place: str, key: str, *values: object) -> tuple[str, str]:
    """Two blocks with a config of this place."""
    made = [
        f'resource "{kind}" "it" {{{{\n  {place}\n  config = {{{{ "{key}" = {value} }}}}\n}}}}\n'
        for value in values
    ]
    return made[0], made[1]


def _topic(partitions: int, retention: int) -> str:
    return (
        'resource "kafka_topic" "it" {{\n  name = "{p}"\n  replication_factor = 1\n'
        f'  partitions = {partitions}\n  config = {{{{ "retention.ms" = {retention} }}}}\n}}}}\n'
    )


def _acl(operation: str) -> str:
    return (
        'resource "kafka_acl" "it" {{\n  acl_principal = "User:{p}"\n  acl_host = "*"\n'
        f'  acl_operation = "{operation}"\n  acl_permission_type = "Allow"\n'
        '  resource_type = "Topic"\n  resource_name = "{p}"\n}}\n'
    )


def _user(iterations: int) -> str:
    return (
        'resource "kafka_user_scram_credential" "it" {{\n  username = "{p}"\n'
        f'  scram_mechanism = "SCRAM-SHA-256"\n  scram_iterations = {iterations}\n'
        '  password = secret_env("SUBJECT_PASSWORD")\n  password_wo_version = 1\n}}\n'
    )


SUBJECTS = (
    Subject("topics", "kafka_topic", _topic(1, 3600000), _topic(2, 7200000)),
    Subject(
        "topic configs",
        "kafka_topic_config",
        *_config("kafka_topic_config", 'topic = "{p}"', "flush.messages", 9, 10),
    ),
    Subject(
        "broker configs",
        "kafka_broker_config",
        *_config("kafka_broker_config", "broker_id = 1", "background.threads", 11, 12),
    ),
    Subject(
        "cluster configs",
        "kafka_cluster_config",
        *_config("kafka_cluster_config", "", "message.max.bytes", 2000000, 2000001),
    ),
    Subject("ACLs", "kafka_acl", _acl("Read"), _acl("Write")),
    Subject(
        "quotas",
        "kafka_quota",
        *_config("kafka_quota", 'user = "{p}"', "producer_byte_rate", 1000, 2000),
    ),
    Subject("SCRAM users", "kafka_user_scram_credential", _user(4096), _user(8192)),
    Subject(
        "client metrics",  # KIP-714
        "kafka_client_metrics",
        *_config("kafka_client_metrics", 'name = "{p}"', "interval.ms", 60000, 90000),
        since="3.7",
        zookeeper=False,
    ),
    Subject(
        "group configs",  # KIP-848
        "kafka_group_config",
        *_config(
            "kafka_group_config", 'group = "{p}"', "consumer.session.timeout.ms", 50000, 55000
        ),
        since="4.0",
        zookeeper=False,
    ),
)
