"""All profiles by name. It loads every table, so it is imported only where a profile applies."""

from __future__ import annotations

from collections.abc import Mapping

from . import amazon_msk, managed_clusters, other_brokers
from .profile import Profile

PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        managed_clusters.AIVEN,
        amazon_msk.PROVISIONED,
        amazon_msk.SERVERLESS,
        amazon_msk.EXPRESS,
        other_brokers.AZURE_EVENT_HUBS,
        managed_clusters.CONFLUENT_CLOUD,
        other_brokers.REDPANDA,
        managed_clusters.STRIMZI,
        other_brokers.WARPSTREAM,
    )
}
