"""Report a signal that arrives before anything is sent, in the words of the phase that it ends."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from ..core.errors import Ended, Interrupted


class Unsent(Struct):
    """Whether a run is still in the part in which nothing is sent."""

    over: bool = False
    """From now on something can have been sent."""


@contextmanager
def unsent(message: str, advice: str) -> Iterator[Unsent]:
    """A signal inside the block raises Interrupted with this message, until `over` is set."""
    mark = Unsent()
    try:
        yield mark
    except Ended as ended:
        # After the first send, "nothing was sent" would be a lie: the report of the run tells it.
        if mark.over:
            raise
        raise Interrupted(message, advice, ended.number) from None
