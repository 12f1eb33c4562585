"""What a cluster shows, as rows: everything of every kind, and how far each listing can be trusted.

A kind that could not be read is said to have failed, and a cluster of which nothing could be read
has no rows at all: an empty snapshot would say that everything has gone.
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
    Depth,
    Facts,
    Failed,
    Identity,
    Observed,
    Sweep,
)
from ..core.value import EMPTY, FrozenMap
from ..provider.contract import ResourceType, Session

Sharpen = Callable[[Session, Sequence[Sweep]], tuple[Sweep, ...]]
More = Callable[[Session, Mapping[str, Sweep]], Iterable[Sweep]]
Named = Mapping[str, Sequence[str]]
"""Kind -> keys of objects that no listing shows, and that are read by name."""
INTERNAL = "details.internal"
"""In the attributes of objects that belong to the system itself."""


class ClusterReader(Struct, frozen=True):
    """How a cluster is read. types: of the provider; named: kinds that are read by name only;
    sharpen: what else is known of how far listings can be trusted; more: listings of what is no
    object of a type."""

    types: Mapping[str, ResourceType]
    named: frozenset[str] = frozenset()
    sharpen: Sharpen = lambda _, sweeps: tuple(sweeps)
    more: More = lambda _, __: ()


class Captured(Struct, frozen=True):
    """What one cluster showed. rows: None if nothing could be read; live: the objects as they were
    read, for who compares with them."""

    rows: tuple[LandedRow, ...] | None
    coverage: Mapping[str, str] = field(default_factory=dict)
    facts: Facts | None = None
    error: str | None = None
    live: Mapping[tuple[str, str], Observed] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether everything was read and seen."""
        known = set(self.coverage.values())
        return self.rows is not None and known == {CoverageKind.COMPLETE.value}


def capture_cluster(
    session: Session,
    reader: ClusterReader,
    named: Named,
    task: str,
    report: Reporter = ignore_event,
) -> Captured:
    """Read everything. named: what else is asked for by name; task: whose progress it is. Raises
    OtherSystem."""
    kinds = sorted(n for n, t in reader.types.items() if t.expand is None)
    listed = [kind for kind in kinds if kind not in reader.named]
    total = len(listed) + 1
    sweeps = []
    for done, kind in enumerate(listed):
        report(Progress(task, f"Reading {task}", done, total, "kinds", even=False))
        sweeps.append(session.sweep(kind, Depth.FULL))
    sweeps += [_read_by_name(session, kind, named.get(kind, ())) for kind in sorted(reader.named)]
    known = {sweep.kind: sweep for sweep in reader.sharpen(session, sweeps)}
    known |= {sweep.kind: sweep for sweep in reader.more(session, known)}
    session.prove()
    report(Progress(task, f"Reading {task}", total, total, "kinds", finished=True))
    return _make_captured(session.facts, reader, known)


def make_meta(captured: Captured, subject: str, snapshot: str, started: str, ended: str) -> Meta:
    """What stands beside the rows of a cluster. started, ended: RFC 3339."""
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
    """What was asked for by name. Here nothing else is looked for, so that what is asked for and
    not found is all that is missing."""
    readings = session.read([Identity("", kind, key) for key in sorted(set(keys))]).values()
    items = tuple(reading for reading in readings if isinstance(reading, Observed))
    fault = next((reading.fault for reading in readings if isinstance(reading, Failed)), None)
    seen = all(isinstance(reading, Observed | Absent) for reading in readings)
    how = CoverageKind.COMPLETE if seen else CoverageKind.VISIBLE_ONLY
    return Sweep(kind, Depth.FULL, items, Coverage(CoverageKind.FAILED if fault else how, fault))


def _make_captured(facts: Facts, reader: ClusterReader, sweeps: Mapping[str, Sweep]) -> Captured:
    coverage = {kind: sweep.coverage.kind.value for kind, sweep in sorted(sweeps.items())}
    error = "; ".join(_list_errors(sweeps)) or None
    read = {kind: s for kind, s in sweeps.items() if s.coverage.kind is not CoverageKind.FAILED}
    if not read.keys() & (reader.types.keys() - reader.named):
        return Captured(None, coverage, facts, error or "nothing of it can be listed")
    rows, live = [], {}
    for kind, sweep in sorted(read.items()):
        for item in sorted(sweep.items, key=lambda item: item.identity.key):
            live[kind, item.identity.key] = item
            rows.append(_make_row(item, reader.types.get(kind), facts))
    return Captured(tuple(rows), coverage, facts, error, live)


def _list_errors(sweeps: Mapping[str, Sweep]) -> Iterator[str]:
    """Each cause once, with the kinds that it concerns."""
    causes: dict[str, list[str]] = {}
    for kind, sweep in sorted(sweeps.items()):
        if sweep.coverage.kind is CoverageKind.FAILED:
            fault = sweep.coverage.fault
            causes.setdefault(fault.message if fault else "the listing failed", []).append(kind)
    return (f"{', '.join(kinds)}: {why}" for why, kinds in causes.items())


def compute_destination(item: Observed) -> FrozenMap:
    """The attributes as they will be once the move that runs has ended: what drift compares."""
    return item.attributes.with_items(item.moving or EMPTY)


def _make_row(item: Observed, kind: ResourceType | None, facts: Facts) -> LandedRow:
    attributes = compute_destination(item)
    if kind is not None:
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
