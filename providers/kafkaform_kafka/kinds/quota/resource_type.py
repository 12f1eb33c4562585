"""`kafka_quota`: limits for a user, a client id, both together, or an IP address.

`config` is authoritative: a plan shows and removes limits that are set but not declared. `levels`
says which limit applies to which client.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from fnmatch import fnmatchcase
from itertools import product
from math import isclose

from msgspec.structs import replace

from kafkaform.core.change import Action, Change, Path, Request, Step
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Facts,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.schema import NUMBER, STRING, AttributeSchema, Type, make_schema, map_of
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.contract import ResourceType

from ...protocol import keys
from ...protocol.cluster_facts import KafkaFacts
from ..kind import (
    ALTER_QUOTAS,
    REMOVE_QUOTAS,
    SILENT,
    Document,
    KindRights,
    ResourceKind,
    all_paths,
    defer,
    make_step,
    paths_below,
    sort_by_fields,
)
from ..topic.configs import make_remainder, select_declared
from . import limits
from .limits import CLIENT_ID, QUOTA_KEYS, USER, Quotas, list_quota_keys, list_weaker

KIND = "kafka_quota"
IP = "ip"
ENTITY_TYPES = (USER, CLIENT_ID, IP)
"""In the order in which keys name them."""

# In the protocol the default entity has the name null (KIP-546); KIP-248 used the empty name.
DEFAULT = "default"
"""The name of the default entity in `user`, `client_id` and `ip`."""

# Values travel as doubles, so they come back almost as they were sent.
TOLERANCE = 1e-9
"""Relative difference up to which two limits are equal."""


# ── entities ────────────────────────────────────────────────────────────────────────────

_PARTS = {"user": USER, "client_id": CLIENT_ID, "ip": IP}
"""Attribute -> the part of the entity that it names."""


def parse_entity(attributes: FrozenMap) -> FrozenMap:
    """The entity that a block names: part -> name, None for the default. Raises ValueError if it
    names none, or a name that no entity can have."""
    kind, name = attributes.get("entity_type"), attributes.get("entity_name")
    if name is not None and kind is None:
        raise ValueError("entity_name needs entity_type: user, client-id or ip")
    named = {kind: name} if kind is not None else {}
    for attribute, entity_type in _PARTS.items():
        value = attributes.get(attribute)
        if value is not None:
            named[entity_type] = None if value == DEFAULT else value
    if not named:
        raise ValueError("a kafka_quota needs a user, a client_id, an ip, or an entity_type")
    if "" in named.values():
        raise ValueError(f"the name of a quota entity is empty; the default entity is '{DEFAULT}'")
    return FrozenMap(named)


def entity_key(entity: Mapping[str, str | None]) -> str:
    """The identity key of an entity: `user=ci|client-id=app`; a default part has no `=NAME`."""
    kinds = (kind for kind in ENTITY_TYPES if kind in entity)
    return keys.join([p if entity[p] is None else f"{p}={entity[p]}" for p in kinds])


def parse_entity_key(key: str) -> FrozenMap:
    """The entity of an identity key. Raises ValueError."""
    entity: dict[str, str | None] = {}
    for field in keys.split(key):
        kind, named, name = field.partition("=")
        if kind not in ENTITY_TYPES or kind in entity or (named and not name):
            raise ValueError(f"{key!r} is not a quota entity")
        entity[kind] = name if named else None
    if IP in entity and len(entity) > 1:
        raise ValueError(f"{key!r} is not a quota entity: ip cannot have other parts")
    return FrozenMap(entity)


def import_key(text: str) -> str:
    """The key of an import id: our own form, or NAME|TYPE of Terraform's Mongey provider. Raises
    ValueError."""
    try:
        return entity_key(parse_entity_key(text))
    except ValueError:
        name, _, kind = text.rpartition("|")
        if kind not in ENTITY_TYPES or not name:
            raise ValueError(
                "the import id of a kafka_quota is user=NAME, client-id=NAME, ip=NAME, or "
                "user=NAME|client-id=NAME, without =NAME for a default part; or NAME|TYPE, or "
                "entity-default|TYPE"
            ) from None
        return entity_key({kind: None if name == f"entity-{DEFAULT}" else name})


def write_arguments(attributes: FrozenMap) -> FrozenMap:
    """The arguments of a block that declares this quota. Raises ValueError if no block can."""
    entity: Mapping[str, str | None] = attributes["entity"]
    if odd := [key for key, value in attributes["config"].items() if isinstance(value, str)]:
        raise ValueError(f"{', '.join(odd)} is not a number")
    config: dict[str, Value] = {"config": attributes["config"]}
    if DEFAULT not in entity.values():
        parts = {
            name: (entity[kind] or DEFAULT) if kind in entity else None
            for name, kind in _PARTS.items()
        }
        return FrozenMap(config | parts)
    if len(entity) > 1:
        raise ValueError(
            f"a block cannot name an entity '{DEFAULT}' together with another part: '{DEFAULT}' "
            "means the default entity there"
        )
    ((kind, name),) = entity.items()
    return FrozenMap(config | {"entity_type": kind, "entity_name": name})


# ── observed quotas ─────────────────────────────────────────────────────────────────────


def make_exact(value: float | Decimal) -> Value:
    """A limit as an attribute: an exact number, or `Infinity` and `NaN` as text."""
    # The controller's check `value <= 0` lets NaN pass, so brokers can have stored it.
    number = Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    if not number.is_finite():
        return str(number)
    return int(number) if number == number.to_integral_value() else number


def observe_quota(
    instance: str, entity: Mapping[str, str | None], values: Mapping[str, float | Decimal]
) -> Observed:
    """One entity with its limits."""
    config = FrozenMap({key: make_exact(value) for key, value in values.items()})
    attributes = FrozenMap({"entity": FrozenMap(entity), "config": config})
    return Observed(Identity(instance, KIND, entity_key(entity)), attributes)


LimitsOf = Callable[[str], Mapping[str, float | Decimal] | None]
"""Key of an entity -> its limits, None if it has none."""


def make_reading(
    identity: Identity,
    get: LimitsOf,
    facts: Facts,
) -> Reading:
    """The quota of an entity, and the limits that are in effect where it has none."""
    entity = parse_entity_key(identity.key)
    fallbacks = EMPTY if KafkaFacts.of(facts).quota_callback else _find_fallbacks(entity, get)
    values = get(identity.key)
    if values is None:
        return Absent(identity, fallbacks=fallbacks)
    return replace(observe_quota(identity.instance, entity, values), fallbacks=fallbacks)


def _find_fallbacks(entity: Mapping[str, str | None], get: LimitsOf) -> FrozenMap:
    weaker = [get(entity_key(item)) or {} for item in list_weaker(entity)]
    keys = [key for key in QUOTA_KEYS.values() if key.ip == (IP in entity)]
    return FrozenMap(
        {
            f"config.{key.name}": next(
                (make_exact(limits[key.name]) for limits in weaker if key.name in limits),
                key.unlimited,
            )
            for key in keys
        }
    )


def make_quota_sweep(
    instance: str,
    depth: Depth,
    rows: Iterable[tuple[Mapping[str, str | None], Mapping[str, float | Decimal]]],
) -> Sweep:
    """The complete listing of all quotas. rows: entity and values."""
    items = tuple(observe_quota(instance, entity, values) for entity, values in rows)
    return Sweep(KIND, depth, items, Coverage(CoverageKind.COMPLETE))


def index_quotas(sweep: Sweep) -> Quotas:
    """The quotas of a listing by entity."""
    return {
        item.attributes["entity"]: {
            key: Decimal(value) for key, value in item.attributes["config"].items()
        }
        for item in sweep.items
    }


# ── the type ────────────────────────────────────────────────────────────────────────────


def read_entity(attributes: FrozenMap) -> FrozenMap:
    """The entity of a quota, or of a block that declares one. Raises ValueError like
    `parse_entity`."""
    entity = attributes.get("entity")
    return entity if isinstance(entity, FrozenMap) else parse_entity(attributes)


def get_limits(attributes: FrozenMap | None) -> FrozenMap:
    """The limits of a quota; None of a block that leaves a limit as it is."""
    return FrozenMap((attributes or EMPTY).get("config") or EMPTY)


def _target(declared: FrozenMap, observed: Observed | None, _: Facts, keep: bool) -> FrozenMap:
    target, live = get_limits(declared), get_limits(observed.attributes if observed else None)
    stays = {key for key in live if keep or key in target}
    config = {key: live[key] for key in stays if target.get(key) is None}
    for key, value in target.items():
        if value is not None:
            config[key] = live[key] if _is_same(live.get(key), value) else value
    return FrozenMap({"entity": parse_entity(declared), "config": FrozenMap(config)})


def _is_same(first: Value, second: Value) -> bool:
    if isinstance(first, int | Decimal) and isinstance(second, int | Decimal):
        return isclose(float(first), float(second), rel_tol=TOLERANCE)
    return False


def _find_limit_faults(config: FrozenMap) -> limits.Faults:
    """Limits that are wrong for every kind of entity: a check of this attribute sees no other."""
    for key, value in config.items():
        if value is not None:
            yield from limits.find_unknown_faults(key)
            yield from limits.find_value_faults(key, value)


def _steps(change: Change, _: Facts) -> tuple[Step, ...]:
    if change.action in SILENT:
        return ()
    if change.action is Action.DELETE:
        gone = tuple(sorted(get_limits(change.before)))
        return (_make_step(change, REMOVE_QUOTAS, EMPTY, gone, all_paths(change)),)
    paths = all_paths(change) if change.action is Action.CREATE else paths_below(change, "config")
    if not paths:
        return ()
    before, after = get_limits(change.before), get_limits(change.after)
    put = {key: value for key, value in after.items() if before.get(key) != value}
    gone = tuple(sorted(before.keys() - after.keys()))
    return (_make_step(change, ALTER_QUOTAS, FrozenMap(put), gone, paths),)


def _make_step(
    change: Change,
    request: Request,
    put: FrozenMap,
    gone: tuple[str, ...],
    paths: tuple[tuple[str, ...], ...],
) -> Step:
    payload: dict[str, Value] = {
        "entity": parse_entity_key(change.identity.key),
        "set": put,
        "remove": gone,
    }
    return make_step(change, 1, request, payload, paths, weight=max(1, len(put) + len(gone)))


def _repair_removal(
    step: Step, left_values: Mapping[Path, Value]
) -> tuple[FrozenMap, FrozenMap] | None:
    """The payload that sets these limits as they are, and the one that removes them again.

    As for configs, the controller writes no record for the removal of what it does not have.
    """
    if any(path[0] != "config" for path in left_values):
        return None
    values = FrozenMap({path[1]: value for path, value in left_values.items()})
    return (
        step.payload.with_items({"set": values, "remove": ()}),
        step.payload.with_items({"set": EMPTY, "remove": tuple(sorted(values))}),
    )


ENTITY = (
    AttributeSchema("entity_type", STRING, "Type of entity_name.", choices=(CLIENT_ID, USER, IP)),
    AttributeSchema(
        "entity_name",
        STRING,
        'Name of the entity; here "default" is a name like any other. Without it: the default '
        "entity of the type.",
    ),
    AttributeSchema("user", STRING, "A user, or default."),
    AttributeSchema("client_id", STRING, "A client id, or default."),
    AttributeSchema("ip", STRING, "An IP address, or default.", refuses=limits.find_address_faults),
)
CONFLICTS = (
    *product(("entity_type", "entity_name"), ("user", "client_id", "ip")),
    ("ip", "user"),
    ("ip", "client_id"),
)

TYPE = ResourceType(
    name=KIND,
    schema=make_schema(
        "Limits for a user, a client id, both together, or an IP address. The entity is given by "
        "entity_type and entity_name, by user and client_id, or by ip. The import id is the key "
        "that plans show, such as user=ci|client-id=app, without =NAME for a default part; or "
        "entity_name|entity_type, or entity-default|entity_type.",
        *ENTITY,
        AttributeSchema(
            "config",
            map_of(NUMBER),
            "Limits by name: producer_byte_rate, consumer_byte_rate, request_percentage, "
            "controller_mutation_rate; for an ip connection_creation_rate. The plan shows and "
            "removes live limits that are not in the map. null leaves a limit as it is.",
            refuses=_find_limit_faults,
            keys=list_quota_keys,
        ),
        conflicts=CONFLICTS,
    ),
    key=lambda attributes: entity_key(read_entity(attributes)),
    canonical=lambda attributes, _: attributes,
    target=_target,
    steps=_steps,
    import_key=import_key,
    ours=select_declared,
    left=make_remainder("config"),
    repair=_repair_removal,
    unit=limits.find_quota_unit,
    settings=True,
    shareable=True,
    written=write_arguments,
)


QUOTA_SOURCES: Mapping[tuple[bool | None, bool | None], str] = {
    (True, True): "Client of user",
    (True, False): "Default client of user",
    (True, None): "User",
    (False, True): "Client of default user",
    (False, False): "Default client of default user",
    (False, None): "Default user",
    (None, True): "Client",
    (None, False): "Default client",
}
"""Whether the user and the client id have names (None: not part of the entity) -> KIP-248's
QuotaSource."""


def list_quotas(
    items: Sequence[Observed], _: str, fields: Mapping[str, str | None]
) -> tuple[FrozenMap, ...]:
    """The quotas that fit. fields: entity part -> glob for its name, None for entities without that
    part; the default entity has the name `default`, or the empty name (KIP-248)."""
    return tuple(
        FrozenMap(
            entity=item.attributes["entity"],
            config=item.attributes["config"],
            source=name_quota_source(item.attributes["entity"]),
        )
        for item in sort_by_fields(items)
        if all(_fits_glob(item.attributes["entity"], *field) for field in fields.items())
    )


def _fits_glob(entity: Mapping[str, str | None], kind: str, glob: str | None) -> bool:
    if kind not in entity or glob is None:
        return kind not in entity and glob is None
    name = entity[kind]
    if name is not None:
        return fnmatchcase(name, glob)
    # A name that only looks like the word is the name of a user or a client.
    return glob == DEFAULT or fnmatchcase("", glob)


def name_quota_source(entity: Mapping[str, str | None]) -> str:
    """KIP-248's name for the level of a quota."""
    if "ip" in entity:
        return "Default IP" if entity["ip"] is None else "IP"
    user, client = (
        entity[kind] is not None if kind in entity else None for kind in (USER, CLIENT_ID)
    )
    return QUOTA_SOURCES[user, client]


FIELDS: Mapping[str, Type] = {
    "id": STRING,
    "user": STRING,
    "client_id": STRING,
    "ip": STRING,
    "config": map_of(NUMBER),
}
_FILTER_PARTS = {"user": USER, "client_id": CLIENT_ID, "ip": IP}


def fits_arguments(entity: Mapping[str, str | None], arguments: FrozenMap) -> bool:
    """True if the entity has every part that the arguments name, with the same name."""
    kind, name = arguments.get("entity_type"), arguments.get("entity_name")
    if kind is not None and kind not in entity:
        return False
    if name is not None and name not in ([entity[kind]] if kind else entity.values()):
        return False
    filters = {
        entity_type: arguments.get(attribute) for attribute, entity_type in _FILTER_PARTS.items()
    }
    return all(
        entity_type in entity and _describe_part(entity, entity_type) == value
        for entity_type, value in filters.items()
        if value is not None
    )


def describe_quota(item: Observed) -> FrozenMap:
    """One quota as the data source returns it."""
    entity, config = item.attributes["entity"], item.attributes["config"]
    entity_values: dict[str, Value] = {
        name: _describe_part(entity, kind) for name, kind in _FILTER_PARTS.items()
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


KINDS = (
    ResourceKind(
        KIND,
        TYPE,
        rights=KindRights(
            "Cluster", ("DescribeConfigs",), ("AlterConfigs",), deletes="AlterConfigs"
        ),
        connect=defer(__package__, "requests:REQUESTS"),
        simulate=defer(__package__, "simulation:SIMULATED"),
        document=Document("quotas", list_quotas, "other quotas may be hidden"),
    ),
)
