"""Golden faults: place, summary and advice of what users get wrong."""

from __future__ import annotations

import pytest
from msgspec.structs import replace

from kafkaform.core.resource import Desired
from kafkaform.core.schema import STRING, AttributeSchema, make_schema
from kafkaform.language.desired import TypeInfo, VariableInputs, build_desired, load_tree

from .example import BLOCK, SCHEMAS, TYPES, desired, faults


def _topic(body: str, name: str = "a") -> str:
    return f'resource "kafka_topic" "{name}" {{\n  {body}\n}}\n'


GOLDEN: list[tuple[str, list[str]]] = [
    (_topic('name = "a"\n  partition = 3'), ['3:3: kafka_topic.a has no argument "partition"']),
    (_topic('name = "a"\n  partitions = 3.5'), ['3:16: "partitions" must be a whole number']),
    (
        _topic('name = "a"\n  partitions = "x"\n  config = [1]'),
        ['3:16: "partitions" must be a number', '4:12: "config" must be a map of strings'],
    ),
    (_topic(""), ['1:1: kafka_topic.a needs "name"']),
    (
        _topic('name = "a"\n  config = {\n    retention.ms = 1\n    a.b.c : 2\n  }'),
        ["4:5: The key retention.ms needs quotes", "5:5: The key a.b.c needs quotes"],
    ),
    ("locals {\n  m = [{ a.b = 1 }]\n}\n", ["2:10: The key a.b needs quotes"]),
    (_topic("name = null"), ['2:3: kafka_topic.a needs "name"']),
    (_topic('name = ""'), ["1:1: kafka_topic.a does not name an object"]),
    (
        _topic('name = "a"\n  config_mode = "al"'),
        ['3:17: "config_mode" must be one of all, additive'],
    ),
    (
        _topic('name = "a"\n  partitions = 1\n  replica_assignment = [[1]]'),
        ['4:3: "partitions" and "replica_assignment" exclude each other'],
    ),
    (
        _topic('name = "a"\n  replica_assignment = [[1.5]]'),
        ['3:24: "replica_assignment" must be a whole number'],
    ),
    (_topic('name = "a"\n  topic_id = "x"'), ['3:3: "topic_id" cannot be set']),
    (_topic('name = "a"\n  config {}'), ['3:3: "config" is an argument']),
    (
        _topic('name = "a"\n  dynamic "x" {}'),
        ['3:3: dynamic "x" needs "for_each"', '3:3: dynamic "x" needs a "content" block'],
    ),
    (
        'resource "kafka_user" "u" {\n  username = "u"\n  user = "v"\n}\n',
        ['3:3: "user" and "username" are the same argument'],
    ),
    (_topic('name = "a"') + _topic('name = "b"'), ["4:1: kafka_topic.a is declared twice"]),
    (
        _topic('name = "x"') + _topic('name = "x"', "b"),
        ["4:1: kafka_topic.b and kafka_topic.a are the same object: kafka_topic x (kafka)"],
    ),
    (
        _topic('name = "a"\n  count = 3\n  partitions = "x${count.index}"'),
        ['4:16: "partitions" must be a number'],
    ),
    (
        _topic('name = each.key\n  for_each = ["x"]'),
        ["3:14: for_each must be a map, an object or a set of strings"],
    ),
    (
        _topic("name = each.key\n  for_each = {}\n  count = 1"),
        ["4:11: for_each and count exclude each other"],
    ),
    (_topic('name = "a"\n  count = -1'), ["3:11: count must be a whole number, 0 or more"]),
    (_topic("name = each.key"), ['2:10: "each" exists only in a block with for_each']),
    (_topic("name = kafka_topic.a.name"), ["1:1: kafka_topic.a refers to itself"]),
    (
        "locals {\n  a = local.b\n  b = local.a\n}\n" + _topic("name = local.a"),
        ["2:3: local.a refers to itself"],
    ),
    (
        _topic("name = kafka_topic.b.nmae") + _topic('name = "b"', "b"),
        ['2:10: A kafka_topic has no attribute "nmae"'],
    ),
    (_topic("name = kafka_topic.b.name"), ['2:10: There is no kafka_topic "b"']),
    (
        _topic('name = "x"\n  count = 1') + 'output "o" { value = kafka_topic.a.name }\n',
        ["5:22: kafka_topic.a has several instances"],
    ),
    (_topic("name = var.zone"), ['2:10: There is no variable "zone"']),
    (_topic("name = local.zone"), ['2:10: There is no local value "zone"']),
    (_topic("name = orders"), ['2:10: Nothing is named "orders" here']),
    (_topic("name = lenght([])"), ["2:10: There is no function lenght"]),
    (_topic("name = module.x.y"), ['2:10: There is no module "x"']),
    (_topic('name = "a"\n  provider = kafka.us'), ["3:14: There is no provider instance kafka.us"]),
    (
        _topic('name = "a"\n  provider = aws'),
        ["3:14: This type belongs to the provider kafka, not to aws"],
    ),
    (_topic('name = "a"\n  depends_on = [kafka_topic.b]'), ["3:17: kafka_topic.b is not declared"]),
    (
        _topic(
            'name = "a"\n  lifecycle {\n    ignore_changes = [partitionz]\n    adopts = true\n  }'
        ),
        ['5:5: lifecycle has no argument "adopts"'],
    ),
    (
        _topic('name = "a"\n  lifecycle {\n    ignore_changes = [partitionz]\n  }'),
        ['4:23: There is no attribute "partitionz" to ignore'],
    ),
    ('resorce "kafka_topic" "a" {}\n', ['1:1: There are no "resorce" blocks']),
    ('module "x" {}\n', ['1:1: module "x" needs "source"']),
    ('data "kafka_topic" "x" {}\n', ['1:6: There is no data source "kafka_topic"']),
    ('resource "kafka_topik" "a" {}\n', ['1:10: There is no resource type "kafka_topik"']),
    ('resource "kafka_topic" {}\n', ["1:1: A resource block needs the type and the name"]),
    ('resource "kafka_topic" "1a" {}\n', ['1:24: "1a" is not a name']),
    ('provider "kafak" {}\n', ['1:10: There is no provider "kafak"']),
    ("x = 1\n", ['1:1: "x" is outside of any block']),
    ('variable "x" {\n  type = strin\n  default = 1\n}\n', ["2:10: This is not a type"]),
    (
        'variable "x" {\n  defualt = 1\n}\n',
        ['1:1: The variable "x" has no value', '2:3: variable "x" has no argument "defualt"'],
    ),
    ('output "x" {}\n', ['1:1: output "x" needs "value"']),
    ("locals { a = 1 / 0 }\n" + _topic("name = local.a"), ["1:14: This cannot be computed"]),
]


@pytest.mark.parametrize(("text", "expected"), GOLDEN)
def test_golden(text: str, expected: list[str]) -> None:
    """Each mistake shows up once, where it stands, and hides no other."""
    found = desired(text)
    assert faults(found) == [f"main.kf.hcl:{line}" for line in expected]
    for item in found.diagnostics:
        assert item.excerpt == text.splitlines()[(item.range.line if item.range else 1) - 1]


ADVICE = [
    (_topic('name = "a"\n  config = { retention.ms = 1 }'), 'Write "retention.ms".'),
    (
        'variable "k" {\n  default = "a"\n}\n' + _topic('name = "a"\n  config = { var.k = 1 }'),
        'Write "var.k", or (var.k) if you mean the value of this reference.',
    ),
    (
        'resource "kafka_topic" "a" {\n  config {\n    retention.ms = 1\n    x = { a.b = 1 }\n'
        "    cleanup.policy = 2\n  }\n}\n",
        "Names with dots belong inside a map, in quotes: "
        'config = { "retention.ms" = …, "cleanup.policy" = … }.',
    ),
    (
        'resource "kafka_topic" "a" {\n  config {\n    "retention.ms" = 1\n  }\n}\n',
        "If config is a map, write config = { … }; otherwise remove the quotes from the name.",
    ),
    (_topic('name = "a"\n  partition = 3'), 'Did you mean "partitions"?'),
    (_topic("name = lenght([])"), 'Did you mean "length"?'),
    (_topic("name = orders"), 'Write "orders" in quotes if it is a string.'),
    ('resorce "a" "b" {}', 'Did you mean "resource"?'),
    (_topic('name = "a"\n  config_mode = "al"'), 'Did you mean "all"?'),
]


@pytest.mark.parametrize(("text", "advice"), ADVICE)
def test_advice(text: str, advice: str) -> None:
    """A near miss is answered with the word that was meant."""
    assert desired(text).diagnostics[0].advice == advice


def desired_rule(body: str) -> Desired:
    """What one block of a type with four required arguments declares."""
    required = (
        AttributeSchema(n, STRING, f"The {n}.", required=True) for n in ("a", "b", "c", "d")
    )
    rule = TypeInfo(make_schema("A rule.", *required), str, "kafka")
    text = f'resource "kafka_rule" "r" {{\n  {body}\n}}\n'
    tree = load_tree({"main.kf.hcl": (text + BLOCK).encode()})
    schemas = replace(SCHEMAS, types={**TYPES, "kafka_rule": rule})
    return build_desired(tree, VariableInputs(), schemas)


def test_missing_arguments_are_named_once() -> None:
    """All of them in one error, with what each is for; null is reported where it is written."""
    (fault,) = desired_rule("").diagnostics
    assert fault.summary == 'kafka_rule.r needs "a", "b", "c" and "d"'
    assert fault.advice == "a: The a.\nb: The b.\nc: The c.\nd: The d."
    assert fault.detail == ""
    assert faults(desired_rule("b = null")) == [
        'main.kf.hcl:1:1: kafka_rule.r needs "a", "c" and "d"',
        'main.kf.hcl:2:3: kafka_rule.r needs "b"',
    ]


def test_more_faults_of_one_place_are_counted_apart() -> None:
    """What is left out is not said to be the fault that is shown."""
    found = desired(_topic('name = ""\n  for_each = toset(["a", "b", "c", "d", "e"])'))
    details = [item.detail for item in found.diagnostics]
    assert len(details) == 3
    assert details[0].endswith("2 more errors at this place are not shown.")
    assert not any("It happens" in detail for detail in details)


def test_faults_of_many_instances_are_counted() -> None:
    """The same fault in every instance of a block is shown once, with a number and a context."""
    found = desired(_topic('name = "a${count.index}"\n  count = 50\n  partitions = "x"'))
    (fault,) = found.diagnostics
    assert fault.detail.endswith("It happens 49 times more here.")
    assert fault.context == ("while evaluating kafka_topic.a[0].partitions",)


def test_cycles_are_shown_as_a_chain() -> None:
    """Every link of a cycle is named with its place."""
    text = "locals {\n  a = local.b\n  b = kafka_topic.t.name\n}\n" + _topic("name = local.a", "t")
    assert desired(text).diagnostics[0].detail == (
        "local.a (main.kf.hcl:2:3) → local.b (main.kf.hcl:3:3) → "
        "kafka_topic.t (main.kf.hcl:5:1) → local.a (main.kf.hcl:2:3)"
    )


def test_both_places_of_one_object_are_named() -> None:
    """Two blocks for one topic: the message points at the second and names the first."""
    found = desired(_topic('name = "x"') + _topic('name = "x"', "b"))
    assert found.diagnostics[0].detail == (
        "kafka_topic.a is declared at main.kf.hcl:1:1, kafka_topic.b at main.kf.hcl:4:1."
    )


def test_folders_without_configuration() -> None:
    """An empty folder is named as such."""
    assert load_tree({}).diagnostics[0].summary == "There is no configuration here"


def test_syntax_errors_do_not_hide_other_faults() -> None:
    """What could be read is checked although another block is broken."""
    found = desired(_topic("name = ") + _topic('partition = 3\n  name = "b"', "b"))
    assert len(found.diagnostics) == 2
    assert found.diagnostics[1].summary == 'kafka_topic.b has no argument "partition"'


def test_what_a_provider_block_must_not_name_harms_nobody_else() -> None:
    """A provider block that names what is evaluated after it is told so; others still see it."""
    text = """
provider "kafka" {
  alias             = "b"
  bootstrap_servers = [kafka_topic.a.name]
}
resource "kafka_topic" "a" { name = "a" }
resource "kafka_topic" "b" { name = "${kafka_topic.a.name}-b" }
"""
    found = desired(text)
    assert faults(found) == ["main.kf.hcl:4:24: kafka_topic.a cannot be used here"]
    assert [item.attributes["name"] for item in found.declared] == ["a", "a-b"]
