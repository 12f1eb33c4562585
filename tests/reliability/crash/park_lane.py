"""A lane whose apply deletes a parked topic because its time is over, together with the ACLs that
took the access to it away. The topic is made and parked before the round begins."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from ...kit.commands.process_folder import Folder
from ...kit.lane import APPLY
from ...kit.promises import LAG, Before, Reached, Thing, World
from . import scenes
from .lanes import TIMEOUT, CrashLane, Town

PARKED_SECONDS = 1.0
LIFECYCLE = f"""

  lifecycle {{
    prevent_destroy = false
    park            = "{PARKED_SECONDS:g}s"
  }}"""


@dataclass
class ParkLane(CrashLane):
    """replicas: of its topics; patience: seconds that a read may miss a write."""

    replicas: int = 1
    patience: float = LAG

    @property
    def name(self) -> str:
        """The topic that goes in this round."""
        return f"{self.prefix}d{self.number}"

    def declare(self) -> None:
        """Make a topic, park it, and wait until its time is over."""
        self.number += 1
        self.apply(self.text() + self._write_topic(f"d{self.number}", LIFECYCLE))
        self.apply(self.text())
        time.sleep(PARKED_SECONDS)
        self.before = Before.of(self.folder.path, self._last_world())

    def apply(self, text: str) -> None:
        """An apply that nothing disturbs."""
        (self.folder.path / "main.kf.hcl").write_text(text, "utf-8")
        ended = self.folder.run(*APPLY)
        assert ended.code == 0, ended.out

    def text(self) -> str:
        """The configuration in which the parked topic has no block."""
        provider = scenes.provider(self.town.bootstrap, TIMEOUT)
        return provider + self._write_topic("stay")

    def _write_topic(self, name: str, more: str = "") -> str:
        return (
            f'resource "kafka_topic" "{name}" {{\n  name = "{self.prefix}{name}"\n'
            f"  partitions = 1\n  replication_factor = {self.replicas}{more}\n}}\n"
        )

    def wanted(self) -> World:
        return {
            ("kafka_topic", f"{self.prefix}stay"): Thing(
                {"name": f"{self.prefix}stay", "partitions": 1, "replication_factor": self.replicas}
            )
        }

    def _last_world(self) -> World:
        """What there is when the parked topic and its two ACLs are seen."""
        deadline = time.monotonic() + self.patience
        while len(world := self.world()) != len(self.wanted()) + 3:
            assert time.monotonic() < deadline, sorted(world)
            time.sleep(0.1)
        return world

    def find_broken_promises(
        self,
        wanted: World | None = None,
        reached: Sequence[Reached] | None = None,
        patience: float = LAG,
    ) -> tuple[str, ...]:
        return super().find_broken_promises(wanted, reached, max(patience, self.patience))

    def begin(self) -> None:
        """A round in which nothing dies."""
        faults = self.settle()
        assert not faults, faults

    def renewed(self) -> ParkLane:
        """A lane of this town with another folder and other names."""
        path = self.folder.path
        name = path.name.partition("-")[0]
        lives = len(list(path.parent.glob(f"{name}-*/"))) + 1
        fresh = make_lane(self.town, path.with_name(f"{name}-{lives}"), self.replicas)
        fresh.begin()
        return fresh


def make_lane(town: Town, path: Path, replicas: int = 1, patience: float = LAG) -> ParkLane:
    path.mkdir()
    folder = Folder(path, town.bootstrap, town.password)
    prefix = f"park.{uuid4().hex[:8]}.{path.name}."
    return ParkLane(folder, town, prefix, replicas=replicas, patience=patience)


def open_lanes(town: Town, scratch: Path, count: int) -> list[ParkLane]:
    """Lanes in which a deletion comes that is due."""
    made = [make_lane(town, scratch / f"p{number}") for number in range(count)]
    with ThreadPoolExecutor(count) as pool:
        list(pool.map(ParkLane.begin, made))
    return made
