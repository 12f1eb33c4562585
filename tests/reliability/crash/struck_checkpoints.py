"""Applies that write a checkpoint and are struck at one request to the place of their log."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, cast

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.audit import checkpoint
from kafkaform.audit.checkpoint import check_checkpoints, read_index
from kafkaform.audit.index import Growth, get_run
from kafkaform.audit.records import verify_log
from kafkaform.audit.sink import Sink
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.audit.sinks.objects import ObjectSink
from kafkaform.core.errors import KafkaformError, StorageError
from kafkaform.core.objects import Folder
from kafkaform_kafka.memory import Killed, SimulatedTopic

from ...kit.simulated.engine import apply, desired, topic
from ...kit.simulated.stored_logs import CountedObjects, Place

ONE, TWO, THREE, FOUR = (
    desired(topic("a", number, {"retention.ms": "1000"}), topic("b")) for number in (1, 2, 3, 4)
)
WAYS = ("before", "after", "refused", "lost")
"""The process ends before or after a request; the request fails, or only its answer does."""


class Blow(Struct, frozen=True):
    """What happens to the request with this number, from 1."""

    number: int
    way: str


class Seen(Struct):
    """The requests of a struck process."""

    requests: list[str] = []
    faults: list[str] = []


class WatchedLocalSink(LocalSink):
    """A log in a file whose checkpoints are asked for through counted objects."""

    @property
    def sealed(self) -> Any:
        return CountedObjects(Folder(self.path.with_suffix("")))


def open_watched(folder: Path, kind: str) -> Sink:
    if kind == "local":
        return WatchedLocalSink(folder / "kafkaform.audit.jsonl")
    return ObjectSink(CountedObjects(Folder(folder / "store")))


def strike_apply(folder: Path, kind: str, blows: list[Blow]) -> Seen:
    """Applies of which the last ones are struck, one after the other, and what is wrong after the
    next one that is not. The checkpoints of a process whose log is in a file are the only requests
    that are counted there."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    checkpoint_size, appends = checkpoint.SIZE, checkpoint.APPENDS
    checkpoint.SIZE, checkpoint.APPENDS = 1000, 0
    try:
        place = Place(folder, lambda path: open_watched(path, kind))
        for said in (ONE, TWO, THREE):
            place.run(said)
        seen = Seen()
        _watch_mutations(place, seen)
        for blow in blows:
            _run_struck(place, blow, seen)
        seen.faults += _go_on(place)
        return seen
    finally:
        checkpoint.SIZE, checkpoint.APPENDS = checkpoint_size, appends


def _run_struck(place: Place, blow: Blow, seen: Seen) -> None:
    where, count = place.reopen(), 0
    seen.requests = []

    def strike(moment: str, request: str, key: str) -> None:
        nonlocal count
        if moment == "before":
            count += 1
            seen.requests.append(f"{request} {key}")
        if count != blow.number:
            return
        match blow.way, moment:
            case ("before", "before") | ("after", "after"):
                raise Killed(f"{moment} request {count}: {request} {key}")
            case ("refused", "before") | ("lost", "after"):
                raise StorageError(f"{blow.way}: {request} {key}")

    _arm(place, strike)
    with suppress(Killed, KafkaformError):
        apply(where, FOUR)
    where.backend.held = False


def _arm(place: Place, strike: Any) -> None:
    sink: Any = place.house.sink
    if isinstance(sink, ObjectSink):
        cast(Any, sink.objects).strike = strike
        return
    objects = sink.sealed
    objects.strike = strike

    class Armed(WatchedLocalSink):
        @property
        def sealed(self) -> Any:
            return objects

    place.house.sink = cast(Any, Armed(sink.path))


def _watch_mutations(place: Place, seen: Seen) -> None:
    """NL1: each change of the cluster has an intent that is durable and open."""

    def check(name: str, before: SimulatedTopic | None, after: SimulatedTopic | None) -> None:
        index = read_index(open_watched(place.folder, _kind_of(place)), None, whole=True)
        if name not in {record.body["key"] for record in index.open_intents}:
            seen.faults.append(f"NL1: {name} was changed without an open intent")

    place.house.cluster.on_own = check


def _kind_of(place: Place) -> str:
    return "remote" if isinstance(place.sink, ObjectSink) else "local"


def _go_on(place: Place) -> Iterator[str]:
    """What does not hold after the next apply."""
    yield from _find_faults(place, "after the blow")
    applied = apply(place.reopen(), FOUR)
    if applied.report is not None and not applied.report.complete:
        yield "the next apply was not complete"
    yield from _find_faults(place, "after the next apply")
    if place.house.cluster.topics["a"].partitions != 4:
        yield "NL2: the topic is not as declared"
    if read_index(place.sink, place.anchor).open_intents:
        yield "NL3: an intent is still open"
    before = len(place.records())
    apply(place.reopen(), FOUR)
    if len(place.records()) != before:
        yield "the apply after that wrote again"


def _find_faults(place: Place, moment: str) -> Iterator[str]:
    verdict = verify_log(place.sink.lines(), place.anchor)
    if not verdict.ok:
        yield f"NL4: {moment}: {verdict}"
        return
    whole = read_index(place.sink, place.anchor, whole=True)
    if replace(place.read(), growth=Growth()) != replace(whole, growth=Growth()):
        yield f"NL5: {moment}: the checkpoint does not say what the log says"
    yield from (f"{moment}: {problem}" for problem in check_checkpoints(place.sink).problems)
    for record in whole.open_intents:
        if get_run(record) not in whole.runs:
            yield f"{moment}: the run of an open intent is not known"
