"""What `describe` makes of answers, without a broker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkaform.core.errors import KafkaformError, UsageError
from kafkaform.core.resource import Coverage, CoverageKind, Depth, Identity, Observed, Sweep
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.commands import describe as commands
from kafkaform_kafka.inspect import documents as module
from kafkaform_kafka.inspect import features
from kafkaform_kafka.inspect.documents import RELEASE_SECONDS, describe
from kafkaform_kafka.inspect.features import PATIENCE_SECONDS
from kafkaform_kafka.inspect.source import DescribeQuery
from kafkaform_kafka.wire.client import RequestNotSent
from kafkaform_kafka.wire.describe import BrokerRow
from kafkaform_kafka.wire.features import FeatureRow

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

    def silent(_: object, timeout: float, __: str) -> int:
        waited.append(timeout)
        raise RequestNotSent("it is gone")

    row = BrokerRow(id=3, host="h", port=9092, rack=None, fenced=False)
    monkeypatch.setattr(module.wire, "describe_brokers", lambda *_, **__: (row,))
    monkeypatch.setattr(module.cluster_wire, "read_versions", silent)
    monkeypatch.setattr(module, "find_controller", lambda _: 1)
    context: Any = SimpleNamespace(**vars(CONTEXT), wire=None, timeout=30.0)
    found = describe("brokers", context, lambda *_: pytest.fail("not asked"), DescribeQuery())
    assert waited == [RELEASE_SECONDS]
    assert found["brokers"][0]["release"] is None


@pytest.mark.parametrize(
    ("keys", "advice"),
    [
        (("retention.mss",), 'Did you mean "retention.ms"?'),
        (
            ("retention.mss", "cleanup.polici"),
            'retention.mss: Did you mean "retention.ms"? '
            'cleanup.polici: Did you mean "cleanup.policy"?',
        ),
        (("orders", "cleanup.polici"), 'cleanup.polici: Did you mean "cleanup.policy"?'),
        (("orders",), "Entities are named with a flag: --entity-name orders."),
    ],
)
def test_each_unknown_config_gets_a_suggestion(
    monkeypatch: pytest.MonkeyPatch, keys: tuple[str, ...], advice: str
) -> None:
    """A topic's name among configs is named as such."""
    asked: list[tuple[str, ...]] = []

    def read(_: object, __: str, wanted: DescribeQuery) -> FrozenMap:
        asked.append(wanted.keys)
        return FrozenMap(entity_type="topics", entities=())

    monkeypatch.setattr(commands, "read_document", read)
    with pytest.raises(UsageError) as refused:
        commands.ask_configs(list(keys)).read(None)  # type: ignore[arg-type]  # nobody is asked
    assert asked == [keys] and refused.value.advice == advice


def test_features_are_what_all_brokers_have_in_common(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels of the cluster, the range that fits every broker that answers, and who does not."""
    finalized = {"metadata.version": 27, "group.version": 1}
    answers = {
        None: {"metadata.version": (7, 29), "group.version": (0, 1), "new": (0, 2)},
        "1": {"metadata.version": (7, 29), "group.version": (0, 1), "new": (0, 2)},
        "2": {"metadata.version": (7, 27), "group.version": (0, 1)},
    }

    def read(_: object, timeout: float, node: str | None = None) -> FeatureRow:
        if node == "3":
            assert timeout == PATIENCE_SECONDS
            raise RequestNotSent("it is gone")
        return FeatureRow(9, finalized, answers[node])

    monkeypatch.setattr(features, "read_features", read)
    facts = SimpleNamespace(scope_id="c", nodes=("1", "2", "3"))
    context: Any = SimpleNamespace(facts=facts, wire=None, timeout=30.0)
    found = describe("features", context, lambda *_: pytest.fail("not asked"), DescribeQuery())
    assert (found["finalized_epoch"], found["complete"]) == (9, False)
    rows = {one["name"]: one for one in found["features"]}
    metadata = rows["metadata.version"]
    assert (metadata["level"], metadata["release"], metadata["raise_to"]) == (27, "4.1", None)
    assert metadata["supported"] == {"min": 7, "max": 27}
    # A broker that does not name a feature has only its level 0.
    assert (rows["new"]["level"], rows["new"]["supported"]) == (0, {"min": 0, "max": 0})
    assert [one["supported"] is None for one in found["brokers"]] == [False, False, True]


def test_features_that_no_broker_knows_are_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """Not an empty table."""
    monkeypatch.setattr(features, "read_features", lambda *_, **__: FeatureRow(-1, {}, {}))
    facts = SimpleNamespace(scope_id="c", nodes=("1",))
    context: Any = SimpleNamespace(facts=facts, wire=None, timeout=30.0)
    with pytest.raises(KafkaformError, match="does not know the finalized features"):
        describe("features", context, lambda *_: pytest.fail("not asked"), DescribeQuery())
