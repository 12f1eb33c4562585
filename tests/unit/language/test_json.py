"""The JSON form: what it declares is what the native form declares."""

from __future__ import annotations

import json
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform.core.resource import Desired
from kafkaform.core.value import SecretRef
from kafkaform.language.declare.blocks import SHAPES
from kafkaform.language.declare.json_bodies import FORMS, TOP
from kafkaform.language.desired import VariableInputs, build_desired, load_tree

from ...kit.quick import examples
from .example import SCHEMAS, faults, plain


def built(files: Mapping[str, str], inputs: VariableInputs | None = None) -> Desired:
    """What a folder with these files declares."""
    tree = load_tree({name: text.encode() for name, text in files.items()})
    return build_desired(tree, inputs or VariableInputs(), SCHEMAS)


def _sound(text: str, inputs: VariableInputs | None = None) -> Desired:
    found = built({"main.kf.json": text}, inputs)
    assert found.diagnostics == ()
    return found


NATIVE = """
provider "kafka" {
  bootstrap_servers = ["a:9092"]
  authorizer {
    super_users = ["User:admin"]
  }
}
provider "kafka" {
  alias             = "eu"
  bootstrap_servers = ["b:9092"]
}
variable "zone" {
  type    = string
  default = "$${literal}"
  validation {
    condition     = length(var.zone) > 2
    error_message = "${var.zone} is short"
  }
}
variable "sizes" {
  type    = map(object({ n = optional(number, 3) }))
  default = { a = {}, b = { n = 5 } }
}
locals {
  topics = { orders = 6.0, ("pay${"ments"}") = 12 }
}
resource "kafka_topic" "t" {
  for_each   = local.topics
  name       = "x-${each.key}"
  partitions = each.value
  config     = { "retention.ms" = 1000 }
  provider   = kafka.eu
  depends_on = [kafka_user.u]
  lifecycle {
    prevent_destroy = true
    ignore_changes  = [config["retention.ms"], "config.segment.*"]
  }
}
resource "kafka_user" "u" {
  username         = "u"
  password         = secret_env("P")
  password_version = 1
}
output "sizes" {
  value = var.sizes
}
output "zone" {
  value     = var.zone
  sensitive = true
}
moved {
  from = kafka_topic.old
  to   = kafka_topic.t["orders"]
}
removed {
  from = kafka_topic.gone
  lifecycle {
    destroy = true
  }
}
import {
  to = kafka_topic.t["payments"]
  id = "x-payments"
}
"""
JSON = r"""
{
  "//": "made by a program",
  "provider": {"kafka": [
    {"bootstrap_servers": ["a:9092"], "authorizer": {"//": "x", "super_users": ["User:admin"]}},
    {"alias": "eu", "bootstrap_servers": ["b:9092"], "authorizer": null}
  ]},
  "variable": {
    "zone": {
      "type": "string",
      "default": "${literal}",
      "description": "costs ${5",
      "validation": {
        "condition": "${length(var.zone) > 2}",
        "error_message": "${var.zone} is short"
      }
    },
    "sizes": {
      "type": "map(object({ n = optional(number, 3) }))",
      "default": {"a": {}, "b": {"n": 5}}
    }
  },
  "locals": [{"topics": {"orders": 6.0, "pay${\"ments\"}": 12}, "//": "x"}],
  "resource": [
    {"kafka_topic": {"t": {
      "for_each": "${local.topics}",
      "name": "x-${each.key}",
      "partitions": "${each.value}",
      "config": {"retention.ms": 1000},
      "provider": "kafka.eu",
      "depends_on": ["kafka_user.u"],
      "lifecycle": {
        "prevent_destroy": true,
        "ignore_changes": ["config[\"retention.ms\"]", "config.segment.*"]
      }
    }}},
    {"kafka_user": {"u": [
      {"username": "u", "password": "${secret_env(\"P\")}", "password_version": 1}
    ]}}
  ],
  "output": {
    "sizes": {"value": "${var.sizes}"},
    "zone": {"value": "${var.zone}", "sensitive": true}
  },
  "moved": [{"from": "kafka_topic.old", "to": "kafka_topic.t[\"orders\"]"}],
  "removed": {"from": "kafka_topic.gone", "lifecycle": {"destroy": true}},
  "import": {"to": "kafka_topic.t[\"payments\"]", "id": "x-payments"}
}
"""


def test_both_forms_say_the_same() -> None:
    """Objects, providers, outputs, instructions: whatever a native file can say."""
    native = built({"main.kf.hcl": NATIVE})
    other = _sound(JSON)
    assert native.diagnostics == ()
    for one, two in zip(native.declared, other.declared, strict=True):
        assert (one.address, one.attributes, one.lifecycle, one.depends_on, one.identity) == (
            two.address, two.attributes, two.lifecycle, two.depends_on, two.identity
        )  # fmt: skip
    assert {i: p.config for i, p in native.providers.items()} == {
        i: p.config for i, p in other.providers.items()
    }
    assert native.outputs == other.outputs
    for kind in ("moved", "removed", "imports"):
        told = [
            [(str(getattr(x, "source", "")), str(getattr(x, "target", ""))) for x in given]
            for given in (getattr(native, kind), getattr(other, kind))
        ]
        assert told[0] == told[1] != []


def test_both_forms_in_one_folder() -> None:
    """A generated file adds to what people write."""
    found = built(
        {
            "main.kf.hcl": 'provider "kafka" {\n  bootstrap_servers = ["a:1"]\n}\n'
            'resource "kafka_topic" "a" {\n  name = local.name\n}\n',
            "made.kf.json": '{"locals": {"name": "x"}}',
        }
    )
    assert found.diagnostics == ()
    assert found.declared[0].attributes["name"] == "x"


def test_numbers_and_secrets() -> None:
    """Numbers are exact; a secret is a reference, never a text."""
    found = _sound(
        '{"provider": {"kafka": {"bootstrap_servers": ["a:1"], '
        '"sasl_password": "${secret_env(\\"PW\\")}"}}, '
        '"output": {"n": {"value": 12345678901234567890123.5}}, '
        '"resource": {"kafka_topic": {"a": {"name": "a"}}}}'
    )
    assert found.providers["kafka"].config["sasl_password"] == SecretRef("env", "PW")
    assert str(found.outputs[0].value) == "12345678901234567890123.5"
    refused = built(
        {
            "main.kf.json": '{"provider": {"kafka": {"bootstrap_servers": ["a:1"],\n'
            '"sasl_password": "hunter2"}}}'
        }
    )
    assert faults(refused) == [
        'main.kf.json:2:18: "sasl_password" needs a reference to a secret, not a value'
    ]
    assert "hunter2" not in str(refused.diagnostics)


def test_no_exponent_is_too_much() -> None:
    """A number that nothing can hold is a fault in either form, and no number to functions."""
    for file, text in (
        ("a.kf.hcl", "locals {\n  x = 1e99999999999999999999\n}\n"),
        ("a.kf.json", '{"locals":\n{"x": 1e99999999999999999999}}'),
    ):
        (fault,) = built({file: text}).diagnostics
        assert fault.summary == "Number too long"
    assert plain('can(tonumber("1e99999999999999999999"))') is False


def test_an_object_is_at_the_line_of_its_name() -> None:
    """Of many resources in one property each has a place of its own."""
    found = _sound(
        '{"provider": {"kafka": {"bootstrap_servers": ["a:1"]}},\n"resource": {"kafka_topic": {\n'
        '  "a": {"name": "a"},\n  "b": {"name": "b"}\n}}}'
    )
    assert [str(one.range) for one in found.declared] == ["main.kf.json:3:3", "main.kf.json:4:3"]


NOTHING = [
    '{"resource": {}}',
    '{"resource": null}',
    '{"locals": []}',
    '{"resource": {"kafka_topic": [null]}}',
    '{"//": {"resource": 5}}',
    "[]",
    '[{"locals": {"a": 1}}, {"locals": {"b": 2}}]',
]


@pytest.mark.parametrize("text", NOTHING)
def test_nothing_declares_nothing(text: str) -> None:
    """Empty objects and lists, and null, are no blocks."""
    assert _sound(text).declared == ()


PROVIDER = '"provider": {"kafka": {"bootstrap_servers": ["a:1"]}}'
WRONG = [
    ('{"resource": 5}', "1:14", '"resource" is a block, so its value is written '
     '{ "TYPE": { "NAME": { … } } }'),
    ('{"resource": {"kafka_topic": "x"}}', "1:30", '"resource" is a block, so its value is '
     'written { "TYPE": { "NAME": { … } } }'),
    ('{"locals": [1]}', "1:13", '"locals" is a block, so its value is written { … }'),
    ("5", "1:1", "The file is one object: { … }"),
    ('{"resources": {}}', "1:3", 'There are no "resources" blocks'),
    ('{"locals": {"a b": 1}}', "1:13", '"a b" is not a name'),
    ('{"locals": {"a": 1, "a": 2}}', "1:21", '"a" is set twice'),
    ('{"variable": {"x": {"default": 1}, "x": {"default": 2}}}', "1:36",
     'The variable "x" is declared twice'),
    ('{"variable": {"x": {"default": 1, "default": 2}}}', "1:35", '"default" is set twice'),
    ('{"variable": {"x": {"typ": "string", "default": 1}}}', "1:22",
     'variable "x" has no argument "typ"'),
    ('{"variable": {"x": {"type": "strin", "default": ""}}}', "1:30", "This is not a type"),
    ('{"variable": {"x": {"type": "list(", "default": []}}}', "1:34", 'Unclosed "("'),
    ('{"output": {"x": {"value": "${local.a}"}}}', "1:31", 'There is no local value "a"'),
    ('{"output": {"x": {"value": "\\t${}"}}}', "1:33", "Expected a value"),
    ('{"moved": {"from": "${kafka_topic.a}", "to": "kafka_topic.b"}}', "1:21",
     "A $ has no meaning outside a string"),
    ('{"output": {"x": {"value": {"${null}": 1}}}}', "1:30", "Null cannot be a key"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "place", "summary"), WRONG)
def test_faults_have_their_place(text: str, place: str, summary: str) -> None:
    """Line, column and reason, for what JSON, the language and expressions find wrong."""
    found = built({"main.kf.json": text})
    assert f"main.kf.json:{place}: {summary}" in faults(found)
    assert len(found.diagnostics) == 1


def test_both_places_of_what_is_repeated() -> None:
    """An argument that is given twice names both lines."""
    text = '{"variable": {"x": {\n  "default": 1,\n  "default": 2\n}}}'
    found = built({"main.kf.json": text})
    assert [str(one.range) for one in found.diagnostics] == ["main.kf.json:3:3"]
    assert found.diagnostics[0].detail == "It was first set at main.kf.json:2:3."


def test_a_broken_file_hides_no_other() -> None:
    """One error per broken file, and what the others declare is checked."""
    found = built(
        {
            "a.kf.json": '{"locals": {"a": 1,}}',
            "b.kf.json": '{"locals": {"b": "${locl.a}"}}',
        }
    )
    assert [one.partition(": ")[0] for one in faults(found)] == ["a.kf.json:1:19", "b.kf.json:1:21"]


def test_blocks_of_providers() -> None:
    """What only a schema knows to be a block stands once, and what is none is told."""
    start = '{"provider": {"kafka": {"bootstrap_servers": ["a:1"],\n'
    twice = built({"a.kf.json": start + '"authorizer": [{}, {}]}}}'})
    assert faults(twice) == ['a.kf.json:2:20: provider "kafka": "authorizer" is not allowed here']
    none = built({"a.kf.json": start + '"authorizer": "x"}}}'})
    assert faults(none) == ['a.kf.json:2:2: "authorizer" is a block']
    inner = built({"a.kf.json": start + '"authorizer": {"user": []}}}}'})
    assert faults(inner) == ['a.kf.json:2:17: provider "kafka" authorizer has no argument "user"']


def test_dynamic_blocks() -> None:
    """They have the same parts as in the native form."""
    found = _sound(
        '{"provider": {"kafka": {"bootstrap_servers": ["a:1"], "dynamic": {"authorizer": '
        '{"for_each": ["User:a"], "iterator": "it", '
        '"content": {"super_users": ["${it.value}", "User:${it.key}"]}}}}}, '
        '"resource": {"kafka_topic": {"a": {"name": "a"}}}}'
    )
    assert found.providers["kafka"].config["authorizer"] == {"super_users": ("User:0", "User:a")}


def test_values_are_literal() -> None:
    """In a file of variable values `${` means itself, and null and lists arrive as they are."""
    values = {"s": "${not.a.template}", "l": [1, "x", None], "n": None, "m": {"a.b": True}}
    names = "".join(
        f'variable "{n}" {{\n}}\noutput "{n}" {{\n  value = var.{n}\n}}\n' for n in values
    )
    found = built({"main.kf.hcl": names, "kafkaform.kfvars.json": json.dumps(values)})
    assert found.diagnostics == ()
    assert {one.name: one.value for one in found.outputs} == {
        "s": "${not.a.template}",
        "l": (1, "x", None),
        "n": None,
        "m": {"a.b": True},
    }


def test_values_that_are_no_object() -> None:
    """A file of values is one object; a fault in it shows no value."""
    text = {"main.kf.hcl": 'variable "pw" {\n  sensitive = true\n}\n'}
    found = built({**text, "kafkaform.kfvars.json": '["hunter2"]'})
    assert "kafkaform.kfvars.json:1:2: The file is one object: { … }" in faults(found)
    broken = built({**text, "kafkaform.kfvars.json": '{"pw": "hunter2", }'})
    assert "hunter2" not in str((found.diagnostics, broken.diagnostics))


def test_every_block_of_the_language_has_a_json_form() -> None:
    """The table of JSON forms knows the labels and nested blocks of every block there is."""
    assert set(TOP) == {*SHAPES, "terraform", "ephemeral", "language"}
    for name, shape in SHAPES.items():
        assert FORMS[name].labels == len(shape.labels), name
        assert set(shape.blocks) <= set(FORMS[name].blocks), name
    assert {key for form in FORMS.values() for key in form.blocks.values()} <= set(FORMS)


_NAMES = st.sampled_from(
    [*TOP, *FORMS, "kafka_topic", "kafka", "a", "//", "for_each", "type", "default", "value",
     "from", "to", "id", "validation", "content", "authorizer", "name", "${null}", "a b", ""]
)  # fmt: skip
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-9, 9)
    | st.sampled_from(["kafka_topic.a", "${var.a}", "${[for x in local.a : x]}", "%{ if }", "all"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=3),
    max_leaves=12,
)


@settings(max_examples=examples(300), deadline=None)
@given(st.dictionaries(st.sampled_from([*TOP, "//"]), _VALUES, max_size=4))
def test_any_structure_is_answered(value: object) -> None:
    """Whatever stands where, the answer is what is desired or what is wrong, with places."""
    found = built({"main.kf.json": json.dumps(value), "kafkaform.kfvars.json": json.dumps(value)})
    for item in found.diagnostics:
        assert item.range is None or item.range.file.endswith(".json")


@pytest.mark.timeout(60)
def test_a_large_generated_file() -> None:
    """Thousands of generated topics are read in seconds."""
    topics = {
        f"t{n}": {"name": f"topic-{n}", "partitions": 6, "config": {"retention.ms": "${1000 * 60}"}}
        for n in range(2_000)
    }
    text = json.dumps({"resource": {"kafka_topic": topics}})
    found = _sound(text[:-1] + ", " + PROVIDER + "}")
    assert len(found.declared) == 2_000
    assert found.declared[-1].attributes["config"] == {"retention.ms": "60000"}
