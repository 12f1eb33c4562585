"""Looks at the objects of a block, as an editor asks for them: which are asked, and what is said if
the configuration cannot be used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kafkaform.core.errors import ConnectError
from kafkaform.core.value import FrozenMap
from kafkaform.provider.commands import Answer, Command, CommandGroup, Question
from kafkaform.provider.contract import LookBounds
from kafkaform.provider.registry import Registry
from kafkaform.workflow.configuration.evaluation import Inputs
from kafkaform.workflow.live_looks import LiveLooks
from kafkaform_kafka.provider import KafkaProvider

CONFIGURATION = """
provider "kafka" {
  bootstrap_servers = ["127.0.0.1:1"]
}
provider "kafka" {
  alias             = "eu"
  bootstrap_servers = ["127.0.0.1:2"]
}
resource "kafka_topic" "many" {
  for_each = toset(["a", "b", "c", "d", "e", "f", "g"])
  name       = "many.${each.key}"
  partitions = 1
}
resource "kafka_topic" "other" {
  provider   = kafka.eu
  name       = "other"
  partitions = 1
}
resource "kafka_topic" "none" {
  count      = 0
  name       = "none"
  partitions = 1
}
"""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, Sequence[str]]]:
    """Provider instance and keys of each look; none of them connects."""
    rows: list[tuple[str, Sequence[str]]] = []

    def make(keys: Sequence[str], bounds: LookBounds) -> Question:
        """Who uses it."""

        def read(session: Any) -> Answer:
            rows.append((session.instance, tuple(keys)))
            return Answer(FrozenMap())

        return Question(read, lambda _: iter(("somebody",)))

    group = CommandGroup("kafka", "", (Command("kafka_topic", make),))
    load_commands = Registry.load_commands
    monkeypatch.setattr(
        Registry,
        "load_commands",
        lambda self, name: (group,) if name == "look" else load_commands(self, name),
    )

    def open_session(provider: object, instance: str, config: object, secrets: object) -> Any:
        facts = SimpleNamespace(scope_id=f"scope of {instance}")
        return SimpleNamespace(facts=facts, instance=instance, close=lambda: None)

    monkeypatch.setattr(KafkaProvider, "open", open_session)
    return rows


def look(folder: Path, address: str, text: str = CONFIGURATION) -> str:
    (folder / "main.kf.hcl").write_text(text)
    return "\n".join(LiveLooks(Inputs.read(())).list_lines(folder, address))


def test_five_objects_of_a_block_are_looked_at(
    tmp_path: Path, asked: list[tuple[str, Sequence[str]]]
) -> None:
    """By the names that the configuration gives them, in one look; the others are counted."""
    shown = look(tmp_path, "kafka_topic.many")
    assert asked == [("kafka", ("many.a", "many.b", "many.c", "many.d", "many.e"))]
    assert shown.splitlines()[0] == "Now (asked 0 s ago):"
    assert "somebody" in shown and "2 objects more were not looked at." in shown


def test_the_system_is_that_of_the_block(
    tmp_path: Path, asked: list[tuple[str, Sequence[str]]]
) -> None:
    """`provider` of the block says where it is."""
    assert "somebody" in look(tmp_path, "kafka_topic.other")
    assert asked == [("kafka.eu", ("other",))]


def test_a_block_without_objects(tmp_path: Path, asked: list[tuple[str, Sequence[str]]]) -> None:
    """Nobody is asked, and it is not called unused."""
    assert "declares no object here" in look(tmp_path, "kafka_topic.none")
    assert asked == []


def test_a_type_without_a_look_reads_nothing(
    tmp_path: Path, asked: list[tuple[str, Sequence[str]]]
) -> None:
    """Not even the configuration."""
    assert look(tmp_path, "kafka_acl.x", "not a configuration {") == ""
    assert asked == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            CONFIGURATION.replace("count      = 0", "count = nothing"),
            ("main.kf.hcl:20:11", "nothing"),
        ),
        (
            CONFIGURATION.replace(
                '["127.0.0.1:1"]\n',
                '["127.0.0.1:1"]\n  sasl_username = "x"\n  sasl_mechanism = "PLAIN"\n'
                '  security_protocol = "SASL_SSL"\n  sasl_password = secret_env("NOT_SET_HERE")\n',
            ),
            ("NOT_SET_HERE", "Set the environment variable"),
        ),
    ],
)
def test_a_configuration_that_cannot_be_used(
    tmp_path: Path, asked: list[tuple[str, Sequence[str]]], text: str, words: Sequence[str]
) -> None:
    """A fault is shown with its place, a missing secret with its name, and nobody is asked."""
    shown = " ".join(look(tmp_path, "kafka_topic.many", text).split())
    assert all(word in shown for word in words), shown
    assert asked == []


def test_a_failed_connection_is_said(
    tmp_path: Path, asked: list[tuple[str, Sequence[str]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With its advice, as sentences."""

    def fail(*_: object) -> None:
        raise ConnectError("no broker answered", "start one")

    monkeypatch.setattr(KafkaProvider, "open", fail)
    assert "No broker answered. Start one." in look(tmp_path, "kafka_topic.many")
