"""A configuration folder on a simulated cluster, for what `import --all` writes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from kafkaform.core.diagnostics import has_errors
from kafkaform.plan.model import Options, Plan
from kafkaform.workflow.configuration.evaluation import Inputs, read_configuration
from kafkaform.workflow.generate.files import Stock, prove_files, render_stock
from kafkaform.workflow.import_all import ImportFilter, read_tree, take_stock
from kafkaform.workflow.operations import apply_changes
from kafkaform.workflow.planning import plan_changes
from kafkaform.workflow.workspace import Workspace
from kafkaform_kafka.memory import MemoryProvider, SimulatedCluster

from ..simulated.engine import Screen
from ..simulated.memory_store import Fate, MemoryBackend, MemorySink

PROVIDER = 'provider "kafka" {\n  bootstrap_servers = ["localhost:9092"]\n}\n'
GENERATED = "generated.kf.hcl"


@dataclass
class Desk:
    """One folder, one cluster, one state; user: whom the folder connects as."""

    path: Path
    cluster: SimulatedCluster
    user: str = "admin"
    backend: MemoryBackend = field(default_factory=lambda: MemoryBackend(Fate()))
    sink: MemorySink = field(default_factory=lambda: MemorySink(Fate()))

    def write(self, name: str, text: str) -> None:
        (self.path / name).write_text(text, encoding="utf-8")

    def space(self) -> Workspace:
        """The folder, opened."""
        configuration = read_configuration(self.path, Inputs())
        desired = configuration.evaluate().desired
        assert not has_errors(desired.diagnostics), desired.diagnostics
        provider = MemoryProvider(self.cluster, self.user)
        return Workspace(
            configuration,
            desired,
            dict.fromkeys(desired.providers, provider),
            cast(Any, self.backend),
            cast(Any, self.sink),
            self.cluster.clock,
        )

    def stock(self, wanted: ImportFilter | None = None) -> Stock:
        return take_stock(self.space(), wanted or ImportFilter())

    def generate(self, wanted: ImportFilter | None = None) -> str:
        """What the command writes, put into the folder."""
        space = self.space()
        stock = take_stock(space, wanted or ImportFilter())
        tree = read_tree(space)
        files = render_stock(space.types, tree, stock)
        prove_files(space.configuration, tree, files, stock, GENERATED)
        (text,) = files.values()
        self.write(GENERATED, text)
        return text

    def plan(self) -> Plan:
        return plan_changes(self.space())

    def apply(self, *adopt: str) -> Plan:
        """Apply everything; what was applied."""
        options = Options(adopt=adopt)
        return apply_changes(self.space(), options=options, approve=Screen().approve).plan

    def lose_state(self) -> None:
        """State and log are gone."""
        self.backend, self.sink = MemoryBackend(Fate()), MemorySink(Fate())


def desk(path: Path, cluster: SimulatedCluster, user: str = "admin") -> Desk:
    """A folder with nothing but a provider block."""
    made = Desk(path, cluster, user)
    made.write("main.kf.hcl", PROVIDER)
    return made
