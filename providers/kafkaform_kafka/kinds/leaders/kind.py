"""The `ResourceKind` value of partition leaders."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..kind import ResourceKind
from .resource_type import API, KIND, TYPE

if TYPE_CHECKING:
    from ...cluster.context import Requests
    from ...simulation.controller import SimulatedKind


def _connect() -> Requests:
    from ...cluster.context import Reads, Requests  # noqa: PLC0415  # the clients are slow to load
    from .read import read_leaders, sweep_leaders  # noqa: PLC0415  # the clients are slow to load
    from .send import send_elections  # noqa: PLC0415  # the clients are slow to load

    return Requests(Reads(sweep_leaders, read_leaders), {API: send_elections})


def _simulate() -> SimulatedKind:
    from .simulation import SIMULATED  # noqa: PLC0415  # only a simulated cluster needs it

    return SIMULATED


KINDS = (ResourceKind(KIND, TYPE, commanded=True, connect=_connect, simulate=_simulate),)
