"""A refresh-only plan takes live values into the state, sends nothing and makes nothing ours."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.apply.freshness import refuse_if_altered
from kafkaform.core.change import Action
from kafkaform.core.errors import PlanRefused, UsageError
from kafkaform.core.finding import Block
from kafkaform.core.resource import Failed, Hidden, Identity
from kafkaform.core.value import FrozenMap
from kafkaform.plan.model import Mode, Options, seal_plan
from kafkaform.workflow.planning import plan_changes, render_apply_command
from kafkaform_kafka.memory import Killed

from ...kit.findings import list_notes
from ...kit.simulated.engine import House, apply, desired, plan, space, topic
from ...kit.simulated.managed_topics import MS, built, complete, writes
from ...model.test_worlds import Simulated, simulated
from ...model.worlds import KAFKA, Thing
from ..plan.worlds import decided, failed, hidden, row

SAID = desired(topic("a", 2, MS, owner="ann", labels={"x": "y"}), topic("b"), topic("c"))
REFRESH = Options(Mode.REFRESH)


@pytest.fixture
def drifted() -> House:
    """Somebody has changed `a`, deleted `b`, and left `c` alone."""
    where = built(SAID)
    with where.cluster.others() as others:
        others.alter("a", {"retention.ms": "5", "segment.ms": "60000"})
        others.delete("b")
    return where


def get_config(where: House, name: str) -> Any:
    found = where.row(name)
    return found and found.attributes["config"]


def test_a_plan_has_only_drift(drifted: House) -> None:
    """Changed and deleted objects are listed, no request and no output is."""
    made = plan(drifted, SAID, REFRESH)
    assert {(c.address, c.action) for c in made.changes} == {
        ("kafka_topic.a", Action.REFRESH),
        ("kafka_topic.b", Action.FORGET),
    }
    assert not any(change.steps or change.paths for change in made.changes)
    assert all(change.drift for change in made.changes)
    assert (made.unchanged, made.outputs, made.removals) == (1, (), ())


def test_an_apply_records_what_is_live_and_sends_nothing(drifted: House) -> None:
    """The row has the live values and its own bookkeeping; the object that is gone has no row."""
    sent, before = writes(drifted), drifted.row("a")
    assert complete(apply(drifted, SAID, REFRESH))
    after = drifted.row("a")
    assert before is not None and after is not None
    assert writes(drifted) == sent
    assert after.attributes["config"] == FrozenMap({"retention.ms": "5", "segment.ms": "60000"})
    assert replace(after, attributes=before.attributes) == before
    assert drifted.row("b") is None
    assert not plan(drifted, SAID, REFRESH).changes
    drifted.check_log()


def test_the_next_plan_repairs_without_drift(drifted: House) -> None:
    """The block still says what it said: values go back, and the deleted object comes again."""
    apply(drifted, SAID, REFRESH)
    made = plan(drifted, SAID)
    assert not made.drifted
    assert {(c.address, c.action) for c in made.effective} == {
        ("kafka_topic.a", Action.UPDATE),
        ("kafka_topic.b", Action.CREATE),
    }
    assert complete(apply(drifted, SAID))
    assert get_config(drifted, "a") == FrozenMap(MS)


def test_every_step_is_in_the_log_before_the_state(drifted: House) -> None:
    """Intent and outcome of each change are recorded, as a refresh and as a forgotten object."""
    apply(drifted, SAID, REFRESH)
    run = drifted.records("run_begin")[-1].run
    ends = [r for r in drifted.records("intent", "outcome") if r.run == run]
    assert [(r.kind, r.body["action"]) for r in ends] == [
        ("intent", "refresh"),
        ("intent", "forget"),
        ("outcome", "refresh"),
        ("outcome", "forget"),
    ]


def test_who_set_it_last_is_said(drifted: House) -> None:
    """A drifted object names the run that set it, also after a refresh, which sets nothing."""
    run = drifted.records("run_begin")[0].run
    assert f"(run {run})" in plan(drifted, SAID, REFRESH).changes[0].last_set
    apply(drifted, SAID, REFRESH)
    with drifted.cluster.others() as others:
        others.alter("a", {"retention.ms": "6"})
    [change] = plan(drifted, SAID, REFRESH).changes
    assert change.last_set.startswith("last set here ")
    assert change.last_set.endswith(f"(run {run})")
    assert f"(run {run})" in plan(drifted, SAID).drifted[0].last_set


def test_a_saved_plan_and_a_token_apply(drifted: House) -> None:
    """Both ways of a reviewed plan work, and a second time the plan is applied already."""
    made = plan(drifted, SAID, REFRESH)
    assert "--refresh-only" in render_apply_command(made)
    assert complete(apply(drifted, SAID, REFRESH, expect=made.token))
    assert apply(drifted, SAID, saved=made).already
    assert get_config(drifted, "a")["retention.ms"] == "5"


def test_a_token_of_a_refresh_is_none_of_a_plain_apply(drifted: House) -> None:
    """The mode is approved, too."""
    made = plan(drifted, SAID, REFRESH)
    with pytest.raises(PlanRefused):
        apply(drifted, SAID, expect=made.token)


def test_a_target_refreshes_only_that(drifted: House) -> None:
    """The other drift stays, and a name that is not recorded is an error."""
    apply(drifted, SAID, Options(Mode.REFRESH, target=("kafka_topic.a",)))
    assert drifted.row("b") is not None
    assert [c.address for c in plan(drifted, SAID, REFRESH).changes] == ["kafka_topic.b"]
    with pytest.raises(UsageError, match="matches no recorded object"):
        plan(drifted, SAID, Options(Mode.REFRESH, target=("kafka_topic.z",)))


GAPS = {
    "another value": (
        lambda others: others.alter("a", {"retention.ms": "6"}),
        r"kafka_topic\.a: config\.retention\.ms was .* and is 6 ms now \(changed outside",
    ),
    "one value more": (
        lambda others: others.alter("a", {"cleanup.policy": "compact"}),
        r'kafka_topic\.a: config\.cleanup\.policy was not set and is "compact" now \(changed',
    ),
    "the object is back": (
        lambda others: others.create("b"),
        r"kafka_topic\.b: the object or its record in the state changed \(changed outside",
    ),
    "another object": (
        lambda others: others.recreate("a"),
        r"kafka_topic\.a: the object or its record in the state changed \(changed outside",
    ),
}


@pytest.mark.parametrize("name", GAPS)
def test_what_changes_before_the_approval_makes_the_plan_stale(drifted: House, name: str) -> None:
    """Nothing is recorded that was not shown."""
    act, text = GAPS[name]

    def meanwhile(_: object) -> None:
        with drifted.cluster.others() as others:
            act(others)

    before = drifted.state.objects
    with pytest.raises(PlanRefused, match=f"the plan is stale: {text}"):
        apply(drifted, SAID, REFRESH, gap=meanwhile)
    assert drifted.state.objects == before


@pytest.mark.parametrize("reading", [hidden("a"), failed("a")], ids=["hidden", "failed"])
def test_an_object_that_cannot_be_read_stops_the_refresh(reading: Hidden | Failed) -> None:
    """A failed read is never an absence: the plan is blocked as a whole."""
    change = decided(desired(topic("a")), reading, row("a"), options=REFRESH)
    assert (change.action, change.row_after) == (Action.NOOP, change.row_before)
    assert change.blocked is not None and change.blocked.block is Block.UNREADABLE


def test_a_recreated_object_stays_as_recorded() -> None:
    """It is another object: the plan lists it as drift, and leaves its row alone."""
    where = built(SAID)
    before = where.row("a")
    with where.cluster.others() as others:
        others.recreate("a")
    [change] = plan(where, SAID, REFRESH).changes
    assert change.blocked is not None and change.blocked.block is Block.UNMANAGED
    assert change.drift
    apply(where, SAID, REFRESH)
    assert where.row("a") == before


@pytest.mark.parametrize("what", ["run_begin", "intent", "outcome", "state", "run_end"])
@pytest.mark.parametrize("moment", ["before", "torn", "after"])
def test_an_interrupted_refresh_leaves_a_readable_state(
    drifted: House, what: str, moment: str
) -> None:
    """Wherever the process dies, the next run finds its way and ends with the same rows."""
    drifted.fate.set(what, moment=moment)
    with suppress(Killed):  # a kind of record that a run does not write kills nothing
        apply(drifted, SAID, REFRESH)
    drifted.fate.clear()
    drifted.clock.advance(60)
    plan(drifted, SAID, REFRESH)
    apply(drifted, SAID, REFRESH)
    assert get_config(drifted, "a")["retention.ms"] == "5"
    assert drifted.row("b") is None
    assert not plan(drifted, SAID, REFRESH).changes
    drifted.check_log()


@pytest.mark.parametrize("what", ["run_begin", "intent", "outcome", "run_end"])
def test_the_same_approval_goes_on_where_it_was_interrupted(drifted: House, what: str) -> None:
    """The pipeline that runs again with its token ends with everything recorded once."""
    token = plan(drifted, SAID, REFRESH).token
    drifted.fate.set(what, moment="after")
    with pytest.raises(Killed):
        apply(drifted, SAID, REFRESH, expect=token)
    drifted.fate.clear()
    drifted.clock.advance(60)
    assert complete(apply(drifted, SAID, REFRESH, expect=token))
    assert get_config(drifted, "a")["retention.ms"] == "5"
    assert drifted.row("b") is None
    assert apply(drifted, SAID, REFRESH, expect=token).already
    ends = [r.body["address"] for r in drifted.records("outcome", "recover") if "step" in r.body]
    assert ends.count("kafka_topic.a") == 2  # its create, and one refresh
    drifted.check_log()


def test_an_edited_plan_is_refused(drifted: House) -> None:
    """A file that lets the state take in other values is not applied, even if it is sealed anew."""
    made = plan(drifted, SAID, REFRESH)
    lie = FrozenMap({"partitions": 2, "config": FrozenMap({"retention.ms": "7"})})
    first = replace(made.changes[0], before=lie, after=lie)
    with pytest.raises(PlanRefused, match="stale"):
        apply(drifted, SAID, saved=seal_plan(replace(made, changes=(first, *made.changes[1:]))))
    plain = seal_plan(replace(made, options=Options()))
    with pytest.raises(PlanRefused, match="altered"):
        refuse_if_altered(plain, drifted.providers)


@pytest.mark.parametrize(
    "extra",
    [{"adopt": ("*",)}, {"max_deletes": 1}, {"max_data_loss": 1}, {"accept": ("access-opened",)}],
)
def test_flags_about_changes_are_errors(drifted: House, extra: dict[str, Any]) -> None:
    """A flag that a refresh has no use for is refused and not ignored."""
    with pytest.raises(UsageError, match="--refresh-only"):
        plan(drifted, SAID, Options(Mode.REFRESH, **extra))
    with pytest.raises(UsageError, match="--validate"):
        plan_changes(space(drifted, SAID), REFRESH, validate=True)


# ── objects that others share ───────────────────────────────────────────────────────────


@pytest.fixture
def town() -> Simulated:
    return simulated()


OURS = {"background.threads": "11", "log.cleaner.threads": "3"}


def declare(town: Simulated, block: Mapping[str, Any] | None) -> None:
    provider = {"kafka": {"bootstrap_servers": ["localhost:9092"], "operation_timeout": 4}}
    resource = {"kafka_topic": {"t": {"name": "t0", "partitions": 1}}}
    blocks = resource if block is None else {**resource, "kafka_cluster_config": {"x": block}}
    town.declare(json.dumps({"provider": provider, "resource": blocks}))


def test_what_only_others_set_does_not_become_ours(town: Simulated) -> None:
    """The value that we set is taken in, the key that we never set is not, and a later release
    leaves it on the cluster."""
    declare(town, {"config": OURS})
    town.apply()
    with town.hands():
        theirs = {"background.threads": "12", "log.cleaner.threads": "3", "compression.type": "lz4"}
        assert town.others.put(Thing("kafka_cluster_config", {"config": theirs}))
    made = plan_changes(town._space(), REFRESH)
    [change] = made.changes
    assert {item.path[1] for item in change.drift} == {"background.threads", "compression.type"}
    assert "compression.type was set by others" in " ".join(list_notes(change))
    apply(town.where, town.said, REFRESH)
    ours = town.where.state.objects[Identity(KAFKA, "kafka_cluster_config", "default")]
    assert ours.attributes["config"] == FrozenMap({**OURS, "background.threads": "12"})

    declare(town, None)
    [gone] = town.plan().changes
    assert {path.path[1] for path in gone.paths} == set(OURS)
    town.apply()
    seen = town.others.session.read([ours.identity])[ours.identity]
    assert seen.attributes["config"] == FrozenMap({"compression.type": "lz4"})


def test_a_refresh_proves_nothing_as_written(town: Simulated) -> None:
    """A value that others removed and set again after a refresh is theirs: no release takes it."""
    declare(town, {"config": OURS})
    town.apply()
    with town.hands():
        left = {"background.threads": "11"}
        assert town.others.put(Thing("kafka_cluster_config", {"config": left}))
    apply(town.where, town.said, REFRESH)
    with town.hands():
        assert town.others.put(Thing("kafka_cluster_config", {"config": OURS}))
    declare(town, None)
    [gone] = town.plan().changes
    assert {path.path[1] for path in gone.paths} == {"background.threads"}
