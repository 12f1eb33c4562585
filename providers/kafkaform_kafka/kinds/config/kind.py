"""The `ResourceKind` values of the four kinds of dynamic configs."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ...protocol.apis import INCREMENTAL_ALTER_CONFIGS
from ..kind import KindRights, ResourceKind
from .resource_type import SCOPES, TYPES, ConfigScope

if TYPE_CHECKING:
    from ...cluster.context import Requests
    from ...simulation.controller import SimulatedKind


def _connect(scope: ConfigScope) -> Requests:
    from ...cluster.context import Reads, Requests  # noqa: PLC0415  # the clients are slow to load
    from .read import read_configs, sweep_configs  # noqa: PLC0415  # the clients are slow to load
    from .send import send_alter_configs  # noqa: PLC0415  # the clients are slow to load

    # One function sends the request for all kinds of resources, topics included.
    return Requests(
        Reads(partial(sweep_configs, scope), partial(read_configs, scope)),
        {INCREMENTAL_ALTER_CONFIGS.name: send_alter_configs},
    )


def _simulate(scope: ConfigScope) -> SimulatedKind:
    from .simulation import simulate  # noqa: PLC0415  # only a simulated cluster needs it

    return simulate(scope)


KINDS = tuple(
    ResourceKind(
        scope.kind,
        kind,
        # Configs of brokers and of client metrics belong to the cluster (KIP-133, KIP-714).
        rights=KindRights(
            resource_type="Group" if scope.resource == "group" else "Cluster",
            sees=("DescribeConfigs",),
            changes=("AlterConfigs",),
            deletes="AlterConfigs",
        ),
        connect=partial(_connect, scope),
        simulate=partial(_simulate, scope),
    )
    for scope, kind in zip(SCOPES, TYPES, strict=True)
)
