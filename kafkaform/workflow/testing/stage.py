"""What the runs of one test file share: a configuration, simulated systems, a state and a log."""

from __future__ import annotations

from msgspec import Struct, field
from msgspec.structs import replace

from ...audit.sinks.memory import MemorySink
from ...core.diagnostics import Diagnostic, Severity
from ...core.resource import Desired
from ...core.secret import KnownSecrets
from ...language.declare.declarations import Declarations
from ...language.declare.folder import Tree
from ...language.expectations import Spots
from ...language.suites import Suite
from ...plan.model import Plan
from ...state.backends.memory import MemoryBackend
from ...syntax.nodes import File
from ..configuration.data_answers import DataAnswers
from ..configuration.evaluation import Configuration
from ..configuration.policies import NO_POLICIES, Policies
from ..workspace import Workspace
from .systems import SimulatedSystems

ACTOR = "kafkaform test"


class Subject(Struct, frozen=True):
    """The configuration that is tested."""

    configuration: Configuration
    found: Declarations
    """What its root declares."""
    mistakes: Spots
    """The faults that it has in every run."""


class Stage(Struct, frozen=True):
    """One test file and its world, which ends with the file."""

    subject: Subject
    suite: Suite
    systems: SimulatedSystems
    known: KnownSecrets
    backend: MemoryBackend = field(default_factory=MemoryBackend)
    """The state that one run leaves for the next."""
    sink: MemorySink = field(default_factory=MemorySink)

    def configure(self, values: File) -> Configuration:
        """The configuration with these values of variables, connected to the simulated systems."""
        base = self.subject.configuration
        inputs = replace(base.inputs, given=(*base.inputs.given, values))
        return self._connect(replace(base, inputs=inputs))

    def configure_tree(self, tree: Tree) -> Configuration:
        """Another configuration, which gets no values of variables."""
        base = self.subject.configuration
        inputs = replace(base.inputs, given=(), variables={})
        return self._connect(replace(base, tree=tree, inputs=inputs))

    def _connect(self, configuration: Configuration) -> Configuration:
        return replace(configuration, asking=DataAnswers(self.systems.connect), texts={})

    def open_workspace(
        self,
        configuration: Configuration,
        desired: Desired,
        backend: MemoryBackend,
        sink: MemorySink,
        policies: Policies = NO_POLICIES,
    ) -> Workspace:
        """The workspace of one run. Raises ConfigurationError if a provider cannot simulate its
        system."""
        providers = {
            instance: self.systems.get_provider(config)
            for instance, config in desired.providers.items()
        }
        secrets, clock = self.known, self.systems.clock
        return Workspace(
            *(configuration, desired, providers, backend, sink, clock, ACTOR, secrets, policies)
        )


def list_blocked(plan: Plan | None) -> list[tuple[str, Diagnostic]]:
    """The blocked changes for which `plan` would end with an error: the address, and a fault that
    says why."""
    return [
        (
            change.address,
            Diagnostic(
                Severity.ERROR,
                f"{change.address} is blocked",
                change.blocked.text,
                range=change.range,
                advice=change.blocked.fix,
            ),
        )
        for change in (plan.changes if plan is not None else ())
        if change.blocked is not None and (change.blocked.stops or change.blocked.unmet)
    ]
