"""DescribeConfigs and IncrementalAlterConfigs for any kind of resource."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafka.protocol.admin import DescribeConfigsRequest, IncrementalAlterConfigsRequest

from .answers import Answer, Answers, Entry
from .client import Wire

TYPES = {"topic": 2, "broker": 4, "broker_logger": 8, "client_metrics": 16, "group": 32}
SET, DELETE = 0, 1


def describe_configs(
    wire: Wire,
    resource: str,
    names: Sequence[str],
    timeout: float,
    *,
    keys: Sequence[str] | None = None,
    synonyms: bool = False,
    node: str | None = None,
) -> Mapping[str, Answer]:
    """The configs of these resources by name. keys: only these; synonyms: fill in what lies below;
    node: the broker to ask, needed for a broker's own configs; timeout: seconds."""
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
        include_documentation=False,
        min_version=1,
    )
    response = wire.send(request, timeout, node)
    return {
        row.resource_name: Answer(
            row.error_code, row.error_message, configs=tuple(map(_entry, row.configs))
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
) -> Answers:
    """Set and remove configs, all or none of each resource. changes: payloads with resource,
    name, set and delete; timeout: seconds, the client's own: the request carries none."""
    request = IncrementalAlterConfigsRequest(
        resources=[_alteration(change) for change in changes],
        validate_only=validate_only,
    )
    response = wire.send(request, timeout, node)
    return Answers(
        {
            row.resource_name: Answer(row.error_code, row.error_message)
            for row in response.responses
        },
        response.throttle_time_ms / 1000,
    )


def _alteration(change: Mapping[str, Any]) -> Any:
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


def _entry(row: Any) -> Entry:
    """Synonyms are what would take effect in turn, the entry itself first."""
    below = next((item.value for item in row.synonyms or () if item.name != row.name), None)
    return Entry(row.name, row.value, row.config_source, below)
