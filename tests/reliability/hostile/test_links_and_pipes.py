"""What lies where a file should be: links, other names of other files, pipes, folders. Each is
refused or harmless, nothing waits for ever, and what a link leads to keeps its bytes."""

from __future__ import annotations

import os
import shutil
import stat
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from msgspec.structs import replace

from kafkaform.audit.records import RecordKind
from kafkaform.audit.sink import read_manifest
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.clock import SystemClock
from kafkaform.core.errors import KafkaformError, StorageError
from kafkaform.core.value import FrozenMap
from kafkaform.state.backends.local import LocalBackend
from kafkaform.state.model import LockInfo, State
from kafkaform.workflow.plan_documents import load_plan, save_file
from kafkaform.workflow.workspace import read_log

from ...kit import audit_story as story
from ...kit.commands.folder import Folder
from ...kit.sealing import seal

BYTES = b"of somebody else\n"
INFO = LockInfo("run", "me", "here", 1, "now", "apply")

Trap = Callable[[Path, Path], None]
"""Puts something where a file should be; the other path is of a file that must keep its bytes."""


def _folder(path: Path, _: Path) -> None:
    path.mkdir()
    (path / "inner").write_bytes(BYTES)


TRAPS: Mapping[str, Trap] = {
    "a link to a file": lambda path, victim: path.symlink_to(victim),
    "a relative link": lambda path, victim: path.symlink_to(
        os.path.relpath(victim, path.parent.resolve())
    ),
    "a link to a link": lambda path, victim: (
        (path.with_name("between")).symlink_to(victim),
        path.symlink_to("between"),
    )[0],
    "a link to nothing": lambda path, victim: path.symlink_to(victim.with_name("new")),
    "a link to itself": lambda path, _: path.symlink_to(path.name),
    "a link to a device": lambda path, _: path.symlink_to("/dev/zero"),
    "a link to the environment": lambda path, _: path.symlink_to("/proc/self/environ"),
    "another name of a file": lambda path, victim: path.hardlink_to(victim),
    "a pipe": lambda path, _: os.mkfifo(path),
    "a folder": _folder,
}


STATE, LOG = "kafkaform.state.json", "kafkaform.audit.jsonl"
HIDDEN = Path(".kafkaform")


def _apply(folder: Path) -> None:
    """What an apply does with its files: lock, read, prove room, log, save and keep."""
    backend, sink, clock = LocalBackend(folder / STATE), LocalSink(folder / LOG), SystemClock()
    with backend.lock(INFO, 0, clock):
        loaded = backend.load()
        read_log(sink, loaded.state)
        sink.set_aside(1)
        backend.check_writable()
        sink.check_writable()
        log = story.journal(sink, "r")
        log.write(RecordKind.STATE, FrozenMap(n=1))
        version = backend.save(State("lineage"), loaded.version)
        backend.save(replace(State("lineage"), serial=1), version)


def _plan(folder: Path) -> None:
    """What a plan reads."""
    state = LocalBackend(folder / STATE).load().state
    read_log(LocalSink(folder / LOG), state)
    LocalBackend(folder / STATE).holder()


def _out(folder: Path) -> None:
    save_file(folder / "p.json", b"plan", private=True)


def _comment(folder: Path) -> None:
    save_file(folder / "c.md", b"comment", private=False)


def _in(folder: Path) -> None:
    load_plan(folder / "p.json")


PLACES: Mapping[str, tuple[Path, Callable[[Path], None]]] = {
    "state": (Path(STATE), _apply),
    "state, read": (Path(STATE), _plan),
    "log": (Path(LOG), _apply),
    "log, read": (Path(LOG), _plan),
    "folder": (HIDDEN, _apply),
    "lock": (HIDDEN / "lock", _apply),
    "lock, read": (HIDDEN / "lock", _plan),
    "backups": (HIDDEN / "backups", _apply),
    "backup": (HIDDEN / "backups" / f"{STATE}.0", _apply),
    "plan": (Path("p.json"), _out),
    "plan, read": (Path("p.json"), _in),
    "comment": (Path("c.md"), _comment),
}


@pytest.fixture
def victim(tmp_path: Path) -> Path:
    """A file of somebody else, beside the folder."""
    (tmp_path / "pr").mkdir()
    path = tmp_path / "victim"
    path.write_bytes(BYTES)
    return path


@pytest.mark.timeout(20)
@pytest.mark.parametrize("trap", TRAPS)
@pytest.mark.parametrize("place", PLACES)
def test_what_is_put_in_a_place(place: str, trap: str, victim: Path) -> None:
    """It ends, with a refusal in plain words or as if nothing had been there; nothing outside
    of the folder changes, and what a folder holds stays."""
    folder = victim.parent / "pr"
    name, use = PLACES[place]
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    TRAPS[trap](folder / name, victim)
    try:
        use(folder)
    except KafkaformError as refused:
        told = f"{refused.message} {refused.advice}"
        assert refused.advice and BYTES.decode().strip() not in told
    assert victim.read_bytes() == BYTES
    assert not victim.with_name("new").exists()
    if trap == "a folder" and (folder / name).is_dir():
        assert (folder / name / "inner").read_bytes() == BYTES


WRITTEN = [place for place in PLACES if "read" not in place]


@pytest.mark.parametrize("place", WRITTEN)
def test_links_are_refused_where_something_is_written(place: str, victim: Path) -> None:
    """A place for our own files is never a link; a backup that is one is replaced."""
    folder = victim.parent / "pr"
    name, use = PLACES[place]
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).symlink_to(victim)
    if place == "backup":
        use(folder)
        assert not (folder / name).is_symlink()
        return
    with pytest.raises(StorageError, match="symbolic link|File exists|not a folder"):
        use(folder)


@pytest.mark.parametrize("place", ["folder", "backups"])
def test_a_link_to_a_folder(place: str, victim: Path) -> None:
    """Neither lock nor earlier states go where such a link leads."""
    folder, elsewhere = victim.parent / "pr", victim.parent / "elsewhere"
    elsewhere.mkdir()
    name, use = PLACES[place]
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).symlink_to(elsewhere)
    with pytest.raises(StorageError, match="symbolic link"):
        use(folder)
    assert list(elsewhere.iterdir()) == []


def test_a_folder_that_everybody_may_write(victim: Path) -> None:
    """There, too, our files are ours alone: temporary names cannot be guessed, and others may
    neither read state, log and plan nor write them."""
    folder = victim.parent / "pr"
    folder.chmod(0o777)
    before = os.umask(0)
    try:
        _apply(folder)
        _out(folder)
    finally:
        os.umask(before)
    modes = {
        str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode)
        for path in folder.rglob("*")
    }
    expected = {
        **{STATE: 0o600, LOG: 0o600, "p.json": 0o600, ".kafkaform": 0o700},
        **{".kafkaform/lock": 0o600, ".kafkaform/backups": 0o700},
        f".kafkaform/backups/{STATE}.0": 0o600,
    }
    assert modes == expected


def test_a_plan_replaces_a_plan(victim: Path) -> None:
    """A file that was there is replaced whole; rights that were wider are not kept, and another
    name of it keeps the old bytes."""
    folder = victim.parent / "pr"
    (folder / "p.json").hardlink_to(victim)
    victim.chmod(0o666)
    _out(folder)
    assert (folder / "p.json").read_bytes() == b"plan"
    assert stat.S_IMODE((folder / "p.json").stat().st_mode) == 0o600
    assert sorted(path.name for path in folder.iterdir()) == ["p.json"]


def test_on_the_command_line(folder: Folder, tmp_path: Path) -> None:
    """`plan --out` and `--comment` refuse links with advice, write private plans, and a plan
    that is a pipe does not hang who shows it."""
    folder.declare("a")
    outside = tmp_path / "outside.txt"
    outside.write_bytes(BYTES)
    (tmp_path / "p.json").symlink_to(outside)
    (tmp_path / "c.md").symlink_to(outside)
    for flag in ("--out=p.json", "--comment=c.md"):
        said = folder.run("plan", flag)
        assert said.code == 9 and "symbolic link" in said.text and "another place" in said.text
    assert outside.read_bytes() == BYTES
    folder.done("plan", "--out=real.json")
    assert stat.S_IMODE((tmp_path / "real.json").stat().st_mode) == 0o600
    (tmp_path / "through.json").symlink_to("real.json")
    folder.done("show", "through.json")
    os.mkfifo(tmp_path / "pipe.json")
    assert "not a regular file" in folder.fails(1, "show", "pipe.json")
    assert "not a regular file" in folder.fails(1, "apply", "pipe.json")


@pytest.mark.parametrize("step", ["", "segments"])
def test_a_link_in_place_of_the_segments_is_refused(tmp_path: Path, step: str) -> None:
    """A log whose old records are behind a link is not read, sealed or cleaned up."""
    folder, elsewhere = tmp_path / "folder", tmp_path / "elsewhere"
    folder.mkdir()
    sink = LocalSink(folder / LOG)
    log = story.journal(sink, "r")
    for number in range(12):
        log.write(RecordKind.STATE, FrozenMap(n=number))
    seal(sink)
    before = read_manifest(sink.sealed)
    victim = elsewhere / ".notes.tmp"
    place = folder / "kafkaform.audit" / step
    shutil.move(place, elsewhere)
    victim.write_text("theirs")
    place.symlink_to(elsewhere)
    for number in range(2):
        log.write(RecordKind.STATE, FrozenMap(n=number))
    with pytest.raises(StorageError):
        list(sink.lines())
    with pytest.raises(StorageError):
        seal(sink)
    if not step:
        sink.check_writable()
    assert victim.read_text() == "theirs"
    place.unlink()
    victim.unlink()
    shutil.move(elsewhere, place)
    assert read_manifest(sink.sealed) == before
    assert len(list(sink.lines())) == 14
