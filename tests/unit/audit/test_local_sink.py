"""The local log file: durable lines, torn ends kept and told of, clear refusals."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from kafkaform.audit.records import RecordKind, decode, verify_log
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.errors import StorageError
from kafkaform.core.value import FrozenMap

from ...kit import audit_story as story

BODY = FrozenMap(n=1)


@pytest.fixture
def sink(tmp_path: Path) -> LocalSink:
    return LocalSink(tmp_path / "kafkaform.audit.jsonl")


def test_append_and_read(sink: LocalSink) -> None:
    """Lines come back in order; the file is private; a missing log is empty."""
    assert list(sink.lines()) == []
    assert sink.last() is None
    sink.append([b"one", b"two"])
    sink.append([b"three"])
    assert list(sink.lines()) == [b"one", b"two", b"three"]
    assert sink.last() == b"three"
    assert sink.path.stat().st_mode & 0o777 == 0o600


def test_last_line_longer_than_any_buffer(sink: LocalSink) -> None:
    """The last line is found from the end, however long it is."""
    sink.append([b"first", b"x" * 300_000])
    assert sink.last() == b"x" * 300_000


@pytest.mark.parametrize(
    "rest", [0, *(pytest.param(n, marks=pytest.mark.slow("hundreds of logs")) for n in (1, 2, 3))]
)
def test_log_cut_at_every_byte_goes_on(tmp_path: Path, rest: int) -> None:
    """A crash at any byte of an append: whole records stay, the rest is kept aside and sealed,
    and the log verifies against every head that was durable."""
    whole = story.written(tmp_path / "whole.jsonl")
    start = whole.rfind(b"\n", 0, whole.rfind(b"\n")) + 1
    before = verify_log(whole[:start].splitlines()).head
    for length in range(start + rest, len(whole), 4):
        folder = tmp_path / str(length)
        folder.mkdir()
        sink = LocalSink(folder / "log.jsonl")
        sink.path.write_bytes(whole[:length])
        assert len(list(sink.lines())) == before.seq
        story.journal(sink, "next").write(RecordKind.STATE, BODY)
        assert verify_log(sink.lines(), before).ok
        torn = whole[start:length]
        records = story.records_of(sink)[before.seq :]
        assert [r.kind for r in records] == (["recover", "state"] if torn else ["state"])
        if torn:
            [piece] = records[0].body["torn"]
            kept = folder / ".kafkaform" / piece["file"]
            assert kept.read_bytes() == torn
            assert piece["sha256"] == hashlib.sha256(torn).hexdigest()
            assert piece["length"] == len(torn)


def test_crash_while_sealing(sink: LocalSink) -> None:
    """Whatever step of the sealing is cut short, the next run tells of every torn piece."""
    story.journal(sink, "r").write(RecordKind.STATE, BODY)
    sound = sink.path.read_bytes()
    sink.path.write_bytes(sound + b'{"torn":1')
    assert [t.length for t in sink.set_aside(2)] == [9]  # kept and cut, the seal never written
    assert sink.path.read_bytes() == sound
    with sink.path.open("ab") as file:
        file.write(b'{"seal":')  # the seal's own append was cut short
    story.journal(sink, "r2").write(RecordKind.STATE, BODY)
    seal = story.records_of(sink)[1]
    assert [(p["file"], p["length"]) for p in seal.body["torn"]] == [("torn-2", 9), ("torn-2.1", 8)]
    story.journal(sink, "r3").write(RecordKind.STATE, BODY)
    assert [r.kind for r in story.records_of(sink)] == ["state", "recover", "state", "state"]


def test_crash_between_keeping_and_cutting(sink: LocalSink) -> None:
    """A piece that was kept but not cut yet is told of once."""
    story.journal(sink, "r").write(RecordKind.STATE, BODY)
    with sink.path.open("ab") as file:
        file.write(b"torn")
    folder = sink.path.parent / ".kafkaform"
    folder.mkdir()
    (folder / "torn-2").write_bytes(b"torn")
    assert [piece.file for piece in sink.set_aside(2)] == ["torn-2"]


def test_reading_never_mends(sink: LocalSink) -> None:
    """A reader leaves a torn end as it is."""
    sink.append([b"whole"])
    with sink.path.open("ab") as file:
        file.write(b"tor")
    assert list(sink.lines()) == [b"whole"]
    assert sink.last() == b"whole"
    assert sink.path.read_bytes() == b"whole\ntor"


def test_symbolic_links_and_pipes_are_refused(sink: LocalSink, tmp_path: Path) -> None:
    """A log that is a link or a pipe is neither read nor written."""
    target = tmp_path / "elsewhere"
    target.write_bytes(b"precious\n")
    sink.path.symlink_to(target)
    for action in (lambda: list(sink.lines()), sink.last, sink.check_writable):
        with pytest.raises(StorageError, match="symbolic link"):
            action()
    with pytest.raises(StorageError, match="symbolic link"):
        sink.append([b"x"])
    assert target.read_bytes() == b"precious\n"
    sink.path.unlink()
    os.mkfifo(sink.path)
    with pytest.raises(StorageError, match="not a regular file"):
        list(sink.lines())


FULL = """
import resource, sys
from pathlib import Path
from kafkaform.audit.records import RecordKind
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.errors import StorageError
from kafkaform.core.value import FrozenMap
from tests.kit import audit_story as story
sink = LocalSink(Path(sys.argv[1]))
log = story.journal(sink, "r")
log.write(RecordKind.STATE, FrozenMap(n=1))
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, resource.RLIM_INFINITY))
try:
    sink.check_writable(2000)
except StorageError as error:
    print("check:", error.message)
for _ in range(2):
    try:
        log.write_all([(RecordKind.STATE, FrozenMap(n=2))] * 9)
    except StorageError as error:
        print("write:", error.message)
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
print("head:", log.head.seq)
"""


def test_full_disk(sink: LocalSink) -> None:
    """A failed append is refused with file and reason, and so is every later one of that run,
    even when there is room again; the next run seals what was torn and goes on."""
    command = [sys.executable, "-c", FULL, str(sink.path)]
    out = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout
    lines = out.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["check", "write", "write", "head"]
    assert all("size limit" in line and str(sink.path) in line for line in lines[:3])
    assert lines[3] == "head: 1"
    story.journal(sink, "next").write(RecordKind.STATE, BODY)
    assert verify_log(sink.lines()).ok
    assert story.records_of(sink)[-2].kind == "recover"


@pytest.mark.parametrize("place", ["/proc/log.jsonl", "file/log.jsonl"])
def test_unwritable_folder(tmp_path: Path, place: str) -> None:
    """A folder that takes no files is refused by the check and by the append."""
    (tmp_path / "file").write_text("not a folder")
    sink = LocalSink(tmp_path / place)
    with pytest.raises(StorageError) as caught:
        sink.check_writable()
    assert caught.value.advice
    with pytest.raises(StorageError):
        sink.append([b"x"])


def test_check_leaves_nothing_behind(sink: LocalSink) -> None:
    """The check makes no log and leaves no file."""
    sink.check_writable()
    assert list(sink.path.parent.iterdir()) == []


def test_killed_writer_leaves_a_sound_log(sink: LocalSink) -> None:
    """A process that appends in a loop and is killed leaves a log that verifies and goes on."""
    code = (
        "import sys\nfrom pathlib import Path\nfrom kafkaform.audit.sinks.local import LocalSink\n"
        "from kafkaform.core.value import FrozenMap\nfrom tests.kit import audit_story as story\n"
        "log = story.journal(LocalSink(Path(sys.argv[1])), 'r')\n"
        "while True:\n    log.write_all([('state', FrozenMap(n='x' * 5000))] * 20)\n"
        "    print(log.head.seq, flush=True)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code, str(sink.path)], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    durable = int([process.stdout.readline() for _ in range(5)][-1])
    process.kill()
    process.communicate()
    assert verify_log(sink.lines()).records >= durable
    record = story.journal(sink, "next").write(RecordKind.STATE, BODY)
    assert decode(sink.last() or b"") == record
    assert verify_log(sink.lines()).ok
