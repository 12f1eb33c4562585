"""`history` for many folders of a repository: by time, with the folder of each change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from docs import schemas
from kafkaform.audit.records import decode
from kafkaform.audit.sinks.local import LocalSink
from kafkaform.core.head import Head
from kafkaform.state.codec import encode
from kafkaform.state.model import State
from kafkaform.workflow.stores import AUDIT_FILE, STATE_FILE

from ...kit.audit_story import OLD, ORDERS, Ticking, begin, conclude, end, intend, journal
from ...kit.commands.here import Here

jsonschema = pytest.importorskip("jsonschema", reason="pip install -e '.[test]'")
FILE = """repository {
  name = "acme"
}

folders "teams/*" {
}

folders "platform" {
  state = "states/platform/state.json"
}
"""
BLOCK = 'resource "kafka_topic" "a" {\n  name = "a"\n}\n'


def save_log(folder: Path, clock: Ticking, *subjects: Any, log: str = AUDIT_FILE) -> None:
    """A run that applies these steps, and the state that follows from it."""
    folder.mkdir(parents=True, exist_ok=True)
    sink = LocalSink(folder / log)
    written = journal(sink, f"run-{folder.name}", clock)
    begin(written)
    for subject in subjects:
        intend(written, subject)
        conclude(written, subject)
    end(written)
    last = sink.last()
    assert last is not None
    record = decode(last)
    state = State("lineage", 1, {}, audit_head=Head(record.seq, record.hash))
    name = STATE_FILE if log == AUDIT_FILE else "state.json"
    (folder / name).write_bytes(encode(state))


@pytest.fixture
def top(here: Here) -> Here:
    """The top of a repository: two folders with a log, one of them elsewhere, and one without."""
    here.write("kafkaform.hcl", FILE)
    for name in ("teams/pay", "teams/shop", "platform"):
        here.write(f"{name}/main.kf.hcl", BLOCK)
    clock = Ticking()
    save_log(here.path / "teams/shop", clock, ORDERS)
    save_log(here.path / "states/platform", clock, OLD, ORDERS, log="state.audit.jsonl")
    return here


def list_rows(text: str) -> list[tuple[str, str]]:
    """Folder and object of each row."""
    rows = [line.split("  ") for line in text.splitlines()]
    head, *cells = [[cell.strip() for cell in row if cell.strip()] for row in rows]
    return [(row[head.index("Folder")], row[head.index("Object")]) for row in cells]


def test_everything_is_listed_by_time(top: Here) -> None:
    """With the folder; a folder without a log has nothing to tell."""
    said = top.done("history", "--all")
    assert said.out.startswith("When (UTC)")
    assert list_rows(said.out) == [
        ("teams/shop", "kafka_topic.orders"),
        ("platform", "kafka_topic.old"),
        ("platform", "kafka_topic.orders"),
    ]
    assert list_rows(top.done("history", "--all", "--last", "1").out) == [
        ("platform", "kafka_topic.orders")
    ]
    assert list_rows(top.done("history", "--folder", "teams/*").out) == [
        ("teams/shop", "kafka_topic.orders")
    ]
    assert (
        "No changes in the audit logs of 1 folder."
        in top.done("history", "--folder", "teams/pay").err
    )


def test_an_object_is_found_in_all_folders(top: Here) -> None:
    """By any of its names; folders that never had it are passed over."""
    for name in ("topic/orders", "kafka_topic.orders"):
        rows = list_rows(top.done("history", name, "--all").out)
        assert [row[0] for row in rows] == ["teams/shop", "platform"]
    refused = top.run("history", "topic/orderz", "--all")
    assert refused.code == 1
    assert (
        "neither the states nor the audit logs of the folders have an object topic/orderz"
        in refused.err
    )
    assert 'Did you mean "topic/orders"?' in refused.err
    assert "is neither an address" in top.run("history", "orders", "--all").err


def test_programs_get_the_folder(top: Here) -> None:
    """As the schema says."""
    folder = schemas.FOLDER / "repository-history.schema.json"
    validator = jsonschema.Draft202012Validator(json.loads(folder.read_text()))
    for words in ((), ("topic/orders",)):
        document = top.json("history", *words, "--all", "--json")
        validator.validate(document)
        assert document["name"] == (words[0] if words else None)
        assert {change["folder"] for change in document["changes"]} == {"teams/shop", "platform"}


def test_a_folder_that_cannot_be_read_fails_alone(top: Here) -> None:
    """Its reason comes first, the others are shown, and the exit code is the gravest."""
    top.write("teams/odd name/main.kf.hcl", BLOCK)
    log = top.path / "teams/shop" / AUDIT_FILE
    log.write_bytes(log.read_bytes().replace(b'"actor":"ada@ci"', b'"actor":"eve@ci"', 1))
    said = top.run("history", "--all")
    assert said.code == 9
    assert "teams/odd name: the folder 'teams/odd name' is refused" in said.err
    assert "kafkaform.hcl:5" in said.err
    assert "teams/shop: " in said.err
    assert [row[0] for row in list_rows(said.out)] == ["platform", "platform"]
    document = json.loads(top.run("history", "--all", "--json").out)
    assert [item["folder"] for item in document["failed"]] == ["teams/odd name", "teams/shop"]
    assert "kafkaform.hcl:5" in document["failed"][0]["errors"][0]


def test_the_top_has_no_log_itself(top: Here) -> None:
    """The message says what to write; in a folder everything is as before."""
    refused = top.run("history", "topic/orders")
    assert refused.code == 1
    assert "this is the top of a repository (kafkaform.hcl)" in refused.err
    assert "Add --all, or choose folders with --folder GLOB." in refused.err
    top.monkeypatch.chdir(top.path / "teams/shop")
    assert "kafka_topic orders on kafka" in top.done("history", "topic/orders").out
    assert "history needs the name of an object" in top.run("history").err


def test_flags_that_do_not_fit_are_refused(top: Here) -> None:
    """A state is one of a folder, and --all is every folder."""
    assert "--state is the state of one folder" in top.run("history", "--all", "--state", "x").err
    assert "--path is a value" in top.run("history", "--all", "--path", "retention.ms").err
    assert "exclude each other" in top.run("history", "--all", "--folder", "x").err
    assert "no folder of the repository acme matches x" in top.run("history", "--folder", "x").err
