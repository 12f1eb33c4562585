"""The command line: which commands there are, and how a run ends.

Exit codes are those of `core.errors`; a wrong flag is 1, as architecture §7 says, not click's 2,
because 2 means "there are changes" under --detailed-exitcode.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperGroup

from ..core.diagnostics import Diagnostic, Severity
from ..core.errors import KafkaformError, UsageError, exit_code
from .arguments import command_path, normalise
from .commands import register
from .commands.version import version
from .console import Console
from .fault import explained
from .signals import Ended, end_on_signals

app = typer.Typer(
    name="kafkaform",
    help="Plan and apply for Apache Kafka.",
    epilog="`kafkaform COMMAND --help` explains a command.",
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
register(app)


def _version(wanted: bool) -> None:
    if wanted:
        version()
        raise typer.Exit


@app.callback()
def root(
    chdir: Annotated[
        Path | None, typer.Option("--chdir", metavar="DIR", help="Work in this folder.")
    ] = None,
    show_version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_version, help="Show the version.")
    ] = False,
) -> None:
    """Plan and apply for Apache Kafka."""
    if chdir is None:
        return
    try:
        os.chdir(chdir)
    except OSError as error:
        raise UsageError(
            f"--chdir {chdir}: {error.strerror}", "Name the folder of a configuration."
        ) from None


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command line and exit with its code."""
    end_on_signals()
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; the process exit code. Never a traceback."""
    command = _commands()
    words = normalise(arguments, command)
    console = Console.standard(no_color="--no-color" in words)
    try:
        result = command.main(words, "kafkaform", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except Ended as ended:
        console.note("\nInterrupted; no request was under way.")
        return ended.exit_code
    except typer.TyperException as error:
        return _usage(console, error, command_path(arguments, command))
    except KafkaformError as error:
        console.diagnostics(error.diagnostics)
        return exit_code(error)
    except Exception as error:  # noqa: BLE001  # the last line of defence: a fault of ours
        console.diagnostics((explained(error),))
        return 1


@cache
def _commands() -> TyperGroup:
    command = typer.main.get_command(app)
    assert isinstance(command, TyperGroup)  # the app has several commands
    return command


def _usage(console: Console, error: typer.TyperException, path: str) -> int:
    text = error.format_message()
    if text.startswith("Usage: "):  # nothing but a group was named, so its help is the answer
        console.note(text)
        return 1
    advice = f"`{path} --help` explains the command."
    console.diagnostics((Diagnostic(Severity.ERROR, text, advice=advice),))
    return 1
