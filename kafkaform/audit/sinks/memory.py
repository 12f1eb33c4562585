"""A log in memory, for runs on simulated systems. It ends with the process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..line import Line
from ..sink import Torn


class MemorySink:
    """One log, which nobody else can reach."""

    location = "the log in memory"

    def __init__(self) -> None:
        self._lines: list[bytes] = []

    def lines(self) -> Iterator[Line]:
        return iter(tuple(self._lines))

    def last(self) -> bytes | None:
        return self._lines[-1] if self._lines else None

    def claim(self) -> bytes | None:
        return self.last()

    def pass_over_torn(self) -> None:
        """Nothing in memory is torn."""

    def set_aside(self, seq: int) -> tuple[Torn, ...]:
        return ()

    def append(self, lines: Sequence[bytes]) -> None:
        self._lines.extend(lines)

    def check_writable(self, size: int = 0) -> None:
        """There is always room."""
