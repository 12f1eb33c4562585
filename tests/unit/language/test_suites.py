"""Test files: what their blocks mean, and every fault of their text."""

from __future__ import annotations

import pytest

from kafkaform.core.diagnostics import has_errors
from kafkaform.core.schema import NUMBER, AttributeSchema, make_schema
from kafkaform.core.value import FrozenMap
from kafkaform.language.tests.suites import Suite, evaluate_settings, name_instance, parse_suite

NAME = "main.kftest.hcl"
WHOLE = """
variables {
  zone = "eu"
}

simulate "box" {
  alias = "eu"
  size  = 5
}

given "box_item" "a" {
  name = "a"
}

run "first" {
}

run "second" {
  command = apply

  variables {
    zone = "us"
  }

  given "box_item" "a" {
    name = "b"
  }

  plan_options {
    mode        = "destroy"
    adopt       = ["box_item.*"]
    max_deletes = 3
  }

  assert {
    condition     = plan.counts.add == 1
    error_message = "one"
  }

  expect_failures = [var.zone, box_item.a, data.box_item.b, output.c, check.d]
}
"""


def read(text: str) -> Suite:
    """A test file without faults."""
    suite, faults = parse_suite(text.encode(), NAME)
    assert not faults, faults
    return suite


def faults_of(text: str) -> list[str]:
    """The errors of a test file with their lines."""
    _, faults = parse_suite(text.encode(), NAME)
    assert has_errors(faults)
    assert all(fault.range is not None and fault.range.file == NAME for fault in faults)
    return [f"{fault.range.line if fault.range else 0}: {fault.summary}" for fault in faults]


def test_every_block_is_read() -> None:
    """Variables, systems, given objects and runs keep their names and their order."""
    suite = read(WHOLE)
    assert suite.file == NAME
    assert list(suite.variables) == ["zone"]
    assert [name_instance(one) for one in suite.systems] == ["box.eu"]
    assert [one.labels[1].text for one in suite.given] == ["a"]
    assert [run.name for run in suite.runs] == ["first", "second"]


def test_a_run_has_defaults() -> None:
    """A run without anything is a plan that only has to succeed."""
    first = read(WHOLE).runs[0]
    assert not first.applies
    assert (first.variables, first.given, first.options) == ({}, (), {})
    assert (first.assertions, first.expected) == ((), ())


def test_a_run_says_what_it_does() -> None:
    """Command, variables, given objects, options, assertions and expectations of a run."""
    second = read(WHOLE).runs[1]
    assert second.applies
    assert list(second.variables) == ["zone"]
    assert len(second.given) == len(second.assertions) == 1
    assert second.options == {"mode": "destroy", "adopt": ("box_item.*",), "max_deletes": 3}
    expected = [one.block for one in second.expected]
    assert expected == ["var.zone", "box_item.a", "data.box_item.b", "output.c", "check.d"]


@pytest.mark.parametrize("word", ['"apply"', "apply"])
def test_a_command_is_a_string_or_a_bare_word(word: str) -> None:
    """Terraform writes the bare word, so both forms are taken."""
    assert read(f'run "a" {{\n  command = {word}\n}}').runs[0].applies


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("", "1: The test file has no run"),
        ("a = 1", '1: "a" is outside of any block'),
        ('test "a" {}', '1: A test file has no "test" blocks'),
        ("run {}", "1: A run block needs the name"),
        ('run "a b" {}', '1: "a b" is not a name'),
        ('run "a" {}\nrun "a" {}', '2: run "a" is in the file twice'),
        ('run "a" {\n  speed = 1\n}', '2: run "a" has no argument "speed"'),
        ('run "a" {\n  module {}\n}', '2: run "a" has no block "module"'),
        ('run "a" {\n  command = "destroy"\n}', '2: The command of a run is "plan" or "apply"'),
        ('run "a" {\n  command = upper("x")\n}', '2: The command of a run is "plan" or "apply"'),
        ("variables {}\nvariables {}", '2: The test file has a second "variables" block'),
        ("variables {\n  a {}\n}", "2: A variables block can only contain values"),
        ('variables "a" {}', "1: A variables block has no labels"),
        ('given "a" {}', "1: A given block needs the type and the name"),
        (
            'given "a" "b" {}\ngiven "a" "b" {}',
            '2: given "a" "b" is in the file twice',
        ),
        ('run "a" {\n  given "b" {}\n}', "2: A given block needs the type and the name"),
        ("simulate {}", "1: A simulate block needs the provider"),
        ('simulate "a" {\n  alias = var.x\n}', "2: An alias must be a plain string"),
        ('simulate "a" {}\nsimulate "a" {}', '2: simulate "a" is in the file twice'),
        ('run "a" {\n  assert {\n    condition = true\n  }\n}', '2: assert needs "error_message"'),
        (
            'run "a" {\n  assert {\n    condition = true\n    error_message = ""\n    x = 1\n'
            "  }\n}",
            '5: assert has no argument "x"',
        ),
        (
            'run "a" {\n  plan_options {}\n  plan_options {}\n}',
            '3: run "a" has a second "plan_options" block',
        ),
        (
            'run "a" {\n  plan_options {\n    refresh = false\n  }\n}',
            '3: plan_options has no argument "refresh"',
        ),
        (
            'run "a" {\n  plan_options {\n    mode = "x"\n  }\n}',
            '3: "mode" is "normal", "destroy" or "refresh"',
        ),
        (
            'run "a" {\n  plan_options {\n    target = "x"\n  }\n}',
            '3: "target" is a list of addresses or globs',
        ),
        (
            'run "a" {\n  plan_options {\n    max_deletes = "x"\n  }\n}',
            '3: "max_deletes" is a whole number',
        ),
        (
            'run "a" {\n  expect_failures = var.x\n}',
            "2: expect_failures must be a list of blocks",
        ),
        ('run "a" {\n  expect_failures = [x]\n}', "2: This does not name a block"),
        ('run "a" {\n  expect_failures = [a.b["c"]]\n}', "2: This does not name a block"),
        ('run "a" {', '1: Unclosed "{"'),
    ],
)
def test_a_fault_has_its_place(text: str, fault: str) -> None:
    """Whatever is wrong with a test file is told with file, line and words of its own."""
    assert fault in faults_of(text)


def test_all_faults_are_told_at_once() -> None:
    """A faulty block does not hide those after it."""
    text = 'run "a" {\n  x = 1\n}\nrun "b" {\n  command = 3\n}\ntest {}'
    assert [fault.partition(":")[0] for fault in faults_of(text)] == ["2", "5", "7"]


# ── simulate ────────────────────────────────────────────────────────────────────────────

SCHEMA = make_schema("A box.", AttributeSchema("size", NUMBER, "How large.", default=3))


def settings(text: str) -> tuple[FrozenMap | None, list[str]]:
    """What a simulate block sets, and its faults."""
    suite = read(f'{text}\nrun "a" {{}}')
    found, faults = evaluate_settings(suite.systems[0] if suite.systems else None, SCHEMA)
    return found, [fault.summary for fault in faults]


def test_settings_have_defaults() -> None:
    """Without a block, and for what a block leaves out, the schema's defaults count."""
    assert settings("") == ({"size": 3}, [])
    assert settings('simulate "box" {}') == ({"size": 3}, [])
    assert settings('simulate "box" {\n  size = 2 + 3\n}') == ({"size": 5}, [])


@pytest.mark.parametrize(
    ("line", "fault"),
    [
        ("sizes = 5", 'simulate "box" has no argument "sizes"'),
        ('size = "x"', '"size" must be a number'),
        ("size = var.x", 'Nothing is named "var" here'),
    ],
)
def test_a_wrong_setting_is_a_fault(line: str, fault: str) -> None:
    """Settings are checked like arguments of any block."""
    found, faults = settings(f'simulate "box" {{\n  {line}\n}}')
    assert found is None
    assert faults == [fault]
