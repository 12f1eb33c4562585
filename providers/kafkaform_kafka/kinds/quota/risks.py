"""Finds the risks of quota changes: which clients are slowed down.

A cluster does not report how much a client uses (only JMX does), so a limit is compared with the
previous one, never with the traffic.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from decimal import Decimal

from kafkaform.core.change import Action, Change, Path
from kafkaform.core.legacy import Risk, RiskKind
from kafkaform.core.resource import Facts
from kafkaform.core.text.quantity import render_with_exact

from .keys import QUOTA_KEYS

_CHANGES = (Action.CREATE, Action.UPDATE)


def find_quota_risks(change: Change, _: Facts) -> Sequence[Risk]:
    """A risk for each limit that is new or lower than before."""
    return tuple(_list_risks(change)) if change.action in _CHANGES else ()


def find_quota_unit(path: Path) -> str:
    """`bytes/s` for byte rates, empty for others."""
    key = QUOTA_KEYS.get(path[1]) if len(path) == 2 and path[0] == "config" else None
    return key.unit if key is not None and key.unit == "bytes/s" else ""


def _list_risks(change: Change) -> Iterator[Risk]:
    for item in change.paths:
        if len(item.path) != 2 or item.path[0] != "config" or item.after is None:
            continue
        before, after = item.before, Decimal(str(item.after))
        if before is not None and after >= Decimal(str(before)):
            continue
        was = (
            "this entity had no own limit before"
            if before is None
            else f"{_render_limit(item.path[1], before)} before"
        )
        limit = _render_limit(item.path[1], item.after)
        text = f"{item.path[1]}: clients over {limit} are throttled ({was})"
        yield Risk(RiskKind.THROUGHPUT, text, item.path)


def _render_limit(name: str, value: object) -> str:
    key = QUOTA_KEYS.get(name)
    unit = key.unit if key is not None else ""
    if unit == "bytes/s":
        return render_with_exact(value, unit)
    return f"{value} {unit}".rstrip()
