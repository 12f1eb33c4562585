"""The way back: topics, ACLs, quotas and users as resources of `Mongey/kafka`.

Source: terraform-provider-kafka 0.13.1 `kafka/resource_*.go`: an import id is divided at each `|`,
without escapes; quotas cannot be imported; with `username|mechanism` and `password_wo`, nothing of
the password is in the state, and a plan after the import changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkaform.core.value import FrozenMap, SecretRef, Value
from kafkaform.provider.contract import Exporter, ForeignResource

from ..kinds.quota.resource_type import DEFAULT
from ..kinds.quota.resource_type import KIND as QUOTA
from ..kinds.topic.resource_type import KIND as TOPIC
from ..kinds.user.resource_type import KIND as USER
from ..protocol.acl import KIND as ACL
from ..protocol.acl import parse_acl

# The types and operations of sarama, the client of that provider.
_RESOURCES = {"Topic", "Group", "Cluster", "TransactionalID", "DelegationToken"}
_NEW_OPERATIONS = {"CreateTokens", "DescribeTokens", "TwoPhaseCommit"}


def _write_topic(live: FrozenMap) -> ForeignResource | str:
    names = ("name", "partitions", "replication_factor")
    arguments: dict[str, Value] = {name: live[name] for name in names}
    if live.get("config"):
        arguments["config"] = live["config"]
    return ForeignResource(TOPIC, FrozenMap(arguments), live["name"])


def _write_acl(live: FrozenMap) -> ForeignResource | str:
    acl = parse_acl(live)
    if acl.resource_type not in _RESOURCES or acl.operation in _NEW_OPERATIONS:
        return f"the provider does not know {acl.operation} on {acl.resource_type}"
    if any("|" in field for field in acl.fields):
        return "the provider cannot import an ACL with a | in a field"
    return ForeignResource(ACL, live, "|".join(acl.fields))


def _write_quota(live: FrozenMap) -> ForeignResource | str:
    entity: Mapping[str, str | None] = live["entity"]
    if len(entity) > 1:
        return "the provider has no quotas for a user and a client id together"
    ((type, name),) = entity.items()
    named = {} if name is None else {"entity_name": name}
    if name == DEFAULT or any(isinstance(value, str) for value in live["config"].values()):
        return "the provider cannot say this entity or its limits"
    arguments = FrozenMap({"entity_type": type, **named, "config": live["config"]})
    return ForeignResource(QUOTA, arguments, None)


def _write_user(live: FrozenMap) -> ForeignResource | str:
    name, mechanism = live["username"], live["scram_mechanism"]
    if "|" in name:
        return "the provider cannot import a user with a | in the name"
    arguments = FrozenMap(
        username=name,
        scram_mechanism=mechanism,
        scram_iterations=live["scram_iterations"],
        password_wo=SecretRef("variable", f"{name}_{mechanism}_password"),
    )
    return ForeignResource(USER, arguments, f"{name}|{mechanism}")


_WRITERS: Mapping[str, Callable[[FrozenMap], ForeignResource | str]] = {
    TOPIC: _write_topic,
    ACL: _write_acl,
    QUOTA: _write_quota,
    USER: _write_user,
}


def _write(kind: str, live: FrozenMap) -> ForeignResource | str:
    write = _WRITERS.get(kind)
    return f"the provider has no resource for a {kind}" if write is None else write(live)


EXPORTER = Exporter(
    requirements=FrozenMap(kafka=FrozenMap(source="Mongey/kafka", version=">= 0.13.0")),
    write=_write,
)
