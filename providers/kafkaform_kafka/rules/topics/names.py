"""Rules of topics that only all changes together show: collisions, double blocks, other names."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterator, Mapping, Sequence

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import CoverageKind, Depth, Identity, Sweep
from kafkaform.core.rule import Needs, Rule, Scene, Survey
from kafkaform.core.text.display import inline

from ...protocol.broker_rules import collision_key
from .config_rows import OVERRIDES, TOPIC

_DECLARED = frozenset({Action.CREATE, Action.UPDATE, Action.ADOPT, Action.IMPORT, Action.NOOP})
_CLAIMS = "tests/cluster/claims/test_topics.py"
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
