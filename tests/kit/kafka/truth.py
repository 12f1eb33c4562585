"""The cluster as other clients show it: every object of some prefix, spelled as states spell them.
Nothing of the product is used, so that a fault of its reads cannot hide one of its writes."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from confluent_kafka import KafkaError, KafkaException, TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType
from kafka import KafkaAdminClient
from kafka.admin import (
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResourceType,
)
from kafka.admin import ConfigResource as Described
from kafka.admin import ResourceType as AclResource
from kafka.errors import KafkaError as PureKafkaError
from kafka.errors import for_code
from kafka.protocol.admin import DescribeAclsRequest, DescribeClientQuotasRequest

from ..promises import Name, Thing, World
from .logins import finish

TOPIC_OWN = 1
"""ConfigSource of a topic's own override."""
OWN = {"GROUP": "DYNAMIC_GROUP_CONFIG", "CLIENT_METRICS": "DYNAMIC_CLIENT_METRICS_CONFIG"}
"""The source of what was set on an object itself."""
BROKER_OWN = {
    "DYNAMIC_BROKER_CONFIG": ("kafka_broker_config", "1"),
    "DYNAMIC_DEFAULT_BROKER_CONFIG": ("kafka_cluster_config", "default"),
}
"""Source -> the object whose config it is."""
KEPT = {
    "GROUP": ("kafka_group_config", "group"),
    "CLIENT_METRICS": ("kafka_client_metrics", "name"),
}
"""Kind of resource -> kind of object, and the attribute with its name."""
SECONDS = 30.0
TRIES, PAUSE = 300, 0.1
CONFIGS_AT_ONCE = 1000
"""Topics in one DescribeConfigs request."""
RECONNECT_MS = 500
_URL_SAFE = str.maketrans("+/", "-_", "=")


@dataclass(frozen=True)
class Live:
    """One topic as the cluster shows it. config: its own overrides."""

    topic_id: str
    partitions: int
    replication_factor: int
    config: Mapping[str, str]


class Observer:
    """Clients of `admin`, which nobody but the test uses; several threads may. native: shows
    topics; pure: all that the other one does not know, connected when it is first asked."""

    def __init__(self, bootstrap: str, password: str) -> None:
        self._bootstrap, self._password = bootstrap, password
        self.native = AdminClient(
            {
                "bootstrap.servers": bootstrap,
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "PLAIN",
                "sasl.username": "admin",
                "sasl.password": password,
                "log_level": 0,
            }
        )

    @cached_property
    def pure(self) -> KafkaAdminClient:
        return KafkaAdminClient(
            bootstrap_servers=self._bootstrap,
            security_protocol="SASL_PLAINTEXT",
            sasl_mechanism="PLAIN",
            sasl_plain_username="admin",
            sasl_plain_password=self._password,
            # A broker that was away for long is else asked again only half a minute after it is
            # back.
            reconnect_backoff_max_ms=RECONNECT_MS,
        )

    def close(self) -> None:
        if "pure" in self.__dict__:
            self.pure.close()

    def make(self, topics: Mapping[str, tuple[int, Mapping[str, str]]]) -> None:
        """Create topics behind kafkaform's back, and wait until the broker shows them: name ->
        partitions and config."""
        new = [NewTopic(n, count, 1, config=dict(config)) for n, (count, config) in topics.items()]
        if not new:
            return
        finish(lambda: self.native.create_topics(new, operation_timeout=SECONDS))
        while not topics.keys() <= self.native.list_topics(timeout=SECONDS).topics.keys():
            time.sleep(0.05)

    def topics(self, prefix: str = "") -> dict[str, Live]:
        """Every topic whose name begins so. Of several brokers each is asked something, and one
        may know a new topic later than another."""
        deadline = time.monotonic() + SECONDS
        while True:
            try:
                return dict(_live_topics(self.native, prefix))
            except KafkaException as error:
                late = error.args[0].code() == KafkaError.UNKNOWN_TOPIC_OR_PART
                if not late or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def acls(self, prefix: str) -> World:
        """The ACLs of users whose names begin so."""
        return dict(_acls(self.pure, prefix))

    def world(self, prefix: str, kept: str = "", broker_key: str = "") -> World:
        """Topics, ACLs, quotas and SCRAM users whose names begin with the prefix; the configs of
        the group and of the client metrics of the name `kept`; and one config of broker 1 and of
        all brokers. A connection that is lost, or not there yet, is waited for."""
        for _ in range(TRIES):
            try:
                return self._world(prefix, kept, broker_key)
            except (PureKafkaError, KafkaException):
                time.sleep(PAUSE)
        return self._world(prefix, kept, broker_key)

    def _world(self, prefix: str, kept: str, broker_key: str) -> World:
        return dict(
            (
                *(_topic(name, live) for name, live in self.topics(prefix).items()),
                *_acls(self.pure, prefix),
                *_quotas(self.pure, prefix),
                *_users(self.pure, prefix),
                *(_kept(self.pure, kept) if kept else ()),
                *(_broker_configs(self.pure, broker_key) if broker_key else ()),
            )
        )


def observe(box: Any) -> Observer:
    """Of the sandbox, or the run's broker."""
    return Observer(box.bootstrap, box.admin_password)


@contextmanager
def looking(bootstrap: str, password: str) -> Iterator[Observer]:
    """Clients that are closed afterwards."""
    observer = Observer(bootstrap, password)
    try:
        yield observer
    finally:
        observer.close()


def _live_topics(admin: AdminClient, prefix: str) -> Iterator[tuple[str, Live]]:
    names = [n for n in admin.list_topics(timeout=SECONDS).topics if n.startswith(prefix)]
    if not names:
        return
    described = admin.describe_topics(TopicCollection(names))
    configs = _topic_configs(admin, names)
    for name, future in described.items():
        topic = future.result(SECONDS)
        # Kafka's own spelling of the id is URL-safe; this client's is not.
        topic_id = str(topic.topic_id).translate(_URL_SAFE)
        replicas = len(topic.partitions[0].replicas)
        yield name, Live(topic_id, len(topic.partitions), replicas, configs[name])


def _topic_configs(admin: AdminClient, names: Iterable[str]) -> dict[str, dict[str, str]]:
    # In parts: a broker cannot give all configs of 10,000 topics in one answer.
    asked = [ConfigResource(ResourceType.TOPIC, name) for name in names]
    return {
        resource.name: {
            entry.name: entry.value
            for entry in future.result(SECONDS).values()
            if int(entry.source) == TOPIC_OWN
        }
        for start in range(0, len(asked), CONFIGS_AT_ONCE)
        for resource, future in admin.describe_configs(
            asked[start : start + CONFIGS_AT_ONCE]
        ).items()
    }


def _topic(name: str, live: Live) -> tuple[Name, Thing]:
    attributes = {
        "name": name,
        "partitions": live.partitions,
        "replication_factor": live.replication_factor,
        "config": live.config,
    }
    return ("kafka_topic", name), Thing(attributes, live.topic_id)


def _kept(client: KafkaAdminClient, name: str) -> Iterator[tuple[Name, Thing]]:
    for resource, (kind, label) in KEPT.items():
        if config := _configs(client, resource, name):
            yield (kind, name), Thing({label: name, "config": config})


def _broker_configs(client: KafkaAdminClient, key: str) -> Iterator[tuple[Name, Thing]]:
    """What broker 1 shows of one config: its own value, and the one for all brokers."""
    found = _describe(client, "BROKER", "1").get(key, {"synonyms": ()})
    for one in found["synonyms"]:
        if (owner := BROKER_OWN.get(one["source"])) and one["name"] == key:
            yield owner, Thing({"config": {key: one["value"]}})


def _configs(client: KafkaAdminClient, kind: str, name: str) -> dict[str, str]:
    """What was set on it itself."""
    told = _describe(client, kind, name)
    return {k: v["value"] for k, v in told.items() if v["config_source"] == OWN[kind]}


def _describe(client: KafkaAdminClient, kind: str, name: str) -> Any:
    asked = [Described(ConfigResourceType[kind], name)]
    answer = client.describe_configs(asked, include_synonyms=True, config_filter="all")
    return answer.get(kind.lower(), {}).get(name, {})


def _acls(client: KafkaAdminClient, prefix: str) -> Iterator[tuple[Name, Thing]]:
    every = DescribeAclsRequest(
        resource_type_filter=AclResource.ANY,
        resource_name_filter=None,
        pattern_type_filter=ACLResourcePatternType.ANY,
        principal_filter=None,
        host_filter=None,
        operation=ACLOperation.ANY,
        permission_type=ACLPermissionType.ANY,
    )
    answer = client._manager.run(client._manager.send, every)
    if answer.error_code:
        raise for_code(answer.error_code)(answer.error_message)
    # Only ours are decoded: others can have an operation that is newer than this client.
    for pattern, acl in ((one, acl) for one in answer.resources for acl in one.acls):
        if acl.principal.startswith(f"User:{prefix}") or pattern.resource_name.startswith(prefix):
            told = {
                "acl_principal": acl.principal,
                "acl_host": acl.host,
                "acl_operation": _camel(ACLOperation(acl.operation)),
                "acl_permission_type": _camel(ACLPermissionType(acl.permission_type)),
                "resource_type": _camel(AclResource(pattern.resource_type)),
                "resource_name": pattern.resource_name,
                "resource_pattern_type_filter": _camel(
                    ACLResourcePatternType(pattern.pattern_type)
                ),
            }
            yield ("kafka_acl", "|".join(told.values())), Thing(told)


def _camel(member: Any) -> str:
    return "".join(part.capitalize() for part in member.name.split("_"))


def _quotas(client: KafkaAdminClient, prefix: str) -> Iterator[tuple[Name, Thing]]:
    request = DescribeClientQuotasRequest(components=[], strict=False)
    for row in client._manager.run(client._manager.send, request).entries or ():
        entity = {part.entity_type: part.entity_name for part in row.entity}
        if (entity.get("user") or "").startswith(prefix):
            key = "|".join(f"{what}={name}" for what, name in entity.items())
            config = {value.key: int(value.value) for value in row.values}
            yield ("kafka_quota", key), Thing({"entity": entity, "config": config})


def _users(client: KafkaAdminClient, prefix: str) -> Iterator[tuple[Name, Thing]]:
    for user, told in client.describe_user_scram_credentials().items():
        for credential in told["credential_infos"] if user.startswith(prefix) else ():
            mechanism = credential["mechanism"].name.replace("_", "-")
            attributes = {
                "username": user,
                "scram_mechanism": mechanism,
                "scram_iterations": credential["iterations"],
            }
            yield ("kafka_user_scram_credential", f"{user}|{mechanism}"), Thing(attributes)
