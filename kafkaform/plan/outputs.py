"""Outputs: recorded values against evaluated ones."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from ..core.change import Change
from ..core.finding import UNREAD
from ..core.resource import Desired, Output
from ..state.model import State
from .model import OutputChange


def compare_outputs(
    desired: Desired, state: State, changes: Iterable[Change]
) -> tuple[OutputChange, ...]:
    """The outputs that differ. One that waits for a computed value always does, unless an object
    could not be read: then it may be the value of that one, and stays as it is recorded."""
    unread = bool(desired.unread) or any(change.block in UNREAD for change in changes)
    # Plans are saved, shown and recorded in the log, so a sensitive value must not enter them.
    after = {
        one.name: replace(one, value=None) if one.sensitive else one for one in desired.outputs
    }
    before = {
        name: Output(name, data.get("value"), bool(data.get("sensitive")), False)
        for name, data in state.outputs.items()
    }
    return tuple(
        OutputChange(before.get(name), after.get(name))
        for name in sorted(before.keys() | after.keys())
        if before.get(name) != after.get(name)
        and not (unread and name in before and name in after and after[name].deferred)
    )
