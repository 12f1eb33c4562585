"""Copies of a simulated cluster (`tests/kit/simulated/copies.py`) have only constants in common."""

from __future__ import annotations

from kafkaform.core.resource import Depth
from kafkaform.core.value import FrozenMap
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster, SimulatedTopic

from ....kit.simulated.copies import Mould, copy_later, is_constant


def test_a_copy_is_a_cluster_of_its_own() -> None:
    """What one has, and is asked, is nothing to the others; a provider gets a cluster of its own,
    though it is frozen itself."""
    first = MemoryProvider(SimulatedCluster())
    mould = Mould(first)
    one, other = mould.copy(), mould.copy()
    key, topic = ("topic", "a"), SimulatedTopic("a", "id", ((0,),))
    one.cluster.commit({key: topic})
    one.open("kafka", FrozenMap(), {}).sweep("kafka_topic", Depth.FULL)
    assert one.cluster.requests and not other.cluster.requests and not first.cluster.requests
    assert one.cluster.world.get(key) == topic
    assert key not in other.cluster.world and key not in mould.copy().cluster.world


def test_the_original_may_change() -> None:
    """A copy is what the thing was when the mould was made, however late it is asked for."""
    thing = {"a": [1]}
    get, mould = copy_later(thing), Mould(thing)
    thing["a"].append(2)
    assert get() == mould.copy() == {"a": [1]} and get() is get()


def test_what_can_change_is_no_constant() -> None:
    """A frozen noun is one only if all that it holds is."""
    assert is_constant((1, "a", FrozenMap(a=None), frozenset({2.0})))
    assert not is_constant(([],)) and not is_constant(MemoryProvider(SimulatedCluster()))
