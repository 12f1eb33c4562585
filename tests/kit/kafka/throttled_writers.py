"""Producers of the tests of claims: what a broker makes them wait for."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from confluent_kafka import KafkaError, Producer
from confluent_kafka.admin import AdminClient, NewTopic

from kafkaform_kafka.connection.settings import make_librdkafka_config

from .logins import Login, finish, new_login
from .sessions import grant, login

BATCH = 16_384
"""Bytes of a record, as large as a full batch of a producer."""


@dataclass
class Writer:
    """A producer of one topic that notes when the broker tells it to wait."""

    topic: str
    producer: Producer
    waits: list[float] = field(default_factory=list)
    """Seconds of each throttled answer."""
    errors: list[KafkaError] = field(default_factory=list)
    """Of the records that were not written."""

    def write(self, count: int, patience: float = 60) -> None:
        """Write so many records of one batch each. patience: seconds to wait for all answers."""
        for _ in range(count):
            self.producer.produce(self.topic, b"x" * BATCH, on_delivery=self._note)
        self.producer.flush(patience)

    def _note(self, error: KafkaError | None, _: Any) -> None:
        if error is not None:
            self.errors.append(error)


def open_writer(broker: Any, user: Login, topic: str, **more: Any) -> Writer:
    """A producer of this user. more: settings of the client, with `_` for dots."""
    writer = Writer(topic, None)  # type: ignore[arg-type]  # the client needs the list of waits
    settings = {
        **make_librdkafka_config(login(broker, user)),
        "batch.num.messages": 1,
        "linger.ms": 0,
        "log_level": 0,
        "throttle_cb": lambda event: writer.waits.append(event.throttle_time),
        **{name.replace("_", "."): value for name, value in more.items()},
    }
    writer.producer = Producer(settings)
    return writer


@contextmanager
def writing_user(broker: Any, name: str) -> Iterator[Login]:
    """A user of this name who can write to and read from a topic of the same name, with one
    partition."""
    admin = AdminClient(make_librdkafka_config(login(broker, "admin")))
    finish(lambda: admin.create_topics([NewTopic(name, 1, 1)]))
    with new_login(broker, name) as user:
        revoke = grant(broker, user, "Topic", name, "WRITE", "READ", "DESCRIBE")
        yield user
        revoke()
    finish(lambda: admin.delete_topics([name]))
