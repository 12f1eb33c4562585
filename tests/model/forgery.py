"""States that somebody edited by hand, with a checksum that fits: who knows the format can."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from kafkaform.core.head import Head
from kafkaform.core.value import FrozenMap
from kafkaform.state.codec import encode
from kafkaform.state.model import Row, State, drop_row, put_row, set_scope

from ..kit.simulated.engine import KAFKA, House, identity
from .wishes import FOREIGN, address

UNUSABLE = frozenset({"anchor", "scope", "checksum"})
"""With these no command does anything until the state is put back."""


def forge(house: House, how: str, name: str) -> bool:
    """Edit the state of this house; False if there is nothing to edit."""
    state, live = house.state, house.cluster.topics
    row = state.objects.get(identity(name))
    if house.backend.data is None:
        return False
    if how == "checksum":
        data = house.backend.data
        house.backend.data = data.replace(b'"serial":', b'"serial":1', 1)
        return True
    if how in WHOLE:
        house.backend.data = encode(WHOLE[how](state))
        return True
    if how == "add":
        if name not in live or row is not None:
            name = FOREIGN
        if name not in live:
            return False
        house.backend.data = encode(put_row(state, _claimed(house, name)))
        return True
    if row is None:
        return False
    foreign = live[FOREIGN].id if FOREIGN in live else "nobody's"
    forged = _ROWS[how](row, foreign)
    after = put_row(state, forged) if forged else drop_row(state, row.identity)
    house.backend.data = encode(after)
    return after != state


def _claimed(house: House, name: str) -> Row:
    """A row that says that this topic is ours and may go, with the origin of another one."""
    origins = [row.origin for row in house.state.objects.values()]
    return Row(
        identity(name),
        (address(name),),
        origins[0] if origins else 1,
        FrozenMap(name=name, partitions=1),
        incarnation=house.cluster.topics[name].id,
    )


_ROWS: Mapping[str, Callable[[Row, str], Row | None]] = {
    "drop": lambda row, foreign: None,
    "owners": lambda row, foreign: replace(row, owners=("kafka_topic.nobody",), protected="no"),
    "unprotect": lambda row, foreign: replace(row, protected="no"),
    "incarnation": lambda row, foreign: replace(row, incarnation=foreign, protected="no"),
    "attributes": lambda row, foreign: replace(row, attributes=FrozenMap(name=row.identity.key)),
    "origin": lambda row, foreign: replace(row, origin=row.origin + 1),
}
WHOLE: Mapping[str, Callable[[State], State]] = {
    "anchor": lambda state: replace(state, audit_head=Head(1, "f" * 64)),
    "no anchor": lambda state: replace(state, audit_head=None),
    "serial": lambda state: replace(state, serial=state.serial + 7),
    "scope": lambda state: set_scope(state, KAFKA, "another cluster"),
}
