"""The instruments of `make bench-peers`: memory and time of a process tree, and the relay."""

from __future__ import annotations

import socket
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ...bench.peers.launcher import Job, Outcome, launch
from ...bench.peers.relay import HOST, Frames, count_work, relaying

MIB = 1 << 20
linux = pytest.mark.skipif(sys.platform != "linux", reason="reads Linux' /proc")
FAMILY = f"""
import subprocess, sys, time
held = bytearray({60 * MIB})
child = "import time; held = bytearray({60 * MIB}); time.sleep(0.5)"
subprocess.run([sys.executable, "-c", child], check=True)
"""
ORPHAN = """
import subprocess, sys
work = "import time\\nend = time.process_time() + 0.6\\nwhile time.process_time() < end: pass"
subprocess.Popen([sys.executable, "-c", work], start_new_session=True)
"""


def run(tmp_path: Path, program: str, patience: float = 60.0) -> Outcome:
    words = (sys.executable, "-c", program)
    return launch(Job(words, str(tmp_path), {}, str(tmp_path / "said"), patience))


@linux
def test_memory_is_that_of_all_processes_together(tmp_path: Path) -> None:
    """A parent and a child with 60 MiB each hold more than 120 MiB at the same time."""
    found = run(tmp_path, FAMILY)
    assert found.code == 0
    assert found.peak > 120 * MIB
    assert found.wall > 0.5


@linux
def test_time_counts_what_outlives_the_command(tmp_path: Path) -> None:
    """A process that the command leaves behind is waited for, and its time counts."""
    found = run(tmp_path, ORPHAN)
    assert found.code == 0
    assert found.cpu > 0.6


def test_what_a_command_says_and_how_it_ends_is_kept(tmp_path: Path) -> None:
    """A failure can be told later with the tool's own words."""
    found = run(tmp_path, "import sys; print('out', flush=True); sys.exit('err')")
    assert found.code == 1
    assert (tmp_path / "said").read_text("utf-8") == "out\nerr\n"


def test_a_command_that_never_ends_is_ended(tmp_path: Path) -> None:
    """It has no exit code, and so no figure."""
    assert run(tmp_path, "import time; time.sleep(300)", patience=0.5).code is None


# ── the relay ───────────────────────────────────────────────────────────────────────────


@contextmanager
def answering(answer: bytes) -> Iterator[int]:
    """A broker that gives each request this answer; its port."""
    with socket.create_server((HOST, 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    near, _ = listener.accept()
                except OSError:
                    return
                threading.Thread(target=reply, args=(near,), daemon=True).start()

        def reply(near: socket.socket) -> None:
            with near, near.makefile("rb") as stream:
                while head := stream.read(4):
                    body = stream.read(int.from_bytes(head, "big"))
                    near.sendall(frame(body[4:8] + answer))

        threading.Thread(target=serve, daemon=True).start()
        yield listener.getsockname()[1]


def frame(body: bytes) -> bytes:
    return len(body).to_bytes(4, "big") + body


def request(key: int, number: int) -> bytes:
    return frame(struct.pack(">hhi", key, 12, number) + b"rest")


def ask(stream: socket.socket, *frames: bytes) -> list[bytes]:
    """The answers to requests that are sent at once."""
    stream.sendall(b"".join(frames))
    with stream.makefile("rb") as answers:
        return [answers.read(int.from_bytes(answers.read(4), "big")) for _ in frames]


def test_requests_are_counted_by_api() -> None:
    """Also several in one packet; those of logging in can be told apart."""
    with answering(b"") as port, relaying([port]) as relay:
        with socket.create_connection((HOST, relay.ports[port])) as stream:
            ask(stream, request(18, 1), request(3, 2), request(32, 3), request(32, 4))
        taken = relay.take()
        assert taken == {"ApiVersions": 1, "Metadata": 1, "DescribeConfigs": 2}
        assert count_work(taken) == 3
        assert relay.take() == {}


def test_answers_lead_back_to_the_relay() -> None:
    """The broker's address in an answer becomes the relay's, and nothing else changes."""
    with answering(b"") as other:
        pass
    name = HOST.encode()
    with (
        answering(b"a" + name + other.to_bytes(4, "big") + b"z") as port,
        relaying([port, other]) as relay,
        socket.create_connection((HOST, relay.ports[port])) as stream,
    ):
        (answer,) = ask(stream, request(3, 7))
        moved = relay.ports[other].to_bytes(4, "big")
        assert answer == (7).to_bytes(4, "big") + b"a" + name + moved + b"z"


def test_a_delay_keeps_the_order() -> None:
    """Each round trip takes the delay longer, a new connection one more, and nothing overtakes."""
    with (
        answering(b"") as port,
        relaying([port], delay=0.1) as relay,
        socket.create_connection((HOST, relay.ports[port])) as stream,
    ):
        begun = time.monotonic()
        answers = ask(stream, *(request(3, number) for number in range(200)))
        first = time.monotonic() - begun
        assert [int.from_bytes(answer, "big") for answer in answers] == list(range(200))
        assert first >= 0.2
        begun = time.monotonic()
        ask(stream, request(3, 200))
        assert time.monotonic() - begun >= 0.1


def test_a_frame_can_come_in_pieces() -> None:
    """TCP cuts where it likes."""
    frames = Frames()
    whole = request(3, 1) + request(32, 2)
    pieces = [whole[at : at + 5] for at in range(0, len(whole), 5)]
    assert b"".join(found for piece in pieces for found in frames.feed(piece)) == whole


def test_the_relay_ends_with_open_connections() -> None:
    """A tool that is killed leaves nothing behind."""
    with answering(b"") as port, relaying([port]) as relay:
        stream = socket.create_connection((HOST, relay.ports[port]))
        ask(stream, request(3, 1))
    with stream:
        assert stream.recv(1) == b""
