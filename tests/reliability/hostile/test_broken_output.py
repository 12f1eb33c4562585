"""Outputs that take nothing: closed, on a full disk, or with a reader that has left. No command
fails unexpectedly or goes on for ever, and an apply records all that it sends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from .edited import CONFIGURATION

SECONDS = 100
pytestmark = pytest.mark.slow("starts processes for each command and each output")
CLOSED, FULL, LEFT = ">&-", ">/dev/full", "reader left"
SHELL = {
    "out closed": ">&-",
    "err closed": "2>&-",
    "both closed": ">&- 2>&-",
    "all closed": "<&- >&- 2>&-",
    "in closed": "<&-",
    "out full": ">/dev/full",
    "err full": "2>/dev/full",
    "both full": ">/dev/full 2>/dev/full",
}
DRIVER = "from tests.reliability.hostile.simulated_command import main; main()"


def run(folder: Path, words: Sequence[str], streams: str) -> subprocess.CompletedProcess[str]:
    """A command whose streams the shell has changed so; what went through is captured."""
    return subprocess.run(
        ["bash", "-c", f'exec "$0" "$@" {streams}', sys.executable, "-c", DRIVER, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )


def run_unread(folder: Path, words: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """A command whose standard output is a pipe that nobody reads any more."""
    read, write = os.pipe()
    os.close(read)
    try:
        return subprocess.run(
            [sys.executable, "-c", DRIVER, *words],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
            stdin=subprocess.DEVNULL,
            stdout=write,
            stderr=subprocess.PIPE,
            text=True,
            timeout=SECONDS,
        )
    finally:
        os.close(write)


def sound(done: subprocess.CompletedProcess[str]) -> None:
    """No fault of ours, none of Python's, and no exit code that is none of ours."""
    said = (done.stdout or "") + done.stderr
    for word in ("unexpectedly", "Traceback", "Exception ignored", "BrokenPipe"):
        assert word not in said, said
    assert done.returncode in (0, 1, 2, 4, 8, 9, 141), (done.returncode, said)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A configuration for a simulated cluster."""
    monkeypatch.setenv("EDITED_PASSWORD", "pw-of-nobody")
    (tmp_path / "main.kf.hcl").write_text(CONFIGURATION)
    return tmp_path


COMMANDS = (
    *("version", "--help", "validate", "validate --json", "plan", "plan --json", "plan -out=p"),
    *("show", "state list", "state pull", "output", "output --json", "audit show", "nonsense"),
    *("audit export", "import --all", "fmt --check", "console", "shell", "graph", "providers"),
    *("describe topics", "fmt", "lock show", "fleet status --root=nowhere", "init"),
    *(
        "fleet history --key topic/a --cluster c --root=nowhere",
        "fleet query --root=nowhere SELECT",
    ),
    *("fleet doctor --root=nowhere", "fleet snapshot --root=new"),
)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_with_every_output(folder: Path, command: str) -> None:
    """Each ends by itself with a code of ours. What it had to say and could not makes it fail:
    an output that was lost never looks like an empty one."""
    words = command.split()
    whole = run(folder, words, "")
    sound(whole)
    for streams in SHELL.values():
        done = run(folder, words, streams)
        sound(done)
        if ">" in streams.replace("2>", "") and whole.stdout:
            assert done.returncode != 0, (streams, done.stderr)
            if "2>" not in streams and whole.returncode == 0:
                assert "standard output cannot be written" in done.stderr, streams
        else:
            assert done.returncode == whole.returncode, (streams, done.stderr)
            if ">" not in streams.replace("2>", ""):
                assert done.stdout.splitlines()[:1] == whole.stdout.splitlines()[:1] or (
                    "--json" in words
                )
    left = run_unread(folder, words)
    sound(left)
    if whole.stdout and whole.returncode == 0:
        assert left.returncode != 0


def records(folder: Path) -> list[str]:
    log = folder / "kafkaform.audit.jsonl"
    lines = log.read_bytes().splitlines() if log.exists() else []
    return [json.loads(line)["kind"] for line in lines]


@pytest.mark.parametrize("streams", [*SHELL.values(), LEFT])
@pytest.mark.parametrize("json_", [False, True], ids=["text", "json"])
def test_an_apply_records_what_it_sends(folder: Path, streams: str, json_: bool) -> None:
    """Without a place for the plan nothing is sent; where only messages are lost all is applied
    as ever. Whatever was sent is recorded, and the log has nothing in it that was meant for a
    stream."""
    words = ["apply", "--auto-approve", "--accept-unproven-access", *(["--json"] if json_ else [])]
    done = run_unread(folder, words) if streams == LEFT else run(folder, words, streams)
    sound(done)
    kinds = records(folder)
    assert kinds.count("intent") == kinds.count("outcome")
    out_is_lost = streams == LEFT or ">" in streams.replace("2>", "")
    if out_is_lost:
        assert done.returncode != 0 and "intent" not in kinds, (done.stderr, kinds)
        if "2>" not in streams and not (json_ and streams == LEFT):
            assert "cannot be written" in done.stderr
    else:
        assert done.returncode == 0 and kinds.count("intent") == 5, (done.stderr, kinds)
    assert run(folder, ["audit", "verify"], "").returncode in (0, 9 if not kinds else 0)


LATER = """
import os
from kafkaform.workflow import applying
from tests.reliability.hostile.simulated_command import main

begin = applying._record_begin
def lost(*words):
    begin(*words)
    os.dup2(os.open("/dev/full", os.O_WRONLY), 1)
applying._record_begin = lost
main()
"""
"""Standard output fails between the approval and the first request."""


@pytest.mark.parametrize("json_", [False, True], ids=["text", "json"])
def test_an_output_that_is_lost_while_sending(folder: Path, json_: bool) -> None:
    """All is sent, recorded and saved as if somebody read it; the exit code and standard error
    tell that the output is not whole, and that nothing else is missing."""
    words = ["apply", "--auto-approve", "--accept-unproven-access", *(["--json"] if json_ else [])]
    done = subprocess.run(
        [sys.executable, "-c", LATER, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).resolve().parents[3])},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    sound(done)
    assert done.returncode == 1
    assert "Only its output is missing" in " ".join(done.stderr.replace("│", " ").split())
    kinds = records(folder)
    assert kinds.count("outcome") == kinds.count("intent") == 5 and kinds[-1] == "run_end"
    assert len(json.loads((folder / "kafkaform.state.json").read_bytes())["objects"]) == 5
    assert run(folder, ["audit", "verify"], "").returncode == 0


def test_a_closed_stream_is_no_place_for_a_file(folder: Path) -> None:
    """With standard error closed its number is taken at once: what a library writes there gets
    into no file that is opened later, such as the log."""
    code = (
        "import os, sys\nfrom kafkaform.cli import app\n"
        "def run(words):\n    fresh = os.open('f', os.O_WRONLY | os.O_CREAT)\n"
        "    sys.exit(int(fresh > 2) + 40)\napp.run_command_line = run\napp.main([])\n"
    )
    done = subprocess.run(
        ["bash", "-c", 'exec "$0" -c "$1" >&- 2>&- <&-', sys.executable, code],
        cwd=folder,
        timeout=SECONDS,
    )
    assert done.returncode == 41


def test_an_encoding_that_lacks_characters(folder: Path) -> None:
    """A log that takes ASCII only gets escapes for the rest, and nothing fails."""
    done = subprocess.run(
        [sys.executable, "-m", "kafkaform", "console"],
        cwd=folder,
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        input='"\\u2192"\n',
        capture_output=True,
        text=True,
        timeout=SECONDS,
    )
    assert (done.returncode, done.stdout) == (0, '"\\u2192"\n'), done.stderr
