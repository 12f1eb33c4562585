"""The window changes nothing: no file, no lock, no cluster."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from kafkaform.audit.sinks.local import LocalSink
from kafkaform.state.backends.local import LocalBackend
from kafkaform.window.page import make_id
from kafkaform.workflow.stores import STATE_FILE

from ...kit.markup import Page
from .test_repository import make_repository
from .test_repository import make_sources as make_repository_sources
from .world import Window, make_folder, make_sources, open_window

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = frozenset(
    {
        *("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate"),
        *("os.utime", "os.chmod", "os.chown", "os.setxattr", "os.removexattr", "os.mkfifo"),
        *("shutil.rmtree", "shutil.move", "shutil.copyfile", "tempfile.mkstemp"),
        *("tempfile.mkdtemp", "fcntl.flock", "fcntl.lockf", "subprocess.Popen", "os.system"),
        *("socket.connect", "socket.getaddrinfo", "socket.sendto", "os.exec", "os.fork"),
    }
)
"""Audit events of Python that change files, take locks, start programs or connect."""

_seen: list[str] = []
_watched = threading.Event()


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    # The client of the test runs in the main thread, and the window's requests in others.
    if not _watched.is_set() or threading.current_thread() is threading.main_thread():
        return
    if event in CHANGES:
        _seen.append(f"{event} {arguments[:2]}")
    elif event == "open" and isinstance(arguments[2], int) and arguments[2] & WRITES:
        _seen.append(f"open for writing {arguments[0]}")


sys.addaudithook(_watch)


@pytest.fixture
def watched() -> Iterator[list[str]]:
    """What the threads of the window change."""
    _seen.clear()
    _watched.set()
    yield _seen
    _watched.clear()


def crawl(window: Window, folder: str = "") -> int:
    """Ask for every page that can be reached; how many there are. folder: whose forms are sent."""
    root = window.server.gate.root
    waiting, seen = [""], set()
    while waiting:
        path = waiting.pop()
        if path in seen:
            continue
        seen.add(path)
        made = Page(window.page(path))
        links = [str(a["href"]) for a in made.all("a")]
        waiting += [one.removeprefix(root) for one in links if one.startswith(root)]
    forms = ("access?kind=Topic&name=orders", "objects?q=orders", "log?first=200")
    return len(seen) + sum(1 for path in forms if window.page(folder + path))


def read_text(window: Window, path: str) -> str:
    return " ".join(" ".join(text for _, text in Page(window.page(path)).texts).split())


def snapshot(folder: Path) -> dict[str, tuple[Any, ...]]:
    """Everything about each file that a write would change."""
    found = {}
    for path in (folder, *sorted(folder.rglob("*"))):
        about = path.lstat()
        whole = path.read_bytes() if path.is_file() else b""
        found[str(path)] = (
            *(about.st_ino, about.st_mode, about.st_nlink, about.st_size),
            *(about.st_mtime_ns, about.st_ctime_ns, whole),
        )
    return found


CONFIGURATION = """
provider "kafka" {
  bootstrap_servers = ["127.0.0.1:1"]
  sasl_username     = "ci"
  sasl_password     = secret_command(["touch", "touched"])
  authorizer {
    super_users     = ["User:declared"]
    allow_if_no_acl = false
  }
}
data "kafka_topics" "all" {}
resource "kafka_topic" "copy" { name = "copy-${length(data.kafka_topics.all.names)}" }
"""
"""It would connect and start a program, if a plan was made of it."""


def test_no_page_changes_a_file(tmp_path: Path, watched: list[str]) -> None:
    """Names, contents, times and inodes of the folder are the same after every page was shown, and
    no thread of the window opened a file to write, took a lock, started a program or connected."""
    folder = make_folder(tmp_path / "folder")
    (folder / "main.kf.hcl").write_text(CONFIGURATION)
    before = snapshot(folder)
    with open_window(make_sources(folder)) as window:
        assert "User:declared Read" in read_text(window, "access?kind=Topic&name=orders")
        assert crawl(window) > 15
        assert window.faults == []
    assert snapshot(folder) == before
    assert watched == []


def test_no_page_of_a_repository_changes_a_file(tmp_path: Path, watched: list[str]) -> None:
    """Nor does one of its folders, and no folder is made for a state."""
    top = make_repository(tmp_path / "top")
    (top / "teams/broken" / STATE_FILE).unlink()
    (top / "teams/shop/connection.kf.hcl").write_text(CONFIGURATION)
    before = snapshot(top)
    with open_window(make_repository_sources(top)) as window:
        assert crawl(window, f"folders/{make_id('teams/shop')}/") > 30
        assert window.faults == []
    assert snapshot(top) == before
    assert watched == []


def test_the_watcher_sees_writes(tmp_path: Path, watched: list[str]) -> None:
    """Otherwise the test above would prove nothing."""

    def write() -> None:
        (tmp_path / "x").write_text("x")
        (tmp_path / "x").rename(tmp_path / "y")

    thread = threading.Thread(target=write)
    thread.start()
    thread.join()
    assert [one.partition(" ")[0] for one in watched] == ["open", "os.rename"]


def test_it_works_in_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    """A read-only copy of a folder shows the same pages."""
    folder = make_folder(tmp_path / "folder")
    for path in (folder, *folder.iterdir()):
        if not path.is_symlink():
            path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        with open_window(make_sources(folder)) as window:
            assert crawl(window) > 15
    finally:
        folder.chmod(0o755)


@pytest.mark.parametrize("empty", [True, False])
def test_functions_that_write_are_never_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, empty: bool
) -> None:
    """Neither those of the state's backend nor those of the log's sink."""
    folder = tmp_path / "folder"
    folder.mkdir()
    if not empty:
        make_folder(folder)
    called: list[str] = []

    def refuse(name: str) -> Callable[..., NoReturn]:
        def record(*_: object, **__: object) -> NoReturn:
            called.append(name)
            raise AssertionError(name)

        return record

    for name in ("lock", "save", "rescue", "probe", "break_lock", "check_writable", "holder"):
        monkeypatch.setattr(LocalBackend, name, refuse(name))
    for name in ("append", "claim", "set_aside", "check_writable"):
        monkeypatch.setattr(LocalSink, name, refuse(name))
    with open_window(make_sources(folder)) as window:
        assert crawl(window) > 5
    assert called == []
