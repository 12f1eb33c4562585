"""What takes something away: deletions, and releases of what others share. Both need the proof
that what goes is ours, and both count as deletions."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action, OutcomeStatus
from kafkaform.core.errors import Blocked, PlanRefused
from kafkaform.core.finding import Block
from kafkaform.core.resource import Identity
from kafkaform.core.value import FrozenMap
from kafkaform.plan.model import Mode, Options, Plan
from kafkaform.render.plan_text import render_plan_text
from kafkaform.render.plan_view import make_view
from kafkaform.render.report import make_apply_report, render_apply_summary
from kafkaform.render.terraform import to_json
from kafkaform.state.codec import encode
from kafkaform.state.model import Row, put_row
from kafkaform.workflow import planning
from kafkaform.workflow.operations import apply_changes

from ...kit.simulated import engine
from ...model.test_worlds import Simulated, simulated
from ...model.worlds import KAFKA
from .test_foreign_settings import OURS, THEIRS, declare, live, others_set

CLUSTER = "kafka_cluster_config"
WHOLE = {"config": {**OURS, **THEIRS}}


@pytest.fixture
def town() -> Simulated:
    return simulated()


def forge(town: Simulated, kind: str, key: str, **members: Any) -> None:
    """Somebody edits a row of the state by hand, or writes one."""
    state = town.where.state
    identity = Identity(KAFKA, kind, key)
    row = state.objects.get(identity) or Row(identity, ("kafka_quota.x",), 1, FrozenMap())
    town.where.backend.data = encode(put_row(state, replace(row, **members)))


def planned(town: Simulated, **options: Any) -> Plan:
    return planning.plan_changes(town._space(), Options(**options))


def apply(town: Simulated, fail_on: tuple[str, ...] = (), **options: Any) -> Any:
    screen = town.where.screen = engine.Screen()
    return engine.finish(
        lambda stop: apply_changes(
            town._space(),
            options=Options(**options),
            approve=screen.approve,
            fail_on=fail_on,
            progress=screen.report,
            stop=stop,
        )
    )


# ── the proof ───────────────────────────────────────────────────────────────────────────


CASES: list[tuple[str, str, Mapping[str, Any], Mapping[str, Any], Mapping[str, Any]]] = [
    (CLUSTER, "default", {"config": OURS, "config_mode": "additive"}, {}, WHOLE),
    (
        "kafka_quota",
        "user=u0",
        {"user": "u0", "config": {"producer_byte_rate": 1000, "consumer_byte_rate": None}},
        {"entity": FrozenMap(user="u0")},
        {"user": "u0", "config": {"producer_byte_rate": 1000, "consumer_byte_rate": 5}},
    ),
]


@pytest.mark.parametrize("keeps", [True, False], ids=["a release", "a deletion"])
@pytest.mark.parametrize(
    ("kind", "key", "block", "named", "whole"), CASES, ids=["cluster", "quota"]
)
def test_a_key_that_was_written_into_a_row_by_hand_stays(
    town: Simulated,
    kind: str,
    key: str,
    block: Mapping[str, Any],
    named: Mapping[str, Any],
    whole: Mapping[str, Any],
    keeps: bool,
) -> None:
    """The row claims what somebody else has set on an object that is truly ours: neither the
    release (of all but what is left to others) nor the deletion (of all) removes it."""
    declare(town, {kind: {"x": block}})
    town.apply()
    others_set(town, kind, whole)
    before = live(town, kind, key)
    assert before is not None
    mine = {k for k, v in block["config"].items() if v is not None}
    claimed = {k: v for k, v in before.items() if not (keeps and k in mine)}
    forge(town, kind, key, attributes=FrozenMap(**named, config=FrozenMap(claimed)))
    declare(town, {})
    (change,) = town.plan().changes
    assert change.action is (Action.UPDATE if keeps else Action.DELETE) and change.takes_away
    (foreign,) = before.keys() - mine
    with pytest.raises(PlanRefused, match=rf"config\.{foreign}.*does not show") as refused:
        town.apply()
    assert "state rm" in refused.value.advice
    assert live(town, kind, key) == before


def test_a_row_by_hand_for_what_is_released_proves_nothing(town: Simulated) -> None:
    """No row of ours at all: the object is somebody else's, and a row appears in the state."""
    others_set(town, CLUSTER, WHOLE)
    declare(town, {})
    town.apply()
    forge(town, CLUSTER, "default", attributes=FrozenMap(config=FrozenMap(THEIRS)))
    (change,) = town.plan().changes
    assert change.action is Action.UPDATE and change.takes_away
    with pytest.raises(PlanRefused, match="created, adopted or imported"):
        town.apply()
    assert set(live(town, CLUSTER, "default") or ()) == {*OURS, *THEIRS}


def test_a_row_by_hand_does_not_make_a_block_the_whole_truth(town: Simulated) -> None:
    """An authoritative block over an object of others needs its adoption; a row that was
    written by hand in its stead removes none of their keys."""
    others_set(town, CLUSTER, WHOLE)
    declare(town, {})
    town.apply()
    forge(
        town,
        CLUSTER,
        "default",
        attributes=FrozenMap(config=FrozenMap(OURS)),
        owners=("kafka_cluster_config.x",),
    )
    declare(town, {CLUSTER: {"x": {"config": OURS}}})
    (change,) = town.plan().changes
    assert change.removed == (("config", "log.cleaner.threads"),) and not change.takes_away
    with pytest.raises(PlanRefused, match="created, adopted or imported"):
        town.apply()
    assert set(live(town, CLUSTER, "default") or ()) == {*OURS, *THEIRS}


def test_what_was_adopted_is_proven(town: Simulated) -> None:
    """An adoption that sends nothing proves the keys that it took over, and no others."""
    others_set(town, CLUSTER, WHOLE)
    block = {"config": OURS, "config_mode": "additive", "lifecycle": {"adopt": True}}
    declare(town, {CLUSTER: {"x": block}})
    assert apply(town).plan.changes[0].action is Action.ADOPT
    town.apply()
    declare(town, {})
    town.apply()
    assert set(live(town, CLUSTER, "default") or ()) == {*THEIRS}


def test_what_was_given_up_is_not_ours_any_more(town: Simulated) -> None:
    """A key that an update removed, set by somebody since and put back into the row by hand."""
    block = {"config": {**OURS, **THEIRS}}
    declare(town, {CLUSTER: {"x": block}})
    town.apply()
    declare(town, {CLUSTER: {"x": {"config": OURS, "config_mode": "authoritative"}}})
    town.apply()
    others_set(town, CLUSTER, WHOLE)
    forge(town, CLUSTER, "default", attributes=FrozenMap(config=FrozenMap(THEIRS)))
    declare(town, {})
    with pytest.raises(PlanRefused, match=r"config\.log\.cleaner\.threads"):
        town.apply()
    assert set(live(town, CLUSTER, "default") or ()) == {*OURS, *THEIRS}


# ── the count ───────────────────────────────────────────────────────────────────────────


def shared(town: Simulated, number: int) -> None:
    """So many quotas of ours on which somebody else has set another limit; nothing declares
    them any more but one."""

    def quotas(names: range, others: bool = False) -> dict[str, Any]:
        limits = {"producer_byte_rate": 1000, "consumer_byte_rate": 5 if others else None}
        return {f"q{n}": {"user": f"u{n}", "config": limits} for n in names}

    declare(town, {"kafka_quota": quotas(range(number + 1))})
    town.apply()
    for block in quotas(range(number), others=True).values():
        others_set(town, "kafka_quota", block)
    declare(town, {"kafka_quota": quotas(range(number, number + 1))})


def guarded(plan: Plan) -> int:
    return sum(1 for c in plan.changes if c.blocked and c.blocked.block is Block.GUARD)


@pytest.mark.parametrize(
    ("number", "options", "blocked"),
    [(1, {"max_deletes": 0}, 1), (2, {"max_deletes": 2}, 0), (9, {}, 0), (10, {}, 10)],
)
def test_releases_count_as_deletions(
    town: Simulated, number: int, options: Mapping[str, Any], blocked: int
) -> None:
    """For --max-deletes, and for the built-in guard of many deletions."""
    shared(town, number)
    plan = planned(town, **options)
    assert guarded(plan) == blocked and len(plan.taking) == number - blocked
    if blocked:
        reason = {c.blocked.text for c in plan.changes if c.blocked}
        assert "deletes or releases" in reason.pop()


def test_an_empty_configuration_releases_nothing(town: Simulated) -> None:
    """What others share is as safe from a wrong folder as what would be deleted whole."""
    shared(town, 1)
    provider = {"kafka": {"bootstrap_servers": ["localhost:9092"], "operation_timeout": 4}}
    town.declare(json.dumps({"provider": provider}))
    plan = planned(town, max_deletes=99)
    assert guarded(plan) == len(plan.changes) > 1
    assert guarded(planned(town, mode=Mode.DESTROY)) == 0


def test_fail_on_deletes_stops_a_release(town: Simulated) -> None:
    """Nothing is sent."""
    shared(town, 1)
    before = live(town, "kafka_quota", "user=u0")
    with pytest.raises(Blocked, match="deletions"):
        apply(town, fail_on=("deletes",))
    assert live(town, "kafka_quota", "user=u0") == before


def test_the_plan_and_the_summary_say_so(town: Simulated) -> None:
    """Among what is destroyed, in words, in the counts, in JSON and after the apply."""
    shared(town, 1)
    plan = planned(town)
    text = render_plan_text(plan)
    assert "will be released: what kafkaform set is removed" in text
    assert text.index("To destroy (1)") < text.index("kafka_quota.q0")
    assert text.rstrip().endswith("0 to add, 0 to change, 1 to destroy.")
    assert (make_view(plan).counts.destroy, make_view(plan).counts.change) == (1, 0)
    data = to_json(plan)
    (change,) = data["resource_changes"]
    assert data["kafkaform"]["has_deletes"] and change["kafkaform"]["takes_away"]
    done = apply(town)
    results = [(r.change, r.outcome) for r in done.report.results]
    assert {outcome.status for _, outcome in results} == {OutcomeStatus.APPLIED}
    assert "0 added, 0 changed, 1 destroyed" in render_apply_summary(make_apply_report(results))


def test_a_release_of_what_is_gone_already_takes_nothing_away(town: Simulated) -> None:
    """Somebody removed our key and left theirs: the row goes, and nothing counts."""
    shared(town, 1)
    others_set(town, "kafka_quota", {"user": "u0", "config": {"consumer_byte_rate": 5}})
    (change,) = planned(town, max_deletes=0).changes
    assert change.effective and change.released and not change.takes_away
