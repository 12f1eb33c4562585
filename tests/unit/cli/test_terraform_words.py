"""Commands and options as Terraform's users type them."""

from __future__ import annotations

import re
import sys

import pytest
from typer.core import TyperGroup

from kafkaform.cli.command_tree import get_commands
from kafkaform.cli.options.advice import OPTIONS, TERRAFORM_COMMANDS
from kafkaform.cli.terminal.console import Console, set_colour_mode

from ...kit.commands.here import Here

# What `terraform -help` lists, with the subcommands of its groups.
TERRAFORM = (
    "init validate plan apply destroy console fmt force-unlock get graph import login logout "
    "metadata modules output query refresh show stacks taint untaint version workspace"
)
SUBCOMMANDS = {
    "providers": "lock mirror schema",
    "state": "identities list mv pull push replace-provider rm show",
}


@pytest.mark.parametrize("word", TERRAFORM_COMMANDS)
def test_a_word_that_does_not_exist_here_is_answered(here: Here, word: str) -> None:
    """The error says what to do, and does not send its reader to --help alone."""
    said = here.fails(*word.split(), "x")
    assert f"No such command '{word.split()[-1]}'" in said
    assert TERRAFORM_COMMANDS[word] in " ".join(said.replace("│", " ").split())


@pytest.mark.parametrize("flag", sorted({*OPTIONS} - {"--destroy"}))
def test_an_option_that_does_not_exist_here_is_answered(here: Here, flag: str) -> None:
    """With one dash or two."""
    for typed in (f"{flag[1:]}=x", flag):
        said = here.fails("graph", typed)
        assert f"`kafkaform graph` has no option {flag}" in said
        assert "--help" not in said


def test_no_command_of_terraform_is_unheard_of() -> None:
    """Each of them exists here, or is answered."""
    root = get_commands()
    # `get` is also a word of those who come from Kafka, whose table has it.
    assert not {*TERRAFORM.split()} - {*root.commands} - {*TERRAFORM_COMMANDS} - {"get"}
    for group, names in SUBCOMMANDS.items():
        known = root.commands[group]
        assert isinstance(known, TyperGroup)
        missing = {f"{group} {name}" for name in names.split() if name not in known.commands}
        assert not missing - {*TERRAFORM_COMMANDS}


def test_answers_name_commands_that_there_are() -> None:
    """Whoever types what an answer says gets no further error of this kind."""
    texts = " ".join((*TERRAFORM_COMMANDS.values(), *OPTIONS.values()))
    named = re.findall(r"`kafkaform ([a-z-]+)(?: ([a-z][a-z-]+))?", texts)
    assert named
    for first, second in named:
        if first.startswith("--"):
            continue
        command = get_commands().commands[first]
        if second and isinstance(command, TyperGroup):
            assert second in command.commands, (first, second)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("destroy -auto-approve", "`kafkaform destroy --confirm ID` destroys without a question"),
        ("plan -auto-approve", "`kafkaform apply --auto-approve`"),
        ("apply -destroy", "`kafkaform destroy` deletes everything"),
        ("get -update", "`kafkaform init` fetches modules"),
        ("plan -lock=false", "`--lock-timeout 60s` waits"),
    ],
)
def test_what_is_answered(here: Here, typed: str, told: str) -> None:
    """In the place where it was typed."""
    assert told in " ".join(here.fails(*typed.split()).replace("│", " ").split())


def test_no_color_before_the_command(here: Here, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts for every command, and ends with the command line."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert Console.make_standard().colour
    with set_colour_mode("never"):
        assert not Console.make_standard().colour
        assert not Console.make_standard().errors_colour
    here.done("--no-color", "version")
    here.done("-no-color", "version")
    assert Console.make_standard().colour
