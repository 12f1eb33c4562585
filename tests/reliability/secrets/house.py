"""A folder whose objects and connection need a secret, and a cluster that talks of it."""

from __future__ import annotations

import base64
import io
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from kafkaform.cli.app import run_command_line
from kafkaform.provider.registry import Registry
from kafkaform.syntax.write import quote_string
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ...kit.simulated.copies import Mould

PROVIDER = """
provider "kafka" {
  bootstrap_servers     = ["127.0.0.1:1"]
  sasl_username         = "ci"
  sasl_password         = %(login)s
  client_cert           = "client.pem"
  client_key            = "client.key"
  client_key_passphrase = %(file)s
}
variable "password" {
  type      = string
  sensitive = true
}
"""
OBJECTS = """
resource "kafka_topic" "orders" {
  name       = "orders"
  partitions = %(version)d
}
resource "kafka_user_scram_credential" "u" {
  for_each            = { env = 1, more = 2 }
  username            = each.key
  scram_mechanism     = "SCRAM-SHA-256"
  password            = %(password)s
  password_wo_version = %(version)d
}
resource "kafka_user_scram_credential" "file" {
  username            = "file"
  scram_mechanism     = "SCRAM-SHA-512"
  password            = %(file)s
  password_wo_version = %(version)d
}
resource "kafka_user_scram_credential" "variable" {
  username            = "variable"
  scram_mechanism     = "SCRAM-SHA-512"
  password            = %(variable)s
  password_wo_version = %(version)d
}
resource "kafka_user_scram_credential" "command" {
  username            = "command"
  scram_mechanism     = "SCRAM-SHA-512"
  password            = %(command)s
  password_wo_version = %(version)d
}
resource "kafka_broker_config" "b" {
  broker_id             = 1
  secret_config         = { "listener.name.x.ssl.keystore.password" = %(password)s }
  secret_config_version = %(version)d
}
output "password" {
  value     = var.password
  sensitive = true
}
output "topic" {
  value = kafka_topic.orders.name
}
"""
FLEET = """
fleet { root = "fleet" }
cluster "one" {
  connection {
    bootstrap_servers     = ["127.0.0.1:1"]
    sasl_username         = "ci"
    sasl_password         = %(login)s
    client_cert           = "client.pem"
    client_key            = "client.key"
    client_key_passphrase = %(file)s
  }
}
state "own" { folder = "." }
"""
SUITE = """
given "kafka_user_scram_credential" "other" {
  username        = "other"
  scram_mechanism = "SCRAM-SHA-512"
  password        = secret_env("CANARY")
}
run "reveals_nothing" {
  command = "apply"
  assert {
    condition     = var.password == "other" || output.password == "other"
    error_message = "It is ${var.password}."
  }
}
"""
REFERENCES = {
    "login": 'secret_env("CANARY")',
    "file": 'secret_file("canary.secret")',
    "command": 'secret_command(["cat", "canary.secret"])',
    "password": 'secret_env("CANARY")',
    "variable": "var.password",
}
HARMLESS = "nobody-knows-this-one"
OURS = ("canary.secret", "fleet.hcl", "main.kf.hcl", "objects.kf.hcl")
"""Files that hold the secret because the user has written it there."""


def echo(secret: str) -> str:
    """What a broker or a library may make of a secret."""
    data = f"ci:{secret}".encode()
    return (
        f"invalid value {secret} for password={secret!r}; Basic {base64.b64encode(data).decode()} "
        f"{json.dumps({'password': secret})} 0x{secret.encode().hex()}"
    )


@dataclass
class Session:
    """A session of the simulated cluster in front of which something happens. before: called
    with the name of each call; answer: makes of its answer what the caller gets."""

    inner: Any
    mood: Mood

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inner, name)
        if not callable(found):
            return found

        def call(*arguments: Any, **named: Any) -> Any:
            self.mood.before(name)
            return self.mood.answer(name, found(*arguments, **named), arguments)

        return call

    def close(self) -> None:
        self.inner.close()


def _nothing(name: str) -> None:
    pass


def _as_it_is(name: str, answer: Any, arguments: Sequence[Any]) -> Any:
    return answer


@dataclass
class Mood:
    """How the cluster behaves."""

    before: Callable[[str], None] = _nothing
    answer: Callable[[str, Any, Sequence[Any]], Any] = _as_it_is


@dataclass
class Provider:
    """The memory provider; it holds every secret that a real one would hold."""

    inner: MemoryProvider
    mood: Mood
    held: list[Any] = field(default_factory=list)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def open(self, instance: str, config: Any, secrets: Any) -> Any:
        self.held.append(secrets)
        self.mood.before("open")
        return Session(self.inner.open(instance, config, secrets), self.mood)


@dataclass(frozen=True)
class Said:
    """What a command left: its code, and all bytes by the place where they are."""

    code: int
    places: Mapping[str, bytes]

    @property
    def text(self) -> str:
        return (self.places["stdout"] + self.places["stderr"]).decode("utf-8", "replace")


@dataclass
class House:
    """folder: the configuration; home: where else a command may write."""

    folder: Path
    home: Path
    cluster: SimulatedCluster
    mood: Mood = field(default_factory=Mood)

    def write(self, secret: str, version: int, *, literal: bool = False) -> None:
        """Declare everything. literal: with the secret itself where references belong."""
        said = dict.fromkeys(REFERENCES, quote_string(secret)) if literal else REFERENCES
        filled = {**said, "version": version}
        (self.folder / "main.kf.hcl").write_text(PROVIDER % filled, "utf-8")
        (self.folder / "objects.kf.hcl").write_text(OBJECTS % filled, "utf-8")
        (self.folder / "fleet.hcl").write_text(FLEET % filled, "utf-8")
        (self.folder / "main.kftest.hcl").write_text(SUITE, "utf-8")
        (self.folder / "canary.secret").write_text(f"{secret}\n", "utf-8")

    @contextmanager
    def entered(self, secret: str | None) -> Iterator[None]:
        """The folder is the current one, the secret is in the environment, and whatever is
        written elsewhere is written below `home`."""
        here = Path.cwd()
        given = {} if secret is None else {"CANARY": secret, "KF_VAR_password": secret}
        kept = {name: os.environ[name] for name in ("PATH",) if name in os.environ}
        homes = {"HOME": str(self.home), "XDG_STATE_HOME": str(self.home), "TERM": "dumb"}
        provider = Provider(MemoryProvider(self.cluster), self.mood)
        os.chdir(self.folder)
        try:
            with (
                patch.dict(os.environ, {**kept, **homes, **given}, clear=True),
                patch.object(tempfile, "tempdir", str(self.home)),
                patch.object(Registry, "load", lambda registry, name: provider),
            ):
                yield
        finally:
            os.chdir(here)

    def type(self, words: Sequence[str], lines: Sequence[str] = ()) -> Said:
        """Run a command line inside `entered`; all that it leaves."""
        out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", "backslashreplace") for _ in range(2))
        stdin = io.TextIOWrapper(io.BytesIO("\n".join((*lines, "")).encode()), "utf-8")
        with (
            patch.object(sys, "stdin", stdin),
            patch.object(sys, "stdout", out),
            patch.object(sys, "stderr", err),
        ):
            code = run_command_line(words)
        streams = {}
        for name, stream in (("stdout", out), ("stderr", err)):
            stream.flush()
            streams[name] = stream.buffer.getvalue()  # type: ignore[attr-defined]  # a BytesIO
        return Said(code, {**streams, **self.files()})

    def files(self) -> dict[str, bytes]:
        """Every file that a command may have written; its name is a place to look at too."""
        found = {}
        for root in (self.folder, self.home):
            for path in root.rglob("*"):
                if path.is_file() and path.name not in OURS:
                    name = str(path.relative_to(root.parent))
                    found[name] = name.encode() + b"\n" + path.read_bytes()
        return found


@dataclass(frozen=True)
class Template:
    """A house in which everything was applied once, and has changed since; copies are cheap."""

    root: Path
    cluster: Mould[SimulatedCluster]

    @staticmethod
    def build(root: Path) -> Template:
        (root / "folder").mkdir(parents=True)
        (root / "home").mkdir()
        house = House(root / "folder", root / "home", SimulatedCluster())
        house.cluster.outside.create("foreign")
        house.write(HARMLESS, 1)
        with house.entered(HARMLESS):
            for words in (["apply", "-auto-approve"], ["plan", "-out=saved.kfplan"]):
                said = house.type(words)
                assert said.code == 0, said.text
        return Template(root, Mould(house.cluster))

    @contextmanager
    def copied(self, mood: Mood | None = None) -> Iterator[House]:
        with tempfile.TemporaryDirectory(prefix="canary-") as place:
            root = Path(place, "house")
            shutil.copytree(self.root, root)
            cluster = self.cluster.copy()
            yield House(root / "folder", root / "home", cluster, mood or Mood())
