"""Input variables: where values come from, types, validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kafkaform.core.diagnostics import Severity
from kafkaform.language.desired import Inputs, VarFile

from .example import desired, faults, sound

ONE = 'variable "x" {\n  default = "default"\n}\noutput "x" { value = var.x }\n'


def _x(inputs: Inputs, files: Mapping[str, str] | None = None) -> Any:
    return sound(ONE, inputs, files=files).outputs[0].value


FILES = {"kafkaform.kfvars.hcl": 'x = "main"'}
AUTO = {**FILES, "a.auto.kfvars.hcl": 'x = "a"', "b.auto.kfvars.hcl": 'x = "b"'}
ENVIRON = {"KF_VAR_x": "environ"}
PRECEDENCE: list[tuple[Inputs, Mapping[str, str], str]] = [
    (Inputs(), {}, "default"),
    (Inputs(ENVIRON), {}, "environ"),
    (Inputs(ENVIRON), FILES, "main"),
    (Inputs(ENVIRON), AUTO, "b"),
    (Inputs(ENVIRON, ("x=cli",)), AUTO, "cli"),
    (Inputs({}, ("x=cli", VarFile("v.hcl", b'x = "file"'))), AUTO, "file"),
    (Inputs({}, (VarFile("v.hcl", b'x = "file"'), "x=cli")), AUTO, "cli"),
]


@pytest.mark.parametrize(("inputs", "files", "expected"), PRECEDENCE)
def test_precedence(inputs: Inputs, files: Mapping[str, str], expected: str) -> None:
    """The last of default, environment, files by name, and command line wins."""
    assert _x(inputs, files) == expected


def test_undeclared_names() -> None:
    """An unknown variable is no matter in the environment, a warning in a file, an error on
    the command line."""
    assert _x(Inputs({"KF_VAR_y": "1"})) == "default"
    warned = desired(ONE, files={"kafkaform.kfvars.hcl": "xx = 1"})
    assert [(item.severity, item.summary) for item in warned.diagnostics] == [
        (Severity.WARNING, 'No variable "xx" is declared')
    ]
    assert warned.diagnostics[0].advice == 'Did you mean "x"?'
    refused = desired(ONE, Inputs({}, ("xx=1",)))
    assert faults(refused) == ['None: --var sets "xx", but no such variable is declared']


TEXTS = [
    ("string", "5", "5"),
    ("number", "5", 5),
    ("bool", "true", True),
    ("list(string)", '["a", "b"]', ("a", "b")),
    ("map(number)", "{ a = 1 }", {"a": 1}),
    ("any", "[1]", (1,)),
]


@pytest.mark.parametrize(("kind", "text", "expected"), TEXTS)
def test_texts_from_outside(kind: str, text: str, expected: Any) -> None:
    """A text is taken as it is for simple types and read as an expression for others."""
    source = f'variable "x" {{ type = {kind} }}\noutput "x" {{ value = var.x }}'
    assert sound(source, Inputs({"KF_VAR_x": text})).outputs[0].value == expected


def test_a_variable_without_value_names_the_ways_to_set_it() -> None:
    """The error stands at the declaration, once, and lists every way."""
    found = desired(
        'variable "zone" {}\nresource "kafka_topic" "a" {\n  name = var.zone\n}\n'
        'output "z" { value = var.zone }'
    )
    assert faults(found) == ['main.kf.hcl:1:1: The variable "zone" has no value']
    advice = found.diagnostics[0].advice
    for way in ("--var 'zone=", "KF_VAR_zone", "kafkaform.kfvars.hcl", "--var-file"):
        assert way in advice


def test_partial_inputs_check_names_only() -> None:
    """Without values the rest of the configuration is still checked."""
    text = (
        'variable "zone" {}\nresource "kafka_topic" "a" {\n'
        '  name = var.zone\n  partitions = "x"\n  config = local.nope\n}'
    )
    found = desired(text, Inputs(partial=True))
    assert faults(found) == [
        "None: 1 variables have no value: zone",
        'main.kf.hcl:4:16: "partitions" must be a number',
        'main.kf.hcl:5:12: There is no local value "nope"',
    ]


def test_types_and_null() -> None:
    """Optional fields take their defaults; null takes the default where null is not allowed."""
    text = """
variable "t" {
  type    = map(object({ n = optional(number, 3), c = optional(map(string), {}) }))
  default = { a = {}, b = { n = 5 } }
}
variable "n" {
  default  = "d"
  nullable = false
}
output "t" { value = var.t }
output "n" { value = var.n }
"""
    found = sound(text, files={"kafkaform.kfvars.hcl": "n = null"})
    assert found.outputs[0].value == {"a": {"n": 3, "c": {}}, "b": {"n": 5, "c": {}}}
    assert found.outputs[1].value == "d"


def test_wrong_type() -> None:
    """A value that does not fit is blamed where it is written."""
    text = 'variable "n" {\n  type = number\n}\n'
    file = desired(text, files={"kafkaform.kfvars.hcl": '\nn = "x"'})
    assert faults(file) == [
        'kafkaform.kfvars.hcl:2:1: The value of the variable "n" does not fit its type'
    ]
    environ = desired(text, Inputs({"KF_VAR_n": "x"}))
    assert environ.diagnostics[0].detail == (
        "Here a number is needed, this string is none (given by KF_VAR_n)."
    )


def test_validation() -> None:
    """A broken rule shows its message and where the rule is."""
    text = (
        'variable "n" {\n  default = 3\n  validation {\n    condition = var.n > 5\n'
        '    error_message = "n is ${var.n}, which is too small"\n  }\n}\n'
    )
    found = desired(text)
    assert faults(found) == ['main.kf.hcl:1:1: The value of the variable "n" is not valid']
    assert found.diagnostics[0].detail == "n is 3, which is too small"
    assert sound(text, Inputs({}, ("n=6",))).declared == ()


def test_digest() -> None:
    """Another file or value gives another digest; a secret value does not."""
    base = sound(ONE).digest
    assert sound(ONE).digest == base
    assert sound(ONE + "\n").digest != base
    assert sound(ONE, Inputs(ENVIRON)).digest != base
    secret = 'variable "p" {\n  sensitive = true\n}\n'
    one, other = (sound(secret, Inputs({"KF_VAR_p": value})) for value in ("a", "b"))
    assert one.digest == other.digest
