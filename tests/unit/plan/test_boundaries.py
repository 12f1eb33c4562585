"""A plan in a folder with a boundary: however an object comes in, its names have to be inside."""

from __future__ import annotations

from functools import partial

import pytest

from kafkaform.core.change import Action, Change
from kafkaform.core.errors import KafkaformError
from kafkaform.core.finding import Block
from kafkaform.core.resource import Desired, Fence, Lifecycle
from kafkaform.plan.model import Mode, Options, Plan
from kafkaform.plan.rules import judge_declared
from kafkaform.workflow.operations import import_object
from kafkaform_kafka.provider import PROVIDER

from ...kit.simulated import boxes
from ...kit.simulated.engine import (
    House,
    apply,
    box,
    house,
    imported,
    moved,
    plan,
    removed,
    space,
    topic,
)
from ...kit.simulated.engine import desired as desire

FENCE = Fence(
    "teams/shop",
    {"topics": ("shop.*",), "principals": ("User:shop-*",)},
    frozenset(("kafka_access",)),
    "kafkaform.hcl:12",
    "the platform team",
)
desired = partial(desire, fence=FENCE)
TEXT = (
    'the topic "billing.a" is outside of the boundary of teams/shop (kafkaform.hcl:12), whose '
    "topics are: shop.*"
)


def build(*names: str) -> House:
    """A cluster with topics that the folder has made without a boundary, which it has now."""
    where = house()
    apply(
        where, desire(*(topic(name, address=f"kafka_topic.x{n}") for n, name in enumerate(names)))
    )
    return where


def make_foreign(where: House, name: str) -> None:
    """Somebody else creates a topic."""
    apply(house(beside=where), desire(topic(name, address="kafka_topic.foreign")))


def find(plan: Plan, address: str) -> Change:
    return next(change for change in plan.changes if change.address == address)


def refuse(where: House, said: Desired, address: str, options: Options = Options()) -> Change:  # noqa: B008  # it is frozen
    """The change that the boundary blocks; an apply sends nothing."""
    change = find(plan(where, said, options), address)
    assert change.blocked is not None
    assert (change.blocked.rule, change.blocked.text) == ("boundary-name", TEXT)
    assert change.blocked.block is Block.POLICY
    assert "the platform team" in change.blocked.fix
    before = dict(where.cluster.topics)
    with pytest.raises(KafkaformError):
        apply(where, said, options)
    assert dict(where.cluster.topics) == before
    return change


def test_the_finding_is_that_of_validate() -> None:
    """In the same words, at the same attribute."""
    item = topic("billing.a", address="kafka_topic.a")
    where = build()
    change = refuse(where, desired(item, topic("shop.a", address="kafka_topic.b")), "kafka_topic.a")
    assert change.action is Action.CREATE
    ((_, finding),) = judge_declared(FENCE, [item], {"kafka": PROVIDER})
    assert change.findings == (finding,)


def test_an_object_from_before_the_boundary_is_refused() -> None:
    """Also if it needs no change."""
    where = build("shop.a", "billing.a")
    said = desired(
        topic("shop.a", address="kafka_topic.x0"), topic("billing.a", address="kafka_topic.x1")
    )
    assert refuse(where, said, "kafka_topic.x1").action is Action.NOOP


@pytest.mark.parametrize("how", ["not at all", "option", "lifecycle", "import"])
def test_nobody_elses_object_is_taken_over(how: str) -> None:
    """Neither by a block alone, nor by --adopt, by its lifecycle, or by an import block."""
    where = build()
    make_foreign(where, "billing.a")
    lifecycle = Lifecycle(adopt=True) if how == "lifecycle" else Lifecycle()
    item = topic("billing.a", address="kafka_topic.a", lifecycle=lifecycle)
    imports = (imported("kafka_topic.a", "billing.a"),) if how == "import" else ()
    options = Options(adopt=("kafka_topic.a",)) if how == "option" else Options()
    refuse(where, desired(item, imports=imports), "kafka_topic.a", options)


def test_an_import_cannot_name_another_object_than_its_block() -> None:
    """A block with a name of the folder does not let another team's topic in."""
    where = build()
    make_foreign(where, "billing.a")
    item = topic("shop.a", address="kafka_topic.a")
    said = desired(item, imports=(imported("kafka_topic.a", "billing.a"),))
    with pytest.raises(KafkaformError):
        apply(where, said)
    assert not any("billing" in str(identity) for identity in _list_recorded(where))


def _list_recorded(where: House) -> list[str]:
    from ...kit.simulated.memory_store import state_in  # noqa: PLC0415  # only here

    data = where.backend.data
    return [] if data is None else [i.key for i in state_in(data).objects]


def test_the_import_command_is_judged() -> None:
    """It records an object without a plan that policies judge."""
    where = build()
    make_foreign(where, "billing.a")
    said = desired(topic("billing.a", address="kafka_topic.a"))
    with pytest.raises(KafkaformError):
        import_object(space(where, said), "kafka_topic.a", "billing.a")
    assert _list_recorded(where) == []


def test_a_deletion_is_judged() -> None:
    """A folder deletes nothing outside of its boundary, whatever its state says."""
    where = build("billing.a", "shop.a")
    gone = (removed("kafka_topic.x0", destroy=True),)
    said = desired(topic("shop.a", address="kafka_topic.x1"), removed=gone)
    assert refuse(where, said, "kafka_topic.x0").action is Action.DELETE


def test_a_destroy_is_judged() -> None:
    """It deletes what the state records, whatever that is."""
    where = build("billing.a", "shop.a")
    said = desired(topic("shop.a", address="kafka_topic.x1"))
    refuse(where, said, "kafka_topic.x0", Options(mode=Mode.DESTROY))


def test_to_forget_is_judged() -> None:
    """A folder that names the state of another one must not make that one lose its objects."""
    where = build("billing.a", "shop.a")
    kept = topic("shop.a", address="kafka_topic.x1")
    said = desired(kept, removed=(removed("kafka_topic.x0"),))
    assert refuse(where, said, "kafka_topic.x0").action is Action.FORGET
    assert _list_recorded(where) == ["billing.a", "shop.a"]


def test_a_block_that_is_gone_changes_nothing() -> None:
    """A protected object stays, so the others can be applied."""
    where = build("billing.a", "shop.a")
    said = desired(topic("shop.a", 2, address="kafka_topic.x1"))
    apply(where, said)
    assert where.cluster.topics["shop.a"].partitions == 2
    assert "billing.a" in where.cluster.topics


def test_a_move_changes_no_boundary() -> None:
    """An object keeps its name, so a new address helps nobody."""
    where = build("billing.a")
    said = desired(
        topic("billing.a", address="kafka_topic.new"),
        moved=(moved("kafka_topic.x0", "kafka_topic.new"),),
    )
    refuse(where, said, "kafka_topic.new")


def test_a_saved_plan_is_judged_again() -> None:
    """A boundary that came after the review counts."""
    where, item = house(), topic("billing.a", address="kafka_topic.a")
    saved, said = plan(where, desire(item)), desired(item)
    with pytest.raises(KafkaformError, match="outside of the boundary"):
        apply(where, said, saved=saved)
    assert "billing.a" not in where.cluster.topics


def test_a_type_whose_provider_says_nothing_is_refused() -> None:
    """Nobody can tell what its objects reach."""
    where = build()
    change = find(plan(where, desired(box("a"))), f"{boxes.KIND}.a")
    assert change.blocked is not None
    assert change.blocked.rule == "boundary-unlimited"


def test_what_is_inside_is_applied() -> None:
    """A boundary stops nothing that it covers."""
    where = build("shop.a")
    said = desired(
        topic("shop.a", address="kafka_topic.x0"), topic("shop.b", address="kafka_topic.b")
    )
    assert not any(change.findings for change in plan(where, said).changes if change.blocked)
    apply(where, said)
    assert "shop.b" in where.cluster.topics
