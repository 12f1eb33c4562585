"""Single values of a document as text for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafkaform.core.text import render_amount, render_quantity, render_with_exact
from kafkaform.provider.commands import NOTHING, cell

from ..kinds.quota.limits import find_quota_unit
from ..protocol.config_keys import (
    ALL_TOPIC_KEYS,
    GROUP_KEYS,
    METRICS_KEYS,
    find_broker_key,
    parse_integer,
)

_LIMITS = ("retention.ms", "retention.bytes")
_COARSE: Mapping[str, int] = {".hours": 3_600_000, ".minutes": 60_000, ".seconds": 1000}
"""How the names of brokers' times in other units end -> the milliseconds of the unit."""


def size(number: int | None) -> str:
    """Bytes that were measured, in the largest unit of which there is at least one."""
    return NOTHING if number is None else render_amount(number, "bytes")


def config_text(name: str, value: str) -> str:
    """The value of a config: `30 d (2592000000)` for a time or a size, else as it is."""
    unit = _find_unit(name)
    # -1 stands for "no limit" only in the configs of retention: for a socket's buffer, it is the
    # system's default.
    if not unit or (value.startswith("-") and not name.endswith(_LIMITS)):
        return value
    for ending, factor in _COARSE.items():
        if name.endswith(ending):
            number = parse_integer(value)
            amount = render_quantity(number * factor, "ms") if number else ""
            return f"{amount} ({value})" if amount else value
    return render_with_exact(value, unit)


def limit_text(key: str, value: Any) -> str:
    """The value of a quota: `1 MiB/s (1048576)` for a rate of bytes, else the number."""
    unit = find_quota_unit(("config", key))
    return render_with_exact(value, unit) if unit and value is not None else cell(value)


def _find_unit(name: str) -> str:
    # A config that several kinds of objects have is the same setting, so one lookup serves all.
    for table in (ALL_TOPIC_KEYS, GROUP_KEYS, METRICS_KEYS):
        if name in table:
            return table[name].unit
    row = find_broker_key(name)
    if row is None or row.key.kind not in ("int", "long", "short"):
        return ""
    return "ms" if name.endswith(tuple(_COARSE)) else row.key.unit


def count(number: int, noun: str) -> str:
    """`1 topic`, `1,200 topics`."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def entity_text(entity: Mapping[str, str | None]) -> str:
    """`user "ci", client-id default`."""
    return ", ".join(
        f"{kind} default" if name is None else f'{kind} "{name}"'
        for kind, name in sorted(entity.items(), reverse=True)
    )
