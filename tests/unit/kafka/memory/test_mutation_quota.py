"""The simulated cluster's mutation quota, and plans that meet it: what they say comes true."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from kafkaform.core.canonical import dumps
from kafkaform.core.change import OutcomeStatus
from kafkaform.core.errors import DryRunRefused
from kafkaform.core.resource import CoverageKind, Depth, Desired, FaultClass
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.plan.model import Options, Plan
from kafkaform.provider.testing.workbench import INSTANCE, Bench
from kafkaform.render.plan_text import render_plan_text
from kafkaform.render.review.comment import render_markdown
from kafkaform.render.terraform import to_json
from kafkaform_kafka.kinds.quota import resource_type as quotas
from kafkaform_kafka.kinds.quota.limits import MUTATION_RATE
from kafkaform_kafka.kinds.quota.simulation import Mutations
from kafkaform_kafka.kinds.simulation import SimulatedWorld
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster, refused_items

from ....kit.kafka.topic_systems import SimulatedSystem, partitions
from ....kit.simulated.engine import KAFKA, House, apply, desired, house, plan, removed, topic

ADMIN: dict[str, str | None] = {"user": "admin"}


def limited(rate: Decimal | int, *, brokers: int = 1) -> House:
    """A house whose administrator has this mutation rate and a full bucket."""
    where = house(brokers=brokers)
    where.cluster.mutations.limit(ADMIN, rate)
    return where


def many(count: int, size: int = 1) -> Desired:
    """So many topics of so many partitions."""
    return desired(*(topic(f"t{number:03}", size) for number in range(count)))


def warning(made: Plan) -> str:
    """The one warning of the plan's cluster, or nothing."""
    return "".join(finding.text for finding in made.instances[KAFKA].findings)


# ── the bucket ──────────────────────────────────────────────────────────────────────────


def codes(bench: Bench, *sizes: int, dry: bool = False) -> list[str]:
    """One request that creates, or would create, a topic of each of these sizes."""
    steps = [bench.make_creation(bench.fixture.fresh(partitions(size))) for size in sizes]
    batch = bench.make_batch(steps)
    found = bench.preflight(batch) if dry else bench.send(batch)
    return [item.fault.code if item.fault else "" for item in found]


class Counted(SimulatedWorld):
    """Counts how often its quotas are looked through."""

    looks = 0

    def of(self, kind: str) -> Mapping[str, Any]:
        self.looks += kind == quotas.KIND
        return super().of(kind)


def test_the_limits_are_looked_up_once_in_a_request() -> None:
    """Not again for each item: a cluster may have thousands of quotas."""
    world = Counted()
    mutations = Mutations(world, world.apply)
    mutations.limit(ADMIN, 100)
    charge = mutations.charge("admin", "x", now=0.0)
    assert [charge(2) for _ in range(50)] == [None] * 50
    assert world.looks == 1


def test_items_are_taken_until_the_bucket_is_below_empty(
    bench: Bench, system: SimulatedSystem
) -> None:
    """11 s of 2 a second: 20 go, the next one goes below empty, and no more until it is filled."""
    system.cluster.mutations.limit(ADMIN, 2)
    over = "THROTTLING_QUOTA_EXCEEDED"
    assert codes(bench, 20, 6, 1, dry=True) == ["", "", over]
    step = bench.make_creation(bench.fixture.fresh(EMPTY))
    (outcome,) = bench.send(bench.make_batch([step]))
    assert outcome.status is OutcomeStatus.FAILED and outcome.fault is not None
    assert (outcome.fault.code, outcome.fault.retry_after) == (over, 2.0)
    assert outcome.fault.kind is FaultClass.NOT_APPLIED
    system.clock.sleep(2)
    assert codes(bench, 3, 1) == ["", over]
    system.clock.sleep(1_000)
    assert codes(bench, 22, 1, 1) == ["", "", over]
    system.cluster.mutations.limit(ADMIN, None)
    assert codes(bench, 900, 900) == ["", ""]


def test_a_refused_item_spends_nothing(bench: Bench, system: SimulatedSystem) -> None:
    """Only what passes all other checks is charged."""
    system.cluster.mutations.limit(ADMIN, 1)
    good = bench.fixture.fresh(EMPTY)
    bad = [bench.fixture.fresh(FrozenMap({"name": name})) for name in ("a/b", "..")] * 20
    bench.send(bench.make_batch([bench.make_creation(item) for item in bad]))
    assert codes(bench, 11, 1) == ["", ""]
    system.clock.sleep(1)
    (outcome,) = bench.send(bench.make_batch([bench.make_creation(good)]))
    assert outcome.status is OutcomeStatus.APPLIED


@pytest.mark.parametrize(("kind", "shared"), [("user", False), ("client-id", True)])
def test_sharers_spend_from_one_bucket(
    bench: Bench, cluster: SimulatedCluster, kind: str, shared: bool
) -> None:
    """Each user whom the default stands for has a limit; a client id's is everybody's."""
    cluster.grant("other", ("Create", "cluster"))
    cluster.mutations.limit({kind: None}, 1)
    other = MemoryProvider(cluster, "other").open(INSTANCE, EMPTY, {})
    batch = bench.make_batch([bench.make_creation(bench.fixture.fresh(partitions(12)))])
    (first,), (second,) = (one.preflight(batch) for one in (bench.session, other))
    assert first.fault is None
    assert (second.fault is not None) is shared


# ── what it tells ───────────────────────────────────────────────────────────────────────


def test_the_listing_tells_all_quotas_or_none(cluster: SimulatedCluster) -> None:
    """DescribeConfigs on the cluster is the right for it; a failed request says so."""
    cluster.mutations.limit({"user": None, "client-id": "x"}, Decimal("0.5"))
    cluster.grant("auditor", ("DescribeConfigs", "cluster"))
    for user in ("admin", "auditor"):
        seen = MemoryProvider(cluster, user).open(INSTANCE, EMPTY, {})
        sweep = seen.sweep(quotas.KIND, Depth.FULL)
        assert sweep.coverage.kind is CoverageKind.COMPLETE
        assert quotas.index_quotas(sweep) == {
            FrozenMap({"user": None, "client-id": "x"}): {MUTATION_RATE: Decimal("0.5")}
        }
    nobody = MemoryProvider(cluster, "nobody").open(INSTANCE, EMPTY, {})
    fault = nobody.sweep(quotas.KIND, Depth.FULL).coverage.fault
    assert fault is not None and fault.code == "CLUSTER_AUTHORIZATION_FAILED"
    cluster.faults.schedule(refused_items(7), "DescribeClientQuotas")
    fault = seen.sweep(quotas.KIND, Depth.FULL).coverage.fault
    assert fault is not None and fault.code == "REQUEST_TIMED_OUT"


def test_a_plan_asks_once_and_only_if_it_spends() -> None:
    """One request for a plan with new topics, none for one that changes no partitions."""
    where = house()
    asked = where.cluster.requests
    plan(where, many(3))
    assert asked["DescribeClientQuotas"] == 1
    apply(where, many(3))
    before = asked["DescribeClientQuotas"]
    assert plan(where, many(3)).changes == ()
    plan(where, desired(*many(2).declared, topic("t002", 1, {"retention.ms": "1000"})))
    assert asked["DescribeClientQuotas"] == before


def test_every_form_of_a_plan_shows_the_warning() -> None:
    """For terminals, reviewers and programs."""
    made = plan(limited(5), many(40))
    text = warning(made)
    assert text.startswith("the dry run and the apply spend 80 controller mutations")
    assert text in " ".join(render_plan_text(made).split())
    assert text in html.unescape(render_markdown(made, command="kafkaform apply"))
    data = json.loads(dumps(to_json(made)))
    (finding,) = data["kafkaform"]["instances"][KAFKA]["findings"]
    assert (finding["rule"], finding["text"]) == ("quota-mutations-spent", text)
    assert finding["figures"]["mutations"] == 80


def test_a_plan_that_fits_says_nothing() -> None:
    """Half of the burst, no quota, and a user who may not see the quotas: no warning."""
    assert warning(plan(limited(5), many(13))) == ""
    assert warning(plan(limited(5), many(14)))
    assert warning(plan(house(), many(400))) == ""
    where = limited(1)
    where.cluster.grant("deployer", ("Create", "cluster"), ("Describe", "topic:*"))
    where.cluster.mutations.limit({"user": "deployer"}, 1)
    where.providers = {KAFKA: MemoryProvider(where.cluster, "deployer")}
    made = plan(where, many(40))
    assert warning(made) == "" and len(made.effective) == 40


# ── what it says comes true ─────────────────────────────────────────────────────────────


def test_within_the_burst_nothing_waits() -> None:
    """110 mutations of a burst of 110: applied at once, with a warning that others count too."""
    where = limited(10)
    assert "count too" in warning(plan(where, many(55)))
    start = where.clock.monotonic()
    done = apply(where, many(55))
    assert done.report is not None and done.report.complete
    assert where.clock.monotonic() == start


def test_what_was_spent_before_counts() -> None:
    """The same plan just after another one waits in its dry run, as it says."""
    where = limited(10)
    apply(where, many(50))
    more = desired(*many(50).declared, topic("x", 20), topic("y", 20))
    assert "can delay the dry run and the apply" in warning(plan(where, more))
    start = where.clock.monotonic()
    done = apply(where, more)
    assert done.report is not None and done.report.complete
    assert where.clock.monotonic() > start


def test_an_apply_waits_as_long_as_it_was_told() -> None:
    """20 topics cost 40, of which 22 are there: the other 18 take 9 s."""
    where = limited(2)
    assert "by up to about 9 s" in warning(plan(where, many(20)))
    start = where.clock.monotonic()
    done = apply(where, many(20))
    assert done.report is not None and done.report.complete
    assert 8 <= where.clock.monotonic() - start <= 10


def test_deletes_wait_as_well() -> None:
    """A topic of 100 partitions costs 100 to delete, and the one after it has to wait."""
    where = limited(1_000)
    names = ("a", "b", "c")
    apply(where, desired(topic("z"), *(topic(name, 100) for name in names)))
    where.clock.advance(3600)
    where.cluster.mutations.limit(ADMIN, 10)
    gone = desired(
        topic("z"), removed=tuple(removed(f"kafka_topic.{name}", destroy=True) for name in names)
    )
    made = plan(where, gone)
    assert "spend 300 controller mutations" in warning(made)
    assert "by up to about 9 s" in warning(made)
    start = where.clock.monotonic()
    done = apply(where, gone)
    assert done.report is not None and done.report.complete
    assert 8 <= where.clock.monotonic() - start <= 10


def test_a_dry_run_over_the_burst_waits_too() -> None:
    """26 topics cost 52, of which 22 are there: the other 30 take 15 s, as the plan says, and the
    first topic is made when the dry run is through."""
    where = limited(2)
    text = warning(plan(where, many(26)))
    assert "delays the dry run and the apply by up to about 15 s" in text
    start = where.clock.monotonic()
    done = apply(where, many(26))
    assert done.report is not None and done.report.complete
    assert 13 <= where.clock.monotonic() - start <= 17
    assert len(where.cluster.topics) == 26


def test_a_dry_run_that_waits_too_long_is_refused_and_nothing_is_sent() -> None:
    """Nothing at all gets through in ten times the wait for a lost answer."""
    where = limited(Decimal("0.001"))
    with pytest.raises(DryRunRefused) as caught:
        apply(where, many(20))
    assert "THROTTLING_QUOTA_EXCEEDED" in caught.value.diagnostics[0].detail
    assert not where.cluster.topics


def test_in_parts_it_goes_through() -> None:
    """The same plan in two targets, one after the other, each within the burst."""
    where = limited(1)
    said = many(20)
    for part in ("kafka_topic.t00*", "kafka_topic.t01*"):
        done = apply(where, said, Options(target=(part,)))
        assert done.report is not None and done.report.complete
        where.clock.advance(11)
    assert len(where.cluster.topics) == 20
