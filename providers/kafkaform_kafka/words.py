"""Kafka's terms for the engine's concepts (see `kafkaform.core.words`)."""

from __future__ import annotations

from kafkaform.core.value import FrozenMap
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
    kinds=FrozenMap(
        {
            "kafka_topic": "topics",
            "kafka_topic_config": "topic configs",
            "kafka_cluster_config": "cluster configs",
            "kafka_broker_config": "broker configs",
            "kafka_user_scram_credential": "SCRAM credentials",
            "kafka_acl": "ACLs",
            "kafka_quota": "quotas",
            "kafka_group_config": "group configs",
            "kafka_client_metrics": "client metrics subscriptions",
        }
    ),
)
