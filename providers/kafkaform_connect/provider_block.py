"""The schema of the provider block, and Kafka Connect's words for the engine's concepts."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from kafkaform.core.diagnostics import Diagnostic
from kafkaform.core.schema import STRING, AttributeSchema, make_schema
from kafkaform.core.value import FrozenMap
from kafkaform.core.words import KindWords, Words
from kafkaform.provider.http import settings

# A worker gives up a request after 90 s (RestServerConfig), but what it has queued can be executed
# later: the thread that does it waits for a rebalance for at most `rebalance.timeout.ms`, 60 s.
OPERATION_TIMEOUT = 150
"""Seconds."""

WORDS = Words(
    system="Connect cluster",
    node="worker",
    address="url",
    task="startup",
    task_on_it="startup",
    working="starting",
    kinds=FrozenMap(
        {
            "kafka_connect_connector": KindWords("connectors", ("name",)),
            "kafka_connect_offsets": KindWords("connectors with other offsets", ("connector",)),
        }
    ),
)


def _adapt(attribute: AttributeSchema) -> AttributeSchema:
    if attribute.name != "operation_timeout":
        return attribute
    doc = (
        "How long one request can take, and be executed after its answer was lost: seconds, or "
        "text such as 30s or 2m."
    )
    return replace(attribute, doc=doc, default=OPERATION_TIMEOUT)


CONFIG = make_schema(
    "A connection to one Kafka Connect cluster.",
    *map(_adapt, settings.ATTRIBUTES),
    AttributeSchema(
        "group_id",
        STRING,
        "The group.id of the workers. Needed if several Connect clusters use the same Kafka "
        "cluster: it tells them apart, and is compared with the workers.",
    ),
    AttributeSchema(
        "worker_principal",
        STRING,
        "The principal of the workers in the Kafka cluster, such as User:connect. With it a plan "
        "tells which rights a connector lacks there.",
    ),
)


def check(config: FrozenMap) -> Sequence[tuple[str, Diagnostic]]:
    """Faults of a block that its schema cannot express."""
    return settings.find_faults(config)
