"""What all subjects have in common: their names, and the types of their settings.

A subject's name is given, or made by the strategy with which clients make it. Source:
`TopicNameStrategy`, `RecordNameStrategy` and `TopicRecordNameStrategy` of Confluent's serializers,
whose names other clients use, too.

`schema_registry_subject_config` is the compatibility level and the mode of one subject, and what it
adds to data contracts. The object exists as long as the subject has something of its own. A level
or mode that a block leaves out is the registry's, and the plan shows its removal. Other settings
that it leaves out stay as they are.

`schema_registry_config` is the level and the mode of the whole registry. Both always have a value,
so the object always exists: a block takes it over. Nothing can remove it; what nobody declares any
more stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from msgspec import Struct

from kafkaform.core.change import Action, Change, Path, Request, Step
from kafkaform.core.resource import Facts, Observed
from kafkaform.core.schema import BOOL, STRING, AttributeSchema, make_schema
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.contract import ResourceType

from ..formats.normal_form import FORMATS
from .contracts import (
    METADATA,
    METADATA_TYPE,
    RULE_SET,
    RULE_SET_TYPE,
    flatten_metadata,
    flatten_rule_set,
    refuse_metadata,
    refuse_rule_set,
    write_metadata,
    write_rule_set,
)
from .registry import (
    CLOSE_MODE,
    END_CLOSED_MODE,
    END_IMPORT,
    LEAVE_IMPORT,
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
IMPORT_MODE = "IMPORT"
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
UNSET: Mapping[str, Value] = {
    "compatibility_group": "",
    "alias": "",
    "normalize": False,
    "default_metadata": EMPTY,
    "override_metadata": EMPTY,
    "default_rule_set": EMPTY,
    "override_rule_set": EMPTY,
}
"""Further settings -> the value of one that is not set, which removes it if a block declares it."""
_CONFIG = ("compatibility", *UNSET)
"""The settings that one request sets."""

_SHARED_SETTINGS = (
    AttributeSchema(
        "compatibility_group",
        STRING,
        "Name of a property of the metadata: only versions with the same value of it are compared "
        'with each other. "" removes it; it stays as it is if left out.',
    ),
    AttributeSchema(
        "normalize",
        BOOL,
        "The registry normalizes the texts of new schemas; it stays as it is if left out.",
    ),
    *(
        AttributeSchema(
            f"{prefix}_metadata",
            METADATA_TYPE,
            f"Properties and tags that new versions get{unless}. {{}} removes all of them; they "
            "stay as they are if left out.",
            refuses=refuse_metadata,
        )
        for prefix, unless in (
            ("default", ", unless they have their own"),
            ("override", " whatever they have"),
        )
    ),
    *(
        AttributeSchema(
            f"{prefix}_rule_set",
            RULE_SET_TYPE,
            f"Rules that new versions get{unless}. {{}} removes all of them; they stay as they are "
            "if left out.",
            refuses=refuse_rule_set,
        )
        for prefix, unless in (
            ("default", ", unless they have one of the same name"),
            ("override", " in place of their own of the same name"),
        )
    ),
)
_FORCE = AttributeSchema(
    "force",
    BOOL,
    "Mode IMPORT is set although there are schemas. Without effect on other modes.",
    unread=True,
)


def canonicalize_settings(attributes: FrozenMap, _: Facts) -> FrozenMap:
    """Contracts flat; see `contracts`."""
    flat: dict[str, Value] = {}
    for name in UNSET:
        value = attributes.get(name)
        if isinstance(value, FrozenMap):
            is_metadata = name.endswith(METADATA)
            flat[name] = flatten_metadata(value) if is_metadata else flatten_rule_set(value)
    return attributes.with_items(flat) if flat else attributes


def _write_settings(attributes: FrozenMap) -> FrozenMap:
    """The arguments of a block: contracts nested, without what is not set."""
    written: dict[str, Value] = {}
    for name, value in attributes.items():
        if name.endswith(METADATA):
            written[name] = write_metadata(value)
        elif name.endswith(RULE_SET):
            written[name] = write_rule_set(value)
        elif name not in UNSET or value != UNSET[name]:
            written[name] = value
    return FrozenMap({name: value for name, value in written.items() if value is not None})


def _choose_further(
    declared: FrozenMap, observed: Observed | None, facts: Facts
) -> Mapping[str, Value]:
    """The further settings that a block declares, and whether a mode is forced."""
    further = {name: declared.get(name) for name in UNSET if declared.get(name) is not None}
    live = observed.attributes if observed is not None else EMPTY
    if declared.get("force") and declared.get("mode") == IMPORT_MODE != live.get("mode"):
        further["force"] = True
    return canonicalize_settings(FrozenMap(further), facts)


def _select_recorded(target: FrozenMap, _: FrozenMap) -> FrozenMap:
    """What can be read back."""
    return target.without(["force"])


def _target_of_subject(
    declared: FrozenMap, observed: Observed | None, facts: Facts, keep: bool
) -> FrozenMap:
    live = observed.attributes if observed is not None and keep else EMPTY
    settings = {
        name: live.get(name) or INHERITED
        if declared.get(name) in (None, INHERITED)
        else declared.get(name)
        for name in SETTINGS
    }
    return FrozenMap(
        subject=name_subject(declared),
        **settings,
        **_choose_further(declared, observed, facts),
    )


def _make_subject_steps(change: Change, _: Facts) -> tuple[Step, ...]:
    if change.action in SILENT:
        return ()
    changed = _list_changed(change)
    config, mode = [name for name in changed if name != "mode"], "mode" in changed
    # The first step of a creation or a deletion makes all paths true that no other one does.
    first_paths: tuple[str, ...] = ()
    if change.action is not Action.UPDATE:
        first_paths = ("subject",) if mode else ("subject", "mode")
    steps: list[Step] = []
    if config:
        paths = _list_paths_of(change, *_CONFIG, *first_paths)
        steps.append(_make_config_step(change, 1, config, paths))
        first_paths = ()
    if mode:
        paths = _list_paths_of(change, "mode", *first_paths, *(() if config else _CONFIG))
        steps.append(_make_mode_step(change, len(steps) + 1, paths))
    return tuple(steps)


def _list_paths_of(change: Change, *names: str) -> tuple[Path, ...]:
    return tuple(path for path in list_paths(change) if path[0] in names)


def _list_changed(change: Change) -> list[str]:
    """The settings to send. A new object has only what is not inherited, which is nothing, and what
    is not empty."""
    changed = {path[0] for path in list_paths(change)}
    before, after = change.before or EMPTY, change.after or EMPTY
    unset = {**dict.fromkeys(SETTINGS, INHERITED), **UNSET}
    return [
        name
        for name, nothing in unset.items()
        if name in changed and (before.get(name) or nothing) != (after.get(name) or nothing)
    ]


def _make_config_step(
    change: Change, number: int, changed: Sequence[str], paths: tuple[Path, ...]
) -> Step:
    """The step that sets the level and the further settings, or removes all of them."""
    after = change.after or EMPTY
    values: dict[str, Value] = {name: after.get(name) or None for name in changed}
    if values.get("compatibility") == INHERITED:
        values["compatibility"] = None
    removed = values.get("compatibility", "") is None
    request = REMOVE_LEVEL if removed else SET_LEVEL
    return make_step(change, number, request, {"subject": _name_subject(change), **values}, paths)


def _make_mode_step(change: Change, number: int, paths: tuple[Path, ...]) -> Step:
    after = change.after or EMPTY
    mode = after.get("mode") or INHERITED
    payload: dict[str, Value] = {"subject": _name_subject(change)}
    payload["mode"] = None if mode == INHERITED else mode
    if after.get("force"):
        payload["force"] = True
    return make_step(change, number, _choose_mode_request(change, mode), payload, paths)


def _choose_mode_request(change: Change, mode: str) -> Request:
    """When a mode is set or removed, which what it lets in decides."""
    live = (change.before or EMPTY).get("mode")
    if mode == INHERITED:
        if change.action is Action.DELETE:
            return REMOVE_MODE
        if live in CLOSING:
            return END_CLOSED_MODE
        return END_IMPORT if live == IMPORT_MODE else REMOVE_MODE
    if mode in CLOSING:
        return CLOSE_MODE
    return LEAVE_IMPORT if live == IMPORT_MODE else OPEN_MODE


def _name_subject(change: Change) -> str | None:
    """None for the whole registry."""
    return None if change.identity.kind == REGISTRY_CONFIG else change.identity.key


SUBJECT_CONFIG_TYPE = ResourceType(
    name=SUBJECT_CONFIG,
    schema=make_schema(
        "The compatibility level and the mode of one subject, and what it adds to data contracts. "
        "The import id is the subject.",
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
        _FORCE,
        AttributeSchema(
            "alias",
            STRING,
            'Name of the subject that this one stands for when it is read. "" removes it; it stays '
            "as it is if left out.",
        ),
        *_SHARED_SETTINGS,
        conflicts=CONFLICTS,
    ),
    key=name_subject,
    canonical=canonicalize_settings,
    target=_target_of_subject,
    steps=_make_subject_steps,
    import_key=check_subject,
    written=_write_settings,
    ours=_select_recorded,
    settings=True,
)


REGISTRY_CONFIG = "schema_registry_config"
REGISTRY_KEY = "global"


def _check_registry_key(text: str) -> str:
    if text != REGISTRY_KEY:
        raise ValueError(f'the import id of a {REGISTRY_CONFIG} is "{REGISTRY_KEY}"')
    return text


def _target_of_registry(
    declared: FrozenMap, observed: Observed | None, facts: Facts, _: bool
) -> FrozenMap:
    levels = {name: declared.get(name) for name in SETTINGS}
    return FrozenMap({**levels, **_choose_further(declared, observed, facts)})


def _make_registry_steps(change: Change, _: Facts) -> tuple[Step, ...]:
    if change.action in SILENT:
        return ()
    after = change.after or EMPTY
    changed = [name for name in _list_changed(change) if after.get(name) is not None]
    config, steps = [name for name in changed if name != "mode"], list[Step]()
    if config:
        steps.append(_make_config_step(change, 1, config, _list_paths_of(change, *_CONFIG)))
    if "mode" in changed:
        paths = _list_paths_of(change, "mode")
        steps.append(_make_mode_step(change, len(steps) + 1, paths))
    return tuple(steps)


REGISTRY_CONFIG_TYPE = ResourceType(
    name=REGISTRY_CONFIG,
    schema=make_schema(
        "The compatibility level and the mode of the registry, for all subjects without their own, "
        "and what it adds to data contracts. "
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
        _FORCE,
        *_SHARED_SETTINGS,
    ),
    key=lambda _: REGISTRY_KEY,
    canonical=canonicalize_settings,
    target=_target_of_registry,
    steps=_make_registry_steps,
    import_key=_check_registry_key,
    written=_write_settings,
    ours=_select_recorded,
    # There is nothing to delete: whoever stops declaring it leaves everything as it is.
    left=lambda live, _: live,
)
