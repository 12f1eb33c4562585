"""What `describe` makes of answers, without a broker."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kafkaform.core.errors import KafkaformError, UsageError
from kafkaform.core.resource import Coverage, CoverageKind, Depth, Identity, Observed, Sweep
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.commands import describe as commands
from kafkaform_kafka.commands import describe as lists
from kafkaform_kafka.inspect import documents
from kafkaform_kafka.inspect import documents as module
from kafkaform_kafka.inspect.documents import PATIENCE_SECONDS, RELEASE_SECONDS, describe
from kafkaform_kafka.inspect.source import DescribeQuery
from kafkaform_kafka.wire.client import RequestNotSent
from kafkaform_kafka.wire.cluster import FeatureRow
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
        (("orders",), "`kafkaform describe configs topic orders` shows the configs of one object."),
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


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        ("topic", DescribeQuery()),
        ("topic orders", DescribeQuery(exact=("orders",))),
        (
            "topic orders retention.ms a",
            DescribeQuery(exact=("orders",), keys=("retention.ms", "a")),
        ),
        ("topic shop.* retention.*", DescribeQuery("shop.*", keys=("retention.*",))),
        ("broker", DescribeQuery(entity_type="brokers")),
        (
            "broker 1 log.dirs",
            DescribeQuery(exact=("1",), entity_type="brokers", keys=("log.dirs",)),
        ),
        ("cluster", DescribeQuery(entity_type="brokers", default=True)),
        (
            "cluster log.dirs",
            DescribeQuery(entity_type="brokers", default=True, keys=("log.dirs",)),
        ),
        ("group billing", DescribeQuery(exact=("billing",), entity_type="groups")),
        ("client-metrics m", DescribeQuery(exact=("m",), entity_type="client-metrics")),
        ("retention.ms", DescribeQuery(keys=("retention.ms",))),
    ],
)
def test_an_object_with_configs_is_named_by_kind_and_name(
    monkeypatch: pytest.MonkeyPatch, words: str, wanted: DescribeQuery
) -> None:
    """As `explain config` and `alter` name it; the configs follow."""
    asked: list[DescribeQuery] = []

    def read(_: object, __: str, query: DescribeQuery) -> FrozenMap:
        asked.append(query)
        return FrozenMap(entity_type=query.entity_type, entities=())

    monkeypatch.setattr(commands, "read_document", read)
    monkeypatch.setattr(commands, "find_unknown", lambda *_: ())
    commands.ask_configs(words.split()).read(None)  # type: ignore[arg-type]  # nobody is asked
    assert asked == [wanted]


def test_only_brokers_have_an_empty_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is the default of all of them, as in KIP-248."""
    with pytest.raises(UsageError):
        commands.ask_configs(["topic", ""])
    read = SimpleNamespace(query=None)

    def remember(_: object, __: str, query: DescribeQuery) -> FrozenMap:
        read.query = query
        return FrozenMap(entity_type=query.entity_type, entities=())

    monkeypatch.setattr(commands, "read_document", remember)
    commands.ask_configs(["broker", ""]).read(None)  # type: ignore[arg-type]  # nobody is asked
    assert read.query == DescribeQuery(entity_type="brokers", default=True)


@pytest.mark.parametrize(
    ("words", "flags"),
    [
        (["user", "ci"], {"user": "ci"}),
        (["user", "ci", "client", "a"], {"user": "ci", "client_id": "a"}),
        (["ip"], {"ip": "*"}),
        (["client", ""], {"client_id": ""}),
    ],
)
def test_whom_a_quota_limits_is_named_by_kind_and_name(
    monkeypatch: pytest.MonkeyPatch, words: list[str], flags: dict[str, str]
) -> None:
    """The same as the flags; a kind alone stands for all of it."""
    asked: list[DescribeQuery] = []

    def read(_: object, __: str, query: DescribeQuery) -> FrozenMap:
        asked.append(query)
        return FrozenMap(quotas=())

    monkeypatch.setattr(lists, "read_document", read)
    lists.ask_quotas(words).read(None)  # type: ignore[arg-type]  # nobody is asked
    lists.ask_quotas(**flags).read(None)  # type: ignore[arg-type]  # see above
    assert asked[0] == asked[1]


def test_a_resource_of_acls_is_named_by_kind_and_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same as the flags."""
    asked: list[DescribeQuery] = []

    def read(_: object, __: str, query: DescribeQuery) -> FrozenMap:
        asked.append(query)
        return FrozenMap(acls=())

    monkeypatch.setattr(lists, "read_document", read)
    for words, kind, name in (
        (["topic", "orders"], "Topic", "orders"),
        (["transactional-id", "tx"], "TransactionalID", "tx"),
        (["cluster"], "Cluster", "kafka-cluster"),
    ):
        lists.ask_acls(words).read(None)  # type: ignore[arg-type]  # nobody is asked
        lists.ask_acls(resource_type=kind, resource_name=name).read(None)  # type: ignore[arg-type]
        assert asked[-2] == asked[-1]
    with pytest.raises(UsageError):
        lists.ask_acls(["topic", "orders"], resource_type="Topic")


def test_users_and_brokers_are_named_without_a_flag(monkeypatch: pytest.MonkeyPatch) -> None:
    """By names and globs; one that is not there is an error, after the others."""
    rows = tuple(FrozenMap(name=name) for name in ("app", "billing", "ci"))
    monkeypatch.setattr(lists, "read_document", lambda *_: FrozenMap(users=rows))
    found = lists.ask_users(["app", "c*"]).read(None)  # type: ignore[arg-type]  # nobody is asked
    assert [row["name"] for row in found.document["users"]] == ["app", "ci"]
    assert found.fault is None
    found = lists.ask_users(["app", "biling"]).read(None)  # type: ignore[arg-type]  # see above
    assert [row["name"] for row in found.document["users"]] == ["app"]
    assert found.fault is not None
    assert found.fault.message == "there is no user biling"
    assert found.fault.advice == 'Did you mean "billing"?'
    brokers = FrozenMap(brokers=(FrozenMap(id=1), FrozenMap(id=2)))
    monkeypatch.setattr(lists, "read_document", lambda *_: brokers)
    found = lists.ask_brokers(["2"]).read(None)  # type: ignore[arg-type]  # see above
    assert [row["id"] for row in found.document["brokers"]] == [2]


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

    monkeypatch.setattr(documents, "read_features", read)
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
    monkeypatch.setattr(documents, "read_features", lambda *_, **__: FeatureRow(-1, {}, {}))
    facts = SimpleNamespace(scope_id="c", nodes=("1",))
    context: Any = SimpleNamespace(facts=facts, wire=None, timeout=30.0)
    with pytest.raises(KafkaformError, match="does not know the finalized features"):
        describe("features", context, lambda *_: pytest.fail("not asked"), DescribeQuery())
