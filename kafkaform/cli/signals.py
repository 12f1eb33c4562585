"""SIGINT and SIGTERM while nothing is being sent: the command ends at once and says so.

While requests leave, `apply.stop` listens instead and finishes the batch in flight.
"""

from __future__ import annotations

import signal
from types import FrameType
from typing import NoReturn

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Ended(BaseException):
    """Not an Exception, so that nobody who handles errors takes it for one."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number

    @property
    def exit_code(self) -> int:
        return 128 + self.number


def end_on_signals() -> None:
    """From now on both signals raise Ended."""
    for number in SIGNALS:
        signal.signal(number, _end)


def _end(number: int, frame: FrameType | None) -> NoReturn:
    raise Ended(number)
