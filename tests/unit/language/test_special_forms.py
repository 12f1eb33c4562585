"""`try`, `can` and templates: what looks like a function and is none."""

from __future__ import annotations

from pathlib import Path

import pytest

from kafkaform.language.functions.files import make_confined_reader
from kafkaform.language.values.value import SENSITIVE, Marked

from .example import desired, evaluate, plain, sound


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Templates: a list, one that is wrong in its second line, one that includes itself."""
    texts = {
        "list.tmpl": "%{ for k, v in xs ~}\n${k}=${v}\n%{ endfor ~}\n",
        "wrong.tmpl": "a\n${nope}\n",
        "bad.tmpl": "${",
        "self.tmpl": '${templatefile("self.tmpl", {})}',
        "count.tmpl": '%{ if n > 0 }${n}${templatefile("count.tmpl", { n = n - 1 })}%{ endif }',
        "value.tmpl": "${xs}",
    }
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def test_template_files(folder: Path) -> None:
    """A template sees its own values and nothing else, may include others, and may be a value."""
    text = """
output "list"  { value = templatefile("list.tmpl", { xs = { b = 1, a = 2 } }) }
output "count" { value = templatefile("count.tmpl", { n = 3 }) }
output "value" { value = templatefile("value.tmpl", { xs = [1, 2] }) }
"""
    found = {
        item.name: item.value
        for item in sound(text, read=make_confined_reader(folder, folder)).outputs
    }
    assert found == {"list": "a=2\nb=1\n", "count": "321", "value": (1, 2)}


FAULTS = {
    'templatefile("wrong.tmpl", { a = 1 })': 'wrong.tmpl:2: Nothing is named "nope" here',
    'templatefile("wrong.tmpl", sensitive({ a = 1 }))': "wrong.tmpl:2 cannot be evaluated",
    'templatefile("bad.tmpl", {})': "bad.tmpl is not a template",
    'templatefile("self.tmpl", {})': "self.tmpl:1: Too many templates are nested in each other",
    'templatefile("list.tmpl", [])': "The values of a template must be a map or an object",
    'templatefile("none.tmpl", {})': "file() cannot be computed",
    'templatestring("$${x", {})': "the template is not a template",
    "templatestring([], {})": "A template must be a string",
    "templatestring(null, {})": "A template must be a string",
    'templatestring(secret_env("A"), {})': "A secret can only be used whole",
    'templatestring("$${a}b", { a = secret_env("A") })': "A secret can only be used whole",
    'templatestring("a")': "templatestring() cannot be called with these arguments",
    "can(1, 2)": "can() cannot be called with these arguments",
    "try()": "try() cannot be called with these arguments",
    "try([1]...)": "try() cannot be called with these arguments",
}


@pytest.mark.parametrize("call", FAULTS)
def test_faults(folder: Path, call: str) -> None:
    """A fault in a template names the template and the line; sensitive values hide the reason."""
    (fault,) = desired(
        f"locals {{ a = {call} }}", read=make_confined_reader(folder, folder)
    ).diagnostics
    assert FAULTS[call] in fault.summary
    assert fault.range is not None


def test_marks_of_templates() -> None:
    """A result is sensitive if the template or a value in it is."""
    for call in (
        'templatestring(sensitive("a"), {})',
        'templatestring("$${x}", { x = sensitive(1) })',
        'templatestring("$${x}!", sensitive({ x = 1 }))',
    ):
        found = evaluate(call)
        assert isinstance(found, Marked)
        assert found.marks == {SENSITIVE}
    assert plain('templatestring("$${x}", { x = 1, y = sensitive(2) })') == 1


def test_deep_templates_do_not_end_the_program(tmp_path: Path) -> None:
    """Deep expressions in templates inside each other are a diagnostic, not a crash."""
    for n in range(15):
        inner = f'templatefile("{n + 1}.tmpl", {{}})'
        (tmp_path / f"{n}.tmpl").write_text(f"${{{'[' * 90}{inner}{']' * 90}}}")
    (tmp_path / "15.tmpl").write_text("end")
    text = 'locals { a = templatefile("0.tmpl", {}) }'
    (fault,) = desired(text, read=make_confined_reader(tmp_path, tmp_path)).diagnostics
    assert fault.summary == "Templates are nested too deeply"


def test_templates_cannot_multiply(tmp_path: Path) -> None:
    """A template that evaluates itself twice, over and over, runs out of steps."""
    again = 'try(templatefile("a.tmpl", { n = n - 1 }), "")'
    (tmp_path / "a.tmpl").write_text(f"%{{ if n > 0 }}${{{again}}}${{{again}}}%{{ endif }}")
    text = 'locals { a = templatefile("a.tmpl", { n = 99 }) }'
    (fault,) = desired(text, read=make_confined_reader(tmp_path, tmp_path)).diagnostics
    assert fault.summary == "The configuration takes too many steps to evaluate"
