"""Read the states of a fleet and what their configurations declare; each fails on its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from ...audit.records import render_time
from ...audit.sink import Sink
from ...core import storage
from ...core.clock import Clock
from ...core.diagnostics import Diagnostics, Severity, has_errors
from ...core.errors import KafkaformError, UsageError
from ...core.head import Head
from ...core.resource import Declared, Desired, ProviderConfig
from ...core.value import FrozenMap
from ...inventory.live import Captured, WantedObject, compute_destination
from ...language.desired import VarFile
from ...plan.diff import compare, is_ignored, lay_over
from ...provider.contract import ResourceType
from ...state.model import State
from ..configuration.evaluation import Configuration, Inputs, read_configuration
from ..configuration.files import Buffers
from ..stores import Store, load_outputs, open_folder_store, open_listed_store
from ..workspace import make_first_state
from .entries import ClusterEntry, StateEntry

BOOTSTRAP, URL = "bootstrap_servers", "url"
MAX_FAULTS = 5
"""How many faults of one configuration are reported."""


class StateReading(Struct, frozen=True):
    """What is known about one state."""

    entry: StateEntry
    state: State | None = None
    """None: it could not be read. Its lineage is empty if nothing was ever applied."""
    sink: Sink | None = None
    desired: Desired | None = None
    """None: there is no folder, or the configuration could not be read."""
    types: Mapping[str, ResourceType] = field(default_factory=dict)
    state_error: str | None = None
    desired_error: str | None = None
    started: str = ""
    """When reading began (RFC 3339); `ended`: when it ended."""
    ended: str = ""

    @property
    def lineage(self) -> str:
        return self.state.lineage if self.state else ""

    @property
    def anchor(self) -> Head | None:
        """The head of its log that the state keeps."""
        return self.state.audit_head if self.state else None

    def find_scopes(self, clusters: Sequence[tuple[ClusterEntry, str]]) -> dict[str, str]:
        """Return instance -> scope id: as recorded, or else that of the cluster with the same
        brokers.

        clusters: with their scope ids, as far as they were read.
        """
        scopes = dict(self.state.providers) if self.state else {}
        for instance, config in (self.desired.providers if self.desired else {}).items():
            addresses = _list_addresses(config)
            for entry, scope in clusters:
                same_provider = entry.settings.name == config.name
                if same_provider and addresses & _list_addresses(entry.settings):
                    scopes.setdefault(instance, scope)
        return scopes


def _list_addresses(config: ProviderConfig) -> set[str]:
    texts = (*(config.config.get(BOOTSTRAP) or ()), config.config.get(URL) or "")
    addresses = (address.strip().rstrip("/") for text in texts for address in str(text).split(","))
    return set(filter(None, addresses))


def read_state(entry: StateEntry, clock: Clock) -> StateReading:
    """Read the state and evaluate its configuration. Never raises for what cannot be read."""
    started = render_time(clock.now())
    try:
        reading = _read_state(entry)
    except Exception as error:  # noqa: BLE001  # a failure of one state must not stop the others
        reading = StateReading(entry, state_error=describe_error(error))
    return replace(reading, started=started, ended=render_time(clock.now()))


def _read_state(entry: StateEntry) -> StateReading:
    reading, configuration = StateReading(entry), None
    if entry.repository_folder is not None and entry.repository_folder.faults:
        return replace(reading, state_error=_render_errors(entry.repository_folder.faults))
    if entry.folder is not None:
        try:
            configuration = open_configuration(entry, entry.folder)
        except (KafkaformError, OSError) as error:
            reading = replace(reading, desired_error=describe_error(error))
    try:
        store = _open_store(entry, configuration)
        state = store.backend.load().state or make_first_state(store.sink)
        reading = replace(reading, state=state, sink=store.sink)
    except (KafkaformError, OSError) as error:
        reading = replace(reading, state_error=describe_error(error))
    return reading if configuration is None else _add_desired(reading, configuration)


def open_configuration(
    entry: StateEntry, folder: Path, buffers: Buffers | None = None
) -> Configuration:
    """Read the configuration of a state. folder: where it is; buffers: texts that count instead of
    the files. Raises KafkaformError, OSError."""
    var_files = [VarFile(name, storage.read(folder / name)) for name in entry.var_files]
    return read_configuration(
        folder,
        Inputs((*var_files, *entry.variables)),
        buffers=buffers,
        repository_folder=entry.repository_folder,
        load_outputs=load_outputs,
    )


def describe_error(error: Exception) -> str:
    """Return an error as one text: each fault with its place, at most MAX_FAULTS of them."""
    if isinstance(error, KafkaformError):
        return _render_errors(error.diagnostics)
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    return f"kafkaform failed unexpectedly ({type(error).__name__})"


def _render_errors(diagnostics: Diagnostics) -> str:
    errors = [d for d in diagnostics if d.severity is Severity.ERROR]
    texts = [f"{d.range}: {d.summary}" if d.range else d.summary for d in errors[:MAX_FAULTS]]
    remainder = [f"and {len(errors) - MAX_FAULTS} more"] if len(errors) > MAX_FAULTS else []
    return "; ".join((*texts, *remainder))


# ── where it is ─────────────────────────────────────────────────────────────────────────


def _open_store(entry: StateEntry, configuration: Configuration | None) -> Store:
    if entry.location is not None:
        return open_folder_store(Path.cwd(), entry.location, None)
    if entry.repository_folder is not None and entry.folder is not None:
        return open_listed_store(entry.folder, entry.repository_folder)
    if configuration is None or entry.folder is None:
        raise UsageError("its location is unknown, because its configuration cannot be read")
    return open_folder_store(entry.folder, None, configuration.tree)


# ── what it declares ────────────────────────────────────────────────────────────────────


def _add_desired(reading: StateReading, configuration: Configuration) -> StateReading:
    try:
        desired = configuration.evaluate().desired
    except KafkaformError as error:
        return replace(reading, desired_error=describe_error(error))
    finally:
        configuration.asking.close()
    if has_errors(desired.diagnostics):
        return replace(reading, desired_error=_render_errors(desired.diagnostics))
    registry = configuration.registry
    provider_names = {config.name for config in desired.providers.values()}
    types = {n: t for name in provider_names for n, t in registry.load(name).types.items()}
    return replace(reading, desired=desired, types=types)


def list_wanted(reading: StateReading, captured: Mapping[str, Captured]) -> Iterator[WantedObject]:
    """Yield the declared objects with their target attributes.

    captured: instance -> what its cluster showed, for clusters that could be read; objects in other
    clusters keep the attributes as declared.
    """
    for item in reading.desired.declared if reading.desired else ():
        cluster = captured.get(item.identity.instance)
        yield WantedObject(item, _compute_target(item, reading.types[item.identity.kind], cluster))


def _compute_target(item: Declared, kind: ResourceType, cluster: Captured | None) -> FrozenMap:
    """Return what a plan would make true of what the block declares, without what it leaves out."""
    declared = item.attributes
    if cluster is None or cluster.facts is None:
        return declared
    live = cluster.live.get((item.identity.kind, item.identity.key))
    if live is None:
        target = kind.target(declared, None, cluster.facts, False)
    else:
        live = replace(live, attributes=compute_destination(live))
        target = kind.target(declared, live, cluster.facts, False)
        before = kind.canonical(live.attributes, cluster.facts)
        changes = compare(before, target, schema=kind.schema)
        # Attributes that the lifecycle ignores land with their live value, so they are never drift.
        ignored_paths = [c.path for c in changes if is_ignored(c.path, item.lifecycle)]
        target = lay_over(target, ignored_paths, before)
    # An attribute that is explicitly null is not declared; one that `target` adds is.
    return FrozenMap(
        {n: v for n, v in target.items() if n not in declared or declared[n] is not None}
    )
