"""The same deaths from outside: strace ends the process as it enters its k-th system call.

Nothing of the product's code is replaced, and what C code writes counts too. strace counts each
call for each thread of its own; the thread that comes first to the k-th dies, and all with it.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ...kit.commands.server import PATIENCE, Ended
from .lanes import CrashLane

CALLS = (
    "write",
    "pwrite64",
    "fsync",
    "fdatasync",
    "rename",
    "renameat",
    "renameat2",
    "link",
    "linkat",
    "unlink",
    "unlinkat",
    "ftruncate",
    "fallocate",
    "sendto",
    "sendmsg",
)
MISSING = "strace is not installed: only the points inside the process are tried"
ATTACHED = re.compile(r"attached|Operation not permitted")
_LINE = re.compile(r"(\d+) +(\w+)\(")


def installed() -> bool:
    return shutil.which("strace") is not None


def run(lane: CrashLane, arguments: Sequence[str], call: str = "", number: int = 0) -> Ended:
    """Run a command to its end, or until it enters this call for the so-manieth time (0: to its
    end); which calls it made, as `thread call`."""
    told = lane.folder.path.with_name(f"{lane.folder.path.name}.strace")
    words = ["strace", "-f", "-o", str(told), "-e", f"trace={','.join(CALLS)}"]
    if number:
        words += ["-e", f"inject={call}:signal=SIGKILL:when={number}"]
    started = lane.folder.start(*arguments, held=True)
    _await_stop(started.pid)
    words += ["-p", str(started.pid)]
    tracer = subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    try:
        assert tracer.stderr is not None
        first = tracer.stderr.readline()
        assert ATTACHED.search(first), first
        threading.Thread(target=tracer.stderr.read, daemon=True).start()
        os.kill(started.pid, signal.SIGCONT)
        started.wait()
    finally:
        started.send_signal(signal.SIGKILL)
        tracer.wait(PATIENCE)
    found = (_LINE.match(line) for line in told.read_text("utf-8", errors="replace").splitlines())
    return replace(started.finish(), calls=tuple(f"{m[1]} {m[2]}" for m in found if m))


def _await_stop(pid: int) -> None:
    """A process that is told to go on before it has stopped itself stops for good."""
    deadline = time.monotonic() + PATIENCE
    while Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "T":
        assert time.monotonic() < deadline, "it does not stop"
        time.sleep(0.01)


def counts(calls: Sequence[str]) -> dict[str, int]:
    """How often the thread that makes most of them makes each call."""
    most: dict[str, int] = {}
    for each, count in Counter(calls).items():
        name = each.split()[1]
        most[name] = max(count, most.get(name, 0))
    return most
