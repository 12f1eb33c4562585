"""The names of the profiles, which a provider block can contain.

Apart from the tables, because every command checks the provider block.
"""

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
