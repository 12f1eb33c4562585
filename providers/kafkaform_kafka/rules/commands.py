"""Rules of what only commands change: tokens, leaders, and moves that are stopped.

The commands find these themselves, because only they read what the findings are about.
"""

from __future__ import annotations

from kafkaform.core.finding import Harm, Level
from kafkaform.core.rule import Needs, Rule

TOKEN_CREATED = Rule(
    "token-created",
    "A delegation token is created",
    Level.CAUTION,
    Harm.ACCESS_GAINED,
    ("kafka_delegation_token",),
    Needs.BLOCK,
    "A login with a token has the principal of its owner (KIP-48), until the token expires.",
    "kafkaform alter delegation-tokens create --owner User:app",
    "Keep its file secret, and let it expire early.",
    proof="tests/cluster/kafka/test_token_logins.py::test_a_token_has_the_rights_of_its_owner",
)
TOKEN_EXPIRES = Rule(
    "token-expires",
    "The time of a delegation token changes",
    Level.NOTE,
    Harm.NONE,
    ("kafka_delegation_token",),
    Needs.OBJECT,
    "Brokers shorten periods beyond delegation.token.expiry.time.ms, and no token lives longer "
    "than its maximum (KIP-48).",
    "kafkaform alter delegation-tokens renew ID --period 1d",
    proof="tests/cluster/kafka/test_token_logins.py::test_a_time_is_shortened_to_what_the_broker_and_the_token_allow",
)
TOKEN_CONNECTIONS = Rule(
    "token-connections-stay",
    "Clients stay connected when their token ends",
    Level.NOTE,
    Harm.NONE,
    ("kafka_delegation_token",),
    Needs.OBJECT,
    "Brokers check a token at each login (KIP-48). An open connection ends when the token was to "
    "expire at the time of the login (KIP-368).",
    "kafkaform alter delegation-tokens expire ID",
    proof="tests/cluster/kafka/test_token_logins.py::test_a_token_that_has_ended",
)
LEADERS_ELECTED = Rule(
    "leaders-elected",
    "Preferred leaders are elected",
    Level.NOTE,
    Harm.NONE,
    ("kafka_topic_leaders",),
    Needs.OBJECT,
    "A partition pauses for a moment while its leader changes; a replica that is not in sync "
    "cannot lead (KIP-460).",
    "kafkaform alter leaders elect --topic orders",
    proof="tests/cluster/claims/test_replicas.py::test_a_replica_that_is_not_in_sync_is_not_elected",
)
MOVE_STOPPED = Rule(
    "move-stopped",
    "A move of replicas is stopped",
    Level.NOTE,
    Harm.NONE,
    ("kafka_topic",),
    Needs.OBJECT,
    "The replicas stay where they were before the move; what was copied is removed (KIP-455).",
    "kafkaform alter moves cancel --topic orders",
    proof="tests/cluster/kafka/test_placement.py::test_alter_stops_a_move_of_a_managed_topic",
)
NOTHING_TO_REMOVE = Rule(
    "config-not-set",
    "A config that is to be removed is not set",
    Level.CAUTION,
    Harm.NONE,
    ("kafka_topic", "kafka_topic_config", "kafka_broker_config", "kafka_cluster_config"),
    Needs.OBJECT,
    "Kafka accepts the removal of an override that does not exist, and changes nothing.",
    "kafkaform alter topic orders --delete-config retention.mss",
    "Check the name of the config.",
    proof="tests/cluster/claims/test_brokers.py::test_an_override_that_is_not_set_can_be_removed",
)
RULES = (
    LEADERS_ELECTED,
    MOVE_STOPPED,
    NOTHING_TO_REMOVE,
    TOKEN_CREATED,
    TOKEN_CONNECTIONS,
    TOKEN_EXPIRES,
)
"""The rows; no judge finds them."""
