"""What the changes of a plan do to the disks of brokers.

Changes that keep records longer, copy replicas or add partitions need room. A forecast puts all
changes of a plan together with everything that is on the same disks.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from kafkaform.core.change import Action, Change
from kafkaform.core.resource import Facts, Identity
from kafkaform.core.value import EMPTY

from ..kinds.topic import placement
from ..kinds.topic import resource_type as topics
from ..kinds.topic.configs import (
    BROKER_CONFIG,
    CLUSTER_CONFIG,
    find_default_change,
    find_effective,
    list_default_paths,
)
from ..kinds.topic.configs import KIND as OVERRIDES
from ..protocol.config_keys import parse_size
from .projection import (
    DAY_SECONDS,
    KEYS,
    NO_GROWTH,
    Disk,
    LogGrowth,
    LogLimits,
    Place,
    Projection,
    Replica,
    choose_disk,
    project_disk,
    read_limits,
)

DEFAULTS = (CLUSTER_CONFIG, BROKER_CONFIG)
"""The types that set defaults of topics."""


class Share(Struct, frozen=True):
    """What one change adds to one disk."""

    projection: Projection
    """What becomes of the disk by all changes of the plan."""
    added: float
    """Bytes that this change adds at most; infinite if nothing stops the growth."""
    expected: bool = False
    """Blocks say how fast some of it grows, not the brokers."""


class Forecast(Struct, frozen=True):
    """What changes add to disks."""

    shares: Mapping[Identity, tuple[Share, ...]]
    """Object that changes -> the disks that get more by it."""
    unknown: Mapping[Identity, tuple[str, ...]]
    """Object that needs room -> topics of which nobody knows how fast they grow."""
    gaps: tuple[str, ...]
    """What was not looked at, and why: sentences without a final stop."""
    net: Mapping[Identity, float] = {}
    """Object that changes -> bytes that its change adds to all disks once it has had its full
    effect, negative for what it frees, infinite if nothing stops the growth; without those whose
    topics grow nobody knows how fast."""
    replicas: Mapping[int, ReplicaCount] = {}
    """Broker -> how many replicas it has."""


class ReplicaCount(Struct, frozen=True):
    """The replicas of one broker."""

    before: int
    after: int


def needs_room(change: Change, facts: Facts) -> bool:
    """True if the change can make something larger on the disks of brokers."""
    if not change.effective:
        return False
    if change.identity.kind in DEFAULTS:
        before, after = _find_default_limits(change, facts)
        return _is_wider(before, after)
    if change.identity.kind == OVERRIDES:
        return _is_wider(*_find_limits(change, facts))
    if change.identity.kind != topics.KIND:
        return False
    if change.action is Action.CREATE:
        return find_expected_rate(change) is not None and _count_added_partitions(change) > 0
    if change.action is not Action.UPDATE:
        return False
    return (
        _count_added_partitions(change) > 0
        or bool(placement.count_copies(change, facts))
        or _is_wider(*_find_limits(change, facts))
    )


def alters_bytes(change: Change, facts: Facts) -> bool:
    """True if other bytes can be on the disks of brokers after the change."""
    kind = change.identity.kind
    if kind in DEFAULTS:
        before, after = _find_default_limits(change, facts)
        return before != after
    if kind == topics.KIND and change.action in (Action.CREATE, Action.DELETE):
        return True
    if kind not in (topics.KIND, OVERRIDES):
        return False
    before, after = _find_limits(change, facts)
    if before != after or kind == OVERRIDES:
        return before != after
    return _count_added_partitions(change) > 0 or bool(placement.plan_moves(change, facts))


def find_expected_rate(change: Change) -> float | None:
    """Bytes a day that the block of a topic expects; None if it expects nothing."""
    rate = parse_size(change.expectations.get(topics.EXPECTED_RATE))
    return None if rate is None else float(rate * DAY_SECONDS)


def _is_wider(before: LogLimits | None, after: LogLimits | None) -> bool:
    return before is not None and after is not None and after.is_wider(before)


def _find_limits(change: Change, facts: Facts) -> tuple[LogLimits | None, LogLimits | None]:
    effective = find_effective(change, facts)
    return read_limits(effective.before), read_limits(effective.after)


def _find_default_limits(change: Change, facts: Facts) -> tuple[LogLimits | None, LogLimits | None]:
    if not list_default_paths(change).keys() & set(KEYS):
        return None, None
    defaults = find_default_change(change, facts)
    return read_limits(defaults.before), read_limits(defaults.after)


def _count_added_partitions(change: Change) -> int:
    before, after = (
        (side or EMPTY).get("partitions") or 0 for side in (change.before, change.after)
    )
    return max(0, after - before)


def list_concerned_brokers(
    adding: Sequence[Change], spreads: Mapping[str, Spread], facts: Facts
) -> frozenset[int]:
    """The live brokers whose disks can get more, or that have what is copied there."""
    live = {int(node) for node in facts.nodes}
    concerned: set[int] = set()
    for change in adding:
        kind, key = change.identity.kind, change.identity.key
        if kind == BROKER_CONFIG:
            concerned.add(int(key))
            continue
        target = placement.get_rows(change.after)
        # The controller chooses where partitions without a declared placement go, so each broker
        # can get some.
        anywhere = kind == CLUSTER_CONFIG or (_count_added_partitions(change) and not target)
        if anywhere:
            return frozenset(live)
        concerned.update(*target, *(spreads[key].replicas if key in spreads else ()))
    return frozenset(concerned & live)


class Spread(Struct, frozen=True):
    """Where the replicas of a topic are."""

    replicas: tuple[tuple[int, ...], ...]
    """Broker ids of partition 0, 1, …"""
    in_sync: tuple[tuple[int, ...], ...]
    """Those of them that are in sync."""


NOWHERE = Spread((), ())
"""A topic that does not exist yet."""


class TopicSettings(Struct, frozen=True):
    """The configs of a topic that decide how much is on disks."""

    values: Mapping[str, str]
    """Key -> the value in effect."""
    own: frozenset[str]
    """Those that the topic overrides."""
    of_broker: frozenset[str]
    """Those that a broker overrides, so that the cluster's default does not count."""


class DiskWorld(Struct, frozen=True):
    """What was read of a cluster."""

    disks: Sequence[Disk]
    topics: Mapping[str, Spread]
    """Topic -> where its replicas are."""
    settings: Mapping[str, TopicSettings]
    growth: Mapping[Place, LogGrowth]
    sizes: Mapping[Place, int]
    """Partition -> bytes of its largest replica."""


class _Outlook(Struct):
    """What becomes of one topic by the changes."""

    spread: Spread
    partitions: int
    """After the changes."""
    expected: float | None = None
    """Bytes a day that its block expects."""
    gone: bool = False
    targets: dict[int, frozenset[int]] = {}
    """Partition -> its brokers after the changes, of those that move or are added."""
    values: dict[str, str] = {}
    """Configs that change."""
    broker_values: dict[int, dict[str, str]] = {}
    """Broker -> configs that change there, because its default does."""
    owner: Identity | None = None
    """The object whose change makes the topic larger, otherwise one that makes it smaller."""
    broker_owners: dict[int, Identity] = {}
    """Broker -> the object whose change makes it larger or smaller there."""

    def find_owner(self, broker: int) -> Identity | None:
        """The object whose change makes the topic larger or smaller on this broker."""
        return self.owner or self.broker_owners.get(broker)

    def follows_block(self, growth: LogGrowth) -> bool:
        """True if the block says how fast a partition grows: it is not written yet, or more
        partitions are to share what is written. growth: as measured."""
        shared = self.partitions != len(self.spread.replicas)
        return self.expected is not None and (not growth.rate or shared)


class _Occupant(Struct, frozen=True):
    """One replica on a disk."""

    replica: Replica
    topic: str
    owner: Identity | None = None
    """The object whose change makes it larger or smaller."""
    expected: bool = False
    """Its block says how fast it grows."""


def make_forecast(
    cluster: DiskWorld, changes: Sequence[Change], facts: Facts, gaps: Sequence[str] = ()
) -> Forecast:
    """What the changes of a plan do to these disks. gaps: what was not read."""
    outlooks = _make_outlooks(cluster, changes, facts)
    counts = {(d.broker, d.directories): d.load for d in cluster.disks}
    entries: dict[tuple[int, tuple[str, ...]], list[_Occupant]] = defaultdict(list)
    for disk in cluster.disks:
        entries[disk.broker, disk.directories] += _list_present(cluster, disk, outlooks)
    for entry, broker in _list_copies(cluster, outlooks):
        # One copy after the other: each one counts for where the next copy on the same broker goes.
        target = choose_disk([disk for disk in cluster.disks if disk.broker == broker], counts)
        if target is not None:
            counts[broker, target.directories] += 1
            entries[broker, target.directories].append(entry)
    shares: dict[Identity, list[Share]] = defaultdict(list)
    unknown: dict[Identity, set[str]] = defaultdict(set)
    net: dict[Identity, float] = defaultdict(float)
    for disk in cluster.disks:
        listed = entries[disk.broker, disk.directories]
        projection = project_disk(disk, [entry.replica for entry in listed])
        added: dict[Identity, float] = defaultdict(float)
        for entry in listed:
            if entry.owner is not None:
                added[entry.owner] += entry.replica.added
                net[entry.owner] += entry.replica.net
                if entry.replica.is_unknown:
                    unknown[entry.owner].add(entry.topic)
        for identity, amount in added.items():
            if amount > 0:
                expects = any(entry.expected for entry in listed)
                shares[identity].append(Share(projection, amount, expects))
    return Forecast(
        {identity: tuple(rows) for identity, rows in shares.items()},
        {
            change.identity: tuple(sorted(unknown[change.identity]))
            for change in changes
            if change.identity in unknown and needs_room(change, facts)
        },
        tuple(gaps),
        {identity: size for identity, size in net.items() if identity not in unknown},
        _count_replicas(cluster, outlooks),
    )


def _count_replicas(
    cluster: DiskWorld, outlooks: Mapping[str, _Outlook]
) -> Mapping[int, ReplicaCount]:
    """Broker -> its replicas, of all topics."""
    before, after = Counter[int](), Counter[int]()
    for name, spread in cluster.topics.items():
        outlook = outlooks.get(name)
        for number, row in enumerate(spread.replicas):
            before.update(row)
            if outlook is None:
                after.update(row)
            elif not outlook.gone:
                after.update(outlook.targets.get(number, row))
    for outlook in outlooks.values():
        for number, brokers in outlook.targets.items():
            if number >= len(outlook.spread.replicas):
                after.update(brokers)
    return {
        broker: ReplicaCount(before[broker], after[broker])
        for broker in sorted(before.keys() | after.keys())
    }


def _make_outlooks(
    cluster: DiskWorld, changes: Sequence[Change], facts: Facts
) -> Mapping[str, _Outlook]:
    """Topic -> its outlook, of the topics that changes concern."""
    outlooks: dict[str, _Outlook] = {}

    def open_outlook(name: str) -> _Outlook:
        spread = cluster.topics[name]
        return outlooks.setdefault(name, _Outlook(spread, len(spread.replicas)))

    # Defaults come first, so that what a topic declares itself has the last word about its configs.
    effective = [change for change in changes if change.effective]
    for change in effective:
        if change.identity.kind in DEFAULTS:
            values = _list_changed_defaults(change, facts)
            wider = needs_room(change, facts)
            for name, settings in cluster.settings.items() if values else ():
                own = {k: v for k, v in values.items() if _follows(k, settings, change)}
                if own and name in cluster.topics:
                    _note_default(open_outlook(name), change, own, wider=wider)
    placed = 0
    for change in effective:
        kind, name = change.identity.kind, change.identity.key
        if kind == topics.KIND and change.action is Action.CREATE and name not in cluster.topics:
            outlooks[name] = outlook = _Outlook(NOWHERE, 0)
            _note_topic_change(outlook, change, facts, placed)
            # The controller goes on with the next broker, so that new topics spread evenly.
            placed += outlook.partitions
        elif kind in (topics.KIND, OVERRIDES) and name in cluster.topics:
            outlook = open_outlook(name)
            if kind == topics.KIND and change.action is Action.DELETE:
                outlook.gone, outlook.owner = True, change.identity
            elif change.action in (Action.CREATE, Action.UPDATE, Action.DELETE):
                _note_topic_change(outlook, change, facts)
    return outlooks


def _list_changed_defaults(change: Change, facts: Facts) -> Mapping[str, str]:
    """Topic config -> its new default."""
    defaults = find_default_change(change, facts)
    return {key: defaults.after[key] for key in KEYS if key in defaults.paths}


def _follows(key: str, settings: TopicSettings, change: Change) -> bool:
    """True if a new default counts for a topic with these settings."""
    overridden = change.identity.kind == CLUSTER_CONFIG and key in settings.of_broker
    return key not in settings.own and not overridden


def _note_default(
    outlook: _Outlook, change: Change, values: Mapping[str, str], *, wider: bool
) -> None:
    """wider: the default keeps more than before."""
    if change.identity.kind == BROKER_CONFIG:
        broker = int(change.identity.key)
        outlook.broker_values.setdefault(broker, {}).update(values)
        outlook.broker_owners[broker] = change.identity
        return
    outlook.values.update(values)
    if wider or outlook.owner is None:
        outlook.owner = change.identity


def _note_topic_change(outlook: _Outlook, change: Change, facts: Facts, shift: int = 0) -> None:
    """shift: by how many brokers the first new partition is away from the first broker."""
    effective = find_effective(change, facts)
    is_new = change.action is Action.CREATE
    outlook.values.update(
        {k: effective.after[k] for k in KEYS if is_new or effective.before[k] != effective.after[k]}
    )
    if needs_room(change, facts) or outlook.owner is None:
        outlook.owner = change.identity
    if change.identity.kind != topics.KIND:
        return
    outlook.expected = find_expected_rate(change)
    moves = placement.plan_moves(change, facts)
    outlook.targets.update({number: frozenset(row) for number, row in moves.items()})
    outlook.partitions += _count_added_partitions(change)
    start = placement.find_start(change, facts)
    declared = (change.after or EMPTY).get("replication_factor")
    usual = declared if isinstance(declared, int) and declared > 0 else 1
    factor = max(map(len, outlook.spread.replicas), default=usual)
    for number in range(len(outlook.spread.replicas), outlook.partitions):
        if number not in outlook.targets:
            turn = number + shift
            row = start[number] if number < len(start) else _place_new(turn, factor, facts)
            outlook.targets[number] = frozenset(row)


def _place_new(number: int, factor: int, facts: Facts) -> Sequence[int]:
    """Brokers for a partition that the controller is to partition: in turn, as it does."""
    live = sorted(map(int, facts.nodes))
    return [live[(number + offset) % len(live)] for offset in range(min(factor, len(live)))]


def _list_present(
    cluster: DiskWorld, disk: Disk, outlooks: Mapping[str, _Outlook]
) -> Iterator[_Occupant]:
    """The replicas that are on a disk now."""
    replaced = {
        partition
        for sibling in cluster.disks
        if sibling.broker == disk.broker
        for partition in sibling.future
    }
    logs = [(partition, size, False) for partition, size in disk.replicas.items()]
    logs += [(partition, size, True) for partition, size in disk.future.items()]
    for partition, size, future in logs:
        topic, number = partition
        spread = cluster.topics.get(topic)
        before = cluster.growth.get(partition, NO_GROWTH)
        outlook = outlooks.get(topic)
        whole = size
        # A copy that runs takes all the room that it needs.
        in_sync = spread.in_sync[number : number + 1] if spread else ()
        if future or any(disk.broker not in brokers for brokers in in_sync):
            whole = max(size, cluster.sizes.get(partition, 0))
        remains = future or partition not in replaced
        if outlook is None:
            yield _Occupant(Replica(size, whole, before, before, remains), topic)
            continue
        follows_block = outlook.follows_block(before)
        if not before.rate and outlook.expected is not None:
            before = LogGrowth(outlook.expected / len(outlook.spread.replicas), before.limits)
        stays = not outlook.gone and disk.broker in outlook.targets.get(number, (disk.broker,))
        after = _grow(cluster, outlook, partition, disk.broker)
        replica = Replica(size, whole, before, after, stays and remains)
        yield _Occupant(replica, topic, outlook.find_owner(disk.broker), follows_block)


def _list_copies(
    cluster: DiskWorld, outlooks: Mapping[str, _Outlook]
) -> Iterator[tuple[_Occupant, int]]:
    """The replicas that the changes add, each with its broker."""
    for topic, outlook in sorted(outlooks.items()):
        for number, brokers in sorted(outlook.targets.items()):
            partition = (topic, number)
            is_new = number >= len(outlook.spread.replicas)
            present = () if is_new else outlook.spread.replicas[number]
            size = cluster.sizes.get(partition, 0)
            for broker in sorted(brokers.difference(present)):
                after = _grow(cluster, outlook, partition, broker)
                # Nobody writes to a partition that does not exist yet.
                before = LogGrowth(0.0, after.limits) if is_new else after
                if not is_new and partition not in cluster.sizes:
                    before, after = after, NO_GROWTH
                replica = Replica(0, size, before, after, is_new=True)
                follows_block = outlook.follows_block(cluster.growth.get(partition, NO_GROWTH))
                yield _Occupant(replica, topic, outlook.owner, follows_block), broker


def _grow(cluster: DiskWorld, outlook: _Outlook, partition: Place, broker: int) -> LogGrowth:
    """How a partition grows on a broker after the changes."""
    topic, number = partition
    settings = cluster.settings.get(topic)
    count = len(outlook.spread.replicas)
    if settings is None and count:
        return NO_GROWTH
    changed = {**outlook.broker_values.get(broker, {}), **outlook.values}
    limits = read_limits({**(settings.values if settings else {}), **changed})
    growth = cluster.growth.get(partition, NO_GROWTH)
    if outlook.expected is not None and outlook.follows_block(growth):
        return LogGrowth(outlook.expected / outlook.partitions, limits)
    if outlook.partitions == count or not count:
        return LogGrowth(growth.rate, limits)
    # Producers spread what they write over all partitions, and write no more because of them.
    rates = [cluster.growth.get((topic, n), NO_GROWTH).rate for n in range(count)]
    whole = [rate for rate in rates if rate is not None]
    return LogGrowth(sum(whole) / outlook.partitions if len(whole) == count else None, limits)
