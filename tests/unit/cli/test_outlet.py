"""Whoever writes, and however a program ends, what leaves it passes the filter of secrets."""

from __future__ import annotations

import io
import logging
import os
import resource
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer
from rich.console import Console as RichConsole

from kafkaform import __version__
from kafkaform.cli.command_tree import SETTINGS
from kafkaform.cli.terminal.bug_report import explain_error
from kafkaform.cli.terminal.console import Console, filter_output
from kafkaform.core.diagnostics import Diagnostic, Severity
from kafkaform.core.secret import Secret, clean_diagnostics

SECRET = "canary-Zq7 with words"
PROCESS_SECONDS = 60


def _log(text: str) -> None:
    logger = logging.Logger("loud")
    logger.addHandler(logging.StreamHandler())
    logger.warning(text)


WRITERS: dict[str, Callable[[str], object]] = {
    "result": lambda text: Console.make_standard().write(text),
    "bytes": lambda text: Console.make_standard().write_bytes(text.encode()),
    "note": lambda text: Console.make_standard().note(text),
    "question": lambda text: Console.make_standard().ask(text),
    "diagnostic": lambda text: Console.make_standard().show_diagnostics(
        (Diagnostic(Severity.ERROR, text),)
    ),
    "typer": lambda text: typer.echo(text),
    "typer bytes": lambda text: typer.echo(text.encode()),
    "typer to stderr": lambda text: typer.echo(text, err=True),
    "rich": lambda text: RichConsole(file=sys.stderr, width=200).print(text),
    "a logger": _log,
    "lines": lambda text: sys.stdout.writelines([text, "\n"]),
    "print": print,
}


@pytest.mark.parametrize("writer", WRITERS.values(), ids=WRITERS)
def test_all_that_is_written_is_filtered(
    writer: Callable[[str], object],
    capfdbinary: pytest.CaptureFixture[bytes],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Our console and the libraries alike, text and bytes; what is no secret arrives."""
    monkeypatch.setattr("sys.stdin", io.StringIO("\n"))
    with filter_output():
        Secret(SECRET)
        writer(f"before {SECRET} after")
    said = b"".join(capfdbinary.readouterr())
    assert b"before (secret) after" in said and b"canary" not in said


def test_the_streams_are_what_they_were(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their encoding, their file and their terminal can be asked for inside, and afterwards they
    are the same objects; a program without them has none."""
    before = sys.stdout, sys.stderr
    with filter_output():
        assert sys.stdout is not before[0]
        assert sys.stdout.encoding == before[0].encoding
        assert sys.stdout.isatty() == before[0].isatty()
    assert (sys.stdout, sys.stderr) == before
    monkeypatch.setattr("sys.stdout", None)
    with filter_output():
        assert sys.stdout is None


def test_a_diagnostic_is_cleaned_before_it_is_wrapped() -> None:
    """A secret with blanks would be torn apart by lines of 40 columns, in any of its parts."""
    parts = dict.fromkeys(("detail", "advice", "excerpt"), SECRET)
    item = Diagnostic(Severity.ERROR, SECRET, **parts, context=(SECRET,))
    with filter_output():
        Secret(SECRET)
        (told,) = clean_diagnostics((item,))
    shown = (told.summary, told.detail, told.advice, told.excerpt, *told.context)
    assert shown == ("(secret)",) * 5


def test_the_details_of_a_fault_have_no_locals_and_no_secret(
    tmp_path: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The private file has the trace with lines of our code, and the exception's words without
    the secret."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with filter_output():
        held = Secret(SECRET)
        try:
            local = f"not-shown-{os.getpid()}"
            raise RuntimeError(f"lost {SECRET}", local and held)
        except RuntimeError as error:
            told = explain_error(error)
    text = Path(told.advice.split("details are in ")[1].split(";")[0]).read_text("utf-8")
    assert f"not-shown-{os.getpid()}" not in text and "canary" not in text
    assert "RuntimeError: ('lost (secret)', <secret>)" in text
    assert "lost" not in told.summary


def test_typer_shows_no_locals() -> None:
    """Its own traces, which may show them, are off."""
    assert SETTINGS["pretty_exceptions_enable"] is False


DRIVER = f"""
import sys, threading
from kafkaform.cli.app import install_hooks, prevent_core_dumps
install_hooks()
prevent_core_dumps()
import resource
print("core", resource.getrlimit(resource.RLIMIT_CORE)[0])
secret = "{SECRET}"
def fail(*_):
    inner = secret + " as a local"
    raise ValueError("lost " + inner)
class Dying:
    def __del__(self):
        fail()
thread = threading.Thread(target=fail)
thread.start()
thread.join()
Dying()
fail()
"""


def test_faults_that_nobody_catches_are_told_as_ours() -> None:
    """In a thread, in a destructor and in the main program: one line each, without the words of
    the exception; and no core dump is written when it crashes."""

    def generous() -> None:
        hard = resource.getrlimit(resource.RLIMIT_CORE)[1]
        resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))

    ended = subprocess.run(
        [sys.executable, "-c", DRIVER],
        capture_output=True,
        text=True,
        timeout=PROCESS_SECONDS,
        preexec_fn=generous,
    )
    assert (ended.returncode, ended.stdout) == (1, "core 0\n")
    lines = ended.stderr.splitlines()
    assert len(lines) == 3
    for line in lines:
        told = f"Error: kafkaform {__version__} failed unexpectedly: ValueError at <string>, line "
        assert line.startswith(told)


def test_the_program_installs_all_of_it() -> None:
    """`main` takes the hooks, and no core is dumped, before it does anything else."""
    code = (
        "import sys, threading, resource, kafkaform.cli.app as app\n"
        "app.run_command_line = lambda words: print(sys.excepthook.__module__, "
        "threading.excepthook.__module__,"
        " sys.unraisablehook.__module__, resource.getrlimit(resource.RLIMIT_CORE)[0])\n"
        "app.main([])\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=PROCESS_SECONDS
    )
    assert ended.stdout.split() == ["kafkaform.cli.app"] * 3 + ["0"]
