"""A forked command of the tests (`tests/kit/commands/forked.py`) lives and ends as a new Python."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ...kit.commands import forked
from ...kit.commands.forked import CLOSED
from ...kit.commands.server import Job, get_server

pytestmark = pytest.mark.slow("starts a Python for each program")
PROGRAMS = {
    "prints": "print('x')",
    "reads": "import sys; print(sys.stdin.read() if sys.stdin else 'nothing')",
    "exits": "import sys; print('x'); sys.exit(3)",
    "exits with words": "import sys; sys.exit('words')",
    "has work at its exit": "import atexit, sys; atexit.register(print, 'bye'); sys.exit(5)",
    "fails at its exit": "import atexit; atexit.register(lambda: 1 / 0)",
    "waits for its threads": "import threading, time\n"
    "threading.Thread(target=lambda: (time.sleep(0.1), print('late'))).start()",
    "raises": "raise ValueError('x')",
    "is killed": "import os; os.kill(os.getpid(), 9)",
    "is interrupted": "import os; os.kill(os.getpid(), 2)",
    "is terminated": "import os; os.kill(os.getpid(), 15)",
    "has files": "import os; print(sorted(os.listdir('/dev/fd'))[:3])",
    "has streams": "import sys\n"
    "for it in (sys.stdin, sys.stdout, sys.stderr):\n"
    "    words = it and (it.name, it.mode, it.line_buffering, it.write_through, it.newlines)\n"
    "    print(words, it is None or it.fileno(), file=sys.stderr)",
    "knows its place": "import os, sys; print(os.getcwd(), os.environ['WHO'], sys.argv[1:])",
}
STREAMS = {"open": {}, "no input": {0: CLOSED}, "no output": {1: CLOSED}, "full": {1: "/dev/full"}}


@pytest.mark.parametrize("kind", STREAMS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_it_is_like_a_new_python(name: str, kind: str, tmp_path: Path) -> None:
    """Its code, what gets through its outputs, and what Python itself says at the end."""
    program, streams = PROGRAMS[name], STREAMS[kind]
    plain = {name: text for name, text in os.environ.items() if not name.startswith("PYTHON")}
    environment = {**plain, "WHO": "eve"}
    mine = forked.run(
        ["a", "b"], tmp_path, environment, program=program, input="given", streams=streams
    )
    words = " ".join(f"{n}>{'&-' if what == CLOSED else what}" for n, what in streams.items())
    new = subprocess.run(
        ["bash", "-c", f'exec "$0" "$@" {words}', sys.executable, "-c", program, "a", "b"],
        cwd=tmp_path,
        env=environment,
        input="given",
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (mine.returncode, mine.stdout) == (new.returncode, new.stdout), mine.stderr
    # Both name the program, each in its way.
    assert mine.stderr.splitlines()[-1:] == new.stderr.splitlines()[-1:]
    if name == "has streams":
        assert mine.stderr == new.stderr


def test_a_command_that_ran_in_the_server_leaves_no_hooks(tmp_path: Path) -> None:
    inside = Job(["version"], str(tmp_path), dict(os.environ))
    assert get_server().run_inside(inside).code == 0
    ended = forked.run([], tmp_path, os.environ, program="raise ValueError('x')")
    assert ended.stderr.splitlines()[-1] == "ValueError: x"
    thread = "import threading; threading.Thread(target=lambda: 1 / 0).start()"
    ended = forked.run([], tmp_path, os.environ, program=thread)
    assert ended.stderr.splitlines()[-1] == "ZeroDivisionError: division by zero"


def test_what_is_loaded_is_not_what_ran_before(tmp_path: Path) -> None:
    """Two commands have nothing in common but what the server has imported."""
    spoil = "import sys, json; json.spoiled = True; sys.modules['eve'] = sys; open('f', 'w')"
    assert forked.run([], tmp_path, os.environ, program=spoil).returncode == 0
    look = "import sys, json; sys.exit(hasattr(json, 'spoiled') or 'eve' in sys.modules)"
    assert forked.run([], tmp_path, os.environ, program=look).returncode == 0
