"""Run a command or another program in a forked Python, instead of `subprocess.run`.

It has streams, a folder, an environment and an end of its own, as in a new Python. Only its start
is not: what every command needs is imported before. So a test of the start itself, such as what
`python -m kafkaform` imports, or what an option or a variable of Python does, starts a new one.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from .server import COMMAND, PATIENCE, Job, get_server

CLOSED = "closed"
"""For a stream that is not open."""


def run(
    arguments: Sequence[str | Path],
    folder: Path,
    environment: Mapping[str, str],
    *,
    program: str = COMMAND,
    input: str | None = None,
    streams: Mapping[int, str | int] | None = None,
    seconds: float = PATIENCE,
) -> subprocess.CompletedProcess[str]:
    """Run it to its end. Its input is empty or this text, and both outputs are captured; streams:
    by the number of a stream what replaces it, which is a path, a descriptor or CLOSED. Raises
    TimeoutError after so many seconds."""
    with ExitStack() as stack:
        text = stack.enter_context(tempfile.TemporaryFile())
        text.write((input or "").encode())
        text.seek(0)
        out, err = (stack.enter_context(tempfile.TemporaryFile()) for _ in range(2))
        given: list[int | None] = [text.fileno(), out.fileno(), err.fileno()]
        for number, other in (streams or {}).items():
            if other == CLOSED:
                given[number] = None
            elif isinstance(other, str):
                given[number] = os.open(other, os.O_RDWR)
                stack.callback(os.close, given[number])
            else:
                given[number] = other
        job = Job(tuple(map(str, arguments)), str(folder), {**environment}, program=program)
        running = get_server().start_with(job, (given[0], given[1], given[2]))
        try:
            code = running.wait(seconds)
        except TimeoutError:
            running.send_signal(9)
            running.wait()
            raise
        said = []
        for file in (out, err):
            file.seek(0)
            said.append(file.read().decode())
    return subprocess.CompletedProcess(job.arguments, code, said[0], said[1])
