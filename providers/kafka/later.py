"""Kafka's other objects: what their blocks may say, for as long as they can only be checked.

Names and import ids are those of Terraform's Mongey provider where it has the type, so that what
was written for it is held against the real thing.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product

from kafkaform.core.dataclass import replace
from kafkaform.core.schema import (
    BOOL,
    NUMBER,
    STRING,
    Attribute,
    ObjectSchema,
    Type,
    list_of,
    map_of,
    object_of,
    schema,
    set_of,
)

PATTERN_TYPES = ("Literal", "Prefixed")
RESOURCE_TYPES = ("Topic", "Group", "Cluster", "TransactionalID", "DelegationToken", "User")
OPERATIONS = (
    "All",
    "Read",
    "Write",
    "Create",
    "Delete",
    "Alter",
    "Describe",
    "ClusterAction",
    "DescribeConfigs",
    "AlterConfigs",
    "IdempotentWrite",
    "CreateTokens",
    "DescribeTokens",
    "TwoPhaseCommit",
)
PERMISSIONS = ("Allow", "Deny")
MECHANISMS = ("SCRAM-SHA-256", "SCRAM-SHA-512")
ROLES = (
    "producer",
    "transactional_producer",
    "consumer",
    "streams",
    "connect",
    "admin",
    "custom",
)
ENTITY_TYPES = ("client-id", "user", "ip")
QUOTAS = (
    "producer_byte_rate, consumer_byte_rate, request_percentage, controller_mutation_rate; "
    "for an ip connection_creation_rate"
)

_ACL = (
    Attribute(
        "resource_name",
        STRING,
        "Name of the resource, or its prefix; kafka-cluster for the cluster.",
        aliases=("acl_resource_name",),
    ),
    Attribute(
        "resource_type",
        STRING,
        "Kind of the resource.",
        choices=RESOURCE_TYPES,
        aliases=("acl_resource_type",),
    ),
    Attribute("acl_principal", STRING, "Who: User:NAME, or User:* for everybody."),
    Attribute("acl_host", STRING, "From where: an address, or * for everywhere."),
    Attribute("acl_operation", STRING, "What may be done.", choices=OPERATIONS),
    Attribute("acl_permission_type", STRING, "Allow or Deny.", choices=PERMISSIONS),
)
"""What an ACL and a filter for ACLs have in common."""

_ENTITY = (
    Attribute("entity_type", STRING, "Kind of entity_name.", choices=ENTITY_TYPES),
    Attribute("entity_name", STRING, "Name of the entity. Left out: the default of its kind."),
    Attribute("user", STRING, "A user, or default."),
    Attribute("client_id", STRING, "A client id, or default."),
    Attribute("ip", STRING, "An address, or default."),
)
_ENTITY_FORMS = (
    *product(("entity_type", "entity_name"), ("user", "client_id", "ip")),
    ("ip", "user"),
    ("ip", "client_id"),
)

_CONFIG = Attribute("config", map_of(STRING), "Configs by name.")
_SECRET_CONFIG = (
    Attribute("secret_config", map_of(STRING), "Configs that hold secrets, by name.", secret=True),
    Attribute(
        "secret_config_version",
        STRING,
        "Any text; when it changes, secret_config is sent again.",
    ),
)


def _listed(what: str, fields: Mapping[str, Type]) -> tuple[Attribute, ...]:
    """The answer of a data source that lists."""
    return (
        Attribute("list", list_of(object_of(fields)), f"The {what}.", computed=True),
        Attribute("complete", BOOL, "Whether these are all that there are.", computed=True),
    )


LATER: Mapping[str, ObjectSchema] = {
    "kafka_acl": schema(
        "One access rule. The import id is acl_principal|acl_host|acl_operation|"
        "acl_permission_type|resource_type|resource_name|resource_pattern_type_filter.",
        *(replace(attribute, required=True) for attribute in _ACL),
        Attribute(
            "resource_pattern_type_filter",
            STRING,
            "Whether resource_name is a name or a prefix.",
            default="Literal",
            choices=PATTERN_TYPES,
        ),
    ),
    "kafka_access": schema(
        "What a principal needs for its role, as the ACLs that it stands for.",
        Attribute("principal", STRING, "Who: User:NAME.", required=True),
        Attribute("host", STRING, "From where: an address, or * for everywhere.", default="*"),
        Attribute("role", STRING, "What the principal does.", required=True, choices=ROLES),
        Attribute("topics", set_of(STRING), "Topics by name."),
        Attribute("topic_prefixes", set_of(STRING), "Topics whose names begin so."),
        Attribute("group", STRING, "A consumer group."),
        Attribute("groups", set_of(STRING), "Consumer groups."),
        Attribute("transactional_ids", set_of(STRING), "Transactional ids."),
        conflicts=(("group", "groups"),),
    ),
    "kafka_quota": schema(
        "Limits of a user, a client, both together, or an address: entity_type with entity_name, "
        "or user and client_id, or ip. The import id is entity_name|entity_type, or "
        "entity-default|entity_type.",
        *_ENTITY,
        Attribute("config", map_of(NUMBER), f"Limits by name: {QUOTAS}."),
        conflicts=_ENTITY_FORMS,
    ),
    "kafka_user_scram_credential": schema(
        "A user's SCRAM login. The import id is username|scram_mechanism.",
        Attribute("username", STRING, "Name of the user.", required=True),
        Attribute("scram_mechanism", STRING, "How it logs in.", required=True, choices=MECHANISMS),
        Attribute("scram_iterations", NUMBER, "Rounds of the hash.", default=4096, whole=True),
        Attribute(
            "password",
            STRING,
            "The password.",
            required=True,
            secret=True,
            aliases=("password_wo",),
        ),
        Attribute(
            "password_wo_version",
            STRING,
            "Any text; when it changes, the password is sent again.",
            aliases=("password_version",),
        ),
    ),
    "kafka_broker_config": schema(
        "Dynamic configs of one broker. The import id is the broker's id.",
        Attribute("broker_id", NUMBER, "Id of the broker.", required=True, whole=True),
        _CONFIG,
        *_SECRET_CONFIG,
    ),
    "kafka_cluster_config": schema(
        "Dynamic configs that all brokers share.", _CONFIG, *_SECRET_CONFIG
    ),
    "kafka_group_config": schema(
        "Configs of a consumer or share group. The import id is the group's name.",
        Attribute("group", STRING, "Name of the group.", required=True),
        replace(_CONFIG, required=True),
    ),
    "kafka_client_metrics": schema(
        "A subscription to clients' metrics (KIP-714). The import id is its name.",
        Attribute("name", STRING, "Name of the subscription.", required=True),
        replace(_CONFIG, required=True),
    ),
    "data.kafka_acls": schema(
        "The ACLs that fit every argument that is given.",
        *_ACL,
        Attribute(
            "resource_pattern_type_filter",
            STRING,
            "Any: both pattern types; Match: every pattern that covers resource_name.",
            choices=(*PATTERN_TYPES, "Any", "Match"),
        ),
        *_listed(
            "ACLs",
            {
                "resource_name": STRING,
                "resource_type": STRING,
                "resource_pattern_type_filter": STRING,
                "acl_principal": STRING,
                "acl_host": STRING,
                "acl_operation": STRING,
                "acl_permission_type": STRING,
            },
        ),
    ),
    "data.kafka_quotas": schema(
        "The quotas that fit every argument that is given.",
        *_ENTITY,
        *_listed(
            "quotas",
            {"user": STRING, "client_id": STRING, "ip": STRING, "config": map_of(NUMBER)},
        ),
        conflicts=_ENTITY_FORMS,
    ),
}
"""Resource types by name, data sources as `data.NAME` (see `Provider.later`)."""
