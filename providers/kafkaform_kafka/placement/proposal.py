"""Propose a placement: which topics may move, where their replicas should be, so that the disks of
the brokers have room for them, and what that costs.

A broker puts a new replica into the log directory with the fewest replicas, however full it is. So
the room of a broker with several disks depends on which replicas it gets, and in which order: the
search takes the sum, and a solution that would overflow a disk is computed again with less room.

The document has the moved partitions in the form that Kafka's own tool reads
(`kafka-reassign-partitions.sh --reassignment-json-file`), for topics that no block declares.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.address import Address
from kafkaform.core.errors import KafkaformError, UsageError
from kafkaform.core.resource import Declared, Fault, Lifecycle
from kafkaform.core.value import FrozenMap, Value

from ..capacity.projection import Disk, choose_disk
from ..capacity.readings import measure_partitions, read_disks
from ..inspect.source import TOPICS_HIDDEN, DescribeSource, make_read_error
from ..kinds.context import attempt
from ..kinds.topic.placement import Assignment
from ..kinds.topic.replica_moves import compute_destination, list_moves
from ..kinds.topic.resource_type import KIND
from ..protocol.faults import fault_of
from ..wire.cluster import describe_cluster
from ..wire.topics import list_topics
from .problem import Partition, Problem, Replicas
from .search import Solution, solve

_ROUNDS = 4
"""Solutions with less room before an overflowing broker gets nothing more."""


def solve_with_room(
    problem: Problem, disks: Sequence[Disk], pending: Mapping[int, int] = {}
) -> Solution:
    """The placement that fits on these disks. pending: broker -> bytes that moves which run already
    still copy to it. A broker with a disk of unknown size has no limit. Raises ValueError as
    `solve`."""
    room = _add_up_room(disks, pending)
    rounds = 0
    while True:
        solution = solve(replace(problem, room=room))
        overflows = find_overflows(problem, solution.rows, disks, pending)
        if not overflows:
            return solution
        rounds += 1
        room = {
            **room,
            **{
                broker: max(0, arrivals - excess) if rounds < _ROUNDS else 0
                for broker, (arrivals, excess) in overflows.items()
            },
        }


def _add_up_room(disks: Sequence[Disk], pending: Mapping[int, int]) -> dict[int, int]:
    room: dict[int, int] = defaultdict(int)
    for disk in disks:
        room[disk.broker] += 0 if disk.cordoned else disk.usable or 0
    unknown = {disk.broker for disk in disks if disk.usable is None}
    return {
        broker: max(0, size - pending.get(broker, 0))
        for broker, size in room.items()
        if broker not in unknown
    }


def find_overflows(
    problem: Problem,
    rows: Sequence[Replicas],
    disks: Sequence[Disk],
    pending: Mapping[int, int] = {},
) -> Mapping[int, tuple[int, int]]:
    """Broker -> bytes that are copied to it, and by how much that is too much for one of its
    disks."""
    by_broker: dict[int, list[Disk]] = defaultdict(list)
    for disk in disks:
        by_broker[disk.broker].append(disk)
    counts = {(disk.broker, disk.directories): disk.load for disk in disks}
    arrivals: dict[int, int] = defaultdict(int)
    copied: dict[tuple[int, tuple[str, ...]], int] = defaultdict(int)
    for partition, row in zip(problem.partitions, rows, strict=True):
        for broker in sorted(set(row).difference(partition.replicas)):
            arrivals[broker] += partition.size
            target = choose_disk(by_broker[broker], counts)
            if target is not None:
                counts[broker, target.directories] += 1
                copied[broker, target.directories] += partition.size
    overflows: dict[int, tuple[int, int]] = {}
    for disk in disks:
        # Nobody knows which of several disks the running copies go to.
        size = copied[disk.broker, disk.directories] + pending.get(disk.broker, 0)
        excess = 0 if disk.usable is None else size - disk.usable
        if excess > 0 and copied[disk.broker, disk.directories]:
            worst = max(excess, overflows.get(disk.broker, (0, 0))[1])
            overflows[disk.broker] = (arrivals[disk.broker], worst)
    return overflows


T = TypeVar("T")
_GRANT = "Grant Describe on Cluster to the principal of this connection."


class TopicLayout(Struct, frozen=True):
    """Where one topic is."""

    name: str
    internal: bool
    rows: Assignment
    """The brokers of each partition, after the move that is running."""
    moving: int
    """How many of its partitions are moving."""
    sizes: tuple[int | None, ...]
    """Bytes of the largest replica of each partition; None if no live broker has one."""


class ClusterLayout(Struct, frozen=True):
    """Where everything is."""

    scope_id: str
    racks: Mapping[int, str | None]
    """Live broker -> its rack."""
    topics: tuple[TopicLayout, ...]
    """All topics that the principal can see, by name."""
    disks: tuple[Disk, ...] = ()
    """The disks of the live brokers."""


def read_layout(source: DescribeSource) -> ClusterLayout:
    """Ask the cluster. Raises KafkaformError if anything cannot be read."""
    context = source.context
    cluster = _require(
        attempt("DescribeCluster", lambda: describe_cluster(context.wire, context.timeout))
    )
    if cluster.code:
        raise make_read_error(fault_of("DescribeCluster", cluster.code, "", cluster.message))
    racks = {int(node): rack or None for node, rack in cluster.brokers.items()}
    # Moves first: one that ends in between still counts then. The other way round, old and new
    # replicas would be taken together for the replicas of a topic.
    moves = _require(list_moves(context))
    listed = _require(attempt("Metadata", lambda: list_topics(context.wire, None, context.timeout)))
    rows = sorted((row for row in listed if row.code == 0), key=lambda row: row.name)
    disks = _read_disks(source, racks)
    sizes = measure_partitions(disks)
    topics = []
    for row in rows:
        topic_moves = moves.get(row.name, {})
        counted = tuple(sizes.get((row.name, number)) for number in range(len(row.replicas)))
        destination = compute_destination(row, topic_moves)
        topics.append(TopicLayout(row.name, row.internal, destination, len(topic_moves), counted))
    return ClusterLayout(cluster.cluster_id, racks, tuple(topics), tuple(disks))


def _require(answer: T | Fault) -> T:
    """The answer. Raises KafkaformError for a fault."""
    if isinstance(answer, Fault):
        raise make_read_error(answer)
    return answer


def _read_disks(source: DescribeSource, brokers: Iterable[int]) -> Sequence[Disk]:
    """The disks of these brokers. Raises KafkaformError if one of them cannot be read."""
    reading = read_disks(source, brokers)
    for broker, fault in reading.faults.items():
        raise KafkaformError(
            f"broker {broker} does not report the sizes of its replicas: {fault.message} "
            f"({fault.code}, {fault.where})",
            fault.advice or _GRANT,
        )
    for broker, paths in reading.failed.items():
        raise KafkaformError(
            f"broker {broker} cannot use {', '.join(paths)}, so the sizes of its replicas there "
            "are unknown",
            "Repair the disk, or take it out of log.dirs.",
        )
    return reading.disks


_ASSIGNMENT = "replica_assignment"
_COUNTS = ("partitions", "replication_factor")


class PlacementQuery(Struct, frozen=True):
    """What somebody wants to be placed, and where."""

    topics: tuple[str, ...] = ()
    """Globs of the topics that may move; none for all."""
    undeclared: bool = False
    """Topics that no block declares may move, too."""
    drain: frozenset[int] = frozenset()
    """Brokers that are to be left."""
    brokers: frozenset[int] = frozenset()
    """The only brokers that may have replicas of these topics; none for all."""
    max_bytes: int | None = None


class Obstacle(Struct, frozen=True):
    """Why topics stay where they are."""

    code: str
    """For programs."""
    text: str
    """For people, after the number of topics."""


UNDECLARED = Obstacle("undeclared", "no block of this folder declares")
IN_MODULE = Obstacle("in_module", "modules declare; an override file does not reach them")
LEFT_TO_CLUSTER = Obstacle(
    "left_to_cluster", "managed_replication_factor or ignore_changes leaves to others"
)
PENDING = Obstacle("pending", "have another number of partitions or replicas than their blocks say")
INTERNAL = Obstacle("internal", "Kafka has made for itself, which no plan changes")
NOT_ASKED = Obstacle("not_asked", "were not named")


class Proposal(Struct, frozen=True):
    """A placement with everything that is said about it."""

    document: FrozenMap
    arguments: Mapping[Address, FrozenMap]
    """Declared topic -> the arguments that move it."""


def propose_placement(
    layout: ClusterLayout, declared: Sequence[Declared] | None, query: PlacementQuery
) -> Proposal:
    """The placement of the topics that may move. declared: the objects of the configuration, None
    without one. Raises UsageError for brokers and topics that do not exist, and for too few
    brokers."""
    blocks = (
        None
        if declared is None
        else {d.identity.key: d for d in declared if d.identity.kind == KIND}
    )
    obstacles = {topic.name: _find_obstacle(topic, blocks, query) for topic in layout.topics}
    _refuse_nothing(obstacles, query)
    usable = _choose_brokers(layout, query)
    problem = Problem(
        tuple(_list_partitions(layout, obstacles)),
        {broker: layout.racks[broker] or f"\0{broker}" for broker in usable},
        query.max_bytes,
    )
    try:
        solution = solve_with_room(problem, layout.disks, _count_pending(layout))
    except ValueError as error:
        raise UsageError(
            f"there is no such placement: {error}", "Drain fewer brokers, or allow more of them."
        ) from None
    targets = _join_rows(problem, solution.rows)
    arguments = {} if blocks is None else dict(_list_arguments(layout, blocks, obstacles, targets))
    figures = _Figures(layout, problem, solution.rows)
    members: dict[str, Value] = {
        "format_version": "1.0",
        "kind": "placement_proposal",
        "cluster_id": layout.scope_id,
        "version": 1,
        "partitions": tuple(figures.list_changes({t: str(a) for t, (a, _) in arguments.items()})),
        "brokers": tuple(figures.list_brokers(usable)),
        "evenness": figures.measure_evenness(usable),
        "bytes_copied": solution.copied,
        "bytes_total": sum(
            partition.size * len(partition.replicas) for partition in problem.partitions
        ),
        "limited": not solution.whole,
        "max_bytes": query.max_bytes,
        "stranded": tuple(figures.list_stranded(usable)),
        "staying": tuple(_list_staying(obstacles)),
        "moving": sum(topic.moving for topic in layout.topics),
        "without_live_replica": sum(size is None for t in layout.topics for size in t.sizes),
        "declared": declared is not None,
        "complete": False,
        "hidden": TOPICS_HIDDEN,
    }
    return Proposal(FrozenMap(members), dict(arguments.values()))


# ── which topics move ───────────────────────────────────────────────────────────────────


def _find_obstacle(
    topic: TopicLayout, blocks: Mapping[str, Declared] | None, query: PlacementQuery
) -> Obstacle | None:
    """Why the topic stays, None if it may move."""
    if query.topics and not any(fnmatchcase(topic.name, glob) for glob in query.topics):
        return NOT_ASKED
    if blocks is None or query.undeclared:
        return None
    if topic.internal:
        return INTERNAL
    block = blocks.get(topic.name)
    return UNDECLARED if block is None else _find_block_obstacle(block, topic.rows)


def _find_block_obstacle(block: Declared, rows: Assignment) -> Obstacle | None:
    """Why an override file cannot declare the replicas of a topic that has a block."""
    if block.address.module:
        return IN_MODULE
    attributes = block.attributes
    if attributes.get("managed_replication_factor") is True or _is_ignored(block.lifecycle):
        return LEFT_TO_CLUSTER
    # The assignment says both numbers, and would undo what an apply has yet to do.
    assignment, factor = attributes.get(_ASSIGNMENT), attributes.get("replication_factor")
    partitions = len(assignment) if assignment else attributes.get("partitions")
    if partitions is not None and partitions != len(rows):
        return PENDING
    if assignment:
        factor = len(assignment[0])
    # -1 leaves the number to the cluster.
    fits = factor in (None, -1) or all(len(row) == factor for row in rows)
    return None if fits else PENDING


def _is_ignored(lifecycle: Lifecycle) -> bool:
    """Whether the block leaves the replicas of its topic to others."""
    only = lifecycle.ignore_changes_except
    globs = lifecycle.ignore_changes if only is None else only
    return any(fnmatchcase(_ASSIGNMENT, glob) for glob in globs) != (only is not None)


def _refuse_nothing(obstacles: Mapping[str, Obstacle | None], query: PlacementQuery) -> None:
    """Raise UsageError for a glob that no topic has, which is mostly a typing error."""
    for glob in query.topics:
        if not any(fnmatchcase(name, glob) for name in obstacles):
            raise UsageError(
                f"no topic that this principal can see matches {glob}",
                "`kafkaform describe topics` lists them.",
            )


def _choose_brokers(layout: ClusterLayout, query: PlacementQuery) -> tuple[int, ...]:
    """The brokers that may have replicas. Raises UsageError."""
    hosting = {*layout.racks}.union(*(row for topic in layout.topics for row in topic.rows))
    for flag, brokers, eligible in (
        ("--drain", query.drain, hosting),
        ("--brokers", query.brokers, {*layout.racks}),
    ):
        unknown = sorted(brokers - eligible)
        if unknown:
            raise UsageError(
                f"{flag}: the cluster has no live broker {', '.join(map(str, unknown))}",
                "`kafkaform describe brokers` lists the brokers.",
            )
    usable = sorted((query.brokers or {*layout.racks}) - query.drain)
    if not usable:
        raise UsageError("no broker is left that may have replicas", "Drain fewer brokers.")
    return tuple(usable)


def _list_partitions(
    layout: ClusterLayout, obstacles: Mapping[str, Obstacle | None]
) -> Iterator[Partition]:
    for topic in layout.topics:
        for number, (row, size) in enumerate(zip(topic.rows, topic.sizes, strict=True)):
            # Nothing can be copied from a partition without a live replica.
            movable = obstacles[topic.name] is None and size is not None
            yield Partition(topic.name, number, tuple(row), size or 0, movable)


def _count_pending(layout: ClusterLayout) -> Mapping[int, int]:
    """Broker -> bytes that the running moves still copy to it."""
    present: Counter[tuple[int, str, int]] = Counter()
    for disk in layout.disks:
        for (topic, number), stored in disk.replicas.items():
            present[disk.broker, topic, number] += stored
    pending: Counter[int] = Counter()
    for topic_layout in layout.topics:
        if not topic_layout.moving:
            continue
        pairs = zip(topic_layout.rows, topic_layout.sizes, strict=True)
        for number, (row, size) in enumerate(pairs):
            for broker in row:
                pending[broker] += max(0, (size or 0) - present[broker, topic_layout.name, number])
    return pending


# ── what is declared ────────────────────────────────────────────────────────────────────


def _join_rows(problem: Problem, rows: Sequence[Replicas]) -> Mapping[str, Assignment]:
    """Topic -> its replicas after the moves."""
    joined: dict[str, list[Replicas]] = {}
    for partition, row in zip(problem.partitions, rows, strict=True):
        joined.setdefault(partition.topic, []).append(row)
    return {name: tuple(topic_rows) for name, topic_rows in joined.items()}


def _list_arguments(
    layout: ClusterLayout,
    blocks: Mapping[str, Declared],
    obstacles: Mapping[str, Obstacle | None],
    targets: Mapping[str, Assignment],
) -> Iterator[tuple[str, tuple[Address, FrozenMap]]]:
    """Topic -> the address and the arguments of its block, if the block must change for the topic
    to be where it should."""
    for topic in layout.topics:
        block = blocks.get(topic.name)
        if block is None or obstacles[topic.name] is not None or topic.internal:
            continue
        if _find_block_obstacle(block, topic.rows) is not None:
            continue
        target = targets[topic.name]
        # A block that declares an assignment wants it, wherever the replicas are now.
        if target != (block.attributes.get(_ASSIGNMENT) or tuple(map(tuple, topic.rows))):
            new = FrozenMap({**dict.fromkeys(_COUNTS), _ASSIGNMENT: target})
            yield topic.name, (block.address, new)


def _list_staying(obstacles: Mapping[str, Obstacle | None]) -> Iterator[FrozenMap]:
    """The topics that stay, by reason."""
    reasons = {obstacle.code: obstacle for obstacle in obstacles.values() if obstacle is not None}
    for code, obstacle in sorted(reasons.items()):
        names = tuple(sorted(name for name, reason in obstacles.items() if reason == obstacle))
        yield FrozenMap(reason=code, text=obstacle.text, topics=names)


# ── figures ─────────────────────────────────────────────────────────────────────────────


class _Figures(Struct, frozen=True):
    """A placement beside what there is."""

    layout: ClusterLayout
    problem: Problem
    rows: Sequence[Replicas]

    def list_changes(self, addresses: Mapping[str, str]) -> Iterator[FrozenMap]:
        """The partitions that change, as Kafka's tool reads them, with more beside it. addresses:
        topic -> the block that an override file changes."""
        for partition, row in zip(self.problem.partitions, self.rows, strict=True):
            if row == partition.replicas:
                continue
            yield FrozenMap(
                topic=partition.topic,
                partition=partition.number,
                replicas=row,
                before=partition.replicas,
                bytes_copied=partition.size * len(set(row) - set(partition.replicas)),
                declared=addresses.get(partition.topic),
            )

    def _count(self, rows: Sequence[Replicas]) -> Mapping[str, Counter[int]]:
        counts = {name: Counter[int]() for name in ("replicas", "leaders", "bytes")}
        for partition, row in zip(self.problem.partitions, rows, strict=True):
            counts["leaders"][row[0]] += 1
            for broker in row:
                counts["replicas"][broker] += 1
                counts["bytes"][broker] += partition.size
        return counts

    def count_all(self) -> tuple[Mapping[str, Counter[int]], Mapping[str, Counter[int]]]:
        """Amount -> broker -> how much of it, before and after."""
        before = [partition.replicas for partition in self.problem.partitions]
        return self._count(before), self._count(self.rows)

    def list_brokers(self, usable: Sequence[int]) -> Iterator[FrozenMap]:
        """What each broker has and will have."""
        before, after = self.count_all()
        racks = self.layout.racks
        for broker in sorted({*racks, *before["replicas"]}):
            amounts = {
                name: FrozenMap(before=before[name][broker], after=after[name][broker])
                for name in before
            }
            room = self._measure_room(broker)
            yield FrozenMap(
                id=broker,
                rack=racks.get(broker),
                room_bytes=None
                if room is None
                else FrozenMap(
                    before=room, after=room + before["bytes"][broker] - after["bytes"][broker]
                ),
                live=broker in racks,
                used=broker in usable,
                **amounts,
            )

    def _measure_room(self, broker: int) -> int | None:
        """Bytes that are free on the disks of a broker; None if it does not say."""
        rooms = [disk.usable for disk in self.layout.disks if disk.broker == broker]
        sizes = [room for room in rooms if room is not None]
        return sum(sizes) if sizes and len(sizes) == len(rooms) else None

    def measure_evenness(self, usable: Sequence[int]) -> FrozenMap:
        """By how many percent the most loaded broker is above the average of the used ones."""
        before, after = self.count_all()
        return FrozenMap(
            {
                name: FrozenMap(
                    before=_measure_top(before[name], usable),
                    after=_measure_top(after[name], usable),
                )
                for name in before
            }
        )

    def list_stranded(self, usable: Sequence[int]) -> Iterator[FrozenMap]:
        """What stays on each broker that is to be left."""
        stranded: dict[int, Counter[str]] = {}
        for partition, row in zip(self.problem.partitions, self.rows, strict=True):
            for broker in set(row).difference(usable):
                stranded.setdefault(broker, Counter())[partition.topic] += 1
        for broker, topics in sorted(stranded.items()):
            names = tuple(sorted(topics))
            yield FrozenMap(broker=broker, replicas=topics.total(), topics=names)


def _measure_top(amounts: Mapping[int, int], usable: Sequence[int]) -> int:
    """Percent, rounded."""
    usable_amounts = [amounts[broker] for broker in usable]
    total = sum(usable_amounts)
    return round((max(usable_amounts) * len(usable_amounts) / total - 1) * 100) if total else 0
