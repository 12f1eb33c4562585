"""Secrets: references only, in secret places only, and never in a message."""

from __future__ import annotations

import pytest

from kafkaform.core.diagnostics import Diagnostic
from kafkaform.core.value import SecretRef
from kafkaform.language.declare.top_level import declare_blocks
from kafkaform.language.declare.variables import resolve_variables
from kafkaform.language.desired import Desired, VariableInputs, load_tree
from kafkaform.language.expressions.compilation import make_context
from kafkaform.language.functions import FunctionTable

from .example import desired, faults, sound

VALUE = "hunter2"
VARIABLE = 'variable "pw" {\n  type      = string\n  sensitive = true\n}\n'
GIVEN = VariableInputs({"KF_VAR_pw": VALUE})


def _user(password: str) -> str:
    return (
        f'resource "kafka_user" "u" {{\n  username = "u"\n  password = {password}\n'
        "  password_version = 2\n}\n"
    )


REFERENCES = [
    ('secret_env("PW")', SecretRef("env", "PW")),
    ('secret_file("pw.txt")', SecretRef("file", "pw.txt")),
    ('secret_command(["vault", "get"])', SecretRef("command", '["vault", "get"]')),
    ('secret_command(["é \\"", 1, ""])', SecretRef("command", '["é \\"", "1", ""]')),
    ('"${secret_env("PW")}"', SecretRef("env", "PW")),
    ("var.pw", SecretRef("variable", "pw")),
    ("local.pw", SecretRef("variable", "pw")),
    ('true ? var.pw : ""', SecretRef("variable", "pw")),
    ("null", None),
]


@pytest.mark.parametrize(("text", "expected"), REFERENCES)
def test_references(text: str, expected: SecretRef | None) -> None:
    """A secret used whole arrives as a reference, with the version that sends it."""
    found = sound(VARIABLE + "locals { pw = var.pw }\n" + _user(text), GIVEN)
    assert found.declared[0].attributes["password"] == expected
    assert found.declared[0].secret_version == (None if expected is None else "2")


NO_REFERENCES = [
    (
        'secret_command("vault get")',
        "The argument command of secret_command() does not fit",
        "Expected a list of strings",
    ),
    ("secret_command([])", "secret_command() cannot be computed", "the name of a program"),
    ('secret_command([""])', "secret_command() cannot be computed", "the name of a program"),
    ('secret_command(["a", null])', "secret_command() cannot be computed", "word of the command"),
    ('secret_command(["a", "\\u0000"])', "secret_command() cannot be computed", "zero byte"),
    ('secret_command(["a", [1]])', "The argument command of secret_command() does not fit", ""),
    ('secret_command(["a", secret_env("X")])', "A secret can only be used whole", ""),
    ('secret_command(["a", var.pw])', "secret_command() cannot be called with a sensitive", ""),
    ('secret_command(["${var.pw}"])', "secret_command() cannot be called with a sensitive", ""),
    ("secret_env(var.pw)", "secret_env() cannot be called with a sensitive value", ""),
    ("secret_file(var.pw)", "secret_file() cannot be called with a sensitive value", ""),
]


@pytest.mark.parametrize(("text", "summary", "detail"), NO_REFERENCES)
def test_what_cannot_be_a_reference(text: str, summary: str, detail: str) -> None:
    """The fault is at the argument. Plans show references, so none has a sensitive part."""
    found = desired(VARIABLE + _user(text), GIVEN)
    (fault,) = found.diagnostics
    assert fault.summary.startswith(summary) and detail in fault.detail
    assert fault.range is not None and fault.range.line == 7
    _silent(found)


def test_a_reference_passes_through_functions() -> None:
    """A function that only hands it on may have sensitive arguments beside it."""
    text = VARIABLE + _user('coalesce(secret_command(["a"]), var.pw)')
    assert sound(text, GIVEN).declared[0].attributes["password"] == SecretRef("command", '["a"]')


MANY = """
variable "passwords" {
  type      = map(string)
  sensitive = true
}
variable "logins" {
  sensitive = true
  default   = { "a b" = { user = "a", password = ["hunter2"] } }
}
locals { handed = var.passwords }
"""
MANY_GIVEN = VariableInputs({"KF_VAR_passwords": '{ x = "hunter2", "é\\"" = "other", n = null }'})
ELEMENTS = [
    ('var.passwords["x"]', 'passwords["x"]'),
    ("var.passwords.x", 'passwords["x"]'),
    ('local.handed["${"x"}"]', 'passwords["x"]'),
    ('var.passwords["é\\""]', 'passwords["é\\""]'),
    ('true ? var.passwords["x"] : ""', 'passwords["x"]'),
    ('var.logins["a b"].password[0]', 'logins["a b"]["password"][0]'),
    ('var.logins["a b"].password["0"]', 'logins["a b"]["password"][0]'),
    ('{ a = var.passwords }.a["x"]', 'passwords["x"]'),
    ('{ for k in ["x"] : k => var.passwords[k] }["x"]', 'passwords["x"]'),
    ("[for k in nonsensitive(keys(var.passwords)) : var.passwords[k]][1]", 'passwords["x"]'),
]


@pytest.mark.parametrize(("text", "name"), ELEMENTS)
def test_an_element_of_a_sensitive_collection_is_a_reference(text: str, name: str) -> None:
    """However it is spelled, it has one name, and under that name whoever sends it finds it."""
    found = sound(MANY + _user(text), MANY_GIVEN)
    assert found.declared[0].attributes["password"] == SecretRef("variable", name)
    tree = load_tree({"main.kf.hcl": MANY.encode()})
    blocks = declare_blocks(tree)[0].variables
    texts = resolve_variables(tree, blocks, MANY_GIVEN, make_context(FunctionTable())).secrets
    assert texts[name] == ("other" if "é" in name else VALUE)
    assert set(texts) == {
        'passwords["x"]',
        'passwords["é\\""]',
        'logins["a b"]["user"]',
        'logins["a b"]["password"][0]',
    }


def test_a_null_among_passwords_is_none() -> None:
    """As with a variable that is null: there is no password to send."""
    found = sound(MANY + _user('var.passwords["n"]'), MANY_GIVEN)
    assert found.declared[0].attributes.get("password") is None


NO_ELEMENTS = [
    "var.passwords",
    'upper(var.passwords["x"])',
    '"${var.passwords["x"]}x"',
    "values(var.passwords)[1]",
    "var.passwords[keys(var.passwords)[1]]",
    "[for k, v in var.passwords : v][1]",
    "[for k, v in var.passwords : var.passwords[k]][1]",
    "{ for k, v in var.passwords : k => var.passwords[k] }.x",
    "[for k in keys(var.passwords) : var.passwords[k]][1]",
    "[for k in keys(var.passwords) : { a = [var.passwords[k]] }][1].a[0]",
]


@pytest.mark.parametrize("text", NO_ELEMENTS)
def test_what_is_no_element_is_refused(text: str) -> None:
    """The whole map is not one password, what is computed is a value, and a key that only the
    variable knows would be told by a name."""
    found = desired(MANY + _user(text), MANY_GIVEN)
    (fault,) = found.diagnostics
    assert fault.summary == '"password" needs a reference to a secret, not a value'
    assert fault.excerpt is None
    _silent(found)


def test_an_element_that_is_not_there() -> None:
    """The keys that are there are as secret as their values."""
    found = desired(MANY + _user('var.passwords["y"]'), MANY_GIVEN)
    (fault,) = found.diagnostics
    assert (fault.summary, fault.detail) == ("There is no element with that key", "")
    _silent(found)


LITERALS = [f'"{VALUE}"', f'"x${{"{VALUE}"}}"', '"${var.pw}x"', "upper(var.pw)", "jsonencode([1])"]


@pytest.mark.parametrize("text", LITERALS)
def test_values_in_secret_places_are_refused(text: str) -> None:
    """A literal, or something computed, is an error that does not show the line."""
    found = desired(VARIABLE + _user(text), GIVEN)
    assert faults(found) == [
        'main.kf.hcl:7:14: "password" needs a reference to a secret, not a value'
    ]
    assert found.diagnostics[0].excerpt is None
    _silent(found)


ELSEWHERE = [
    ('name = secret_env("X")', '"name" cannot contain a secret'),
    ('name = "n"\n  config = { a = secret_env("X") }', '"config" cannot contain a secret'),
    ('name = "n-${secret_env("X")}"', "A secret can only be used whole"),
    ('name = upper(secret_env("X"))', "A secret can only be used whole"),
    ('name = jsonencode([secret_env("X")])', "A secret can only be used whole"),
    ('name = secret_env("X") == "a" ? "b" : "c"', "A secret can only be used whole"),
    ("name = var.pw", '"name" cannot contain a sensitive value'),
    ('name = "n-${var.pw}"', '"name" cannot contain a sensitive value'),
    ("name = sha256(var.pw)", '"name" cannot contain a sensitive value'),
    ('name = "n"\n  config = { (var.pw) = "x" }', '"config" cannot contain a sensitive value'),
    ('name = "n"\n  owner = var.pw', '"owner" cannot contain a sensitive value'),
    ('name = sensitive("n")', '"name" cannot contain a sensitive value'),
    (
        "for_each = toset([var.pw])\n  name = each.key",
        "for_each cannot depend on a sensitive value",
    ),
]


@pytest.mark.parametrize(("body", "summary"), ELSEWHERE)
def test_secrets_elsewhere_are_refused(body: str, summary: str) -> None:
    """What is secret can neither be stored nor shown."""
    found = desired(VARIABLE + f'resource "kafka_topic" "a" {{\n  {body}\n}}\n', GIVEN)
    assert [item.summary for item in found.diagnostics] == [summary]
    _silent(found)


LOUD = [
    "{ a = 1 }[var.pw]",
    "tonumber(var.pw)",
    "var.pw + 1",
    "jsondecode(var.pw)",
    "{ for x in [var.pw, var.pw] : x => 1 }",
    '[for x in split("n", var.pw) : { a = 1 }[x]]',
    '{ (var.pw) = 1 }["b"]',
    'regex("(", var.pw)',
    "parseint(var.pw, 10)",
    "[var.pw] ? 1 : 2",
    'format("%d", var.pw)',
    'templatefile("x", { a = var.pw })',
    'tomap({ (var.pw) = [1] })["a"] + 1',
    "zipmap([var.pw], [1]).b",
    'split("n", var.pw)[7]',
]


@pytest.mark.parametrize("text", LOUD)
def test_faults_over_sensitive_values_stay_silent(text: str) -> None:
    """No message repeats the value of a sensitive variable, whatever goes wrong with it."""
    found = desired(VARIABLE + f"locals {{ a = {text} }}\n", GIVEN)
    assert len(found.diagnostics) == 1
    _silent(found)


def _silent(found: Desired) -> None:
    for item in found.diagnostics:
        for word in (VALUE, "hu", "ter2"):
            assert word not in _said(item)


def _said(item: Diagnostic) -> str:
    return " ".join((item.summary, item.detail, item.excerpt or "", *item.context)).replace(
        "The", ""
    )


def test_faults_of_sensitive_variables_hide_their_line() -> None:
    """A wrong default or file value of a sensitive variable is not quoted."""
    text = f'variable "n" {{\n  type = number\n  sensitive = true\n  default = "{VALUE}"\n}}\n'
    _silent(desired(text))
    plain = 'variable "n" {\n  type = number\n  sensitive = true\n}\n'
    _silent(desired(plain, files={"kafkaform.kfvars.hcl": f'n = "{VALUE}"'}))
    _silent(desired(plain, files={"kafkaform.kfvars.hcl": f'nn = "{VALUE}"\nn = 1'}))
    _silent(
        desired(plain.replace("number", "list(string)"), VariableInputs({"KF_VAR_n": f"[{VALUE}"}))
    )


def test_outputs() -> None:
    """A whole secret is a reference in a sensitive output; anything else is refused."""
    body = 'output "a" {{\n  value = {0}\n  sensitive = {1}\n}}\n'
    whole = sound(VARIABLE + body.format("var.pw", "true"), GIVEN).outputs[0]
    assert (whole.value, whole.sensitive) == (SecretRef("variable", "pw"), True)
    shown = desired(VARIABLE + body.format("var.pw", "false"), GIVEN)
    assert faults(shown) == ['main.kf.hcl:6:11: The output "a" is sensitive']
    derived = desired(VARIABLE + body.format('"x${var.pw}"', "true"), GIVEN)
    assert faults(derived) == [
        'main.kf.hcl:6:11: The output "a" is computed from a sensitive variable'
    ]
    assert sound(VARIABLE + body.format("nonsensitive(var.pw)", "false"), GIVEN).outputs[0].value


def test_provider_blocks() -> None:
    """Secret settings of a connection follow the same rules."""
    text = 'provider "kafka" {\n  alias = "b"\n  bootstrap_servers = []\n  sasl_password = "x"\n}\n'
    assert faults(desired(text)) == [
        'main.kf.hcl:4:19: "sasl_password" needs a reference to a secret, not a value'
    ]


def test_values_for_whoever_sends_them() -> None:
    """The text of a sensitive variable is handed over separately from everything else."""
    tree = load_tree({"main.kf.hcl": VARIABLE.encode()})
    blocks = declare_blocks(tree)[0].variables
    found = resolve_variables(tree, blocks, GIVEN, make_context(FunctionTable()))
    assert found.secrets == {"pw": VALUE}
    assert found.plain == {}
