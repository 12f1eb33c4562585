"""What Kafka's users call what the engine talks about."""

from __future__ import annotations

from kafkaform.core.words import Words

WORDS = Words(
    system="cluster",
    node="broker",
    address="bootstrap_servers",
    task="move",
    task_on_it="move of its replicas",
    working="moving",
    setting="throttle",
    held="throttled",
)
