"""Leaders of partitions as the provider knows them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..kind import Kind
from .resource_type import API, KIND, TYPE

if TYPE_CHECKING:
    from ...cluster.context import Requests
    from ...simulation.simulated_kind import SimulatedKind


def _connect() -> Requests:
    from ...cluster.context import Reads, Requests
    from .read import read_leaders, sweep_leaders
    from .send import send_elections

    return Requests(Reads(sweep_leaders, read_leaders), {API: send_elections})


def _simulate() -> SimulatedKind:
    from .simulation import SIMULATED

    return SIMULATED


KINDS = (Kind(KIND, TYPE, commanded=True, connect=_connect, simulate=_simulate),)
