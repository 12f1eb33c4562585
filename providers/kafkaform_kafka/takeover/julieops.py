"""JulieOps: a folder of topologies, with its plans, its roles and its properties file.

Files are told apart by their first fields: `context` is a topology, `plans` are plans, `roles` are
roles.

Source: JulieOps 4.4.1: `TopologyCustomDeserializer`, `TopicCustomDeserializer`, `ProjectImpl` and
`Topic` (names), `AccessControlManager` (who gets ACLs on what), `PlanMap`, `Configuration`,
`QuotasClientBindingsBuilder`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import ForeignFiles

from .declarations import YAML, add_quota, add_topic, read_files
from .documents import WHOLE, YamlNode
from .fields import Fields, Findings, Unfit, read_decimal
from .julieops_files import (
    SETTINGS_ENDING,
    TOPIC_STRATEGY,
    NameParts,
    Role,
    add_application,
    add_consumer,
    add_platform,
    add_producer,
    add_role,
    choose_settings,
    fill_pattern,
    read_connector,
    read_roles,
    read_topic_schemas,
)

PARTITIONS, REPLICATION = "num.partitions", "replication.factor"
_PROJECT = {"name", "topics", "consumers", "producers", "connectors", "streams", "schemas", "ksql"}
_RBAC = "role-based access control of Confluent is not in Kafka's ACLs"
_TOPOLOGY = {"context", "projects", "platform", "special_topics"}


class Setup(Struct, frozen=True):
    """Everything that is not in the topologies."""

    settings: Mapping[str, str]
    plans: Mapping[str, FrozenMap]
    roles: Mapping[str, Role]

    @property
    def separator(self) -> str:
        return self.settings["topology.topic.prefix.separator"]

    @property
    def on_prefix(self) -> bool:
        """Consumers and producers of a project get ACLs on its prefix, not on each topic."""
        return self.settings["topology.acls.optimized"] == "true"


class Users(Struct, frozen=True):
    """Who reads and writes a topic, without repetitions."""

    consumers: dict[tuple[str, str], Fields]
    producers: dict[str, Fields]


def read_declarations(paths: Sequence[Path]) -> ForeignFiles:
    """Read topologys, and all files below folders. Raises UsageError."""
    findings = Findings(paths)
    topologies: list[YamlNode] = []
    plans: dict[str, FrozenMap] = {}
    roles: dict[str, Role] = {}
    settings_paths = [path for path in paths if path.suffix == SETTINGS_ENDING]
    topology_paths = [path for path in paths if path not in settings_paths]
    for name, content in read_files(topology_paths, YAML, findings.omit):
        for node in findings.read_documents(name, content, "julieops"):
            fields = node.value if node.kind == "map" else {}
            with findings.contain():
                if "context" in fields:
                    topologies.append(node)
                elif "plans" in fields:
                    plans.update(_read_plans(Fields(node, findings, "the plans")))
                elif "roles" in fields:
                    roles.update(read_roles(Fields(node, findings, "the roles")))
                else:
                    findings.omit(node.position, "a file without context, plans or roles")
    setup = Setup(choose_settings(paths, findings), plans, roles)
    for node in topologies:
        with findings.contain():
            _read_topology(Fields(node, findings, "a topology"), setup)
    return findings.finish()


def _read_plans(fields: Fields) -> Iterator[tuple[str, FrozenMap]]:
    for name, node in fields.entries("plans").items():
        plan = Fields(node, fields.findings, f"plan {name}")
        plan.skip("alias")
        yield name, plan.config("config")
        plan.close()
    fields.close()


# ── topologies ──────────────────────────────────────────────────────────────────────────


def _read_topology(fields: Fields, setup: Setup) -> None:
    context = fields.require_text("context")
    fields.title = f"topology {context}"
    values = {name: fields.text(name) or "" for name in fields.names if name not in _TOPOLOGY}
    names = NameParts({**values, "context": context}, (context, *values.values()))
    for node in fields.items("projects"):
        with fields.findings.contain():
            _read_project(Fields(node, fields.findings, "a project"), names, setup)
    for node in fields.items("special_topics"):
        with fields.findings.contain():
            topic = Fields(node, fields.findings, "a special topic")
            _read_topic(topic, topic.require_text("name"), setup, None)
    with fields.findings.contain():
        if (platform := fields.table("platform", "platform")) is not None:
            _read_platform(platform)
    fields.close()


def _read_project(fields: Fields, names: NameParts, setup: Setup) -> None:
    name = fields.require_text("name")
    fields.title, findings = f"project {name}", fields.findings
    values = {**names.values, "project": name}
    prefix = _make_prefix(fields, values, (*names.words, name), setup)
    users = _read_users(fields)
    for node in fields.items("topics"):
        with findings.contain():
            topic = Fields(node, findings, f"{fields.title}: a topic")
            full = _make_topic_name(topic, prefix, values, setup)
            _read_topic(topic, full, setup, None if setup.on_prefix else users)
    if setup.on_prefix:
        _add_users(users, prefix, "Prefixed")
    for kind in ("streams", "connectors", "ksql"):
        with findings.contain():
            for node in _list_applications(fields, kind):
                with findings.contain():
                    title = f"{fields.title}: {kind}"
                    create = setup.settings["topology.connector.allow.topic.create"] == "true"
                    add_application(Fields(node, findings, title), kind, prefix, create=create)
    fields.leave("the rights of a schema registry are not in Kafka's ACLs", "schemas")
    fields.leave(_RBAC, "rbac")
    for kind in fields.names:
        if kind not in _PROJECT and kind != "rbac":
            with findings.contain():
                _add_role_users(fields, kind, setup)
    fields.close()


def _add_role_users(fields: Fields, kind: str, setup: Setup) -> None:
    """Add the ACLs of everybody whom a project gives a role."""
    nodes, role = fields.items(kind), setup.roles.get(kind)
    if role is None:
        raise Unfit(fields.locate(kind), f"{fields.title}: the role {kind} is not declared")
    for node in nodes:
        with fields.findings.contain():
            add_role(Fields(node, fields.findings, f"{fields.title}: {kind}"), role)


def _make_prefix(
    fields: Fields, values: Mapping[str, str], words: tuple[str, ...], setup: Setup
) -> str:
    pattern = setup.settings["topology.project.prefix.format"]
    if pattern != "default":
        return fill_pattern(fields.position, pattern, values)
    return "".join(f"{word}{setup.separator}" for word in words)


def _make_topic_name(topic: Fields, prefix: str, values: Mapping[str, str], setup: Setup) -> str:
    name, type = topic.require_text("name"), topic.text("dataType")
    pattern = setup.settings["topology.topic.prefix.format"]
    if pattern == "default":
        return f"{prefix}{name}" + (f"{setup.separator}{type}" if type else "")
    if pattern == "name":
        return name
    return fill_pattern(topic.position, pattern, {**values, "topic": name, "dataType": type or ""})


def _read_topic(topic: Fields, name: str, setup: Setup, project_users: Users | None) -> None:
    """Add a topic and the ACLs of its users. project_users: users of the whole project."""
    topic.title = f"topic {name}"
    plan = EMPTY
    if (label := topic.text("plan")) is not None:
        if label not in setup.plans:
            raise Unfit(topic.locate("plan"), f"{topic.title}: the plan {label!r} is not declared")
        plan = setup.plans[label]
    config = FrozenMap({**plan, **topic.config("config")})
    partitions, replicas = (_read_count(topic, config, key) for key in (PARTITIONS, REPLICATION))
    topic_config = config.without((PARTITIONS, REPLICATION))
    positions = topic.trace({"config": "config"})
    add_topic(topic.findings, topic.position, name, partitions, replicas, topic_config, positions)
    users = _read_users(topic)
    if project_users is not None:
        # Those of the topic first: JulieOps drops a producer that it has already.
        users = Users(
            {**project_users.consumers, **users.consumers},
            {**project_users.producers, **users.producers},
        )
    _add_users(users, name, "Literal")
    _read_schemas(topic, name)
    topic.skip("metadata", "name", "dataType")
    topic.close()


def _read_schemas(topic: Fields, name: str) -> None:
    strategy = topic.text("subject.name.strategy") or TOPIC_STRATEGY
    node = topic.find("schemas")
    rows = node.value if node is not None and node.kind == "list" else [node] if node else []
    for row in rows:
        with topic.findings.contain():
            schemas = Fields(row, topic.findings, f"{topic.title}: schemas")
            read_topic_schemas(schemas, name, strategy)


def _read_count(topic: Fields, config: FrozenMap, key: str) -> int | None:
    text = config.get(key)
    if text is not None and not WHOLE.fullmatch(text):
        raise Unfit(topic.position, f"{topic.title}: {key} is no whole number: {text!r}")
    return None if text is None else int(text)


# ── users ───────────────────────────────────────────────────────────────────────────────


def _read_users(fields: Fields) -> Users:
    users = Users({}, {})
    for node in fields.items("consumers"):
        consumer = Fields(node, fields.findings, f"{fields.title}: a consumer")
        key = (consumer.require_text("principal"), consumer.text("group") or "*")
        users.consumers.setdefault(key, consumer)
    for node in fields.items("producers"):
        producer = Fields(node, fields.findings, f"{fields.title}: a producer")
        users.producers.setdefault(producer.require_text("principal"), producer)
    return users


def _add_users(users: Users, topic: str, pattern: str) -> None:
    for (principal, group), consumer in users.consumers.items():
        add_consumer(consumer, principal, group, topic, pattern)
    for principal, producer in users.producers.items():
        add_producer(producer, principal, topic, pattern)


def _list_applications(fields: Fields, kind: str) -> tuple[YamlNode, ...]:
    """The applications of a project: a list, or `access_control` beside artefacts."""
    node = fields.find(kind)
    if node is None or node.kind == "list":
        return () if node is None else fields.items(kind)
    table = fields.table(kind, f"{fields.title}: {kind}")
    if table is None:
        return ()
    if kind == "connectors":
        for name in ("artefacts", "artifacts"):
            for artefact in table.items(name):
                with fields.findings.contain():
                    read_connector(Fields(artefact, fields.findings, f"{table.title}: {name}"))
    else:
        table.leave("queries are not objects of Kafka", "artefacts", "artifacts")
    controls = table.items("access_control")
    table.close()
    return controls


# ── platform ────────────────────────────────────────────────────────────────────────────


def _read_platform(platform: Fields) -> None:
    findings = platform.findings
    for kind in ("schema_registry", "control_center", "ksql", "kafka_connect", "kafka"):
        component = platform.table(kind, f"platform: {kind}")
        if component is None:
            continue
        component.leave(_RBAC, "rbac")
        for node in component.items("instances"):
            with findings.contain():
                add_platform(Fields(node, findings, component.title), kind)
        if kind == "kafka":
            for node in component.items("quotas"):
                with findings.contain():
                    _read_quota(Fields(node, findings, "platform: a quota"))
        component.close()
    platform.close()


_LIMITS = ("producer_byte_rate", "consumer_byte_rate", "request_percentage")


def _read_quota(quota: Fields) -> None:
    # The principal is the name of the user as it is, so "User:App" is not the quota of App.
    user = quota.text("principal")
    if user is None:
        raise Unfit(quota.position, "a quota without a principal")
    limits = {
        name: read_decimal(node, f"{quota.title}: {name}")
        for name in _LIMITS
        if (node := quota.find(name)) is not None
    }
    add_quota(quota.findings, quota.position, FrozenMap(limits), user=user)
    quota.close()
