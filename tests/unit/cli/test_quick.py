"""The quick way to a command means what typer means, or leaves the line to it."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from importlib import import_module
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaform.cli.command_tree import get_commands, run_typed
from kafkaform.cli.quick import QUICK, find_quick_command
from kafkaform.cli.terminal.console import Console

from ...kit.quick import examples

HELP = {"-h", "--help"}


def called(name: str, line: list[str], quickly: bool) -> Mapping[str, Any] | None:
    """The arguments that the command's function gets, with its defaults; None if it is not
    called."""
    place, _, function = QUICK[name].function.partition(":")
    module = import_module(f"kafkaform.cli.{place}")
    signature = inspect.signature(getattr(module, function))
    got: list[Mapping[str, Any]] = []

    def record(*arguments: Any, **named: Any) -> int:
        bound = signature.bind(*arguments, **named)
        bound.apply_defaults()
        plain = bound.arguments.items()
        got.append({n: tuple(v) if isinstance(v, list | tuple) else v for n, v in plain})
        return 0

    with patch.object(module, function, record):
        if quickly:
            call = find_quick_command([name, *line])
            return None if call is None else (call(), got[0])[1]
        with patch.object(Console, "show_diagnostics"):
            run_typed([name, *line], Console.make_standard())
    return got[0] if got else None


@pytest.mark.parametrize("name", QUICK)
def test_every_flag_is_in_the_table(name: str) -> None:
    """The table has exactly the flags that typer shows, and operands if typer takes some."""
    parameters = get_commands().commands[name].params
    flags = {f for p in parameters for f in (*p.opts, *p.secondary_opts) if f[:2] == "--"}
    assert {f"--{flag}" for flag in QUICK[name].flags} == flags - HELP
    takes = any(p.param_type_name == "argument" for p in parameters)
    assert takes == (QUICK[name].operand is not None)


@st.composite
def lines(draw: st.DrawFn) -> tuple[str, list[str]]:
    """A command and words that it may or may not understand."""
    name = draw(st.sampled_from(sorted(QUICK)))
    flags = st.sampled_from([*QUICK[name].flags, "nope", "help", "chdir"])
    words = draw(st.lists(st.tuples(flags, st.sampled_from(_FORMS)), max_size=4))
    return name, [word for flag, form in words for word in form.format(flag).split("|")]


_FORMS = ("--{}", "-{}", "--{}=a=1", "-{}=b", "--{}|c=1", "-{}|-x", "d", "-", "--", "-q", "--{}=")


@settings(max_examples=examples(300), deadline=None)
@given(lines())
def test_both_ways_mean_the_same(line: tuple[str, list[str]]) -> None:
    """What the quick way understands, typer understands with the same arguments."""
    name, words = line
    quick = called(name, words, quickly=True)
    assert quick is None or quick == called(name, words, quickly=False)


@pytest.mark.parametrize(
    "line",
    [
        ["validate"],
        ["validate", "-json", "--no-color"],
        ["validate", "-var", "a=1", "-var-file=x.kfvars.hcl", "--var=b=2"],
        ["fmt", "-check", "-diff", "-recursive", "a.kf.hcl", "modules"],
        ["fmt", "-"],
        ["fmt", "--no-list", "--no-write"],
        ["output", "-raw", "name"],
        ["output", "-json", "-state=x.json"],
    ],
)
def test_ordinary_lines_are_quick(line: list[str]) -> None:
    """Lines as people and editors type them do not wait for typer."""
    name, *words = line
    quick = called(name, words, quickly=True)
    assert quick is not None
    assert quick == called(name, words, quickly=False)


@pytest.mark.parametrize(
    "line",
    [
        [],
        ["plan"],
        ["validate", "-h"],
        ["validate", "x"],
        ["validate", "-var"],
        ["-chdir=x", "fmt"],
    ],
)
def test_everything_else_is_typers(line: list[str]) -> None:
    """Help, wrong lines, other commands and global flags are answered by typer alone."""
    assert find_quick_command(line) is None
