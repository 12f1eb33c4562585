"""Types: how they are written, conversion, unification."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.core.schema import Type
from kafkaform.language.declare.variables import make_default_reader
from kafkaform.language.expressions.compilation import make_context
from kafkaform.language.functions import FunctionTable
from kafkaform.language.values.conversion import convert_value, lower_value
from kafkaform.language.values.faults import ConvertFault, EvalError
from kafkaform.language.values.types import parse_type, unify_types
from kafkaform.language.values.value import type_of
from kafkaform.syntax.parse import parse_expression

from .example import evaluate


def _type(text: str) -> Type:
    node, problems = parse_expression(text, "test")
    assert node is not None, problems
    return parse_type(node, make_default_reader(make_context(FunctionTable())))


CONVERSIONS: list[tuple[str, str, Any]] = [
    ("1", "string", "1"),
    ('"2.5"', "number", 2.5),
    ('"true"', "bool", True),
    ("[1, true]", "list(string)", ("1", "true")),
    ("[2, 1, 2]", "set(number)", (1, 2)),
    ("{ a = 1 }", "map(string)", {"a": "1"}),
    ("{ a = 1, b = 2 }", "object({ a = string })", {"a": "1"}),
    ("{}", "object({ a = optional(number, 3) })", {"a": 3}),
    ("{ a = null }", "object({ a = optional(number, 3) })", {"a": 3}),
    ("{}", "object({ a = optional(string) })", {"a": None}),
    ("{ x = {} }", "map(object({ n = optional(number, 1) }))", {"x": {"n": 1}}),
    ('["a", 1]', "tuple([string, string])", ("a", "1")),
    ("[1, null]", "list(any)", (1, None)),
]


@pytest.mark.parametrize(("value", "kind", "expected"), CONVERSIONS)
def test_conversion(value: str, kind: str, expected: Any) -> None:
    """Values take the type that is asked for."""
    assert lower_value(convert_value(evaluate(value), _type(kind))) == expected


REFUSED = [
    ('"x"', "number", "expected a number, got a string that is not a number"),
    ("[1]", "string", "expected a string, got a list"),
    (
        '{ a = { b = "x" } }',
        "map(map(number))",
        "expected a number, got a string that is not a number (at .a.b)",
    ),
    ("{}", "object({ a = string })", 'the attribute "a" is missing'),
    ("[1]", "tuple([string, string])", "expected 2 elements, got 1"),
    ('[1, ["a"]]', "list(any)", "all elements must have the same type"),
    ('secret_env("X")', "number", "expected a number, got a secret"),
]


@pytest.mark.parametrize(("value", "kind", "message"), REFUSED)
def test_refused_conversion(value: str, kind: str, message: str) -> None:
    """What does not fit is named by its path and kind, never by its value."""
    with pytest.raises(ConvertFault) as caught:
        convert_value(evaluate(value), _type(kind))
    assert str(caught.value) == message


UNIFIED = [
    (["1", '"a"'], "string"),
    (["null", "1"], "number"),
    (["[1]", "[1, 2]"], "list(number)"),
    (["{ a = 1 }", "{ a = true }"], "None"),
    (["{ a = 1 }", "{ b = 2 }"], "map(number)"),
    (["[1]", "{}"], "None"),
    (["tolist([[1]])", '[["a", "b"]]'], "list(list(string))"),
    (["[{ a = 1 }, null]", "tolist([])"], "None"),
    (['tolist(["a"])', "[1]"], "list(string)"),
]


@pytest.mark.parametrize(("values", "expected"), UNIFIED)
def test_unification(values: list[str], expected: str) -> None:
    """Several types share one, or none."""
    assert str(unify_types(type_of(evaluate(value)) for value in values)) == expected


BAD_TYPES = [
    ('"string"', "A type is written without quotes"),
    ("strin", "This is not a type"),
    ("list(string, string)", "list(…) is not a type"),
    ("object([])", "object(…) needs fields in braces"),
    ("optional(string)", "optional(…) is not allowed here"),
]


@pytest.mark.parametrize(("text", "summary"), BAD_TYPES)
def test_bad_types(text: str, summary: str) -> None:
    """A misspelt type is refused where it stands."""
    with pytest.raises(EvalError) as caught:
        _type(text)
    assert caught.value.summary == summary
