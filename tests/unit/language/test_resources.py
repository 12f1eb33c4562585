"""Resource blocks: attributes, instances, references, lifecycle, composites, outputs."""

from __future__ import annotations

import pytest

from kafkaform.core.address import Address
from kafkaform.core.resource import Lifecycle
from kafkaform.core.value import FrozenMap
from kafkaform.language.desired import VariableInputs, build_desired, load_tree

from .example import SCHEMAS, desired, faults, sound

TOPIC = 'resource "kafka_topic" "a" {\n  name = "a"\n}\n'


def test_attributes_fit_the_schema() -> None:
    """Numbers become text in config, null entries go, defaults and None fill the rest."""
    text = """
resource "kafka_topic" "a" {
  name       = "a"
  partitions = "6"
  config     = { "retention.ms" = retention("7d"), compact = true, gone = null }
  owner      = "team"
  labels     = { tier = 1 }
}
"""
    (topic,) = sound(text).declared
    assert topic.attributes == {
        "name": "a",
        "partitions": 6,
        "config": {"compact": "true", "retention.ms": "604800000"},
        "config_mode": "all",
        "replica_assignment": None,
        "topic_id": None,
    }
    assert list(topic.attributes["config"]) == ["compact", "retention.ms"]
    assert (topic.owner, topic.labels) == ("team", {"tier": "1"})
    assert str(topic.range) == "main.kf.hcl:2:1"
    assert str(topic.identity) == "kafka_topic a (kafka)"


def test_for_each_and_count() -> None:
    """Each key is an instance; each.key, each.value and count.index are known."""
    text = """
resource "kafka_topic" "m" {
  for_each   = { b = 2, a = 1 }
  name       = "m-${each.key}"
  partitions = each.value
}
resource "kafka_topic" "s" {
  for_each = toset(["x", "y"])
  name     = each.value
}
resource "kafka_topic" "c" {
  count = 2
  name  = "c-${count.index}"
}
resource "kafka_topic" "none" {
  for_each = {}
  name     = each.key
}
"""
    found = sound(text).declared
    assert [str(item.address) for item in found] == [
        'kafka_topic.m["a"]',
        'kafka_topic.m["b"]',
        'kafka_topic.s["x"]',
        'kafka_topic.s["y"]',
        "kafka_topic.c[0]",
        "kafka_topic.c[1]",
    ]
    assert [item.attributes["name"] for item in found] == ["m-a", "m-b", "x", "y", "c-0", "c-1"]
    assert found[1].attributes["partitions"] == 2


def test_references_and_depends_on() -> None:
    """Objects refer to each other, through local values too, in any order of writing."""
    text = """
resource "kafka_topic" "dlq" {
  name       = "${local.first}-dlq"
  partitions = kafka_topic.many["a"].partitions
  depends_on = [kafka_topic.other]
}
locals { first = kafka_topic.many["a"].name }
resource "kafka_topic" "many" {
  for_each   = { a = 3 }
  name       = each.key
  partitions = each.value
}
resource "kafka_topic" "other" { name = "other" }
output "names" { value = [for key, topic in kafka_topic.many : topic.name] }
"""
    found = sound(text)
    dlq = found.declared[0]
    assert dlq.attributes["name"] == "a-dlq"
    assert dlq.attributes["partitions"] == 3
    assert dlq.depends_on == (Address("kafka_topic", "many", "a"), Address("kafka_topic", "other"))
    assert found.outputs[0].value == ("a",)


def test_outputs_of_computed_attributes_are_deferred() -> None:
    """An output that needs the server waits as a whole, until the attribute is known."""
    text = TOPIC + (
        "locals { id = kafka_topic.a.topic_id }\n"
        'output "id" { value = "id-${local.id}" }\n'
        'output "all" { value = kafka_topic.a }\n'
        'output "name" { value = kafka_topic.a.name }\n'
    )
    before = sound(text).outputs
    assert [(o.name, o.value, o.deferred) for o in before[:2]] == [
        ("id", None, True),
        ("all", None, True),
    ]
    assert before[2].value == "a"
    after = sound(text, computed={"kafka_topic.a": FrozenMap(topic_id="X")}).outputs
    assert after[0].value == "id-X"
    assert after[1].value["topic_id"] == "X"
    assert not any(output.deferred for output in after)


def test_computed_attributes_cannot_be_arguments() -> None:
    """An argument that needs the server is refused where it is written."""
    text = TOPIC + 'resource "kafka_topic" "b" {\n  name = kafka_topic.a.topic_id\n}\n'
    expected = ["main.kf.hcl:5:10: kafka_topic.a.topic_id is not known before the apply"]
    assert faults(desired(text)) == expected


def test_lifecycle() -> None:
    """prevent_destroy may be an expression; ignored paths are written with dots."""
    text = """
resource "kafka_topic" "a" {
  for_each = toset(["x", "y"])
  name     = each.key
  lifecycle {
    prevent_destroy = each.key == "x"
    adopt           = true
    ignore_changes  = [partitions, config["retention.*"], "config.a"]
  }
}
resource "kafka_topic" "b" {
  name = "b"
  lifecycle { ignore_changes = all }
}
"""
    x, y, b = (item.lifecycle for item in sound(text).declared)
    paths = ("partitions", "config.retention.*", "config.a")
    assert x == Lifecycle(True, True, paths)
    assert y == Lifecycle(False, True, paths)
    assert b == Lifecycle(None, False, ("*",))


def test_a_shared_object_is_taken_over() -> None:
    """All that a role stands for is shared with it, instance by instance."""
    text = """
resource "kafka_role" "a" {
  for_each = toset(["x", "y"])
  topics   = [each.key]
  lifecycle { shared = each.key == "x" }
}
"""
    x, y = (item.lifecycle for item in sound(text).declared)
    assert x == Lifecycle(adopt=True, shared=True)
    assert y == Lifecycle()


@pytest.mark.parametrize(
    ("block", "fault"),
    [
        ('"kafka_topic" "a" {\n  name = "a"\n', "A kafka_topic cannot be shared"),
        (
            '"kafka_role" "a" {\n  topics = ["a"]\n',
            '"shared" and "prevent_destroy" exclude each other',
        ),
    ],
)
def test_what_cannot_be_shared(block: str, fault: str) -> None:
    """Objects with data, and what is protected in another way."""
    text = (
        f"resource {block}  lifecycle {{\n    shared = true\n    prevent_destroy = true\n  }}\n}}\n"
    )
    assert faults(desired(text)) == [f"main.kf.hcl:4:14: {fault}"]


def test_provider_instances() -> None:
    """provider = kafka.eu picks an alias; provider blocks use variables and local values."""
    text = """
locals { servers = ["eu:9092"] }
provider "kafka" {
  alias             = "eu"
  bootstrap_servers = local.servers
  authorizer { super_users = ["User:b", "User:a"] }
}
resource "kafka_topic" "a" {
  provider = kafka.eu
  name     = "a"
}
"""
    found = sound(text)
    assert found.declared[0].identity.instance == "kafka.eu"
    assert found.providers["kafka.eu"].config == {
        "bootstrap_servers": ("eu:9092",),
        "sasl_password": None,
        "authorizer": {"super_users": ("User:a", "User:b")},
    }
    assert found.providers["kafka"].config["authorizer"] is None


def test_a_missing_provider_block_is_named() -> None:
    """A resource whose provider is not configured says which block is missing."""
    found = desired(TOPIC, files={"provider.kf.hcl": ""})
    assert faults(found) == [
        "main.kf.hcl:1:1: kafka_topic.a needs the provider kafka, which is not configured"
    ]


def test_composites_expand() -> None:
    """A composite is replaced by its parts; its own attributes stay referable."""
    text = (
        'resource "kafka_role" "r" {\n  topics = ["b", "a"]\n}\n'
        'output "t" { value = kafka_role.r.topics }\n'
    )
    found = sound(text)
    assert [str(item.address) for item in found.declared] == [
        'kafka_role.r/acl["0"]',
        'kafka_role.r/acl["1"]',
    ]
    assert found.outputs[0].value == ("a", "b")


def test_files_of_terraform() -> None:
    """A folder with only .tf files is read, its terraform block passed over."""
    text = 'terraform {\n  required_version = "1"\n}\nvariable "n" {}\n' + TOPIC
    files = {"main.tf": text, "provider.tf": 'provider "kafka" { bootstrap_servers = [] }'}
    content = {name: value.encode() for name, value in files.items()}
    tree = load_tree({**content, "terraform.tfvars": b"n = 1", "notes.txt": b"\xff"})
    found = build_desired(tree, VariableInputs(), SCHEMAS)
    assert found.diagnostics == ()
    assert len(found.declared) == 1
