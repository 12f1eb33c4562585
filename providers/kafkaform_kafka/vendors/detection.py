"""Find out which vendor runs a cluster: from the provider block, addresses, or the cluster id.

A mark is a domain of the vendor's own, or the form of its cluster ids. A cluster behind a proxy or
a private name has none, and is taken for Apache Kafka unless the provider block says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from kafkaform.core.errors import ConnectError
from kafkaform.core.value import Value

from .. import vendors
from .names import APACHE

if TYPE_CHECKING:
    from .profile import Profile


class Mark(Struct, frozen=True):
    """A form that only one vendor's addresses or cluster ids have."""

    profile: str
    source: str
    """`host name` or `cluster id`."""
    pattern: str
    """A regular expression that is found in the text, which is in lower case."""
    form: str
    """The form as the documentation shows it."""
    url: str
    """Where the vendor shows it."""


HOST, CLUSTER_ID = "host name", "cluster id"
_PORT = re.compile(r":\d+$", re.ASCII)

_MSK = "https://docs.aws.amazon.com/msk/latest/developerguide"
MARKS = (
    Mark(
        "amazon-msk-serverless",
        HOST,
        r"\.kafka-serverless\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?$",
        "*.kafka-serverless.REGION.amazonaws.com",
        "https://www.cockroachlabs.com/docs/stable/stream-a-changefeed-to-amazon-msk-serverless",
    ),
    Mark(
        "amazon-msk",
        HOST,
        r"\.kafka\.[a-z0-9-]+\.amazonaws\.com(?:\.cn)?$",
        "*.kafka.REGION.amazonaws.com",
        f"{_MSK}/msk-get-bootstrap-brokers.html",
    ),
    Mark(
        "confluent-cloud",
        HOST,
        r"\.confluent\.cloud$",
        "*.confluent.cloud",
        "https://registry.terraform.io/providers/confluentinc/confluent/latest/docs/resources/"
        "confluent_kafka_topic",
    ),
    Mark(
        "aiven",
        HOST,
        r"\.aivencloud\.com$",
        "*.aivencloud.com",
        "https://aiven.io/docs/products/kafka/howto/kcat",
    ),
    Mark(
        "azure-event-hubs",
        HOST,
        r"\.servicebus\.(?:windows\.net|chinacloudapi\.cn|usgovcloudapi\.net|cloudapi\.de)$",
        "*.servicebus.windows.net",
        "https://github.com/Azure/azure-event-hubs-for-kafka/blob/master/README.md",
    ),
    Mark(
        "warpstream",
        HOST,
        r"\.warpstream\.com$",
        "*.warpstream.com",
        "https://github.com/warpstreamlabs/terraform-provider-warpstream/blob/main/examples/"
        "byoc-with-topics/main.tf",
    ),
    Mark(
        "strimzi",
        HOST,
        r"-kafka-(?:brokers|bootstrap)\.[a-z0-9-]+\.svc(?:\.[a-z0-9.-]+)?$",
        "*.CLUSTER-kafka-brokers.NAMESPACE.svc",
        "https://strimzi.io/docs/operators/latest/configuring.html",
    ),
    Mark(
        "redpanda",
        CLUSTER_ID,
        r"^redpanda\.",
        "redpanda.*",
        "https://github.com/redpanda-data/redpanda/blob/1c6cff34ea/src/v/kafka/server/handlers/"
        "metadata.cc",
    ),
)
"""The first mark that is found decides."""

HINT = re.compile(
    "amazonaws|confluent|aivencloud|servicebus|warpstream|-kafka-b|redpanda", re.IGNORECASE
)
"""Found in every text that has a mark, so that other clusters cost no more than this search."""


class Detection(Struct, frozen=True):
    """The profile of a cluster, and why."""

    profile: str
    reason: str
    """Ends a sentence that begins with the profile."""

    @property
    def text(self) -> str:
        """For people."""
        return f"profile {self.profile}, {self.reason}"

    @property
    def values(self) -> Mapping[str, Value]:
        """What the facts of a session say about the profile."""
        if self.profile == APACHE:
            return {}
        profile = load_profile(self.profile)
        own = None if profile.topic_configs is None else tuple(sorted(profile.topic_configs))
        return {
            "profile": profile.name,
            "acls_read_singly": profile.acls_read_singly,
            "topic_configs": own,
        }


def find_profile(chosen: str | None, addresses: Iterable[str], cluster_id: str) -> Detection | None:
    """The profile that the provider block names, or whose mark is found.

    chosen: the name in the provider block; addresses: hosts, with or without a port.
    """
    if chosen is not None:
        return Detection(chosen, "as the provider block says")
    hosts = sorted({_PORT.sub("", address.lower()).rstrip(".") for address in addresses})
    for mark in MARKS:
        for text in hosts if mark.source == HOST else (cluster_id,):
            if re.search(mark.pattern, text):
                return Detection(mark.profile, f"found by the {mark.source} {text}")
    return None


def load_profile(name: str) -> Profile:
    """The profile of this name, which is not `apache`."""
    return vendors.profiles.PROFILES[name]


def explain_connection(detection: Detection, error: ConnectError) -> ConnectError:
    """The error of a failed connection, with what the profile knows about it."""
    note = None if detection.profile == APACHE else load_profile(detection.profile).connection
    if note is None:
        return error
    text = f"{error.advice} {note.sentence} ({note.source.url}; {detection.text})."
    return ConnectError(str(error), text.strip())
