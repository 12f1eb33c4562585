"""What somebody had let go stays theirs: on a real broker, whichever printed way back is followed,
and whatever is written into a state by hand."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace as changed
from pathlib import Path

import pytest
from confluent_kafka.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
)
from msgspec.structs import replace

from kafkaform.apply.freshness import find_origin
from kafkaform.audit.records import Record, decode, encode, seal_record
from kafkaform.audit.sinks.objects import ObjectSink
from kafkaform.core.head import GENESIS, Head
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.state import codec
from kafkaform.state.model import put_row
from kafkaform.workflow.stores import open_store
from kafkaform.workflow.workspace import read_log

from ...kit.commands.folder import LOG, STATE, Folder, Said
from ...kit.stores import s3

ELSEWHERE = "AAAAAAAAAAAAAAAAAAAAAA"
FORGET = "removed {\n  from = kafka_acl.a\n  lifecycle {\n    destroy = false\n  }\n}\n"


class Rights:
    """ACLs `a` and `b` of a folder: each lets a user of its own read a topic."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self.admin: AdminClient = folder.admin

    def declare(self, *names: str, more: str = "", like: str = "") -> None:
        """Declare exactly these, under addresses of these names. like: whose ACL they are."""
        blocks = [self._block(name, like or name) for name in names]
        self.folder.write("acls.kf.hcl", "".join(blocks) + more)

    def _block(self, name: str, of: str) -> str:
        return (
            f'resource "kafka_acl" "{name}" {{\n'
            f'  acl_principal = "User:{self.folder.prefix}{of}"\n  acl_host = "*"\n'
            '  acl_operation = "Read"\n  acl_permission_type = "Allow"\n'
            f'  resource_type = "Topic"\n  resource_name = "{self.folder.prefix}t"\n}}\n'
        )

    def live(self) -> set[str]:
        """Names of those that are there."""
        any_of = AclBindingFilter(
            ResourceType.TOPIC,
            f"{self.folder.prefix}t",
            ResourcePatternType.LITERAL,
            None,
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        found = self.admin.describe_acls(any_of).result(60)
        return {acl.principal.removeprefix(f"User:{self.folder.prefix}") for acl in found}

    def create(self, name: str) -> None:
        """Another team creates it."""
        binding = AclBinding(
            ResourceType.TOPIC,
            f"{self.folder.prefix}t",
            ResourcePatternType.LITERAL,
            f"User:{self.folder.prefix}{name}",
            "*",
            AclOperation.READ,
            AclPermissionType.ALLOW,
        )
        for future in self.admin.create_acls([binding]).values():
            future.result(60)
        self.folder.until(lambda: name in self.live())

    def clean(self) -> None:
        every = AclBindingFilter(
            ResourceType.TOPIC,
            f"{self.folder.prefix}t",
            ResourcePatternType.LITERAL,
            None,
            None,
            AclOperation.ANY,
            AclPermissionType.ANY,
        )
        for future in self.admin.delete_acls([every]).values():
            future.result(60)


@pytest.fixture
def rights(folder: Folder) -> Iterator[Rights]:
    """Two ACLs are applied."""
    made = Rights(folder)
    made.declare("a", "b")
    folder.done("apply", "-auto-approve")
    folder.until(lambda: made.live() == {"a", "b"})
    yield made
    made.clean()


def owned(folder: Folder) -> list[str]:
    return folder.done("state", "list").out.split()


# ── the ways back ───────────────────────────────────────────────────────────────────────


def _rm(rights: Rights) -> None:
    rights.folder.done("state", "rm", "kafka_acl.a")
    rights.declare("b")


def _forgotten(rights: Rights) -> None:
    rights.declare("b", more=FORGET)
    rights.folder.done("apply", "-auto-approve")
    rights.declare("b")


def _pushed(rights: Rights) -> None:
    folder = rights.folder
    folder.done("state", "pull", "--out", "copy.json")
    folder.done("state", "rm", "kafka_acl.a", "--state", "copy.json")
    folder.done("state", "push", "copy.json")
    rights.declare("b")


EDITS: dict[str, Callable[[Rights], None]] = {
    "state rm": _rm,
    "forget": _forgotten,
    "state push": _pushed,
}


def _followed(folder: Folder) -> None:
    """The state is damaged, and what apply prints is typed to the letter."""
    state = folder.path / STATE
    state.write_bytes(state.read_bytes()[:-9])
    command = re.search(r"`(cp [^`]+)`", folder.fails(9, "apply", "-auto-approve"))
    assert command is not None
    subprocess.run(command[1], shell=True, check=True, timeout=120)


def _lost(folder: Folder) -> None:
    """State and backups are gone; the log alone is left."""
    (folder.path / STATE).unlink()


@pytest.mark.parametrize("back", [_followed, _lost])
@pytest.mark.parametrize("edit", EDITS)
def test_what_was_handed_over_stays(
    rights: Rights, edit: str, back: Callable[[Folder], None]
) -> None:
    """An ACL is handed to another team by `state rm`, by a block that forgets, or by a push. Then
    the state is damaged or lost, and the way back is followed: the next plan and apply leave the
    ACL alone, and say that they repeated the edit."""
    folder = rights.folder
    EDITS[edit](rights)
    back(folder)
    assert "0 to destroy" in folder.done("plan").text or "No changes" in folder.done("plan").text
    said = folder.done("apply", "-auto-approve")
    assert ("Repeated" in said.text) == (edit != "forget")
    assert rights.live() == {"a", "b"}
    assert owned(folder) == ["kafka_acl.b"]
    folder.done(*("destroy", "--confirm", folder.broker.cluster_id))
    folder.until(lambda: rights.live() == {"a"})


def test_a_move_is_repeated(rights: Rights) -> None:
    """`state mv` and a damaged state: the object keeps its new address and its origin, so that it
    is neither made anew nor left behind when its block goes."""
    folder = rights.folder
    folder.done("state", "mv", "kafka_acl.a", "kafka_acl.renamed")
    rights.declare("renamed", like="a")
    _followed(folder)
    assert "1 destroyed" in folder.done("apply", "-auto-approve").out
    assert owned(folder) == ["kafka_acl.renamed"]
    folder.until(lambda: rights.live() == {"a"})
    rights.declare()
    folder.done("destroy", "--confirm", folder.broker.cluster_id, "--accept-open-access")
    folder.until(lambda: rights.live() == set())


def test_a_plan_of_before_is_no_way_round(rights: Rights) -> None:
    """A deletion that was planned and saved before the object was let go is refused after it, with
    the backup of before in its place too."""
    folder = rights.folder
    rights.declare("b")
    folder.done("plan", "-out=p.kfplan")
    folder.done("state", "rm", "kafka_acl.a")
    folder.fails(4, "apply", "p.kfplan")
    _followed(folder)
    assert folder.run("apply", "p.kfplan").code == 4
    assert rights.live() == {"a", "b"}


def test_edits_of_an_earlier_version(rights: Rights) -> None:
    """They do not say what they left. A backup of before them is taken on, but what they touched is
    managed no more, which apply says; without any state it is refused, with a way out that works.
    Nothing is deleted."""
    folder = rights.folder
    before = (folder.path / STATE).read_bytes()
    folder.done("state", "rm", "kafka_acl.a")
    rewrite(folder, _without_rows)
    rights.declare("b")
    (folder.path / STATE).unlink()
    said = folder.fails(9, "apply", "-auto-approve")
    assert "1 edit of it" in said and "backups" in said
    state = codec.decode(before, STATE)
    (folder.path / STATE).write_bytes(codec.encode(_anchored(folder, state)))
    text = folder.done("apply", "-auto-approve").text
    assert "is no longer managed" in text and "adopt it again" in text
    assert (owned(folder), rights.live()) == (["kafka_acl.b"], {"a", "b"})


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


def test_the_way_back_in_a_store(folder: Folder, bucket: s3.Bucket) -> None:
    """The same with a state in an object store: the message names the earlier version there and
    what to copy over what, and after that the ACL stays."""
    rights = Rights(folder)
    rights.declare("a", "b")
    folder.done("apply", "-auto-approve")
    folder.until(lambda: rights.live() == {"a", "b"})
    _rm(rights)
    stored = bucket.objects["prod/state.json"]
    bucket.objects["prod/state.json"] = changed(stored, data=stored.data[:-9])
    said = folder.run("apply", "-auto-approve")
    found = re.search(r"copy s3://bucket/(\S+) over s3://bucket/(\S+) with", said.text)
    assert said.code == 9 and found is not None, said.text
    assert ".kafkaform" not in said.text
    bucket.objects[found[2]] = bucket.objects[found[1]]
    assert "Repeated 1 edit" in folder.done("apply", "-auto-approve").text
    assert rights.live() == {"a", "b"}
    assert owned(folder) == ["kafka_acl.b"]
    del bucket.objects["prod/state.json"]
    assert "Repeated 1 edit" in folder.done("apply", "-auto-approve").text
    assert (owned(folder), rights.live()) == (["kafka_acl.b"], {"a", "b"})
    assert isinstance(open_store().sink, ObjectSink)
    rights.clean()


# ── rows by hand ────────────────────────────────────────────────────────────────────────


def test_a_successor_stays(rights: Rights) -> None:
    """We deleted an ACL long ago; another team has made one like it since. The old row, put back
    into the state with a checksum that fits, deletes nothing: its origin has ended."""
    folder, path = rights.folder, rights.folder.path / STATE
    old = codec.decode(path.read_bytes(), STATE)
    rights.declare("b")
    folder.done("apply", "-auto-approve")
    folder.until(lambda: rights.live() == {"b"})
    rights.create("a")
    state = codec.decode(path.read_bytes(), STATE)
    (row,) = (row for row in old.objects.values() if row.owners == ("kafka_acl.a",))
    path.write_bytes(codec.encode(put_row(state, row)))
    _refused(folder, "does not show")
    assert rights.live() == {"a", "b"}


def test_what_was_let_go_is_not_taken_back_by_hand(rights: Rights) -> None:
    """The same with a row that `state rm` had taken out."""
    folder, path = rights.folder, rights.folder.path / STATE
    old = codec.decode(path.read_bytes(), STATE)
    _rm(rights)
    state = codec.decode(path.read_bytes(), STATE)
    (row,) = (row for row in old.objects.values() if row.owners == ("kafka_acl.a",))
    path.write_bytes(codec.encode(put_row(state, row)))
    _refused(folder, "does not show")
    assert rights.live() == {"a", "b"}


@pytest.mark.parametrize("command", [["plan"], ["apply", "-auto-approve"], ["destroy"]])
def test_another_cluster_stays(rights: Rights, command: list[str]) -> None:
    """A state and a log of another cluster, with the list of clusters emptied by hand: nothing is
    planned or done here, where others have ACLs like ours. Both ids are named."""
    folder, path = rights.folder, rights.folder.path / STATE
    rewrite(folder, _elsewhere)
    state = codec.decode(path.read_bytes(), STATE)
    path.write_bytes(codec.encode(replace(state, providers=EMPTY)))
    rights.declare("b")
    if command == ["destroy"]:
        command = ["destroy", "--confirm", folder.broker.cluster_id]
    said = folder.fails(4, *command)
    assert ELSEWHERE in said and folder.broker.cluster_id in said
    assert rights.live() == {"a", "b"}


def test_an_origin_of_another_cluster_proves_nothing(rights: Rights) -> None:
    """The log knows both clusters, this one last: a row with an origin of the other one deletes
    nothing here."""
    folder, path = rights.folder, rights.folder.path / STATE
    state = codec.decode(path.read_bytes(), STATE)
    (row,) = (row for row in state.objects.values() if row.owners == ("kafka_acl.a",))

    def moved(record: Record) -> FrozenMap:
        there = record.body.get("key") == row.identity.key and "outcome" in record.body
        return record.body.with_items({"scope_id": ELSEWHERE}) if there else record.body

    rewrite(folder, moved)
    rights.declare("b")
    _refused(folder, "does not show")
    assert rights.live() == {"a", "b"}


def _refused(folder: Folder, why: str) -> Said:
    said = folder.run("apply", "-auto-approve")
    assert said.code == 4 and why in said.text, said.text
    return said


# ── logs of other histories ─────────────────────────────────────────────────────────────


def rewrite(folder: Folder, body: Callable[[Record], FrozenMap]) -> None:
    """Write the log anew with other bodies, sealed again, and anchor the state at its end."""
    log: Path = folder.path / LOG
    head, lines = GENESIS, []
    for line in log.read_bytes().splitlines():
        old = decode(line)
        new = seal_record(
            head, time=old.time, run=old.run, actor=old.actor, kind=old.kind, body=body(old)
        )
        lines.append(encode(new) + b"\n")
        head = Head(new.seq, new.hash)
    log.write_bytes(b"".join(lines))
    path = folder.path / STATE
    state = codec.decode(path.read_bytes(), STATE)
    path.write_bytes(codec.encode(_anchored(folder, state)))


def _anchored(folder: Folder, state: codec.State) -> codec.State:
    """The state with the anchor of the same number in the log as it is now."""
    assert state.audit_head is not None
    lines = (folder.path / LOG).read_bytes().splitlines()
    hash_ = json.loads(lines[state.audit_head.seq - 1])["hash"]
    return replace(state, audit_head=Head(state.audit_head.seq, hash_))


def _without_rows(record: Record) -> FrozenMap:
    """An edit as earlier versions logged it."""
    if record.kind != "state":
        return record.body
    items = tuple(item.without(["row"]) for item in record.body["objects"])
    return record.body.with_items({"objects": items})


def _elsewhere(record: Record) -> FrozenMap:
    """What was done there was done in another cluster."""
    if "scope_id" not in record.body:
        return record.body
    return record.body.with_items({"scope_id": ELSEWHERE})


def test_a_release_ends_the_origin(folder: Folder) -> None:
    """Two keys of another team's topic, one of them ours: when our block goes, the key goes, nobody
    owns the object any more, and the log says so; its origin has ended."""
    folder.create("theirs")
    block = (
        f'resource "kafka_topic_config" "t" {{\n  topic = "{folder.prefix}theirs"\n'
        '  config = { "retention.ms" = "1000000" }\n}\n'
    )
    folder.write("config.kf.hcl", block)
    folder.declare("ours")
    folder.done("apply", "-auto-approve")
    folder.alter("theirs", "segment.bytes", "20000000")
    store = open_store()
    state = store.backend.load().state
    assert state is not None
    (row,) = (row for row in state.objects.values() if row.owners == ("kafka_topic_config.t",))
    found = read_log(store.sink, state)
    scope = folder.broker.cluster_id
    assert find_origin(found, row, scope) is not None
    assert find_origin(found, row, ELSEWHERE) is None
    assert find_origin(found, replace(row, incarnation="other"), scope) is None
    folder.write("config.kf.hcl", f"# {block}".replace("\n", "\n# "))
    folder.done("apply", "-auto-approve")
    folder.until(lambda: folder.config("theirs")["retention.ms"] != "1000000")
    assert folder.config("theirs")["segment.bytes"] == "20000000"
    (*_, last) = folder.records("outcome")
    assert (last["body"]["action"], last["body"]["owners"]) == ("update", [])
    assert find_origin(read_log(store.sink, store.backend.load().state), row, scope) is None
