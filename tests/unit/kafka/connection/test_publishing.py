"""Why a producer gave up, whatever order its callbacks come in."""

from __future__ import annotations

from typing import Any

from confluent_kafka import KafkaError, KafkaException

from kafkaform_kafka import publishing


class Ended:
    """A producer that has ended: sending fails, and the next callback has the cause."""

    def __init__(self, cause: int | None) -> None:
        self.causes = [] if cause is None else [cause]

    def produce(self, *_: Any, **__: Any) -> None:
        raise KafkaException(KafkaError(KafkaError._FATAL))

    def poll(self, _: float) -> int:
        if self.causes:
            raise KafkaException(KafkaError(self.causes.pop()))
        return 0


def send(writer: Any) -> publishing.DeliveryState:
    """The state after one record was sent."""
    done = publishing.DeliveryState()
    record = publishing.NumberedRecord(1, b"a")
    publishing._queue_record(writer, "t", 0, "k", record, done)
    publishing._wait_for_cause(writer, done)
    return done


def test_the_cause_is_named_though_sending_failed_before_it_came() -> None:
    """The advice is for the missing right, and not for a producer that has ended."""
    done = send(Ended(KafkaError.TOPIC_AUTHORIZATION_FAILED))
    assert done.refused is not None
    assert done.refused.code() == KafkaError.TOPIC_AUTHORIZATION_FAILED
    assert "Grant Describe, Read and Write" in str(
        publishing._make_refusal("t", done.refused).advice
    )


def test_a_cause_that_never_comes_is_not_waited_for_without_end(monkeypatch: Any) -> None:
    """What is known is said."""
    monkeypatch.setattr(publishing, "CAUSE_PATIENCE", 0.05)
    done = send(Ended(None))
    assert done.refused is not None and done.refused.code() == KafkaError._FATAL
