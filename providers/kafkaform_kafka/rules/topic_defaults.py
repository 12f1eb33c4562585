"""Rules of topic configs for the defaults of cluster and brokers, over the topics that follow them.

The rules and sentences are those of `topic_configs`. What this adds are the topics: whose overrides
do not decide, how many they are, and their names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Finding
from kafkaform.core.resource import CoverageKind, Depth, Facts, Identity, Sweep
from kafkaform.core.rule import Scene, Survey
from kafkaform.core.text.quantity import render_count
from kafkaform.core.value import EMPTY, FrozenMap

from ..kinds.topic.configs import (
    BROKER_CONFIG,
    CLUSTER_CONFIG,
    RETENTION_KEYS,
    DefaultChange,
    find_default_change,
    get_config,
    list_default_keys,
    list_default_paths,
)
from .topics import configs as topic_configs
from .topics.config_rows import EXPIRY_STARTED, OVERRIDES, TOPIC
from .topics.configs import TopicConfigs, judge_topic_configs

NAMED = 10
"""The most topics that a sentence names."""


class Follower(Struct, frozen=True):
    """One topic."""

    name: str
    """What clients call it."""
    config: FrozenMap
    """Its overrides after the plan."""
    replicas: int | None
    """Replicas of each partition, None if unknown."""
    brokers: frozenset[str]
    """The brokers with replicas of it; empty if unknown."""


def list_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """All topics with their overrides, and the brokers with values of their own."""
    kinds = {change.identity.kind for change in changes if list_default_paths(change)}
    needs = {TOPIC: Depth.FULL} if kinds else {}
    return {**needs, BROKER_CONFIG: Depth.FULL} if CLUSTER_CONFIG in kinds else needs


def _survey(scene: Scene) -> Iterator[tuple[Identity | None, Finding]]:
    changes = [change for change in scene.changes if list_default_paths(change)]
    if not changes:
        return
    sweep = scene.sweeps.get(TOPIC)
    if sweep is None or sweep.coverage.kind is CoverageKind.FAILED:
        topics = None
    else:
        topics = _list_topics(sweep, scene.changes)
    overriding = _list_overriding(scene.sweeps.get(BROKER_CONFIG))
    for change in changes:
        for finding in _judge_defaults(change, topics, overriding, scene.facts):
            yield change.identity, finding


def _list_topics(sweep: Sweep, changes: Sequence[Change]) -> Sequence[Follower]:
    """The topics that are there before and after the plan."""
    planned = {
        change.identity.key: change
        for change in changes
        if change.effective and change.identity.kind in (TOPIC, OVERRIDES)
    }
    topics = []
    for item in sweep.items:
        change = planned.get(item.identity.key)
        if change and change.identity.kind == TOPIC and change.action is Action.DELETE:
            continue
        rows = item.attributes.get("replica_assignment") or ()
        topics.append(
            Follower(
                item.identity.key,
                get_config(change.after if change else item.attributes),
                item.attributes.get("replication_factor"),
                frozenset(str(broker) for row in rows for broker in row),
            )
        )
    return topics


def _list_overriding(sweep: Sweep | None) -> Mapping[str, Set[str]]:
    """Topic config -> the brokers that have a default of their own for it."""
    keys = list_default_keys()
    overriding: dict[str, set[str]] = defaultdict(set)
    for item in sweep.items if sweep else ():
        for name in get_config(item.attributes):
            if name in keys:
                overriding[keys[name]].add(item.identity.key)
    return overriding


def _judge_defaults(
    change: Change,
    topics: Sequence[Follower] | None,
    overriding: Mapping[str, Set[str]],
    facts: Facts,
) -> Iterator[Finding]:
    of_broker = change.identity.kind == BROKER_CONFIG
    keys = list_default_paths(change).keys()
    defaults = find_default_change(change, facts, () if of_broker else overriding.keys() & keys)
    if not of_broker and facts.nodes:
        # Where every broker has a value of its own, that wins.
        hidden = [key for key in keys if overriding.get(key, frozenset()) >= {*facts.nodes}]
        unchanged = {key: defaults.before[key] for key in hidden}
        defaults = replace(defaults, after={**defaults.after, **unchanged})
    if topics is None:
        unknown = Follower("", EMPTY, None, frozenset())
        for finding in _judge_follower(defaults, unknown, facts):
            suffix = " without an override of their own; the topics could not be listed"
            yield _place(finding, defaults, f"in all topics{suffix}")
        return
    if of_broker:
        topics = [
            item for item in topics if not item.brokers or change.identity.key in item.brokers
        ]
    groups: dict[tuple[FrozenMap, int | None], list[Follower]] = defaultdict(list)
    for item in topics:
        groups[item.config, item.replicas].append(item)
    concerned: dict[Finding, list[str]] = defaultdict(list)
    for members in groups.values():
        for finding in _judge_follower(defaults, members[0], facts):
            concerned[finding] += [item.name for item in members]
    for finding, names in concerned.items():
        figures = finding.figures.with_items(
            {
                "objects": len(names),
                "of_objects": len(topics),
                "kind": TOPIC,
                "topics": tuple(sorted(names)),
            }
        )
        yield _place(replace(finding, figures=figures), defaults, _name_topics(names, of_broker))


def _judge_follower(defaults: DefaultChange, topic: Follower, facts: Facts) -> Iterator[Finding]:
    overrides = {key: str(value) for key, value in topic.config.items() if value is not None}
    before, after = {**defaults.before, **overrides}, {**defaults.after, **overrides}
    configs = TopicConfigs(
        before, after, topic.replicas, facts, defaults.unset_before, defaults.unset_after
    )
    for finding in judge_topic_configs(configs):
        if finding.rule == EXPIRY_STARTED.id:
            # Each topic expires by its own limits, which the change does not show.
            finding = replace(finding, figures=FrozenMap(limits=_list_limits(after)))
        yield finding


def _list_limits(values: Mapping[str, str]) -> tuple[str, ...]:
    """`retention.ms=3600000` for each config that limits what is kept."""
    return tuple(f"{key}={values[key]}" for key in RETENTION_KEYS)


def _place(finding: Finding, defaults: DefaultChange, scope: str) -> Finding:
    """The finding at the broker config that changes the default. scope: in which topics."""
    # A rule over two configs can name the one that stays.
    path = defaults.paths.get(finding.path[1], next(iter(defaults.paths.values())))
    return replace(finding, path=path, text=f"{finding.text}, {scope}")


def _name_topics(names: Sequence[str], of_broker: bool) -> str:
    listed = ", ".join(sorted(names)[:NAMED])
    suffix = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    own = "its" if len(names) == 1 else "their"
    count = render_count(len(names), "topic")
    if of_broker:
        return (
            f"in the replicas that the broker has of {count} without an override: {listed}{suffix}"
        )
    return f"in {count} without an override of {own} own: {listed}{suffix}"


SURVEYS = (Survey((*topic_configs.IN_SYNC_RULES, *topic_configs.RULES), _survey),)
