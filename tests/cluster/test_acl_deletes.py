"""Deleting many ACLs of a cluster that has very many, while others want something of it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import Any

import pytest
from kafka.protocol.admin import AlterClientQuotasRequest, DeleteAclsRequest

from kafkaform.core.change import Action, Change, OutcomeStatus
from kafkaform.core.resource import Fault, Identity
from kafkaform.plan.lower import lower_plan
from kafkaform.plan.model import Plan
from kafkaform.sandbox import Sandbox
from kafkaform_kafka.kinds.acl import resource_type as acls
from kafkaform_kafka.kinds.acl.requests import COMPARISONS, FILTERS, encode_acl, list_live_acls
from kafkaform_kafka.protocol.acl import Acl
from kafkaform_kafka.session import KafkaSession
from kafkaform_kafka.wire.security import create_acls

from ..kit.kafka.clusters import own_sandbox
from ..kit.kafka.sessions import connect, eventually

LIVE, DOOMED = 50_000, 200
AT_ONCE = 5_000
"""ACLs in one request that makes them: half of what the controller takes."""
SLACK = 3.0
"""How many of the longest deletes somebody else may wait: one runs, and the computer is busy."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One DeleteAcls request. Times: monotonic seconds."""

    filters: int
    started: float
    ended: float

    @property
    def seconds(self) -> float:
        return self.ended - self.started


@pytest.fixture(scope="module")
def crowded(own_brokers: None) -> Iterator[Sandbox]:
    """A broker with LIVE ACLs."""
    with own_sandbox(f"acls-{os.getpid()}") as box:
        session = connect(box, "admin")
        made = [encode_acl(acl(number)) for number in range(LIVE)]
        for start in range(0, LIVE, AT_ONCE):
            part = made[start : start + AT_ONCE]
            answers = create_acls(session.context.wire, part, 60)
            assert {answer.code for answer in answers} == {0}
        session.close()
        yield box


def acl(number: int) -> Acl:
    """Rules of many users on many topics."""
    name = f"topic-{number // 10}"
    return Acl(f"User:u{number % 10}", "*", "Read", "Allow", "Topic", name, "Literal")


def deletions(session: KafkaSession) -> Plan:
    changes = []
    for number in range(0, LIVE, LIVE // DOOMED):
        identity = Identity("kafka", acls.KIND, acl(number).key)
        before = acl(number).attributes
        change = Change(identity, f"kafka_acl.a{number}", Action.DELETE, before=before)
        steps = acls.TYPE.steps(change, session.facts)
        changes.append(Change(identity, change.address, Action.DELETE, before=before, steps=steps))
    return Plan("l", 0, "", {}, tuple(changes))


def rows(session: KafkaSession) -> tuple[Acl, ...]:
    found = list_live_acls(session.context)
    assert not isinstance(found, Fault)
    return found


def watched(session: KafkaSession) -> list[Sent]:
    """Every DeleteAcls that this session sends from now on."""
    sent: list[Sent] = []
    wire, send = session.context.wire, session.context.wire.send

    def noting(request: Any, timeout: float, node: str | None = None) -> Any:
        started = time.monotonic()
        try:
            return send(request, timeout, node)
        finally:
            if isinstance(request, DeleteAclsRequest):
                sent.append(Sent(len(request.filters), started, time.monotonic()))

    wire.send = noting  # type: ignore[method-assign]
    return sent


def waits(session: KafkaSession, over: Event) -> list[float]:
    """Seconds that each of somebody's small requests to the controller took, one after another."""
    row = AlterClientQuotasRequest.EntryData
    taken = []
    while not over.is_set():
        entry = row(
            entity=[row.EntityData(entity_type="user", entity_name="somebody")],
            ops=[row.OpData(key="producer_byte_rate", value=1000.0, remove=False)],
        )
        started = time.monotonic()
        request = AlterClientQuotasRequest(entries=[entry], validate_only=True)
        answer = session.context.wire.send(request, 60)
        assert [item.error_code for item in answer.entries] == [0]
        taken.append(time.monotonic() - started)
        time.sleep(0.01)
    return taken


@pytest.mark.timeout(400)
def test_others_wait_for_one_small_request_at_most(crowded: Sandbox) -> None:
    """Four hundred of fifty thousand ACLs go in requests that the controller can carry, never two
    at once, each with as long a pause after it; so nobody waits longer than for one of them."""
    session, other, over = connect(crowded, "admin"), connect(crowded, "admin"), Event()
    sent = watched(session)
    begun = time.monotonic()
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(waits, other, over)
        try:
            outcomes = [
                outcome
                for wave in lower_plan(deletions(session))
                for batch in wave.batches
                for outcome in session.apply(batch, {})
            ]
        finally:
            over.set()
        taken = waiting.result(90)
    whole = time.monotonic() - begun
    assert [o.status for o in outcomes] == [OutcomeStatus.APPLIED] * DOOMED
    assert_bounded(sent)
    longest, worst = max(s.seconds for s in sent), max(taken)
    print(
        f"\n{DOOMED} of {LIVE} ACLs in {len(sent)} requests, {whole:.1f} s; longest request "
        f"{longest:.2f} s, others waited {worst:.2f} s at most in {len(taken)} requests"
    )
    assert worst <= SLACK * longest
    left = eventually(lambda: rows(session), lambda found: len(found) == LIVE - DOOMED)
    assert {acl(0), acl(LIVE - LIVE // DOOMED)}.isdisjoint(left)
    session.close()
    other.close()


def assert_bounded(sent: Sequence[Sent]) -> None:
    """Small enough, one at a time, with pauses."""
    live = LIVE
    for request in sent:
        assert request.filters <= FILTERS
        assert request.filters * live <= COMPARISONS
        live -= request.filters
    for one, following in zip(sent, sent[1:], strict=False):
        assert following.started >= one.ended + one.seconds * 0.9
