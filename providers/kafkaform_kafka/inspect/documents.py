"""The documents of `kafkaform describe`, the same for people and for programs; and the page of
`describe features` (KIP-584, KIP-1022).

A document says how far it can be trusted. `complete` is false if Kafka may have omitted what we are
not allowed to see, and `hidden` says what that can be. docs/commands.md lists the fields.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import partial

from kafkaform.core.errors import KafkaformError, UsageError
from kafkaform.core.resource import CoverageKind, Depth, Fault, Sweep
from kafkaform.core.text import Grid, Page
from kafkaform.core.value import FrozenMap, Value
from kafkaform.provider.commands import cell
from kafkaform.provider.contract import Session

from ..kinds.commanded.requests import find_feature_fault
from ..kinds.context import (
    ClusterContext,
    attempt,
    find_answering_node,
    find_controller,
    split_chunks,
)
from ..kinds.kind import ResourceKind
from ..kinds.topic.placement import REPLICAS
from ..kinds.topic.requests import NAMES_AT_ONCE
from ..protocol.cluster_facts import (
    FEATURES,
    METADATA_VERSION,
    UNKNOWN,
    KafkaFacts,
    find_level_release,
    find_release,
    is_newer,
    render_level,
)
from ..protocol.config_keys import THROTTLES
from ..protocol.faults import fault_of
from ..resource_kinds import KINDS
from ..session import KafkaSession
from ..wire import cluster as cluster_wire
from ..wire import describe as wire
from ..wire.cluster import FeatureRow, read_features
from ..wire.configs import describe_configs
from ..wire.describe import BrokerRow, DescribedTopic, ResourceRow
from .broker_disks import document_disks
from .cells import count
from .configs import document_configs, read_config_rows
from .source import (
    TOPICS_HIDDEN,
    DescribeQuery,
    DescribeSource,
    add_suggestion,
    list_topic_names,
    make_read_error,
)

Range = tuple[int, int]
# A broker that has just stopped is listed until it is fenced (broker.session.timeout.ms).
PATIENCE_SECONDS = 3.0
"""How long to wait until a broker says what it supports."""


def document_features(source: DescribeSource, _: DescribeQuery) -> dict[str, Value]:
    """The members of the document `features`. Raises KafkaformError if the levels are unknown."""
    controller = source.require("ApiVersions", read_features)
    fault = find_feature_fault(controller)
    if fault is not None:
        raise make_read_error(fault)
    rows = {node: _ask_broker(source, node) for node in source.context.facts.nodes}
    ranges = [row.supported for row in (controller, *rows.values()) if isinstance(row, FeatureRow)]
    names = sorted({*controller.finalized, *(name for supported in ranges for name in supported)})
    return {
        "finalized_epoch": controller.epoch,
        "features": tuple(_document_feature(name, controller, ranges) for name in names),
        "brokers": tuple(_document_broker_versions(node, row) for node, row in rows.items()),
        "complete": not any(isinstance(row, Fault) for row in rows.values()),
        "hidden": None,
    }


def _ask_broker(source: DescribeSource, node: str) -> FeatureRow | Fault:
    context = source.context
    patience = min(context.timeout, PATIENCE_SECONDS)
    request = partial(read_features, context.wire, patience, node)
    return attempt("ApiVersions", request, node)


def _document_feature(
    name: str, controller: FeatureRow, brokers: Sequence[Mapping[str, Range]]
) -> FrozenMap:
    level = controller.finalized.get(name, 0)
    # A broker that does not name a feature supports only level 0 of it (QuorumFeatures.DISABLED).
    ranges = [ranges.get(name, (0, 0)) for ranges in brokers]
    low, high = max(low for low, _ in ranges), min(high for _, high in ranges)
    return FrozenMap(
        name=name,
        level=level,
        release=find_level_release(level) if name == METADATA_VERSION else None,
        supported=FrozenMap(min=low, max=high) if low <= high else None,
        raise_to=high if high > level else None,
        enables=FEATURES.get(name, UNKNOWN).enables,
    )


def _document_broker_versions(node: str, row: FeatureRow | Fault) -> FrozenMap:
    if isinstance(row, Fault):
        return FrozenMap(id=int(node), supported=None)
    supported = {
        name: FrozenMap(min=low, max=high) for name, (low, high) in sorted(row.supported.items())
    }
    return FrozenMap(id=int(node), supported=FrozenMap(supported))


# ── the page ────────────────────────────────────────────────────────────────────────────


def render_features(document: FrozenMap) -> Page:
    """A row for each feature, what brokers support if they differ, and how to raise levels."""
    features = document["features"]
    head = ("Feature", "Level", "All brokers support", "Raise to", "Enables")
    yield Grid((head, *map(_render_feature, features)))
    yield from _render_brokers(document["brokers"])
    yield f"Finalized epoch {document['finalized_epoch']}."
    higher = [feature for feature in features if feature["raise_to"] is not None]
    # A command is easily copied, so none is shown that cannot be taken back.
    reasons = {
        feature["name"]: FEATURES.get(feature["name"], UNKNOWN).one_way for feature in higher
    }
    words = [
        f"{feature['name']}={feature['raise_to']}"
        for feature in higher
        if not reasons[feature["name"]]
    ]
    if words:
        yield f"To raise them: `kafkaform alter features {' '.join(words)}`."
        yield "The controllers must support the levels too: the dry run asks them."
    for name, reason in reasons.items():
        if reason:
            yield f"{name} can be raised, but {reason}."


def _render_feature(feature: FrozenMap) -> tuple[str, ...]:
    name = feature["name"]
    higher = feature["raise_to"]
    return (
        name,
        render_level(name, feature["level"]),
        _render_range(feature["supported"]) or "no common level",
        cell(None) if higher is None else render_level(name, higher),
        feature["enables"],
    )


def _render_brokers(brokers: Sequence[FrozenMap]) -> Page:
    silent = [str(broker["id"]) for broker in brokers if broker["supported"] is None]
    if silent:
        yield f"What broker {', '.join(silent)} supports is unknown: it does not answer."
    answered = [broker for broker in brokers if broker["supported"] is not None]
    if len({broker["supported"] for broker in answered}) < 2:
        return
    yield "The brokers differ, because not all of them run the same Kafka:"
    names = sorted({name for broker in answered for name in broker["supported"]})
    rows = (
        (
            str(broker["id"]),
            *(_render_range(broker["supported"].get(name)) or cell(None) for name in names),
        )
        for broker in answered
    )
    yield Grid((("Broker", *names), *rows))
    yield f"{count(len(answered), 'broker')}."


def _render_range(supported: FrozenMap | None) -> str:
    return f"{supported['min']} to {supported['max']}" if supported else ""


# A broker that has just stopped is listed until it is fenced (broker.session.timeout.ms), and only
# this one column would wait for it.
RELEASE_SECONDS = 3.0
"""How long to wait until a broker says its release."""


def describe(
    name: str, context: ClusterContext, sweep: Callable[[str, Depth], Sweep], query: DescribeQuery
) -> FrozenMap:
    """The document of this name. Raises KafkaformError if it cannot be read at all."""
    if name in OBJECTS:
        return describe_objects(OBJECTS[name], context.facts.scope_id, sweep, query)
    source = DescribeSource(context, sweep)
    return _make_document(name, context.facts.scope_id, ASKED[name](source, query))


def read_document(session: Session, kind: str, query: DescribeQuery) -> FrozenMap:
    """The document of this name, as a session shows it. Raises KafkaformError, UsageError for a
    session of another system."""
    source = open_source(session)
    return describe(kind, source.context, source.sweep, query)


def open_source(session: Session) -> DescribeSource:
    """The parts of a session that documents are read from. Raises UsageError for a session of
    another system."""
    if not isinstance(session, KafkaSession):
        raise UsageError("only Kafka clusters can be described", "Choose a kafka provider block.")
    return DescribeSource(session.context, session.sweep)


# ── topics ──────────────────────────────────────────────────────────────────────────────


def _document_topics(source: DescribeSource, query: DescribeQuery) -> dict[str, Value]:
    rows = source.require("Metadata", wire.describe_topics, query.exact or None)
    _require_all(source, rows, query)
    visible = sorted(
        (row for row in rows if row.code == 0 and fnmatchcase(row.name, query.name)),
        key=lambda row: row.name,
    )
    sizes, size_gap = _read_sizes(source, visible) if query.sizes else ({}, None)
    throttled = _find_throttled(source, [row.name for row in visible])
    return {
        "topics": tuple(
            _document_topic(row, sizes.get(row.name), throttled.get(row.name), query)
            for row in visible
        ),
        # By name, a topic that we may not describe is an error and not omitted.
        "complete": bool(query.exact),
        "hidden": None if query.exact else TOPICS_HIDDEN,
        "sizes_unknown": size_gap,
    }


def _require_all(
    source: DescribeSource, rows: Iterable[DescribedTopic], query: DescribeQuery
) -> None:
    """Raises KafkaformError for a topic that was named and cannot be described."""
    for row in rows:
        if query.exact and row.code:
            fault = fault_of("Metadata", row.code, row.name)
            fault = add_suggestion(fault, row.name, list_topic_names(source.context))
            raise KafkaformError(f'topic "{row.name}": {fault.message}', fault.advice)


def _find_throttled(source: DescribeSource, names: Sequence[str]) -> Mapping[str, bool]:
    """Topic -> whether replicas of it are throttled; without the topics that may not be read."""
    throttled: dict[str, bool] = {}
    for chunk in split_chunks(names, NAMES_AT_ONCE):
        ask = partial(describe_configs, keys=REPLICAS)
        answers = source.ask("DescribeConfigs", ask, "topic", chunk)
        if isinstance(answers, Fault):
            continue
        for name, answer in answers.items():
            if not answer.code:
                throttled[name] = any(entry.value for entry in answer.configs or ())
    return throttled


def _document_topic(
    row: DescribedTopic, size: int | None, throttled: bool | None, query: DescribeQuery
) -> FrozenMap:
    replicas = {len(partition.replicas) for partition in row.partitions}
    values: dict[str, Value] = {
        "name": row.name,
        "topic_id": row.topic_id,
        "internal": row.internal,
        "partitions": len(row.partitions),
        "replication_factor": max(replicas, default=0),
        "fewest_replicas": min(replicas, default=0),
        "leaderless": sum(partition.leader is None for partition in row.partitions),
        "under_replicated": sum(
            len(partition.isr) < len(partition.replicas) for partition in row.partitions
        ),
        "offline_replicas": sum(len(partition.offline) for partition in row.partitions),
        "throttled": throttled,
    }
    if query.sizes:
        values["size_bytes"] = size
    if query.partitions:
        values["assignment"] = tuple(
            FrozenMap(
                partition=partition.number,
                leader=partition.leader,
                replicas=partition.replicas,
                isr=partition.isr,
                offline=partition.offline,
            )
            for partition in row.partitions
        )
    return FrozenMap(values)


def _read_sizes(
    source: DescribeSource, rows: Sequence[DescribedTopic]
) -> tuple[Mapping[str, int], str | None]:
    """Topic -> bytes on disk of all replicas, and why they are unknown."""
    counts = {row.name: len(row.partitions) for row in rows}
    totals = dict.fromkeys(counts, 0)
    for node in source.context.facts.nodes if counts else ():
        sizes = source.ask("DescribeLogDirs", cluster_wire.read_log_sizes, counts, node, node=node)
        if isinstance(sizes, Fault) or sizes is None:
            reason = sizes.message if sizes else "Describe on Cluster is missing, or a disk failed"
            return {}, f"broker {node} does not report the sizes: {reason}"
        for log in sizes:
            totals[log.topic] += log.size
    return totals, None


# ── brokers and the cluster ─────────────────────────────────────────────────────────────


def _document_brokers(source: DescribeSource, query: DescribeQuery) -> dict[str, Value]:
    rows = source.require("DescribeCluster", wire.describe_brokers)
    leader = find_controller(source.context)
    selected = (row for row in rows if fnmatchcase(str(row.id), query.name))
    brokers = tuple(_document_broker(source, row, leader) for row in selected)
    return {
        "brokers": brokers,
        "complete": True,
        "hidden": None,
        **(document_disks(source, brokers) if query.disks else {}),
    }


def _document_broker(source: DescribeSource, row: BrokerRow, leader: int | None) -> FrozenMap:
    node = str(row.id)
    versions = None
    patience = min(source.context.timeout, RELEASE_SECONDS)
    if not row.fenced:
        request = partial(cluster_wire.read_versions, source.context.wire, patience, node)
        answer = attempt("ApiVersions", request, node)
        versions = None if isinstance(answer, Fault) else answer
    return FrozenMap(
        id=row.id,
        host=row.host,
        port=row.port,
        rack=row.rack,
        fenced=row.fenced,
        controller=None if leader is None else leader == row.id,
        metadata_version_max=versions.level if versions else None,
        release=_find_known_release(versions) if versions else None,
        throttles=_read_throttles(source, node, patience) if versions else None,
    )


def _read_throttles(source: DescribeSource, node: str, patience: float) -> FrozenMap | None:
    """The replication throttles that are set on a broker; None if it does not say."""
    keys = THROTTLES["broker"]
    request = partial(describe_configs, source.context.wire, "broker", [node], patience, keys=keys)
    answers = attempt("DescribeConfigs", partial(request, node=node), node)
    answer = None if isinstance(answers, Fault) else answers.get(node)
    if answer is None or answer.code:
        return None
    return FrozenMap({entry.name: entry.value for entry in answer.configs or () if entry.value})


def _find_known_release(versions: cluster_wire.BrokerVersions) -> str | None:
    """The release of a broker, None for one that is newer than the tables, too."""
    return None if is_newer(versions.level) else find_release(versions.apis, versions.level)


def _document_cluster(source: DescribeSource, _: DescribeQuery) -> dict[str, Value]:
    facts, cluster = source.context.facts, KafkaFacts.of(source.context.facts)
    versions = source.ask("ApiVersions", cluster_wire.read_versions)
    return {
        "cluster": FrozenMap(
            id=facts.scope_id,
            controller_id=find_controller(source.context),
            brokers=len(facts.nodes),
            metadata_version=cluster.metadata_version,
            metadata_version_max=None if isinstance(versions, Fault) else versions.level,
            kafka_version=cluster.known_release,
            zookeeper=bool(cluster.zookeeper),
            features=FrozenMap() if isinstance(versions, Fault) else FrozenMap(versions.features),
            principal=facts.principal,
            rights=cluster.rights,
            authorizer=_document_authorizer(source),
        ),
        "complete": True,
        "hidden": None,
    }


_AUTHORIZER = {
    "class": "authorizer.class.name",
    "allow_if_no_acl": "allow.everyone.if.no.acl.found",
}


def _document_authorizer(source: DescribeSource) -> FrozenMap:
    """The settings of the authorizer; None for unknown ones."""
    # Brokers report both as sensitive, without a value: a broker takes every key for a password
    # that its own code does not define, and these are the authorizer's. So the provider block
    # declares them.
    declared = KafkaFacts.of(source.context.facts).authorizer
    node = find_answering_node(source.context)
    resource = read_config_rows(source, "brokers", (node,)).get(node) if node else None
    configs = resource.configs if isinstance(resource, ResourceRow) else ()
    settings = {
        row.name: row.value for row in configs if not row.sensitive and row.value is not None
    }
    allow = settings.get(_AUTHORIZER["allow_if_no_acl"])
    return FrozenMap(
        {
            "class": settings.get(_AUTHORIZER["class"]),
            "super_users": declared.get("super_users"),
            "allow_if_no_acl": declared.get("allow_if_no_acl")
            if allow is None
            else allow == "true",
        }
    )


# ── objects of one kind ─────────────────────────────────────────────────────────────────


def describe_objects(
    kind: ResourceKind, scope_id: str, sweep: Callable[[str, Depth], Sweep], query: DescribeQuery
) -> FrozenMap:
    """The document of a kind, from its listing. scope_id: the id of the cluster. Raises
    KafkaformError if the kind cannot be listed."""
    listing = sweep(kind.name, Depth.FULL)
    if listing.coverage.kind is CoverageKind.FAILED and listing.coverage.fault is not None:
        raise make_read_error(listing.coverage.fault)
    assert kind.document is not None
    complete = listing.coverage.kind is CoverageKind.COMPLETE
    rows = kind.document.rows(listing.items, query.name, query.fields)
    return _make_document(
        kind.document.name,
        scope_id,
        {
            kind.document.name: tuple(rows),
            "complete": complete,
            "hidden": None if complete else kind.document.hidden,
        },
    )


def _make_document(name: str, scope_id: str, members: Mapping[str, Value]) -> FrozenMap:
    return FrozenMap(format_version="1.0", kind=name, cluster_id=scope_id, **members)


ASKED: Mapping[str, Callable[[DescribeSource, DescribeQuery], dict[str, Value]]] = {
    "topics": _document_topics,
    "configs": document_configs,
    "brokers": _document_brokers,
    "cluster": _document_cluster,
    "features": document_features,
}
"""What is typed after `describe` -> the function that asks the cluster."""
OBJECTS: Mapping[str, ResourceKind] = {
    kind.document.name: kind for kind in KINDS if kind.document is not None
}
"""What is typed after `describe` -> the kind whose objects are listed."""
