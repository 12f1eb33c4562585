"""The document and the page of `describe features` (KIP-584, KIP-1022)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from kafkaform.core.resource import Fault
from kafkaform.core.value import FrozenMap, Value
from kafkaform.provider.page import Grid, Page

from ..kinds.commanded.requests import find_feature_fault
from ..kinds.context import attempt
from ..protocol.cluster_facts import (
    FEATURES,
    METADATA_VERSION,
    UNKNOWN,
    find_level_release,
    render_level,
)
from ..wire.cluster import FeatureRow, read_features
from .cells import cell, count
from .source import DescribeQuery, DescribeSource, make_read_error

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
        "brokers": tuple(_document_broker(node, row) for node, row in rows.items()),
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


def _document_broker(node: str, row: FeatureRow | Fault) -> FrozenMap:
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
