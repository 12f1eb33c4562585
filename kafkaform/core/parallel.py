"""Do what waits for others side by side. Alone, because layers that do not know each other use it:
states, logs, the systems of a fleet."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextvars import copy_context
from typing import TypeVar

A = TypeVar("A")
T = TypeVar("T")


def map_parallel(work: Callable[[A], T], items: Iterable[A], at_once: int) -> tuple[T, ...]:
    """Return the result for each item, in order. The first error ends it; what runs by then goes on
    alone."""
    from concurrent.futures import ThreadPoolExecutor  # noqa: PLC0415  # most commands wait for one place only, and start sooner without it

    pool = ThreadPoolExecutor(at_once, "parallel")
    try:
        # Each task gets this context, which knows the secrets that must be masked.
        started = [pool.submit(copy_context().run, work, item) for item in items]
        return tuple(future.result() for future in started)
    finally:
        # Without waiting: a system that does not answer must not delay the error of another.
        pool.shutdown(wait=False, cancel_futures=True)
