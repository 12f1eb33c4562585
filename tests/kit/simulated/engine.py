"""The engine in one process: the command line's own apply on a simulated cluster.

Nothing is replaced but the world: brokers, disk, clock and terminal. A `House` outlives the
processes that die in it; each call of `plan` or `apply` is one process.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar, cast

from msgspec.structs import replace

from kafkaform.apply.obligations import describe_work
from kafkaform.apply.recovery import Recovered
from kafkaform.apply.report import Work
from kafkaform.apply.stop import Stop
from kafkaform.audit.checkpoint import read_index
from kafkaform.audit.index import Growth, LogIndex
from kafkaform.audit.records import Record, verify_log
from kafkaform.cli.terminal.screen import advise
from kafkaform.cli.terminal.signals import stop_on_signals
from kafkaform.core.address import parse_address
from kafkaform.core.canonical import digest
from kafkaform.core.diagnostics import Range
from kafkaform.core.errors import KafkaformError
from kafkaform.core.progress import Reporter as ReportTo
from kafkaform.core.progress import ignore_event
from kafkaform.core.resource import (
    Declared,
    Desired,
    Fence,
    Identity,
    Import,
    Lifecycle,
    Moved,
    Output,
    ProviderConfig,
    Removed,
)
from kafkaform.core.secret import Secret
from kafkaform.core.value import FrozenMap, SecretRef, freeze
from kafkaform.plan.codec import decode, encode
from kafkaform.plan.model import Mode, Options, Plan
from kafkaform.provider.contract import Provider, Session
from kafkaform.provider.registry import Registry
from kafkaform.state.codec import encode as encode_state
from kafkaform.state.model import Row, State
from kafkaform.workflow import planning, workspace
from kafkaform.workflow.configuration.evaluation import DataAnswers, Inputs
from kafkaform.workflow.configuration.policies import NO_POLICIES, Policies
from kafkaform.workflow.model import Applied, DryRun, Note, PlanChosen, RunEvent
from kafkaform.workflow.operations import apply_changes, destroy
from kafkaform_kafka.kinds.simulation import Changes, Unreachable
from kafkaform_kafka.memory import Mishap, SimulatedClock, SimulatedCluster, SimulatedTopic

from . import boxes
from .memory_store import Fate, MemoryBackend, MemorySink

PLACE = Range("main.kf.hcl", 1, 1, 1, 1)
T = TypeVar("T")
KAFKA = "kafka"
PLAIN, NORMAL = Lifecycle(), Options()
TIMEOUT = 4
"""Seconds that the simulated cluster may take for a request: the code path is the real one."""


# ── what a configuration says ───────────────────────────────────────────────────────────


def identity(name: str, kind: str = "kafka_topic", instance: str = KAFKA) -> Identity:
    return Identity(instance, kind, name)


def topic(
    name: str,
    partitions: int | None = 1,
    config: Mapping[str, str | None] | None = None,
    *,
    address: str = "",
    depends_on: tuple[str, ...] = (),
    lifecycle: Lifecycle = PLAIN,
    owner: str | None = None,
    labels: Mapping[str, str] | None = None,
    **attributes: Any,
) -> Declared:
    """A declared topic, as the language hands it over; its address is `kafka_topic.NAME`."""
    whole = {
        "name": name,
        "partitions": partitions,
        "replication_factor": None,
        "replica_assignment": None,
        "config": config,
        "config_mode": "authoritative",
        "managed_replication_factor": None,
        **attributes,
    }
    return Declared(
        identity(name),
        parse_address(address or f"kafka_topic.{name}"),
        FrozenMap({key: freeze(value) for key, value in whole.items()}),
        PLACE,
        lifecycle,
        tuple(map(parse_address, depends_on)),
        owner,
        FrozenMap(labels or {}),
    )


def box(name: str, place: str | None = None, label: str | None = None) -> Declared:
    """A declared box: the one kind of object whose changes can be long work."""
    address = parse_address(f"{boxes.KIND}.{name}")
    attributes = FrozenMap(name=name, place=place, label=label)
    return Declared(identity(name, boxes.KIND), address, attributes, PLACE)


def topic_config(
    name: str, config: Mapping[str, str | None], *, depends_on: tuple[str, ...] = ()
) -> Declared:
    """Declared configs of a topic that is declared elsewhere."""
    return Declared(
        identity(name, "kafka_topic_config"),
        parse_address(f"kafka_topic_config.{name}"),
        FrozenMap(topic=name, config=FrozenMap(config)),
        PLACE,
        depends_on=tuple(map(parse_address, depends_on)),
    )


def removed(address: str, *, destroy: bool = False) -> Removed:
    return Removed(parse_address(address), destroy, PLACE)


def moved(source: str, target: str) -> Moved:
    return Moved(parse_address(source), parse_address(target), PLACE)


def imported(address: str, key: str) -> Import:
    return Import(parse_address(address), key, PLACE)


def desired(
    *declared: Declared,
    removed: tuple[Removed, ...] = (),
    moved: tuple[Moved, ...] = (),
    imports: tuple[Import, ...] = (),
    outputs: tuple[Output, ...] = (),
    timeout: int = TIMEOUT,
    fence: Fence | None = None,
    **settings: Any,
) -> Desired:
    """A configuration with one provider block."""
    config = FrozenMap({"operation_timeout": timeout, **settings})
    providers = {KAFKA: ProviderConfig(KAFKA, KAFKA, config, PLACE)}
    said = (declared, removed, moved, imports, outputs)
    text = digest(said)
    return Desired(declared, providers, removed, moved, imports, outputs, digest=text, fence=fence)


# ── the world ───────────────────────────────────────────────────────────────────────────

Mutation = Callable[[str, SimulatedTopic | None, SimulatedTopic | None], None]
"""(name, before, after): one topic's change by the engine, just before it is committed."""


class Clock(SimulatedClock):
    """A simulated clock whose time of day can be wrong; deadlines do not follow it."""

    def __init__(self) -> None:
        super().__init__()
        self.wrong = 0.0

    def now(self) -> float:
        return super().now() - self.wrong

    def set_back(self, seconds: float) -> None:
        self.wrong += seconds


class WatchedCluster(SimulatedCluster):
    """A cluster that tells the engine's own changes from those of others. touched: ids of the
    topics that others changed."""

    def __init__(self, *, brokers: int, clock: SimulatedClock) -> None:
        super().__init__(brokers=brokers, clock=clock)
        self.on_own: Mutation = lambda name, before, after: None
        self._others = False
        self.touched: set[str] = set()
        self.fate = Fate()
        self.depot = boxes.Depot(self)

    def _take_mishap(self, api: str) -> Mishap:
        self.fate.surprise(api)
        return super()._take_mishap(api)

    def carry(self, api: str, serve: Callable[[Mishap], T]) -> T:
        """Send one request that topics have nothing to do with. Raises what `write` does."""
        mishap = self._take_mishap(api)
        if not self.live:
            raise Unreachable("no broker is up")
        return self._carry_out(mishap, lambda: serve(mishap))

    @contextmanager
    def others(self) -> Iterator[Any]:
        """Edits inside are made by somebody else."""
        self._land_effects()
        self._others = True
        try:
            yield self.outside
        finally:
            self._others = False

    def commit(self, changes: Changes) -> None:
        for key, after in changes.items():
            name, before = key[1], self._world.get(key)
            if not isinstance(before or after, SimulatedTopic):
                continue
            if not self._others:
                self.on_own(name, before, after)
            elif before is not None:
                self.touched.add(before.id)
        super().commit(changes)


@dataclass(slots=True)
class Screen:
    """Approves everything and keeps what it was shown. shown: called with each plan; gap: done
    between plan and approval."""

    gap: Callable[[Plan], None] = lambda plan: None
    shown: Callable[[Plan], None] = lambda plan: None
    answer: bool = True
    progress: ReportTo = ignore_event
    plans: list[Plan] = field(default_factory=list)
    recoveries: list[Recovered] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def report(self, event: RunEvent) -> None:
        """Keep what a run tells."""
        match event:
            case PlanChosen():
                if not event.run:
                    self.plans.append(event.plan)
                    self.shown(event.plan)
            case Recovered():
                self.recoveries.append(event)
            case Work():
                self.notes.append(describe_work(event))
            case Note():
                self.notes.append(event.text)
            case DryRun():
                pass
            case _:
                self.progress(event)

    def approve(self, plan: Plan) -> bool:
        self.gap(plan)
        return self.answer


REGISTRY = Registry()
"""The installed providers, whose rules an apply can name."""


@dataclass(frozen=True, slots=True)
class Configuration:
    """The folder that a configuration was read from, as far as an apply asks."""

    folder: Path = Path("/")
    inputs: Inputs = field(default_factory=Inputs)
    asking: DataAnswers = field(default_factory=lambda: DataAnswers(cast(Any, None)))
    registry: Registry = REGISTRY

    def find_secrets(self, refs: Collection[SecretRef]) -> Mapping[SecretRef, Secret | None]:
        return dict.fromkeys(refs)

    def evaluate_settled(
        self, said: Desired, sessions: Mapping[str, Session], *, planned: bool = False
    ) -> Desired:
        return said


@dataclass(slots=True)
class House:
    """One state, one log and one cluster, in which processes live and die."""

    clock: Clock
    cluster: WatchedCluster
    fate: Fate
    backend: MemoryBackend
    sink: MemorySink
    screen: Screen = field(default_factory=Screen)
    providers: Mapping[str, Provider] = field(default_factory=dict)
    policies: Policies = NO_POLICIES

    @property
    def state(self) -> State:
        return self.backend.load().state or State("")

    def row(self, name: str, kind: str = "kafka_topic") -> Row | None:
        return self.state.objects.get(identity(name, kind))

    @property
    def index(self) -> LogIndex:
        """The whole log, every record checked against the state's anchor."""
        sink, state = cast(Any, self.sink), self.backend.load().state
        index = workspace.read_log(sink, state)
        if index.growth.used is not None:
            # Whatever happened: a checkpoint and the end of the log say what all of it says.
            whole = read_index(sink, state.audit_head if state else None, whole=True)
            assert replace(index, growth=Growth()) == replace(whole, growth=Growth())
        return index

    def records(self, *kinds: str) -> list[Record]:
        return [record for record in self.sink.records if record.kind in kinds]

    def check_log(self) -> None:
        """The chain holds, and the state's anchor is in it."""
        state = self.backend.load().state
        verdict = verify_log(self.sink.lines(), state.audit_head if state else None)
        assert verdict.ok, verdict


def house(*, brokers: int = 1, beside: House | None = None) -> House:
    """A new cluster, an empty disk, a clock that only moves when somebody waits. beside: a house
    whose cluster this one shares."""
    clock, fate = beside.clock if beside else Clock(), Fate()
    cluster = beside.cluster if beside else WatchedCluster(brokers=brokers, clock=clock)
    built = House(clock, cluster, fate, MemoryBackend(fate), MemorySink(fate))
    built.providers = {KAFKA: boxes.BoxProvider(cluster)}
    return built


def begin(where: House, lineage: str = "lineage") -> None:
    """An earlier run left a state without objects."""
    where.backend.data = encode_state(State(lineage))


# ── processes ───────────────────────────────────────────────────────────────────────────


def space(where: House, said: Desired) -> workspace.Workspace:
    """The workspace of one process."""
    providers = {name: where.providers[name] for name in said.providers}
    return workspace.Workspace(
        configuration=cast(Any, Configuration()),
        desired=said,
        providers=providers,
        backend=cast(Any, where.backend),
        sink=cast(Any, where.sink),
        clock=where.clock,
        policies=where.policies,
    )


def plan(where: House, said: Desired, options: Options = NORMAL) -> Plan:
    """What `kafkaform plan` shows."""
    return planning.plan_changes(space(where, said), options)


def apply(
    where: House,
    said: Desired,
    options: Options = NORMAL,
    *,
    saved: Plan | None = None,
    expect: str | None = None,
    fail_on: tuple[str, ...] = (),
    gap: Callable[[Plan], None] | None = None,
    shown: Callable[[Plan], None] = lambda plan: None,
    answer: bool = True,
) -> Applied:
    """What `kafkaform apply` does. saved: a plan file; expect: a reviewed token; gap: what
    happens in the world between the plan and its approval, which is `answer`; shown: called with
    the plan."""
    where.screen = Screen(gap or (lambda plan: None), shown, answer, where.screen.progress)
    here, screen = space(where, said), where.screen

    def run(stop: Stop) -> Applied:
        rerun = advise("apply", None if saved is None else Path("plan.json"), expect)
        how = {
            "rerun": rerun,
            "expect": expect,
            "approve": screen.approve,
            "progress": screen.report,
            "stop": stop,
        }
        if options.mode is Mode.DESTROY:
            return destroy(here, confirm=[where.cluster.id], options=options, **cast(Any, how))
        filed = None if saved is None else decode(encode(saved), "a saved plan")
        given = NORMAL if filed else options
        return apply_changes(here, filed, options=given, fail_on=fail_on, **cast(Any, how))

    return finish(run)


def finish(run: Callable[[Stop], Applied]) -> Applied:
    """What a run did, also where it ended in an error after it had begun to send. Signals are
    handled as the command line does."""
    try:
        with stop_on_signals() as stop:
            return run(stop)
    except KafkaformError as error:
        if error.applied is None:
            raise
        return cast(Applied, error.applied)


def apply_plainly(here: workspace.Workspace, options: Options, screen: Screen) -> Applied:
    """What `kafkaform apply --auto-approve` does."""
    return finish(
        lambda stop: apply_changes(
            here, options=options, approve=screen.approve, progress=screen.report, stop=stop
        )
    )
