"""The features of a cluster: what their levels enable, and which Kafka release a level belongs to.

Sources: KIP-584 and KIP-1022, and the classes of `org.apache.kafka.server.common` that list the
levels (MetadataVersion, TransactionVersion, GroupVersion, …) up to Kafka 4.3.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum

from msgspec import Struct

from .releases import LEVELS

METADATA_VERSION = "metadata.version"


class UpgradeType(IntEnum):
    """The protocol's numbers for what an update of a level may do (KIP-778)."""

    UPGRADE = 1
    SAFE_DOWNGRADE = 2
    """Kafka refuses it if metadata would be lost."""
    UNSAFE_DOWNGRADE = 3


class Feature(Struct, frozen=True):
    """One feature."""

    enables: str
    """What its levels enable, a clause."""
    loss: str
    """What a lower level takes away, a clause."""
    one_way: str = ""
    """Why there may be no way back from a higher level, a clause; empty if there is one."""


FEATURES: Mapping[str, Feature] = {
    METADATA_VERSION: Feature(
        "the format of the cluster's metadata, and the requests between brokers",
        "metadata is lost that only the higher level can hold, and what needs it stops working",
        "a way back may not exist: Kafka refuses a downgrade that would lose metadata",
    ),
    "kraft.version": Feature(
        "1: controllers can be added and removed (KIP-853)",
        "controllers can no longer be added or removed",
        # QuorumController and UpdateFeatures refuse every lower level.
        "there is no way back: Kafka never lowers it again (KIP-853)",
    ),
    "transaction.version": Feature(
        "2: each transaction has its own epoch (KIP-890)",
        "late requests of an earlier transaction can again become part of the next one",
    ),
    "group.version": Feature(
        "1: consumers can use group.protocol=consumer (KIP-848)",
        "consumers with group.protocol=consumer can no longer join their groups",
    ),
    "eligible.leader.replicas.version": Feature(
        "1: replicas outside the ISR that have all data can lead (KIP-966)",
        "the cluster forgets which replicas outside the ISR have all data",
    ),
    "share.version": Feature(
        "1: share groups (KIP-932)",
        "share consumers can no longer join their groups",
    ),
    "streams.version": Feature(
        "1: Kafka Streams can use group.protocol=streams (KIP-1071)",
        "applications with group.protocol=streams can no longer join their groups",
    ),
}
"""The known features by name."""

UNKNOWN = Feature(
    "unknown to this version of kafkaform",
    "what only the higher level enables stops working",
    "whether it can be lowered again is not known",
)
"""What is said of a feature of a newer Kafka."""

_OLDEST = 4
"""The first level of metadata.version of Kafka 3.3, the lowest that can be set (KIP-778)."""


def find_level_release(level: int) -> str | None:
    """The release that brought this level of metadata.version, None for an unknown one."""
    # The levels below a release's highest one were made while it was developed.
    if level < _OLDEST:
        return None
    return next((release for last, release in sorted(LEVELS.items()) if level <= last), None)


def find_level(release: str) -> int | None:
    """The highest level of metadata.version of a release such as `4.1`; None for an unknown one."""
    return next((level for level, name in LEVELS.items() if name == release), None)


def render_level(name: str, level: int) -> str:
    """`27 (Kafka 4.1)` for metadata.version, the number for any other feature."""
    release = find_level_release(level) if name == METADATA_VERSION else None
    return f"{level} (Kafka {release})" if release else str(level)
