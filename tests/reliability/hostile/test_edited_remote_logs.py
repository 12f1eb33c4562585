"""Logs and states in an object store that somebody edited: the edits that a log on a disk is tried
with, and those of whole objects. Each is found where it is, and no command fails unexpectedly."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from kafkaform.audit.records import verify_log
from kafkaform.audit.sinks.objects import FOLDER, ObjectSink
from kafkaform.core.errors import StorageError
from kafkaform.core.objects import Objects
from kafkaform.provider.registry import Registry
from kafkaform.state.backends.obstores import open_objects
from kafkaform_kafka.memory import MemoryProvider

from ...kit import log_edits
from ...kit.commands.here import Here
from ...kit.quick import examples
from ...kit.simulated.copies import Mould
from ...kit.stores import s3
from . import edited
from .test_edited_logs import COMMANDS, REFUSED, YES, Past, anchored
from .test_edited_logs import past as past
from .test_edited_logs import pasts as pasts

SIZES = (1, 3, 7)
"""Lines of an append."""
STATE = "prod/state.json"


def store(path: Path, number: int, objects: dict[str, bytes]) -> Objects:
    """A store in memory with these objects."""
    found = open_objects(f"memory://edited{str(path).replace('/', '-')}-{number}", {})
    for key, data in objects.items():
        found.create(f"{FOLDER}/{key}", data)
    return found


def as_objects(data: bytes, size: int) -> dict[str, bytes]:
    """The text of a log as the objects that appends of so many lines would have left."""
    lines = data.splitlines(keepends=True)
    pieces = {n + 1: b"".join(lines[n : n + size]) for n in range(0, len(lines), size)}
    return {f"{first:020}.jsonl": piece for first, piece in pieces.items()}


def is_found(objects: Objects, record: int | None, anchor: Any) -> bool:
    """True if the log is refused, or has its first bad record there; record: None: anywhere."""
    try:
        verdict = verify_log(ObjectSink(objects).lines(), anchor)
    except StorageError as error:
        return bool(error.advice) and f"{FOLDER}/" in error.message
    if record is None:
        return verdict.seq is not None
    return verdict.seq == record and verdict.records == record - 1


@pytest.mark.slow("runs commands against a store for each edit")
def test_edits_of_records_and_bytes_are_found(tmp_path: Path) -> None:
    """Dropped, swapped, doubled, forged and cut records, flipped bits and lost bytes."""
    lines = log_edits.log()
    anchor, size = log_edits.head_of(lines), len(log_edits.text(lines))
    some = range(0, size, max(1, size // examples(300)))
    tried = (
        *list(log_edits.records(lines))[:: 3000 // examples(1000)],
        *log_edits.flips(lines, some, (0, 6)),
        *log_edits.lost_bytes(lines, some),
        *log_edits.cuts(lines, some),
    )
    missed = []
    for number, edit in enumerate(tried):
        objects = store(tmp_path, number, as_objects(edit.data, SIZES[number % len(SIZES)]))
        if not is_found(objects, edit.record, anchor):
            missed.append(edit.what)
    assert len(tried) > 200 and not missed


def _edits_of_objects(
    names: Sequence[str], objects: dict[str, bytes]
) -> Iterator[dict[str, bytes]]:
    for one, name in enumerate(names):
        rest = {other: data for other, data in objects.items() if other != name}
        data = objects[name]
        yield rest
        for wrong in (b"", b"\n", b"null\n", data[:-1], data[: len(data) // 2] + b"\n", data * 2):
            yield {**objects, name: wrong}
        yield {**rest, f"{int(name[:20]) + 1:020}.jsonl": data}
        for other in names[one + 1 :]:
            yield {**objects, name: objects[other], other: data}
            yield {**objects, name: objects[other]}
        if rest and one + 1 < len(names):
            joined = {k: v for k, v in rest.items() if k != names[one + 1]}
            yield {**joined, name: data + objects[names[one + 1]] + b"{}\n"}


def test_edits_of_whole_objects_are_found(tmp_path: Path) -> None:
    """Objects that are gone, empty, cut, doubled, renamed, swapped, replaced or grown."""
    lines = log_edits.log()
    anchor = log_edits.head_of(lines)
    objects = as_objects(log_edits.text(lines), 4)
    names = sorted(objects)
    assert not is_found(store(tmp_path, 0, objects), None, anchor)
    tried = list(_edits_of_objects(names, objects))
    missed = [
        sorted(each)
        for number, each in enumerate(tried, 1)
        if not is_found(store(tmp_path, number, each), None, anchor)
    ]
    assert len(tried) > 40 and not missed


# ── commands ────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch, past: Past) -> Iterator[s3.Bucket]:
    """A store that KAFKAFORM_STATE names, once the past has been made in a folder."""
    made = s3.Bucket()
    for name, value in s3.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with s3.serving(made) as address:
        query = f"endpoint={address}&region=us-east-1&use_path_style=true&timeout=3s"
        monkeypatch.setenv("KAFKAFORM_STATE", f"s3://bucket/prod?{query}")
        yield made


def run_all(here: Here, past: Past, bucket: s3.Bucket, log: bytes, state: bytes | None) -> Any:
    """Every command on this log and state; what each ended with, and what `verify` said."""
    codes, said, mould = {}, "", Mould(past.cluster)
    for command in COMMANDS:
        bucket.objects.clear()
        for key, data in as_objects(log, 5).items():
            bucket.objects[f"prod/{FOLDER}/{key}"] = s3.Stored(data, f'"{key}"', 0.0)
        if state is not None:
            bucket.objects[STATE] = s3.Stored(state, '"s"', 0.0)
        here.write("pushed.audit.jsonl", log)
        here.write("pushed.json", state or b"")
        cluster = mould.copy()
        here.monkeypatch.setattr(Registry, "load", lambda self, name, c=cluster: MemoryProvider(c))
        found = here.run(*command.split())
        assert found.code in (0, 1, 2, 4, 5, 6, 7, 8, 9), (command, found.text)
        assert "please report" not in found.text, found.text
        codes[command] = found.code
        said = found.text if command == "audit verify" else said
    return codes, " ".join(said.replace("│", " ").split())


@pytest.mark.slow("runs commands against a store for each edit")
@pytest.mark.parametrize(("kind", "path", "value"), REFUSED[::4], ids=lambda item: str(item))
def test_a_record_in_a_store_that_cannot_be_is_named(
    here: Here, past: Past, bucket: s3.Bucket, kind: str, path: str, value: Any
) -> None:
    """As on a disk: plan, apply and `audit verify` end with 9, and name the record and member."""
    number = past.number(kind)
    log = list(past.log)
    log[number] = edited.changed(log[number], path, value)
    data = edited.chained_log(log)
    codes, said = run_all(here, past, bucket, data, anchored(past.last, data))
    assert codes["plan"] == codes[f"apply {YES}"] == codes["audit verify"] == 9, codes
    member = path.split(".")[1 if path.startswith("body.") else 0]
    assert f"{FOLDER}/" in said and f"record {number + 1}" in said and member in said, said


@pytest.mark.slow("runs commands against a store for each edit")
@pytest.mark.parametrize("wrong", [b"", b"null", b"\xff", b"[]", b"[" * 100_000, b"{}"])
def test_a_state_in_a_store_that_is_none_is_named(
    here: Here, past: Past, bucket: s3.Bucket, wrong: bytes
) -> None:
    """Nothing is applied on it, and its earlier versions are not needed to say so."""
    sound = edited.chained_log([json.loads(json.dumps(record)) for record in past.log])
    codes, _ = run_all(here, past, bucket, sound, wrong)
    assert codes["plan"] == codes[f"apply {YES}"] == 9, codes
