"""The `ResourceKind` value of delegation tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..kind import Document, ResourceKind
from .document import list_tokens
from .resource_type import KIND, TYPE

if TYPE_CHECKING:
    from ...cluster.context import Requests
    from ...simulation.controller import SimulatedKind


def _connect() -> Requests:
    from ...cluster.context import Reads, Requests  # noqa: PLC0415  # the clients are slow to load
    from .read import read_tokens, sweep_tokens  # noqa: PLC0415  # the clients are slow to load
    from .send import SENDS  # noqa: PLC0415  # the clients are slow to load

    return Requests(Reads(sweep_tokens, read_tokens), SENDS)


def _simulate() -> SimulatedKind:
    from .simulation import SIMULATED  # noqa: PLC0415  # only a simulated cluster needs it

    return SIMULATED


KINDS = (
    ResourceKind(
        KIND,
        TYPE,
        commanded=True,
        connect=_connect,
        simulate=_simulate,
        document=Document(
            "delegation-tokens",
            list_tokens,
            "Kafka leaves out tokens that this principal may not describe",
        ),
    ),
)
