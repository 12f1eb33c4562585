"""Outputs that take nothing: closed, on a full disk, or with a reader that has left. No command
fails unexpectedly or goes on for ever, and an apply records all that it sends."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from pkgutil import walk_packages

import pytest

from kafkaform.cli import commands

from ...kit.commands import forked
from ...kit.commands.forked import CLOSED
from ...kit.commands.server import REPOSITORY, Job, get_server
from .edited import CONFIGURATION

SECONDS = 100
pytestmark = pytest.mark.slow("starts processes for each command and each output")
FULL, LEFT = "/dev/full", "reader left"
OUTPUTS: Mapping[str, Mapping[int, str]] = {
    "out closed": {1: CLOSED},
    "err closed": {2: CLOSED},
    "both closed": {1: CLOSED, 2: CLOSED},
    "all closed": {0: CLOSED, 1: CLOSED, 2: CLOSED},
    "in closed": {0: CLOSED},
    "out full": {1: FULL},
    "err full": {2: FULL},
    "both full": {1: FULL, 2: FULL},
    "out left": {1: LEFT},
}
"""What is wrong with which streams; LEFT: a pipe that nobody reads any more."""
DRIVER = "from tests.reliability.hostile.simulated_command import main; main()"
STARTED = ("version", "plan -out=p")
"""Of these commands each run is a Python of its own, which starts with such streams; of all others
it is forked."""
Done = subprocess.CompletedProcess[str]


@pytest.fixture(scope="module", autouse=True)
def _load() -> None:
    """The server has what the simulated cluster and all commands import."""
    imports = "\n".join(
        f"import {module.name}"
        for module in walk_packages(commands.__path__, f"{commands.__name__}.")
    )
    program = f"{imports}\nfrom kafkaform_kafka.memory import MemoryProvider"
    job = Job((), "/", {**os.environ}, program=program)
    ended = get_server().run_inside(job)
    assert ended.code == 0, ended.out


def run(
    folder: Path,
    words: Sequence[str],
    streams: Mapping[int, str],
    program: str = DRIVER,
    runner: Callable[..., Done] = forked.run,
) -> Done:
    """A command with such streams; what went through the others is captured."""
    with ExitStack() as stack:
        given: dict[int, int | str] = dict(streams)
        for number, what in streams.items():
            if what == LEFT:
                read, write = os.pipe()
                os.close(read)
                stack.callback(os.close, write)
                given[number] = write
        return runner(words, folder, os.environ, program=program, streams=given, seconds=SECONDS)


def start(
    words: Sequence[str],
    folder: Path,
    environment: Mapping[str, str],
    *,
    program: str,
    streams: Mapping[int, int | str],
    seconds: float,
) -> Done:
    """As `forked.run`, but in a new Python; a shell replaces the streams."""
    changes = " ".join(
        f"{number}>&-"
        if what == CLOSED
        else f"{number}>{what}"
        if what == FULL
        else f"{number}>&{what}"
        for number, what in streams.items()
    )
    return subprocess.run(
        ["bash", "-c", f'exec "$0" "$@" {changes}', sys.executable, "-c", program, *words],
        cwd=folder,
        env={**environment, "PYTHONPATH": str(REPOSITORY)},
        stdin=subprocess.DEVNULL,
        pass_fds=[what for what in streams.values() if isinstance(what, int)],
        capture_output=True,
        text=True,
        timeout=seconds,
    )


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
    runner = start if command in STARTED else forked.run
    whole = run(folder, words, {}, runner=runner)
    sound(whole)
    for name, streams in OUTPUTS.items():
        done = run(folder, words, streams, runner=runner)
        sound(done)
        if streams.get(1) == LEFT:
            if whole.stdout and whole.returncode == 0:
                assert done.returncode != 0
        elif 1 in streams and whole.stdout:
            assert done.returncode != 0, (name, done.stderr)
            if 2 not in streams and whole.returncode == 0:
                assert "standard output cannot be written" in done.stderr, name
        else:
            assert done.returncode == whole.returncode, (name, done.stderr)
            if 1 not in streams:
                assert done.stdout.splitlines()[:1] == whole.stdout.splitlines()[:1] or (
                    "--json" in words
                )


def records(folder: Path) -> list[str]:
    log = folder / "kafkaform.audit.jsonl"
    lines = log.read_bytes().splitlines() if log.exists() else []
    return [json.loads(line)["kind"] for line in lines]


@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("json_", [False, True], ids=["text", "json"])
def test_an_apply_records_what_it_sends(folder: Path, name: str, json_: bool) -> None:
    """Without a place for the plan nothing is sent; where only messages are lost all is applied
    as ever. Whatever was sent is recorded, and the log has nothing in it that was meant for a
    stream."""
    words = ["apply", "--auto-approve", "--accept-unproven-access", *(["--json"] if json_ else [])]
    streams = OUTPUTS[name]
    done = run(folder, words, streams, runner=forked.run if json_ else start)
    sound(done)
    kinds = records(folder)
    assert kinds.count("intent") == kinds.count("outcome")
    if 1 in streams:
        assert done.returncode != 0 and "intent" not in kinds, (done.stderr, kinds)
        if 2 not in streams and not (json_ and streams[1] == LEFT):
            assert "cannot be written" in done.stderr
    else:
        assert done.returncode == 0 and kinds.count("intent") == 5, (done.stderr, kinds)
    assert run(folder, ["audit", "verify"], {}).returncode in (0, 9 if not kinds else 0)


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
    done = run(folder, words, {}, LATER)
    sound(done)
    assert done.returncode == 1
    assert "Only its output is missing" in " ".join(done.stderr.replace("│", " ").split())
    kinds = records(folder)
    assert kinds.count("outcome") == kinds.count("intent") == 5 and kinds[-1] == "run_end"
    assert len(json.loads((folder / "kafkaform.state.json").read_bytes())["objects"]) == 5
    assert run(folder, ["audit", "verify"], {}).returncode == 0


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
