"""DescribeConfigs, IncrementalAlterConfigs and ListConfigResources for any kind of resource, and
DescribeClientQuotas and AlterClientQuotas (KIP-546): quota entities and the keys set on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafka.protocol.admin import (
    AlterClientQuotasRequest,
    DescribeClientQuotasRequest,
    DescribeConfigsRequest,
    IncrementalAlterConfigsRequest,
    ListConfigResourcesRequest,
)
from msgspec import Struct

from kafkaform.core.value import FrozenMap

from .answers import ConfigEntry, ItemAnswer, ItemAnswers, Synonym
from .client import RequestUnanswered, Wire

TYPES = {"topic": 2, "broker": 4, "broker_logger": 8, "client_metrics": 16, "group": 32}
_RESOURCES = {code: name for name, code in TYPES.items()}
SET, DELETE = 0, 1


class ResourceNames(Struct, frozen=True):
    """The names of a listing."""

    code: int
    """0, or why there are no names."""
    names: tuple[str, ...]


def describe_configs(
    wire: Wire,
    resource: str,
    names: Sequence[str],
    timeout: float,
    *,
    keys: Sequence[str] | None = None,
    synonyms: bool = False,
    docs: bool = False,
    source: int | None = None,
    node: str | None = None,
) -> Mapping[str, ItemAnswer]:
    """The configs of these resources, by name. keys: only these; synonyms: include the values of
    the weaker levels; docs: include type and documentation; source: keep only entries from there;
    node: the broker to ask; timeout: seconds."""
    # A broker reports its own configs only if it is asked itself (KIP-133): no other one knows its
    # server.properties.
    row = DescribeConfigsRequest.DescribeConfigsResource
    request = DescribeConfigsRequest(
        resources=[
            row(
                resource_type=TYPES[resource],
                resource_name=name,
                configuration_keys=None if keys is None else list(keys),
            )
            for name in names
        ],
        include_synonyms=synonyms,
        include_documentation=docs,
        min_version=3 if docs else 1,  # KIP-569 added type and documentation
    )
    response = wire.send(request, timeout, node)
    return {
        row.resource_name: ItemAnswer(
            row.error_code,
            row.error_message,
            configs=tuple(
                _parse_entry(entry)
                for entry in row.configs
                if source in (None, entry.config_source)
            ),
        )
        for row in response.results
    }


def alter_configs(
    wire: Wire,
    changes: Sequence[Mapping[str, Any]],
    timeout: float,
    *,
    validate_only: bool,
    node: str | None = None,
) -> ItemAnswers:
    """Set and remove configs, all or none of each resource. changes: payloads with resource, name,
    set and delete; timeout: seconds on our side, because the request has no such field. The answers
    are keyed by resource and name, since a topic and a group can have the same name."""
    # Never AlterConfigs (33): it replaces all configs of a resource, so that it also removes those
    # that others set since we read them (KIP-339).
    request = IncrementalAlterConfigsRequest(
        resources=[_make_alteration(change) for change in changes],
        validate_only=validate_only,
    )
    response = wire.send(request, timeout, node)
    return ItemAnswers(
        {
            (_RESOURCES.get(row.resource_type), row.resource_name): ItemAnswer(
                row.error_code, row.error_message
            )
            for row in response.responses
        },
        response.throttle_time_ms / 1000,
    )


def list_config_resources(wire: Wire, resource: str, timeout: float) -> ResourceNames:
    """Names of the resources of this kind that have configs. timeout: seconds. Raises Unsupported
    if the broker cannot list this kind."""
    # Version 0 lists client metrics only (KIP-714), version 1 all types, since Kafka 4.1
    # (KIP-1142).
    if resource == "client_metrics":
        request = ListConfigResourcesRequest(max_version=0)
    else:
        request = ListConfigResourcesRequest(resource_types=[TYPES[resource]], min_version=1)
    response = wire.send(request, timeout)
    names = tuple(row.resource_name for row in response.config_resources or ())
    return ResourceNames(response.error_code, names)


def _make_alteration(change: Mapping[str, Any]) -> Any:
    row = IncrementalAlterConfigsRequest.AlterConfigsResource
    operations = [
        *((key, SET, value) for key, value in sorted(change["set"].items())),
        *((key, DELETE, None) for key in change["delete"]),
    ]
    return row(
        resource_type=TYPES[change["resource"]],
        resource_name=change["name"],
        configs=[
            row.AlterableConfig(name=key, config_operation=operation, value=value)
            for key, operation, value in operations
        ],
    )


def _parse_entry(row: Any) -> ConfigEntry:
    """One config of an answer. Raises RequestUnanswered for an entry without a name, which the
    decoder lets pass."""
    if row.name is None:
        raise RequestUnanswered("an answer with a config that has no name", timed_out=False)
    synonyms = tuple(Synonym(s.name, s.value, s.source) for s in row.synonyms or ())
    # Synonyms are listed by strength, the entry itself first. Its own name comes again for each
    # level that sets it, so the value below is the first one under another name.
    below = next((item.value for item in synonyms if item.name != row.name), None)
    return ConfigEntry(
        row.name,
        row.value,
        row.config_source,
        below,
        row.is_sensitive,
        row.read_only,
        synonyms,
        row.config_type or 0,
        row.documentation or "",
    )


# ── quotas ──────────────────────────────────────────────────────────────────────────────


class QuotaRow(Struct, frozen=True):
    """The limits of one entity."""

    entity: Mapping[str, str | None]
    """`user`, `client-id` or `ip` -> its name, None for the default one."""
    # The check of the controller (value <= 0) lets NaN and infinity pass, and stores them. Nothing
    # is greater than such a limit, so it limits nobody.
    values: Mapping[str, float]
    """Quota key -> the stored number."""


class QuotaRows(Struct, frozen=True):
    """The quotas of a cluster."""

    code: int
    """0, or why they are unknown. A refusal has no rows, which does not mean that none are set."""
    message: str | None
    rows: tuple[QuotaRow, ...]


class QuotaAnswers(Struct, frozen=True):
    """The answers for entities."""

    items: Mapping[FrozenMap, ItemAnswer]
    throttle: float
    """Seconds that the broker asks us to wait."""


def describe_quotas(wire: Wire, timeout: float, node: str | None = None) -> QuotaRows:
    """All quotas of the cluster. timeout: seconds on our side, because the request has no such
    field; node: the broker to ask, None for any."""
    # No component and not strict means no filter at all. A filter by user or client-id would never
    # return entities of ip (KIP-612), since an entity cannot have both.
    response = wire.send(DescribeClientQuotasRequest(components=[], strict=False), timeout, node)
    return QuotaRows(
        response.error_code,
        response.error_message,
        tuple(
            QuotaRow(_parse_entity(row), {item.key: item.value for item in row.values})
            for row in response.entries or ()
        ),
    )


def alter_quotas(
    wire: Wire, changes: Sequence[Mapping[str, Any]], timeout: float, *, validate_only: bool
) -> QuotaAnswers:
    """Set and remove limits, all or none of each entity. changes: payloads with entity, set and
    remove; timeout: seconds on our side, because the request has no such field."""
    request = AlterClientQuotasRequest(
        entries=[_make_entry(change) for change in changes], validate_only=validate_only
    )
    response = wire.send(request, timeout)
    return QuotaAnswers(
        {
            FrozenMap(_parse_entity(row)): ItemAnswer(row.error_code, row.error_message)
            for row in response.entries
        },
        response.throttle_time_ms / 1000,
    )


def _make_entry(change: Mapping[str, Any]) -> Any:
    row = AlterClientQuotasRequest.EntryData
    return row(
        entity=[
            row.EntityData(entity_type=entity_type, entity_name=name)
            for entity_type, name in change["entity"].items()
        ],
        ops=[
            *(
                row.OpData(key=key, value=float(value), remove=False)
                for key, value in sorted(change["set"].items())
            ),
            # KIP-248 removed a limit by setting NaN. Today NaN would be stored; the flag removes.
            *(row.OpData(key=key, value=0.0, remove=True) for key in change["remove"]),
        ],
    )


def _parse_entity(row: Any) -> dict[str, str | None]:
    return {component.entity_type: component.entity_name for component in row.entity}
