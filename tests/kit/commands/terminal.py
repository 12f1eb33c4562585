"""A process under a pseudo-terminal: what a person at the keyboard sees and types."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

MOMENT_SECONDS = 0.25
PATIENCE_SECONDS = 120.0
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """columns, rows: its size; more: variables of its environment, which has no pager by itself;
    everything that the process wrote is in `seen`."""

    def __init__(
        self,
        folder: Path,
        arguments: Sequence[str],
        columns: int = 80,
        program: Sequence[str] = ("-m", "kafkaform"),
        more: Mapping[str, str] = MappingProxyType({}),
        rows: int = 40,
    ) -> None:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
        self.process = subprocess.Popen(
            [sys.executable, *program, *arguments],
            cwd=folder,
            env={**environment, "KAFKAFORM_PAGER": "", "TERM": "xterm-256color", **more},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(theirs)
        self._terminal = ours
        self._raw = b""

    @property
    def raw(self) -> str:
        return self._raw.decode(errors="replace").replace("\r\n", "\n")

    @property
    def seen(self) -> str:
        """The same without colours and cursor movements."""
        return _CONTROL.sub("", self.raw)

    def wait_for(self, text: str) -> None:
        """Read until the process has written this."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while text not in self.seen:
            assert time.monotonic() < deadline, f"{text!r} did not come: {self.seen}"
            if not self._read():
                break
        assert text in self.seen, f"{text!r} did not come before the end: {self.seen}"

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def interrupt(self) -> None:
        """Ctrl-C by somebody who has seen the prompt for a moment: one that comes between Python's
        prompt and its waiting for a line is noticed at the next key only."""
        self.until_it_waits()
        self.type("\x03")

    def until_it_waits(self) -> None:
        """Until the process has slept for a moment, in which it also took no time of a processor:
        one that has none to run on does not sleep."""
        deadline, before = time.monotonic() + PATIENCE_SECONDS, self._how_it_is()
        while True:
            time.sleep(MOMENT_SECONDS)
            now = self._how_it_is()
            if now == before and now[0] == "S":
                return
            assert time.monotonic() < deadline, f"it never waits: {self.seen}"
            before = now

    def _how_it_is(self) -> tuple[str, str, str]:
        """State of the process, and the ticks that it took; see proc_pid_stat(5). Systems other
        than Linux do not say."""
        if sys.platform != "linux":
            return "S", "", ""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return fields[0], fields[11], fields[12]

    def end(self) -> int:
        """Read the rest; the exit code."""
        while self._read():
            pass
        os.close(self._terminal)
        return self.process.wait(PATIENCE_SECONDS)

    def _read(self) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], PATIENCE_SECONDS)
        assert ready, f"nothing more came after {self.seen}"
        try:
            data = os.read(self._terminal, 65536)
        except OSError:  # Linux says so when the last process has closed its side
            return False
        self._raw += data
        return bool(data)
