"""Write results: outputs as HCL, which is how they were written, and long text through a pager, as
git does.

Apart from the screen, which `output` does not load, and from the console, which does without the
writer of HCL.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from threading import current_thread, main_thread

from ...core.resource import Output
from ...core.secret import mask_secrets
from ...core.value import Value
from ...render.text import SENSITIVE, inline, render_block
from ...render.text import render_value as plainly
from ...syntax.write import write_value
from .console import Console

DEFAULT = "less -FRX"
"""Ends at once if the text fits the screen, shows colours, and leaves the text on the screen."""
VARIABLES = ("KAFKAFORM_PAGER", "PAGER")
"""The first one that is set decides."""


def write_paged(console: Console, text: str) -> None:
    """Write result text; through the pager if somebody sits at a terminal and the text is longer
    than the screen."""
    command = choose_pager(os.environ)
    if not command or not console.interactive or not _exceeds_screen(text):
        console.write(text)
        return
    sys.stdout.flush()
    _run_pager(command, text)


def choose_pager(environment: Mapping[str, str]) -> list[str]:
    """The command of the pager in words; empty if it is switched off or cannot be run."""
    command = next((environment[name] for name in VARIABLES if name in environment), DEFAULT)
    try:
        words = shlex.split(command)
    except ValueError:  # a quote without its end
        return []
    off = words in ([], ["cat"]) or environment.get("TERM") == "dumb"
    return [] if off or shutil.which(words[0]) is None else words


def _exceeds_screen(text: str) -> bool:
    if not sys.stdout.isatty():
        return False
    return text.count("\n") >= os.get_terminal_size(sys.stdout.fileno()).lines


def _run_pager(command: list[str], text: str) -> None:
    # A pager that is called without flags gets those of the default, so that colours work.
    environment = {"LESS": "FRX", **os.environ}
    data = mask_secrets(text).encode(sys.stdout.encoding, "backslashreplace")
    with (
        _leave_interrupts(),
        # No shell, and the command is the user's own choice.
        subprocess.Popen(command, stdin=subprocess.PIPE, env=environment) as pager,
    ):
        try:
            # A pager that is left early closes its pipe, which is no error.
            pager.communicate(data)
        except BaseException:
            # It may have ended by itself meanwhile.
            with suppress(ProcessLookupError):
                pager.terminate()
            raise


@contextmanager
def _leave_interrupts() -> Iterator[None]:
    """Leave Ctrl-C to the pager, which uses it to stop a search."""
    if current_thread() is not main_thread():
        yield
        return
    # A program inherits an ignored signal and would never see it, but no handler of Python's.
    before = signal.signal(signal.SIGINT, lambda _number, _frame: None)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def render_output(item: Output) -> str:
    """`name = value`; a sensitive value is not shown."""
    text = SENSITIVE if item.sensitive else render_output_value(item.value)
    return f"{inline(item.name)} = {text}"


def render_output_value(value: Value) -> str:
    """The value as HCL, or as in a plan if HCL cannot express it."""
    try:
        return render_block(write_value(value))
    except ValueError:  # half of a surrogate pair, which older versions let in
        return plainly(value)
