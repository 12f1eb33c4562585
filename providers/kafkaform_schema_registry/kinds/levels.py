"""Short, because it is a table: compatibility levels and modes, and what a level promises."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

INHERITED = "INHERITED"
"""The subject has none of its own: that of the registry takes effect."""

LEVELS = (
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
    "NONE",
)
TRANSITIVE = frozenset(level for level in LEVELS if level.endswith("_TRANSITIVE"))
"""Levels that count for all versions, and not only for the latest one."""
MODES = ("READWRITE", "READONLY", "IMPORT")


class Promise(Struct, frozen=True):
    """What a registry makes sure of at a level."""

    backward: bool
    """Readers with the new schema can read what was written with the old one."""
    forward: bool
    """Readers with the old schema can read what is written with the new one."""
    advice: str
    """Who has to be updated first."""


_READERS = "update readers before writers"
_WRITERS = "update writers before readers"
_EITHER = "readers and writers can be updated in any order"
_NOBODY = "the registry checks nothing"

PROMISES: Mapping[str, Promise] = {
    "BACKWARD": Promise(True, False, _READERS),
    "BACKWARD_TRANSITIVE": Promise(True, False, _READERS),
    "FORWARD": Promise(False, True, _WRITERS),
    "FORWARD_TRANSITIVE": Promise(False, True, _WRITERS),
    "FULL": Promise(True, True, _EITHER),
    "FULL_TRANSITIVE": Promise(True, True, _EITHER),
    "NONE": Promise(False, False, _NOBODY),
}
"""Level -> what it means (Confluent's documentation, "Schema Evolution and Compatibility")."""
