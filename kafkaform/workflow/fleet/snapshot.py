"""Take a snapshot: read clusters, states, configurations and logs at the same time, and land them.

It only reads. A failure is recorded and delays nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Lock

from msgspec import Struct
from msgspec.structs import replace

from ...apply.secrets import resolve_instance_secrets
from ...audit.event import render_time
from ...core.clock import Clock, SystemClock
from ...core.diagnostics import suggest
from ...core.errors import KafkaformError, UsageError
from ...core.landing import DESIRED, REGISTER, ROOT, STATE, LandedRow, Meta
from ...core.progress import Progress, Reporter, ignore_event
from ...core.resource import CoverageKind, Sweep
from ...core.value import COMMAND, find_references
from ...fleet.landed.register import Register
from ...fleet.landed.register import read_register as read_register
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
    map_parallel,
)
from ...provider.contract import Provider, Session
from .register import add_identities as known_register
from .register import make_document
from .register_file import PROVIDER, ClusterEntry, Fleet
from .states import KnownState, describe_error, list_wanted, read_known
from .summary import FAILED, PARTIAL, READ, ClusterResult, StateResult, Summary

PARALLEL = 16
"""How many clusters or states are read at the same time by default."""
NAMED = frozenset({"kafka_topic_config"})
"""Kinds that no listing shows: unless a block says otherwise, each object is part of one of another
kind. Those that a state records or a configuration declares are read by name."""


class _Snapshot(Struct, frozen=True):
    """One snapshot: where it goes, its name, and who is told about progress."""

    fleet: Fleet
    place: LandingPlace
    name: str
    clock: Clock
    report: Reporter


class _SeenCluster(Struct, frozen=True):
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
    place, taken = open_place(_choose_root(fleet, root)), clock.now()
    run = _Snapshot(fleet, place, make_snapshot_name(taken), clock, report)
    chosen = _choose_names(fleet, only)
    clusters = [entry for entry in fleet.clusters if entry.name in chosen]
    states = [entry for entry in fleet.states if entry.name in chosen]
    run_secret_commands(fleet, clusters)
    # States first: they name the objects that can only be read by name.
    known = _drop_repeated_states(
        map_parallel(lambda entry: read_known(entry, run.clock), states, parallel)
    )
    count = _Counter(report, len(clusters))
    seen = map_parallel(
        lambda entry: count.count_cluster(_land_cluster(run, entry, known)), clusters, parallel
    )
    scopes = [(one.entry, one.scope) for one in seen if one.scope is not None]
    results = map_parallel(lambda one: _land_state(run, one, seen, scopes), known, parallel)
    found = {entry.name: scope for entry, scope in scopes}
    lineages = {one.entry.name: one.lineage for one in known if one.lineage}
    # The register comes last, with the ids that the clusters answered with.
    land_register(
        place, taken, make_document(_complete_register(place, fleet.register, found, lineages))
    )
    return Summary(place.location, run.name, tuple(one.result for one in seen), results)


def run_secret_commands(fleet: Fleet, clusters: Iterable[ClusterEntry]) -> None:
    """Run the commands that print secrets; what they answer is kept until a cluster needs it."""
    # Here and not in the threads that read the clusters: only this one hears a signal, and a
    # command must not outlive it.
    refs = {ref for entry in clusters for ref in find_references(entry.settings.config)}
    if commands := [ref for ref in refs if ref.source == COMMAND]:
        fleet.find_secrets(commands)


def _choose_root(fleet: Fleet, root: str | None) -> str:
    where = root or fleet.root
    if where is None:
        raise UsageError(
            "there is no root for the landing files",
            f'Write root = "…" into the fleet block of {fleet.file.name}, or give --root.',
        )
    return where


def _choose_names(fleet: Fleet, only: Sequence[str]) -> frozenset[str]:
    names = [*(one.name for one in fleet.clusters), *(one.name for one in fleet.states)]
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

    def count_cluster(self, seen: _SeenCluster) -> _SeenCluster:
        with self._lock:
            self._done += 1
            self._tell()
        return seen

    def _tell(self) -> None:
        over = self._done == self._total
        event = Progress("fleet", "Reading the fleet", self._done, self._total, "clusters", over)
        self._report(event)


# ── clusters ────────────────────────────────────────────────────────────────────────────


def _land_cluster(
    run: _Snapshot, entry: ClusterEntry, states: Iterable[KnownState]
) -> _SeenCluster:
    """Read a cluster and land it. Raises only StorageError."""
    started = run.clock.now()
    captured = _capture_cluster(run, entry, states)
    ended = run.clock.now()
    # Also for a failed cluster: the `.meta.json` with the cause is what says that it was tried.
    meta = make_meta(captured, entry.name, run.name, render_time(started), render_time(ended))
    landed = land_rows(run.place, meta, captured.rows)
    # A cluster without rows has failed, it is never empty.
    status = FAILED if captured.rows is None else READ if captured.complete else PARTIAL
    visible = CoverageKind.VISIBLE_ONLY.value
    unseen = tuple(kind for kind, how in captured.coverage.items() if how == visible)
    result = ClusterResult(
        entry.name, status, landed.meta.rows, ended - started, landed.meta.error, unseen
    )
    return _SeenCluster(entry, captured, result)


def _capture_cluster(run: _Snapshot, entry: ClusterEntry, states: Iterable[KnownState]) -> Captured:
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
        with suppress(KafkaformError):
            session.close()


def make_reader(provider: Provider) -> ClusterReader:
    """Return how the clusters of this provider are read."""
    if provider.name != PROVIDER:
        return ClusterReader(provider.types)
    from kafkaform_kafka.inspect import listing_trust  # noqa: PLC0415  # the clients are slow to load
    from kafkaform_kafka.inspect.usage import read_usage  # noqa: PLC0415  # the clients are slow to load
    from kafkaform_kafka.kinds.topic import resource_type as topics  # noqa: PLC0415  # the clients are slow to load
    from kafkaform_kafka.session import KafkaSession  # noqa: PLC0415  # the clients are slow to load

    def more(session: Session, sweeps: Mapping[str, Sweep]) -> Iterable[Sweep]:
        return (
            read_usage(session, sweeps.get(topics.KIND))
            if isinstance(session, KafkaSession)
            else ()
        )

    return ClusterReader(provider.types, NAMED, listing_trust.sharpen_sweeps, more)


def _find_named_keys(
    entry: ClusterEntry, scope: str, states: Iterable[KnownState]
) -> dict[str, list[str]]:
    """Return kind -> keys of the objects that states record or declare in this cluster."""
    found: dict[str, list[str]] = {kind: [] for kind in NAMED}
    for known in states:
        scopes = known.find_scopes([(entry, scope)])
        recorded = known.state.objects if known.state else ()
        declared = known.desired.declared if known.desired else ()
        for identity in (*recorded, *(item.identity for item in declared)):
            if identity.kind in NAMED and scopes.get(identity.instance) == scope:
                found[identity.kind].append(identity.key)
    return found


def _drop_repeated_states(states: Iterable[KnownState]) -> tuple[KnownState, ...]:
    """If two blocks name the same state, keep the first: both would land in the same place."""
    first: dict[str, str] = {}
    found = []
    for known in states:
        name = known.entry.name
        other = first.setdefault(known.lineage, name) if known.lineage else name
        if other != name:
            error = f"it is the same state as {other} ({known.lineage}); keep one of the two blocks"
            known = replace(known, state=None, desired=None, state_error=error)
        found.append(known)
    return tuple(found)


# ── states ──────────────────────────────────────────────────────────────────────────────


def _land_state(
    run: _Snapshot,
    known: KnownState,
    seen: Sequence[_SeenCluster],
    clusters: Sequence[tuple[ClusterEntry, str]],
) -> StateResult:
    """Land what is known about one state. Raises StorageError."""
    result = StateResult(known.entry.name, known.lineage)
    if known.state_error:
        return replace(result, errors=(known.state_error, *_list_error(known.desired_error)))
    if not known.lineage:
        return replace(result, errors=_list_error(known.desired_error))
    scopes = known.find_scopes(clusters)
    assert known.state is not None  # it has a lineage
    recorded = _land_rows(run, STATE, known, scopes, list_recorded_rows(known.state))
    declared = None
    if known.entry.folder is not None:
        declared = _land_declared(run, known, scopes, seen)
    result = replace(result, recorded=recorded, declared=declared)
    try:
        return replace(
            result, records=_land_log(run, known), errors=_list_error(known.desired_error)
        )
    except KafkaformError as error:
        return replace(result, errors=(*_list_error(known.desired_error), describe_error(error)))


def _list_error(error: str | None) -> tuple[str, ...]:
    return () if error is None else (error,)


def _land_declared(
    run: _Snapshot, known: KnownState, scopes: Mapping[str, str], seen: Sequence[_SeenCluster]
) -> int | None:
    if known.desired is None:
        return _land_rows(run, DESIRED, known, scopes, None)
    by_scope = {one.scope: one.captured for one in seen if one.captured.rows is not None}
    captured = {i: by_scope[scope] for i, scope in scopes.items() if scope in by_scope}
    return _land_rows(
        run, DESIRED, known, scopes, list_declared_rows(list_wanted(known, captured), scopes)
    )


def _land_rows(
    run: _Snapshot,
    source: str,
    known: KnownState,
    scopes: Mapping[str, str],
    rows: Iterable[LandedRow] | None,
) -> int | None:
    """Return the number of objects that landed; None: the configuration could not be read."""
    meta = Meta(
        source,
        known.lineage,
        run.name,
        known.started,
        known.ended,
        rows is not None,
        scopes=scopes,
        error=known.desired_error if rows is None else None,
    )
    landed = land_rows(run.place, meta, rows)
    return None if rows is None else landed.meta.rows


def _land_log(run: _Snapshot, known: KnownState) -> int:
    """Return the number of records that landed."""
    assert known.sink is not None  # the state was read
    keys = land_log(run.place, known.lineage, known.sink, known.anchor)
    spans = (Path(key).stem.split("-") for key in keys)
    return sum(int(last) - int(first) + 1 for first, last in spans)


# ── the register ────────────────────────────────────────────────────────────────────────


def _complete_register(
    place: LandingPlace, register: Register, scopes: Mapping[str, str], lineages: Mapping[str, str]
) -> Register:
    """Add ids and lineages as they are now, or as they were when they could last be read."""
    # A cluster that is down now keeps its id, or its old rows would lose their name.
    before = _read_last_register(place)
    ids = {c.name: c.cluster_id for c in before.clusters if c.cluster_id}
    names = {s.name: s.lineage for s in before.states if s.lineage}
    return known_register(register, {**ids, **scopes}, {**names, **lineages})


def _read_last_register(place: LandingPlace) -> Register:
    for entry in reversed(place.names(f"{ROOT}/{REGISTER}")):
        found = place.read(entry.key)
        if found is not None:
            return read_register(found.data.decode())
    return Register()
