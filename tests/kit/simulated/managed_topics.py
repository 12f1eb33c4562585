"""A house with topics that kafkaform made, and what the tests ask about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kafkaform.audit.records import Record
from kafkaform.core.change import OutcomeStatus
from kafkaform.core.resource import Desired
from kafkaform.workflow.model import Applied
from kafkaform_kafka.memory import refused_items

from .engine import House, apply, house

MS = {"retention.ms": "1000"}


def built(said: Desired, *, brokers: int = 1) -> House:
    """A house where this configuration was applied whole, an hour ago."""
    where = house(brokers=brokers)
    assert complete(apply(where, said))
    where.clock.advance(3600)
    return where


def complete(done: Applied) -> bool:
    return done.report is None or done.report.complete


def statuses(done: Applied) -> dict[str, OutcomeStatus]:
    """Step id without its instance and kind -> how it ended."""
    assert done.report is not None
    return {r.step.id.rpartition("/")[2]: r.outcome.status for r in done.report.results}


def codes(done: Applied) -> dict[str, str]:
    """Step id without its instance and kind -> why it was not applied."""
    assert done.report is not None
    return {
        r.step.id.rpartition("/")[2]: r.outcome.fault.code
        for r in done.report.results
        if r.outcome.fault is not None
    }


def writes(where: House) -> dict[str, int]:
    """How many changing requests of each API have left."""
    return {
        api: count
        for api, count in where.cluster.requests.items()
        if api in ("CreateTopics", "CreatePartitions", "IncrementalAlterConfigs", "DeleteTopics")
    }


def ends(where: House) -> list[tuple[str, str]]:
    """(kind of record, outcome) of everything that closed an intent, in order."""
    return [
        (record.kind, record.body["outcome"])
        for record in where.records("outcome", "recover")
        if "outcome" in record.body
    ]


def on_append(where: House, act: Callable[[Sequence[Record]], Any]) -> None:
    """Call `act` with every group of records that becomes durable."""
    where.sink.after_append = act


def between(where: House, api: str, act: Callable[[], None]) -> None:
    """Do something just after the intents of this request became durable: nobody looks again."""

    def meanwhile(records: Sequence[Record]) -> None:
        if records[0].kind == "intent" and records[0].body["phase"].endswith(api):
            on_append(where, lambda records: None)
            act()

    on_append(where, meanwhile)


def blinded(where: House, api: str) -> Callable[[], None]:
    """After the next request of this API, reads fail until the returned function is called."""
    faults = where.cluster.faults

    def blind(records: Sequence[Record]) -> None:
        if records[0].kind == "intent" and records[0].body["phase"].endswith(api):
            faults.schedule(refused_items(5), "DescribeTopics", times=10_000)

    on_append(where, blind)

    def see() -> None:
        on_append(where, lambda records: None)
        faults.clear()

    return see
