"""`kafka_topic`: the schema of a block, its rules, and the requests that create, update and delete.

The number of partitions only grows, and a topic is never replaced.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kafkaform.core.change import Action, Change, Evidence, Repeat, Step
from kafkaform.core.resource import Facts, Observed
from kafkaform.core.schema import (
    ANY,
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
from kafkaform.provider.contract import Closure, ResourceType

from ...protocol import broker_rules, config_keys
from ...protocol.acl import EVERYBODY
from ...protocol.apis import MAX_RECORDS
from ...protocol.cluster_facts import KafkaFacts
from ...protocol.config_keys import config_map
from ..kind import (
    CREATE_PARTITIONS,
    CREATE_TOPICS,
    DELETE_TOPICS,
    SILENT,
    KindRights,
    ResourceKind,
    all_paths,
    defer,
    make_closure,
    make_step,
    paths_below,
)
from . import configs, placement
from .configs import (
    compute_target_config,
    find_topic_unit,
    get_config,
    make_update_step,
    repair_removal,
    select_declared,
)

KIND = "kafka_topic"
EXPECTED_RATE = "expected_rate"
# Far below the 10,000 that CreateTopics accepts: the controller handles one request at a time.
MAX_PARTITIONS = 2_000
"""Partitions in one request that creates them; see `_compute_weight`."""

# CreateTopics version 4 and newer: the broker fills in num.partitions, default.replication.factor.
DEFAULT = -1
"""In a request: the broker's default number."""


def _key(attributes: FrozenMap) -> str:
    name = attributes.get("name")
    if not isinstance(name, str) or not name:
        raise ValueError("a kafka_topic needs a name")
    return name


def _import_key(text: str) -> str:
    if not text:
        raise ValueError("the import id of a kafka_topic is its name")
    return text


def _explain_reservation(name: str, details: FrozenMap) -> tuple[str, str] | None:
    """Why an internal topic is left to Kafka, and what the user can do."""
    if name not in broker_rules.INTERNAL_TOPICS and details.get("internal") is not True:
        return None
    return (
        f"{name} is an internal topic, which Kafka creates and maintains",
        "Remove its block, and use kafka_topic_config for its configs. If the state records it, "
        "write a `removed` block with lifecycle { destroy = false }, or run `kafkaform state rm`.",
    )


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
    """Partitions and replication factor: from the assignment, or the first known of the declared,
    the live and the default number."""
    assignment = declared.get("replica_assignment")
    if assignment:
        return {"partitions": len(assignment), "replication_factor": len(assignment[0])}
    counts = declared.without(["replication_factor"]) if _leaves_factor(declared) else declared
    cluster = KafkaFacts.of(facts)
    defaults = {
        "partitions": cluster.default_partitions,
        "replication_factor": cluster.default_replication_factor,
    }
    return {
        name: next(
            (value for value in (counts.get(name), live.get(name)) if value is not None), default
        )
        for name, default in defaults.items()
    }


def _choose_assignment(
    declared: FrozenMap, live: FrozenMap, counts: Mapping[str, Value], facts: Facts
) -> Value:
    """The declared assignment, or the one that the declared replication factor needs; None leaves
    every replica where it is."""
    assignment = declared.get("replica_assignment")
    if assignment or _leaves_factor(declared):
        return assignment
    return placement.plan_target(
        live, declared.get("replication_factor"), counts["partitions"], facts
    )


def _leaves_factor(declared: FrozenMap) -> bool:
    """True if the cluster chooses the replication factor."""
    managed = declared.get("managed_replication_factor") is True
    return managed or declared.get("replication_factor") == DEFAULT


def _steps(change: Change, facts: Facts) -> tuple[Step, ...]:
    if change.action in SILENT:
        return ()
    return _STEPS[change.action](change, facts)


def _create_steps(change: Change, facts: Facts) -> tuple[Step, ...]:
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
    # No dry run is sent to a cluster that would execute it.
    executed = CREATE_TOPICS.name in KafkaFacts.of(facts).executed_dry_runs
    # VERIFY: a second create of a topic that exists fails with 36, which would hide our success.
    step = make_step(
        change,
        1,
        CREATE_TOPICS,
        payload,
        paths,
        weight=weight,
        repeat=Repeat.VERIFY,
        evidence=Evidence.LOCAL if executed else Evidence.REMOTE,
    )
    return (step,)


def _compute_weight(records: int, partitions: int) -> int:
    """The weight of a step, so that no batch exceeds MAX_RECORDS records or MAX_PARTITIONS
    partitions."""
    # One weight keeps both limits: a sum of maxima is at least the maximum of the sums.
    return max(records, -(-partitions * MAX_RECORDS // MAX_PARTITIONS))


def _update_steps(change: Change, facts: Facts) -> tuple[Step, ...]:
    growth = _make_growth_step(change, 1, facts)
    steps = (
        growth,
        make_update_step(change, 2),
        placement.make_move_step(change, 3, facts, growth),
    )
    return tuple(step for step in steps if step is not None)


def _make_growth_step(change: Change, number: int, facts: Facts) -> Step | None:
    before, after = change.before or EMPTY, change.after or EMPTY
    live, target = before.get("partitions") or 0, after.get("partitions") or 0
    if target <= live:
        return None
    # An absolute count: a repeat after a lost answer cannot grow the topic twice.
    payload: dict[str, Value] = {
        "name": change.identity.key,
        "count": target,
        "assignment": placement.list_created_rows(change, facts),
    }
    # If the same change also moves replicas, the step of the move makes the assignment true.
    heads = (
        ("partitions",)
        if placement.plan_moves(change, facts)
        else ("partitions", "replica_assignment")
    )
    paths = paths_below(change, *heads)
    weight = _compute_weight(target - live, target - live)
    executed = CREATE_PARTITIONS.name in KafkaFacts.of(facts).executed_dry_runs
    evidence = Evidence.LOCAL if executed else Evidence.REMOTE
    return make_step(
        change, number, CREATE_PARTITIONS, payload, paths, weight=weight, evidence=evidence
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


def _list_closures(attributes: FrozenMap, _: Facts, __: Sequence[FrozenMap]) -> tuple[Closure, ...]:
    # Describe, Alter and Delete stay: a DENY of one operation denies no other one, and a DENY for
    # everybody would also bind the login that has to delete the topic. Super users are never bound.
    topic = ("Topic", attributes["name"])
    return tuple(make_closure(name, EVERYBODY, name, topic) for name in ("Read", "Write"))


def _find_rate_faults(value: Value) -> Iterator[tuple[str, str]]:
    if config_keys.parse_size(value) is None:
        yield (
            f"{EXPECTED_RATE} {str(value)[:40]!r} is not a number of bytes over 0",
            'Write bytes a second, or text such as "2MiB".',
        )


TYPE = ResourceType(
    name=KIND,
    schema=make_schema(
        "A topic with its partitions, replicas and config overrides.",
        AttributeSchema(
            "name",
            STRING,
            "Name: up to 249 letters (A-Z, a-z), digits, and the characters . _ -",
            required=True,
            refuses=broker_rules.name_faults,
        ),
        AttributeSchema(
            "partitions",
            NUMBER,
            "Number of partitions. You can raise it, but not lower it. Default: the live number; "
            "for a new topic, the broker's default.",
            whole=True,
            refuses=broker_rules.partition_faults,
        ),
        AttributeSchema(
            "replication_factor",
            NUMBER,
            "Number of replicas of each partition. If you change it, replicas move, and the plan "
            "shows where. Default, and the meaning of -1: the live number; for a new topic, the "
            "broker's default.",
            whole=True,
            refuses=lambda value: () if value == DEFAULT else broker_rules.replica_faults(value),
        ),
        AttributeSchema(
            "replica_assignment",
            list_of(list_of(NUMBER)),
            "Broker ids of each partition, the preferred leader first. Without it, replicas move "
            "only if replication_factor changes.",
            whole=True,
        ),
        AttributeSchema(
            "config",
            map_of(TEXT),
            "Config overrides by name; a list is a list or text with commas. The plan shows and "
            'removes live overrides that are not in the map, unless config_mode is "additive". '
            "null leaves a config as it is.",
            refuses=broker_rules.spelling_faults,
            keys=config_keys.list_topic_keys,
        ),
        AttributeSchema(
            "config_mode",
            STRING,
            "authoritative: overrides that are not in config are removed; additive: they stay.",
            default="authoritative",
            choices=("authoritative", "additive"),
        ),
        AttributeSchema(
            "managed_replication_factor",
            BOOL,
            "true: the cluster chooses the number of replicas, as without replication_factor.",
        ),
        AttributeSchema(
            EXPECTED_RATE,
            ANY,
            "How many bytes a second producers are expected to write to the topic, as they are "
            'stored, such as "2MiB". Plans estimate disks and costs of a new topic and of more '
            "partitions from it. Neither the cluster nor the state has it.",
            refuses=_find_rate_faults,
            expected=True,
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
    steps=_steps,
    import_key=_import_key,
    ours=select_declared,
    protect=True,
    closures=_list_closures,
    reserves=_explain_reservation,
    repair=repair_removal,
    unit=find_topic_unit,
)


_SEES = ("Describe", "DescribeConfigs")
KINDS = (
    ResourceKind(
        KIND,
        TYPE,
        rights=KindRights("Topic", _SEES, ("AlterConfigs", "Alter"), deletes="Delete"),
        connect=defer(__package__, "requests:REQUESTS"),
        simulate=defer(__package__, "simulation:TOPIC"),
    ),
    ResourceKind(
        configs.KIND,
        configs.TYPE,
        rights=KindRights("Topic", _SEES, ("AlterConfigs",), deletes="AlterConfigs"),
        connect=defer(__package__, "requests:CONFIG_REQUESTS"),
        simulate=defer(__package__, "simulation:TOPIC_CONFIG"),
    ),
)
