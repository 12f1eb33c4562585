"""The `ResourceKind` value of our own rights, which no block declares."""

from __future__ import annotations

from ...protocol import listings
from ..kind import ResourceKind, defer

KINDS = (
    ResourceKind(
        listings.RIGHTS,
        connect=defer(__package__, "requests:REQUESTS"),
        simulate=defer(__package__, "simulation:SIMULATED"),
    ),
)
