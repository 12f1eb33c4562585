"""Rules of topics themselves: names, numbers of partitions and replicas, growth and deletion; and
of what only all changes together show: collisions, double blocks, other names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import CoverageKind, Depth, Facts, Identity, Sweep
from kafkaform.core.rule import Judge, Needs, Rule, Scene, Survey
from kafkaform.core.text import inline, render_count
from kafkaform.core.value import EMPTY

from ...kinds.topic.configs import find_effective, get_config
from ...kinds.topic.resource_type import DEFAULT
from ...protocol import broker_rules
from ...protocol.broker_rules import collision_key
from ...protocol.cluster_facts import KafkaFacts
from .config_rows import OVERRIDES, TOPIC
from .configs import COMPACT, DELETE, has_policy
from .moves import find_id_faults

_TYPES = (TOPIC,)
_CLAIMS = "tests/cluster/claims/test_topics.py"

NAME_INVALID = Rule(
    "topic-name-invalid",
    "Kafka refuses the name of the topic",
    Level.BLOCK,
    Harm.NONE,
    (TOPIC, OVERRIDES),
    Needs.BLOCK,
    "A name has 1 to 249 of the characters a-z, A-Z, 0-9, '.', '_' and '-', and is not '.' or "
    "'..': INVALID_TOPIC_EXCEPTION (17; Topic.validate).",
    'resource "kafka_topic" "orders" { name = "orders/eu" }',
    "Choose a name with letters, digits, '.', '_' and '-'.",
    Block.IMPOSSIBLE,
    proof=f"{_CLAIMS}::test_names_that_kafka_refuses",
)
PARTITIONS_INVALID = Rule(
    "topic-partitions-invalid",
    "No topic has so few partitions",
    Level.BLOCK,
    Harm.NONE,
    _TYPES,
    Needs.BLOCK,
    "A topic has at least 1 partition: INVALID_PARTITIONS (37).",
    "partitions = 0",
    "Set partitions to 1 or more.",
    Block.IMPOSSIBLE,
    proof=f"{_CLAIMS}::test_numbers_that_kafka_refuses",
)
REPLICAS_INVALID = Rule(
    "topic-replicas-invalid",
    "No topic has such a number of replicas",
    Level.BLOCK,
    Harm.NONE,
    _TYPES,
    Needs.BLOCK,
    "A topic has at least 1 replica, and the number travels in 16 bits: INVALID_REPLICATION_FACTOR "
    "(38).",
    "replication_factor = 0",
    "Set replication_factor to 1 or more.",
    Block.IMPOSSIBLE,
    proof=f"{_CLAIMS}::test_numbers_that_kafka_refuses",
)
TOO_FEW_BROKERS = Rule(
    "topic-replicas-above-brokers",
    "There are fewer live brokers than replicas",
    Level.BLOCK,
    Harm.NONE,
    _TYPES,
    Needs.FACTS,
    "A controller places the replicas of a partition on different live brokers: "
    "INVALID_REPLICATION_FACTOR (38; StripedReplicaPlacer).",
    "replication_factor = 3   # a cluster of two brokers",
    "Lower it, or start more brokers.",
    Block.IMPOSSIBLE,
    proof=f"{_CLAIMS}::test_numbers_that_kafka_refuses",
)
TOO_LARGE = Rule(
    "topic-too-large",
    "The partitions do not fit into one request",
    Level.BLOCK,
    Harm.NONE,
    _TYPES,
    Needs.BLOCK,
    "A controller writes the topic, its configs and its partitions as one batch of at most 10,000 "
    "records (ControllerResult, MAX_RECORDS_PER_USER_OP).",
    "partitions = 20000",
    "Create the topic with fewer partitions, then raise the number.",
    Block.IMPOSSIBLE,
    proof=f"{_CLAIMS}::test_numbers_that_kafka_refuses",
)
NUMBER_UNKNOWN = Rule(
    "topic-number-unknown",
    "The cluster chooses a number that the plan cannot show",
    Level.CAUTION,
    Harm.NONE,
    _TYPES,
    Needs.FACTS,
    "num.partitions and default.replication.factor apply, and reading them needs DescribeConfigs "
    "on Cluster.",
    'resource "kafka_topic" "orders" { name = "orders" }',
    "Set the number, or grant DescribeConfigs on Cluster.",
    proof="tests/cluster/claims/test_access.py::"
    "test_defaults_of_topics_are_read_with_describe_configs_on_the_cluster",
)
PARTITIONS_REMOVED = Rule(
    "topic-partitions-removed",
    "Kafka cannot remove partitions",
    Level.BLOCK,
    Harm.NONE,
    _TYPES,
    Needs.OBJECT,
    "CreatePartitions only adds partitions: INVALID_PARTITIONS (37; KIP-195).",
    "partitions = 3   # was 6",
    "Keep the number, or create a new topic and copy the data.",
    Block.IMPOSSIBLE,
    proof=f"{_CLAIMS}::test_partitions_cannot_be_removed",
)
PARTITIONS_ADDED = Rule(
    "topic-partitions-added",
    "Keys go to other partitions",
    Level.CAUTION,
    Harm.ORDERING,
    _TYPES,
    Needs.OBJECT,
    "Producers choose the partition of a key by its hash and the number of partitions "
    "(BuiltInPartitioner), so order within a key ends at the change.",
    "partitions = 6   # was 3",
    "Make sure that consumers do not need the order of older and newer records of a key. "
    "`kafkaform plan --sample` tells whether the records have keys: without them, there is no such "
    "order.",
    proof=f"{_CLAIMS}::test_keys_go_to_other_partitions",
)
OLD_VALUES_KEPT = Rule(
    "topic-old-values-kept",
    "Compaction keeps old values of keys that move",
    Level.CAUTION,
    Harm.ORDERING,
    _TYPES,
    Needs.OBJECT,
    "Compaction looks at one partition: the last record of a key in its old partition stays beside "
    "the newer ones in its new partition.",
    'partitions = 6   # was 3, of a topic with cleanup.policy = "compact"',
    "Create a new topic and write the current values of all keys to it.",
    proof=f"{_CLAIMS}::test_keys_go_to_other_partitions",
)
REPLICAS_REMOVED = Rule(
    "topic-replicas-removed",
    "Fewer replicas have the data",
    Level.DANGER,
    Harm.DURABILITY,
    _TYPES,
    Needs.OBJECT,
    "A partition with N replicas survives the loss of N - 1 brokers.",
    "replication_factor = 1   # was 3",
    "Keep the number of replicas.",
    proof=f"{_CLAIMS}::test_an_unclean_election_loses_acknowledged_records_and_a_clean_one_waits",
)
DELETED = Rule(
    "topic-deleted",
    "The topic is deleted with its records",
    Level.DANGER,
    Harm.DATA_LOSS,
    _TYPES,
    Needs.OBJECT,
    "DeleteTopics removes the topic at once and its files after file.delete.delay.ms; nothing "
    "brings them back.",
    'resource "kafka_topic" "orders" { … }   # the block is removed from the files',
    "Copy the records that somebody needs first.",
    proof=f"{_CLAIMS}::test_a_deleted_topic_comes_back_empty",
)
COMES_BACK = Rule(
    "topic-comes-back",
    "The deleted topic comes back empty",
    Level.CAUTION,
    Harm.NONE,
    _TYPES,
    Needs.FACTS,
    "With auto.create.topics.enable = true, brokers create a topic that a client asks for, with "
    "the cluster's defaults (AutoTopicCreationManager).",
    'resource "kafka_topic" "orders" { … }   # removed, and a producer runs on',
    "Stop the clients of the topic first.",
    proof=f"{_CLAIMS}::test_a_deleted_topic_comes_back_empty",
)
ID_UNKNOWN = Rule(
    "topic-id-unknown",
    "The id of the topic is unknown",
    Level.BLOCK,
    Harm.NONE,
    _TYPES,
    Needs.OBJECT,
    "Only the id (KIP-516) proves that a topic is the one that was reviewed: another one can have "
    "the same name by then.",
    "a deletion on a cluster with inter.broker.protocol.version 2.7",
    "Plan again with a principal that has Describe on the topic.",
    Block.IMPOSSIBLE,
    proof="tests/cluster/claims/test_topics.py::test_a_topic_that_is_made_again_has_another_id",
)
DELETION_FORBIDDEN = Rule(
    "topic-deletion-forbidden",
    "The cluster forbids the deletion of topics",
    Level.BLOCK,
    Harm.NONE,
    _TYPES,
    Needs.FACTS,
    "With delete.topic.enable = false, a controller answers TOPIC_DELETION_DISABLED (73) for every "
    "topic of the request.",
    'resource "kafka_topic" "orders" { … }   # removed, with delete.topic.enable=false',
    "Ask for delete.topic.enable=true on the brokers, or keep the topic.",
    Block.IMPOSSIBLE,
    proof="tests/cluster/claims/test_topics_of_kafka_3.py::test_a_cluster_can_forbid_deletions",
)


def _judge_name(change: Change, _: Facts) -> Iterator[Finding]:
    if change.action in (Action.CREATE, Action.UPDATE):
        attribute = "name" if change.identity.kind == TOPIC else "topic"
        for summary, advice in broker_rules.name_faults(change.identity.key):
            yield NAME_INVALID.find(summary, (attribute,), fix=advice)


def _judge_numbers(change: Change, _: Facts) -> Iterator[Finding]:
    """The numbers of a new topic, or those that change."""
    after = change.after or EMPTY
    partitions, replicas = after.get("partitions"), after.get("replication_factor")
    created = change.action is Action.CREATE
    if created and isinstance(partitions, int):
        for summary, advice in broker_rules.partition_faults(partitions):
            yield PARTITIONS_INVALID.find(summary, ("partitions",), fix=advice)
        for summary, advice in broker_rules.size_faults(partitions, len(get_config(after))):
            yield TOO_LARGE.find(summary, ("partitions",), fix=advice)
    if (created or _changes_replicas(change)) and isinstance(replicas, int) and replicas != DEFAULT:
        for summary, advice in broker_rules.replica_faults(replicas):
            yield REPLICAS_INVALID.find(summary, ("replication_factor",), fix=advice)


def _changes_replicas(change: Change) -> bool:
    before, after = change.before or EMPTY, change.after or EMPTY
    name = "replication_factor"
    return change.action is Action.UPDATE and before.get(name) != after.get(name)


def _judge_brokers(change: Change, facts: Facts) -> Iterator[Finding]:
    after, created = change.after or EMPTY, change.action is Action.CREATE
    replicas = after.get("replication_factor")
    if (created or _changes_replicas(change)) and isinstance(replicas, int):
        for summary, advice in broker_rules.broker_count_faults(replicas, facts):
            yield TOO_FEW_BROKERS.find(summary, ("replication_factor",), fix=advice)
    for name in ("partitions", "replication_factor"):
        if created and after.get(name) is None:
            yield NUMBER_UNKNOWN.find(
                f"{name} is not set, and the broker's default cannot be read, so the plan cannot "
                "show the number",
                (name,),
                fix=f"Set {name}, or grant DescribeConfigs on Cluster.",
            )


def _judge_growth(change: Change, facts: Facts) -> Iterator[Finding]:
    if change.action is not Action.UPDATE:
        return
    old, new = (side.get("partitions") for side in (change.before or EMPTY, change.after or EMPTY))
    # A number that the cluster chooses is unknown, and no growth can be told from it.
    if not isinstance(old, int) or not isinstance(new, int) or old == new:
        return
    path = ("partitions",)
    if new < old:
        yield PARTITIONS_REMOVED.find(
            f"partitions would go from {old} to {new}: Kafka cannot remove partitions",
            path,
            fix=f"Set partitions to {old}, or create a new topic and copy the data.",
        )
        return
    # The batch of CreatePartitions has records for the new partitions alone.
    for summary, advice in broker_rules.size_faults(new - old, 0):
        yield TOO_LARGE.find(summary, path, fix=advice)
    yield PARTITIONS_ADDED.find(
        f"partitions {old} → {new}: new records of a key can go to another partition than older "
        "ones, and the partitions cannot be removed again",
        path,
    )
    effective = find_effective(change, facts).after
    if has_policy(effective, COMPACT):
        until = "until it expires" if has_policy(effective, DELETE) else "for ever"
        yield OLD_VALUES_KEPT.find(
            f"partitions {old} → {new} of a compacted topic: the old value of a key that goes to "
            f"another partition stays in its old one {until}",
            path,
        )


def _judge_replicas(change: Change, _: Facts) -> Iterator[Finding]:
    if not _changes_replicas(change):
        return
    name = "replication_factor"
    old, new = (change.before or EMPTY).get(name), (change.after or EMPTY).get(name)
    # More replicas endanger nothing; the rules of moves judge the copying.
    if isinstance(old, int) and isinstance(new, int) and 0 < new < old:
        brokers = "no broker" if new == 1 else render_count(new - 1, "broker")
        yield REPLICAS_REMOVED.find(
            f"{name} {old} → {new}: {new} of {old} replicas {'stays' if new == 1 else 'stay'}, and "
            f"{brokers} can fail without loss",
            (name,),
        )


def _judge_deletion(change: Change, facts: Facts) -> Iterator[Finding]:
    for summary, advice in find_id_faults(change, facts):
        yield ID_UNKNOWN.find(summary, fix=advice)
    if change.action is not Action.DELETE:
        return
    yield DELETED.find("the topic and all its records are deleted")
    cluster = KafkaFacts.of(facts)
    if cluster.delete_topic_enable is False:
        yield DELETION_FORBIDDEN.find(
            "the cluster forbids the deletion of topics (delete.topic.enable=false)"
        )
    # A topic that stays because its deletion is blocked cannot come back.
    if cluster.auto_create and change.blocked is None:
        yield COMES_BACK.find(
            "auto.create.topics.enable is true: the topic comes back, empty and with default "
            "settings, as soon as a client uses it"
        )


JUDGES = (
    Judge((NAME_INVALID,), (TOPIC, OVERRIDES), Needs.BLOCK, _judge_name),
    Judge((PARTITIONS_INVALID, REPLICAS_INVALID, TOO_LARGE), _TYPES, Needs.BLOCK, _judge_numbers),
    Judge((NUMBER_UNKNOWN, TOO_FEW_BROKERS), _TYPES, Needs.FACTS, _judge_brokers),
    Judge(
        (OLD_VALUES_KEPT, PARTITIONS_ADDED, PARTITIONS_REMOVED, TOO_LARGE),
        _TYPES,
        Needs.OBJECT,
        _judge_growth,
    ),
    Judge((REPLICAS_REMOVED,), _TYPES, Needs.OBJECT, _judge_replicas),
    Judge(
        (COMES_BACK, DELETED, DELETION_FORBIDDEN, ID_UNKNOWN), _TYPES, Needs.OBJECT, _judge_deletion
    ),
)


_DECLARED = frozenset({Action.CREATE, Action.UPDATE, Action.ADOPT, Action.IMPORT, Action.NOOP})
_HOW_TO = "docs/how-to/rename-a-topic.md moves producers and consumers first."

Findings = Iterator[tuple[Identity | None, Finding]]

COLLIDES = Rule(
    "topic-name-collides",
    "The name differs from another one only in '.' and '_'",
    Level.BLOCK,
    Harm.NONE,
    (TOPIC,),
    Needs.BLOCK,
    "Kafka writes '.' as '_' in names of metrics, so a controller refuses the second topic with "
    "INVALID_TOPIC_EXCEPTION (17; Topic.hasCollision).",
    'name = "orders_eu"   # and there is a topic "orders.eu"',
    "Choose a name that differs in more than '.' and '_'.",
    Block.CONFLICT,
    proof=f"{_CLAIMS}::test_names_that_collide",
)
DECLARED_TWICE = Rule(
    "topic-configs-declared-twice",
    "Two blocks declare the configs of one topic",
    Level.BLOCK,
    Harm.NONE,
    (OVERRIDES,),
    Needs.BLOCK,
    "A kafka_topic declares all overrides of its topic, so each apply of one block would undo the "
    "other.",
    'resource "kafka_topic_config" "orders" { topic = "orders" … }   # beside kafka_topic "orders"',
    "Move the configs into the kafka_topic, and remove this block.",
    Block.CONFLICT,
)
RENAMED = Rule(
    "topic-renamed",
    "A new name creates another topic",
    Level.CAUTION,
    Harm.NONE,
    (TOPIC,),
    Needs.PLAN,
    "Kafka cannot rename a topic (no request does), so a block with another name deletes one topic "
    "and creates an empty one.",
    'resource "kafka_topic" "orders" { name = "orders-v2" … }   # was "orders"',
    f"Keep the name until the clients have moved: {_HOW_TO}",
)
NOT_LISTED = Rule(
    "topic-names-not-listed",
    "The live topics could not be listed",
    Level.CAUTION,
    Harm.NONE,
    (TOPIC,),
    Needs.PLAN,
    "The broker finds collisions with live topics as well, when it validates the request.",
    "a listing of the topics fails while a topic is created",
    fix="Grant Describe on the topics, so that collisions are found in the plan.",
    proof="tests/cluster/claims/test_topics.py::test_names_that_collide",
)


def list_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """Names of live topics, with which those of new ones could collide."""
    created = any(_is_change(change, Action.CREATE) for change in changes)
    return {TOPIC: Depth.NAMES} if created else {}


def _is_change(change: Change, action: Action) -> bool:
    return change.identity.kind == TOPIC and change.action is action


def _survey_names(scene: Scene) -> Findings:
    created = [change for change in scene.changes if _is_change(change, Action.CREATE)]
    deleted = [change for change in scene.changes if _is_change(change, Action.DELETE)]
    sweep = scene.sweeps.get(TOPIC)
    if created and (sweep is None or sweep.coverage.kind is CoverageKind.FAILED):
        yield (
            None,
            NOT_LISTED.find(
                "the live topics could not be listed, so only the dry run can find collisions of "
                "names"
            ),
        )
    collisions = {identity for identity, _ in _find_plan_collisions(scene)}
    for identity, finding in _find_live_collisions(created, deleted, sweep):
        if identity not in collisions:
            yield identity, finding
    yield from _find_renames(created, deleted)


def _find_live_collisions(
    created: Sequence[Change], deleted: Sequence[Change], sweep: Sweep | None
) -> Iterator[tuple[Identity, Finding]]:
    """New topics whose names collide with a live one (error 17)."""
    live = sweep.derive(_index_names) if sweep and created else {}
    # A listing hides topics that we may not describe; a deletion proves that its topic is there.
    deleted_names: dict[str, set[str]] = defaultdict(set)
    for change in deleted:
        deleted_names[collision_key(change.identity.key)].add(change.identity.key)
    going = {change.identity.key for change in deleted if change.blocked is None}
    for change in created:
        name = change.identity.key
        key = collision_key(name)
        names = live.get(key, frozenset()) | deleted_names[key]
        for live_name in sorted(names - {name}, reverse=True):
            yield change.identity, _make_collision(name, live_name, deleted=live_name in going)


def _index_names(sweep: Sweep) -> Mapping[str, frozenset[str]]:
    """What the metrics of a topic are named by -> the live topics that have it."""
    names: dict[str, set[str]] = defaultdict(set)
    for item in sweep.items:
        names[collision_key(item.identity.key)].add(item.identity.key)
    return {key: frozenset(group) for key, group in names.items()}


def _make_collision(name: str, live_name: str, *, deleted: bool) -> Finding:
    # Creates leave before deletes, and the dry run sees only live topics: it would fail with 17.
    if deleted:
        return COLLIDES.find(
            f"{name} collides with {live_name}, which this plan deletes: "
            "creates come before deletes",
            ("name",),
            fix="Apply the deletion first (--target=ITS_ADDRESS), then plan again.",
        )
    return COLLIDES.find(
        f"{name} collides with the live topic {live_name}: Kafka's metric names treat '.' and '_' "
        "as the same",
        ("name",),
    )


def _find_plan_collisions(scene: Scene) -> Iterator[tuple[Identity, Finding]]:
    """New topics whose names collide with each other; no dry run of the broker sees that."""
    groups = defaultdict(list)
    for change in scene.changes:
        if _is_change(change, Action.CREATE):
            groups[collision_key(change.identity.key)].append(change)
    for group in groups.values():
        for change in group if len(group) > 1 else ():
            rival = next(item for item in group if item is not change)
            yield (
                change.identity,
                COLLIDES.find(
                    f"{change.identity.key} collides with {rival.identity.key} ({rival.address}): "
                    "Kafka's metric names treat '.' and '_' as the same",
                    ("name",),
                    fix="Rename one of them.",
                ),
            )


def _find_renames(created: Sequence[Change], deleted: Sequence[Change]) -> Findings:
    """A block whose topic has another name now, or whose one instance has another key: Kafka
    deletes one topic and creates the other, which nobody means by a new name."""
    pairs: dict[Identity, Identity] = {}
    for keyed in (True, False):
        gone = _find_single_topics(deleted, pairs, keyed=keyed)
        new = _find_single_topics(created, pairs, keyed=keyed)
        for block in gone.keys() & new.keys():
            pairs[gone[block]], pairs[new[block]] = new[block], gone[block]
    old = {change.identity for change in deleted}
    for topic, counterpart in pairs.items():
        name = inline(counterpart.key)
        text = (
            f'"{name}" is created beside it, without its records'
            if topic in old
            else f'this one is created without the records of "{name}"'
        )
        yield topic, RENAMED.find(f"Kafka cannot rename a topic: {text}", ("name",))


def _find_single_topics(
    changes: Sequence[Change], paired: Container[Identity], *, keyed: bool
) -> Mapping[str, Identity]:
    """Address -> its topic, of addresses with one of these changes. keyed: of each instance, else
    of each block."""
    topics: dict[str, list[Identity]] = defaultdict(list)
    for change in changes:
        if change.identity not in paired:
            address = change.address if keyed else change.address.partition("[")[0]
            topics[address].append(change.identity)
    return {address: names[0] for address, names in topics.items() if len(names) == 1}


def _survey_blocks(scene: Scene) -> Findings:
    """Configs of a topic that its `kafka_topic` block declares too."""
    declared = {change.identity: change for change in scene.changes if change.action in _DECLARED}
    for identity in declared:
        topic = declared.get(Identity(identity.instance, TOPIC, identity.key))
        if identity.kind == OVERRIDES and topic is not None:
            yield (
                identity,
                DECLARED_TWICE.find(
                    f"{topic.address} also declares the configs of {identity.key}",
                    fix=f"Move them into the config of {topic.address} and remove this block.",
                ),
            )


SURVEYS = (
    Survey((COLLIDES,), _find_plan_collisions, Needs.BLOCK),
    Survey((COLLIDES, NOT_LISTED, RENAMED), _survey_names),
    Survey((DECLARED_TWICE,), _survey_blocks, Needs.BLOCK),
)
