"""Handle SIGINT and SIGTERM. While nothing is being sent, the command ends at once and says so;
while it sends, the run's `Stop` finishes the batch in flight first.

Only the command line installs handlers, because a program that uses kafkaform as a library has
handlers of its own.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, NoReturn, TextIO

from msgspec import Struct

from ...apply.stop import Stop
from ...core.errors import Ended

SIGNALS = (signal.SIGINT, signal.SIGTERM)
FINISHING = "Interrupted: finishing what is under way. Interrupt again to stop at once."
AT_ONCE = "Interrupted again: stopped at once. Run the same command again."
NOTHING_CHANGED = "Interrupted; nothing was being changed. Run the same command again."
_Handler = Callable[[int, FrameType | None], Any] | int | None
_REMINDER_SECONDS = 0.2
_PDEATHSIG = 1
"""PR_SET_PDEATHSIG of Linux."""
_SHOW_CURSOR = b"\x1b[?25h"
_OVER_THIS_LINE = b"\r\x1b[2K"


def end_on_signals() -> None:
    """From now on, the first signal raises Ended, and a second one ends the process."""
    for number in SIGNALS:
        signal.signal(number, _end)


@contextmanager
def stop_on_signals() -> Iterator[Stop]:
    """Yield a `Stop` that signals ask while a run sends. At all other times they call the handlers
    that were installed before."""
    stop = Stop(heard=tell_finishing)
    # Python runs handlers in the main thread only, and allows only that thread to install them.
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
            try:
                earlier(number, frame)
            except Ended as ended:
                _Reminder(ended, stop).start()
                raise
        elif earlier is not signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
            signal.raise_signal(number)

    for number in SIGNALS:
        signal.signal(number, handle)
    if isinstance(reminder := signal.getsignal(signal.SIGALRM), _Reminder):
        reminder(signal.SIGALRM, None)  # a signal before was lost
    try:
        yield stop
    finally:
        for signal_number, earlier in before.items():
            # The first signal may have set another handler.
            if signal.getsignal(signal_number) is handle:
                signal.signal(signal_number, earlier)


def discard_typed_ahead(stream: TextIO) -> None:
    """Forget what was typed on a terminal before now: nobody answers a question unseen."""
    termios.tcflush(stream.fileno(), termios.TCIFLUSH)


def wait_until_readable(stream: TextIO) -> None:
    """Wait for a line on a terminal, or for a signal."""
    # Python looks for signals before and after a read. One that arrives just as the read begins
    # would be noticed at the next key only; its wake-up byte ends the select here.
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


def find_end(error: BaseException | None) -> Ended | None:
    """The Ended that an error comes from, None if it comes from none."""
    # Compiled code that a handler interrupts raises SystemError, with Ended as its cause.
    cause = error
    while cause is not None and not isinstance(cause, Ended):
        cause = cause.__cause__ or cause.__context__
    return cause


def work_in_child() -> None:
    """Continue in a child process; this one waits for it, and ends with its exit code."""
    # A query engine holds Python's lock while it computes, so no signal handler would run in its
    # process. This process is idle, gets the signals, and kills the other one.
    child = os.fork()
    if child == 0:
        for number in SIGNALS:
            signal.signal(number, signal.SIG_IGN)
        _end_with_parent()
        return
    try:
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    except Ended as ended:
        ended.handled = True
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        _write(b"\n" + NOTHING_CHANGED.encode() + b"\n")
        code = ended.exit_code
    os._exit(code if code >= 0 else 128 - code)


def _end_with_parent() -> None:
    """End this process when its parent dies, where the system can do that (Linux)."""
    import ctypes  # noqa: PLC0415  # only fleet commands fork

    with suppress(OSError, AttributeError):
        ctypes.CDLL(None).prctl(_PDEATHSIG, signal.SIGKILL)


def end_process(code: int) -> NoReturn:
    """End the process without waiting for threads."""
    # A client's threads can wait for answers of a cluster for minutes.
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def tell_finishing() -> None:
    """Confirm the first signal on stderr."""
    # Not through the screen: the interrupted code can hold its lock, and would never release it.
    prefix = _OVER_THIS_LINE if _is_terminal() else b""
    _write(prefix + FINISHING.encode() + b"\n")


def _end(number: int, frame: FrameType | None) -> NoReturn:
    for signal_number in SIGNALS:
        signal.signal(signal_number, _end_at_once)
    ended = Ended(number)
    _Reminder(ended, Stop()).start()
    raise ended


class _Reminder(Struct, frozen=True):
    """The handler of a timer that raises Ended again until somebody handles it.

    Compiled code and finalizers lose exceptions: msgspec, for one, where it hashes a type that it
    makes a decoder for.
    """

    ended: Ended
    stop: Stop
    """Asked in place of raising, once its run sends."""

    def start(self) -> None:
        signal.signal(signal.SIGALRM, self)
        signal.setitimer(signal.ITIMER_REAL, _REMINDER_SECONDS, _REMINDER_SECONDS)

    def __call__(self, number: int, frame: FrameType | None) -> None:
        if self.ended.handled:
            signal.setitimer(signal.ITIMER_REAL, 0)
        elif self.stop.sending:
            signal.setitimer(signal.ITIMER_REAL, 0)
            self.stop.ask(self.ended.number)
        # While it is on its way, what cleans up must not be interrupted.
        elif find_end(sys.exc_info()[1]) is None:
            raise self.ended


def _end_at_once(number: int, frame: FrameType | None) -> NoReturn:
    """End the process at a second signal."""
    # Closing connections and threads can take longer than anybody waits.
    prefix = _SHOW_CURSOR + _OVER_THIS_LINE if _is_terminal() else b""
    _write(prefix + AT_ONCE.encode() + b"\n")
    os._exit(128 + number)


def _is_terminal() -> bool:
    return sys.__stderr__ is not None and sys.__stderr__.isatty()


def _write(data: bytes) -> None:
    with suppress(OSError):  # the terminal is gone, and nobody is left to read it
        os.write(2, data)
