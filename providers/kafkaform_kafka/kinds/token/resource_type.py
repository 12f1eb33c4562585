"""`kafka_delegation_token`: a delegation token (KIP-48), which `alter` creates, renews and expires.

No block declares a token and no state records one, because tokens end by themselves. But a token
that somebody asks for is planned, approved, logged and recovered like any other change. Its HMAC,
with which anybody can log in as the owner, is in none of these: it is read from the brokers when
somebody wants it.

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
from kafkaform.core.schema import STRING, AttributeSchema, list_of, make_schema
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.contract import ResourceType

from ...protocol import keys
from ..kind import (
    CREATE_TOKEN,
    END_TOKEN,
    END_TOKEN_LATER,
    RENEW_TOKEN,
    SILENT,
    Document,
    ResourceKind,
    all_paths,
    defer,
    make_step,
)

KIND = "kafka_delegation_token"
API = "DescribeDelegationToken"
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


def make_attributes(
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


def _key(attributes: FrozenMap) -> str:
    name = attributes.get("token_id")
    if not isinstance(name, str) or not name:
        raise ValueError("a kafka_delegation_token needs a token_id")
    return name


def _target(declared: FrozenMap, _: Observed | None, __: Facts, ___: bool) -> FrozenMap:
    return declared


def _steps(change: Change, _: Facts) -> tuple[Step, ...]:
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


TYPE = ResourceType(
    name=KIND,
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
    key=_key,
    canonical=lambda attributes, _: attributes,
    target=_target,
    steps=_steps,
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
        KIND,
        TYPE,
        commanded=True,
        connect=defer(__package__, "requests:REQUESTS"),
        simulate=defer(__package__, "simulation:SIMULATED"),
        document=Document(
            "delegation-tokens",
            list_tokens,
            "Kafka leaves out tokens that this principal may not describe",
        ),
    ),
)
