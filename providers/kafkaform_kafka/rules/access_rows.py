"""The rows of `access` and `lockouts`: who gains and loses what by the ACL changes of a plan."""

from __future__ import annotations

from kafkaform.core.finding import Block, Harm, Level
from kafkaform.core.rule import Needs, Rule

from ..kinds.user import resource_type as users
from ..protocol import acl as acls

_PROOFS = "tests/cluster/claims/test_access.py"
_EXPLAIN = "Use `kafkaform explain access` to check one."
_REVIEW_GAIN = "Name the resources and operations that the client needs."


def _make_row(
    id: str,
    title: str,
    level: Level,
    harm: Harm,
    reason: str,
    example: str,
    fix: str = "",
    proof: str = "",
    *,
    block: Block | None = None,
    accept: bool = False,
    types: tuple[str, ...] = (acls.KIND,),
    needs: Needs = Needs.PLAN,
) -> Rule:
    proof_id = f"{_PROOFS}::{proof}" if proof else ""
    return Rule(
        id, title, level, harm, types, needs, reason, example, fix, block, accept, proof_id
    )  # fmt: skip


def _acl(principal: str, operation: str, resource: str, permission: str = "Allow") -> str:
    return (
        f'resource "kafka_acl" "x" {{ acl_principal = "{principal}", acl_operation = '
        f'"{operation}", acl_permission_type = "{permission}", {resource}, … }}'
    )


_CLUSTER = 'resource_type = "Cluster"'
_ORDERS = 'resource_type = "Topic", resource_name = "orders"'
_DELETED = "   # deleted"

# ── gains, the first that fits decides ──────────────────────────────────────────────────

EVERYBODY = _make_row(
    "access-gained-by-everybody",
    "Everybody gains access",
    Level.DANGER,
    Harm.ACCESS_GAINED,
    "An ACL of User:* applies to every principal, also to those that log in for the first time "
    "(AclEntry.WILDCARD_PRINCIPAL_STRING).",
    _acl("User:*", "Read", _ORDERS),
    "Name the principals that need it.",
    "test_everybody_gains_what_user_star_is_allowed",
)
DENY_REMOVED = _make_row(
    "access-deny-removed",
    "A DENY goes away",
    Level.DANGER,
    Harm.ACCESS_GAINED,
    "A DENY is stronger than every ALLOW (StandardAuthorizerData), so without it all ALLOWs that "
    "it overrode apply again.",
    _acl("User:app", "Read", _ORDERS, "Deny") + _DELETED,
    "Delete the ALLOWs that it overrode as well, unless they are meant to apply.",
    "test_a_removed_deny_lets_the_allow_apply",
)
EVERYTHING = _make_row(
    "access-gained-everything",
    "A principal gains everything on a resource",
    Level.DANGER,
    Harm.ACCESS_GAINED,
    "All stands for every operation of the resource type, also deletion and changes of configs "
    "(AclOperation.ALL).",
    _acl("User:app", "All", _ORDERS),
    "Name the operations that the client needs.",
    "test_all_gives_every_operation",
)
CLUSTER = _make_row(
    "access-gained-on-cluster",
    "A principal gains access to the cluster itself",
    Level.DANGER,
    Harm.ACCESS_GAINED,
    "Operations on the cluster reach every object: Alter changes ACLs and users, Create and Delete "
    "apply to every topic, Describe lists all groups (KafkaApis, ControllerApis). With ZooKeeper, "
    "Delete on the cluster deletes no topic.",
    _acl("User:app", "Delete", _CLUSTER),
    _REVIEW_GAIN,
    "test_delete_on_the_cluster_deletes_every_topic",
)
EVERY = _make_row(
    "access-gained-widely",
    "A principal gains access to every resource of a type",
    Level.DANGER,
    Harm.ACCESS_GAINED,
    "The literal name * covers every resource of the type, also those that are created later "
    "(ResourcePattern.WILDCARD_RESOURCE).",
    _acl("User:app", "Read", 'resource_type = "Topic", resource_name = "*"'),
    _REVIEW_GAIN,
    "test_the_name_star_covers_topics_that_are_created_later",
)
ADMINISTRATION = _make_row(
    "access-gained-administration",
    "A principal can change settings, or act for others",
    Level.DANGER,
    Harm.ACCESS_GAINED,
    "Alter and AlterConfigs on a topic change its partitions and delete data by a shorter "
    "retention. ClusterAction is for brokers, which read every record. CreateTokens gives a login "
    "as another user (KIP-373).",
    _acl("User:app", "AlterConfigs", _ORDERS),
    _REVIEW_GAIN,
    "test_alter_configs_on_a_topic_deletes_records",
)
PREFIX = _make_row(
    "access-gained-by-prefix",
    "A principal gains access to all resources with a prefix",
    Level.CAUTION,
    Harm.ACCESS_GAINED,
    "A prefix covers every name that begins with it, also those of others and those that are "
    "created later (KIP-290).",
    _acl("User:app", "Read", 'resource_name = "shop", resource_pattern_type_filter = "Prefixed"'),
    'End the prefix with a separator, such as "shop.", so that it covers only your names.',
    "test_a_prefix_covers_topics_that_are_created_later",
)
NEW_LOGIN = _make_row(
    "access-gained-by-new-login",
    "A new login has rights from the start",
    Level.CAUTION,
    Harm.ACCESS_GAINED,
    "ACLs name principals, whether they can log in or not: with its first password, a user has all "
    "that ACLs allowed its name before.",
    'resource "kafka_user_scram_credential" "app" { username = "app", … }   # User:app has ACLs',
    "Delete ACLs that are left from an earlier user of that name.",
    "test_a_new_login_has_the_rights_of_its_name",
    types=(users.KIND,),
)
NAMED = _make_row(
    "access-gained",
    "A principal gains access to a named resource",
    Level.NOTE,
    Harm.ACCESS_GAINED,
    "An ALLOW permits its operation, and Describe or DescribeConfigs with those that imply them "
    "(AclEntry, StandardAuthorizerData).",
    _acl("User:app", "Read", _ORDERS),
    proof="test_a_right_on_a_named_topic_is_gained",
)
GAIN_UNCHECKED = _make_row(
    "access-gained-unchecked",
    "Some that may gain access were not checked",
    Level.NOTE,
    Harm.ACCESS_GAINED,
    "An ACL for many concerns everybody whom other ACLs name, and a plan asks about the first of "
    "them only.",
    _acl("User:*", "Read", 'resource_type = "Topic", resource_name = "*"'),
    _EXPLAIN,
)

# ── losses ──────────────────────────────────────────────────────────────────────────────

LOST_WIDELY = _make_row(
    "access-lost-widely",
    "Access to much is lost, or everybody loses it",
    Level.DANGER,
    Harm.ACCESS_LOST,
    "Clients that use it are refused with an authorization error from the next request on, also "
    "those that are connected.",
    _acl("User:*", "Read", _ORDERS, "Deny"),
    "Make sure that no client needs it.",
    "test_everybody_loses_what_user_star_is_denied",
)
LOST = _make_row(
    "access-lost",
    "A principal loses access",
    Level.DANGER,
    Harm.ACCESS_LOST,
    "Clients that use it are refused with an authorization error from the next request on, also "
    "those that are connected.",
    _acl("User:app", "Read", _ORDERS) + _DELETED,
    "Stop the clients that use it first, or keep the ACL.",
    "test_a_connected_client_is_refused_after_a_loss",
)
CLOSED = _make_row(
    "access-closed",
    "The first ACL of an open resource closes it",
    Level.DANGER,
    Harm.ACCESS_LOST,
    "With allow.everyone.if.no.acl.found = true, a resource is open until an ACL covers it, "
    "whatever principal that ACL names (StandardAuthorizerData).",
    _acl("User:app", "Read", _ORDERS) + "   # the topic has no other ACL",
    "Add ACLs for all that use it in the same plan.",
    "test_the_first_acl_of_an_open_topic_closes_it",
)
PRODUCERS_CLOSED = _make_row(
    "access-closed-to-producers",
    "Idempotent producers of all topics lose access",
    Level.DANGER,
    Harm.ACCESS_LOST,
    "Brokers let in an idempotent producer that can write to some topic, and ask about a topic "
    "called `hardcode` (KIP-679, Authorizer.authorizeByResourceType). In an open cluster, the "
    "first ACL that covers this name refuses producers without an ACL for Write; with ZooKeeper, "
    "it refuses nobody.",
    _acl("User:app", "Read", 'resource_name = "h", resource_pattern_type_filter = "Prefixed"'),
    "Allow IdempotentWrite on the cluster for those producers, or Write on their topics.",
    "test_an_acl_that_covers_one_name_shuts_out_idempotent_producers",
)
LOSS_UNCHECKED = _make_row(
    "access-lost-unchecked",
    "Some that may lose access were not checked",
    Level.CAUTION,
    Harm.ACCESS_LOST,
    "An ACL for many concerns everybody whom other ACLs name, and a plan asks about the first of "
    "them only. An apply counts any ACL change there since the plan as a loss that was not shown.",
    _acl("User:*", "Read", 'resource_type = "Topic", resource_name = "*"', "Deny"),
    _EXPLAIN,
)

# ── neither ─────────────────────────────────────────────────────────────────────────────

UNCHANGED = _make_row(
    "access-unchanged",
    "An ACL changes nobody's access",
    Level.NOTE,
    Harm.NONE,
    "A DENY overrides an ALLOW, and what another ACL gives is not gained by one more.",
    _acl("User:app", "Read", _ORDERS) + "   # a DENY of All is there",
    proof="test_an_allow_under_a_deny_gives_nothing",
)
HIDDEN = _make_row(
    "access-hides-object",
    "An ACL of the same state hides an object",
    Level.NOTE,
    Harm.NONE,
    "Without Describe, brokers answer as if a topic did not exist.",
    _acl("User:ci", "Describe", _ORDERS, "Deny") + "   # ci runs the plan",
    proof="test_a_deny_of_describe_hides_a_topic",
    types=(),
)
ASSUMED = _make_row(
    "access-assumed",
    "Gains and losses rest on an assumption",
    Level.CAUTION,
    Harm.NONE,
    "Brokers hide the values of super.users and allow.everyone.if.no.acl.found "
    "(ConfigHelper: keys without a definition are sensitive).",
    'provider "kafka" { … }   # without an authorizer block',
    fix="State super_users and allow_if_no_acl in the authorizer block of the provider.",
    proof="test_brokers_list_the_settings_of_the_authorizer_without_values",
)
PRINCIPAL_UNKNOWN = _make_row(
    "access-principal-unknown",
    "The current principal is unknown",
    Level.CAUTION,
    Harm.NONE,
    "Brokers do not say as whom a client logs in: the principal follows from a certificate, a "
    "token or a mapping.",
    'provider "kafka" { security_protocol = "SSL", … }   # without principal',
    "Set principal in the provider block.",
)
MISMATCH = _make_row(
    "access-mismatch",
    "The cluster decides otherwise than its ACLs say",
    Level.CAUTION,
    Harm.NONE,
    "Brokers report the rights of the current principal (KIP-430). If these are others than the "
    "ACLs give, the plan's statements about access can be wrong.",
    'authorizer { super_users = ["User:nobody"] }   # admin is one',
    "Find the cause: another authorizer class, a super user that is missing in authorizer "
    "{ super_users }, or a principal mapping (then set principal).",
    "test_a_wrong_declaration_of_super_users_is_a_mismatch",
)
NEWER_CODES = _make_row(
    "access-newer-acls",
    "Some ACLs are newer than kafkaform",
    Level.CAUTION,
    Harm.NONE,
    "An operation or a resource type that a later version of Kafka added has a code without a "
    "name here.",
    "An ACL with an operation of a later version of Kafka.",
    "Upgrade kafkaform.",
)
ORDER = _make_row(
    "access-order",
    "ACLs are created and deleted in the same run",
    Level.NOTE,
    Harm.NONE,
    "The requests for creates and for deletes are different ones (KIP-140), so there is a moment "
    "between them.",
    'acl_order = "delete_first"',
)

# ── what live ACLs give ─────────────────────────────────────────────────────────────────

HELD_BY_EVERYBODY = _make_row(
    "access-held-by-everybody",
    "Everybody has access",
    Level.DANGER,
    Harm.NONE,
    "An ACL of User:* applies to every principal, also to those that log in for the first time "
    "(AclEntry.WILDCARD_PRINCIPAL_STRING).",
    _acl("User:*", "Read", _ORDERS) + "   # a live ACL",
    "Name the principals that need it.",
    "test_everybody_gains_what_user_star_is_allowed",
    needs=Needs.LIVE,
)
HELD_WIDELY = _make_row(
    "access-held-widely",
    "A principal has access to the cluster itself, or to every resource of a type",
    Level.CAUTION,
    Harm.NONE,
    "Operations on the cluster reach every object, and the literal name * covers every resource of "
    "the type, also those that are created later (ResourcePattern.WILDCARD_RESOURCE).",
    _acl("User:app", "Read", 'resource_type = "Topic", resource_name = "*"') + "   # a live ACL",
    _REVIEW_GAIN,
    "test_the_name_star_covers_topics_that_are_created_later",
    needs=Needs.LIVE,
)

# ── blocks ──────────────────────────────────────────────────────────────────────────────

UNREAD = _make_row(
    "access-unread",
    "The ACLs could not be read",
    Level.BLOCK,
    Harm.ACCESS_LOST,
    "Which rights a deleted ALLOW or a new DENY takes follows from all other ACLs. Listing them "
    "needs Describe on the cluster (DescribeAcls).",
    _acl("User:app", "Read", _ORDERS, "Deny") + "   # ci lacks Describe on the cluster",
    "Run as a principal with Describe on Cluster.",
    "test_without_describe_on_the_cluster_acls_cannot_be_read",
    block=Block.GUARD,
)
OWN_LOST = _make_row(
    "access-own-lost",
    "The plan takes rights from the principal that runs it",
    Level.BLOCK,
    Harm.ACCESS_LOST,
    "The run needs Alter and Describe on the cluster, the rights for its later deletes, and the "
    "sight of what it manages. Without them, only somebody else could undo the change.",
    _acl("User:ci", "Alter", _CLUSTER) + "   # deleted by ci",
    "Add an ACL that keeps the right, or run as a principal that does not need it.",
    "test_a_login_that_loses_alter_cannot_give_it_back",
    block=Block.GUARD,
)
UNPROVEN = _make_row(
    "access-unproven",
    "The plan may take rights from the principal that runs it",
    Level.BLOCK,
    Harm.ACCESS_LOST,
    "What decides about it is unknown: super users, what is open without ACLs, the own principal, "
    "or why the cluster decides otherwise than its ACLs say.",
    'provider "kafka" { … }   # without an authorizer block, and ci has no ACL',
    proof="test_a_first_acl_of_a_topic_would_lock_out_a_login_without_acls",
    block=Block.GUARD,
    accept=True,
)
OPENED = _make_row(
    "access-opened",
    "The last ACL of a resource goes away",
    Level.BLOCK,
    Harm.ACCESS_GAINED,
    "With allow.everyone.if.no.acl.found = true, everybody can do everything with a resource "
    "without ACLs (StandardAuthorizerData).",
    _acl("User:app", "Read", _ORDERS) + "   # the only ACL of the topic is deleted",
    "Keep an ACL there, or accept the risk with --accept access-opened.",
    "test_the_deletion_of_the_last_acl_opens_a_topic",
    block=Block.GUARD,
    accept=True,
)

ACCESS = (
    EVERYBODY,
    DENY_REMOVED,
    EVERYTHING,
    CLUSTER,
    EVERY,
    ADMINISTRATION,
    PREFIX,
    NEW_LOGIN,
    NAMED,
    GAIN_UNCHECKED,
    LOST_WIDELY,
    LOST,
    CLOSED,
    PRODUCERS_CLOSED,
    LOSS_UNCHECKED,
    UNCHANGED,
    ASSUMED,
    PRINCIPAL_UNKNOWN,
    MISMATCH,
    NEWER_CODES,
    ORDER,
    UNREAD,
    OWN_LOST,
    UNPROVEN,
    OPENED,
)
"""All of `access.SURVEYS`, in the order of this page, without HIDDEN."""
