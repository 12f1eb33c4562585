"""Rules of defaults: what a config of a broker or of all brokers does to the topics that follow it.

A topic follows a default if it has no override of its own. Its effective configs before and after
go to the same judge as those of a topic that is changed itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Finding
from kafkaform.core.resource import CoverageKind, Depth, Facts, Identity
from kafkaform.core.rule import Scene, Survey
from kafkaform.core.text.foreign import inline
from kafkaform.core.text.quantity import render_count
from kafkaform.core.value import EMPTY, FrozenMap

from ..kinds.topic.configs import get_config, list_kafka_defaults
from . import topic_configs
from .broker_rows import BROKER, CLUSTER
from .topic_config_rows import TOPIC
from .topic_configs import TopicConfigs, judge_topic_configs

FOLLOWED: Mapping[str, str] = {
    "compression.type": "compression.type",
    "log.cleaner.delete.retention.ms": "delete.retention.ms",
    "log.cleaner.max.compaction.lag.ms": "max.compaction.lag.ms",
    "log.cleaner.min.compaction.lag.ms": "min.compaction.lag.ms",
    "log.cleanup.policy": "cleanup.policy",
    "log.flush.interval.messages": "flush.messages",
    "log.flush.interval.ms": "flush.ms",
    "log.local.retention.bytes": "local.retention.bytes",
    "log.local.retention.ms": "local.retention.ms",
    "log.message.downconversion.enable": "message.downconversion.enable",
    "log.message.timestamp.after.max.ms": "message.timestamp.after.max.ms",
    "log.message.timestamp.before.max.ms": "message.timestamp.before.max.ms",
    "log.message.timestamp.difference.max.ms": "message.timestamp.difference.max.ms",
    "log.message.timestamp.type": "message.timestamp.type",
    "log.retention.bytes": "retention.bytes",
    "log.retention.ms": "retention.ms",
    "message.max.bytes": "max.message.bytes",
    "min.insync.replicas": "min.insync.replicas",
    "unclean.leader.election.enable": "unclean.leader.election.enable",
}
"""Config of brokers that can be changed without a restart -> the topic config whose default it is
(ServerTopicConfigSynonyms)."""
NAMED = 10
"""Topics that a sentence names."""

_WRITES = (Action.CREATE, Action.UPDATE, Action.DELETE)


class _Topic(Struct, frozen=True):
    """A topic as far as its defaults matter."""

    name: str
    before: FrozenMap
    """Its overrides now."""
    after: FrozenMap
    """Its overrides after the plan."""
    replicas: int | None


def list_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """The overrides of all topics, if a default of theirs changes."""
    return {TOPIC: Depth.FULL} if any(map(_list_moved, changes)) else {}


def _list_moved(change: Change) -> tuple[str, ...]:
    """The defaults of topics that a change of a broker's or the cluster's configs changes."""
    if change.identity.kind not in (BROKER, CLUSTER) or change.action not in _WRITES:
        return ()
    names = (item.path[1] for item in change.paths if item.path[0] == "config" and item.path[1:])
    return tuple(name for name in names if name in FOLLOWED)


def _survey_followers(scene: Scene) -> Iterator[tuple[Identity | None, Finding]]:
    changes = [change for change in scene.changes if _list_moved(change)]
    if not changes:
        return
    topics = _list_topics(scene)
    for change in changes:
        for finding in _judge_defaults(change, topics, scene.facts):
            yield change.identity, finding


def _list_topics(scene: Scene) -> tuple[_Topic, ...] | None:
    """The topics with their overrides, without those that the plan deletes; None if not all of them
    could be listed."""
    sweep = scene.sweeps.get(TOPIC)
    if sweep is None or sweep.coverage.kind is CoverageKind.FAILED:
        return None
    planned = {
        change.identity.key: change for change in scene.changes if change.identity.kind == TOPIC
    }
    topics = []
    for item in sweep.items:
        name, attributes = item.identity.key, item.attributes
        change = planned.get(name)
        if change is not None and change.effective and change.action is Action.DELETE:
            continue
        before = get_config(attributes)
        updated = change is not None and change.effective and change.after is not None
        after = get_config(change.after) if updated and change is not None else before
        replicas = attributes.get("replication_factor")
        number = replicas if isinstance(replicas, int) else None
        topics.append(_Topic(name, before, after, number))
    return tuple(topics)


def _judge_defaults(
    change: Change, topics: tuple[_Topic, ...] | None, facts: Facts
) -> Iterator[Finding]:
    before, after = _list_defaults(change, facts)
    if topics is None:
        # Nobody knows who follows, so the change counts as one object.
        configs = _make_configs(before, after, EMPTY, EMPTY, None, facts)
        for finding in judge_topic_configs(configs):
            text = f"topics without an override of their own: {finding.text}"
            yield replace(finding, text=text, path=_find_path(change, finding))
        return
    alike: dict[tuple[FrozenMap, FrozenMap, int | None], list[str]] = defaultdict(list)
    for topic in topics:
        alike[topic.before, topic.after, topic.replicas].append(topic.name)
    names: dict[Finding, list[str]] = defaultdict(list)
    for (own_before, own_after, replicas), group in alike.items():
        configs = _make_configs(before, after, own_before, own_after, replicas, facts)
        moved = {
            FOLLOWED[name]
            for name in _list_moved(change)
            if own_before.get(FOLLOWED[name]) is None or own_after.get(FOLLOWED[name]) is None
        }
        for finding in judge_topic_configs(configs):
            if finding.path[1] in moved:
                names[finding].extend(group)
    for finding, followers in names.items():
        yield _join_followers(change, finding, sorted(followers), len(topics))


def _list_defaults(change: Change, facts: Facts) -> tuple[dict[str, str], dict[str, str]]:
    """The defaults of topics before and after the change."""
    now = {**list_kafka_defaults(facts), **(facts.values.get("topic_defaults") or EMPTY)}
    before, after = dict(now), dict(now)
    for item in change.paths:
        key = FOLLOWED.get(item.path[1]) if item.path[0] == "config" and item.path[1:] else None
        if key is None:
            continue
        if item.before is not None:
            before[key] = str(item.before)
        if item.after is not None:
            after[key] = str(item.after)
        elif item.effective is not None:
            after[key] = str(item.effective)
        else:
            after[key] = list_kafka_defaults(facts)[key]
    return before, after


def _make_configs(
    before: Mapping[str, str],
    after: Mapping[str, str],
    own_before: FrozenMap,
    own_after: FrozenMap,
    replicas: int | None,
    facts: Facts,
) -> TopicConfigs:
    return TopicConfigs(
        {**before, **{key: str(value) for key, value in own_before.items()}},
        {**after, **{key: str(value) for key, value in own_after.items()}},
        replicas,
        facts,
        frozenset(key for key in before if key not in own_before),
        frozenset(key for key in after if key not in own_after),
    )


def _find_path(change: Change, finding: Finding) -> tuple[str, ...]:
    """The path of the default that the finding is about."""
    name = next((name for name in _list_moved(change) if FOLLOWED[name] == finding.path[1]), "")
    return ("config", name) if name else finding.path


def _join_followers(
    change: Change, finding: Finding, followers: Sequence[str], total: int
) -> Finding:
    """One finding for all topics that follow the default in the same way."""
    named = ", ".join(map(inline, followers[:NAMED]))
    more = f" and {len(followers) - NAMED:,} more" if len(followers) > NAMED else ""
    where = "" if change.identity.kind == CLUSTER else f" on broker {change.identity.key}"
    verb = "follows" if len(followers) == 1 else "follow"
    subject = f"{render_count(len(followers), 'topic')} {verb} the default{where} ({named}{more})"
    return replace(
        finding,
        text=f"{subject}: {finding.text}",
        path=_find_path(change, finding),
        figures=FrozenMap(objects=len(followers), of_objects=total, topics=tuple(followers)),
    )


SURVEYS = (Survey((*topic_configs.RULES, *topic_configs.IN_SYNC_RULES), _survey_followers),)
