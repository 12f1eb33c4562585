"""What "already exists" says about a create, by what is known of the controllers that got it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
from kafka.protocol.admin import CreateTopicsRequest

from kafkaform.core.change import Action, Step
from kafkaform.core.resource import FaultClass
from kafkaform_kafka.kinds.context import ClusterContext, Order, Reply
from kafkaform_kafka.kinds.topic import requests as sends
from kafkaform_kafka.kinds.topic import resource_type as topics
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire.answers import ItemAnswer, id_text
from kafkaform_kafka.wire.client import RequestUnanswered, Wire
from kafkaform_kafka.wire.cluster import read_leadership
from kafkaform_kafka.wire.fast_decoding import Answers

from ....kit.kafka.changes import FACTS, change, topic

ALREADY_EXISTS, NO_RIGHT = 36, 31
REFUSED, SILENT = "refused", "silent"


def create(name: str) -> Step:
    (step,) = topics.TYPE.steps(change(Action.CREATE, None, topic(name)), FACTS)
    return step


class Cluster:
    """Where `taken` exists once creates are sent. told: what each question for the quorum gets, in
    turn: an epoch, or that we are refused, or silence."""

    def __init__(self, *told: object) -> None:
        self.told = told
        self.questions = 0

    def send(self, request: Any, timeout: float, node: str | None = None) -> Any:
        if isinstance(request, CreateTopicsRequest):
            dry = bool(request.validate_only)
            return Answers(0, {each.name: _make_answer(each.name, dry) for each in request.topics})
        answer = self.told[self.questions]
        self.questions += 1
        if answer == SILENT:
            raise RequestUnanswered("waited 5 s", timed_out=True)
        if answer == REFUSED:
            return SimpleNamespace(error_code=NO_RIGHT, topics=[])
        partition = SimpleNamespace(error_code=0, leader_id=1, leader_epoch=answer)
        return SimpleNamespace(error_code=0, topics=[SimpleNamespace(partitions=[partition])])


def _make_answer(name: str, dry: bool) -> ItemAnswer:
    code = ALREADY_EXISTS if name == "taken" and not dry else 0
    return ItemAnswer(code, topic_id=id_text(UUID(int=1)), partitions=3, replication_factor=2)


def sent(cluster: Cluster, *names: str) -> list[Reply]:
    """The answers to creates that were checked twice before, as an apply in batches does."""
    settings = SimpleNamespace(instance="kafka", timeout=5.0)
    context = ClusterContext(cast(Any, settings), cast(Wire, cluster), FACTS)
    steps = [create(name) for name in names]
    for dry in (True, True):
        assert not any(r.fault for r in sends.send_create_topics(context, Order(steps, dry)))
    return list(sends.send_create_topics(context, Order(steps, dry=False)))


@pytest.mark.parametrize(
    ("before", "after", "kind", "asked"),
    [
        (7, 7, FaultClass.CONVERGED, 2),
        (7, 8, FaultClass.AMBIGUOUS, 2),
        (7, REFUSED, FaultClass.CONVERGED, 2),
        (7, SILENT, FaultClass.CONVERGED, 2),
        (REFUSED, 8, FaultClass.CONVERGED, 1),
        (SILENT, 8, FaultClass.CONVERGED, 1),
    ],
)
def test_only_a_controller_that_is_known_to_be_another_makes_it_unclear(
    before: object, after: object, kind: FaultClass, asked: int
) -> None:
    """Whatever is not known leaves the topic somebody else's, and other topics are not touched."""
    cluster = Cluster(before, after)
    refused, made = sent(cluster, "taken", "free")
    assert refused.fault is not None and refused.fault.kind is kind
    assert ("controller has changed" in refused.fault.message) is (kind is FaultClass.AMBIGUOUS)
    assert made.fault is None
    assert cluster.questions == asked


def test_who_leads_is_asked_again_only_if_something_exists() -> None:
    """Creates that all worked need one question in a session."""
    cluster = Cluster(7, 7, 7)
    assert [reply.fault for reply in sent(cluster, "free", "also-free")] == [None, None]
    assert cluster.questions == 1


def test_who_may_not_describe_the_cluster_is_not_told_who_leads(
    admin: KafkaSession, ci: KafkaSession
) -> None:
    """As a real broker answers."""
    found = read_leadership(admin.context.wire, admin.context.timeout)
    assert found is not None and found.epoch >= 0
    assert read_leadership(ci.context.wire, ci.context.timeout) is None
