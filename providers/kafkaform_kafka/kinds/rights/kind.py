"""The `ResourceKind` value of our own rights, which no block declares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import rights
from ..kind import ResourceKind

if TYPE_CHECKING:
    from ...cluster.context import Requests
    from ...simulation.controller import SimulatedKind


def _connect() -> Requests:
    from ...cluster.context import Reads, Requests  # noqa: PLC0415  # the clients are slow to load
    from .read import read_rights, sweep_rights  # noqa: PLC0415  # the clients are slow to load

    return Requests(Reads(sweep_rights, read_rights))


def _simulate() -> SimulatedKind:
    from .simulation import SIMULATED  # noqa: PLC0415  # only a simulated cluster needs it

    return SIMULATED


KINDS = (ResourceKind(rights.KIND, connect=_connect, simulate=_simulate),)
