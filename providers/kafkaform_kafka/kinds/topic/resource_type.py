"""`kafka_topic`: what a block may say, what it means, and the requests that make it true.

Partitions only ever grow, a topic is never replaced, and it is deleted by its id alone: a topic
that somebody recreated under the same name is not the one that was approved for deletion.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkaform.core.change import Action, Change, Evidence, Repeat, Step
from kafkaform.core.diagnostics import Diagnostics, Severity
from kafkaform.core.resource import Facts, Observed
from kafkaform.core.schema import (
    BOOL,
    NUMBER,
    STRING,
    TEXT,
    AttributeSchema,
    list_of,
    make_schema,
    map_of,
)
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.contract import ResourceType

from ...protocol import broker_rules
from ...protocol.apis import MAX_RECORDS
from ...protocol.config_values import config_map
from ..request_order import CREATE_PARTITIONS, CREATE_TOPICS, DELETE_TOPICS
from ..steps import SILENT, all_paths, make_step, paths_below
from . import moves
from .configs import compute_target_config, get_config, make_update_step, select_declared
from .risks import find_topic_risks, find_topic_unit

KIND = "kafka_topic"
MAX_PARTITIONS = 2_000
"""Partitions in one request that creates them; `_compute_weight` keeps this cap and the records'
one."""

DEFAULT = -1
"""On the wire: the broker's default number."""


def _key(attributes: FrozenMap) -> str:
    name = attributes.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError("a kafka_topic needs a name")
    return name


def _import_key(text: str) -> str:
    if not text:
        raise ValueError("the import id of a kafka_topic is its name")
    return text


def _canonical(attributes: FrozenMap, _: Facts) -> FrozenMap:
    return attributes.with_items({"config": config_map(attributes.get("config"))})


def _target(declared: FrozenMap, observed: Observed | None, facts: Facts, keep: bool) -> FrozenMap:
    live = observed.attributes if observed else EMPTY
    keeps_config = keep or declared.get("config_mode") == "additive"
    counts = _choose_counts(declared, live, facts)
    return FrozenMap(
        {
            "name": declared["name"],
            **counts,
            "replica_assignment": _choose_assignment(declared, live, counts, facts),
            "config": compute_target_config(
                declared.get("config"), get_config(live), facts, keeps_config
            ),
        }
    )


def _choose_counts(declared: FrozenMap, live: FrozenMap, facts: Facts) -> Mapping[str, Value]:
    """Partitions and replication factor: as assigned, else declared, else live, else default."""
    assignment = declared.get("replica_assignment")
    if assignment:
        return {"partitions": len(assignment), "replication_factor": len(assignment[0])}
    wanted = declared.without(["replication_factor"]) if _leaves_factor(declared) else declared
    return {
        name: next(
            (
                value
                for value in (wanted.get(name), live.get(name), facts.values.get(default))
                if value is not None
            ),
            None,
        )
        for name, default in _DEFAULTS.items()
    }


def _choose_assignment(
    declared: FrozenMap, live: FrozenMap, counts: Mapping[str, Value], facts: Facts
) -> Value:
    """As declared, or where the replicas go for another replication factor that is declared;
    None leaves every replica where it is."""
    assignment = declared.get("replica_assignment")
    if assignment or _leaves_factor(declared):
        return assignment
    return moves.plan_target(live, declared.get("replication_factor"), counts["partitions"], facts)


def _leaves_factor(declared: FrozenMap) -> bool:
    """True if the replication factor is the cluster's to choose: -1 is Kafka's own word for it."""
    managed = declared.get("managed_replication_factor") is True
    return managed or declared.get("replication_factor") == DEFAULT


_DEFAULTS = {
    "partitions": "default_partitions",
    "replication_factor": "default_replication_factor",
}


def _check(change: Change, facts: Facts) -> Diagnostics:
    if change.action is Action.CREATE:
        return _check_create(change, facts)
    if change.action is Action.UPDATE:
        return _check_update(change, facts)
    if change.action is Action.DELETE:
        return broker_rules.diagnose(change, _delete_faults(change, facts))
    return ()


def _check_create(change: Change, facts: Facts) -> Diagnostics:
    after, name = change.after or EMPTY, change.identity.key
    config, partitions = get_config(after), after.get("partitions")
    replicas, assignment = after.get("replication_factor"), after.get("replica_assignment")
    faults = [
        *broker_rules.name_faults(name),
        *broker_rules.internal_faults(name, "created"),
        *broker_rules.count_faults(partitions, replicas, facts),
        *broker_rules.size_faults(partitions, len(config)),
        *broker_rules.config_faults(config),
    ]
    if assignment is not None:
        faults += broker_rules.assignment_faults(assignment, facts)
    warnings = [*broker_rules.config_warnings(config, replicas), *_default_warnings(after)]
    return (
        *broker_rules.diagnose(change, faults),
        *broker_rules.diagnose(change, warnings, Severity.WARNING),
    )


def _default_warnings(after: FrozenMap) -> broker_rules.Faults:
    for name in _DEFAULTS:
        if after.get(name) is None:
            yield (
                f"{name} is not given and the broker's default cannot be read, so the plan "
                "cannot show the number",
                f"set {name}, or grant DescribeConfigs on Cluster",
            )


def _check_update(change: Change, facts: Facts) -> Diagnostics:
    before, after = change.before or EMPTY, change.after or EMPTY
    changed = broker_rules.select_changed_configs(change)
    faults = [*_growth_faults(before, after, facts), *moves.find_faults(change, facts)]
    faults += broker_rules.config_faults(changed)
    if _has_writes(change):
        faults += broker_rules.internal_faults(change.identity.key, "changed")
    warnings = [
        *broker_rules.config_warnings(changed, after.get("replication_factor")),
        *moves.find_warnings(change, facts),
    ]
    return (
        *broker_rules.diagnose(change, faults),
        *broker_rules.diagnose(change, warnings, Severity.WARNING),
    )


def _has_writes(change: Change) -> bool:
    return bool(paths_below(change, *_WRITTEN))


_WRITTEN = ("partitions", "replication_factor", "replica_assignment", "config")


def _growth_faults(before: FrozenMap, after: FrozenMap, facts: Facts) -> broker_rules.Faults:
    live, wanted = before.get("partitions"), after.get("partitions")
    if not isinstance(live, int) or not isinstance(wanted, int) or live == wanted:
        return
    if wanted < live:
        yield (
            f"partitions would go from {live} to {wanted}: Kafka cannot remove partitions",
            f"set partitions to {live}, or create a new topic and move its data there",
        )
        return
    yield from broker_rules.size_faults(wanted - live, 0)


def _delete_faults(change: Change, facts: Facts) -> broker_rules.Faults:
    keep = (
        f"let it go and keep the topic: a `removed` block with from = {change.address} and "
        f"lifecycle {{ destroy = false }}, or `kafkaform state rm '{change.address}'`"
    )
    yield from broker_rules.internal_faults(change.identity.key, "deleted", keep)
    if change.incarnation is None:
        yield (
            "the topic's id is not known, and a topic is only deleted by its id",
            "plan again with a principal that has Describe on the topic",
        )
    if facts.values.get("delete_topic_enable") is False:
        yield (
            "the cluster forbids deleting topics (delete.topic.enable=false)",
            "have it enabled on the brokers, or keep the topic",
        )


def _steps(change: Change, facts: Facts) -> tuple[Step, ...]:
    if change.action in SILENT:
        return ()
    return _STEPS[change.action](change, facts)


def _create_steps(change: Change, _: Facts) -> tuple[Step, ...]:
    after = change.after or EMPTY
    partitions, config = after.get("partitions"), get_config(after)
    count = partitions if isinstance(partitions, int) else 1
    payload: dict[str, Value] = {
        "name": change.identity.key,
        "partitions": DEFAULT if partitions is None else partitions,
        "replication_factor": after.get("replication_factor") or DEFAULT,
        "assignment": after.get("replica_assignment"),
        "configs": config,
    }
    weight = _compute_weight(1 + len(config) + count, count)
    paths = all_paths(change)
    step = make_step(change, 1, CREATE_TOPICS, payload, paths, weight=weight, repeat=Repeat.VERIFY)
    return (step,)


def _compute_weight(records: int, partitions: int) -> int:
    """What a step costs of MAX_RECORDS, so that no batch passes either cap: a sum of maxima is
    at least the maximum of the sums."""
    return max(records, -(-partitions * MAX_RECORDS // MAX_PARTITIONS))


def _update_steps(change: Change, facts: Facts) -> tuple[Step, ...]:
    growth = _make_growth_step(change, 1, facts)
    steps = (growth, make_update_step(change, 2), moves.make_move_step(change, 3, facts, growth))
    return tuple(step for step in steps if step is not None)


def _make_growth_step(change: Change, number: int, facts: Facts) -> Step | None:
    before, after = change.before or EMPTY, change.after or EMPTY
    live, wanted = before.get("partitions") or 0, after.get("partitions") or 0
    if wanted <= live:
        return None
    payload: dict[str, Value] = {
        "name": change.identity.key,
        "count": wanted,
        "assignment": moves.list_created_rows(change, facts),
    }
    # With a move in the same change, what becomes true of the assignment is that step's.
    heads = (
        ("partitions",) if moves.plan_moves(change, facts) else ("partitions", "replica_assignment")
    )
    paths = paths_below(change, *heads)
    added = wanted - live
    return make_step(
        change, number, CREATE_PARTITIONS, payload, paths, weight=_compute_weight(added, added)
    )


def _delete_steps(change: Change, _: Facts) -> tuple[Step, ...]:
    if change.incarnation is None:
        return ()
    payload: dict[str, Value] = {"name": change.identity.key, "topic_id": change.incarnation}
    paths = all_paths(change)
    return (make_step(change, 1, DELETE_TOPICS, payload, paths, weight=1, evidence=Evidence.LOCAL),)


_STEPS = {
    Action.CREATE: _create_steps,
    Action.UPDATE: _update_steps,
    Action.DELETE: _delete_steps,
}

TYPE = ResourceType(
    name=KIND,
    schema=make_schema(
        "A topic with its partitions, replicas and config overrides.",
        AttributeSchema(
            "name",
            STRING,
            "Name: up to 249 of A-Z a-z 0-9 . _ and -.",
            required=True,
            refuses=broker_rules.name_faults,
        ),
        AttributeSchema(
            "partitions",
            NUMBER,
            "Number of partitions. It can be raised, never lowered. Left out: the live number, "
            "for a new topic the broker's default.",
            whole=True,
            refuses=broker_rules.partition_faults,
        ),
        AttributeSchema(
            "replication_factor",
            NUMBER,
            "Number of replicas of each partition. Another number moves replicas: the plan shows "
            "where to. Left out, or -1: the live number, for a new topic the broker's default.",
            whole=True,
            refuses=lambda value: () if value == DEFAULT else broker_rules.replica_faults(value),
        ),
        AttributeSchema(
            "replica_assignment",
            list_of(list_of(NUMBER)),
            "Broker ids of each partition, the preferred leader first. Left out: no replica is "
            "moved, but by another replication_factor.",
            whole=True,
        ),
        AttributeSchema(
            "config",
            map_of(TEXT),
            "Config overrides by name, lists as lists or with commas. A live override that is not "
            'in the map is shown and removed, unless config_mode is "additive". A null leaves '
            "that config as it is.",
            refuses=broker_rules.misspelt_faults,
        ),
        AttributeSchema(
            "config_mode",
            STRING,
            "authoritative: config is the whole truth; additive: other overrides stay.",
            default="authoritative",
            choices=("authoritative", "additive"),
        ),
        AttributeSchema(
            "managed_replication_factor",
            BOOL,
            "true: the cluster chooses the number of replicas, as if replication_factor were "
            "left out.",
        ),
        AttributeSchema(
            "topic_id", STRING, "The id that the cluster gave the topic.", computed=True
        ),
        conflicts=(
            ("replica_assignment", "partitions"),
            ("replica_assignment", "replication_factor"),
        ),
    ),
    key=_key,
    canonical=_canonical,
    target=_target,
    check=_check,
    steps=_steps,
    import_key=_import_key,
    ours=select_declared,
    protect=True,
    risks=find_topic_risks,
    unit=find_topic_unit,
)
