"""Expressions: operators, conditionals, templates, loops, splats, references."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from kafkaform.language.values.faults import EvalError
from kafkaform.language.values.value import SENSITIVE, MapVal, Marked, Null, ObjectVal, TupleVal

from .example import evaluate, plain

VALUES: list[tuple[str, Any]] = [
    ("0.1 + 0.2", Decimal("0.3")),
    ("9007199254740993 + 1", 9007199254740994),
    ("-7 % 3", -1),
    ("7.5 % 2", Decimal("1.5")),
    ('"5" + 1', 6),
    ('"1" == 1', False),
    ("1 == 1.0", True),
    ("null == null", True),
    ('!"true"', False),
    ("1 + 2 * 3 - 4", 3),
    ("false && 1 / 0 == 1", False),
    ("1 / 0 == 1 || true", True),
    ('true ? 1 : "a"', "1"),
    ("true ? null : 1", None),
    ("true ? 1 : nope.x", 1),
    ('"${[1, 2]}"', (1, 2)),
    ('"a${1}b${true}"', "a1btrue"),
    ('"%{ for x in [1, 2] }<${x}>%{ endfor }"', "<1><2>"),
    ('"%{ if false }a%{ else }b%{ endif }"', "b"),
    ('[1, 2]["1"]', 2),
    ('{"1" = 2}[1]', 2),
    ("{ a = 1, a = 2 }", {"a": 2}),
    ('{ (1 + 1) = "x" }', {"2": "x"}),
    ("[for k, v in { b = 1, a = 2 } : k]", ("a", "b")),
    ("[for i, v in [5, 6] : i * v if v > 5]", (6,)),
    ('{ for v in ["a", "b"] : v => upper(v) }', {"a": "A", "b": "B"}),
    ("{ for v in [1, 2, 3] : v % 2 => v... }", {"0": (2,), "1": (1, 3)}),
    ("[{ a = 1 }, { a = 2 }].*.a", (1, 2)),
    ("[{ a = 1 }, { a = 2 }][*].a", (1, 2)),
    ("null[*]", ()),
    ("{ a = 1 }[*].a", (1,)),
    ("[[1], [2]].*[0]", (1,)),
    ("[[1], [2]][*][0]", (1, 2)),
    ("try(null.a, 1)", 1),
    ("can([][0])", False),
    ("max([3, 9, 4]...)", 9),
]


@pytest.mark.parametrize(("text", "expected"), VALUES)
def test_values(text: str, expected: Any) -> None:
    """Each expression yields what the reference implementation yields."""
    found = plain(text)
    assert found == expected
    assert isinstance(found, bool) == isinstance(expected, bool)


FAULTS = [
    ("1 / 0", "This cannot be computed"),
    ("1 + true", "This cannot be an operand here"),
    ("null + 1", "null cannot be an operand"),
    ("null && true", "null cannot be an operand"),
    ("null ? 1 : 2", "A condition cannot be null"),
    ("[1] ? 1 : 2", "A condition must be true or false"),
    ('true ? [1] : "a"', "The two results of a condition have no type in common"),
    ('"a${null}"', "null cannot be part of a string"),
    ('"a${[1]}"', "This value cannot be part of a string"),
    ("[1][1.5]", "An index must be a whole number"),
    ("[1][3]", "There is no element 3"),
    ('{ a = 1 }["b"]', 'There is no element with the key "b"'),
    ("{ a = 1 }.b", 'There is no attribute "b"'),
    ('"abc"[0]', "A string cannot be indexed"),
    ("null.a", 'null has no attribute "a"'),
    ("[for x in null : x]", "A for expression needs a collection"),
    ('{ for x in ["a", "a"] : x => 1 }', 'Two elements produce the key "a"'),
    ("nope.x", 'Nothing is named "nope" here'),
    ("lenght([])", "There is no function lenght"),
    ("upper()", "upper() has too few arguments: text is missing"),
    ('upper("a", "b")', "upper() has too many arguments: it takes 1"),
    ("upper(null)", "The argument text of upper() does not fit"),
    ("upper([1])", "The argument text of upper() does not fit"),
    ("try(null.a)", "None of the arguments of try() can be evaluated"),
]


@pytest.mark.parametrize(("text", "summary"), FAULTS)
def test_faults(text: str, summary: str) -> None:
    """What cannot be evaluated says so, at a place inside the expression."""
    with pytest.raises(EvalError) as caught:
        evaluate(text)
    assert caught.value.summary == summary
    assert caught.value.location.range.file == "test"


def test_types_of_results() -> None:
    """Splats of lists are lists, and conditions give both sides one type."""
    assert isinstance(evaluate("true ? { a = 1 } : { b = 2 }"), MapVal)
    assert isinstance(evaluate("[1].*"), TupleVal)
    assert str(getattr(evaluate("tolist([{ a = 1 }])[*].a"), "type", "")) == "list(number)"
    null = evaluate('true ? null : "a"')
    assert isinstance(null, Null)
    assert str(null.type) == "string"


def test_marks_of_both_results_follow_a_condition() -> None:
    """Whether a result is sensitive does not depend on which side is chosen."""
    for text in (
        'true ? "a" : sensitive("b")',
        'sensitive(true) ? "a" : "b"',
        '"%{ if true }a%{ else }${sensitive("b")}%{ endif }"',
        '"%{ if false }${sensitive("b")}%{ endif }"',
    ):
        found = evaluate(text)
        assert isinstance(found, Marked)
        assert found.marks == {SENSITIVE}
    assert evaluate('"%{ if true }a%{ else }${nope}%{ endif }"') == "a"


def test_unlike_results_are_named_by_their_types() -> None:
    """Two lists that do not fit are told apart."""
    with pytest.raises(EvalError) as caught:
        evaluate("true ? [1] : [true]")
    assert caught.value.detail == "One is tuple([number]), the other is tuple([bool])."


def test_names_of_loops_hide_roots() -> None:
    """A variable of a for expression wins over a root of the same name."""
    assert plain("[for var in [1] : var + 1]", var=ObjectVal({"x": 5})) == (2,)
    assert plain("var.x", var=ObjectVal({"x": 5})) == 5


def test_long_chains_do_not_recurse() -> None:
    """Thousands of operators in a row are evaluated in a loop."""
    assert plain("+".join(["1"] * 5000)) == 5000
