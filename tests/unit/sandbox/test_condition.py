"""What users are told of sandboxes in every condition."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from msgspec.structs import replace

from kafkaform.core.errors import KafkaformError, Locked, UsageError
from kafkaform.sandbox import brokers, lifecycle, read_status, record
from kafkaform.sandbox.brokers import SandboxState
from kafkaform.sandbox.process import Process, identify_process
from kafkaform.sandbox.record import Broker, Phase, Sandbox, SandboxOptions

GONE = Process(2, "never")


def with_processes(box: Sandbox, *processes: Process | None) -> Sandbox:
    ports = box.brokers[0].ports
    brokers = tuple(Broker(number, ports, each) for number, each in enumerate(processes, 1))
    return replace(box, brokers=brokers)


@pytest.mark.parametrize(
    ("phase", "living", "state"),
    [
        (Phase.RUNNING, (True, True, True), SandboxState.RUNNING),
        (Phase.RUNNING, (True, False, True), SandboxState.DEGRADED),
        (Phase.RUNNING, (False, False, False), SandboxState.CRASHED),
        (Phase.STARTING, (True, False, False), SandboxState.HALF_STARTED),
        (Phase.FAILED, (False, False, False), SandboxState.FAILED),
        (Phase.STOPPED, (False, False, False), SandboxState.STOPPED),
    ],
)
def test_state_follows_from_record_and_processes(
    box: Sandbox, phase: Phase, living: tuple[bool, ...], state: SandboxState
) -> None:
    """Each condition has its own word, and all but `running` say what to do."""
    here = identify_process(os.getpid())
    processes = (here if lives else GONE for lives in living)
    record.save_sandbox(replace(with_processes(box, *processes), phase=phase))
    found = read_status(box.name)
    assert found.state is state
    assert len(found.alive) == sum(living)
    assert bool(found.explanation) is (state is not SandboxState.RUNNING)


def test_a_broker_without_its_zookeeper_is_degraded(box: Sandbox) -> None:
    """It runs on, and can change nothing: `up` starts both again."""
    here = identify_process(os.getpid())
    both = replace(with_processes(box, here), zookeeper=True, kafka_version="3.9.2")
    for zookeeper, state in ((here, SandboxState.RUNNING), (GONE, SandboxState.DEGRADED)):
        record.save_sandbox(replace(both, zookeeper_process=zookeeper))
        assert read_status(box.name).state is state
    assert both.make_options().zookeeper and both.make_options().kafka_version == "3.9.2"


def test_brokers_end_before_their_zookeeper(box: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that cannot reach it any more would wait, and then be killed."""
    ended: list[tuple[Process, ...]] = []
    monkeypatch.setattr(brokers, "end_processes", lambda some, _: ended.append(some) or some)
    broker, zookeeper = Process(3, "a"), Process(4, "b")
    both = replace(with_processes(box, broker), zookeeper=True, zookeeper_process=zookeeper)
    assert brokers.end_sandbox(both) == (broker, zookeeper)
    assert ended == [(broker,), (zookeeper,)]


def test_the_log_of_zookeeper_is_shown(box: Sandbox) -> None:
    """With a name in front, as those of several brokers."""
    both = replace(box, zookeeper=True)
    record.save_sandbox(both)
    both.get_log_file(both.brokers[0]).write_text("started\n")
    both.get_log_file(None).write_text("listening\n")
    assert brokers.read_last_lines(both, 5) == ("[1] started", "[zookeeper] listening")


@pytest.mark.parametrize("wrong", ["", "four", "4", "4.3.1/../..", "1" * 30 + ".0"])
def test_a_record_with_an_impossible_version_is_refused(box: Sandbox, wrong: str) -> None:
    """Files and Java are chosen by it."""
    record.save_sandbox(replace(box, kafka_version=wrong))
    with pytest.raises(KafkaformError, match="kafka_version"):
        record.load_sandbox(box.name)


def test_kept_data_is_not_started_with_another_kafka(box: Sandbox) -> None:
    """Neither another version nor ZooKeeper reads what a broker has written."""
    record.save_sandbox(replace(box, phase=Phase.STOPPED))
    with pytest.raises(UsageError, match="--kafka-version, --zookeeper"):
        lifecycle.up(SandboxOptions(box.name, kafka_version="3.9.2", zookeeper=True), lambda _: 0)


def test_unknown_name_lists_what_there_is(box: Sandbox) -> None:
    """A typo is answered with the names that exist."""
    record.save_sandbox(box)
    with pytest.raises(UsageError) as caught:
        read_status("papre")
    assert box.name in caught.value.advice


@pytest.mark.parametrize("text", ["", "{", "[]", '{"name": "paper"}', '{"name": "../x"}'])
def test_damaged_record_is_explained(box: Sandbox, text: str) -> None:
    """A record that was cut off or edited is an error with its path, not a traceback."""
    record.save_sandbox(box)
    (box.folder / record.FILE).write_text(text)
    with pytest.raises(KafkaformError) as caught:
        record.load_sandbox(box.name)
    assert caught.value.advice


def test_record_survives_the_round_trip_and_stays_private(box: Sandbox) -> None:
    """What is saved is loaded again; only its owner can read it; it shows no password."""
    full = replace(with_processes(box, GONE), config=(("a", "b"),), classpath=("x.jar",))
    record.save_sandbox(full)
    assert record.load_sandbox(box.name) == full
    assert (box.folder / record.FILE).stat().st_mode & 0o077 == 0
    assert box.folder.stat().st_mode & 0o077 == 0
    assert "password" not in repr(full)


def test_two_commands_do_not_work_on_one_sandbox(box: Sandbox) -> None:
    """The second is told to wait, and `read_status` calls the sandbox starting."""
    record.save_sandbox(replace(box, phase=Phase.STARTING))
    with record.hold_lock(box.name):
        with pytest.raises(Locked, match=box.name):
            lifecycle.down(box.name)
        assert read_status(box.name).state is SandboxState.STARTING


def test_kept_data_is_not_started_with_another_number_of_brokers(box: Sandbox) -> None:
    """Data of one broker cannot serve three; the user is told what to do instead."""
    record.save_sandbox(replace(box, phase=Phase.STOPPED))
    with pytest.raises(UsageError) as caught:
        lifecycle.up(SandboxOptions(name=box.name, brokers=3), lambda _: 0)
    assert "--brokers" in caught.value.message
    assert "--name" in caught.value.advice


def test_down_of_nothing_is_no_fault(home: Path) -> None:
    """A script may call `down` without knowing whether there is anything."""
    assert lifecycle.down("nothing") is None


def test_logs_are_followed_until_the_sandbox_is_gone(box: Sandbox) -> None:
    """`logs --follow` shows the last lines, then what is added, also after a new start."""
    record.save_sandbox(box)
    log = box.get_log_file(box.brokers[0])
    log.write_text("one\ntwo\n")
    lines = brokers.follow_logs(box, 1)
    assert next(lines) == "two"
    with log.open("a") as file:
        file.write("three\nunfinished")
    assert next(lines) == "three"
    log.write_text("new\n")
    assert next(lines) == "new"
    shutil.rmtree(box.folder)
    assert list(lines) == []
