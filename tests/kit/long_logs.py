"""Logs of years: the last run of a real log again and again, each time under another approval."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from itertools import chain, groupby

from msgspec.structs import replace

from kafkaform.audit.records import match_last_members, parse_time, read_line, render_time
from kafkaform.audit.sealing import seal_lines
from kafkaform.audit.sink import LIMITS
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.head import Head
from kafkaform.state.model import set_head
from kafkaform.workflow.stores import Store

APART = 4320.0
"""Seconds from one run to the next: twenty a day."""
AT_ONCE = 4000
"""How many lines are written together."""


def grow_store(store: Store, runs: int, *, sealed: bool) -> int:
    """Append so many runs to the log of a store and anchor its state at the last one. Returns how
    many records the log has then. sealed: all but the last run are in segments."""
    loaded = store.backend.load()
    assert loaded.state is not None
    lines = [read_line(line) for line in store.sink.lines()]
    appends = repeat_run(lines, runs - 1)
    if sealed:
        assert store.sink.sealed is not None
        seal_lines(
            store.sink.sealed,
            _number(lines, appends),
            lineage=loaded.state.lineage,
            time=render_time(0.0),
            size=LIMITS.segment,
            ensure=lambda seconds: None,
        )
        if isinstance(store.sink, LocalSink):
            store.sink.path.unlink()
    else:
        _append_many(store, appends)
    last = store.sink.last()
    assert last is not None
    store.sink.claim()
    head = Head(0, "")
    for append in repeat_run([last], 1, template=lines):
        store.sink.append(append)
        head = _read_head(append[-1])
    state = replace(set_head(loaded.state, head), sealed=sealed)
    store.backend.save(replace(state, serial=state.serial + 1), loaded.version)
    return head.seq


def _append_many(store: Store, appends: Iterator[list[bytes]]) -> None:
    portion: list[bytes] = []
    store.sink.claim()
    for append in appends:
        portion += append
        if len(portion) > AT_ONCE:
            store.sink.append(portion)
            portion = []
    if portion:
        store.sink.append(portion)


def _number(lines: Sequence[bytes], appends: Iterator[list[bytes]]) -> Iterator[tuple[int, bytes]]:
    number = 1
    for append in chain([lines], appends):
        yield number, _join(append)
        number += len(append)


def _join(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def repeat_run(
    lines: Sequence[bytes], runs: int, template: Sequence[bytes] = ()
) -> Iterator[list[bytes]]:
    """The appends of so many runs that follow these lines. template: a log whose last run is
    repeated, by default the same."""
    begin = _read_last_run(template or lines)
    records = [json.loads(line) for line in begin]
    run, approval = records[0]["run"], records[0]["body"]["approval"].encode()
    head = _read_head(lines[-1])
    time = parse_time(json.loads(lines[-1])["time"])
    for _ in range(runs):
        key = hashlib.sha256(f"{head.seq}".encode()).hexdigest()
        own = key[:12].encode(), key.encode()
        time += APART
        for step, (_, append) in enumerate(groupby(begin, _get_time)):
            moment = render_time(time + step).encode()
            made = []
            for line in append:
                head, sealed = _seal(line, head, own, (run.encode(), approval), moment)
                made.append(sealed)
            yield made


def _seal(
    line: bytes,
    head: Head,
    own: tuple[bytes, bytes],
    old: tuple[bytes, bytes],
    moment: bytes,
) -> tuple[Head, bytes]:
    """A line of another run, which follows this head."""
    members = match_last_members(line)
    assert members is not None
    first = line[: members.start()].replace(old[1], own[1])
    rest = b'"kind":"%b","prev":"%b","run":"%b","seq":%d,"time":"%b"}' % (
        members["kind"],
        head.hash.encode(),
        own[0],
        head.seq + 1,
        moment,
    )
    hashed = hashlib.sha256(first)
    hashed.update(rest)
    digest = hashed.hexdigest()
    return Head(head.seq + 1, digest), b'%b"hash":"%b",%b' % (first, digest.encode(), rest)


def _read_last_run(lines: Sequence[bytes]) -> list[bytes]:
    runs = [list(group) for _, group in groupby(lines, lambda line: json.loads(line)["run"])]
    return [line for line in runs[-1] if json.loads(line)["kind"] != "checkpoint"]


def _get_time(line: bytes) -> bytes:
    return line.rpartition(b'"time":')[2]


def _read_head(line: bytes) -> Head:
    record = json.loads(line)
    return Head(record["seq"], record["hash"])
