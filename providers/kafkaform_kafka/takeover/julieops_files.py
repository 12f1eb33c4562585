"""What JulieOps makes of the files next to its topologies, settings, schemas and connector configs,
and the ACLs that it makes for consumers, producers, applications, platforms and roles.

Source: JulieOps 4.4.1: `TopicSchemas`, `Subject` (names), `SchemaRegistryManager`,
`KafkaConnectArtefactManager` (a file with the configs, or with `name` and `config`); for ACLs
`AclsBindingsBuilder`, `BuildBindingsForRole`, `Connector`, `KStream`, `KsqlServerInstance`,
`SchemaRegistryInstance`, `Other`; `confluent.*` in its `reference.conf`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from kafkaform.core.errors import UsageError

from .declarations import (
    add_acl,
    add_acls,
    add_connector,
    add_registry_settings,
    add_schema,
    make_acl,
    read_files,
    read_named_file,
)
from .fields import Fields, Findings, Unfit

TOPIC_STRATEGY = "TopicNameStrategy"
_RECORD_STRATEGY, _BOTH_STRATEGY = "RecordNameStrategy", "TopicRecordNameStrategy"
_PARTS = ("key", "value")


def read_topic_schemas(schemas: Fields, topic: str, strategy: str) -> None:
    """Add the schemas of the key and the value of a topic's records. Raises Unfit."""
    for side in _PARTS:
        file = schemas.text(f"{side}.schema.file")
        record = schemas.text(f"{side}.record.type")
        format = schemas.text(f"{side}.format") or "avro"
        level = schemas.text(f"{side}.compatibility")
        if file is None:
            continue
        title = f"{schemas.title}: {side}.schema.file"
        if strategy != TOPIC_STRATEGY and not record:
            raise Unfit(schemas.position, f"{schemas.title}: {side}.record.type is missing")
        subjects = {
            TOPIC_STRATEGY: f"{topic}-{side}",
            _RECORD_STRATEGY: record or "",
            _BOTH_STRATEGY: f"{topic}-{record}",
        }
        if strategy not in subjects:
            raise Unfit(
                schemas.position, f"{schemas.title}: the strategy {strategy!r} is not known"
            )
        position = schemas.locate(f"{side}.schema.file")
        text = read_named_file(schemas.findings, position, title, file)
        add_registry_settings(schemas.findings, position, level, subject=subjects[strategy])
        add_schema(schemas.findings, position, subjects[strategy], text, format=format)
    schemas.close()


def read_connector(artefact: Fields) -> None:
    """Add the connector whose configs are in a file. Raises Unfit."""
    path = artefact.require_text("path")
    name = artefact.text("name") or Path(path).stem
    artefact.title = f"connector {name}"
    text = read_named_file(artefact.findings, artefact.locate("path"), artefact.title, path)
    config = _parse_config(artefact, path, text)
    # Its value is the name of a Connect cluster in the settings of JulieOps.
    artefact.findings.system = artefact.text("server") or artefact.text("serverLabel") or ""
    add_connector(artefact.findings, artefact.position, name, config)
    artefact.findings.system = ""
    artefact.skip("hash", "metadata")
    artefact.close()


def _parse_config(artefact: Fields, path: str, text: str) -> Mapping[str, str]:
    try:
        content: Any = json.loads(text)
    except (ValueError, RecursionError):
        # The parser's message can quote the file, and so a password.
        raise Unfit(artefact.position, f"{artefact.title}: {path} is not JSON") from None
    config = content.get("config", content) if isinstance(content, dict) else None
    if not isinstance(config, dict) or any(isinstance(v, dict | list) for v in config.values()):
        raise Unfit(artefact.position, f"{artefact.title}: {path} is no map of configs")
    words = {True: "true", False: "false"}
    return {
        key: words[value] if isinstance(value, bool) else str(value)
        for key, value in config.items()
        if value is not None
    }


SETTINGS: Mapping[str, str] = {
    "topology.topic.prefix.format": "default",
    "topology.topic.prefix.separator": ".",
    "topology.project.prefix.format": "default",
    "topology.acls.optimized": "false",
    "topology.connector.allow.topic.create": "true",
    "topology.dlq.topics.generate": "false",
}
"""The settings that decide what is in the cluster, with their defaults."""
SETTINGS_ENDING = ".properties"
_DEAD_LETTERS = "topology.dlq.topics.generate"
_PAIR = re.compile(r"\s*([^\s=:#!][^\s=:]*)\s*[=:\s]\s*(.*?)\s*")
# Other lines of such a file have passwords, so only these are looked at.


class SettingsFile(Struct, frozen=True):
    """A properties file that has at least one of the settings."""

    name: str
    lines: Mapping[str, tuple[int, str]]
    """Setting -> its line and value."""

    def locate(self, key: str) -> str:
        return f"{self.name}:{self.lines[key][0]}" if key in self.lines else self.name

    def get(self, key: str) -> str:
        return self.lines[key][1] if key in self.lines else SETTINGS[key]


def choose_settings(paths: Sequence[Path], findings: Findings) -> Mapping[str, str]:
    """The settings of the properties file among the paths, or of the one in their folders. Notes
    which file they are from.

    Raises UsageError if there are several files that differ.
    """
    settings_paths = [path for path in paths if path.suffix == SETTINGS_ENDING]
    files = list(_read_settings(settings_paths or _list_files(paths)))
    if not files:
        findings.notes.append(
            "The settings of JulieOps are its defaults: no file that was read has one of "
            f"{', '.join(SETTINGS)}. If JulieOps runs with a --clientConfig file, name that file, "
            "too."
        )
        return SETTINGS
    first, *copies = files
    for file in copies:
        _refuse_difference(first, file)
    settings = {key: first.get(key) for key in SETTINGS}
    pairs = ", ".join(f"{key}={first.get(key)}" for key in SETTINGS if key in first.lines)
    suffix = f" (and, with the same values, {', '.join(o.name for o in copies)})" if copies else ""
    findings.notes.append(f"The settings of JulieOps are those of {first.name}{suffix}: {pairs}.")
    if settings[_DEAD_LETTERS] == "true":
        reason = f"{_DEAD_LETTERS}: dead letter topics are not declared"
        findings.omit(first.locate(_DEAD_LETTERS), reason)
    return settings


def _list_files(paths: Sequence[Path]) -> list[Path]:
    """The properties files in the folders, and in those of files; not in folders below."""
    folders = dict.fromkeys(path if path.is_dir() else path.parent for path in paths)
    return [file for folder in folders for file in sorted(folder.glob(f"*{SETTINGS_ENDING}"))]


def _read_settings(files: Sequence[Path]) -> Iterator[SettingsFile]:
    for name, content in read_files(files, ()):
        lines: dict[str, tuple[int, str]] = {}
        for number, line in enumerate(content.decode(errors="replace").splitlines(), 1):
            match = _PAIR.fullmatch(line)
            if match is not None and match[1] in SETTINGS:
                lines[match[1]] = (number, match[2].strip('"'))
        if lines:
            yield SettingsFile(name, lines)


def _refuse_difference(first: SettingsFile, second: SettingsFile) -> None:
    """Raises UsageError if the files mean different settings."""
    for key in SETTINGS:
        if first.get(key) != second.get(key):
            values = [
                f"{file.locate(key)} {'says' if key in file.lines else 'leaves the default'} "
                f"{file.get(key)!r}"
                for file in (first, second)
            ]
            raise UsageError(
                f"the settings of JulieOps differ: {key}: {values[0]}, but {values[1]}",
                "Name the file that JulieOps runs with (--clientConfig) after the topologies: "
                f"kafkaform import --from julieops TOPOLOGIES {first.name}",
            )


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
