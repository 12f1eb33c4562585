"""A plan that is longer than the terminal is shown in the user's pager."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import shlex
import shutil
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from msgspec import Struct

from kafkaform.cli.terminal.pager import choose_pager
from kafkaform.workflow.plan_files import save_plan

from ..render.screens import many

RUN = """
import fcntl, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
from kafkaform.cli.app import main
main()
"""
SAVES = 'import sys; open(sys.argv[1], "w").write(sys.stdin.read())'
"""A pager that saves the text that it gets."""
WAITS = """
import signal, sys
signal.signal(signal.SIGINT, lambda *_: print("SEARCH STOPPED", flush=True))
terminal = open("/dev/tty")
print("READY", flush=True)
terminal.readline()
"""
"""A pager that an interrupt does not end, and that ends at a key."""


class Shown(Struct):
    """What one command left."""

    code: int
    screen: str


class Terminal:
    """A command on a terminal of its own, 80 columns wide."""

    def __init__(self, *words: str, rows: int = 24, **environment: str) -> None:
        self.keys, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 80, 0, 0))
        base = {k: v for k, v in os.environ.items() if k not in ("PAGER", "LESS", "COLUMNS")}
        self.process = subprocess.Popen(
            [sys.executable, "-c", RUN, *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**base, "TERM": "xterm", **environment},
            start_new_session=True,
        )
        os.close(slave)
        self.data = b""

    @property
    def text(self) -> str:
        return self.data.decode(errors="replace").replace("\r\n", "\n")

    def read(self) -> bool:
        """Wait for more text; False at the end."""
        ready, _, _ = select.select([self.keys], [], [], 60)
        assert ready, f"nothing for a minute after: {self.text[-500:]}"
        try:
            piece = os.read(self.keys, 65_536)
        except OSError:  # Linux says so when the last program has closed the terminal
            return False
        self.data += piece
        return bool(piece)

    def wait_for(self, text: str) -> None:
        while text not in self.text:
            assert self.read(), self.text[-500:]

    def press(self, keys: str) -> None:
        os.write(self.keys, keys.encode())

    def finish(self) -> Shown:
        while self.read():
            pass
        os.close(self.keys)
        return Shown(self.process.wait(60), self.text)


@pytest.fixture
def saved(tmp_path: Path) -> str:
    """A saved plan of 300 changes."""
    file = tmp_path / "plan"
    save_plan(many(300), file)
    return str(file)


def python(code: str, *words: str) -> str:
    """The command of a pager that runs this code."""

    return shlex.join([sys.executable, "-c", code, *words])


def test_a_long_plan_goes_through_the_pager(saved: str, tmp_path: Path) -> None:
    """The pager gets the whole text with its colours, the terminal nothing, and the code is 0."""
    taken = tmp_path / "taken"
    shown = Terminal("show", saved, KAFKAFORM_PAGER=python(SAVES, str(taken))).finish()
    text = taken.read_text(encoding="utf-8")
    assert (shown.code, shown.screen) == (0, "")
    assert "Risks (3)" in text and "\x1b[1;31m" in text and text.endswith("blocked.\n")


@pytest.mark.parametrize("pager", ["", "cat", "no-such-pager-here", "broken ' quote"])
def test_without_a_pager_the_plan_is_printed(saved: str, pager: str) -> None:
    """An empty value and `cat` switch it off, and a pager that is missing loses no text."""
    shown = Terminal("show", saved, "--no-color", KAFKAFORM_PAGER=pager, PAGER="false").finish()
    assert shown.code == 0 and "Risks (3)" in shown.screen


def test_a_plan_that_fits_is_printed(saved: str) -> None:
    """Nobody has to leave a pager for text that fits the screen."""
    shown = Terminal("show", saved, rows=9999, KAFKAFORM_PAGER="false").finish()
    assert shown.code == 0 and "Risks (3)" in shown.screen


def test_json_is_never_paged(saved: str) -> None:
    """What is for programs goes to standard output."""
    shown = Terminal("show", saved, "--json", KAFKAFORM_PAGER="false").finish()
    assert shown.code == 0 and '"resource_changes"' in shown.screen


def test_leaving_the_pager_early_is_no_error(saved: str) -> None:
    """A pager that reads nothing of a text longer than a pipe ends the command with code 0."""
    shown = Terminal("show", saved, "--detail", KAFKAFORM_PAGER="true").finish()
    assert (shown.code, shown.screen) == (0, "")


def test_an_interrupt_belongs_to_the_pager(saved: str) -> None:
    """Ctrl-C stops a search of the pager and not the command, which ends when the pager does."""
    terminal = Terminal("show", saved, KAFKAFORM_PAGER=python(WAITS))
    terminal.wait_for("READY")
    terminal.press("\x03")
    terminal.wait_for("SEARCH STOPPED")
    assert terminal.process.poll() is None
    terminal.press("q\n")
    assert terminal.finish().code == 0


@pytest.mark.skipif(shutil.which("less") is None, reason="less is not installed")
def test_less_is_the_default(saved: str) -> None:
    """Without any variable a long plan waits in less, and q leaves its first screen behind."""
    terminal = Terminal("show", saved)
    terminal.wait_for("Risks (3)")
    terminal.wait_for("\n:")
    terminal.press("q")
    shown = terminal.finish()
    assert shown.code == 0 and "Plan: " not in shown.screen


def test_the_first_variable_decides() -> None:
    """KAFKAFORM_PAGER comes before PAGER, and a plain terminal has none."""
    assert choose_pager({"KAFKAFORM_PAGER": "true -x", "PAGER": "false"}) == ["true", "-x"]
    assert choose_pager({"PAGER": "false"}) == ["false"]
    assert choose_pager({"KAFKAFORM_PAGER": "", "PAGER": "false"}) == []
    assert choose_pager({"PAGER": "false", "TERM": "dumb"}) == []
