"""Groups of the simulated cluster, which has no clients: none. Short, because nothing happens."""

from __future__ import annotations

from kafkaform.core.resource import Absent, Coverage, CoverageKind, Depth, Identity, Reading, Sweep

from ...protocol import listings
from ...simulation.world import ReadScene, SimulatedKind, SimulatedReads


def _sweep(_: ReadScene, depth: Depth) -> Sweep:
    return Sweep(listings.GROUPS, depth, (), Coverage(CoverageKind.VISIBLE_ONLY))


def _read(_: ReadScene, identity: Identity) -> Reading:
    return Absent(identity)


SIMULATED = SimulatedKind(
    SimulatedReads("ListGroups", "DescribeGroups", "ListGroups", _sweep, _read)
)
