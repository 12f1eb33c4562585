"""Which files of a folder are read, and Terraform's own family among them."""

from __future__ import annotations

import pytest

from kafkaform.core.diagnostics import Severity
from kafkaform.language.declare.folder import is_read
from kafkaform.language.declare.folder import load_folder as load_folder
from kafkaform.language.declare.settings import read_settings, read_terraform_settings
from kafkaform.language.desired import VariableInputs, load_tree

from .example import faults
from .test_json import built

PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["a:1"]\n}\n'
X = PROVIDER + 'variable "x" {\n  default = "default"\n}\noutput "x" {\n  value = var.x\n}\n'


def _x(files: dict[str, str], inputs: VariableInputs | None = None) -> object:
    found = built({"main.tf": X, **files}, inputs)
    assert found.diagnostics == ()
    return found.outputs[0].value


def test_files_of_opentofu_replace_those_of_terraform() -> None:
    """Only the file of the same name and form is replaced, also among override files."""
    files = {
        "main.tf": "terraform {",
        "main.tofu": X,
        "more.tf": 'variable "y" {\n  default = 1\n}\n',
        "more.tofu.json": '{"variable": {"z": {"default": 2}}}',
        "x_override.tf": 'variable "x" {\n  default = "terraform"\n}\n',
        "x_override.tofu": 'variable "x" {\n  default = "opentofu"\n}\n',
        "last.tf.json": "{",
        "last.tofu.json": '{"output": {"last": {"value": "${[var.y, var.z]}"}}}',
    }
    found = built(files)
    assert found.diagnostics == ()
    assert {one.name: one.value for one in found.outputs} == {"x": "opentofu", "last": (1, 2)}
    tree = load_tree({name: text.encode() for name, text in files.items()})
    assert {"main.tf", "x_override.tf", "last.tf.json"}.isdisjoint(tree.contents)


def test_a_folder_with_only_files_of_opentofu() -> None:
    """It is read like one of Terraform's, with its variable files."""
    found = built({"main.tofu": X, "terraform.tfvars": 'x = "values"'})
    assert [one.value for one in found.outputs] == ["values"]


def test_kafkaform_s_files_come_first() -> None:
    """With one file of kafkaform's the others of a folder stay unread, whatever they hold."""
    files = {
        "main.tf": "terraform {",
        "x.tf.json": "{",
        "terraform.tfvars": "x = ",
        "main.kf.json": '{"output": {"o": {"value": 1}}}',
    }
    tree = load_tree({name: text.encode() for name, text in files.items()})
    assert (tree.diagnostics, tree.terraform) == ((), False)
    assert set(tree.contents) == {"main.kf.json"}


NAMES = {
    "main.kf.hcl": True,
    "main.kf.json": True,
    "override.kf.hcl": True,
    "main.tf": True,
    "main.tf.json": True,
    "main.tofu": True,
    "main.tofu.json": True,
    "main.tofu~": False,
    "kafkaform.kfvars.hcl": True,
    "kafkaform.kfvars.json": True,
    "a.auto.kfvars.hcl": True,
    "a.auto.kfvars.json": True,
    "terraform.tfvars": True,
    "terraform.tfvars.json": True,
    "a.auto.tfvars": True,
    "a.auto.tfvars.json": True,
    "prod.kfvars.hcl": False,
    "prod.tfvars": False,
    ".hidden.tf": False,
    ".#main.kf.hcl": False,
    "main.tf~": False,
    "main.tf.bak": False,
    "main.tftest.hcl": False,
    "fleet.hcl": False,
    "kafkaform.state.json": False,
    "package.json": False,
}


@pytest.mark.parametrize("name", NAMES)
def test_names_that_are_read(name: str) -> None:
    """Only what a folder's configuration consists of is looked at."""
    assert is_read(name) is NAMES[name]


PRECEDENCE = [
    ({}, {}, (), "default"),
    ({"TF_VAR_x": "tf"}, {}, (), "tf"),
    ({"TF_VAR_x": "tf", "KF_VAR_x": "kf"}, {}, (), "kf"),
    ({"KF_VAR_x": "kf"}, {"terraform.tfvars": 'x = "main"'}, (), "main"),
    ({}, {"terraform.tfvars": 'x = "m"', "terraform.tfvars.json": '{"x": "json"}'}, (), "json"),
    ({}, {"terraform.tfvars.json": '{"x": "m"}', "a.auto.tfvars": 'x = "a"'}, (), "a"),
    ({}, {"a.auto.tfvars": 'x = "a"', "b.auto.tfvars.json": '{"x": "b"}'}, (), "b"),
    ({}, {"b.auto.tfvars": 'x = "b"', "a.auto.tfvars.json": '{"x": "a"}'}, (), "b"),
    ({}, {"b.auto.tfvars": 'x = "b"'}, ("x=cli",), "cli"),
]


@pytest.mark.parametrize(("environ", "files", "given", "expected"), PRECEDENCE)
def test_values_of_variables(
    environ: dict[str, str], files: dict[str, str], given: tuple[str, ...], expected: str
) -> None:
    """Terraform's names, in Terraform's order."""
    assert _x(files, VariableInputs(environ, given)) == expected


def test_terraform_s_environment_is_for_its_own_files() -> None:
    """TF_VAR_… says nothing in a folder of kafkaform's files."""
    found = built({"main.kf.hcl": X}, VariableInputs({"TF_VAR_x": "tf"}))
    assert found.outputs[0].value == "default"


def test_how_to_give_a_value() -> None:
    """The advice names what works in this folder."""
    (fault,) = built({"main.tf": PROVIDER + 'variable "zone" {}\n'}).diagnostics
    for way in ("--var 'zone=", "TF_VAR_zone", "terraform.tfvars", "--var-file"):
        assert way in fault.advice


SETTINGS = """
terraform {
  required_version = ">= 99"
  experiments      = [something]
  required_providers {
    kafka = {
      source  = "Mongey/kafka"
      version = "~> 0.5"
    }
    kf  = { source = "registry.terraform.io/Mongey/kafka" }
    aws = { source = "hashicorp/aws" }
    old = "~> 1.0"
  }
  provider_meta "kafka" {
    x = 1
  }
}
"""


def test_required_providers() -> None:
    """A local name stands for what its source names, else for itself; nothing is said of
    Terraform's version or of providers that are not there."""
    tree = load_tree({"main.tf": SETTINGS.encode()})
    found = read_terraform_settings(tree)
    assert found.diagnostics == ()
    names = {name: found.resolve_provider(name) for name in ("kafka", "kf", "aws", "old", "other")}
    assert names == {"kafka": "kafka", "kf": "kafka", "aws": "aws", "old": "old", "other": "other"}
    assert built({"main.tf": SETTINGS + X}).diagnostics == ()


def test_required_providers_in_json_and_overridden() -> None:
    """The later entry of a name counts, entry by entry."""
    files = {
        "main.tf.json": '{"terraform": {"required_providers": {"kafka": {"source": "a/b"}, '
        '"kf": {"source": "Mongey/kafka", "configuration_aliases": ["kf.eu"]}}}}',
        "override.tf": 'terraform {\n  required_providers {\n    kafka = { source = "x/kafka" }\n'
        "  }\n}\n",
    }
    found = read_terraform_settings(
        load_tree({name: text.encode() for name, text in files.items()})
    )
    assert found.providers == {"kafka": "x/kafka", "kf": "Mongey/kafka"}
    assert found.diagnostics == ()


@pytest.mark.parametrize("store", ['backend "s3" {\n    bucket = var.b\n  }', "cloud {}"])
def test_a_backend_is_not_used(store: str) -> None:
    """Once it is said that Terraform's state is not read, and how objects come in."""
    text = f"terraform {{\n  {store}\n}}\n"
    found, problems = read_settings(load_tree({"a.tf": text.encode(), "b.tf": text.encode()}))
    assert found.backend is None
    (warning,) = problems
    kind = store.split()[0]
    assert (warning.severity, warning.summary) == (
        Severity.WARNING,
        f"The {kind} block is not used",
    )
    assert str(warning.range) == "a.tf:2:3"
    assert "kafkaform.state.json" in warning.detail
    assert "import blocks" in warning.advice


WRONG = [
    ("terraform {\n  requird_version = 1\n}\n", '2:3: terraform has no argument "requird_version"'),
    ("terraform {\n  required_providers {\n    kafka = 5\n  }\n}\n",
     "3:13: This is not a provider requirement"),
    ("terraform {\n  required_providers {\n    kafka = { source = 5 }\n  }\n}\n",
     "3:24: A source must be a plain string"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "fault"), WRONG)
def test_faults_of_the_block(text: str, fault: str) -> None:
    """A misspelt setting is told like any other."""
    problems = read_terraform_settings(load_tree({"a.tf": text.encode()})).diagnostics
    assert [f"{item.range}: {item.summary}" for item in problems] == [f"a.tf:{fault}"]


def test_kafkaform_s_files_have_no_terraform_block() -> None:
    """There it is a leftover."""
    found = built({"main.kf.hcl": "terraform {}\n" + X})
    assert faults(found) == ["main.kf.hcl:1:1: The terraform block is not used"]


def test_a_folder_inside() -> None:
    """Files of a module carry its folder in places and digests, and its values do not count."""
    files = {
        "main.kf.hcl": b'variable "a" {\n  defalt = 1\n}\n',
        "kafkaform.kfvars.hcl": b"a = ",
    }
    tree = load_folder(files, "modules/topic")
    assert (tree.diagnostics, tree.values) == ((), ())
    assert set(tree.contents) == {"modules/topic/main.kf.hcl"}
    assert str(tree.configuration[0].range).startswith("modules/topic/main.kf.hcl:1:")
    nothing = load_folder({}, "modules/topic").diagnostics
    assert [item.summary for item in nothing] == ["There is no configuration in modules/topic"]
