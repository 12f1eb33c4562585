"""The record of a sandbox that somebody edited: every command says what is wrong with it, or works
with it, and none of them ends a process that is not the sandbox's own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import to_builtins

from kafkaform.core.errors import KafkaformError
from kafkaform.core.storage import make_private_folder
from kafkaform.sandbox import record
from kafkaform.sandbox.process import Process, identify_process

from ...kit.commands.here import Here
from ...kit.sandbox_homes import move_home
from . import edited
from .test_edited_files import BYTES, SANDBOX

SHARE = 1 if "KAFKAFORM_LONG" in os.environ else 6
"""One of how many edits is tried."""
COMMANDS = (
    *("status", "status --name x", "env --name x", "env --name x --format shell"),
    *("logs --name x", "logs --name x -n 1", "down --name x --keep-data", "down --name x"),
)


@pytest.fixture
def stranger() -> Iterator[Process]:
    """A process of somebody else's, which lives as long as its input is open."""
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    found = identify_process(child.pid)
    assert found is not None
    try:
        yield found
        assert child.poll() is None
    finally:
        child.kill()
        child.communicate()


@pytest.fixture
def file(here: Here) -> Path:
    """Where the record of the sandbox `x` is, in a home of its own."""
    move_home(here.monkeypatch, here.path)
    return record.get_run_folder("x") / record.FILE


def lay(file: Path, data: bytes) -> None:
    """The record, with a log and data beside it, as if it were the sandbox's own."""
    make_private_folder(file.parent, parents=True)
    (file.parent / "data").mkdir(exist_ok=True)
    (file.parent / "broker-1.log").write_text("one\ntwo\n")
    file.write_bytes(data)


def naming(process: Process, started: str) -> dict[str, Any]:
    """A sound record, but for the process that it names."""
    told = {**to_builtins(process), "started": started}
    return {
        **SANDBOX,
        "brokers": [{**SANDBOX["brokers"][0], "process": told}],
        "servers": [{**SANDBOX["servers"][0], "process": told}],
    }


@pytest.mark.slow("runs every command on hundreds of records")
def test_no_command_fails_unexpectedly_or_ends_a_stranger(
    here: Here, file: Path, stranger: Process
) -> None:
    """Each edit of a record whose process has another start than the one that has its id now: the
    commands end with 0, or with 1 and the file's name; `up` starts nothing from a bad record."""
    body = naming(stranger, f"not {stranger.started}")
    texts = [json.dumps(data).encode() for _, data in list(edited.edits(body))[::SHARE]]
    refused = 0
    for data in (*texts, *BYTES, json.dumps(body).encode()):
        lay(file, data)
        try:
            record.load_sandbox("x")
            wrong = False
        except KafkaformError:
            wrong = True
        refused += wrong
        for command in (*COMMANDS, *(["up --name x"] if wrong else [])):
            lay(file, data)
            said = here.run("sandbox", *command.split())
            shown = "".join(said.text.split())
            assert said.code == (1 if wrong and command != "status" else 0), (data, said.text)
            assert not wrong or str(file) in shown, (command, said.text)
            assert identify_process(stranger.pid) == stranger, (command, data)
    assert refused > len(texts) / 3


def test_a_process_is_ended_only_if_all_of_it_fits(
    here: Here, file: Path, stranger: Process
) -> None:
    """Another start, another boot of the computer, or nothing: the id alone is no identity."""
    ticks, _, boot = stranger.started.partition("@")
    for started in ("", "s", ticks, f"{ticks}@", f"@{boot}", f"{int(ticks) + 1}@{boot}"):
        lay(file, json.dumps(naming(stranger, started)).encode())
        assert "has ended" in here.done("sandbox", "down", "--name", "x").text
        assert not file.parent.exists() and identify_process(stranger.pid) == stranger


@pytest.mark.parametrize("wrong", [-1, 1 << 31, 10**400])
def test_ids_are_no_names_that_are_too_long(here: Here, file: Path, wrong: int) -> None:
    """Those of brokers and processes become parts of paths; the message names the member."""
    for path in ("brokers.0.id", "brokers.0.process.pid"):
        lay(file, json.dumps(edited.changed(SANDBOX, path, wrong)).encode())
        for command in ("status", "env", "logs", "down"):
            said = here.fails("sandbox", command, "--name", "x")
            assert "is not the id of a" in " ".join(said.split())
