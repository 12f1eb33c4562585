"""`kafka_group_offsets`: the offsets of a group, which `alter group` resets and deletes.

No block declares them and no state records them, because members of the group move them. The
offsets of a share group are the start offsets of its share partitions (KIP-932).

A group's own offsets do not say where logs begin and end, nor where a time is in them. That is read
as `kafka_group_positions`, whose key is a `Reset`, so that the plan is made of readings only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from kafkaform.core.change import Action, Change, Evidence, Path, Repeat, Request, Step
from kafkaform.core.resource import Facts, Observed
from kafkaform.core.schema import NUMBER, STRING, AttributeSchema, list_of, make_schema, map_of
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.contract import ResourceType

from ...protocol import keys
from ...protocol.apis import MAX_OFFSETS
from ..kind import (
    ALTER_SHARE_OFFSETS,
    COMMIT_OFFSETS,
    DELETE_GROUP,
    DELETE_OFFSETS,
    DELETE_SHARE_OFFSETS,
    SILENT,
    ResourceKind,
    all_paths,
    defer,
    make_step,
    paths_below,
)

GROUP_OFFSETS, GROUP_POSITIONS = "kafka_group_offsets", "kafka_group_positions"
OFFSETS, MEMBERS = "offsets", "members"
SHARE = "share"
"""The type of groups whose offsets the cluster keeps itself."""
Place = tuple[str, int]
"""Topic and partition."""


def render_partition(partition: Place) -> str:
    """A partition as Kafka's tools write it: `orders:0`. No name of a topic has a colon."""
    return f"{partition[0]}:{partition[1]}"


def parse_partition(text: str) -> Place:
    """The partition that `render_partition` wrote. Raises ValueError."""
    topic, _, number = text.rpartition(":")
    return topic, int(number)


class GroupMember(Struct, frozen=True):
    """A member of a group, as messages name it."""

    member_id: str
    client_id: str
    host: str

    @property
    def text(self) -> str:
        return f"{self.client_id or 'a client'} at {self.host} ({self.member_id})"


def describe_members(members: Sequence[str]) -> str:
    """`2 members: app at 10.0.0.7 (app-1…), …`, at most five by name."""
    named = ", ".join(members[:5])
    ending = f" and {len(members) - 5} more" if len(members) > 5 else ""
    return f"{len(members)} {'member' if len(members) == 1 else 'members'}: {named}{ending}"


def make_group(
    name: str, type_: str, offsets: Mapping[Place, int], members: Iterable[GroupMember] = ()
) -> FrozenMap:
    """The attributes of a group. type_: `classic`, `consumer`, `share` or `streams`."""
    rows: dict[str, Value] = {
        render_partition(partition): offsets[partition] for partition in sorted(offsets)
    }
    return FrozenMap(
        {
            "group": name,
            "type": type_,
            MEMBERS: tuple(member.text for member in members),
            OFFSETS: FrozenMap(rows),
        }
    )


def find_foreign_offsets(attributes: FrozenMap) -> frozenset[Path]:
    """All offsets: a plan ignores those that its change does not name."""
    return frozenset((OFFSETS, partition) for partition in attributes[OFFSETS])


# ── where a reset leads ─────────────────────────────────────────────────────────────────


class Reset(Struct, frozen=True):
    """Where offsets of a group are to go: the fields of a key of `kafka_group_positions`."""

    group: str
    mode: str
    """A key of TARGETS."""
    value: int
    """The time (milliseconds since 1970), the offset or the number of records; otherwise 0."""
    scopes: tuple[str, ...]
    """Topics (`orders`), partitions (`orders:0`) or offsets (`orders:0=42`); none for all
    partitions of which the group has offsets."""

    @property
    def key(self) -> str:
        return keys.join((self.group, self.mode, str(self.value), *self.scopes))

    def list_topics(self) -> Iterator[str]:
        """The topics that are named."""
        yield from dict.fromkeys(scope.partition(":")[0] for scope in self.scopes)

    def select_partitions(
        self, committed: Iterable[Place], counts: Mapping[str, int]
    ) -> Iterator[Place]:
        """The partitions whose offsets are reset. committed: those of which the group has offsets;
        counts: topic -> how many partitions it has, of the topics that exist."""
        if not self.scopes:
            yield from sorted(committed)
        for scope in self.scopes:
            topic, colon, number = scope.partition("=")[0].partition(":")
            if colon:
                yield topic, int(number)
            else:
                yield from ((topic, number) for number in range(counts.get(topic, 0)))

    @property
    def listed(self) -> Mapping[Place, int]:
        """The offsets that are named."""
        pairs = (scope.partition("=") for scope in self.scopes)
        return {
            parse_partition(partition): int(offset) for partition, sign, offset in pairs if sign
        }


def parse_reset(key: str) -> Reset:
    """The reset that a key means."""
    group, mode, value, *scopes = keys.split(key)
    return Reset(group, mode, int(value), tuple(scopes))


class LogRange(Struct, frozen=True):
    """What is known of one partition when its offset is reset."""

    partition: Place
    current: int | None
    """The group's offset, None if it has none."""
    start: int
    """The first offset of the log."""
    end: int
    """The next offset of the log."""
    at_time: int | None = None
    """The offset of the first record from the asked time on; None if all are older."""
    listed: int | None = None
    """The offset that was named for this partition."""

    def clamp(self, offset: int) -> int:
        """The nearest offset that the log has."""
        return min(max(offset, self.start), self.end)


TARGETS: Mapping[str, Callable[[LogRange, int], int]] = {
    "to-earliest": lambda log, _: log.start,
    "to-latest": lambda log, _: log.end,
    "to-datetime": lambda log, _: log.end if log.at_time is None else log.at_time,
    "to-offset": lambda log, value: log.clamp(value),
    "shift-by": lambda log, value: log.clamp(
        (log.end if log.current is None else log.current) + value
    ),
    "to-current": lambda log, _: log.end if log.current is None else log.current,
    "from-file": lambda log, _: log.clamp(log.end if log.listed is None else log.listed),
}
"""Mode -> the new offset of a partition. An offset beyond the log would make members start where
`auto.offset.reset` says, so the nearest one that the log has is taken, as Kafka's tool does."""


def make_position(log: LogRange, reset: Reset, find_time: Callable[[int], int | None]) -> FrozenMap:
    """One row of a reading of `kafka_group_positions`. find_time: offset -> time of its record,
    None if it is not known."""
    target = TARGETS[reset.mode](log, reset.value)
    return FrozenMap(
        {
            "topic": log.partition[0],
            "partition": log.partition[1],
            "offset": log.current,
            "start_offset": log.start,
            "end_offset": log.end,
            "target": target,
            "time": None if log.current is None else find_time(log.current),
            "target_time": find_time(target),
        }
    )


# ── the type ────────────────────────────────────────────────────────────────────────────


def _key(attributes: FrozenMap) -> str:
    name = attributes.get("group")
    if not isinstance(name, str) or not name:
        raise ValueError("a kafka_group_offsets needs a group")
    return name


def _target(declared: FrozenMap, _: Observed | None, __: Facts, ___: bool) -> FrozenMap:
    return declared


def _make_steps(change: Change, _: Facts) -> tuple[Step, ...]:
    if change.action in SILENT:
        return ()
    group = change.identity.key
    if change.action is Action.DELETE:
        return (_make_step(change, 1, DELETE_GROUP, {"group": group}, all_paths(change), 1),)
    return tuple(
        _make_step(change, number, request, {"group": group, **payload}, paths, len(paths))
        for number, (request, payload, paths) in enumerate(_list_requests(change), 1)
    )


def _list_requests(
    change: Change,
) -> Iterator[tuple[Request, Mapping[str, Value], tuple[Path, ...]]]:
    """What to send for offsets that are set or removed, with the paths that it makes true."""
    after = change.after or EMPTY
    target = after.get(OFFSETS) or EMPTY
    shared = after.get("type") == SHARE
    paths = paths_below(change, OFFSETS)
    remaining = [path for path in paths if path[1] in target]
    gone = [path for path in paths if path[1] not in target]
    for cut in _cut(remaining):
        offsets = FrozenMap({partition: target[partition] for _, partition in cut})
        yield ALTER_SHARE_OFFSETS if shared else COMMIT_OFFSETS, {OFFSETS: offsets}, cut
    if gone and shared:
        # The request names topics only.
        topics = tuple(dict.fromkeys(parse_partition(partition)[0] for _, partition in gone))
        yield DELETE_SHARE_OFFSETS, {"topics": topics}, tuple(gone)
    elif gone:
        for cut in _cut(gone):
            yield DELETE_OFFSETS, {"partitions": tuple(partition for _, partition in cut)}, cut


def _cut(paths: Sequence[Path]) -> Iterator[tuple[Path, ...]]:
    for start in range(0, len(paths), MAX_OFFSETS):
        yield tuple(paths[start : start + MAX_OFFSETS])


def _make_step(
    change: Change,
    number: int,
    request: Request,
    payload: Mapping[str, Value],
    paths: tuple[Path, ...],
    weight: int,
) -> Step:
    # Members that came and went after a lost answer have moved on: the offsets are read first.
    return make_step(
        change,
        number,
        request,
        payload,
        paths,
        weight=min(weight, MAX_OFFSETS),
        repeat=Repeat.VERIFY,
        evidence=Evidence.LOCAL,
    )


def _write(attributes: FrozenMap) -> FrozenMap:
    """What a group is made of. A commit makes a classic group, which becomes what its members are;
    only a share group is of another kind."""
    names = ("group", "type", OFFSETS) if attributes["type"] == SHARE else ("group", OFFSETS)
    return FrozenMap({name: attributes[name] for name in names})


GROUP_OFFSETS_TYPE = ResourceType(
    name=GROUP_OFFSETS,
    schema=make_schema(
        "The offsets of a group.",
        AttributeSchema("group", STRING, "Name of the group.", required=True),
        AttributeSchema("type", STRING, "`classic`, `consumer`, `share` or `streams`."),
        AttributeSchema(MEMBERS, list_of(STRING), "Its members: client, host and id."),
        AttributeSchema(OFFSETS, map_of(NUMBER), "Partition (`orders:0`) -> the next offset."),
    ),
    key=_key,
    canonical=lambda attributes, _: attributes,
    target=_target,
    steps=_make_steps,
    import_key=lambda text: text,
    written=_write,
    restorable=True,
)

KINDS = (
    ResourceKind(
        GROUP_OFFSETS,
        GROUP_OFFSETS_TYPE,
        commanded=True,
        connect=defer(__package__, "group_requests:GROUP_REQUESTS"),
        simulate=defer(__package__, "simulation:SIMULATED_GROUP"),
    ),
    # Only a reset reads it, so it has no type.
    ResourceKind(
        GROUP_POSITIONS,
        commanded=True,
        connect=defer(__package__, "group_requests:POSITION_REQUESTS"),
        simulate=defer(__package__, "simulation:SIMULATED_POSITIONS"),
    ),
)
