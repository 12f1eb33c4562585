"""The result of a snapshot, for people and for programs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from msgspec import Struct

from ...render.text import inline, render_count

READ, PARTIAL, FAILED = "read", "partial", "failed"
INCOMPLETE = 5
"""Exit code of a snapshot that lacks something."""


class ClusterResult(Struct, frozen=True):
    """The result for one cluster."""

    name: str
    status: str
    """read, partial (something was not read, or may be hidden) or failed."""
    objects: int
    seconds: float
    """How long it took."""
    error: str | None = None
    unseen: tuple[str, ...] = ()
    """Kinds whose objects may be hidden."""


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
    hidden = f"; some may be hidden: {', '.join(cluster.unseen)}" if cluster.unseen else ""
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
