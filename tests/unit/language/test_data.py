"""Data sources: asked while the configuration is evaluated."""

from __future__ import annotations

from typing import Any

from kafkaform.core.diagnostics import Diagnostic, Severity
from kafkaform.core.errors import ConfigurationError, KafkaformError, MissingObject
from kafkaform.core.resource import ProviderConfig
from kafkaform.core.value import FrozenMap
from kafkaform.language.desired import VariableInputs

from .example import desired, faults, sound

TEXT = """
data "kafka_topics" "old" { prefix = "old." }
resource "kafka_topic" "new" {
  for_each = toset(data.kafka_topics.old.names)
  name     = replace(each.value, "old.", "new.")
}
output "prefix" { value = data.kafka_topics.old.prefix }
"""


def answer(asked: list[Any]) -> Any:
    """A cluster with two topics under each prefix; it notes what it was asked."""

    def query(config: ProviderConfig, kind: str, arguments: FrozenMap) -> FrozenMap:
        asked.append((config.instance, kind, dict(arguments)))
        prefix = arguments["prefix"]
        return FrozenMap(names=(f"{prefix}a", f"{prefix}b"))

    return query


def test_answers_decide_what_is_declared() -> None:
    """for_each over an answer; arguments and answers are both attributes of the data source."""
    asked: list[Any] = []
    found = sound(TEXT, query=answer(asked))
    assert [item.attributes["name"] for item in found.declared] == ["new.a", "new.b"]
    assert found.outputs[0].value == "old."
    assert asked == [("kafka", "kafka_topics", {"prefix": "old.", "names": None})]


def test_instances_and_providers() -> None:
    """for_each asks once per key, each question goes to the provider that the block names."""
    text = """
provider "kafka" {
  alias             = "eu"
  bootstrap_servers = ["eu:9092"]
}
data "kafka_topics" "by" {
  provider = kafka.eu
  for_each = { x = "1", y = "2" }
  prefix   = each.value
}
output "all" { value = flatten([for d in data.kafka_topics.by : d.names]) }
"""
    asked: list[Any] = []
    found = sound(text, query=answer(asked))
    assert found.outputs[0].value == ("1a", "1b", "2a", "2b")
    assert [instance for instance, _, _ in asked] == ["kafka.eu", "kafka.eu"]


def test_a_failed_question_is_a_fault_at_its_block() -> None:
    """What the provider says is shown with its advice, once; what depends on it is silent."""

    def query(*_: Any) -> Any:
        raise KafkaformError("broker 1 does not answer", "Is it up?")

    (fault,) = desired(TEXT, query=query).diagnostics
    assert str(fault.range) == "main.kf.hcl:2:1"
    assert fault.summary == "data.kafka_topics.old cannot be read: broker 1 does not answer"
    assert fault.advice == "Is it up?"


def test_a_missing_secret_is_named() -> None:
    """A question that fails with faults of its own tells the first, and not just that there are."""
    lost = Diagnostic(Severity.ERROR, "The secret env:PASSWORD is not there", advice="Set it.")

    def query(*_: Any) -> Any:
        raise ConfigurationError("secrets are missing", diagnostics=(lost,))

    (fault,) = desired(TEXT, query=query).diagnostics
    assert fault.summary.endswith("cannot be read: The secret env:PASSWORD is not there")
    assert fault.advice == "Set it."


def test_offline_only_names_are_checked() -> None:
    """Without anybody to ask, what needs an answer is left out, and counted."""
    found = desired(TEXT, VariableInputs(partial=True))
    assert [(str(f.severity), f.summary) for f in found.diagnostics] == [
        ("warning", "1 data source has not been read: data.kafka_topics.old")
    ]
    wrong = TEXT.replace("old.names", "old.nmaes").replace("prefix = ", "prefiks = ")
    assert [f.summary for f in desired(wrong, VariableInputs(partial=True)).diagnostics[1:]] == [
        'data.kafka_topics.old has no argument "prefiks"',
        'A kafka_topics has no attribute "nmaes"',
    ]


def test_providers_cannot_depend_on_data() -> None:
    """Whoever must be asked first cannot depend on the answer, not even through a local value."""
    direct = """provider "kafka" {
  alias             = "b"
  bootstrap_servers = data.kafka_topics.x.names
}
"""
    assert faults(desired(direct + 'data "kafka_topics" "x" {}\n', query=answer([]))) == [
        "main.kf.hcl:3:23: data.kafka_topics.x cannot be used here"
    ]
    behind = direct.replace("data.kafka_topics.x.names", "local.servers")
    behind += 'data "kafka_topics" "x" {}\nlocals { servers = data.kafka_topics.x.names }\n'
    (fault,) = desired(behind, query=answer([])).diagnostics
    assert "refers to itself" in fault.summary


def test_references_name_declared_data() -> None:
    """An unknown data source or attribute is named with what was meant."""
    text = 'data "kafka_topics" "old" {}\nlocals {\n  a = data.kafka_topics.odl\n  b = data.x\n}\n'
    found = desired(text, query=answer([]))
    assert faults(found) == [
        "main.kf.hcl:3:7: data.kafka_topics.odl is not declared",
        "main.kf.hcl:4:7: Which data source is meant?",
    ]
    assert found.diagnostics[0].advice == 'Did you mean "data.kafka_topics.old"?'


def test_an_object_that_does_not_exist_yet_is_awaited() -> None:
    """Only by a data source that depends on an object here, for each instance on its own: what it
    has is its arguments, and everything else is known after the apply."""
    text = """
resource "kafka_topic" "a" { name = "a" }
data "kafka_topics" "by" {
  for_each = { old = "x", new = kafka_topic.a.name }
  prefix   = each.value
}
output "prefixes" { value = [for d in data.kafka_topics.by : d.prefix] }
output "old" { value = data.kafka_topics.by["old"].names }
output "new" { value = data.kafka_topics.by["new"].names }
"""

    def query(config: ProviderConfig, kind: str, arguments: FrozenMap) -> FrozenMap:
        if arguments["prefix"] == "a":
            raise MissingObject("there is no a", "Create it.")
        return FrozenMap(names=("x1",))

    outputs = {item.name: item for item in sound(text, query=query).outputs}
    assert outputs["prefixes"].value == ("a", "x")
    assert outputs["old"].value == ("x1",)
    assert outputs["new"].deferred
    alone = text.replace("kafka_topic.a.name", '"a"')
    (fault,) = desired(alone, query=query).diagnostics
    assert fault.summary == "data.kafka_topics.by cannot be read: there is no a"
