"""The console's loop: what is one expression, what comes of it, at a terminal and in a pipe."""

from __future__ import annotations

import pytest

from kafkaform.cli.commands.console import answer_all, is_open, split_expressions
from kafkaform.cli.terminal.console import Console
from kafkaform.core.diagnostics import Diagnostic, Diagnostics, Severity


def double(text: str) -> tuple[str | None, Diagnostics]:
    """Stands for the language: `bad` fails, everything else is its own value."""
    if text.strip() == "bad":
        return None, (Diagnostic(Severity.ERROR, "It is bad"),)
    return text.strip(), ()


@pytest.mark.parametrize(
    ("text", "goes_on"),
    [
        *(("[1,", True), ("{", True), ("f(1", True), ('"${ f(', True), ("/* a", True)),
        *(("<<E\nabc", True), ("<<E\nabc\nE", False), ("<<E\n[\nE", False)),
        *(("1 + 1", False), ("[1]", False), ("# [", False), ("", False), ('"["', False)),
        *(('"abc', False), ('f("abc', False), ("}", False), ("(]", False), ("['", False)),
    ],
)
def test_where_an_expression_ends(text: str, goes_on: bool) -> None:
    """Only what an unclosed bracket, heredoc or comment alone keeps from being whole goes on;
    with another error more lines would not help."""
    assert is_open(text) is goes_on


def test_expressions_over_lines() -> None:
    """Lines are put together until nothing is open; the last one may be unfinished."""
    lines = ["1\n", "[\n", "2,\r\n", "]\n", "\n", "<<E\n", "a\n", "E\n", "{\n", "b"]
    assert list(split_expressions(lines)) == ["1", "[\n2,\n]", "", "<<E\na\nE", "{\nb"]


def told(lines: list[str], capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = answer_all(lines, double, Console.make_standard())
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    """Every expression is answered, empty lines and comments are passed over, and one that fails
    does not stop the others but ends it with 1."""
    assert told(["1", "", "# c", "[", "2]", "exit", "3"], capsys) == (0, "1\n[\n2]\n", "")
    code, out, err = told(["1", "bad", "3"], capsys)
    assert (code, out) == (1, "1\n3\n")
    assert err.startswith("Error: It is bad\n")


def test_results_cannot_move_the_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the evaluation says, no control character of it reaches the terminal."""
    assert told(["x\x1b[2J"], capsys)[1] == "x\\x1b[2J\n"


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    """`help` explains, and is no expression."""
    code, out, _ = told(["help"], capsys)
    assert code == 0 and "Ctrl-C" in out
