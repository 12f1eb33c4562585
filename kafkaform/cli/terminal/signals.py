"""SIGINT and SIGTERM. While nothing is being sent, the command ends at once and says so; while
requests leave, the run's `Stop` is asked instead, which finishes the batch in flight.

Only the command line installs handlers: to a program that uses kafkaform as a library, they would
be foreign.
"""

from __future__ import annotations

import os
import select
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, NoReturn, TextIO

from ...apply.stop import Stop
from ...core.errors import Ended

SIGNALS = (signal.SIGINT, signal.SIGTERM)
FINISHING = "Interrupted: finishing what is under way. Interrupt again to stop at once."
AT_ONCE = "Interrupted again: stopped at once. Run the same command again."
NOTHING_CHANGED = "Interrupted; nothing was being changed. Run the same command again."
_Handler = Callable[[int, FrameType | None], Any] | int | None
_PDEATHSIG = 1
"""PR_SET_PDEATHSIG of Linux."""
_SHOW_CURSOR = b"\x1b[?25h"
_OVER_THIS_LINE = b"\r\x1b[2K"


def end_on_signals() -> None:
    """From now on the first of both signals raises Ended, and another one ends the process."""
    for number in SIGNALS:
        signal.signal(number, _end)


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """A `Stop` that signals ask while a run sends; at all other times the handlers that were there
    before are called. Outside the main thread no signals arrive, so nothing is installed."""
    stop = Stop(heard=tell_finishing)
    if current_thread() is not main_thread():
        yield stop
        return
    before: dict[int, _Handler] = {number: signal.getsignal(number) for number in SIGNALS}

    def handle(number: int, frame: FrameType | None) -> None:
        if stop.sending:
            stop.ask(number)
            return
        earlier = before[number]
        if callable(earlier):
            earlier(number, frame)
        elif earlier is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    for number in SIGNALS:
        signal.signal(number, handle)
    try:
        yield stop
    finally:
        for each, earlier in before.items():
            if signal.getsignal(each) is handle:  # the first signal may have set another one
                signal.signal(each, earlier)


def wait_until_readable(stream: TextIO) -> None:
    """Wait for a line on a terminal. Python looks for signals before and after it reads: one that
    comes just as the reading begins would be noticed at the next key only. Here it ends the wait.
    """
    keys = stream.fileno()
    woken, wakes = os.pipe()
    os.set_blocking(woken, False)
    os.set_blocking(wakes, False)
    before = signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    try:
        while keys not in select.select([keys, woken], [], [])[0]:
            os.read(woken, 1)  # a signal whose handler does not end the command
    finally:
        signal.set_wakeup_fd(before)
        os.close(woken)
        os.close(wakes)


def find_end(error: BaseException) -> Ended | None:
    """The end that this error comes from: compiled code that is interrupted raises one of its own
    (SystemError)."""
    seen: BaseException | None = error
    while seen is not None and not isinstance(seen, Ended):
        seen = seen.__cause__ or seen.__context__
    return seen


def work_in_child() -> None:
    """Returns in a child process. This one waits for it, listens to signals meanwhile, and ends
    with its exit code: a query engine may hold Python's lock for as long as it computes, and no
    handler would run where it does."""
    child = os.fork()
    if child == 0:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        _end_with_parent()
        return
    try:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except Ended as ended:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        _write(b"\n" + NOTHING_CHANGED.encode() + b"\n")
        code = ended.exit_code
    os._exit(code if code >= 0 else 128 - code)


def _end_with_parent() -> None:
    """Where the system can do that (Linux): nobody computes for a process that was killed."""
    import ctypes  # noqa: PLC0415  # only fleet commands fork

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)


def end_process(code: int) -> NoReturn:
    """End the process without waiting for threads that wait for answers."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def tell_finishing() -> None:
    """Say at the first signal that it has come, whoever is drawing: handlers must take no locks."""
    here = _OVER_THIS_LINE if _is_terminal() else b""
    _write(here + FINISHING.encode() + b"\n")


def _end(number: int, frame: FrameType | None) -> NoReturn:
    for each in SIGNALS:
        signal.signal(each, _end_at_once)
    raise Ended(number)


def _end_at_once(number: int, frame: FrameType | None) -> NoReturn:
    """Connections and threads that are being closed may take longer than anybody waits."""
    here = _SHOW_CURSOR + _OVER_THIS_LINE if _is_terminal() else b""
    _write(here + AT_ONCE.encode() + b"\n")
    os._exit(128 + number)


def _is_terminal() -> bool:
    return sys.__stderr__ is not None and sys.__stderr__.isatty()


def _write(data: bytes) -> None:
    with suppress(OSError):  # nobody reads it any more
        os.write(2, data)
