"""Somebody can write beside a log: no plan decides by a checkpoint that the anchored chain does not
prove, a bad one stops no plan and no apply, and `audit verify` names it."""

from __future__ import annotations

import gzip
import json
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.audit import checkpoint
from kafkaform.audit.checkpoint import (
    Checked,
    check_checkpoints,
    list_checkpoints,
    read_checkpoint,
    read_index,
    render_checkpoint,
)
from kafkaform.audit.index import Growth, LogIndex, Origin
from kafkaform.audit.journal import make_checkpoint_body
from kafkaform.audit.records import Record, RecordKind, encode, seal_line
from kafkaform.core.errors import PlanRefused, StorageError
from kafkaform.core.head import Head
from kafkaform.core.resource import Identity
from kafkaform.plan.model import Options

from ...kit.simulated.engine import apply, desired, plan, removed, topic
from ...kit.simulated.stored_logs import OPENED, Place

RETENTION = {"retention.ms": "1000"}
ONE, TWO, THREE = (desired(topic("a", n, RETENTION), topic("b")) for n in (1, 2, 3))
FOUR = desired(topic("a", 4, RETENTION), topic("b"))
BOMB = gzip.compress(bytes(400 << 20))


@pytest.fixture(params=sorted(OPENED))
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Three runs, of which the last two have written a checkpoint."""
    monkeypatch.setattr(checkpoint, "SIZE", 1000)
    monkeypatch.setattr(checkpoint, "APPENDS", 0)
    made = Place(tmp_path, OPENED[request.param])
    for said in (ONE, TWO, THREE):
        made.run(said)
    assert len(list_checkpoints(made.sink)) == 2
    return made


# ── what an attacker writes ─────────────────────────────────────────────────────────────


def list_files(place: Place) -> list[Path]:
    return sorted(place.checkpoints.iterdir())


def overwrite(path: Path, data: bytes) -> None:
    path.unlink()
    path.write_bytes(data)


def edit_content(path: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """The content says something else, and is packed as before."""
    content = json.loads(gzip.decompress(path.read_bytes()))
    change(content)
    overwrite(path, gzip.compress(json.dumps(content, sort_keys=True).encode(), mtime=0))


def edit_all(place: Place, change: Callable[[dict[str, Any]], object]) -> None:
    for path in list_files(place):
        edit_content(path, change)


def forge_origins(place: Place) -> None:
    """Objects of others seem to be ours."""
    forged = {
        "identity": {"instance": "kafka", "key": "theirs", "kind": "kafka_topic"},
        "incarnation": "id",
        "scope_id": "cluster",
        "seq": 1,
    }
    edit_all(place, lambda content: content["origins"].append(forged))


def drop_origins(place: Place) -> None:
    edit_all(place, lambda content: content.pop("origins"))


def name_another_state(place: Place) -> None:
    edit_all(place, lambda content: content.update(lineage="another"))


def name_another_format(place: Place) -> None:
    edit_all(place, lambda content: content.update(format=2))


def cover_more(place: Place) -> None:
    edit_all(place, lambda content: content["covers"].update(seq=1))


def flip_bits(place: Place) -> None:
    for path in list_files(place):
        data = bytearray(path.read_bytes())
        data[len(data) // 2] ^= 1
        overwrite(path, bytes(data))


def cut_off(place: Place) -> None:
    for path in list_files(place):
        overwrite(path, path.read_bytes()[:-9])


def empty(place: Place) -> None:
    for path in list_files(place):
        overwrite(path, b"")


def add_bytes(place: Place) -> None:
    for path in list_files(place):
        overwrite(path, path.read_bytes() + b"more")


def swap(place: Place) -> None:
    first, second = list_files(place)
    data = first.read_bytes(), second.read_bytes()
    overwrite(first, data[1])
    overwrite(second, data[0])


def write_bombs(place: Place) -> None:
    for path in list_files(place):
        overwrite(path, BOMB)


def write_huge_numbers(place: Place) -> None:
    for path in list_files(place):
        text = gzip.decompress(path.read_bytes()).decode()
        huge = text.replace('"format":1', '"format":' + "1" * 100_000)
        overwrite(path, gzip.compress(huge.encode(), mtime=0))


CHANGED = (
    forge_origins,
    drop_origins,
    name_another_state,
    name_another_format,
    cover_more,
    flip_bits,
    cut_off,
    empty,
    add_bytes,
    swap,
    write_bombs,
    write_huge_numbers,
)


# ── what comes of it ────────────────────────────────────────────────────────────────────


def check(place: Place) -> Checked:
    return check_checkpoints(place.sink, place.anchor)


def read_whole(place: Place) -> LogIndex:
    return replace(read_index(place.sink, place.anchor, whole=True), growth=Growth())


def require_passed_over(place: Place, before: LogIndex) -> None:
    """The log is read as a whole, plan and apply work, and the apply stores a good one."""
    index = place.read()
    assert index.growth.used is None
    assert replace(index, growth=Growth()) == before
    assert len(plan(place.reopen(), FOUR).effective) == 1
    place.run(FOUR)
    assert place.read().growth.used is not None
    assert replace(place.read(), growth=Growth()) == read_whole(place)


@pytest.mark.parametrize("attack", CHANGED, ids=lambda attack: attack.__name__)
def test_a_changed_checkpoint_decides_nothing(
    place: Place, attack: Callable[[Place], None]
) -> None:
    """Whatever it says, the log is read as if it were not there, and the check names both."""
    assert place.read().growth.used is not None
    assert check(place) == Checked()
    before = read_whole(place)
    attack(place)
    checked = check(place)
    assert len(checked.problems) == 2 and "checkpoints/" in checked.problems[0]
    require_passed_over(place, before)


def test_a_missing_checkpoint_is_no_error(place: Place) -> None:
    """The log is read as a whole, and the check says that it is missing."""
    before = read_whole(place)
    names = list_checkpoints(place.sink)
    for path in list_files(place):
        path.unlink()
    checked = check(place)
    assert checked.problems == () and str(checked.missing).endswith(names[-1])
    require_passed_over(place, before)


def test_only_the_last_checkpoint_that_is_named_is_used(place: Place) -> None:
    """If the newest is bad, the one before it is not used either: somebody may want just that."""
    _, second = list_files(place)
    before = read_whole(place)
    flip = bytearray(second.read_bytes())
    flip[20] ^= 1
    overwrite(second, bytes(flip))
    require_passed_over(place, before)


@pytest.mark.parametrize("kind", ["link", "folder", "linked folder"])
def test_what_is_no_file_is_passed_over(place: Place, kind: str) -> None:
    """Links are not followed, and a folder is no checkpoint."""
    before = read_whole(place)
    if kind == "linked folder":
        elsewhere = place.folder / "elsewhere"
        place.checkpoints.rename(elsewhere)
        place.checkpoints.symlink_to(elsewhere)
    else:
        for path in list_files(place):
            data = path.read_bytes()
            path.unlink()
            if kind == "folder":
                path.mkdir()
            else:
                (place.folder / path.name).write_bytes(data)
                path.symlink_to(place.folder / path.name)
    index = place.read()
    assert index.growth.used is None
    assert replace(index, growth=Growth()) == before


def test_junk_costs_little(place: Place) -> None:
    """Of many files only the newest few are looked at; those after the anchor not at all."""
    before = read_whole(place)
    last = place.anchor.seq
    for seq in range(last + 1, last + 500):
        (place.checkpoints / f"{seq:020d}.json.gz").write_bytes(BOMB[:100])
    assert place.read().growth.used is not None
    assert replace(place.read(), growth=Growth()) == before


# ── what an attacker appends or chains anew ─────────────────────────────────────────────


def forge(place: Place, covered: LogIndex) -> tuple[Record, bytes, bytes]:
    """A record that follows the log and names a checkpoint which says what the attacker likes."""
    origin = Origin(Identity("kafka", "kafka_topic", "theirs"), "id-theirs", "cluster")
    forged = replace(covered, origins={**covered.origins, 1: origin})
    lineage = place.house.state.lineage
    content = render_checkpoint(forged, lineage)
    digest = checkpoint.hashlib.sha256(content).hexdigest()
    body = make_checkpoint_body(covered.head, digest, len(content))
    record, line = seal_line(
        covered.head,
        time="2030-01-01T00:00:00.000000Z",
        run="eve",
        actor="eve",
        kind=str(RecordKind.CHECKPOINT),
        body=body.with_items({"lineage": lineage}),
    )
    return record, line, gzip.compress(content, mtime=0)


def test_a_checkpoint_after_the_anchor_is_not_used(place: Place) -> None:
    """Anybody who can append can name a checkpoint of their own: the state is not anchored there,
    and the check finds that it does not say what the log says."""
    covered = place.read()
    record, line, data = forge(place, covered)
    sink = place.sink
    sink.claim()
    sink.append([line])
    (place.checkpoints / f"{covered.head.seq:020d}.json.gz").write_bytes(data)
    index = place.read()
    assert index.head == Head(record.seq, record.hash)
    assert index.origins == covered.origins
    (problem,) = check(place).problems
    assert problem.endswith("does not say what the records before it say: origins")


@pytest.mark.parametrize("stored", [True, False], ids=["stored", "stored later"])
@pytest.mark.parametrize("refused", [False, True], ids=["", "store refuses"])
def test_no_later_run_proves_a_forged_checkpoint(
    place: Place, stored: bool, refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state of the next run follows from a record behind the forged one. That run has named
    another checkpoint first, even if it could not store one, so the forged one is never used,
    whenever the attacker puts it there and whatever he removes."""
    covered = place.read()
    _, line, data = forge(place, covered)
    sink = place.sink
    sink.claim()
    sink.append([line])
    forged = place.checkpoints / f"{covered.head.seq:020d}.json.gz"
    if stored:
        forged.write_bytes(data)
    if refused:

        def refuse(*_: object) -> None:
            raise StorageError("the store refuses it")

        monkeypatch.setattr(checkpoint, "_store", refuse)
    place.run(FOUR)
    monkeypatch.undo()
    assert place.anchor.seq > covered.head.seq + 1
    for path in list_files(place):
        path.unlink()
    forged.write_bytes(data)
    index = place.read()
    assert index.growth.used is None
    assert replace(index, growth=Growth()) == read_whole(place)
    assert not any(origin.identity.key == "theirs" for origin in index.origins.values())
    assert check(place).problems


def test_a_record_that_is_chained_anew_is_refused(tmp_path: Path, monkeypatch: Any) -> None:
    """Whoever gives the record another digest changes its hash, and all that follow, up to the one
    that the state names."""
    monkeypatch.setattr(checkpoint, "SIZE", 1000)
    place = Place(tmp_path, OPENED["local"])
    for said in (ONE, TWO, THREE):
        place.run(said)
    (path,) = place.checkpoints.parent.parent.glob("*.jsonl")
    records = place.records()
    position = [r.kind for r in records].index(RecordKind.CHECKPOINT)
    covered = read_index(place.sink, place.anchor)
    key = str(covered.growth.used)
    edit_content(place.checkpoints.parent / key, lambda content: content.update(vague=1))
    content = gzip.decompress((place.checkpoints.parent / key).read_bytes())
    position = int(Path(key).name.partition(".")[0])
    digest = checkpoint.hashlib.sha256(content).hexdigest()
    named = records[position].body.with_items({"sha256": digest, "length": len(content)})
    head, lines = Head(position, records[position - 1].hash), []
    for old in [replace(records[position], body=named), *records[position + 1 :]]:
        new, line = seal_line(
            head, time=old.time, run=old.run, actor=old.actor, kind=old.kind, body=old.body
        )
        lines.append(line)
        head = Head(new.seq, new.hash)
    whole = [*map(encode, records[:position]), *lines]
    path.write_bytes(b"".join(line + b"\n" for line in whole))
    with pytest.raises(StorageError, match="the log was rewritten"):
        plan(place.reopen(), FOUR)


def test_an_object_of_others_stays(place: Place) -> None:
    """A checkpoint that claims an object of others does not let an apply delete it, although the
    state claims it, too."""
    with place.house.cluster.others() as others:
        others.create("theirs", 1)
    forge_origins(place)
    row = place.house.row("b")
    assert row is not None
    theirs = replace(row, identity=Identity("kafka", "kafka_topic", "theirs"), incarnation=None)
    state = place.house.state
    objects = {**state.objects, theirs.identity: theirs}
    place.house.backend.data = None
    place.house.backend.save(replace(state, objects=objects), None)
    place.reopen()
    gone = (removed("kafka_topic.b", destroy=True),)
    said = desired(topic("a", 3, RETENTION), removed=gone)
    with pytest.raises(PlanRefused, match="does not show that kafkaform created"):
        apply(place.house, said, Options(max_deletes=9))
    assert "theirs" in place.house.cluster.topics


# ── limits ──────────────────────────────────────────────────────────────────────────────


def test_memory_is_bounded(place: Place) -> None:
    """A few bytes that unpack to hundreds of megabytes are not unpacked."""
    record = next(r for r in place.records() if r.kind == RecordKind.CHECKPOINT)
    longer = record.body.with_items({"length": checkpoint.LARGEST + 1})
    tracemalloc.start()
    for body in (record.body, longer):
        with pytest.raises(ValueError, match="it is (not what|too large)"):
            read_checkpoint(BOMB, replace(record, body=body))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20
