"""Applies that seal their log: in a file and in a store, with every command that reads it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from kafkaform.audit import checkpoint
from kafkaform.audit.records import read_line
from kafkaform.audit.sink import SealLimits, read_manifest
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.clock import SystemClock
from kafkaform.core.errors import StorageError
from kafkaform.provider.registry import Registry
from kafkaform.workflow import applying
from kafkaform.workflow.sealing import archive_log, open_archive, seal_log
from kafkaform.workflow.stores import Store, open_store
from kafkaform_kafka.memory import MemoryProvider

from ...kit.commands.here import Here
from ...kit.stores import s3
from ...test_cases import cluster_of

STATE, LOG = "kafkaform.state.json", "kafkaform.audit.jsonl"
YES = "--auto-approve"
SMALL = SealLimits(pieces=6, live=6000, segment=8000, grace=0.0)
TOPIC = """
provider "kafka" {{ bootstrap_servers = ["localhost:9092"] }}
resource "kafka_topic" "a" {{
  name       = "a"
  partitions = 2
  config     = {{ "retention.ms" = "{retention}" }}
}}
"""


@pytest.fixture(params=["file", "store"])
def place(
    request: pytest.FixtureRequest, here: Here, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """Where state and log are. Logs are sealed as soon as they have a few records."""
    cluster = cluster_of()
    monkeypatch.setattr(Registry, "load", lambda self, name: MemoryProvider(cluster))
    monkeypatch.setattr(applying, "seal_log", partial(seal_log, limits=SMALL))
    if request.param == "file":
        yield request.param
        return
    for name, value in s3.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with s3.serving(s3.Bucket()) as address:
        query = f"endpoint={address}&region=us-east-1&use_path_style=true&timeout=3s"
        monkeypatch.setenv("KAFKAFORM_STATE", f"s3://bucket/prod?{query}")
        yield request.param


def apply(here: Here, retention: int) -> str:
    here.write("main.kf.hcl", TOPIC.format(retention=retention))
    return here.done("apply", *YES.split()).text


def read(store: Store, after: int = 0) -> list[bytes]:
    return [read_line(line) for line in store.sink.lines(after)]


def count_unsealed(store: Store) -> int:
    """How many records are outside of segments."""
    if isinstance(store.sink, LocalSink):
        return len(store.sink.path.read_bytes().splitlines())
    objects: Any = store.sink.objects  # type: ignore[attr-defined]
    keys = [e.key for e in objects.names("log") if e.key.endswith(".jsonl")]
    return sum(objects.read(key).data.count(b"\n") for key in keys)


def test_a_log_is_sealed_and_stays_the_same_for_everybody(here: Here, place: str) -> None:
    """Applies seal what there is too much of; every command reads the log as before, and the state
    says that it is sealed. The first apply that seals something tells it."""
    texts = [apply(here, retention) for retention in range(1000, 5000, 1000)]
    first = [text for text in texts if "of the audit log in" in text]
    assert len(first) == 1 and "kafkaform: Sealed records 1 to " in first[0]
    assert "versions that know no segments refuse this state from now on" in first[0]
    store = open_store()
    lines, state = read(store), store.backend.load().state
    manifest = read_manifest(store.sink.sealed)  # type: ignore[arg-type]
    assert state is not None and state.sealed
    assert manifest.lineage == state.lineage
    assert 0 < manifest.head.seq < len(lines)
    assert count_unsealed(store) < len(lines) / 2
    assert f"{len(lines)} records" in here.done("audit", "verify").text
    assert here.done("plan").code == 0
    assert len(here.done("audit", "export").out.splitlines()) == len(lines)
    after = str(len(lines) - 2)
    assert len(here.done("audit", "export", "--after", after).out.splitlines()) == 2
    shown = here.done("audit", "show", "--records", "--json", "--last", "999").out.splitlines()
    assert [line.encode() for line in shown] == lines
    head = here.done("audit", "head").out.strip()
    assert head == f"{state.audit_head}"
    assert "nothing to mend" in here.done("audit", "mend").text


def test_a_sealed_log_moves_to_other_places(here: Here, place: str) -> None:
    """`state pull` copies every line to a place that has no segments, in today's format; `state
    push` brings later lines back, and the log there stays sealed."""
    for retention in range(1000, 5000, 1000):
        apply(here, retention)
    here.done("state", "pull", "-out", "backup.json")
    copied, original = open_store("backup.json"), open_store()
    assert read(copied) == read(original)
    assert b'"format":1,' in (here.path / "backup.json").read_bytes()
    here.done("state", "mv", "kafka_topic.a", "kafka_topic.z", "-state", "backup.json")
    here.done("state", "push", "backup.json")
    state = open_store().backend.load().state
    assert state is not None and state.sealed
    assert read(open_store())[: len(read(copied))] == read(copied)
    here.done("audit", "verify")
    if place == "store":
        for retention in (6000, 7000):
            apply(here, retention)
        here.done("audit", "verify")


def test_a_state_that_was_lost_is_built_from_its_segments(
    here: Here, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Segments and what follows them are all that recovery needs."""
    for retention in range(1000, 5000, 1000):
        apply(here, retention)
    store = open_store()
    before = store.backend.load().state
    if place == "file":
        (here.path / STATE).unlink()
    else:
        store.sink.objects.delete("state.json")  # type: ignore[attr-defined]
    apply(here, 9000)
    state = open_store().backend.load().state
    assert state is not None and before is not None
    assert state.sealed and state.lineage == before.lineage
    here.done("audit", "verify")


def test_a_removed_segment_is_missed(here: Here, place: str) -> None:
    """A plan whose log lacks records is refused, with the object that is missing."""
    for retention in range(1000, 5000, 1000):
        apply(here, retention)
    sealed: Any = open_store().sink.sealed
    sealed.delete(read_manifest(sealed).segments[0].key)
    for command in ("audit verify", "audit head", "audit export"):
        assert "it is missing" in here.fails(*command.split(), code=9)


def test_a_seal_that_fails_does_not_fail_the_apply(
    here: Here, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was applied is saved before the log is sealed. The run says what failed, and the next
    one goes on."""

    def full(*arguments: Any, **more: Any) -> Any:
        raise StorageError("the disk is full", "Make room.")

    with monkeypatch.context() as broken:
        broken.setattr("kafkaform.workflow.sealing.seal_lines", full)
        for retention in (1000, 2000):
            told = " ".join(apply(here, retention).split())
    assert "The audit log was not sealed: the disk is full" in told
    apply(here, 3000)
    state = open_store().backend.load().state
    assert state is not None and state.sealed


def test_a_small_log_keeps_todays_layout(here: Here, place: str, monkeypatch: Any) -> None:
    """With the limits of the product, a few applies leave neither segments nor a state that older
    versions refuse."""
    monkeypatch.setattr(applying, "seal_log", seal_log)
    for retention in range(1000, 5000, 1000):
        apply(here, retention)
    sealed: Any = open_store().sink.sealed
    assert sealed.read("manifest.json") is None
    assert not (here.path / "kafkaform.audit").exists()
    store = open_store()
    loaded = store.backend.load().state
    assert loaded is not None and not loaded.sealed


def test_plans_and_applies_need_no_archived_record(
    here: Here, place: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Records before the checkpoints are in an archive: a plan and an apply read what came after
    them, and `audit verify` checks both places. Without a checkpoint a plan says what to run."""
    monkeypatch.setattr(checkpoint, "SIZE", 1000)
    monkeypatch.setattr(checkpoint, "APPENDS", 0)
    for retention in range(1000, 8000, 1000):
        apply(here, retention)
    cold = str(here.path / "cold")
    moved = archive_log(open_store(), open_archive(cold), "2999-01-01", SystemClock(), 0.0, SMALL)
    assert moved.segments > 0
    sealed: Any = open_store().sink.sealed
    assert "No changes" in here.done("plan").text
    apply(here, 9000)
    said = " ".join(here.done("audit", "verify").text.split())
    assert f"Records 1 to {moved.last:,} are archived in {cold} and were not checked" in said
    assert "sound" in here.done("audit", "verify", "--archive", cold).text
    here.done("audit", "head")
    assert "No changes" in here.done("plan", "--verify-log").text
    for entry in sealed.names("checkpoints"):
        sealed.delete(entry.key)
    told = " ".join(here.fails("plan", code=9).split())
    assert f"kafkaform audit archive --restore {cold}" in told
    here.done("audit", "archive", "--restore", cold)
    assert "No changes" in here.done("plan").text
    here.done("audit", "verify")
