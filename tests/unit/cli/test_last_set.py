"""Drift names the run that set the value that was changed, for objects of every kind: not the last
run that did anything with the object."""

from __future__ import annotations

import json

import pytest

from kafkaform.core.address import parse_address
from kafkaform.core.canonical import digest
from kafkaform.core.resource import Declared, Desired, Identity, ProviderConfig
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.plan.model import Plan
from kafkaform.provider.contract import Provider
from kafkaform.provider.http.exchange import Call, join_path
from kafkaform_connect.connector import KIND as CONNECTOR
from kafkaform_connect.memory.provider import ConnectMemoryProvider
from kafkaform_connect.memory.workers import SimulatedWorkers
from kafkaform_schema_registry import requests
from kafkaform_schema_registry.kinds import schema
from kafkaform_schema_registry.kinds.subject_settings import SUBJECT_CONFIG
from kafkaform_schema_registry.memory import SimulatedRegistry, connect_simulated

from ...kit.commands.here import Here
from ...kit.schema_registry.schemas import field, record
from ...kit.simulated.engine import PLACE, Clock, House, apply, plan
from ...model.single_provider import make_house
from .test_history import applied, cluster, there

__all__ = ["cluster", "there"]

# ── objects of Kafka ────────────────────────────────────────────────────────────────────

QUOTA = """
resource "kafka_quota" "ann" {
  user   = "ann"
  config = { producer_byte_rate = %d, consumer_byte_rate = %d }
}
"""
ACL = """
resource "kafka_acl" "ann" {
  acl_principal       = "User:ann"
  acl_host            = "*"
  acl_operation       = "Read"
  acl_permission_type = "Allow"
  resource_type       = "Topic"
  resource_name       = "orders"
  labels              = { tier = "%d" }
}
"""
OTHERS = ACL.replace("ann", "bob") % 1
BARE_ACL = ACL.replace('  labels              = { tier = "%d" }\n', "")
REMOVED = "removed {\n  from = kafka_acl.ann\n  lifecycle {\n    destroy = true\n  }\n}\n"
TOPIC = """
resource "kafka_topic" "orders" {
  name       = "orders"
  partitions = %d
  config     = { "retention.ms" = "%d" }
}
"""


def change_outside(there: Here, *texts: str) -> None:
    """Apply these configurations with a state of their own, which takes over what there is."""
    for text in texts:
        there.write("main.kf.hcl", text)
        adopt = ("--adopt", "*") if "removed" not in text else ()
        there.done("apply", "--auto-approve", "--state", "others.state.json", *adopt)


@pytest.mark.parametrize(
    ("first", "second", "outside"),
    [
        (QUOTA % (1000, 1000), QUOTA % (1000, 2000), (QUOTA % (9000, 2000),)),
        (ACL % 1, ACL % 2, (BARE_ACL + OTHERS, REMOVED + OTHERS)),
        (TOPIC % (1, 1000), TOPIC % (2, 1000), (TOPIC % (2, 9000),)),
    ],
    ids=["quota", "acl", "topic"],
)
def test_an_object_of_kafka(there: Here, first: str, second: str, outside: tuple[str, ...]) -> None:
    """The second run set another value, or only a label, which no cluster has."""
    creator = applied(there, first)
    editor = applied(there, second, "bob")
    change_outside(there, *outside)
    there.write("main.kf.hcl", second)
    said = " ".join(there.done("plan").text.split())
    assert f"(run {creator})" in said and editor not in said


# ── schemas and connectors ──────────────────────────────────────────────────────────────


class Place:
    """A state, its log and one system of another provider than Kafka's."""

    def __init__(self, instance: str, provider: Provider, block: FrozenMap) -> None:
        self.instance, self.block = instance, block
        self.house: House = make_house(Clock())
        self.house.providers = {instance: provider}

    def declare(self, kind: str, attributes: FrozenMap, labels: FrozenMap = EMPTY) -> Desired:
        name = str(attributes.get("name") or attributes["subject"])
        declared = (
            Declared(
                Identity(self.instance, kind, name),
                parse_address(f"{kind}.a"),
                attributes,
                PLACE,
                labels=labels,
            ),
        )
        blocks = {self.instance: ProviderConfig(self.instance, self.instance, self.block, PLACE)}
        return Desired(declared, blocks, digest=digest(declared))

    def apply(self, said: Desired) -> str:
        """The id of the run."""
        apply(self.house, said)
        self.house.clock.sleep(60)
        return str(self.house.records("run_begin")[-1].run)

    def plan(self, said: Desired) -> Plan:
        return plan(self.house, said)


def require_first(plan_: Plan, creator: str, editor: str) -> None:
    (drifted,) = plan_.drifted
    assert drifted.last_set.endswith(f"(run {creator})") and editor not in drifted.last_set


def make_connector(batch: str, tasks: str) -> FrozenMap:
    return FrozenMap(
        name="a",
        **{"class": "org.apache.kafka.connect.file.FileStreamSourceConnector"},
        config=FrozenMap({"topic": "t", "batch.size": batch, "tasks.max": tasks}),
        secret_config=None,
        secret_config_version=None,
        state="running",
    )


def test_a_connector() -> None:
    """Of its configs, each has the run that set it."""
    workers = SimulatedWorkers(Clock())
    place = Place("kafka_connect", ConnectMemoryProvider(workers), FrozenMap())
    creator = place.apply(place.declare(CONNECTOR, make_connector("1", "1")))
    said = place.declare(CONNECTOR, make_connector("1", "2"))
    editor = place.apply(said)
    path = join_path("connectors", "a", "config")
    workers.handle(Call("PATCH", path, {"batch.size": "9"}), "somebody")
    require_first(place.plan(said), creator, editor)


def open_registry() -> tuple[SimulatedRegistry, Place]:
    registry = SimulatedRegistry()
    registry.users["somebody"] = True
    provider = connect_simulated(registry)
    return registry, Place("schema_registry", provider, FrozenMap(protect_schemas=False))


def test_levels_of_a_subject() -> None:
    """The compatibility that somebody changed was set before the mode was."""
    registry, place = open_registry()

    def declare(mode: str) -> Desired:
        named = FrozenMap(subject="a", topic=None, part=None)
        return place.declare(
            SUBJECT_CONFIG,
            named.with_items({"compatibility": "FULL", "mode": mode}),
        )

    creator = place.apply(declare("READWRITE"))
    editor = place.apply(declare("IMPORT"))
    registry.answer(requests.put_setting("config", "a", {"compatibility": "NONE"}), "somebody")
    require_first(place.plan(declare("IMPORT")), creator, editor)


def test_a_schema() -> None:
    """A run that only changed a label did not register the schema."""
    registry, place = open_registry()

    def make(number: int) -> str:
        return json.dumps(
            json.loads(record(field("id", "long"), field("n", "int", default=number)))
        )

    attributes = FrozenMap(
        subject="a",
        topic=None,
        part=None,
        strategy=None,
        format="avro",
        schema=make(1),
        references=None,
    )
    creator = place.apply(place.declare(schema.KIND, attributes, FrozenMap(tier="1")))
    said = place.declare(schema.KIND, attributes, FrozenMap(tier="2"))
    editor = place.apply(said)
    sent = FrozenMap(subject="a", format="avro", schema=make(2), references=())
    registry.answer(requests.register(sent), "somebody")
    require_first(place.plan(said), creator, editor)
    registry.answer(requests.delete_subject("a", permanent=False), "somebody")
    registry.answer(requests.delete_subject("a", permanent=True), "somebody")
    require_first(place.plan(said), creator, editor)
