"""Real clients of a real cluster are let in and turned away exactly as `access` says.

Every operation of every resource type is asked for by some request (`test_every_operation_…`), so
there is none of which this says nothing. Three things about them:

- TwoPhaseCommit is asked for by version 6 of InitProducerId alone, together with Write. That
  version is not stable in Kafka 4.3, so these brokers have `unstable.api.versions.enable`.
- DescribeTokens on a user and Describe on a token open the same door: a token is left out of a
  listing where it is shut. Renewers of a token, whom no ACL names, are not tried.
- A topic is made automatically by those who may Describe it and Create it. It is asked for with
  names that no topic can have, which brokers check last, so that none is made.

KAFKAFORM_ACCESS_PROBES=N asks at least N times, KAFKAFORM_ACCESS_SETS=N with at least N sets of
ACLs; KAFKAFORM_ACCESS_SEED replays a run, apart from the ids of tokens, which are the broker's.
`-s` shows how many comparisons were made. `python -m tests.long access` is the long run.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from collections.abc import Iterator

import pytest

from kafkaform_kafka.protocol.acl import SUPPORTED

from .access_clusters import Cluster, compare, running

PROBES = int(os.environ.get("KAFKAFORM_ACCESS_PROBES", "2000"))
SETS = int(os.environ.get("KAFKAFORM_ACCESS_SETS", "3"))
SEED = int(os.environ.get("KAFKAFORM_ACCESS_SEED", "20"))


@pytest.fixture(scope="module", params=[True, False], ids=["open", "closed"])
def cluster(request: pytest.FixtureRequest, own_brokers: None) -> Iterator[Cluster]:
    """A broker that nobody else uses, because its ACLs concern everybody."""
    with running(request.param) as made:
        yield made


def test_the_broker_agrees(cluster: Cluster) -> None:
    """Every request of every user is answered as the simulation says, for ACLs of every kind
    that hide, imply and contradict each other, with and without the rule for no ACL."""
    answers: Counter[bool] = Counter()
    for number, one in enumerate(compare(cluster, random.Random(f"{SEED} {cluster.open}")), 1):
        assert not one.wrong, f"{one.wrong[:5]} of {len(one.wrong)} with {one.acls}"
        answers.update(probe.allowed for probe in one.probes)
        if answers.total() >= PROBES and number >= SETS:
            break
    print(f"{number} sets of ACLs, {answers.total()} comparisons, {answers[True]} allowed")
    assert min(answers[True], answers[False]) > PROBES // 10, "both answers must be at stake"


def test_every_operation_is_asked_for(cluster: Cluster) -> None:
    """Each operation of each resource type makes the difference for some request."""
    missing = {(kind, operation) for kind, found in SUPPORTED.items() for operation in found}
    for number, one in enumerate(compare(cluster, random.Random(f"{SEED} {cluster.open}")), 1):
        missing -= {(kind, operation) for kind, operation, _ in one.decided}
        if not missing or number > SETS:
            break
    assert not missing
