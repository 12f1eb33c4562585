"""The `ResourceKind` value of client quotas."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol.apis import ALTER_CLIENT_QUOTAS
from ..kind import Document, KindRights, ResourceKind
from .document import list_quotas
from .resource_type import KIND, TYPE

if TYPE_CHECKING:
    from ...cluster.context import Requests
    from ...simulation.controller import SimulatedKind


def _connect() -> Requests:
    from ...cluster.context import Reads, Requests  # noqa: PLC0415  # the clients are slow to load
    from .read import read_quotas, sweep_quotas  # noqa: PLC0415  # the clients are slow to load
    from .send import send_alter_quotas  # noqa: PLC0415  # the clients are slow to load

    return Requests(Reads(sweep_quotas, read_quotas), {ALTER_CLIENT_QUOTAS.name: send_alter_quotas})


def _simulate() -> SimulatedKind:
    from .simulation import SIMULATED  # noqa: PLC0415  # only a simulated cluster needs it

    return SIMULATED


KINDS = (
    ResourceKind(
        KIND,
        TYPE,
        rights=KindRights(
            "Cluster", ("DescribeConfigs",), ("AlterConfigs",), deletes="AlterConfigs"
        ),
        connect=_connect,
        simulate=_simulate,
        document=Document("quotas", list_quotas, "other quotas may be hidden"),
    ),
)
