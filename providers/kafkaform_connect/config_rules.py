"""The rules of a connector's configs: tasks, errors, secrets, and what no plugin declares."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from kafkaform.core.change import Action, Change
from kafkaform.core.diagnostics import suggest
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import Facts, Identity
from kafkaform.core.rule import Judge, Needs, Rule, Scene, Survey
from kafkaform.core.text import parse_whole
from kafkaform.core.value import EMPTY, FrozenMap

from .connector import KIND, MIRROR
from .definitions import (
    FREE,
    GIVEN,
    MIRROR_FREE,
    ConnectFacts,
    advise_secret,
    describe_plain_secret,
    is_reference,
    name_listing,
)

TYPES = (KIND,)
WRITING = (Action.CREATE, Action.UPDATE)
MAX_INT = 2**31 - 1
LIKENESS = 0.85
"""The share of equal characters from which a config counts as a misspelt one of every connector,
without knowing what its plugin declares."""
NEARNESS = 0.75
"""The share of equal characters from which a config counts as a misspelt one."""
PROOFS = "tests/cluster/claims/test_connectors.py::"
"""Where the tests of these rules with a real worker are."""

CONFIG_TWICE = Rule(
    "connector-config-twice",
    "A config is both plain and secret",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.BLOCK,
    "`config` and `secret_config` are sent to the workers as one configuration, in which a config "
    "has one value.",
    'config = { pin = "1" }  secret_config = { pin = secret_env("PIN") }',
    "Keep it in one of them.",
    Block.IMPOSSIBLE,
)
TASKS_INVALID = Rule(
    "connector-tasks-invalid",
    "The number of tasks is not possible",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.BLOCK,
    "Workers refuse a `tasks.max` that is not a whole number from 1 on (ConnectorConfig, "
    "TASK_MIN_CONFIG).",
    'config = { "tasks.max" = 0 }',
    "Write how many tasks the connector may have, at least 1.",
    Block.IMPOSSIBLE,
    proof=f"{PROOFS}test_workers_refuse_a_connector_without_tasks",
)
ERRORS_SKIPPED = Rule(
    "connector-errors-skipped",
    "Records that fail are skipped",
    Level.CAUTION,
    Harm.DURABILITY,
    TYPES,
    Needs.BLOCK,
    'With `errors.tolerance = "all"`, a connector skips a record that it cannot convert or '
    "transform and goes on. Only a sink with a dead letter queue keeps it (KIP-298).",
    'config = { topics = "orders", "errors.tolerance" = "all" }',
    'For a sink, set "errors.deadletterqueue.topic.name"; "errors.log.enable" = true at least logs '
    "what is skipped.",
    proof=f"{PROOFS}test_a_sink_that_tolerates_errors_skips_records",
)
CONFIG_MISSPELT = Rule(
    "connector-config-misspelt",
    "A config of every connector is misspelt",
    Level.CAUTION,
    Harm.NONE,
    TYPES,
    Needs.BLOCK,
    "Workers store a config that they do not know, and go on with the default of the one that was "
    "meant (ConnectorConfig). Workers that tell what the plugin declares decide it in the plan.",
    'config = { topics = "orders", "task.max" = 8 }',
    "Correct the name.",
    proof=f"{PROOFS}test_workers_accept_an_unknown_config",
)
SECRET_IN_PLAIN = Rule(
    "connector-secret-in-plain",
    "A secret is written in plain text",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.OBJECT,
    "A value in `config` is shown in plans and recorded in state and log. The name of a config, or "
    "the plugin's own definition (type PASSWORD), says that it is a secret.",
    'config = { "connection.password" = "swordfish" }',
    "Write it in secret_config.",
    Block.IMPOSSIBLE,
)
CONFIG_UNKNOWN = Rule(
    "connector-config-unknown",
    "The plugin does not declare a config",
    Level.CAUTION,
    Harm.NONE,
    TYPES,
    Needs.SYSTEM,
    "Workers store a config that no definition declares, and ignore it. Some plugins read such "
    "configs all the same, so only one that is spelled like a declared one is more than a note.",
    'config = { "batch.sizes" = 10 }',
    "Look for a typing error.",
    proof=f"{PROOFS}test_workers_accept_an_unknown_config",
)


def _judge_block(change: Change, facts: Facts) -> Iterator[Finding]:
    if change.action not in WRITING or change.after is None:
        return
    config: FrozenMap = change.after.get("config") or EMPTY
    secrets: FrozenMap = change.after.get("secret_config") or EMPTY
    for key in sorted(config.keys() & secrets.keys()):
        # null in either leaves the config to others.
        if config[key] is not None and secrets[key] is not None:
            yield CONFIG_TWICE.find(f'"{key}" is in config and in secret_config', ("config", key))
    tasks = config.get("tasks.max")
    if tasks is not None and not is_reference(str(tasks)) and not _is_possible(str(tasks)):
        name = change.identity.key
        text = f"tasks.max of the connector {name} is {tasks}, and not a whole number from 1 on"
        yield TASKS_INVALID.find(text, ("config", "tasks.max"))
    if not ConnectFacts.of(facts).version:
        yield from _find_misspelt(config)
    before = (change.before or EMPTY).get("config") or EMPTY
    if _skips_errors(config) and not _skips_errors(before):
        text = f"the connector {change.identity.key} skips records that it cannot convert"
        yield ERRORS_SKIPPED.find(text, ("config", "errors.tolerance"))


def _find_misspelt(keys: Iterable[str]) -> Iterator[Finding]:
    """The configs that are spelled almost like one of every connector."""
    for key in sorted(keys):
        words = _split_words(key)
        # A plugin has a `topic` or a `transform` of its own. More words are no coincidence.
        if len(words) == 1 or key in GIVEN or key.startswith((*FREE, *MIRROR_FREE)):
            continue
        near = _GIVEN_BY_WORDS.get(words)
        fix = f'Did you mean "{near}"?' if near else suggest(key, GIVEN, LIKENESS)
        if fix:
            text = f'"{key}" is spelled almost like a config of every connector'
            yield CONFIG_MISSPELT.find(text, ("config", key), fix=fix)


def _split_words(key: str) -> tuple[str, ...]:
    """The words of a config, sorted, without case and plural."""
    words = re.split(r"[._\s-]+|(?<=[a-z])(?=[A-Z])", key)
    return tuple(sorted(word.lower().removesuffix("s") for word in words if word))


_GIVEN_BY_WORDS = {_split_words(key): key for key in GIVEN}


def _is_possible(tasks: str) -> bool:
    number = parse_whole(tasks)
    return number is not None and 1 <= number <= MAX_INT


def _skips_errors(config: FrozenMap) -> bool:
    tolerant = str(config.get("errors.tolerance") or "").lower() == "all"
    return tolerant and not config.get("errors.deadletterqueue.topic.name")


def _judge_secrets(change: Change, _: Facts) -> Iterator[Finding]:
    """The definition of the plugin says that the live value is a secret, whatever its name."""
    if change.action is not Action.UPDATE:
        return
    config = (change.after or EMPTY).get("config") or EMPTY
    secrets = (change.before or EMPTY).get("secret_keys") or EMPTY
    for key in sorted(config.keys() & secrets.keys()):
        if not is_reference(str(config[key])):
            yield _find_plain_secret(key)


def _find_plain_secret(key: str) -> Finding:
    path = ("config", key)
    return SECRET_IN_PLAIN.find(describe_plain_secret(key), path, fix=advise_secret(key))


def list_classes(changes: Sequence[Change]) -> set[str]:
    """The plugins of the connectors whose configs change."""
    return {
        str(change.after.get("class"))
        for change in changes
        if change.action in WRITING and change.after is not None and any(_list_new_configs(change))
    }


def _list_new_configs(change: Change) -> Iterator[tuple[str, str]]:
    """The configs that a change sets, each with the attribute that has it."""
    before, after = change.before or EMPTY, change.after or EMPTY
    class_changes = before.get("class") != after.get("class")
    for attribute, recorded in (("config", "config"), ("secret_config", "secret_keys")):
        old, new = before.get(recorded) or EMPTY, after.get(attribute) or EMPTY
        for key in sorted(new):
            if class_changes or key not in old or (attribute == "config" and old[key] != new[key]):
                yield attribute, key


def _survey_configs(scene: Scene) -> Iterator[tuple[Identity, Finding]]:
    for change in scene.changes:
        if change.action not in WRITING or change.after is None:
            continue
        class_ = str(change.after.get("class"))
        listing = scene.sweeps.get(name_listing(class_))
        items = listing.items if listing is not None else ()
        for item in items:
            for finding in _judge_configs(change, class_, item.attributes):
                yield change.identity, finding
        if not items and ConnectFacts.of(scene.facts).version:
            # Old workers do not tell what a plugin declares, nor those that lack it.
            new_keys = [
                key for attribute, key in _list_new_configs(change) if attribute == "config"
            ]
            yield from ((change.identity, finding) for finding in _find_misspelt(new_keys))


def _judge_configs(change: Change, class_: str, definition: FrozenMap) -> Iterator[Finding]:
    """definition: what the plugin declares, from `definitions.make_listing`."""
    names = GIVEN | set(definition["configs"])
    free = (*FREE, *MIRROR_FREE) if class_.startswith(MIRROR) else FREE
    config = (change.after or EMPTY).get("config") or EMPTY
    for attribute, key in _list_new_configs(change):
        if attribute == "config" and key in definition["passwords"]:
            if not is_reference(str(config[key])):
                yield _find_plain_secret(key)
        elif key not in names and not key.startswith(free):
            near = suggest(key, names, NEARNESS)
            text = f'the plugin {class_} declares no config "{key}"'
            yield CONFIG_UNKNOWN.find(
                f"{text} ({near[0].lower()}{near[1:]})" if near else text,
                (attribute, key),
                fix=near or "Look whether the plugin's documentation has it.",
                level=None if near else Level.NOTE,
            )


JUDGES = (
    Judge(
        (CONFIG_TWICE, TASKS_INVALID, ERRORS_SKIPPED, CONFIG_MISSPELT),
        TYPES,
        Needs.BLOCK,
        _judge_block,
    ),
    Judge((SECRET_IN_PLAIN,), TYPES, Needs.OBJECT, _judge_secrets),
)
SURVEY = Survey((CONFIG_UNKNOWN, SECRET_IN_PLAIN, CONFIG_MISSPELT), _survey_configs)
