"""Aiven for Apache Kafka."""

from __future__ import annotations

from . import profile
from .profile import Citation, Profile, Refusal, VendorNote, VendorRule, WritesValue

_READ = "2026-11-26"
_DOCS = "https://aiven.io/docs/products/kafka"
_EDITION = "aiven/aiven-docs at 073a07f, 2026-08-21"


def _cite(title: str, page: str) -> Citation:
    return Citation(title, f"{_DOCS}/{page}", _EDITION, _READ)


_ACLS = _cite("Access Control Lists in Aiven for Apache Kafka", "concepts/acl")
_USERS = _cite("Manage service users in Aiven for Apache Kafka", "howto/add-manage-service-users")

PROFILE = Profile(
    "aiven",
    "Aiven for Apache Kafka",
    (
        VendorRule(
            "aiven-few-replicas",
            "Aiven does not allow topics with fewer than 2 replicas: {found}",
            _cite("Best practices for Aiven for Apache Kafka", "howto/best-practices"),
            (profile.TOPIC,),
            WritesValue(("replication_factor",), low=2),
            advice="write 2 or more",
        ),
        VendorRule(
            "aiven-principal-type",
            "Aiven supports only principals that begin with User:, not {found}",
            _ACLS,
            (profile.ACL,),
            WritesValue(("acl_principal",), pattern="User:.*"),
            advice="write User:NAME",
        ),
        Refusal(
            "Aiven manages quotas in its console, command line and API",
            _cite("Quotas in Aiven for Apache Kafka", "concepts/kafka-quotas"),
            (profile.QUOTA,),
            apis=profile.QUOTA_APIS,
        ),
        Refusal(
            "Aiven manages users as service users, in its console, command line and API",
            _USERS,
            (profile.USER,),
            apis=profile.USER_APIS,
        ),
        Refusal(
            "Aiven manages configs of brokers as parameters of the service, in its console and "
            "command line",
            _cite("Manage Apache Kafka parameters", "howto/set-kafka-parameters"),
            profile.BROKERS,
            apis=profile.CONFIG_APIS,
        ),
        Refusal(
            "Aiven manages ACLs in its console, command line and API, too",
            _cite("Manage access control lists in Aiven for Apache Kafka", "howto/manage-acls"),
            (profile.ACL,),
            apis=profile.ACL_APIS,
        ),
    ),
    (
        VendorNote(
            "Aiven's own ACLs stand beside Kafka's, and kafkaform sees Kafka's only. A DENY in one "
            "of them is stronger than an ALLOW in the other.",
            _cite("Manage access control lists in Aiven for Apache Kafka", "howto/manage-acls"),
        ),
        VendorNote(
            "A service user with the permission `admin` may create topics of any name; `Alter` and "
            "`Delete` hold for the topics that its pattern matches.",
            _USERS,
        ),
        VendorNote(
            "In an ACL, `User:alice*` stands for all users whose names begin with alice. What "
            "kafkaform says about access (`explain access`, the lock-out guard) takes it for one "
            "name.",
            _ACLS,
        ),
    ),
)
