"""Blocks of other providers in Terraform's files are set aside, and so is what only they use."""

from __future__ import annotations

import pytest

from kafkaform.core.diagnostics import Severity
from kafkaform.core.resource import Desired
from kafkaform.language.desired import VariableInputs, build_desired, load_tree

from .example import SCHEMAS

PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["a:1"]\n}\n'
TOPIC = 'resource "kafka_topic" "t" {\n  name = "t"\n}\n'


def build(text: str, folders: dict[str, str] | None = None, name: str = "main.tf") -> Desired:
    tree = load_tree(
        {name: (PROVIDER + TOPIC + text).encode()},
        lambda folder: {"main.tf": (folders or {})[folder].encode()},
    )
    return build_desired(tree, VariableInputs(), SCHEMAS)


def list_summaries(found: Desired, severity: Severity) -> list[str]:
    return [fault.summary for fault in found.diagnostics if fault.severity is severity]


SKIPPED = {
    "a moved block": "moved {\n  from = aws_vpc.a\n  to   = aws_vpc.b\n}",
    "a moved block of a module": "moved {\n  from = module.m.aws_vpc.a\n  to = aws_vpc.b\n}",
    "a removed block with a provisioner": (
        "removed {\n  from = aws_vpc.a\n  lifecycle {\n    destroy = false\n  }\n"
        '  provisioner "local-exec" {\n    when = destroy\n    command = "echo ${self.id}"\n  }\n}'
    ),
    "an import block with for_each": (
        'import {\n  for_each = { a = "x" }\n  to = aws_vpc.v[each.key]\n  id = each.value\n}'
    ),
    "an import block by identity": (
        'import {\n  to = aws_vpc.v\n  identity = {\n    id = "x"\n  }\n}'
    ),
    "an ephemeral block": 'ephemeral "aws_secret" "s" {\n  name = timestamp()\n}',
    "a registry module": (
        'module "vpc" {\n  source  = "terraform-aws-modules/vpc/aws"\n  version = "5.0"\n'
        "  providers = { aws = aws.us, aws.peer = aws }\n}"
    ),
    "a module of a private registry": (
        'module "vpc" {\n  source = "registry.acme.example/acme/vpc/aws//modules/x"\n}'
    ),
    "functions": (
        'resource "aws_vpc" "v" {\n'
        '  tags = { a = timestamp(), b = uuid(), c = provider::aws::trim("x") }\n'
        "  other = nothing.here\n}"
    ),
    "what providers configure": 'provider "aws" {\n  region = data.aws_region.r.name\n}',
    "a lifecycle of another version": (
        'resource "aws_vpc" "v" {\n  lifecycle {\n    enabled = true\n    destroy = false\n'
        "    action_trigger {\n      events = [after_create]\n    }\n  }\n}"
    ),
    "a check with its own data": (
        'check "c" {\n  data "aws_health" "h" {\n    url = timestamp()\n  }\n'
        '  assert {\n    condition = data.aws_health.h.ok\n    error_message = "no"\n  }\n}'
    ),
    "a function of a provider in a local value": (
        'locals {\n  a = provider::aws::parse("x")\n}\nresource "aws_vpc" "v" {\n  x = local.a.b\n}'
    ),
}


@pytest.mark.parametrize("what", SKIPPED)
def test_a_block_of_another_provider_is_no_fault(what: str) -> None:
    """Every kind of block that speaks of another provider is skipped and counted under its name."""
    found = build(SKIPPED[what])
    assert [str(item.address) for item in found.declared] == ["kafka_topic.t"]
    assert [(fault.severity, fault.summary) for fault in found.diagnostics] == [
        ("warning", '1 block of the provider "aws" is skipped')
    ]


@pytest.mark.parametrize("what", SKIPPED)
def test_kafkaforms_own_files_have_no_blocks_of_others(what: str) -> None:
    """What a migration skips is a mistake in a file that was written for kafkaform."""
    found = build(SKIPPED[what], name="main.kf.hcl")
    assert list_summaries(found, Severity.ERROR)


REFERENCES = {
    "ephemeral.aws_secret.s.value": 'ephemeral "aws_secret" "s" {}',
    "module.vpc.id": 'module "vpc" {\n  source = "terraform-aws-modules/vpc/aws"\n}',
    "data.aws_vpc.v.id": 'data "aws_vpc" "v" {}',
    "aws_vpc.v.id": 'resource "aws_vpc" "v" {}',
    'provider::aws::parse("x")': 'resource "aws_vpc" "v" {}',
}


@pytest.mark.parametrize("reference", REFERENCES)
def test_an_object_of_kafka_cannot_need_what_is_skipped(reference: str) -> None:
    """The value is not known, so the object would be declared wrongly: an error names what it
    needs."""
    more = f'resource "kafka_topic" "n" {{\n  name = {reference}\n}}\n'
    more += f'output "o" {{\n  value = "${{{reference}}}"\n}}\n'
    found = build(f"{REFERENCES[reference]}\n{more}")
    (fault,) = list_summaries(found, Severity.ERROR)
    assert fault.startswith("kafka_topic.n needs ")
    assert fault.endswith(", which is skipped")
    assert found.outputs == ()


USED = 'resource "aws_vpc" "v" {\n  x = local.x\n}\n'


@pytest.mark.parametrize(
    "value",
    ["timestamp()", "var.nothing", "1 / 0", "local.y", 'module.m.o["x"]', "kafka_topic.no.x"],
)
def test_a_fault_in_a_value_that_only_skipped_blocks_use_is_a_warning(value: str) -> None:
    """Nothing of Kafka depends on it, so the folder stays usable."""
    text = f"{USED}locals {{\n  x = {value}\n}}\n"
    found = build(text)
    assert list_summaries(found, Severity.ERROR) == []
    assert [str(item.address) for item in found.declared] == ["kafka_topic.t"]
    (fault,) = [f for f in found.diagnostics if f.range is not None]
    assert "Only skipped blocks use this value." in fault.detail


@pytest.mark.parametrize(
    "user",
    [
        'resource "kafka_topic" "n" {\n  name = local.x\n}',
        'output "o" {\n  value = local.x\n}',
        'locals {\n  z = local.x\n}\nresource "kafka_topic" "n" {\n  name = local.z\n}',
        'check "c" {\n  assert {\n    condition = local.x == "a"\n    error_message = "no"\n  }\n}',
        "import {\n  to = kafka_topic.t\n  id = local.x\n}",
        'module "m" {\n  source = "./m"\n  name   = local.x\n}',
    ],
)
def test_a_fault_in_a_value_that_something_of_kafka_uses_too_is_an_error(user: str) -> None:
    """One skipped block more must not turn a fault of a topic into a warning."""
    module = 'variable "name" {}\nresource "kafka_topic" "m" {\n  name = var.name\n}\n'
    found = build(f"{USED}locals {{\n  x = timestamp()\n}}\n{user}\n", {"m": module})
    assert list_summaries(found, Severity.ERROR)


def test_a_value_that_nothing_uses_keeps_its_fault() -> None:
    """Only skipped blocks make a fault harmless."""
    found = build('resource "aws_vpc" "v" {}\nlocals {\n  x = timestamp()\n}\n')
    assert list_summaries(found, Severity.ERROR) == ["There is no function timestamp"]


def test_a_variable_of_skipped_blocks_needs_no_value() -> None:
    """Terraform's variables come from a place that kafkaform is not given."""
    found = build('variable "region" {}\nresource "aws_vpc" "v" {\n  x = var.region\n}\n')
    assert list_summaries(found, Severity.ERROR) == []
    found = build('variable "region" {}\noutput "o" {\n  value = var.region\n}\n')
    assert list_summaries(found, Severity.ERROR) == ['The variable "region" has no value']


def test_a_module_of_skipped_blocks_can_have_faults() -> None:
    """Arguments and variables of a module without Kafka concern Terraform alone."""
    call = 'module "vpc" {\n  source = "./vpc"\n  stamp  = timestamp()\n'
    call += "  providers = { aws = aws }\n}\n"
    module = (
        'provider "aws" {}\nvariable "stamp" {}\nvariable "name" {\n  default = var.other\n}\n'
        'resource "aws_vpc" "v" {\n  x = [var.stamp, var.name]\n}\n'
    )
    found = build(call, {"vpc": module})
    assert list_summaries(found, Severity.ERROR) == []
    with_topic = module + 'resource "kafka_topic" "m" {\n  name = var.stamp\n}\n'
    found = build(call, {"vpc": with_topic})
    assert "There is no function timestamp" in list_summaries(found, Severity.ERROR)


def test_a_registry_module_that_gets_a_kafka_provider_is_an_error() -> None:
    """It declares objects of Kafka, which would be missing from the plan."""
    source = '  source = "acme/topics/aws"\n  providers = { kafka = kafka }\n'
    (fault,) = list_summaries(build(f'module "m" {{\n{source}}}\n'), Severity.ERROR)
    assert "acme/topics/aws" in fault
    (fault,) = list_summaries(
        build('module "m" {\n  source = "acme/topics/kafka"\n}\n'), Severity.ERROR
    )
    assert "acme/topics/kafka" in fault


def test_the_end_of_the_budget_stays_an_error() -> None:
    """Evaluation stops there, so what is declared is not known."""
    long = "[for a in range(1000) : [for b in range(1000) : [for c in range(1000) : c]]]"
    text = f"{USED}locals {{\n  x = {long}\n}}\n"
    assert list_summaries(build(text), Severity.ERROR)


def test_an_object_can_be_ordered_after_what_is_skipped() -> None:
    """Terraform manages what comes first, so there is nothing to wait for."""
    needs = "aws_vpc.v, module.vpc, module.vpc[0], data.aws_vpc.v, ephemeral.aws_secret.s"
    text = "".join(f"{block}\n" for block in REFERENCES.values() if "aws_vpc" not in block)
    text += 'data "aws_vpc" "v" {}\nresource "aws_vpc" "v" {}\n'
    text += f'resource "kafka_topic" "n" {{\n  name = "n"\n  depends_on = [{needs}]\n}}\n'
    found = build(text)
    assert list_summaries(found, Severity.ERROR) == []
    assert [item.depends_on for item in found.declared] == [(), ()]


QUOTED = {
    'resource "kafka_topic" "n" {\n  name = "n"\n  provider = "kafka"\n}': "kafka",
    'resource "kafka_topic" "n" {\n  name = "n"\n  depends_on = ["kafka_topic.t"]\n}': (
        "kafka_topic.t"
    ),
    'data "kafka_topic" "n" {\n  name = "n"\n  provider = "kafka"\n}': "kafka",
    'module "m" {\n  source = "./m"\n  providers = { "kafka" = "kafka" }\n}': "kafka",
    'variable "x" {\n  type = "string"\n  default = "a"\n}': "string",
    'variable "x" {\n  type = "list"\n  default = ["a"]\n}': "list(string)",
    'variable "x" {\n  type = "map"\n  default = { a = 1 }\n}': "map(string)",
}


@pytest.mark.parametrize("text", QUOTED)
def test_a_reference_or_type_in_quotes_is_a_warning(text: str) -> None:
    """Terraform 0.11 wrote them like this. They mean the same, and the advice says what to
    write."""
    found = build(text, {"m": 'resource "kafka_topic" "m" {\n  name = "m"\n}\n'})
    (fault,) = [one for one in found.diagnostics if "without quotes" in one.summary]
    assert (fault.severity, fault.advice) == ("warning", f"Write {QUOTED[text]}.")
    if "data" not in text:
        assert found.diagnostics == (fault,)


def test_a_dependency_in_quotes_counts() -> None:
    """The warning does not replace the order of requests."""
    text = 'resource "kafka_topic" "n" {\n  name = "n"\n  depends_on = ["kafka_topic.t"]\n}'
    assert [[str(a) for a in item.depends_on] for item in build(text).declared] == [
        [],
        ["kafka_topic.t"],
    ]


def test_a_value_for_a_type_in_quotes_is_read_as_its_type_says() -> None:
    """The text of a string is taken as it is, that of a list is an expression."""
    text = 'variable "s" {\n  type = "string"\n}\nvariable "l" {\n  type = "list"\n}\n'
    text += 'output "o" {\n  value = [var.s, var.l]\n}\n'
    tree = load_tree({"main.tf": text.encode()})
    found = build_desired(tree, VariableInputs({}, ("s=[1]", "l=[1]")), SCHEMAS)
    assert found.outputs[0].value == ("[1]", ("1",))


def test_a_fault_beside_a_warning_is_shown_as_well() -> None:
    """A warning about quotes must not hide that the address does not exist."""
    text = 'resource "kafka_topic" "n" {\n  name = "n"\n  depends_on = ["kafka_topic.gone"]\n}'
    assert list_summaries(build(text), Severity.ERROR) == ["kafka_topic.gone is not declared"]


def test_json_has_the_same_blocks() -> None:
    """A folder can mix both forms."""
    text = """{
      "ephemeral": {"aws_secret": {"s": {"name": "${timestamp()}"}}},
      "moved": {"from": "aws_vpc.a", "to": "aws_vpc.b"},
      "module": {"vpc": {"source": "acme/vpc/aws", "providers": {"aws": "aws.us"}}},
      "language": {"edition": "tofu2024"},
      "output": {"o": {"value": "${ephemeral.aws_secret.s.value}${module.vpc.id}"}}
    }"""
    tree = load_tree({"main.tf": (PROVIDER + TOPIC).encode(), "more.tf.json": text.encode()})
    found = build_desired(tree, VariableInputs(), SCHEMAS)
    assert [fault.summary for fault in found.diagnostics] == [
        '3 blocks of the provider "aws" are skipped'
    ]


def test_language_blocks_concern_terraform_alone() -> None:
    """They say which editions and tools a folder is for."""
    text = 'language {\n  compatible_with {\n    opentofu = ">= 1.12"\n  }\n}\n'
    assert build(text).diagnostics == ()
    assert list_summaries(build(text, name="main.kf.hcl"), Severity.ERROR)


def test_functions_of_opentofu_s_own_namespace() -> None:
    """`core::` is a longer spelling of the same functions."""
    text = 'output "o" {\n  value = [core::max(1, 2), core::try(1 / 0, "x")]\n}\n'
    found = build(text)
    assert found.diagnostics == ()
    assert found.outputs[0].value == (2, "x")
    (fault,) = list_summaries(build('output "o" {\n  value = core::no(1)\n}\n'), Severity.ERROR)
    assert fault == "There is no function core::no"


def test_what_terraform_runs_beside_an_object_is_a_warning() -> None:
    """No program is run, and everything else in the block counts."""
    text = (
        'resource "kafka_topic" "n" {\n  name = "n"\n  connection {\n    host = self.name\n  }\n'
        '  provisioner "local-exec" {\n    command = "echo ${self.name}"\n  }\n}\n'
        'removed {\n  from = kafka_topic.gone\n  provisioner "local-exec" {\n    when = destroy\n'
        '    command = "echo ${self.name}"\n  }\n}\n'
    )
    found = build(text)
    assert sorted((f.severity, f.summary) for f in found.diagnostics) == [
        ("warning", "The connection block has no effect"),
        ("warning", "The provisioner block has no effect"),
        ("warning", "The provisioner block has no effect"),
    ]
    assert [str(item.address) for item in found.declared] == ["kafka_topic.t", "kafka_topic.n"]
    assert [str(item.source) for item in found.removed] == ["kafka_topic.gone"]


def test_a_provider_with_for_each_works_as_in_opentofu() -> None:
    """For Kafka; for a provider that is not installed, it is skipped like its other blocks."""
    text = (
        'provider "kafka" {\n  alias = "r"\n  for_each = toset(["eu"])\n'
        '  bootstrap_servers = ["${each.value}:9092"]\n}\n'
    )
    assert list_summaries(build(text), Severity.ERROR) == []
    assert 'kafka.r["eu"]' in build(text).providers
    assert list_summaries(build(text.replace("kafka", "aws")), Severity.ERROR) == []


def test_objects_of_confluents_provider_can_be_taken_over() -> None:
    """A folder with only these declares nothing, so the warning says what to run."""
    found = build('resource "confluent_kafka_topic" "t" {}\n')
    (warning,) = found.diagnostics
    assert "kafkaform import --from tfstate" in warning.advice
