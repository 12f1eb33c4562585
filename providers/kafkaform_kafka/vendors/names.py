"""Short, because every command checks the provider block and must not load the tables: the names of
the profiles that a block can contain."""

from __future__ import annotations

APACHE = "apache"
"""The profile without rules: nothing but Apache Kafka's own."""

PROFILES = (
    APACHE,
    "aiven",
    "amazon-msk",
    "amazon-msk-express",
    "amazon-msk-serverless",
    "azure-event-hubs",
    "confluent-cloud",
    "redpanda",
    "strimzi",
    "warpstream",
)
