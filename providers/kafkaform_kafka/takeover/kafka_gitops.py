"""kafka-gitops: a desired state file, with the files that its settings name.

Source: kafka-gitops 0.2.15 and its master of 2021-09: `DesiredStateFile`, `StateManager` (the
default replication, custom ACLs, only those of a declared service or user), `ApplicationService`,
`KafkaConnectService`, `KafkaStreamsService`, `KafkaConnectorDetails`, `RoleService`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from kafkaform.core.errors import UsageError
from kafkaform.provider.contract import ForeignFiles

from .declarations import FACTOR, add_acl, add_acls, add_topic, make_acl, read_file
from .documents import YamlNode
from .fields import Fields, Findings, Unfit, read_text

_SECTIONS = ("topics", "services", "users")
"""The sections that can have files of their own."""
Owners = dict[str, dict[str, YamlNode]]
"""Section -> its entries."""


class StateSettings(Struct, frozen=True):
    """What the settings say about all objects."""

    replication: int | None = None
    describe: bool = False
    """Services get Describe on their topics too."""
    files: tuple[tuple[str, str], ...] = ()
    """Section -> the file that has more of it."""


class Service(Struct, frozen=True):
    """A service or a connector of one."""

    fields: Fields
    name: str
    principal: str
    settings: StateSettings

    def allow(
        self,
        resource_type: str,
        name: str,
        operations: Iterable[str],
        pattern: str = "Literal",
    ) -> None:
        findings, position = self.fields.findings, self.fields.position
        resource = (resource_type, name)
        add_acls(findings, position, self.principal, resource, operations, pattern=pattern)


def read_declarations(paths: Sequence[Path]) -> ForeignFiles:
    """Read state files, each given as itself or as the only one in a folder. Raises UsageError."""
    findings = Findings(paths)
    for path in map(_find_state, paths):
        for top in _read_tops(path, findings):
            settings = StateSettings()
            with findings.contain():
                settings = _read_settings(top)
            owners: Owners = {name: {} for name in _SECTIONS}
            for name, section in _list_sections(path, top, settings, findings):
                with findings.contain():
                    owners[name].update(section.entries(name))
            for name, entries in owners.items():
                for key, node in entries.items():
                    with findings.contain():
                        _READERS[name](key, node, settings, findings)
            with findings.contain():
                _read_custom_acls(top, owners, findings)
            top.close()
    return findings.finish()


def _find_state(path: Path) -> Path:
    if not path.is_dir():
        return path
    files = sorted(p for p in path.iterdir() if p.suffix in (".yaml", ".yml"))
    if len(files) == 1:
        return files[0]
    state_files = [p for p in files if p.stem == "state"]
    if len(state_files) == 1:
        return state_files[0]
    raise UsageError(
        f"{path} has {len(files)} YAML files, and none of them is state.yaml",
        "Name the state file instead of its folder.",
    )


def _read_tops(path: Path, findings: Findings) -> Iterator[Fields]:
    for node in findings.read_documents(str(path), read_file(path), "kafka-gitops"):
        with findings.contain():
            yield Fields(node, findings, "the state file")


def _read_settings(top: Fields) -> StateSettings:
    settings = top.table("settings", "settings")
    if settings is None:
        return StateSettings()
    replication = None
    if (topics := settings.table("topics", "settings: topics")) is not None:
        # The blacklist is about what is not to be deleted; here nothing is deleted.
        topics.skip("blacklist")
        if (defaults := topics.table("defaults", "settings: topics: defaults")) is not None:
            replication = defaults.number("replication")
            defaults.close()
        topics.close()
    describe = False
    if (services := settings.table("services", "settings: services")) is not None:
        if (acls := services.table("acls", "settings: services: acls")) is not None:
            describe = bool(acls.flag("describeTopicEnabled"))
            acls.close()
        services.close()
    if (cloud := settings.table("ccloud", "settings: ccloud")) is not None:
        if cloud.flag("enabled"):
            raise UsageError(
                f"{cloud.locate('enabled')}: principals are service accounts of Confluent Cloud, "
                "whose ids the file does not have",
                "Use `kafkaform import --all` with a connection to the cluster.",
            )
        cloud.close()
    files: dict[str, str] = {}
    if (named := settings.table("files", "settings: files")) is not None:
        files = {name: file for name in _SECTIONS if (file := named.text(name))}
        named.close()
    settings.close()
    return StateSettings(replication, describe, tuple(files.items()))


def _list_sections(
    path: Path, top: Fields, settings: StateSettings, findings: Findings
) -> Iterator[tuple[str, Fields]]:
    """The state file itself, and one section of each file that it names."""
    for name in _SECTIONS:
        yield name, top
    for name, file in settings.files:
        section_file = (path.parent / file).resolve()
        if not section_file.is_relative_to(path.parent.resolve()):
            findings.omit(str(path), f"the file of {name} is outside of the folder")
            continue
        try:
            content = read_file(section_file)
        except UsageError as fault:
            findings.omit(top.locate("settings"), f"the file of {name}: {fault.message}")
            continue
        shown_name = str(path.parent / file)
        for node in findings.read_documents(shown_name, content, "kafka-gitops"):
            with findings.contain():
                fields = Fields(node, findings, file)
                yield name, fields
                fields.close()


# ── topics, services, users ─────────────────────────────────────────────────────────────


def _read_topic(name: str, node: YamlNode, settings: StateSettings, findings: Findings) -> None:
    topic = Fields(node, findings, f"topic {name}")
    replication = topic.number("replication") or settings.replication
    config = topic.config("configs")
    positions = topic.trace(
        {"partitions": "partitions", "replication": FACTOR, "configs": "config"}
    )
    partitions = topic.number("partitions")
    add_topic(findings, topic.position, name, partitions, replication, config, positions)
    topic.close()


def _read_service(name: str, node: YamlNode, settings: StateSettings, findings: Findings) -> None:
    fields = Fields(node, findings, f"service {name}")
    type = fields.require_text("type")
    if type not in _SERVICES:
        raise Unfit(fields.position, f"{fields.title}: a service of the type {type!r} is not known")
    service = Service(fields, name, fields.require_text("principal"), settings)
    _SERVICES[type](service)
    fields.close()


def _allow_topics(service: Service) -> tuple[str, ...]:
    """The rights for `produces` and `consumes`; the topics that are consumed."""
    produced, consumed = service.fields.texts("produces"), service.fields.texts("consumes")
    for topic in produced:
        service.allow("TOPIC", topic, ["WRITE"])
    for topic in consumed:
        service.allow("TOPIC", topic, ["READ"])
    if service.settings.describe:
        for topic in dict.fromkeys((*consumed, *produced)):
            service.allow("TOPIC", topic, ["DESCRIBE"])
    return consumed


def _read_application(service: Service) -> None:
    group = service.fields.text("group-id") or service.name
    if _allow_topics(service):
        service.allow("GROUP", group, ["READ"])


def _read_connect(service: Service) -> None:
    fields = service.fields
    _allow_topics(service)
    storage = fields.table("storage-topics", f"{fields.title}: storage-topics")
    for kind in ("config", "offset", "status"):
        default = f"connect-{kind if kind == 'status' else f'{kind}s'}-{service.name}"
        topic = (storage.text(kind) if storage is not None else None) or default
        service.allow("TOPIC", topic, ["READ", "WRITE"])
    if storage is not None:
        storage.close()
    service.allow("GROUP", fields.text("group-id") or service.name, ["READ"])
    for name, node in fields.entries("connectors").items():
        inner = Fields(node, fields.findings, f"{fields.title}: connector {name}")
        connector = Service(inner, name, service.principal, service.settings)
        if _allow_topics(connector):
            connector.allow("GROUP", f"connect-{name}", ["READ"])
        inner.close()


def _read_streams(service: Service) -> None:
    _allow_topics(service)
    application = service.fields.text("application-id") or service.name
    service.allow("TOPIC", application, _INTERNAL, "PREFIXED")
    service.allow("GROUP", application, ["READ", "DESCRIBE", "DELETE"])
    service.allow("CLUSTER", "", ["DESCRIBE_CONFIGS"])


_INTERNAL = (
    *("READ", "WRITE", "DESCRIBE", "DELETE", "CREATE"),
    *("ALTER", "ALTER_CONFIGS", "DESCRIBE_CONFIGS"),
)
_SERVICES: Mapping[str, Callable[[Service], None]] = {
    "application": _read_application,
    "kafka-connect": _read_connect,
    "kafka-streams": _read_streams,
}
_ROLES: Mapping[str, tuple[tuple[str, str, tuple[str, ...]], ...]] = {
    "reader": (("TOPIC", "*", ("READ",)), ("GROUP", "*", ("READ",))),
    "writer": (("TOPIC", "*", ("WRITE",)),),
    "operator": (
        ("CLUSTER", "", ("DESCRIBE",)),
        ("TOPIC", "*", ("DESCRIBE", "DESCRIBE_CONFIGS")),
        ("GROUP", "*", ("READ", "DESCRIBE")),
    ),
}


def _read_user(name: str, node: YamlNode, _: StateSettings, findings: Findings) -> None:
    fields = Fields(node, findings, f"user {name}")
    principal, roles = fields.require_text("principal"), fields.texts("roles")
    for role in roles:
        if role.lower() not in _ROLES:
            raise Unfit(fields.position, f"{fields.title}: the role {role!r} is not known")
        for type, resource, operations in _ROLES[role.lower()]:
            add_acls(findings, fields.position, principal, (type, resource), operations)
    fields.close()


_READERS: Mapping[str, Callable[[str, YamlNode, StateSettings, Findings], None]] = {
    "topics": _read_topic,
    "services": _read_service,
    "users": _read_user,
}


# ── custom ACLs ─────────────────────────────────────────────────────────────────────────


def _read_custom_acls(top: Fields, owners: Owners, findings: Findings) -> None:
    for section, kind in (("customServiceAcls", "services"), ("customUserAcls", "users")):
        for owner, node in top.entries(section).items():
            owner_node = owners[kind].get(owner)
            if owner_node is None:
                findings.omit(
                    node.position, f"{section}: {owner} is not in {kind}, so it has no effect"
                )
                continue
            # Only users hand their principal on to their ACLs.
            principal = owner_node.get("principal") if kind == "users" else None
            with findings.contain():
                rules = Fields(node, findings, f"{section} of {owner}")
                for name in node.value:
                    with findings.contain():
                        _read_custom_acl(rules, name, principal)


def _read_custom_acl(rules: Fields, name: str, principal: YamlNode | None) -> None:
    rule = rules.table(name, f"{rules.title}: {name}")
    if rule is None:
        return
    own, inherited = rule.text("principal"), None
    if not own and principal is not None:
        inherited = read_text(principal, "principal")
    acl = make_acl(
        rule.position,
        own or inherited or rule.require_text("principal"),
        rule.require_text("operation"),
        rule.require_text("type"),
        rule.require_text("name"),
        pattern=rule.require_text("pattern"),
        host=rule.text("host") or "*",
        permission=rule.text("permission") or "ALLOW",
    )
    add_acl(rules.findings, rule.position, acl)
    rule.close()
