"""Batches of a producer that chooses its id, its sequence and its transaction itself, as a producer
that repeats a request or is late does."""

from __future__ import annotations

import time
from typing import Any

from kafka.protocol.producer import ProduceRequest
from kafka.record.default_records import DefaultRecordBatchBuilder

from kafkaform_kafka.session import KafkaSession

SECONDS = 30.0


def write_batch(
    session: KafkaSession, topic: str, producer: int, transaction: str | None = None
) -> tuple[int, int]:
    """Write the first record of this producer to the first partition of a topic, which broker 1
    leads: the code of the answer, and the offset of the record. transaction: the transactional
    id, of which nobody told the coordinator anything."""
    batch = DefaultRecordBatchBuilder(2, 0, transaction is not None, producer, 0, 0, 10_000)
    batch.append(0, int(time.time() * 1000), None, b"x", [])
    row = ProduceRequest.TopicProduceData
    part = row.PartitionProduceData(index=0, records=bytes(batch.build()))
    request = ProduceRequest(
        transactional_id=transaction,
        acks=-1,
        timeout_ms=10_000,
        topic_data=[row(name=topic, partition_data=[part])],
        max_version=11,
    )
    answer: Any = session.context.wire.send(request, SECONDS, "1")
    (place,) = answer.responses[0].partition_responses
    return int(place.error_code), int(place.base_offset)
