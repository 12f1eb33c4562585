"""`ci/apply.sh` with a `kafkaform` that only writes down what was done to it."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from .forge import EXAMPLE

SECONDS = 120
STAND_IN = """\
#!/usr/bin/env bash
cd "$(dirname "$0")"
echo "$*" >> typed
case "$1 ${2-}" in
  "audit verify") exit "$(cat sound)" ;;
  "audit head") echo 7:abc; exit ;;
esac
count=0 patience=$(cat patience) code=$(cat code)
# No $(…) from here on: Bash fails at its syntax if a signal arrives while it reads one.
trap 'echo signal >> seen; count=$((count + 1)); [ $count -lt "$patience" ] || exit 143' TERM
touch ready
[ "$patience" -gt 0 ] || exit "$code"
for _ in {1..400}; do [ "$count" = 0 ] || touch "handled$count"; sleep 0.05; done
"""


class Script:
    """Starts the script; what the stand-in wrote down is in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        program = folder / "kafkaform"
        program.write_text(STAND_IN)
        program.chmod(0o755)
        self.says(patience="0", code="0", sound="0")

    def says(self, **files: str) -> None:
        for name, text in files.items():
            (self.folder / name).write_text(text)

    def start(self, expect: str | None = "abc.def") -> subprocess.Popen[str]:
        env = {"PATH": f"{self.folder}:/usr/bin:/bin"}
        if expect is not None:
            env["KAFKAFORM_EXPECT"] = expect
        return subprocess.Popen(
            [EXAMPLE / "ci/apply.sh"],
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def end(self, process: subprocess.Popen[str]) -> tuple[int, str]:
        said, _ = process.communicate(timeout=SECONDS)
        return process.returncode, said

    def until(self, name: str) -> None:
        """Wait until the stand-in has made this file."""
        deadline = time.monotonic() + SECONDS
        while not (self.folder / name).exists():
            assert time.monotonic() < deadline, name
            time.sleep(0.01)

    @property
    def typed(self) -> list[str]:
        return (self.folder / "typed").read_text().splitlines()


@pytest.fixture
def script(tmp_path: Path) -> Script:
    return Script(tmp_path)


@pytest.mark.parametrize(
    ("code", "told"),
    [(0, "7:abc"), (4, "Plan again"), (5, "Some changes failed"), (6, "it finds out first"),
     (7, "holds the lock"), (8, "what is blocked"), (9, "See above"), (143, "Cancelled")],
)  # fmt: skip
def test_every_end_says_what_to_do(script: Script, code: int, told: str) -> None:
    """The exit code is the command's, the next step is told, and head and verdict of the log are
    printed whatever happened."""
    script.says(code=str(code))
    ended, said = script.end(script.start())
    assert (ended, told in said) == (code, True), said
    assert script.typed == [
        "apply --no-color --expect abc.def --lock-timeout 10m", "audit head", "audit verify"
    ]  # fmt: skip


def test_a_log_that_was_changed_is_never_a_success(script: Script) -> None:
    """What verify finds turns 0 into 9, and hides no other code."""
    script.says(sound="9")
    assert script.end(script.start())[0] == 9
    script.says(code="5")
    assert script.end(script.start())[0] == 5


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signals_reach_the_command(script: Script, number: int) -> None:
    """Whatever a runner sends to the script, the first and the second time; the script waits for
    the command and ends with its code."""
    script.says(patience="2")
    process = script.start()
    script.until("ready")
    os.kill(process.pid, number)
    script.until("handled1")  # a shell may miss a signal while it handles one
    os.kill(process.pid, number)
    ended, said = script.end(process)
    assert (ended, "Cancelled" in said) == (143, True), said
    assert (script.folder / "seen").read_text() == "signal\nsignal\n"


def test_without_an_approval_nothing_is_applied(script: Script) -> None:
    """An empty one plans only, and refuses what nobody approved; a missing one is an error."""
    for code, ended in (("0", 0), ("2", 4), ("1", 1)):
        script.says(code=code)
        assert script.end(script.start(""))[0] == ended
    assert all(line.startswith("plan ") for line in script.typed)
    count = len(script.typed)
    ended, said = script.end(script.start(None))
    assert ended != 0 and "KAFKAFORM_EXPECT" in said and len(script.typed) == count
