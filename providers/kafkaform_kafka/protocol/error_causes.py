"""The most likely cause of each error code that an admin request returns."""

from __future__ import annotations

from collections.abc import Mapping

_BUSY = "the controller is busy, or another one is taking over"
_DOWN = "a broker is down or restarts"
_GONE = "somebody deleted or recreated it"
_NO_RIGHT = "no ACL allows it to this principal, or one denies it"
_MOVING = "another tool, or an earlier run, moves replicas"
_OLD = "the brokers run an older version, or metadata.version has not been raised after an upgrade"

CAUSES: Mapping[int, str] = {
    -1: "a bug in the broker, or a broken disk",
    3: "a misspelt name, or somebody deleted it",
    5: _DOWN,
    7: _BUSY,
    8: _DOWN,
    17: "a character that topic names cannot have, or '.' against '_' in another topic's name",
    29: _NO_RIGHT,
    30: _NO_RIGHT,
    31: _NO_RIGHT,
    33: "sasl_mechanism is not in the listener's sasl.enabled.mechanisms",
    34: "a listener without SASL, or a proxy in front of it",
    35: _OLD,
    36: "somebody else created it, or an application that creates topics by itself",
    37: "somebody else added partitions",
    38: "brokers are down or fenced, or there are too few of them",
    39: "a broker of the assignment is down, fenced or gone",
    40: "a misspelt key, or a value that this broker version does not accept",
    41: _BUSY,
    42: "two parts of the declaration that exclude each other",
    44: "create.topic.policy.class.name, alter.config.policy.class.name, or over 10,000 records",
    53: _NO_RIGHT,
    54: "authorizer.class.name is not set on the brokers",
    55: "another item of the same request was refused",
    56: "a full or broken disk",
    57: "log.dirs of the broker was changed",
    58: "a wrong or changed password, or a user of another mechanism",
    60: _MOVING,
    61: "delegation.token.secret.key is not set on the brokers",
    62: "it expired, or somebody let it expire",
    63: "the token of another principal",
    64: "a login with a delegation token, or a connection without a login",
    65: _NO_RIGHT,
    66: "its lifetime is over, or nobody renewed it",
    67: "a principal written without its type",
    68: "its consumers are running",
    69: "its offsets expired, or it was never used",
    72: "the brokers do not all have the same listeners",
    73: "delete.topic.enable is false on the brokers",
    80: _DOWN,
    83: _DOWN,
    84: "somebody else elected it, or the broker did by itself",
    85: "the move has ended, or was cancelled",
    86: "its consumers are running",
    89: "many changes of partitions at once, by this or another run of the same user",
    91: _GONE,
    92: "a bug in kafkaform",
    93: "iterations out of bounds, or an empty password",
    95: "not all brokers have been upgraded",
    96: _BUSY,
    97: "principal.builder.class differs between brokers",
    100: _GONE,
    102: "a broker was removed, or its id is misspelt",
    104: "an address that now belongs to another cluster",
    105: "it expired (transactional.id.expiration.ms), or its name is misspelt",
    107: _DOWN,
    114: "the port of a controller",
    115: "the port of a controller",
    116: _BUSY,
    128: "a pattern with a feature that RE2 lacks",
    129: "all known brokers are gone",
}
"""Code -> cause. Codes that no admin request returns are missing: `error_codes` has one cause for
all of them."""
