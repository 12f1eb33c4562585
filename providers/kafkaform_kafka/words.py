"""Kafka's terms for the engine's concepts (see `kafkaform.core.words`)."""

from __future__ import annotations

from kafkaform.core.value import FrozenMap
from kafkaform.core.words import KindWords, Words

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
            "kafka_topic": KindWords("topics", ("name",)),
            "kafka_topic_config": KindWords("topic configs", ("topic",)),
            "kafka_topic_leaders": KindWords("topics with other leaders", ("topic",)),
            "kafka_cluster_config": KindWords("cluster configs", ()),
            "kafka_broker_config": KindWords("broker configs", ("broker_id",)),
            "kafka_user_scram_credential": KindWords("SCRAM credentials", ("username",)),
            "kafka_acl": KindWords("ACLs", ("acl_principal", "resource_name")),
            "kafka_quota": KindWords("quotas", ("entity",)),
            "kafka_group_config": KindWords("group configs", ("group",)),
            "kafka_client_metrics": KindWords("client metrics subscriptions", ("name",)),
        }
    ),
)
