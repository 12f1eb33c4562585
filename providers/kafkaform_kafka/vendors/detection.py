"""Find out which vendor runs a cluster: from the provider block, addresses, or the cluster id; and
explain what its clusters refuse.

A mark is a domain of the vendor's own, or the form of its cluster ids. A cluster behind a proxy or
a private name has none, and is taken for Apache Kafka unless the provider block says otherwise. A
managed cluster answers requests that it does not offer with the codes of a missing right or of an
old version; the usual advice, to grant the right, would lead nowhere.

Every command loads this module. It loads the tables of vendors only where a profile applies.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.errors import ConnectError
from kafkaform.core.finding import Level
from kafkaform.core.resource import Failed, Fault, FaultClass, Hidden, Identity, Reading, Sweep

from .. import vendors
from ..protocol.faults import code_name
from .profile import Profile, Refusal, Sends, VendorRule

APACHE = "apache"
"""The profile without rules: nothing but Apache Kafka's own."""

PROFILES = (
    APACHE,
    "aiven",
    "amazon-msk",
    "amazon-msk-express",
    "amazon-msk-serverless",
    "azure-event-hubs",
    "confluent-cloud",
    "redpanda",
    "strimzi",
    "warpstream",
)


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
    def values(self) -> Mapping[str, Any]:
        """The fields of KafkaFacts about the profile."""
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


# ── refusals ────────────────────────────────────────────────────────────────────────────


def explain_connection(detection: Detection, error: ConnectError) -> ConnectError:
    """The error of a failed connection, with what the profile knows about it."""
    note = None if detection.profile == APACHE else load_profile(detection.profile).connection
    if note is None:
        return error
    text = f"{error.advice} {note.sentence} ({note.source.url}; {detection.text})."
    return ConnectError(str(error), text.strip())


# Codes that say "no" to the request itself. After any other code something else went wrong.
_REFUSALS = frozenset(map(code_name, (29, 30, 31, 35, 37, 38, 39, 40, 42, 44, 54)))
_NO_RIGHT = code_name(31)


def explain_fault(profile: Profile, fault: Fault, kind: str) -> Fault:
    """The fault with what the profile knows about this refusal; the same fault if it knows
    nothing. kind: the resource type that the request was about."""
    if fault.code not in _REFUSALS:
        return fault
    api = fault.where.partition(" at ")[0]
    rule = next((rule for rule in _list_rules(profile, kind) if api in rule.apis), None)
    if rule is None:
        return fault
    text = f"{fault.message}. {_describe(rule)}"
    return replace(fault, message=text, advice=rule.advice or _choose_advice(profile))


def explain_reading(profile: Profile, reading: Reading) -> Reading:
    """The reading with its fault explained."""
    kind = reading.identity.kind
    if isinstance(reading, Failed):
        return Failed(reading.identity, explain_fault(profile, reading.fault, kind))
    if isinstance(reading, Hidden):
        # Nobody can grant a right that the vendor does not have.
        rule = next((rule for rule in _list_rules(profile, kind) if _denies(rule)), None)
        if rule is not None:
            return Failed(reading.identity, _make_denial(profile, reading, rule))
    return reading


def explain_readings(
    profile: Profile, readings: Mapping[Identity, Reading]
) -> Mapping[Identity, Reading]:
    """The readings with their faults explained."""
    return {identity: explain_reading(profile, reading) for identity, reading in readings.items()}


def explain_sweep(profile: Profile, sweep: Sweep) -> Sweep:
    """The listing with its fault explained."""
    fault = sweep.coverage.fault
    if fault is None:
        return sweep
    explained = explain_fault(profile, fault, sweep.kind)
    return replace(sweep, coverage=replace(sweep.coverage, fault=explained))


def _list_rules(profile: Profile, kind: str) -> Iterable[VendorRule | Refusal]:
    return (rule for rule in profile.rules if kind in rule.kinds)


def _denies(rule: VendorRule | Refusal) -> bool:
    """True if the vendor refuses every change of the kind."""
    return isinstance(rule, VendorRule) and rule.level is Level.BLOCK and rule.condition == Sends()


def _describe(rule: VendorRule | Refusal) -> str:
    return f"{rule.sentence} ({rule.source.url})"


def _make_denial(profile: Profile, hidden: Hidden, rule: VendorRule | Refusal) -> Fault:
    return Fault(
        _NO_RIGHT,
        f"{hidden.right} is missing. {_describe(rule)}",
        FaultClass.PERMISSION,
        advice=rule.advice or _choose_advice(profile),
    )


def _choose_advice(profile: Profile) -> str:
    return f"manage it with the tools of {profile.title}"
