"""`kafka_broker_config`, `kafka_cluster_config`, `kafka_group_config` and `kafka_client_metrics`.

All four work alike: an object exists as long as it has configs of its own. Inherited values are
shown, but never removed. Values that a broker never reveals are in `secret_config`: they are sent
when they are new and when `secret_config_version` changes, and `secret_keys` shows which are set.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Action, Change, Path, Request, Step
from kafkaform.core.resource import Facts, Identity, Observed
from kafkaform.core.schema import NUMBER, STRING, TEXT, AttributeSchema, make_schema, map_of
from kafkaform.core.text import parse_whole
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef, Value
from kafkaform.provider.contract import ResourceType

from ...protocol import config_keys
from ...protocol.cluster_facts import (
    CLIENT_METRICS,
    FEATURE_MISSING,
    GROUP_CONFIG_LISTING,
    GROUP_CONFIGS,
    Capability,
)
from ...protocol.config_keys import GROUP_KEYS, METRICS_KEYS, ConfigKey, Lookup, config_map
from ..kind import (
    ALTER_CONFIGS,
    REMOVE_CONFIGS,
    SILENT,
    KindRights,
    ResourceKind,
    all_paths,
    defer,
    paths_below,
)
from ..topic.configs import (
    compute_target_config,
    get_config,
    is_foreign_config,
    make_alter_step,
    make_remainder,
    repair_removal,
    select_declared,
)
from . import faults

CONFIG = AttributeSchema(
    "config",
    map_of(TEXT),
    "Configs by name; a list is a list or text with commas. The plan shows and removes configs "
    'that are set but not in the map, unless config_mode is "additive". null leaves a config as it '
    "is.",
)
"""Without the checks of its values, and without known keys."""
MODE = AttributeSchema(
    "config_mode",
    STRING,
    "authoritative: configs that are not in config are removed; additive: they stay.",
    default="authoritative",
    choices=("authoritative", "additive"),
)
# KRaft keeps dynamic passwords in the metadata log without encryption; docs/configs.md warns.
SECRETS = (
    AttributeSchema(
        "secret_config",
        map_of(STRING),
        "Configs whose values a broker never reveals, by name: passwords, keys, and configs of "
        "plugins that the broker does not know.",
        secret=True,
        keys=config_keys.list_broker_secrets,
    ),
    AttributeSchema(
        "secret_config_version",
        STRING,
        "Any text. When it changes, secret_config is sent again.",
    ),
    AttributeSchema(
        "secret_keys",
        map_of(STRING),
        "The secret configs that are set, without their values.",
        computed=True,
    ),
)


CLUSTER = "default"
"""The key of the cluster's configs."""

SET = "set"
"""The value of `secret_keys` for a config whose secret is set."""


class ConfigScope(Struct, frozen=True):
    """One kind's place among Kafka's configs."""

    kind: str
    resource: str
    """The resource type in requests."""
    source: int
    """The ConfigSource of the object's own configs."""
    attribute: str | None
    """The attribute that names the object, None if there is only one."""
    find: Lookup
    """The table of its configs."""
    list_names: Callable[[], Iterable[str]]
    """The configs that each object has."""
    secrets: bool = False
    """True if it can have configs whose values a broker never reveals."""
    capability: Capability | None = None
    """What a cluster must have for it, None if every one has it."""
    listing: Capability | None = None
    """What a cluster must have to list its objects, None if every one has it that has them."""

    def resource_name(self, key: str) -> str:
        """The resource's name in a request."""
        # The configs of the cluster are those of a broker with an empty name (KIP-226). librdkafka
        # refuses that name, and so these requests go through kafka-python.
        return "" if self.attribute is None else key

    def node(self, key: str) -> str | None:
        """The broker that must get the request, None for any."""
        # Only a broker itself reads and validates its own configs; another one answers with 42.
        return key if self.attribute == "broker_id" else None

    def make_details(self, secret: FrozenMap) -> FrozenMap:
        """The computed attributes, for outputs."""
        return FrozenMap(secret_keys=secret) if self.secrets else EMPTY

    def make_attributes(self, key: str, config: FrozenMap, secret: FrozenMap) -> FrozenMap:
        """The observed attributes of the object with this key."""
        named: dict[str, Value] = {}
        if self.attribute is not None:
            named[self.attribute] = int(key) if self.attribute == "broker_id" else key
        hidden = {"secret_keys": secret} if secret else {}
        return FrozenMap({**named, "config": config, **hidden})


def _broker_key(name: str) -> ConfigKey | None:
    row = config_keys.find_broker_key(name)
    return row.key if row else None


BROKER = ConfigScope(
    "kafka_broker_config",
    "broker",
    2,
    "broker_id",
    _broker_key,
    config_keys.broker_keys,
    secrets=True,
)
DEFAULTS = ConfigScope(
    "kafka_cluster_config",
    "broker",
    3,
    None,
    _broker_key,
    config_keys.broker_keys,
    secrets=True,
)
GROUP = ConfigScope(
    "kafka_group_config",
    "group",
    8,
    "group",
    GROUP_KEYS.get,
    GROUP_KEYS.keys,
    capability=GROUP_CONFIGS,
    listing=GROUP_CONFIG_LISTING,
)
METRICS = ConfigScope(
    "kafka_client_metrics",
    "client_metrics",
    7,
    "name",
    METRICS_KEYS.get,
    METRICS_KEYS.keys,
    capability=CLIENT_METRICS,
)
SCOPES = (BROKER, DEFAULTS, GROUP, METRICS)


def _key(scope: ConfigScope, attributes: FrozenMap) -> str:
    if scope.attribute is None:
        return CLUSTER
    value = attributes.get(scope.attribute)
    if value is None or value == "" or (isinstance(value, int) and value < 0):
        raise ValueError(f"a {scope.kind} needs {scope.attribute}")
    return str(value)


def _import_key(scope: ConfigScope, text: str) -> str:
    if scope is DEFAULTS and text != CLUSTER:
        raise ValueError(f'the import id of a {scope.kind} is "{CLUSTER}"')
    number = parse_whole(text)
    if scope is BROKER and number is None:
        raise ValueError(f"the import id of a {scope.kind} is the broker's id, a number")
    if not text:
        raise ValueError(f"the import id of a {scope.kind} is its {scope.attribute}")
    return str(number) if scope is BROKER else text


def _canonical(scope: ConfigScope, attributes: FrozenMap, _: Facts) -> FrozenMap:
    return attributes.with_items({"config": config_map(attributes.get("config"), scope.find)})


def _write_arguments(attributes: FrozenMap) -> FrozenMap:
    """The arguments of a block, with an empty reference for each secret that is set."""
    secret_keys = attributes.get("secret_keys") or EMPTY
    return attributes.with_items(
        {"secret_config": FrozenMap(dict.fromkeys(secret_keys, SecretRef("env", "")))}
    )


def _target(
    scope: ConfigScope, declared: FrozenMap, observed: Observed | None, facts: Facts, keep: bool
) -> FrozenMap:
    live = observed.attributes if observed else EMPTY
    keep = keep or declared.get("config_mode") == "additive"
    masked = faults.mask_config(declared.get("config")) if scope.secrets else declared.get("config")
    named = {scope.attribute: declared[scope.attribute]} if scope.attribute else {}
    config = compute_target_config(
        masked, get_config(live), facts, keep, scope.find, scope.resource
    )
    hidden = _merge_secrets(declared, live, keep) if scope.secrets else {}
    return FrozenMap({**named, "config": config, **hidden})


def _merge_secrets(declared: FrozenMap, live: FrozenMap, keep: bool) -> Mapping[str, Value]:
    """The references to declared secrets, and the keys of all secrets that will be set."""
    declared_keys, live_keys = (
        declared.get("secret_config") or EMPTY,
        live.get("secret_keys") or EMPTY,
    )
    secrets = {key: value for key, value in declared_keys.items() if value is not None}
    set_keys = {key: SET for key in live_keys if keep or key in declared_keys}
    keys = FrozenMap({**set_keys, **dict.fromkeys(secrets, SET)})
    return {
        "secret_config": FrozenMap(secrets) if secrets else None,
        "secret_keys": keys if keys or live_keys else None,
    }


def _select_ours(target: FrozenMap, declared: FrozenMap) -> FrozenMap:
    declared_keys = declared.get("secret_config") or EMPTY
    target_keys = target.get("secret_keys") or EMPTY
    keys = {key: value for key, value in target_keys.items() if declared_keys.get(key) is not None}
    return select_declared(target, declared).with_items({"secret_keys": FrozenMap(keys)})


def _steps(scope: ConfigScope, change: Change, facts: Facts) -> tuple[Step, ...]:
    if change.action in SILENT:
        return ()
    return _STEPS[change.action](scope, change, facts)


def _create_steps(scope: ConfigScope, change: Change, _: Facts) -> tuple[Step, ...]:
    put, secrets = get_config(change.after), _get_secrets(change.after)
    return _make_steps(scope, change, ALTER_CONFIGS, put, (), all_paths(change), secrets)


def _update_steps(scope: ConfigScope, change: Change, _: Facts) -> tuple[Step, ...]:
    paths = paths_below(change, "config", "secret_keys")
    after = get_config(change.after)
    changed = [path[1] for path in paths if path[0] == "config"]
    hidden = [path[1] for path in paths if path[0] == "secret_keys"]
    remaining = (change.after or EMPTY).get("secret_keys") or EMPTY
    gone = (
        *(key for key in changed if key not in after),
        *(key for key in hidden if key not in remaining),
    )
    put = {key: after[key] for key in changed if key in after}
    every = _get_secrets(change.after)
    secrets = {
        key: ref for key, ref in every.items() if _must_send_secrets(change) or key in hidden
    }
    return _make_steps(scope, change, ALTER_CONFIGS, put, tuple(sorted(gone)), paths, secrets)


def _removal_steps(scope: ConfigScope, change: Change, facts: Facts) -> tuple[Step, ...]:
    own = {**get_config(change.before), **((change.before or EMPTY).get("secret_keys") or EMPTY)}
    gone = tuple(key for key in sorted(own) if not is_foreign_config(scope.resource, key, facts))
    return _make_steps(scope, change, REMOVE_CONFIGS, EMPTY, gone, all_paths(change))


_STEPS: Mapping[Action, Callable[[ConfigScope, Change, Facts], tuple[Step, ...]]] = {
    Action.CREATE: _create_steps,
    Action.UPDATE: _update_steps,
    Action.DELETE: _removal_steps,
}


def _make_steps(
    scope: ConfigScope,
    change: Change,
    kind_request: Request,
    put: Mapping[str, Value],
    gone: tuple[str, ...],
    paths: tuple[Path, ...],
    secrets: Mapping[str, Value] = EMPTY,
) -> tuple[Step, ...]:
    """One step, or none if there is nothing to do."""
    # One, because a request may name a resource only once (INVALID_REQUEST, 42), and because Kafka
    # applies all keys of a resource or none of them.
    if not put and not gone and not secrets:
        return ()
    key = change.identity.key
    request = replace(kind_request, node=scope.node(key))
    step = make_alter_step(
        change,
        1,
        request,
        put,
        gone,
        paths,
        resource=scope.resource,
        name=scope.resource_name(key),
        secrets=secrets,
    )
    return (step,)


def _get_secrets(attributes: FrozenMap | None) -> Mapping[str, Value]:
    return (attributes or EMPTY).get("secret_config") or EMPTY


def _must_send_secrets(change: Change) -> bool:
    """True if the secrets must be sent again."""
    # An adoption keeps the secrets that are set: whether they are the declared ones is unknown.
    version = change.row_after.secret_version
    return version is not None and version != change.row_before.secret_version and not change.adopts


def find_unit(find: Lookup, path: Path) -> str:
    """The unit of the value at a path, or an empty text. find: the table of the configs."""
    row = find(path[1]) if len(path) == 2 and path[0] == "config" else None
    return row.unit if row is not None else ""


def make_identity(instance: str, scope: ConfigScope, name: str) -> Identity:
    """The identity of a resource by its name in requests."""
    return Identity(instance, scope.kind, name or CLUSTER)


# ── schemas ─────────────────────────────────────────────────────────────────────────────


def _make_type(scope: ConfigScope, doc: str, *attributes: AttributeSchema) -> ResourceType:
    return ResourceType(
        name=scope.kind,
        schema=make_schema(doc, *attributes),
        key=partial(_key, scope),
        canonical=partial(_canonical, scope),
        target=partial(_target, scope),
        steps=partial(_steps, scope),
        import_key=partial(_import_key, scope),
        ours=_select_ours,
        left=make_remainder("config", "secret_keys"),
        written=_write_arguments,
        switched_off=frozenset({FEATURE_MISSING}),
        repair=repair_removal,
        unit=partial(find_unit, scope.find),
        settings=True,
    )


TYPES: tuple[ResourceType, ...] = (
    _make_type(
        BROKER,
        "Dynamic configs of one broker. They override those of the cluster and of its "
        "server.properties. The import id is the broker's id.",
        AttributeSchema("broker_id", NUMBER, "Id of the broker.", required=True, whole=True),
        replace(CONFIG, refuses=faults.refuse_broker_configs, keys=config_keys.list_broker_keys),
        MODE,
        *SECRETS,
    ),
    _make_type(
        DEFAULTS,
        "Dynamic configs of all brokers. They override those of their server.properties. "
        f'The import id is "{CLUSTER}".',
        replace(CONFIG, refuses=faults.refuse_broker_configs, keys=config_keys.list_cluster_keys),
        MODE,
        *SECRETS,
    ),
    _make_type(
        GROUP,
        "Configs of a consumer, share or streams group (KIP-848, KIP-932, KIP-1071). The group "
        "does not have to exist yet. The import id is the group's name.",
        AttributeSchema("group", STRING, "Name of the group.", required=True),
        replace(
            CONFIG,
            required=True,
            refuses=faults.refuse_group_configs,
            keys=config_keys.list_group_keys,
        ),
        MODE,
    ),
    _make_type(
        METRICS,
        "A subscription to client metrics (KIP-714). The import id is its name.",
        AttributeSchema("name", STRING, "Name of the subscription.", required=True),
        replace(
            CONFIG,
            required=True,
            refuses=faults.refuse_metrics_configs,
            keys=config_keys.list_metrics_keys,
        ),
        MODE,
    ),
)


KINDS = tuple(
    ResourceKind(
        scope.kind,
        kind,
        # Configs of brokers and of client metrics belong to the cluster (KIP-133, KIP-714).
        rights=KindRights(
            resource_type="Group" if scope.resource == "group" else "Cluster",
            sees=("DescribeConfigs",),
            changes=("AlterConfigs",),
            deletes="AlterConfigs",
        ),
        connect=defer(__package__, "requests:make_requests", scope),
        simulate=defer(__package__, "simulation:simulate", scope),
    )
    for scope, kind in zip(SCOPES, TYPES, strict=True)
)
