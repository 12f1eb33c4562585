"""Find out which release of Kafka a broker runs: no broker reports it.

Sources: the `validVersions` and listeners of Kafka's message definitions, and MetadataVersion, of
the releases 3.0 to 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping

LEVELS: Mapping[int, str] = {
    **{7: "3.3", 8: "3.4", 11: "3.5", 14: "3.6", 19: "3.7", 20: "3.8", 21: "3.9"},
    **{25: "4.0", 27: "4.1", 29: "4.2", 30: "4.3"},
}
"""Highest level of metadata.version that a release supports (KIP-584) -> the release."""

# Only versions that are stable in that release, that are on the listener of a broker both with
# ZooKeeper and with KRaft, and that do not depend on what the controller supports: a broker reports
# the requests that it forwards only as far as its controller knows them. No request that clients
# send changed with 3.4, but with ZooKeeper a broker lists the ones between brokers, too.
MARKS: Mapping[str, tuple[int, int]] = {
    "3.0": (2, 7),  # ListOffsets
    "3.1": (3, 12),  # Metadata
    "3.2": (11, 9),  # JoinGroup
    "3.3": (35, 4),  # DescribeLogDirs
    "3.4": (4, 7),  # LeaderAndIsr
    "3.5": (2, 8),  # ListOffsets
    "3.6": (24, 4),  # AddPartitionsToTxn
    "3.7": (60, 1),  # DescribeCluster
    "3.8": (16, 5),  # ListGroups
    "3.9": (18, 4),  # ApiVersions
    "4.0": (3, 13),  # Metadata
    "4.1": (0, 13),  # Produce
    "4.2": (2, 11),  # ListOffsets
    "4.3": (35, 5),  # DescribeLogDirs
}
"""Release -> number and version of an API that came with it."""

RELEASES = tuple(MARKS)
"""The releases that the tables of this provider describe, the oldest first."""
NEWEST = RELEASES[-1]
DRY_RUNS: Mapping[str, str] = {"CreatePartitions": "3.3", "CreateTopics": "3.1"}
"""API -> the first release whose KRaft controllers do not execute a request that has
`validate_only` set."""
LEADER_AND_ISR = 4
"""The number of a request that only brokers of a cluster with ZooKeeper know."""


def find_release(versions: Mapping[int, int], level: int | None) -> str | None:
    """The newest release whose features this broker has, None if it is older than 3.0 or no Apache
    Kafka. versions: number of each API -> its highest version at this broker; level: the highest
    metadata.version that it supports, None if it reports none."""
    # All brokers with KRaft report the level since 3.3. A level between two releases is that of a
    # build in between, which has at least what the older one has.
    if level is not None:
        candidates = [release for lowest, release in LEVELS.items() if lowest <= level]
        return candidates[-1] if candidates else None
    marks = [versions.get(api, -1) >= version for api, version in MARKS.values()]
    count = marks.index(False) if False in marks else len(marks)
    # Other systems that speak the protocol pick what they implement: a later mark without an
    # earlier one is none of Kafka's releases, and says nothing about configs.
    return RELEASES[count - 1] if count and not any(marks[count:]) else None


def is_newer(level: int | None) -> bool:
    """True if this level of metadata.version is of a release that the tables do not know."""
    return level is not None and level > max(LEVELS)


def is_before(release: str, reference: str) -> bool:
    """True if the first release is older than the second one."""
    return tuple(map(int, release.split("."))) < tuple(map(int, reference.split(".")))
