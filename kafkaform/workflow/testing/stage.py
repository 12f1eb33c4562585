"""What the runs of one test file share: a configuration, simulated systems, a state and a log."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from ...audit.sinks.memory import MemorySink
from ...core.clock import SimulatedClock
from ...core.diagnostics import Diagnostic, Severity
from ...core.redaction import KnownSecrets
from ...core.resource import Desired
from ...core.value import FrozenMap
from ...language.declare.declarations import Declarations
from ...language.declare.folder import Tree
from ...language.suites import Suite
from ...plan.model import Plan
from ...provider.registry import Registry
from ...state.backends.memory import MemoryBackend
from ...syntax.nodes import File
from ..configuration.data_answers import DataAnswers
from ..configuration.evaluation import Configuration
from ..workspace import Workspace
from .systems import SimulatedSystems

ACTOR = "kafkaform test"


class Stage(Struct, frozen=True):
    """One test file and its world, which ends with the file."""

    configuration: Configuration
    found: Declarations
    """What the root of the configuration declares."""
    suite: Suite
    systems: SimulatedSystems
    known: KnownSecrets
    backend: MemoryBackend = field(default_factory=MemoryBackend)
    """The state that one run leaves for the next."""
    sink: MemorySink = field(default_factory=MemorySink)

    def configure(self, values: File, tree: Tree | None = None) -> Configuration:
        """The configuration with these values of variables, connected to the simulated systems.

        tree: other files instead of those of the folder; they get their variables from nowhere
        else.
        """
        base = self.configuration
        if tree is None:
            inputs = replace(base.inputs, given=(*base.inputs.given, values))
        else:
            inputs = replace(base.inputs, given=(), variables={})
        asking = DataAnswers(self.systems.connect)
        return replace(base, tree=tree or base.tree, inputs=inputs, asking=asking, texts={})

    def open_workspace(
        self,
        configuration: Configuration,
        desired: Desired,
        backend: MemoryBackend,
        sink: MemorySink,
    ) -> Workspace:
        """The workspace of one run. Raises ConfigurationError if a provider cannot simulate its
        system."""
        providers = {
            instance: self.systems.get_provider(config)
            for instance, config in desired.providers.items()
        }
        clock = self.systems.clock
        return Workspace(configuration, desired, providers, backend, sink, clock, ACTOR, self.known)


def make_stage(
    configuration: Configuration,
    found: Declarations,
    suite: Suite,
    settings: Mapping[str, FrozenMap],
    known: KnownSecrets,
    now: float,
) -> Stage:
    """A new world for a test file. now: seconds since the epoch at which its clock begins."""
    registry: Registry = configuration.registry
    systems = SimulatedSystems(registry, SimulatedClock(now), settings)
    return Stage(configuration, found, suite, systems, known)


def list_blocked(plan: Plan | None) -> list[tuple[str, Diagnostic]]:
    """The blocked changes for which `plan` would end with an error: the address, and a fault that
    says why."""
    return [
        (
            change.address,
            Diagnostic(
                Severity.ERROR,
                f"{change.address} is blocked: {change.blocked.reason}",
                range=change.range,
                advice=change.blocked.advice,
            ),
        )
        for change in (plan.changes if plan is not None else ())
        if change.blocked is not None and (change.blocked.kind.stops or change.blocked.unmet)
    ]
