"""Origins: the records that prove that an object is ours, because they made or took it over.

An object of a system has at most one origin, the last one. It ends when the object is deleted,
forgotten or released, and when an edit takes its row out of the state. The number of an ended
origin in a row proves nothing: the object that has the name today is somebody else's.
"""

from __future__ import annotations

from collections.abc import Mapping
from sys import intern
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from ..core.change import Action
from ..core.resource import Identity

MAKING = frozenset({Action.CREATE.value, Action.ADOPT.value, Action.IMPORT.value})
ENDING = frozenset({Action.DELETE.value, Action.FORGET.value})
MOVED, PUSHED = "state mv", "state push"
"""Commands that edit a state, as a record names them."""


class Origin(Struct, frozen=True):
    """The object that a record proves to be ours."""

    identity: Identity
    """Which object."""
    incarnation: str | None
    """The system's id of the object, None for kinds without one."""
    scope_id: str
    """The system that has it."""


class Origins(Struct):
    """The origins that are valid so far, while a log is read."""

    scopes: dict[str, str] = field(default_factory=dict)
    """Provider instance -> the system that its last step was sent to."""
    _held: dict[str, dict[Identity, tuple[int, Origin]]] = field(default_factory=dict)
    """System -> object -> number of the record, and what it proves."""
    _ended: dict[tuple[Identity, str], str] = field(default_factory=dict)
    """Object and system -> when its last origin ended."""

    def note_step(self, seq: int, time: str, identity: Identity, body: Mapping[str, Any]) -> None:
        """A step was applied or has started. seq, time: those of the record."""
        scope = intern(body["scope_id"])
        self.scopes[identity.instance] = scope
        origins = self._held.setdefault(scope, {})
        # Earlier versions did not record owners, so their logs do not show a release.
        owners = body.get("owners")
        if body["action"] in ENDING or (owners is not None and not owners):
            origins.pop(identity, None)
            self._ended[identity, scope] = time
        elif body["action"] in MAKING or body["adopts"]:
            was = body.get("forked")
            if was and was["time"] < self._ended.get((identity, scope), ""):
                # `audit mend` put the record behind a later delete: what it made was gone by then.
                return
            origins[identity] = seq, Origin(identity, body["incarnation"], scope)

    def note_edit(self, body: Mapping[str, Any]) -> None:
        """The state was edited outside of any step: an object that it lost has no origin."""
        # Earlier versions did not record what became of a row. A move kept it, and so did a push to
        # an empty place. After any other edit it is not certain, so its objects are not proven.
        if body.get("instance"):
            # The instance is forgotten as a whole, so it may be another system from now on.
            self.scopes.pop(body["instance"], None)
        for instance, scope in (body.get("scopes") or {}).items():
            self._complete_scope(instance, intern(scope))
        has_row = body.get("reason") == MOVED or (
            body.get("reason") == PUSHED and not body.get("version")
        )
        for item in body.get("objects", ()):
            removed = item["row"] is None if "row" in item else not has_row
            if removed:
                identity = Identity(item["instance"], item["kind"], item["key"])
                for origins in self._held.values():
                    origins.pop(identity, None)

    def _complete_scope(self, instance: str, scope: str) -> None:
        """The id of a system of which only a half was recorded: what was proven there stays so."""
        half = self.scopes.get(instance, scope)
        self.scopes[instance] = scope
        if half == scope:
            return
        half_origins = self._held.get(half, {})
        origins = self._held.setdefault(scope, {})
        for identity in [identity for identity in half_origins if identity.instance == instance]:
            seq, origin = half_origins.pop(identity)
            origins[identity] = seq, replace(origin, scope_id=scope)

    def collect_origins(self) -> dict[int, Origin]:
        """Number of a record -> what it proves."""
        return {seq: origin for origins in self._held.values() for seq, origin in origins.values()}
