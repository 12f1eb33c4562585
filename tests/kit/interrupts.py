"""Signals that arrive while a program is being started, or that wake another thread."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from kafkaform.core.errors import Ended


class LatePopen(subprocess.Popen[Any]):
    """A process that has begun some time before the system has told so."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        time.sleep(0.5)


@contextmanager
def interrupt_once(begun: Callable[[], bool], *, elsewhere: bool = False) -> Iterator[None]:
    """Raise Ended in the main thread, by a signal, as soon as something has begun. elsewhere: the
    signal wakes another thread."""

    def interrupt() -> None:
        for _ in range(6000):
            if begun():
                break
            time.sleep(0.01)
        if elsewhere:
            signal.pthread_kill(threading.get_ident(), signal.SIGUSR1)
        else:
            os.kill(os.getpid(), signal.SIGUSR1)

    def end(number: int, _: object) -> None:
        raise Ended(number)

    before = signal.signal(signal.SIGUSR1, end)
    watcher = threading.Thread(target=interrupt)
    watcher.start()
    try:
        yield
    finally:
        watcher.join()
        signal.signal(signal.SIGUSR1, before)


def is_closed(reader: int) -> bool:
    """Whether everything that could write into a pipe ends within 30 s: what is killed ends soon,
    and not at once. reader: the pipe, opened without blocking; nothing was written."""
    return bool(select.select([reader], [], [], 30)[0]) and os.read(reader, 1) == b""
