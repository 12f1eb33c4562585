"""Configs of the simulated cluster: of its brokers, the cluster, groups and client metrics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Failed,
    Hidden,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.secret import PartialRepr
from kafkaform.core.value import EMPTY, FrozenMap, Value

from ...protocol import broker_rules, config_keys
from ...protocol.cluster_facts import (
    KafkaFacts,
    explain_absence,
    find_capability_fault,
    find_listing_fault,
    fit_range,
    presence_faults,
)
from ...protocol.config_keys import IRREMOVABLE, MIN_IN_SYNC, UpdateMode, config_map, config_value
from ...protocol.faults import ALTER, DESCRIBE, LISTING, fault_of, not_live_fault, right_for_configs
from ..simulation import CLUSTER as ON_CLUSTER
from ..simulation import (
    AdminAnswer,
    AdminCall,
    Item,
    ItemVerdict,
    Key,
    ReadScene,
    Refusal,
    RequestResult,
    SimulatedKind,
    SimulatedReads,
    User,
    require,
    run_batch,
)
from ..topic import simulation as topics
from ..topic.configs import find_foreign_paths
from .faults import is_hidden_config
from .resource_type import (
    BROKER,
    CLUSTER,
    DEFAULTS,
    GROUP,
    METRICS,
    SCOPES,
    SET,
    ConfigScope,
)

_OF = {"group": GROUP, "client_metrics": METRICS}
_DENIED = {"broker": 31, "client_metrics": 31, "group": 30}


class Configs(PartialRepr, frozen=True):
    """The own configs of one object."""

    _unshown = frozenset({"secret"})

    config: FrozenMap = EMPTY
    secret: FrozenMap = EMPTY
    """The configs whose values a broker never reveals, with those values."""


def make_configs(kind: str, values: Mapping[str, str]) -> Configs:
    """An object of this kind with these configs."""
    scope = next(scope for scope in SCOPES if scope.kind == kind)
    secret = {
        name: value for name, value in values.items() if scope.secrets and is_hidden_config(name)
    }
    visible = config_map({k: v for k, v in values.items() if k not in secret}, scope.find)
    return Configs(visible, FrozenMap(secret))


def find_scope(resource: str, name: str) -> ConfigScope:
    """The scope of a resource that a payload names."""
    return _OF.get(resource, BROKER if name else DEFAULTS)


def resource_key(resource: str, name: str) -> Key:
    """The key of this resource's configs in the simulated world."""
    return find_scope(resource, name).kind, name or CLUSTER


def alter_resource(call: AdminCall, item: Item) -> ItemVerdict:
    """IncrementalAlterConfigs of one resource: all keys or none."""
    resource, name = item["resource"], item["name"]
    scope = find_scope(resource, name)
    if scope.capability and explain_absence(scope.capability, call.facts):
        raise Refusal(42, f"Unexpected resource type {resource} for resource {name}")
    require(_may(call.user, "AlterConfigs", resource, name), _DENIED[resource])
    if scope is BROKER and int(name) not in call.brokers:
        raise Refusal(42, f"Unexpected broker id, {name} is not live")
    put = {**item["set"], **item.get("secrets", {})}
    for key_name, value in put.items():
        _check_value(call, scope, key_name, value)
    if call.elr:
        _check_irremovable(scope, put, item["delete"])
    live = call.world.get(resource_key(resource, name)) or Configs()
    secret = {
        key_name: value
        for key_name, value in put.items()
        if scope.secrets and is_hidden_config(key_name)
    }
    visible = config_map({k: v for k, v in put.items() if k not in secret}, scope.find)
    gone = tuple(item["delete"])
    configs = Configs(
        live.config.with_items(visible).without(gone), live.secret.with_items(secret).without(gone)
    )
    exists = configs.config or configs.secret
    return AdminAnswer(made=configs), configs if exists else None, max(1, len(put) + len(gone))


def _check_value(call: AdminCall, scope: ConfigScope, name: str, value: Any) -> None:
    """Raises Refusal with the codes and messages of a real broker."""
    row = scope.find(name)
    if row is not None and any(presence_faults(row, name, call.facts)):
        row = None
    # Groups and client metrics refuse unknown keys; brokers accept them for their plugins.
    if row is None:
        if scope is GROUP:
            raise Refusal(40, f"Unknown group config name: {name}")
        if scope is METRICS:
            raise Refusal(42, f"Unknown client metrics configuration: {name}")
        return
    if scope.resource == "broker":
        _check_dynamic(scope, name)
    row = fit_range(row, call.facts)
    parsed = config_value(name, value, scope.find) if isinstance(value, str) else None
    if parsed is not None and [*broker_rules.value_faults(row, name, parsed)]:
        code = 40 if scope is GROUP else 42
        raise Refusal(code, f"Invalid value for configuration {name}")


def _check_irremovable(scope: ConfigScope, put: Iterable[str], gone: Iterable[str]) -> None:
    """Raises Refusal for configs that ELR protects (KIP-966)."""
    locked = {*IRREMOVABLE.get(scope.resource, ())}
    if scope is BROKER and locked & {*put, *gone}:
        raise Refusal(40, f"Broker-level {MIN_IN_SYNC} cannot be altered while ELR is enabled.")
    if locked & {*gone}:
        raise Refusal(40, f"Cluster-level {MIN_IN_SYNC} cannot be removed while ELR is enabled.")


def _check_dynamic(scope: ConfigScope, name: str) -> None:
    row = config_keys.find_broker_key(name)
    mode = row.mode if row else UpdateMode.CLUSTER
    if mode is UpdateMode.READ_ONLY:
        raise Refusal(42, f"Cannot update these configs dynamically: [{name}]")
    if mode is UpdateMode.LISTENER:
        raise Refusal(42, f"can be dynamically updated only per-listener: [{name}]")
    if mode is UpdateMode.BROKER and scope is DEFAULTS:
        raise Refusal(42, f"broker id must be specified: [{name}]")


def _may(user: User, operation: str, resource: str, name: str) -> bool:
    return user.may(operation, f"group:{name}" if resource == "group" else ON_CLUSTER)


def _sweep(scope: ConfigScope, scene: ReadScene, depth: Depth) -> Sweep:
    fault = find_listing_fault(scope.capability, scope.listing, scene.facts, LISTING)
    if not fault and not scene.user.may("DescribeConfigs", ON_CLUSTER):
        fault = fault_of(DESCRIBE, 31, "")
    if fault:
        return Sweep(scope.kind, depth, (), Coverage(CoverageKind.FAILED, fault))
    names = scene.objects(scope.kind)
    readings = [_read(scope, scene, Identity(scene.instance, scope.kind, name)) for name in names]
    items = tuple(item for item in readings if isinstance(item, Observed))
    coverage = CoverageKind.VISIBLE_ONLY if scope is BROKER else CoverageKind.COMPLETE
    return Sweep(scope.kind, depth, items, Coverage(coverage))


def _read(scope: ConfigScope, scene: ReadScene, identity: Identity) -> Reading:
    name = identity.key
    if scope.capability and (
        fault := find_capability_fault(scope.capability, scene.facts, DESCRIBE)
    ):
        return Failed(identity, fault)
    if not _may(scene.user, "DescribeConfigs", scope.resource, name):
        return Hidden(identity, right_for_configs(DESCRIBE, scope.resource, name))
    if scope is BROKER and int(name) not in scene.live:
        return Failed(identity, not_live_fault(name, [str(number) for number in scene.live]))
    own = _get_own(scope, scene, name)
    foreign = find_foreign_paths(scope.resource, own.config, scene.facts)
    names = {*scope.list_names(), *own.config}
    below = {f"config.{key}": _find_fallback(scope, scene, key) for key in names}
    fallbacks = FrozenMap({path: value for path, value in below.items() if value is not None})
    if not own.config and not own.secret:
        return Absent(identity, fallbacks=fallbacks)
    secret = FrozenMap(dict.fromkeys(own.secret, SET))
    observed = Observed(
        identity,
        scope.make_attributes(name, own.config, secret),
        fallbacks=fallbacks,
        details=scope.make_details(secret),
        foreign=foreign,
    )
    if len(foreign) == len(own.config) + len(own.secret):
        return Absent(identity, observed, fallbacks=fallbacks)
    return observed


def _get_own(scope: ConfigScope, scene: ReadScene, name: str) -> Configs:
    own: Configs = scene.objects(scope.kind).get(name) or Configs()
    # A cluster that is formatted with ELR (KIP-966) has this config although nobody set it.
    if scope is DEFAULTS and KafkaFacts.of(scene.facts).elr and MIN_IN_SYNC not in own.config:
        return Configs(own.config.with_items({MIN_IN_SYNC: "1"}), own.secret)
    return own


def _find_fallback(scope: ConfigScope, scene: ReadScene, name: str) -> Value:
    if scope is BROKER:
        shared = _get_own(DEFAULTS, scene, CLUSTER).config
        if name in shared:
            value: Value = shared[name]
            return value
    row = scope.find(name)
    return config_value(name, row.default, scope.find) if row and row.default else None


# ── one request for every kind of resource ──────────────────────────────────────────────


def alter_configs(call: AdminCall, items: Sequence[Item]) -> RequestResult:
    """IncrementalAlterConfigs: all keys of a resource or none."""
    return run_batch(call, items, _key_of, lambda item: _alter_item(call, item))


def _key_of(item: Item) -> Key:
    return RESOURCES[item["resource"]][0](item["name"])


def _alter_item(call: AdminCall, item: Item) -> ItemVerdict:
    put, gone = item["set"], tuple(item["delete"])
    if len({*put, *gone}) != len(put) + len(gone):
        raise Refusal(42, "the request names a config key twice")
    return RESOURCES[item["resource"]][1](call, item)


RESOURCES: Mapping[str, tuple[Callable[[str], Key], Callable[[AdminCall, Item], ItemVerdict]]] = {
    "topic": (topics.topic_key, topics.alter_topic),
    **{
        resource: (partial(resource_key, resource), alter_resource)
        for resource in ("broker", "group", "client_metrics")
    },
}
"""Resource type in payloads -> its key in the simulated world, and the handler that alters it."""


def simulate(scope: ConfigScope) -> SimulatedKind:
    """The part of the simulated cluster for one kind of configs."""
    sweep, read = partial(_sweep, scope), partial(_read, scope)
    return SimulatedKind(
        reads=SimulatedReads(LISTING, DESCRIBE, DESCRIBE, sweep, read),
        handlers={ALTER: alter_configs},
    )
