"""Commands as processes of their own, forked from a server that has already run some.

A forked command costs what it does, not what Python takes to load and compile it: an apply takes
a fifth of a second of a processor instead of one or two. `python -m tests.kit.commands.hot` is the
server: it runs one command after the other itself while it is warmed, then forks for each.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from .struck import Strike, armed

REPOSITORY = Path(__file__).resolve().parents[3]
PATIENCE = 120.0
"""Seconds after which a command that does not end is a failure of its own."""


@dataclass(frozen=True)
class Job:
    """One command. screen: the file that gets what it prints; strike: when it dies, trace: the
    file that tells at which call (None: it is not watched); held: it stops itself at once and
    waits for SIGCONT."""

    arguments: Sequence[str]
    folder: str
    environment: Mapping[str, str]
    screen: str
    strike: tuple[int, str] | None = None
    trace: str | None = None
    held: bool = False


@dataclass(frozen=True)
class Started:
    """A command that runs, or has ended. code: negative for a signal."""

    pid: int
    ended: Future[int]

    def wait(self) -> int:
        return self.ended.result(PATIENCE)


class Hot:
    """The near end of the server; several threads may use it."""

    def __init__(self, server: subprocess.Popen[str]) -> None:
        self._server = server
        self._lock = threading.Lock()
        self._count = 0
        self._pids: dict[int, Future[int]] = {}
        self._codes: dict[int, Future[int]] = {}
        threading.Thread(target=self._listen, daemon=True).start()

    def start(self, job: Job) -> Started:
        with self._lock:
            self._count += 1
            pid, code = Future[int](), Future[int]()
            self._pids[self._count], self._codes[self._count] = pid, code
            self._say({"id": self._count, **asdict(job)})
        return Started(pid.result(PATIENCE), code)

    def warm(self, job: Job) -> int:
        """Run a command in the server itself; its code."""
        with self._lock:
            self._count += 1
            code = Future[int]()
            self._codes[self._count] = code
            self._say({"id": self._count, "warm": True, **asdict(job)})
        return code.result(PATIENCE)

    def _say(self, message: Mapping[str, Any]) -> None:
        assert self._server.stdin is not None
        self._server.stdin.write(json.dumps(message) + "\n")
        self._server.stdin.flush()

    def _listen(self) -> None:
        assert self._server.stdout is not None
        for line in self._server.stdout:
            told = json.loads(line)
            for name, waiting in (("pid", self._pids), ("code", self._codes)):
                if name in told:
                    waiting.pop(told["id"]).set_result(told[name])
        for future in (*self._pids.values(), *self._codes.values()):
            future.set_exception(RuntimeError("the server has ended"))


@contextmanager
def serving() -> Iterator[Hot]:
    """A server, ended afterwards with all that it started."""
    words = [sys.executable, "-m", "tests.kit.commands.hot"]
    pipe = subprocess.PIPE
    server = subprocess.Popen(words, cwd=REPOSITORY, stdin=pipe, stdout=pipe, text=True)
    try:
        yield Hot(server)
    finally:
        assert server.stdin is not None
        server.stdin.close()
        server.wait(PATIENCE)


# ── the server ──────────────────────────────────────────────────────────────────────────


def serve() -> None:
    """Read jobs, start them, and say when they end."""
    out = os.dup(1)
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    children: dict[int, int] = {}
    rest = b""
    while True:
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _reap(children, out)
        if 0 in ready:
            data = os.read(0, 1 << 16)
            if not data:
                break
            *lines, rest = (rest + data).split(b"\n")
            for line in lines:
                _begin(json.loads(line), children, out)
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _begin(told: dict[str, Any], children: dict[int, int], out: int) -> None:
    number, warm = told.pop("id"), told.pop("warm", False)
    job = Job(**told)
    if warm:
        _say(out, {"id": number, "code": _become(job)})
        gc.freeze()
        return
    pid = os.fork()
    if pid == 0:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        if job.held:
            os.kill(os.getpid(), signal.SIGSTOP)
        if job.trace is not None:
            armed(Path(job.trace), Strike(*job.strike) if job.strike else None)
        os._exit(_become(job))
    children[pid] = number
    _say(out, {"id": number, "pid": pid})


def _reap(children: dict[int, int], out: int) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        _say(out, {"id": children.pop(pid), "code": os.waitstatus_to_exitcode(status)})


def _say(out: int, message: Mapping[str, Any]) -> None:
    os.write(out, json.dumps(message).encode() + b"\n")


def _become(job: Job) -> int:
    """Run the command here; its code."""
    from kafkaform.cli.app import main

    os.chdir(job.folder)
    os.environ.clear()
    os.environ.update(job.environment)
    output = os.open(job.screen, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    for stream in (1, 2):
        os.dup2(output, stream)
    os.close(output)
    try:
        main(list(job.arguments))
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


if __name__ == "__main__":
    serve()
