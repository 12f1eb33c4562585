"""Reads and alters the configs of brokers, cluster, groups and client metrics subscriptions.

Only a broker itself reports its configs, so one that is down is a failure, never an absence. An
object without configs of its own is absent, because Kafka stores nothing else of it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

from msgspec.structs import replace

from kafkaform.core.change import Step
from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Failed,
    Fault,
    FaultClass,
    Hidden,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.contract import Secrets

from ...protocol import apis
from ...protocol.cluster_facts import KafkaFacts, find_capability_fault, find_listing_fault
from ...protocol.config_keys import BROKER_TIMES, config_value, parse_integer
from ...protocol.faults import (
    ALTER,
    DESCRIBE,
    LISTING,
    config_fault,
    fault_of,
    lost_answer_fault,
    not_live_fault,
    right_for_configs,
)
from ...wire.answers import ConfigEntry, ItemAnswer, ItemAnswers, Synonym
from ...wire.configs import ResourceNames, alter_configs, describe_configs, list_config_resources
from ...wire.topics import ANSWER_MARGIN
from ..context import (
    ClusterContext,
    Order,
    Reads,
    Reply,
    Requests,
    attempt,
    find_answering_node,
    live_nodes,
)
from ..topic.configs import find_foreign_paths
from .faults import MASK
from .resource_type import BROKER, CLUSTER, DEFAULTS, SET, ConfigScope, make_identity

AT_ONCE = 250
"""Resources in one DescribeConfigs request."""
IN_FLIGHT = 4
"""DescribeConfigs requests at the same time."""
_REFUSED = (29, 30, 31)
_SET_FOR_BROKERS = (2, 3)
"""Config sources that override a broker's server.properties (ConfigSource)."""

_UNITS = {name: unit for names in BROKER_TIMES.values() for name, unit in names}
"""Broker config -> milliseconds in its unit, for configs that have variants in other units."""

ResourceAnswers = Mapping[str, ItemAnswer | Fault]


def sweep_configs(scope: ConfigScope, context: ClusterContext, depth: Depth) -> Sweep:
    """All objects of a kind that have configs of their own."""
    names = _list_names(scope, context)
    if isinstance(names, Fault):
        return Sweep(scope.kind, depth, (), Coverage(CoverageKind.FAILED, names))
    ids = [make_identity(context.instance, scope, name) for name in names]
    readings = read_configs(scope, context, ids, None).values()
    items = tuple(item for item in readings if isinstance(item, Observed))
    return Sweep(scope.kind, depth, items, _judge_coverage(scope, readings))


def read_configs(
    scope: ConfigScope, context: ClusterContext, ids: Sequence[Identity], node: str | None
) -> Mapping[Identity, Reading]:
    """These objects. node: the broker to ask, None for any; the configs of a broker always come
    from the broker itself."""
    answers = _read_answers(scope, context, [item.key for item in ids], node)
    below = _read_cluster_fallbacks(context, node) if scope is DEFAULTS else {}
    return {item: _make_reading(scope, context, item, answers[item.key], below) for item in ids}


def _list_names(scope: ConfigScope, context: ClusterContext) -> Sequence[str] | Fault:
    if scope is BROKER:
        return context.facts.nodes
    if scope is DEFAULTS:
        return (CLUSTER,)
    if fault := find_listing_fault(scope.capability, scope.listing, context.facts, LISTING):
        return fault
    # A group can have configs before it exists (KIP-848), so a listing of groups would not do.
    listed = attempt(
        LISTING, lambda: list_config_resources(context.wire, scope.resource, context.timeout)
    )
    if isinstance(listed, ResourceNames):
        return fault_of(LISTING, listed.code, "") if listed.code else listed.names
    return listed


def _judge_coverage(scope: ConfigScope, readings: Iterable[Reading]) -> Coverage:
    for reading in readings:
        if isinstance(reading, Failed):
            return Coverage(CoverageKind.FAILED, reading.fault)
        if isinstance(reading, Hidden):
            return Coverage(CoverageKind.VISIBLE_ONLY)
    # Only live brokers were asked, and one that is down can have configs, too.
    return Coverage(CoverageKind.VISIBLE_ONLY if scope is BROKER else CoverageKind.COMPLETE)


def _read_answers(
    scope: ConfigScope, context: ClusterContext, names: Sequence[str], node: str | None
) -> ResourceAnswers:
    """Key -> the configs of the object, or why they could not be read."""
    # Each broker must get its own request: DescribeConfigs does not forward it.
    size = 1 if scope is BROKER else AT_ONCE
    chunks = [names[start : start + size] for start in range(0, len(names), size)]
    items: dict[str, ItemAnswer | Fault] = {}
    with ThreadPoolExecutor(IN_FLIGHT, "describe-configs") as pool:
        for answers in pool.map(partial(_ask_configs, scope, context, node), chunks):
            items.update(answers)
    return items


def _ask_configs(
    scope: ConfigScope, context: ClusterContext, node: str | None, keys: Sequence[str]
) -> ResourceAnswers:
    # Not left to the broker: it would refuse the number of the resource type, or answer with no
    # configs, which would mean that there are none.
    if scope.capability and (
        fault := find_capability_fault(scope.capability, context.facts, DESCRIBE)
    ):
        return dict.fromkeys(keys, fault)
    to = scope.node(keys[0]) or node
    if scope is BROKER and to not in context.facts.nodes and to not in live_nodes(context):
        return {keys[0]: not_live_fault(keys[0], live_nodes(context))}
    answers = attempt(
        DESCRIBE,
        lambda: describe_configs(
            context.wire,
            scope.resource,
            [scope.resource_name(key) for key in keys],
            context.timeout,
            synonyms=True,
            node=to,
        ),
        to,
    )
    if isinstance(answers, Fault):
        return dict.fromkeys(keys, answers)
    missing = ItemAnswer(-1, "it is missing in the broker's answer")
    return {key: answers.get(scope.resource_name(key), missing) for key in keys}


def _make_reading(
    scope: ConfigScope,
    context: ClusterContext,
    item: Identity,
    answer: ItemAnswer | Fault,
    below: Mapping[str, Value],
) -> Reading:
    if isinstance(answer, Fault):
        return Failed(item, answer)
    if answer.code in _REFUSED:
        return Hidden(item, right_for_configs(DESCRIBE, scope.resource, item.key))
    if answer.code:
        fault = config_fault(DESCRIBE, scope.resource, item.key, answer.code, answer.message)
        return Failed(item, fault)
    # An entry is the object's own only if its source is exactly that of its level. Everything else
    # is inherited and must not be removed.
    own = [entry for entry in answer.configs or () if entry.source == scope.source]
    foreign = find_foreign_paths(scope.resource, (entry.name for entry in own), context.facts)
    values = below or _list_values_below(scope, answer.configs or ())
    fallbacks = FrozenMap({f"config.{key}": value for key, value in values.items()})
    if not own:
        return Absent(item, fallbacks=fallbacks)
    config, secret = _split_secrets(scope, own)
    observed = Observed(
        item,
        scope.make_attributes(item.key, config, secret),
        fallbacks=fallbacks,
        details=scope.make_details(secret),
        foreign=foreign,
    )
    return Absent(item, observed, fallbacks=fallbacks) if len(foreign) == len(own) else observed


def _split_secrets(scope: ConfigScope, own: Iterable[ConfigEntry]) -> tuple[FrozenMap, FrozenMap]:
    """The configs with values, canonical, and those of which the broker reports only the names."""
    config: dict[str, Value] = {}
    secret: dict[str, Value] = {}
    for entry in own:
        if entry.sensitive:
            secret[entry.name] = SET
        else:
            config[entry.name] = config_value(entry.name, entry.value, scope.find)
    return FrozenMap(config), FrozenMap(secret)


def _list_values_below(scope: ConfigScope, entries: Iterable[ConfigEntry]) -> Mapping[str, Value]:
    """Config -> the value that takes effect without the object's own."""
    # Older brokers report no configs of groups and of client metrics but those that are set.
    names = () if scope.resource == "broker" else scope.list_names()
    values = {name: _find_default(scope, name) for name in names}
    values.update((entry.name, _find_fallback(scope, entry)) for entry in entries)
    return {name: value for name, value in values.items() if value is not None}


def _find_fallback(scope: ConfigScope, entry: ConfigEntry) -> Value:
    """The value that takes effect without the object's own: of the next level, or the default."""
    hidden = _SET_FOR_BROKERS if scope is DEFAULTS else (scope.source,)
    lower = next((item for item in entry.synonyms if item.source not in hidden), None)
    if lower is not None:
        return _convert_value(scope, entry.name, lower)
    return _find_default(scope, entry.name)


def _find_default(scope: ConfigScope, name: str) -> Value:
    entry = scope.find(name)
    return config_value(name, entry.default, scope.find) if entry and entry.default else None


def _convert_value(scope: ConfigScope, name: str, lower: Synonym) -> Value:
    """A value of a lower level, converted to this config: log.retention.hours = 168 -> 604800000 as
    log.retention.ms."""
    number = parse_integer(lower.value or "")
    if lower.name == name or number is None or lower.name not in _UNITS or name not in _UNITS:
        return config_value(name, lower.value, scope.find)
    return str(number if number < 0 else number * _UNITS[lower.name] // _UNITS[name])


def _read_cluster_fallbacks(context: ClusterContext, node: str | None) -> Mapping[str, Value]:
    """Config -> the value that takes effect without the cluster's, as one broker reports it."""
    # The cluster's resource (a broker without a name) has no synonyms for the levels below. Static
    # configs can differ between brokers; one of them has to stand for all.
    broker = node or find_answering_node(context)
    if not broker:
        return {}
    fallbacks = attempt(
        DESCRIBE,
        lambda: describe_configs(
            context.wire,
            "broker",
            [broker],
            context.timeout,
            synonyms=True,
            node=broker,
        ),
        broker,
    )
    if isinstance(fallbacks, Fault) or broker not in fallbacks:
        return {}
    return _list_values_below(DEFAULTS, fallbacks[broker].configs or ())


_LISTENER = re.compile(r"listener\.name\.[^.]+\.")


def send_alter_configs(context: ClusterContext, order: Order) -> Sequence[Reply]:
    """One request for all steps; in a dry run without secrets and what depends on them."""
    steps = [(_strip_secrets(step) if order.dry else step) for step in order.steps]
    sent = [step for step in steps if step is not None]
    faults = {r.step.id: r.fault for r in _send_request(context, sent, order)} if sent else {}
    return [
        Reply(step, faults.get(step.id) or (_check_right(context, step) if order.dry else None))
        for step in order.steps
    ]


def _strip_secrets(step: Step) -> Step | None:
    """The step without its secrets and what depends on them; None if nothing is left to check."""
    if not _get_secrets(step):
        return step
    # A broker checks the keystore, its type and its password of one listener together.
    listeners = {match[0] for key in _get_secrets(step) if (match := _LISTENER.match(key))}

    def alone(key: str) -> bool:
        match = _LISTENER.match(key)
        return match is None or match[0] not in listeners

    put = FrozenMap({key: value for key, value in step.payload["set"].items() if alone(key)})
    gone = tuple(key for key in step.payload["delete"] if alone(key))
    payload = step.payload.without(["secrets"]).with_items({"set": put, "delete": gone})
    return replace(step, payload=payload) if put or gone else None


def _send_request(context: ClusterContext, steps: Sequence[Step], order: Order) -> Sequence[Reply]:
    node = steps[0].request.node
    answers = attempt(
        ALTER,
        lambda: alter_configs(
            context.wire,
            [_make_payload(step, order.secrets) for step in steps],
            context.timeout + ANSWER_MARGIN,
            validate_only=order.dry,
            node=node,
        ),
        node,
    )
    if isinstance(answers, Fault):
        return [Reply(step, answers) for step in steps]
    return [Reply(step, _make_fault(step, answers, order.secrets)) for step in steps]


def _get_secrets(step: Step) -> FrozenMap:
    return FrozenMap(step.payload.get("secrets") or EMPTY)


def _make_payload(step: Step, secrets: Secrets) -> FrozenMap:
    revealed = {key: secrets[str(ref)].reveal() for key, ref in _get_secrets(step).items()}
    return step.payload.with_items({"set": FrozenMap({**step.payload["set"], **revealed})})


def _make_fault(step: Step, answers: ItemAnswers, secrets: Secrets) -> Fault | None:
    resource, name = step.payload["resource"], step.payload["name"]
    answer = answers.items.get((resource, name))
    if answer is None:
        return lost_answer_fault(ALTER, f"{step.identity.key} is missing in the broker's answer")
    if answer.code == 0:
        return None
    sent = [secrets[str(ref)].reveal() for ref in _get_secrets(step).values()]
    message = _redact_message(answer.message or "", sent)
    return config_fault(ALTER, resource, name, answer.code, message, wait=answers.throttle)


def _redact_message(message: str, secrets: Iterable[str]) -> str:
    """The broker's message without secrets: brokers quote values that they refuse."""
    # The longest first, so that no secret is left in pieces because it contains another one.
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        message = message.replace(secret, MASK)
    return message


def _check_right(context: ClusterContext, step: Step) -> Fault | None:
    """The fault of a step with secrets if the cluster reports that we lack the right."""
    rights = KafkaFacts.of(context.facts).rights
    if not _get_secrets(step) or not rights or "AlterConfigs" in rights:
        return None
    right = right_for_configs(ALTER, step.payload["resource"], step.payload["name"])
    return Fault(
        "CLUSTER_AUTHORIZATION_FAILED",
        "the right to alter configs is missing",
        FaultClass.PERMISSION,
        "DescribeCluster",
        f"grant {right}, or run as a principal that has it",
    )


def make_requests(scope: ConfigScope) -> Requests:
    """The functions for the configs of one scope."""
    # One function sends the request for all kinds of resources, topics included.
    return Requests(
        Reads(partial(sweep_configs, scope), partial(read_configs, scope)),
        {apis.INCREMENTAL_ALTER_CONFIGS.name: send_alter_configs},
    )
