"""Interrupts: the first ask finishes the batch in flight, the second stops waiting.

Whatever happens, every intent is already durable, so the next run knows what to ask. Who asks is
not decided here: the command line's signal handlers, or a program that uses the library.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from msgspec import Struct

from ..core.clock import Clock
from ..core.errors import Interrupted

SLICE_SECONDS = 0.2
SECOND = "stopped at once, at the second signal"
ADVICE = "Run the same command again: it recovers what was in flight and goes on."


class Stop(Struct):
    """Whether somebody asked to stop. requested: the signal number of the first ask; heard: called
    then, from a signal handler; sending: the run has begun to send and looks here for asks."""

    requested: int | None = None
    heard: Callable[[], None] = lambda: None
    sending: bool = False
    _at_once: int | None = None
    _writing: bool = False

    def request(self) -> None:
        """Finish the batch in flight and end the run; the next one goes on. Any thread may call
        it, at any time, and again."""
        if self.requested is None:
            self.requested = signal.SIGTERM

    def ask(self, number: int) -> None:
        """First time: remember. Second time: raise Interrupted out of whatever waits."""
        if self.requested is None:
            self.requested = number
            self.heard()
            return
        self._at_once = number
        if not self._writing:
            raise Interrupted(SECOND, ADVICE, number)

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Requests leave inside."""
        self.sending = True
        try:
            yield
        finally:
            self.sending = False

    @contextmanager
    def delay_second_signal(self) -> Iterator[None]:
        """Log and state are written inside: a second signal waits until they are whole, because
        a log that is left in the middle of an append cannot be written on."""
        self._writing = True
        try:
            yield
        finally:
            self._writing = False
        if self._at_once is not None:
            raise Interrupted(SECOND, ADVICE, self._at_once)

    def make_error(self) -> Interrupted | None:
        """What a run ends with that somebody asked to stop."""
        if self.requested is None:
            return None
        return Interrupted("stopped at a signal", ADVICE, self.requested)

    def check(self) -> None:
        """Raise Interrupted if somebody asked; called before each intent."""
        if (error := self.make_error()) is not None:
            raise error

    def sleep(self, clock: Clock, seconds: float) -> None:
        """Sleep, but not on when somebody asks to stop. Raises Interrupted then."""
        deadline = clock.monotonic() + seconds
        while (left := deadline - clock.monotonic()) > 0:
            self.check()
            clock.sleep(min(left, SLICE_SECONDS))
