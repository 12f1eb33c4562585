"""Do many slow things at the same time, a limited number at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

A = TypeVar("A")
T = TypeVar("T")


def map_parallel(work: Callable[[A], T], items: Iterable[A], at_once: int) -> tuple[T, ...]:
    """Return the result for each item, in order. The first error ends it; what runs by then goes on
    alone."""
    pool = ThreadPoolExecutor(at_once, "fleet")
    try:
        # Each task gets this context, which knows the secrets that must be masked.
        started = [pool.submit(copy_context().run, work, item) for item in items]
        return tuple(future.result() for future in started)
    finally:
        # Without waiting: a cluster that does not answer must not delay the error of another.
        pool.shutdown(wait=False, cancel_futures=True)
