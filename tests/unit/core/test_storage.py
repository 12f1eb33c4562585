"""Files that users name: whatever is in their place, reading them ends."""

from __future__ import annotations

import errno
import os
import socket
import threading
from pathlib import Path

import pytest

from kafkaform.core import storage
from kafkaform.core.storage import read_named_file, require_regular_file


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as opened:
        opened.bind(str(path))


PLACES = {
    "a named pipe": os.mkfifo,
    "a folder": Path.mkdir,
    "a link to a device without end": lambda path: path.symlink_to("/dev/zero"),
    "a link to itself": lambda path: path.symlink_to(path.name),
    "nothing": lambda path: None,
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("place", PLACES)
def test_what_is_not_a_regular_file_is_refused(tmp_path: Path, place: str) -> None:
    """With a reason, and without waiting."""
    path = tmp_path / "file"
    PLACES[place](path)
    for read in (lambda: read_named_file(path, 100), lambda: require_regular_file(path)):
        with pytest.raises(OSError) as refused:
            read()
        assert refused.value.strerror


@pytest.mark.timeout(20)
def test_a_socket_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It cannot be opened as a file."""
    monkeypatch.chdir(tmp_path)  # the path of a socket is short
    make_socket(Path("file"))
    for read in (lambda: read_named_file("file", 100), lambda: require_regular_file("file")):
        with pytest.raises(OSError):
            read()


def test_a_name_with_a_nul(tmp_path: Path) -> None:
    """It is an error of the file, as any other."""
    with pytest.raises(OSError, match="NUL"):
        read_named_file("a\0b", 100)


def test_links_and_the_empty_device_are_read(tmp_path: Path) -> None:
    """A link to a file is the file, and /dev/null is an empty one."""
    (tmp_path / "file").write_bytes(b"text")
    (tmp_path / "link").symlink_to("file")
    assert read_named_file(tmp_path / "link", 4) == b"text"
    assert read_named_file(os.devnull, 4) == b""


def test_a_file_that_is_too_long(tmp_path: Path) -> None:
    """It is read up to the limit, and no further."""
    (tmp_path / "file").write_bytes(b"12345")
    assert read_named_file(tmp_path / "file", 5) == b"12345"
    with pytest.raises(OSError, match="more than 4 bytes") as refused:
        read_named_file(tmp_path / "file", 4)
    assert refused.value.errno == errno.EFBIG


@pytest.mark.timeout(60)
def test_pipes_of_a_shell(tmp_path: Path) -> None:
    """`<(command)` is a stream of this process, and is read to its end, however late that comes."""
    reader, writer = os.pipe()
    thread = threading.Thread(target=lambda: (os.write(writer, b"one"), os.close(writer)))
    thread.start()
    assert read_named_file(f"/dev/fd/{reader}", 100) == b"one"
    thread.join()
    os.close(reader)


@pytest.mark.timeout(60)
def test_named_pipes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where they are allowed, one is read if somebody writes to it; otherwise reading ends."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    thread = threading.Thread(target=pipe.write_bytes, args=(b"one",))
    thread.start()
    assert read_named_file(pipe, 100, pipes=True) == b"one"
    thread.join()
    monkeypatch.setattr(storage, "PIPE_SECONDS", 0.01)
    with pytest.raises(OSError, match="nothing is written to it"):
        read_named_file(pipe, 100, pipes=True)
