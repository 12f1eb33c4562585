"""The four kinds of dynamic configs as the provider knows them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ...protocol.apis import INCREMENTAL_ALTER_CONFIGS
from ..kind import KindRights, ResourceKind
from .resource_type import SCOPES, TYPES, ConfigScope

if TYPE_CHECKING:
    from ...cluster.context import Requests
    from ...simulation.simulated_kind import SimulatedKind


def _connect(scope: ConfigScope) -> Requests:
    """The request that alters configs is the same for all kinds of resources, topics too."""
    from ...cluster.context import Requests  # noqa: PLC0415  # the clients are slow to load
    from .read import make_reads  # noqa: PLC0415  # the clients are slow to load
    from .send import send_alter_configs  # noqa: PLC0415  # the clients are slow to load

    return Requests(make_reads(scope), {INCREMENTAL_ALTER_CONFIGS.name: send_alter_configs})


def _simulate(scope: ConfigScope) -> SimulatedKind:
    from .simulation import simulate  # noqa: PLC0415  # only a simulated cluster needs it

    return simulate(scope)


def _make_rights(scope: ConfigScope) -> KindRights:
    resource_type = "Group" if scope.resource == "group" else "Cluster"
    return KindRights(resource_type, ("DescribeConfigs",), ("AlterConfigs",), "AlterConfigs")


KINDS = tuple(
    ResourceKind(
        scope.kind,
        kind,
        rights=_make_rights(scope),
        connect=partial(_connect, scope),
        simulate=partial(_simulate, scope),
    )
    for scope, kind in zip(SCOPES, TYPES, strict=True)
)
