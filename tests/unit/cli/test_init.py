"""`init`: is a folder ready? It says what it found, and does no harm."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.clock import SystemClock
from kafkaform.state.backends.local import LocalBackend
from kafkaform.state.model import LockInfo

from ...kit import audit_story as story
from ...kit.commands.here import Here
from ...kit.commands.rights import nobody, place

CONFIGURATION = (
    'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n}\n'
    'resource "kafka_topic" "a" {\n  name = "a"\n}\n'
)


def test_a_folder_that_is_ready(here: Here) -> None:
    """Configuration, provider, state, log and lock are named, and so is the next command; a
    second time is as the first, and no file of the user's has changed."""
    here.write("main.kf.hcl", CONFIGURATION)
    first = here.done("init").out
    assert "configuration   1 file, 1 object declared\n" in first
    assert "provider kafka  kafkaform " in first
    assert "kafkaform.state.json: none yet" in first
    assert "kafkaform.audit.jsonl: none yet" in first
    assert first.endswith("Next: `kafkaform plan` shows what an apply would change.\n")
    assert here.done("init").out == first
    kept = {name: data for name, data in here.files().items() if not name.startswith(".kafkaform/")}
    assert kept == {"main.kf.hcl": CONFIGURATION.encode()}


def test_an_empty_folder(here: Here) -> None:
    """It is no error, nothing is written, and the shown configuration is a sound one."""
    here.write("notes.txt", "")
    text = here.done("init").out
    assert text.startswith("There is no configuration here")
    assert list(here.path.iterdir()) == [here.path / "notes.txt"]
    shown = text.split("main.kf.hcl:\n", 1)[1].split("Then run", 1)[0]
    here.write("main.kf.hcl", shown)
    assert "1 object declared" in here.done("validate").out


def test_modules(here: Here) -> None:
    """Modules are found and counted; one that is missing is an error with its place."""
    here.write("main.kf.hcl", CONFIGURATION + 'module "m" {\n  source = "./m"\n}\n')
    assert "main.kf.hcl:" in here.fails("init")
    here.write("m/main.kf.hcl", "locals { a = 1 }\n")
    assert "1 file, 1 module, 1 object declared" in here.done("init").out


def test_faults_of_the_configuration(here: Here) -> None:
    """A faulty configuration is not ready, and nothing is made for it."""
    here.write("main.kf.hcl", CONFIGURATION + "locals { a = nope() }\n")
    assert "no function nope" in here.fails("init")
    assert list(here.files()) == ["main.kf.hcl"]


def test_state_and_log_are_checked(here: Here) -> None:
    """A sound log is counted; a log or a state that somebody edited ends with 9."""
    here.write("main.kf.hcl", CONFIGURATION)
    log = story.journal(LocalSink(here.path / "kafkaform.audit.jsonl"), "run-1")
    story.begin(log)
    story.end(log)
    assert "records, sound" in here.done("init").out
    file = here.path / "kafkaform.audit.jsonl"
    file.write_bytes(file.read_bytes().replace(b'"actor":"', b'"actor":"x', 1))
    assert "record 1" in here.fails("init", code=9)
    file.unlink()
    here.write("kafkaform.state.json", "{}")
    assert "kafkaform.state.json" in here.fails("init", code=9)


def test_a_lock_of_somebody_else(here: Here) -> None:
    """While another run holds the state, init ends with 7 and names it."""
    here.write("main.kf.hcl", CONFIGURATION)
    info = LockInfo("run-9", "somebody", "elsewhere", os.getpid(), "2026-01-01T00:00:00Z", "apply")
    backend = LocalBackend(here.path / "kafkaform.state.json")
    with backend.lock(info, 0.0, SystemClock()):
        assert "somebody" in here.fails("init", code=7)
    here.done("init")


def test_a_folder_that_cannot_be_written(here: Here) -> None:
    """Where no state could be kept, init says so before anybody plans."""
    with place(here.monkeypatch) as closed:
        inside = Here(closed, here.capsys, here.monkeypatch)
        inside.write("main.kf.hcl", CONFIGURATION)
        inside.done("init")
        shutil.rmtree(closed / ".kafkaform", ignore_errors=True)
        closed.chmod(0o555)
        with nobody():
            assert "permission denied" in inside.fails("init", code=9)


IGNORED = "kafkaform.state.json\nkafkaform.audit.jsonl\nkafkaform.audit/\n*.kfplan\n"


@pytest.mark.parametrize("line", [".kafkaform/", "/.kafkaform", "**/.kafkaform/"])
def test_advice_for_git(here: Here, line: str) -> None:
    """In a repository, what must not be committed is named with the reason; what is ignored there
    or further up is not, and nothing is written."""
    subprocess.run(["git", "init", "-q", "."], cwd=here.path, check=True)
    here.write("main.kf.hcl", CONFIGURATION)
    here.write("prod.env", "PASSWORD=x")
    said = here.done("init").out
    _, _, listed = said.partition("without the remarks (`kafkaform init --gitignore` does):\n\n")
    patterns = [row.split()[0] for row in listed.partition("\n\n")[0].splitlines()]
    assert patterns == [
        *(".kafkaform/", "kafkaform.state.json", "kafkaform.audit.jsonl", "kafkaform.audit/"),
        *("*.kfplan", "*.env"),
    ]
    assert "# the lock and earlier states of this computer" in listed
    here.write(".gitignore", f"*.tmp\n{line}\n")
    assert ".kafkaform/" not in here.done("init").out
    here.write(".gitignore", f"{line}\n{IGNORED}*.env\n")
    assert ".gitignore" not in here.done("init").out


@pytest.mark.parametrize("before", [None, b"*.tmp", b"*.kfplan\r\n"])
def test_what_is_missing_is_added_if_it_is_asked_for(here: Here, before: bytes | None) -> None:
    """Behind what is there, which stays byte for byte. Without the flag nothing is written."""
    subprocess.run(["git", "init", "-q", "."], cwd=here.path, check=True)
    here.write("main.kf.hcl", CONFIGURATION)
    path = here.path / ".gitignore"
    if before is not None:
        path.write_bytes(before)
    here.done("init")
    assert (path.read_bytes() if path.exists() else None) == before
    said = here.done("init", "--gitignore").out
    assert "Added to .gitignore: .kafkaform/, kafkaform.state.json" in said
    after = path.read_bytes()
    assert after.startswith(before or b".kafkaform/\n")
    lines = after.decode().split()
    assert len(lines) == len(set(lines)) and {"kafkaform.audit.jsonl", "*.kfplan"} <= set(lines)
    assert ".gitignore" not in here.done("init", "--gitignore").out
    assert path.read_bytes() == after


def test_the_flag_for_gitignore_excludes_others(here: Here) -> None:
    """Of files that nobody trusts, nothing is written."""
    here.write("main.kf.hcl", CONFIGURATION)
    for flag in ("--untrusted", "--modules-only"):
        assert "exclude each other" in here.fails("init", "--gitignore", flag)


def test_a_link_in_place_of_gitignore_is_not_followed(here: Here) -> None:
    """Neither does Git."""
    subprocess.run(["git", "init", "-q", "."], cwd=here.path, check=True)
    here.write("main.kf.hcl", CONFIGURATION)
    here.write("elsewhere", "")
    (here.path / ".gitignore").symlink_to(here.path / "elsewhere")
    assert "is a link" in here.fails("init", "--gitignore")
    assert (here.path / "elsewhere").read_bytes() == b""


def test_a_state_elsewhere_needs_no_line(
    here: Here, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Of a folder whose state is not in it, only what it can contain is named; out of Git nothing
    is."""
    here.write("main.kf.hcl", CONFIGURATION)
    assert ".gitignore" not in here.done("init").out
    subprocess.run(["git", "init", "-q", "."], cwd=here.path, check=True)
    elsewhere = tmp_path_factory.mktemp("states") / "prod.json"
    said = here.done("init", "--state", str(elsewhere)).out
    assert "*.kfplan" in said
    assert "kafkaform.state.json" not in said.partition("Add these lines")[2]
