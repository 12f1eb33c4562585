"""Groups of the simulated cluster, and the logs that they read. A test makes both: nobody produces
or consumes there. The records of a log have times at equal distances."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Step
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Fault,
    Hidden,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.value import EMPTY, FrozenMap

from ...protocol.faults import name_right
from ..kind import (
    ALTER_SHARE_OFFSETS,
    COMMIT_OFFSETS,
    DELETE_GROUP,
    DELETE_OFFSETS,
    DELETE_SHARE_OFFSETS,
)
from ..simulation import (
    AdminAnswer,
    AdminCall,
    Item,
    ItemVerdict,
    Key,
    ReadScene,
    RequestResult,
    SimulatedKind,
    SimulatedReads,
    require,
    run_batch,
)
from ..topic import resource_type as topics
from ..topic.simulation import SimulatedTopic
from .group_offsets import (
    GROUP_OFFSETS,
    GROUP_POSITIONS,
    OFFSETS,
    SHARE,
    GroupMember,
    LogRange,
    Place,
    find_foreign_paths,
    make_group,
    make_position,
    parse_partition,
    parse_reset,
    render_partition,
)
from .group_requests import find_hurdle


class SimulatedGroup(Struct, frozen=True):
    """A group."""

    type: str = "classic"
    offsets: FrozenMap = EMPTY
    """Partition (`orders:0`) -> the next offset."""
    members: tuple[GroupMember, ...] = ()


class SimulatedLog(Struct, frozen=True):
    """The log of one partition. Times are in milliseconds since 1970."""

    start: int = 0
    end: int = 0
    first_time: int = 0
    """Of the record at `start`."""
    last_time: int = 0
    """Of the record before `end`."""

    def find_time(self, offset: int) -> int | None:
        """The time of a record; None if there is none."""
        if not self.start <= offset < self.end:
            return None
        steps = max(1, self.end - 1 - self.start)
        return self.first_time + (self.last_time - self.first_time) * (offset - self.start) // steps

    def find_offset(self, moment: int) -> int | None:
        """The first record from this time on; None if all are older."""
        times = ((offset, self.find_time(offset)) for offset in range(self.start, self.end))
        return next((offset for offset, time in times if time is not None and time >= moment), None)


def group_key(name: str) -> Key:
    """The key of a group in the simulated world."""
    return GROUP_OFFSETS, name


def log_key(partition: Place) -> Key:
    """The key of the log of a partition in the simulated world."""
    return GROUP_POSITIONS, render_partition(partition)


# ── reads ───────────────────────────────────────────────────────────────────────────────


def _sweep(kind: str, _: ReadScene, depth: Depth) -> Sweep:
    return Sweep(kind, depth, (), Coverage(CoverageKind.VISIBLE_ONLY))


def _read_group(scene: ReadScene, identity: Identity) -> Reading:
    name = identity.key
    if not scene.user.may("Describe", f"group:{name}"):
        return Hidden(identity, name_right("DescribeGroups", name))
    group: SimulatedGroup | None = scene.objects(GROUP_OFFSETS).get(name)
    if group is None:
        return Absent(identity)
    offsets = {parse_partition(text): offset for text, offset in group.offsets.items()}
    attributes = make_group(name, group.type, offsets, group.members)
    return Observed(
        identity,
        attributes,
        details=FrozenMap(state="Stable" if group.members else "Empty"),
        foreign=find_foreign_paths(attributes),
    )


def _read_position(scene: ReadScene, identity: Identity) -> Reading:
    reset = parse_reset(identity.key)
    reading = _read_group(scene, Identity(identity.instance, GROUP_OFFSETS, reset.group))
    if isinstance(reading, Hidden):
        return replace(reading, identity=identity)
    offsets = reading.attributes[OFFSETS] if isinstance(reading, Observed) else EMPTY
    current = {parse_partition(text): offset for text, offset in offsets.items()}
    stored: Mapping[str, SimulatedTopic] = scene.objects(topics.KIND)
    counts = {name: topic.partitions for name, topic in stored.items()}
    named = tuple(reset.list_topics()) or tuple(dict.fromkeys(topic for topic, _ in current))
    problems = [f"there is no topic {name}" for name in named if name not in counts]
    rows = []
    for partition in dict.fromkeys(reset.select_partitions(current, counts)):
        topic, number = partition
        if number >= counts.get(topic, 0):
            problems += [f"topic {topic} has no partition {number}"] if topic in counts else []
            continue
        log: SimulatedLog = scene.objects(GROUP_POSITIONS).get(
            render_partition(partition), SimulatedLog()
        )
        at_time = log.find_offset(reset.value) if reset.mode == "to-datetime" else None
        row = LogRange(
            partition,
            current.get(partition),
            log.start,
            log.end,
            at_time,
            reset.listed.get(partition),
        )
        rows.append(make_position(row, reset, log.find_time))
    details = FrozenMap(rows=tuple(rows), problems=tuple(problems))
    return Observed(identity, FrozenMap(), details=details)


# ── requests ────────────────────────────────────────────────────────────────────────────


def _change(api: str, call: AdminCall, items: Sequence[Item]) -> RequestResult:
    return run_batch(
        call,
        items,
        lambda item: group_key(item["group"]),
        lambda item: _HANDLERS[api](call, item, call.world.get(group_key(item["group"]))),
    )


def _may(call: AdminCall, operation: str, item: Item, group: SimulatedGroup | None) -> None:
    """Raises Refusal without the right, and for a group that is missing or has members."""
    require(call.user.may(operation, f"group:{item['group']}"), 30)
    require(group is not None, 69)


def _commit(call: AdminCall, item: Item, group: SimulatedGroup | None) -> ItemVerdict:
    _may(call, "Read", item, group or SimulatedGroup())
    group = group or SimulatedGroup()
    require(not group.members, 25)
    return AdminAnswer(), replace(group, offsets=group.offsets.with_items(item[OFFSETS])), 1


def _alter_share(call: AdminCall, item: Item, group: SimulatedGroup | None) -> ItemVerdict:
    group = group or SimulatedGroup(SHARE)
    _may(call, "Read", item, group)
    require(group.type == SHARE, 69)
    require(not group.members, 68)
    return AdminAnswer(), replace(group, offsets=group.offsets.with_items(item[OFFSETS])), 1


def _delete_offsets(call: AdminCall, item: Item, group: SimulatedGroup | None) -> ItemVerdict:
    _may(call, "Delete", item, group)
    assert group is not None
    require(not group.members, 68)
    return AdminAnswer(), replace(group, offsets=group.offsets.without(item["partitions"])), 1


def _delete_share(call: AdminCall, item: Item, group: SimulatedGroup | None) -> ItemVerdict:
    _may(call, "Delete", item, group)
    assert group is not None
    require(group.type == SHARE, 69)
    require(not group.members, 68)
    gone = [text for text in group.offsets if parse_partition(text)[0] in item["topics"]]
    return AdminAnswer(), replace(group, offsets=group.offsets.without(gone)), 1


def _delete(call: AdminCall, item: Item, group: SimulatedGroup | None) -> ItemVerdict:
    _may(call, "Delete", item, group)
    assert group is not None
    require(not group.members, 68)
    return AdminAnswer(), None, 1


_HANDLERS = {
    COMMIT_OFFSETS.name: _commit,
    ALTER_SHARE_OFFSETS.name: _alter_share,
    DELETE_OFFSETS.name: _delete_offsets,
    DELETE_SHARE_OFFSETS.name: _delete_share,
    DELETE_GROUP.name: _delete,
}
"""API -> what the coordinator does with one item."""


def _check(scene: ReadScene, step: Step) -> Fault | None:
    return find_hurdle(step, _read_group(scene, step.identity))


SIMULATED_GROUP = SimulatedKind(
    reads=SimulatedReads(
        "ListGroups",
        "DescribeGroups",
        "DescribeGroups",
        partial(_sweep, GROUP_OFFSETS),
        _read_group,
    ),
    handlers={api: partial(_change, api) for api in _HANDLERS},
    checks=dict.fromkeys(_HANDLERS, _check),
)
SIMULATED_POSITIONS = SimulatedKind(
    reads=SimulatedReads(
        "ListOffsets",
        "ListOffsets",
        "ListOffsets",
        partial(_sweep, GROUP_POSITIONS),
        _read_position,
    )
)
