"""The recorded world: the live objects that are ours, and what we know about each."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from ..core.address import parse_address
from ..core.change import Ownership
from ..core.head import Head
from ..core.resource import Identity
from ..core.value import EMPTY, FrozenMap

FORMAT = 1

PROTECTIONS = ("no", "default", "explicit")
"""How well a row protects its object against deletion, weakest first."""


class _WithLine:
    """Slots that are not fields, so that they are not compared, copied or stored."""

    __slots__ = ("_line", "_sound")
    _line: str
    """The row in the file. An apply saves the state after each batch, and most rows stay."""
    _sound: bool
    """The row was read from a file, and so it breaks no rule."""


class Row(_WithLine, Struct, frozen=True):
    """One object, recorded once however many blocks own it."""

    identity: Identity
    """Which object."""
    owners: tuple[str, ...]
    """Addresses of the blocks that own it, as sorted text; at least one."""
    # The state can be edited by hand, the log cannot without breaking its chain. So a deletion
    # needs the record that this number names, not only the row (architecture §6).
    origin: int
    """Number of the audit record that created, adopted or imported the object."""
    attributes: FrozenMap
    """The attributes as they were applied; only what is set, and no secrets."""
    incarnation: str | None = None
    """The system's id of the object, None for kinds without one."""
    # Protection is kept here because a block that is deleted takes its own settings with it.
    protected: str = "no"
    """One of PROTECTIONS."""
    owner: str | None = None
    """The team that the block names; text for people."""
    labels: FrozenMap = EMPTY
    """The labels of the block."""
    depends_on: tuple[str, ...] = ()
    """Addresses that the block depends on, as text: the order of a later deletion."""
    secret_version: str | None = None
    """The version of the secret that was sent last."""
    # Without this, every plan would remove again what no removal changes.
    reported: FrozenMap = EMPTY
    """Path as text -> value, of what the system reports although nothing sets it: its removal was
    accepted and changed nothing, and the value would be in effect anyway."""

    @property
    def ownership(self) -> Ownership:
        """The bookkeeping part of the row."""
        return Ownership(self.owners, self.protected, self.secret_version)


class State(Struct, frozen=True):
    """Everything that is recorded about one configuration."""

    lineage: str
    """The id of the state. It is made once and never changes; the log and plans carry it."""
    serial: int = 0
    """How often the state has changed."""
    objects: Mapping[Identity, Row] = field(default_factory=dict)
    """The recorded objects."""
    providers: FrozenMap = EMPTY
    """Provider instance -> the scope id of the system that it is bound to."""
    outputs: FrozenMap = EMPTY
    """Name of an output -> its `value`, `sensitive` and `deferred`."""
    audit_head: Head | None = None
    """The last audit record whose effects are in here."""
    kafkaform_version: str = ""
    """The version that wrote the state."""

    def find_owned(self, address: str) -> tuple[Row, ...]:
        """The rows that this address, one of its instances or one of its children owns.

        Raises ValueError if the text is not an address.
        """
        parsed = parse_address(address)
        return tuple(
            row
            for _, row in sorted(self.objects.items())
            if any(parsed.contains(parse_address(owner)) for owner in row.owners)
        )


__all__ = ["FORMAT", "PROTECTIONS", "Head", "Row", "State"]
