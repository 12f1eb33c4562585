"""The `ResourceKind` value of our own rights, which no block declares."""

from __future__ import annotations

from ...protocol import rights
from ..kind import ResourceKind, defer

KINDS = (
    ResourceKind(
        rights.KIND,
        connect=defer(__package__, "requests:REQUESTS"),
        simulate=defer(__package__, "simulation:SIMULATED"),
    ),
)
