"""What the runs of one test file share: a configuration, simulated systems with the objects of
`given` blocks, a state and a log.

Given objects are declared and applied like any configuration, with a state that is thrown away: so
every kind of object can be given, and the provider's own rules and requests make it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from ...audit.sink import MemorySink
from ...core.clock import SimulatedClock
from ...core.diagnostics import Diagnostic, Diagnostics, Severity, has_errors, suggest
from ...core.errors import Blocked, ConfigurationError, Ended, Interrupted, KafkaformError
from ...core.resource import Desired, ProviderConfig
from ...core.secret import KnownSecrets
from ...core.value import EMPTY, FrozenMap
from ...language.declare.blocks import Declarations, Header
from ...language.declare.folder import Tree
from ...language.tests.assertions import FaultKeys
from ...language.tests.suites import Suite, evaluate_settings, make_given_tree, name_instance
from ...language.values.faults import make_error
from ...plan.model import Options, Plan
from ...provider.contract import Provider, Session
from ...provider.registry import Registry
from ...state.model import MemoryBackend
from ...syntax.nodes import Attribute, Block, File
from ..configuration.evaluation import Configuration, DataAnswers
from ..configuration.policies import NO_POLICIES, Policies
from ..configuration.repository_place import FolderOutputs
from ..model import PlanChosen, RunEvent
from ..operations import apply_changes
from ..workspace import Workspace

ACTOR = "kafkaform test"
# An object that is there already becomes as it is given, without losing what it has besides.
_EVERYTHING = Options(adopt=("*",))
_CONTEXT = "while creating the given objects"


class SimulatedSystems(Struct, frozen=True):
    """Makes each system when it is asked for first; nothing exists in it then."""

    registry: Registry
    clock: SimulatedClock
    settings: Mapping[str, FrozenMap]
    """Provider instance -> the settings of its system, for instances with a `simulate` block."""
    providers: dict[str, Provider] = field(default_factory=dict)
    """Provider instance -> the provider of its system."""

    def get_provider(self, config: ProviderConfig) -> Provider:
        """The provider whose sessions lead to the system of this instance. Raises
        ConfigurationError if the provider cannot simulate its system."""
        if config.instance not in self.providers:
            simulation = self.registry.load_simulation(config.name)
            settings = self.settings.get(config.instance)
            if settings is None:
                settings, _ = evaluate_settings(None, simulation.settings)
            assert settings is not None  # defaults have no faults
            scope = f"simulated-{config.instance}"
            self.providers[config.instance] = simulation.make(settings, scope, self.clock)
        return self.providers[config.instance]

    def connect(self, config: ProviderConfig) -> Session:
        """Open a session for a data source."""
        return self.get_provider(config).open(config.instance, config.config, {})


def read_settings(
    blocks: Iterable[Block], registry: Registry, aliases: Iterable[str]
) -> tuple[Mapping[str, FrozenMap], Diagnostics]:
    """Provider instance -> the settings of its `simulate` block, and the faults of all blocks.

    aliases: the provider instances with an alias that the configuration declares.
    """
    settings_by_instance: dict[str, FrozenMap] = {}
    faults: list[Diagnostic] = []
    instances = tuple(aliases)
    for block in blocks:
        instance = name_instance(block)
        wrong = list(_find_unknown(block, instance, instances))
        faults += wrong
        if wrong:
            continue
        try:
            schema = registry.load_simulation(block.labels[0].text).settings
        except ConfigurationError as error:
            faults.append(make_error(Header(block), error.message, advice=error.advice))
            continue
        settings, problems = evaluate_settings(block, schema)
        faults += problems
        if settings is not None:
            settings_by_instance[instance] = settings
    return settings_by_instance, tuple(faults)


def _find_unknown(block: Block, instance: str, instances: tuple[str, ...]) -> Iterator[Diagnostic]:
    if "." in instance and instance not in instances:
        advice = suggest(instance, instances)
        yield make_error(Header(block), f"There is no provider instance {instance}", advice=advice)


class Subject(Struct, frozen=True):
    """The configuration that is tested."""

    configuration: Configuration
    declarations: Declarations
    """What its root declares."""
    mistakes: FaultKeys
    """The faults that it has in every run."""


class Stage(Struct, frozen=True):
    """One test file and its world, which ends with the file."""

    subject: Subject
    suite: Suite
    systems: SimulatedSystems
    known_secrets: KnownSecrets
    outputs: Mapping[str, FrozenMap] = EMPTY
    """What other folders put out."""
    backend: MemoryBackend = field(default_factory=MemoryBackend)
    """The state that one run leaves for the next."""
    sink: MemorySink = field(default_factory=MemorySink)

    def configure(self, values: File) -> Configuration:
        """The configuration with these values of variables, connected to the simulated systems."""
        base = self.subject.configuration
        inputs = replace(base.inputs, assignments=(*base.inputs.assignments, values))
        return self._connect(replace(base, inputs=inputs))

    def configure_tree(self, tree: Tree) -> Configuration:
        """Another configuration, which gets no values of variables."""
        base = self.subject.configuration
        inputs = replace(base.inputs, assignments=(), variables={})
        return self._connect(replace(base, tree=tree, inputs=inputs))

    def _connect(self, configuration: Configuration) -> Configuration:
        outputs = FolderOutputs(configuration.folder, values=self.outputs)
        asking = DataAnswers(self.systems.connect, outputs=outputs)
        return replace(configuration, asking=asking, texts={})

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
        secrets, clock = self.known_secrets, self.systems.clock
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


def create_given(stage: Stage, blocks: Sequence[Block], values: Mapping[str, Attribute]) -> None:
    """Create or change live objects. values: the variables that the blocks see. Raises
    ConfigurationError with every fault."""
    if not blocks:
        return
    tree = make_given_tree(blocks, values, stage.subject.declarations.providers)
    configuration = stage.configure_tree(tree)
    desired = configuration.evaluate().desired
    if has_errors(desired.diagnostics):
        raise _make_error(desired.diagnostics)
    plans: list[Plan] = []

    def note(event: RunEvent) -> None:
        if isinstance(event, PlanChosen):
            plans.append(event.plan)

    try:
        space = stage.open_workspace(configuration, desired, MemoryBackend(), MemorySink())
        apply_changes(
            space, options=_EVERYTHING, approve=lambda plan: True, wait=False, progress=note
        )
    except Interrupted as interrupted:
        raise Ended(interrupted.signal_number) from None
    except Blocked as error:
        blocked = tuple(fault for _, fault in list_blocked(plans[-1] if plans else None))
        raise _make_error(blocked or error.diagnostics) from None
    except KafkaformError as error:
        raise _make_error(error.diagnostics) from None


def _make_error(faults: Diagnostics) -> ConfigurationError:
    causes = tuple(replace(fault, context=(*fault.context, _CONTEXT)) for fault in faults)
    return ConfigurationError("the given objects cannot be created", diagnostics=causes)
