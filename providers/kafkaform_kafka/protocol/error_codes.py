"""Every error code of the Kafka protocol (4.3), and what it says about an admin request."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.resource import FaultClass


class ErrorCode(Struct, frozen=True):
    """One error code."""

    number: int
    name: str
    """The protocol's name."""
    kind: FaultClass
    """What it says about the effect of the request."""
    meaning: str
    """One clause."""
    advice: str = ""
    """What to do next, or empty."""
    cause: str = ""
    """The most likely cause."""


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
    66: "its lifetime is over, or it was not renewed",
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
"""Code -> the most likely cause. Codes that no admin request returns are missing: all of them have
the cause `_FOREIGN`."""

_D, _N, _A = FaultClass.DEFINITE, FaultClass.NOT_APPLIED, FaultClass.AMBIGUOUS
_P, _C = FaultClass.PERMISSION, FaultClass.CONVERGED

_FOREIGN = "a broker that is newer than this kafkaform, or a proxy that is not a broker"
_READ_FIRST = "run the command again: it reads the object first and continues from there"
_GRANT = "ask for the missing right, or run as a principal that has it"
_BUG = "run the command again; if it fails again, report it with the audit log"
_CORRECT = "correct what the broker names; if you wrote none of it, report it with the audit log"
_TOKENS = "log in with SASL and without a token, or with a client certificate"
_OTHER_LISTENER = "put the listener of a broker into bootstrap_servers"
_WAIT = "wait until the cluster is healthy and run the command again"

# The codes that admin requests return.
_ADMIN = (
    # More than 10,000 metadata records in CreatePartitions, AlterPartitionReassignments or
    # AlterUserScramCredentials give -1, and a part of the request may be committed.
    ErrorCode(-1, "UNKNOWN_SERVER_ERROR", _A, "the broker failed while it handled the request",
         "look into the broker's log, then " + _READ_FIRST),
    # A broker that lags behind the controller gives 3 for a topic that was created a moment ago.
    ErrorCode(3, "UNKNOWN_TOPIC_OR_PARTITION", _D, "the topic or partition does not exist",
         "check the name, or wait if it was created a moment ago"),
    ErrorCode(5, "LEADER_NOT_AVAILABLE", _N, "a partition has no leader yet", _WAIT),
    # Two meanings: the request expired in the controller's queue and nothing happened, or the
    # broker stopped waiting for the controller's answer. Only a read can tell them apart.
    ErrorCode(7, "REQUEST_TIMED_OUT", _A,
              "the broker did not finish in time; it may still finish later",
         _READ_FIRST),
    ErrorCode(8, "BROKER_NOT_AVAILABLE", _N, "a broker is not available", _WAIT),
    ErrorCode(17, "INVALID_TOPIC_EXCEPTION", _D,
              "the topic name is invalid or collides with another one",
         "'.' and '_' count as equal in topic names: choose another name"),
    # Asked for a topic by name, a broker says 29 whether the topic is hidden or missing.
    ErrorCode(29, "TOPIC_AUTHORIZATION_FAILED", _P, "a right on the topic is missing", _GRANT),
    ErrorCode(30, "GROUP_AUTHORIZATION_FAILED", _P, "a right on the group is missing", _GRANT),
    ErrorCode(31, "CLUSTER_AUTHORIZATION_FAILED", _P, "a right on the cluster is missing", _GRANT),
    ErrorCode(33, "UNSUPPORTED_SASL_MECHANISM", _D, "the broker does not offer this SASL mechanism",
         "set sasl_mechanism to one that the listener has enabled"),
    ErrorCode(34, "ILLEGAL_SASL_STATE", _D, "a request came before the login was complete",
         "check security_protocol against the listener's protocol"),
    ErrorCode(35, "UNSUPPORTED_VERSION", _D, "the broker is too old for this request",
         "upgrade the cluster, or leave this change out"),
    ErrorCode(36, "TOPIC_ALREADY_EXISTS", _D, "a topic of this name exists",
         "import it, or choose another name"),
    # CreatePartitions to the count that a topic has already fails with 37: it is not idempotent.
    ErrorCode(37, "INVALID_PARTITIONS", _D, "the number of partitions is not possible",
         "Kafka can add partitions but never remove them; plan again to see the live number"),
    # Fenced brokers do not count, so a cluster that restarts gives 38 for a while.
    ErrorCode(38, "INVALID_REPLICATION_FACTOR", _D,
              "there are not enough live brokers for the replicas",
         "lower replication_factor, or bring the missing brokers back"),
    ErrorCode(39, "INVALID_REPLICA_ASSIGNMENT", _D, "the replica assignment is not possible",
         "name registered brokers, each once per partition, and equally many for each partition"),
    ErrorCode(40, "INVALID_CONFIG", _D, "the broker refuses a config key or its value",
         "correct the value that the broker names"),
    # Brokers forward admin requests (KIP-590), so this is no wrong address: the controller failed
    # over while the batch waited for its commit, and the batch may have been committed.
    ErrorCode(41, "NOT_CONTROLLER", _A, "the controller changed while it handled the request",
         _READ_FIRST),
    ErrorCode(42, "INVALID_REQUEST", _D, "the broker refuses the request", _CORRECT),
    # Of a policy class (KIP-108), and of a request with over 10,000 metadata records.
    ErrorCode(44, "POLICY_VIOLATION", _D, "a policy of the cluster forbids this",
         "change the declaration so that the policy allows it, or ask the cluster's operators"),
    ErrorCode(53, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", _P,
              "a right on the transactional id is missing", _GRANT),
    ErrorCode(54, "SECURITY_DISABLED", _D,
              "the cluster has no authorizer, so it does not store ACLs",
         "configure an authorizer on the brokers, or remove the ACLs from the configuration"),
    ErrorCode(55, "OPERATION_NOT_ATTEMPTED", _N, "the broker did not start with this item",
         "run the command again"),
    ErrorCode(56, "KAFKA_STORAGE_ERROR", _A, "a disk of the broker failed",
              "repair the broker's disk"),
    ErrorCode(57, "LOG_DIR_NOT_FOUND", _D, "the broker has no such log directory",
         "name one of the broker's log.dirs"),
    ErrorCode(58, "SASL_AUTHENTICATION_FAILED", _D, "the login was refused",
         "check sasl_mechanism, sasl_username and sasl_password"),
    ErrorCode(60, "REASSIGNMENT_IN_PROGRESS", _D, "partitions of the topic are being moved",
         "wait until the reassignment is over, then plan again"),
    ErrorCode(61, "DELEGATION_TOKEN_AUTH_DISABLED", _D, "delegation tokens are not enabled",
         "set delegation.token.secret.key on all brokers and controllers"),
    ErrorCode(62, "DELEGATION_TOKEN_NOT_FOUND", _D, "there is no such delegation token",
         "`kafkaform describe delegation-tokens` lists those that this principal can see"),
    # Neither a renew nor an expire needs an ACL, so no right would help (KIP-48).
    ErrorCode(63, "DELEGATION_TOKEN_OWNER_MISMATCH", _P,
              "this principal is neither owner nor renewer of the delegation token",
         "run as its owner or as one of its renewers"),
    ErrorCode(64, "DELEGATION_TOKEN_REQUEST_NOT_ALLOWED", _D,
              "delegation tokens cannot be managed over this connection",
         _TOKENS),
    ErrorCode(65, "DELEGATION_TOKEN_AUTHORIZATION_FAILED", _P, "a right on the token is missing",
         _GRANT),
    ErrorCode(66, "DELEGATION_TOKEN_EXPIRED", _D, "the delegation token has expired",
         "create another one"),
    ErrorCode(67, "INVALID_PRINCIPAL_TYPE", _D, "principals of this type are not supported",
         "write the principal as User:NAME"),
    ErrorCode(68, "NON_EMPTY_GROUP", _D, "the group has members", "stop its consumers first"),
    ErrorCode(69, "GROUP_ID_NOT_FOUND", _D, "there is no such group",
         "check the name; a group exists as long as it has members or offsets"),
    ErrorCode(72, "LISTENER_NOT_FOUND", _N, "a leader lacks the listener that was asked", _WAIT),
    ErrorCode(73, "TOPIC_DELETION_DISABLED", _D, "the cluster forbids deleting topics",
         "set delete.topic.enable=true on the brokers, or keep the topic"),
    ErrorCode(80, "PREFERRED_LEADER_NOT_AVAILABLE", _N, "the preferred leader is not in sync",
              _WAIT),
    ErrorCode(83, "ELIGIBLE_LEADERS_NOT_AVAILABLE", _N, "no replica can become the leader", _WAIT),
    ErrorCode(84, "ELECTION_NOT_NEEDED", _C, "the partition already has the wanted leader"),
    ErrorCode(85, "NO_REASSIGNMENT_IN_PROGRESS", _C, "no reassignment of the partition is running"),
    ErrorCode(86, "GROUP_SUBSCRIBED_TO_TOPIC", _D, "the group reads the topic",
         "stop its consumers first"),
    # Only CreateTopics v6, DeleteTopics v5 and CreatePartitions v3 report it (KIP-599). With older
    # versions, which librdkafka uses, the broker mutes the connection instead.
    ErrorCode(89, "THROTTLING_QUOTA_EXCEEDED", _N, "the controller mutation quota is used up",
         "wait as long as the broker asks, or ask for a higher controller_mutation_rate"),
    ErrorCode(91, "RESOURCE_NOT_FOUND", _D, "the object does not exist",
         "plan again to see what is there now"),
    # Also for a user's two SCRAM mechanisms in one request (KIP-554).
    ErrorCode(92, "DUPLICATE_RESOURCE", _D, "one request names the same object twice", _BUG),
    ErrorCode(93, "UNACCEPTABLE_CREDENTIAL", _D, "the credential is not acceptable",
         "use 4096 to 16384 iterations and a password that is not empty"),
    ErrorCode(95, "INVALID_UPDATE_VERSION", _D, "the feature level is not possible",
         "choose a level that all brokers support"),
    ErrorCode(96, "FEATURE_UPDATE_FAILED", _A, "the feature could not be updated", _READ_FIRST),
    ErrorCode(97, "PRINCIPAL_DESERIALIZATION_FAILURE", _D,
              "a broker could not pass on the principal of the request",
         "check the brokers' principal builder"),
    # By id (KIP-516): what a delete gets for a topic that was recreated under the same name.
    ErrorCode(100, "UNKNOWN_TOPIC_ID", _D, "no topic has this id",
         "the topic was deleted or recreated: plan again"),
    ErrorCode(102, "BROKER_ID_NOT_REGISTERED", _D, "no broker of this id is registered",
         "name the id of a live broker"),
    ErrorCode(104, "INCONSISTENT_CLUSTER_ID", _D, "the request was meant for another cluster",
         "check bootstrap_servers"),
    ErrorCode(105, "TRANSACTIONAL_ID_NOT_FOUND", _D, "there is no such transactional id",
         "check the name; brokers forget a transactional id that is not used for a week"),
    ErrorCode(107, "INELIGIBLE_REPLICA", _N, "a replica cannot join the in-sync replicas", _WAIT),
    # A controller's listener serves some admin requests itself since KIP-919.
    ErrorCode(114, "MISMATCHED_ENDPOINT_TYPE", _D,
              "this is the listener of a controller, not of a broker",
         _OTHER_LISTENER),
    ErrorCode(115, "UNSUPPORTED_ENDPOINT_TYPE", _D, "this listener refuses admin requests",
         _OTHER_LISTENER),
    ErrorCode(116, "UNKNOWN_CONTROLLER_ID", _D, "no controller has this id", _READ_FIRST),
    ErrorCode(128, "INVALID_REGULAR_EXPRESSION", _D, "the regular expression is not valid",
         "correct the regular expression (RE2 syntax)"),
    ErrorCode(129, "REBOOTSTRAP_REQUIRED", _N,
              "the client must start again from its bootstrap servers",
         "run the command again"),
)  # fmt: skip

# Codes of produce, fetch, group and quorum requests. As an answer to an admin request they make no
# sense, so all of them are AMBIGUOUS: the object is read before anything is decided.
_OTHERS = {
    1: ("OFFSET_OUT_OF_RANGE", "the offset is outside the log"),
    2: ("CORRUPT_MESSAGE", "a message is damaged or lacks its key"),
    4: ("INVALID_FETCH_SIZE", "the fetch size is invalid"),
    6: ("NOT_LEADER_OR_FOLLOWER", "the broker is neither leader nor follower of this partition"),
    9: ("REPLICA_NOT_AVAILABLE", "a replica is not available"),
    10: ("MESSAGE_TOO_LARGE", "a message is larger than the broker accepts"),
    11: ("STALE_CONTROLLER_EPOCH", "a newer controller has taken over"),
    12: ("OFFSET_METADATA_TOO_LARGE", "the text stored with an offset is too long"),
    13: ("NETWORK_EXCEPTION", "the connection broke before the answer came"),
    14: ("COORDINATOR_LOAD_IN_PROGRESS", "the coordinator is still loading"),
    15: ("COORDINATOR_NOT_AVAILABLE", "the coordinator is not available"),
    16: ("NOT_COORDINATOR", "another broker coordinates this"),
    18: ("RECORD_LIST_TOO_LARGE", "a batch is larger than a log segment"),
    19: ("NOT_ENOUGH_REPLICAS", "too few replicas are in sync"),
    20: ("NOT_ENOUGH_REPLICAS_AFTER_APPEND", "too few replicas were in sync after the write"),
    21: ("INVALID_REQUIRED_ACKS", "the wanted number of acknowledgements is invalid"),
    22: ("ILLEGAL_GENERATION", "the group generation is out of date"),
    23: ("INCONSISTENT_GROUP_PROTOCOL", "the member's protocols do not fit the group"),
    24: ("INVALID_GROUP_ID", "the group id is invalid"),
    25: ("UNKNOWN_MEMBER_ID", "the coordinator does not know the group member"),
    26: ("INVALID_SESSION_TIMEOUT", "the session timeout is out of range"),
    27: ("REBALANCE_IN_PROGRESS", "the group is rebalancing"),
    28: ("INVALID_COMMIT_OFFSET_SIZE", "the committed offset data is too large"),
    32: ("INVALID_TIMESTAMP", "a timestamp is out of range"),
    43: ("UNSUPPORTED_FOR_MESSAGE_FORMAT", "the message format does not support this"),
    45: ("OUT_OF_ORDER_SEQUENCE_NUMBER", "a producer's sequence has a gap"),
    46: ("DUPLICATE_SEQUENCE_NUMBER", "a producer's sequence number arrived twice"),
    47: ("INVALID_PRODUCER_EPOCH", "the producer's epoch is old"),
    48: ("INVALID_TXN_STATE", "the transaction is not in a state that allows this"),
    49: ("INVALID_PRODUCER_ID_MAPPING", "the producer id does not belong to this transactional id"),
    50: ("INVALID_TRANSACTION_TIMEOUT", "the transaction timeout is over the limit"),
    51: ("CONCURRENT_TRANSACTIONS", "another change of the transaction is running"),
    52: ("TRANSACTION_COORDINATOR_FENCED", "another transaction coordinator has taken over"),
    59: ("UNKNOWN_PRODUCER_ID", "the broker no longer knows the producer"),
    70: ("FETCH_SESSION_ID_NOT_FOUND", "there is no such fetch session"),
    71: ("INVALID_FETCH_SESSION_EPOCH", "the fetch session has another epoch"),
    74: ("FENCED_LEADER_EPOCH", "the request's leader epoch is old"),
    75: ("UNKNOWN_LEADER_EPOCH", "the broker does not know the leader epoch yet"),
    76: ("UNSUPPORTED_COMPRESSION_TYPE", "the client cannot read this compression"),
    77: ("STALE_BROKER_EPOCH", "the broker has registered again"),
    78: ("OFFSET_NOT_AVAILABLE", "a new leader does not know its offsets yet"),
    79: ("MEMBER_ID_REQUIRED", "the member must ask for an id first"),
    81: ("GROUP_MAX_SIZE_REACHED", "the group is full"),
    82: ("FENCED_INSTANCE_ID", "another member took this instance id"),
    87: ("INVALID_RECORD", "a record was refused by the broker"),
    88: ("UNSTABLE_OFFSET_COMMIT", "offsets of an open transaction are pending"),
    90: ("PRODUCER_FENCED", "a newer producer took the transactional id"),
    94: ("INCONSISTENT_VOTER_SET", "the sender or receiver is not an expected voter"),
    98: ("SNAPSHOT_NOT_FOUND", "the snapshot does not exist"),
    99: ("POSITION_OUT_OF_RANGE", "the position is outside the snapshot"),
    101: ("DUPLICATE_BROKER_REGISTRATION", "the broker id is in use"),
    103: ("INCONSISTENT_TOPIC_ID", "the log belongs to another topic id"),
    106: ("FETCH_SESSION_TOPIC_ID_ERROR", "the fetch session mixes topic ids"),
    108: ("NEW_LEADER_ELECTED", "the leader changed meanwhile"),
    109: ("OFFSET_MOVED_TO_TIERED_STORAGE", "the offset lies in remote storage now"),
    110: ("FENCED_MEMBER_EPOCH", "the member must join the group again"),
    111: ("UNRELEASED_INSTANCE_ID", "another member still uses the instance id"),
    112: ("UNSUPPORTED_ASSIGNOR", "the group does not support the assignor"),
    113: ("STALE_MEMBER_EPOCH", "the member's epoch is old"),
    117: ("UNKNOWN_SUBSCRIPTION_ID", "the telemetry subscription is out of date"),
    118: ("TELEMETRY_TOO_LARGE", "the telemetry is larger than the broker accepts"),
    119: ("INVALID_REGISTRATION", "the controller refused a broker's registration"),
    120: ("TRANSACTION_ABORTABLE", "the transaction failed and can be aborted"),
    121: ("INVALID_RECORD_STATE", "the record cannot be acknowledged in this state"),
    122: ("SHARE_SESSION_NOT_FOUND", "there is no such share session"),
    123: ("INVALID_SHARE_SESSION_EPOCH", "the share session has another epoch"),
    124: ("FENCED_STATE_EPOCH", "the share group's state epoch is old"),
    125: ("INVALID_VOTER_KEY", "the voter has another key"),
    126: ("DUPLICATE_VOTER", "this node is a voter already"),
    127: ("VOTER_NOT_FOUND", "there is no such voter"),
    130: ("STREAMS_INVALID_TOPOLOGY", "the streams topology is invalid"),
    131: ("STREAMS_INVALID_TOPOLOGY_EPOCH", "the streams topology's epoch is invalid"),
    132: ("STREAMS_TOPOLOGY_FENCED", "the streams topology is out of date"),
    133: ("SHARE_SESSION_LIMIT_REACHED", "there are too many share sessions"),
}


CODES: Mapping[int, ErrorCode] = {
    code.number: replace(code, cause=CAUSES.get(code.number, _FOREIGN))
    for code in (
        *_ADMIN,
        *(ErrorCode(n, name, _A, meaning, _READ_FIRST) for n, (name, meaning) in _OTHERS.items()),
    )
}
"""Number -> code."""
