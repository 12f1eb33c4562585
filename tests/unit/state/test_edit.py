"""Edits of a state: pure, and the serial moves only on a change."""

from __future__ import annotations

import pytest
from hypothesis import given
from msgspec.structs import replace

from kafkaform.core.errors import UsageError
from kafkaform.core.head import Head
from kafkaform.core.resource import Identity
from kafkaform.core.value import FrozenMap
from kafkaform.state import model
from kafkaform.state.model import State

from ...kit.states import SMALL, state_of, states, topic

HEAD = Head(12, "ef" * 32)


def owners(state: State) -> dict[str, tuple[str, ...]]:
    return {identity.key: row.owners for identity, row in state.objects.items()}


@given(states)
def test_a_new_head_is_not_a_change(state: State) -> None:
    """Anchoring the state at another record keeps its serial."""
    assert model.count_change(state, model.set_head(state, HEAD)).serial == state.serial


@given(states)
def test_any_change_moves_the_serial_by_one(state: State) -> None:
    """Rows, scopes and outputs each count once, together too."""
    for changed in (
        model.put_row(state, topic("a-new-one")),
        model.set_scope(state, "kafka.new", "c"),
        model.set_outputs(state, FrozenMap(new=FrozenMap(value=1))),
        model.set_head(model.put_row(state, topic("a-new-one")), HEAD),
    ):
        assert model.count_change(state, changed).serial == state.serial + 1


def test_put_and_drop() -> None:
    """A row replaces the one of its object; dropping what is not there changes nothing."""
    changed = model.put_row(SMALL, replace(topic("orders"), protected="explicit"))
    orders = Identity("kafka", "kafka_topic", "orders")
    assert changed.objects[orders].protected == "explicit"
    assert SMALL.objects[orders].protected == "default"
    assert orders not in model.drop_row(changed, orders).objects
    assert model.drop_row(SMALL, Identity("kafka", "kafka_topic", "none")) == SMALL


def test_put_after_drop_wins() -> None:
    """In one batch an object may be dropped and put; it stays."""
    row = topic("orders")
    assert model.put_rows(SMALL, [row], [row.identity]).objects[row.identity] == row


def test_without_address_takes_instances_and_children() -> None:
    """An address stands for its instances and children; shared objects keep other owners."""
    state = state_of(
        topic("a", 'kafka_topic.t["a"]'),
        topic("b", 'kafka_topic.t["b"]', "kafka_access.x"),
        topic("c", "kafka_topic.tt"),
    )
    assert owners(model.drop_address(state, "kafka_topic.t")) == {
        "b": ("kafka_access.x",),
        "c": ("kafka_topic.tt",),
    }


def test_without_address_of_one_instance() -> None:
    """An instance address leaves the other instances alone."""
    state = state_of(topic("a", 'kafka_topic.t["a"]'), topic("b", 'kafka_topic.t["b"]'))
    assert owners(model.drop_address(state, 'kafka_topic.t["a"]')) == {"b": ('kafka_topic.t["b"]',)}


def test_move_keeps_keys_and_children_and_follows_references() -> None:
    """Instances keep their keys, children their names, and `depends_on` follows."""
    state = state_of(
        topic("a", 'kafka_access.x["k"]/acl["r"]'),
        topic("b", "kafka_topic.b", depends_on=("kafka_access.x",)),
    )
    moved = model.move_address(state, "kafka_access.x", "module.eu.kafka_access.y")
    assert owners(moved)["a"] == ('module.eu.kafka_access.y["k"]/acl["r"]',)
    depends_on = {i.key: row.depends_on for i, row in moved.objects.items()}["b"]
    assert depends_on == ("module.eu.kafka_access.y",)


def test_move_gives_and_takes_an_instance_key() -> None:
    """A block that gains for_each keeps its object under the new key, and back."""
    state = state_of(topic("a"))
    there = model.move_address(state, "kafka_topic.a", 'kafka_topic.t["a"]')
    assert owners(there)["a"] == ('kafka_topic.t["a"]',)
    assert model.move_address(there, 'kafka_topic.t["a"]', "kafka_topic.a") == state


@pytest.mark.parametrize(
    ("source", "target", "named"),
    [
        ("kafka_topic.order", "kafka_topic.x", 'Did you mean "kafka_topic.orders"?'),
        ("kafka_topic.orders", "kafka_quota.x", "types differ"),
        ("kafka_topic.orders", 'kafka_topic.z["\u2028"]', "already"),
        ("orders", "kafka_topic.x", "not an address"),
    ],
)
def test_moves_that_are_refused(source: str, target: str, named: str) -> None:
    """A typo, another type, a taken target and a text that is no address each say so."""
    with pytest.raises(UsageError) as caught:
        model.move_address(SMALL, source, target)
    assert named in f"{caught.value.message} {caught.value.advice}"


def test_owned_by_does_not_confuse_names() -> None:
    """`kafka_topic.t` owns its instances, not `kafka_topic.tt`."""
    state = state_of(topic("a", 'kafka_topic.t["a"]'), topic("c", "kafka_topic.tt"))
    assert [row.identity.key for row in state.find_owned("kafka_topic.t")] == ["a"]
    assert state.find_owned("kafka_topic.none") == ()
