"""The rules of offsets that a connector takes from another one, such as the one that it replaces,
and of those that `alter connector` sets and resets.

Sources: KIP-875 (offsets in the REST API), KIP-980 (`initial_state`), Worker and AbstractHerder of
Kafka Connect.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import CoverageKind, Depth, Facts, Identity
from kafkaform.core.rule import Judge, Needs, Rule, Scene, Survey
from kafkaform.core.text import render_count
from kafkaform.core.value import EMPTY, FrozenMap, Value

from .config_rules import PROOFS, TYPES, WRITING
from .connector import (
    OFFSETS_FROM,
    OFFSETS_MISSING,
    STOPPED,
    identity_key,
    is_sink,
    name_group,
)
from .connector_offsets import OFFSETS, OFFSETS_KIND
from .definitions import is_same_plugin, name_source

PATH = (OFFSETS_FROM,)

IMPOSSIBLE = Rule(
    "connector-offsets-impossible",
    "Offsets cannot be taken over so",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.BLOCK,
    "A stopped connector looks the same before and after it got offsets, so a plan after an "
    "interrupted apply could not tell whether they are still to be copied.",
    'offsets_from = "orders"  state = "stopped"',
    "Let the connector run or pause, or leave offsets_from out.",
    Block.IMPOSSIBLE,
)
CARRIED = Rule(
    "connector-offsets-carried",
    "A connector goes on where another one ends",
    Level.NOTE,
    Harm.NONE,
    TYPES,
    Needs.SYSTEM,
    "The connector is created stopped (KIP-980), the other one is stopped, so that its tasks write "
    "their last offsets, and these are set for the new one before it runs (KIP-875). For a sink "
    "they are those of its group.",
    'name = "orders-v2"  offsets_from = "orders"',
    proof=f"{PROOFS}test_a_renamed_connector_takes_its_offsets_along",
)
MISSING = Rule(
    "connector-offsets-missing",
    "There are no offsets to take over",
    Level.CAUTION,
    Harm.ORDERING,
    TYPES,
    Needs.SYSTEM,
    "The REST API shows the offsets of connectors that exist (KIP-875). Without any, a source "
    "reads everything, and a sink all records of its topics.",
    'name = "orders-v2"  offsets_from = "order"',
    "Correct the name in offsets_from, or leave it out for a connector that may start over.",
    proof=f"{PROOFS}test_a_renamed_connector_takes_its_offsets_along",
)
FOREIGN = Rule(
    "connector-offsets-foreign",
    "Offsets come from another plugin",
    Level.CAUTION,
    Harm.ORDERING,
    TYPES,
    Needs.SYSTEM,
    "A plugin chooses the form of its offsets (SourceRecord.sourcePartition). Another plugin goes "
    "on from them only if it has the same form.",
    'class = "FileStreamSink"  offsets_from = "orders"   # which is a "FileStreamSource"',
    "Take offsets from a connector with the same plugin.",
    proof=f"{PROOFS}test_workers_accept_another_class_under_the_same_name",
)
MOVING = Rule(
    "connector-offsets-moving",
    "The connector with the offsets goes on running",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.SYSTEM,
    "Offsets are final once a connector is stopped. Two that run with the same ones copy the same "
    "records.",
    'offsets_from = "orders"   # whose block stays, with state = "running"',
    "Remove the block of that connector in the same plan, or stop it first.",
    Block.IMPOSSIBLE,
)

GONE = Rule(
    "connector-offsets-gone",
    "The connector with the offsets was deleted meanwhile",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.SYSTEM,
    "A plan that takes offsets along must not make a connector that starts over. Nobody has the "
    "offsets of a connector that does not exist any more in a form that can be set (KIP-875).",
    'offsets_from = "orders"   # which somebody deletes between the plan and its apply',
    "Create that connector again, stopped, or plan again: the new one then starts over.",
    Block.IMPOSSIBLE,
)

_ALTERED = "tests/cluster/connect/test_offsets.py::"
RUNNING = Rule(
    "connector-not-stopped",
    "The connector is not stopped",
    Level.BLOCK,
    Harm.NONE,
    (OFFSETS_KIND,),
    Needs.OBJECT,
    "Workers change the offsets of stopped connectors only (KIP-875): one that runs writes its "
    "own.",
    "kafkaform alter connector orders --reset-offsets",
    'Stop it first, with state = "stopped" in its block or with a request to the workers.',
    Block.IMPOSSIBLE,
    proof=f"{_ALTERED}test_offsets_of_a_connector_that_runs_stay",
)
SET = Rule(
    "connector-offsets-set",
    "A connector goes on somewhere else",
    Level.DANGER,
    Harm.DATA_LOSS,
    (OFFSETS_KIND,),
    Needs.OBJECT,
    "A connector starts at its offsets (KIP-875): what lies between the old and the new ones is "
    "left out, or copied again.",
    "kafkaform alter connector orders --set-offsets offsets.json",
    "Make sure that nobody needs what is left out, and that records can be copied twice.",
    proof=f"{_ALTERED}test_offsets_are_set_reset_and_come_back",
)
RESET = Rule(
    "connector-offsets-reset",
    "A connector starts over",
    Level.CAUTION,
    Harm.NONE,
    (OFFSETS_KIND,),
    Needs.OBJECT,
    "Without offsets, a source reads everything again, and a sink begins at the first record of "
    "its topics, unless consumer.override.auto.offset.reset says otherwise "
    "(Worker.baseConsumerConfigs).",
    "kafkaform alter connector orders --reset-offsets",
    "Make sure that records can be copied twice.",
    proof=f"{_ALTERED}test_offsets_are_set_reset_and_come_back",
)


def _judge_offsets(change: Change, _: Facts) -> Iterator[Finding]:
    paths = [item for item in change.paths if item.path[0] == OFFSETS]
    if change.action is not Action.UPDATE or not paths:
        return
    name, state = change.identity.key, (change.before or EMPTY)["state"]
    if state != STOPPED:
        yield RUNNING.find(f"the connector {name} is {state}", ("state",))
    partitions = tuple(item.path[1] for item in paths)
    figures = FrozenMap(partitions=len(paths), offsets=partitions)
    noun = render_count(len(paths), "partition")
    if not (change.after or EMPTY).get(OFFSETS):
        yield RESET.find(
            f"{name} has no offsets in {noun} then, so it starts over", (OFFSETS,), figures=figures
        )
        return
    distances = [_measure(item.before, item.after) for item in paths]
    counts = [
        f"{render_count(total, 'record')} {verb}"
        for total, verb in (
            (sum(d for d in distances if d > 0), "left out"),
            (-sum(d for d in distances if d < 0), "copied again"),
        )
        if total
    ]
    amounts = f": {' and '.join(counts)}" if counts else ""
    yield SET.find(f"{name} goes on elsewhere in {noun}{amounts}", (OFFSETS,), figures=figures)


def _measure(before: Value, after: Value) -> int:
    """By how many records a sink goes on; 0 for other connectors, whose offsets only they know."""
    rows = [json.loads(text) if isinstance(text, str) else {} for text in (before, after)]
    start, end = (row.get("kafka_offset") for row in rows)
    # A sink has the offsets of its group, as `kafka_offset` (KIP-875). What a source counts, if
    # anything, only its plugin knows.
    return end - start if isinstance(start, int) and isinstance(end, int) else 0


def carries_offsets(change: Change) -> bool:
    """True if the change copies offsets."""
    names_source = change.action in WRITING and bool((change.after or EMPTY).get(OFFSETS_FROM))
    return names_source and any(item.path == PATH for item in change.paths)


def describe_start(after: FrozenMap) -> str:
    """Where a connector without offsets starts."""
    if not is_sink(after):
        return "it has no offsets, so it reads everything again"
    config = after.get("config") or EMPTY
    if config.get("consumer.override.auto.offset.reset") == "latest":
        return f"its group {name_group(after)} has no offsets, so it leaves out what is there"
    return f"its group {name_group(after)} has no offsets, so it copies everything again"


def _judge_block(change: Change, _: Facts) -> Iterator[Finding]:
    after = change.after or EMPTY
    source = after.get(OFFSETS_FROM) or after.get(OFFSETS_MISSING)
    name = str(change.identity.key)
    if change.action not in WRITING or source is None:
        return
    if after.get("state") == STOPPED:
        yield IMPOSSIBLE.find(f"the connector {name} would get offsets and stay stopped", PATH)
    if source == name:
        text = f"the connector {name} has its own offsets already"
        yield IMPOSSIBLE.find(text, PATH, fix="Leave offsets_from out.")
    try:
        identity_key(str(source))
    except ValueError as error:
        yield IMPOSSIBLE.find(str(error), PATH, fix="Correct the name.")


def list_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """The listings of the connectors whose offsets others get."""
    sources = {
        str((change.after or EMPTY)[OFFSETS_FROM]) for change in changes if carries_offsets(change)
    }
    return {name_source(source): Depth.FULL for source in sorted(sources)}


def _survey_sources(scene: Scene) -> Iterator[tuple[Identity, Finding]]:
    deleted = {
        change.identity.key
        for change in scene.changes
        if change.action is Action.DELETE and change.effective
    }
    for change in scene.changes:
        after = change.after or EMPTY
        if change.action in WRITING and after.get(OFFSETS_MISSING):
            start = "it goes on from its own" if change.before else describe_start(after)
            text = f"there is no connector {after[OFFSETS_MISSING]} to take offsets from: {start}"
            yield change.identity, MISSING.find(text, PATH)
        source = str(after.get(OFFSETS_FROM))
        listing = scene.sweeps.get(name_source(source)) if carries_offsets(change) else None
        if listing is None:
            continue
        if not listing.items and listing.coverage.kind is CoverageKind.COMPLETE:
            text = f"the connector {source}, whose offsets {change.identity.key} is to get, is gone"
            yield change.identity, GONE.find(text, PATH)
        for item in listing.items:
            for finding in _judge_source(change, item.attributes, deletes=source in deleted):
                yield change.identity, finding


def _judge_source(change: Change, live: FrozenMap, *, deletes: bool) -> Iterator[Finding]:
    """What the other connector means for one that takes its offsets. deletes: the same plan deletes
    it."""
    after, name, source = change.after or EMPTY, change.identity.key, live["name"]
    # What runs writes its offsets on: the copy would be old at once, and both would copy the same.
    if not deletes and live.get("state") != STOPPED:
        text = f"the connector {source}, whose offsets {name} is to get, goes on running"
        yield MOVING.find(text, PATH)
        return
    old, new = str(live.get("class")), str(after.get("class"))
    if not is_same_plugin(old, new):
        text = f"the connector {name} runs {new}, and gets offsets in the form that {old} chose"
        yield FOREIGN.find(text, PATH)
    end = (
        f"{source} is stopped now and deleted at the end" if deletes else f"{source} stays stopped"
    )
    yield CARRIED.find(f"the connector {name} goes on where {source} ends: {end}", PATH)


JUDGE = Judge((IMPOSSIBLE,), TYPES, Needs.BLOCK, _judge_block)
SURVEY = Survey((CARRIED, MISSING, FOREIGN, MOVING, GONE), _survey_sources)
OFFSETS_JUDGE = Judge((RUNNING, SET, RESET), (OFFSETS_KIND,), Needs.OBJECT, _judge_offsets)
