"""Profiles of vendors: what one consists of, which one applies to a cluster, and what the refusals
of its clusters mean. All of a profile is data: rules with conditions, levels and sources.

A condition finds what is wrong with one change. There is a struct for each form of condition, and
one function for each, which yields the texts that replace `{found}` in the rule; a vendor's table
combines them. `rules/vendors.py` judges changes by them. Resource types are texts, because a table
must not load the types; a test compares them with the types.

A mark is a domain of the vendor's own, or the form of its cluster ids. A cluster behind a proxy or
a private name has none, and is taken for Apache Kafka unless the provider block says otherwise. A
managed cluster answers requests that it does not offer with the codes of a missing right or of an
old version; the usual advice, to grant the right, would lead nowhere.

Every command loads this module. It loads the tables of vendors only where a profile applies.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import BOOKKEEPING, Action, Change, Path
from kafkaform.core.errors import ConnectError
from kafkaform.core.finding import Level
from kafkaform.core.lazy import load
from kafkaform.core.resource import Failed, Fault, FaultClass, Hidden, Identity, Reading, Sweep
from kafkaform.core.value import EMPTY, FrozenMap, Value

from ..protocol.config_keys import parse_integer, parse_items
from ..protocol.faults import code_name

TOPIC = "kafka_topic"
TOPIC_CONFIG = "kafka_topic_config"
TOPICS = (TOPIC, TOPIC_CONFIG)
ACL = "kafka_acl"
QUOTA = "kafka_quota"
USER = "kafka_user_scram_credential"
BROKER_CONFIG = "kafka_broker_config"
CLUSTER_CONFIG = "kafka_cluster_config"
BROKERS = (BROKER_CONFIG, CLUSTER_CONFIG)
GROUP_CONFIG = "kafka_group_config"
METRICS = "kafka_client_metrics"
LEADERS = "kafka_topic_leaders"

ACL_APIS = ("DescribeAcls", "CreateAcls", "DeleteAcls")
QUOTA_APIS = ("DescribeClientQuotas", "AlterClientQuotas")
USER_APIS = ("DescribeUserScramCredentials", "AlterUserScramCredentials")
CONFIG_APIS = ("DescribeConfigs", "IncrementalAlterConfigs", "ListConfigResources")
ALTER_CONFIGS = ("IncrementalAlterConfigs",)
ELECTIONS = ("ElectLeaders",)


SETS = (Action.CREATE, Action.UPDATE)
SENDS = (*SETS, Action.DELETE)
ONLY_CREATE = (Action.CREATE,)
ONLY_UPDATE = (Action.UPDATE,)


class Citation(Struct, frozen=True):
    """A public text in which a rule is stated."""

    title: str
    url: str
    edition: str
    """Which text was read: its commit, its own date, or its version."""
    read: str
    """The day on which it was read: YYYY-MM-DD."""


# ── conditions ──────────────────────────────────────────────────────────────────────────


class Sends(Struct, frozen=True):
    """The change sends a request, whatever it contains."""

    actions: tuple[Action, ...] = SENDS


class Writes(Struct, frozen=True):
    """The change sets or removes something at or below one of these paths."""

    paths: tuple[tuple[str, ...], ...]
    actions: tuple[Action, ...] = SETS


class WritesKey(Struct, frozen=True):
    """The change sets or removes a key of a map that `only` lacks, or that `never` has."""

    attribute: str
    only: frozenset[str] | None = None
    never: frozenset[str] = frozenset()
    actions: tuple[Action, ...] = SETS


class WritesValue(Struct, frozen=True):
    """The change sets a value that is not allowed at this path."""

    path: tuple[str, ...]
    only: tuple[str, ...] = ()
    """The allowed texts; empty: any text."""
    never: tuple[str, ...] = ()
    pattern: str = ""
    """A regular expression that the whole text must match."""
    low: int | None = None
    high: int | None = None
    odd: bool = False
    """The number must be odd."""


class Switches(Struct, frozen=True):
    """The change puts a word into a list of words, or takes it out, on an object that exists."""

    path: tuple[str, ...]
    word: str


Condition = Sends | Writes | WritesKey | WritesValue | Switches


# ── rules ───────────────────────────────────────────────────────────────────────────────


_FOUND = re.compile(r" \(\{found\}\)|, not \{found\}|: \{found\}$")
"""The parts of a sentence that only name what a condition found."""


class VendorRule(Struct, frozen=True):
    """One thing that the clusters of a vendor refuse, ignore or do differently."""

    id: str
    """Of the finding: `aiven-few-replicas`. It begins with the profile, or with that of a profile
    whose clusters have the same rule."""
    sentence: str
    """One sentence, the vendor as its subject; `{found}` is what the condition found."""
    source: Citation
    kinds: tuple[str, ...]
    """The resource types that it is about."""
    condition: Condition
    level: Level = Level.BLOCK
    """How much it matters that a change fulfils the condition."""
    advice: str = ""
    apis: tuple[str, ...] = ()
    """The requests whose refusal the rule explains."""
    per_cluster: bool = False
    """It is about the cluster, and told once for all changes."""

    @property
    def title(self) -> str:
        """What it says, whatever was found."""
        whatever = "some configs" if isinstance(self.condition, WritesKey) else "it"
        return _FOUND.sub("", self.sentence).replace("{found}", whatever)


class Refusal(Struct, frozen=True):
    """Why the clusters of a vendor refuse some requests. No change is judged by it, because the
    source does not say that they are always refused."""

    sentence: str
    """One sentence, the vendor as its subject."""
    source: Citation
    kinds: tuple[str, ...]
    """The resource types that it is about."""
    apis: tuple[str, ...]
    """The requests whose refusal it explains."""
    advice: str = ""


class VendorNote(Struct, frozen=True):
    """Something that a user of the vendor should know, for the documentation."""

    sentence: str
    source: Citation


class Profile(Struct, frozen=True):
    """The clusters of one vendor."""

    name: str
    title: str
    """The name of the product."""
    rules: tuple[VendorRule | Refusal, ...]
    notes: tuple[VendorNote, ...] = ()
    topic_configs: frozenset[str] | None = None
    """The configs that a topic can set after its creation. What is set beside them is the vendor's
    and stays. None: all configs."""
    # kafkaform reads many ACLs with one listing, and would not find the declared ones in it.
    acls_read_singly: bool = False
    """A listing of all ACLs names principals in another form than a read of one ACL."""
    connection: VendorNote | None = None
    """Why kafkaform may be unable to open a session at all, said if that fails."""

    @property
    def judging(self) -> tuple[VendorRule, ...]:
        """The rules by which changes are judged."""
        return tuple(rule for rule in self.rules if isinstance(rule, VendorRule))


# ── what a change breaks ────────────────────────────────────────────────────────────────


def find_breaches(profile: Profile, change: Change) -> Iterator[tuple[VendorRule, str]]:
    """The rules whose condition the change fulfils, each with what it found."""
    for rule in profile.judging:
        if change.identity.kind in rule.kinds:
            breaches = tuple(dict.fromkeys(_FINDERS[type(rule.condition)](rule.condition, change)))
            if breaches:
                yield rule, ", ".join(breaches)


# ── conditions ──────────────────────────────────────────────────────────────────────────


def _find_sent(condition: Sends, change: Change) -> Iterator[str]:
    # An update of the bookkeeping sends nothing.
    if change.action in condition.actions and any(_list_written(change)):
        yield change.identity.key


def _find_written(condition: Writes, change: Change) -> Iterator[str]:
    if change.action not in condition.actions:
        return
    for path in _list_written(change):
        if any(path[: len(start)] == start for start in condition.paths):
            yield ".".join(path)


def _find_keys(condition: WritesKey, change: Change) -> Iterator[str]:
    if change.action not in condition.actions:
        return
    for key in _list_keys(change, condition.attribute):
        if key in condition.never or (condition.only is not None and key not in condition.only):
            yield key


def _list_keys(change: Change, attribute: str) -> Iterator[str]:
    """The keys of a map attribute that the change sets or removes."""
    # The part of a quota's entity that stands for the default is a key without a value, which has
    # no path.
    if change.action is Action.CREATE:
        yield from _get_value(change.after, (attribute,)) or ()  # type: ignore[misc]
    else:
        yield from (path[1] for path in _list_written(change) if path[0] == attribute and path[1:])


def _find_values(condition: WritesValue, change: Change) -> Iterator[str]:
    if change.action not in SETS or condition.path not in _list_written(change):
        return
    value = _get_value(change.after, condition.path)
    if value is not None and not _is_allowed(condition, str(value)):
        yield f"{condition.path[-1]} = {value}"


def _is_allowed(condition: WritesValue, text: str) -> bool:
    number = parse_integer(text)
    # A text that is no number is refused by Kafka's own rules.
    if number is not None and (
        (condition.low is not None and number < condition.low)
        or (condition.high is not None and number > condition.high)
        or (condition.odd and number % 2 == 0)
    ):
        return False
    if condition.pattern and not re.fullmatch(condition.pattern, text):
        return False
    return text not in condition.never and (not condition.only or text in condition.only)


def _find_switches(condition: Switches, change: Change) -> Iterator[str]:
    if change.action not in ONLY_UPDATE:
        return
    for item in change.paths:
        # A value that is removed makes room for the one that takes effect then.
        old, new = item.before, item.effective if item.after is None else item.after
        words = [condition.word in parse_items(str(value)) for value in (old, new)]
        if item.path == condition.path and None not in (old, new) and words[0] != words[1]:
            yield f"{condition.path[-1]} from {old} to {new}"


_FINDERS: Mapping[type, Callable[[Any, Change], Iterator[str]]] = {
    Sends: _find_sent,
    Writes: _find_written,
    WritesKey: _find_keys,
    WritesValue: _find_values,
    Switches: _find_switches,
}
"""Form of condition -> the function that applies it."""


def _list_written(change: Change) -> Iterator[Path]:
    """The paths that the change sets or removes on the cluster."""
    return (item.path for item in change.paths if item.path and item.path[0] not in BOOKKEEPING)


def _get_value(attributes: FrozenMap | None, path: Path) -> Value:
    value: Value = attributes or EMPTY
    for name in path:
        value = value.get(name) if isinstance(value, FrozenMap) else None
    return value


# ── which profile applies ───────────────────────────────────────────────────────────

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
    # Loaded on use, because most clusters are no vendor's.
    profiles: Mapping[str, Profile] = load("kafkaform_kafka.vendors.profiles:PROFILES")
    return profiles[name]


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
            text = f"{reading.right} is missing. {_describe(rule)}"
            advice = rule.advice or _choose_advice(profile)
            fault = Fault(_NO_RIGHT, text, FaultClass.PERMISSION, advice=advice)
            return Failed(reading.identity, fault)
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


def _choose_advice(profile: Profile) -> str:
    return f"manage it with the tools of {profile.title}"
