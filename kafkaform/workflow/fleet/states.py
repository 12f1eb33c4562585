"""Read the states of a fleet and what their configurations declare; each can fail by itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct, field
from msgspec.structs import replace

from ...audit.event import render_time
from ...audit.sink import Sink
from ...core.clock import Clock
from ...core.diagnostics import Diagnostics, Severity, has_errors
from ...core.errors import KafkaformError, UsageError
from ...core.head import Head
from ...core.resource import Declared, Desired
from ...core.value import FrozenMap
from ...inventory.live import Captured, compute_destination
from ...inventory.objects import WantedObject
from ...language.desired import VarFile
from ...plan.diff import compare, is_ignored, lay_over
from ...provider.contract import ResourceType
from ...state.backends import files
from ...state.model import State
from ..configuration.evaluation import Configuration, Inputs, read_configuration
from ..stores import Store, open_folder_store
from ..workspace import make_first_state
from .register_file import ClusterEntry, StateEntry

BOOTSTRAP = "bootstrap_servers"
FEW = 5
"""How many faults of one configuration an error names."""


class KnownState(Struct, frozen=True):
    """What could be read of one state and its configuration."""

    entry: StateEntry
    state: State | None = None
    """None if it could not be read; its lineage is empty if nothing was ever applied."""
    sink: Sink | None = None
    """The audit log of the state."""
    desired: Desired | None = None
    """What the configuration declares; None without a folder, or if it could not be read."""
    types: Mapping[str, ResourceType] = field(default_factory=dict)
    """The resource types of the configuration's providers."""
    state_error: str | None = None
    desired_error: str | None = None
    started: str = ""
    """When reading began (RFC 3339)."""
    ended: str = ""
    """When reading ended (RFC 3339)."""

    @property
    def lineage(self) -> str:
        return self.state.lineage if self.state else ""

    @property
    def anchor(self) -> Head | None:
        """The head of the log that the state is anchored at."""
        return self.state.audit_head if self.state else None

    def find_scopes(self, clusters: Sequence[tuple[ClusterEntry, str]]) -> dict[str, str]:
        """Instance -> scope id: the recorded one, or that of the cluster with the same brokers.

        clusters: the clusters that could be read, with their scope ids.
        """
        found = dict(self.state.providers) if self.state else {}
        for instance, config in (self.desired.providers if self.desired else {}).items():
            servers = set(config.config.get(BOOTSTRAP) or ())
            for entry, scope in clusters:
                if servers & set(entry.settings.config.get(BOOTSTRAP) or ()):
                    found.setdefault(instance, scope)
        return found


def read_known(entry: StateEntry, clock: Clock) -> KnownState:
    """Read a state and evaluate its configuration. What cannot be read becomes an error text."""
    started = render_time(clock.now())
    try:
        known = _read_known(entry)
    except Exception as error:  # noqa: BLE001  # one state must not take the others with it
        known = KnownState(entry, state_error=describe_error(error))
    return replace(known, started=started, ended=render_time(clock.now()))


def _read_known(entry: StateEntry) -> KnownState:
    known, configuration = KnownState(entry), None
    if entry.folder is not None:
        try:
            configuration = _read_configuration(entry)
        except (KafkaformError, OSError) as error:
            known = replace(known, desired_error=describe_error(error))
    try:
        store = _open_store(entry, configuration)
        state = store.backend.load().state or make_first_state(store.sink)
        known = replace(known, state=state, sink=store.sink)
    except (KafkaformError, OSError) as error:
        known = replace(known, state_error=describe_error(error))
    return known if configuration is None else _add_desired(known, configuration)


def describe_error(error: Exception) -> str:
    """An error as one text, with the places of its first faults."""
    if isinstance(error, KafkaformError):
        return _render_errors(error.diagnostics)
    if isinstance(error, OSError):
        return f"{error.filename}: {error.strerror}" if error.filename else str(error)
    # The message of an unexpected error can contain a value of the configuration.
    return f"kafkaform failed unexpectedly ({type(error).__name__})"


def _render_errors(diagnostics: Diagnostics) -> str:
    errors = [d for d in diagnostics if d.severity is Severity.ERROR]
    texts = [f"{d.range}: {d.summary}" if d.range else d.summary for d in errors[:FEW]]
    more = [f"and {len(errors) - FEW} more"] if len(errors) > FEW else []
    return "; ".join((*texts, *more))


# ── where it is ─────────────────────────────────────────────────────────────────────────


def _open_store(entry: StateEntry, configuration: Configuration | None) -> Store:
    if entry.location is not None:
        return open_folder_store(Path.cwd(), entry.location, None)
    if configuration is None or entry.folder is None:
        raise UsageError("its configuration cannot be read, so that nobody says where it is")
    return open_folder_store(entry.folder, None, configuration.tree)


# ── what it declares ────────────────────────────────────────────────────────────────────


def _read_configuration(entry: StateEntry) -> Configuration:
    assert entry.folder is not None  # who calls has looked
    given = [VarFile(name, files.read(entry.folder / name)) for name in entry.var_files]
    return read_configuration(entry.folder, Inputs((*given, *entry.variables)))


def _add_desired(known: KnownState, configuration: Configuration) -> KnownState:
    try:
        desired = configuration.evaluate().desired
    except KafkaformError as error:
        return replace(known, desired_error=describe_error(error))
    finally:
        configuration.asking.close()
    if has_errors(desired.diagnostics):
        return replace(known, desired_error=_render_errors(desired.diagnostics))
    registry = configuration.registry
    used = {config.name for config in desired.providers.values()}
    types = {n: t for name in used for n, t in registry.load(name).types.items()}
    return replace(known, desired=desired, types=types)


def list_wanted(known: KnownState, captured: Mapping[str, Captured]) -> Iterator[WantedObject]:
    """The declared objects as a plan would make them.

    captured: instance -> what its cluster has, for clusters that could be read; objects of the
    others are as they are declared.
    """
    for item in known.desired.declared if known.desired else ():
        seen = captured.get(item.identity.instance)
        yield WantedObject(item, _compute_target(item, known.types[item.identity.kind], seen))


def _compute_target(item: Declared, kind: ResourceType, seen: Captured | None) -> FrozenMap:
    """The attributes that a plan would aim for, only those that the block sets."""
    said = item.attributes
    if seen is None or seen.facts is None:
        return said
    live = seen.live.get((item.identity.kind, item.identity.key))
    if live is None:
        target = kind.target(said, None, seen.facts, False)
    else:
        live = replace(live, attributes=compute_destination(live))
        target = kind.target(said, live, seen.facts, False)
        before = kind.canonical(live.attributes, seen.facts)
        differ = compare(before, target, schema=kind.schema)
        spared = [c.path for c in differ if is_ignored(c.path, item.lifecycle)]
        target = lay_over(target, spared, before)
    return FrozenMap({n: v for n, v in target.items() if n not in said or said[n] is not None})
