"""Selects and describes the quotas of `data.kafka_quotas`."""

from __future__ import annotations

from collections.abc import Mapping

from kafkaform.core.resource import Observed
from kafkaform.core.schema import NUMBER, STRING, Type, map_of
from kafkaform.core.value import FrozenMap, Value

from .levels import CLIENT_ID, USER
from .resource_type import DEFAULT, IP

FIELDS: Mapping[str, Type] = {
    "id": STRING,
    "user": STRING,
    "client_id": STRING,
    "ip": STRING,
    "config": map_of(NUMBER),
}
_PARTS = {"user": USER, "client_id": CLIENT_ID, "ip": IP}


def fits_arguments(entity: Mapping[str, str | None], arguments: FrozenMap) -> bool:
    """True if the entity has every part that the arguments name, with the same name."""
    kind, name = arguments.get("entity_type"), arguments.get("entity_name")
    if kind is not None and kind not in entity:
        return False
    if name is not None and name not in ([entity[kind]] if kind else entity.values()):
        return False
    filters = {entity_type: arguments.get(attribute) for attribute, entity_type in _PARTS.items()}
    return all(
        entity_type in entity and _describe_part(entity, entity_type) == value
        for entity_type, value in filters.items()
        if value is not None
    )


def describe_quota(item: Observed) -> FrozenMap:
    """One quota as the data source returns it."""
    entity, config = item.attributes["entity"], item.attributes["config"]
    entity_values: dict[str, Value] = {
        name: _describe_part(entity, kind) for name, kind in _PARTS.items()
    }
    # Brokers also store NaN and infinity, which never limit anything.
    numbers = {key: value for key, value in config.items() if not isinstance(value, str)}
    return FrozenMap({"id": item.identity.key, **entity_values, "config": FrozenMap(numbers)})


def _describe_part(entity: Mapping[str, str | None], kind: str) -> str | None:
    """The value of the block's attribute for this part; None if the entity lacks the part."""
    if kind not in entity:
        return None
    name = entity[kind]
    return DEFAULT if name is None else name
