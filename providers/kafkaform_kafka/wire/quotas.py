"""DescribeClientQuotas and AlterClientQuotas (KIP-546): quota entities and the keys set on them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from kafka.protocol.admin import AlterClientQuotasRequest, DescribeClientQuotasRequest
from msgspec import Struct

from kafkaform.core.value import FrozenMap

from .answers import ItemAnswer
from .client import Wire


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
