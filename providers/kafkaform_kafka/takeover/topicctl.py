"""topicctl: topics and ACLs as YAML files.

Source: topicctl 2.0.2: `pkg/config/topic.go` (retentionMinutes, placement), `acl.go` (defaults),
`load.go` (environment variables in files), `settings.go`.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from pathlib import Path

from kafkaform.core.value import FrozenMap, Value
from kafkaform.provider.contract import ForeignFiles

from ..kinds.topic.resource_type import KIND as TOPIC
from .declarations import FACTOR, YAML, add_acl, add_topic, make_acl, read_files
from .documents import YamlNode
from .fields import Fields, Findings, Unfit, read_number

RETENTION = "retention.ms"
_MINUTE = 60_000
_MOST_DIGITS = 30
_ARGUMENTS = {
    "partitions": "partitions",
    "replicationFactor": FACTOR,
    "settings": "config",
    "retentionMinutes": f"config.{RETENTION}",
}
"""Field -> argument of the block."""


def read_declarations(paths: Sequence[Path]) -> ForeignFiles:
    """Read files, and all files below folders. Raises UsageError."""
    findings = Findings(paths)
    for name, content in read_files(paths, YAML, findings.omit):
        for node in findings.read_documents(name, content, "topicctl"):
            with findings.contain():
                _read_document(Fields(node, findings, "a document"), findings)
    return findings.finish()


def _read_document(document: Fields, findings: Findings) -> None:
    spec = document.table("spec", "spec")
    meta = document.table("meta", "meta")
    if spec is None or meta is None:
        raise Unfit(document.position, "a document without meta and spec, so not topicctl's")
    if "bootstrapAddrs" in spec.names:
        # It can contain a password, so nothing of it is looked at.
        findings.omit(document.position, "a cluster: its connection belongs in the provider block")
        return
    name = meta.require_text("name")
    findings.system = _read_meta(meta)
    if "acls" in spec.names:
        spec.title = f"ACLs {name}"
        _read_acls(spec, findings)
    else:
        spec.title = f"topic {name}"
        _read_topic(spec, document.position, name, findings)
    spec.close()
    document.close()


def _read_meta(meta: Fields) -> str:
    """The cluster. Regions and the like are for people."""
    cluster = meta.text("cluster") or ""
    meta.skip("region", "environment", "description", "labels", "consumers")
    meta.close()
    return cluster


def _read_topic(spec: Fields, position: str, name: str, findings: Findings) -> None:
    partitions, replicas = spec.number("partitions"), spec.number("replicationFactor")
    settings = _read_settings(spec)
    if minutes := spec.number("retentionMinutes"):
        settings[RETENTION] = str(minutes * _MINUTE)
    for key, value in settings.items():
        _refuse_variable(position, f"{spec.title}: {key}", value)
    _refuse_variable(position, spec.title, name)
    spec.leave("throttles and batches belong to a run, not to a topic", "migration")
    assignment = _read_placement(spec)
    config = FrozenMap(settings)
    positions = spec.trace(_ARGUMENTS)
    if not assignment:
        add_topic(findings, position, name, partitions, replicas, config, positions)
        return
    arguments: dict[str, Value] = {"name": name, "replica_assignment": assignment}
    findings.add(
        TOPIC, FrozenMap(arguments | ({"config": config} if config else {})), position, positions
    )


def _read_settings(spec: Fields) -> dict[str, str]:
    texts = spec.config("settings")
    # topicctl writes numbers that are not whole with two decimals.
    rounded = {
        key: f"{number:.2f}"
        for key, node in spec.entries("settings").items()
        if node.kind == "float" and "." in node.value
        for number in (Decimal(node.value),)
        # A power of ten with a large exponent has as many digits.
        if number.is_finite() and number.adjusted() < _MOST_DIGITS
    }
    return {**texts, **rounded}


def _refuse_variable(position: str, title: str, text: str) -> None:
    # topicctl expands it from its environment, where passwords are too.
    if "$" in text:
        raise Unfit(position, f"{title}: environment variables are not expanded")


def _read_placement(spec: Fields) -> tuple[tuple[int, ...], ...]:
    """The brokers of each partition, if the file lists them; nothing for the other strategies."""
    placement = spec.table("placement", f"{spec.title}: placement")
    if placement is None:
        return ()
    strategy = placement.text("strategy") or "any"
    rows = placement.items("staticAssignments")
    placement.skip("picker", "staticRackAssignments")
    placement.close()
    if strategy == "static":
        return tuple(tuple(_read_row(row, spec.title)) for row in rows)
    if strategy != "any":
        spec.findings.omit(
            placement.locate("strategy"),
            f"{spec.title}: the strategy {strategy}: replicas stay where they are, and `kafkaform "
            "propose placement` computes a placement",
        )
    return ()


def _read_row(row: YamlNode, title: str) -> list[int]:
    if row.kind != "list":
        raise Unfit(row.position, f"{title}: staticAssignments has a row that is no list")
    return [read_number(broker, f"{title}: a broker") for broker in row.value]


def _read_acls(spec: Fields, findings: Findings) -> None:
    for node in spec.items("acls"):
        with findings.contain():
            rule = Fields(node, findings, f"{spec.title}: an ACL")
            resource = rule.table("resource")
            if resource is None:
                raise Unfit(rule.position, f"{rule.title}: resource is missing")
            name, principal = resource.require_text("name"), resource.require_text("principal")
            for text in (name, principal):
                _refuse_variable(rule.position, rule.title, text)
            for operation in rule.texts("operations"):
                acl = make_acl(
                    rule.position,
                    principal,
                    operation,
                    resource.require_text("type"),
                    name,
                    pattern=resource.require_text("patternType"),
                    host=resource.text("host") or "*",
                    permission=resource.text("permission") or "Allow",
                )
                add_acl(findings, rule.position, acl)
            resource.close()
            rule.close()
