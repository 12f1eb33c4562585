"""Functions: one table of results, one of refusals."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaform.language.faults import EvalError, LimitError
from kafkaform.language.functions import function_table

from .example import evaluate, plain

RESULTS: list[tuple[str, Any]] = [
    ('retention("7d")', 604_800_000),
    ('retention("1d12h")', 129_600_000),
    ('retention("unlimited")', -1),
    ('bytes("1GiB")', 1_073_741_824),
    ('bytes("1.5 MB")', 1_500_000),
    ('length("日本")', 2),
    ("length({ a = 1 })", 1),
    ("merge({ a = 1 }, null, { a = 2, b = 3 })", {"a": 2, "b": 3}),
    ('lookup({ a = "x" }, "b", "y")', "y"),
    ("concat([1], [2, 3])", (1, 2, 3)),
    ("flatten([[1, [2]], 3])", (1, 2, 3)),
    ("keys({ b = 1, a = 2 })", ("a", "b")),
    ("values({ b = 1, a = 2 })", (2, 1)),
    ("contains([1, 2], 2)", True),
    ('contains(["1"], 1)', False),
    ('distinct(["b", "a", "b"])', ("b", "a")),
    ('toset(["b", "a", "b"])', ("a", "b")),
    ('tolist([1, "a"])', ("1", "a")),
    ('tonumber("1e3")', 1000),
    ("tostring(1.50)", "1.5"),
    ('tobool("true")', True),
    ('coalesce(null, "", "x")', "x"),
    ('compact(["a", "", null])', ("a",)),
    ('format("%-5s|%05d|%q|%.2f|%v", "a", 42, "x", 3.14159, [1])', 'a    |00042|"x"|3.14|[1]'),
    ('formatlist("%s-%d", ["a", "b"], 1)', ("a-1", "b-1")),
    ('join(",", ["a", "b"])', "a,b"),
    ('split(",", "a,b")', ("a", "b")),
    ('replace("a.b.c", ".", "-")', "a-b-c"),
    ('replace("topic-12", "/[0-9]+/", "<$0>")', "topic-<12>"),
    ('title("hello world")', "Hello World"),
    ('substr("hello", -3, 2)', "ll"),
    ('trim("--a--", "-")', "a"),
    ('trimprefix("kafka_x", "kafka_")', "x"),
    ('indent(2, "a\\nb")', "a\n  b"),
    ('jsonencode({ b = "<x>", a = 1 })', '{"a":1,"b":"\\u003cx\\u003e"}'),
    ('jsondecode("{\\"a\\": [1, 2.5]}").a[0]', 1),
    ('zipmap(["a", "b"], [1, 2])', {"a": 1, "b": 2}),
    ("one([])", None),
    ("element([1, 2, 3], 4)", 2),
    ('sort(["b", "a"])', ("a", "b")),
    ("range(3)", (0, 1, 2)),
    ("range(5, 1, -2)", (5, 3)),
    ("min(3, 1.5, 2)", 1.5),
    ("sum([1, 2, 3.5])", 6.5),
    ("ceil(1.2)", 2),
    ("floor(-1.2)", -2),
    ("setunion([1], [2, 1])", (1, 2)),
    ("setintersection([1, 2], [2, 3])", (2,)),
    ("setsubtract([1, 2], [2])", (1,)),
    ('setproduct(["a", "b"], [1, 2])', (("a", 1), ("a", 2), ("b", 1), ("b", 2))),
    ("alltrue([true, false])", False),
    ("anytrue([true, false])", True),
    ("chunklist([1, 2, 3], 2)", ((1, 2), (3,))),
    ("slice([1, 2, 3], 1, 3)", (2, 3)),
    ("reverse([1, 2])", (2, 1)),
    ('regex("(?P<env>[a-z]+)-(?P<n>[0-9]+)", "prod-7")', {"env": "prod", "n": "7"}),
    ('regexall("[a-z]", "a1b")', ("a", "b")),
    ('base64decode(base64encode("日"))', "日"),
    ('sha256("")', "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"),
    ('csvdecode("a,b\\n1,2\\n")', ({"a": "1", "b": "2"},)),
    ('parseint("ff", 16)', 255),
    ("pow(2, 10)", 1024),
    ('transpose({ a = ["x"], b = ["x"] })', {"x": ("a", "b")}),
    ('urlencode("a b&c")', "a+b%26c"),
]


@pytest.mark.parametrize(("text", "expected"), RESULTS)
def test_results(text: str, expected: Any) -> None:
    """Each call yields what its documentation in other tools promises."""
    assert plain(text) == expected


REFUSALS = [
    ('retention("7 days")', "expected an amount and a unit"),
    ('bytes("1.5B")', "it must be a whole amount"),
    ("one([1, 2])", "a list with one element or none"),
    ("element([], 0)", "the list is empty"),
    ('jsondecode("{")', "the text is not JSON"),
    ('regex("(", "a")', "this is not a regular expression"),
    ('regex("a", "b")', "the pattern does not match"),
    ('format("%d", "x")', "a number is needed"),
    ('format("%d")', "%d needs argument 1"),
    ('format("x", 1)', "more arguments than verbs"),
    ('lookup({}, "a")', "the key is not there"),
    ("sum([])", "at least one number"),
    ('secret_env("a b")', "not the name of an environment variable"),
    ('file("x")', "turned off"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSALS)
def test_refusals(text: str, reason: str) -> None:
    """A refused call names the function and the reason."""
    with pytest.raises(EvalError) as caught:
        evaluate(text)
    assert caught.value.summary == f"{text.partition('(')[0]}() cannot be computed"
    assert reason in caught.value.detail


LIMITED = [
    "range(1000000)",
    "setproduct(range(1000), range(1000))",
    "pow(10, 100000)",
    f'regex("(a|aa)+$", "{"a" * 60}b")',
]


@pytest.mark.parametrize("text", LIMITED)
def test_limits(text: str) -> None:
    """A call that would take too much memory or time is stopped, and `try` does not hide it."""
    with pytest.raises(LimitError):
        evaluate(f"try({text}, 1)")


def test_every_function_says_how_to_call_it() -> None:
    """Names are lower case, and parameters have names."""
    for name, function in function_table().items():
        assert name == function.name == name.lower()
        assert function.usage().startswith(f"{name}(")
