"""The nouns of a profile: rules with conditions, levels and sources. All of it is data.

A condition finds what is wrong with one change. There is a struct for each form of condition, and
one function for each, which yields the texts that replace `{found}` in the rule; a vendor's table
combines them. `rules/vendors.py` judges changes by them. Resource types are texts, because a table
must not load the types; a test compares them with the types.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from msgspec import Struct

from kafkaform.core.change import BOOKKEEPING, Action, Change, Path
from kafkaform.core.finding import Level
from kafkaform.core.value import EMPTY, FrozenMap, Value

from ..protocol.config_keys import parse_integer, parse_items

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
