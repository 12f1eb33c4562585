"""The same requests get the same error codes from the simulated cluster and from a real one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action, Step
from kafkaform.core.resource import Absent, Observed
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.testing.workbench import Bench, Fixture

from ...conftest import Broker
from ...kit.kafka.logins import Login
from ...kit.kafka.topic_systems import RealSystem, SimulatedSystem, config, partitions, real_system

SETTLE = 0.1
"""Seconds for which a broker may be behind before a dry run reads it."""

Script = Callable[[Bench, str], Iterator[Sequence[Step]]]
"""Bench and a prefix for names -> requests, one after another, each sent as one batch."""

BAD: tuple[Mapping[str, object], ...] = (
    {"name": "no/slash"},
    {"name": ".."},
    {"name": "x" * 250},
    {"partitions": 0},
    {"partitions": -2},
    {"replication_factor": 4},
    {"replication_factor": 0},
    {"replica_assignment": ((9,),)},
    {"replica_assignment": ((1, 1),)},
    config(no_such="1"),
    config(retention_ms="soon"),
    config(retention_ms="-2"),
    config(segment_bytes="1"),
    config(cleanup_policy="shred"),
    config(min_cleanable_dirty_ratio="1.5"),
    config(compression_type="rar"),
    config(preallocate="yes"),
    config(min_compaction_lag_ms="2", max_compaction_lag_ms="1"),
)


def named(bench: Bench, name: str, **given: object) -> FrozenMap:
    return bench.fixture.fresh(FrozenMap({"name": name, **given}))


def updated(bench: Bench, attributes: FrozenMap, wish: FrozenMap) -> tuple[Step, ...]:
    before = bench.wait_seen(attributes)
    target = bench.compute_target(attributes.with_items(wish), before)
    return bench.list_steps(bench.make_change(Action.UPDATE, attributes, before, target))


def deleted(bench: Bench, attributes: FrozenMap, before: Observed) -> tuple[Step, ...]:
    return bench.list_steps(bench.make_change(Action.DELETE, attributes, before, None))


def bad_creates(bench: Bench, prefix: str) -> Iterator[Sequence[Step]]:
    for number, given in enumerate(BAD):
        good = named(bench, f"{prefix}-good-{number}")
        bad = named(bench, f"{prefix}-bad-{number}").with_items(given)
        yield [bench.make_creation(good), bench.make_creation(bad)]


def names_that_collide(bench: Bench, prefix: str) -> Iterator[Sequence[Step]]:
    first, second = named(bench, f"{prefix}.a"), named(bench, f"{prefix}_a")
    yield [bench.make_creation(first)]
    yield [bench.make_creation(second)]
    yield [bench.make_creation(first)]
    yield [bench.make_creation(named(bench, f"{prefix}{mark}new")) for mark in "._"]


def named_twice(bench: Bench, prefix: str) -> Iterator[Sequence[Step]]:
    other, twice = (bench.make_creation(named(bench, f"{prefix}-{n}")) for n in ("other", "twice"))
    yield [twice, other, replace(twice, id="again")]


def over_the_record_cap(bench: Bench, prefix: str) -> Iterator[Sequence[Step]]:
    yield [bench.make_creation(named(bench, f"{prefix}-a", partitions=10_001))]
    yield [bench.make_creation(named(bench, f"{prefix}-{n}", partitions=5_000)) for n in "ab"]


def changes_of_what_is_gone(bench: Bench, prefix: str) -> Iterator[Sequence[Step]]:
    attributes = named(bench, prefix)
    bench.fixture.make(attributes)
    before = bench.wait_seen(attributes)
    grow, alter = (updated(bench, attributes, w) for w in (partitions(2), config(flush_ms="1")))
    delete = deleted(bench, attributes, before)
    yield delete
    # The dry run of a deletion is a read, and a broker shows a deletion some time after it.
    bench.wait(attributes, lambda reading: isinstance(reading, Absent), "is gone")
    yield from (delete, grow, alter)


def growth(bench: Bench, prefix: str) -> Iterator[Sequence[Step]]:
    attributes = named(bench, prefix, partitions=3)
    bench.fixture.make(attributes)
    (step,) = updated(bench, attributes, partitions(4))
    for count in (2, 3, 0, -1, 4):
        yield [replace(step, payload=step.payload.with_items({"count": count}))]
    for replicas in (((1,), (1,)), ((9,),), ((1, 1),), ((),), ((1,),)):
        given = {"count": 5, "assignment": replicas}
        yield [replace(step, payload=step.payload.with_items(given))]


def overrides(bench: Bench, prefix: str) -> Iterator[Sequence[Step]]:
    attributes = named(bench, prefix)
    bench.fixture.make(attributes)
    (step,) = updated(bench, attributes, config(flush_ms="1"))
    for put, gone in (
        ({}, ("flush.ms",)),
        ({"flush.ms": "1"}, ("flush.ms",)),
        ({"flush.ms": "2"}, ("no.such",)),
        ({"min.compaction.lag.ms": "5"}, ()),
        ({"max.compaction.lag.ms": "4"}, ()),
        ({"max.compaction.lag.ms": "4"}, ("min.compaction.lag.ms",)),
    ):
        changed = {"set": FrozenMap(put), "delete": gone}
        yield [replace(step, payload=step.payload.with_items(changed))]


SCRIPTS: tuple[Script, ...] = (
    bad_creates,
    names_that_collide,
    named_twice,
    over_the_record_cap,
    changes_of_what_is_gone,
    growth,
    overrides,
)


def transcript(fixture: Fixture, script: Script, prefix: str) -> list[list[tuple[str, ...]]]:
    """For each request: what the dry run and the apply say of each step."""
    lines = []
    with Bench(fixture) as bench:
        for steps in script(bench, prefix):
            batch = bench.make_batch(steps)
            dry = [v.fault.code if v.fault else "passed" for v in bench.preflight(batch)]
            wet = [f"{o.status} {o.fault.code if o.fault else ''}" for o in bench.send(batch)]
            lines.append([(step.id, *said) for step, *said in zip(steps, dry, wet, strict=True)])
            fixture.clock.sleep(SETTLE)
    return lines


def forbidden(fixture: Fixture, prefix: str) -> list[list[tuple[str, ...]]]:
    """What somebody without rights is told of every write, of topics that are there and not."""
    lines: list[list[tuple[str, ...]]] = []
    with Bench(fixture) as bench, Bench(fixture, privileged=False) as nobody:
        attributes = named(bench, prefix)
        fixture.make(attributes)
        before = bench.wait_seen(attributes)
        for steps in (
            [bench.make_creation(named(bench, f"{prefix}-new"))],
            [bench.make_creation(attributes)],
            updated(bench, attributes, partitions(2)),
            updated(bench, attributes, config(flush_ms="1")),
            deleted(bench, attributes, before),
            deleted(bench, attributes, replace(before, incarnation="AAAAAAAAAAAAAAAAAAAABQ")),
        ):
            (outcome,) = nobody.send(nobody.make_batch(steps))
            lines.append([(str(outcome.status), outcome.fault.code if outcome.fault else "")])
    return lines


@pytest.fixture
def real(broker: Broker, stranger: Login) -> RealSystem:
    """The session's sandbox."""
    return real_system(broker, stranger)


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.__name__)
def test_the_simulated_cluster_answers_like_a_real_one(script: Script, real: RealSystem) -> None:
    """Dry runs and applies of one script end with the same codes, request by request."""
    prefix = real.fresh(EMPTY)["name"]
    assert transcript(SimulatedSystem(), script, prefix) == transcript(real, script, prefix)


def test_missing_rights_are_refused_alike(real: RealSystem) -> None:
    """Both clusters tell somebody without rights the same, and nothing more."""
    prefix = real.fresh(EMPTY)["name"]
    assert forbidden(SimulatedSystem(), prefix) == forbidden(real, prefix)
