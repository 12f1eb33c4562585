"""The tree of commands: loaded by need, completed by shells, spelled as Terraform's users do."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from kafkaform.cli.command_tree import get_commands
from kafkaform.cli.commands import COMMANDS
from kafkaform.cli.options.translation import find_command_path, normalise_flags


def test_every_command_loads() -> None:
    """Each entry of the table names a function or a group, and has a help text of its own."""
    root = get_commands()
    assert list(root.commands) == list(COMMANDS)
    for name, command in root.commands.items():
        assert command.name == name
        assert command.help, name


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (["plan", "-input=false"], ["plan", "--no-input"]),
        (["plan", "-input=true"], ["plan", "--input"]),
        (["fmt", "--write=false", "-list=true"], ["fmt", "--no-write", "--list"]),
        (["plan", "-out=false"], ["plan", "--out=false"]),
        (["plan", "-var", "x=false"], ["plan", "--var", "x=false"]),
        (["-chdir=x", "validate", "-json"], ["--chdir=x", "validate", "--json"]),
        (["sandbox", "logs", "-n5"], ["sandbox", "logs", "-n5"]),
        (["plan", "--", "-out=x"], ["plan", "--", "-out=x"]),
        (["plan", "--detail", "full"], ["plan", "--detail"]),
        (["show", "-detail=full", "x"], ["show", "--detail", "x"]),
        (["apply", "full"], ["apply", "full"]),
    ],
)
def test_terraforms_spellings(line: list[str], words: list[str]) -> None:
    """One dash is as good as two, and flags with an opposite take true and false."""
    assert normalise_flags(line, get_commands()) == words


def test_the_command_that_a_line_names() -> None:
    """Advice names the command with its groups, whatever flags stand before it."""
    assert (
        find_command_path(["-chdir=x", "state", "mv", "a"], get_commands()) == "kafkaform state mv"
    )
    assert find_command_path(["nope"], get_commands()) == "kafkaform"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [("kafkaform va", "validate"), ("kafkaform fmt --che", "--check"), ("kafkaform state m", "mv")],
)
def test_completion(typed: str, offered: str) -> None:
    """What a shell asks for when Tab is pressed."""
    wanted = {
        "COMP_WORDS": typed,
        "COMP_CWORD": str(len(typed.split()) - 1),
        "_KAFKAFORM_COMPLETE": "complete_bash",
    }
    done = subprocess.run(
        [sys.executable, "-m", "kafkaform"],
        env={**os.environ, **wanted},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split() == [offered]
