"""YAML: what its words mean, how it is written, and what stops a hostile text."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from kafkaform.language.functions import FunctionTable
from kafkaform.language.values.conversion import lower_value
from kafkaform.language.values.faults import FunctionFault, LimitFault
from kafkaform.language.values.value import Val

from .example import evaluate


def decode(text: str) -> Val:
    return FunctionTable()["yamldecode"].call(text)


MEANINGS: list[tuple[str, Any]] = [
    ("topics:\n  - name: a\n    n: 3\n", {"topics": ({"name": "a", "n": 3},)}),
    ("[yes, No, on, OFF, y, true, True]", (True, False, True, False, True, True, True)),
    ("['yes', \"no\", !!str on, yEs]", ("yes", "no", "on", "yEs")),
    ("[~, null, NULL, Null]", (None, None, None, None)),
    ("[0o17, 0x1F, 017, -12, +3]", (15, 31, 17, -12, 3)),
    ("[1.50, .5, 1e3, 1_000, 12:30:45]", (1.5, 0.5, 1000, "1_000", "12:30:45")),
    (
        "[2026-1-2, 2026-01-02T03:04:05+01:00]",
        ("2026-01-02T00:00:00Z", "2026-01-02T03:04:05+01:00"),
    ),
    ("[2026-1-2 3:4:5.5, 2026-13-01]", ("2026-01-02T03:04:05Z", "2026-13-01")),
    ("a: |\n  x\n  y\nb: >-\n  x\n  y\n", {"a": "x\ny\n", "b": "x y"}),
    ("|\n  12\n", "12\n"),
    ("{1: a, true: b, n: c, on: d}", {"1": "a", "true": "b", "n": "c", "on": "d"}),
    ("- &a {n: 1}\n- <<: *a\n  m: 2\n- *a\n", ({"n": 1}, {"n": 1, "m": 2}, {"n": 1})),
    ("<<: [{a: 1, b: 1}, {b: 2}]\nc: 3\n", {"a": 1, "b": 2, "c": 3}),
    ("!!binary aGVsbG8=", "aGVsbG8="),
]


@pytest.mark.parametrize(("text", "expected"), MEANINGS)
def test_meanings(text: str, expected: Any) -> None:
    """Words without quotes have the types that go-cty-yaml gives them."""
    assert lower_value(decode(text)) == expected


REFUSED = {
    "a: [1": "the text is not YAML in line 1, column 6",
    "a: 1\nb: 2\na: 3": "the key a occurs twice",
    "&a [*a]": "*a refers to an anchor that is not defined before it",
    "*b": "*b refers to an anchor that is not defined before it",
    "[a, -.inf]": "infinite numbers",
    "--- 1\n--- 2": "more than one YAML document",
    "": "there is no YAML document",
    "!ruby/object {a: 1}": "the tag !ruby/object is not supported",
    "!!int x": "the tag !!int, which does not fit it",
    "!!binary '>'": "not base64",
    "? [a]\n: 1": "a key must be",
    "~: 1": "a key must be",
    "<<: 1": "only mappings can be merged",
    "[" * 200: "nested too deeply",
    "\x01": "the text is not YAML",
}


@pytest.mark.parametrize("text", REFUSED)
def test_refused(text: str) -> None:
    """What is no YAML, or has no value here, is refused with the reason."""
    with pytest.raises(FunctionFault) as caught:
        decode(text)
    assert REFUSED[text] in caught.value.message


def test_aliases_cannot_multiply() -> None:
    """Eleven lines whose aliases stand for 10^10 values are stopped."""
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    for n in range(10):
        lines.append(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]")
    with pytest.raises(LimitFault):
        decode("\n".join(lines))


@pytest.mark.slow("reads a hundred thousand lines")
def test_a_long_list_is_stopped() -> None:
    """A list of more elements than a value may have ends with the limit's message."""
    with pytest.raises(LimitFault):
        decode("- a\n" * 100_000)


WRITTEN = [
    ("true", "true\n...\n"),
    ("null", "null\n...\n"),
    ('""', '""\n'),
    ("{}", "{}\n"),
    ('{ b = [1, "x"], a = null }', '"a": null\n"b":\n- 1\n- "x"\n'),
    ('"x\\ny"', "|-\n  x\n  y\n"),
    ('"é \\u0007"', '"é \\a"\n'),
]


@pytest.mark.parametrize(("text", "expected"), WRITTEN)
def test_writing(text: str, expected: str) -> None:
    """Strings are quoted or literal, keys sorted."""
    assert evaluate(f"yamlencode({text})") == expected


def test_what_is_written_reads_the_same() -> None:
    """Strings that look like something else, or have several lines, come back as they were."""
    text = (
        '{ a = "yes", b = "1", c = " x\\n  y: z\\n", d = [[], {}], e = 1.25, f = "${"a " }long" }'
    )
    assert lower_value(decode(str(evaluate(f"yamlencode({text})")))) == lower_value(evaluate(text))


def test_the_library_is_loaded_only_when_it_is_needed() -> None:
    """The command line starts without it."""
    code = "import sys, kafkaform.cli.app; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
