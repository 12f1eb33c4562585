"""The `ResourceKind` value of the cluster's features."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..kind import ResourceKind
from .resource_type import API, KIND, TYPE

if TYPE_CHECKING:
    from ...cluster.context import Requests
    from ...simulation.controller import SimulatedKind


def _connect() -> Requests:
    from ...cluster.context import Reads, Requests  # noqa: PLC0415  # the clients are slow to load
    from .read import read_levels, sweep_levels  # noqa: PLC0415  # the clients are slow to load
    from .send import send_updates  # noqa: PLC0415  # the clients are slow to load

    return Requests(Reads(sweep_levels, read_levels), {API: send_updates})


def _simulate() -> SimulatedKind:
    from .simulation import SIMULATED  # noqa: PLC0415  # only a simulated cluster needs it

    return SIMULATED


KINDS = (ResourceKind(KIND, TYPE, commanded=True, connect=_connect, simulate=_simulate),)
