"""What a step whose answer was lost says of itself when reading tells no more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from kafkaform.apply.settle import _untold
from kafkaform.core.change import Outcome, OutcomeStatus
from kafkaform.core.resource import Absent, Failed, Fault, FaultClass, Identity

WHO = Identity("kafka", "kafka_topic", "orders")
LOST = Fault("TRANSPORT", "no answer", FaultClass.AMBIGUOUS)
UNREAD = Fault("TRANSPORT", "certificate verify failed", FaultClass.AMBIGUOUS, advice="Renew it.")


def untold(*readings: Any) -> Fault | None:
    """What is said after these readings."""
    outcome = Outcome("s", OutcomeStatus.UNKNOWN, fault=LOST)
    return _untold(cast(Any, SimpleNamespace(outcome=outcome)), readings)


def test_why_it_could_not_be_read_is_said_beside_why_there_was_no_answer() -> None:
    """A certificate that was exchanged is the reason that helps; that an answer is missing stays
    said, because the step may have been carried out."""
    said = untold(Failed(WHO, UNREAD))
    assert said is not None and said.code == "TRANSPORT" and said.advice == "Renew it."
    assert said.message == "no answer; reading it again: certificate verify failed"


def test_the_same_reason_is_said_once() -> None:
    """And a reading that worked adds nothing."""
    assert untold(Failed(WHO, LOST)) == LOST == untold(Absent(WHO))
