"""Judges changes of topics, and of overrides that another block declares, by `configs`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Finding
from kafkaform.core.resource import Depth, Facts, Identity
from kafkaform.core.rule import Judge, Needs, Scene, Survey
from kafkaform.core.value import EMPTY, FrozenMap

from ...kinds.topic.configs import find_effective
from . import config_rows as rows
from . import configs
from .configs import TopicConfigs


def _judge_topic_replicas(change: Change, facts: Facts) -> Iterator[Finding]:
    if change.action in (Action.CREATE, Action.UPDATE):
        yield from configs.judge_in_sync_replicas(_make_topic_configs(change, facts))


def _judge_topic(change: Change, facts: Facts) -> Iterator[Finding]:
    if change.action is Action.UPDATE:
        yield from configs.judge_records_and_clients(_make_topic_configs(change, facts))


def _make_topic_configs(change: Change, facts: Facts) -> TopicConfigs:
    effective = find_effective(change, facts)
    return TopicConfigs(
        effective.before if change.before is not None else {},
        effective.after,
        _count_replicas(change.after),
        facts,
        effective.inherited_before,
        effective.inherited_after,
        _count_replicas(change.before),
    )


def _count_replicas(attributes: FrozenMap | None) -> int | None:
    """The replicas of each partition; None if the cluster chooses the number."""
    whole = attributes or EMPTY
    rows = whole.get("replica_assignment")
    number = len(rows[0]) if rows else whole.get("replication_factor")
    return number if isinstance(number, int) and number > 0 else None


# The topic is there before the block and after it, so overrides that come or go with the block
# concern records as much as an update.
_WRITES = (Action.CREATE, Action.UPDATE, Action.DELETE)


def _judge_overrides(change: Change, facts: Facts) -> Iterator[Finding]:
    if change.action in _WRITES:
        yield from configs.judge_records_and_clients(_make_override_configs(change, None, facts))


def _make_override_configs(change: Change, replicas: int | None, facts: Facts) -> TopicConfigs:
    effective = find_effective(change, facts)
    return TopicConfigs(
        effective.before,
        effective.after,
        replicas,
        facts,
        effective.inherited_before,
        effective.inherited_after,
    )


def list_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """The numbers of replicas of topics whose min.insync.replicas another block sets."""
    return {rows.TOPIC: Depth.NAMES} if any(map(_sets_in_sync_replicas, changes)) else {}


def _sets_in_sync_replicas(change: Change) -> bool:
    """True for a `kafka_topic_config` whose topic gets another min.insync.replicas: only a listing
    of the topics says how many replicas it has."""
    return (
        change.identity.kind == rows.OVERRIDES
        and change.action in _WRITES
        and any(item.path == ("config", rows.MIN_IN_SYNC) for item in change.paths)
    )


def _survey_overrides(scene: Scene) -> Iterator[tuple[Identity | None, Finding]]:
    sweep = scene.sweeps.get(rows.TOPIC)
    replicas = {
        item.identity.key: item.attributes.get("replication_factor") or None
        for item in (sweep.items if sweep else ())
    }
    for change in filter(_sets_in_sync_replicas, scene.changes):
        overrides = _make_override_configs(change, replicas.get(change.identity.key), scene.facts)
        for finding in configs.judge_in_sync_replicas(overrides):
            yield change.identity, finding


JUDGES = (
    Judge(configs.IN_SYNC_RULES, (rows.TOPIC,), Needs.BLOCK, _judge_topic_replicas),
    Judge(configs.RULES, (rows.TOPIC,), Needs.OBJECT, _judge_topic),
    Judge(configs.RULES, (rows.OVERRIDES,), Needs.OBJECT, _judge_overrides),
)
SURVEYS = (Survey(configs.IN_SYNC_RULES, _survey_overrides),)
