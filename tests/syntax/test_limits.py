"""Hostile texts end quickly with a diagnostic, or parse; none exhausts the stack."""

from __future__ import annotations

import time

import pytest

from kafkaform.syntax import limits
from kafkaform.syntax.parse import parse

K = 1024

REFUSED = {
    "brackets": ("a = " + "[" * 200_000, "Nested too deeply"),
    "one bracket too many": ("a = " + "[" * 101 + "]" * 101 + "\n", "Nested too deeply"),
    "blocks": ("a {\n" * 100_000, "Nested too deeply"),
    "strings": ("a = " + '"${' * 100_000, "Nested too deeply"),
    "unary": ("a = " + "!" * 20_000 + "x\n", "Nested too deeply"),
    "conditionals": ("a = " + "x ? y : " * 5_000 + "z\n", "Nested too deeply"),
    "attributes": ("a = x" + ".y" * 10_000 + "\n", "Nested too deeply"),
    "splats": ("a = x" + "[*]" * 10_000 + "\n", "Nested too deeply"),
    "directives": ('a = "' + "%{if x}" * 5_000 + '"\n', "Misplaced %{ if }"),
    "heredocs in heredocs": ("a = <<E\n" + "${<<F\n" * 5_000, "Nested too deeply"),
    "blank lines in an open heredoc": ("a = <<E\n" + "\n" * 512 * K, "Unclosed heredoc"),
    "blanks in an open heredoc": ("a = <<E\n" + (" " * 50 + "\n") * 20_000, "Unclosed heredoc"),
    "heredoc openers": ("".join(f"a = <<E{i}\n" for i in range(20_000)), "Unclosed heredoc"),
    "heredoc marker": ("a = <<" + "E" * 200_000 + "\n", "Heredoc marker too long"),
    "string": ('a = "' + "x" * 1100 * K + '"\n', "String too long"),
    "heredoc": ("a = <<E\n" + "0123456789\n" * 110_000 + "E\n", "String too long"),
    "number": ("a = " + "9" * 200_000 + "\n", "Number too long"),
    "exponent": ("a = 1e999999999\n", "Number too long"),
    "list": ("a = [" + "1," * 100_001 + "]\n", "Collection too large"),
    "tokens": ("-" * 1_000_100, "File too complex"),
    "file": ("#" * (8 * K * K + 1), "File too large"),
    "comment": ("/* " * 200_000, "Unclosed comment"),
    "emoji": ("😀" * 200_000, "Unexpected character"),
    "bad heredocs": ("".join(f"a = << E{i}\n" for i in range(50_000)), "Invalid heredoc start"),
    "closing brackets": ("}\n" * 100_000, 'Unexpected "}"'),
    "repeated names": ("a = 1\n" * 2_000, '"a" is set twice'),
}
ACCEPTED = {
    "deepest brackets": "a = " + "[" * 100 + "]" * 100 + "\n",
    "deepest parentheses": "a = " + "(" * 100 + "1" + ")" * 100 + "\n",
    "longest string": 'a = "' + "x" * limits.STRING_CHARACTERS + '"\n',
    "blank lines in a heredoc": "a = <<E\n" + "\n" * 100_000 + "x\nE\n",
    "long comment": "#" * 4 * K * K + "\n",
    "many dollars": 'a = "' + "$" * 200_000 + '"\n',
    "large exponent": "a = 1e400\n",
}


@pytest.mark.parametrize("name", REFUSED)
def test_bomb_is_refused(name: str) -> None:
    """A bomb gives its diagnostic, with a line, in seconds."""
    text, words = REFUSED[name]
    started = time.monotonic()
    _, diagnostics = parse(text, "t.hcl")
    assert time.monotonic() - started < 20
    assert words in diagnostics[0].summary
    assert diagnostics[0].range is not None
    assert len(diagnostics) <= limits.DIAGNOSTICS


@pytest.mark.parametrize("name", ACCEPTED)
def test_large_but_legal(name: str) -> None:
    """What lies just inside the limits is accepted."""
    assert parse(ACCEPTED[name], "t.hcl")[1] == ()
