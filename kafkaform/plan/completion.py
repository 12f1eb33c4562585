"""Complete declared objects that leave something to what other objects of the same plan become
(`ResourceType.completion`), so that the plan has every value (docs/decisions/002)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from graphlib import CycleError, TopologicalSorter

from msgspec.structs import replace

from ..core.resource import Absent, Declared, Desired, Identity, Observed, Reading, World
from ..provider.contract import Outlook, ResourceType, Session
from .lifecycle import predict_attributes

NOTHING_READ: World = {}


def complete_declared(
    desired: Desired,
    types: Mapping[str, ResourceType],
    sessions: Mapping[str, Session],
    world: World = NOTHING_READ,
) -> Desired:
    """What is desired, with all that its objects leave to others.

    world: what was read already; what else is followed is read. What a system that could not be
    reached would say stays open. Raises OtherSystem.
    """
    kinds = {name: kind for name, kind in types.items() if kind.completion is not None}
    if not kinds:
        return desired
    groups: dict[tuple[str, str], list[Declared]] = defaultdict(list)
    for item in desired.declared:
        if item.identity.kind in kinds and item.identity.instance in sessions:
            groups[item.identity.instance, item.identity.kind].append(item)
    completed = {
        item.identity: item
        for (instance, kind), items in groups.items()
        for item in _complete_group(
            items,
            kinds[kind],
            sessions[instance],
            world[instance].readings if instance in world else {},
        )
    }
    if not completed:
        return desired
    declared = tuple(
        replace(item, attributes=completed[item.identity].attributes)
        if item.identity in completed
        else item
        for item in desired.declared
    )
    return replace(desired, declared=declared)


def _complete_group(
    items: Sequence[Declared],
    kind: ResourceType,
    session: Session,
    readings: Mapping[Identity, Reading],
) -> Iterator[Declared]:
    """Those of the declared objects of one type and system that follow others, completed."""
    completion = kind.completion
    assert completion is not None  # only groups of such types are made
    blocks = {item.identity.key: item for item in items}
    follows = {
        key: keys for key, item in blocks.items() if (keys := completion.follows(item.attributes))
    }
    if not follows:
        return
    followed = sorted({key for keys in follows.values() for key in keys})
    sweeps = {
        name: session.sweep(name, depth) for name, depth in completion.list_needs(followed).items()
    }
    own = [blocks[key].identity for key in followed if key in blocks]
    readings = {**session.read([i for i in own if i not in readings]), **readings}
    session.prove()
    outlooks: dict[str, Outlook] = {}
    sorter = TopologicalSorter({key: follows.get(key, ()) for key in {*follows, *followed}})
    # What is in a circle, or follows one, is never ready and stays open.
    with suppress(CycleError):
        sorter.prepare()
    while ready := sorter.get_ready():
        for key in ready:
            item = blocks.get(key)
            if item is not None and key in follows:
                item = replace(
                    item, attributes=completion.complete(item.attributes, outlooks, sweeps)
                )
                yield item
            if item is not None and item.identity in readings:
                outlooks[key] = _foresee(item, kind, readings[item.identity], session)
        sorter.done(*ready)


def _foresee(item: Declared, kind: ResourceType, reading: Reading, session: Session) -> Outlook:
    if not isinstance(reading, Observed | Absent):
        return Outlook(reading, item.attributes, changes=False)
    after = predict_attributes(item, kind, reading, session.facts)
    if isinstance(reading, Absent):
        return Outlook(reading, after, changes=True)
    before = kind.canonical(reading.attributes, session.facts)
    return Outlook(reading, after, changes=before != after)
