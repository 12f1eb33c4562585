"""`state pull` and `state push`: a state and its log go from one place to another together."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from kafkaform.audit.journal import Journal
from kafkaform.audit.records import read_line
from kafkaform.core.clock import SystemClock
from kafkaform.core.value import FrozenMap
from kafkaform.state.model import State, set_head
from kafkaform.workflow.stores import Store, open_store

from ...kit import audit_story as story
from ...kit.commands.here import Here
from ...kit.states import state_of, topic
from ...kit.stores import s3
from ..state.test_local import INFO

BACKUP = "backup.json"


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[s3.Bucket]:
    """An empty store that KAFKAFORM_STATE names."""
    made = s3.Bucket()
    for name, value in s3.ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    with s3.serving(made) as address:
        query = f"endpoint={address}&region=us-east-1&use_path_style=true&timeout=3s"
        monkeypatch.setenv("KAFKAFORM_STATE", f"s3://bucket/prod?{query}")
        yield made


def saved(place: str, names: str = "a", serial: int = 3, lineage: str = story.LINEAGE) -> Store:
    """A state with these topics in a file, and the log of a whole run beside it."""
    store = open_store(place)
    log = Journal(store.sink, story.Ticking(), "run-1", "ada@ci", lineage)
    story.begin(log)
    story.end(log)
    rows = state_of(*map(topic, names)).objects
    store.backend.save(set_head(State(lineage, serial, rows), log.head), None)
    return store


def go_on(store: Store, run: str) -> None:
    """Another run, which changes nothing, is logged and saved there."""
    loaded = store.backend.load()
    assert loaded.state is not None
    log = story.journal(store.sink, run)
    story.begin(log)
    story.end(log)
    before = loaded.state
    after = State(before.lineage, before.serial + 1, before.objects, audit_head=log.head)
    store.backend.save(after, loaded.version)


def names(place: str | None = None) -> set[str]:
    state = open_store(place).backend.load().state
    return {identity.key for identity in state.objects} if state else set()


def kept(folder: Path) -> dict[str, bytes]:
    """The files there, but for those of the lock."""
    return {
        str(file.relative_to(folder)): file.read_bytes()
        for file in folder.rglob("*")
        if file.is_file() and ".kafkaform" not in file.parts and "lock" not in file.name
    }


# ── there and back ──────────────────────────────────────────────────────────────────────


def test_a_folder_moves_to_a_store(here: Here, bucket: s3.Bucket) -> None:
    """Push writes all records and one of its own; both places verify, and the store goes on where
    the file was."""
    store = saved("kafkaform.state.json", "ab")
    said = here.done("state", "push", "kafkaform.state.json")
    assert "is serial 4 now: 2 objects" in said.text
    assert names() == {"a", "b"}
    assert "sound: 5 records and the state's anchor" in here.done("audit", "verify").text
    *same, last = open_store().sink.lines()
    assert same == list(store.sink.lines())
    assert json.loads(read_line(last))["body"]["reason"] == "state push"
    assert json.loads(here.done("state", "pull").out)["serial"] == 4


def test_what_was_pulled_can_be_used_and_pushed(here: Here, bucket: s3.Bucket) -> None:
    """Pull makes a pair of files; an edit of them goes back with its record."""
    saved("first.json", "ab")
    here.done("state", "push", "first.json")
    said = here.done("state", "pull", "--out", BACKUP)
    assert "Saved serial 4" in said.text and "backup.audit.jsonl" in said.text
    here.done("state", "rm", "kafka_topic.a", "--state", BACKUP)
    here.done("state", "push", BACKUP)
    assert names() == {"b"}
    reasons = [
        json.loads(read_line(line))["body"].get("reason") for line in open_store().sink.lines()
    ]
    assert [r for r in reasons if r] == ["state push", "state rm", "state push"]
    assert "sound" in here.done("audit", "verify").text


def test_pull_overwrites_nothing(here: Here, bucket: s3.Bucket) -> None:
    """A state or a log that is there stays as it is."""
    saved("first.json")
    here.done("state", "push", "first.json")
    here.write("b.audit.jsonl", "mine\n")
    for target in ("first.json", "b.json"):
        before = kept(here.path)
        assert "there is a state or a log already" in here.fails("state", "pull", "--out", target)
        assert kept(here.path) == before
    assert "there is no state yet" in here.fails("state", "pull", "--state", "none.json")
    assert "there is no state" in here.fails("state", "push", "none.json")


# ── what is refused ─────────────────────────────────────────────────────────────────────


def refused(here: Here, bucket: s3.Bucket, file: str, code: int = 1) -> str:
    """What push says; neither state nor log of the store is another one than before."""

    def there() -> dict[str, bytes]:
        kinds = ("prod/state", "prod/log/0")
        return {k: o.data for k, o in bucket.objects.items() if k.startswith(kinds)}

    before = there()
    said = here.fails("state", "push", file, code=code)
    assert there() == before
    return said


def test_another_state_is_refused(here: Here, bucket: s3.Bucket) -> None:
    """Another lineage never goes over a state, not even by force."""
    saved("first.json")
    here.done("state", "push", "first.json")
    saved("other.json", lineage="another-lineage", serial=9)
    assert "has another state" in refused(here, bucket, "other.json")
    assert "has another state" in here.fails("state", "push", "other.json", "--force")


def test_an_older_state_needs_force(here: Here, bucket: s3.Bucket) -> None:
    """A backup of before goes over what came later only if that is meant, and never takes the log
    back: its records are all still there."""
    saved("first.json", "ab")
    here.done("state", "push", "first.json")
    here.done("state", "pull", "--out", BACKUP)
    store = open_store()
    loaded = store.backend.load()
    assert loaded.state is not None
    later = replace(
        loaded.state, serial=6, outputs=FrozenMap(x=FrozenMap(value=1, sensitive=False))
    )
    store.backend.save(later, loaded.version)  # what an apply that finds nothing to send may keep
    assert "the new state is older: serial 4" in refused(here, bucket, BACKUP)
    records = list(open_store().sink.lines())
    assert "is serial 7 now: 2 objects" in here.done("state", "push", BACKUP, "--force").text
    assert names() == {"a", "b"}
    assert list(open_store().sink.lines())[:-1] == records
    assert "sound" in here.done("audit", "verify").text


@pytest.mark.parametrize("force", [[], ["--force"]])
def test_no_push_undoes_what_was_let_go(here: Here, bucket: s3.Bucket, force: list[str]) -> None:
    """A backup from before a `state rm`, with today's log, goes nowhere, by force neither: what was
    let go would be ours again. The message names the edits, and what to do."""
    saved("first.json", "ab")
    here.done("state", "push", "first.json")
    here.done("state", "pull", "--out", BACKUP)
    before = (here.path / BACKUP).read_bytes()
    here.done("state", "rm", "kafka_topic.a", "--state", BACKUP)
    here.done("state", "push", BACKUP)
    here.done("state", "pull", "--out", "old.json")
    (here.path / "old.json").write_bytes(before)
    objects = dict(bucket.objects)
    said = here.fails("state", "push", "old.json", *force, code=6)
    assert "2 edits of it (`state push`, `state rm`)" in said and "adopt them" in said
    assert names() == {"b"}
    changed = {key for key in bucket.objects if bucket.objects[key] != objects.get(key)}
    assert all(key.endswith("lock.json") for key in changed)
    assert "older than its audit log" in here.fails(
        "state", "pull", "--state", "old.json", "--out", "copy.json", code=6
    )


def test_a_log_that_went_on_otherwise_is_refused(here: Here, bucket: s3.Bucket) -> None:
    """Something was applied in both places: neither is forgotten."""
    store = saved("first.json")
    here.done("state", "push", "first.json")
    go_on(open_store(), "run-there")
    go_on(store, "run-here")
    go_on(store, "run-here-2")
    assert "differs from" in refused(here, bucket, "first.json")


@pytest.mark.parametrize("where", ["here", "there"])
def test_outcomes_that_a_state_lacks_come_first(here: Here, bucket: s3.Bucket, where: str) -> None:
    """What a run did and could not save is taken in by an apply, before anything is carried."""
    store = saved("first.json")
    here.done("state", "push", "first.json")
    here.done("state", "pull", "--out", BACKUP)
    late = open_store(BACKUP) if where == "here" else open_store()
    story.conclude(story.journal(late.sink, "run-9"), story.ORDERS, incarnation="id-1")
    assert "Run `kafkaform apply` first" in refused(here, bucket, BACKUP, code=6)
    assert store.sink.last() is not None
    if where == "there":
        said = here.fails("state", "pull", "--out", "more.json", code=6)
        assert "1 outcome of an earlier run" in said and not (here.path / "more.json").exists()


def test_a_changed_log_is_not_carried(here: Here, bucket: s3.Bucket) -> None:
    """A log that fails its check goes nowhere."""
    saved("first.json")
    log = here.path / "first.audit.jsonl"
    log.write_bytes(log.read_bytes().replace(b"runner-7", b"runner-8"))
    here.fails("state", "push", "first.json", code=9)
    assert not names()


def test_a_lock_holds_both(here: Here, bucket: s3.Bucket) -> None:
    """Nothing is pushed over a state that a run holds."""
    saved("first.json")
    here.done("state", "push", "first.json")
    with open_store().backend.lock(INFO, 0, SystemClock()):
        refused(here, bucket, "first.json", code=7)


def test_a_push_that_was_cut_off_is_done_again(here: Here, bucket: s3.Bucket) -> None:
    """The log was written, the state was not: the same push once more is enough, and no other."""
    saved("first.json", "ab")

    def fail(_: s3.Bucket, request: s3.Request) -> s3.Answer | None:
        down = request.method == "PUT" and request.key == "prod/state.json"
        return s3.refusal(403, "AccessDenied") if down else None

    bucket.always.append(fail)
    for _ in range(2):
        here.fails("state", "push", "first.json", code=9)
    assert not names()
    bucket.always.clear()
    store = open_store("first.json")
    before = kept(here.path)
    go_on(store, "run-here")
    assert "differs from" in refused(here, bucket, "first.json")
    for name, data in before.items():
        (here.path / name).write_bytes(data)
    here.done("state", "push", "first.json")
    assert names() == {"a", "b"}
    assert "sound" in here.done("audit", "verify").text
