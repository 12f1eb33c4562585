"""Parse command lines with typer, and call the command that they name.

A wrong flag ends with exit code 1 and not with click's 2, which means "there are changes" under
--detailed-exitcode (architecture §7).
"""

from __future__ import annotations

import os
import re
from collections import UserDict
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from .. import render
from ..core.diagnostics import Diagnostic, Severity, suggest
from ..core.errors import UsageError
from ..core.lazy import load
from ..workflow.configuration.places import enter_folder
from . import options
from .commands import COMMANDS
from .options.flags import COMPLETE, InOrder, NoColor, mend_bash_words
from .options.translation import find_command_path, move_color, normalise_flags, translate_words
from .terminal.console import COLOUR_MODES, Console, set_colour_mode

SETTINGS: dict[str, Any] = {
    "no_args_is_help": True,
    "rich_markup_mode": None,
    "pretty_exceptions_enable": False,
    "context_settings": {"help_option_names": ["-h", "--help"], "max_content_width": 100},
}

_NO_NUMBER = re.compile(r"not a valid (int|float)( range)?(?=\.)")
_NO_COMMAND = re.compile(r"No such command '(?P<word>[^']*)'\..*", re.DOTALL)
NUMBERS = {"int": "not an integer", "float": "not a number"}
"""Typer's name of a number type -> what an error says of a word that is not one."""


class Commands(UserDict[str, Any]):
    """Name -> command. A command is imported when it is first looked up, so that it does not wait
    for the libraries of the others."""

    def __getitem__(self, name: str) -> Any:
        command = self.data[name]
        if not isinstance(command, str):
            return command
        item = load(f"{__package__}.{command}")
        # Typer makes commands only of what is registered with an app, so each gets one.
        holder = typer.Typer(**SETTINGS)
        if isinstance(item, typer.Typer):
            holder.add_typer(item, name=name)
        else:
            holder.command(name, cls=InOrder)(item)
        self.data[name] = typer.main.get_group(holder).commands[name]
        return self.data[name]


class RootGroup(TyperGroup):
    """The group of all commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        # Typer's own method looks every command up, which would import them all.
        return list(self.commands)


app = typer.Typer(
    name="kafkaform",
    cls=RootGroup,
    help="Plan and apply for Apache Kafka.",
    epilog="`kafkaform COMMAND --help` explains a command.",
    **SETTINGS,
)


def _show_version(version: bool) -> None:
    if version:
        load(f"{__package__}.commands.version:show_version")()
        raise typer.Exit


@app.callback()
def root(
    context: typer.Context,
    chdir: Annotated[
        Path | None, typer.Option("--chdir", metavar="DIR", help="Run in this folder.")
    ] = None,
    no_color: NoColor = False,
    color: Annotated[
        str,
        typer.Option(
            "--color",
            metavar="WHEN",
            help="Print with colours: always, auto (on a terminal) or never. It can follow the "
            "command, too.",
        ),
    ] = "auto",
    show_version: Annotated[
        bool,
        typer.Option("--version", is_eager=True, callback=_show_version, help="Show the version."),
    ] = False,
) -> None:
    """Plan and apply for Apache Kafka."""
    if color not in COLOUR_MODES:
        raise UsageError(
            f"--color {color} does not exist", f"Use one of {', '.join(COLOUR_MODES)}."
        )
    context.with_resource(set_colour_mode("never" if no_color else color))
    if chdir is None:
        return
    try:
        enter_folder(chdir)
    except OSError as error:
        raise UsageError(
            f"--chdir {chdir}: {error.strerror}", "Name the folder of a configuration."
        ) from None


def run_typed(arguments: Sequence[str], console: Console, context: object = None) -> int:
    """Run one command line and return its exit code, which is 1 for a wrong one.

    kept: what a shell hands to the commands that are typed in it.
    """
    if any("\0" in word for word in arguments):
        raise UsageError("a word of the command line contains a NUL character", "Remove it.")
    command = get_commands()
    if COMPLETE in os.environ:
        mend_bash_words(os.environ)
    codes = []
    # KIP-248 describes users and their quotas with one option, which two of our commands answer.
    for words in translate_words(normalise_flags(move_color(arguments), command), command):
        try:
            result = command.main(words, "kafkaform", standalone_mode=False, obj=context)
        except typer.TyperException as error:
            return _show_usage_error(console, error, find_command_path(words, command))
        codes.append(result if isinstance(result, int) else 0)
    return max(codes)


@cache
def get_commands() -> TyperGroup:
    """The group of all commands, made once."""
    group = typer.main.get_command(app)  # `get_group` would lack the flags for completion
    assert isinstance(group, TyperGroup)  # the app has a callback
    group.commands = Commands(COMMANDS)
    return group


def _show_usage_error(console: Console, error: typer.TyperException, path: str) -> int:
    text, context = error.format_message(), getattr(error, "ctx", None)
    if context is not None:
        path = context.command_path
    if text.startswith("Usage: "):  # nothing but a group was named, so its help is the answer
        console.note(text)
        return 1
    text = _NO_NUMBER.sub(lambda match: NUMBERS[match[1]], text)
    near_advice = _advise_instead(error, text, path)
    if near_advice:
        flag = getattr(error, "option_name", None)
        text = (
            f"`{path}` has no option {render.text.inline(flag)}"
            if flag
            else text.partition(" Did you")[0]
        )
    advice = near_advice or f"`{path} --help` explains the command."
    console.show_diagnostics((Diagnostic(Severity.ERROR, text, advice=advice),))
    return 1


def _advise_instead(error: typer.TyperException, text: str, path: str) -> str | None:
    """What to type instead of an option or a command of Kafka's own tools, or of Terraform."""
    flag, context = getattr(error, "option_name", None), getattr(error, "ctx", None)
    if text.startswith("No such option") and flag is not None and context is not None:
        advice = options.advice.advise_option(flag, context.command, path)
        return advice or options.advice.advise_terraform_option(flag, path)
    match = _NO_COMMAND.fullmatch(text)
    if match is None or context is None:
        return None
    return _advise_command(match["word"], path, context.command.commands)


def _advise_command(word: str, path: str, names: Iterable[str]) -> str | None:
    """What to type instead of an unknown command of a group. known: its commands."""
    near, advice = suggest(word, names), options.advice
    if path == advice.ROOT:
        return (
            advice.advise_command(word)
            or advice.advise_terraform_command(word, path)
            or advice.OTHER_COMMANDS.get(word)
            or (near and f"{near} `{path} --help` lists the commands.")
        )
    if near:
        return f"{near} `{path} --help` lists the commands."
    return (
        advice.advise_command(word) if path in advice.GROUPS else None
    ) or advice.advise_terraform_command(word, path)
