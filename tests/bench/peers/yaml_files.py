"""The world in YAML: a file for each topic for topicctl, one file for jikkou.

Sources: topicctl 1.23.1, pkg/config/{topic,cluster}.go; jikkou 1.1.0, examples/ and
e2e/resources/jikkou-e2e-sasl.conf. Strings are written as JSON, which YAML contains.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator

from .world import Acl, Topic, World

MINUTE_MS = 60_000
CLUSTER = "peers"


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
    return "---\n".join(_write_jikkou_documents(world, deleted))


def _write_jikkou_documents(world: World, deleted: bool) -> Iterator[str]:
    mark = "\n    annotations: { jikkou.io/delete: true }" if deleted else ""
    if world.topics:
        items = "".join(_write_jikkou_topic(topic, mark) for topic in world.topics)
        yield f"apiVersion: kafka.jikkou.io/v1\nkind: KafkaTopicList\nitems:\n{items}"
    users: dict[str, list[Acl]] = defaultdict(list)
    for acl in world.acls:
        users[acl.user].append(acl)
    for user, acls in users.items():
        annotation = "\n  annotations: { jikkou.io/delete: true }" if deleted else ""
        rules = "".join(map(_write_jikkou_acl, acls))
        yield (
            "apiVersion: kafka.jikkou.io/v1beta2\nkind: KafkaPrincipalAuthorization\n"
            f'metadata:\n  name: "User:{user}"{annotation}\nspec:\n  acls:\n{rules}'
        )
    if world.quotas:
        items = "".join(
            f"  - metadata:{mark or ' {}'}\n    spec:\n      type: USER\n"
            f"      entity: {{ user: {quota.user} }}\n"
            f"      configs: {{ producerByteRate: {quota.producer_byte_rate} }}\n"
            for quota in world.quotas
        )
        yield f"apiVersion: kafka.jikkou.io/v1beta2\nkind: KafkaClientQuotaList\nitems:\n{items}"


def _write_jikkou_topic(topic: Topic, mark: str) -> str:
    configs = "".join(
        f"        {key}: {json.dumps(value)}\n" for key, value in topic.config.items()
    )
    return (
        f"  - metadata:\n      name: {topic.name}{mark.replace(chr(10), chr(10) + '  ')}\n"
        f"    spec:\n      partitions: {topic.partitions}\n      replicas: 1\n"
        f"      configs:\n{configs}"
    )


def _write_jikkou_acl(acl: Acl) -> str:
    return (
        f"    - resource: {{ type: topic, pattern: {acl.topic}, patternType: LITERAL }}\n"
        f"      type: ALLOW\n      operations: [{_shout(acl.operation)}]\n"
        '      host: "*"\n'
    )


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
