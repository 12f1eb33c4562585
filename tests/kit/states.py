"""States to test with: a small one, a large one, and any."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kafkaform.core.address import Address
from kafkaform.core.head import Head
from kafkaform.core.resource import Identity
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef, freeze
from kafkaform.state.model import PROTECTIONS, Row, State


def topic(name: str, *owners: str, **members: Any) -> Row:
    """A row of a topic; its owner is `kafka_topic.NAME` unless others are given."""
    attributes = FrozenMap(name=name, partitions=3, config=FrozenMap({"retention.ms": "1000"}))
    identity = Identity("kafka", "kafka_topic", name)
    return Row(identity, owners or (f"kafka_topic.{name}",), 4, attributes, f"id-{name}", **members)


def state_of(*rows: Row, serial: int = 3) -> State:
    return State(
        "5f0c1c4e-lineage",
        serial,
        {row.identity: row for row in rows},
        FrozenMap(kafka="cluster-1"),
        FrozenMap(url=FrozenMap(value="a", sensitive=False)),
        Head(9, "ab" * 32),
        "0.1.0",
    )


SMALL = state_of(
    topic("orders", protected="default", labels=FrozenMap(team="shop"), owner="shop"),
    topic("zebra\n\u2028\N{ELEPHANT}", 'kafka_topic.z["\u2028"]', depends_on=("kafka_topic.a",)),
)


def large(count: int) -> State:
    return state_of(*(topic(f"topic-{number:06d}") for number in range(count)))


_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=8)
    | st.decimals(allow_nan=False, allow_infinity=False, places=3, min_value=-9, max_value=9)
)
values = st.recursive(
    _scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
).map(freeze)
maps = st.dictionaries(st.text(max_size=6), values, max_size=4).map(FrozenMap)
secrets = st.builds(SecretRef, st.sampled_from(["env", "file"]), st.text(max_size=5))
names = st.text(min_size=1, max_size=8)
identities = st.builds(Identity, names, names, st.text(max_size=8))
addresses = st.builds(
    lambda name, key: str(Address("kafka_topic", name, key)),
    st.sampled_from(["a", "b-c", "ä"]),
    st.none() | st.integers(0, 9) | st.text(max_size=8),
)
outputs = st.builds(
    lambda value, sensitive: FrozenMap(value=value, sensitive=sensitive), values, st.booleans()
)
rows = st.builds(
    Row,
    identities,
    st.lists(addresses, min_size=1, max_size=3).map(tuple),
    st.integers(1, 10**9),
    st.builds(lambda plain, secret: plain.with_items({"password": secret}), maps, secrets),
    st.none() | st.text(max_size=8),
    st.sampled_from(PROTECTIONS),
    st.none() | st.text(max_size=8),
    st.dictionaries(st.text(max_size=4), st.text(max_size=4)).map(FrozenMap),
    st.lists(addresses, max_size=2).map(tuple),
    st.none() | st.text(max_size=4),
)
states = st.builds(
    lambda lineage, serial, found, scopes, outputs, head: State(
        lineage, serial, {row.identity: row for row in found}, scopes, outputs, head, "1.2.3"
    ),
    names,
    st.integers(0, 10**9),
    st.lists(rows, max_size=5),
    st.dictionaries(names, names, max_size=2).map(FrozenMap),
    st.dictionaries(st.text(max_size=4), outputs, max_size=2).map(FrozenMap) | st.just(EMPTY),
    st.none() | st.builds(Head, st.integers(1, 10**9), st.just("cd" * 32)),
)
