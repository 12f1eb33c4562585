"""Find when, by whom and in which run an object was last set from here, for the report of drift."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from msgspec import Struct

from ..core.change import Action
from ..core.resource import Identity
from .event import Glance, RecordKind
from .index import SUCCEEDED, Seen, get_identity, get_run

_LOOKED_AT = frozenset({RecordKind.OUTCOME, RecordKind.RECOVER})
_SETS_NOTHING = frozenset({Action.REFRESH.value, Action.FORGET.value, Action.NOOP.value})


class LastWrite(Struct, frozen=True):
    """The last successful step of an object."""

    time: str
    """When its outcome was recorded, RFC 3339, UTC."""
    actor: str
    """Who ran it."""
    run: str
    """The id of the run that sent it."""


def find_last_writes(
    records: Iterable[Seen], identities: Collection[Identity]
) -> Mapping[Identity, LastWrite]:
    """Wanted identity -> its last write. records: trusted, in order.

    An adoption and an import count: from then on the value was known here. A refresh does not,
    because it sets nothing.
    """
    last_writes: dict[Identity, LastWrite] = {}
    for record in records:
        if record.kind not in _LOOKED_AT:
            continue
        body = record.body
        if body.get("outcome") in SUCCEEDED and body["action"] not in _SETS_NOTHING:
            identity = get_identity(record)
            if identity in identities:
                full_record = record.read_whole()
                last_writes[identity] = LastWrite(
                    full_record.time, full_record.actor, get_run(record)
                )
        if isinstance(record, Glance):
            record.forget()
    return last_writes
