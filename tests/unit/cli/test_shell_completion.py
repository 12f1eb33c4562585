"""`--install-completion` in real shells: installed, then asked with the tab key of a terminal."""

from __future__ import annotations

import os
import pty
import select
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

SHELLS = {
    "bash": ("bash", "--noprofile", "-i"),
    "zsh": ("zsh", "-i"),
    "fish": ("fish", "-i"),
}
"""Shell -> how it is started at a terminal."""
WAIT_SECONDS, PRESS_SECONDS = 120.0, 5.0


@pytest.fixture(params=SHELLS)
def shell(request: pytest.FixtureRequest) -> str:
    name = str(request.param)
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not on the path")
    return name


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A home of its own, and kafkaform on the path."""
    program = tmp_path / "bin" / "kafkaform"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} -m kafkaform "$@"\n')
    program.chmod(0o755)
    path = f"{program.parent}{os.pathsep}{os.environ['PATH']}"
    home = tmp_path / "home"
    home.mkdir()
    return {"HOME": str(home), "PATH": path, "TERM": "xterm", "LANG": "C.UTF-8"}


def run_in_shell(shell: str, command: str, environment: dict[str, str]) -> str:
    """What a command prints whose parent process is this shell."""
    done = subprocess.run(
        [shell, "-c", f"{command}; true"],  # with a second command, no shell replaces itself
        env=environment,
        cwd=environment["HOME"],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=True,
    )
    assert not done.stderr
    return done.stdout


@pytest.fixture
def terminal(shell: str, environment: dict[str, str]) -> Iterator[int]:
    """A terminal in which the shell waits for keys, after the installation."""
    told = run_in_shell(shell, "kafkaform --install-completion", environment)
    assert f"{shell} completion installed in {environment['HOME']}" in told
    pid, keys = pty.fork()
    if pid == 0:
        os.chdir(environment["HOME"])
        os.execvpe(shell, SHELLS[shell], environment)
    try:
        yield keys
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        os.close(keys)


def type_until(keys: int, typed: str, wanted: str) -> str:
    """Type a text, then press the tab key again and again until the terminal shows what is wanted.
    Raises TimeoutError if it never does."""
    # Before a shell is ready it may throw keys away, and zsh loads the function at the first tab.
    shown, deadline, sent = "", time.monotonic() + WAIT_SECONDS, 0.0
    while time.monotonic() < deadline:
        if time.monotonic() - sent > PRESS_SECONDS:
            os.write(keys, f"\x15{typed}\t".encode())  # the control character empties the line
            sent = time.monotonic()
        if select.select([keys], [], [], 0.2)[0]:
            shown += os.read(keys, 65536).decode(errors="replace")
            if wanted in shown:
                return shown
    raise TimeoutError(shown)


@pytest.mark.slow("starts a shell and the command at each key")
def test_the_tab_key_completes_after_the_installation(terminal: int) -> None:
    """A command's beginning becomes the command: no part of `validate` was typed but `vali`."""
    type_until(terminal, "kafkaform vali", "validate")


@pytest.mark.slow("starts a shell and the command at each key")
def test_the_tab_key_completes_flags_after_the_installation(terminal: int) -> None:
    """Flags of a command, too."""
    type_until(terminal, "kafkaform plan --detailed", "--detailed-exitcode")


@pytest.mark.slow("starts shells")
def test_installing_twice_adds_nothing(shell: str, environment: dict[str, str]) -> None:
    """The shell's own start file gets its lines once."""

    def list_lines() -> list[str]:
        files = [path for path in Path(environment["HOME"]).rglob("*") if path.is_file()]
        return [line for path in files for line in path.read_text().splitlines() if line]

    run_in_shell(shell, "kafkaform --install-completion", environment)
    first = list_lines()
    run_in_shell(shell, "kafkaform --install-completion", environment)
    assert first and list_lines() == first


@pytest.mark.slow("starts shells")
def test_the_script_can_be_printed(shell: str, environment: dict[str, str]) -> None:
    """`--show-completion` prints what the installation puts into its file, and changes nothing;
    packagers name the shell (Homebrew's form `:typer` does)."""
    printed = run_in_shell(shell, "kafkaform --show-completion", environment)
    packager = {**environment, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    named = run_in_shell("sh", f"kafkaform --show-completion {shell}", packager)
    assert "_KAFKAFORM_COMPLETE" in printed and named == printed
    run_in_shell(shell, "kafkaform --install-completion", environment)
    files = [path.read_text().strip() for path in Path(environment["HOME"]).rglob("*kafkaform*")]
    assert files == [printed.strip()]
