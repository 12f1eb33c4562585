"""Requests that any broker takes go to the same one as long as it answers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from kafkaform_kafka.wire.client import _Preference


class Pool:
    """The part of kafka-python's manager that a choice looks at. delays: broker -> seconds until
    the next attempt to connect to it."""

    def __init__(self, *nodes: int) -> None:
        self.cluster = SimpleNamespace(brokers=lambda: [SimpleNamespace(node_id=n) for n in nodes])
        self.delays: dict[int, float] = {}
        self.connections: dict[int, Any] = {}

    def connection_delay(self, node: int) -> float:
        return self.delays.get(node, 0.0)

    def least_loaded_node(self) -> None:
        """Nobody can be asked now."""

    def connect(self, node: int, *, paused: bool = False) -> None:
        self.connections[node] = SimpleNamespace(connected=True, paused=paused)


def ask(preference: _Preference, pool: Pool) -> int | None:
    """The broker that answers the next request."""
    node = preference.choose(pool)
    if node is not None:
        pool.connections.setdefault(node, SimpleNamespace(connected=True, paused=False))
        preference.note_answer(pool, node)
    return node


def test_two_looks_go_to_one_broker() -> None:
    """Whatever the order in which brokers are listed, and whoever else has a connection."""
    pool, preference = Pool(3, 2, 1), _Preference()
    pool.connect(3)
    assert [ask(preference, pool) for _ in range(5)] == [1] * 5
    assert ask(_Preference(), Pool(2, 3, 1)) == 1


def test_another_one_is_asked_once_the_usual_one_is_silent() -> None:
    """It stays with that one afterwards: a broker that comes back can lag behind."""
    pool, preference = Pool(1, 2, 3), _Preference()
    assert ask(preference, pool) == 1
    preference.note_silence(1)
    assert [ask(preference, pool) for _ in range(3)] == [2, 2, 2]
    preference.note_silence(2)
    assert [ask(preference, pool) for _ in range(3)] == [3, 3, 3]


def test_a_broker_that_cannot_be_reached_is_passed_over() -> None:
    """Its next attempt to connect is due later."""
    pool, preference = Pool(1, 2), _Preference()
    pool.delays[1] = 0.5
    assert ask(preference, pool) == 2
    pool.delays.clear()
    assert ask(preference, pool) == 2
    pool.delays = {1: 0.5, 2: 0.5}
    assert ask(preference, pool) is None


def test_one_that_throttles_is_replaced_for_a_while() -> None:
    """The usual broker is asked again when it reads requests again."""
    pool, preference = Pool(1, 2), _Preference()
    assert ask(preference, pool) == 1
    pool.connect(1, paused=True)
    assert ask(preference, pool) == 2
    pool.connect(1)
    assert ask(preference, pool) == 1
