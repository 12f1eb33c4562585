"""States and logs of a newer version, whose types this one does not have."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ...kit.commands.here import Here
from ...reliability.hostile import edited
from ...reliability.hostile.edited import chained_log, sealed_state
from ...test_cases import cluster_of

STATE, LOG = "kafkaform.state.json", "kafkaform.audit.jsonl"
CONFIGURATION = """
provider "kafka" { bootstrap_servers = ["localhost:9092"] }
resource "kafka_topic" "a" { name = "a" }
"""
PROTECTED = (
    'resource "kafka_topic" "b" {\n  name = "b"\n  lifecycle { prevent_destroy = false }\n}\n'
)


@pytest.fixture
def downgraded(here: Here) -> dict[str, Any]:
    """The state of an apply, with an object of an unknown type that uses a topic."""
    edited.simulate(here.monkeypatch, cluster_of())
    here.write("main.kf.hcl", CONFIGURATION + PROTECTED)
    here.done("apply", "--auto-approve")
    state: dict[str, Any] = json.loads((here.path / STATE).read_bytes())
    other = {**state["objects"][0], "kind": "kafka_future", "identity": "f"}
    other |= {"owners": ["kafka_future.f"], "depends_on": ["kafka_topic.b"]}
    state["objects"] = [other, *state["objects"]]
    here.write(STATE, sealed_state(state))
    return state


REFUSED = (
    "plan",
    "plan --refresh-only",
    "plan --target=kafka_future.f",
    "plan --exclude=kafka_topic.a",
    "apply --auto-approve",
    "apply --refresh-only --auto-approve",
    "destroy --confirm=simulated",
)


@pytest.mark.parametrize("command", REFUSED)
def test_an_unknown_type_is_named(here: Here, downgraded: dict[str, Any], command: str) -> None:
    """Whatever would have to read the object ends with 9, and says what to do about it."""
    text = " ".join(here.fails(*command.split(), code=9).replace("│", "").split())
    assert "objects of kafka_future, which this version does not know: kafka_future.f" in text
    assert "`kafkaform state rm kafka_future.f`" in text and "Update kafkaform" in text


def test_other_objects_can_be_changed(here: Here, downgraded: dict[str, Any]) -> None:
    """With --target or --exclude everything else is applied, and the state keeps the object."""
    block = 'resource "kafka_topic" "a" {\n  name = "a"\n  config = { "flush.ms" = "5000" }\n}\n'
    changed = CONFIGURATION.splitlines()[1] + "\n" + block
    here.write("main.kf.hcl", changed + PROTECTED)
    here.done("plan", "--target=kafka_topic.a")
    here.done("apply", "--target=kafka_topic.a", "--auto-approve")
    here.done("apply", "--exclude=kafka_future.f", "--auto-approve")
    rows = json.loads((here.path / STATE).read_bytes())["objects"]
    assert downgraded["objects"][0] in rows
    assert any(row["attributes"]["config"] for row in rows if row["identity"] == "a")


def test_a_topic_that_an_unknown_object_uses_is_not_deleted(
    here: Here, downgraded: dict[str, Any]
) -> None:
    """Its deletion waits, because nobody can say whether the other object still needs it."""
    here.write("main.kf.hcl", CONFIGURATION)
    text = here.run("plan", "--exclude=kafka_future.f").text
    assert "kafka_future.f uses it" in " ".join(text.replace("│", "").split())
    here.fails("apply", "--exclude=kafka_future.f", "--auto-approve", code=8)
    rows = json.loads((here.path / STATE).read_bytes())["objects"]
    assert {row["identity"] for row in rows} == {"a", "b", "f"}


def test_the_object_can_be_forgotten(here: Here, downgraded: dict[str, Any]) -> None:
    """`state rm` works without its type, and then everything does."""
    here.done("state", "rm", "kafka_future.f")
    here.done("apply", "--auto-approve")


def test_an_open_intent_of_an_unknown_type(here: Here, downgraded: dict[str, Any]) -> None:
    """Nobody can find out what became of its request, so an apply sends nothing."""
    here.done("state", "rm", "kafka_future.f")
    records = [json.loads(line) for line in (here.path / LOG).read_bytes().splitlines()]
    cut = next(n for n, record in enumerate(records) if record["kind"] == "intent")
    records = [*records[: cut + 1]]
    text = json.dumps(records).replace("kafka_topic", "kafka_future")
    here.write(LOG, chained_log(json.loads(text)))
    (here.path / STATE).unlink()
    said = " ".join(here.fails("apply", "--auto-approve", code=9).replace("│", "").split())
    assert "is an open intent for an object of kafka_future, which this version" in said


@pytest.mark.parametrize(
    "command", ["plan", "apply --auto-approve", "audit verify", "init", "state rm kafka_topic.a"]
)
def test_a_state_that_names_no_record_of_its_log(
    here: Here, downgraded: dict[str, Any], command: str
) -> None:
    """A log that exists would count as checked without the anchor, and any other log, too."""
    here.write(STATE, sealed_state({**downgraded, "audit_head": None}))
    assert "follows from no record" in here.fails(*command.split(), code=9)
