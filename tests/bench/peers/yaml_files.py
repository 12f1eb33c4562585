"""The world in YAML: a file for each topic for topicctl, one file for jikkou.

Sources: topicctl 1.23.1, pkg/config/{topic,cluster}.go; jikkou 1.1.0, examples/ and
e2e/resources/jikkou-e2e-sasl.conf.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from .world import Acl, Quota, Topic, World

MINUTE_MS = 60_000
CLUSTER = "peers"
_BETA = "kafka.jikkou.io/v1beta2"
_DUMPER = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def write_topicctl_files(world: World) -> dict[str, str]:
    """Path -> text. topicctl applies only topics."""
    return {f"topics/{topic.name}.yaml": _write_topicctl_topic(topic) for topic in world.topics}


def write_topicctl_cluster(bootstrap: str, user: str, password: str) -> str:
    return f"""meta:
  name: {CLUSTER}
  environment: bench
  region: here
spec:
  bootstrapAddrs: [{json.dumps(bootstrap)}]
  sasl:
    enabled: true
    mechanism: PLAIN
    username: {json.dumps(user)}
    password: {json.dumps(password)}
"""


def _write_topicctl_topic(topic: Topic) -> str:
    return f"""meta:
  name: {topic.name}
  cluster: {CLUSTER}
  environment: bench
  region: here
spec:
  partitions: {topic.partitions}
  replicationFactor: 1
  retentionMinutes: {int(topic.config["retention.ms"]) // MINUTE_MS}
  placement:
    strategy: any
  settings:
    cleanup.policy: {topic.config["cleanup.policy"]}
    max.message.bytes: {topic.config["max.message.bytes"]}
"""


def write_jikkou_file(world: World, *, deleted: bool = False) -> str:
    """All resources. deleted: with the annotation that makes `apply` delete them."""
    mark = {"annotations": {"jikkou.io/delete": True}} if deleted else {}
    documents = _list_jikkou_documents(world, mark)
    return yaml.dump_all(documents, Dumper=_DUMPER, sort_keys=False, width=1000)


def _list_jikkou_documents(world: World, mark: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    if world.topics:
        items = [_make_jikkou_topic(topic, mark) for topic in world.topics]
        yield {"apiVersion": "kafka.jikkou.io/v1", "kind": "KafkaTopicList", "items": items}
    users: dict[str, list[Acl]] = defaultdict(list)
    for acl in world.acls:
        users[acl.user].append(acl)
    for user, acls in users.items():
        yield {
            "apiVersion": _BETA,
            "kind": "KafkaPrincipalAuthorization",
            "metadata": {"name": f"User:{user}", **mark},
            "spec": {"acls": [_make_jikkou_acl(acl) for acl in acls]},
        }
    if world.quotas:
        items = [_make_jikkou_quota(quota, mark) for quota in world.quotas]
        yield {"apiVersion": _BETA, "kind": "KafkaClientQuotaList", "items": items}


def _make_jikkou_topic(topic: Topic, mark: Mapping[str, Any]) -> dict[str, Any]:
    spec = {"partitions": topic.partitions, "replicas": 1, "configs": dict(topic.config)}
    return {"metadata": {"name": topic.name, **mark}, "spec": spec}


def _make_jikkou_acl(acl: Acl) -> dict[str, Any]:
    return {
        "resource": {"type": "topic", "pattern": acl.topic, "patternType": "LITERAL"},
        "type": "ALLOW",
        "operations": [_shout(acl.operation)],
        "host": "*",
    }


def _make_jikkou_quota(quota: Quota, mark: Mapping[str, Any]) -> dict[str, Any]:
    configs = {"producerByteRate": quota.producer_byte_rate}
    spec = {"type": "USER", "entity": {"user": quota.user}, "configs": configs}
    return {"metadata": dict(mark), "spec": spec}


def _shout(operation: str) -> str:
    """`DescribeConfigs` as jikkou writes it: DESCRIBE_CONFIGS."""
    return "".join(f"_{c}" if c.isupper() and n else c for n, c in enumerate(operation)).upper()


def write_jikkou_configuration(bootstrap: str, user: str, password: str) -> str:
    login = "org.apache.kafka.common.security.plain.PlainLoginModule required"
    return f"""jikkou {{
  provider.kafka {{
    enabled = true
    type = io.jikkou.kafka.KafkaExtensionProvider
    default = true
    config = {{
      client {{
        bootstrap.servers = {json.dumps(bootstrap)}
        security.protocol = "SASL_PLAINTEXT"
        sasl.mechanism = "PLAIN"
        sasl.jaas.config = {json.dumps(f'{login} username="{user}" password="{password}";')}
      }}
    }}
  }}
}}
"""
