"""What cannot be avoided: bare clients that only read or only write, and do nothing else.

`python -m tests.bench.peers.limits WORK SIZE BOOTSTRAP`, the password in PROOF_PASSWORD. They pay
for their own start, as every tool does.

- `sweep`: every config of every topic, with confluent-kafka, as a plan must read them; all ACLs
  and quotas with the requests of `tests/bench/limit.py`, because confluent-kafka crashes when it
  reads many ACLs (confluentinc/confluent-kafka-python#2031).
- `create`, `delete`: everything in a few large requests, until it is answered.
- `create-shown`, `delete-shown`: the same until every broker shows it.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from itertools import chain
from typing import Any

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourcePatternType,
    ResourceType,
)

from ..limit import AT_ONCE, Bare
from .world import Acl, Topic, World, make_world, parse_size

RECORDS = 5_000
"""Half of what the controller takes in one request: a record for each topic, partition, override
and ACL."""
TIMEOUT, PAUSE = 300.0, 0.02
USER, PASSWORD = "admin", "PROOF_PASSWORD"
_OPERATIONS = {
    "Read": AclOperation.READ,
    "Write": AclOperation.WRITE,
    "Describe": AclOperation.DESCRIBE,
    "Alter": AclOperation.ALTER,
    "Delete": AclOperation.DELETE,
    "DescribeConfigs": AclOperation.DESCRIBE_CONFIGS,
}


def connect(bootstrap: str, password: str) -> AdminClient:
    return AdminClient(
        {
            "bootstrap.servers": bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "PLAIN",
            "sasl.username": USER,
            "sasl.password": password,
            "log_level": 0,
        }
    )


# ── reading ─────────────────────────────────────────────────────────────────────────────


def sweep(client: AdminClient, bare: Callable[[], Bare], world: World) -> None:
    if world.topics:
        assert sweep_topics(client) == len(world.topics)
    if world.acls or world.quotas:
        reader = bare()
        assert reader.sweep(topics=False, acls=bool(world.acls))[1] == len(world.acls)
        assert not world.quotas or reader.count_quotas() == len(world.quotas)
        reader.close()


def sweep_topics(client: AdminClient) -> int:
    """How many topics there are, all of whose configs were read."""
    names = [name for name in client.list_topics(timeout=TIMEOUT).topics if name[:2] != "__"]
    found = 0
    # Two requests at a time: with all of them in flight, the answers for 10,000 topics take 400 MB.
    waiting: list[Future[Any]] = []
    for start in range(0, len(names), AT_ONCE):
        chunk = names[start : start + AT_ONCE]
        asked = client.describe_configs(
            [ConfigResource(ResourceType.TOPIC, name) for name in chunk], request_timeout=TIMEOUT
        )
        found += sum(bool(future.result(TIMEOUT)) for future in waiting)
        waiting = list(asked.values())
    return found + sum(bool(future.result(TIMEOUT)) for future in waiting)


# ── writing ─────────────────────────────────────────────────────────────────────────────


def create(client: AdminClient, world: World) -> None:
    _wait(
        *(
            client.create_topics(
                [NewTopic(t.name, t.partitions, 1, config=dict(t.config)) for t in topics],
                operation_timeout=TIMEOUT,
                request_timeout=TIMEOUT,
            )
            for topics in _batch_topics(world.topics)
        ),
        *(
            client.create_acls([_bind(acl, AclBinding) for acl in acls], request_timeout=TIMEOUT)
            for acls in _batch(world.acls, RECORDS)
        ),
    )


def delete(client: AdminClient, world: World) -> None:
    _wait(
        *(
            client.delete_topics(
                [t.name for t in topics], operation_timeout=TIMEOUT, request_timeout=TIMEOUT
            )
            for topics in _batch_topics(world.topics)
        ),
        # One filter for each operation: the broker finds what it deletes, 10,000 at most at a time.
        *(
            client.delete_acls([_match(operation)], request_timeout=TIMEOUT)
            for operation in (_OPERATIONS if world.acls else ())
        ),
    )


def create_quotas(bare: Bare, world: World) -> None:
    """Apart from the rest, since confluent-kafka has no request for them."""
    if world.quotas:
        bare.set_quotas(_rates(world))


def delete_quotas(bare: Bare, world: World) -> None:
    if world.quotas:
        bare.set_quotas(dict.fromkeys(_rates(world)))


def wait_until_shown(bare: Bare, world: World) -> None:
    """Until each broker shows every topic with leaders, and every ACL."""
    wanted = {topic.name: topic.partitions for topic in world.topics}
    _poll(bare, lambda led: wanted.items() <= led.items(), len(world.acls))
    assert bare.count_quotas() == len(world.quotas)


def wait_until_gone(bare: Bare, world: World) -> None:
    gone = {topic.name for topic in world.topics}
    _poll(bare, lambda led: not gone & led.keys(), 0)


def _poll(bare: Bare, agrees: Callable[[Mapping[str, int]], bool], acls: int) -> None:
    """acls: how many each broker is to show."""
    deadline = time.monotonic() + TIMEOUT
    for node in bare.list_brokers():
        while not (agrees(bare.read_leaders(node)) and bare.count_acls(node) == acls):
            assert time.monotonic() < deadline, f"broker {node} does not show it"
            time.sleep(PAUSE)


# ── preparing what is measured ──────────────────────────────────────────────────────────


def turn(client: AdminClient, bare: Bare, before: World, after: World) -> None:
    """Make one world of the other, which has the same topics. What is as wanted already may be."""
    pairs = zip(before.topics, after.topics, strict=True)
    altered = [new for old, new in pairs if old.config != new.config]
    resources = [
        ConfigResource(
            ResourceType.TOPIC,
            topic.name,
            incremental_configs=[
                ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
                for key, value in topic.config.items()
            ],
        )
        for topic in altered
    ]
    if resources:
        _wait(client.incremental_alter_configs(resources, request_timeout=TIMEOUT))
    if before.quotas != after.quotas:
        bare.set_quotas(_rates(after))
    there, wanted = set(before.acls), set(after.acls)
    if wanted - there:
        _wait(client.create_acls([_bind(acl, AclBinding) for acl in wanted - there]))
    if there - wanted:
        _wait(client.delete_acls([_bind(acl, AclBindingFilter) for acl in there - wanted]))


def build(client: AdminClient, bare: Bare, world: World) -> None:
    """Create everything, until every broker shows it."""
    create(client, world)
    create_quotas(bare, world)
    wait_until_shown(bare, world)


def clear(client: AdminClient, bare: Bare, world: World) -> None:
    """Delete what there is of it, until no broker shows any of it."""
    # By name, and not by what a broker lists: it may not list yet what was just created.
    delete(client, world)
    if bare.count_quotas():
        delete_quotas(bare, world)
    wait_until_gone(bare, world)


def _rates(world: World) -> dict[str, int]:
    return {quota.user: quota.producer_byte_rate for quota in world.quotas}


def _bind(acl: Acl, kind: type) -> Any:
    return kind(
        ResourceType.TOPIC,
        acl.topic,
        ResourcePatternType.LITERAL,
        f"User:{acl.user}",
        "*",
        _OPERATIONS[acl.operation],
        AclPermissionType.ALLOW,
    )


def _match(operation: str) -> AclBindingFilter:
    """Matches all ACLs with this operation."""
    return AclBindingFilter(
        ResourceType.ANY,
        None,
        ResourcePatternType.ANY,
        None,
        None,
        _OPERATIONS[operation],
        AclPermissionType.ANY,
    )


def _batch_topics(topics: Sequence[Topic]) -> Iterator[Sequence[Topic]]:
    each = 1 + topics[0].partitions + len(topics[0].config) if topics else 1
    return _batch(topics, max(1, RECORDS // each))


def _batch(objects: Sequence[Any], size: int) -> Iterator[Sequence[Any]]:
    return (objects[start : start + size] for start in range(0, len(objects), size))


def _wait(*asked: Mapping[Any, Future[Any]]) -> None:
    for future in chain.from_iterable(each.values() for each in asked):
        try:
            future.result(TIMEOUT)
        except KafkaException as error:
            # `clear` deletes also what is not there.
            if error.args[0].code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise


_WRITES = {
    "create": (create, create_quotas, wait_until_shown),
    "delete": (delete, delete_quotas, wait_until_gone),
}


# ── one work as a process ───────────────────────────────────────────────────────────────


def _run(work: str, size: str, bootstrap: str) -> None:
    password, world = os.environ[PASSWORD], make_world(parse_size(size))
    client = connect(bootstrap, password)
    if work == "sweep":
        sweep(client, lambda: Bare(bootstrap, password), world)
        return
    verb, _, shown = work.partition("-")
    act, set_quotas, wait = _WRITES[verb]
    act(client, world)
    if world.quotas or shown:
        bare = Bare(bootstrap, password)
        set_quotas(bare, world)
        if shown:
            wait(bare, world)
        bare.close()


if __name__ == "__main__":
    _run(*sys.argv[1:])
