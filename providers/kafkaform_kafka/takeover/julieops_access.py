"""The ACLs that JulieOps makes for consumers, producers, applications, platforms and roles.

Source: JulieOps 4.4.1: `AclsBindingsBuilder`, `BuildBindingsForRole`, `Connector`, `KStream`,
`KsqlServerInstance`, `SchemaRegistryInstance`, `Other`; `confluent.*` in its `reference.conf`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping

from msgspec import Struct

from .declarations import add_acl, add_acls, make_acl
from .fields import Fields, Unfit

_PLACEHOLDER = re.compile(r"\{\{\s*([A-Za-z_]\w*)\s*\}\}")
_CONTROL_TOPICS = ("_confluent-monitoring", "_confluent-command", "_confluent-metrics")
_ALL_USES = ("WRITE", "READ", "CREATE", "DESCRIBE")


class NameParts(Struct, frozen=True):
    """What names of topics are made of."""

    values: Mapping[str, str]
    """Name of a field -> its value, for patterns."""
    words: tuple[str, ...]
    """The values in their order, for names without a pattern."""


class RoleRule(Struct, frozen=True):
    """One ACL of a role; the name of its resource can have placeholders."""

    position: str
    resource_type: str
    resource_name: str
    pattern: str
    host: str
    operation: str


class Role(Struct, frozen=True):
    """A role that the user of JulieOps has declared."""

    rules: tuple[RoleRule, ...]


def fill_pattern(position: str, pattern: str, values: Mapping[str, str]) -> str:
    """A pattern with `{{ name }}` replaced by values, an unknown name by nothing, as Jinja does.

    Raises Unfit for everything else that Jinja could do.
    """
    text = _PLACEHOLDER.sub(lambda match: values.get(match[1], ""), pattern)
    if any(mark in _PLACEHOLDER.sub("", pattern) for mark in ("{{", "{%", "{#")):
        raise Unfit(position, f"the pattern {pattern!r} uses more of Jinja than names in braces")
    return text


def _allow(
    fields: Fields,
    principal: str,
    type: str,
    name: str,
    operations: Iterable[str],
    pattern: str = "Literal",
) -> None:
    resource = (type, name)
    add_acls(fields.findings, fields.position, principal, resource, operations, pattern=pattern)


def _allow_globbed(
    fields: Fields, principal: str, type: str, name: str, operations: Iterable[str]
) -> None:
    """The same, where a * at the end of a name means a prefix."""
    prefixed = len(name) > 1 and name.endswith("*")
    pattern = "Prefixed" if prefixed else "Literal"
    _allow(
        fields, principal, type, name.removesuffix("*") if prefixed else name, operations, pattern
    )


# ── consumers and producers ─────────────────────────────────────────────────────────────


def add_consumer(consumer: Fields, principal: str, group: str, topic: str, pattern: str) -> None:
    _allow(consumer, principal, "TOPIC", topic, ["DESCRIBE", "READ"], pattern)
    _allow_globbed(consumer, principal, "GROUP", group, ["READ"])
    consumer.skip("metadata")
    consumer.close()


def add_producer(producer: Fields, principal: str, topic: str, pattern: str) -> None:
    _allow(producer, principal, "TOPIC", topic, ["DESCRIBE", "WRITE"], pattern)
    transaction = producer.text("transactionId")
    if transaction is not None:
        operations = ["DESCRIBE", "WRITE"]
        _allow_globbed(producer, principal, "TRANSACTIONAL_ID", transaction, operations)
    # Whether it says true or false: JulieOps asks only whether it is there.
    if transaction is not None or producer.flag("idempotence") is not None:
        _allow(producer, principal, "CLUSTER", "", ["IDEMPOTENT_WRITE"])
    producer.skip("metadata")
    producer.close()


# ── applications ────────────────────────────────────────────────────────────────────────


def add_application(app: Fields, kind: str, prefix: str, *, create: bool) -> None:
    """Add the ACLs of an application. prefix: of its project; create: a connector may create
    topics."""
    principal = app.require_text("principal")
    app.title = f"{app.title}: {principal}"
    topics = app.table("topics", f"{app.title}: topics")
    if topics is not None:
        for topic in topics.texts("read"):
            _allow(app, principal, "TOPIC", topic, ["READ"])
        for topic in topics.texts("write"):
            _allow(app, principal, "TOPIC", topic, ["WRITE"])
        topics.close()
    _APPLICATIONS[kind](app, principal, prefix, create)
    app.skip("metadata")
    app.close()


def _add_streams(app: Fields, principal: str, prefix: str, _: bool) -> None:
    own = app.text("applicationId") or prefix
    _allow(app, principal, "TOPIC", own, ["ALL"], "Prefixed")
    _allow(app, principal, "GROUP", own, ["READ"], "Prefixed")
    if app.flag("exactlyOnce"):
        _allow(app, principal, "TRANSACTIONAL_ID", own, ["WRITE", "DESCRIBE"], "Prefixed")


def _add_connector(app: Fields, principal: str, _: str, create: bool) -> None:
    for kind, default in (
        ("status", "connect-status"),
        ("offset", "connect-offsets"),
        ("configs", "connect-configs"),
    ):
        topic = app.text(f"{kind}_topic") or default
        _allow(app, principal, "TOPIC", topic, ["READ", "WRITE"])
    if create:
        _allow(app, principal, "CLUSTER", "", ["CREATE"])
    _allow(app, principal, "GROUP", app.text("group") or "connect-cluster", ["READ"])
    app.skip("cluster_id")
    app.leave("rights on single connectors are not in Kafka's ACLs", "connectors")


def _add_ksql(app: Fields, principal: str, prefix: str, _: bool) -> None:
    own = app.text("applicationId") or prefix
    _allow(app, principal, "TOPIC", own, ["ALL"], "Prefixed")
    _allow(app, principal, "GROUP", own, ["ALL"], "Prefixed")
    app.skip("ksqlDbId")


_APPLICATIONS: Mapping[str, Callable[[Fields, str, str, bool], None]] = {
    "streams": _add_streams,
    "connectors": _add_connector,
    "ksql": _add_ksql,
}


# ── platform ────────────────────────────────────────────────────────────────────────────


def add_platform(instance: Fields, kind: str) -> None:
    """Add the ACLs of a server of the platform. Raises Unfit for a kind that gets none."""
    principal = instance.require_text("principal")
    add = _PLATFORMS.get(kind)
    if add is None:
        raise Unfit(instance.position, f"{instance.title}: JulieOps makes no ACLs for {principal}")
    add(instance, principal)
    instance.skip("metadata")
    instance.close()


def _add_schema_registry(instance: Fields, principal: str) -> None:
    topic = instance.text("topic") or "_schemas"
    operations = ["CREATE", "DESCRIBE_CONFIGS", "DESCRIBE", "WRITE", "READ"]
    _allow(instance, principal, "TOPIC", topic, operations)
    offsets = instance.text("consumer_offsets_topic") or "__consumer_offsets"
    _allow(instance, principal, "TOPIC", offsets, ["DESCRIBE"])
    _allow(instance, principal, "GROUP", instance.text("group") or "schema-registry", ["READ"])


def _add_control_center(instance: Fields, principal: str) -> None:
    app = instance.require_text("appId")
    _allow(instance, principal, "GROUP", app, ["READ"], "Prefixed")
    _allow(instance, principal, "GROUP", f"{app}-command", ["READ"], "Prefixed")
    _allow(instance, principal, "GROUP", "*", ["DESCRIBE"])
    for topic in _CONTROL_TOPICS:
        _allow(instance, principal, "TOPIC", topic, _ALL_USES)
    _allow(instance, principal, "TOPIC", "_confluent-controlcenter", _ALL_USES, "Prefixed")
    _allow(instance, principal, "TOPIC", "*", ["CREATE"])
    _allow(instance, principal, "CLUSTER", "", ["DESCRIBE", "DESCRIBE_CONFIGS"])


def _add_ksql_server(instance: Fields, principal: str) -> None:
    id = instance.require_text("ksqlDbId")
    _allow(instance, principal, "CLUSTER", "", ["DESCRIBE_CONFIGS"])
    _allow(instance, principal, "TOPIC", f"_confluent-ksql-{id}", ["ALL"], "Prefixed")
    _allow(instance, principal, "TOPIC", f"{id}ksql_processing_log", ["ALL"])
    _allow(instance, principal, "GROUP", f"_confluent-ksql-{id}", ["ALL"], "Prefixed")
    instance.skip("owner")


_PLATFORMS: Mapping[str, Callable[[Fields, str], None]] = {
    "schema_registry": _add_schema_registry,
    "control_center": _add_control_center,
    "ksql": _add_ksql_server,
}


# ── roles ───────────────────────────────────────────────────────────────────────────────


def read_roles(fields: Fields) -> Iterator[tuple[str, Role]]:
    """The roles of a roles file by name."""
    for node in fields.items("roles"):
        role = Fields(node, fields.findings, "a role")
        name = role.require_text("name")
        role.title = f"role {name}"
        yield name, Role(tuple(_read_rules(role)))
        role.close()
    fields.close()


def _read_rules(role: Fields) -> Iterator[RoleRule]:
    for node in role.items("acls"):
        rule = Fields(node, role.findings, f"{role.title}: an ACL")
        if (rule.text("permissionType") or "ALLOW").upper() != "ALLOW":
            role.findings.omit(node.position, f"{rule.title}: JulieOps makes an ALLOW of it")
        yield RoleRule(
            node.position,
            rule.require_text("resourceType"),
            rule.pattern("resourceName") or rule.require_text("resourceName"),
            rule.require_text("patternType"),
            rule.require_text("host"),
            rule.text("operation") or rule.require_text("role"),
        )
        rule.close()


def add_role(user: Fields, role: Role) -> None:
    """Add the ACLs of a user that has a role."""
    principal = user.require_text("principal")
    values = {"topic": user.text("topic") or "", "group": user.text("group") or "*"}
    for name in ("subject", "connector", "transactionId"):
        if (value := user.text(name)) is not None:
            values[name] = value
    for rule in role.rules:
        acl = make_acl(
            rule.position,
            principal,
            rule.operation,
            rule.resource_type,
            fill_pattern(rule.position, rule.resource_name, values),
            pattern=rule.pattern,
            host=rule.host,
        )
        add_acl(user.findings, user.position, acl)
    user.skip("metadata", "idempotence")
    user.close()
