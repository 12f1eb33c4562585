"""The listing of our own rights as the provider knows it. There is nothing to declare."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import rights
from ..kind import Kind

if TYPE_CHECKING:
    from ...cluster.context import Requests
    from ...simulation.simulated_kind import SimulatedKind


def _connect() -> Requests:
    from ...cluster.context import Reads, Requests
    from .read import read_rights, sweep_rights

    return Requests(Reads(sweep_rights, read_rights))


def _simulate() -> SimulatedKind:
    from .simulation import SIMULATED

    return SIMULATED


KINDS = (Kind(rights.KIND, connect=_connect, simulate=_simulate),)
