"""Commands as processes of their own, forked from a server that has imported everything.

A forked command costs what it does, not what Python takes to load and compile it: an apply takes
a fifth of a second of a processor instead of one or two. `python -m tests.kit.commands.server` is
the server. It can also run commands itself, one after the other: what they load, those that are
forked later have, too.
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import gc
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeAlias

from .struck import Strike, armed

REPOSITORY = Path(__file__).resolve().parents[3]
COMMAND = "from kafkaform.cli.app import main; main()"
Streams: TypeAlias = tuple[int | None, int | None, int | None]
"""The file descriptors that become a command's input and outputs; None: it is closed."""
PATIENCE = 120.0
"""Seconds after which a command that does not end is a failure of its own."""


@dataclass(frozen=True)
class Job:
    """One command, and nothing but this environment. strike: when it dies, trace: the file that
    tells at which call (None: it is not watched); held: it stops itself at once and waits for
    SIGCONT; places: folders in which Python looks for packages first; program: what runs instead of
    the command itself, as with `python -c`."""

    arguments: Sequence[str]
    folder: str
    environment: Mapping[str, str]
    strike: Strike | None = None
    trace: str | None = None
    held: bool = False
    places: Sequence[str] = ()
    program: str = COMMAND


@dataclass(frozen=True)
class Ended:
    """How a command ended. code: the process's own, negative for a signal; out: both streams;
    calls: the names of those that were counted, in order."""

    code: int
    out: str
    calls: tuple[str, ...] = ()


class Running:
    """A command that may still run. screen: the file that gets what it prints, if it has one."""

    def __init__(self, line: socket.socket, screen: Path | None) -> None:
        self._line = line
        self._lock = threading.Lock()
        self._told = b""
        self._code: int | None = None
        self._screen = screen
        self.pid = self._read_number(PATIENCE)

    def poll(self) -> int | None:
        """Its code; None while it runs."""
        with self._lock:
            if self._code is None and select.select([self._line], [], [], 0)[0]:
                self._code = self._read_number(PATIENCE)
            return self._code

    def wait(self, seconds: float = PATIENCE) -> int:
        """Its code. Raises TimeoutError if it runs longer."""
        deadline = time.monotonic() + seconds
        # Without the lock: others want to know whether it runs, and to end it.
        while (code := self.poll()) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError(f"it has not ended within {seconds:g} s")
            # ValueError: another thread has read its code, and closed the line.
            with contextlib.suppress(ValueError, OSError):
                select.select([self._line], [], [], left)
        return code

    def send_signal(self, number: int) -> None:
        if self.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def printed(self) -> str:
        known = self._screen is not None and self._screen.exists()
        return self._screen.read_text("utf-8", errors="replace") if self._screen and known else ""

    def finish(self, patience: float = PATIENCE) -> Ended:
        """Wait for its end; one that hangs is ended and says so by its code."""
        try:
            code = self.wait(patience)
        except TimeoutError:
            self.send_signal(signal.SIGKILL)
            code = self.wait()
        out = self.printed()
        if self._screen is not None:
            self._screen.unlink(missing_ok=True)
        return Ended(code, out)

    def _read_number(self, seconds: float) -> int:
        """The next number that the server tells: the process id, and then the code."""
        self._line.settimeout(seconds)
        while b"\n" not in self._told:
            more = self._line.recv(64)
            if not more:
                raise RuntimeError("the server has ended")
            self._told += more
        number, _, self._told = self._told.partition(b"\n")
        if self._code is None and hasattr(self, "pid"):
            self._line.close()
        return int(number)


class Server:
    """The near end of the server; several threads may use it. address: of its socket, at which
    `asking` asks, too."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kafkaform-server-")
        self.address = str(Path(self._folder.name, "socket"))
        words = [sys.executable, "-m", "tests.kit.commands.server", self.address]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(
            words, cwd=REPOSITORY, stdin=pipe, stdout=pipe, start_new_session=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"listening\n", "the server has ended"

    def start(self, job: Job) -> Running:
        """Begin a command. It has an empty input, and both of its outputs go to one file."""
        return self._start_on_screen(job, inside=False)

    def run_inside(self, job: Job) -> Ended:
        """Run a command in the server itself."""
        return self._start_on_screen(job, inside=True).finish()

    def start_with(self, job: Job, streams: Streams) -> Running:
        """Begin a command with these streams. It ends as any Python does: with what was registered
        for its exit, and with code 120 if its output cannot be flushed."""
        return Running(self._ask(job, streams, inside=False, whole=True), None)

    def end(self) -> None:
        """End the server with all that it started."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(PATIENCE)
        self._process.stdout.close()
        self._folder.cleanup()

    def _start_on_screen(self, job: Job, *, inside: bool) -> Running:
        out, screen = tempfile.mkstemp(prefix="kafkaform-screen-")
        nothing = os.open(os.devnull, os.O_RDONLY)
        try:
            line = self._ask(job, (nothing, out, out), inside=inside, whole=False)
        finally:
            os.close(nothing)
            os.close(out)
        return Running(line, Path(screen))

    def _ask(self, job: Job, streams: Streams, *, inside: bool, whole: bool) -> socket.socket:
        line = socket.socket(socket.AF_UNIX)
        line.settimeout(PATIENCE)
        line.connect(self.address)
        given = [stream for stream in streams if stream is not None]
        closed = [number for number, stream in enumerate(streams) if stream is None]
        message = {"inside": inside, "whole": whole, "closed": closed, **asdict(job)}
        data = json.dumps(message).encode() + b"\n"
        sent = socket.send_fds(line, [data], given)
        if sent < len(data):  # to send nothing fails, too, if the job has ended by now
            line.sendall(data[sent:])
        return line


@cache
def get_server() -> Server:
    """This process's server, which ends with it."""
    server = Server()
    atexit.register(server.end)
    return server


# ── the server ──────────────────────────────────────────────────────────────────────────


def serve(address: str) -> Job | None:
    """Start what is asked for, and say when it ends. Returns None when nobody can ask any more;
    in the process of a job that is to end as Python does, returns the job."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(address)
    listener.listen(128)
    os.write(1, b"listening\n")
    _load()
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    children: dict[int, socket.socket] = {}
    while True:
        ready, _, _ = select.select([0, woken, listener], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _reap(children)
        if listener in ready:
            line, _ = listener.accept()
            message, streams = _receive(line)
            if message.pop("inside"):
                _run_inside(_read_job(message), line, streams)
                continue
            whole = message.pop("whole")
            pid = os.fork()
            if pid == 0:
                for each in (listener, line, *children.values()):
                    each.detach()
                job = _read_job(message)
                _dress(job, streams)
                if whole:
                    return job
                os._exit(_become(job))
            for stream in streams.values():
                os.close(stream)
            children[pid] = line
            _say(line, pid)
        if 0 in ready:
            break
    for pid in children:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return None


def _load() -> None:
    """What every command needs. Nothing of it opens a connection or starts a thread, so each
    command begins as in a process of its own."""
    from kafkaform.cli import app  # noqa: F401
    from kafkaform.cli.commands import apply, plan  # noqa: F401
    from kafkaform.syntax.parse import parse
    from kafkaform_kafka import (
        provider,  # noqa: F401
        session,  # noqa: F401
    )

    parse('a = "${b}"', "server")
    gc.collect()
    gc.freeze()
    loaded = dict(sys.modules)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(loaded))
    atexit.register(_leave, loaded)


def _leave(loaded: Mapping[str, Any]) -> None:
    """The last that is done before Python flushes its streams and clears all modules. In a copy of
    the server that would copy its memory, object by object, only to give it back: what was loaded
    before stays, for which `_load` has added an owner."""
    for name in loaded:
        if name not in ("sys", "builtins", "__main__"):
            sys.modules.pop(name, None)


def _receive(line: socket.socket) -> tuple[dict[str, Any], dict[int, int]]:
    """What somebody asks for, and the streams that came with it, by their numbers."""
    data, found, _, _ = socket.recv_fds(line, 1 << 16, 3)
    while not data.endswith(b"\n"):
        data += line.recv(1 << 16)
    message = json.loads(data)
    closed = message.pop("closed")
    numbers = [number for number in range(3) if number not in closed]
    return message, dict(zip(numbers, found, strict=True))


def _read_job(message: dict[str, Any]) -> Job:
    strike = message.pop("strike")
    message.pop("whole", None)
    return Job(**message, strike=Strike(**strike) if strike else None)


def _run_inside(job: Job, line: socket.socket, streams: dict[int, int]) -> None:
    for number in (1, 2):
        os.dup2(streams[number], number)
    for stream in streams.values():
        os.close(stream)
    _enter(job)
    _say(line, 0)
    _say(line, _become(job))
    line.close()
    gc.freeze()


def _dress(job: Job, streams: dict[int, int]) -> None:
    """In a process of its own: what a new Python has, and nothing of the server's."""
    signal.set_wakeup_fd(-1)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    # A command that ran in the server has set its own.
    sys.excepthook, sys.unraisablehook = sys.__excepthook__, sys.__unraisablehook__
    threading.excepthook = threading.__excepthook__
    for number in range(3):
        if number in streams:
            os.dup2(streams[number], number)
        else:
            os.close(number)
    os.closerange(3, 4096)
    _open_streams()
    if job.held:
        os.kill(os.getpid(), signal.SIGSTOP)
    if job.trace is not None:
        armed(Path(job.trace), job.strike)
    _enter(job)


def _open_streams() -> None:
    """Python's own streams, as `create_stdio` in its pylifecycle.c makes them; None for one that is
    closed."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        old, new = getattr(sys, f"__{name}__"), None
        with contextlib.suppress(OSError):
            inner = io.FileIO(number, mode, closefd=False)
            inner.name = f"<{name}>"
            buffer = io.BufferedReader(inner) if mode == "r" else io.BufferedWriter(inner)
            lines = name == "stderr" or inner.isatty()
            new = io.TextIOWrapper(buffer, old.encoding, old.errors, "\n", line_buffering=lines)
            new.mode = mode  # type: ignore[attr-defined]  # what `open` leaves there, too
        setattr(sys, name, new)
        setattr(sys, f"__{name}__", new)


def _enter(job: Job) -> None:
    os.chdir(job.folder)
    sys.path[:0] = job.places
    os.environ.clear()
    os.environ.update(job.environment)
    time.tzset()
    sys.argv = ["kafkaform", *job.arguments]


def _become(job: Job) -> int:
    """Run the command here; its code."""
    try:
        exec(job.program, {"__name__": "__main__"})
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
    return 0


def _reap(children: dict[int, socket.socket]) -> None:
    while children:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with children.pop(pid) as line:
            _say(line, os.waitstatus_to_exitcode(status))


def _say(line: socket.socket, number: int) -> None:
    with contextlib.suppress(OSError):  # nobody waits for it any more
        line.sendall(f"{number}\n".encode())


if __name__ == "__main__":
    begun = serve(sys.argv[1])
    if begun is not None:
        # Here and not in a function: what is raised reaches Python itself, as in any program.
        exec(begun.program, {"__name__": "__main__"})
