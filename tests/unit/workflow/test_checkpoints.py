"""A log is read from its last checkpoint on, and says the same as when it is read whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from kafkaform.audit import checkpoint
from kafkaform.audit.checkpoint import check_checkpoints, list_checkpoints, read_index
from kafkaform.audit.index import Growth
from kafkaform.audit.records import RecordKind
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.change import Action
from kafkaform.core.errors import StorageError
from kafkaform.provider.registry import Registry
from kafkaform.workflow.operations import apply_changes
from kafkaform.workflow.planning import plan_changes
from kafkaform.workflow.stores import open_store
from kafkaform_kafka.memory import MemoryProvider

from ...kit.commands.here import Here
from ...kit.long_logs import grow_store
from ...kit.simulated.engine import apply, desired, plan, removed, space, topic
from ...kit.simulated.stored_logs import OPENED, Place
from ...kit.stores import s3
from ...test_cases import cluster_of

FOLDER = """
provider "kafka" {{ bootstrap_servers = ["localhost:9092"] }}
resource "kafka_topic" "a" {{
  name       = "a"
  partitions = 2
  config     = {{ "retention.ms" = "{retention}" }}
}}
"""
ONE = desired(topic("a", 1, {"retention.ms": "1000"}), topic("b"))
TWO = desired(topic("a", 2, {"retention.ms": "1000"}), topic("b"))
WITHOUT = desired(
    topic("a", 2, {"retention.ms": "1000"}), removed=(removed("kafka_topic.b", destroy=True),)
)
FOUR = desired(topic("a", 4, {"retention.ms": "1000"}), topic("b"))
THREE = desired(topic("a", 3, {"retention.ms": "1000"}), topic("b"))


@pytest.fixture(params=sorted(OPENED))
def place(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    """Two runs, the second of which has written a checkpoint."""
    monkeypatch.setattr(checkpoint, "SIZE", 1000)
    # The simulated clock stands still, so that all appends of a run look like one.
    monkeypatch.setattr(checkpoint, "APPENDS", 0)
    made = Place(tmp_path, OPENED[request.param])
    made.run(ONE)
    made.run(TWO)
    return made


def require_equal_to_whole(place: Place) -> None:
    whole = read_index(place.sink, place.anchor, whole=True)
    assert replace(place.read(), growth=Growth()) == replace(whole, growth=Growth())


def test_an_apply_writes_a_checkpoint_and_the_next_one_begins_there(place: Place) -> None:
    """The first record of the run names what is stored, and the next reader uses it."""
    kinds = [record.kind for record in place.records()]
    (position,) = [n for n, kind in enumerate(kinds) if kind == RecordKind.CHECKPOINT]
    assert kinds[position + 1] == RecordKind.RUN_BEGIN
    assert list_checkpoints(place.sink) == (f"checkpoints/{position:020d}.json.gz",)
    index = place.read()
    assert index.growth.used == f"checkpoints/{position:020d}.json.gz"
    assert index.growth.size < read_index(place.sink, place.anchor, whole=True).growth.size
    require_equal_to_whole(place)


def test_what_is_before_a_checkpoint_is_not_read(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan, and an apply that deletes what the log proves to be ours, read only the end."""
    asked: list[int] = []
    kind = type(place.sink)
    lines = kind.lines

    def watch(self: Any, after: int = 0) -> Any:
        asked.append(after)
        return lines(self, after)

    monkeypatch.setattr(kind, "lines", watch)
    covered = place.records()[-1].seq
    asked.clear()
    made = plan(place.reopen(), WITHOUT)
    assert [change.action for change in made.changes] == [Action.DELETE]
    place.run(WITHOUT)
    assert len(asked) == 2 and all(0 < after < covered for after in asked)
    require_equal_to_whole(place)


def test_two_checkpoints_stay(place: Place) -> None:
    """Each run removes those before the one that it has read."""
    for said in (THREE, FOUR):
        place.run(said)
        require_equal_to_whole(place)
    kinds = [record.kind for record in place.records()]
    assert kinds.count(RecordKind.CHECKPOINT) == 3
    assert len(list_checkpoints(place.sink)) == 2


def test_a_run_that_writes_nothing_stores_nothing(place: Place) -> None:
    """Neither a plan nor an apply without a change writes a checkpoint."""
    before = list_checkpoints(place.sink), len(place.records())
    plan(place.reopen(), THREE)
    place.reopen()
    apply(place.house, TWO)
    assert (list_checkpoints(place.sink), len(place.records())) == before


def test_a_log_that_has_hardly_grown_gets_no_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only what makes the next reader faster is stored."""
    place = Place(tmp_path, OPENED["local"])
    place.run(ONE)
    place.run(TWO)
    assert list_checkpoints(place.sink) == ()


def test_an_older_state_uses_an_older_checkpoint_or_none(place: Place) -> None:
    """Of a state that was restored from a backup, only what it is anchored at is proven; all that
    came later is done again."""
    for said in (THREE, FOUR):
        place.run(said)
    versions = [*place.house.backend.versions]
    for data in versions:
        place.house.backend.data = data
        require_equal_to_whole(place)
        index = place.read()
        used = int(Path(index.growth.used).name.partition(".")[0]) if index.growth.used else -1
        assert used < place.anchor.seq
        if place.anchor.seq < place.records()[-1].seq - 5:
            assert index.unsaved


def test_audit_verify_names_a_changed_checkpoint(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It ends as for any other tampering; a missing one is only told. Plans go on."""
    cluster = cluster_of()
    monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(cluster))
    monkeypatch.setattr(checkpoint, "SIZE", 1000)
    for retention in (1000, 2000):
        here.write("main.kf.hcl", FOLDER.format(retention=retention))
        here.done("apply", "--auto-approve")
    assert "is sound" in here.done("audit", "verify").text
    (path,) = Path("kafkaform.audit/checkpoints").iterdir()
    data = path.read_bytes()
    path.write_bytes(data[:50])
    told = here.fails("audit", "verify", code=9)
    assert "has a checkpoint that was changed" in told and path.name in told
    here.done("plan")
    assert path.name in here.fails("plan", "--verify-log", code=9)
    path.unlink()
    told = here.done("audit", "verify").text
    assert f"{path.name} is missing" in told and "is sound" in told
    here.done("plan", "--verify-log")


def test_a_plan_asks_a_store_for_little_however_long_the_log_is(
    here: Here, monkeypatch: pytest.MonkeyPatch
) -> None:
    """State, checkpoint, manifest, and the few objects of the last run; and as much memory."""
    cluster = cluster_of()
    monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(cluster))
    for name, value in s3.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    bucket = s3.Bucket()
    with s3.serving(bucket) as address:
        query = f"endpoint={address}&region=us-east-1&use_path_style=true&timeout=3s"
        monkeypatch.setenv("KAFKAFORM_STATE", f"s3://bucket/prod?{query}")
        counts = []
        for retention in (1000, 2000, 3000):
            here.write("main.kf.hcl", FOLDER.format(retention=retention))
            here.done("apply", "--auto-approve")
            before = bucket.requests.total()
            here.done("plan")
            counts.append(bucket.requests.total() - before)
            if retention == 2000:
                assert grow_store(open_store(), 1000, sealed=True) > 8000
        assert "is sound" in here.done("audit", "verify").text
    assert max(counts) <= 12 and counts[2] == counts[1]


# ── all of the log on request ───────────────────────────────────────────────────────────


def edit_first_record(place: Place) -> None:
    """Somebody changes a record that is long covered."""
    if isinstance(place.sink, LocalSink):
        path = place.sink.path
    else:
        path = place.folder / "store" / "log" / f"{1:020d}.jsonl"
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"host":"', b'"host":"x', 1))


def test_an_edited_old_record_is_found_by_whoever_reads_all(place: Place) -> None:
    """A plan decides by what is proven and does not see it; with --verify-log, plan and apply do,
    and so does `audit verify`."""
    edit_first_record(place)
    assert plan(place.reopen(), THREE).effective
    with pytest.raises(StorageError, match="record 1: its content was changed"):
        plan_changes(space(place.reopen(), THREE), verify_log=True)
    with pytest.raises(StorageError, match="record 1: its content was changed"):
        apply_changes(space(place.reopen(), THREE), approve=lambda _: True, verify_log=True)
    with pytest.raises(StorageError, match="record 1: its content was changed"):
        check_checkpoints(place.sink)


def test_a_changed_checkpoint_is_found_by_whoever_reads_all(place: Place) -> None:
    """It stops no plan, and every plan with --verify-log."""
    (path,) = place.checkpoints.iterdir()
    data = path.read_bytes()
    path.unlink()
    path.write_bytes(data[:-1])
    assert plan(place.reopen(), THREE).effective
    with pytest.raises(StorageError, match="is not what record .* names"):
        plan_changes(space(place.reopen(), THREE), verify_log=True)


# ── who set a value ─────────────────────────────────────────────────────────────────────


def test_drift_names_the_run_that_set_the_value(place: Place) -> None:
    """A later run that changed something else of the object has not set it."""
    first, second = dict.fromkeys(r.run for r in place.records())
    with place.house.cluster.others() as others:
        others.alter("a", {"retention.ms": "5"})
    (drifted,) = plan(place.reopen(), TWO).drifted
    assert drifted.last_set.endswith(f"(run {first})")
    with place.house.cluster.others() as others:
        others.alter("a", {"segment.ms": "60000"})
        others.grow("a", 7)
    (drifted,) = plan(place.reopen(), TWO).drifted
    assert "config.retention.ms: last set here" in drifted.last_set
    assert drifted.last_set.index(first) < drifted.last_set.index(second)
