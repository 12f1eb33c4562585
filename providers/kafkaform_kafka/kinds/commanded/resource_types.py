"""Resource types of what no block declares and no state records, because brokers change it at any
time, or because there is no way back that a plan could show. But a change that somebody asks for
with `alter` is planned, approved, logged and recovered like any other one.

- `kafka_topic_leaders`: the leaders of a topic's partitions. Brokers change them at any time.
- `kafka_feature`: the finalized level of one feature of the cluster. A downgrade is often
  impossible.
- `kafka_delegation_token`: a delegation token (KIP-48), which `alter` creates, renews and expires.
  Tokens end by themselves. The HMAC, with which anybody can log in as the owner, is in no plan,
  state or log: it is read from the brokers when somebody wants it.

A token gets its id when it is created. Until then its key says whose token it will be, and when it
was asked for; the token that appears afterwards is found by that (`is_asked_for`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase

from msgspec import Struct

from kafkaform.core.change import Action, Change, Evidence, Repeat, Request, Step
from kafkaform.core.resource import Facts, Observed
from kafkaform.core.schema import NUMBER, STRING, AttributeSchema, list_of, make_schema, map_of
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.contract import ResourceType

from ...protocol import keys
from ...protocol.cluster_facts import UpgradeType
from ..kind import (
    CREATE_TOKEN,
    ELECT_LEADERS,
    END_TOKEN,
    END_TOKEN_LATER,
    RENEW_TOKEN,
    SILENT,
    UPDATE_FEATURES,
    Document,
    ResourceKind,
    all_paths,
    defer,
    make_step,
    paths_below,
)

LEADERS = "kafka_topic_leaders"
LEADERS_API = ELECT_LEADERS.name


def make_leaders(topic: str, leaders: Mapping[int, int]) -> FrozenMap:
    """leaders: partition -> broker, -1 if none leads."""
    named: dict[str, Value] = {str(number): leader for number, leader in leaders.items()}
    return FrozenMap(topic=topic, leaders=FrozenMap(named))


def find_foreign_paths(attributes: FrozenMap) -> frozenset[tuple[str, ...]]:
    """All leaders: a plan ignores those that its change does not name."""
    return frozenset(("leaders", number) for number in attributes["leaders"])


def _key_of_leaders(attributes: FrozenMap) -> str:
    name = attributes.get("topic")
    if not isinstance(name, str) or not name:
        raise ValueError("a kafka_topic_leaders needs a topic")
    return name


def _target_of_leaders(declared: FrozenMap, _: Observed | None, __: Facts, ___: bool) -> FrozenMap:
    return declared


def _make_steps_of_leaders(change: Change, _: Facts) -> tuple[Step, ...]:
    paths = paths_below(change, "leaders")
    if change.action is not Action.UPDATE or not paths:
        return ()
    target = (change.after or EMPTY)["leaders"]
    payload: dict[str, Value] = {
        "name": change.identity.key,
        "topic_id": change.incarnation,
        "leaders": FrozenMap({number: target[number] for _, number in paths}),
    }
    return (
        make_step(
            change, 1, ELECT_LEADERS, payload, paths, weight=len(paths), evidence=Evidence.LOCAL
        ),
    )


LEADERS_TYPE = ResourceType(
    name=LEADERS,
    schema=make_schema(
        "The leaders of a topic's partitions.",
        AttributeSchema("topic", STRING, "Name of the topic.", required=True),
        AttributeSchema("leaders", map_of(NUMBER), "Partition -> the broker that leads it."),
    ),
    key=_key_of_leaders,
    canonical=lambda attributes, _: attributes,
    target=_target_of_leaders,
    steps=_make_steps_of_leaders,
    import_key=lambda text: text,
)


FEATURE = "kafka_feature"
FEATURE_API = UPDATE_FEATURES.name
LEVEL, UNSAFE = "level", "unsafe_downgrade_to"
"""Two names of one number. A change sets one of them, and so says which downgrade is allowed."""


def make_feature(name: str, level: int) -> FrozenMap:
    """The attributes of a feature at this level."""
    return FrozenMap({"name": name, LEVEL: level, UNSAFE: level})


def _key_of_feature(attributes: FrozenMap) -> str:
    name = attributes.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError("a kafka_feature needs a name")
    return name


def _target_of_feature(declared: FrozenMap, _: Observed | None, __: Facts, ___: bool) -> FrozenMap:
    return declared


def read_levels(change: Change) -> tuple[int, int]:
    """The level before and after an update."""
    before, after = change.before or EMPTY, change.after or EMPTY
    name = UNSAFE if after.get(UNSAFE) is not None else LEVEL
    return before[name], after[name]


def _make_steps_of_feature(change: Change, _: Facts) -> tuple[Step, ...]:
    paths = paths_below(change, LEVEL, UNSAFE)
    if change.action is not Action.UPDATE or not paths:
        return ()
    before, after = read_levels(change)
    kind = UpgradeType.SAFE_DOWNGRADE if after < before else UpgradeType.UPGRADE
    if (UNSAFE,) in paths:
        kind = UpgradeType.UNSAFE_DOWNGRADE
    payload: dict[str, Value] = {
        "name": change.identity.key,
        "level": after,
        "upgrade_type": int(kind),
    }
    # Absolute, so it can be repeated: the controller accepts the level that is there already.
    return (make_step(change, 1, UPDATE_FEATURES, payload, paths, weight=1),)


FEATURE_TYPE = ResourceType(
    name=FEATURE,
    schema=make_schema(
        "The level of a feature of the cluster.",
        AttributeSchema("name", STRING, "Name of the feature.", required=True),
        AttributeSchema(LEVEL, NUMBER, "The finalized level; 0 if it is off.", whole=True),
        AttributeSchema(UNSAFE, NUMBER, "A lower level, even if metadata is lost.", whole=True),
    ),
    key=_key_of_feature,
    canonical=lambda attributes, _: attributes,
    target=_target_of_feature,
    steps=_make_steps_of_feature,
    import_key=lambda text: text,
)


TOKEN = "kafka_delegation_token"
TOKEN_API = "DescribeDelegationToken"
"""The API of every read."""
NEW, BEFORE = "new", "before"
LONGEST = "the longest possible"
"""The period of a token that is renewed for as long as the brokers allow."""
# Clocks of computers that somebody cares for differ by less.
CLOCK_SKEW = 300_000
"""How many milliseconds a broker's clock may be behind ours."""

_PERIOD = re.compile(r"(\d{1,9})\s*(ms|s|min|m|h|d)", re.ASCII)
_UNITS = {"ms": 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}


class NewToken(Struct, frozen=True):
    """A token to create: the fields of its key."""

    owner: str
    """Empty for the principal that logs in."""
    renewers: tuple[str, ...]
    lifetime: str
    """At most so long; empty for as long as the brokers allow."""
    stamp: str
    """When it was asked for (milliseconds since 1970), and a random part."""

    @property
    def key(self) -> str:
        return keys.join((NEW, self.stamp, self.owner, self.lifetime, *self.renewers))

    @property
    def before(self) -> str:
        """The key of the list of tokens that exist before this one is created."""
        return keys.join((BEFORE, self.stamp))

    @property
    def request_time(self) -> int:
        """When it was asked for, in milliseconds since 1970, by the clock of that computer."""
        return int(self.stamp.partition("-")[0])

    @property
    def attributes(self) -> FrozenMap:
        """The attributes that are asked for."""
        named: dict[str, Value] = {"renewers": self.renewers}
        named |= {"owner": self.owner} if self.owner else {}
        named |= {"max_lifetime": self.lifetime} if self.lifetime else {}
        return FrozenMap(named)

    def is_asked_for(self, owner: str, requester: str, renewers: tuple[str, ...]) -> bool:
        """Whether a token with these principals can be this one."""
        return owner == (self.owner or requester) and renewers == self.renewers


def parse_new(key: str) -> NewToken | None:
    """The token to create that a key means; None for another key."""
    head, *fields = keys.split(key)
    if head != NEW or len(fields) < 3:
        return None
    stamp, owner, lifetime, *renewers = fields
    return NewToken(owner, tuple(renewers), lifetime, stamp)


def parse_period(text: str) -> int | None:
    """The milliseconds of a period such as `12h`; None if it is none, or not positive."""
    match = _PERIOD.fullmatch(text.strip())
    return int(match[1]) * _UNITS[match[2]] or None if match else None


def render_time(milliseconds: int) -> str:
    """A time since 1970 as text (RFC 3339)."""
    moment = datetime.fromtimestamp(milliseconds // 1000, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def make_token(
    token_id: str, owner: str, requester: str, renewers: Iterable[str], times: Mapping[str, int]
) -> FrozenMap:
    """The attributes of a token that exists. times: name -> milliseconds since 1970."""
    return FrozenMap(
        token_id=token_id,
        owner=owner,
        requester=requester,
        renewers=tuple(renewers),
        **{name: render_time(value) for name, value in times.items()},
    )


def _key_of_token(attributes: FrozenMap) -> str:
    name = attributes.get("token_id")
    if not isinstance(name, str) or not name:
        raise ValueError("a kafka_delegation_token needs a token_id")
    return name


def _target_of_token(declared: FrozenMap, _: Observed | None, __: Facts, ___: bool) -> FrozenMap:
    return declared


def _make_steps_of_token(change: Change, _: Facts) -> tuple[Step, ...]:
    if change.action in SILENT:
        return ()
    after = change.after or EMPTY
    if change.action is Action.DELETE:
        payload: dict[str, Value] = {"token_id": change.identity.key, "period": ""}
        return (
            make_step(
                change, 1, END_TOKEN, payload, all_paths(change), weight=1, evidence=Evidence.LOCAL
            ),
        )
    if change.action is Action.CREATE:
        new = parse_new(change.identity.key)
        assert new is not None  # only the command makes creates
        payload = {**new.attributes, "stamp": new.stamp}
        return (_make_once(change, CREATE_TOKEN, payload, whole=True),)
    renews = after.get("renew_period")
    payload = {"token_id": change.identity.key, "period": renews or after.get("expiry_period")}
    return (_make_once(change, RENEW_TOKEN if renews else END_TOKEN_LATER, payload),)


def _make_once(
    change: Change, request: Request, payload: Mapping[str, Value], *, whole: bool = False
) -> Step:
    """A step that must not be sent twice: a second token would be made, or another time set."""
    # The brokers do not keep a period, only the time that it led to. So no path of a renewed token
    # can be compared afterwards, and a lost answer stays unknown.
    paths = all_paths(change) if whole else ()
    return make_step(
        change, 1, request, payload, paths, weight=1, repeat=Repeat.NEVER, evidence=Evidence.LOCAL
    )


TOKEN_TYPE = ResourceType(
    name=TOKEN,
    schema=make_schema(
        "A delegation token.",
        AttributeSchema("token_id", STRING, "Its id, the user name of a login.", computed=True),
        AttributeSchema("owner", STRING, "The principal as which the token logs in."),
        AttributeSchema("requester", STRING, "The principal that created it.", computed=True),
        AttributeSchema("renewers", list_of(STRING), "Principals that can renew and expire it."),
        AttributeSchema("max_lifetime", STRING, "At most so long it can be renewed."),
        AttributeSchema("renew_period", STRING, "So long from now it is valid."),
        AttributeSchema("expiry_period", STRING, "So long from now it is valid."),
        AttributeSchema("issued", STRING, "When it was created.", computed=True),
        AttributeSchema("expires", STRING, "When it expires unless it is renewed.", computed=True),
        AttributeSchema("ends", STRING, "When it expires in any case.", computed=True),
    ),
    key=_key_of_token,
    canonical=lambda attributes, _: attributes,
    target=_target_of_token,
    steps=_make_steps_of_token,
    import_key=lambda text: text,
)


def list_tokens(
    items: Sequence[Observed], name: str, fields: Mapping[str, str]
) -> tuple[FrozenMap, ...]:
    """One row for each token, the oldest first. name: a glob of ids; fields: globs by attribute."""
    return tuple(
        row
        for row in sorted(
            (item.attributes for item in items), key=lambda row: (row["issued"], row["token_id"])
        )
        if fnmatchcase(row["token_id"], name)
        and all(fnmatchcase(row[field], glob) for field, glob in fields.items())
    )


KINDS = (
    ResourceKind(
        LEADERS,
        LEADERS_TYPE,
        commanded=True,
        connect=defer(__package__, "requests:LEADERS_REQUESTS"),
        simulate=defer(__package__, "simulation:SIMULATED_LEADERS"),
    ),
    ResourceKind(
        TOKEN,
        TOKEN_TYPE,
        commanded=True,
        connect=defer(__package__, "requests:TOKEN_REQUESTS"),
        simulate=defer(__package__, "simulation:SIMULATED_TOKEN"),
        document=Document(
            "delegation-tokens",
            list_tokens,
            "Kafka leaves out tokens that this principal may not describe",
        ),
    ),
    ResourceKind(
        FEATURE,
        FEATURE_TYPE,
        commanded=True,
        connect=defer(__package__, "requests:FEATURE_REQUESTS"),
        simulate=defer(__package__, "simulation:SIMULATED_FEATURE"),
    ),
)
