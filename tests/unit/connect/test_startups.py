"""What an apply finds out about connectors that workers have just been told of."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkaform.core.change import Outcome, OutcomeStatus
from kafkaform.core.clock import SimulatedClock
from kafkaform.core.resource import CoverageKind, Depth
from kafkaform.provider.http.exchange import Call
from kafkaform_connect.memory.provider import URL, MemoryClient
from kafkaform_connect.memory.workers import SimulatedWorkers
from kafkaform_connect.reading import ConnectorReader, make_ticket
from kafkaform_connect.session import SETTLE_SECONDS, WAIT_SECONDS, Startups, WorkersProof

from .connector_systems import SOURCE

TICKET = make_ticket("a")
CONFIG = {"connector.class": SOURCE, "file": "/dev/null", "topic": "orders"}


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
def workers(clock: SimulatedClock) -> SimulatedWorkers:
    return SimulatedWorkers(clock)


def create(workers: SimulatedWorkers) -> None:
    """Somebody creates the connector."""
    call = Call("POST", "/connectors", {"name": "a", "config": CONFIG})
    assert workers.handle(call).succeeded


def ask(
    workers: SimulatedWorkers,
    clock: SimulatedClock,
    meanwhile: Callable[[], object] = lambda: None,
) -> tuple[Outcome, float]:
    """The end of a startup that has just begun, and after how many seconds it was known.
    meanwhile: happens before each call."""

    def pass_on(_: Call) -> str:
        meanwhile()
        return ""

    client = MemoryClient(workers, "admin", WorkersProof(URL), pass_on)
    startups, began = Startups(clock), clock.monotonic()
    startups.note([Outcome("step", OutcomeStatus.STARTED, ticket=TICKET)])
    (outcome,) = startups.ask(client, ConnectorReader("kafka_connect", clock), [TICKET])
    return outcome, clock.monotonic() - began


def test_a_rebalance_does_not_end_the_wait(
    workers: SimulatedWorkers, clock: SimulatedClock
) -> None:
    """A new connector makes the workers rebalance. They answer no question about it before that
    has ended, which says nothing about its start."""
    workers.startup_seconds = 5.0
    create(workers)
    workers.rebalances = 2
    outcome, seconds = ask(workers, clock)
    assert outcome.status is OutcomeStatus.APPLIED
    assert workers.startup_seconds <= seconds < WAIT_SECONDS


def test_a_rebalance_without_end_leaves_it_open(
    workers: SimulatedWorkers, clock: SimulatedClock
) -> None:
    """The run says why it does not know more, and a later one asks again."""
    workers.startup_seconds = 3600.0
    create(workers)
    workers.rebalances = 10**9
    outcome, seconds = ask(workers, clock)
    assert outcome.status is OutcomeStatus.UNKNOWN and outcome.fault is not None
    assert "a rebalance is expected" in outcome.fault.message
    assert WAIT_SECONDS <= seconds < WAIT_SECONDS + SETTLE_SECONDS


def test_a_worker_that_knows_the_connector_a_moment_later(
    workers: SimulatedWorkers, clock: SimulatedClock
) -> None:
    """The leader writes to the config topic, and another worker that is asked reads it later."""
    began = clock.monotonic()

    def read_config_topic() -> None:
        if clock.monotonic() >= began + 1 and not workers.connectors:
            create(workers)

    outcome, _ = ask(workers, clock, read_config_topic)
    assert outcome.status is OutcomeStatus.APPLIED


def test_a_connector_that_somebody_has_deleted(
    workers: SimulatedWorkers, clock: SimulatedClock
) -> None:
    """Once every worker must have read of it, one that knows none is believed."""
    outcome, seconds = ask(workers, clock)
    assert outcome.status is OutcomeStatus.FAILED and outcome.fault is not None
    assert outcome.fault.code == "NOT_FOUND"
    assert SETTLE_SECONDS <= seconds < WAIT_SECONDS


def test_a_listing_waits_for_a_rebalance(workers: SimulatedWorkers, clock: SimulatedClock) -> None:
    """A listing leaves out a connector that no worker has started, so it is asked for by name."""
    workers.startup_seconds = 60.0
    create(workers)
    workers.rebalances = 2
    client = MemoryClient(workers, "admin", WorkersProof(URL), lambda _: "")
    sweep = ConnectorReader("kafka_connect", clock).sweep(client, Depth.FULL)
    assert sweep.coverage.kind is CoverageKind.VISIBLE_ONLY
    assert [item.identity.key for item in sweep.items] == ["a"]
