"""Houses whose log is in a file or in a store, as they are in the world."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from kafkaform.audit.checkpoint import read_index
from kafkaform.audit.index import LogIndex
from kafkaform.audit.records import Record, decode, read_line
from kafkaform.audit.sink import Sink
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.audit.sinks.objects import ObjectSink
from kafkaform.core.head import Head
from kafkaform.core.objects import Entry, Folder, Objects, StoredObject
from kafkaform.core.resource import Desired
from kafkaform.plan.model import Options

from .engine import House, apply, house


class CountedObjects:
    """Objects that count their requests, and ask before and after each of them.

    strike: called with the moment (`before`, `after`), the request and the key.
    """

    def __init__(self, objects: Objects) -> None:
        self.objects, self.requests = objects, Counter[str]()
        self.strike: Callable[[str, str, str], None] = lambda moment, request, key: None

    @property
    def location(self) -> str:
        return self.objects.location

    def _ask(self, request: str, key: str, *rest: Any) -> Any:
        self.requests[request] += 1
        self.strike("before", request, key)
        answer = getattr(self.objects, request)(key, *rest)
        self.strike("after", request, key)
        return answer

    def read(self, key: str) -> StoredObject | None:
        return cast(StoredObject | None, self._ask("read", key))

    def create(self, key: str, data: bytes) -> str:
        return str(self._ask("create", key, data))

    def replace(self, key: str, data: bytes, version: str) -> str:
        return str(self._ask("replace", key, data, version))

    def names(self, prefix: str, after: str | None = None) -> tuple[Entry, ...]:
        return cast(tuple[Entry, ...], self._ask("names", prefix, after))

    def delete(self, key: str) -> None:
        self._ask("delete", key)


def open_local(folder: Path) -> LocalSink:
    """The log of a folder, as a new process opens it."""
    return LocalSink(folder / "kafkaform.audit.jsonl")


def open_remote(folder: Path) -> ObjectSink:
    """The log of a store, as a new process opens it."""
    return ObjectSink(CountedObjects(Folder(folder / "store")))


OPENED: dict[str, Callable[[Path], Sink]] = {"local": open_local, "remote": open_remote}


def make_house(sink: Sink) -> House:
    """A new cluster whose log is in this sink."""
    where = house()
    where.sink = cast(Any, sink)
    return where


class Place:
    """A house with a log that each process opens anew. Everything is below one folder."""

    def __init__(self, folder: Path, opened: Callable[[Path], Sink]) -> None:
        self.folder, self.opened = folder, opened
        self.house = make_house(opened(folder))

    def run(self, said: Desired) -> None:
        self.reopen()
        self.house.clock.sleep(60)
        assert apply(self.house, said, Options(max_deletes=9)).report is not None

    def reopen(self) -> House:
        self.house.sink = cast(Any, self.opened(self.folder))
        return self.house

    @property
    def checkpoints(self) -> Path:
        """The folder of the checkpoints."""
        sealed = self.sink.sealed
        assert sealed is not None
        return self.folder / sealed.location / "checkpoints"

    @property
    def sink(self) -> Sink:
        return cast(Sink, self.reopen().sink)

    @property
    def anchor(self) -> Head:
        anchor = self.house.state.audit_head
        assert anchor is not None
        return anchor

    def read(self) -> LogIndex:
        return read_index(self.sink, self.anchor)

    def records(self) -> list[Record]:
        return [decode(read_line(line)) for line in self.sink.lines()]
