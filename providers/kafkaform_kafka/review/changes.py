"""Reviews all changes of one cluster together: name collisions, double declarations, ACL changes.

Each review runs only if the plan has changes of its kind. To say something about all changes of a
new kind, add a row to `_WARNINGS`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Container, Iterator, Mapping, Sequence

from kafkaform.core.change import Action, Change
from kafkaform.core.legacy import Blocker, BlockerKind, Review
from kafkaform.core.resource import CoverageKind, Depth, Facts, Identity, Sweep
from kafkaform.core.text.foreign import inline

from ..kinds.quota import resource_type as quotas
from ..kinds.topic import configs
from ..kinds.topic import resource_type as topics
from ..kinds.user import resource_type as scram
from ..protocol.broker_rules import collision_key
from ..rules import access
from ..vendors.detection import load_profile
from ..vendors.rules import judge_changes
from . import mutation_quota

FoundBlocks = Iterator[tuple[Identity, Blocker]]

_WARNINGS: Mapping[str, Callable[[Sequence[Change], Facts], tuple[str, ...]]] = {
    quotas.KIND: quotas.callback_warnings,
    scram.KIND: scram.own_warnings,
}
"""Kind -> the warnings about all changes of that kind together."""

_DECLARED = frozenset({Action.CREATE, Action.UPDATE, Action.ADOPT, Action.IMPORT, Action.NOOP})

_UNLISTED = "The live topics could not be listed, so only the dry run can find name collisions."
_COMES_BACK = (
    "auto.create.topics.enable is true: a deleted topic comes back, empty and with default "
    "settings, as soon as a client uses it. Stop its clients first."
)
_NO_RENAME = "Kafka cannot rename a topic"
_HOW_TO = "docs/how-to/rename-a-topic.md moves producers and consumers first."
_BEFORE = (
    f'Kafka cannot rename a topic: "{{}}" is created beside it, without its records. {_HOW_TO}'
)
_AFTER = f'{_NO_RENAME}: this one is created without the records of "{{}}". {_HOW_TO}'


def review_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """The listings that `review` needs for these changes."""
    creates = any(_is_topic_change(change, Action.CREATE) for change in changes)
    spends = any(map(mutation_quota.compute_spending, changes))
    return {
        **({topics.KIND: Depth.NAMES} if creates else {}),
        **({quotas.KIND: Depth.FULL} if spends else {}),
        **access.list_needs(changes),
    }


def review(
    changes: Sequence[Change],
    sweeps: Mapping[str, Sweep],
    facts: Facts,
) -> Review:
    """Block changes that cannot stand together, each with its first reason."""
    kinds = {change.identity.kind for change in changes}
    created = [change for change in changes if _is_topic_change(change, Action.CREATE)]
    deleted = [change for change in changes if _is_topic_change(change, Action.DELETE)]
    listed = sweeps.get(topics.KIND)
    blocks: dict[Identity, Blocker] = {}
    for identity, block in (
        *_find_live_collisions(created, deleted, listed),
        *(_find_plan_collisions(created) if len(created) > 1 else ()),
        *(_find_double_configs(changes) if configs.KIND in kinds else ()),
    ):
        blocks.setdefault(identity, block)
    left = [change for change in changes if change.identity not in blocks]
    name = facts.values.get("profile")
    vendor = judge_changes(load_profile(str(name)), left) if name else Review()
    unlisted = created and (listed is None or listed.coverage.kind is CoverageKind.FAILED)
    returning = facts.values.get("auto_create") and any(one.blocked is None for one in deleted)
    return Review(
        blocks={**blocks, **vendor.blocks},
        notes=_join_notes(vendor.notes, _note_renames(created, deleted)),
        warnings=(
            *vendor.warnings,
            *((_UNLISTED,) if unlisted else ()),
            *((_COMES_BACK,) if returning else ()),
            *mutation_quota.quota_warnings(left, sweeps.get(quotas.KIND), facts),
            *(text for kind in _WARNINGS if kind in kinds for text in _WARNINGS[kind](left, facts)),
        ),
        limit=mutation_quota.find_limit(left, sweeps.get(quotas.KIND), facts),
    )


def _join_notes(*parts: Mapping[Identity, tuple[str, ...]]) -> Mapping[Identity, tuple[str, ...]]:
    """The notes of several reviews. The same object can have notes of each."""
    joined: dict[Identity, tuple[str, ...]] = {}
    for part in parts:
        for identity, notes in part.items():
            joined[identity] = (*joined.get(identity, ()), *notes)
    return joined


def _note_renames(
    created: Sequence[Change], deleted: Sequence[Change]
) -> Mapping[Identity, tuple[str, ...]]:
    """Notes for a block whose topic has another name now, or whose one instance has another key:
    Kafka deletes one topic and creates the other, which nobody means by a new name."""
    pairs: dict[Identity, Identity] = {}
    for keyed in (True, False):
        gone = _find_single_topics(deleted, pairs, keyed=keyed)
        new = _find_single_topics(created, pairs, keyed=keyed)
        for block in gone.keys() & new.keys():
            pairs[gone[block]], pairs[new[block]] = new[block], gone[block]
    old = {change.identity for change in deleted}
    return {
        topic: ((_BEFORE if topic in old else _AFTER).format(inline(other.key)),)
        for topic, other in pairs.items()
    }


def _find_single_topics(
    changes: Sequence[Change], known: Container[Identity], *, keyed: bool
) -> Mapping[str, Identity]:
    """Address -> its topic, of addresses with one of these changes. keyed: of each instance, else
    of each block."""
    topics_of: dict[str, list[Identity]] = defaultdict(list)
    for change in changes:
        if change.identity not in known:
            address = change.address if keyed else change.address.partition("[")[0]
            topics_of[address].append(change.identity)
    return {address: found[0] for address, found in topics_of.items() if len(found) == 1}


def _is_topic_change(change: Change, action: Action) -> bool:
    return change.identity.kind == topics.KIND and change.action is action


def _find_live_collisions(
    created: Sequence[Change], deleted: Sequence[Change], sweep: Sweep | None
) -> FoundBlocks:
    """New topics whose names collide with a live one (error 17)."""
    live: dict[str, set[str]] = defaultdict(set)
    for item in sweep.items if sweep else ():
        live[collision_key(item.identity.key)].add(item.identity.key)
    # A listing hides topics that we may not describe; a deletion proves that its topic is there.
    for change in deleted:
        live[collision_key(change.identity.key)].add(change.identity.key)
    going = {change.identity.key for change in deleted if change.blocked is None}
    for change in created:
        for other in sorted(live[collision_key(change.identity.key)] - {change.identity.key}):
            yield change.identity, _make_collision(change.identity.key, other, other in going)


def _make_collision(name: str, other: str, deleted: bool) -> Blocker:
    # Creates leave before deletes, and the dry run sees only live topics: it would fail with 17.
    if deleted:
        return Blocker(
            BlockerKind.CONFLICT,
            f"{name} collides with {other}, which this plan deletes: creates come before deletes",
            "apply the deletion first (--target=ITS_ADDRESS), then plan again",
        )
    return Blocker(
        BlockerKind.CONFLICT,
        f"{name} collides with the live topic {other}: Kafka's metric names treat '.' and '_' "
        "as the same",
        "choose a name that differs in more than '.' and '_'",
    )


def _find_plan_collisions(created: Sequence[Change]) -> FoundBlocks:
    """New topics whose names collide with each other; no dry run of the broker sees that."""
    groups = defaultdict(list)
    for change in created:
        groups[collision_key(change.identity.key)].append(change)
    for group in groups.values():
        for change in group if len(group) > 1 else ():
            other = next(item for item in group if item is not change)
            yield (
                change.identity,
                Blocker(
                    BlockerKind.CONFLICT,
                    f"{change.identity.key} collides with {other.identity.key} "
                    f"({other.address}): Kafka's metric names treat '.' and '_' as the same",
                    "rename one of them",
                ),
            )


def _find_double_configs(changes: Sequence[Change]) -> FoundBlocks:
    """Configs of a topic that its `kafka_topic` block declares too."""
    declared = {change.identity: change for change in changes if change.action in _DECLARED}
    for identity in declared:
        if identity.kind != configs.KIND:
            continue
        topic = declared.get(Identity(identity.instance, topics.KIND, identity.key))
        if topic is not None:
            yield (
                identity,
                Blocker(
                    BlockerKind.CONFLICT,
                    f"{topic.address} also declares the configs of {identity.key}",
                    f"move them into the config of {topic.address} and remove this block",
                ),
            )
