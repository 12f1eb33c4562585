"""The cluster as another client shows it: every object of some prefix, spelled as states spell
them. Nothing of the product is used, so that a fault of its reads cannot hide one of its writes."""

from __future__ import annotations

import base64
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import (
    ACLFilter,
    ACLOperation,
    ACLPermissionType,
    ACLResourcePatternType,
    ConfigResource,
    ConfigResourceType,
    ResourcePatternFilter,
    ResourceType,
)
from kafka.errors import KafkaError
from kafka.protocol.admin import DescribeClientQuotasRequest

from ..promises import Name, Thing, World

OWN = {"topic": "DYNAMIC_TOPIC_CONFIG", "group": "DYNAMIC_GROUP_CONFIG"}
"""The source of what was set on an object itself."""
TRIES, PAUSE = 300, 0.1
RECONNECT_MS = 500


@contextmanager
def looking(bootstrap: str, password: str) -> Iterator[KafkaAdminClient]:
    """The admin's client, of nobody's but the test's; several threads may use it."""
    client = KafkaAdminClient(
        bootstrap_servers=bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_plain_username="admin",
        sasl_plain_password=password,
        # A broker that was away for long is else asked again only half a minute after it is back.
        reconnect_backoff_max_ms=RECONNECT_MS,
    )
    try:
        yield client
    finally:
        client.close()


def read(client: KafkaAdminClient, prefix: str, group: str = "") -> World:
    """Topics, ACLs, quotas and SCRAM users whose names begin with the prefix, and the configs of
    this group. A connection that is lost, or not there yet, is waited for."""
    for _ in range(TRIES):
        try:
            return _read(client, prefix, group)
        except KafkaError:
            time.sleep(PAUSE)
    return _read(client, prefix, group)


def _read(client: KafkaAdminClient, prefix: str, group: str) -> World:
    return dict(
        (
            *_topics(client, prefix),
            *_acls(client, prefix),
            *_quotas(client, prefix),
            *_users(client, prefix),
            *_groups(client, group),
        )
    )


def _topics(client: KafkaAdminClient, prefix: str) -> Iterator[tuple[Name, Thing]]:
    topics = {t["name"]: t for t in client.describe_topics() if t["name"].startswith(prefix)}
    if not topics:
        return
    configs = _configs(client, ConfigResourceType.TOPIC, list(topics))
    for name, topic in topics.items():
        told = {
            "name": name,
            "partitions": len(topic["partitions"]),
            "replication_factor": len(topic["partitions"][0]["replica_nodes"]),
            "config": configs.get(name, {}),
        }
        packed = base64.urlsafe_b64encode(uuid.UUID(str(topic["topic_id"])).bytes)
        yield ("kafka_topic", name), Thing(told, packed.decode().rstrip("="))


def _groups(client: KafkaAdminClient, group: str) -> Iterator[tuple[Name, Thing]]:
    config = _configs(client, ConfigResourceType.GROUP, [group]).get(group) if group else None
    if config:
        yield ("kafka_group_config", group), Thing({"group": group, "config": config})


def _configs(client: KafkaAdminClient, kind: Any, names: list[str]) -> dict[str, dict[str, str]]:
    answer = client.describe_configs([ConfigResource(kind, name) for name in names])
    told: dict[str, Any] = answer.get(kind.name.lower(), {})
    source = OWN[kind.name.lower()]
    return {
        name: {k: v["value"] for k, v in entries.items() if v["config_source"] == source}
        for name, entries in told.items()
    }


def _acls(client: KafkaAdminClient, prefix: str) -> Iterator[tuple[Name, Thing]]:
    anything = ResourcePatternFilter(ResourceType.ANY, None, ACLResourcePatternType.ANY)
    acls, _ = client.describe_acls(
        ACLFilter(None, None, ACLOperation.ANY, ACLPermissionType.ANY, anything)
    )
    for acl in acls:
        pattern = acl.resource_pattern
        told = {
            "acl_principal": acl.principal,
            "acl_host": acl.host,
            "acl_operation": _camel(acl.operation),
            "acl_permission_type": _camel(acl.permission_type),
            "resource_type": _camel(pattern.resource_type),
            "resource_name": pattern.resource_name,
            "resource_pattern_type_filter": _camel(pattern.pattern_type),
        }
        if acl.principal.startswith(f"User:{prefix}"):
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
