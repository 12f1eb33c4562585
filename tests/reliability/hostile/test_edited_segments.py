"""Sealed logs that somebody edited, in a file and in a store: segments and manifests that are gone,
changed, swapped, renamed or forged, and objects that were put beside them. `audit verify` finds
each."""

from __future__ import annotations

import gzip
import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from kafkaform.audit.records import read_line
from kafkaform.audit.sink import MANIFEST, SEGMENTS
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.audit.sinks.objects import FOLDER, ObjectSink
from kafkaform.core.clock import SystemClock
from kafkaform.core.errors import StorageError, UsageError
from kafkaform.core.objects import Folder, Objects
from kafkaform.inventory.landing import land_log
from kafkaform.state.backends.local import LocalBackend
from kafkaform.state.backends.objects import ObjectBackend
from kafkaform.state.backends.obstores import open_objects
from kafkaform.state.model import State, set_head
from kafkaform.workflow.audit_log import list_rows, mend_log
from kafkaform.workflow.sealing import verify_store
from kafkaform.workflow.state_transfer import pull_state
from kafkaform.workflow.stores import Store

from ...kit import log_edits
from ...kit.audit_story import LINEAGE
from ...kit.sealing import remove, seal
from .test_edited_remote_logs import as_objects

CLOCK = SystemClock()
Files = dict[str, bytes]
"""The objects beside a log, by key."""
Edit = tuple[str, Files]
"""What was done, and the objects after it."""


def _open(kind: str, folder: Path) -> Store:
    if kind == "file":
        folder.mkdir(exist_ok=True)
        log = LocalSink(folder / "kafkaform.audit.jsonl")
        return Store(folder, LocalBackend(folder / "kafkaform.state.json"), log)
    objects = open_objects(f"memory://sealed{str(folder).replace('/', '-')}", {})
    return Store(folder, ObjectBackend(objects), ObjectSink(objects))


def _make(kind: str, folder: Path, *, removes: bool) -> Store:
    """A log with some segments, and a state that follows from its last record."""
    store, lines = _open(kind, folder), log_edits.log()
    if isinstance(store.sink, LocalSink):
        store.sink.path.write_bytes(log_edits.text(lines))
    else:
        for key, data in as_objects(log_edits.text(lines), 2).items():
            store.sink.objects.create(f"{FOLDER}/{key}", data)  # type: ignore[attr-defined]
    sink: Any = store.sink
    seal(sink, 2500)
    if removes:
        remove(sink)
    head = log_edits.head_of(lines)
    store.backend.save(set_head(State(LINEAGE, 1, sealed=True), head), None)
    return store


def _read(objects: Objects) -> Files:
    keys = [entry.key for entry in objects.names(SEGMENTS)]
    stored = {key: objects.read(key) for key in (MANIFEST, *keys)}
    return {key: item.data for key, item in stored.items() if item is not None}


def _write(objects: Objects, files: Files) -> None:
    for key in _read(objects):
        objects.delete(key)
    for key, data in files.items():
        objects.create(key, data)


def _is_found(store: Store) -> bool:
    """Whether the log is refused with advice, or something is named that is no part of it, or that
    was not checked because it is said to be in an archive."""
    try:
        verified = verify_store(store)
        return bool(verified.strays) or verified.unread.seq > 0
    except StorageError as error:
        return bool(error.advice)


# ── edits ───────────────────────────────────────────────────────────────────────────────


def _edit_segments(files: Files) -> Iterator[Edit]:
    keys = sorted(files.keys() - {MANIFEST})
    for position, key in enumerate(keys):
        data = files[key]
        rest = {name: content for name, content in files.items() if name != key}
        yield f"{key} is gone", rest
        for place in range(0, len(data), max(1, len(data) // 24)):
            flipped = data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]
            yield f"{key} has another byte at {place}", {**files, key: flipped}
        for text, other in (
            ("is empty", b""),
            ("is cut", data[: len(data) // 2]),
            ("is doubled", data * 2),
            ("has bytes after it", data + b"x"),
            ("is compressed in another way", gzip.compress(gzip.decompress(data), 1, mtime=0)),
            ("is not compressed", gzip.decompress(data)),
            ("says another time", gzip.compress(gzip.decompress(data), 6, mtime=7)),
        ):
            yield f"{key} {text}", {**files, key: other}
        for other_key in keys[position + 1 :]:
            swapped = {key: files[other_key], other_key: data}
            yield f"{key} and {other_key} are swapped", {**files, **swapped}
            yield f"{other_key} is {key}", {**files, other_key: data}
        begin, end = (int(part) for part in Path(key).name.partition(".")[0].split("-"))
        name = f"{SEGMENTS}/{begin + 1:020}-{end:020}.jsonl.gz"
        yield f"{key} is renamed", {**rest, name: data}


def _edit_manifest(files: Files) -> Iterator[Edit]:
    """Every member of every entry, and the entries as a whole."""
    manifest = json.loads(files[MANIFEST])
    entries: list[dict[str, Any]] = manifest["segments"]

    def write(**members: Any) -> Files:
        return {**files, MANIFEST: json.dumps({**manifest, **members}).encode()}

    yield "the manifest is gone", {key: d for key, d in files.items() if key != MANIFEST}
    for data in (b"", b"{}", b"null", b"[]", files[MANIFEST][:-9], b"[" * 100_000):
        yield f"the manifest is {data[:9]!r}", {**files, MANIFEST: data}
    yield "another lineage", write(lineage="other")
    yield "another format", write(format=2)
    yield "no segments", write(segments=[])
    yield "one more member", write(more=1)
    yield "in another order", write(segments=entries[::-1])
    yield "an entry twice", write(segments=[entries[0], *entries])
    moved = [{**entry, "archived": "/nowhere"} for entry in entries]
    for count in (1, len(entries)):
        told = write(segments=[*moved[:count], *entries[count:]])
        gone = sorted(files.keys() - {MANIFEST})[:count]
        yield f"{count} segments are said to be archived", told
        kept = {key: data for key, data in told.items() if key not in gone}
        yield f"{count} segments are said to be archived, and are gone", kept
    for position, entry in enumerate(entries):
        rest = entries[:position], entries[position + 1 :]
        which = f"entry {position}" if rest[1] else "the last entry"
        yield f"{which} is gone", write(segments=[*rest[0], *rest[1]])
        for name, value in entry.items():
            for wrong in (None, "", "0" * 64, 0, -1, 10**30, entry["first"] + 1, [], {}):
                if wrong != value:
                    changed = {**entry, name: wrong}
                    text = f"{name} of entry {position} is {wrong!r}"
                    yield text, write(segments=[*rest[0], changed, *rest[1]])


def _forge_lines(files: Files) -> Iterator[Edit]:
    """Edited lines, with the digests of the manifest made to fit, and with the chain made anew."""
    manifest = json.loads(files[MANIFEST])
    keys = sorted(files.keys() - {MANIFEST})
    for position, key in enumerate(keys):
        lines = gzip.decompress(files[key])
        chained = _chain_again(lines)
        for text, forged in (("edited", lines.replace(b"ada", b"eve")), ("chained anew", chained)):
            data, entry = gzip.compress(forged, 6, mtime=0), dict(manifest["segments"][position])
            entry["lines_sha256"] = hashlib.sha256(forged).hexdigest()
            entry["object_sha256"] = hashlib.sha256(data).hexdigest()
            entry["length"] = len(forged)
            entry["head_out"] = json.loads(forged.splitlines()[-1])["hash"]
            segments = list(manifest["segments"])
            segments[position] = entry
            if position + 1 < len(segments):
                following = {**segments[position + 1], "head_in": entry["head_out"]}
                segments[position + 1] = following
            told = json.dumps({**manifest, "segments": segments}).encode()
            yield f"{key} is {text}", {**files, key: data, MANIFEST: told}


def _chain_again(lines: bytes) -> bytes:
    """The lines by another actor, each with the hash that fits."""
    forged = []
    prev = json.loads(lines.splitlines()[0])["prev"]
    for line in lines.splitlines():
        record = {**json.loads(line), "actor": "eve", "prev": prev}
        del record["hash"]
        body = json.dumps(record, sort_keys=True, separators=(",", ":"))
        prev = hashlib.sha256(body.encode()).hexdigest()
        whole = {**record, "hash": prev}
        forged.append(json.dumps(whole, sort_keys=True, separators=(",", ":")).encode() + b"\n")
    return b"".join(forged)


def _add_objects(files: Files) -> Iterator[Edit]:
    keys = sorted(files.keys() - {MANIFEST})
    lines = gzip.decompress(files[keys[0]])
    for name, data in (
        (f"{1:020}-{2:020}", gzip.compress(_chain_again(lines))),
        (f"{1:020}-{2:020}", b"no segment"),
        (f"{9000:020}-{9001:020}", gzip.compress(lines)),
        (f"{0:020}-{2:020}", gzip.compress(lines)),
        (f"{3:020}-{1:020}", gzip.compress(lines)),
        ("notes", b"hello"),
    ):
        yield f"{name} was put there", {**files, f"{SEGMENTS}/{name}.jsonl.gz": data}


EDITS: dict[str, Callable[[Files], Iterator[Edit]]] = {
    "segments": _edit_segments,
    "manifest": _edit_manifest,
    "forged lines": _forge_lines,
    "more objects": _add_objects,
}


@pytest.mark.parametrize("removes", [True, False], ids=["removed", "kept"])
@pytest.mark.parametrize("kind", ["file", "store"])
@pytest.mark.parametrize("edits", EDITS)
def test_edits_are_found(tmp_path: Path, edits: str, kind: str, removes: bool) -> None:
    """Each is refused or named, also while the sealed lines are still where they were before."""
    store = _make(kind, tmp_path / "log", removes=removes)
    objects: Any = store.sink.sealed
    files = _read(objects)
    assert len(files) > 3 and not _is_found(store)
    missed, tried = [], 0
    for what, edited in EDITS[edits](files):
        _write(objects, edited)
        tried += 1
        # While its lines are elsewhere too, that is what a run leaves that was interrupted.
        interrupted = what == "the last entry is gone" and not removes
        if _is_found(store) is interrupted:
            missed.append(what)
    assert tried > 5 and not missed, missed
    _write(objects, files)
    assert not _is_found(store)


def _export(store: Store, folder: Path) -> list[str] | None:
    """The hashes of all rows that `audit export` prints."""
    return [str(row["hash"]) for row in list_rows(store, None, 0)]


def _mend(store: Store, folder: Path) -> list[str] | None:
    """`audit mend` has nothing to join, or refuses."""
    assert mend_log(store, CLOCK, 0.0) is None
    return None


def _pull(store: Store, folder: Path) -> list[str] | None:
    """The hashes of the log that `state pull` has copied."""
    target = _open("file", folder)
    pull_state(store, target, CLOCK, 0.0)
    return [json.loads(read_line(line))["hash"] for line in target.sink.lines()]


def _land(store: Store, folder: Path) -> list[str] | None:
    """The hashes of what lands in a fleet's place."""
    state = store.backend.load().state
    assert state is not None
    keys = land_log(Folder(folder), LINEAGE, store.sink, state.audit_head)
    lines = [line for key in keys for line in (folder / key).read_bytes().splitlines()]
    return [json.loads(line)["hash"] for line in lines]


READERS = {"export": _export, "mend": _mend, "state pull": _pull, "fleet snapshot": _land}


@pytest.mark.parametrize("kind", ["file", "store"])
@pytest.mark.parametrize("edits", EDITS)
def test_no_reader_hands_out_an_edited_log(tmp_path: Path, edits: str, kind: str) -> None:
    """Whatever reads all of a log refuses it, or has exactly the lines that were written; and
    nothing of the log is changed by it."""
    store = _make(kind, tmp_path / "log", removes=True)
    objects: Any = store.sink.sealed
    files, hashes = _read(objects), [json.loads(line)["hash"] for line in log_edits.log()]
    wrong, refused = [], Counter[str]()
    for number, (what, edited) in enumerate(EDITS[edits](files)):
        _write(objects, edited)
        for name, read in READERS.items():
            fresh = _open(kind, tmp_path / "log")
            try:
                got = read(fresh, tmp_path / f"{number}-{name}")
            except StorageError as error:
                refused[name] += bool(error.advice)
                continue
            except UsageError as error:  # the copy of a log that does not fit its state
                refused[name] += "differs from" in error.message
                continue
            if got not in (None, hashes):
                wrong.append(f"{name}: {what}")
        if _read(objects) != edited:
            wrong.append(f"something was written after: {what}")
    assert not wrong, wrong
    assert edits == "more objects" or set(refused) == set(READERS), refused


@pytest.mark.parametrize("kind", ["file", "store"])
def test_the_time_of_sealing_is_not_proven(tmp_path: Path, kind: str) -> None:
    """The one member that nothing confirms only says when lines may be removed that are compared
    before that: another time changes nothing that a reader sees."""
    store = _make(kind, tmp_path / "log", removes=True)
    objects: Any = store.sink.sealed
    files = _read(objects)
    manifest = json.loads(files[MANIFEST])
    manifest["segments"][0]["time"] = "2001-01-01T00:00:00.000000Z"
    _write(objects, {**files, MANIFEST: json.dumps(manifest).encode()})
    assert not _is_found(store)
