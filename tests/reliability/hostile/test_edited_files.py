"""Small files that somebody edited: locks, leases, the sandbox's record, the fleet's register and
the manifests of its builds. Each is read as what it has to be, or refused by name."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

import pytest

from kafkaform.core.canonical import Misfit, parse_json
from kafkaform.core.errors import KafkaformError, StorageError
from kafkaform.core.storage import make_private_folder
from kafkaform.fleet.landed import register
from kafkaform.fleet.tables import manifest
from kafkaform.sandbox import record
from kafkaform.state.backends import local, objects
from kafkaform.state.model import LockInfo
from kafkaform.workflow.fleet.snapshot import make_document
from kafkaform_kafka.connection.tokens import read_token_file

from ...kit.commands.here import Here
from ...kit.sandbox_homes import move_home
from . import edited

DEEP = b"[" * 100_000
BYTES = (b"", b"\xff", b"null", b"[]", b"NaN", b'{"a":Infinity}', DEEP)
"""What is no file of ours at all."""
HOLDER = {
    **{"run": "r", "who": "ada", "host": "h", "pid": 7},
    **{"started": "2026-01-01T00:00:00.000000Z", "command": "apply"},
}
NOTE = {"holder": HOLDER, "lease_seconds": 120.0, "ended": "", "write": "w"}
PORTS = {"client": 19092, "internal": 19093, "controller": 19094, "tls": None}
SANDBOX = {
    **{"name": "x", "phase": "running", "cluster_id": "c"},
    "brokers": [{"id": 1, "ports": PORTS, "process": {"pid": 4_000_000, "started": "s"}}],
    **{"admin_password": "a", "ci_password": "b", "broker_password": "c"},
    **{"config": [["k", "v"]], "classpath": ["/x"], "keep_data": False, "usable": True},
    **{"reason": "", "kafka_version": "3.9.2", "zookeeper": True, "authorizer": True},
    "zookeeper_process": {"pid": 4_000_001, "started": "s"},
    **{"servers": [{"kind": "connect", "port": 7, "process": None}], "connect_password": "d"},
}
REGISTER = make_document(
    register.Register(
        (register.RegisteredCluster("a", "id", super_users=("User:a",)),),
        (register.RegisteredState("s", "l"),),
        (register.Owner("o", ("t.*",), ("User:o",)),),
        ("User:x",),
        register.Rates("EUR", 1.5),
    )
)
MANIFEST = {
    **{"build": "b", "tables": {"t": {"version": 1, "rows": 2, "seconds": 5e-05}}},
    **{"started": "t", "ended": "t", "as_of": "t", "fingerprint": "f", "code": "c"},
    **{"owed": {"t": None, "u": ["a"]}, "schema_version": 1},
}


def texts(body: Any) -> list[bytes]:
    """The file with each edit, and files that are none of ours."""
    return [*(json.dumps(data).encode() for _, data in edited.edits(body)), *BYTES]


def test_whoever_holds_a_lock_is_somebody() -> None:
    """A lock file that nobody can read is held by somebody unknown, and a note of a lease lasts as
    long as ours: never for no time, for ever, or until an error."""
    for data in texts(HOLDER):
        held = local._read_owner(data)
        assert type(held) is LockInfo and type(held.pid) is int and str(held)
    for data in texts(NOTE):
        note = objects.decode_note(data, 60.0)
        assert (
            note.ended in ("", objects.RELEASED, objects.BROKEN) and type(note.holder) is LockInfo
        )
        assert note.seconds > 0
    for wrong in (10**400, -1, 0, "NaN"):
        assert (
            objects.decode_note(json.dumps({**NOTE, "lease_seconds": wrong}).encode(), 60.0).seconds
            == 60
        )
    written = objects.Note(LockInfo(**HOLDER), 120.0)
    assert objects.decode_note(objects.encode_note(written), 60.0) == written


def test_a_sandbox_record_is_believed_or_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is read can be shown and ended: ports are ports, and a process is none of the system's.
    The message names the file and the member."""
    move_home(monkeypatch, tmp_path)
    make_private_folder(record.get_run_folder("x"), parents=True)
    file = record.get_run_folder("x") / record.FILE
    refused = 0
    for data in texts(SANDBOX):
        file.write_bytes(data)
        try:
            found = record.load_sandbox("x")
        except KafkaformError as error:
            refused += 1
            assert str(file) in error.message and error.advice
        else:
            assert found is not None and found.bootstrap and found.make_options().name == "x"
            assert all(process.pid > 1 for process in found.list_processes())
    assert refused > 300
    file.unlink()
    file.mkdir()
    with pytest.raises(KafkaformError, match="directory"):
        record.load_sandbox("x")


def test_a_register_is_believed_or_refused() -> None:
    """`fleet` reads the register that lies there, or says which member of it is wrong."""
    landed = json.dumps({"taken": "2026-01-01T00:00:00Z", **REGISTER})
    assert register.read_register(landed).rates == register.Rates("EUR", 1.5)
    refused = 0
    for data in texts(REGISTER):
        try:
            register.read_register(data.decode("utf-8", "surrogateescape"))
        except StorageError as error:
            refused += 1
            assert error.message.startswith("the register ") and error.advice
    assert refused > 300


def test_a_manifest_is_believed_or_refused() -> None:
    """So is the manifest of a build."""
    read = manifest._decode(json.dumps(MANIFEST).encode(), "root", "b")
    assert read.owed == {"t": None, "u": frozenset({"a"})} and read.tables["t"].seconds == 5e-05
    assert manifest._decode(manifest.encode(read), "root", "b") == read
    refused = 0
    for data in texts(MANIFEST):
        try:
            manifest._decode(data, "root", "b")
        except (Misfit, StorageError) as error:
            refused += 1
            assert str(error)
    assert refused > 150


def test_json_of_others() -> None:
    """Numbers stay exact, and what is no JSON is a Misfit with its reason."""
    for data in BYTES[:2] + BYTES[4:]:
        with pytest.raises(Misfit, match="it is "):
            parse_json(data)


@pytest.mark.parametrize("key", ["ssl.truststore.location", "ssl.truststore.certificates"])
def test_a_nul_in_a_path_is_an_error_of_the_setting(here: Here, key: str) -> None:
    """No operating system has such a file; the message names the setting."""
    lines = ("bootstrap.servers=127.0.0.1:1", "security.protocol=SSL", f"{key}=a\\u0000b")
    here.write("c.properties", "\n".join((*lines, "ssl.truststore.type=PEM")))
    said = here.fails("describe", "topics", "--command-config", "c.properties")
    assert "ca_cert contains a NUL character" in said


@pytest.mark.parametrize("exp", ["1e999", "NaN", "-Infinity", "1" + "0" * 400, '"x"', "[]", "null"])
def test_a_token_that_says_no_time(tmp_path: Path, exp: str) -> None:
    """Its end counts as not told: it is kept for minutes, not for ever."""
    parts = ('{"alg":"none"}', f'{{"sub":"a","exp":{exp}}}')
    coded = [base64.urlsafe_b64encode(part.encode()).decode().rstrip("=") for part in parts]
    (tmp_path / "token").write_text(".".join((*coded, "")))
    assert 0 < read_token_file(str(tmp_path / "token")).expires - time.time() <= 300
