"""The time until which a delegation token is valid, as it is shown after it was changed."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.secret import Secret
from kafkaform_kafka.kinds.commanded import requests
from kafkaform_kafka.kinds.commanded.requests import send_renewals
from kafkaform_kafka.kinds.context import ClusterContext, Order
from kafkaform_kafka.kinds.kind import RENEW_TOKEN
from kafkaform_kafka.wire.security import TokenRow, TokenRows

OLD = TokenRow("id", "User:a", "User:a", (), 1_000, 60_000, 900_000, Secret("AAAA"))


@pytest.fixture
def shown(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The times that brokers show, one for each look; the last one stays."""
    times: list[int] = []

    def describe(*_: object) -> TokenRows:
        expires = times.pop(0) if len(times) > 1 else times[0]
        return TokenRows(0, (replace(OLD, expires=expires),))

    monkeypatch.setattr(requests, "describe_tokens", describe)
    monkeypatch.setattr(requests, "_PAUSE", 0.001)
    return times


def context(timeout: float = 5.0) -> ClusterContext:
    """A session whose broker acknowledges that a token expires at 120,000."""
    answer = SimpleNamespace(error_code=0, expiry_timestamp_ms=120_000)
    settings: Any = SimpleNamespace(instance="kafka", timeout=timeout)
    wire: Any = SimpleNamespace(send=lambda *_: answer)
    return ClusterContext(settings, wire, facts=SimpleNamespace())  # type: ignore[arg-type]


def renew(where: ClusterContext) -> None:
    payload = {"token_id": "id", "period": "2min"}
    step: Any = SimpleNamespace(request=RENEW_TOKEN, payload=payload)
    (reply,) = send_renewals(where, Order((step,), dry=False))
    assert reply.fault is None


def test_a_renewed_token_does_not_show_its_old_time(shown: list[int]) -> None:
    """Two of eight renewals printed the time of before: the broker that was asked was late."""
    where = context()
    shown += [60_000, 60_000, 60_000, 120_000]
    renew(where)
    (row,) = requests.list_rows(where)  # type: ignore[misc]  # it is no fault
    assert row.expires == 120_000


def test_what_somebody_else_set_meanwhile_is_shown_at_once(shown: list[int]) -> None:
    """Only the time of before is late; any other one is news."""
    where = context()
    shown += [60_000, 300_000, 120_000]
    renew(where)
    (row,) = requests.list_rows(where)  # type: ignore[misc]
    assert row.expires == 300_000


def test_a_broker_that_stays_late_is_waited_for_within_the_timeout(shown: list[int]) -> None:
    """What it shows then is what is told."""
    where = context(timeout=0.05)
    shown += [60_000]
    renew(where)
    (row,) = requests.list_rows(where)  # type: ignore[misc]
    assert row.expires == 60_000
