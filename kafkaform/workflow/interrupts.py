"""A signal before anything is sent, in the words of the phase that it ended."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from msgspec import Struct

from ..core.errors import Ended, Interrupted


class Unsent(Struct):
    """over: from now on something may have been sent."""

    over: bool = False


@contextmanager
def unsent(message: str, advice: str) -> Iterator[Unsent]:
    """Until it is over, a signal inside raises Interrupted with this message."""
    mark = Unsent()
    try:
        yield mark
    except Ended as ended:
        if mark.over:
            raise
        raise Interrupted(message, advice, ended.number) from None
