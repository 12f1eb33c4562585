"""Read subjects and settings: each by a call of its own, as registries want it.

A 404 proves an absence only if the registry's own error code says what is missing. A user who must
not see a subject gets 403 from all of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from msgspec.structs import replace

from kafkaform.core.resource import (
    Absent,
    Coverage,
    CoverageKind,
    Depth,
    Failed,
    Fault,
    FaultClass,
    Hidden,
    Identity,
    Observed,
    Reading,
    Sweep,
)
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.http.exchange import Call, HttpAnswer

from .formats.normal_form import BY_REGISTRY_NAME, inspect_schema
from .kinds import schema, version
from .kinds.contracts import METADATA, RULE_SET, count_rules, find_inherited
from .kinds.registry import RegistryFacts
from .kinds.subject_settings import (
    INHERITED,
    REGISTRY_CONFIG,
    REGISTRY_KEY,
    SETTINGS,
    SUBJECT_CONFIG,
    UNSET,
    check_subject,
)
from .requests import (
    LIST_SUBJECTS,
    RegistryContext,
    SchemaVersion,
    is_missing,
    is_not_set,
    list_versions,
    look_up,
    parse_answer,
    read_names,
    read_numbers,
    read_schema_version,
    read_setting,
    read_settings,
    read_settings_in_scope,
    read_version,
    read_word,
)

UNKNOWN_FORMAT = "UNKNOWN_FORMAT"
"""The fault of a schema that only other tools know."""
FIELDS = {"config": ("compatibilityLevel", "compatibility"), "mode": ("mode",)}
"""Setting -> the names of its value in answers."""
SETTING_OF = {"compatibility": "config", "mode": "mode"}
"""Attribute -> what the API calls it."""


def read_objects(
    context: RegistryContext, kind: str, ids: Sequence[Identity]
) -> Mapping[Identity, Reading]:
    """How each object of one kind reads now."""
    return dict(zip(ids, _READS[kind](context, ids), strict=True))


def list_objects(context: RegistryContext, kind: str, depth: Depth) -> Sweep:
    """All objects of a kind, and how far the listing can be trusted."""
    if kind == REGISTRY_CONFIG:
        ids = [Identity(context.instance, kind, REGISTRY_KEY)]
        return _make_sweep(kind, depth, read_objects(context, kind, ids).values(), complete=True)
    if kind == version.VERSION:
        # Commands name the versions that they change.
        return Sweep(kind, depth, (), Coverage(CoverageKind.VISIBLE_ONLY))
    answer = context.ask(LIST_SUBJECTS)
    listed = parse_answer(answer, LIST_SUBJECTS, read_names)
    if isinstance(listed, Fault):
        return Sweep(kind, depth, (), Coverage(CoverageKind.FAILED, listed))
    names = [name for name in listed if _is_usable(name)]
    complete = len(names) == len(listed) and _is_whole(context, len(listed))
    ids = [Identity(context.instance, kind, name) for name in names]
    if kind == schema.KIND and depth is Depth.NAMES:
        items = tuple(Observed(identity, FrozenMap(subject=identity.key)) for identity in ids)
        return Sweep(kind, depth, items, _make_coverage(complete))
    # No call lists the subjects that have settings of their own, so each of them is asked. Those of
    # subjects without a schema are found by nobody.
    complete = complete and kind == schema.KIND
    return _make_sweep(kind, depth, read_objects(context, kind, ids).values(), complete=complete)


def _is_whole(context: RegistryContext, number: int) -> bool:
    """False if the registry can have left subjects out without a word."""
    # With access control, a listing has only the subjects that the user may read: so it is with
    # Confluent's, with Karapace and with Redpanda. Nobody says whether it is switched on.
    facts = RegistryFacts.of(context.facts)
    if facts.login:
        return False
    return facts.listing_limit is None or number < facts.listing_limit


def _is_usable(name: str) -> bool:
    try:
        check_subject(name)
    except ValueError:
        return False
    return True


def _make_sweep(kind: str, depth: Depth, readings: Iterable[Reading], *, complete: bool) -> Sweep:
    """The listing that these readings make."""
    items: list[Observed] = []
    for reading in readings:
        if isinstance(reading, Failed) and reading.fault.code != UNKNOWN_FORMAT:
            return Sweep(kind, depth, (), Coverage(CoverageKind.FAILED, reading.fault))
        if isinstance(reading, Observed):
            items.append(reading)
        elif not isinstance(reading, Absent):
            complete = False
    return Sweep(kind, depth, tuple(items), _make_coverage(complete), whole=True)


def _make_coverage(complete: bool) -> Coverage:
    return Coverage(CoverageKind.COMPLETE if complete else CoverageKind.VISIBLE_ONLY)


# ── schemas ─────────────────────────────────────────────────────────────────────────────


def _read_schemas(context: RegistryContext, ids: Sequence[Identity]) -> list[Reading]:
    calls = [read_version(identity.key, None) for identity in ids]
    # Answers are read when all of them are there. Read in the threads that ask, they would take
    # more processor time, because Python lets one thread run at a time.
    answers = context.client.ask_all(calls)
    versions = [
        parse_answer(answer, call, partial(read_schema_version, subject=identity.key))
        for identity, call, answer in zip(ids, calls, answers, strict=True)
    ]
    inherited = read_inherited(
        context,
        {
            identity.key: version
            for identity, version in zip(ids, versions, strict=True)
            if isinstance(version, SchemaVersion)
        },
    )
    readings = [
        _read_schema(context, identity, answer, version, inherited.get(identity.key, EMPTY))
        for identity, answer, version in zip(ids, answers, versions, strict=True)
    ]
    if not RegistryFacts.of(context.facts).all_versions:
        return readings
    return _add_versions(context, readings)


def _add_versions(context: RegistryContext, readings: Sequence[Reading]) -> list[Reading]:
    """The readings with all versions of their subjects. One of which something cannot be read has
    failed as a whole."""
    present = [reading for reading in readings if isinstance(reading, Observed)]
    lists = [list_versions(reading.identity.key) for reading in present]
    numbers: dict[Identity, tuple[int, ...] | Fault] = {}
    calls: list[tuple[Observed, Call]] = []
    for reading, call, answer in zip(present, lists, context.client.ask_all(lists), strict=True):
        listed = numbers[reading.identity] = parse_answer(answer, call, read_numbers)
        if not isinstance(listed, Fault):
            calls += [(reading, read_version(reading.identity.key, n)) for n in sorted(listed)]
    texts: dict[Identity, list[str]] = {reading.identity: [] for reading in present}
    faults: dict[Identity, Fault] = {
        identity: fault for identity, fault in numbers.items() if isinstance(fault, Fault)
    }
    answers = context.client.ask_all([call for _, call in calls])
    for (reading, call), answer in zip(calls, answers, strict=True):
        stored = parse_answer(
            answer, call, partial(read_schema_version, subject=reading.identity.key)
        )
        if isinstance(stored, Fault):
            faults[reading.identity] = stored
        else:
            texts[reading.identity].append(_normalize(stored))
    return [_add_texts(reading, texts, faults) for reading in readings]


def _normalize(stored: SchemaVersion) -> str:
    """The text in the normal form of its own format; of one that nobody knows, as it is."""
    if stored.kind not in BY_REGISTRY_NAME:
        return stored.schema
    elsewhere = bool(stored.references)
    kind = BY_REGISTRY_NAME[stored.kind].name
    return inspect_schema(kind, stored.schema, elsewhere=elsewhere).normal


def _add_texts(
    reading: Reading, texts: Mapping[Identity, Sequence[str]], faults: Mapping[Identity, Fault]
) -> Reading:
    if not isinstance(reading, Observed):
        return reading
    if reading.identity in faults:
        return Failed(reading.identity, faults[reading.identity])
    versions = schema.number_versions(texts[reading.identity])
    return replace(reading, attributes=reading.attributes.with_items({"history": versions}))


def read_inherited(
    context: RegistryContext, versions: Mapping[str, SchemaVersion]
) -> Mapping[str, FrozenMap | HttpAnswer | Fault]:
    """Subject -> the settings in effect that add to its contract, for versions that have one; or
    the answer that does not say."""
    if not RegistryFacts.of(context.facts).contracts:
        return {}
    subjects = [name for name, version in versions.items() if version.metadata or version.rule_set]
    calls = [read_settings_in_scope(subject) for subject in subjects]
    inherited: dict[str, FrozenMap | HttpAnswer | Fault] = {}
    for subject, call, answer in zip(subjects, calls, context.client.ask_all(calls), strict=True):
        settings = parse_answer(answer, call, read_settings)
        if isinstance(settings, Fault) and isinstance(answer, HttpAnswer) and answer.status == 403:
            inherited[subject] = answer
        else:
            inherited[subject] = settings
    return inherited


def _read_schema(
    context: RegistryContext,
    identity: Identity,
    answer: HttpAnswer | Fault,
    result: SchemaVersion | Fault,
    inherited: FrozenMap | HttpAnswer | Fault,
) -> Reading:
    if isinstance(result, SchemaVersion) and isinstance(inherited, FrozenMap):
        return observe_schema(context, identity, result, inherited)
    if isinstance(result, SchemaVersion):
        # Without these settings, nobody can tell what the version itself says.
        right = f"ReadCompatibility on subject {identity.key}"
        return _make_failed(identity, inherited, inherited, right)
    if isinstance(answer, HttpAnswer) and is_missing(answer):
        return Absent(identity)
    return _make_failed(identity, answer, result, f"Read on subject {identity.key}")


def observe_schema(
    context: RegistryContext,
    identity: Identity,
    stored: SchemaVersion,
    inherited: FrozenMap = EMPTY,
) -> Reading:
    """inherited: the settings that have added to the contract of the version. What comes from them
    is not the version's own."""
    if stored.kind not in BY_REGISTRY_NAME:
        return _refuse_format(identity, stored)
    facts = RegistryFacts.of(context.facts)
    capabilities = {METADATA: facts.properties, RULE_SET: facts.contracts}
    contract = {METADATA: stored.metadata, RULE_SET: stored.rule_set}
    keys = {
        name: find_inherited(
            value,
            inherited.get(f"default_{name}") or EMPTY,
            inherited.get(f"override_{name}") or EMPTY,
        )
        for name, value in contract.items()
    }
    attributes = FrozenMap(
        subject=identity.key,
        format=BY_REGISTRY_NAME[stored.kind].name,
        schema=stored.schema,
        references=stored.references,
        version=stored.version,
        schema_id=stored.id,
        **{
            name: count_rules(value, keys[name])
            for name, value in contract.items()
            if value or capabilities[name]
        },
    )
    return Observed(
        identity,
        schema.TYPE.canonical(attributes, context.facts),
        foreign=frozenset((name, key) for name in keys for key in keys[name]),
        details=FrozenMap(version=stored.version, schema_id=stored.id),
    )


def is_new_beside(payload: Mapping[str, Any], equal: SchemaVersion, newest: SchemaVersion) -> bool:
    """True if a registry does not take a payload for the equal older version, because it adds what
    the newest version has of metadata and rules."""
    adds_metadata = payload.get(METADATA) is None and equal.metadata != newest.metadata
    return adds_metadata or (payload.get(RULE_SET) is None and equal.rule_set != newest.rule_set)


def _refuse_format(identity: Identity, stored: SchemaVersion) -> Failed:
    fault = Fault(
        UNKNOWN_FORMAT,
        f"its format is {stored.kind}; known are {', '.join(BY_REGISTRY_NAME)}",
        FaultClass.DEFINITE,
        advice="manage it with another tool",
    )
    return Failed(identity, fault)


# ── single versions ─────────────────────────────────────────────────────────────────────


def _read_versions(context: RegistryContext, ids: Sequence[Identity]) -> list[Reading]:
    """Versions by their numbers, also those that are deleted softly."""
    keys = [version.read_key(identity.key) for identity in ids]
    calls = [read_version(*key, deleted=True) for key in keys]
    lists = [list_versions(subject) for subject, _ in keys]
    answers = context.client.ask_all([*calls, *lists])
    present, live = answers[: len(ids)], answers[len(ids) :]
    readings: list[Reading] = []
    for identity, (subject, number), call, answer, list_call, listed in zip(
        ids, keys, calls, present, lists, live, strict=True
    ):
        if isinstance(answer, HttpAnswer) and is_missing(answer):
            readings.append(Absent(identity))
            continue
        stored = parse_answer(answer, call, partial(read_schema_version, subject=subject))
        numbers = parse_answer(listed, list_call, read_numbers)
        if isinstance(listed, HttpAnswer) and is_missing(listed):
            numbers = ()
        right = f"Read on subject {subject}"
        if not isinstance(stored, SchemaVersion):
            readings.append(_make_failed(identity, answer, stored, right))
        elif isinstance(numbers, Fault):
            readings.append(_make_failed(identity, listed, numbers, right))
        else:
            readings.append(
                _observe_version(context, identity, stored, registered=number in numbers)
            )
    return readings


def _observe_version(
    context: RegistryContext, identity: Identity, stored: SchemaVersion, *, registered: bool
) -> Reading:
    if stored.kind not in BY_REGISTRY_NAME:
        return _refuse_format(identity, stored)
    subject, number = version.read_key(identity.key)
    attributes = FrozenMap(
        subject=subject,
        version=number,
        format=BY_REGISTRY_NAME[stored.kind].name,
        # As it was registered: another spelling can get another id.
        schema=stored.schema,
        references=stored.references,
    )
    state: str | Fault = version.REGISTERED if registered else _find_state(context, attributes)
    if isinstance(state, Fault):
        return Failed(identity, state)
    return Observed(
        identity,
        attributes.with_items({"state": state}),
        details=FrozenMap(
            schema_id=stored.id, has_contract=bool(stored.metadata or stored.rule_set)
        ),
    )


def _find_state(context: RegistryContext, attributes: FrozenMap) -> str | Fault:
    """Whether the schema of a version that is deleted softly was registered again."""
    call = look_up(attributes)
    answer = context.ask(call)
    if isinstance(answer, HttpAnswer) and is_missing(answer):
        return version.DELETED
    newer = parse_answer(
        answer, call, partial(read_schema_version, subject=str(attributes["subject"]))
    )
    return newer if isinstance(newer, Fault) else version.RESTORED


# ── levels and modes ────────────────────────────────────────────────────────────────────


def _read_configs(context: RegistryContext, ids: Sequence[Identity]) -> list[Reading]:
    values = _read_settings(context, [identity.key for identity in ids])
    below = _read_fallbacks(context) if ids else EMPTY
    return [
        _observe_config(context, identity, settings, below)
        for identity, settings in zip(ids, values, strict=True)
    ]


def _read_fallbacks(context: RegistryContext) -> FrozenMap:
    """The settings of the registry, for subjects without their own; none that cannot be read."""
    (whole,) = _read_global(context, [Identity(context.instance, REGISTRY_CONFIG, "")])
    settings = whole.attributes if isinstance(whole, Observed) else EMPTY
    return FrozenMap({name: settings[name] for name in SETTINGS if settings.get(name) is not None})


def _observe_config(
    context: RegistryContext,
    identity: Identity,
    settings: Mapping[str, Setting],
    below: FrozenMap,
) -> Reading:
    for name, value in settings.items():
        if isinstance(value, HttpAnswer | Fault):
            call = read_setting(SETTING_OF[name], identity.key)
            fault = parse_answer(value, call, lambda body: body)
            return _make_failed(identity, value, fault, f"Read on subject {identity.key}")
    level = settings["compatibility"]
    if level == "NONE" and not RegistryFacts.of(context.facts).subject_none:
        level = INHERITED
    own: dict[str, Value] = {"compatibility": str(level), "mode": str(settings["mode"])}
    further = {name: value for name, value in settings.items() if name in UNSET}
    if further == dict(UNSET) and all(value == INHERITED for value in own.values()):
        return Absent(identity, fallbacks=below)
    if not RegistryFacts.of(context.facts).contracts:
        further = {}
    attributes = FrozenMap({"subject": identity.key, **own, **further})
    return Observed(identity, attributes, fallbacks=below)


def _list_settings(context: RegistryContext) -> list[str]:
    modes = RegistryFacts.of(context.facts).modes
    return ["compatibility", "mode"] if modes else ["compatibility"]


Setting = Value | HttpAnswer | Fault
"""A value, INHERITED, or the answer that says neither."""


def _read_settings(context: RegistryContext, subjects: Sequence[str]) -> list[dict[str, Setting]]:
    """Attribute -> setting, for each subject."""
    names = _list_settings(context)
    requests = [(subject, name) for subject in subjects for name in names]
    calls = [read_setting(SETTING_OF[name], subject) for subject, name in requests]
    settings: dict[str, dict[str, Setting]] = {
        subject: {"compatibility": INHERITED, "mode": INHERITED, **UNSET} for subject in subjects
    }
    for (subject, name), call, answer in zip(
        requests, calls, context.client.ask_all(calls), strict=True
    ):
        settings[subject] |= _read_answer(name, call, answer)
    return [settings[subject] for subject in subjects]


def _read_answer(name: str, call: Call, answer: HttpAnswer | Fault) -> Mapping[str, Setting]:
    """The level with the further settings, or the mode."""
    setting = _read_setting(name, call, answer)
    if name == "mode" or not isinstance(answer, HttpAnswer) or not answer.succeeded:
        return {name: setting}
    further = parse_answer(answer, call, read_settings)
    return {name: further} if isinstance(further, Fault) else {name: setting, **further}


def _read_level_word(body: Any) -> str:
    """Of a subject with other settings, some versions say no level."""
    has_level = isinstance(body, dict) and any(body.get(name) for name in FIELDS["config"])
    if not has_level and read_settings(body) != UNSET:
        return INHERITED
    return read_word(body, *FIELDS["config"])


_READERS: Mapping[str, Callable[[Any], str]] = {
    "compatibility": _read_level_word,
    "mode": lambda body: read_word(body, *FIELDS["mode"]),
}
"""Attribute -> how its answer is read."""


def _read_setting(name: str, call: Call, answer: HttpAnswer | Fault) -> str | HttpAnswer | Fault:
    value = parse_answer(answer, call, _READERS[name])
    if isinstance(value, str):
        return value
    if isinstance(answer, HttpAnswer) and is_not_set(answer):
        return INHERITED
    return value if isinstance(answer, HttpAnswer) and answer.succeeded else answer


def _read_global(context: RegistryContext, ids: Sequence[Identity]) -> list[Reading]:
    names = _list_settings(context)
    calls = [read_setting(SETTING_OF[name], None) for name in names]
    answers = context.client.ask_all(calls)
    values: dict[str, Value] = {"compatibility": None, "mode": None}
    for name, call, answer in zip(names, calls, answers, strict=True):
        settings = _read_answer(name, call, answer)
        setting = settings[name]
        if isinstance(setting, HttpAnswer | Fault):
            fault = parse_answer(setting, call, lambda body: body)
            right = "Read on the registry's settings"
            return [_make_failed(identity, setting, fault, right) for identity in ids]
        values |= cast(Mapping[str, Value], settings)
    if not RegistryFacts.of(context.facts).contracts:
        values = {name: value for name, value in values.items() if name not in UNSET}
    values.pop("alias", None)
    return [Observed(identity, FrozenMap(values)) for identity in ids]


def read_level(call: Call, answer: HttpAnswer | Fault) -> str | HttpAnswer | Fault:
    """The level that an answer to `read_setting` says, INHERITED for none of its own, or the answer
    itself if it says neither."""
    return _read_setting("compatibility", call, answer)


def read_mode(call: Call, answer: HttpAnswer | Fault) -> str | HttpAnswer | Fault:
    """The same for a mode."""
    return _read_setting("mode", call, answer)


def _make_failed(
    identity: Identity, answer: HttpAnswer | Fault | object, fault: object, right: str
) -> Hidden | Failed:
    if isinstance(answer, HttpAnswer) and answer.status == 403:
        return Hidden(identity, right)
    assert isinstance(fault, Fault)
    return Failed(identity, fault)


_READS: Mapping[str, Callable[[RegistryContext, Sequence[Identity]], list[Reading]]] = {
    schema.KIND: _read_schemas,
    version.VERSION: _read_versions,
    SUBJECT_CONFIG: _read_configs,
    REGISTRY_CONFIG: _read_global,
}
