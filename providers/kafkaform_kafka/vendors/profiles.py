"""All profiles by name. It loads every table, so it is imported only where a profile applies."""

from __future__ import annotations

from collections.abc import Mapping

from . import (
    aiven,
    amazon_msk,
    amazon_msk_express,
    azure_event_hubs,
    confluent_cloud,
    redpanda,
    strimzi,
    warpstream,
)
from .profile import Profile

PROFILES: Mapping[str, Profile] = {
    profile.name: profile
    for profile in (
        aiven.PROFILE,
        amazon_msk.PROVISIONED,
        amazon_msk.SERVERLESS,
        amazon_msk_express.PROFILE,
        azure_event_hubs.PROFILE,
        confluent_cloud.PROFILE,
        redpanda.PROFILE,
        strimzi.PROFILE,
        warpstream.PROFILE,
    )
}
