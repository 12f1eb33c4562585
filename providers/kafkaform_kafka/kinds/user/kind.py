"""The `ResourceKind` value of SCRAM credentials."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..kind import Document, KindRights, ResourceKind
from .document import list_users
from .resource_type import API, KIND, TYPE

if TYPE_CHECKING:
    from ...cluster.context import Requests
    from ...simulation.controller import SimulatedKind


def _connect() -> Requests:
    from ...cluster.context import Reads, Requests  # noqa: PLC0415  # the clients are slow to load
    from .read import read_scram, sweep_scram  # noqa: PLC0415  # the clients are slow to load
    from .send import send_alter_scram  # noqa: PLC0415  # the clients are slow to load

    return Requests(Reads(sweep_scram, read_scram), {API: send_alter_scram})


def _simulate() -> SimulatedKind:
    from .simulation import SIMULATED  # noqa: PLC0415  # only a simulated cluster needs it

    return SIMULATED


KINDS = (
    ResourceKind(
        KIND,
        TYPE,
        # Reading and changing users needs Describe and Alter on Cluster, which ACLs need too and
        # which the guard always protects.
        rights=KindRights("Cluster", deletes="Alter"),
        connect=_connect,
        simulate=_simulate,
        document=Document("users", list_users, "other users may be hidden"),
    ),
)
