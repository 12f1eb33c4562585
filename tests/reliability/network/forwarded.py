"""What each item of a forwarded request is called in state and log."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from kafkaform.audit.records import decode
from kafkaform_kafka.kinds.acl.requests import _decode_acl
from kafkaform_kafka.kinds.config.resource_type import CLUSTER
from kafkaform_kafka.kinds.quota import resource_type as quotas
from kafkaform_kafka.kinds.user import resource_type as scram
from kafkaform_kafka.protocol import acl as acls
from kafkaform_kafka.protocol import keys
from kafkaform_kafka.wire.answers import id_text
from kafkaform_kafka.wire.security import AclRow

from ...kit.promises import Name, Reached
from ...kit.proxy.answers import Passed

_TOPIC = 2
_KINDS = {4: "kafka_broker_config", 16: "kafka_client_metrics", 32: "kafka_group_config"}


def reached(
    passed: Iterable[Passed], log: Path, seq: int, topics: Mapping[str, str]
) -> Iterator[Reached]:
    """Every item of a writing request that reached the broker, with how often the log had
    intended it by then. seq: of the last record before; topics: name of each topic id."""
    lines = log.read_bytes().splitlines(keepends=True) if log.exists() else []
    for one in passed:
        for item in one.items:
            name = _NAMES[one.request.api](item, topics)
            yield Reached(
                one.request.api, name, _intents(lines, one.size, seq, one.request.api, name)
            )


def _intents(lines: list[bytes], size: int, seq: int, api: str, name: Name) -> int:
    """How many intents of this the first `size` bytes have."""
    count = end = 0
    for line in lines:
        end += len(line)
        if end > size:
            break
        if b'"intent"' not in line:
            continue
        record = decode(line.rstrip(b"\n"))
        body: Any = record.body
        if record.kind == "intent" and record.seq > seq:
            same = (body["kind"], body["key"]) == name
            count += same and str(body["phase"]).partition(" ")[2] == api
    return count


def called(api: str, item: Any, topics: Mapping[str, str]) -> Name:
    """Kind and key of what an item of a writing request is about."""
    return _NAMES[api](item, topics)


def _config(item: Any, _: Mapping[str, str]) -> Name:
    if item.resource_type == _TOPIC:
        return "kafka_topic", item.resource_name
    kind = _KINDS[item.resource_type]
    if kind == "kafka_broker_config" and not item.resource_name:
        return "kafka_cluster_config", CLUSTER
    return kind, item.resource_name


def _quota(item: Any, _: Mapping[str, str]) -> Name:
    entity = {part.entity_type: part.entity_name for part in item.entity}
    return quotas.KIND, quotas.entity_key(entity)


def _scram(item: Any, _: Mapping[str, str]) -> Name:
    word = next(name for name, known in scram.MECHANISMS.items() if known.code == item.mechanism)
    return scram.KIND, keys.join((item.name, word))


def _new_acl(item: Any, _: Mapping[str, str]) -> Name:
    row = AclRow(
        item.resource_type,
        item.resource_name,
        item.resource_pattern_type,
        item.principal,
        item.host,
        item.operation,
        item.permission_type,
    )
    return acls.KIND, _decode_acl(row).key


def _old_acl(item: Any, _: Mapping[str, str]) -> Name:
    row = AclRow(
        item.resource_type_filter,
        item.resource_name_filter,
        item.pattern_type_filter,
        item.principal_filter,
        item.host_filter,
        item.operation,
        item.permission_type,
    )
    return acls.KIND, _decode_acl(row).key


_NAMES: dict[str, Callable[[Any, Mapping[str, str]], Name]] = {
    "CreateTopics": lambda item, _: ("kafka_topic", item.name),
    "CreatePartitions": lambda item, _: ("kafka_topic", item.name),
    "DeleteTopics": lambda item, topics: ("kafka_topic", topics[id_text(item.topic_id) or ""]),
    "IncrementalAlterConfigs": _config,
    "AlterClientQuotas": _quota,
    "AlterUserScramCredentials": _scram,
    "CreateAcls": _new_acl,
    "DeleteAcls": _old_acl,
}
