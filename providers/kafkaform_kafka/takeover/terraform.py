"""Terraform and OpenTofu, both ways: topics, ACLs, quotas and users as resources of `Mongey/kafka`,
and the state, version 4, of the providers `Mongey/kafka` and `confluentinc/confluent`.

Exactly what the state manages is taken over. Passwords are passed over, and an object one of whose
values is marked as sensitive is left out, so that no such value is written into a file. What is
written has no password either: with `username|mechanism` and `password_wo`, nothing of it is in the
state, and a plan after the import changes nothing. An import id is divided at each `|`, without
escapes; quotas cannot be imported.

Source: OpenTofu 1.12 `internal/states/statefile/version4.go` and `internal/encryption` (the form of
an encrypted state); terraform-provider-kafka 0.13.1 `kafka/resource_*.go`;
terraform-provider-confluent 2.83 `internal/provider/resource_kafka_{topic,acl}.go`,
`resource_schema.go`, `resource_subject_{config,mode}.go`,
`resource_schema_registry_cluster_{config,mode}.go`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

from kafkaform.core.address import render_key
from kafkaform.core.errors import UsageError
from kafkaform.core.value import FrozenMap, SecretRef, Value
from kafkaform.provider.contract import Exporter, ForeignFiles, ForeignResource

from ..kinds.quota.resource_type import DEFAULT
from ..kinds.quota.resource_type import KIND as QUOTA
from ..kinds.topic.resource_type import KIND as TOPIC
from ..kinds.user.resource_type import KIND as USER
from ..protocol.acl import KIND as ACL
from ..protocol.acl import parse_acl
from .declarations import (
    SCHEMA,
    add_acl,
    add_connector,
    add_registry_settings,
    add_schema,
    add_topic,
    make_acl,
    read_file,
)
from .documents import YamlNode
from .fields import Fields, Findings, Unfit, read_decimal, read_pattern

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


VERSION = 4
_CLOUD = "it is an object of Confluent Cloud: keep it in Terraform"
_FOREIGN_TYPES: Mapping[str, str] = {
    "confluent_connector": (
        "Confluent Cloud runs it, behind an API that Connect's workers do not have: keep it in "
        "Terraform"
    ),
    "confluent_kafka_client_quota": "it is no quota of Kafka: keep it in Terraform",
    "confluent_kafka_mirror_topic": "a cluster link writes this topic: keep it in Terraform",
    "confluent_role_binding": "a role of Confluent Cloud is no ACL: keep it in Terraform",
}
"""Type of resources that are not taken over -> why."""


# ── the state ───────────────────────────────────────────────────────────────────────────


def read_declarations(paths: Sequence[Path]) -> ForeignFiles:
    """Read state files. Raises UsageError if the only one is anything else."""
    findings = Findings(paths)
    for path in paths:
        count = len(findings.objects)
        try:
            _read_state(path, findings)
        except UsageError as fault:
            # Of several states, the others are taken over.
            if len(paths) == 1:
                raise
            del findings.objects[count:]
            findings.omit(str(path), fault.message.removeprefix(f"{path} "))
    return findings.finish()


def _read_state(path: Path, findings: Findings) -> None:
    state, foreign_types = _parse(path), Counter[str]()
    instances: list[tuple[dict[str, Any], dict[str, Any]]] = []
    for resource in _list_maps(state, "resources", path):
        if resource.get("mode") != "managed":
            continue
        rows = _list_maps(resource, "instances", path)
        type = str(resource.get("type"))
        if type in _TYPES:
            instances += [(resource, instance) for instance in rows]
        else:
            foreign_types[type] += len(rows)
    # The versions of a subject can be resources of their own: the newest comes last.
    for resource, instance in sorted(instances, key=_find_version):
        type = str(resource.get("type"))
        module = f"{resource['module']}." if resource.get("module") else ""
        key = instance.get("index_key")
        index = "" if key is None else f"[{key}]" if isinstance(key, int) else render_key(str(key))
        address = f"{module}{type}.{resource.get('name')}{index}"
        findings.system = _find_system(type, resource, instance)
        with findings.contain():
            _read_instance(type, instance, f"{path}: {address}", findings)
    for type, count in sorted(foreign_types.items()):
        family = _CLOUD if type.startswith("confluent_") else "kafkaform does not manage it"
        findings.omit(str(path), f"{count} of {type}: {_FOREIGN_TYPES.get(type, family)}")


def _find_version(row: tuple[Mapping[str, Any], Mapping[str, Any]]) -> int:
    """The version of a schema; 0 for everything else."""
    resource, instance = row
    attributes = instance.get("attributes")
    if resource.get("type") != "confluent_schema" or not isinstance(attributes, dict):
        return 0
    version = attributes.get("version")
    return version if isinstance(version, int) else 0


def _parse(path: Path) -> dict[str, Any]:
    """The state as JSON. Raises UsageError."""
    if path.is_dir():
        raise UsageError(
            f"{path} is a folder, not a state",
            "Write the state into a file: terraform state pull > terraform.tfstate",
        )
    advice = "Write the state into a file: terraform state pull > terraform.tfstate"
    try:
        state = json.loads(read_file(path), parse_float=Decimal)
    except (ValueError, RecursionError):
        # The message of the parser can quote the file, and so a password.
        raise UsageError(f"{path} is not JSON, so it is no state", advice) from None
    if not isinstance(state, dict):
        raise UsageError(f"{path} is no state", advice)
    if "encrypted_data" in state:
        raise UsageError(
            f"{path} is encrypted",
            "Decrypt it with the tool that has the key: tofu state pull > terraform.tfstate",
        )
    if state.get("version") != VERSION:
        raise UsageError(
            f"{path} is no state of version {VERSION}",
            "Run `terraform apply -refresh-only` once with Terraform 0.12 or newer.",
        )
    return state


def _list_maps(holder: Mapping[str, Any], name: str, path: Path) -> list[dict[str, Any]]:
    maps = holder.get(name) or []
    if not isinstance(maps, list) or not all(isinstance(item, dict) for item in maps):
        raise UsageError(f"{path} cannot be used: `{name}` is no list of objects")
    return maps


def _find_system(type: str, resource: Mapping[str, Any], instance: Mapping[str, Any]) -> str:
    """The cluster or the registry, as far as the state says it: Confluent's id, or the address of
    the provider for Kafka."""
    attributes = instance.get("attributes")
    for name in ("kafka_cluster", "schema_registry_cluster"):
        blocks = attributes.get(name) if isinstance(attributes, dict) else None
        if isinstance(blocks, list) and blocks and isinstance(blocks[0], dict):
            return str(blocks[0].get("id"))
    if not type.startswith(("kafka_", "confluent_kafka_")):
        return ""
    # `provider["registry.terraform.io/mongey/kafka"].eu`, maybe behind `module.x.`
    provider = str(instance.get("provider") or resource.get("provider") or "")
    source, _, alias = provider.partition('"]')
    return source.rpartition("/")[2] + alias


# ── one object ──────────────────────────────────────────────────────────────────────────


def _read_instance(
    type: str, instance: Mapping[str, Any], position: str, findings: Findings
) -> None:
    if instance.get("deposed"):
        raise Unfit(position, "a deposed object, which Terraform would delete")
    attributes = instance.get("attributes")
    if not isinstance(attributes, dict):
        raise Unfit(position, "it has no attributes; a newer Terraform writes them")
    if instance.get("status") == "tainted":
        findings.omit(position, "the mark `tainted`: nothing is ever replaced")
    fields = Fields(_make_node(attributes, position), findings, type)
    fields.skip("id", "timeouts")
    sensitive = set(_list_sensitive(instance)) - _PASSWORDS
    if sensitive:
        names = ", ".join(sorted(sensitive))
        raise Unfit(position, f"{names} is sensitive, so its block has to be written by hand")
    _TYPES[type](fields, findings)
    fields.close()


_PASSWORDS = frozenset(
    {"password", "password_wo", "credentials", "rest_endpoint", "config_sensitive"}
)
"""What is sensitive and not taken over; of a connector's secret configs, the names are."""


def _list_sensitive(instance: Mapping[str, Any]) -> Iterator[str]:
    """The attributes that contain a value which the state marks as sensitive."""
    for path in instance.get("sensitive_attributes") or ():
        first = path[0] if isinstance(path, list) and path else None
        if isinstance(first, dict):
            yield str(first.get("value"))


def _make_node(value: Any, position: str) -> YamlNode:
    if isinstance(value, dict):
        return YamlNode(
            position, "map", {str(k): _make_node(v, position) for k, v in value.items()}
        )
    if isinstance(value, list):
        return YamlNode(position, "list", tuple(_make_node(item, position) for item in value))
    if value is None or value == "":
        # Terraform's older plugins write an empty text for what is not set.
        return YamlNode(position, "null", "")
    if isinstance(value, bool):
        return YamlNode(position, "bool", str(value).lower())
    kinds = {int: "int", Decimal: "float"}
    return YamlNode(position, kinds.get(type(value), "text"), str(value))


def _read_topic(fields: Fields, findings: Findings) -> None:
    add_topic(
        findings,
        fields.position,
        fields.require_text("name"),
        fields.number("partitions"),
        fields.number("replication_factor"),
        fields.config("config"),
    )


def _read_confluent_topic(fields: Fields, findings: Findings) -> None:
    name, partitions = fields.require_text("topic_name"), fields.number("partitions_count")
    add_topic(findings, fields.position, name, partitions, config=fields.config("config"))
    fields.skip("kafka_cluster", "rest_endpoint", "credentials", "http_endpoint")


def _read_acl(fields: Fields, findings: Findings) -> None:
    acl = make_acl(
        fields.position,
        fields.require_text("acl_principal"),
        fields.require_text("acl_operation"),
        # Schema version 0 had longer names.
        fields.text("resource_type") or fields.require_text("acl_resource_type"),
        fields.text("resource_name") or fields.require_text("acl_resource_name"),
        pattern=fields.text("resource_pattern_type_filter") or "Literal",
        host=fields.require_text("acl_host"),
        permission=fields.require_text("acl_permission_type"),
    )
    add_acl(findings, fields.position, acl)


def _read_confluent_acl(fields: Fields, findings: Findings) -> None:
    acl = make_acl(
        fields.position,
        fields.require_text("principal"),
        fields.require_text("operation"),
        fields.require_text("resource_type"),
        fields.require_text("resource_name"),
        pattern=fields.require_text("pattern_type"),
        host=fields.require_text("host"),
        permission=fields.require_text("permission"),
    )
    add_acl(findings, fields.position, acl)
    fields.skip("kafka_cluster", "rest_endpoint", "credentials")


def _read_quota(fields: Fields, findings: Findings) -> None:
    arguments: dict[str, Value] = {"entity_type": fields.require_text("entity_type")}
    if (name := fields.text("entity_name")) is not None:
        arguments["entity_name"] = name
    limits = {
        key: read_decimal(node, f"{fields.title}: {key}")
        for key, node in fields.entries("config").items()
    }
    findings.add(QUOTA, FrozenMap(arguments | {"config": FrozenMap(limits)}), fields.position)


def _read_user(fields: Fields, findings: Findings) -> None:
    arguments: dict[str, Value] = {
        "username": fields.require_text("username"),
        "scram_mechanism": fields.require_text("scram_mechanism"),
        "scram_iterations": fields.number("scram_iterations"),
        "password_wo_version": fields.text("password_wo_version"),
    }
    fields.skip(*_PASSWORDS)
    set_ = {name: value for name, value in arguments.items() if value is not None}
    findings.add(USER, FrozenMap(set_), fields.position)


def _read_connector(fields: Fields, findings: Findings) -> None:
    config = dict(fields.config("config", variables=False))
    name = fields.text("name") or config.get("name") or fields.require_text("name")
    secrets = [*fields.entries("config_sensitive"), *fields.entries("config_sensitive_wo")]
    add_connector(findings, fields.position, name, config, secrets=secrets)
    fields.skip("config_wo_version", "config_sensitive_wo_version")


def _read_schema(fields: Fields, findings: Findings) -> None:
    subject, position = fields.require_text("subject"), fields.position
    add_registry_settings(findings, position, fields.text("compatibility_level"), subject=subject)
    # The providers of this name differ in it.
    nodes = (*fields.items("references"), *fields.items("reference"))
    rows = [Fields(row, findings, f"{subject}: a reference") for row in nodes]
    format, text = fields.text("schema_type") or "avro", fields.require_pattern("schema")
    add_schema(findings, position, subject, text, format=format, references=rows)
    fields.skip("version", "schema_id", "hard_delete")


def _read_confluent_schema(fields: Fields, findings: Findings) -> None:
    subject, position = fields.require_text("subject_name"), fields.position
    rows = fields.items("schema_reference")
    references = [Fields(row, findings, f"{subject}: a reference") for row in rows]
    format, text = fields.text("format") or "avro", fields.require_pattern("schema")
    contract = _read_contract(fields)
    add_schema(
        findings, position, subject, text, format=format, references=references, contract=contract
    )
    fields.skip("schema_registry_cluster", "rest_endpoint", "credentials", "hard_delete")
    fields.skip("version", "schema_identifier", "recreate_on_update")
    fields.skip("skip_validation_during_plan", "disable_schema_normalization")
    _drop_older_versions(subject, findings)


def _read_contract(fields: Fields) -> dict[str, Value]:
    """The metadata and the rules of a schema. The values of sensitive properties are not read."""
    contract: dict[str, Value] = {}
    for node in fields.items("metadata"):
        metadata = Fields(node, fields.findings, f"{fields.title}: metadata")
        secrets = metadata.texts("sensitive")
        properties = {
            name: read_pattern(value, f"{metadata.title}: properties.{name}")
            for name, value in metadata.entries("properties").items()
            if name not in (*secrets, _VERSION_PROPERTY)
        }
        tags = {}
        for row in metadata.items("tags"):
            tag = Fields(row, fields.findings, f"{metadata.title}: tags")
            tags[tag.require_text("key")] = tag.texts("value")
            tag.close()
        metadata.close()
        if properties or tags:
            contract["metadata"] = FrozenMap(
                properties=FrozenMap(properties) or None, tags=FrozenMap(tags) or None
            )
        if secrets:
            contract["sensitive_properties"] = FrozenMap(
                dict.fromkeys(secrets, SecretRef("env", ""))
            )
    for node in fields.items("ruleset"):
        rule_set = Fields(node, fields.findings, f"{fields.title}: ruleset")
        phases = {
            name: tuple(
                _read_rule(Fields(row, fields.findings, f"{rule_set.title}: {name}"))
                for row in rule_set.items(name)
            )
            or None
            for name in ("domain_rules", "migration_rules", "encoding_rules")
        }
        rule_set.close()
        if any(phases.values()):
            contract["rule_set"] = FrozenMap(phases)
    return contract


_VERSION_PROPERTY = "confluent:version"
"""A property that the registry sets itself."""


def _read_rule(rule: Fields) -> FrozenMap:
    params = {
        name: read_pattern(value, f"{rule.title}: params.{name}")
        for name, value in rule.entries("params").items()
    }
    texts = ("doc", "kind", "mode", "expr", "on_success", "on_failure")
    row = {
        "name": rule.require_text("name"),
        "type": rule.require_text("type"),
        **{name: rule.pattern(name) for name in texts},
        "tags": rule.texts("tags") or None,
        "params": FrozenMap(params) or None,
        "disabled": rule.flag("disabled") or None,
    }
    rule.close()
    return FrozenMap(row)


def _drop_older_versions(subject: str, findings: Findings) -> None:
    """Leave a subject its last schema. With `recreate_on_update`, each version is a resource."""
    newest = findings.objects[-1]
    for item in findings.objects[:-1]:
        if (item.kind, item.system) != (SCHEMA, newest.system):
            continue
        if item.arguments["subject"] == subject and item.arguments != newest.arguments:
            findings.objects.remove(item)
            findings.omit(
                item.place,
                f"an older version of {subject}, which the registry keeps: the block has the "
                "newest, and `versions` can declare all of them",
            )


def _read_confluent_subject(fields: Fields, findings: Findings) -> None:
    _read_confluent_settings(fields, findings, fields.require_text("subject_name"))


def _read_confluent_registry(fields: Fields, findings: Findings) -> None:
    _read_confluent_settings(fields, findings, None)


def _read_confluent_settings(fields: Fields, findings: Findings, subject: str | None) -> None:
    """The level, the mode and further settings, of a subject or of the whole registry."""
    level, mode = fields.text("compatibility_level"), fields.text("mode")
    further = {
        "compatibility_group": fields.text("compatibility_group"),
        "alias": fields.text("alias"),
        "normalize": fields.flag("normalize"),
    }
    add_registry_settings(findings, fields.position, level, mode, subject=subject, further=further)
    fields.skip("schema_registry_cluster", "rest_endpoint", "credentials", "force")


_TYPES: Mapping[str, Callable[[Fields, Findings], None]] = {
    "kafka_topic": _read_topic,
    "kafka_acl": _read_acl,
    "kafka_quota": _read_quota,
    "kafka_user_scram_credential": _read_user,
    "confluent_kafka_topic": _read_confluent_topic,
    "confluent_kafka_acl": _read_confluent_acl,
    "confluent_schema": _read_confluent_schema,
    "confluent_subject_config": _read_confluent_subject,
    "confluent_subject_mode": _read_confluent_subject,
    "confluent_schema_registry_cluster_config": _read_confluent_registry,
    "confluent_schema_registry_cluster_mode": _read_confluent_registry,
    "kafka-connect_connector": _read_connector,
    "schemaregistry_schema": _read_schema,
}
