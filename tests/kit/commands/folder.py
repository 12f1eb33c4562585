"""What a user does in a configuration folder, and what can be seen of it afterwards."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
    ResourceType,
)

from kafkaform.cli.app import run_command_line
from kafkaform.core.resource import Observed, Reading

from ...conftest import Broker
from ..kafka.logins import Login, admin_login, finish
from ..kafka.sessions import read, wait_at_brokers

STATE, LOG = "kafkaform.state.json", "kafkaform.audit.jsonl"
DEADLINE_SECONDS = 120.0

PROVIDER = """
provider "kafka" {{
  bootstrap_servers = ["{bootstrap}"]
  security_protocol = "SASL_PLAINTEXT"
  sasl_mechanism    = "{mechanism}"
  sasl_username     = "{user}"
  sasl_password     = secret_env("{secret}")
  operation_timeout = "5s"
}}
"""


@dataclass(frozen=True)
class Said:
    """What a command answered."""

    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        """Everything, without the line breaks and bars that only the width of a screen needs."""
        return " ".join((self.out + self.err).replace("│", " ").split())

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The answer of a --json command."""
        return [json.loads(line) for line in self.out.splitlines()]


@dataclass
class Folder:
    """prefix: of the names of all topics that are made here."""

    path: Path
    prefix: str
    broker: Broker
    admin: AdminClient
    capsys: pytest.CaptureFixture[str]
    monkeypatch: pytest.MonkeyPatch

    # ── what a user writes ──────────────────────────────────────────────────────────────

    def write(self, name: str, text: str) -> Path:
        """In one step, for commands that run meanwhile."""
        file, fresh = self.path / name, self.path / f"{name}.new"
        fresh.write_text(text, encoding="utf-8")
        return fresh.replace(file)

    def connect(self, user: Login | None = None, secret: str = "", bootstrap: str = "") -> None:
        """Say how to connect: as `admin`, or as a user of the test."""
        who = user or admin_login(self.broker)
        name = "ADMIN_PASSWORD" if user is None else "STRANGER_PASSWORD"
        self.monkeypatch.setenv(name, who.password)
        text = PROVIDER.format(
            bootstrap=bootstrap or self.broker.bootstrap,
            mechanism=who.mechanism,
            user=who.user,
            secret=secret or name,
        )
        self.write("provider.kf.hcl", text)

    def declare(self, *names: str, partitions: int = 1, more: str = "") -> None:
        """Declare exactly these topics."""
        blocks = [self.topic(name, partitions, more) for name in names]
        self.write("topics.kf.hcl", "\n".join(blocks))

    def topic(self, name: str, partitions: int = 1, more: str = "") -> str:
        return (
            f'resource "kafka_topic" "{name}" {{\n  name       = "{self.prefix}{name}"\n'
            f"  partitions = {partitions}\n  {more}\n}}\n"
        )

    # ── what a user types ───────────────────────────────────────────────────────────────

    def run(self, *arguments: str) -> Said:
        """Type a command that reads nothing from a terminal."""
        self.capsys.readouterr()
        code = run_command_line(arguments)
        captured = self.capsys.readouterr()
        said = Said(code, captured.out, captured.err)
        assert "Traceback" not in said.text
        assert self.broker.admin_password not in said.text
        return said

    def done(self, *arguments: str) -> Said:
        """Type a command that must succeed."""
        said = self.run(*arguments)
        assert said.code == 0, said.text
        return said

    def fails(self, code: int, *arguments: str) -> str:
        """Type a command that must end with this code and send nothing; what it said."""
        with self.untouched():
            said = self.run(*arguments)
        assert said.code == code, said.text
        return said.text

    def process(self, *arguments: str, **options: Any) -> subprocess.Popen[str]:
        """The same in a process of its own."""
        command = [sys.executable, "-m", "kafkaform", *arguments]
        settings = {"text": True, "stdin": subprocess.DEVNULL, "cwd": self.path, **options}
        return subprocess.Popen(command, **settings)

    def approval(self, *arguments: str) -> str:
        """The token that a plan prints."""
        out = self.done("plan", *arguments).out
        (line,) = [line for line in out.splitlines() if line.startswith("Approval: ")]
        return line.removeprefix("Approval: ")

    # ── what can be seen ────────────────────────────────────────────────────────────────

    def records(self, kind: str = "") -> list[dict[str, Any]]:
        """The records of the audit log, or those of one kind."""
        log = self.path / LOG
        lines = log.read_bytes().splitlines() if log.exists() else []
        records = [json.loads(line) for line in lines]
        return [record for record in records if kind in ("", record["kind"])]

    def topics(self) -> dict[str, int]:
        """name without the prefix -> number of partitions, of the topics that are there."""
        found = self.admin.list_topics(timeout=60).topics
        return {
            name.removeprefix(self.prefix): len(topic.partitions)
            for name, topic in found.items()
            if name.startswith(self.prefix)
        }

    @contextmanager
    def untouched(self) -> Iterator[None]:
        """Inside, no intent is written and no topic is made, changed or deleted."""
        before = (self._intents(), self.topics())
        yield
        assert (self._intents(), self.topics()) == before

    def _intents(self) -> int:
        log = self.path / LOG
        return log.read_bytes().count(b'"kind":"intent"') if log.exists() else 0

    # ── what others do ──────────────────────────────────────────────────────────────────

    def create(self, name: str, partitions: int = 1) -> None:
        """Create a topic with another client."""
        topic = NewTopic(f"{self.prefix}{name}", partitions, 1)
        finish(lambda: self.admin.create_topics([topic]))
        self.until(lambda: name in self.topics())
        self._wait_at_brokers(name, lambda reading: isinstance(reading, Observed))

    def alter(self, name: str, key: str, value: str) -> None:
        """Set a config of a topic with another client."""
        entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
        topic = f"{self.prefix}{name}"
        place = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        finish(lambda: self.admin.incremental_alter_configs([place]))
        self.until(lambda: self.config(name)[key] == value)
        self._wait_at_brokers(name, lambda reading: _get_config(reading).get(key) == value)

    def _wait_at_brokers(self, name: str, accept: Callable[[Reading], bool]) -> None:
        """Wait until each of several brokers shows the topic so."""
        topic = f"{self.prefix}{name}"
        wait_at_brokers(
            self.broker, self.admin, lambda session, node: accept(read(session, topic, at=node))
        )

    def config(self, name: str) -> dict[str, str | None]:
        """The configs of a topic that take effect."""
        place = ConfigResource(ResourceType.TOPIC, f"{self.prefix}{name}")
        (future,) = self.admin.describe_configs([place]).values()
        return {key: entry.value for key, entry in future.result(timeout=60).items()}

    def until(self, holds: Any) -> None:
        """Wait until something that others did can be seen."""
        deadline = time.monotonic() + DEADLINE_SECONDS
        while not holds():
            assert time.monotonic() < deadline, "it did not happen in time"
            time.sleep(0.02)

    def clean(self) -> None:
        """Delete what is left of the folder's topics."""
        left = [f"{self.prefix}{name}" for name in self.topics()]
        if left:
            # A broker that lags behind still lists what the test has deleted.
            gone = (KafkaError.UNKNOWN_TOPIC_OR_PART,)
            finish(lambda: self.admin.delete_topics(left), gone)


def _get_config(reading: Reading) -> Mapping[str, Any]:
    """The overrides of a topic."""
    return reading.attributes["config"] if isinstance(reading, Observed) else {}


def child_environment() -> dict[str, str]:
    """The environment of this process with a terminal that has colours and 100 columns."""
    return {**os.environ, "TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"}
