"""A folder on a disk beside a simulated cluster, in which applies live and die.

Brokers, clock and terminal are simulated; state and log are the product's own files. A cluster
can be copied, so that every image of the disk meets the cluster as it stood at that moment.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast
from unittest import mock

from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.errors import KafkaformError, exit_code
from kafkaform.core.resource import Desired, Lifecycle
from kafkaform.core.value import FrozenMap
from kafkaform.state.backends.local import LocalBackend
from kafkaform_kafka.kinds.simulation import Changes
from kafkaform_kafka.memory import MemoryProvider, SimulatedTopic

from ...kit import promises
from ...kit.promises import LOG, STATE, Before, Thing, World
from ...kit.simulated import engine
from ...kit.simulated.copies import Mould
from ...kit.simulated.engine import KAFKA, House, WatchedCluster, desired, removed, topic
from .disk import Image
from .recorder import Died, Recorder

OPEN = Lifecycle(prevent_destroy=False)
FIRST = desired(
    topic("a", 1, {"retention.ms": "1000"}, lifecycle=OPEN),
    topic("b", 2, depends_on=("kafka_topic.a",)),
    topic("c", 1, lifecycle=OPEN),
)
SECOND = desired(
    topic("a", 3, {"retention.ms": "2000", "cleanup.policy": "compact"}, lifecycle=OPEN),
    topic("b", 2, owner="ada"),
    topic("d", 1),
    removed=(removed("kafka_topic.c", destroy=True),),
)
"""Grows and alters a topic, adds one, deletes one, and changes what only the state knows."""


def house(folder: Path, cluster: WatchedCluster | None = None) -> House:
    """A house whose state and log are files of this folder."""
    made = engine.house(brokers=1)
    if cluster is not None:
        made.cluster, made.clock = cluster, cast(Any, cluster.clock)
    made.providers = {KAFKA: MemoryProvider(made.cluster)}
    made.backend = cast(Any, LocalBackend(folder / STATE))
    made.sink = cast(Any, LocalSink(folder / LOG))
    return made


def process(where: House) -> House:
    """The same house for a new process: nothing is remembered but what is on the disk."""
    where.sink = cast(Any, LocalSink(where.sink.path))  # type: ignore[attr-defined]
    return where


def world(cluster: WatchedCluster) -> World:
    """What the cluster has."""
    return {("kafka_topic", name): _thing(found) for name, found in cluster.topics.items()}


def _thing(found: SimulatedTopic) -> Thing:
    attributes = {
        "name": found.name,
        "partitions": found.partitions,
        "replication_factor": len(found.assignment[0]),
        "config": FrozenMap(found.config),
    }
    return Thing(attributes, found.id)


@contextmanager
def without_fsync() -> Iterator[None]:
    """Nobody will pull the plug inside."""
    with (
        mock.patch.object(os, "fsync", lambda descriptor: None),
        mock.patch.object(os, "posix_fallocate", lambda descriptor, at, length: None),
    ):
        yield


def lived(folder: Path, earlier: Sequence[Desired]) -> House:
    """A house in this folder where these were applied whole, an hour ago."""
    where = house(folder)
    with without_fsync():
        for each in earlier:
            assert applied(where, each).code == 0
    where.clock.advance(3600)
    return where


@dataclass(frozen=True)
class Ended:
    """How a command ended. code: its exit code, -1 for one that was killed; said: its message
    and advice."""

    code: int
    said: str = ""


def applied(where: House, said: Desired) -> Ended:
    """One apply in a process of its own."""
    try:
        done = engine.apply(process(where), said)
    except KafkaformError as error:
        return Ended(exit_code(error), f"{error.message} {error.advice}")
    except Died:
        return Ended(-1)
    error = done.report.make_error() if done.report is not None else None
    return Ended(exit_code(error), error.message) if error else Ended(0)


# ── what was recorded ───────────────────────────────────────────────────────────────────


@dataclass
class Scene:
    """A recorded run. clusters: (number of operations until then, the cluster since); before: as
    things stood when it began; said: its configuration; wanted: what must be there at the end."""

    recorder: Recorder
    said: Desired
    before: Before
    clusters: list[tuple[int, WatchedCluster]] = field(default_factory=list)
    wanted: World = field(default_factory=dict)
    ended: list[Ended] = field(default_factory=list)

    def cluster(self, at: int) -> WatchedCluster:
        """A copy of the cluster as it stood after so many operations."""
        found = [cluster for number, cluster in self.clusters if number <= at]
        return copied(found[-1])

    def promised(self, at: int) -> list[bytes]:
        """The lines that the log had promised to be durable by then."""
        return [line for number, line in self.recorder.promised if number <= at]

    def saved(self, at: int) -> list[bytes]:
        """The states that had been saved by then, after the one that the run began with."""
        return [data for number, data in self.recorder.saved if number <= at]

    def renamed(self, at: int) -> list[bytes]:
        """All that was given the state's name by then."""
        tape = self.recorder.tape
        ops = [n for n, op in enumerate(tape.ops[:at]) if op.what == "rename" and op.path == STATE]
        return [tape.files(number + 1)[STATE] for number in ops]


def copied(cluster: WatchedCluster) -> WatchedCluster:
    made = Mould(cluster).copy()
    made.mutations = type(made.mutations)(made._world, made.commit)
    return made


Kill = Callable[[Recorder], None]
"""Arranges for what goes wrong in one run."""


def record(
    folder: Path,
    earlier: Sequence[Desired],
    said: Desired,
    *,
    runs: Sequence[Kill] = (lambda recorder: None,),
) -> Scene:
    """Record the runs of one configuration in a folder where earlier ones were applied whole."""
    where = lived(folder, earlier)
    recorder = Recorder.of(folder)
    before = Before.of(folder, world(where.cluster))
    scene = Scene(recorder, said, before, [(0, copied(where.cluster))])
    commit = where.cluster.commit

    def noted(changes: Changes) -> None:
        commit(changes)
        recorder.mark("sent")
        del where.cluster.commit  # type: ignore[attr-defined]  # no copy may have it
        scene.clusters.append((len(recorder.ops), copied(where.cluster)))
        where.cluster.commit = noted  # type: ignore[method-assign]

    for arrange in runs:
        arrange(recorder)
        where.cluster.commit = noted  # type: ignore[method-assign]
        with recorder.recording():
            scene.ended.append(applied(where, said))
        recorder.before, recorder.half = (lambda op: None), False
        recorder.mark("process ended")
    del where.cluster.commit  # type: ignore[attr-defined]
    scene.wanted = world(where.cluster)
    return scene


def killed_at(number: int, *, half: bool = False) -> Kill:
    """SIGKILL before operation `number` of the run; half: in the middle of it."""

    def arrange(recorder: Recorder) -> None:
        start = len(recorder.ops)

        def die(op: Any) -> None:
            done = sum(o.what != "mark" for o in recorder.ops[start:])
            if done >= number and (op.what == "write" or not half):
                raise Died

        recorder.before, recorder.half = die, half

    return arrange


# ── what must hold of an image ──────────────────────────────────────────────────────────


def kept(scene: Scene, image: Image) -> list[str]:
    """What the disk must still have: every line that the log promised, and a state that is
    wholly the last one that was saved or a later one."""
    faults = []
    log = image.files.get(LOG, b"")
    start = scene.recorder.tape.base.get(LOG, b"")
    lines = log.split(b"\n")
    if not log.startswith(start) or not {*scene.promised(image.at)} <= {*lines[:-1]}:
        faults.append("NL1 a promised record is not on the disk")
    versions = [scene.before.state, *scene.renamed(image.at)]
    saved = scene.saved(image.at)
    last = versions.index(saved[-1]) if saved else 0
    if image.files.get(STATE) not in versions[last:]:
        faults.append("NL5 the state is neither the last saved one nor a later one")
    return faults


def faults(scene: Scene, image: Image, folder: Path) -> list[str]:
    """What does not hold of this image, and after applies in its folder."""
    image.put(folder)
    where = house(folder, scene.cluster(image.at))
    lost = kept(scene, image)
    return [*lost, *unrecovered(where, folder, scene.said, scene.before, scene.wanted)]


def unrecovered(
    where: House, folder: Path, said: Desired, before: Before, wanted: World
) -> list[str]:
    """What does not hold after an apply that finds what another one left; a second one must have
    nothing to do. wanted: what must live at the end."""
    with without_fsync():
        first = applied(where, said)
        if first.code != 0:
            return [f"the next apply ended with {first.code}: {first.said}"]
        once = contents(folder)
        second = applied(where, said)
    if second.code != 0 or contents(folder) != once:
        return [f"a second apply found something to do: {second}"]
    things = {name: Thing(thing.attributes) for name, thing in wanted.items()}
    return list(
        promises.broken(folder, lambda: world(where.cluster), before, wanted=things, patience=0)
    )


def contents(folder: Path) -> dict[str, bytes]:
    """State and log."""
    return {name: (folder / name).read_bytes() for name in (STATE, LOG)}


def told(image: Image, faults: Sequence[str]) -> str:
    """One violation, with what replays it."""
    return f"after {image.at} operations, {image.kind} ({image.about}): {'; '.join(faults)}"
