"""The kinds of objects that this provider manages, one line for each folder of `kinds/`, and
Kafka's terms for the engine's concepts (see `kafkaform.core.words`)."""

from __future__ import annotations

from functools import partial

from kafkaform.core.value import FrozenMap
from kafkaform.core.words import KindWords, Words

from .kinds.acl import resource_type as acl
from .kinds.commanded import group_offsets
from .kinds.commanded import resource_types as commanded
from .kinds.config import resource_type as config
from .kinds.config.resource_type import BROKER, DEFAULTS, GROUP, METRICS, find_unit
from .kinds.kind import ResourceKind, defer
from .kinds.quota import resource_type as quota
from .kinds.quota.limits import find_quota_unit
from .kinds.topic import resource_type as topic
from .kinds.topic.configs import find_topic_unit
from .kinds.user import resource_type as user
from .protocol.acl import LISTED_GROUPS, LISTED_RIGHTS, describe_acl_key

_LISTINGS = "kafkaform_kafka.kinds.listings"

_DEFAULTS_UNIT, _BROKER_UNIT, _GROUP_UNIT, _METRICS_UNIT = (
    partial(find_unit, scope.find) for scope in (DEFAULTS, BROKER, GROUP, METRICS)
)

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
            "kafka_topic": KindWords("topics", ("name",), find_topic_unit),
            "kafka_topic_config": KindWords("topic configs", ("topic",), find_topic_unit),
            "kafka_topic_leaders": KindWords("topics with other leaders", ("topic",)),
            "kafka_delegation_token": KindWords("delegation tokens", ("token_id", "owner")),
            "kafka_feature": KindWords("features", ("name",)),
            "kafka_group_offsets": KindWords("groups with other offsets", ("group",)),
            "kafka_cluster_config": KindWords("cluster configs", (), _DEFAULTS_UNIT),
            "kafka_broker_config": KindWords("broker configs", ("broker_id",), _BROKER_UNIT),
            "kafka_user_scram_credential": KindWords("SCRAM credentials", ("username",)),
            "kafka_acl": KindWords(
                "ACLs", ("acl_principal", "resource_name"), sentence=describe_acl_key
            ),
            "kafka_quota": KindWords("quotas", ("entity",), find_quota_unit),
            "kafka_group_config": KindWords("group configs", ("group",), _GROUP_UNIT),
            "kafka_client_metrics": KindWords(
                "client metrics subscriptions", ("name",), _METRICS_UNIT
            ),
        }
    ),
)


KINDS: tuple[ResourceKind, ...] = (
    *topic.KINDS,
    *quota.KINDS,
    *user.KINDS,
    *acl.KINDS,
    *config.KINDS,
    *commanded.KINDS,
    *group_offsets.KINDS,
    # Only rules read these, so they have no type.
    ResourceKind(
        LISTED_RIGHTS,
        connect=defer(_LISTINGS, "requests:RIGHTS_REQUESTS"),
        simulate=defer(_LISTINGS, "simulation:SIMULATED_RIGHTS"),
    ),
    ResourceKind(
        LISTED_GROUPS,
        connect=defer(_LISTINGS, "requests:GROUP_REQUESTS"),
        simulate=defer(_LISTINGS, "simulation:SIMULATED_GROUPS"),
    ),
)
"""In the order of the documentation."""
