"""A simulated KRaft cluster, with a provider and sessions that reach it without a network.

In: the requests that the Kafka provider's resource types make, and mishaps on a schedule. Out: what
a real cluster would answer. Must not know: Kafka clients, sockets, real clocks, plans, state files.
"""

from kafkaform.core.clock import SimulatedClock

from ..kinds.simulation import (
    Ending,
    Killed,
    Mishap,
    killed_after,
    killed_before,
    late_effect,
    led_elsewhere,
    lost_reply,
    lost_request,
    not_sent,
    refused_items,
    replaced_cluster,
    throttled_items,
)
from ..kinds.topic.simulation import SimulatedTopic
from .cluster import SimulatedCluster
from .provider import MemoryProvider
from .session import MemorySession

__all__ = [
    "Ending",
    "Killed",
    "MemoryProvider",
    "MemorySession",
    "Mishap",
    "SimulatedClock",
    "SimulatedCluster",
    "SimulatedTopic",
    "killed_after",
    "killed_before",
    "late_effect",
    "led_elsewhere",
    "lost_reply",
    "not_sent",
    "refused_items",
    "replaced_cluster",
    "lost_request",
    "throttled_items",
]
