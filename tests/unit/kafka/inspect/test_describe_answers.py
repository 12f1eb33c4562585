"""What `describe` makes of answers, without a broker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkaform.core.resource import Coverage, CoverageKind, Depth, Identity, Observed, Sweep
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.inspect import documents as module
from kafkaform_kafka.inspect.documents import RELEASE_SECONDS, describe
from kafkaform_kafka.inspect.source import DescribeQuery
from kafkaform_kafka.wire.client import NotSent
from kafkaform_kafka.wire.describe import BrokerRow

CONTEXT: Any = SimpleNamespace(facts=SimpleNamespace(scope_id="c"))


def test_acls_of_one_principal_stand_together() -> None:
    """Principals are sorted as whole names: `|` ends one, and is no letter of it."""
    keys = ["User:billing|*|Read", "User:b|*|Read", "User:a|*|Read"]

    def sweep(kind: str, depth: Depth) -> Sweep:
        items = (
            Observed(Identity(kind, "kafka", key), FrozenMap(acl_principal=key.split("|")[0]))
            for key in keys
        )
        return Sweep(kind, depth, tuple(items), Coverage(CoverageKind.COMPLETE))

    found = describe("acls", CONTEXT, sweep, DescribeQuery())
    listed = [row["acl_principal"] for row in found["acls"]]
    assert listed == ["User:a", "User:b", "User:billing"]


def test_a_broker_that_has_just_ended_holds_nobody_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is listed until it is fenced; its release is waited for briefly, and is then unknown."""
    waited: list[float] = []

    def silent(_: object, __: str, timeout: float) -> int:
        waited.append(timeout)
        raise NotSent("it is gone")

    row = BrokerRow(id=3, host="h", port=9092, rack=None, fenced=False)
    monkeypatch.setattr(module.wire, "describe_brokers", lambda *_, **__: (row,))
    monkeypatch.setattr(module.wire, "read_metadata_version", silent)
    monkeypatch.setattr(module.cluster_wire, "find_quorum_leader", lambda *_, **__: 1)
    context: Any = SimpleNamespace(**vars(CONTEXT), wire=None, timeout=30.0)
    found = describe("brokers", context, lambda *_: pytest.fail("not asked"), DescribeQuery())
    assert waited == [RELEASE_SECONDS]
    assert found["brokers"][0]["release"] is None
