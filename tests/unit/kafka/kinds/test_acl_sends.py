"""How many filters leave together, and what is not sent after an answer was lost."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka.protocol.admin import DeleteAclsRequest, DescribeAclsRequest

from kafkaform.core.change import Action, Change, Step
from kafkaform.core.resource import FaultClass, Identity
from kafkaform_kafka.kinds.acl import requests as sends
from kafkaform_kafka.kinds.acl import resource_type as acls
from kafkaform_kafka.kinds.context import ClusterContext, Order
from kafkaform_kafka.protocol.acl import Acl
from kafkaform_kafka.wire.client import RequestUnanswered, Wire

from ....kit.kafka.changes import FACTS


def acl(number: int) -> Acl:
    return Acl("User:ci", "*", "Read", "Allow", "Topic", f"t{number}", "Literal")


def deletes(count: int) -> list[Step]:
    """Steps that delete so many rules."""
    steps = []
    for number in range(count):
        identity = Identity("kafka", acls.KIND, acl(number).key)
        change = Change(identity, "kafka_acl.x", Action.DELETE, before=acl(number).attributes)
        steps += acls.TYPE.steps(change, FACTS)
    return steps


Delete = Callable[[int, Any], Any]
"""Number of the request and its filters -> the results, or an exception."""


class Cluster:
    """Answers DescribeAcls with so many rules, and DeleteAcls as it is told."""

    def __init__(self, live: int, delete: Delete) -> None:
        self.live, self.delete = live, delete
        self.sizes: list[int] = []

    def send(self, request: Any, timeout: float, node: str | None = None) -> Any:
        if isinstance(request, DescribeAclsRequest):
            rule = {"principal": "User:x", "host": "*", "operation": 3, "permission_type": 3}
            found = SimpleNamespace(
                resource_type=2,
                resource_name="x",
                pattern_type=3,
                acls=[SimpleNamespace(**rule)] * self.live,
            )
            return SimpleNamespace(error_code=0, error_message=None, resources=[found])
        assert isinstance(request, DeleteAclsRequest)
        self.sizes.append(len(request.filters))
        return SimpleNamespace(filter_results=self.delete(len(self.sizes), request.filters))


def matched(filters: Sequence[Any], **other: Any) -> list[Any]:
    """Each filter matched its rule. other: fields in which the rule is not what was asked for."""
    results = []
    for one in filters:
        rule = {
            "error_code": 0,
            "error_message": None,
            "resource_type": one.resource_type_filter,
            "resource_name": one.resource_name_filter,
            "pattern_type": one.pattern_type_filter,
            "principal": one.principal_filter,
            "host": one.host_filter,
            "operation": one.operation,
            "permission_type": one.permission_type,
        }
        found = [SimpleNamespace(**{**rule, **other})]
        results.append(SimpleNamespace(error_code=0, error_message=None, matching_acls=found))
    return results


def sent(cluster: Cluster, count: int) -> Sequence[Any]:
    settings = SimpleNamespace(instance="kafka", timeout=5.0)
    context = ClusterContext(cast(Any, settings), cast(Wire, cluster), FACTS)
    return sends.send_delete_acls(context, Order(deletes(count), dry=False))


@pytest.mark.parametrize(
    ("live", "count", "sizes"),
    [
        (0, 3, [3]),
        (1_000, 200, [200]),
        (5_001, 200, [199, 1]),
        (50_000, 50, [20, 20, 10]),
        (600_000, 3, [1, 1, 1]),
    ],
)
def test_filters_times_live_rules_stay_under_a_million(
    live: int, count: int, sizes: list[int]
) -> None:
    """The more rules there are, the fewer leave together; one at least."""
    assert [len(part) for part in sends.split_portions(deletes(count), live)] == sizes


def test_the_live_rules_are_counted_afresh() -> None:
    """What is there when the requests leave decides about their size."""
    cluster = Cluster(20_000, lambda number, filters: matched(filters))
    replies = sent(cluster, 60)
    assert cluster.sizes == [50, 10]
    assert [r.fault for r in replies] == [None] * 60


def test_after_a_lost_answer_nothing_more_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its filters are read again; those of the other requests certainly did nothing."""

    def lose_second(number: int, filters: Any) -> Any:
        if number == 2:
            raise RequestUnanswered("waited 5 s", timed_out=True)
        return matched(filters)

    monkeypatch.setattr(sends, "FILTERS", 2)
    cluster = Cluster(1, lose_second)
    replies = sent(cluster, 8)
    assert cluster.sizes == [2, 2]
    kinds = [reply.fault.kind if reply.fault else None for reply in replies]
    lost, held = FaultClass.AMBIGUOUS, FaultClass.NOT_APPLIED
    assert kinds == [None, None, lost, lost, held, held, held, held]
    assert not any(reply.fault.retry_after for reply in replies[4:])


def test_a_filter_that_hit_another_rule_ends_the_program() -> None:
    """It cannot be: every field is given. If it is, nothing goes on as if it were all right."""
    cluster = Cluster(1, lambda number, filters: matched(filters, host="10.0.0.1"))
    with pytest.raises(AssertionError):
        sent(cluster, 1)


def test_an_answer_with_too_few_results_is_no_answer() -> None:
    """Whose they are cannot be told."""
    cluster = Cluster(1, lambda number, filters: matched(filters)[1:])
    assert {r.fault.kind for r in sent(cluster, 3)} == {FaultClass.AMBIGUOUS}


def test_an_error_of_a_match_is_the_rules_own() -> None:
    """Kafka reports it below the filter."""
    cluster = Cluster(1, lambda number, filters: matched(filters, error_code=-1))
    (reply,) = sent(cluster, 1)
    assert reply.fault and reply.fault.code == "UNKNOWN_SERVER_ERROR"
