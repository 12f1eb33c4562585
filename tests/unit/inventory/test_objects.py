"""What states and configurations become, as rows."""

from __future__ import annotations

from kafkaform.core.address import parse_address
from kafkaform.core.diagnostics import Range
from kafkaform.core.landing import LandedRow
from kafkaform.core.resource import Declared, Identity
from kafkaform.core.value import FrozenMap, SecretRef
from kafkaform.inventory.live import WantedObject, list_declared_rows, list_recorded_rows
from kafkaform.state.model import Row, State

ORDERS = Identity("kafka.eu", "kafka_topic", "orders")
USER = Identity("kafka", "kafka_user_scram_credential", "ci|SCRAM-SHA-256")


def test_a_state_as_rows() -> None:
    """Every object once, with the first of its owners' addresses, its cluster and its id."""
    attributes = FrozenMap(name="orders", config=FrozenMap({"retention.ms": "1"}), partitions=3)
    row = Row(ORDERS, ("a.one", "b.two"), 7, attributes, "id-1", owner="team")
    state = State("lin", objects={ORDERS: row}, providers=FrozenMap({"kafka.eu": "cluster-1"}))
    assert list(list_recorded_rows(state)) == [
        LandedRow(
            "kafka_topic",
            "orders",
            {"name": "orders", "config.retention.ms": "1", "partitions": "3"},
            "kafka.eu",
            "cluster-1",
            "a.one",
            "team",
            "id-1",
        )
    ]


def declared(identity: Identity, address: str, **attributes: object) -> WantedObject:
    place = Range("main.kf.hcl", 1, 1, 1, 1)
    item = Declared(identity, parse_address(address), FrozenMap(attributes), place, owner="team")
    return WantedObject(item, item.attributes)


def test_a_configuration_as_rows() -> None:
    """Secrets are left out, a cluster that is not known yet is none, and two blocks for one object
    make one row."""
    found = list_declared_rows(
        [
            declared(ORDERS, "kafka_topic.b", name="orders"),
            declared(ORDERS, "kafka_topic.a", name="orders"),
            declared(USER, "kafka_user.ci", username="ci", password=SecretRef("env", "CANARY")),
        ],
        {"kafka.eu": "cluster-1"},
    )
    rows = {row.kind: row for row in found}
    assert rows["kafka_topic"].address == "kafka_topic.b" and len(rows) == 2
    assert rows["kafka_topic"].scope_id == "cluster-1"
    user = rows["kafka_user_scram_credential"]
    assert user.attrs == {"username": "ci"} and user.scope_id is None
