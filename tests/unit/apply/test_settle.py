"""What a step whose answer was lost says of itself when reading tells no more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from kafkaform.apply.recovery import _make_unknown_fault
from kafkaform.core.change import Outcome, OutcomeStatus
from kafkaform.core.progress import Event, Message
from kafkaform.core.resource import Absent, Failed, Fault, FaultClass, Identity
from kafkaform_kafka.memory import lost_request

from ...kit.simulated.engine import apply, desired, house, topic
from ...kit.simulated.managed_topics import MS, built, statuses

WHO = Identity("kafka", "kafka_topic", "orders")
LOST = Fault("TRANSPORT", "no answer", FaultClass.AMBIGUOUS)
UNREAD = Fault("TRANSPORT", "certificate verify failed", FaultClass.AMBIGUOUS, advice="Renew it.")


def untold(*readings: Any) -> Fault | None:
    """What is said after these readings."""
    outcome = Outcome("s", OutcomeStatus.UNKNOWN, fault=LOST)
    return _make_unknown_fault(cast(Any, SimpleNamespace(outcome=outcome)), readings)


def test_why_it_could_not_be_read_is_said_beside_why_there_was_no_answer() -> None:
    """A certificate that was exchanged is the reason that helps; that an answer is missing stays
    said, because the step may have been carried out."""
    said = untold(Failed(WHO, UNREAD))
    assert said is not None and said.code == "TRANSPORT" and said.advice == "Renew it."
    assert said.message == "no answer; reading it again failed: certificate verify failed"


def test_the_same_reason_is_said_once() -> None:
    """And a reading that worked adds nothing."""
    assert untold(Failed(WHO, LOST)) == LOST == untold(Absent(WHO))


def test_an_absence_must_be_seen_at_every_live_broker() -> None:
    """Of a create whose answer was lost, and of a delete: what a broker that is listed would show
    is not known as long as it does not answer. Once it is not live any more, the others decide."""
    for listed, ends in ((True, OutcomeStatus.UNKNOWN), (False, OutcomeStatus.FAILED)):
        where = house(brokers=3)
        where.cluster.faults.schedule(lost_request(), "CreateTopics")
        where.cluster.hang(3)
        if not listed:
            where.cluster.stop(3)
        assert statuses(apply(where, desired(topic("t")))) == {"t#1": ends}


def test_a_pre_image_must_be_seen_at_every_live_broker() -> None:
    """With most of its controllers dead a cluster keeps a request that it cannot commit, counts
    nobody as dead, and carries it out once they are back: however long that takes."""
    for listed, ends in ((True, OutcomeStatus.UNKNOWN), (False, OutcomeStatus.FAILED)):
        where = built(desired(topic("t")), brokers=3)
        where.cluster.faults.schedule(lost_request(), "IncrementalAlterConfigs")
        where.cluster.hang(2)
        where.cluster.hang(3)
        if not listed:
            where.cluster.stop(2)
            where.cluster.stop(3)
        assert statuses(apply(where, desired(topic("t", 1, MS)))) == {"t#2": ends}


def test_nothing_more_is_sent_while_an_outcome_is_unknown() -> None:
    """The next request would be waited for as long, and the one after it too. What certainly did
    not happen stops nothing."""
    for hangs, ends in ((True, OutcomeStatus.SKIPPED), (False, OutcomeStatus.APPLIED)):
        where = built(desired(topic("t")), brokers=3)
        where.cluster.faults.schedule(lost_request(), "CreateTopics")
        if hangs:
            where.cluster.hang(3)
        done = apply(where, desired(topic("t", 1, MS), topic("u")))
        assert statuses(done)["t#2"] == ends
        assert done.report is not None
        told = [r.outcome.fault.message for r in done.report.results if r.outcome.fault]
        said = "the outcome of CreateTopics for kafka_topic.u is not known"
        assert (said in told) is hangs


def test_a_broker_that_dies_meanwhile_does_not_hold_up_the_outcome() -> None:
    """Live brokers are asked anew with each look, and what is waited for is said."""
    where = built(desired(topic("t")), brokers=3)
    said: list[str] = []

    def progress(event: Event) -> None:
        if isinstance(event, Message):
            said.append(event.text)
            if "broker 2" in event.text:
                where.cluster.stop(2)

    where.screen.progress = progress
    where.cluster.faults.schedule(lost_request(), "CreateTopics")
    where.cluster.hang(2)
    done = apply(where, desired(topic("t"), topic("u")))
    assert statuses(done) == {"u#1": OutcomeStatus.FAILED}
    assert any(text.startswith("No answer came: reading for up to") for text in said)
    assert any(text.endswith("s for broker 2, which does not answer") for text in said)
