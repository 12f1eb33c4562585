"""Apache Kafka on Kubernetes under the operators of Strimzi."""

from __future__ import annotations

from kafkaform.core.finding import Level

from . import profile
from .profile import Citation, Profile, Sends, VendorNote, VendorRule

_READ = "2026-11-26"
_REPOSITORY = (
    "https://github.com/strimzi/strimzi-kafka-operator/blob/"
    "8541da1e336bdcda9647aeacfbc2048e57580a52"
)
_EDITION = "strimzi/strimzi-kafka-operator at 8541da1, 2026-08-22"
_DEPLOYING = "https://strimzi.io/docs/operators/latest/deploying.html"

_TOPICS = Citation("Using the Topic Operator", _DEPLOYING, _EDITION, _READ)
_USERS = Citation(
    "Strimzi's source, KafkaUserOperator.java",
    f"{_REPOSITORY}/user-operator/src/main/java/io/strimzi/operator/user/operator/"
    "KafkaUserOperator.java",
    _EDITION,
    _READ,
)

PROFILE = Profile(
    "strimzi",
    "Strimzi",
    (
        VendorRule(
            "strimzi-topic-operator",
            "Strimzi's Topic Operator reverts changes of topics that have a KafkaTopic resource",
            _TOPICS,
            profile.TOPICS,
            Sends(),
            Level.CAUTION,
            "manage each topic in one place: here, or as a KafkaTopic",
            per_cluster=True,
        ),
        VendorRule(
            "strimzi-user-operator",
            "Strimzi's User Operator, where it runs, deletes the ACLs, quotas and SCRAM "
            "credentials of users without a KafkaUser resource",
            _USERS,
            (profile.ACL, profile.QUOTA, profile.USER),
            Sends(),
            Level.CAUTION,
            "name the users that are managed here in its STRIMZI_IGNORED_USERS_PATTERN",
            per_cluster=True,
        ),
    ),
    (
        VendorNote(
            "A topic without a `KafkaTopic` resource is left alone. To move a topic here, annotate "
            'its resource with `strimzi.io/managed="false"`, then delete the resource.',
            _TOPICS,
        ),
        VendorNote(
            "`STRIMZI_IGNORED_USERS_PATTERN` is a regular expression in the environment of the "
            "User Operator.",
            Citation("Ignoring specific users", _DEPLOYING, _EDITION, _READ),
        ),
    ),
)
