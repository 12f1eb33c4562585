"""Servers beside the brokers: started, waited for, told when they fail, and ended."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from kafkaform.core.errors import ConnectError, Interrupted, KafkaformError, UsageError
from kafkaform.core.progress import Event, Message, Progress
from kafkaform.render.diagnostics import render_diagnostics
from kafkaform.sandbox import brokers, lifecycle, process, read_status, record
from kafkaform.sandbox.brokers import SandboxState
from kafkaform.sandbox.process import Process, identify_process
from kafkaform.sandbox.record import Broker, Phase, Sandbox, Server, ServerKind
from kafkaform.sandbox.servers import start
from kafkaform.sandbox.servers.start import (
    Program,
    check_servers,
    list_connect_versions,
    start_servers,
)

REGISTRY, CONNECT = ServerKind.SCHEMA_REGISTRY, ServerKind.CONNECT
GONE = Process(2, "never")
PROGRAM = """\
import http.server, os, sys, time
mode, port = sys.argv[-2:]
print(mode, "starts", flush=True)
if mode == "taken" and not os.path.exists("taken"):
    open("taken", "w").close()
    mode = "failing"
    print("java.net.BindException: Address already in use", flush=True)
if mode == "failing":
    print("\\tat some.Frame(line)", flush=True)
    sys.exit(1)
if mode == "silent":
    time.sleep(600)
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200 if self.headers["Authorization"] == "login" else 401)
        self.end_headers()
http.server.HTTPServer(("127.0.0.1", int(port)), Handler).serve_forever()
"""
"""What stands for a Java program here."""


@pytest.fixture
def running(box: Sandbox) -> Iterator[Sandbox]:
    """A sandbox whose broker is this process. Its servers are ended afterwards."""
    here = identify_process(os.getpid())
    broker = replace(box.brokers[0], process=here)
    known = replace(box, brokers=(broker,), connect_password="connect-password")
    record.save_sandbox(known)
    yield known
    found = record.load_sandbox(box.name)
    left = [server.process for server in found.servers if server.process] if found else []
    process.end_processes(left, 0)


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[ServerKind, Program]:
    """Programs that answer at once; a test replaces the one that should fail."""
    java, script = tmp_path / "java", tmp_path / "program.py"
    script.write_text(PROGRAM)
    java.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{script}" "$@"\n')
    java.chmod(java.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(start.versions, "find_java", lambda _: java)
    found = {kind: make_program("serving") for kind in ServerKind}
    monkeypatch.setattr(start, "PROGRAMS", found)
    return found


def make_program(mode: str) -> Program:
    def find_class_path(*_: object) -> tuple[Path, ...]:
        return ()

    def write_files(*_: object) -> None:
        pass

    return Program(
        title=f"The {mode} program",
        main="main",
        find_class_path=find_class_path,
        write_files=write_files,
        make_options=lambda *_: (),
        make_arguments=lambda _, server: (mode, str(server.port)),
        ready_path="/",
        make_headers=lambda _: {"Authorization": "login"},
    )


def list_pids(box: Sandbox) -> list[int]:
    return [server.process.pid for server in box.servers if server.process is not None]


def test_servers_answer_when_the_command_returns(
    running: Sandbox, programs: dict[ServerKind, Program]
) -> None:
    """Both start at the same time, are on record, and are counted as they answer."""
    told: list[Event] = []
    box = start_servers(running.name, (CONNECT, REGISTRY), 60, told.append)
    assert [server.kind for server in box.servers] == [REGISTRY, CONNECT]
    assert all(start.is_answering(box, server) for server in box.servers)
    assert record.load_sandbox(running.name) == box
    assert read_status(running.name).state is SandboxState.RUNNING
    last = told[-1]
    assert isinstance(last, Progress) and last.finished and last.done == last.total == 2


def test_what_runs_already_stays(running: Sandbox, programs: dict[ServerKind, Program]) -> None:
    """A second server is added to the first; asking for either once more does nothing."""
    first = list_pids(start_servers(running.name, (REGISTRY,), 60))
    both = start_servers(running.name, (CONNECT,), 60)
    assert list_pids(both)[:1] == first and len(list_pids(both)) == 2
    assert start_servers(running.name, (REGISTRY, CONNECT), 60) == both


def test_up_starts_again_what_has_ended(
    running: Sandbox, programs: dict[ServerKind, Program]
) -> None:
    """`status` says which one, and it gets its port of before, at which clients look for it."""
    box = start_servers(running.name, (REGISTRY, CONNECT), 60)
    ended = box.servers[1].process
    assert ended is not None
    process.end_processes((ended,), 0)
    found = read_status(running.name)
    assert found.state is SandboxState.DEGRADED
    assert found.alive_servers == box.servers[:1]
    assert "but not connect" in found.explanation and "`up` starts" in found.explanation
    assert lifecycle.up(running.make_options(), lambda _: 1) == box
    again = start_servers(running.name, (), 60)
    assert again.servers[0] == box.servers[0]
    assert again.servers[1].port == box.servers[1].port
    assert again.servers[1].process != ended


def test_a_program_that_ends_is_told_in_its_own_words(
    running: Sandbox, programs: dict[ServerKind, Program]
) -> None:
    """Without stack frames. It stays on record, so that its log can be read; the broker runs."""
    programs[CONNECT] = make_program("failing")
    with pytest.raises(ConnectError) as caught:
        start_servers(running.name, (CONNECT,), 60)
    shown = render_diagnostics(caught.value.diagnostics)
    assert "The failing program ended while it was starting\n│ failing starts" in shown
    assert "\tat " not in caught.value.message and "logs" in caught.value.advice
    found = read_status(running.name)
    assert found.state is SandboxState.DEGRADED and len(found.alive) == 1
    assert list_pids(found.sandbox) == []
    assert "[connect] failing starts" in brokers.read_last_lines(found.sandbox, 5)


def test_a_program_that_says_nothing_is_ended(
    running: Sandbox, programs: dict[ServerKind, Program]
) -> None:
    """After the deadline; the other one, which answers, runs on."""
    programs[CONNECT] = make_program("silent")
    box = start_servers(running.name, (REGISTRY,), 60)
    with pytest.raises(ConnectError, match="The silent program did not answer within 1 seconds"):
        start_servers(running.name, (CONNECT,), 1)
    found = record.load_sandbox(running.name)
    assert found is not None and list_pids(found) == list_pids(box)
    assert found.find_server(REGISTRY) == box.find_server(REGISTRY)


def test_a_taken_port_is_no_failure(running: Sandbox, programs: dict[ServerKind, Program]) -> None:
    """Between the look at a port and the start of the server anybody may take it."""
    told: list[Event] = []
    programs[REGISTRY] = make_program("taken")
    box = start_servers(running.name, (REGISTRY, CONNECT), 60, told.append)
    assert all(start.is_answering(box, server) for server in box.servers)
    assert Message("another program has taken one of its ports: trying others") in told


def test_ctrl_c_leaves_no_server_that_was_starting(
    running: Sandbox, programs: dict[ServerKind, Program]
) -> None:
    """The brokers run on, and the message says so."""
    programs[CONNECT] = make_program("silent")
    pids: list[int] = []

    def interrupt(event: Event) -> None:
        found = record.load_sandbox(running.name)
        assert found is not None
        pids.extend(list_pids(found))
        raise KeyboardInterrupt

    with pytest.raises(Interrupted, match="the brokers of paper run"):
        start_servers(running.name, (CONNECT,), 60, interrupt)
    assert len(pids) == 1 and identify_process(pids[0]) is None


def test_servers_need_brokers(box: Sandbox, programs: dict[ServerKind, Program]) -> None:
    """Of a sandbox that is stopped, nothing is started."""
    record.save_sandbox(replace(box, phase=Phase.STOPPED))
    with pytest.raises(UsageError, match="do not run"):
        start_servers(box.name, (REGISTRY,), 60)
    with pytest.raises(UsageError, match="there is no sandbox named papre"):
        start_servers("papre", (REGISTRY,), 60)


def test_brokers_of_an_earlier_version_have_no_user_for_connect(
    running: Sandbox, programs: dict[ServerKind, Program]
) -> None:
    """They would refuse every login, minutes later; the registry needs no broker."""
    record.save_sandbox(replace(running, connect_password=""))
    with pytest.raises(UsageError, match="an earlier version") as caught:
        start_servers(running.name, (CONNECT,), 60)
    assert "--keep-data" in caught.value.advice
    start_servers(running.name, (REGISTRY,), 60)


def test_connect_of_a_version_without_a_list_is_refused(home: Path) -> None:
    """Before any broker starts; the message names the versions that there are."""
    with pytest.raises(UsageError, match=r"Kafka Connect 3\.9\.2") as caught:
        check_servers((CONNECT,), "3.9.2")
    assert all(version in caught.value.advice for version in list_connect_versions())
    check_servers((CONNECT,), "4.3.1")
    check_servers((REGISTRY,), "3.9.2")


def test_servers_end_before_the_brokers(box: Sandbox) -> None:
    """A worker says goodbye to a broker, and that one to ZooKeeper."""
    one, two, three, four = (Process(pid, "a") for pid in (3, 4, 5, 6))
    servers = (Server(REGISTRY, 20005, one), Server(CONNECT, 20006, two))
    brokers = (Broker(1, box.brokers[0].ports, three),)
    full = replace(box, servers=servers, brokers=brokers, zookeeper_process=four)
    assert full.list_stages() == ((one, two), (three,), (four,))
    assert full.list_processes() == (one, two, three, four)
    assert full.without_processes().list_processes() == ()


@pytest.mark.parametrize(
    ("servers", "where"),
    [
        ((Server(REGISTRY, 20005), Server(REGISTRY, 20006)), "servers"),
        ((Server(REGISTRY, 0),), "servers[0].port"),
        ((Server(REGISTRY, 20005), Server(CONNECT, 1 << 16)), "servers[1].port"),
        ((Server(CONNECT, 20006, Process(1, "")),), "servers[0].process.pid"),
    ],
)
def test_a_record_with_impossible_servers_is_refused(
    box: Sandbox, servers: tuple[Server, ...], where: str
) -> None:
    """By its processes and ports a sandbox is ended and found."""
    record.save_sandbox(replace(box, servers=servers))
    with pytest.raises(KafkaformError) as caught:
        record.load_sandbox(box.name)
    assert where in caught.value.message


def test_a_sandbox_keeps_its_servers_when_it_ends(box: Sandbox) -> None:
    """The next `up` starts them again: their state is among the data that is kept."""
    servers = (Server(REGISTRY, 20005, GONE), Server(CONNECT, 20006, GONE))
    record.save_sandbox(replace(box, servers=servers))
    stopped = lifecycle.down(box.name, keep_data=True)
    assert stopped is not None
    assert [server.kind for server in stopped.sandbox.servers] == [REGISTRY, CONNECT]
    assert list_pids(stopped.sandbox) == []
