"""Guards against a plan that deletes much more than anybody meant."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kafkaform.core.change import Action, Change, add_findings
from kafkaform.core.finding import Block, Harm, Level
from kafkaform.core.resource import Absent, Desired, Identity
from kafkaform.core.rule import Needs, Rule
from kafkaform.core.value import FrozenMap
from kafkaform.plan.judge import guard_losses
from kafkaform.plan.model import Mode, Options, Plan

from ...kit.simulated.engine import desired, removed, topic
from .worlds import live, planned, row, state


def deleting(
    deleted: int, recorded: int, options: Options | None = None, keep: bool = True
) -> Plan:
    """A plan that deletes so many of so many recorded topics."""
    names = [f"t{number:02}" for number in range(recorded)]
    gone = tuple(removed(f"kafka_topic.{name}", destroy=True) for name in names[:deleted])
    kept = [topic(name) for name in names[deleted:]]
    if keep and not kept:
        kept = [topic("other")]
    readings = [live(name, id=f"id-{name}") for name in names]
    if keep and deleted == recorded:
        readings.append(live("other", id="id-other"))
    rows = (row(name, id=f"id-{name}") for name in names)
    return planned(
        desired(*kept, removed=gone), readings, state(*rows), options=options or Options()
    )


def guarded(plan: Plan) -> int:
    return sum(1 for c in plan.changes if c.blocked and c.blocked.block is Block.GUARD)


@pytest.mark.parametrize(
    ("deleted", "recorded", "blocked"),
    [
        (9, 9, False),  # fewer than ten, though all
        (10, 34, False),  # ten, and 29 %
        (10, 33, True),  # ten, and more than 30 %
        (12, 40, False),  # exactly 30 %
        (13, 40, True),
        (11, 11, True),
    ],
)
def test_ten_and_more_than_thirty_percent(deleted: int, recorded: int, blocked: bool) -> None:
    """Both limits must be passed; then every deletion of the plan is blocked."""
    plan = deleting(deleted, recorded)
    assert guarded(plan) == (deleted if blocked else 0)
    assert bool(list(plan.list_blocked(stopping=True))) is blocked


def test_the_share_is_of_the_kind_in_the_provider_instance() -> None:
    """Many topics of another cluster do not make these deletions few."""
    names = [f"t{number:02}" for number in range(10)]
    gone = tuple(removed(f"kafka_topic.{name}", destroy=True) for name in names)
    rows = [row(name, id=f"id-{name}") for name in names]
    others = [
        replace(r, identity=replace(r.identity, kind="kafka_topic_config", key=f"x{n}"))
        for n, r in enumerate(rows * 9)
    ]
    readings = [live(name, id=f"id-{name}") for name in names]
    plan = planned(
        desired(topic("z"), removed=gone),
        [*readings, live("z", id="z"), *(Absent(o.identity) for o in others)],
        state(*rows, *others),
    )
    assert guarded(plan) == 10


@pytest.mark.parametrize(("allowed", "blocked"), [(12, False), (11, True), (0, True)])
def test_max_deletes_replaces_the_built_in_guard(allowed: int, blocked: bool) -> None:
    """--max-deletes N is the only number that counts, small plans included."""
    assert guarded(deleting(12, 12, Options(max_deletes=allowed))) == (12 if blocked else 0)


def test_max_deletes_zero_stops_a_single_delete() -> None:
    """A pipeline that never deletes says --max-deletes 0."""
    assert guarded(deleting(1, 5, Options(max_deletes=0))) == 1


def test_protected_rows_do_not_count() -> None:
    """What is not deleted anyway does not trip the guard."""
    names = [f"t{number:02}" for number in range(12)]
    rows = [row(name, id=f"id-{name}") for name in names]
    readings = [live(name, id=f"id-{name}") for name in names]
    plan = planned(desired(topic("z")), [*readings, live("z", id="z")], state(*rows))
    assert guarded(plan) == 0
    assert all(c.blocked for c in plan.changes)


@pytest.mark.parametrize(
    "said",
    [
        desired(),
        desired(removed=(removed("kafka_topic.a", destroy=True),)),
        desired(removed=(removed("kafka_topic.a"),)),
    ],
)
def test_an_empty_configuration_never_deletes_or_forgets(said: Desired) -> None:
    """A wrong --chdir or an empty variable must not be taken at its word."""
    plan = planned(said, [live()], state(row(protected="no")), options=Options(max_deletes=99))
    (change,) = plan.changes
    assert change.blocked is not None and change.blocked.block is Block.GUARD
    assert "kafkaform destroy" in change.blocked.fix


def test_an_empty_configuration_without_a_state_is_fine() -> None:
    """A new folder has nothing to lose."""
    assert planned(desired(), []).changes == ()


def test_destroy_needs_no_number() -> None:
    """`destroy` names the cluster instead; --max-deletes still counts if it is given."""
    everything = deleting(0, 15, Options(Mode.DESTROY))
    assert everything.count(Action.DELETE) == 15
    assert guarded(deleting(0, 15, Options(Mode.DESTROY, max_deletes=3))) == 15


CUT = Rule("cut", "cut", Level.DANGER, Harm.DATA_LOSS, (), Needs.OBJECT, "why", "example")
CUT_TEXT = "records older than 1 s are deleted"


def cutting(cut: int, recorded: int, options: Options | None = None) -> Plan:
    """A plan that could destroy data of so many of so many recorded objects, and deletes none."""
    finding = CUT.find(CUT_TEXT, ("config", "retention.ms"))
    changes = [
        Change(Identity("kafka", "kafka_topic", f"t{n:02}"), f"kafka_topic.t{n:02}", Action.UPDATE)
        for n in range(recorded)
    ]
    changes[:cut] = [add_findings(change, finding) for change in changes[:cut]]
    rows = (row(f"t{number:02}", id=f"id-{number}") for number in range(recorded))
    guarded_ = guard_losses(changes, state(*rows), options or Options())
    return Plan("lineage", 1, "", {}, guarded_)


@pytest.mark.parametrize(
    ("cut", "recorded", "blocked"), [(9, 9, False), (10, 34, False), (10, 33, True), (11, 11, True)]
)
def test_many_losses_of_data_are_blocked(cut: int, recorded: int, blocked: bool) -> None:
    """Retention cut on many objects at once is stopped like many deletions are."""
    plan = cutting(cut, recorded)
    assert guarded(plan) == (cut if blocked else 0)
    assert all("--max-data-loss N" in c.blocked.fix for c in plan.changes if c.blocked)


def test_losses_of_data_can_be_allowed_by_number() -> None:
    """`--max-data-loss` takes the place of the built-in limits, in both directions."""
    assert guarded(cutting(11, 11, Options(max_data_loss=11))) == 0
    assert guarded(cutting(2, 40, Options(max_data_loss=1))) == 2


def lowering(
    objects: int,
    of_objects: int,
    options: Options | None = None,
    action: Action = Action.UPDATE,
    single: int = 0,
) -> Plan:
    """A plan that changes one default, which so many of so many objects follow, and lowers the same
    of further single objects."""
    figures = FrozenMap(objects=objects, of_objects=of_objects, kind="kafka_topic")
    default = Change(Identity("kafka", "kafka_cluster_config", "default"), "defaults", action)
    changes = [add_findings(default, CUT.find(CUT_TEXT, figures=figures))]
    for number in range(single):
        one = Change(Identity("kafka", "kafka_topic", f"t{number}"), f"t{number}", Action.UPDATE)
        changes.append(add_findings(one, CUT.find(CUT_TEXT)))
    return Plan("lineage", 1, "", {}, guard_losses(changes, state(), options or Options()))


@pytest.mark.parametrize(
    ("objects", "of_objects", "blocked"),
    [(9, 9, False), (10, 34, False), (10, 33, True), (12, 12, True)],
)
@pytest.mark.parametrize("action", [Action.UPDATE, Action.DELETE])
def test_a_default_counts_as_the_objects_that_follow_it(
    objects: int, of_objects: int, blocked: bool, action: Action
) -> None:
    """One line that lowers the retention of 12 topics is stopped as 12 lines are, also if the line
    goes: the deletion of the default is not what destroys the data."""
    plan = lowering(objects, of_objects, action=action)
    assert guarded(plan) == (1 if blocked else 0)
    if blocked:
        (change,) = plan.changes
        assert change.blocked is not None
        assert f"{objects} of {of_objects} kafka_topic objects" in change.blocked.text


def test_a_default_and_single_objects_are_added_up() -> None:
    """6 topics that follow a default and 6 with a change of their own are 12 topics."""
    assert guarded(lowering(6, 20, single=6)) == 7
    assert guarded(lowering(6, 20, single=3)) == 0


def test_the_number_that_is_allowed_counts_what_follows_a_default() -> None:
    """`--max-data-loss 12` allows 12 topics, and not 12 defaults."""
    assert guarded(lowering(12, 12, Options(max_data_loss=12))) == 0
    assert guarded(lowering(12, 400, Options(max_data_loss=11))) == 1
