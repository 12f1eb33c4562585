"""The lock file is removed under a run (`git clean -xfd`), and another run begins: at each moment
of a run, one of the two goes on, the other one ends with exit code 7, and nothing is broken."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from kafkaform.audit.records import RecordKind
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.errors import Locked
from kafkaform.core.resource import Desired
from kafkaform.core.value import FrozenMap
from kafkaform.state.backends.local import LocalBackend
from kafkaform.state.model import Held
from kafkaform.workflow.workspace import open_journal

from ...kit.promises import LOG
from ...kit.simulated.engine import House
from .scene import FIRST, SECOND, Ended, applied, house, lived, world

Moment = tuple[str, int]
"""before or after which call of what, and the how manieth."""


@dataclass
class Second:
    """Another run, which begins at one moment of the first, once its lock file is gone. seen: the
    moments of the first run; ended: how the second one did; behind: records of the log then."""

    where: House
    folder: Path
    at: Moment | None = None
    seen: list[str] = field(default_factory=list)
    ended: list[Ended] = field(default_factory=list)
    behind: int = 0
    busy: bool = False

    def reached(self, what: str) -> None:
        if self.busy:
            return
        self.seen.append(what)
        if self.at == (what, self.seen.count(what)):
            self.busy = True
            shutil.rmtree(self.folder / ".kafkaform")
            beside = house(self.folder, self.where.cluster)
            self.ended.append(applied(beside, SECOND))
            self.behind = len(list(beside.sink.lines()))
            self.busy = False


@contextmanager
def watched(second: Second) -> Iterator[None]:
    """Every append, every save and every request tells when it begins and when it has ended."""
    with pytest.MonkeyPatch.context() as patch:
        for kind, name in ((LocalSink, "append"), (LocalBackend, "save")):
            patch.setattr(kind, name, _telling(getattr(kind, name), name, second))
        commit = type(second.where.cluster).commit
        patch.setattr(
            type(second.where.cluster), "commit", _telling(commit, "send", second, before=False)
        )
        yield


def _telling(real: Any, name: str, second: Second, *, before: bool = True) -> Any:
    """A request is only interrupted when it has arrived: one that is still under way lands within
    its timeout, which recovery waits for."""

    def call(*given: Any, **more: Any) -> Any:
        if before:
            second.reached(f"before {name}")
        answer = real(*given, **more)
        second.reached(f"after {name}")
        return answer

    return call


def moments(folder: Path, said: Desired) -> list[Moment]:
    """All moments of a run of this configuration."""
    where = lived(folder, [FIRST])
    second = Second(where, folder)
    with watched(second):
        assert applied(where, said).code == 0
    return [
        (what, second.seen[: number + 1].count(what)) for number, what in enumerate(second.seen)
    ]


@pytest.mark.slow("begins a second run at each write of another")
def test_two_runs_after_the_lock_file_was_removed(tmp_path: Path) -> None:
    """At every append, save and request of a run: the second run succeeds, the first one writes
    nothing from then on and ends with 7, the log verifies with the state's anchor in it, and a
    third run finds everything as it was wanted."""
    (tmp_path / "whole").mkdir()
    every = moments(tmp_path / "whole", SECOND)
    wanted = world(done(tmp_path / "wanted").cluster)
    assert len({what for what, _ in every}) == 5 and len(every) > 25
    for number, at in enumerate(every):
        folder = tmp_path / str(number)
        folder.mkdir()
        where = lived(folder, [FIRST])
        second = Second(where, folder, at)
        with watched(second):
            first = applied(where, SECOND)
        assert [ended.code for ended in second.ended] == [0], (at, second.ended)
        last = at == every[-1]
        assert first.code == (0 if last else 7), (at, first)
        where.check_log()
        if at[0] != "before append":  # that one passed its check of the lock in the same moment
            assert len(list(where.sink.lines())) == second.behind, at
        assert applied(where, SECOND).code == 0, at
        assert alike(world(where.cluster), wanted), at
        where.check_log()
        assert not where.index.open_intents and not where.index.unsaved


def done(folder: Path) -> House:
    folder.mkdir()
    return lived(folder, [FIRST, SECOND])


def alike(one: Any, other: Any) -> bool:
    """The same objects with the same attributes; their ids are drawn anew each time."""
    return {n: t.attributes for n, t in one.items()} == {n: t.attributes for n, t in other.items()}


def test_the_log_is_removed_too(tmp_path: Path) -> None:
    """State, log and lock are gone under a run: it writes nothing more, and makes no new log."""
    where = lived(tmp_path, [FIRST])
    (tmp_path / "sent").write_text("")
    commit = type(where.cluster).commit

    def send(cluster: Any, changes: Any) -> None:
        commit(cluster, changes)
        for path in tmp_path.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(where.cluster), "commit", send)
        ended = applied(where, SECOND)
    assert ended.code == 7 and "lock file" in ended.said
    assert not list(tmp_path.iterdir())


def test_a_run_goes_on_with_what_it_has_read(tmp_path: Path) -> None:
    """A record that comes between the reading of a log and its opening is not passed over."""
    where = lived(tmp_path, [FIRST])
    found, state, sink = where.index, where.state, LocalSink(tmp_path / LOG)
    opened = open_journal(sink, where.clock, "run-1", state, found, Held())
    opened.write(RecordKind.STATE, FrozenMap(reason="state mv", objects=()))
    with pytest.raises(Locked, match="another run has written"):
        open_journal(LocalSink(tmp_path / LOG), where.clock, "run-2", state, found, Held())


@pytest.mark.parametrize("how", ["longer", "another", "shorter", "gone"])
def test_a_log_that_is_not_what_it_was(tmp_path: Path, how: str) -> None:
    """An append goes behind the line that it follows and nowhere else: not behind one that came
    since, not into another file of that name, and not into a new one."""
    log = tmp_path / LOG
    sink, other = LocalSink(log), LocalSink(log)
    sink.append([b"one", b"two"])
    assert sink.claim() == b"two"
    {
        "longer": lambda: other.append([b"three"]),
        "another": lambda: (shutil.copy(log, tmp_path / "x"), (tmp_path / "x").replace(log)),
        "shorter": lambda: log.write_bytes(b"one\n"),
        "gone": log.unlink,
    }[how]()
    before = log.read_bytes() if log.exists() else None
    for _ in range(2):
        with pytest.raises(Exception, match="another run has written|does not exist"):
            sink.append([b"three"])
    assert (log.read_bytes() if log.exists() else None) == before


def test_an_append_that_is_under_way_is_not_torn(tmp_path: Path) -> None:
    """Half a line that somebody is still writing is neither cut off nor written behind."""
    log = tmp_path / LOG
    sink, other = LocalSink(log), LocalSink(log)
    sink.append([b"one"])
    assert other.claim() == b"one"
    with sink._open_alone():
        with log.open("ab") as file:
            file.write(b"tw")
        with pytest.raises(Locked, match="another run has written"):
            other.set_aside(2)
        with pytest.raises(Locked, match="another run has written"):
            other.append([b"2"])
        assert log.read_bytes() == b"one\ntw"
