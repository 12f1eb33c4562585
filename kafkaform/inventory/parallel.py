"""Many slow things at the same time, a bounded number at once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from typing import TypeVar

A = TypeVar("A")
T = TypeVar("T")


def map_parallel(work: Callable[[A], T], items: Iterable[A], at_once: int) -> tuple[T, ...]:
    """What the work makes of each item, in order; a slow one holds up nobody while others of the
    `at_once` are free. The first error ends it: what runs by then goes on alone."""
    pool = ThreadPoolExecutor(at_once, "fleet")
    try:
        # Each with this context: it knows the secrets that must not be shown.
        started = [pool.submit(copy_context().run, work, item) for item in items]
        return tuple(one.result() for one in started)
    finally:
        pool.shutdown(wait=False, cancel_futures=True)
