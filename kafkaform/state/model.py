"""The recorded world: which live objects are ours, since when, and as what."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from ..core.address import parse_address
from ..core.head import Head
from ..core.resource import Identity
from ..core.value import EMPTY, FrozenMap

FORMAT = 1

PROTECTIONS = ("no", "default", "explicit")


class Row(Struct, frozen=True):
    """One object, held once however many blocks own it.

    owners: addresses as text, sorted; origin: seq of the audit record that created, adopted or
    imported it; attributes: as applied, only what is set; protected: no, default or explicit;
    depends_on: addresses as text; secret_version: the version of the secret last sent.
    """

    identity: Identity
    owners: tuple[str, ...]
    origin: int
    attributes: FrozenMap
    incarnation: str | None = None
    protected: str = "no"
    owner: str | None = None
    labels: FrozenMap = EMPTY
    depends_on: tuple[str, ...] = ()
    secret_version: str | None = None


class State(Struct, frozen=True):
    """lineage: made once, never changes; serial: counts changes; providers: instance -> scope
    id; outputs: name -> value, sensitive, deferred; audit_head: the last audit record whose
    effects are in here."""

    lineage: str
    serial: int = 0
    objects: Mapping[Identity, Row] = field(default_factory=dict)
    providers: FrozenMap = EMPTY
    outputs: FrozenMap = EMPTY
    audit_head: Head | None = None
    kafkaform_version: str = ""

    def find_owned(self, address: str) -> tuple[Row, ...]:
        """The rows that this address, one of its instances or one of its children owns.

        Raises ValueError if the text is not an address.
        """
        wanted = parse_address(address)
        return tuple(
            row
            for _, row in sorted(self.objects.items())
            if any(wanted.contains(parse_address(owner)) for owner in row.owners)
        )


def make_state(lineage: str, kafkaform_version: str = "") -> State:
    """A state that has recorded nothing yet."""
    return State(lineage, kafkaform_version=kafkaform_version)


__all__ = ["FORMAT", "PROTECTIONS", "Head", "Row", "State", "make_state"]
