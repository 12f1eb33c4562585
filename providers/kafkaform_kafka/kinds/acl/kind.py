"""The `ResourceKind` values of ACLs and of roles."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec.structs import replace

from kafkaform.core.value import FrozenMap

from ...protocol.acl import KIND
from ...protocol.apis import CREATE_ACLS, DELETE_ACLS
from ..documents import list_attributes
from ..kind import Document, ResourceKind
from . import roles
from .resource_type import TYPE

if TYPE_CHECKING:
    from ...cluster.context import Requests
    from ...simulation.controller import SimulatedKind


def _connect() -> Requests:
    from ...cluster.context import Reads, Requests  # noqa: PLC0415  # the clients are slow to load
    from .read import read_acls, sweep_acls  # noqa: PLC0415  # the clients are slow to load
    from .send import send_create_acls, send_delete_acls  # noqa: PLC0415  # the clients are slow to load

    return Requests(
        Reads(sweep_acls, read_acls),
        {CREATE_ACLS.name: send_create_acls, DELETE_ACLS.name: send_delete_acls},
    )


def _simulate() -> SimulatedKind:
    from .simulation import SIMULATED  # noqa: PLC0415  # only a simulated cluster needs it

    return SIMULATED


def _gather(objects: Sequence[tuple[str, FrozenMap]]) -> Sequence[FrozenMap]:
    from .recognition import recognize_roles  # noqa: PLC0415  # only `import --all` needs it

    return recognize_roles(objects)


KINDS = (
    ResourceKind(
        KIND,
        TYPE,
        connect=_connect,
        simulate=_simulate,
        document=Document("acls", list_attributes, "other ACLs may be hidden"),
    ),
    ResourceKind(roles.TYPE.name, replace(roles.TYPE, gather=_gather)),
)
