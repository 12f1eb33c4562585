"""The scenes that need no broker: how long commands take to start, and the build of a fleet's
tables."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from ...kit.fleet.world import Size, World
from ..startup import CONFIGURATION
from .figures import Figure, Reading
from .runs import Asked, make_variables, run_command
from .tools import Tool
from .works import STARTS

CLUSTERS, SHARE = 5, 0.02
"""A fleet, and the size of its clusters: 40 topics, 200 ACLs, 500 audit records."""


def measure_starts(asked: Asked, tools: Sequence[Tool], home: Path) -> Iterator[Figure]:
    """`version`, `validate`, and Python alone."""
    folder = home / "start"
    folder.mkdir()
    (folder / "main.kf.hcl").write_text(CONFIGURATION.lstrip(), "utf-8")
    works = [work for work in STARTS if work in asked.works]
    able = [(work, tool) for work in works for tool in tools if work in tool.works]
    yield from _take_turns(asked, able, lambda _tool: folder, home)


def measure_fleet(asked: Asked, tools: Sequence[Tool], home: Path) -> Iterator[Figure]:
    """`fleet run` from landing files to the manifest, in a process of its own."""
    landed = home / "landed"
    world = World(landed / "root", size=Size.scaled(SHARE))
    world.register(CLUSTERS)
    world.write(range(CLUSTERS))

    def make_folder(tool: Tool) -> Path:
        folder = home / "fleet" / tool.name
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(landed, folder)
        return folder

    able = [("fleet", tool) for tool in tools if "fleet" in tool.works]
    yield from _take_turns(asked, able, make_folder, home)


def _take_turns(
    asked: Asked,
    able: Sequence[tuple[str, Tool]],
    make_folder: Callable[[Tool], Path],
    home: Path,
) -> Iterator[Figure]:
    """Works one after the other, so many times; the first time fills caches."""
    runs: dict[tuple[str, str], list[Reading]] = {(work, tool.name): [] for work, tool in able}
    failed: dict[tuple[str, str], str] = {}
    for run in range(asked.runs + 1):
        for work, tool in able:
            key = work, tool.name
            if key in failed:
                continue
            (command,) = tool.works[work]
            variables, folder = make_variables(tool, home, ""), make_folder(tool)
            said = run_command(command.words, command.codes, folder, variables, asked.patience)
            if isinstance(said, str):
                failed[key] = said
            elif run:
                runs[key].append(said)
                print(f"  {work:<14} {tool.name:<10} {said.wall:8.3f} s", flush=True)
    for (work, name), readings in runs.items():
        why = failed.get((work, name), "")
        kept = () if why else tuple(readings)
        yield Figure(asked.scene, work, name, asked.session, kept, why=why)
