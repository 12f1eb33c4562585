"""Kafka's terms for the engine's concepts (see `kafkaform.core.words`)."""

from __future__ import annotations

from kafkaform.core.words import Words

# The engine must not know Kafka's words (tests/test_engine_words.py); its messages use these.
WORDS = Words(
    system="cluster",
    node="broker",
    address="bootstrap_servers",
    task="move",
    task_on_it="move of its replicas",
    working="moving",
    setting="throttle",
    held="throttled",
    kinds=(
        "kafka_topic",
        "kafka_topic_config",
        "kafka_cluster_config",
        "kafka_broker_config",
        "kafka_user_scram_credential",
        "kafka_acl",
        "kafka_quota",
        "kafka_group_config",
        "kafka_client_metrics",
    ),
)
