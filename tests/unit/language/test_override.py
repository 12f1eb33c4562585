"""Override files change what the other files of a folder declare, by Terraform's rules."""

from __future__ import annotations

import pytest

from kafkaform.core.resource import Declared, Desired

from .example import faults
from .test_json import built

BASE = """
provider "kafka" {
  bootstrap_servers = ["a:1"]
  authorizer {
    super_users = ["User:a"]
  }
}
provider "kafka" {
  alias             = "eu"
  bootstrap_servers = ["eu:1"]
}
variable "n" {
  type    = number
  default = 3
  validation {
    condition     = var.n > 0
    error_message = "n is not positive"
  }
}
locals {
  one = 1
  two = 2
}
resource "kafka_topic" "a" {
  name       = "a"
  partitions = var.n
  depends_on = [kafka_topic.b]
  lifecycle {
    prevent_destroy = true
    ignore_changes  = [partitions]
  }
}
resource "kafka_topic" "b" {
  name = "b"
}
output "o" {
  value     = local.one + local.two
  sensitive = true
}
"""


def _with(**files: str) -> Desired:
    """The base with override files; `x` is x_override.kf.hcl."""
    named = {f"{name}_override.kf.hcl": text for name, text in files.items()}
    return built({"main.kf.hcl": BASE, **named})


def _a(found: Desired) -> Declared:
    assert found.diagnostics == ()
    return next(one for one in found.declared if one.address.name == "a")


def test_arguments_are_replaced() -> None:
    """What the override says counts, what it leaves out stays."""
    found = _a(_with(x='resource "kafka_topic" "a" {\n  partitions = 9\n}\n'))
    assert (found.attributes["name"], found.attributes["partitions"]) == ("a", 9)
    assert [str(one) for one in found.depends_on] == ["kafka_topic.b"]
    assert found.lifecycle.prevent_destroy is True


def test_lifecycle_is_merged_argument_by_argument() -> None:
    """One argument of it can be changed without repeating the others."""
    text = 'resource "kafka_topic" "a" {\n  lifecycle {\n    prevent_destroy = false\n  }\n}\n'
    found = _a(_with(x=text))
    assert found.lifecycle.prevent_destroy is False
    assert found.lifecycle.ignore_changes == ("partitions",)
    text = 'resource "kafka_topic" "b" {\n  lifecycle {\n    prevent_destroy = true\n  }\n}\n'
    added = next(one for one in _with(x=text).declared if one.address.name == "b")
    assert added.lifecycle.prevent_destroy is True


NESTED = [
    "authorizer {\n    super_users = []\n  }",
    'dynamic "authorizer" {\n    for_each = [1]\n    content {\n      super_users = []\n    }\n  }',
]


@pytest.mark.parametrize("text", NESTED)
def test_nested_blocks_replace_all_of_their_kind(text: str) -> None:
    """They are not merged; a dynamic one counts as what it makes."""
    found = _with(x=f'provider "kafka" {{\n  {text}\n}}\n')
    assert found.diagnostics == ()
    assert found.providers["kafka"].config["authorizer"] == {"super_users": ()}
    assert found.providers["kafka"].config["bootstrap_servers"] == ("a:1",)


def test_json_overrides_native_blocks() -> None:
    """A generated JSON file may replace a provider's block that was written by hand."""
    override = '{"provider": {"kafka": {"authorizer": {"super_users": ["User:j"]}}}}'
    found = built({"main.kf.hcl": BASE, "x_override.kf.json": override})
    assert found.diagnostics == ()
    assert found.providers["kafka"].config["authorizer"] == {"super_users": ("User:j",)}


def test_an_alias_is_part_of_a_provider() -> None:
    """Each instance is changed by itself; the default one may exist in an override alone."""
    text = 'provider "kafka" {\n  alias = "eu"\n  bootstrap_servers = ["other:1"]\n}\n'
    found = _with(x=text)
    assert found.providers["kafka.eu"].config["bootstrap_servers"] == ("other:1",)
    assert found.providers["kafka"].config["bootstrap_servers"] == ("a:1",)
    alone = built(
        {
            "main.kf.hcl": 'resource "kafka_topic" "a" {\n  name = "a"\n}\n',
            "a_override.kf.hcl": 'provider "kafka" {\n  bootstrap_servers = ["x:1"]\n}\n',
            "b_override.kf.hcl": 'provider "kafka" {\n  bootstrap_servers = ["y:1"]\n}\n',
        }
    )
    assert alone.diagnostics == ()
    assert alone.providers["kafka"].config["bootstrap_servers"] == ("y:1",)


def test_locals_are_replaced_one_by_one() -> None:
    """Whatever block they stand in."""
    found = _with(x='locals {\n  two = 40\n}\noutput "o" {\n  sensitive = false\n}\n')
    assert found.diagnostics == ()
    assert found.outputs[0].value == 41


def test_later_files_win() -> None:
    """Files are merged in the order of their names, one after the other; override.kf.hcl too."""
    files = {
        "a_override.kf.hcl": 'variable "n" {\n  default = 4\n}\n',
        "b_override.kf.hcl": 'variable "n" {\n  default = 5\n}\n',
    }
    assert _a(built({"main.kf.hcl": BASE, **files})).attributes["partitions"] == 5
    last = {**files, "override.kf.hcl": 'variable "n" {\n  default = 6\n}\n'}
    assert _a(built({"main.kf.hcl": BASE, **last})).attributes["partitions"] == 6


def test_validations_stay() -> None:
    """What a variable may be is not up to an override file, but its default is."""
    found = _with(x='variable "n" {\n  default = -1\n}\n')
    assert [item.detail for item in found.diagnostics] == ["n is not positive"]


MISSING = [
    ('variable "m" {\n  default = 1\n}\n', 'There is no variable "m" to override'),
    ('resource "kafka_topic" "c" {\n  name = "c"\n}\n',
     'There is no resource "kafka_topic" "c" to override'),
    ('output "p" {\n  value = 1\n}\n', 'There is no output "p" to override'),
    ('provider "kafka" {\n  alias = "us"\n}\n',
     'There is no provider "kafka" with the alias "us" to override'),
    ('data "kafka_topics" "x" {}\n', 'There is no data "kafka_topics" "x" to override'),
    ('module "m" {\n  source = "./m"\n}\n', 'There is no module "m" to override'),
    ("locals {\n  three = 3\n}\n", 'There is no local value "three" to override'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "summary"), MISSING)
def test_there_must_be_something_to_override(text: str, summary: str) -> None:
    """A typing error in a name must not go unseen."""
    (fault,) = _with(x=text).diagnostics
    assert fault.summary == summary
    assert str(fault.range).startswith("x_override.kf.hcl:")
    assert fault.advice


def test_a_misspelt_name_is_suggested() -> None:
    """The nearest name of the same kind is offered."""
    (fault,) = _with(x='locals {\n  tow = 3\n}\noutput "o" {}\n').diagnostics
    assert (fault.summary, fault.advice) == (
        'There is no local value "tow" to override',
        'Did you mean "two"?',
    )


FIXED = [
    ('resource "kafka_topic" "a" {\n  depends_on = []\n}\n', '"depends_on" cannot be overridden'),
    ('output "o" {\n  depends_on = []\n}\n', '"depends_on" cannot be overridden'),
    ('variable "n" {\n  validation {\n    condition = var.n > 9\n    error_message = "x"\n  }\n}\n',
     '"validation" cannot be overridden'),
    ('resource "kafka_topic" "b" {\n  lifecycle {\n    precondition {\n      condition = local.one'
     ' > 0\n      error_message = "x"\n    }\n  }\n}\n', '"precondition" cannot be overridden'),
    ("moved {\n  from = kafka_topic.x\n  to   = kafka_topic.a\n}\n",
     "moved blocks are not allowed in an override file"),
    ("removed {\n  from = kafka_topic.x\n}\n",
     "removed blocks are not allowed in an override file"),
    ('import {\n  to = kafka_topic.a\n  id = "a"\n}\n',
     "import blocks are not allowed in an override file"),
    ('check "c" {}\n', "check blocks are not allowed in an override file"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "summary"), FIXED)
def test_what_cannot_be_overridden(text: str, summary: str) -> None:
    """Dependencies, rules and instructions stand where the object is declared."""
    assert [item.summary for item in _with(x=text).diagnostics] == [summary]


def test_faults_are_shown_in_the_file_that_caused_them() -> None:
    """A wrong value of an override is not blamed on the file that it overrides."""
    found = _with(x='resource "kafka_topic" "a" {\n  partitions = "many"\n}\n')
    assert faults(found) == ['x_override.kf.hcl:2:16: "partitions" must be a number']


def test_a_broken_file_does_not_make_everything_missing() -> None:
    """With a syntax error nothing is known to be missing."""
    found = built(
        {
            "main.kf.hcl": 'variable "a" {\n  default = \n}\n',
            "a_override.kf.hcl": 'variable "a" {\n  default = 1\n}\n',
        }
    )
    assert [item.summary for item in found.diagnostics] == [
        "Expected a value before the end of the line"
    ]


def test_terraform_s_own_names() -> None:
    """Override files of Terraform's family, its settings included."""
    found = built(
        {
            "main.tf": BASE,
            "override.tf": 'resource "kafka_topic" "a" {\n  partitions = 7\n}\n',
            "x_override.tf.json": '{"locals": {"one": 10}}',
            "not_override.kf.txt": "?",
        }
    )
    assert _a(found).attributes["partitions"] == 7
    assert found.outputs[0].sensitive
