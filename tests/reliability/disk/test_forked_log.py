"""A log that two runs have written to at the same time: refused, and mended without a loss.

Such logs are made here as they were made before runs looked after their lock file: the checks
that keep a second run out are taken away."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from kafkaform.audit.records import (
    Record,
    decode,
    encode,
    read_line,
    render_time,
    seal_record,
    verify_log,
)
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.cli.app import run_command_line
from kafkaform.core.errors import StorageError
from kafkaform.core.value import FrozenMap
from kafkaform.state.backends.local import FileLease, LocalBackend
from kafkaform.workflow.audit_log import mend_log
from kafkaform.workflow.stores import Store

from ...kit.promises import LOG, STATE
from ...kit.simulated.engine import House
from .scene import FIRST, SECOND, applied, lived, world
from .test_removed_lock import Moment, Second, alike, done, moments, watched


@contextmanager
def unguarded() -> Iterator[None]:
    """Appends go behind whatever stands there, and a lock file that is gone counts as held."""

    def append(sink: LocalSink, data: bytes) -> None:
        descriptor = os.open(sink.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, data)
        os.close(descriptor)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(LocalSink, "_append", append)
        patch.setattr(FileLease, "ensure", lambda lease, seconds: None)
        yield


def store(folder: Path) -> Store:
    return Store(folder, LocalBackend(folder / STATE), LocalSink(folder / LOG))


def records(data: bytes) -> list[Record]:
    return [decode(line) for line in data.splitlines()]


def _at(folder: Path, at: Moment) -> House:
    """Both runs went on after this moment, as far as they came."""
    where = lived(folder, [FIRST])
    with unguarded(), watched(Second(where, folder, at)):
        applied(where, SECOND)
    return where


@pytest.mark.slow("begins a second run at each write of another")
def test_no_fork_loses_anything(tmp_path: Path) -> None:
    """At each append, save and request of a run a second one begins, and both write. Every log that
    breaks is refused with the way out; mended, it has all records of both runs, the copy has every
    byte, and after an apply nothing is open, nothing is lost, and all is as it was wanted."""
    (tmp_path / "whole").mkdir()
    wanted, forks = world(done(tmp_path / "wanted").cluster), 0
    for number, at in enumerate(moments(tmp_path / "whole", SECOND)):
        folder = tmp_path / str(number)
        folder.mkdir()
        where = _at(folder, at)
        data = (folder / LOG).read_bytes()
        if verify_log(data.splitlines()).ok:
            continue
        forks += 1
        refused = applied(where, SECOND)
        assert refused.code == 9 and "kafkaform audit mend" in refused.said, (at, refused)
        assert (folder / LOG).read_bytes() == data
        found = mend_log(store(folder), where.clock, 0)
        assert found is not None and found.records
        assert (folder / ".kafkaform" / found.copy).read_bytes() == data
        _check_whole(records(data), list(found.records), LocalSink(folder / LOG))
        where.check_log()
        assert applied(where, SECOND).code == 0, at
        where.check_log()
        index = where.index
        assert (index.open_intents, index.unsaved, index.obligations) == ((), (), ())
        assert alike(world(where.cluster), wanted), at
        assert {i.key for i in where.state.objects} == {"a", "b", "d"}, at
        assert mend_log(store(folder), where.clock, 0) is None
    assert forks > 10


def _check_whole(before: list[Record], others: list[Record], sink: LocalSink) -> None:
    """One branch byte for byte, then the record that tells of it, then plans of that branch once
    more, then the others with what they said and what they were."""
    after = [decode(read_line(line)) for line in sink.lines()]
    gone = {record.hash for record in others}
    stays = [record for record in before if record.hash not in gone]
    assert after[: len(stays)] == stays
    told, *joined = after[len(stays) :]
    assert told.body["records"] == len(others) and told.kind == "recover"
    again = len(joined) - len(others)
    known = {record.hash for record in stays if record.kind == "plan"}
    assert all(record.body["forked"]["hash"] in known for record in joined[:again])
    for old, new in zip(others, joined[again:], strict=True):
        assert (new.kind, new.run, new.actor) == (old.kind, old.run, old.actor)
        was = new.body["forked"]
        assert (was["seq"], was["time"], was["hash"]) == (old.seq, old.time, old.hash)
        rest = new.body.without(["forked", "discharges"])
        assert rest == old.body.without(["discharges"])


def test_the_commands(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`audit verify` names the way out, `audit mend` tells each record that it moved and where the
    copy is; a second time it finds nothing to do."""
    _at(tmp_path, ("after append", 2))
    monkeypatch.chdir(tmp_path)
    assert run_command_line(["audit", "verify"]) == 9
    told = capsys.readouterr().err.replace("│", " ")
    assert "kafkaform audit mend" in " ".join(told.split())
    assert run_command_line(["audit", "mend"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "outcome kafka_topic" in said and "kept in .kafkaform/forked-" in said
    assert run_command_line(["audit", "verify"]) == 0
    assert run_command_line(["audit", "mend"]) == 0
    assert "nothing to mend" in capsys.readouterr().out


def _changed(data: bytes) -> bytes:
    lines = data.splitlines(keepends=True)
    return b"".join([*lines[:3], lines[3].replace(b'"seq"', b'"qes"'), *lines[4:]])


def _without(number: int) -> Any:
    def damage(data: bytes) -> bytes:
        lines = data.splitlines(keepends=True)
        return b"".join(lines[:number] + lines[number + 1 :])

    return damage


DAMAGES = {
    "changed": _changed,
    "its beginning is gone": _without(0),
    "one is gone": _without(4),
    "its end is gone": lambda data: data[: data.rindex(b"\n", 0, -1) + 1],
    "one stands there twice": lambda data: data + data[data.rindex(b"\n", 0, -1) + 1 :],
}


@pytest.mark.parametrize("what", DAMAGES)
def test_what_is_no_fork_is_not_mended(tmp_path: Path, what: str) -> None:
    """A log that was changed or cut is refused, and left as it is."""
    where = lived(tmp_path, [FIRST, SECOND])
    log = tmp_path / LOG
    log.write_bytes(DAMAGES[what](log.read_bytes()))
    before = log.read_bytes()
    with pytest.raises(StorageError):
        mend_log(store(tmp_path), where.clock, 0)
    assert log.read_bytes() == before
    assert not list((tmp_path / ".kafkaform").glob("*forked*"))


def test_a_fork_is_no_torn_end(tmp_path: Path) -> None:
    """What the other run wrote last is whole, so it is never set aside as the rest of a crash."""
    where = lived(tmp_path, [FIRST])
    log, head = tmp_path / LOG, verify_log(where.sink.lines()).head
    body = FrozenMap(lineage=where.state.lineage, objects=(), reason="state rm")
    with log.open("ab") as file:
        for at in (1.0, 2.0):
            time = render_time(where.clock.now() + at)
            record = seal_record(
                head, time=time, run=f"run-{at}", actor="a", kind="state", body=body
            )
            file.write(encode(record) + b"\n")
    before = log.read_bytes()
    ended = applied(where, SECOND)
    assert ended.code == 9 and "audit mend" in ended.said
    assert log.read_bytes() == before and not list((tmp_path / ".kafkaform").glob("torn-*"))
