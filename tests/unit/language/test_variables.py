"""Input variables: where values come from, types, validation."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from kafkaform.core.diagnostics import Severity
from kafkaform.language.desired import VarFile, VariableInputs

from .example import desired, faults, sound

ONE = 'variable "x" {\n  default = "default"\n}\noutput "x" { value = var.x }\n'


def _x(inputs: VariableInputs, files: Mapping[str, str] | None = None) -> Any:
    return sound(ONE, inputs, files=files).outputs[0].value


FILES = {"kafkaform.kfvars.hcl": 'x = "main"'}
AUTO = {**FILES, "a.auto.kfvars.hcl": 'x = "a"', "b.auto.kfvars.hcl": 'x = "b"'}
ENVIRON = {"KF_VAR_x": "environ"}
PRECEDENCE: list[tuple[VariableInputs, Mapping[str, str], str]] = [
    (VariableInputs(), {}, "default"),
    (VariableInputs(ENVIRON), {}, "environ"),
    (VariableInputs(ENVIRON), FILES, "main"),
    (VariableInputs(ENVIRON), AUTO, "b"),
    (VariableInputs(ENVIRON, ("x=cli",)), AUTO, "cli"),
    (VariableInputs({}, ("x=cli", VarFile("v.hcl", b'x = "file"'))), AUTO, "file"),
    (VariableInputs({}, (VarFile("v.hcl", b'x = "file"'), "x=cli")), AUTO, "cli"),
    (VariableInputs(), {**FILES, "kafkaform.kfvars.json": '{"x": "json"}'}, "json"),
    (VariableInputs(), {**AUTO, "a.auto.kfvars.json": '{"x": "j"}'}, "b"),
    (VariableInputs(), {**AUTO, "c.auto.kfvars.json": '{"x": "j"}'}, "j"),
    (VariableInputs({}, (VarFile("v.json", b'{"x": "file"}'),)), AUTO, "file"),
    (VariableInputs({}, (VarFile("/dev/fd/63", b' {"x": "pipe"}'),)), AUTO, "pipe"),
    (VariableInputs({}, (VarFile("/dev/fd/63", b'x = "pipe"'),)), AUTO, "pipe"),
    (VariableInputs({}, ("x=1", VarFile("v.hcl", b'x = "file"'), "x=a = b")), AUTO, "a = b"),
]


@pytest.mark.parametrize(("inputs", "files", "expected"), PRECEDENCE)
def test_precedence(inputs: VariableInputs, files: Mapping[str, str], expected: str) -> None:
    """The last of default, environment, files by name, and command line wins."""
    assert _x(inputs, files) == expected


def test_undeclared_names() -> None:
    """An unknown variable is no matter in the environment, a warning in a file, an error on
    the command line."""
    assert _x(VariableInputs({"KF_VAR_y": "1"})) == "default"
    warned = desired(ONE, files={"kafkaform.kfvars.hcl": "xx = 1"})
    assert [(item.severity, item.summary) for item in warned.diagnostics] == [
        (Severity.WARNING, 'No variable "xx" is declared')
    ]
    assert warned.diagnostics[0].advice == 'Did you mean "x"?'
    refused = desired(ONE, VariableInputs({}, ("xx=1",)))
    assert faults(refused) == ['None: --var sets "xx", but this variable is not declared']


def test_many_undeclared_names() -> None:
    """A file that serves many folders does not flood the screen: two names, then a summary."""
    text = "".join(f'n{n} = "hunter2"\n' for n in range(5))
    warned = desired(
        ONE, VariableInputs({}, (VarFile("v.hcl", b"n1 = 1"),)), {"a.auto.kfvars.hcl": text}
    )
    assert sorted(item.summary for item in warned.diagnostics) == [
        'No variable "n0" is declared',
        'No variable "n1" is declared',
        "Values of 3 more undeclared variables are ignored: n2, n3, n4",
    ]
    assert {item.severity for item in warned.diagnostics} == {Severity.WARNING}
    assert "hunter2" not in str(warned.diagnostics)


ARGUMENTS = [
    ("x", "--var needs name=value", "Add the = and a value."),
    ("x =hunter2", '--var sets "x ", which contains a blank',
     "Write --var 'x=…' without blanks around the =."),
    ("y=hunter2", '--var sets "y", but this variable is not declared', ""),
]  # fmt: skip


@pytest.mark.parametrize(("text", "summary", "advice"), ARGUMENTS)
def test_faults_of_arguments(text: str, summary: str, advice: str) -> None:
    """What is wrong with a --var is said without its value."""
    (fault,) = desired(ONE, VariableInputs({}, (text,))).diagnostics
    assert (fault.severity, fault.summary, fault.advice) == (Severity.ERROR, summary, advice)


def test_declarations_in_a_file_of_values() -> None:
    """A common mistake is told with what to write instead."""
    found = desired(ONE, files={"a.auto.kfvars.hcl": 'variable "x" {\n  default = 1\n}\n'})
    assert faults(found) == [
        "a.auto.kfvars.hcl:1:1: A file of variable values cannot contain blocks"
    ]
    assert found.diagnostics[0].advice == "Write x = …, and declare the variable in another file."


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
    assert sound(source, VariableInputs({"KF_VAR_x": text})).outputs[0].value == expected


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
    found = desired(text, VariableInputs(partial=True))
    assert faults(found) == [
        "main.kf.hcl:1:1: 1 variable has no value: zone",
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
    environ = desired(text, VariableInputs({"KF_VAR_n": "x"}))
    assert environ.diagnostics[0].detail == (
        "Expected a number, got a string that is not a number (from KF_VAR_n)."
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
    assert sound(text, VariableInputs({}, ("n=6",))).declared == ()


def test_several_validations_and_other_variables() -> None:
    """Every rule that does not hold is told; a rule may look at other variables, too."""
    rule = "  validation {{\n    condition = {0}\n    error_message = {1}\n  }}\n"
    text = (
        'variable "least" {\n  default = 1\n}\nvariable "n" {\n  default = 9\n'
        + rule.format("var.n >= var.least", '"${var.n} is less than ${var.least}"')
        + rule.format("var.n % 2 == 1", '"${var.n} is even"')
        + "}\n"
    )
    assert sound(text).declared == ()
    found = desired(text, VariableInputs({}, ("n=4", "least=5")))
    assert [item.detail for item in found.diagnostics] == ["4 is less than 5", "4 is even"]
    assert [item.advice for item in found.diagnostics] == [
        "The rule is at main.kf.hcl:6:3.",
        "The rule is at main.kf.hcl:10:3.",
    ]


DECLARATIONS = [
    ('default = "a"\n  type = number',
     '2:13: The value of the variable "x" does not fit its type'),
    ("default = null\n  nullable = false", '2:13: The variable "x" cannot be null'),
    ("default = 1\n  sensitive = 1", '3:15: "sensitive" must be the constant true or false'),
    ("default = 1\n  const = 1", '3:11: "const" must be the constant true or false'),
    ("default = 1\n  deprecated = true",
     '3:16: "deprecated" must be a string that says what to use instead'),
    ('default = 1\n  deprecated = " "',
     '3:16: "deprecated" must be a string that says what to use instead'),
    ('default = 1\n  validation {\n    condition = 1 > 2\n    error_message = "e"\n  }',
     "4:17: The condition of a validation must refer to var.x"),
    ("default = var.x", '2:13: Nothing is named "var" here'),
]  # fmt: skip


@pytest.mark.parametrize(("body", "fault"), DECLARATIONS)
def test_faults_of_declarations(body: str, fault: str) -> None:
    """A wrong declaration is told although a sound value is given."""
    text = f'variable "x" {{\n  {body}\n}}\n'
    assert faults(desired(text, VariableInputs({}, ("x=5",)))) == [f"main.kf.hcl:{fault}"]


@pytest.mark.parametrize("name", ["source", "version", "providers", "count", "for_each"])
def test_reserved_names(name: str) -> None:
    """A name that a module block needs for itself could never be given a value there."""
    found = desired(f'variable "{name}" {{\n  default = 1\n}}\n')
    assert faults(found) == [f'main.kf.hcl:1:1: A variable cannot be named "{name}"']


DEPRECATED = 'variable "old" {\n  default    = 1\n  deprecated = "Use new."\n}\n'


def test_deprecated_variables() -> None:
    """Who gives a value is warned with the declaration's own words; a default warns nobody."""
    assert sound(DEPRECATED).diagnostics == ()
    found = desired(DEPRECATED, files={"kafkaform.kfvars.hcl": "\nold = 2"})
    (warning,) = found.diagnostics
    assert (warning.severity, warning.summary, warning.detail) == (
        Severity.WARNING,
        'The variable "old" is deprecated',
        "Use new.",
    )
    assert str(warning.range) == "kafkaform.kfvars.hcl:2:1"
    hidden = desired(
        DEPRECATED.replace("deprecated", "sensitive  = true\n  deprecated"),
        files={"kafkaform.kfvars.hcl": 'old = "hunter2"'},
    )
    assert hidden.diagnostics[0].excerpt is None


def test_a_secret_on_the_command_line_is_taken_with_a_warning() -> None:
    """As Terraform takes it, but whoever types it is told who can read it; from a file or the
    environment it is no cause for a word."""
    block = 'variable "p" {\n  sensitive = true\n}\n'
    (warning,) = desired(block, VariableInputs(assignments=("p=hunter2",))).diagnostics
    assert warning.severity is Severity.WARNING and "hunter2" not in repr(warning)
    assert warning.summary == '--var contains the value of the sensitive variable "p"'
    assert "KF_VAR_p" in warning.advice
    assert sound(block, VariableInputs({"KF_VAR_p": "hunter2"})).diagnostics == ()
    assert sound(block, files={"kafkaform.kfvars.hcl": 'p = "hunter2"'}).diagnostics == ()
    plain = block.replace("true", "false")
    assert sound(plain, VariableInputs(assignments=("p=seen",))).diagnostics == ()


USER = (
    'resource "kafka_user" "u" {\n  username = "u"\n  password = var.p\n  password_version = 1\n}\n'
)


def test_ephemeral_variables_are_not_stored() -> None:
    """Their values go only where secrets go, as a reference."""
    text = 'variable "p" {\n  ephemeral = true\n}\n'
    given = VariableInputs({"KF_VAR_p": "hunter2"})
    assert "hunter2" not in str(sound(text + USER, given))
    shown = desired(text + 'resource "kafka_topic" "a" {\n  name = var.p\n}\n', given)
    assert faults(shown) == ['main.kf.hcl:5:10: "name" cannot contain a sensitive value']
    assert "hunter2" not in str(shown)


SECRET = "hunter2"
LEAKS = [
    ("", {"KF_VAR_p": f'"{SECRET}'}, "", "type = list(string)"),
    ("", {"KF_VAR_p": SECRET}, "", "type = list(string)"),
    ("", {"KF_VAR_p": SECRET}, "", "type = number"),
    ("", {}, f"p = {SECRET}", ""),
    ("", {}, f"p = [{SECRET}", ""),
    ("", {}, f'p = upper("{SECRET}", 1)', ""),
    ("", {}, f'p = ["{SECRET}"]', "type = string"),
    ("", {}, f'p = {{ a = "{SECRET}" }}', "type = object({ a = number })"),
    ("", {}, f'p = "{SECRET}', ""),
    ("", {"KF_VAR_p": SECRET}, "", 'validation {\n    condition = var.p == "x"\n    '
     'error_message = "${var.p} is wrong"\n  }'),
    ("", {"KF_VAR_p": SECRET}, "", "validation {\n    condition = var.p + 1 > 2\n    "
     'error_message = "wrong"\n  }'),
    ('locals {\n  x = parseint(var.p, 10)\n}\n', {"KF_VAR_p": SECRET}, "", ""),
]  # fmt: skip


@pytest.mark.parametrize(("more", "environ", "values", "body"), LEAKS)
def test_faults_of_sensitive_variables_do_not_show_them(
    more: str, environ: Mapping[str, str], values: str, body: str
) -> None:
    """Whatever is wrong with the value, its text stays out of the message and the excerpt."""
    text = f'variable "p" {{\n  sensitive = true\n  {body}\n}}\n{more}'
    found = desired(text, VariableInputs(environ), {"a.auto.kfvars.hcl": values})
    assert any(item.severity is Severity.ERROR for item in found.diagnostics)
    assert SECRET not in str(found.diagnostics)


def test_digest() -> None:
    """Another file or value gives another digest; a secret value does not."""
    base = sound(ONE).digest
    assert sound(ONE).digest == base
    assert sound(ONE + "\n").digest != base
    assert sound(ONE, VariableInputs(ENVIRON)).digest != base
    secret = 'variable "p" {\n  sensitive = true\n}\n'
    one, other = (sound(secret, VariableInputs({"KF_VAR_p": value})) for value in ("a", "b"))
    assert one.digest == other.digest
