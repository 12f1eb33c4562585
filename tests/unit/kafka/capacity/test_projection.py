"""How full disks become, computed without any cluster."""

from __future__ import annotations

import math
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform_kafka.capacity.projection import (
    DAY_MS,
    Disk,
    LogGrowth,
    LogLimits,
    Replica,
    choose_disk,
    compute_days,
    list_growing,
    project_disk,
    read_limits,
)

from ....kit.quick import examples

GIB = 1 << 30
SEGMENTS = {"segment.bytes": str(GIB), "segment.ms": str(7 * DAY_MS)}
WEEK = {"cleanup.policy": "delete", "retention.ms": str(7 * DAY_MS), "retention.bytes": "-1"}


def make_growth(rate: float | None, days: float = math.inf, limit: float = math.inf) -> LogGrowth:
    """rate: GiB a day; days: retention; limit: GiB. Segments take no room."""
    return LogGrowth(
        None if rate is None else rate * GIB, LogLimits(days * DAY_MS, limit * GIB, math.inf, 0.0)
    )


def make_disk(total: int | None = 700, usable: int | None = 300) -> Disk:
    """total, usable: GiB."""
    return Disk(
        1,
        ("/data/1",),
        None if total is None else total * GIB,
        None if usable is None else usable * GIB,
        {},
    )


@pytest.mark.parametrize(
    ("configs", "ms", "size"),
    [
        ({}, 7 * DAY_MS, math.inf),
        ({"retention.bytes": "5"}, 7 * DAY_MS, 5),
        ({"retention.ms": "-1"}, math.inf, math.inf),
        ({"cleanup.policy": "compact,delete"}, 7 * DAY_MS, math.inf),
        ({"cleanup.policy": ""}, math.inf, math.inf),
        ({"local.retention.ms": "60"}, 7 * DAY_MS, math.inf),
        ({"remote.storage.enable": "true", "local.retention.ms": "60"}, 60, math.inf),
        ({"remote.storage.enable": "true", "local.retention.ms": "-2"}, 7 * DAY_MS, math.inf),
        ({"remote.storage.enable": "true", "local.retention.bytes": "9"}, 7 * DAY_MS, 9),
        (
            {
                "remote.storage.enable": "true",
                "remote.log.copy.disable": "true",
                "local.retention.ms": "60",
            },
            7 * DAY_MS,
            math.inf,
        ),
    ],
)
def test_what_bounds_a_partition_on_its_disk(
    configs: dict[str, str], ms: float, size: float
) -> None:
    """With tiered storage the local limits count, as long as segments are copied."""
    limits = read_limits({**WEEK, **SEGMENTS, **configs})
    assert limits is not None
    assert (limits.ms, limits.bytes) == (ms, size)


def test_compaction_alone_has_no_limit_to_compute_with() -> None:
    """What stays depends on the keys, which no rate shows."""
    assert read_limits({**WEEK, "cleanup.policy": "compact"}) is None
    assert LogGrowth(5.0, None).ceiling is None


@pytest.mark.parametrize(
    ("growth", "ceiling"),
    [
        (make_growth(10, days=7), 70 * GIB),
        (make_growth(10, days=7, limit=20), 20 * GIB),
        (make_growth(10), math.inf),
        (make_growth(0, days=7), 0),
        (make_growth(0), 0),
        (make_growth(None, days=7), None),
        # The segment that is written is never deleted: it is full, or it is rolled by its age.
        (LogGrowth(10.0 * GIB, read_limits({**WEEK, **SEGMENTS})), 71 * GIB),
        (LogGrowth(GIB / 10, read_limits({**WEEK, **SEGMENTS})), 1.4 * GIB),
    ],
)
def test_where_growth_ends(growth: LogGrowth, ceiling: float | None) -> None:
    """Age and size together bound a partition, with one segment more."""
    assert growth.ceiling == (None if ceiling is None else pytest.approx(ceiling))


def test_a_longer_retention_fills_the_disk() -> None:
    """From 7 to 30 days at 10 GiB a day: 230 GiB more than the 70 that are there."""
    replica = Replica(70 * GIB, 70 * GIB, make_growth(10, 7), make_growth(10, 30))
    projection = project_disk(make_disk(700, 200), [replica])
    assert projection.added == 230 * GIB
    assert projection.needed == 730 * GIB
    assert projection.days == pytest.approx(20)


def test_other_topics_fill_the_disk_as_well() -> None:
    """Days count everything that grows; what is added counts the changes alone."""
    changed = Replica(70 * GIB, 70 * GIB, make_growth(10, 7), make_growth(10, 30))
    other = Replica(5 * GIB, 5 * GIB, make_growth(10), make_growth(10))
    projection = project_disk(make_disk(700, 200), [changed, other])
    assert projection.added == 230 * GIB
    assert projection.days == pytest.approx(10)


def test_unlimited_growth_has_an_end_only_in_time() -> None:
    """Nothing stops it, so no size can be named."""
    replica = Replica(70 * GIB, 70 * GIB, make_growth(10, 7), make_growth(10))
    projection = project_disk(make_disk(700, 200), [replica])
    assert math.isinf(projection.added)
    assert projection.days == pytest.approx(20)


def test_copies_need_room_before_the_old_replicas_go() -> None:
    """A swap of two replicas of 50 GiB needs 50 GiB in between."""
    growth = make_growth(0, 7)
    coming = Replica(0, 50 * GIB, growth, growth)
    going = Replica(50 * GIB, 50 * GIB, growth, growth, stays=False)
    projection = project_disk(make_disk(700, 40), [coming, going])
    assert projection.added == 50 * GIB
    assert projection.needed == 710 * GIB
    # Afterwards there is as much room as before.
    assert projection.days is None


def test_a_cut_makes_room_for_a_longer_retention() -> None:
    """It has its effect within minutes, the other one within days."""
    cut = Replica(70 * GIB, 70 * GIB, make_growth(10, 7), make_growth(10, 1))
    longer = Replica(70 * GIB, 70 * GIB, make_growth(10, 7), make_growth(10, 13))
    assert project_disk(make_disk(), [cut, longer]).added == 0


def test_a_disk_of_unknown_size_has_no_end() -> None:
    """What is added is known nevertheless."""
    replica = Replica(70 * GIB, 70 * GIB, make_growth(10, 7), make_growth(10, 30))
    projection = project_disk(make_disk(None, None), [replica])
    assert (projection.added, projection.needed, projection.days) == (230 * GIB, None, None)


@st.composite
def replicas(draw: st.DrawFn) -> Replica:
    """One of any size, growth and change; whole numbers of GiB."""
    size = draw(st.integers(0, 50))
    whole = size + draw(st.sampled_from((0, 0, 0, 20)))
    rate = draw(st.none() | st.sampled_from((0, 1, 3, 10)))
    before, after = (
        make_growth(
            rate,
            draw(st.sampled_from((1, 7, 30, math.inf))),
            draw(st.sampled_from((5, 40, math.inf))),
        )
        for _ in range(2)
    )
    changes = draw(st.booleans())
    return Replica(
        size * GIB, whole * GIB, before, after if changes else before, draw(st.booleans())
    )


def simulate(room: float, listed: Sequence[Replica], days: int, steps: int) -> float | None:
    """The same as `compute_days`, in small steps."""
    sizes = [min(replica.whole, replica.settled) for replica in listed]
    start = sum(sizes)
    for step in range(1, days * steps + 1):
        for place, replica in enumerate(listed):
            ceiling, rate = replica.after.ceiling, replica.after.rate
            if rate and ceiling is not None and sizes[place] < ceiling:
                sizes[place] = min(ceiling, sizes[place] + rate / steps)
        if sum(sizes) - start >= room - 1:
            return step / steps
    return None


@settings(max_examples=examples(150), deadline=None)
@given(st.lists(replicas(), max_size=6), st.integers(1, 400))
def test_days_are_those_of_a_simulation(listed: list[Replica], room: int) -> None:
    """A line with a bend at each ceiling, against growth in steps of a tenth of a day."""
    listed = [replica for replica in listed if replica.stays]
    exact = compute_days(room * GIB, list_growing(listed))
    stepped = simulate(room * GIB, listed, 60, 10)
    if exact is None:
        assert stepped is None
    elif exact < 59:
        assert stepped is not None
        assert exact - 1e-6 <= stepped <= exact + 0.11


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(replicas(), max_size=6), replicas(), st.integers(0, 300))
def test_a_disk_never_needs_less_because_of_another_replica(
    listed: list[Replica], other: Replica, usable: int
) -> None:
    """More copies need more room and fill the disk earlier."""
    disk = make_disk(1000, usable)
    alone, together = project_disk(disk, listed), project_disk(disk, [*listed, other])
    copied = max(0, other.whole - other.size)
    if other.settled >= other.size:
        assert together.added >= alone.added
        if alone.days is not None:
            assert together.days is not None
            assert together.days <= alone.days + 1e-6
    assert together.added >= copied
    assert project_disk(disk, []).added == 0


@settings(max_examples=examples(200), deadline=None)
@given(st.lists(replicas(), max_size=6))
def test_what_does_not_change_adds_nothing(listed: list[Replica]) -> None:
    """However fast it grows: it is not the plan that fills the disk."""
    still = [Replica(r.size, r.size, r.before, r.before) for r in listed]
    assert project_disk(make_disk(), still).added == 0


def test_a_broker_chooses_the_disk_with_the_fewest_replicas() -> None:
    """Not the one with the most room; and a cordoned one gets none."""
    full = Disk(1, ("/data/1",), 100, 1, {})
    empty = Disk(1, ("/data/2",), 100, 99, {})
    counts: dict[tuple[int, tuple[str, ...]], int]
    counts = {(1, ("/data/1",)): 3, (1, ("/data/2",)): 5}
    assert choose_disk((full, empty), counts) == full
    cordoned = Disk(1, ("/data/1",), 100, 1, {}, cordoned=True)
    assert choose_disk((cordoned, empty), counts) == empty
    assert choose_disk((cordoned,), counts) is None
