"""Rules of the configuration: pre- and postconditions, checks."""

from __future__ import annotations

from typing import Any

from kafkaform.core.diagnostics import Severity
from kafkaform.core.errors import KafkaformError
from kafkaform.core.value import FrozenMap
from kafkaform.language.desired import VariableInputs

from .example import desired, sound


def topic(lifecycle: str, name: str = "a", more: str = "") -> str:
    body = f'  name = "{name}"\n{more}  lifecycle {{\n{lifecycle}\n  }}\n'
    return f'resource "kafka_topic" "{name}" {{\n{body}}}\n'


def rule(kind: str, condition: str, message: str = "no") -> str:
    return f'{kind} {{\n  condition = {condition}\n  error_message = "{message}"\n}}'


def test_a_broken_precondition_stops_its_object() -> None:
    """The message is the user's, the place the condition; other objects are checked as well."""
    text = topic(rule("precondition", 'local.zone == "eu"', "zone is ${local.zone}"))
    (fault,) = desired('locals { zone = "us" }\n' + text).diagnostics
    assert (fault.summary, fault.detail) == (
        "The precondition of kafka_topic.a is not met",
        "zone is us",
    )
    assert str(fault.range) == "main.kf.hcl:6:15"
    assert sound('locals { zone = "eu" }\n' + text).declared


def test_a_postcondition_sees_the_object_itself() -> None:
    """`self` has every attribute; one that the server sets is waited for."""
    text = topic(rule("postcondition", "self.partitions >= 3"), more="  partitions = 2\n")
    (fault,) = desired(text).diagnostics
    assert fault.summary == "The postcondition of kafka_topic.a is not met"
    waits = topic(rule("postcondition", 'self.topic_id == "X"', "id is ${self.topic_id}"))
    before = sound(waits)
    assert before.settles
    assert sound(waits, computed={"kafka_topic.a": FrozenMap(topic_id="X")})
    (late,) = desired(waits, computed={"kafka_topic.a": FrozenMap(topic_id="Y")}).diagnostics
    assert late.detail == "id is Y"


def test_rules_see_each_instance() -> None:
    """each.key is known in the rules of a block with for_each."""
    more = '  for_each = toset(["1", "2"])\n'
    text = topic(rule("precondition", 'each.key == "1"', "not ${each.key}"), more=more)
    text = text.replace('name = "a"', "name = each.key")
    (fault,) = desired(text).diagnostics
    assert fault.summary == 'The precondition of kafka_topic.a["2"] is not met'
    assert fault.detail == "not 2"


def test_outputs_have_preconditions() -> None:
    """A broken one leaves the output out and stops the run."""
    text = 'output "x" {\n  value = 1\n' + rule("precondition", "1 > 2") + "\n}\n"
    found = desired(text)
    assert [f.summary for f in found.diagnostics] == ["The precondition of output.x is not met"]
    assert found.outputs == ()


def test_checks_warn_only() -> None:
    """What a check finds is a warning, and so is a condition that cannot be evaluated."""
    text = (
        'check "size" {\n'
        + rule("assert", "kafka_topic.a.partitions > 2", "too few")
        + "\n"
        + rule("assert", 'tonumber("x") == 1')
        + '\n}\nresource "kafka_topic" "a" {\n  name = "a"\n  partitions = 1\n}\n'
    )
    found = desired(text)
    assert len(found.declared) == 1
    assert {f.severity for f in found.diagnostics} == {Severity.WARNING}
    assert [f.summary for f in found.diagnostics][0] == "check.size has failed"
    assert found.diagnostics[0].detail == "too few"


def test_a_check_has_data_of_its_own() -> None:
    """Only its assertions see it; if it cannot be read, that is a warning too."""
    text = (
        'check "names" {\n  data "kafka_topics" "mine" { prefix = "p" }\n'
        + rule("assert", "length(data.kafka_topics.mine.names) == 2")
        + "\n}\n"
    )

    def two(*_: Any) -> FrozenMap:
        return FrozenMap(names=("a", "b"))

    def fails(*_: Any) -> FrozenMap:
        raise KafkaformError("no broker answers", "Start one.")

    assert sound(text, query=two).diagnostics == ()
    (warning,) = desired(text, query=fails).diagnostics
    assert warning.severity is Severity.WARNING
    assert "no broker answers" in warning.summary
    assert desired(text, VariableInputs(partial=True)).diagnostics == ()
    outside = text + 'output "o" { value = data.kafka_topics.mine.names }\n'
    (fault,) = desired(outside, query=two).diagnostics
    assert fault.summary == "data.kafka_topics.mine is not declared"


def test_sensitive_messages_are_hidden() -> None:
    """A message that holds a secret is replaced."""
    text = 'variable "s" { sensitive = true }\n' + topic(
        rule("precondition", "var.s == 1", "it is ${var.s}")
    )
    _of_var, fault = desired(text, VariableInputs(assignments=("s=hunter2",))).diagnostics
    assert "hunter2" not in str(fault)
    assert "hidden" in fault.detail


def test_only_the_named_paths_are_managed() -> None:
    """ignore_changes_except is the other way round, and excludes ignore_changes."""
    text = topic('    ignore_changes_except = [config["retention.*"]]')
    (item,) = sound(text).declared
    assert item.lifecycle.ignore_changes_except == ("config.retention.*",)
    both = topic("    ignore_changes_except = all\n    ignore_changes = [config]")
    assert [f.summary for f in desired(both).diagnostics] == [
        '"ignore_changes" and "ignore_changes_except" exclude each other'
    ]


def test_replacement_settings_have_no_effect_and_say_so() -> None:
    """create_before_destroy of a Terraform configuration is a warning, not an error."""
    found = desired(topic("    create_before_destroy = true"))
    assert [(f.severity, f.summary) for f in found.diagnostics] == [
        (Severity.WARNING, '"create_before_destroy" has no effect')
    ]
