"""Commands as processes of their own, forked from a server that has imported everything.

A forked command costs what it does, not what Python takes to load and compile it: an apply takes
a fifth of a second of a processor instead of one or two. `python -m tests.kit.commands.server` is
the server. It can also run commands itself, one after the other: what they load, those that are
forked later have, too.
"""

from __future__ import annotations

import atexit
import contextlib
import gc
import json
import os
import select
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from .struck import Strike, armed

REPOSITORY = Path(__file__).resolve().parents[3]
PATIENCE = 120.0
"""Seconds after which a command that does not end is a failure of its own."""


@dataclass(frozen=True)
class Job:
    """One command, and nothing but this environment. strike: when it dies, trace: the file that
    tells at which call (None: it is not watched); held: it stops itself at once and waits for
    SIGCONT; places: folders in which Python looks for packages first."""

    arguments: Sequence[str]
    folder: str
    environment: Mapping[str, str]
    strike: Strike | None = None
    trace: str | None = None
    held: bool = False
    places: Sequence[str] = ()


@dataclass(frozen=True)
class Ended:
    """How a command ended. code: the process's own, negative for a signal; out: both streams;
    calls: the names of those that were counted, in order."""

    code: int
    out: str
    calls: tuple[str, ...] = ()


@dataclass(frozen=True)
class Running:
    """A command that may still run. screen: the file that gets what it prints."""

    pid: int
    ended: Future[int]
    screen: Path

    def poll(self) -> int | None:
        """Its code; None while it runs."""
        return self.ended.result() if self.ended.done() else None

    def wait(self, seconds: float = PATIENCE) -> int:
        """Its code. Raises TimeoutError if it runs longer."""
        return self.ended.result(seconds)

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def printed(self) -> str:
        return self.screen.read_text("utf-8", errors="replace") if self.screen.exists() else ""

    def finish(self, patience: float = PATIENCE) -> Ended:
        """Wait for its end; one that hangs is ended and says so by its code."""
        try:
            code = self.wait(patience)
        except TimeoutError:
            self.send_signal(signal.SIGKILL)
            code = self.wait()
        out = self.printed()
        self.screen.unlink(missing_ok=True)
        return Ended(code, out)


class Server:
    """The near end of the server; several threads may use it."""

    def __init__(self) -> None:
        words = [sys.executable, "-m", "tests.kit.commands.server"]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            words, cwd=REPOSITORY, stdin=pipe, stdout=pipe, text=True, start_new_session=True
        )
        self._lock = threading.Lock()
        self._count = 0
        self._pids: dict[int, Future[int]] = {}
        self._codes: dict[int, Future[int]] = {}
        threading.Thread(target=self._listen, daemon=True).start()

    def start(self, job: Job) -> Running:
        """Begin a command."""
        with self._lock:
            pid, code, screen = self._send(job)
        return Running(pid.result(PATIENCE), code, screen)

    def run_inside(self, job: Job) -> Ended:
        """Run a command in the server itself."""
        with self._lock:
            _, code, screen = self._send(job, inside=True)
        return Running(0, code, screen).finish()

    def end(self) -> None:
        """End the server with all that it started."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)

    def _send(self, job: Job, *, inside: bool = False) -> tuple[Future[int], Future[int], Path]:
        self._count += 1
        descriptor, screen = tempfile.mkstemp(prefix="kafkaform-screen-")
        os.close(descriptor)
        pid, code = Future[int](), Future[int]()
        self._pids[self._count], self._codes[self._count] = pid, code
        message = {"id": self._count, "inside": inside, "screen": screen, **asdict(job)}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()
        return pid, code, Path(screen)

    def _listen(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            told = json.loads(line)
            for name, waiting in (("pid", self._pids), ("code", self._codes)):
                if name in told:
                    waiting.pop(told["id"]).set_result(told[name])
        for future in (*self._pids.values(), *self._codes.values()):
            if not future.done():
                future.set_exception(RuntimeError("the server has ended"))


@cache
def get_server() -> Server:
    """This process's server, which ends with it."""
    server = Server()
    atexit.register(server.end)
    return server


# ── the server ──────────────────────────────────────────────────────────────────────────


def serve() -> None:
    """Read jobs, start them, and say when they end."""
    _load()
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


def _load() -> None:
    """What every command needs. Nothing of it opens a connection or starts a thread, so each
    command begins as in a process of its own."""
    from kafkaform.cli import app  # noqa: F401
    from kafkaform.cli.commands import apply, plan  # noqa: F401
    from kafkaform.syntax.parse import parse
    from kafkaform_kafka import provider, session  # noqa: F401

    parse('a = "${b}"', "server")
    gc.collect()
    gc.freeze()


def _begin(message: dict[str, Any], children: dict[int, int], out: int) -> None:
    number, inside, screen = (message.pop(name) for name in ("id", "inside", "screen"))
    strike = message.pop("strike")
    job = Job(**message, strike=Strike(**strike) if strike else None)
    if inside:
        _say(out, {"id": number, "code": _become(job, screen)})
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
            armed(Path(job.trace), job.strike)
        os._exit(_become(job, screen))
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


def _become(job: Job, screen: str) -> int:
    """Run the command here; its code."""
    from kafkaform.cli.app import main

    os.chdir(job.folder)
    sys.path[:0] = job.places
    os.environ.clear()
    os.environ.update(job.environment)
    output = os.open(screen, os.O_WRONLY | os.O_TRUNC)
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
