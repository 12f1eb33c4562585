"""What fleet.hcl says, as it landed: who and what there is, and by which numbers it is judged."""

from __future__ import annotations

from datetime import date

from msgspec import Struct

from ...core.errors import StorageError
from ...core.landing import FORMAT
from ...core.nouns import Misfit, from_data, parse_json
from ...core.value import FrozenMap


class FleetSettings(Struct, frozen=True):
    """stale_after_hours: age from which on a snapshot tells nothing any more; skew_seconds: how
    far the clocks of a runner and of a snapshot may lie apart; grace_days: how long a topic may
    be idle; max_corrupt: share of bad lines from which on a build fails; short_prefix: characters
    up to which a prefix is said to be short."""

    stale_after_hours: float = 36.0
    skew_seconds: float = 120.0
    grace_days: int = 60
    max_corrupt: float = 0.001
    short_prefix: int = 3


class RegisteredCluster(Struct, frozen=True):
    """super_users, allow_if_no_acl: as the brokers' configuration has them, None: not said;
    limit_replicas: how many it is meant to hold."""

    name: str
    cluster_id: str | None = None
    env: str | None = None
    region: str | None = None
    owner: str | None = None
    super_users: tuple[str, ...] | None = None
    allow_if_no_acl: bool | None = None
    limit_replicas: int | None = None


class RegisteredState(Struct, frozen=True):
    """lineage: None if it could not be read yet; folder: of its configuration, None: not said."""

    name: str
    lineage: str | None = None
    folder: str | None = None
    owner: str | None = None


class Owner(Struct, frozen=True):
    """topics: globs over names; principals: as ACLs write them."""

    name: str
    topics: tuple[str, ...] = ()
    principals: tuple[str, ...] = ()


class Rates(Struct, frozen=True):
    """Cost per month, each of one; None: not counted."""

    currency: str
    topic: float | None = None
    partition: float | None = None
    replica: float | None = None
    gigabyte: float | None = None


class Waiver(Struct, frozen=True):
    """cluster, key: globs; until: the last day."""

    until: date
    reason: str
    cluster: str = "*"
    key: str = "*"


class PolicyRule(Struct, frozen=True):
    """where: SQL condition over a row of `live` (with attrs['…']) or `desired` that is true for
    what breaks the rule; source: live or desired; kind: glob over kinds."""

    name: str
    severity: str
    kind: str
    where: str
    message: str
    source: str = "live"
    owner: str | None = None
    waivers: tuple[Waiver, ...] = ()


class NamingRule(Struct, frozen=True):
    """pattern: regular expression that a whole key must match; cluster: glob."""

    kind: str
    pattern: str
    cluster: str = "*"


class Register(Struct, frozen=True):
    """principals: known ones that no owner names."""

    clusters: tuple[RegisteredCluster, ...] = ()
    states: tuple[RegisteredState, ...] = ()
    owners: tuple[Owner, ...] = ()
    principals: tuple[str, ...] = ()
    rates: Rates | None = None
    rules: tuple[PolicyRule, ...] = ()
    naming: tuple[NamingRule, ...] = ()
    settings: FleetSettings = FleetSettings()


def read_register(text: str) -> Register:
    """The register of this JSON. Raises StorageError: a later version wrote it, or it is not what
    a snapshot wrote."""
    try:
        data = parse_json(text)
        if not isinstance(data, FrozenMap) or type(data.get("format")) is not int:
            raise Misfit("has no format")
        if data["format"] > FORMAT:
            raise StorageError(
                f"the register has format {data['format']}; this kafkaform reads up to {FORMAT}",
                "Use the version of kafkaform that took the snapshot, or a later one.",
            )
        if missing := [name for name in Register.__struct_fields__ if name not in data]:
            raise Misfit(f"lacks {', '.join(missing)}")
        return from_data(Register, FrozenMap({n: data[n] for n in Register.__struct_fields__}))
    except Misfit as error:
        raise StorageError(
            f"the register cannot be used: {error}",
            "Somebody changed the newest file of `landing/register`: restore it, or take a new "
            "snapshot with `kafkaform fleet snapshot`, which lands fleet.hcl again.",
        ) from None
