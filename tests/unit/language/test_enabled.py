"""`enabled` in a lifecycle block, and outputs that are deprecated or ephemeral."""

from __future__ import annotations

import pytest

from kafkaform.core.diagnostics import Severity
from kafkaform.core.resource import Desired
from kafkaform.core.value import FrozenMap
from kafkaform.language.desired import VariableInputs, build_desired, load_tree

from .example import SCHEMAS

PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["a:1"]\n}\n'


def build(text: str, module: str = "", name: str = "main.tf") -> Desired:
    tree = load_tree({name: (PROVIDER + text).encode()}, lambda _: {"main.tf": module.encode()})
    ask = lambda *_: FrozenMap({"name": "d"})  # noqa: E731
    return build_desired(tree, VariableInputs(), SCHEMAS, query=ask)


def list_errors(found: Desired) -> list[str]:
    return [fault.summary for fault in found.diagnostics if fault.severity is Severity.ERROR]


def write_topic(enabled: str, more: str = "") -> str:
    """A topic, and outputs that read it."""
    return (
        f'resource "kafka_topic" "t" {{\n  name = "t"\n{more}'
        f"  lifecycle {{\n    enabled = {enabled}\n  }}\n}}\n"
        'output "o" {\n  value = try(kafka_topic.t.name, "none")\n}\n'
        'output "n" {\n  value = kafka_topic.t == null\n}\n'
    )


@pytest.mark.parametrize(
    ("enabled", "name", "absent"), [("true", "t", False), ("1 > 2", "none", True)]
)
def test_an_object_that_is_not_enabled_is_not_declared(
    enabled: str, name: str, absent: bool
) -> None:
    """Its value is null, as in OpenTofu; an object that is enabled has an address without a key."""
    found = build(write_topic(enabled))
    assert found.diagnostics == ()
    assert [str(item.address) for item in found.declared] == ([] if absent else ["kafka_topic.t"])
    assert [one.value for one in found.outputs] == [name, absent]


def test_modules_and_data_sources_can_be_switched_off() -> None:
    """Nothing in the module is declared, and its outputs cannot be read."""
    module = 'resource "kafka_topic" "m" {\n  name = "m"\n}\noutput "id" {\n  value = "x"\n}\n'
    text = 'module "m" {\n  source = "./m"\n  lifecycle {\n    enabled = %s\n  }\n}\n'
    text += 'output "o" {\n  value = try(module.m.id, "none")\n}\n'
    found = build(text % "true", module)
    assert ([str(item.address) for item in found.declared], found.outputs[0].value) == (
        ["module.m.kafka_topic.m"],
        "x",
    )
    found = build(text % "false", module)
    assert (found.declared, found.outputs[0].value, found.diagnostics) == ((), "none", ())
    data = (
        'data "kafka_topics" "d" {\n  glob = "d"\n  lifecycle {\n    enabled = false\n  }\n}\n'
        'output "o" {\n  value = data.kafka_topics.d == null\n}\n'
    )
    assert build(data).outputs[0].value is True


@pytest.mark.parametrize(
    ("enabled", "fault"),
    [
        ("null", "enabled must be true or false"),
        ('"perhaps"', "enabled must be true or false"),
        ("sensitive(true)", "enabled cannot depend on a sensitive value"),
        ("var.nothing", 'There is no variable "nothing"'),
    ],
)
def test_what_enabled_can_be(enabled: str, fault: str) -> None:
    """Whether something exists is known and shown in every plan."""
    assert list_errors(build(write_topic(enabled))) == [fault]


@pytest.mark.parametrize("other", ["count = 1", "for_each = {}"])
def test_enabled_excludes_count_and_for_each(other: str) -> None:
    """Each of them alone decides which instances there are."""
    text = write_topic("true", f"  {other}\n").partition("output")[0]
    (fault,) = list_errors(build(text))
    assert fault == f"{other.partition(' ')[0]} and enabled exclude each other"


def test_an_output_that_is_deprecated_warns_its_reader() -> None:
    """The text says what to use instead; the module itself can still be used."""
    module = 'output "old" {\n  value = "x"\n  deprecated = "Use new."\n}\n'
    text = 'module "m" {\n  source = "./m"\n}\noutput "o" {\n  value = module.m.old\n}\n'
    found = build(text, module)
    assert [(f.severity, f.summary, f.detail) for f in found.diagnostics] == [
        ("warning", 'The output "old" of module.m is deprecated', "Use new.")
    ]
    assert found.outputs[0].value == "x"
    assert build('module "m" {\n  source = "./m"\n}\n', module).diagnostics == ()
    (fault,) = list_errors(build('output "o" {\n  value = 1\n  deprecated = ""\n}\n'))
    assert fault.startswith('"deprecated" must be a string')


def test_an_ephemeral_output_is_a_secret() -> None:
    """It can leave a module, but not the configuration."""
    module = 'output "e" {\n  value = "secret-text"\n  ephemeral = true\n}\n'
    text = 'module "m" {\n  source = "./m"\n}\n'
    assert build(text, module).diagnostics == ()
    found = build(text + 'output "o" {\n  value = module.m.e\n  sensitive = true\n}\n', module)
    assert list_errors(found) == ['The output "o" is computed from a sensitive variable']
    found = build('output "o" {\n  value = "x"\n  ephemeral = true\n}\n')
    assert list_errors(found) == ['The output "o" cannot be ephemeral']
