"""Modules: local folders called with inputs, many times, inside each other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kafkaform.core.resource import Desired
from kafkaform.core.value import FrozenMap
from kafkaform.language.desired import VariableInputs, build_desired, load_tree

from .example import BLOCK, SCHEMAS, faults

TOPIC = """
variable "name" { type = string }
variable "partitions" {
  type    = number
  default = 3
}
resource "kafka_topic" "this" {
  name       = var.name
  partitions = var.partitions
}
output "name" { value = kafka_topic.this.name }
output "id" { value = kafka_topic.this.topic_id }
"""


def built(files: Mapping[str, str], inputs: VariableInputs | None = None, **more: Any) -> Desired:
    """What a root folder and its modules declare. files: path below the root -> text."""
    content = {"provider.kf.hcl": BLOCK, **files}

    def of(folder: str) -> dict[str, bytes]:
        found = {
            path.rpartition("/")[2]: text.encode()
            for path, text in content.items()
            if path.rpartition("/")[0] == folder
        }
        if not found:
            raise FileNotFoundError(2, "No such file or directory")
        return found

    return build_desired(load_tree(of(""), of), inputs or VariableInputs(), SCHEMAS, **more)


def sound(files: Mapping[str, str], **more: Any) -> Desired:
    found = built(files, **more)
    assert not [one for one in found.diagnostics if not one.summary.startswith("--var contains")]
    return found


def addresses(found: Desired) -> list[str]:
    return [str(item.address) for item in found.declared]


def test_a_module_is_called_with_inputs_and_gives_outputs() -> None:
    """Its resources have its address, its outputs are seen by the caller, computed ones later."""
    main = """
module "orders" {
  source     = "./modules/topic"
  name       = "orders"
  partitions = local.many
}
locals { many = 6 }
resource "kafka_topic" "dlq" { name = "${module.orders.name}-dlq" }
output "id" { value = module.orders.id }
output "all" { value = module.orders }
"""
    found = sound({"main.kf.hcl": main, "modules/topic/main.kf.hcl": TOPIC})
    assert addresses(found) == ["kafka_topic.dlq", "module.orders.kafka_topic.this"]
    dlq, orders = found.declared
    assert (orders.attributes["name"], orders.attributes["partitions"]) == ("orders", 6)
    assert dlq.attributes["name"] == "orders-dlq"
    assert [str(one) for one in dlq.depends_on] == ["module.orders.kafka_topic.this"]
    assert str(orders.range) == "modules/topic/main.kf.hcl:7:1"
    assert [output.deferred for output in found.outputs] == [True, True]
    settled = {"module.orders.kafka_topic.this": FrozenMap(topic_id="X")}
    after = sound({"main.kf.hcl": main, "modules/topic/main.kf.hcl": TOPIC}, computed=settled)
    assert [output.value for output in after.outputs] == ["X", {"id": "X", "name": "orders"}]


def test_missing_variables_of_a_module_are_named_once() -> None:
    """With the places of their declarations."""
    module = "".join(f'variable "{name}" {{}}\n' for name in ("a", "b", "c", "d"))
    files = {"main.kf.hcl": 'module "m" {\n  source = "./m"\n}\n', "m/main.kf.hcl": module}
    (fault,) = built(files).diagnostics
    assert fault.summary == 'module.m needs "a", "b", "c" and "d"'
    assert "a at m/main.kf.hcl:1:1" in fault.detail
    assert "d at m/main.kf.hcl:4:1" in fault.detail


def test_for_each_and_count_of_modules() -> None:
    """Each instance has its key in the address; the module's value is keyed in the same way."""
    main = """
module "each" {
  source   = "./t"
  for_each = { a = 1, b = 2 }
  name     = "each-${each.key}"
  partitions = each.value
}
module "counted" {
  source = "./t"
  count  = 2
  name   = "counted-${count.index}"
}
module "none" {
  source = "./t"
  count  = 0
  name   = "x"
}
output "names" {
  value = concat([for m in module.each : m.name], module.counted[*].name, module.none[*].name)
}
output "one" { value = module.each["b"].name }
"""
    found = sound({"main.kf.hcl": main, "t/main.kf.hcl": TOPIC})
    assert addresses(found) == [
        'module.each["a"].kafka_topic.this',
        'module.each["b"].kafka_topic.this',
        "module.counted[0].kafka_topic.this",
        "module.counted[1].kafka_topic.this",
    ]
    assert [item.attributes["partitions"] for item in found.declared] == [1, 2, 3, 3]
    names, one = (output.value for output in found.outputs)
    assert names == ("each-a", "each-b", "counted-0", "counted-1")
    assert one == "each-b"


def test_nested_modules() -> None:
    """A module calls others, by paths seen from its own folder, through any number of levels."""
    team = """
variable "team" { type = string }
variable "topics" { type = set(string) }
module "topic" {
  source   = "../topic"
  for_each = var.topics
  name     = "${var.team}.${each.value}"
}
output "names" { value = sort([for t in module.topic : t.name]) }
"""
    main = """
module "team" {
  source   = "./modules/team"
  for_each = { pay = ["orders", "refunds"], ship = ["parcels"] }
  team     = each.key
  topics   = each.value
}
output "all" { value = flatten([for t in module.team : t.names]) }
"""
    files = {
        "main.kf.hcl": main,
        "modules/team/main.kf.hcl": team,
        "modules/topic/main.kf.hcl": TOPIC,
    }
    found = sound(files)
    assert addresses(found)[0] == 'module.team["pay"].module.topic["orders"].kafka_topic.this'
    assert found.outputs[0].value == ("pay.orders", "pay.refunds", "ship.parcels")
    other = built({**files, "modules/topic/main.kf.hcl": TOPIC + "# a comment\n"})
    assert other.digest != found.digest


def test_providers_are_handed_down() -> None:
    """The default provider is inherited; a map replaces it, and names aliases for the module."""
    providers = """
provider "kafka" {
  alias             = "eu"
  bootstrap_servers = ["eu:9092"]
}
"""
    both = """
resource "kafka_topic" "here" { name = "x" }
resource "kafka_topic" "there" {
  provider = kafka.mirror
  name     = "x"
}
"""
    main = """
module "plain" {
  source = "./t"
  name   = "plain"
}
module "eu" {
  source    = "./t"
  providers = { kafka = kafka.eu }
  name      = "eu"
}
module "both" {
  source    = "./both"
  providers = {
    kafka        = kafka
    kafka.mirror = kafka.eu
  }
}
"""
    files = {
        "main.kf.hcl": main + providers,
        "t/main.kf.hcl": TOPIC,
        "both/main.kf.hcl": both,
    }
    found = sound(files)
    assert {str(item.address): item.identity.instance for item in found.declared} == {
        "module.plain.kafka_topic.this": "kafka",
        "module.eu.kafka_topic.this": "kafka.eu",
        "module.both.kafka_topic.here": "kafka",
        "module.both.kafka_topic.there": "kafka.eu",
    }


def test_references_cross_modules_without_false_cycles() -> None:
    """Two modules may use each other's outputs, as long as no value needs itself."""
    pair = """
variable "other" { default = "" }
output "mine" { value = "mine" }
output "both" { value = "mine+${var.other}" }
"""
    main = """
module "a" {
  source = "./pair"
  other  = module.b.mine
}
module "b" {
  source = "./pair"
  other  = module.a.mine
}
output "a" { value = module.a.both }
"""
    assert sound({"main.kf.hcl": main, "pair/main.kf.hcl": pair}).outputs[0].value == "mine+mine"
    looping = main.replace("module.b.mine", "module.b.both").replace(
        "module.a.mine", "module.a.both"
    )
    (fault,) = built({"main.kf.hcl": looping, "pair/main.kf.hcl": pair}).diagnostics
    assert "refers to itself" in fault.summary
    assert "module.a.output.both" in fault.detail and "module.b.var.other" in fault.detail


def test_depends_on_of_and_on_modules() -> None:
    """A module's depends_on goes for all in it; a resource may wait for a whole module."""
    main = """
module "first" {
  source = "./t"
  name   = "first"
}
module "second" {
  source     = "./t"
  name       = "second"
  depends_on = [kafka_topic.base]
}
resource "kafka_topic" "base" {
  name       = "base"
  depends_on = [module.first]
}
"""
    found = {
        str(item.address): [str(one) for one in item.depends_on]
        for item in sound({"main.kf.hcl": main, "t/main.kf.hcl": TOPIC}).declared
    }
    assert found["kafka_topic.base"] == ["module.first"]
    assert found["module.second.kafka_topic.this"] == ["kafka_topic.base"]


def test_path_module_is_the_modules_folder() -> None:
    """Files are named from the configuration's folder, a module's own through path.module."""
    text = 'output "path" { value = "${path.module}|${path.root}" }\n'
    main = 'module "m" { source = "./a/../b" }\noutput "p" { value = module.m.path }\n'
    found = sound({"main.kf.hcl": main, "b/main.kf.hcl": text})
    assert found.outputs[0].value == "b|."


def test_secrets_pass_through_modules_whole() -> None:
    """A sensitive variable keeps its reference on its way down, and its value stays hidden."""
    user = """
variable "password" { sensitive = true }
resource "kafka_user" "this" {
  username         = "u"
  password         = var.password
  password_version = 1
}
output "password" { value = var.password }
"""
    main = """
variable "secret" {
  type      = string
  sensitive = true
}
module "user" {
  source   = "./user"
  password = var.secret
}
"""
    files = {"main.kf.hcl": main, "user/main.kf.hcl": user}
    found = sound(files, inputs=VariableInputs(assignments=("secret=hunter2",)))
    (item,) = found.declared
    assert str(item.attributes["password"]) == "variable:secret"
    leak = {**files, "main.kf.hcl": main + 'output "p" { value = module.user.password }\n'}
    _, fault = built(leak, inputs=VariableInputs(assignments=("secret=hunter2",))).diagnostics
    assert fault.summary == 'The output "p" is sensitive'
    assert "hunter2" not in str(fault)


def test_elements_of_a_sensitive_map_pass_through_modules() -> None:
    """An element, and the map that it is taken from further down, keep their name in the root."""
    user = """
variable "one" { sensitive = true }
variable "all" {
  type      = map(string)
  sensitive = true
}
variable "name" {}
resource "kafka_user" "one" {
  username         = "one-${var.name}"
  password         = var.one
  password_version = 1
}
resource "kafka_user" "all" {
  username         = "all-${var.name}"
  password         = var.all[var.name]
  password_version = 1
}
"""
    main = """
variable "passwords" {
  type      = map(string)
  sensitive = true
}
module "user" {
  source   = "./user"
  for_each = nonsensitive(toset(keys(var.passwords)))
  name     = each.key
  one      = var.passwords[each.key]
  all      = var.passwords
}
"""
    files = {"main.kf.hcl": main, "user/main.kf.hcl": user}
    given = ('passwords={ a = "hunter2", b = "hunter3" }',)
    found = sound(files, inputs=VariableInputs(assignments=given))
    told = {
        item.attributes["username"]: str(item.attributes["password"]) for item in found.declared
    }
    assert told == {
        f"{kind}-{name}": f'variable:passwords["{name}"]'
        for kind in ("one", "all")
        for name in "ab"
    }
    assert "hunter" not in str(found)


FAULTS = {
    "source is missing": (
        'module "m" {}\n',
        ['main.kf.hcl:1:1: module "m" needs "source"'],
    ),
    "source is an expression": (
        'module "m" {\n  source = "./${1}"\n}\n',
        ["main.kf.hcl:2:12: The source of a module must be a plain string"],
    ),
    "source is remote": (
        'module "m" {\n  source = "hashicorp/consul/aws"\n}\n',
        ['main.kf.hcl:2:12: The module "hashicorp/consul/aws" is not a local folder'],
    ),
    "no such folder": (
        'module "m" {\n  source = "./nowhere"\n}\n',
        ["main.kf.hcl:2:12: The module ./nowhere cannot be read"],
    ),
    "calls itself": (
        'module "m" {\n  source = "./"\n}\n',
        ["main.kf.hcl:2:12: module.m calls the module that contains it"],
    ),
    "unknown variable": (
        'module "m" {\n  source = "./t"\n  name   = "a"\n  partition = 1\n}\n',
        ['main.kf.hcl:4:3: The module ./t does not declare a variable "partition"'],
    ),
    "missing variable": (
        'module "m" {\n  source = "./t"\n}\n',
        ['main.kf.hcl:1:1: module.m needs "name"'],
    ),
    "unknown output": (
        'module "m" {\n  source = "./t"\n  name = "a"\n}\nlocals { x = module.m.nam }\n',
        ['main.kf.hcl:5:14: module.m has no output "nam"'],
    ),
    "unknown module": (
        "locals { x = module.m.name }\n",
        ['main.kf.hcl:1:14: There is no module "m"'],
    ),
    "instance not named": (
        'module "m" {\n  source = "./t"\n  count = 2\n  name = "a${count.index}"\n}\n'
        "locals { x = module.m.name }\n",
        ["main.kf.hcl:6:14: module.m has several instances"],
    ),
    "unknown provider": (
        'module "m" {\n  source = "./t"\n  name = "a"\n  providers = { kafka = kafka.us }\n}\n',
        ["main.kf.hcl:4:25: There is no provider instance kafka.us"],
    ),
    "provider not handed down": (
        'module "m" {\n  source = "./t"\n  name = "a"\n  providers = {}\n}\n',
        ["t/main.kf.hcl:7:1: The module has no provider kafka"],
    ),
    "wrong type of an input": (
        'module "m" {\n  source = "./t"\n  name = "a"\n  partitions = "many"\n}\n',
        ['main.kf.hcl:4:16: The value of the variable "partitions" does not fit its type'],
    ),
    "for_each over a list": (
        'module "m" {\n  source = "./t"\n  for_each = ["a"]\n  name = each.key\n}\n',
        ["main.kf.hcl:3:14: for_each must be a map, an object or a set of strings"],
    ),
    "the same object twice": (
        'module "m" {\n  source = "./t"\n  count = 2\n  name = "a"\n}\n',
        [
            "t/main.kf.hcl:7:1: module.m[1].kafka_topic.this and module.m[0].kafka_topic.this "
            "are the same object: kafka_topic a (kafka)"
        ],
    ),
    "too many instances": (
        'module "m" {\n  source = "./t"\n  count = 1000000000\n  name = "a"\n}\n',
        ["main.kf.hcl:3:11: A collection of 1,000,000,000 elements is too large"],
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults(name: str) -> None:
    """Each mistake of a call is told once, where it was made."""
    text, expected = FAULTS[name]
    assert faults(built({"main.kf.hcl": text, "t/main.kf.hcl": TOPIC})) == expected


def test_faults_inside_say_who_called_and_what_was_given() -> None:
    """The place is in the module; the context leads to the call and to the value."""
    main = 'module "m" {\n  source = "./t"\n  for_each = { a = "x" }\n  size = each.value\n}\n'
    inner = (
        'variable "size" {}\nlocals { half = var.size }\n'
        'resource "kafka_topic" "t" {\n  name       = "t"\n  partitions = local.half\n}\n'
    )
    (fault,) = built({"main.kf.hcl": main, "t/main.kf.hcl": inner}).diagnostics
    assert str(fault.range) == "t/main.kf.hcl:5:16"
    assert fault.context == (
        'in module.m["a"], called at main.kf.hcl:1:1',
        'while evaluating module.m["a"].kafka_topic.t.partitions',
        "var.size is set at main.kf.hcl:4:10",
    )


def test_a_module_has_no_providers_and_imports_of_its_own() -> None:
    """Which clusters are meant is said in one place, the root folder."""
    inner = BLOCK + 'import {\n  to = kafka_topic.a\n  id = "a"\n}\n'
    found = built({"main.kf.hcl": 'module "m" { source = "./m" }\n', "m/main.kf.hcl": inner})
    assert faults(found) == [
        "m/main.kf.hcl:1:1: A module cannot have provider blocks",
        "m/main.kf.hcl:2:1: A module cannot have import blocks",
    ]


def test_calls_of_calls_are_bounded() -> None:
    """Modules that call each other ten at a time end with one diagnostic, quickly."""
    files = {
        "main.kf.hcl": "".join(f'module "m{n}" {{ source = "./l0" }}\n' for n in range(10)),
        "l5/main.kf.hcl": "locals { x = 1 }\n",
    }
    for level in range(5):
        files[f"l{level}/main.kf.hcl"] = "".join(
            f'module "m{n}" {{ source = "../l{level + 1}" }}\n' for n in range(10)
        )
    (fault,) = built(files).diagnostics
    assert fault.summary == "The configuration calls too many modules"


def test_moved_removed_and_import_name_modules() -> None:
    """Blocks may move into, out of and between modules; a module's own are seen from inside."""
    inner = TOPIC + "moved {\n  from = kafka_topic.old\n  to   = kafka_topic.this\n}\n"
    main = """
module "m" {
  source   = "./t"
  for_each = toset(["a"])
  name     = each.key
}
moved {
  from = kafka_topic.before
  to   = module.m["a"].kafka_topic.this
}
moved {
  from = module.gone
  to   = module.m
}
removed { from = module.dropped }
removed { from = module.m.kafka_topic.dropped }
import {
  to = module.m["a"].kafka_topic.this
  id = "a"
}
"""
    found = sound({"main.kf.hcl": main, "t/main.kf.hcl": inner})
    assert [(str(m.source), str(m.target)) for m in found.moved] == [
        ("kafka_topic.before", 'module.m["a"].kafka_topic.this'),
        ("module.gone", "module.m"),
        ('module.m["a"].kafka_topic.old', 'module.m["a"].kafka_topic.this'),
    ]
    assert [str(r.source) for r in found.removed] == [
        "module.dropped",
        "module.m.kafka_topic.dropped",
    ]
    assert [str(i.target) for i in found.imports] == ['module.m["a"].kafka_topic.this']
    wrong = main + "removed { from = module.m }\nremoved { from = module.m.kafka_topic.this }\n"
    assert faults(built({"main.kf.hcl": wrong, "t/main.kf.hcl": inner})) == [
        "main.kf.hcl:21:18: module.m is still declared",
        "main.kf.hcl:22:18: module.m.kafka_topic.this is still declared",
    ]


def test_validations_and_deprecations_of_a_modules_variables() -> None:
    """A rule that does not hold is told at the variable, with the call and the value's place."""
    inner = """
variable "size" {
  type = number
  validation {
    condition     = var.size > 0
    error_message = "got ${var.size}"
  }
}
variable "old" {
  default    = 1
  deprecated = "Use size."
}
"""
    main = 'module "m" {\n  source = "./t"\n  size   = 0\n  old    = 2\n}\n'
    found = built({"main.kf.hcl": main, "t/main.kf.hcl": inner})
    assert faults(found) == [
        'main.kf.hcl:4:12: The variable "old" is deprecated',
        't/main.kf.hcl:2:1: The value of the variable "size" is not valid',
    ]
    assert found.diagnostics[1].detail == "got 0"
    assert found.diagnostics[1].context[0] == "in module.m, called at main.kf.hcl:1:1"


def test_local_names_of_providers_in_terraforms_files() -> None:
    """required_providers may call the Kafka provider otherwise; blocks of others are skipped."""
    text = """
terraform {
  required_providers {
    kf  = { source = "Mongey/kafka" }
    aws = { source = "hashicorp/aws" }
  }
}
provider "kf" {
  bootstrap_servers = ["a:9092"]
}
provider "kf" {
  alias             = "eu"
  bootstrap_servers = ["b:9092"]
}
resource "kafka_topic" "here" {
  provider = kf
  name     = "x"
}
resource "kafka_topic" "there" {
  provider = kf.eu
  name     = "x"
}
resource "aws_bucket" "b" { name = "b" }
output "bucket" { value = aws_bucket.b.arn }
resource "kafka_topic" "needs" { name = local.bucket }
locals { bucket = aws_bucket.b.name }
"""
    found = build_desired(load_tree({"main.tf": text.encode()}), VariableInputs(), SCHEMAS)
    assert [item.identity.instance for item in found.declared] == ["kafka", "kafka.eu"]
    assert [(f.severity, f.summary) for f in found.diagnostics] == [
        ("warning", '1 block of the provider "aws" is skipped'),
        ("error", "kafka_topic.needs needs aws_bucket.b, which is skipped"),
    ]


def test_a_secret_of_a_provider_that_is_not_known_is_handed_in_as_one() -> None:
    """A password that is written out is the next thing that would be refused."""
    text = """
provider "kafka" {
  bootstrap_servers = ["a:9092"]
}
resource "random_password" "p" { length = 16 }
resource "kafka_topic" "t" { name = random_password.p.result }
"""
    found = build_desired(load_tree({"main.tf": text.encode()}), VariableInputs(), SCHEMAS)
    (fault,) = [item for item in found.diagnostics if item.severity == "error"]
    assert "which is skipped" in fault.summary
    assert fault.advice.startswith('For a secret, write secret_env("NAME")')
