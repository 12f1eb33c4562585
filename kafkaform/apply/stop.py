"""Interrupts: the first request lets the batch in flight finish, the second one stops waiting.

Whatever happens, every intent is already durable, so the next run knows what to ask about. The
requests come from the signal handlers of the command line, or from a program that uses the library.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct

from ..core.clock import Clock
from ..core.errors import Interrupted

SLICE_SECONDS = 0.2
SECOND = "stopped immediately by the second signal"
ADVICE = "Run the same command again: it recovers what was in flight and goes on."


class Stop(Struct):
    """Whether somebody asked the run to stop."""

    requested: int | None = None
    """The signal number of the first request, None if there was none."""
    heard: Callable[[], None] = lambda: None
    """Called at the first request, from a signal handler."""
    sending: bool = False
    """The run has begun to send, and looks here for requests."""
    _at_once: int | None = None
    """The signal number of a second request."""
    _writing: bool = False
    """Log or state are being written."""

    def request(self) -> None:
        """Ask the run to end after the batch in flight. Any thread can call this at any time, and
        again."""
        if self.requested is None:
            self.requested = signal.SIGTERM

    def ask(self, number: int) -> None:
        """Called by a signal handler: the first time the signal is remembered, the second time
        Interrupted is raised out of whatever waits."""
        if self.requested is None:
            self.requested = number
            self.heard()
            return
        self._at_once = number
        # A write that is interrupted would leave a torn end, so the signal counts after it.
        if not self._writing:
            raise Interrupted(SECOND, ADVICE, number)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Requests leave within the context."""
        self.sending = True
        try:
            yield
        finally:
            self.sending = False

    @contextmanager
    def delay_second_signal(self) -> Iterator[None]:
        """Log and state are written within the context. A second signal waits for its end."""
        # After an append that an exception cut in two, the log refuses every further one, and the
        # outcomes of the batch would be lost.
        self._writing = True
        try:
            yield
        finally:
            self._writing = False
        if self._at_once is not None:
            raise Interrupted(SECOND, ADVICE, self._at_once)

    def make_error(self) -> Interrupted | None:
        """The error that the run ends with if somebody asked it to stop."""
        if self.requested is None:
            return None
        return Interrupted("stopped by a signal", ADVICE, self.requested)

    def check(self) -> None:
        """Raises Interrupted if somebody asked the run to stop. Called before each intent."""
        if (error := self.make_error()) is not None:
            raise error

    def sleep(self, clock: Clock, seconds: float) -> None:
        """Wait for so many seconds. Raises Interrupted as soon as somebody asks to stop."""
        deadline = clock.monotonic() + seconds
        while (remaining := deadline - clock.monotonic()) > 0:
            self.check()
            # A request from another thread does not end a sleep, so each one is short.
            clock.sleep(min(remaining, SLICE_SECONDS))
