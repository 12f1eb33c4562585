"""DescribeClientQuotas: every quota entity with every key that is set on it."""

from __future__ import annotations

from collections.abc import Mapping

from kafka.protocol.admin import DescribeClientQuotasRequest

from kafkaform.core.dataclass import dataclass

from .client import Wire


@dataclass(frozen=True, slots=True)
class QuotaRow:
    """One entity. entity: `user`, `client-id` or `ip` -> its name, None for the default one;
    values: quota key -> what is stored, which can be infinite or NaN: such a limit never bites."""

    entity: Mapping[str, str | None]
    values: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class QuotaRows:
    """code: 0, or why nothing is told; a refusal has no rows, which does not mean no quotas."""

    code: int
    message: str | None
    rows: tuple[QuotaRow, ...]


def describe_quotas(wire: Wire, timeout: float) -> QuotaRows:
    """All quotas of the cluster. timeout: seconds, the client's own: the request carries none."""
    # No component and not strict means no filter at all, so entities of ip come too.
    response = wire.send(DescribeClientQuotasRequest(components=[], strict=False), timeout)
    return QuotaRows(
        response.error_code,
        response.error_message,
        tuple(
            QuotaRow(
                {part.entity_type: part.entity_name for part in row.entity},
                {item.key: item.value for item in row.values},
            )
            for row in response.entries or ()
        ),
    )
