"""What every sink promises, asked of each: a file, a store in memory, an S3-like store."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kafkaform.audit.records import (
    LongLine,
    RecordKind,
    encode,
    parse_line_head,
    read_line,
    verify_log,
)
from kafkaform.audit.sink import Sink
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.audit.sinks.objects import ObjectSink
from kafkaform.core import progress
from kafkaform.core.errors import Locked, StorageError
from kafkaform.core.objects import Objects
from kafkaform.core.progress import Event, Message, report_slow_tasks
from kafkaform.core.value import FrozenMap
from kafkaform.state.backends.obstores import open_objects

from ...kit import audit_story as story
from ...kit.stores import s3
from ...kit.stores.clocks import Hasty, Set
from ...kit.stores.faults import PASSING, blind, instead

BODY = FrozenMap(n=1)
Open = Callable[[], Sink]
"""Another run's sink of the same log."""


def _memory(path: Path) -> Objects:
    return open_objects(f"memory://log{str(path).replace('/', '-')}", {}, Hasty())


def _s3(path: Path, address: str) -> Objects:
    more = {"timeout": "0.25"} if "faulty" in path.name else {}
    return open_objects(f"s3://bucket/{path.name}", s3.options(address, **more), Hasty())


KINDS: dict[str, Callable[[Path, str], Sink]] = {
    "local": lambda path, _: LocalSink(path / "kafkaform.audit.jsonl"),
    "memory": lambda path, _: ObjectSink(_memory(path)),
    "s3": lambda path, address: ObjectSink(_s3(path, address)),
}


@pytest.fixture(scope="module")
def server() -> Iterator[tuple[s3.Bucket, str]]:
    bucket = s3.Bucket()
    with s3.serving(bucket) as address:
        yield bucket, address


@pytest.fixture
def bucket(server: tuple[s3.Bucket, str], monkeypatch: pytest.MonkeyPatch) -> s3.Bucket:
    for name, value in s3.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    server[0].__init__()  # type: ignore[misc]  # the server keeps its bucket, emptied
    return server[0]


@pytest.fixture(params=KINDS)
def opened(
    request: pytest.FixtureRequest,
    tmp_path: Path,
    bucket: s3.Bucket,
    server: tuple[s3.Bucket, str],
) -> Open:
    return lambda: KINDS[request.param](tmp_path, server[1])


@pytest.fixture
def remote(tmp_path: Path, bucket: s3.Bucket, server: tuple[s3.Bucket, str]) -> ObjectSink:
    return ObjectSink(_s3(tmp_path, server[1]))


def key(first: int) -> str:
    return f"log/{first:020d}.jsonl"


# ── every sink ──────────────────────────────────────────────────────────────────────────


def test_append_and_read(opened: Open) -> None:
    """Lines come back in order, for the run that wrote them and for another one."""
    sink = opened()
    assert list(sink.lines()) == []
    assert sink.last() is None
    sink.check_writable()
    journal = story.journal(sink, "run")
    records = journal.write_all([(RecordKind.STATE, BODY)] * 2)
    records += journal.write_all([(RecordKind.STATE, FrozenMap(n=3))])
    for each in (sink, opened()):
        assert list(each.lines()) == [encode(record) for record in records]
        assert each.last() == encode(records[-1])


def test_a_log_is_read_from_a_record_on(opened: Open) -> None:
    """The lines after any record are the end of all lines, wherever an append began or ended."""
    for run in range(6):
        story.journal(opened(), f"run-{run}").write_all([(RecordKind.STATE, BODY)] * (run % 3 + 1))
    lines = list(opened().lines())
    assert len(lines) == 12
    for after in range(14):
        assert list(opened().lines(after)) == lines[after:], after


def test_the_end_of_a_log_costs_a_store_few_requests(remote: ObjectSink, bucket: s3.Bucket) -> None:
    """Of a long log, only the pieces with the last lines are fetched, side by side, after one look
    at the manifest and one listing; one more request tells that nothing follows."""
    for run in range(100):
        story.journal(remote, f"run-{run}").write_all([(RecordKind.STATE, BODY)] * 2)
    lines = list(remote.lines())
    bucket.requests.clear()
    meeting = threading.Barrier(16)

    def await_the_others(_: s3.Bucket, request: s3.Request) -> None:
        if request.key in bucket.objects:
            meeting.wait(5)

    bucket.always.append(await_the_others)
    after, end, _ = remote.tail(31)
    assert list(end) == lines[after:] == lines[-32:]
    assert bucket.requests == {"LIST": 1, "GET": 16 + 2}


def test_runs_go_on_from_each_other(opened: Open) -> None:
    """Journals of many runs, one after the other, make one chain that verifies."""
    for run in range(12):
        journal = story.journal(opened(), f"run-{run}")
        journal.write_all([(RecordKind.STATE, BODY)] * (run % 3 + 1))
        journal.write(RecordKind.STATE, BODY)
    verdict = verify_log(opened().lines())
    assert verdict.ok
    assert verdict.records == 36


def test_a_whole_log_has_nothing_torn(opened: Open) -> None:
    """A whole log has nothing to set aside."""
    sink = opened()
    story.journal(sink, "run").write(RecordKind.STATE, BODY)
    assert sink.set_aside(2) == ()
    assert len(list(sink.lines())) == 1


def test_a_long_line_is_not_held(opened: Open) -> None:
    """A record as large as a plan of everything is read piece by piece, and is wholly there."""
    large = FrozenMap(plan="x" * (3 << 20))
    journal = story.journal(opened(), "run")
    journal.write_all(
        [(RecordKind.STATE, BODY), (RecordKind.STATE, large), (RecordKind.STATE, BODY)]
    )
    lines = list(opened().lines())
    assert [isinstance(line, LongLine) for line in lines] == [False, True, False]
    assert len(read_line(lines[1])) > 3 << 20
    assert verify_log(opened().lines()).ok
    last = opened().last()
    assert last is not None
    assert parse_line_head(last, "log") == journal.head


# ── stores ──────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["memory", "s3"])
def test_another_runs_record_fences_this_one(
    tmp_path: Path, bucket: s3.Bucket, server: tuple[s3.Bucket, str], kind: str
) -> None:
    """A run that lost its lock cannot record an intent once its successor has recorded anything,
    and is refused ever after."""
    first, second = (KINDS[kind](tmp_path, server[1]) for _ in range(2))
    old, new = story.journal(first, "old"), story.journal(second, "new")
    old.write(RecordKind.STATE, BODY)
    with pytest.raises(Locked, match="another run has written to this log"):
        new.write(RecordKind.STATE, BODY)  # it had read the log before that record
    new = story.journal(KINDS[kind](tmp_path, server[1]), "new")
    new.write(RecordKind.STATE, BODY)
    for _ in range(2):
        with pytest.raises(Locked, match="another run has written to this log"):
            old.write(RecordKind.INTENT, BODY)
    new.write(RecordKind.STATE, BODY)
    assert [r.run for r in story.records_of(second)] == ["old", "new", "new"]


@pytest.mark.parametrize("name", PASSING)
def test_a_faulty_answer_to_an_append(
    remote: ObjectSink, bucket: s3.Bucket, server: tuple[s3.Bucket, str], name: str
) -> None:
    """After any single fault an append is there exactly once, and the run goes on."""
    sink = ObjectSink(open_objects("s3://bucket/f", s3.options(server[1], timeout="0.25"), Hasty()))
    journal = story.journal(sink, "run")
    for _ in range(3):
        bucket.next("PUT f/log/", PASSING[name])
        journal.write(RecordKind.STATE, BODY)
    assert not bucket.faults
    assert verify_log(sink.lines()).records == 3


def test_a_failed_append_is_the_last_one(remote: ObjectSink, bucket: s3.Bucket) -> None:
    """After an append whose fate is not known nothing more is written."""
    journal = story.journal(remote, "run")
    journal.write(RecordKind.STATE, BODY)
    bucket.always.append(instead(500, "InternalError"))
    with pytest.raises(StorageError, match="internal error"):
        journal.write(RecordKind.STATE, BODY)
    bucket.always.clear()
    with pytest.raises(StorageError, match="internal error"):
        journal.write(RecordKind.STATE, BODY)
    assert len(list(remote.lines())) == 1


def test_a_listing_that_lags_behind_hides_nothing(remote: ObjectSink, bucket: s3.Bucket) -> None:
    """What a listing leaves out, at its end or in its middle, is found by name."""
    journal = story.journal(remote, "run")
    for _ in range(5):
        journal.write_all([(RecordKind.STATE, BODY)] * 2)
    bucket.always.append(blind)
    assert verify_log(remote.lines()).records == 10
    assert story.journal(ObjectSink(remote.objects), "next").head.seq == 10
    bucket.always.clear()

    def holes(_: s3.Bucket, request: s3.Request) -> s3.Answer | None:
        if request.key:
            return None
        part = s3.Bucket()
        part.objects = {name: bucket.objects[name] for name in sorted(bucket.objects)[1:4:2]}
        return part.serve(request)

    bucket.always.append(holes)
    assert verify_log(remote.lines()).records == 10
    assert story.journal(ObjectSink(remote.objects), "next").head.seq == 10


def test_a_listing_of_many_pages(remote: ObjectSink, bucket: s3.Bucket) -> None:
    """A log of more objects than a page lists is read wholly and in order."""
    bucket.page = 4
    journal = story.journal(remote, "run")
    for _ in range(30):
        journal.write(RecordKind.STATE, BODY)
    assert verify_log(ObjectSink(remote.objects).lines()).records == 30
    assert story.journal(ObjectSink(remote.objects), "next").head.seq == 30


DAMAGES: dict[str, Callable[[dict[str, s3.Stored], str, str], object]] = {
    "it is missing": lambda stored, first, second: stored.pop(second),
    "does not end with a whole line": lambda stored, first, second: stored.update(
        {second: s3.Stored(stored[second].data[:-1], '"cut"', 0.0)}
    ),
    "overlaps the object before it": lambda stored, first, second: stored.update(
        {first: s3.Stored(stored[first].data * 3, '"more"', 0.0)}
    ),
}


@pytest.mark.parametrize("what", DAMAGES)
def test_a_damaged_log_is_refused(
    remote: ObjectSink, bucket: s3.Bucket, tmp_path: Path, what: str
) -> None:
    """An object that is gone, cut or grown is named, and never passed over."""
    for _ in range(3):
        remote.append([b"one", b"two"])
    DAMAGES[what](bucket.objects, f"{tmp_path.name}/{key(1)}", f"{tmp_path.name}/{key(3)}")
    with pytest.raises(StorageError, match=what) as caught:
        list(remote.lines())
    assert "log/0000" in caught.value.message


@pytest.mark.parametrize("number", [1, 3, 5])
def test_an_empty_object_is_refused(remote: ObjectSink, bucket: s3.Bucket, number: int) -> None:
    """An object of the log without a line, at its beginning, in its middle or behind its end, is
    named by whoever reads the log or its end, or would append; nobody looks at it for ever."""
    remote.append([b"one", b"two"])
    remote.append([b"three", b"four"])
    name = f"{remote.objects.location.rpartition('/')[2]}/{key(number)}"
    bucket.objects[name] = s3.Stored(b"", '"empty"', 0.0)
    again = ObjectSink(remote.objects)
    asks: list[Callable[[], object]] = [lambda: list(again.lines())]
    if number != 1:  # who only asks for the end reads no more than the end
        asks += [again.last, again.claim, lambda: again.append([b"five"])]
    for ask in asks if number == 5 else asks[:1]:
        with pytest.raises(StorageError, match=f"{number:020d}.jsonl: it is empty") as caught:
            ask()
        assert "no object follows it, delete it" in caught.value.advice
    assert bucket.objects[name].data == b""


def test_reading_moves_no_claim(remote: ObjectSink) -> None:
    """A run that reads the log once more while it runs does not take what somebody else has
    appended meanwhile for its own: its next append is refused, and the log stays sound."""
    journal = story.journal(remote, "run-1")
    journal.write(RecordKind.STATE, BODY)
    story.journal(ObjectSink(remote.objects), "run-2").write_all([(RecordKind.STATE, BODY)] * 2)
    assert remote.last() is not None and verify_log(remote.lines()).records == 3
    with pytest.raises(Locked, match="another run has written"):
        journal.write(RecordKind.STATE, BODY)
    assert verify_log(ObjectSink(remote.objects).lines()).records == 3


def test_nothing_is_ever_changed_or_removed(remote: ObjectSink, bucket: s3.Bucket) -> None:
    """A log needs no right to delete, and each of its objects is written once."""
    writes: list[str] = []

    def watch(_: s3.Bucket, request: s3.Request) -> None:
        assert request.method in ("GET", "PUT")
        if request.method == "PUT":
            assert request.headers.get("if-none-match") == "*"
            writes.append(request.key)

    bucket.always.append(watch)
    for run in range(3):
        remote.check_writable()
        story.journal(remote, f"run-{run}").write(RecordKind.STATE, BODY)
    segments = [name for name in writes if name.endswith(".jsonl")]
    assert len(segments) == len(set(segments)) == 3


def test_the_check_asks_for_the_right_to_write(remote: ObjectSink, bucket: s3.Bucket) -> None:
    """A log that may not be written is met before anything is sent."""
    bucket.next("PUT .*log/", instead(403, "AccessDenied"))
    with pytest.raises(StorageError, match="nothing is sent.*permission denied"):
        remote.check_writable()


def test_a_reader_that_stops_early_leaves_nothing_running(remote: ObjectSink) -> None:
    """Who wants the first line only gets it, however long the log is."""
    for number in range(40):
        remote.append([b"line %d" % number])
    assert next(iter(remote.lines())) == b"line 0"


def test_whoever_waits_long_is_told(
    remote: ObjectSink, bucket: s3.Bucket, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A reader that takes longer than two seconds says how far it is, once and then every ten
    seconds; a quick one says nothing."""
    for run in range(4):
        story.journal(remote, f"run-{run}").write(RecordKind.STATE, BODY)
    told: list[str] = []

    def listen(event: Event) -> None:
        assert isinstance(event, Message)
        told.append(event.text)

    with report_slow_tasks(listen):
        assert len(list(remote.lines())) == 4
        assert told == []
        clock = Set()
        monkeypatch.setattr(progress, "SystemClock", lambda: clock)
        for _ in remote.lines():
            clock.sleep(1.5)
        assert told == [f"Reading the audit log from {remote.location}: 3 of 4 objects"]
    for _ in remote.lines():
        clock.sleep(5)
    assert len(told) == 1
