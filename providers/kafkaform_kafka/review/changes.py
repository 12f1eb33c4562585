"""Judges all changes of one cluster together: what no single change can know.

Topic names collide when they differ only in '.' and '_', because metrics spell both alike. The
broker sees a collision with a live topic in its dry run, but not one inside the plan.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from kafkaform.core.change import Action, Blocker, BlockerKind, Change, Review
from kafkaform.core.resource import CoverageKind, Depth, Facts, Identity, Sweep

from ..authority import lockout
from ..authority.effects import describe_acl
from ..kinds.acl import resource_type as acls
from ..kinds.kind import KindRights
from ..kinds.quota import resource_type as quotas
from ..kinds.topic import configs
from ..kinds.topic import resource_type as topics
from ..kinds.user import resource_type as scram
from ..protocol.broker_rules import collision_key
from . import acl_changes, mutation_quota

FoundBlocks = Iterator[tuple[Identity, Blocker]]


def review_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """Topic names, if the plan creates topics; quotas, if it spends mutations; all ACLs and
    more, if it changes some."""
    return {
        **({topics.KIND: Depth.NAMES} if _select_creates(changes) else {}),
        **({quotas.KIND: Depth.FULL} if any(map(mutation_quota.compute_spending, changes)) else {}),
        **acl_changes.needs(changes),
    }


def review(
    changes: Sequence[Change],
    sweeps: Mapping[str, Sweep],
    facts: Facts,
    kind_rights: Mapping[str, KindRights],
) -> Review:
    """Blocks what cannot stand together, each change with its first reason. kind_rights: by kind,
    what the plan must not take from whom it runs as."""
    blocks: dict[Identity, Blocker] = {}
    for identity, block in (
        *_find_live_collisions(changes, sweeps.get(topics.KIND)),
        *_find_plan_collisions(changes),
        *_find_double_configs(changes),
    ):
        blocks.setdefault(identity, block)
    left = [change for change in changes if change.identity not in blocks]
    access = acl_changes.review(changes, sweeps, facts, kind_rights)
    return Review(
        blocks={**access.blocks, **blocks},
        unless=access.unless,
        notes={**access.notes, **_hiding_notes(left, facts, kind_rights)},
        losses=access.losses,
        risks=access.risks,
        warnings=(
            *access.warnings,
            *_warn_unlisted(changes, sweeps.get(topics.KIND)),
            *_warn_comes_back(changes, facts),
            *acls.describe_order(left, facts),
            *mutation_quota.quota_warnings(left, sweeps.get(quotas.KIND), facts),
            *quotas.callback_warnings(left, facts),
            *scram.own_warnings(left, facts),
        ),
    )


def _hiding_notes(
    changes: Sequence[Change], facts: Facts, kind_rights: Mapping[str, KindRights]
) -> Mapping[Identity, tuple[str, ...]]:
    """Whoever took his own sight away finds the way back here."""
    notes = {}
    for identity, change, acl in lockout.find_hiding(changes, kind_rights, facts.principal):
        goes = change.action is Action.DELETE and change.blocked is None
        way = f", which this plan deletes: apply --target='{change.address}' first" if goes else ""
        notes[identity] = (f"{describe_acl(acl)} hides it ({change.address}{way})",)
    return notes


def _select_creates(changes: Sequence[Change]) -> tuple[Change, ...]:
    return tuple(
        change
        for change in changes
        if change.identity.kind == topics.KIND and change.action is Action.CREATE
    )


def _list_deleted(changes: Sequence[Change]) -> frozenset[str]:
    return frozenset(
        change.identity.key
        for change in changes
        if change.identity.kind == topics.KIND
        and change.action is Action.DELETE
        and change.blocked is None
    )


def _find_live_collisions(changes: Sequence[Change], sweep: Sweep | None) -> FoundBlocks:
    live = defaultdict(list)
    for item in sweep.items if sweep else ():
        live[collision_key(item.identity.key)].append(item.identity.key)
    for change in changes:
        if change.identity.kind == topics.KIND and change.action is Action.DELETE:
            names = live[collision_key(change.identity.key)]
            names += [change.identity.key] if change.identity.key not in names else []
    deleted = _list_deleted(changes)
    for change in _select_creates(changes):
        for other in live[collision_key(change.identity.key)]:
            if other != change.identity.key:
                yield change.identity, _make_collision(change.identity.key, other, other in deleted)


def _make_collision(name: str, other: str, deleted: bool) -> Blocker:
    if deleted:
        return Blocker(
            BlockerKind.CONFLICT,
            f"{name} collides with {other}, which this plan deletes: "
            "creates come before deletes",
            "apply the deletion first (--target=ITS_ADDRESS), then plan again",
        )  # fmt: skip
    return Blocker(
        BlockerKind.CONFLICT,
        f"{name} collides with the live topic {other}: Kafka's metrics spell '.' and '_' alike",
        "choose a name that differs in more than '.' and '_'",
    )


def _find_plan_collisions(changes: Sequence[Change]) -> FoundBlocks:
    groups = defaultdict(list)
    for change in _select_creates(changes):
        groups[collision_key(change.identity.key)].append(change)
    for group in groups.values():
        for change in group if len(group) > 1 else ():
            others = [item for item in group if item is not change]
            yield (
                change.identity,
                Blocker(
                    BlockerKind.CONFLICT,
                    f"{change.identity.key} collides with {others[0].identity.key} "
                    f"({others[0].address}): Kafka's metrics spell '.' and '_' alike",
                    "rename one of them",
                ),
            )


_DECLARED = frozenset({Action.CREATE, Action.UPDATE, Action.ADOPT, Action.IMPORT, Action.NOOP})


def _find_double_configs(changes: Sequence[Change]) -> FoundBlocks:
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
                    f"the configs of {identity.key} are also declared by {topic.address}",
                    f"move them into config of {topic.address} and remove this block",
                ),
            )


def _warn_comes_back(changes: Sequence[Change], facts: Facts) -> tuple[str, ...]:
    """Brokers that create a topic for whoever asks for it undo a deletion within moments."""
    if not facts.values.get("auto_create") or not _list_deleted(changes):
        return ()
    return (
        "auto.create.topics.enable is true: a deleted topic comes back, empty and with default "
        "settings, when a client still uses it. Stop its clients first",
    )


def _warn_unlisted(changes: Sequence[Change], sweep: Sweep | None) -> tuple[str, ...]:
    if not _select_creates(changes) or (sweep and sweep.coverage.kind is not CoverageKind.FAILED):
        return ()
    return ("the live topics could not be listed, so name collisions show up in the dry run only",)
