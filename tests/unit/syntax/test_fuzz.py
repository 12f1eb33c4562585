"""Damaged configurations are answered with nodes or diagnostics, whatever the damage.

400 of them in each run; `KAFKAFORM_FUZZ=20000 pytest tests/unit/syntax/test_fuzz.py` tries more,
and `KAFKAFORM_FUZZ_SEED=N` the one text of that seed.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import pytest

from kafkaform.core.diagnostics import Diagnostics
from kafkaform.syntax.nodes import Source
from kafkaform.syntax.parse import parse, parse_expression, parse_template
from kafkaform.syntax.scan import scan
from kafkaform.syntax.write import format_text

ROOT = Path(__file__).resolve().parents[3]
COUNT = int(os.environ.get("KAFKAFORM_FUZZ", "400"))
SEED = os.environ.get("KAFKAFORM_FUZZ_SEED")
SECONDS, CHARACTERS = 5, 20_000

MARKS = (
    *("{", "}", "[", "]", "(", ")", '"', "'", "`", ",", ":", ";", "?", "=", "=>", "...", "::"),
    *("${", "%{", "$${", "%%{", "~", "~}", "\\", "\\u12", "%{ endif }", "%{ else }", "%{ if x }"),
    *("\n", "\r", "\r\n", "\t", "\0", "\u202e", "\u200b", "\ufeff", "é", "e\u0301", "😀"),
    *("<<E\n", "<<-E\n", "E\n", "\nEOT\n", "#", "//", "/*", "*/", ".", ".*", "[*]", "0", "1e5"),
    *("for ", "in ", "if ", "else", "null", "-", "!", "&&", "|", " ", "a-b", "a.0.1"),
)
PAIRS = (("[", "]"), ("(", ")"), ('"${', '}"'), ("{ a = ", " }"), ("b {\n", "\n}\n"), ("!", ""))


@cache
def corpus() -> Sequence[str]:
    """What people write, and what implementations of the language are tested with."""
    files = [*ROOT.glob("examples/**/*.hcl"), *ROOT.glob("examples/**/*.tf")]
    files += ROOT.glob("tests/cases/**/*.hcl")
    cases = json.loads((ROOT / "tests/conformance/hcl_cases.json").read_text("utf-8"))["cases"]
    texts = [path.read_text("utf-8") for path in sorted(files)]
    texts += [case["expr"] for case in cases if case["kind"] in ("expr", "template", "body")]
    return [text for text in texts if text]


def slice_of(text: str, dice: random.Random) -> tuple[int, int]:
    """A short piece as often as a long one."""
    first, last = sorted(dice.choices(range(len(text) + 1), k=2))
    return first, (last if dice.random() < 0.5 else min(last, first + 6))


def cut(text: str, dice: random.Random) -> str:
    first, last = slice_of(text, dice)
    return text[:first] + text[last:]


def double(text: str, dice: random.Random) -> str:
    first, last = slice_of(text, dice)
    return text[:last] + text[first:last] * dice.choice((1, 1, 30)) + text[last:]


def mark(text: str, dice: random.Random) -> str:
    at = dice.randint(0, len(text))
    return text[:at] + dice.choice(MARKS) + text[at:]


def splice(text: str, dice: random.Random) -> str:
    other = dice.choice(corpus())
    first, last = slice_of(other, dice)
    at = dice.randint(0, len(text))
    return text[:at] + other[first:last] + text[at:]


def flip(text: str, dice: random.Random) -> str:
    """Another bit in one byte; what is no UTF-8 then becomes lone surrogates."""
    data = bytearray(text.encode("utf-8", "surrogateescape"))
    data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)
    return data.decode("utf-8", "surrogateescape")


def swap(text: str, dice: random.Random) -> str:
    """Two words or marks in each other's place."""
    tokens = scan(Source("", text)).tokens
    if len(tokens) < 2:
        return text
    one, two = sorted(dice.sample(tokens, 2), key=lambda token: token.start)
    between = text[one.end : two.start]
    return text[: one.start] + two.text + between + one.text + text[two.end :]


def nest(text: str, dice: random.Random) -> str:
    first, last = slice_of(text, dice)
    opener, closer = dice.choice(PAIRS)
    depth = dice.choice((1, 5, 101))
    return text[:first] + opener * depth + text[first:last] + closer * depth + text[last:]


DAMAGES: Sequence[Callable[[str, random.Random], str]] = (
    *(cut, double, mark, mark, splice, flip, swap, swap, nest),
)


def damaged(seed: int) -> str:
    dice = random.Random(seed)
    text = dice.choice(corpus())
    for _ in range(dice.randint(1, 5)):
        text = (dice.choice(DAMAGES)(text, dice) or "\n")[:CHARACTERS]
    return text


def check(text: str) -> None:
    """Raises for whatever is neither nodes nor diagnostics with their places."""
    lines = text.count("\n") + 1

    def placed(faults: Diagnostics) -> None:
        assert all(fault.range and 1 <= fault.range.line <= lines for fault in faults), faults

    placed(parse(text, "t.hcl")[1])
    placed(parse(text.encode("utf-8", "surrogateescape"), "t.hcl")[1])
    for read in (parse_expression, parse_template):
        node, faults = read(text, "t.hcl")
        assert (node is None) == bool(faults)
        placed(faults)
    format_text(text)


@pytest.mark.timeout(60 + COUNT)
def test_damaged_texts_are_answered() -> None:
    """No text makes the parser crash or dawdle; one that does is kept, with its seed."""
    for seed in range(COUNT) if SEED is None else [int(SEED)]:
        text = damaged(seed)
        begun = time.process_time()
        try:
            check(text)
            assert time.process_time() - begun < SECONDS
        except Exception as error:
            saved = Path(tempfile.gettempdir(), f"kafkaform-fuzz-{seed}.hcl")
            saved.write_bytes(text.encode("utf-8", "surrogateescape"))
            raise AssertionError(f"KAFKAFORM_FUZZ_SEED={seed}: {error!r}; see {saved}") from error
