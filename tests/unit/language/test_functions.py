"""Functions: one table of results, one of refusals."""

from __future__ import annotations

import base64
import gzip
import runpy
from functools import partial
from pathlib import Path
from typing import Any
from uuid import NAMESPACE_DNS, uuid5

import pytest

from kafkaform.language.expressions.calls import FORMS
from kafkaform.language.functions import FunctionTable, string
from kafkaform.language.functions.number import render_call
from kafkaform.language.values.faults import EvalError, LimitError

from .example import evaluate, plain

_DATE = "Sat, 31 Jan 26 o'clock 3PM"
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
    ('bytes("2TiB")', 2 * 1024**4),
    ('bytes("1kB 24B")', 1_024),
    ('basename("a/b.txt")', "b.txt"),
    ('basename("a/b/")', "b"),
    ('dirname("a/b/../c.txt")', "a"),
    ('dirname("c.txt")', "."),
    ("setsymmetricdifference([1, 2], [2, 3])", (1, 3)),
    ('textencodebase64("ü", "UTF-16LE")', "/AA="),
    ('textdecodebase64("/A==", "ISO-8859-1")', "ü"),
    ('base64sha256("")', "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="),
    ('uuidv5("dns", "kafka.example")', str(uuid5(NAMESPACE_DNS, "kafka.example"))),
    ("formatdate(\"EEE, D MMM YY 'o''clock' HAA\", \"2026-01-31T15:04:05Z\")", _DATE),
    ('formatdate("ZZZZZ", "2026-01-31T15:04:05-03:30")', "-03:30"),
    ('timeadd("2026-01-31T23:59:59.5+01:00", "500ms")', "2026-02-01T00:00:00+01:00"),
    ('timeadd("2026-03-01T00:00:00Z", "-1h30m")', "2026-02-28T22:30:00Z"),
    ('timecmp("2026-01-01T00:00:00.1Z", "2026-01-01T01:00:00.09+01:00")', 1),
    ('cidrhost("10.0.0.0/8", -2)', "10.255.255.254"),
    ('cidrhost("2001:db8::/64", 16)', "2001:db8::10"),
    ('cidrsubnet("fe80::/48", 16, 6)', "fe80:0:0:6::/64"),
    ('cidrsubnets("10.0.0.0/21", 3, 7, 3)', ("10.0.0.0/24", "10.0.1.0/28", "10.0.2.0/24")),
    ('cidrcontains("10.0.0.0/8", "10.1.0.0/16")', True),
    ('cidrcontains("10.1.0.0/16", "10.0.0.0/8")', False),
    ("assumelistlength([1, 2], 1, 2)", (1, 2)),
    ('templatestring("%%{ for x in xs }<$${x}>%%{ endfor }", { xs = [1, 2] })', "<1><2>"),
    ('templatestring("$${xs}", { xs = [1, 2] })', (1, 2)),
    ('yamldecode("a: [1, x, yes, ~, 0x1f, 1.50]")', {"a": (1, "x", True, None, 31, 1.5)}),
    ('yamldecode("2026-1-31")', "2026-01-31T00:00:00Z"),
]


@pytest.mark.parametrize(("text", "expected"), RESULTS)
def test_results(text: str, expected: Any) -> None:
    """Each call yields what its documentation in other tools promises."""
    assert plain(text) == expected


@pytest.mark.parametrize(
    ("value", "unit", "call"),
    [
        ("2592000000", "ms", 'retention("30d")'),
        ("5400000", "ms", 'retention("90m")'),
        (10_485_760, "bytes", 'bytes("10MiB")'),
        ("1048576", "bytes/s", 'bytes("1MiB")'),
        ("1048588", "bytes", ""),
        ("1", "ms", ""),
        ("0", "ms", ""),
        ("-1", "ms", ""),
        ("9223372036854775807", "ms", ""),
        ("60", "percent", ""),
        ("60000", "", ""),
        (None, "ms", ""),
    ],
)
def test_amounts_are_written_as_calls(value: object, unit: str, call: str) -> None:
    """Only whole amounts of a larger unit, and what the call means is the value again."""
    assert render_call(value, unit) == call
    if call:
        assert evaluate(call) == int(str(value))


REFUSALS = [
    ('retention("7 days")', "Expected an amount and a unit"),
    ('bytes("1.5B")', "The amount must be a whole number"),
    ("one([1, 2])", "Expected one element or none"),
    ("element([], 0)", "The list is empty"),
    ('jsondecode("{")', "The text is not JSON"),
    ('regex("(", "a")', "This is not a regular expression"),
    ('regex("a", "b")', "The pattern does not match"),
    ('format("%d", "x")', "expected a number"),
    ('format("%d")', "%d needs argument 1"),
    ('format("x", 1)', "more arguments than verbs"),
    ('lookup({}, "a")', "The map does not have this key"),
    ("sum([])", "at least one number"),
    ('secret_env("a b")', "not the name of an environment variable"),
    ('file("x")', "turned off"),
    ('fileset(".", "*")', "turned off"),
    ('retention("1y")', "Expected an amount and a unit (ms, s, m, h, d, w)"),
    ('csvdecode("a,b\\n1,x\\"y\\n")', "a quote or break in line 2"),
    ('csvdecode("a,b\\n1")', "The number of fields in row 2 is 1 instead of 2"),
    ('formatdate("YYY", "2026-01-31T00:00:00Z")', "YYY is not a verb"),
    ('timecmp("2026-02-30T00:00:00Z", "2026-01-31T00:00:00Z")', "Expected a time such as"),
    ('timeadd("2026-01-31T00:00:00Z", "1d")', "Expected amounts and units"),
    ('timeadd("9999-12-31T00:00:00Z", "24h")', "The year of the result"),
    ('cidrhost("10.0.0.1", 1)', "Expected a range of addresses"),
    ('cidrhost("10.0.0.0/30", 4)', "The range has only 4 addresses"),
    ('cidrnetmask("2001:db8::/32")', "Only a range of IPv4 addresses"),
    ('cidrsubnet("10.0.0.0/30", 3, 0)', "The prefix can be 0 to 2 bits longer"),
    ('cidrsubnets("10.0.0.0/30", 1, 1, 1)', "There is no room left"),
    ('cidrcontains("10.0.0.0/8", "::1")', "One is IPv4 and the other is IPv6"),
    ("assumelistlengthmin([1], 2)", "The number of elements is 1, less than 2"),
    ("assumemaplengthmax({ a = 1 }, 0)", "The number of elements is 1, more than 0"),
    ('assumeequal("a", "b")', "The value is not the expected one"),
    ("assumenotnull(null)", "It is null"),
    ('textencodebase64("a", "idna")', "There is no such character set"),
    ('textencodebase64("a", "hex_codec")', "There is no such character set"),
    ('base64gunzip("aGVsbG8=")', "compressed by gzip"),
    ('yamldecode("a: [1")', "The text is not YAML in line 1"),
]


@pytest.mark.parametrize(("text", "reason"), REFUSALS)
def test_refusals(text: str, reason: str) -> None:
    """A refused call names the function and the reason."""
    with pytest.raises(EvalError) as caught:
        evaluate(text)
    assert caught.value.summary == f"{text.partition('(')[0]}() cannot be computed"
    assert reason in caught.value.detail


def _bomb() -> str:
    """Two megabytes of zeros, packed into two kilobytes."""
    return base64.b64encode(gzip.compress(bytes(2 * 1024 * 1024))).decode()


LIMITED = [
    "range(1000000)",
    "setproduct(range(1000), range(1000))",
    "pow(10, 100000)",
    f'regex("(a|aa)+$", "{"a" * 60}b")',
    f'base64gunzip("{_bomb()}")',
]


@pytest.mark.parametrize("text", LIMITED)
def test_limits(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A call that would take too much memory or time is stopped, and `try` does not hide it."""
    monkeypatch.setattr(string, "Allowance", partial(string.Allowance, 0.1))
    with pytest.raises(LimitError):
        evaluate(f"try({text}, 1)")


def test_every_function_says_how_to_call_it() -> None:
    """Names are lower case, parameters have names, and one sentence says what it yields."""
    for name, function in FunctionTable().items():
        assert name == function.name == name.lower()
        assert function.usage().startswith(f"{name}(")
        assert function.doc.endswith(".")
        assert "\n" not in function.doc


def test_the_list_of_functions_is_true() -> None:
    """docs/functions.md holds exactly what docs/functions.py makes today, each function once."""
    docs = Path(__file__).resolve().parents[3] / "docs"
    text = (docs / "functions.md").read_text(encoding="utf-8")
    assert text == runpy.run_path(str(docs / "functions.py"))["page"](), "run docs/functions.py"
    for name in (*FunctionTable(), *FORMS):
        assert text.count(f"| `{name}(") == 1
