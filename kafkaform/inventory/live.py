"""Read everything that a cluster shows, as rows, and how far each listing can be trusted; list
what a state records and what a configuration declares as rows of the same shape.

A kind that could not be read has failed; a cluster of which nothing could be read has no rows at
all. An empty snapshot would say that everything was deleted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from ..core.landing import LIVE, LandedRow, Meta, flatten_attributes
from ..core.progress import Progress, Reporter, ignore_event
from ..core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Declared,
    Depth,
    Facts,
    Failed,
    Identity,
    Observed,
    Sweep,
)
from ..core.value import EMPTY, FrozenMap
from ..provider.contract import ResourceType, Session
from ..state.model import State

Sharpen = Callable[[Session, Sequence[Sweep]], tuple[Sweep, ...]]
"""Improves what is known about the coverage of listings."""
More = Callable[[Session, Mapping[str, Sweep]], Iterable[Sweep]]
"""Lists what is not an object of a resource type, such as offsets."""
Named = Mapping[str, Sequence[str]]
"""Kind -> keys of objects that no listing shows and that are read by name."""
INTERNAL = "details.internal"
"""Attribute of objects that belong to the system itself."""


class ClusterReader(Struct, frozen=True):
    """How a cluster is read."""

    types: Mapping[str, ResourceType]
    """The provider's resource types."""
    named: frozenset[str] = frozenset()
    """Kinds that can only be read by name."""
    sharpen: Sharpen = lambda _, sweeps: tuple(sweeps)
    read_more: More = lambda _, __: ()
    proves_listings: bool = True
    """As the provider says."""


class Captured(Struct, frozen=True):
    """What one cluster showed."""

    rows: tuple[LandedRow, ...] | None
    """None: nothing could be read."""
    coverage: Mapping[str, str] = field(default_factory=dict)
    """Kind -> complete, visible_only or failed."""
    facts: Facts | None = None
    error: str | None = None
    live: Mapping[tuple[str, str], Observed] = field(default_factory=dict)
    """The objects as they were read, for comparisons."""
    proves_listings: bool = True
    """False: nothing can tell whether the system has more."""

    @property
    def complete(self) -> bool:
        """Everything was read, and nothing may be hidden that a system of this kind can show."""
        kinds = set(self.coverage.values())
        if not self.proves_listings:
            kinds.discard(CoverageKind.VISIBLE_ONLY.value)
        return self.rows is not None and kinds <= {CoverageKind.COMPLETE.value}


def capture_cluster(
    session: Session,
    reader: ClusterReader,
    named: Named,
    task: str,
    report: Reporter = ignore_event,
) -> Captured:
    """Read everything. named: what to read by name; task: whose progress is reported. Raises
    OtherSystem."""
    kinds = sorted(n for n, t in reader.types.items() if t.expand is None)
    listed = [kind for kind in kinds if kind not in reader.named]
    total = len(listed) + 1
    sweeps = []
    for count, kind in enumerate(listed):
        report(Progress(task, f"Reading {task}", count, total, "kinds", even=False))
        sweeps.append(session.sweep(kind, Depth.FULL))
    sweeps += [_read_by_name(session, kind, named.get(kind, ())) for kind in sorted(reader.named)]
    sweeps_by_kind = {sweep.kind: sweep for sweep in reader.sharpen(session, sweeps)}
    sweeps_by_kind |= {sweep.kind: sweep for sweep in reader.read_more(session, sweeps_by_kind)}
    # After all reads: if the address has come to lead to another cluster, none of the rows count.
    session.prove()
    report(Progress(task, f"Reading {task}", total, total, "kinds", finished=True))
    return _make_captured(session.facts, reader, sweeps_by_kind)


def make_meta(captured: Captured, subject: str, snapshot: str, started: str, ended: str) -> Meta:
    """Return the `.meta.json` of a cluster's rows. started, ended: RFC 3339."""
    return Meta(
        LIVE,
        subject,
        snapshot,
        started,
        ended,
        captured.complete,
        scope_id=captured.facts.scope_id if captured.facts else None,
        coverage=captured.coverage,
        error=captured.error,
    )


def _read_by_name(session: Session, kind: str, keys: Sequence[str]) -> Sweep:
    """Read the named objects. Nothing else of the kind is looked for, so the answer is complete if
    each of them was found or is proven absent."""
    readings = session.read([Identity("", kind, key) for key in sorted(set(keys))]).values()
    items = tuple(reading for reading in readings if isinstance(reading, Observed))
    fault = next((reading.fault for reading in readings if isinstance(reading, Failed)), None)
    # Hidden is not absent.
    readable = all(isinstance(reading, Observed | Absent) for reading in readings)
    coverage_kind = CoverageKind.COMPLETE if readable else CoverageKind.VISIBLE_ONLY
    return Sweep(
        kind, Depth.FULL, items, Coverage(CoverageKind.FAILED if fault else coverage_kind, fault)
    )


def _make_captured(facts: Facts, reader: ClusterReader, sweeps: Mapping[str, Sweep]) -> Captured:
    coverage = {kind: sweep.coverage.kind.value for kind, sweep in sorted(sweeps.items())}
    error = "; ".join(_list_errors(sweeps)) or None
    read = {kind: s for kind, s in sweeps.items() if s.coverage.kind is not CoverageKind.FAILED}
    # Objects that are only read by name prove nothing about the cluster: asking for none succeeds.
    if not read.keys() & (reader.types.keys() - reader.named):
        return Captured(None, coverage, facts, error or "nothing of it can be listed")
    rows, live = [], {}
    for kind, sweep in sorted(read.items()):
        for item in sorted(sweep.items, key=lambda item: item.identity.key):
            live[kind, item.identity.key] = item
            rows.append(_make_row(item, reader.types.get(kind), facts))
    return Captured(tuple(rows), coverage, facts, error, live, reader.proves_listings)


def _list_errors(sweeps: Mapping[str, Sweep]) -> Iterator[str]:
    """Yield each cause once, with the kinds that it concerns."""
    causes: dict[str, list[str]] = {}
    for kind, sweep in sorted(sweeps.items()):
        if sweep.coverage.kind is CoverageKind.FAILED:
            fault = sweep.coverage.fault
            causes.setdefault(fault.message if fault else "the listing failed", []).append(kind)
    return (f"{', '.join(kinds)}: {cause}" for cause, kinds in causes.items())


def compute_destination(item: Observed) -> FrozenMap:
    """Return the attributes as they will be when the running move has ended: these are what drift
    compares."""
    return item.attributes.with_items(item.moving or EMPTY)


def _make_row(item: Observed, kind: ResourceType | None, facts: Facts) -> LandedRow:
    attributes = compute_destination(item)
    if kind is not None:
        # One spelling per value, so that equal values are equal texts in the tables.
        attributes = kind.canonical(attributes, facts)
    attrs = flatten_attributes(attributes)
    if item.details.get("internal"):
        attrs[INTERNAL] = "true"
    return LandedRow(
        item.identity.kind,
        item.identity.key,
        attrs,
        scope_id=facts.scope_id,
        incarnation=item.incarnation,
    )


class WantedObject(Struct, frozen=True):
    """A declared object with its target attributes, canonical as far as possible."""

    declared: Declared
    attributes: FrozenMap


def list_recorded_rows(state: State) -> Iterator[LandedRow]:
    """Yield one row per object, with the first of the addresses that own it."""
    for identity, row in sorted(state.objects.items()):
        yield LandedRow(
            identity.kind,
            identity.key,
            flatten_attributes(row.attributes),
            identity.instance,
            state.providers.get(identity.instance),
            row.owners[0] if row.owners else None,
            row.owner,
            row.incarnation,
            row.park,
        )


def list_declared_rows(
    objects: Iterable[WantedObject], scopes: Mapping[str, str]
) -> Iterator[LandedRow]:
    """Yield one row per object. If two blocks declare it, the first one names it.

    scopes: instance -> scope id, as far as it is known.
    """
    rows: dict[object, LandedRow] = {}
    for declared_object in objects:
        identity, item = declared_object.declared.identity, declared_object.declared
        row = LandedRow(
            identity.kind,
            identity.key,
            flatten_attributes(declared_object.attributes),
            identity.instance,
            scopes.get(identity.instance),
            str(item.address),
            item.owner,
            park=item.lifecycle.park,
        )
        rows.setdefault(identity, row)
    return (rows[identity] for identity in sorted(rows, key=str))
