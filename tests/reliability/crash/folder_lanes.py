"""Lanes of a repository of three folders, whose `apply --all` dies: `app` reads outputs of
`platform`, and `side` reads none."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from ...kit import promises
from ...kit.commands.process_folder import Folder
from ...kit.commands.server import Ended
from ...kit.lane import AGAIN, APPLY, LEFT, choose_words, find_faults, find_token
from ...kit.promises import Reached, Thing, World
from . import scenes
from .lanes import TIMEOUT, CrashLane, Town, find_rewritten

ALL = (APPLY[0], "--all", *APPLY[1:])
NAMES = ("app", "platform", "side")
FILE = """\
repository {
  name = "proof"
}

cluster "prod" {
PROVIDER}

folders "*" {
  uses = { kafka = cluster.prod }
}
"""
FED = """\
data "kafkaform_outputs" "platform" {
  folder = "../platform"
}

resource "kafka_topic" "fed" {
  name               = "PREFIXfed"
  partitions         = 1
  replication_factor = 1
  config             = { "retention.ms" = 3600000 + data.kafkaform_outputs.platform.outputs.round }
}
"""


@dataclass
class PartLane(CrashLane):
    """One folder of the repository."""

    def text(self) -> str:
        fed = FED.replace("PREFIX", self.prefix) if self.is_fed() else ""
        return scenes.text(self.prefix, self.number) + fed

    def wanted(self) -> World:
        found = dict(scenes.wanted(self.prefix, self.number))
        if self.is_fed():
            name = f"{self.prefix}fed"
            told = {"name": name, "partitions": 1, "replication_factor": 1}
            config = {"retention.ms": str(3600000 + self.number)}
            found["kafka_topic", name] = Thing({**told, "config": config})
        return found

    def is_fed(self) -> bool:
        """Whether it reads the outputs of another folder."""
        return self.folder.path.name == "app"


@dataclass
class FoldersLane(CrashLane):
    """The repository; its `folder` is the top."""

    parts: Sequence[PartLane] = field(default_factory=list)

    def declare(self) -> None:
        self.number += 1
        for part in self.parts:
            part.declare()

    def kept(self) -> tuple[str, ...]:
        return tuple(f"{part.prefix} {fault}" for part in self.parts for fault in part.kept())

    def recover(self, last: Ended | None = None) -> Ended:
        """Apply all folders, again as long as something failed or is unknown, and as each run
        advises: a secret that may not have arrived is sent once more in its folder."""
        for _ in range(AGAIN):
            last = self.run(self.words)
            if last.code not in LEFT:
                break
            if find_token(last):
                open_ = [p for p in self.parts if promises.open_intents(p.folder.records())]
                (part,) = open_
                assert f"--chdir {part.folder.path.name} apply --expect" in " ".join(
                    last.out.split()
                )
                part.folder.run(*choose_words(last))
        assert last is not None
        return last

    def faults(self) -> Iterator[str]:
        """Recover, twice, and look at everything that each folder promises."""
        yield from self.kept()
        first = self.recover()
        if first.code != 0:
            yield f"the recovery ended with {first.code}: {first.out[-4000:]}"
            return
        written = [part.written() for part in self.parts]
        second = self.run(self.words)
        if second.code != 0 or "3 folders had nothing to send." not in second.out:
            yield f"the second recovery ended with {second.code}: {second.out[-4000:]}"
        for part, before in zip(self.parts, written, strict=True):
            yield from (f"{part.prefix} {f}" for f in find_rewritten(before, part.written()))
            broken = part.find_broken_promises(part.wanted(), part.reached())
            yield from (f"{part.prefix} {fault}" for fault in broken)
        for ended in (first, second):
            yield from find_faults(ended, self.folder.password)

    def reached(self) -> Sequence[Reached] | None:
        return None

    def renewed(self) -> FoldersLane:
        path = self.folder.path
        name = path.name.partition("-")[0]
        lives = len(list(path.parent.glob(f"{name}-*/"))) + 1
        fresh = make_lane(self.town, path.parent, f"{name}-{lives}")
        fresh.begin()
        return fresh


def make_lane(town: Town, scratch: Path, name: str) -> FoldersLane:
    """A repository in which nothing was applied yet."""
    top = scratch / name
    prefix = f"folders.{os.getpid()}.{name}."
    parts = []
    for part in NAMES:
        (top / part).mkdir(parents=True)
        folder = Folder(top / part, town.bootstrap, town.password)
        parts.append(PartLane(folder, town, f"{prefix}{part}."))
    _, block = scenes.provider(town.bootstrap, TIMEOUT).split("{\n", 1)
    arguments = block.rstrip().removesuffix("}")
    text = FILE.replace("PROVIDER", f'  provider = "kafka"\n{arguments}')
    (top / "kafkaform.hcl").write_text(text, "utf-8")
    folder = Folder(top, town.bootstrap, town.password)
    return FoldersLane(folder, town, prefix, words=ALL, parts=parts)


def make_lanes(town: Town, scratch: Path, count: int) -> list[FoldersLane]:
    """Repositories in which an apply comes that has everything to do in each folder."""
    made = [make_lane(town, scratch, f"r{number}") for number in range(count)]
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(CrashLane.begin, made))
    return made
