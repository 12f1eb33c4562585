"""A place where hostile configurations are let loose: each in a process of its own, with little
memory and under a clock, and what it took is measured.

`python -m tests.reliability.hostile.arena` reads one job a line and forks a child for each, so that
none of them waits for imports. A job is a folder and the commands to type there, each with what is
typed into it.
"""

from __future__ import annotations

import gc
import io
import json
import os
import resource
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

MEMORY_BYTES = 1 << 30
"""Of address space, of which the interpreter and its libraries take a part."""
CPU_SECONDS, WALL_SECONDS = 20, 90
"""When a child is ended by force; what it may take is for the tests to say."""
SLOW, FAT = 5.0, 512
"""Seconds on the processor, of a computer with nothing else to do, and MiB that an attack may
take."""
LAP, LAP_SECONDS = "- {a: b}\n" * 1_000, 0.05
"""A text whose tokens pure Python finds, and how long that takes on such a computer: a busy one
is slower at everything."""

Command = tuple[tuple[str, ...], str]
"""Its words, and what is typed into it."""


@dataclass(frozen=True)
class Outcome:
    """What became of a job. signal: that ended it, 0 for none; codes: exit codes of its commands;
    cpu: seconds; memory: MiB, the most that it had; text: everything that it said."""

    signal: int
    codes: tuple[int, ...]
    cpu: float
    memory: float
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


class Arena:
    """The process that forks the children."""

    def __init__(self) -> None:
        root = Path(__file__).resolve().parents[3]
        command = [sys.executable, "-m", f"{__package__}.arena"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=root
        )

    def run(self, folder: Path, *commands: Command) -> Outcome:
        """Type these commands in a folder, one after the other in one process."""
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None and stdout is not None
        place = folder.with_name(f"{folder.name}.said")
        place.mkdir(exist_ok=True)
        stdin.write(json.dumps([str(folder), str(place), commands]) + "\n")
        stdin.flush()
        number, cpu, memory = json.loads(stdout.readline())
        out, err, codes = (
            (place / name).read_text("utf-8", "surrogateescape") for name in ("out", "err", "codes")
        )
        return Outcome(number, tuple(map(int, codes.split())), cpu, memory, out, err)

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=WALL_SECONDS)


def busy() -> float:
    """How many times as long as on a computer with nothing else to do everything takes here."""
    import yaml  # type: ignore[import-untyped]

    begun = time.process_time()
    found = sum(1 for _ in yaml.scan(LAP, Loader=yaml.SafeLoader))
    assert found > len(LAP) / 2
    return max(1.0, (time.process_time() - begun) / LAP_SECONDS)


# ── in the process ──────────────────────────────────────────────────────────────────────


def serve() -> None:
    """Fork a child for each job; answer with what it took."""
    _warm()
    for line in sys.stdin:
        folder, place, commands = json.loads(line)
        child = os.fork()
        if not child:
            _live(folder, Path(place), commands)
        _, status, used = os.wait4(child, 0)
        answer = [os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0,
                  used.ru_utime + used.ru_stime, used.ru_maxrss / 1024]  # fmt: skip
        print(json.dumps(answer), flush=True)


def _warm() -> None:
    """Import what commands need, once for all children."""
    import yaml  # type: ignore[import-untyped]  # noqa: F401

    from kafkaform.cli import command_tree  # noqa: F401
    from kafkaform.cli.commands import console, declarations, fmt, output, plan, validate  # noqa: F401
    from kafkaform.provider.registry import Registry
    from kafkaform.render import diagnostics, plan_text, terraform  # noqa: F401
    from kafkaform.render.review import comment  # noqa: F401
    from kafkaform.workflow import applying, planning  # noqa: F401

    registry = Registry()
    for name in registry.names:
        registry.load(name)
    gc.collect()
    gc.freeze()


def _live(folder: str, place: Path, commands: Sequence[Any]) -> None:
    """Be the child: type the commands, then end."""
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(WALL_SECONDS)
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for descriptor, name in ((1, "out"), (2, "err"), (9, "codes")):
        file = os.open(place / name, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(file, descriptor)
    os.chdir(folder)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    try:
        from kafkaform.cli.app import run_command_line

        for words, typed in commands:
            sys.stdin = io.TextIOWrapper(io.BytesIO(typed.encode()), "utf-8")
            os.write(9, b"%d\n" % _typed(words, run_command_line))
    except BaseException:  # noqa: BLE001  # a child that lives on would read the next job
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


def _typed(words: Sequence[str], run: Any) -> int:
    """Run a command; `pictures` shows a plan against a simulated cluster in all forms."""
    if list(words) != ["pictures"]:
        return int(run(words))
    from kafkaform.core.canonical import dumps
    from kafkaform.core.errors import KafkaformError
    from kafkaform.render.diagnostics import render_diagnostics
    from kafkaform.render.plan_text import render_plan_text
    from kafkaform.render.review.comment import render_markdown
    from kafkaform.render.terraform import to_json

    from ...test_cases import plan_of, workspace_of

    try:
        plan = plan_of(workspace_of(Path.cwd()), Path.cwd())
    except KafkaformError as error:
        sys.stderr.write(render_diagnostics(error.diagnostics))
        return 1
    sys.stdout.write(
        "\n".join((render_plan_text(plan), render_markdown(plan), dumps(to_json(plan))))
    )
    return 0


if __name__ == "__main__":
    serve()
