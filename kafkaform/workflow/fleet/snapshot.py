"""`fleet snapshot`: clusters, states, configurations and logs of a fleet, read side by side and
laid down as landing files. Reads only; what fails is told and holds up nothing else.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from pathlib import Path
from threading import Lock

from msgspec import Struct
from msgspec.structs import replace

from ...audit.event import timestamp
from ...core.clock import Clock, SystemClock
from ...core.diagnostics import suggest
from ...core.errors import KafkaformError, UsageError
from ...core.landing import DESIRED, REGISTER, ROOT, STATE, LandedRow, Meta
from ...core.progress import Progress, Report, silent
from ...core.resource import CoverageKind, Sweep
from ...fleet.landed.register import Register
from ...fleet.landed.register import read as read_register
from ...inventory.landing import land, land_register, snapshot_name
from ...inventory.live import Captured, Reader, capture, meta_of
from ...inventory.objects import declared_rows, recorded_rows
from ...inventory.parallel import each
from ...inventory.place import Place, open_place
from ...inventory.segments import land_log
from ...provider.contract import Session
from .register import known as known_register
from .register import plain
from .register_file import ClusterEntry, Fleet
from .states import Known, look, told, wanted
from .summary import FAILED, PARTIAL, READ, ClusterResult, StateResult, Summary

PARALLEL = 16
NAMED = frozenset({"kafka_topic_config"})
"""Kinds that no listing shows: each object belongs to one of another kind, unless a block says
otherwise. Those that a state records or a configuration declares are read by name."""


class _Run(Struct, frozen=True):
    """One snapshot: where it goes, what it is called, and who is told how far it is."""

    fleet: Fleet
    place: Place
    name: str
    clock: Clock
    report: Report


class _Seen(Struct, frozen=True):
    """A cluster that was read, or why it was not."""

    entry: ClusterEntry
    captured: Captured
    result: ClusterResult

    @property
    def scope(self) -> str | None:
        return self.captured.facts.scope_id if self.captured.facts else None


def snapshot(
    fleet: Fleet,
    *,
    root: str | None = None,
    only: Sequence[str] = (),
    parallel: int = PARALLEL,
    report: Report = silent,
    clock: Clock | None = None,
) -> Summary:
    """Take a snapshot. root: a folder or a URL, None: as the file says; only: globs over names of
    clusters and states, none means all; parallel: how many are read at the same time.

    Raises UsageError, and StorageError if the landing files cannot be written.
    """
    clock = clock or SystemClock()
    place, taken = open_place(_rooted(fleet, root)), clock.now()
    run = _Run(fleet, place, snapshot_name(taken), clock, report)
    chosen = _chosen(fleet, only)
    clusters = [entry for entry in fleet.clusters if entry.name in chosen]
    states = [entry for entry in fleet.states if entry.name in chosen]
    known = _once(each(lambda entry: look(entry, run.clock), states, parallel))
    count = _Counter(report, len(clusters))
    seen = each(lambda entry: count.after(_cluster(run, entry, known)), clusters, parallel)
    scopes = [(one.entry, one.scope) for one in seen if one.scope is not None]
    results = each(lambda one: _state(run, one, seen, scopes), known, parallel)
    found = {entry.name: scope for entry, scope in scopes}
    lineages = {one.entry.name: one.lineage for one in known if one.lineage}
    land_register(place, taken, plain(_register(place, fleet.register, found, lineages)))
    return Summary(place.location, run.name, tuple(one.result for one in seen), results)


def _rooted(fleet: Fleet, root: str | None) -> str:
    where = root or fleet.root
    if where is None:
        raise UsageError(
            "nobody says where the landing files go",
            f'Write root = "…" into the fleet block of {fleet.file.name}, or give --root.',
        )
    return where


def _chosen(fleet: Fleet, only: Sequence[str]) -> frozenset[str]:
    names = [*(one.name for one in fleet.clusters), *(one.name for one in fleet.states)]
    for glob in only:
        if not any(fnmatchcase(name, glob) for name in names):
            raise UsageError(
                f"{fleet.file.name} has no cluster or state {glob!r}",
                suggest(glob, names) or f"It has: {', '.join(names) or 'none'}.",
            )
    return frozenset(n for n in names if not only or any(fnmatchcase(n, g) for g in only))


class _Counter:
    """Tells how many clusters are done."""

    def __init__(self, report: Report, total: int) -> None:
        self._report, self._total, self._done = report, total, 0
        self._lock = Lock()
        self._tell()

    def after(self, seen: _Seen) -> _Seen:
        with self._lock:
            self._done += 1
            self._tell()
        return seen

    def _tell(self) -> None:
        over = self._done == self._total
        event = Progress("fleet", "Reading the fleet", self._done, self._total, "clusters", over)
        self._report(event)


# ── clusters ────────────────────────────────────────────────────────────────────────────


def _cluster(run: _Run, entry: ClusterEntry, states: Iterable[Known]) -> _Seen:
    """Read one cluster and land it. Raises StorageError alone."""
    started = run.clock.now()
    captured = _captured(run, entry, states)
    ended = run.clock.now()
    meta = meta_of(captured, entry.name, run.name, timestamp(started), timestamp(ended))
    landed = land(run.place, meta, captured.rows)
    status = FAILED if captured.rows is None else READ if captured.complete else PARTIAL
    visible = CoverageKind.VISIBLE_ONLY.value
    unseen = tuple(kind for kind, how in captured.coverage.items() if how == visible)
    result = ClusterResult(
        entry.name, status, landed.meta.rows, ended - started, landed.meta.error, unseen
    )
    return _Seen(entry, captured, result)


def _captured(run: _Run, entry: ClusterEntry, states: Iterable[Known]) -> Captured:
    try:
        secrets = run.fleet.secrets(entry.settings)
        session = run.fleet.provider.open(entry.name, entry.settings.config, secrets)
    except Exception as error:  # noqa: BLE001  # one cluster must not take the others with it
        return Captured(None, error=told(error))
    try:
        named = _named(entry, session.facts.scope_id, states)
        return capture(session, reader(run.fleet), named, entry.name, run.report)
    except Exception as error:  # noqa: BLE001  # it answered first, so what it is stays known
        return Captured(None, facts=session.facts, error=told(error))
    finally:
        with suppress(KafkaformError):
            session.close()


def reader(fleet: Fleet) -> Reader:
    """How the clusters of a fleet are read."""
    from kafkaform_kafka.inspect import listing_trust  # noqa: PLC0415  # the clients are slow to load
    from kafkaform_kafka.inspect.usage import usage  # noqa: PLC0415  # the clients are slow to load
    from kafkaform_kafka.kinds.topic import resource_type as topics  # noqa: PLC0415  # the clients are slow to load
    from kafkaform_kafka.session import KafkaSession  # noqa: PLC0415  # the clients are slow to load

    def more(session: Session, sweeps: Mapping[str, Sweep]) -> Iterable[Sweep]:
        return usage(session, sweeps.get(topics.KIND)) if isinstance(session, KafkaSession) else ()

    return Reader(fleet.provider.types, NAMED, listing_trust.sharpened, more)


def _named(entry: ClusterEntry, scope: str, states: Iterable[Known]) -> dict[str, list[str]]:
    """Kind -> keys of what states record or declare there."""
    found: dict[str, list[str]] = {kind: [] for kind in NAMED}
    for known in states:
        scopes = known.scopes([(entry, scope)])
        recorded = known.state.objects if known.state else ()
        declared = known.desired.declared if known.desired else ()
        for identity in (*recorded, *(item.identity for item in declared)):
            if identity.kind in NAMED and scopes.get(identity.instance) == scope:
                found[identity.kind].append(identity.key)
    return found


def _once(states: Iterable[Known]) -> tuple[Known, ...]:
    """Of states that are one and the same, the first one alone: they would land in one place."""
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


def _state(
    run: _Run, known: Known, seen: Sequence[_Seen], clusters: Sequence[tuple[ClusterEntry, str]]
) -> StateResult:
    """Land what is known of one state. Raises StorageError."""
    result = StateResult(known.entry.name, known.lineage)
    if known.state_error:
        return replace(result, errors=(known.state_error, *_said(known.desired_error)))
    if not known.lineage:
        return replace(result, errors=_said(known.desired_error))
    scopes = known.scopes(clusters)
    assert known.state is not None  # it has a lineage
    recorded = _landed(run, STATE, known, scopes, recorded_rows(known.state))
    declared = None
    if known.entry.folder is not None:
        declared = _declared(run, known, scopes, seen)
    result = replace(result, recorded=recorded, declared=declared)
    try:
        return replace(result, records=_log(run, known), errors=_said(known.desired_error))
    except KafkaformError as error:
        return replace(result, errors=(*_said(known.desired_error), told(error)))


def _said(error: str | None) -> tuple[str, ...]:
    return () if error is None else (error,)


def _declared(
    run: _Run, known: Known, scopes: Mapping[str, str], seen: Sequence[_Seen]
) -> int | None:
    if known.desired is None:
        return _landed(run, DESIRED, known, scopes, None)
    by_scope = {one.scope: one.captured for one in seen if one.captured.rows is not None}
    captured = {i: by_scope[scope] for i, scope in scopes.items() if scope in by_scope}
    return _landed(run, DESIRED, known, scopes, declared_rows(wanted(known, captured), scopes))


def _landed(
    run: _Run,
    source: str,
    known: Known,
    scopes: Mapping[str, str],
    rows: Iterable[LandedRow] | None,
) -> int | None:
    """Objects that landed, None if their configuration could not be read."""
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
    landed = land(run.place, meta, rows)
    return None if rows is None else landed.meta.rows


def _log(run: _Run, known: Known) -> int:
    """Records that landed."""
    assert known.sink is not None  # the state was read
    keys = land_log(run.place, known.lineage, known.sink, known.anchor)
    spans = (Path(key).stem.split("-") for key in keys)
    return sum(int(last) - int(first) + 1 for first, last in spans)


# ── the register ────────────────────────────────────────────────────────────────────────


def _register(
    place: Place, register: Register, scopes: Mapping[str, str], lineages: Mapping[str, str]
) -> Register:
    """With ids and lineages as they are now, or as they were when they could be read last."""
    before = _last_register(place)
    ids = {c.name: c.cluster_id for c in before.clusters if c.cluster_id}
    names = {s.name: s.lineage for s in before.states if s.lineage}
    return known_register(register, {**ids, **scopes}, {**names, **lineages})


def _last_register(place: Place) -> Register:
    for entry in reversed(place.names(f"{ROOT}/{REGISTER}")):
        found = place.read(entry.key)
        if found is not None:
            return read_register(found.data.decode())
    return Register()
