"""The rules of connectors: what workers refuse, and what a change does to the records.

Sources: ConnectorConfig, SinkConnectorConfig, SourceConnectorConfig, Worker, WorkerSinkTask and
OffsetStorageReaderImpl of Kafka Connect.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kafkaform.core.change import Action, Change
from kafkaform.core.diagnostics import suggest
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import Depth, Facts, Identity
from kafkaform.core.rule import Judge, Needs, Rule, RuleBook, Scene, Survey
from kafkaform.core.text import parse_whole, render_count
from kafkaform.core.value import EMPTY, FrozenMap

from . import config_rules, offset_rules
from .config_rules import PROOFS, TYPES, WRITING
from .connector import (
    KIND,
    OFFSETS_FROM,
    PAUSED,
    RUNNING,
    STARTING,
    STOPPED,
    TARGETS,
    is_sink,
    list_topics,
    name_group,
    reads_pattern,
)
from .definitions import ConnectFacts, finds_plugin, is_same_plugin, name_listing
from .offset_rules import carries_offsets, describe_start

MAX_REASONS = 3
"""Failures of a connector that a plan repeats."""
MAX_NAMES = 10
"""Topics that a sentence names."""
LIKENESS = 0.75
"""The share of equal configs from which a new connector looks like a deleted one."""


# ── rows ────────────────────────────────────────────────────────────────────────────────

PLUGIN_UNKNOWN = Rule(
    "connector-plugin-unknown",
    "No worker has the plugin",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.FACTS,
    "Workers refuse a connector whose class they do not find under its full name, its simple name "
    "or that without `Connector` (PluginUtils).",
    'class = "FileStreamSorce"',
    "Install it on the workers. The data source kafka_connect_plugins lists what they have.",
    Block.IMPOSSIBLE,
    proof=f"{PROOFS}test_workers_refuse_an_unknown_plugin",
)
STATE_UNSUPPORTED = Rule(
    "connector-state-unsupported",
    "The workers do not know the state",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.FACTS,
    "Connectors can be stopped since Kafka 3.5 (KIP-875), and created without running since Kafka "
    "3.7 (KIP-980).",
    'state = "stopped"   # workers of Kafka 3.4',
    "Upgrade the workers, or let the connector run.",
    Block.IMPOSSIBLE,
    proof=f"{PROOFS}test_workers_create_a_stopped_connector_since_3_7",
)
TRANSACTIONS_UNCHECKED = Rule(
    "connector-transactions-unchecked",
    "Rights on transactional ids are not checked",
    Level.NOTE,
    Harm.NONE,
    TYPES,
    Needs.FACTS,
    "Each task of a source with exactly-once support has the transactional id GROUP-NAME-N, where "
    "GROUP is the `group.id` of the workers (KIP-618). The REST API says neither the group nor "
    "whether the workers support it.",
    'config = { "exactly.once.support" = "required" }',
    "Grant the workers Write and Describe on these ids.",
    proof="tests/cluster/claims/test_exactly_once.py::"
    "test_a_source_needs_rights_on_the_transactional_id_of_its_task",
)
SECRETS_UNCOMPARED = Rule(
    "connector-secrets-uncompared",
    "Secrets of an adopted connector are not compared",
    Level.CAUTION,
    Harm.NONE,
    TYPES,
    Needs.OBJECT,
    "kafkaform drops secrets as soon as it has read them, so it cannot tell whether those that are "
    "set are the declared ones. An adoption keeps what is set.",
    'secret_config = { pin = secret_env("PIN") }   # --adopt',
    "Change secret_config_version after the adoption to send the declared ones.",
)
DELETED = Rule(
    "connector-deleted",
    "A running connector is deleted",
    Level.DANGER,
    Harm.AVAILABILITY,
    TYPES,
    Needs.OBJECT,
    "Workers stop the tasks of a connector that is deleted.",
    'resource "kafka_connect_connector" "orders" { … }   # the block is removed',
    "Keep the block if its records are still needed.",
    proof=f"{PROOFS}test_a_deleted_connector_stops_and_its_offsets_stay",
)
OFFSETS_STAY = Rule(
    "connector-offsets-stay",
    "Offsets of a deleted connector stay",
    Level.NOTE,
    Harm.NONE,
    TYPES,
    Needs.OBJECT,
    "Workers keep the offsets of a source under its name in their offsets topic, and those of a "
    "sink are the ones of the group connect-NAME. Deleting a connector removes neither.",
    'resource "kafka_connect_connector" "orders" { … }   # the block is removed',
    proof=f"{PROOFS}test_a_deleted_connector_stops_and_its_offsets_stay",
)
HALTED = Rule(
    "connector-halted",
    "A connector is paused or stopped",
    Level.DANGER,
    Harm.AVAILABILITY,
    TYPES,
    Needs.OBJECT,
    "The tasks of a paused connector do nothing, and a stopped one has none (KIP-875).",
    'state = "paused"   # was "running"',
    'Keep state = "running" if somebody needs its records.',
    proof=f"{PROOFS}test_a_halted_connector_copies_nothing",
)
CLASS_CHANGED = Rule(
    "connector-class-changed",
    "A connector gets another plugin",
    Level.CAUTION,
    Harm.ORDERING,
    TYPES,
    Needs.OBJECT,
    "Offsets belong to the name of a connector and have the form that its plugin chose "
    "(SourceRecord.sourcePartition). Another plugin goes on from them only if it has the same "
    "form, and starts over otherwise.",
    'class = "FileStreamSink"   # was "FileStreamSource"',
    "Give the other plugin its own connector.",
    proof=f"{PROOFS}test_workers_accept_another_class_under_the_same_name",
)
TOPICS_LEFT = Rule(
    "connector-topics-left",
    "A sink leaves topics",
    Level.CAUTION,
    Harm.AVAILABILITY,
    TYPES,
    Needs.OBJECT,
    "A sink reads the topics in `topics` and no others.",
    'config = { topics = "orders" }   # was "orders,returns"',
    "Keep the topics whose records somebody needs.",
    proof=f"{PROOFS}test_a_sink_reads_new_topics_from_the_beginning_and_leaves_others",
)
TOPICS_ADDED = Rule(
    "connector-topics-added",
    "A sink reads further topics",
    Level.NOTE,
    Harm.NONE,
    TYPES,
    Needs.OBJECT,
    "Workers let consumers begin at the first record of a topic of which the group has no offsets "
    "(`auto.offset.reset = earliest`, Worker.baseConsumerConfigs).",
    'config = { topics = "orders,returns" }   # was "orders"',
    proof=f"{PROOFS}test_a_sink_reads_new_topics_from_the_beginning_and_leaves_others",
)
PATTERN_CHANGED = Rule(
    "connector-pattern-changed",
    "A sink reads other topics",
    Level.CAUTION,
    Harm.AVAILABILITY,
    TYPES,
    Needs.OBJECT,
    "A sink reads the topics that fit `topics.regex`, and leaves those that fit no more.",
    'config = { "topics.regex" = "shop.*" }   # was "s.*"',
    fix="Compare the topics that the old and the new pattern match.",
    proof=f"{PROOFS}test_a_sink_reads_the_topics_that_fit_and_leaves_others",
)
TARGET_CHANGED = Rule(
    "connector-target-changed",
    "A source writes to another topic",
    Level.CAUTION,
    Harm.NONE,
    TYPES,
    Needs.OBJECT,
    "The offsets of a source belong to its name and not to its topic, so it does not write again "
    "what it has read already.",
    'config = { topic = "orders-v2" }   # was "orders"',
    "Copy the records of the old topic if readers of the new one need them.",
    proof=f"{PROOFS}test_a_source_with_another_topic_goes_on_there",
)
TASKS_LOWERED = Rule(
    "connector-tasks-lowered",
    "A connector may have fewer tasks",
    Level.CAUTION,
    Harm.THROUGHPUT,
    TYPES,
    Needs.OBJECT,
    "Tasks are what workers run in parallel, and a connector has at most `tasks.max` of them.",
    'config = { "tasks.max" = 1 }   # was 8',
    fix="Check that the remaining tasks keep up with the records.",
    proof=f"{PROOFS}test_a_connector_has_no_more_tasks_than_it_may",
)
RENAMED = Rule(
    "connector-renamed",
    "A connector gets another name",
    Level.CAUTION,
    Harm.ORDERING,
    TYPES,
    Needs.PLAN,
    "Offsets belong to the name of a connector: those of a source are stored under it, and a sink "
    "has the group connect-NAME. A connector with another name has none, so its records are copied "
    "once more, old ones after new ones.",
    'name = "orders-v2"   # was "orders"',
    "Keep the name, or take the offsets along with offsets_from.",
    proof=f"{PROOFS}test_a_renamed_connector_starts_over",
)
FAILED = Rule(
    "connector-failed",
    "A connector has failed",
    Level.CAUTION,
    Harm.NONE,
    TYPES,
    Needs.SYSTEM,
    "A failed connector or task stays so until somebody restarts it. An apply restarts what has "
    "failed, once (KIP-745).",
    "failures = { tasks = failed }   # as it was read",
    "Remove the cause first.",
    proof="tests/cluster/connect/test_connectors.py::"
    "test_a_failure_is_told_and_restarted_after_its_cause_is_gone",
)
FEATURES: Mapping[str, tuple[tuple[int, int], str]] = {
    "carry": ((3, 7), "create a connector that gets its offsets before it runs (KIP-980)"),
    "initial_state": ((3, 7), "create a connector that does not run at once (KIP-980)"),
    "stop": ((3, 5), "stop a connector (KIP-875)"),
}
"""What the REST API could not do at first: name -> (version of Kafka, what)."""


# ── the workers ─────────────────────────────────────────────────────────────────────────


def _judge_facts(change: Change, facts: Facts) -> Iterator[Finding]:
    if change.action not in WRITING or change.after is None:
        return
    after, before = change.after, change.before or EMPTY
    class_, plugins = str(after.get("class")), ConnectFacts.of(facts).plugins
    chosen = change.action is Action.CREATE or class_ != before.get("class")
    if plugins and chosen and not finds_plugin(class_, plugins):
        fix = suggest(class_, plugins) or None
        yield PLUGIN_UNKNOWN.find(f"no worker has the plugin {class_}", ("class",), fix=fix)
    if carries_offsets(change):
        yield from _find_missing_feature(facts, "carry", OFFSETS_FROM)
    elif change.action is Action.CREATE and after.get("state") in (PAUSED, STOPPED):
        yield from _find_missing_feature(facts, "initial_state")
    elif after.get("state") == STOPPED and before.get("state") != STOPPED:
        yield from _find_missing_feature(facts, "stop")
    config = after.get("config") or EMPTY
    if facts.acts_as and str(config.get("exactly.once.support")).lower() == "required":
        group = facts.scope_id.partition("/")[2] or "GROUP"
        yield TRANSACTIONS_UNCHECKED.find(
            f"{facts.acts_as} also needs Write and Describe on the transactional id "
            f"{group}-{after['name']}-N of each task N, which this plan does not check",
            ("config", "exactly.once.support"),
        )


def _find_missing_feature(facts: Facts, name: str, attribute: str = "state") -> Iterator[Finding]:
    since, ability = FEATURES[name]
    version = ConnectFacts.of(facts).release
    if version is not None and version < since:
        release, needs = (".".join(map(str, numbers)) for numbers in (version, since))
        yield STATE_UNSUPPORTED.find(
            f"workers of Kafka {release} cannot {ability}",
            (attribute,),
            fix=f"Upgrade the workers to {needs}, or leave {attribute} out.",
        )


# ── the live connector ──────────────────────────────────────────────────────────────────


def _judge_object(change: Change, _: Facts) -> Iterator[Finding]:
    before, after = change.before or EMPTY, change.after or EMPTY
    if change.action is Action.DELETE:
        name = str(change.identity.key)
        if before.get("state") in (RUNNING, STARTING):
            yield DELETED.find(f"the connector {name} copies no more records")
        yield OFFSETS_STAY.find(
            f"its offsets stay in Kafka: a connector that is created with the name {name} goes on "
            "from there"
        )
    if change.adopts and after.get("secret_config"):
        text = "the secrets that are set stay, even if they are not the declared ones"
        yield SECRETS_UNCOMPARED.find(text, ("secret_config",))
    if change.action is not Action.UPDATE:
        return
    for find in (_find_halt, _find_other_class, _find_other_topics, _find_fewer_tasks):
        yield from find(change.identity.key, before, after)


def _find_halt(name: str, before: FrozenMap, after: FrozenMap) -> Iterator[Finding]:
    state = after.get("state")
    if state in (PAUSED, STOPPED) and before.get("state") in (RUNNING, STARTING):
        yield HALTED.find(f"the connector {name} copies no records while it is {state}", ("state",))


def _find_other_class(name: str, before: FrozenMap, after: FrozenMap) -> Iterator[Finding]:
    old, new = str(before.get("class")), str(after.get("class"))
    if not is_same_plugin(old, new):
        text = (
            f"the connector {name} runs {new} in place of {old}, and starts over unless it can "
            "read the offsets of the other"
        )
        yield CLASS_CHANGED.find(text, ("class",))


def _find_other_topics(name: str, before: FrozenMap, after: FrozenMap) -> Iterator[Finding]:
    old, new = (attributes.get("config") or EMPTY for attributes in (before, after))
    if is_sink(before) and is_sink(after):
        yield from _find_other_sources(name, before, after)
        return
    for key in TARGETS:
        if old.get(key) and new.get(key) and old[key] != new[key]:
            text = (
                f"the connector {name} writes to {new[key]} from now on, and what it has written "
                f"to {old[key]} stays there"
            )
            yield TARGET_CHANGED.find(text, ("config", key))


def _find_other_sources(name: str, before: FrozenMap, after: FrozenMap) -> Iterator[Finding]:
    old, new = before.get("config") or EMPTY, after.get("config") or EMPTY
    if reads_pattern(before) or reads_pattern(after):
        sources = _describe_reading(before), _describe_reading(after)
        if sources[0] != sources[1]:
            key = "topics.regex" if new.get("topics.regex") else "topics"
            text = f"the connector {name} reads {sources[1]} instead of {sources[0]}"
            yield PATTERN_CHANGED.find(text, ("config", key))
        return
    topics, old_topics = set(list_topics(new, "topics")), set(list_topics(old, "topics"))
    path, figures = ("config", "topics"), "topics"
    if removed_topics := sorted(old_topics - topics):
        text = f"the connector {name} copies no more records of {_join_names(removed_topics)}"
        yield TOPICS_LEFT.find(text, path, figures=FrozenMap({figures: tuple(removed_topics)}))
    if added := sorted(topics - old_topics):
        latest = new.get("consumer.override.auto.offset.reset") == "latest"
        end = "what is written from now on" if latest else "all records that are there"
        text = (
            f"the connector {name} reads {_join_names(added)}: {end}, unless its group has "
            "offsets there"
        )
        yield TOPICS_ADDED.find(text, path, figures=FrozenMap({figures: tuple(added)}))


def _describe_reading(attributes: FrozenMap) -> str:
    config = attributes.get("config") or EMPTY
    if reads_pattern(attributes):
        return f'the topics that fit "{config.get("topics.regex") or config.get("topics")}"'
    return _join_names(sorted(list_topics(config, "topics")))


def _join_names(names: Sequence[str]) -> str:
    """The first names, and how many there are in all if some are left out."""
    if len(names) <= MAX_NAMES:
        return ", ".join(names)
    return f"{', '.join(names[:MAX_NAMES])} … ({len(names):,} topics)"


def _find_fewer_tasks(name: str, before: FrozenMap, after: FrozenMap) -> Iterator[Finding]:
    old, new = (_read_tasks(attributes.get("config") or EMPTY) for attributes in (before, after))
    if old is not None and new is not None and new < old:
        text = f"the connector {name} has at most {render_count(new, 'task')} instead of {old:,}"
        figures = FrozenMap(tasks_before=old, tasks_after=new)
        yield TASKS_LOWERED.find(text, ("config", "tasks.max"), figures=figures)


def _read_tasks(config: FrozenMap) -> int | None:
    """The most tasks, None for what only the workers can resolve."""
    # The default is that of ConnectorConfig.
    return parse_whole(str(config.get("tasks.max", "1")))


# ── all changes together ────────────────────────────────────────────────────────────────


def list_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """The listings that the surveys look at: why something failed, and what plugins declare."""
    needs = {
        name_listing(class_): Depth.FULL for class_ in sorted(config_rules.list_classes(changes))
    }
    needs |= offset_rules.list_needs(changes)
    listed = any(_restarts(change) or _has_failures(change) for change in changes)
    return needs | ({KIND: Depth.FULL} if listed else {})


def _restarts(change: Change) -> bool:
    updates = change.effective and change.action is Action.UPDATE
    return updates and any(item.path[0] == "failures" for item in change.paths)


def _has_failures(change: Change) -> bool:
    """True for what has failed and stays so: the block ignores it, or the live connector is judged
    as it is."""
    return bool((change.after or EMPTY).get("failures"))


def _survey_failures(scene: Scene) -> Iterator[tuple[Identity, Finding]]:
    items = scene.sweeps[KIND].items if KIND in scene.sweeps else ()
    reasons = {item.identity: item.details.get("reasons") or () for item in items}
    for change in scene.changes:
        restarts = _restarts(change)
        if not restarts and not _has_failures(change):
            continue
        texts = [text.rstrip(".") for text in reasons.get(change.identity, ())]
        omission = (f"{len(texts) - MAX_REASONS:,} more",) if len(texts) > MAX_REASONS else ()
        causes = "; ".join((*texts[:MAX_REASONS], *omission))
        name = change.identity.key
        if not restarts:
            text = f"the connector {name} or one of its tasks has failed"
        elif (change.after or EMPTY).get("state") == STOPPED:
            text = f"what has failed of the connector {name} is stopped with it, not restarted"
        else:
            text = f"what has failed of the connector {name} is restarted once"
        ignored = not restarts and change.before is not None
        yield (
            change.identity,
            FAILED.find(
                f"{text}: {causes}" if causes else text,
                ("failures",),
                level=Level.NOTE if ignored else None,
            ),
        )


def _survey_names(scene: Scene) -> Iterator[tuple[Identity, Finding]]:
    """New connectors that look like one that the same plan deletes."""
    deleted = [change for change in scene.changes if change.action is Action.DELETE]
    for change in scene.changes:
        after = change.after or EMPTY
        if change.action is not Action.CREATE or not after or after.get(OFFSETS_FROM):
            continue
        likes = [
            (_measure_likeness(deletion.before or EMPTY, after), deletion) for deletion in deleted
        ]
        likeness, twin = max(likes, key=lambda scored: scored[0], default=(0.0, change))
        if likeness < LIKENESS or _shares_group(twin.before or EMPTY, after):
            continue
        start = describe_start(after)
        text = (
            f"the connector {change.identity.key} looks like {twin.identity.key}, which this plan "
            f"deletes, under another name: {start}"
        )
        yield change.identity, RENAMED.find(text, ("name",))


def _measure_likeness(before: FrozenMap, after: FrozenMap) -> float:
    """The share of equal configs, 0 for connectors of other plugins or other topics."""
    old, new = before.get("config") or EMPTY, after.get("config") or EMPTY
    if not is_same_plugin(str(before.get("class")), str(after.get("class"))):
        return 0.0
    if is_sink(after) and _describe_reading(before) != _describe_reading(after):
        return 0.0
    keys = {*old, *new}
    return sum(old.get(key) == new.get(key) for key in keys) / len(keys) if keys else 0.0


def _shares_group(before: FrozenMap, after: FrozenMap) -> bool:
    """True for two sinks with the same group, whose offsets the second goes on from."""
    return is_sink(before) and is_sink(after) and name_group(before) == name_group(after)


BOOK = RuleBook(
    (
        *config_rules.JUDGES,
        offset_rules.JUDGE,
        offset_rules.OFFSETS_JUDGE,
        Judge(
            (PLUGIN_UNKNOWN, STATE_UNSUPPORTED, TRANSACTIONS_UNCHECKED),
            TYPES,
            Needs.FACTS,
            _judge_facts,
        ),
        Judge(
            (
                SECRETS_UNCOMPARED,
                DELETED,
                OFFSETS_STAY,
                HALTED,
                CLASS_CHANGED,
                TOPICS_LEFT,
                TOPICS_ADDED,
                PATTERN_CHANGED,
                TARGET_CHANGED,
                TASKS_LOWERED,
            ),
            TYPES,
            Needs.OBJECT,
            _judge_object,
        ),
    ),
    (
        Survey((RENAMED,), _survey_names),
        Survey((FAILED,), _survey_failures),
        config_rules.SURVEY,
        offset_rules.SURVEY,
    ),
)
