"""What proves that an object is ours: the record that made, adopted or imported it, until another
record ends that.

An object of a system has one origin at most, the last one. It ends when the object is deleted,
forgotten or released, and when an edit takes its row out of the state. Whoever writes the number of
an origin that ended into a row proves nothing by it: what has the name today is somebody else's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from ..core.change import Action
from ..core.resource import Identity

MAKING = frozenset({Action.CREATE.value, Action.ADOPT.value, Action.IMPORT.value})
ENDING = frozenset({Action.DELETE.value, Action.FORGET.value})
MOVED, PUSHED = "state mv", "state push"
"""Commands that edit a state."""


class Origin(Struct, frozen=True):
    """Of which object a record proves that it is ours. incarnation: its id, None for kinds
    without one; scope_id: the system that has it."""

    identity: Identity
    incarnation: str | None
    scope_id: str


class Origins:
    """The origins that hold so far, while a log is read; and which system each provider instance
    is in it."""

    def __init__(self) -> None:
        self.scopes: dict[str, str] = {}
        self._held: dict[Identity, dict[str, tuple[int, Origin]]] = {}
        self._ended: dict[tuple[Identity, str], str] = {}

    def note_step(self, seq: int, time: str, identity: Identity, body: Mapping[str, Any]) -> None:
        """A step was applied, or has started. time: of the record."""
        scope = body["scope_id"]
        self.scopes[identity.instance] = scope
        # Logs of before did not tell owners: a release cannot be seen in them.
        owners = body.get("owners")
        if body["action"] in ENDING or (owners is not None and not owners):
            self._held.get(identity, {}).pop(scope, None)
            self._ended[identity, scope] = time
        elif body["action"] in MAKING or body["adopts"]:
            was = body.get("forked")
            if was and was["time"] < self._ended.get((identity, scope), ""):
                return  # it was joined to the log later, and what it made had gone by then
            origin = Origin(identity, body["incarnation"], scope)
            self._held.setdefault(identity, {})[scope] = seq, origin

    def note_edit(self, body: Mapping[str, Any]) -> None:
        """The state was edited outside of any step: an object that it holds no more has no origin.

        Logs of before did not tell what became of a row. A move kept it, and a push to an empty
        place did; of any other edit it is not certain, so what it touched is proven no more.
        """
        kept = body.get("reason") == MOVED or (
            body.get("reason") == PUSHED and not body.get("version")
        )
        for item in body.get("objects", ()):
            gone = item["row"] is None if "row" in item else not kept
            if gone:
                self._held.pop(Identity(item["instance"], item["kind"], item["key"]), None)

    def collect_origins(self) -> dict[int, Origin]:
        """Number of the record -> what it proves."""
        return {seq: origin for held in self._held.values() for seq, origin in held.values()}
