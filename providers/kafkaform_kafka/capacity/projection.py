"""How full disks become: pure arithmetic over replicas, their growth and their retention.

A replica grows at the rate at which its partition is written, until retention deletes as much as
is written. That size is its ceiling. A disk fills as its replicas reach their ceilings one after
the other, so that its use over time is a line with a bend at each of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import TypeAlias

from msgspec import Struct

from ..protocol.config_keys import FOLLOWS, parse_integer, parse_items

DAY_SECONDS = 86_400
DAY_MS = DAY_SECONDS * 1000
Place: TypeAlias = tuple[str, int]
"""Topic and partition."""


class LogLimits(Struct, frozen=True):
    """What bounds one partition on the disk of a broker."""

    ms: float
    """Age at which records go, milliseconds; infinite without a limit."""
    bytes: float
    """Size beyond which records go; infinite without a limit."""
    segment_ms: float
    """The longest time that one segment covers."""
    segment_bytes: float
    """The most bytes of one segment."""

    def is_wider(self, limits: LogLimits) -> bool:
        """True if these keep more than the others in some way."""
        return self.ms > limits.ms or self.bytes > limits.bytes


KEYS = (
    "cleanup.policy",
    "local.retention.bytes",
    "local.retention.ms",
    "remote.log.copy.disable",
    "remote.storage.enable",
    "retention.bytes",
    "retention.ms",
    "segment.bytes",
    "segment.ms",
)
"""The topic configs that decide how much is on disks."""


def is_tiered(configs: Mapping[str, str]) -> bool:
    """True if brokers keep only a part of the topic on their own disks (KIP-405, KIP-950)."""
    copied = configs.get("remote.log.copy.disable") != "true"
    return configs.get("remote.storage.enable") == "true" and copied


def read_limits(configs: Mapping[str, str]) -> LogLimits | None:
    """The limits in these effective topic configs. None for a topic of which no record expires
    because compaction decides what stays: no rate says how much that is."""
    policies = parse_items(configs.get("cleanup.policy", "delete"))
    if "compact" in policies and "delete" not in policies:
        return None
    expires = "delete" in policies
    retention = {
        unit: _read_limit(configs, f"retention.{unit}") if expires else math.inf
        for unit in ("ms", "bytes")
    }
    if is_tiered(configs):
        for unit in retention:
            key = f"local.retention.{unit}"
            # -2 stands for the limit of the whole topic.
            if parse_integer(configs.get(key, str(FOLLOWS))) != FOLLOWS:
                retention[unit] = min(retention[unit], _read_limit(configs, key))
    return LogLimits(
        retention["ms"],
        retention["bytes"],
        _read_limit(configs, "segment.ms"),
        _read_limit(configs, "segment.bytes"),
    )


def _read_limit(configs: Mapping[str, str], key: str) -> float:
    number = parse_integer(configs.get(key, "-1"))
    return math.inf if number is None or number < 0 else float(number)


class LogGrowth(Struct, frozen=True):
    """How one partition grows on each broker that has it."""

    rate: float | None
    """Bytes a day; None if it is unknown."""
    limits: LogLimits | None
    """None if no limit can be computed with: see `read_limits`."""

    @property
    def ceiling(self) -> float | None:
        """Bytes at which it stops growing, infinite if nothing stops it; None if that is unknown.

        Brokers delete whole segments, and never the one that is written: so up to a segment more
        than the limit is there.
        """
        if self.limits is None or self.rate is None:
            return None
        if not self.rate:
            return 0.0
        by_age = self.rate * self.limits.ms / DAY_MS
        # An unlimited age must not become a size by way of an unlimited segment.
        segment = min(self.limits.segment_bytes, self.rate * self.limits.segment_ms / DAY_MS)
        return min(by_age, self.limits.bytes) + segment


NO_GROWTH = LogGrowth(None, None)


class Replica(Struct, frozen=True):
    """One replica on a disk, now and after the changes."""

    size: float
    """Bytes on this disk now; 0 for one that is to be copied to it."""
    whole: float
    """Bytes of the partition, which a copy reaches."""
    before: LogGrowth
    after: LogGrowth
    stays: bool = True
    """False: it is removed from this disk once all copies are complete."""
    is_new: bool = False
    """The changes add it to this disk."""

    @property
    def settled(self) -> float:
        """Bytes once the changes have had their full effect; infinite if nothing stops it."""
        if not self.stays:
            return 0.0
        if self.before == self.after:
            return self.whole
        before, after = self.before.ceiling, self.after.ceiling
        if before is None or after is None or before == after:
            return self.whole
        return max(self.whole, after) if after > before else min(self.whole, after)

    @property
    def added(self) -> float:
        """Bytes that the changes add to it at most: not those of a copy that runs already."""
        return (self.whole if self.is_new else 0.0) + max(0.0, self.settled - self.whole)

    @property
    def net(self) -> float:
        """Bytes that the changes add to it, negative for what they free: not those of a copy that
        runs already."""
        return self.settled - (0.0 if self.is_new else self.whole)

    @property
    def is_unknown(self) -> bool:
        """True if the changes concern its growth, and nobody knows how fast it grows."""
        return self.stays and self.before != self.after and self.after.rate is None


class Disk(Struct, frozen=True):
    """One disk of a broker: a log directory, or several that share a volume."""

    broker: int
    directories: tuple[str, ...]
    """Paths of the log directories, sorted."""
    total: int | None
    """Bytes; None if the broker does not say, as before Kafka 3.3 (KIP-827)."""
    usable: int | None
    """Bytes of them that the broker can still use."""
    replicas: Mapping[Place, int]
    """Partition -> bytes of its replica here."""
    future: Mapping[Place, int] = {}
    """Partition -> bytes of a copy here that is to take the place of the replica on the same broker
    (KIP-113)."""
    cordoned: bool = False
    """It gets no new replicas (KIP-1066)."""
    fewest: int | None = None
    """Replicas in the log directory that has fewest of them; None for one directory."""

    @property
    def load(self) -> int:
        """What a broker compares when it chooses a directory, times the directories."""
        if self.fewest is None:
            return len(self.replicas) + len(self.future)
        return self.fewest * len(self.directories)

    @property
    def used(self) -> int | None:
        """Bytes that are not usable, whoever uses them."""
        if self.total is None or self.usable is None:
            return None
        return max(0, self.total - self.usable)

    @property
    def stored(self) -> int:
        """Bytes of all replicas."""
        return sum(self.replicas.values()) + sum(self.future.values())


class Projection(Struct, frozen=True):
    """What becomes of one disk."""

    disk: Disk
    added: float
    """Bytes that the changes add to it at most, infinite if nothing stops the growth; negative if
    they free more."""
    days: float | None
    """Days until it is full if all partitions are written as today; None if it never is, or if its
    size is unknown."""
    growth: float
    """Bytes a day that it gets today, of replicas that have not reached their ceilings."""

    @property
    def needed(self) -> float | None:
        """Bytes that are used once the changes have had their full effect; None if the size of the
        disk is unknown."""
        return None if self.disk.used is None else self.disk.used + self.added


def project_disk(disk: Disk, replicas: Sequence[Replica]) -> Projection:
    """What becomes of a disk. replicas: all that are on it before or after the changes."""
    # Old and new replicas exist together until the copies are complete, so what goes makes no room
    # for what is copied.
    copied = sum(max(0.0, replica.whole - replica.size) for replica in replicas)
    settled = [replica.settled for replica in replicas]
    stored = sum(replica.size for replica in replicas)
    added = max(copied, sum(settled) - stored)
    growing = list_growing(replicas)
    growth = sum(rate for _, rate in growing)
    if disk.total is None or disk.used is None:
        return Projection(disk, added, None, growth)
    start = sum(map(min, settled, (replica.whole for replica in replicas)))
    room = disk.total - disk.used - (start - stored)
    return Projection(disk, added, compute_days(room, growing), growth)


def list_growing(replicas: Iterable[Replica]) -> list[tuple[float, float]]:
    """Bytes up to the ceiling, and bytes a day, of each replica that still grows after the
    changes."""
    growing = []
    for replica in replicas:
        rate, ceiling = replica.after.rate, replica.after.ceiling if replica.stays else None
        if rate and ceiling is not None:
            headroom = ceiling - min(replica.whole, replica.settled)
            if headroom > 0:
                growing.append((headroom, rate))
    return growing


def compute_days(room: float, growing: Iterable[tuple[float, float]]) -> float | None:
    """Days until replicas that grow as today have taken this many bytes, 0 if they have already;
    None if they never do. growing: as `list_growing` lists them."""
    if room <= 0:
        return 0.0
    ends = sorted((headroom / rate, rate) for headroom, rate in growing)
    # Summed up from the end: no difference of large rates can swallow a small one.
    speeds = list(accumulate(rate for _, rate in reversed(ends)))
    day = 0.0
    for (end, _), speed in zip(ends, reversed(speeds), strict=True):
        if room <= speed * (end - day):
            return day + room / speed
        room -= speed * (end - day)
        day = end
    return None


def choose_disk(
    disks: Sequence[Disk], counts: Mapping[tuple[int, tuple[str, ...]], int]
) -> Disk | None:
    """The disk of one broker that gets its next replica; None if all are cordoned. counts: broker
    and directories of a disk -> its replicas."""
    # A broker takes the directory with the fewest replicas, however full it is
    # (LogManager.nextLogDirs).
    open_disks = [disk for disk in disks if not disk.cordoned]
    return min(
        open_disks,
        key=lambda disk: (
            counts[disk.broker, disk.directories] / len(disk.directories),
            disk.directories,
        ),
        default=None,
    )
