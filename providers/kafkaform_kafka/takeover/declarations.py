"""Declare topics, ACLs, quotas and users from the values that other tools' files give them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from kafkaform.core.value import EMPTY, FrozenMap, Value

from ..kinds.quota.resource_type import DEFAULT
from ..kinds.quota.resource_type import KIND as QUOTA
from ..kinds.topic.resource_type import KIND as TOPIC
from ..kinds.user.resource_type import KIND as USER
from ..protocol.acl import (
    ALLOW,
    CLUSTER,
    OPERATIONS,
    PATTERN_TYPES,
    PERMISSIONS,
    RESOURCE_TYPES,
    Acl,
)
from ..protocol.acl import KIND as ACL
from .fields import Findings, Unfit

FACTOR = "replication_factor"
"""The argument for the number of replicas, which other tools call differently."""
_ALIASES = {"prefix": "Prefixed", "transactionalid": "TransactionalID"}


def _fold(word: str) -> str:
    """A word without case and separators, so that ALTER_CONFIGS is AlterConfigs."""
    return word.replace("_", "").replace("-", "").lower()


def _spell(words: Iterable[str]) -> Mapping[str, str]:
    return {**{_fold(word): word for word in words}, **_ALIASES}


_OPERATIONS = _spell(OPERATIONS)
_PERMISSIONS = _spell(PERMISSIONS)
_RESOURCES = _spell(RESOURCE_TYPES)
_PATTERNS = _spell(PATTERN_TYPES)


def add_topic(
    findings: Findings,
    position: str,
    name: str,
    partitions: int | None = None,
    replication_factor: int | None = None,
    config: FrozenMap = EMPTY,
    positions: FrozenMap = EMPTY,
) -> None:
    """Add a topic. Numbers that are None or -1 are the broker's defaults. positions: as in
    `ForeignObject`."""
    numbers = {"partitions": partitions, FACTOR: replication_factor}
    arguments: dict[str, Value] = {n: v for n, v in numbers.items() if v is not None and v != -1}
    if config:
        arguments["config"] = config
    findings.add(TOPIC, FrozenMap(name=name, **arguments), position, positions)


def make_acl(
    position: str,
    principal: str,
    operation: str,
    resource_type: str,
    resource_name: str,
    *,
    pattern: str = "Literal",
    host: str = "*",
    permission: str = ALLOW,
) -> Acl:
    """An ACL whose words are in any case, with _ or without. Raises Unfit for other words."""
    kind = _choose(position, "resource type", resource_type, _RESOURCES)
    return Acl(
        principal,
        host,
        _choose(position, "operation", operation, _OPERATIONS),
        _choose(position, "permission", permission, _PERMISSIONS),
        kind,
        CLUSTER if kind == "Cluster" else resource_name,
        _choose(position, "pattern type", pattern, _PATTERNS),
    )


def _choose(position: str, noun: str, word: str, words: Mapping[str, str]) -> str:
    spelling = words.get(_fold(word))
    if spelling is None:
        raise Unfit(position, f"an ACL with the {noun} {word!r}, which kafkaform does not know")
    return spelling


def add_acl(findings: Findings, position: str, acl: Acl) -> None:
    findings.add(ACL, acl.attributes, position)


def add_acls(
    findings: Findings,
    position: str,
    principal: str,
    resource: tuple[str, str],
    operations: Iterable[str],
    *,
    pattern: str = "Literal",
    host: str = "*",
) -> None:
    """Allow a principal some operations on one resource: its type and name."""
    for operation in operations:
        acl = make_acl(position, principal, operation, *resource, pattern=pattern, host=host)
        add_acl(findings, position, acl)


def add_quota(
    findings: Findings,
    position: str,
    limits: FrozenMap,
    *,
    user: str | None = None,
    client_id: str | None = None,
    ip: str | None = None,
) -> None:
    """Add the limits of an entity; the name "" is the default entity. Raises Unfit for a name that
    a block cannot say."""
    names = {"user": user, "client_id": client_id, "ip": ip}
    if DEFAULT in names.values():
        raise Unfit(position, f"a quota of an entity with the name {DEFAULT!r}")
    entity = {component: name or DEFAULT for component, name in names.items() if name is not None}
    findings.add(QUOTA, FrozenMap(entity | {"config": limits}), position)


def add_user(
    findings: Findings, position: str, name: str, mechanism: str, iterations: int | None = None
) -> None:
    """Add a SCRAM user. mechanism: SCRAM-SHA-256 or SCRAM-SHA-512, also with _."""
    arguments: dict[str, Value] = {} if iterations is None else {"scram_iterations": iterations}
    spelled = mechanism.upper().replace("_", "-")
    findings.add(USER, FrozenMap(username=name, scram_mechanism=spelled, **arguments), position)
