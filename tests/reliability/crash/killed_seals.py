"""A log of many objects, as earlier versions left it, is sealed by processes that are killed at
random moments, one after the other."""

from __future__ import annotations

import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from kafkaform.audit.records import seal_line
from kafkaform.audit.sink import SealLimits
from kafkaform.audit.sinks.objects import FOLDER, ObjectSink
from kafkaform.core.head import GENESIS, Head
from kafkaform.state.backends.objects import STATE, ObjectBackend
from kafkaform.state.backends.obstores import open_objects
from kafkaform.state.codec import encode
from kafkaform.state.model import State, set_head
from kafkaform.workflow.stores import Store

from ...kit.audit_story import LINEAGE
from ...kit.sealing import BODY, check_as_documented, count_unsealed, find_faults, run_seal
from ...kit.stores import s3
from ...kit.stores.runner import CONTEXT

KEY = "killed"
SEGMENT = 1 << 18
"""Bytes of lines of a segment, so that there are many to be killed between."""


def fill(bucket: s3.Bucket, pieces: int) -> list[bytes]:
    """A log with an object for each record, and a state that follows from the last one; returns
    its lines."""
    head, lines = GENESIS, []
    body = BODY.with_items({"lineage": LINEAGE})
    for number in range(1, pieces + 1):
        time = f"2026-01-01T00:00:00.{number:06}Z"
        record, line = seal_line(head, time=time, run="r", actor="ada", kind="state", body=body)
        head = Head(record.seq, record.hash)
        lines.append(line)
        put(bucket, f"{FOLDER}/{number:020}.jsonl", line + b"\n")
    put(bucket, STATE, encode(set_head(State(LINEAGE, 1), head)))
    return lines


def put(bucket: s3.Bucket, key: str, data: bytes) -> None:
    bucket.objects[f"{KEY}/{key}"] = s3.Stored(data, f'"{hash(data)}"', 0.0)


def open_place(address: str) -> Store:
    os.environ.update(s3.ENVIRONMENT)
    objects = open_objects(f"s3://bucket/{KEY}", s3.options(address))
    return Store(Path(), ObjectBackend(objects), ObjectSink(objects))


def _seal(address: str) -> None:
    notes = run_seal(open_place(address), SealLimits(segment=SEGMENT, grace=0.0))
    assert not notes, notes


def seal_until_killed(bucket: s3.Bucket, address: str, moment: int) -> bool:
    """Seal in a process that is killed at the request of this number, before or after the store has
    answered it. Whether it was."""
    process = CONTEXT.Process(target=_seal, args=(address,))
    count = 0

    def kill(bucket: s3.Bucket, request: s3.Request) -> s3.Answer | None:
        nonlocal count
        count += 1
        if count != moment:
            return None
        answer = bucket.serve(request) if moment % 2 else None
        os.kill(process.pid or 0, signal.SIGKILL)
        return answer or s3.Answer(0, breaks=True)

    bucket.always.append(kill)
    process.start()
    process.join()
    bucket.always.remove(kill)
    bucket.objects.pop(f"{KEY}/lock.json", None)
    if process.exitcode == 0:
        return False
    assert process.exitcode == -signal.SIGKILL, process.exitcode
    return True


def unload(bucket: s3.Bucket, folder: Path) -> Path:
    """The log as a copy of its folder."""
    shutil.rmtree(folder, ignore_errors=True)
    prefix = f"{KEY}/{FOLDER}/"
    for key, stored in bucket.objects.items():
        if key.startswith(prefix):
            path = folder / key.removeprefix(prefix)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(stored.data)
    return folder


def kill_seals(pieces: int, kills: int, scratch: Path, random: Random) -> tuple[int, list[str]]:
    """Seal a log of so many objects with so many deaths, and then to its end. How many deaths there
    were, and what was found."""
    bucket = s3.Bucket()
    lines = fill(bucket, pieces)
    deaths, found = 0, list[str]()
    with s3.serving(bucket) as address:
        while deaths < kills:
            # A whole seal reads each object twice and removes it.
            if not seal_until_killed(bucket, address, random.randrange(1, 5 * pieces // kills)):
                break
            deaths += 1
            if kills < 10 or deaths % 10 == 0:
                found += _judge(bucket, address, lines, scratch, f"death {deaths}")
        seal_until_killed(bucket, address, 0)
        found += _judge(bucket, address, lines, scratch, "the end")
        left = count_unsealed(open_place(address))
        if left != 1:
            found.append(f"{left} lines are not sealed")
    return deaths, found


def _judge(
    bucket: s3.Bucket, address: str, lines: list[bytes], scratch: Path, when: str
) -> Iterator[str]:
    said: Any = check_as_documented(unload(bucket, scratch / "copy"))
    if said:
        yield f"{when}: {said}"
    yield from (f"{when}: {fault}" for fault in find_faults(open_place(address), lines))
