"""Short, because listings have no type: the `ResourceKind` values of what no block declares."""

from __future__ import annotations

from ...protocol import listings
from ..kind import ResourceKind, defer

KINDS = (
    ResourceKind(
        listings.RIGHTS,
        connect=defer(__package__, "requests:RIGHTS_REQUESTS"),
        simulate=defer(__package__, "simulation:SIMULATED_RIGHTS"),
    ),
    ResourceKind(
        listings.GROUPS,
        connect=defer(__package__, "requests:GROUP_REQUESTS"),
        simulate=defer(__package__, "simulation:SIMULATED_GROUPS"),
    ),
)
