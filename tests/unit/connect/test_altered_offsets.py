"""`alter connector` sets and resets offsets of a stopped connector; `undo` sets them back."""

from __future__ import annotations

import json
from typing import Any

import pytest

from kafkaform.provider.http.exchange import Call, HttpAnswer

from ...kit.connect.folder import ConnectFolder, connector

LINES = [
    {"partition": {"filename": "/dev/null"}, "offset": {"position": 12345678901234567890}},
    {"partition": {"filename": "other"}, "offset": {"position": 7}},
]
RECORDS = [
    {"partition": {"kafka_topic": "orders", "kafka_partition": n}, "offset": {"kafka_offset": 50}}
    for n in (0, 1)
]
PATCH, DELETE = "PATCH /connectors/lines/offsets", "DELETE /connectors/lines/offsets"
ALTER = ("alter", "connector", "lines")
APPROVED = "--auto-approve"


@pytest.fixture
def stopped(folder: ConnectFolder) -> ConnectFolder:
    """A connector that has read two files and is stopped."""
    folder.declare(connector("lines"))
    folder.here.done("apply", APPROVED)
    folder.find("lines").state = "STOPPED"
    folder.workers.offsets["lines"] = list(LINES)
    folder.list_writes()
    return folder


def read_offsets(folder: ConnectFolder) -> list[dict[str, Any]]:
    offsets = folder.workers.offsets.get("lines", [])
    return sorted(offsets, key=lambda item: json.dumps(item["partition"], sort_keys=True))


def last_run(folder: ConnectFolder) -> str:
    lines = (folder.here.path / "kafkaform.audit.jsonl").read_bytes().splitlines()
    begins = [record for record in map(json.loads, lines) if record["kind"] == "run_begin"]
    return str(begins[-1]["run"])


def write_file(folder: ConnectFolder, offsets: Any) -> str:
    file = folder.here.path / "offsets.json"
    file.write_text(json.dumps({"offsets": offsets}))
    return str(file)


def test_a_reset_starts_over_and_is_undone(stopped: ConnectFolder) -> None:
    """The plan says so; all offsets go with one request, and come back with one."""
    text = stopped.here.done(*ALTER, "--reset-offsets", APPROVED).text
    assert "lines has no offsets in 2 partitions then, so it starts over" in text
    assert read_offsets(stopped) == [] and stopped.list_writes() == [DELETE]
    stopped.here.done("undo", last_run(stopped), APPROVED)
    assert read_offsets(stopped) == LINES and stopped.list_writes() == [PATCH]


def test_named_offsets_are_set(stopped: ConnectFolder) -> None:
    """Those of other partitions stay, and only what differs is sent."""
    file = write_file(stopped, [{"partition": {"filename": "other"}, "offset": {"position": 3}}])
    text = stopped.here.done(*ALTER, "--set-offsets", file, APPROVED).text
    assert "lines goes on elsewhere in 1 partition" in text
    assert read_offsets(stopped) == [LINES[0], {**LINES[1], "offset": {"position": 3}}]
    assert "There is nothing to change." in stopped.here.done(
        *ALTER, "--set-offsets", file, APPROVED
    ).text  # fmt: skip
    stopped.here.done("undo", last_run(stopped), APPROVED)
    assert read_offsets(stopped) == LINES


def test_a_new_partition_goes_with_an_undo(stopped: ConnectFolder) -> None:
    """It had no offset before."""
    new = {"partition": {"filename": "new"}, "offset": {"position": 1}}
    stopped.here.done(*ALTER, "--set-offsets", write_file(stopped, [new]), APPROVED)
    assert new in read_offsets(stopped)
    stopped.here.done("undo", last_run(stopped), APPROVED)
    assert read_offsets(stopped) == LINES


def test_records_of_a_sink_are_counted(stopped: ConnectFolder) -> None:
    """Those that are left out and those that are copied again."""
    stopped.workers.offsets["lines"] = list(RECORDS)
    moved = [
        {**row, "offset": {"kafka_offset": at}} for row, at in zip(RECORDS, (80, 40), strict=True)
    ]
    file = write_file(stopped, moved)
    text = stopped.here.done(*ALTER, "--set-offsets", file, APPROVED).text
    assert "in 2 partitions: 30 records left out and 10 records copied again" in text


@pytest.mark.parametrize("flags", [("--reset-offsets",), ("--set-offsets", "offsets.json")])
def test_a_connector_that_runs_is_refused(stopped: ConnectFolder, flags: tuple[str, ...]) -> None:
    """Nothing is sent."""
    write_file(stopped, [{**LINES[1], "offset": {"position": 3}}])
    stopped.find("lines").state = "RUNNING"
    ended = stopped.here.run(*ALTER, *flags, APPROVED)
    assert ended.code != 0 and "the connector lines is" in ended.text
    assert "connector-not-stopped" in ended.text
    assert read_offsets(stopped) == LINES and not stopped.list_writes()


def test_offsets_are_described_as_they_are_set(stopped: ConnectFolder) -> None:
    """What `describe` prints for a connector is a file for --set-offsets."""
    document = stopped.here.json("describe", "connectors", "lines", "--offsets", "--json")
    (row,) = document["connectors"]
    assert row["offsets"] == LINES
    text = stopped.here.done("describe", "connectors", "lines", "--offsets").text
    assert "Offsets of lines" in text and '{"filename":"/dev/null"}' in text
    stopped.here.done(*ALTER, "--reset-offsets", APPROVED)
    file = stopped.here.path / "kept.json"
    file.write_text(json.dumps(row))
    stopped.here.done(*ALTER, "--set-offsets", str(file), APPROVED)
    assert read_offsets(stopped) == LINES


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("lines",), "nothing is to be changed"),
        (("lines", "--reset-offsets", "--set-offsets=x"), "exclude each other"),
        (("lines", "--set-offsets=nope.json"), "cannot be read"),
        (("lines", "--set-offsets=main.kf.hcl"), "has no offsets as workers show them"),
        (("other", "--reset-offsets"), "there is no connector other"),
    ],
)
def test_what_does_not_fit_is_refused(
    stopped: ConnectFolder, words: tuple[str, ...], message: str
) -> None:
    """In words that say what to do."""
    ended = stopped.here.run("alter", "connector", *words, APPROVED)
    assert ended.code != 0 and message in ended.text
    assert not stopped.list_writes()


@pytest.mark.parametrize(("carried_out", "code"), [(True, 0), (False, 5)])
def test_a_worker_that_fails_is_asked_what_became_of_it(
    stopped: ConnectFolder, monkeypatch: pytest.MonkeyPatch, carried_out: bool, code: int
) -> None:
    """Its own words are shown, and nobody waits for a request that has ended."""
    handle = stopped.workers.handle
    message = "Failed to reset consumer group offsets for connector lines"

    def answer(call: Call, user: str = "") -> HttpAnswer:
        if call.method != "DELETE":
            return handle(call, user)
        if carried_out:
            handle(call, user)
        return HttpAnswer(500, {"error_code": 500, "message": message})

    monkeypatch.setattr(stopped.workers, "handle", answer)
    ended = stopped.here.run(*ALTER, "--reset-offsets", APPROVED)
    assert ended.code == code and ("Failed to reset" in ended.text) is not carried_out
    assert stopped.list_writes() == [DELETE]
