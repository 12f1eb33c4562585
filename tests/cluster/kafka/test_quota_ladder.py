"""All eight levels of quotas on a broker of their own, because three of them concern everybody."""

from __future__ import annotations

import os
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest

from kafkaform.core.resource import Depth
from kafkaform_kafka.kinds.quota import resource_type as quotas
from kafkaform_kafka.kinds.quota.limits import find_applying

from ...kit.kafka.clusters import own_sandbox
from ...kit.kafka.quota_user import Entity, account, limits, opened
from .test_quotas import RATE, enforced

MINE = "mine"
UPWARDS: tuple[tuple[int, Entity], ...] = (
    (8, {"client-id": None}),
    (7, {"client-id": MINE}),
    (6, {"user": None}),
    (5, {"user": None, "client-id": None}),
    (4, {"user": None, "client-id": MINE}),
    (3, {"user": MINE}),
    (2, {"user": MINE, "client-id": None}),
    (1, {"user": MINE, "client-id": MINE}),
)
"""From the least specific level up; MINE stands for the user or client id of the test."""


@pytest.fixture(scope="module")
def box(own_brokers: None) -> Iterator[Any]:
    with own_sandbox(f"ladder-{os.getpid()}") as made:
        yield made


def test_the_broker_goes_by_each_of_the_eight_levels(box: Any) -> None:
    """Each level that is added takes over from all below it, here and at the broker."""
    with limits(box) as quota:
        for count, (number, _) in enumerate(UPWARDS, 1):
            # A bucket remembers what was spent under another rate, so each step has its own user.
            name = f"climber-{number}"
            names = {"user": name, "client-id": name}
            given = [
                {kind: names[kind] if who == MINE else None for kind, who in entity.items()}
                for _, entity in UPWARDS[:count]
            ]
            rates = [2**power for power in range(count)]
            quota.set(*((e, {RATE: float(r)}) for e, r in zip(given, rates, strict=True)))
            with account(box, name) as user, opened(user) as session:
                seen = quotas.index_quotas(session.sweep(quotas.KIND, Depth.FULL))
                found = find_applying(RATE, name, name, seen)
                assert found is not None
                assert (found.level.number, found.value) == (number, Decimal(rates[-1]))
                assert 0.5 < enforced(user, name, rates[-1]) <= 1, number
