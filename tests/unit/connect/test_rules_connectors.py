"""The rules of connectors: a case in which each fires, and one in which it does not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import pytest
from msgspec import Struct

from kafkaform.core.change import Action, Change, PathChange
from kafkaform.core.finding import Finding, Level
from kafkaform.core.resource import Coverage, CoverageKind, Depth, Facts, Identity, Observed, Sweep
from kafkaform.core.rule import Needs, Scene
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef
from kafkaform.plan.diff import compare
from kafkaform_connect.connector import KIND, TYPE, make_attributes
from kafkaform_connect.connector_offsets import OFFSETS_KIND, OFFSETS_TYPE, make_offsets
from kafkaform_connect.definitions import make_listing, name_listing, name_source
from kafkaform_connect.rest import Definition
from kafkaform_connect.rules import BOOK, list_needs

FILE = "org.apache.kafka.connect.file.FileStream"
SOURCE, SINK = f"{FILE}SourceConnector", f"{FILE}SinkConnector"
MIRROR = "org.apache.kafka.connect.mirror.MirrorSourceConnector"
FACTS = Facts("connect:c/group", values=FrozenMap(plugins=(SOURCE, SINK), release=(4, 3)))
SECRET = SecretRef("env", "A")


def attributes(
    name: str = "a", class_: str = SOURCE, state: str = "running", **config: object
) -> FrozenMap:
    """What is live. Keyword `tasks_max` is the config `tasks.max`; secret: a config that is one."""
    secrets = [str(config.pop("secret"))] if "secret" in config else []
    texts = {key.replace("_", "."): str(value) for key, value in config.items()}
    return make_attributes(name, class_, texts, secrets, state)


def target(live: FrozenMap, **secrets: SecretRef) -> FrozenMap:
    """The same as a target, with these secrets."""
    return live.with_items({"secret_config": FrozenMap(secrets) or None})


def create(after: FrozenMap) -> Change:
    return make(Action.CREATE, None, after)


def update(before: FrozenMap, after: FrozenMap) -> Change:
    return make(Action.UPDATE, before, after)


def delete(before: FrozenMap) -> Change:
    return make(Action.DELETE, before, None)


def make(
    action: Action, before: FrozenMap | None, after: FrozenMap | None, *, adopts: bool = False
) -> Change:
    name = (after or before or EMPTY)["name"]
    return Change(
        Identity("kafka_connect", KIND, name),
        f"{KIND}.{name}",
        action,
        before=before,
        after=after,
        paths=compare(before, after, schema=TYPE.schema),
        adopts=adopts,
    )


def move_offsets(state: str, before: int | None, after: int | None) -> Change:
    """A change of the offset of a sink. state: of the connector."""
    partition = {"kafka_topic": "t", "kafka_partition": 0}

    def own(offset: int | None) -> FrozenMap:
        pairs = [] if offset is None else [(partition, {"kafka_offset": offset})]
        return make_offsets("a", state, pairs)

    first, last = own(before), own(after)
    return Change(
        Identity("kafka_connect", OFFSETS_KIND, "a"),
        f"{OFFSETS_KIND}.a",
        Action.UPDATE,
        before=first,
        after=last,
        paths=compare(first, last, schema=OFFSETS_TYPE.schema),
    )


def failed(change: Change) -> Change:
    """The connector of the change has failed, and is restarted."""
    path = PathChange(("failures", "tasks"), "failed", None)
    return Change(
        change.identity,
        change.address,
        Action.UPDATE,
        before=change.after,
        after=change.after,
        paths=(path,),
    )


def listing(class_: str, *names: str, passwords: tuple[str, ...] = ()) -> dict[str, Sweep]:
    definition = Definition(frozenset({*names, *passwords}), frozenset(passwords), {})
    return {name_listing(class_): make_listing("kafka_connect", class_, Depth.FULL, definition)}


def reasons(*texts: str) -> dict[str, Sweep]:
    """The listing of connectors, with why `a` has failed."""
    identity = Identity("kafka_connect", KIND, "a")
    item = Observed(identity, attributes(), details=FrozenMap(reasons=texts))
    return {KIND: Sweep(KIND, Depth.FULL, (item,), Coverage(CoverageKind.COMPLETE))}


def find(
    *changes: Change, facts: Facts = FACTS, sweeps: Mapping[str, Sweep] = EMPTY
) -> Iterator[tuple[str, Finding]]:
    """All that the rules find, each with the connector that it is about."""
    for change in changes:
        for judge in BOOK.judges:
            for finding in judge.find(change, facts):
                assert finding.rule in {rule.id for rule in judge.rules}
                yield change.identity.key, finding
    for survey in BOOK.surveys:
        for identity, finding in survey.find(Scene(changes, sweeps, facts)):
            assert finding.rule in {rule.id for rule in survey.rules} and identity is not None
            yield identity.key, finding


class Case(Struct, frozen=True):
    """One row: what a rule finds, and what is so near to it that it must not."""

    rule: str
    changes: tuple[Change, ...]
    text: str
    """A part of the sentence."""
    harmless: tuple[Change, ...]
    facts: Facts = FACTS
    sweeps: Mapping[str, Sweep] = EMPTY
    level: Level | None = None
    """If it is not that of the row."""


LINES = attributes(topic="t", file="f", batch_size="5")
IGNORED = LINES.with_items({"failures": FrozenMap(tasks="failed")})
TWO = attributes(class_=SINK, topics="a,b", file="f", tasks_max="4")
OLD = Facts("connect:c", values=FrozenMap(plugins=(SOURCE, SINK), release=(3, 4)))
NEWEST = Facts("connect:c", values=FrozenMap(plugins=(SOURCE, SINK), version="4.3.1"))
WORKER = Facts("connect:c/group", values=FACTS.values, acts_as="User:worker")
ONCE = attributes(topic="t", exactly_once_support="required")
KEYS = listing(SOURCE, "file", "topic", "batch.size", passwords=("pin",))
MIRROR_KEYS = listing(MIRROR, "topics", "tasks.max")

LATER = attributes("b", topic="t", file="f").with_items({"offsets_from": "a"})
SINK_LATER = attributes("b", SINK, topics="a,b", file="f").with_items({"offsets_from": "a"})
STOPPED = attributes(state="stopped", topic="t", file="f")


NO_SOURCE = LATER.with_items({"offsets_from": None, "offsets_missing": "a"})
NO_SINK = SINK_LATER.with_items({"offsets_from": None, "offsets_missing": "a"})


def live_source(*connectors: FrozenMap) -> dict[str, Sweep]:
    """The connector "a", whose offsets others get."""
    items = tuple(Observed(Identity("kafka_connect", KIND, a["name"]), a) for a in connectors)
    kind = name_source("a")
    return {kind: Sweep(kind, Depth.FULL, items, Coverage(CoverageKind.COMPLETE))}


def live(*connectors: FrozenMap) -> dict[str, Sweep]:
    items = [Observed(Identity("kafka_connect", KIND, a["name"]), a) for a in connectors]
    return {KIND: Sweep(KIND, Depth.FULL, tuple(items), Coverage(CoverageKind.COMPLETE))}


CASES = (
    Case(
        "connector-not-stopped",
        (move_offsets("running", 5, 7),),
        "the connector a is running",
        (move_offsets("stopped", 5, 7),),
    ),
    Case(
        "connector-offsets-set",
        (move_offsets("stopped", 5, 7),),
        "a goes on elsewhere in 1 partition: 2 records left out",
        (move_offsets("stopped", 5, None),),
    ),
    Case(
        "connector-offsets-reset",
        (move_offsets("stopped", 5, None),),
        "a has no offsets in 1 partition then, so it starts over",
        (move_offsets("stopped", 5, 4),),
    ),
    Case(
        "connector-offsets-carried",
        (delete(LINES), create(LATER)),
        "the connector b goes on where a ends: a is stopped now and deleted at the end",
        (delete(LINES), create(attributes("b", topic="t", file="f"))),
        sweeps=live_source(LINES),
    ),
    Case(
        "connector-offsets-carried",
        (create(LATER),),
        "the connector b goes on where a ends: a stays stopped",
        (update(LATER, LATER),),
        sweeps=live_source(STOPPED),
    ),
    Case(
        "connector-offsets-missing",
        (create(NO_SINK),),
        "there is no connector a to take offsets from: its group connect-b has no offsets, so it "
        "copies everything again",
        (update(SINK_LATER, SINK_LATER),),
    ),
    Case(
        "connector-offsets-missing",
        (update(attributes("b", state="stopped", topic="t", file="f"), NO_SOURCE),),
        "there is no connector a to take offsets from: it goes on from its own",
        (delete(LATER),),
    ),
    Case(
        "connector-offsets-foreign",
        (delete(LINES), create(SINK_LATER)),
        f"the connector b runs {SINK}, and gets offsets in the form that {SOURCE} chose",
        (delete(LINES), create(LATER)),
        sweeps=live_source(LINES),
    ),
    Case(
        "connector-offsets-moving",
        (create(LATER),),
        "the connector a, whose offsets b is to get, goes on running",
        (delete(LINES), create(LATER)),
        sweeps=live_source(LINES),
    ),
    Case(
        "connector-offsets-gone",
        (create(LATER),),
        "the connector a, whose offsets b is to get, is gone",
        (create(NO_SOURCE),),
        sweeps=live_source(),
    ),
    Case(
        "connector-offsets-impossible",
        (create(LATER.with_items({"state": "stopped"})),),
        "the connector b would get offsets and stay stopped",
        (create(LATER.with_items({"state": "paused"})),),
    ),
    Case(
        "connector-offsets-impossible",
        (create(LATER.with_items({"offsets_from": "b"})),),
        "the connector b has its own offsets already",
        (create(LATER),),
    ),
    Case(
        "connector-offsets-impossible",
        (create(LATER.with_items({"offsets_from": "a%b"})),),
        "cannot name a connector",
        (create(LATER),),
    ),
    Case(
        "connector-state-unsupported",
        (create(LATER),),
        "workers of Kafka 3.4 cannot create a connector that gets its offsets before it runs",
        (create(LINES),),
        OLD,
    ),
    Case(
        "connector-config-twice",
        (create(target(attributes(topic="t", pin="${file:a:b}"), pin=SECRET)),),
        '"pin" is in config and in secret_config',
        (create(target(attributes(topic="t"), pin=SECRET)),),
    ),
    Case(
        "connector-tasks-invalid",
        (create(attributes(topic="t", tasks_max="0")),),
        "tasks.max of the connector a is 0",
        (create(attributes(topic="t", tasks_max="${env:TASKS}")),),
    ),
    Case(
        "connector-errors-skipped",
        (create(attributes(class_=SINK, topics="t", errors_tolerance="ALL")),),
        "the connector a skips records",
        (
            create(
                attributes(
                    class_=SINK,
                    topics="t",
                    errors_tolerance="all",
                    errors_deadletterqueue_topic_name="dlq",
                )
            ),
        ),
    ),
    Case(
        "connector-plugin-unknown",
        (create(attributes(class_=f"{FILE}SorceConnector")),),
        "no worker has the plugin",
        (create(attributes(class_="FileStreamSource")),),
    ),
    Case(
        "connector-state-unsupported",
        (create(attributes(state="stopped")),),
        "workers of Kafka 3.4 cannot",
        (create(attributes()),),
        OLD,
    ),
    Case(
        "connector-state-unsupported",
        (update(LINES, LINES.with_items({"state": "stopped"})),),
        "workers of Kafka 3.4 cannot stop a connector (KIP-875)",
        (update(LINES, LINES.with_items({"state": "paused"})),),
        OLD,
    ),
    Case(
        "connector-transactions-unchecked",
        (create(ONCE),),
        "User:worker also needs Write and Describe on the transactional id group-a-N",
        (create(LINES),),
        WORKER,
    ),
    Case(
        "connector-secret-in-plain",
        (update(attributes(secret="pin"), attributes(pin="1")),),
        'config["pin"] would be a secret in plain text',
        (update(attributes(secret="pin"), attributes(pin="${file:a:b}")),),
    ),
    Case(
        "connector-secret-in-plain",
        (create(attributes(topic="t", pin="1")),),
        'config["pin"] would be a secret in plain text',
        (create(target(attributes(topic="t"), pin=SECRET)),),
        sweeps=KEYS,
    ),
    Case(
        "connector-secrets-uncompared",
        (make(Action.ADOPT, LINES, target(LINES, pin=SECRET), adopts=True),),
        "the secrets that are set stay",
        (make(Action.ADOPT, LINES, target(LINES), adopts=True),),
    ),
    Case(
        "connector-deleted",
        (delete(LINES),),
        "the connector a copies no more records",
        (delete(attributes(state="stopped")),),
    ),
    Case(
        "connector-offsets-stay",
        (delete(attributes(state="stopped")),),
        "its offsets stay in Kafka",
        (make(Action.FORGET, LINES, LINES),),
    ),
    Case(
        "connector-halted",
        (update(LINES, LINES.with_items({"state": "paused"})),),
        "the connector a copies no records while it is paused",
        (update(attributes(state="paused"), attributes(state="stopped")),),
    ),
    Case(
        "connector-class-changed",
        (update(LINES, LINES.with_items({"class": SINK})),),
        f"the connector a runs {SINK} in place of {SOURCE}",
        (update(LINES, LINES.with_items({"class": "FileStreamSource"})),),
    ),
    Case(
        "connector-topics-left",
        (update(TWO, attributes(class_=SINK, topics="b")),),
        "the connector a copies no more records of a",
        (update(TWO, attributes(class_=SINK, topics="b, a")),),
    ),
    Case(
        "connector-topics-added",
        (update(TWO, attributes(class_=SINK, topics="a,b,c")),),
        "the connector a reads c: all records that are there, unless",
        (update(TWO, TWO),),
    ),
    Case(
        "connector-topics-added",
        (
            update(
                TWO,
                attributes(
                    class_=SINK, topics="a,b,c", consumer_override_auto_offset_reset="latest"
                ),
            ),
        ),
        "the connector a reads c: what is written from now on, unless",
        (update(TWO, TWO),),
    ),
    Case(
        "connector-pattern-changed",
        (update(TWO, attributes(class_=SINK, topics_regex="a.*")),),
        'the connector a reads the topics that fit "a.*" instead of a, b',
        (
            update(
                attributes(class_=SINK, topics_regex="a.*"),
                attributes(class_=SINK, topics_regex="a.*", tasks_max="2"),
            ),
        ),
    ),
    Case(
        "connector-target-changed",
        (update(LINES, attributes(topic="u", file="f")),),
        "the connector a writes to u from now on, and what it has written to t stays there",
        (update(LINES, attributes(topic="t", file="g")),),
    ),
    Case(
        "connector-tasks-lowered",
        (update(TWO, attributes(class_=SINK, topics="a,b", file="f")),),
        "the connector a has at most 1 task instead of 4",
        (update(TWO, attributes(class_=SINK, topics="a,b", tasks_max="8")),),
    ),
    Case(
        "connector-renamed",
        (
            delete(LINES),
            create(
                attributes("b", "FileStreamSource", topic="t", file="f", batch_size="5", more="1")
            ),
        ),
        "the connector b looks like a, which this plan deletes, under another name: it has no "
        "offsets, so it reads everything again",
        (delete(LINES), create(attributes("b", topic="u", file="g", batch_size="5"))),
    ),
    Case(
        "connector-renamed",
        (delete(TWO), create(attributes("b", SINK, topics="a,b", file="f", tasks_max="4"))),
        "its group connect-b has no offsets, so it copies everything again",
        (
            delete(TWO),
            create(
                attributes(
                    "b",
                    SINK,
                    topics="a,b",
                    file="f",
                    tasks_max="4",
                    consumer_override_group_id="connect-a",
                )
            ),
        ),
    ),
    Case(
        "connector-failed",
        (failed(create(LINES)),),
        "what has failed of the connector a is restarted once: task 0 failed on worker w: denied",
        (update(LINES, attributes(topic="u")),),
        sweeps=reasons("task 0 failed on worker w: denied."),
    ),
    Case(
        "connector-failed",
        (failed(create(LINES)),),
        "restarted once: 1; 2; 3; 2 more",
        (failed(create(attributes("other"))),),
        sweeps=reasons("1", "2", "3", "4", "5"),
        level=Level.CAUTION,
    ),
    Case(
        "connector-failed",
        (create(IGNORED),),
        "the connector a or one of its tasks has failed: task 0 failed",
        (create(LINES),),
        sweeps=reasons("task 0 failed"),
    ),
    Case(
        "connector-failed",
        (make(Action.NOOP, IGNORED, IGNORED),),
        "the connector a or one of its tasks has failed",
        (make(Action.NOOP, LINES, LINES),),
        level=Level.NOTE,
    ),
    Case(
        "connector-config-misspelt",
        (create(attributes(topic="t", max_tasks="5")),),
        '"max.tasks" is spelled almost like a config of every connector',
        (create(attributes(topic="t", transform="x", retry_max="5", value_converter_types="x")),),
    ),
    Case(
        "connector-config-misspelt",
        (create(attributes(topic="t", errors_tolerence="all")),),
        '"errors.tolerence" is spelled almost like',
        (create(attributes(topic="t", errors_tolerance="all", topics_dir="x")),),
        NEWEST,
    ),
    Case(
        "connector-config-unknown",
        (create(attributes(topic="t", batch_sizes="5")),),
        f'the plugin {SOURCE} declares no config "batch.sizes" (did you mean "batch.size"?)',
        (
            create(
                attributes(
                    topic="t",
                    batch_size="5",
                    producer_override_linger_ms="5",
                    transforms_x_type="T",
                    value_converter_schemas_enable="false",
                    config_action_reload="none",
                )
            ),
        ),
        sweeps=KEYS,
    ),
    Case(
        "connector-config-unknown",
        (create(attributes(topic="t", something_else="5")),),
        "declares no config",
        (
            create(
                attributes(class_=MIRROR, topics="a.*", source_cluster_bootstrap_servers="b:9092")
            ),
        ),
        Facts("connect:c"),
        {**KEYS, **MIRROR_KEYS},
        Level.NOTE,
    ),
)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.rule)
def test_a_rule_fires_where_it_should(case: Case) -> None:
    """Its sentence is that of the row, about the connector that is meant, with level and fix."""
    row = next(rule for rule in BOOK.rules if rule.id == case.rule)
    findings = [f for _, f in find(*case.changes, facts=case.facts, sweeps=case.sweeps)]
    (finding,) = (f for f in findings if f.rule == case.rule and case.text in f.text)
    assert finding.level is (case.level or row.level) and finding.harm is row.harm
    assert not finding.text.endswith(".")
    silent = find(*case.harmless, facts=case.facts, sweeps=case.sweeps)
    assert not [f for _, f in silent if f.rule == case.rule and case.text in f.text]


def test_each_rule_has_a_case() -> None:
    """The table walks all rows."""
    assert {case.rule for case in CASES} == {rule.id for rule in BOOK.rules}


def test_what_is_only_declared_is_judged_without_workers() -> None:
    """Rules that need only the block say nothing that only workers know."""
    change = create(attributes(topic="t", tasks_max="many", errors_tolerance="all"))
    judges = [judge for judge in BOOK.judges if judge.needs is Needs.BLOCK]
    rules = {f.rule for judge in judges for f in judge.find(change, Facts(""))}
    assert rules == {"connector-tasks-invalid", "connector-errors-skipped"}


def test_a_misspelt_config_gets_the_nearest_name() -> None:
    """As its fix, with the place of the config."""
    change = create(attributes(topic="t", batch_sizes="5", task_max="2"))
    fixes = {f.path: f.fix for _, f in find(change, sweeps=KEYS)}
    assert fixes["config", "batch.sizes"] == 'Did you mean "batch.size"?'
    assert fixes["config", "task.max"] == 'Did you mean "tasks.max"?'


def test_a_plugin_that_declares_a_config_decides_how_it_is_spelled() -> None:
    """Without workers its own config looks misspelt; those that tell what it declares settle it."""
    change = create(attributes(topic="t", task_max="2"))
    keys = listing(SOURCE, "file", "topic", "task.max")
    assert [f.rule for _, f in find(change)] == ["connector-config-misspelt"]
    assert not list(find(change, facts=NEWEST, sweeps=keys))
    (finding,) = (f for _, f in find(change, facts=NEWEST, sweeps=KEYS))
    assert finding.rule == "connector-config-unknown" and finding.fix == 'Did you mean "tasks.max"?'


def test_a_plugin_is_asked_only_for_what_changes() -> None:
    """Its definition is listed for new and changed configs; the connectors, if one has failed."""
    assert list_needs([update(LINES, attributes(topic="u"))]) == {name_listing(SOURCE): Depth.FULL}
    assert list_needs([failed(create(LINES))]) == {KIND: Depth.FULL}
    assert not list_needs([delete(LINES), make(Action.NOOP, LINES, LINES)])


def test_a_definition_that_nobody_tells_says_nothing() -> None:
    """Of old workers, and of a plugin that is not installed any more."""
    nothing = Definition(frozenset(), frozenset(), {})
    sweep = make_listing("kafka_connect", SOURCE, Depth.FULL, nothing)
    change = create(attributes(topic="t", batch_sizes="5"))
    assert not list(find(change, sweeps={name_listing(SOURCE): sweep}))
