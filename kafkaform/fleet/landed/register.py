"""Read the register: what fleet.hcl declared when a snapshot was taken, and how its globs match."""

from __future__ import annotations

import re
from datetime import date
from typing import TYPE_CHECKING

from msgspec import Struct

from kafkaform_kafka.protocol.rates import Rates

from ...core.canonical import Misfit, from_data, parse_json
from ...core.errors import StorageError
from ...core.landing import FORMAT
from ...core.value import FrozenMap

if TYPE_CHECKING:
    from pyspark.sql import Column
_MEANING = {"*": ".*", "?": "."}


class FleetSettings(Struct, frozen=True):
    """Numbers by which clusters and files are judged."""

    stale_after_hours: float = 36.0
    """A snapshot older than this no longer tells how a cluster is."""
    skew_seconds: float = 120.0
    """How far the clocks of the runner and of the snapshot may differ."""
    grace_days: int = 60
    """How long a topic may be idle before it counts as unused."""
    max_corrupt: float = 0.001
    """A build fails if more than this share of the lines is bad."""
    short_prefix: int = 3
    """A prefix of at most this many characters is reported as short."""


class RegisteredCluster(Struct, frozen=True):
    """A cluster of fleet.hcl."""

    name: str
    cluster_id: str | None = None
    """None: it never answered."""
    env: str | None = None
    region: str | None = None
    owner: str | None = None
    super_users: tuple[str, ...] | None = None
    """As in the brokers' configuration. None: not declared, which is not the same as none."""
    allow_if_no_acl: bool | None = None
    """The brokers' `allow.everyone.if.no.acl.found`. None: not declared."""
    limit_replicas: int | None = None
    """How many replicas the cluster should hold at most."""
    kafka_cluster: str | None = None
    """Of a schema registry: the Kafka cluster whose topics its subjects are about. None: not
    declared."""


class RegisteredState(Struct, frozen=True):
    """A state of fleet.hcl."""

    name: str
    lineage: str | None = None
    """None: the state could not be read yet."""
    folder: str | None = None
    """The folder of its configuration. None: not declared."""
    owner: str | None = None


class Owner(Struct, frozen=True):
    """A team and what belongs to it."""

    name: str
    topics: tuple[str, ...] = ()
    """Globs over topic names."""
    principals: tuple[str, ...] = ()
    """As ACLs write them, such as `User:orders`."""


class RegisteredWaiver(Struct, frozen=True):
    """An exception from a policy rule, or a topic that stays although it seems to be unused."""

    until: date
    """The last day on which it counts."""
    reason: str
    cluster: str = "*"
    """A glob over names of clusters."""
    key: str = "*"
    """A glob over keys of objects."""


def describe_keep(keep: RegisteredWaiver) -> str:
    """Say that a `keep` block keeps a topic although it seems to be unused."""
    return f"fleet.hcl keeps it until {keep.until.isoformat()}: {keep.reason}"


class PolicyRule(Struct, frozen=True):
    """A rule that objects must not break."""

    name: str
    severity: str
    kind: str
    """A glob over kinds."""
    where: str
    """A condition (`datasets.policy_conditions`) that is true for objects that break the rule."""
    message: str
    source: str = "live"
    """`live` or `desired`: the table whose rows are judged."""
    owner: str | None = None
    waivers: tuple[RegisteredWaiver, ...] = ()


class NamingRule(Struct, frozen=True):
    """A pattern for the names of a kind."""

    kind: str
    pattern: str
    """A regular expression that must match the whole key."""
    cluster: str = "*"
    """A glob over names of clusters."""


class Register(Struct, frozen=True):
    """Everything that fleet.hcl declares."""

    clusters: tuple[RegisteredCluster, ...] = ()
    states: tuple[RegisteredState, ...] = ()
    owners: tuple[Owner, ...] = ()
    principals: tuple[str, ...] = ()
    """Known principals that belong to no owner."""
    rates: Rates | None = None
    rules: tuple[PolicyRule, ...] = ()
    naming: tuple[NamingRule, ...] = ()
    settings: FleetSettings = FleetSettings()
    keeps: tuple[RegisteredWaiver, ...] = ()
    """Topics that stay although they seem to be unused."""


ADDED = frozenset({"keeps"})
"""Members that registers of earlier versions lack."""


def read_register(text: str) -> Register:
    """Parse the register. Raises StorageError: it is not a register, or a later version
    wrote it."""
    try:
        data = parse_json(text)
        # `type() is int`, because `true` is an int for isinstance and would pass as format 1.
        if not isinstance(data, FrozenMap) or type(data.get("format")) is not int:
            raise Misfit("has no format")
        if data["format"] > FORMAT:
            raise StorageError(
                f"the register has format {data['format']}; this kafkaform reads up to {FORMAT}",
                "Use the version of kafkaform that took the snapshot, or a later one.",
            )
        # A default in place of a lost member would turn "no clusters" into an empty fleet, which
        # looks sound.
        members = Register.__struct_fields__
        if missing := [name for name in members if name not in data and name not in ADDED]:
            raise Misfit(f"lacks {', '.join(missing)}")
        # Members that this version does not know are ignored, as a later minor version may add
        # some.
        return from_data(Register, FrozenMap({n: data[n] for n in members if n in data}))
    except Misfit as error:
        raise StorageError(
            f"the register cannot be used: {error}",
            "Somebody changed the newest file of `landing/register`: restore it, or take a new "
            "snapshot with `kafkaform fleet snapshot`, which lands fleet.hcl again.",
        ) from None


def to_regex(glob: str) -> str:
    """Translate the glob to a regular expression that must match the whole name (`fullmatch`)."""
    # Without anchors: Java and Sail write the end of a text as `\z`, older Pythons as `\Z`. `(?s)`
    # lets `*` match newlines, too.
    return "(?s)" + "".join(_MEANING.get(c) or re.escape(c) for c in glob)


def matches(text: Column, glob: str) -> Column:
    """True for texts that the glob matches. Most globs are a name or a prefix: those need no
    regular expression, which costs Spark many times a comparison."""
    stem = glob.removesuffix("*")
    if "*" in stem or "?" in stem:
        return text.rlike(rf"\A(?:{to_regex(glob)})\z")
    if glob == "*":
        return text.isNotNull()
    return text == glob if stem == glob else text.startswith(stem)
