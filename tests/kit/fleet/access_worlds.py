"""Random clusters with ACLs, and what the provider's `access.decide` says about them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from random import Random
from typing import Any

import pyarrow as pa
from msgspec import Struct
from msgspec.structs import replace

from kafkaform.fleet.access.permission_rows import BITS, SUPPORTED_OPERATIONS
from kafkaform_kafka.authority.authorizer import (
    Access,
    AccessQuestion,
    AccessVerdict,
    decide,
    index_acls,
)
from kafkaform_kafka.protocol.acl import KIND, Acl

AT = datetime(2026, 3, 1, tzinfo=UTC)
KINDS = tuple(SUPPORTED_OPERATIONS)
# Prefixes of each other, the wildcard's own character, and code points beyond 16 bits, which sort
# otherwise by UTF-16 units than by themselves.
NAMES = ("a", "ab", "abc", "abd", "b", "*", "*x", "\uffee", "\U0001f600", "\U0001f600x", "kafka")
PATTERNS = (*NAMES, "", "\U0010ffff", "kafka-cluster")
PRINCIPALS = ("User:u", "User:v", "User:*", "Group:g")
HOSTS = ("*", "1.1.1.1", "2.2.2.2")
CLUSTER = "kafka-cluster"
STRANGER, ELSEWHERE = "User:stranger", "9.9.9.9"
"""Whom and what no ACL names."""


class World(Struct, frozen=True):
    """One cluster. topics, groups: what there is."""

    name: str
    acls: tuple[Acl, ...]
    super_users: tuple[str, ...] | None
    allow_if_no_acl: bool | None
    topics: tuple[str, ...]
    groups: tuple[str, ...]
    users: tuple[str, ...] = ()
    quotas: tuple[str | None, ...] = ()
    """Users with a quota; None: all others have one."""

    @property
    def access(self) -> Access:
        supers = None if self.super_users is None else frozenset(self.super_users)
        return Access(index_acls(self.acls), supers, self.allow_if_no_acl)

    def live(self) -> Iterator[dict[str, Any]]:
        """Rows of `live`."""
        for acl in self.acls:
            yield {**live(self.name, KIND, acl.key, acl.attributes), "owner": owner(acl)}
        for topic in self.topics:
            yield live(self.name, "kafka_topic", topic, {"name": topic})
        for group in self.groups:
            yield live(self.name, "group_usage", f"{group} a", {})
            yield live(self.name, "group_usage", f"{group} b", {})
        for user in self.quotas:
            key, attrs = ("user", {}) if user is None else (f"user={user}", {"entity.user": user})
            yield {**live(self.name, "kafka_quota", key, attrs), "owner": "team-q"}
        for user in self.users:
            attrs = {"username": user, "scram_mechanism": "SCRAM-SHA-256"}
            yield live(self.name, "kafka_user_scram_credential", user, attrs)

    def cluster(self, **more: Any) -> dict[str, Any]:
        """The row of `cluster`."""
        kinds = (KIND, "kafka_topic", "group_usage", "kafka_user_scram_credential")
        return {
            "cluster": self.name,
            "super_users": None if self.super_users is None else list(self.super_users),
            "allow_if_no_acl": self.allow_if_no_acl,
            "registered": True,
            "status": "read",
            "captured_at": AT,
            "coverage": dict.fromkeys(kinds, "complete"),
            **more,
        }


def owner(acl: Acl) -> str | None:
    """Whom the configuration names, which is so for some ACLs only."""
    return "team-v" if acl.principal == "User:v" else None


def live(cluster: str, kind: str, key: str, attrs: Mapping[str, str]) -> dict[str, Any]:
    return {
        "cluster": cluster,
        "kind": kind,
        "key": key,
        "attrs": dict(attrs),
        "snapshot": "s1",
        "captured_at": AT,
    }


def acl(chance: Random, kind: str) -> Acl:
    operations = ("All", *SUPPORTED_OPERATIONS[kind], *SUPPORTED_OPERATIONS[kind])
    return Acl(
        principal=chance.choice(PRINCIPALS),
        host=chance.choice((*HOSTS, "*")),
        operation=chance.choice(operations),
        permission=chance.choice(("Allow", "Allow", "Allow", "Deny")),
        resource_type=kind,
        resource_name=chance.choice((CLUSTER, *PATTERNS) if kind == "Cluster" else PATTERNS),
        pattern_type=chance.choice(("Literal", "Prefixed")),
    )


def world(chance: Random, name: str) -> World:
    kinds = chance.sample(KINDS, chance.randint(1, len(KINDS)))
    acls = (acl(chance, chance.choice(kinds)) for _ in range(chance.choice((0, 1, 3, 8, 25))))
    return World(
        name,
        tuple(dict.fromkeys(acls)),
        chance.choice((None, (), ("User:u",), ("User:root", "User:v"))),
        chance.choice((None, True, False)),
        tuple(chance.sample(NAMES, 5)),
        tuple(chance.sample(NAMES, 3)),
    )


def worlds(seed: int, count: int) -> list[World]:
    chance = Random(seed)
    return [world(chance, f"c{number:04}") for number in range(count)]


def writing_worlds(seed: int, count: int) -> list[World]:
    """Clusters where all hangs on who may write to topics, and on one ACL of the cluster."""
    chance, found = Random(seed), []
    for number in range(count):
        writes = [
            replace(
                acl(chance, "Topic"),
                operation=chance.choice(("Write", "Write", "All")),
                permission=chance.choice(("Allow", "Deny")),
                resource_name=chance.choice(("a", "ab", "b", "*", "hardcode", "h")),
            )
            for _ in range(chance.choice((0, 1, 2, 4, 6)))
        ]
        closed = [Acl("User:x", "*", "Alter", "Allow", "Cluster", CLUSTER, "Literal")]
        made = tuple(dict.fromkeys((*writes, *chance.choice(((), closed, closed)))))
        made_of = (made, chance.choice((None, (), ("User:u",))), chance.choice((None, True, False)))
        found.append(World(f"w{number:04}", *made_of, ("a",), ()))
    return found


def table(acls: Iterable[Acl], others: Iterable[tuple[str, str]] = ()) -> pa.Table:
    """ACLs as `masks` reads them. others: (type, principal) that get an answer for every name."""
    rows = [
        {
            "resource_type": one.resource_type,
            "name": one.resource_name,
            "pattern_type": one.pattern_type,
            "principal": one.principal,
            "host": one.host,
            "operation": one.operation,
            "permission": one.permission,
            "key": one.key,
        }
        for one in acls
    ]
    everything = {"name": "", "pattern_type": "Prefixed", "host": "*"}
    rows += [{"resource_type": kind, "principal": who, **everything} for kind, who in others]
    names = [*everything, "resource_type", "principal", "operation", "permission", "key"]
    return pa.Table.from_pylist(rows, pa.schema([(name, pa.string()) for name in names]))


def names_of(mask: int) -> tuple[str, ...]:
    """The operations of a mask, in the order of their bits."""
    return tuple(name for name, bit in BITS.items() if mask >> bit & 1)


def shown(name: str, pattern_type: str) -> str:
    """A pattern as the tables show it: a prefix has a `*` behind it."""
    return f"{name}*" if pattern_type == "Prefixed" else name


def verdict(
    access: Access, operation: str, kind: str, name: str, principal: str, host: str
) -> AccessVerdict:
    return decide(access, AccessQuestion(principal, host, operation, kind, name)).verdict


def told(row: Mapping[str, Any], operation: str) -> AccessVerdict:
    """What a row of effective_permissions says."""
    bit = 1 << BITS[operation]
    assert not row["effective_mask"] & row["unknown_mask"]
    if row["effective_mask"] & bit:
        return AccessVerdict.ALLOWED
    return AccessVerdict.UNKNOWN if row["unknown_mask"] & bit else AccessVerdict.DENIED


def reaches_every_topic(acl: Acl) -> bool:
    """Whether an ACL of the cluster decides about creating or deleting topics."""
    name, literal = acl.resource_name, acl.pattern_type == "Literal"
    fits = name in ("*", "kafka-cluster") if literal else "kafka-cluster".startswith(name)
    return acl.resource_type == "Cluster" and fits


def reaches_some_topic(acl: Acl) -> bool:
    """Whether an ACL is about the topic that brokers ask for on behalf of idempotent producers."""
    name, literal = acl.resource_name, acl.pattern_type == "Literal"
    fits = name in ("*", "hardcode") if literal else "hardcode".startswith(name)
    return acl.resource_type == "Topic" and fits


def covers(wide: tuple[str, str], narrow: tuple[str, str]) -> bool:
    """Whether a pattern (name, type) covers all that another one covers, said plainly."""
    (name, kind), (other, other_kind) = wide, narrow
    everything = ("*", "Literal")
    if wide == narrow:
        return True
    if kind == "Prefixed":
        return name == "" if narrow == everything else other.startswith(name)
    if wide == everything:
        return not other.startswith("*") and (other_kind == "Literal" or other != "")
    return False
