"""State and log that were damaged, edited, moved on or deleted: refused, with a way back."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest
from msgspec import Struct

from kafkaform.audit.journal import Journal, make_state_edit_body
from kafkaform.audit.records import RecordKind
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.head import Head
from kafkaform.core.resource import Desired
from kafkaform.state.backends.local import LocalBackend
from kafkaform.state.codec import decode, encode
from kafkaform.state.model import count_change, drop_address, set_head
from kafkaform.workflow.state_transfer import compare_rows

from ...kit.promises import LOG, STATE, Before
from ...kit.simulated import engine
from ...kit.simulated.engine import House
from .scene import FIRST, SECOND, Ended, applied, lived, unrecovered, world

FLIPS = 60
"""Damaged states of which each is offered to an apply; the codec's own tests walk every byte."""


@pytest.fixture
def where(tmp_path: Path) -> House:
    """Two runs were applied whole."""
    return lived(tmp_path, [FIRST, SECOND])


def refused(where: House, folder: Path, code: int = 9, said: Desired = SECOND) -> str:
    """An apply ends with this code, sends nothing and changes nothing; what it said."""
    before, live = contents_of(folder), world(where.cluster)
    ended = applied(where, said)
    assert ended.code == code, ended
    assert (contents_of(folder), world(where.cluster)) == (before, live)
    return ended.said


def contents_of(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in (STATE, LOG) if (folder / name).exists()}


def damaged(data: bytes, random: Random) -> Iterator[bytes]:
    """Cut off, flipped, zeroed at the end: some of each."""
    for _ in range(FLIPS):
        place = random.randrange(len(data))
        yield random.choice(
            (
                data[:place],
                data[:place].ljust(len(data), b"\0"),
                data[:place]
                + bytes([data[place] ^ (1 << random.randrange(8))])
                + data[place + 1 :],
            )
        )


def test_a_damaged_state_names_the_way_back(where: House, tmp_path: Path) -> None:
    """Wherever the state is cut or a bit of it flipped, apply refuses it and gives the command
    that puts the newest sound version in its place; after that the log supplies the rest."""
    state = tmp_path / STATE
    whole = state.read_bytes()
    before = Before.of(tmp_path, world(where.cluster))
    backend = LocalBackend(state)
    for data in damaged(whole, Random(3)):
        if data != whole:
            state.write_bytes(data)
            with pytest.raises(Exception, match="cannot be used") as caught:
                backend.load()
            assert "cp " in caught.value.advice  # type: ignore[attr-defined]
    said = refused(where, tmp_path)
    command = re.search(r"`(cp [^`]+)`", said)
    assert command is not None
    source = Path(shlex.split(command[1])[1])
    assert decode(whole, "s").serial - decode(source.read_bytes(), "b").serial in (0, 1)
    subprocess.run(command[1], shell=True, check=True, timeout=120)
    assert unrecovered(where, tmp_path, SECOND, before, world(where.cluster)) == []
    assert decode(state.read_bytes(), "s").objects == decode(whole, "s").objects


def test_the_newest_backup_is_damaged_too(where: House, tmp_path: Path) -> None:
    """Then the one before it is named, and it is as good: the log goes further back."""
    state = tmp_path / STATE
    whole = state.read_bytes()
    before = Before.of(tmp_path, world(where.cluster))
    backups = sorted((tmp_path / ".kafkaform" / "backups").iterdir())
    state.write_bytes(whole[:-9])
    backups[-1].unlink()
    backups[-1].write_bytes(whole[:-9])
    said = refused(where, tmp_path)
    assert str(backups[-2]) in said
    shutil.copy(backups[-2], state)
    assert unrecovered(where, tmp_path, SECOND, before, world(where.cluster)) == []
    assert decode(state.read_bytes(), "s").objects == decode(whole, "s").objects


def test_no_backup_is_left(where: House, tmp_path: Path) -> None:
    """Then the advice is to move the state away, and the log alone makes it anew."""
    state = tmp_path / STATE
    whole = state.read_bytes()
    shutil.rmtree(tmp_path / ".kafkaform" / "backups")
    state.write_bytes(b"")
    said = refused(where, tmp_path)
    assert "move the file away" in said
    _rebuilt(where, tmp_path, whole)


def test_the_state_is_deleted(where: House, tmp_path: Path) -> None:
    """The log makes up for it: every object is managed as before, and nothing is sent."""
    _rebuilt(where, tmp_path, (tmp_path / STATE).read_bytes())


def _rebuilt(where: House, folder: Path, whole: bytes) -> None:
    (folder / STATE).unlink()
    before = Before.of(folder, world(where.cluster))
    requests = dict(where.cluster.requests)
    assert unrecovered(where, folder, SECOND, before, before.world) == []
    assert decode((folder / STATE).read_bytes(), "s").objects == decode(whole, "s").objects
    for api in ("CreateTopics", "CreatePartitions", "IncrementalAlterConfigs", "DeleteTopics"):
        assert where.cluster.requests[api] == requests.get(api, 0)


def test_the_state_is_deleted_after_it_was_edited(where: House, tmp_path: Path) -> None:
    """What somebody had let go is not ours again: the log says so, and the state is made without
    it, in every plan too."""
    _let_go(where, tmp_path, "kafka_topic.d")
    state, live = tmp_path / STATE, world(where.cluster)
    whole = decode(state.read_bytes(), "s")
    state.unlink()
    assert [c.address for c in engine.plan(where, SECOND).changes if c.blocked] == ["kafka_topic.d"]
    assert applied(where, SECOND).code == 0
    assert decode(state.read_bytes(), "s").objects == whole.objects
    assert world(where.cluster) == live


def test_an_edit_is_logged_and_not_saved(where: House, tmp_path: Path) -> None:
    """A process ends between the record of an edit and the state that follows from it: the next
    apply repeats the edit, and once only."""
    state = tmp_path / STATE
    before = state.read_bytes()
    _let_go(where, tmp_path, "kafka_topic.d")
    after = decode(state.read_bytes(), "s").objects
    state.write_bytes(before)
    for repeated in ([1], []):
        assert applied(where, SECOND).code == 0
        assert decode(state.read_bytes(), "s").objects == after
        assert [found.edits for found in where.screen.recoveries] == repeated


def _let_go(where: House, folder: Path, address: str) -> None:
    """`state rm`, as far as the files are concerned."""
    backend = LocalBackend(folder / STATE)
    loaded = backend.load()
    assert loaded.state is not None
    journal = Journal(LocalSink(folder / LOG), where.clock, "edit", "ada", loaded.state.lineage)
    after = drop_address(loaded.state, address)
    rows = compare_rows(loaded.state, after)
    record = journal.write(
        RecordKind.STATE, make_state_edit_body(9, loaded.version or "", "state rm", rows)
    )
    anchored = set_head(after, Head(record.seq, record.hash))
    backend.save(count_change(loaded.state, anchored), loaded.version)


def test_the_log_is_deleted(where: House, tmp_path: Path) -> None:
    """Without the log nobody knows what was left open: plan and apply refuse, and say how to
    begin anew; that way works and touches nothing."""
    live = world(where.cluster)
    for gone in (lambda log: log.write_bytes(b""), lambda log: log.unlink()):
        gone(tmp_path / LOG)
        said = refused(where, tmp_path)
        assert "is gone" in said and "--adopt" in said
        with pytest.raises(Exception, match="is gone"):
            engine.plan(where, SECOND)
    (tmp_path / STATE).unlink()
    again = engine.desired(*SECOND.declared)
    done = engine.apply(where, again, engine.Options(adopt=("*",)))
    assert done.report is None or done.report.complete
    assert world(where.cluster) == live
    assert len(decode((tmp_path / STATE).read_bytes(), "s").objects) == 3


def test_a_row_is_edited_by_hand(where: House, tmp_path: Path) -> None:
    """A row that is changed, added or taken out makes the checksum wrong: refused."""
    state = tmp_path / STATE
    lines = state.read_bytes().splitlines(keepends=True)
    rows = [n for n, line in enumerate(lines) if line.startswith(b'{"attributes"')]
    assert len(rows) == 3
    for number in rows:
        for edited in (b"", lines[number] * 2, lines[number].replace(b'"no"', b'"default"')):
            state.write_bytes(b"".join([*lines[:number], edited, *lines[number + 1 :]]))
            if state.read_bytes() != b"".join(lines):
                assert "cannot be used" in refused(where, tmp_path)


def test_a_newer_format(where: House, tmp_path: Path) -> None:
    """A state of a newer kafkaform is left as it is, and no backup is offered for it."""
    (tmp_path / STATE).write_bytes(b'{"format": 3, "kafkaform_version": "9.1", "new": 1}\n')
    said = refused(where, tmp_path)
    assert "written by kafkaform 9.1" in said and "Nothing was changed" in said
    assert "cp " not in said


def test_the_state_is_moved_on_while_applying(tmp_path: Path) -> None:
    """Somebody saves another state between our reading and our saving: exit code 7, theirs stays,
    and the next apply lays our outcomes over it."""
    other = tmp_path / "other"
    other.mkdir()
    wanted = world(lived(other, [FIRST, SECOND]).cluster)
    shutil.rmtree(other)
    where = lived(tmp_path, [FIRST])
    state, before = tmp_path / STATE, Before.of(tmp_path, world(where.cluster))
    base = decode(state.read_bytes(), "s")
    theirs = encode(type(base)(**{**_members(base), "serial": base.serial + 1}))
    ended: list[Ended] = []
    with pytest.MonkeyPatch.context() as patch:
        sends = type(where.cluster).commit

        def sending(cluster: object, changes: object) -> None:
            sends(cluster, changes)  # type: ignore[arg-type]
            state.write_bytes(theirs)

        patch.setattr(type(where.cluster), "commit", sending)
        ended.append(applied(where, SECOND))
    assert ended[0].code == 7, ended
    assert "somebody else has changed the state" in ended[0].said
    assert state.read_bytes() == theirs
    assert unrecovered(where, tmp_path, SECOND, before, wanted) == []
    objects = decode(state.read_bytes(), "s").objects
    assert {identity.key for identity in objects} == {"a", "b", "d"}


def _members(state: Struct) -> dict[str, object]:
    return {name: getattr(state, name) for name in state.__struct_fields__}


def test_each_save_is_one_serial_further(where: House, tmp_path: Path) -> None:
    """Versions that were kept follow one another without a gap, under one lineage; one that has
    nothing new but its place in the log keeps its serial."""
    kept = (tmp_path / ".kafkaform" / "backups").iterdir()
    states = [decode(path.read_bytes(), path.name) for path in (*kept, tmp_path / STATE)]
    serials = sorted({state.serial for state in states})
    assert serials == list(range(serials[0], serials[0] + len(serials)))
    assert len({state.lineage for state in states}) == 1
    assert len(states) > 4


def test_a_folder_that_cannot_be_written(where: House, tmp_path: Path) -> None:
    """A real one: what stands in the way of the folder for backups is a file."""
    shutil.rmtree(tmp_path / ".kafkaform" / "backups")
    (tmp_path / ".kafkaform" / "backups").write_text("")
    said = refused(where, tmp_path)
    assert "nothing is sent" in said
