"""What all subjects have in common: their names, and the types of their settings.

A subject's name is given, or made by the strategy with which clients make it. Source:
`TopicNameStrategy`, `RecordNameStrategy` and `TopicRecordNameStrategy` of Confluent's serializers,
whose names other clients use, too.

`schema_registry_subject_config` is the compatibility level and the mode of one subject. The object
exists as long as the subject has one of its own. What a block leaves out is the registry's, and the
plan shows its removal.

`schema_registry_config` is the level and the mode of the whole registry. Both always have a value,
so the object always exists: a block takes it over. Nothing can remove it; what nobody declares any
more stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct

from kafkaform.core.change import Action, Change, Step
from kafkaform.core.resource import Facts, Observed
from kafkaform.core.schema import STRING, AttributeSchema, make_schema
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import ResourceType

from ..formats.normal_form import FORMATS
from .registry import (
    CLOSE_MODE,
    OPEN_MODE,
    REMOVE_LEVEL,
    REMOVE_MODE,
    SET_LEVEL,
    SILENT,
    list_paths,
    make_step,
)

TOPIC, RECORD, TOPIC_RECORD = "topic", "record", "topic-record"
STRATEGIES = (TOPIC, RECORD, TOPIC_RECORD)
PARTS = ("key", "value")
VALUE = "value"
MAX_LENGTH = 1000
"""Characters. Registries set no limit, but a name is a part of a URL."""

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")

SUBJECT = AttributeSchema(
    "subject",
    STRING,
    "Name of the subject. Without it, topic and strategy name the subject, and references to it "
    "have that name.",
    names=True,
)
TOPIC_NAME = AttributeSchema("topic", STRING, "Name of the topic whose records have the schema.")
PART = AttributeSchema(
    "part",
    STRING,
    "What part of the records has the schema: TOPIC-key or TOPIC-value. Default: value.",
    choices=PARTS,
)
STRATEGY = AttributeSchema(
    "strategy",
    STRING,
    "How clients name the subject: topic (TOPIC-value), record (the full name of the record) or "
    "topic-record (both). Default: topic.",
    choices=STRATEGIES,
)
CONFLICTS = (("subject", "topic"), ("subject", "part"))


def check_subject(name: str) -> str:
    """The name of a subject as the key of an identity. Raises ValueError."""
    if not name:
        raise ValueError("a subject needs a name")
    # A path with one of these segments leads elsewhere on many servers and proxies.
    if name in (".", ".."):
        raise ValueError(f"{name!r} is no name of a subject")
    if len(name) > MAX_LENGTH:
        raise ValueError(f"a subject's name has at most {MAX_LENGTH:,} characters")
    if _CONTROL.search(name):
        raise ValueError("a subject's name contains a control character")
    return name


def name_subject(attributes: FrozenMap) -> str:
    """The subject that a block declares. Raises ValueError with what is missing."""
    if attributes.get("subject") is not None:
        return check_subject(str(attributes["subject"]))
    strategy = attributes.get("strategy") or TOPIC
    topic = attributes.get("topic")
    if strategy != RECORD and not topic:
        raise ValueError("set subject, or topic from which the subject is named")
    if strategy == TOPIC:
        return check_subject(f"{topic}-{attributes.get('part') or VALUE}")
    record = _find_record(attributes)
    return check_subject(record if strategy == RECORD else f"{topic}-{record}")


def find_topic(attributes: Mapping[str, object]) -> str | None:
    """The topic of a subject, as far as its name tells: `orders` for `orders-value` and for
    `orders-shop.Order`. None if the subject is named by its record alone."""
    subject = str(attributes.get("subject") or "")
    stem, dash, suffix = subject.rpartition("-")
    if dash and stem and suffix in PARTS:
        return stem
    try:
        record = FORMATS[str(attributes["format"])].find_name(str(attributes["schema"]))
    except (KeyError, ValueError):
        return None
    return subject.removesuffix(f"-{record}") if subject.endswith(f"-{record}") else None


def _find_record(attributes: FrozenMap) -> str:
    declared = attributes.get("schema") or next(reversed(attributes.get("versions") or ()), "")
    kind, text = str(attributes.get("format")), str(declared)
    try:
        return FORMATS[kind].find_name(text)
    except ValueError as error:
        raise ValueError(f"the schema does not name the subject: {error}") from None


INHERITED = "INHERITED"
"""The subject has none of its own: that of the registry takes effect."""

LEVELS = (
    "BACKWARD",
    "BACKWARD_TRANSITIVE",
    "FORWARD",
    "FORWARD_TRANSITIVE",
    "FULL",
    "FULL_TRANSITIVE",
    "NONE",
)
TRANSITIVE = frozenset(level for level in LEVELS if level.endswith("_TRANSITIVE"))
"""Levels that count for all versions, and not only for the latest one."""
MODES = ("READWRITE", "READONLY", "READONLY_OVERRIDE", "IMPORT")
"""Modes of a subject. READONLY_OVERRIDE is Confluent's (`Mode.java`), and deprecated there."""
REGISTRY_MODES = (*MODES, "FORWARD")
"""Modes of a registry. FORWARD is Confluent's, and refused for a subject (`ModeResource.java`)."""
CLOSING = frozenset({"READONLY", "READONLY_OVERRIDE", "FORWARD"})
"""Modes in which no schema can be registered without an id."""


class Promise(Struct, frozen=True):
    """What a registry makes sure of at a level."""

    backward: bool
    """Readers with the new schema can read what was written with the old one."""
    forward: bool
    """Readers with the old schema can read what is written with the new one."""
    advice: str
    """Who has to be updated first."""


_READERS = "update readers before writers"
_WRITERS = "update writers before readers"
_EITHER = "readers and writers can be updated in any order"
_NOBODY = "the registry checks nothing"

PROMISES: Mapping[str, Promise] = {
    "BACKWARD": Promise(True, False, _READERS),
    "BACKWARD_TRANSITIVE": Promise(True, False, _READERS),
    "FORWARD": Promise(False, True, _WRITERS),
    "FORWARD_TRANSITIVE": Promise(False, True, _WRITERS),
    "FULL": Promise(True, True, _EITHER),
    "FULL_TRANSITIVE": Promise(True, True, _EITHER),
    "NONE": Promise(False, False, _NOBODY),
}
"""Level -> what it means (Confluent's documentation, "Schema Evolution and Compatibility")."""


SUBJECT_CONFIG = "schema_registry_subject_config"
SETTINGS = ("compatibility", "mode")


def _target_of_subject(
    declared: FrozenMap, observed: Observed | None, _: Facts, keep: bool
) -> FrozenMap:
    live = observed.attributes if observed is not None and keep else EMPTY
    return FrozenMap(
        subject=name_subject(declared),
        **{name: _choose(declared.get(name), live.get(name)) for name in SETTINGS},
    )


def _choose(declared: object, live: object) -> object:
    return live or INHERITED if declared in (None, INHERITED) else declared


def _make_subject_steps(change: Change, _: Facts) -> tuple[Step, ...]:
    if change.action in SILENT:
        return ()
    after = change.after or EMPTY
    return tuple(
        _make_subject_step(change, number, name, after.get(name) or INHERITED)
        for number, name in enumerate(_list_changed(change), 1)
    )


def _list_changed(change: Change) -> list[str]:
    """The settings to send. A new object has only what is not inherited, which is nothing."""
    changed = {path[0] for path in list_paths(change, *SETTINGS)}
    before, after = change.before or EMPTY, change.after or EMPTY
    return [
        name
        for name in SETTINGS
        if name in changed and (before.get(name) or INHERITED) != (after.get(name) or INHERITED)
    ]


def _make_subject_step(change: Change, number: int, name: str, value: str) -> Step:
    """The first step of a creation or a deletion makes all paths true that no other one does."""
    first = change.action in (Action.CREATE, Action.DELETE) and number == 1
    separate = {attribute for attribute in _list_changed(change) if attribute != name}
    paths = tuple(
        path
        for path in list_paths(change)
        if path[0] == name or (first and path[0] not in separate)
    )
    removed = value == INHERITED
    payload = {"subject": change.identity.key, name: None if removed else value}
    if name == "compatibility":
        request = REMOVE_LEVEL if removed else SET_LEVEL
    else:
        request = REMOVE_MODE if removed else CLOSE_MODE if value in CLOSING else OPEN_MODE
    return make_step(change, number, request, payload, paths)


SUBJECT_CONFIG_TYPE = ResourceType(
    name=SUBJECT_CONFIG,
    schema=make_schema(
        "The compatibility level and the mode of one subject. The import id is the subject.",
        SUBJECT,
        TOPIC_NAME,
        PART,
        AttributeSchema(
            "compatibility",
            STRING,
            "What a new version has to be compatible with. INHERITED: the registry's own level.",
            default=INHERITED,
            choices=(*LEVELS, INHERITED),
        ),
        AttributeSchema(
            "mode",
            STRING,
            "Whether schemas can be registered. INHERITED: the registry's own mode.",
            default=INHERITED,
            choices=(*MODES, INHERITED),
        ),
        conflicts=CONFLICTS,
    ),
    key=name_subject,
    canonical=lambda attributes, _: attributes,
    target=_target_of_subject,
    steps=_make_subject_steps,
    import_key=check_subject,
    settings=True,
)


REGISTRY_CONFIG = "schema_registry_config"
REGISTRY_KEY = "global"


def _check_registry_key(text: str) -> str:
    if text != REGISTRY_KEY:
        raise ValueError(f'the import id of a {REGISTRY_CONFIG} is "{REGISTRY_KEY}"')
    return text


def _target_of_registry(declared: FrozenMap, _: Observed | None, __: Facts, ___: bool) -> FrozenMap:
    return FrozenMap({name: declared.get(name) for name in SETTINGS})


def _make_registry_steps(change: Change, _: Facts) -> tuple[Step, ...]:
    after = change.after or EMPTY
    if change.action in SILENT:
        return ()
    changed = [path[0] for path in list_paths(change, *SETTINGS) if after.get(path[0])]
    return tuple(
        make_step(
            change,
            number,
            SET_LEVEL
            if name == "compatibility"
            else CLOSE_MODE
            if after[name] in CLOSING
            else OPEN_MODE,
            {"subject": None, name: after[name]},
            list_paths(change, name),
        )
        for number, name in enumerate(changed, 1)
    )


REGISTRY_CONFIG_TYPE = ResourceType(
    name=REGISTRY_CONFIG,
    schema=make_schema(
        "The compatibility level and the mode of the registry, for all subjects without their own. "
        "They always have a value, so a block has to adopt them. The import id is "
        f'"{REGISTRY_KEY}".',
        AttributeSchema(
            "compatibility",
            STRING,
            "What a new version has to be compatible with; not managed if left out.",
            choices=LEVELS,
        ),
        AttributeSchema(
            "mode",
            STRING,
            "Whether schemas can be registered; not managed if left out.",
            choices=REGISTRY_MODES,
        ),
    ),
    key=lambda _: REGISTRY_KEY,
    canonical=lambda attributes, _: attributes,
    target=_target_of_registry,
    steps=_make_registry_steps,
    import_key=_check_registry_key,
    # There is nothing to delete: whoever stops declaring it leaves everything as it is.
    left=lambda live, _: live,
)
