"""Strimzi: `KafkaTopic`, `KafkaUser` and `KafkaConnector` resources, as files or as
`kubectl get -o yaml` prints them.

Source: strimzi-kafka-operator 1.1.0, API versions v1 and v1beta2: `KafkaTopicSpec`,
`TopicOperatorUtil` (names, defaults, configs as texts, `strimzi.io/managed`), `KafkaUserModel`
(the name of a user with TLS is CN=NAME), `SimpleAclRule`, `QuotaUtils`, `ScramCredentialsOperator`
(SCRAM-SHA-512 with 4096 iterations).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import ForeignFiles

from .declarations import (
    FACTOR,
    YAML,
    add_acl,
    add_connector,
    add_quota,
    add_topic,
    add_user,
    make_acl,
    read_files,
)
from .documents import YamlNode
from .fields import Fields, Findings, Unfit, read_decimal, read_text

GROUP = "kafka.strimzi.io/"
MANAGED = "strimzi.io/managed"
CLUSTER = "strimzi.io/cluster"
ITERATIONS = 4096
_LIMITS: Mapping[str, str] = {
    "producerByteRate": "producer_byte_rate",
    "consumerByteRate": "consumer_byte_rate",
    "requestPercentage": "request_percentage",
    "controllerMutationRate": "controller_mutation_rate",
}


def read_declarations(paths: Sequence[Path]) -> ForeignFiles:
    """Read manifests, and all manifests below folders. Raises UsageError."""
    findings = Findings(paths)
    for name, content in read_files(paths, YAML, findings.omit):
        for document in findings.read_documents(name, content, "strimzi"):
            for node in _list_resources(document):
                with findings.contain():
                    _read_resource(node, findings)
    return findings.finish()


def _list_resources(document: YamlNode) -> Iterator[YamlNode]:
    """The resources of a document: itself, or the items of a list."""
    kind = document.get("kind")
    if kind is not None and kind.kind == "text" and kind.value.endswith("List"):
        items = document.get("items")
        if items is not None and items.kind == "list":
            yield from items.value
            return
    yield document


def _read_resource(node: YamlNode, findings: Findings) -> None:
    fields = Fields(node, findings, "a resource")
    kind, version = fields.text("kind") or "", fields.text("apiVersion") or ""
    read_kind = _KINDS.get(kind) if version.startswith(GROUP) else None
    if read_kind is None:
        title = f"a resource of the kind {kind!r}" if kind else "a document without a kind"
        advice = "only KafkaTopic, KafkaUser and KafkaConnector are taken over"
        if kind == "Template" and version.startswith("template.openshift.io/"):
            advice = "render it first with `oc process -f FILE`, and take over the result"
        findings.omit(node.position, f"{title}: {advice}")
        return
    name, managed, cluster = _read_metadata(fields, kind)
    # Of a connector, it is the Connect cluster; topics and users are all in one Kafka cluster.
    findings.system = cluster if kind == "KafkaConnector" else ""
    fields.title = f"{kind} {name}"
    fields.skip("status")
    if not managed:
        findings.omit(
            node.position, f"{fields.title}: {MANAGED} is false, so Strimzi leaves it alone"
        )
        return
    read_kind(fields, name, findings)
    fields.close()


def _read_metadata(fields: Fields, kind: str) -> tuple[str, bool, str]:
    """The name of the resource, whether the operator manages it, and the cluster in its label."""
    metadata = fields.table("metadata", f"the metadata of a {kind}")
    if metadata is None:
        return fields.require_text("metadata"), False, ""
    # Labels, versions and the like are about Kubernetes, not about Kafka.
    notes = metadata.entries("annotations")
    managed = read_text(notes[MANAGED], MANAGED).lower() if MANAGED in notes else "true"
    labels = metadata.entries("labels")
    cluster = read_text(labels[CLUSTER], CLUSTER) if CLUSTER in labels else ""
    return metadata.require_text("name"), managed != "false", cluster


def _read_topic(fields: Fields, name: str, findings: Findings) -> None:
    spec = fields.table("spec")
    if spec is None:
        add_topic(findings, fields.position, name)
        return
    add_topic(
        findings,
        fields.position,
        spec.text("topicName") or name,
        spec.number("partitions"),
        spec.number("replicas"),
        spec.config("config"),
        spec.trace({"partitions": "partitions", "replicas": FACTOR, "config": "config"}),
    )
    spec.close()


def _read_user(fields: Fields, name: str, findings: Findings) -> None:
    spec = fields.table("spec")
    if spec is None:
        return
    login = spec.table("authentication")
    type = login.require_text("type") if login is not None else ""
    user = name
    if login is not None:
        # The operator reads the password from a Secret; nobody needs its name any more.
        login.skip("password", "validityDays", "renewalDays", "certificateExpirySecs")
        user = f"CN={name}" if type in ("tls", "tls-external") else name
        if type == "scram-sha-512":
            add_user(findings, login.position, name, "SCRAM-SHA-512", ITERATIONS)
        elif type == "tls":
            findings.omit(
                login.position, f"{fields.title}: its certificate is not an object of Kafka"
            )
        elif type != "tls-external":
            findings.omit(
                login.position, f"{fields.title}: authentication of the type {type!r} is not known"
            )
        login.close()
    _read_acls(spec, user, findings)
    _read_quotas(spec, user, findings)
    spec.leave("it is about the Secret in Kubernetes", "template")
    spec.close()


def _read_acls(spec: Fields, user: str, findings: Findings) -> None:
    authorization = spec.table("authorization")
    if authorization is None:
        return
    if (type := authorization.require_text("type")) != "simple":
        findings.omit(
            authorization.position, f"{spec.title}: authorization of the type {type!r} is not known"
        )
        return
    for node in authorization.items("acls"):
        rule = Fields(node, findings, f"{spec.title}: an ACL")
        resource = rule.table("resource")
        if resource is None:
            rule.require_text("resource")
            continue
        type = resource.require_text("type")
        name = "" if type == "cluster" else resource.require_text("name")
        pattern = resource.text("patternType") or "literal"
        # v1beta2 has one `operation` too.
        single = rule.text("operation")
        operations = rule.texts("operations") or ((single,) if single else ())
        host, permission = rule.text("host") or "*", rule.text("type") or "allow"
        for operation in operations:
            acl = make_acl(
                node.position,
                f"User:{user}",
                operation,
                type,
                name,
                pattern="literal" if type == "cluster" else pattern,
                host=host,
                permission=permission,
            )
            add_acl(findings, node.position, acl)
        resource.close()
        rule.close()
    authorization.close()


def _read_quotas(spec: Fields, user: str, findings: Findings) -> None:
    quotas = spec.table("quotas")
    if quotas is None:
        return
    limits = {
        key: read_decimal(node, f"{spec.title}: {name}")
        for name, key in _LIMITS.items()
        if (node := quotas.find(name)) is not None
    }
    if limits:
        add_quota(findings, quotas.position, FrozenMap(limits), user=user)
    quotas.close()


def _read_connector(fields: Fields, name: str, findings: Findings) -> None:
    spec = fields.table("spec")
    if spec is None:
        raise Unfit(fields.position, f"{fields.title}: spec is missing")
    config = dict(spec.config("config", variables=False))
    if (tasks := spec.number("tasksMax")) is not None:
        config["tasks.max"] = str(tasks)
    # v1beta2 has `pause` too, which `state` replaces.
    state = spec.text("state") or ("paused" if spec.flag("pause") else None)
    positions = spec.trace({"config": "config", "tasksMax": "config.tasks.max", "class": "class"})
    class_ = spec.require_text("class")
    add_connector(
        findings, fields.position, name, config, class_=class_, state=state, positions=positions
    )
    spec.leave("the operator restarts it, not Kafka Connect", "autoRestart")
    spec.leave("a version of the plugin is chosen by the workers", "version")
    spec.skip("listOffsets", "alterOffsets")
    spec.close()


_KINDS = {
    "KafkaTopic": _read_topic,
    "KafkaUser": _read_user,
    "KafkaConnector": _read_connector,
}
