"""The configs of brokers of Kafka 3.0 to 4.3: type, range, update mode, and releases.

The table is `tables/broker_keys.tsv`. A config of the form `listener.name.LISTENER.KEY` follows the
one of KEY.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache

from msgspec import Struct

from .config_keys import AT_BROKERS, THROTTLES, ConfigKey, parse_key
from .releases import RELEASES
from .tables import read_table


class UpdateMode(StrEnum):
    """Where a broker config can be changed (KIP-226)."""

    READ_ONLY = "read-only"
    """In server.properties; a change needs a restart."""
    LISTENER = "listener"
    """For one broker, and only with a listener's prefix."""
    BROKER = "broker"
    """For one broker."""
    CLUSTER = "cluster"
    """For one broker or for all brokers."""


class BrokerKey(Struct, frozen=True):
    """One broker config."""

    key: ConfigKey
    mode: UpdateMode
    listener: bool = False
    """True if the name has a listener's prefix."""

    @property
    def secret(self) -> bool:
        """True if a broker never reveals the value."""
        # DescribeConfigs returns passwords, and keys that the broker itself does not know, as
        # sensitive and without a value. The authorizer's keys are of the second sort.
        return self.key.kind == "password" or self.key.name in _AUTHORIZER


_AUTHORIZER = ("allow.everyone.if.no.acl.found", "super.users")
"""Configs of the authorizer."""


_PER_MECHANISM = (
    "connections.max.reauth.ms",
    "sasl.jaas.config",
    "sasl.login.callback.handler.class",
    "sasl.login.class",
    "sasl.server.callback.handler.class",
)
"""Configs that are dynamic after `listener.name.LISTENER.MECHANISM.`, whatever their own mode."""

# The only configs with a listener's prefix that DynamicBrokerConfig allows in the cluster's
# defaults.
_LISTENER_WIDE = ("max.connection.creation.rate", "max.connections", "num.network.threads")
"""Configs of one listener that can be set for all brokers."""

# With KRaft a broker lists it as dynamic, too, and refuses every other value.
DYNAMIC_WITH_ZOOKEEPER: frozenset[str] = frozenset({"advertised.listeners"})
"""Configs that one broker of a cluster with ZooKeeper can change without a restart."""

_LISTENER = re.compile(r"listener\.name\.[^.]+\.(.+)")


def find_broker_key(name: str) -> BrokerKey | None:
    """The row of a config of any release by its full name, or None for one of a plugin."""
    prefixed = _LISTENER.fullmatch(name)
    if prefixed is None:
        return _all_keys().get(name)
    suffix = prefixed[1]
    base = next(
        (key for key in _PER_MECHANISM if suffix == key or suffix.endswith(f".{key}")), suffix
    )
    broker_key = broker_keys().get(base)
    if broker_key is None:
        return None
    if base in _PER_MECHANISM:
        mode = UpdateMode.BROKER
    elif broker_key.mode is UpdateMode.READ_ONLY or base in _LISTENER_WIDE:
        mode = broker_key.mode
    else:
        mode = UpdateMode.BROKER
    return BrokerKey(broker_key.key, mode, listener=True)


@cache
def broker_keys() -> Mapping[str, BrokerKey]:
    """Name -> config, for all configs that a broker itself knows, without listeners' prefixes."""
    return {name: row for name, row in _all_keys().items() if not row.key.until}


@cache
def removed_keys() -> Mapping[str, BrokerKey]:
    """Name -> config, for those that only brokers of older releases have."""
    return {name: row for name, row in _all_keys().items() if row.key.until}


@cache
def find_spans() -> Mapping[str, tuple[int, int]]:
    """Config -> the positions in RELEASES of the first release that has it and of the first one
    that lacks it again, for the configs of brokers and topics that a plan can change."""
    return {
        name: (
            RELEASES.index(row.key.since) if row.key.since else 0,
            RELEASES.index(row.key.until) if row.key.until else len(RELEASES),
        )
        for name, row in _all_keys().items()
        if row.key.since
        or (row.key.until and (row.mode is not UpdateMode.READ_ONLY or name in AT_BROKERS.values()))
    }


_UNITS: Mapping[str, str] = {
    ".ms": "ms",
    ".bytes": "bytes",
    **dict.fromkeys(THROTTLES["broker"], "bytes/s"),
    ".copy.max.bytes.per.second": "bytes/s",
    ".fetch.max.bytes.per.second": "bytes/s",
}
"""How a name ends -> the unit of its value."""


@cache
def _all_keys() -> Mapping[str, BrokerKey]:
    keys: dict[str, BrokerKey] = {}
    for row in read_table("broker_keys"):
        name = row["name"]
        unit = next((unit for end, unit in _UNITS.items() if name.endswith(end)), "")
        keys[name] = BrokerKey(parse_key(row, unit), UpdateMode(row["mode"]))
    return keys
