"""Take a snapshot: read clusters, states, configurations and logs at the same time, land them, and
tell people and programs the result.

It only reads. A failure is recorded and delays nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Lock
from typing import Any

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from kafkaform_kafka.inspect.usage import read_usage, sharpen_sweeps
from kafkaform_kafka.kinds.topic import resource_type as topics
from kafkaform_kafka.protocol import acl as acls
from kafkaform_kafka.session import KafkaSession

from ...apply.secrets import NOTHING_SENT, resolve_instance_secrets
from ...audit.records import render_time
from ...core.clock import Clock, SystemClock
from ...core.diagnostics import Diagnostic, Severity, suggest
from ...core.errors import ConfigurationError, KafkaformError, UsageError
from ...core.landing import DESIRED, FORMAT, REGISTER, ROOT, STATE, LandedRow, Meta
from ...core.parallel import map_parallel
from ...core.progress import Progress, Reporter, ignore_event
from ...core.resource import CoverageKind, Sweep
from ...core.value import COMMAND, find_references
from ...fleet.landed.register import Register
from ...fleet.landed.register import read_register as read_register
from ...fleet.spark.doctor import DoctorCheck
from ...inventory.landing import (
    LandingPlace,
    land_log,
    land_register,
    land_rows,
    make_snapshot_name,
    open_place,
)
from ...inventory.live import (
    Captured,
    ClusterReader,
    capture_cluster,
    list_declared_rows,
    list_recorded_rows,
    make_meta,
)
from ...provider.contract import Provider, Session
from ...render.text import inline, render_count
from .entries import ClusterEntry
from .register_file import PROVIDER, Fleet, read_fleet
from .states import StateReading, describe_error, list_wanted, read_state

READ, PARTIAL, FAILED = "read", "partial", "failed"
INCOMPLETE = 5
"""Exit code of a snapshot that lacks something."""


class ClusterResult(Struct, frozen=True):
    """The result for one cluster."""

    name: str
    status: str
    """read, partial (something was not read, or is hidden for lack of a right) or failed."""
    objects: int
    seconds: float
    """How long it took."""
    error: str | None = None
    unseen: tuple[str, ...] = ()
    """Kinds whose objects may be hidden."""
    provable: bool = True
    """False: that is so by nature, and no right changes it."""


class StateResult(Struct, frozen=True):
    """The result for one state."""

    name: str
    lineage: str
    recorded: int | None = None
    """How many objects of the state landed. None: it could not be read."""
    declared: int | None = None
    """How many declared objects landed. None: the configuration could not be read."""
    records: int = 0
    """How many records of its log landed now."""
    errors: tuple[str, ...] = ()
    """Why something did not land."""


class Summary(Struct, frozen=True):
    """The result of a snapshot."""

    location: str
    """Where it landed."""
    snapshot: str
    """Its name there."""
    clusters: tuple[ClusterResult, ...]
    states: tuple[StateResult, ...]

    @property
    def exit_code(self) -> int:
        """0, or 5 if a cluster was not fully read or something of a state did not land."""
        all_read = all(c.status == READ for c in self.clusters)
        return 0 if all_read and not any(s.errors for s in self.states) else INCOMPLETE

    def make_document(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "format_version": "1.0",
            "place": self.location,
            "snapshot": self.snapshot,
            "complete": self.exit_code == 0,
            "clusters": [
                {
                    "name": c.name,
                    "status": c.status,
                    "objects": c.objects,
                    "seconds": round(c.seconds, 3),
                    "error": c.error,
                    "unseen": list(c.unseen),
                    "provable": c.provable,
                }
                for c in self.clusters
            ],
            "states": [
                {
                    "name": s.name,
                    "lineage": s.lineage or None,
                    "recorded": s.recorded,
                    "declared": s.declared,
                    "records": s.records,
                    "errors": list(s.errors),
                }
                for s in self.states
            ],
        }

    def render_lines(self) -> Iterator[str]:
        """Yield it for people: a line each, and below it why something is missing."""
        names = (
            *(result.name for result in self.clusters),
            *(result.name for result in self.states),
        )
        width = max(map(len, names), default=0)
        for cluster in self.clusters:
            yield f"{cluster.name:{width}}  {cluster.status:7}  {_render_cluster(cluster)}"
            yield from _render_errors((cluster.error,) if cluster.error else ())
        for state in self.states:
            yield f"{state.name:{width}}  {'state':7}  {_render_state(state)}"
            yield from _render_errors(state.errors)
        statuses = [c.status for c in self.clusters]
        counts = ", ".join(f"{statuses.count(s)} {s}" for s in (READ, PARTIAL, FAILED))
        lead = f"{render_count(len(statuses), 'cluster')}: {counts}."
        yield f"{lead} Landed in {inline(self.location)}."


def _render_cluster(cluster: ClusterResult) -> str:
    if cluster.status == FAILED:
        return f"nothing was read ({cluster.seconds:.1f} s)"
    kinds = ", ".join(cluster.unseen)
    remark = "some may be hidden" if cluster.provable else "nothing can prove that it is all"
    hidden = f"; {remark}: {kinds}" if kinds else ""
    return f"{render_count(cluster.objects, 'object')} ({cluster.seconds:.1f} s){hidden}"


def _render_state(state: StateResult) -> str:
    if not state.lineage:
        return "nothing was ever applied" if not state.errors else "it could not be read"
    declared = "unknown" if state.declared is None else str(state.declared)
    recorded = "unknown" if state.recorded is None else str(state.recorded)
    log = render_count(state.records, "new record")
    return f"recorded: {recorded}, declared: {declared}, {log} in its log"


def _render_errors(errors: Sequence[str]) -> Iterator[str]:
    return (f"    {inline(error)}" for error in errors)


PARALLEL = 16
"""How many clusters or states are read at the same time by default."""
UNLISTED_KINDS = frozenset({"kafka_topic_config"})
"""Kinds that no listing shows: unless a block says otherwise, each object is part of one of another
kind. Those that a state records or a configuration declares are read by name."""


def add_identities(
    register: Register, scopes: Mapping[str, str], lineages: Mapping[str, str]
) -> Register:
    """Add the ids that were found out, as far as they could be read.

    scopes: cluster -> its id; lineages: state -> its lineage.
    """
    return replace(
        register,
        clusters=tuple(replace(c, cluster_id=scopes.get(c.name)) for c in register.clusters),
        states=tuple(replace(s, lineage=lineages.get(s.name)) for s in register.states),
    )


def make_document(register: Register) -> dict[str, Any]:
    """Return the register as JSON's types, without unset members."""
    members: dict[str, Any] = _drop_unset(to_builtins(register))
    return {"format": FORMAT, "rates": None, **members}


def _drop_unset(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _drop_unset(item) for name, item in value.items() if item is not None}
    if isinstance(value, tuple | list):
        return [_drop_unset(item) for item in value]
    return value.isoformat() if isinstance(value, date) else value


class _Snapshot(Struct, frozen=True):
    """One snapshot: where it goes, its name, and the receiver of progress events."""

    fleet: Fleet
    landing: LandingPlace
    name: str
    clock: Clock
    report: Reporter


class _ClusterReading(Struct, frozen=True):
    """A cluster that was read, or why it was not."""

    entry: ClusterEntry
    captured: Captured
    result: ClusterResult

    @property
    def scope(self) -> str | None:
        return self.captured.facts.scope_id if self.captured.facts else None


def take_snapshot(
    fleet: Fleet,
    *,
    root: str | None = None,
    only: Sequence[str] = (),
    parallel: int = PARALLEL,
    report: Reporter = ignore_event,
    clock: Clock | None = None,
) -> Summary:
    """Take a snapshot.

    root: a folder or URL, None: as the file says; only: globs over names of clusters and states,
    empty: all; parallel: how many are read at the same time. Raises UsageError, and StorageError if
    landing files cannot be written.
    """
    clock = clock or SystemClock()
    landing, time = open_place(_choose_root(fleet, root)), clock.now()
    run = _Snapshot(fleet, landing, make_snapshot_name(time), clock, report)
    chosen = _choose_names(fleet, only)
    clusters = [entry for entry in fleet.clusters if entry.name in chosen]
    states = [entry for entry in fleet.states if entry.name in chosen]
    run_secret_commands(fleet, clusters)
    # States first: they name the objects that can only be read by name.
    state_readings = _drop_repeated_states(
        map_parallel(lambda entry: read_state(entry, run.clock), states, parallel)
    )
    counter = _Counter(report, len(clusters))
    cluster_readings = map_parallel(
        lambda entry: counter.count_cluster(_land_cluster(run, entry, state_readings)),
        clusters,
        parallel,
    )
    scopes = [
        (reading.entry, reading.scope) for reading in cluster_readings if reading.scope is not None
    ]
    results = map_parallel(
        lambda reading: _land_state(run, reading, cluster_readings, scopes),
        state_readings,
        parallel,
    )
    scope_ids = {entry.name: scope for entry, scope in scopes}
    lineages = {
        reading.entry.name: reading.lineage for reading in state_readings if reading.lineage
    }
    # The register comes last, with the ids that the clusters answered with.
    land_register(
        landing,
        time,
        make_document(_complete_register(landing, fleet.register, scope_ids, lineages)),
    )
    return Summary(
        landing.location, run.name, tuple(reading.result for reading in cluster_readings), results
    )


def check_secrets(fleet: Fleet, only: Sequence[str] = ()) -> tuple[Diagnostic, ...]:
    """Return a warning for each secret that a cluster lacks: it will fail, the others are read.

    Raises ConfigurationError: every cluster lacks some, so nothing would be read.
    """
    chosen = _choose_names(fleet, only)
    clusters = [entry for entry in fleet.clusters if entry.name in chosen]
    run_secret_commands(fleet, clusters)
    faults: dict[str, Sequence[Diagnostic]] = {}
    for entry in clusters:
        try:
            resolve_instance_secrets(entry.settings, fleet.find_secrets)
        except ConfigurationError as error:
            faults[entry.name] = error.diagnostics
    diagnostics = tuple(fault for entry_faults in faults.values() for fault in entry_faults)
    if faults and len(faults) == len(clusters):
        raise ConfigurationError("secrets are missing", diagnostics=diagnostics)
    return tuple(
        replace(
            fault,
            severity=Severity.WARNING,
            advice=f"{fault.advice.removesuffix(NOTHING_SENT)}The other clusters are read.",
        )
        for fault in diagnostics
    )


def examine_register(file: Path) -> Iterator[DoctorCheck]:
    """Yield whether the clusters have their secrets; nothing if there is no such register."""
    if not file.exists():
        return
    try:
        faults: Sequence[Diagnostic] = check_secrets(read_fleet(file))
    except KafkaformError as error:
        faults = error.diagnostics
        if not faults:
            yield DoctorCheck(file.name, False, error.message, error.advice)
            return
    for fault in faults:
        yield DoctorCheck(file.name, False, fault.summary, fault.advice)
    if not faults:
        yield DoctorCheck(file.name, True, "every cluster has its secrets")


def run_secret_commands(fleet: Fleet, clusters: Iterable[ClusterEntry]) -> None:
    """Run the commands that print secrets; what they answer is kept until a cluster needs it."""
    # Here and not in the threads that read the clusters: only this one hears a signal, and a
    # command must not outlive it.
    refs = {ref for entry in clusters for ref in find_references(entry.settings.config)}
    if commands := [ref for ref in refs if ref.source == COMMAND]:
        fleet.find_secrets(commands)


def _choose_root(fleet: Fleet, root: str | None) -> str:
    location = root or fleet.root
    if location is None:
        raise UsageError(
            "there is no root for the landing files",
            f'Write root = "…" into the fleet block of {fleet.file.name}, or give --root.',
        )
    return location


def _choose_names(fleet: Fleet, only: Sequence[str]) -> frozenset[str]:
    names = [*(entry.name for entry in fleet.clusters), *(entry.name for entry in fleet.states)]
    for glob in only:
        if not any(fnmatchcase(name, glob) for name in names):
            raise UsageError(
                f"{fleet.file.name} has no cluster or state {glob!r}",
                suggest(glob, names) or f"It has: {', '.join(names) or 'none'}.",
            )
    return frozenset(n for n in names if not only or any(fnmatchcase(n, g) for g in only))


class _Counter:
    """Reports how many clusters are done."""

    def __init__(self, report: Reporter, total: int) -> None:
        self._report, self._total, self._done = report, total, 0
        self._lock = Lock()
        self._tell()

    def count_cluster(self, reading: _ClusterReading) -> _ClusterReading:
        with self._lock:
            self._done += 1
            self._tell()
        return reading

    def _tell(self) -> None:
        over = self._done == self._total
        event = Progress("fleet", "Reading the fleet", self._done, self._total, "clusters", over)
        self._report(event)


# ── clusters ────────────────────────────────────────────────────────────────────────────


def _land_cluster(
    run: _Snapshot, entry: ClusterEntry, states: Iterable[StateReading]
) -> _ClusterReading:
    """Read a cluster and land it. Raises only StorageError."""
    started = run.clock.now()
    captured = _capture_cluster(run, entry, states)
    ended = run.clock.now()
    # Also for a failed cluster: the `.meta.json` with the cause is what says that it was tried.
    meta = make_meta(captured, entry.name, run.name, render_time(started), render_time(ended))
    landed = land_rows(run.landing, meta, captured.rows)
    # A cluster without rows has failed, it is never empty.
    status = FAILED if captured.rows is None else READ if captured.complete else PARTIAL
    visible = CoverageKind.VISIBLE_ONLY.value
    unseen = tuple(kind for kind, coverage in captured.coverage.items() if coverage == visible)
    result = ClusterResult(
        entry.name,
        status,
        landed.meta.rows,
        ended - started,
        landed.meta.error,
        unseen,
        entry.provider.proves_listings,
    )
    return _ClusterReading(entry, captured, result)


def _capture_cluster(
    run: _Snapshot, entry: ClusterEntry, states: Iterable[StateReading]
) -> Captured:
    try:
        secrets = resolve_instance_secrets(entry.settings, run.fleet.find_secrets)
        session = entry.provider.open(entry.name, entry.settings.config, secrets)
    except Exception as error:  # noqa: BLE001  # a failure of one cluster must not stop the others
        return Captured(None, error=describe_error(error))
    try:
        named = _find_named_keys(entry, session.facts.scope_id, states)
        return capture_cluster(session, make_reader(entry.provider), named, entry.name, run.report)
    except Exception as error:  # noqa: BLE001  # it has answered, so its id stays known
        return Captured(None, facts=session.facts, error=describe_error(error))
    finally:
        # What was read is complete, however the connection ends.
        with suppress(KafkaformError):
            session.close()


def make_reader(provider: Provider) -> ClusterReader:
    """Return how the clusters of this provider are read."""
    if provider.name != PROVIDER:
        return ClusterReader(provider.types, proves_listings=provider.proves_listings)

    def more(session: Session, sweeps: Mapping[str, Sweep]) -> Iterable[Sweep]:
        return (
            read_usage(session, sweeps.get(topics.KIND), sweeps.get(acls.KIND))
            if isinstance(session, KafkaSession)
            else ()
        )

    return ClusterReader(provider.types, UNLISTED_KINDS, sharpen_sweeps, more)


def _find_named_keys(
    entry: ClusterEntry, scope: str, states: Iterable[StateReading]
) -> dict[str, list[str]]:
    """Return kind -> keys of the objects that states record or declare in this cluster."""
    keys: dict[str, list[str]] = {kind: [] for kind in UNLISTED_KINDS}
    for reading in states:
        scopes = reading.find_scopes([(entry, scope)])
        recorded = reading.state.objects if reading.state else ()
        declared = reading.desired.declared if reading.desired else ()
        for identity in (*recorded, *(item.identity for item in declared)):
            if identity.kind in UNLISTED_KINDS and scopes.get(identity.instance) == scope:
                keys[identity.kind].append(identity.key)
    return keys


def _drop_repeated_states(states: Iterable[StateReading]) -> tuple[StateReading, ...]:
    """If two blocks name the same state, keep the first: both would land in the same place."""
    first: dict[str, str] = {}
    readings = []
    for reading in states:
        name = reading.entry.name
        first_name = first.setdefault(reading.lineage, name) if reading.lineage else name
        if first_name != name:
            error = (
                f"it is the same state as {first_name} ({reading.lineage}); "
                "keep one of the two blocks"
            )
            reading = replace(reading, state=None, desired=None, state_error=error)
        readings.append(reading)
    return tuple(readings)


# ── states ──────────────────────────────────────────────────────────────────────────────


def _land_state(
    run: _Snapshot,
    reading: StateReading,
    cluster_readings: Sequence[_ClusterReading],
    clusters: Sequence[tuple[ClusterEntry, str]],
) -> StateResult:
    """Land what is known about one state. Raises StorageError."""
    result = StateResult(reading.entry.name, reading.lineage)
    if reading.state_error:
        return replace(result, errors=(reading.state_error, *_list_error(reading.desired_error)))
    if not reading.lineage:
        return replace(result, errors=_list_error(reading.desired_error))
    scopes = reading.find_scopes(clusters)
    assert reading.state is not None  # it has a lineage
    recorded = _land_rows(run, STATE, reading, scopes, list_recorded_rows(reading.state))
    declared = None
    if reading.entry.folder is not None:
        declared = _land_declared(run, reading, scopes, cluster_readings)
    result = replace(result, recorded=recorded, declared=declared)
    try:
        assert reading.sink is not None  # the state was read
        keys = land_log(run.landing, reading.lineage, reading.sink, reading.anchor)
        spans = (Path(key).stem.split("-") for key in keys)
        return replace(
            result,
            records=sum(int(last) - int(first) + 1 for first, last in spans),
            errors=_list_error(reading.desired_error),
        )
    except KafkaformError as error:
        return replace(result, errors=(*_list_error(reading.desired_error), describe_error(error)))


def _list_error(error: str | None) -> tuple[str, ...]:
    return () if error is None else (error,)


def _land_declared(
    run: _Snapshot,
    reading: StateReading,
    scopes: Mapping[str, str],
    cluster_readings: Sequence[_ClusterReading],
) -> int | None:
    if reading.desired is None:
        return _land_rows(run, DESIRED, reading, scopes, None)
    by_scope = {
        cluster_reading.scope: cluster_reading.captured
        for cluster_reading in cluster_readings
        if cluster_reading.captured.rows is not None
    }
    captured = {i: by_scope[scope] for i, scope in scopes.items() if scope in by_scope}
    return _land_rows(
        run, DESIRED, reading, scopes, list_declared_rows(list_wanted(reading, captured), scopes)
    )


def _land_rows(
    run: _Snapshot,
    source: str,
    reading: StateReading,
    scopes: Mapping[str, str],
    rows: Iterable[LandedRow] | None,
) -> int | None:
    """Return the number of objects that landed; None: the configuration could not be read."""
    meta = Meta(
        source,
        reading.lineage,
        run.name,
        reading.started,
        reading.ended,
        rows is not None,
        scopes=scopes,
        error=reading.desired_error if rows is None else None,
    )
    landed = land_rows(run.landing, meta, rows)
    return None if rows is None else landed.meta.rows


# ── the register ────────────────────────────────────────────────────────────────────────


def _complete_register(
    landing: LandingPlace,
    register: Register,
    scopes: Mapping[str, str],
    lineages: Mapping[str, str],
) -> Register:
    """Add ids and lineages as they are now, or as they were when they could last be read."""
    # A cluster that is down now keeps its id, or its old rows would lose their name.
    earlier = _read_last_register(landing)
    ids = {c.name: c.cluster_id for c in earlier.clusters if c.cluster_id}
    names = {s.name: s.lineage for s in earlier.states if s.lineage}
    return add_identities(register, {**ids, **scopes}, {**names, **lineages})


def _read_last_register(landing: LandingPlace) -> Register:
    for entry in reversed(landing.names(f"{ROOT}/{REGISTER}")):
        stored = landing.read(entry.key)
        if stored is not None:
            return read_register(stored.data.decode())
    return Register()
