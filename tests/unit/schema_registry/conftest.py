"""A simulated registry, sessions of it, and a folder whose configuration uses it over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafkaform.cli.app import run_command_line
from kafkaform.core.change import Action, Batch, Change, Outcome, Step, Verdict
from kafkaform.core.resource import Identity, Reading
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.contract import Secrets, Session
from kafkaform_schema_registry.memory import RegistryMishap, SimulatedRegistry, connect_simulated
from kafkaform_schema_registry.provider import TYPES

from ...kit.entry_point import offer_provider
from ...kit.http.server import Served
from ...kit.schema_registry.judgement import INSTANCE, plan_change
from ...kit.schema_registry.server import serve_registry
from ...kit.schema_registry.systems import Door, open_simulated


@pytest.fixture
def registry() -> SimulatedRegistry:
    """A registry as Confluent's."""
    return SimulatedRegistry()


@pytest.fixture
def apicurio() -> SimulatedRegistry:
    """A registry as Apicurio's, whose own level is BACKWARD."""
    made = SimulatedRegistry(apicurio=True)
    made.level = "BACKWARD"
    return made


@dataclass
class Desk:
    """Plans and sends single changes, without a plan of the engine. mishaps: of coming writes."""

    registry: SimulatedRegistry
    session: Session
    mishaps: list[RegistryMishap]

    @property
    def door(self) -> Door:
        return open_simulated(self.registry)

    def read(self, kind: str, key: str) -> Reading:
        identity = Identity(INSTANCE, kind, key)
        return self.session.read([identity])[identity]

    def plan(self, kind: str, action: Action, **declared: Value) -> tuple[Change, tuple[Step, ...]]:
        """The change that a block asks for, and its steps."""
        change = plan_change(self.session, kind, action, **declared)
        return change, TYPES[kind].steps(change, self.session.facts)

    def check(self, steps: tuple[Step, ...]) -> list[Verdict]:
        return [v for one in steps for v in self.session.preflight(_make_batch(one))]

    def send(self, steps: tuple[Step, ...], secrets: Secrets = EMPTY) -> list[Outcome]:
        """The outcomes, in the order in which an apply sends the steps."""
        ordered = sorted(steps, key=lambda step: (step.request.part, step.request.phase))
        return [out for one in ordered for out in self.session.apply(_make_batch(one), secrets)]


def _make_batch(step: Step) -> Batch:
    return Batch("1", INSTANCE, step.request, (step,))


def open_desk(registry: SimulatedRegistry, **config: Value) -> Desk:
    """The administrator's desk."""
    mishaps: list[RegistryMishap] = []
    provider = connect_simulated(registry, mishaps=mishaps)
    return Desk(registry, provider.open(INSTANCE, FrozenMap(config), EMPTY), mishaps)


@pytest.fixture
def desk(registry: SimulatedRegistry) -> Desk:
    return open_desk(registry)


@dataclass
class Folder:
    """path: the current folder; served: where its registry is."""

    path: Path
    served: Served
    registry: SimulatedRegistry
    capsys: pytest.CaptureFixture[str]

    def write(self, text: str, name: str = "main.kf.hcl") -> None:
        block = f'provider "schema_registry" {{\n  url = "{self.served.url}"\n}}\n'
        (self.path / name).write_text(block + text if name.endswith(".hcl") else text)

    def run(self, *arguments: str, code: int = 0) -> str:
        """Type a command that must end with this code; what it said, without line breaks."""
        self.capsys.readouterr()
        ended = run_command_line(arguments)
        said = self.capsys.readouterr()
        text = " ".join((said.out + said.err).replace("│", " ").split())
        assert "Traceback" not in text
        assert ended == code, text
        return text


@pytest.fixture
def folder(
    registry: SimulatedRegistry,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Iterator[Folder]:
    """An empty folder, and a registry behind HTTP."""
    offer_provider("schema_registry", tmp_path / "site", monkeypatch)
    monkeypatch.setenv("NO_COLOR", "1")
    here = tmp_path / "here"
    here.mkdir()
    monkeypatch.chdir(here)
    with serve_registry(registry) as served:
        yield Folder(here, served, registry, capsys)
