"""A simulated registry, sessions of it, and a folder whose configuration uses it over HTTP."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from kafkaform.cli.app import run_command_line
from kafkaform.core.change import Action, Batch, Change, Outcome, PathChange, Step, Verdict
from kafkaform.core.resource import Identity, Observed, Reading
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.contract import Session
from kafkaform_schema_registry.memory.client import RegistryMishap
from kafkaform_schema_registry.memory.registry import SimulatedRegistry
from kafkaform_schema_registry.memory.simulation import connect_simulated
from kafkaform_schema_registry.provider import TYPES

from ...kit.entry_point import offer_provider
from ...kit.http.server import Served
from ...kit.schema_registry.server import serve_registry
from ...kit.schema_registry.systems import Door, open_simulated

INSTANCE = "schema_registry"


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
        item, facts = TYPES[kind], self.session.facts
        block = {name: one.default for name, one in item.schema.attributes.items()}
        attributes = FrozenMap({**block, **declared})
        key = item.key(attributes)
        live = self.read(kind, key)
        before = live.attributes if isinstance(live, Observed) else None
        seen = live if isinstance(live, Observed) else None
        after = None if action is Action.DELETE else item.target(attributes, seen, facts, False)
        old, new = before or EMPTY, after or EMPTY
        paths = tuple(
            PathChange((name,), old.get(name), new.get(name))
            for name in sorted({*old, *new})
            if old.get(name) != new.get(name)
        )
        identity = Identity(INSTANCE, kind, key)
        change = Change(identity, f"{kind}.x", action, before, after, paths)
        return change, item.steps(change, facts)

    def check(self, steps: tuple[Step, ...]) -> list[Verdict]:
        return [v for one in steps for v in self.session.preflight(_make_batch(one))]

    def send(self, steps: tuple[Step, ...]) -> list[Outcome]:
        return [out for one in steps for out in self.session.apply(_make_batch(one), EMPTY)]


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
