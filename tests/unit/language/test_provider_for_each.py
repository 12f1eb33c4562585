"""Provider blocks with for_each: one instance for each key, which blocks and calls choose."""

from __future__ import annotations

import pytest

from kafkaform.core.resource import Desired, ProviderConfig
from kafkaform.core.value import FrozenMap

from .test_modules import built, sound

REGIONS = """
variable "regions" {
  type    = map(string)
  default = { eu = "eu:9092", "us.east" = "us:9092" }
}
provider "kafka" {
  alias             = "by_region"
  for_each          = var.regions
  bootstrap_servers = [each.value]
}
"""
TOPIC = """
variable "name" { type = string }
resource "kafka_topic" "t" {
  name       = var.name
  partitions = 1
}
"""
EU, US = 'kafka.by_region["eu"]', 'kafka.by_region["us.east"]'


def list_places(found: Desired) -> dict[str, str]:
    """Address -> provider instance."""
    return {str(item.address): item.identity.instance for item in found.declared}


def list_errors(text: str, **files: str) -> list[str]:
    found = built({"main.kf.hcl": REGIONS + text, **files})
    return [fault.summary for fault in found.diagnostics if fault.severity.value == "error"]


def test_each_key_is_an_instance() -> None:
    """With the settings of its element. The block itself is no instance."""
    found = sound({"main.kf.hcl": REGIONS})
    servers = {name: one.config["bootstrap_servers"] for name, one in found.providers.items()}
    assert {name: servers[name] for name in servers if name != "kafka"} == {
        EU: ("eu:9092",),
        US: ("us:9092",),
    }


def test_resources_choose_an_instance_by_its_key() -> None:
    """By a constant, by a local value, or by `each.key`. The same name there is another object."""
    text = """
locals { chosen = "us.east" }
resource "kafka_topic" "all" {
  provider   = kafka.by_region[each.key]
  for_each   = var.regions
  name       = "t"
  partitions = 1
}
resource "kafka_topic" "constant" {
  provider   = kafka.by_region["eu"]
  name       = "u"
  partitions = 1
}
resource "kafka_topic" "local" {
  provider   = (kafka.by_region[local.chosen])
  name       = "v"
  partitions = 1
}
"""
    assert list_places(sound({"main.kf.hcl": REGIONS + text})) == {
        'kafka_topic.all["eu"]': EU,
        'kafka_topic.all["us.east"]': US,
        "kafka_topic.constant": EU,
        "kafka_topic.local": US,
    }


def test_many_blocks_of_one_shape_choose_their_own_instances() -> None:
    """They are compiled once."""
    blocks = [
        f'resource "kafka_topic" "t{number}" {{\n  provider   = kafka.by_region["{key}"]\n'
        f'  name       = "t{number}"\n  partitions = 1\n}}\n'
        for number in range(40)
        for key in ("eu" if number % 2 else "us.east",)
    ]
    places = list_places(sound({"main.kf.hcl": REGIONS + "\n".join(blocks)}))
    assert places == {f"kafka_topic.t{n}": EU if n % 2 else US for n in range(40)}
    blocks[7] = blocks[7].replace('["eu"]', '["ap"]')
    assert list_errors("\n".join(blocks)) == ['There is no provider instance kafka.by_region["ap"]']


def test_modules_get_an_instance_and_pass_it_on() -> None:
    """Each instance of a module its own, through modules in between."""
    text = """
module "one" {
  source    = "./m"
  providers = { kafka = kafka.by_region["eu"] }
  name      = "one"
}
module "each" {
  source    = "./outer"
  for_each  = var.regions
  providers = { kafka.there = kafka.by_region[each.key] }
  name      = each.key
}
"""
    outer = """
variable "name" { type = string }
module "inner" {
  source    = "../m"
  providers = { kafka = kafka.there }
  name      = var.name
}
resource "kafka_topic" "own" {
  provider   = kafka.there
  name       = "own"
  partitions = 1
}
"""
    files = {"main.kf.hcl": REGIONS + text, "m/main.kf.hcl": TOPIC, "outer/main.kf.hcl": outer}
    assert list_places(sound(files)) == {
        "module.one.kafka_topic.t": EU,
        'module.each["eu"].module.inner.kafka_topic.t': EU,
        'module.each["us.east"].module.inner.kafka_topic.t': US,
        'module.each["eu"].kafka_topic.own': EU,
        'module.each["us.east"].kafka_topic.own': US,
    }


def test_a_module_without_a_map_inherits_the_default_instance() -> None:
    """Which its caller got from its own caller, with a key."""
    text = 'module "a" {\n  source = "./a"\n  providers = { kafka = kafka.by_region["eu"] }\n}\n'
    call = 'module "b" {\n  source = "../m"\n  name = "x"\n}\n'
    files = {"main.kf.hcl": REGIONS + text, "a/main.kf.hcl": call, "m/main.kf.hcl": TOPIC}
    assert list_places(sound(files)) == {"module.a.module.b.kafka_topic.t": EU}


def test_a_data_source_asks_its_own_instance() -> None:
    """Each instance of a data block another one."""
    text = """
data "kafka_topics" "all" {
  provider = kafka.by_region[each.key]
  for_each = var.regions
  prefix   = "t"
}
"""
    asked: list[str] = []

    def answer(config: ProviderConfig, data: str, arguments: FrozenMap) -> FrozenMap:
        asked.append(config.instance)
        return FrozenMap(names=())

    sound({"main.kf.hcl": REGIONS + text}, query=answer)
    assert asked == [EU, US]


BLOCK = 'resource "kafka_topic" "t" {{\n  provider = {}\n  name = "t"\n  partitions = 1\n}}\n'
FAULTS = {
    "no key": (BLOCK.format("kafka.by_region"), "kafka.by_region has several instances"),
    "unknown key": (
        BLOCK.format('kafka.by_region["ap"]'),
        'There is no provider instance kafka.by_region["ap"]',
    ),
    "a key of an instance without keys": (
        BLOCK.format('kafka["eu"]'),
        "kafka has no instances with keys",
    ),
    "null": (
        BLOCK.format("kafka.by_region[null]"),
        "There is no provider instance kafka.by_region[null]",
    ),
    "unknown block": (BLOCK.format('kafka.x["eu"]'), "There is no provider instance kafka.x"),
    "unknown name": (BLOCK.format("kafka.by_region[local.no]"), 'There is no local value "no"'),
    "without an alias": (
        'provider "kafka" {\n  for_each = var.regions\n}\n',
        "A provider block with for_each needs an alias",
    ),
    "count": (
        'provider "kafka" {\n  alias = "c"\n  count = 2\n}\n',
        "A provider block cannot have count",
    ),
    "a list": (
        'provider "kafka" {\n  alias = "c"\n  for_each = ["a"]\n  bootstrap_servers = ["a:1"]\n}\n',
        "for_each must be a map, an object or a set of strings",
    ),
    "an object of the cluster": (
        'provider "kafka" {\n  alias = "c"\n  for_each = toset([kafka_topic.t.topic_id])\n'
        '  bootstrap_servers = ["a:1"]\n}\n' + BLOCK.format("kafka"),
        "kafka_topic.t cannot be used here",
    ),
    "a module without a key": (
        'module "m" {\n  source = "./m"\n  name = "m"\n'
        "  providers = { kafka = kafka.by_region }\n}\n",
        "kafka.by_region has several instances",
    ),
    "a module with an unknown key": (
        'module "m" {\n  source = "./m"\n  name = "m"\n'
        '  providers = { kafka = kafka.by_region["ap"] }\n}\n',
        'There is no provider instance kafka.by_region["ap"]',
    ),
}


@pytest.mark.parametrize("what", FAULTS)
def test_faults(what: str) -> None:
    """Each is told once, at its place."""
    text, summary = FAULTS[what]
    assert list_errors(text, **{"m/main.kf.hcl": TOPIC}) == [summary]


def test_a_fault_of_the_for_each_is_told_once() -> None:
    """And not again by each block that uses it."""
    text = REGIONS.replace("var.regions", "[1]") + BLOCK.format('kafka.by_region["eu"]')
    found = built({"main.kf.hcl": text})
    assert [fault.summary for fault in found.diagnostics] == [
        "for_each must be a map, an object or a set of strings"
    ]


def test_a_sensitive_key_is_refused() -> None:
    """It would be shown in the name of the instance."""
    variable = 'variable "k" {\n  sensitive = true\n  default   = "eu"\n}\n'
    text = variable + BLOCK.format("kafka.by_region[var.k]")
    found = built({"main.kf.hcl": REGIONS + text})
    assert [fault.summary for fault in found.diagnostics] == [
        "The key of a provider instance cannot depend on a sensitive value"
    ]
