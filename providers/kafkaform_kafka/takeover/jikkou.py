"""Jikkou: resources of `kafka.jikkou.io` and `schemaregistry.jikkou.io`, and the ConfigMaps and
roles that they refer to.

Templates are not rendered: their values can come from anywhere, also from the environment. A file
with Jinja in it is left out, with the command that renders it.

Source: jikkou 1.1.0, API versions v1 and v1beta2: `V1KafkaTopicSpec`, `ConfigMapsTransformation`
(a ConfigMap overrides `configs`), `KafkaPrincipalAuthorizationTransformation` (roles),
`LiteralKafkaAclBindingBuilder`, `KafkaClientQuotaType`, `V1KafkaClientQuotaConfigsAdapter`,
`V1KafkaUserAuthentication` (8192 iterations), `CoreAnnotations`, `SchemaRegistryAnnotations`,
`JinjaResourceTemplateRenderer` (`resource.directoryPath`), `SchemaHandle` (a `$ref` is relative to
the working directory).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import ForeignFiles

from .declarations import (
    FACTOR,
    YAML,
    add_acl,
    add_connector,
    add_group_config,
    add_quota,
    add_registry_settings,
    add_schema,
    add_topic,
    add_user,
    make_acl,
    read_files,
    read_named_file,
)
from .documents import YamlNode, find_template
from .fields import (
    Fields,
    Findings,
    Unfit,
    read_config,
    read_decimal,
    read_pattern,
    read_text,
)

GROUP, CORE, SCHEMAS = "kafka.jikkou.io/", "core.jikkou.io/", "schemaregistry.jikkou.io/"
AIVEN = "kafka.aiven.io/"
CLUSTER = "kafka.jikkou.io/connect-cluster"
IGNORE, DELETE = "jikkou.io/ignore", "jikkou.io/delete"
_IGNORED_ANNOTATIONS: Mapping[str, str] = {
    "jikkou.io/config-override": "the address of the workers is in the provider block",
    f"{SCHEMAS}schema-id": "the schema keeps the id that it has",
    f"{SCHEMAS}version": "the schema keeps the version that it has",
    f"{SCHEMAS}permanent-delete": "`hard_delete = true` in the provider block is for all subjects",
}
"""Annotation that changes what jikkou does -> why it is not taken over."""
_FOLDER = re.compile(rb"\{\{-?\s*resource\.directoryPath\s*-?\}\}")
"""Jinja for the folder of the file itself, before the path of a schema."""
ITERATIONS = 8192
_LIMITS: Mapping[str, str] = {
    "producerByteRate": "producer_byte_rate",
    "consumerByteRate": "consumer_byte_rate",
    "requestPercentage": "request_percentage",
}


class Resource(Struct, frozen=True):
    """One resource, alone or of a list."""

    kind: str
    name: str
    fields: Fields
    spec: Fields
    cluster: str = ""
    """The Connect cluster of a connector."""


class Shared(Struct, frozen=True):
    """What other resources refer to by name."""

    configs: dict[str, FrozenMap]
    roles: dict[str, tuple[YamlNode, ...]]


def read_declarations(paths: Sequence[Path]) -> ForeignFiles:
    """Read files, and all files below folders. Raises UsageError."""
    findings = Findings(paths)
    resources: list[Resource] = []
    shared = Shared({}, {})
    for name, text in read_files(paths, {*YAML, ".tpl"}, findings.omit):
        folder = str(Path(name).resolve().parent).encode()
        content = folder.join(_FOLDER.split(text))
        if (template := find_template(content, "jikkou")) is not None:
            line, reason = template
            findings.omit(f"{name}:{line}", reason)
            continue
        for document in findings.read_documents(name, content, "jikkou"):
            with findings.contain():
                resources += _list_resources(Fields(document, findings, "a document"), shared)
    for resource in resources:
        with findings.contain():
            _KINDS[resource.kind](resource, shared, findings)
            resource.spec.close()
            resource.fields.close()
    return findings.finish()


# ── resources ───────────────────────────────────────────────────────────────────────────


def _list_resources(document: Fields, shared: Shared) -> Iterator[Resource]:
    """The resources of a document that are taken over. Adds what others refer to."""
    version, kind = document.text("apiVersion") or "", document.text("kind") or ""
    single = kind.removesuffix("List")
    if version.startswith(CORE) and kind == "ConfigMap":
        metadata = document.table("metadata", "the metadata of a ConfigMap")
        name = metadata.require_text("name") if metadata is not None else ""
        shared.configs[name] = read_config(document.entries("data"), f"ConfigMap {name}")
        document.close()
    elif version.startswith(GROUP) and kind == "KafkaPrincipalRole":
        _read_role(document, shared)
    elif not _is_taken_over(version, single):
        title = f"a resource of the kind {kind!r}" if kind else "a document without a kind"
        document.findings.omit(document.position, f"{title} is not taken over")
    elif kind == single:
        yield from _make_resource(document, single)
    else:
        document.skip("metadata")
        for node in document.items("items"):
            with document.findings.contain():
                item = Fields(node, document.findings, f"an item of {kind}")
                item.skip("apiVersion", "kind")
                yield from _make_resource(item, single)
        document.close()


def _is_taken_over(version: str, kind: str) -> bool:
    """Of Aiven's kinds, only the subjects have Kafka's own form."""
    groups = (SCHEMAS, AIVEN) if kind == "SchemaRegistrySubject" else (GROUP,)
    return kind in _KINDS and version.startswith(groups)


def _make_resource(fields: Fields, kind: str) -> Iterator[Resource]:
    """The resource, unless an annotation says that jikkou leaves it alone or deletes it."""
    name, notes, labels = "", dict[str, YamlNode](), dict[str, YamlNode]()
    if (metadata := fields.table("metadata", f"the metadata of a {kind}")) is not None:
        name, notes = metadata.text("name") or "", metadata.entries("annotations")
        labels = metadata.entries("labels")
    fields.title = f"{kind} {name}".rstrip()
    for note in (IGNORE, DELETE):
        if note in notes and read_text(notes[note], note).lower() == "true":
            fields.findings.omit(fields.position, f"{fields.title}: the annotation {note} is true")
            return
    for note, reason in _IGNORED_ANNOTATIONS.items():
        if note in notes:
            message = f"{fields.title}: the annotation {note}: {reason}"
            fields.findings.omit(notes[note].position, message)
    fields.skip("status")
    spec = fields.table("spec")
    if spec is None:
        raise Unfit(fields.position, f"{fields.title}: spec is missing")
    cluster = read_text(labels[CLUSTER], CLUSTER) if CLUSTER in labels else ""
    yield Resource(kind, name, fields, spec, cluster)


def _read_role(document: Fields, shared: Shared) -> None:
    metadata = document.table("metadata", "the metadata of a KafkaPrincipalRole")
    name = metadata.require_text("name") if metadata is not None else ""
    spec = document.table("spec", f"KafkaPrincipalRole {name}")
    if spec is not None:
        shared.roles[name] = spec.items("acls")
        spec.close()
    document.close()


# ── kinds ───────────────────────────────────────────────────────────────────────────────


def _read_topic(resource: Resource, shared: Shared, findings: Findings) -> None:
    spec, fields = resource.spec, resource.fields
    config = spec.config("configs")
    for name in spec.texts("configMapRefs"):
        if name not in shared.configs:
            raise Unfit(fields.position, f"{fields.title}: the ConfigMap {name!r} is missing")
        config = config.with_items(shared.configs[name])
    numbers = spec.number("partitions"), spec.number("replicas")
    name = _require_name(resource)
    positions = spec.trace({"partitions": "partitions", "replicas": FACTOR, "configs": "config"})
    add_topic(findings, fields.position, name, *numbers, config=config, positions=positions)


def _require_name(resource: Resource) -> str:
    if not resource.name:
        raise Unfit(resource.fields.position, f"a {resource.kind} without a name")
    return resource.name


def _read_authorization(resource: Resource, shared: Shared, findings: Findings) -> None:
    spec, fields, principal = resource.spec, resource.fields, _require_name(resource)
    rules = list(spec.items("acls"))
    for role in spec.texts("roles"):
        if role not in shared.roles:
            raise Unfit(fields.position, f"{fields.title}: the role {role!r} is missing")
        rules += shared.roles[role]
    for node in rules:
        # One rule that is left out takes no other one away.
        with findings.contain():
            _read_rule(Fields(node, findings, f"{fields.title}: an ACL"), principal, findings)


def _read_rule(rule: Fields, principal: str, findings: Findings) -> None:
    resource = rule.table("resource")
    if resource is None:
        raise Unfit(rule.position, f"{rule.title}: resource is missing")
    pattern, name = resource.require_text("patternType"), resource.require_text("pattern")
    if pattern.upper() == "MATCH":
        raise Unfit(
            rule.position,
            f"{rule.title}: MATCH names the topics that exist when jikkou runs: `kafkaform import "
            "--all` takes the ACLs over that it has made",
        )
    for operation in rule.texts("operations"):
        acl = make_acl(
            rule.position,
            principal,
            operation,
            resource.require_text("type"),
            name,
            pattern=pattern,
            host=rule.text("host") or "*",
            permission=rule.require_text("type"),
        )
        add_acl(findings, rule.position, acl)
    resource.close()
    rule.close()


_ENTITIES: Mapping[str, tuple[bool | None, bool | None]] = {
    "USERS_DEFAULT": (False, None),
    "USER": (True, None),
    "USER_CLIENT": (True, True),
    "USER_ALL_CLIENTS": (True, False),
    "CLIENTS_DEFAULT": (None, False),
    "CLIENT": (None, True),
}
"""Type of quota -> whether it is for a named user and a named client id; False for the default,
None for none."""


def _read_quota(resource: Resource, _: Shared, findings: Findings) -> None:
    spec, fields = resource.spec, resource.fields
    type, entity = spec.require_text("type"), spec.table("entity")
    if type not in _ENTITIES:
        raise Unfit(fields.position, f"{fields.title}: quotas of the type {type!r} are not known")
    names = []
    for is_named, attribute in zip(_ENTITIES[type], ("user", "clientId"), strict=True):
        entity_name = entity.text(attribute) if entity is not None else None
        if is_named and not entity_name:
            raise Unfit(fields.position, f"{fields.title}: {attribute} is missing")
        names.append(entity_name if is_named else None if is_named is None else "")
    limits = {}
    if (configs := spec.table("configs")) is not None:
        for limit, key in _LIMITS.items():
            if (node := configs.find(limit)) is not None:
                limits[key] = read_decimal(node, f"{fields.title}: {limit}")
        configs.close()
    if entity is not None:
        entity.close()
    add_quota(findings, fields.position, FrozenMap(limits), user=names[0], client_id=names[1])


def _read_user(resource: Resource, _: Shared, findings: Findings) -> None:
    name = _require_name(resource)
    for node in resource.spec.items("authentications"):
        login = Fields(node, findings, f"{resource.fields.title}: an authentication")
        iterations = login.number("iterations") or ITERATIONS
        add_user(findings, node.position, name, login.require_text("type"), iterations)
        login.skip("password", "salt")
        login.close()


def _read_connector(resource: Resource, _: Shared, findings: Findings) -> None:
    spec, fields = resource.spec, resource.fields
    config = dict(spec.config("config", variables=False))
    if (tasks := spec.number("tasksMax")) is not None:
        config["tasks.max"] = str(tasks)
    findings.system = resource.cluster
    positions = spec.trace({"config": "config", "tasksMax": "config.tasks.max"})
    add_connector(
        findings,
        fields.position,
        _require_name(resource),
        config,
        class_=spec.require_text("connectorClass"),
        state=spec.text("state"),
        positions=positions,
    )
    findings.system = ""


def _read_subject(resource: Resource, _: Shared, findings: Findings) -> None:
    spec, fields, subject = resource.spec, resource.fields, _require_name(resource)
    level, mode = spec.text("compatibilityLevel"), spec.text("mode")
    add_registry_settings(findings, fields.position, level, mode, subject=subject)
    node, title = spec.find("schema"), f"{fields.title}: schema"
    if node is None:
        return
    if node.kind == "map":
        named = Fields(node, findings, title)
        name = named.require_text("$ref").removeprefix("file://")
        if "://" in name:
            raise Unfit(node.position, f"{title}: {name} is an address: save the file beside this")
        text = read_named_file(findings, node.position, title, name, from_here=True)
        named.close()
    else:
        text = read_pattern(node, title)
    rows = [Fields(row, findings, f"{title}: a reference") for row in spec.items("references")]
    format = spec.text("schemaType") or "avro"
    add_schema(findings, fields.position, subject, text, format=format, references=rows)
    spec.skip("schemaRegistry")


def _read_group(resource: Resource, _: Shared, findings: Findings) -> None:
    spec, position, group = resource.spec, resource.fields.position, _require_name(resource)
    config = spec.config("configs")
    if not config:
        findings.omit(
            position, f"{resource.fields.title}: it has no configs, so nothing to declare"
        )
    add_group_config(findings, position, group, config, spec.trace({"configs": "config"}))


_KINDS: Mapping[str, Callable[[Resource, Shared, Findings], None]] = {
    "KafkaTopic": _read_topic,
    "KafkaPrincipalAuthorization": _read_authorization,
    "KafkaClientQuota": _read_quota,
    "KafkaUser": _read_user,
    "KafkaConnector": _read_connector,
    "KafkaConsumerGroup": _read_group,
    "KafkaShareGroup": _read_group,
    "SchemaRegistrySubject": _read_subject,
}
