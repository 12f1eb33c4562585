"""The `ResourceKind` value of live groups, which no block declares; short as for every kind."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import groups
from ..kind import ResourceKind

if TYPE_CHECKING:
    from ...cluster.context import Requests
    from ...simulation.controller import SimulatedKind


def _connect() -> Requests:
    from ...cluster.context import Reads, Requests  # noqa: PLC0415  # the clients are slow to load
    from .read import read_groups, sweep_groups  # noqa: PLC0415  # the clients are slow to load

    return Requests(Reads(sweep_groups, read_groups))


def _simulate() -> SimulatedKind:
    from .simulation import SIMULATED  # noqa: PLC0415  # only a simulated cluster needs it

    return SIMULATED


KINDS = (ResourceKind(groups.KIND, connect=_connect, simulate=_simulate),)
