"""The `ResourceKind` value of live groups, which no block declares; short as for every kind."""

from __future__ import annotations

from ...protocol import listings
from ..kind import ResourceKind, defer

KINDS = (
    ResourceKind(
        listings.GROUPS,
        connect=defer(__package__, "requests:REQUESTS"),
        simulate=defer(__package__, "simulation:SIMULATED"),
    ),
)
