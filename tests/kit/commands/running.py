"""Commands as processes of their own, started from a server that has imported everything."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(["tests.kit.commands.warm"])
_ASKING = threading.Lock()
"""An exit code can be read once. multiprocessing asks for those of all processes whenever it
starts another, and of two threads that ask at a time one is told 255."""


@dataclass(frozen=True)
class Running:
    """A command that may still run; the interface of `subprocess.Popen`, as far as it is used.
    screen: the file that holds what it printed."""

    process: ForkServerProcess
    screen: Path

    @property
    def returncode(self) -> int | None:
        return self.poll()

    def poll(self) -> int | None:
        with _ASKING:
            return self.process.exitcode

    def wait(self, seconds: float) -> None:
        """Raises subprocess.TimeoutExpired if it runs longer."""
        deadline = time.monotonic() + seconds
        while self.poll() is None:
            if time.monotonic() > deadline:
                raise subprocess.TimeoutExpired(self.process.name, seconds)
            time.sleep(0.005)

    def send_signal(self, number: int) -> None:
        if self.process.pid is not None and self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.process.pid, number)

    def printed(self) -> str:
        return self.screen.read_text("utf-8", errors="replace")


def start(
    arguments: Sequence[str], folder: Path, environment: Mapping[str, str], screen: Path
) -> Running:
    """Begin a command in a folder, with nothing but this environment."""
    process = _CONTEXT.Process(
        target=_command,
        args=(list(arguments), str(folder), dict(environment), str(screen)),
        name=arguments[0],
    )
    with _ASKING:
        process.start()
    return Running(process, screen)


def _command(arguments: list[str], folder: str, environment: dict[str, str], screen: str) -> None:
    """The child: become the command."""
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    output = os.open(screen, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(output, stream)
    from kafkaform.cli.app import main

    main(arguments)
