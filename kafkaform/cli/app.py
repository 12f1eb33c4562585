"""The command line: which commands there are, and how a run ends.

Exit codes are those of `core.errors`; a wrong flag is 1, as architecture §7 says, not click's 2,
because 2 means "there are changes" under --detailed-exitcode.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import typer
from typer.core import TyperGroup

from ..core.diagnostics import Diagnostic, Severity
from ..core.errors import KafkaformError, exit_code
from .arguments import normalise
from .commands import register
from .console import Console

app = typer.Typer(
    name="kafkaform",
    help="Plan and apply for Apache Kafka.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
register(app)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run one command line and exit with its code."""
    sys.exit(run(sys.argv[1:] if arguments is None else arguments))


def run(arguments: Sequence[str]) -> int:
    """Run one command line; the process exit code. No traceback for a user's fault."""
    console = Console.standard()
    command = typer.main.get_command(app)
    assert isinstance(command, TyperGroup)  # the app has several commands
    try:
        result = command.main(normalise(arguments, command), "kafkaform", standalone_mode=False)
        return result if isinstance(result, int) else 0
    except typer.Exit as ended:
        return ended.exit_code
    except typer.Abort:
        console.note("Cancelled; nothing was sent.")
        return 130
    except typer.TyperException as error:
        return _usage(console, error)
    except KafkaformError as error:
        console.diagnostics(error.diagnostics)
        return exit_code(error)
    except KeyboardInterrupt:
        console.note("Interrupted; nothing was sent.")
        return 130
    except BrokenPipeError:
        # The reader went away (`| head`); python would complain again when it flushes stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


def _usage(console: Console, error: typer.TyperException) -> int:
    context = getattr(error, "ctx", None)
    where = f"{context.command_path} --help" if context else "kafkaform --help"
    advice = f"`{where}` lists the flags."
    console.diagnostics((Diagnostic(Severity.ERROR, error.format_message(), advice=advice),))
    return 1
