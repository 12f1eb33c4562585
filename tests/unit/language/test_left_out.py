"""Attributes that a block leaves to the system: null for arguments, and the system's in outputs."""

from __future__ import annotations

from kafkaform.core.diagnostics import has_errors
from kafkaform.core.resource import Desired
from kafkaform.core.value import FrozenMap
from kafkaform.language.desired import VariableInputs, build_desired, load_tree

from .example import SCHEMAS

PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["a:1"]\n}\n'
TOPIC = 'resource "kafka_topic" "t" {\n  name = "t"\n}\n'
SET = {"kafka_topic.t": FrozenMap({"name": "t", "partitions": 6, "config": FrozenMap({})})}


def build(text: str, computed: dict[str, FrozenMap] | None = None, module: str = "") -> Desired:
    tree = load_tree(
        {"main.kf.hcl": (PROVIDER + TOPIC + text).encode()},
        lambda _: {"main.kf.hcl": module.encode()},
    )
    return build_desired(tree, VariableInputs(), SCHEMAS, computed=computed or {})


def write_output(value: str) -> str:
    return f'output "o" {{\n  value = {value}\n}}\n'


def test_an_output_waits_for_what_a_block_leaves_out() -> None:
    """Null would be wrong as soon as the topic exists, and a text cannot contain null."""
    for value, expected in (
        ("kafka_topic.t.partitions", 6),
        ('"${kafka_topic.t.partitions} partitions"', "6 partitions"),
        ("kafka_topic.t.config", FrozenMap({})),
        ('kafka_topic.t["partitions"] + 1', 7),
        ("coalesce(kafka_topic.t.partitions, 1)", 6),
    ):
        first = build(write_output(value))
        assert not has_errors(first.diagnostics), value
        assert (first.outputs[0].deferred, first.settles) == (True, True), value
        assert build(write_output(value), SET).outputs[0].value == expected, value


def test_values_on_the_way_to_an_output_wait_as_well() -> None:
    """A local value, the variable and the output of a module."""
    local = 'locals {\n  x = "${kafka_topic.t.partitions} x"\n}\n' + write_output("local.x")
    assert build(local).outputs[0].deferred
    assert build(local, SET).outputs[0].value == "6 x"
    call = 'module "m" {\n  source = "./m"\n  x = kafka_topic.t.partitions\n}\n'
    module = 'variable "x" {\n  type = number\n}\noutput "twice" {\n  value = var.x * 2\n}\n'
    text = call + write_output("module.m.twice")
    found = build(text, module=module)
    assert (found.outputs[0].deferred, found.diagnostics) == (True, ())
    assert build(text, SET, module).outputs[0].value == 12


def test_other_outputs_do_not_wait() -> None:
    """What the block says is known at once, so nothing is evaluated twice."""
    found = build(write_output("kafka_topic.t.name"))
    assert (found.outputs[0].value, found.settles) == ("t", False)
    given = 'resource "kafka_topic" "g" {\n  name = "g"\n  partitions = 3\n}\n'
    found = build(given + write_output("kafka_topic.g.partitions"))
    assert (found.outputs[0].value, found.settles) == (3, False)


def test_arguments_see_null() -> None:
    """Arguments are known before anything is read, as in Terraform's provider."""
    text = (
        'resource "kafka_topic" "n" {\n  name = "n"\n'
        "  partitions = coalesce(kafka_topic.t.partitions, 2)\n}\n"
    )
    assert build(text).declared[1].attributes["partitions"] == 2


def test_a_default_of_the_system_is_left_out_too() -> None:
    """-1 stands for the system's number."""
    text = 'resource "kafka_topic" "d" {\n  name = "d"\n  partitions = -1\n}\n'
    text += write_output("kafka_topic.d.partitions")
    assert build(text).outputs[0].deferred
    known = {"kafka_topic.d": FrozenMap({"partitions": 6})}
    assert build(text, known).outputs[0].value == 6


def test_rules_wait_for_what_a_block_leaves_out() -> None:
    """A rule is judged with what the system has, and with nothing before."""
    text = (
        'resource "kafka_topic" "r" {\n  name = "r"\n  lifecycle {\n    postcondition {\n'
        '      condition = self.partitions >= 7\n      error_message = "too few"\n    }\n  }\n}\n'
    )
    assert build(text).diagnostics == ()
    known = {"kafka_topic.r": FrozenMap({"partitions": 6})}
    (fault,) = build(text, known).diagnostics
    assert fault.detail == "too few"


def test_whole_objects_and_copies_wait_as_well() -> None:
    """However the attribute is read. Comparing the object with null reads none of them."""
    for value, expected in (
        ("merge({ partitions = 1 }, kafka_topic.t).partitions", 6),
        ('[for name, value in kafka_topic.t : value if name == "partitions"][0]', 6),
        ('lookup(kafka_topic.t, "partitions", 1)', 6),
        ("one([kafka_topic.t]).partitions", 6),
        ("try(kafka_topic.t.partitions, 1)", 6),
    ):
        assert build(write_output(value)).outputs[0].deferred, value
        assert build(write_output(value), SET).outputs[0].value == expected, value
    assert build(write_output("kafka_topic.t != null")).outputs[0].value is True


def test_what_only_the_system_can_choose_waits_for_it() -> None:
    """A prediction says None for it; after the apply it is there, or it is null for good."""
    text = write_output("kafka_topic.t.partitions")
    planned = {"kafka_topic.t": FrozenMap({"name": "t", "partitions": None})}
    assert build(text, planned).outputs[0].deferred
    applied = {"kafka_topic.t": FrozenMap({"name": "t"})}
    assert build(text, applied).outputs[0].value is None
