"""One run of a tool's command, and what becomes of it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field

from kafkaform.sandbox.record import CACHE_VARIABLE, get_cache_folder

from .figures import MIB, Reading, Scene
from .launcher import Job, launch
from .limits import PASSWORD
from .tools import Tool

KEPT = ("PATH", "LANG", "TMPDIR", "JAVA_HOME")
"""Variables that the tools get from ours."""
SAID = 300
"""Characters of a tool's last words that a failure tells."""


class Asked(Struct, frozen=True):
    """What to measure in a scene. patience: seconds that a command may take."""

    scene: Scene
    works: tuple[str, ...]
    runs: int
    patience: float
    session: str


class Trial(Struct):
    """What was read so far of one work by one tool."""

    runs: list[Reading] = field(default_factory=list)
    requests: dict[str, int] | None = None
    late: int | None = None
    why: str = ""
    failures: int = 0
    """Of runs that were repeated."""


def add_readings(readings: Sequence[Reading]) -> Reading:
    """Several commands as one work."""
    return Reading(
        sum(r.wall for r in readings),
        sum(r.cpu for r in readings),
        sum(r.broker_cpu for r in readings),
        sum(r.others_cpu for r in readings),
        max(r.peak for r in readings),
    )


def run_command(
    words: Sequence[str],
    codes: Sequence[int],
    folder: Path,
    variables: Mapping[str, str],
    patience: float,
    brokers: Sequence[int] = (),
) -> Reading | str:
    """What a command took, or why there is no reading. What it says is beside its folder."""
    output = folder.with_suffix(".out")
    done = launch(Job(words, str(folder), variables, str(output), patience, brokers))
    if done.code is None:
        return f"not done after {patience:.0f} s"
    if done.code not in codes:
        last = " ".join(output.read_text("utf-8", "replace").split())[-SAID:]
        return f"ended with {done.code}: {last.replace('|', '/')}"
    return Reading(done.wall, done.cpu, done.broker_cpu, done.others_cpu, done.peak / MIB)


def make_variables(tool: Tool, home: Path, password: str) -> dict[str, str]:
    """The environment of a tool: a home folder of its own, and little of ours."""
    own = home / "home"
    own.mkdir(exist_ok=True)
    kept = {name: os.environ[name] for name in KEPT if name in os.environ}
    cache = {CACHE_VARIABLE: str(get_cache_folder())}
    return {**kept, **cache, "HOME": str(own), PASSWORD: password, **tool.variables}
