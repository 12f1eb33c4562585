"""The documents of `describe subjects` and `explain schema`, the same for people and for programs.
docs/commands.md lists the fields."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase

from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import (
    Absent,
    CoverageKind,
    Depth,
    Failed,
    Fault,
    Hidden,
    Identity,
    Observed,
    Reading,
)
from kafkaform.core.value import FrozenMap, Value
from kafkaform.provider.commands import Answer, is_glob, refuse_missing, select_names
from kafkaform.provider.contract import Session

from .consultation import name_schemas
from .formats.normal_form import BY_REGISTRY_NAME, FORMATS, describe_schema
from .kinds.contracts import describe_contract
from .kinds.registry import RegistryFacts
from .kinds.schema import KIND
from .kinds.subject_settings import (
    INHERITED,
    PROMISES,
    REGISTRY_CONFIG,
    REGISTRY_KEY,
    SUBJECT_CONFIG,
    check_subject,
)
from .reads import list_objects, read_objects
from .requests import (
    RegistryContext,
    SchemaVersion,
    list_referring,
    list_versions,
    parse_answer,
    read_numbers,
    read_schema_version,
    read_version,
)
from .session import RegistrySession

HIDDEN = "registries leave out subjects that a user must not see, and some list only the first ones"
SETTINGS = {"compatibility": "level", "mode": "mode"}
"""Attribute of a block -> the field of a document."""


def describe_subjects(
    session: Session, names: Sequence[str], name: str, format: str, *, levels: bool
) -> Answer:
    """The subjects that names or globs choose, with their latest schemas. name, format: globs;
    levels: with the levels and modes in effect. Raises KafkaformError."""
    context = _open_context(session)
    exact, complete = bool(names) and not any(map(is_glob, names)), True
    if exact:
        chosen = list(dict.fromkeys(map(_check_name, names)))
    else:
        sweep = list_objects(context, KIND, Depth.NAMES)
        if sweep.coverage.fault is not None:
            fault = sweep.coverage.fault
            raise KafkaformError(
                f"the subjects cannot be listed: {fault.message}", fault.advice or "Try again."
            )
        complete = sweep.coverage.kind is CoverageKind.COMPLETE
        listed = sorted(item.identity.key for item in sweep.items)
        chosen = [item for item in select_names(listed, names) if fnmatchcase(item, name)]
    readings = _read(context, KIND, chosen)
    # A subject that goes while it is read is not there.
    existing = [item for item in chosen if not isinstance(readings[item], Absent)]
    settings = _read_settings(context, existing) if levels else {}
    rows = [
        _document_subject(key, readings[key]).with_items(settings.get(key, {})) for key in existing
    ]
    document = FrozenMap(
        format_version="1.0",
        kind="subjects",
        registry_id=context.facts.scope_id,
        subjects=tuple(row for row in rows if fnmatchcase(row["format"] or "", format)),
        complete=exact or complete,
        hidden=None if exact or complete else HIDDEN,
    )
    missing = refuse_missing(existing, names, "subject", "subjects")
    return Answer(document, missing or _find_unread(readings))


def _open_context(session: Session) -> RegistryContext:
    assert isinstance(session, RegistrySession)
    return session.context


def _check_name(subject: str) -> str:
    """Raises KafkaformError for a text that names no subject."""
    try:
        return check_subject(subject)
    except ValueError as error:
        raise KafkaformError(str(error), "`kafkaform describe subjects` lists all.") from None


def _read(context: RegistryContext, kind: str, keys: Sequence[str]) -> Mapping[str, Reading]:
    ids = [Identity(context.instance, kind, key) for key in keys]
    return {identity.key: item for identity, item in read_objects(context, kind, ids).items()}


def _document_subject(name: str, reading: Reading) -> FrozenMap:
    """The latest schema of a subject; null for what cannot be read."""
    if isinstance(reading, Observed):
        details = reading.details
        return FrozenMap(
            name=name,
            format=reading.attributes["format"],
            version=details["version"],
            schema_id=details["schema_id"],
            summary=describe_schema(reading.attributes),
            references=len(reading.attributes.get("references") or ()),
            error=None,
        )
    empty: dict[str, Value] = dict.fromkeys(
        ("format", "version", "schema_id", "summary", "references")
    )
    return FrozenMap(name=name, **empty, error=_explain_reading(reading))


def _explain_reading(reading: Reading) -> str:
    if isinstance(reading, Hidden):
        return f"the right {reading.right} is missing"
    assert isinstance(reading, Failed)
    return reading.fault.message


def _find_unread(readings: Mapping[str, Reading]) -> KafkaformError | None:
    unread = [name for name, item in readings.items() if isinstance(item, Hidden | Failed)]
    if not unread:
        return None
    cause = _explain_reading(readings[unread[0]])
    more = f" (and {len(unread) - 1:,} more)" if len(unread) > 1 else ""
    return KafkaformError(
        f"the subject {unread[0]}{more} cannot be read: {cause}", "The answer has the others."
    )


def _read_settings(
    context: RegistryContext, subjects: Sequence[str]
) -> Mapping[str, Mapping[str, Value]]:
    """Subject -> `level`, `mode`, and `own_level`, `own_mode`: what the subject itself has, null if
    the registry's take effect. Settings that cannot be read are null."""
    whole = _read(context, REGISTRY_CONFIG, [REGISTRY_KEY])[REGISTRY_KEY]
    shared = whole.attributes if isinstance(whole, Observed) else FrozenMap()
    settings: dict[str, Mapping[str, Value]] = {}
    for subject, reading in _read(context, SUBJECT_CONFIG, subjects).items():
        attributes = reading.attributes if isinstance(reading, Observed) else FrozenMap()
        is_readable = isinstance(reading, Observed | Absent)
        values: dict[str, Value] = {}
        for key, name in SETTINGS.items():
            own = None if attributes.get(key) == INHERITED else attributes.get(key)
            values[name] = own or (shared.get(key) if is_readable else None)
            values[f"own_{name}"] = own
        settings[subject] = values
    return settings


# ── one subject ─────────────────────────────────────────────────────────────────────────


def explain_schema(session: Session, subject: str) -> FrozenMap:
    """The versions of a subject, what they refer to, what refers to them, and the level of the next
    one. Raises KafkaformError, also if there is no such subject."""
    context, name = _open_context(session), _check_name(subject)
    reading = _read(context, KIND, [name])[name]
    deleted = _list_deleted(context, name)
    if isinstance(reading, Absent) and deleted:
        raise KafkaformError(
            f"the subject {name} is deleted softly, with version {', '.join(map(str, deleted))}",
            f"`kafkaform alter schema {name} --restore-version {deleted[-1]}` registers its "
            "newest schema again.",
        )
    if isinstance(reading, Absent):
        listed = list_objects(context, KIND, Depth.NAMES).items
        names = [item.identity.key for item in listed]
        raise refuse_missing(names, [name], "subject", "subjects") or KafkaformError(
            f"the subject {name} has no version", "Run the command again."
        )
    if isinstance(reading, Hidden):
        raise KafkaformError(
            f"the subject {name} cannot be read: {_explain_reading(reading)}", "Ask for the right."
        )
    settings = _read_settings(context, [name])[name]
    promise = PROMISES.get(str(settings["level"]))
    versions, gaps = _read_versions(context, name)
    return FrozenMap(
        format_version="1.0",
        kind="schema_explanation",
        registry_id=context.facts.scope_id,
        subject=name,
        **settings,
        has_modes=RegistryFacts.of(context.facts).modes,
        update_first=None if promise is None else promise.advice,
        versions=_document_versions(context, name, versions),
        gaps=gaps,
        deleted=deleted,
    )


def _list_deleted(context: RegistryContext, subject: str) -> tuple[int, ...]:
    """The versions that are deleted softly, as far as the registry tells."""
    calls = [list_versions(subject), list_versions(subject, deleted=True)]
    live, whole = (
        () if isinstance(numbers, Fault) else numbers
        for numbers in (
            parse_answer(answer, call, read_numbers)
            for call, answer in zip(calls, context.client.ask_all(calls), strict=True)
        )
    )
    return tuple(sorted({*whole} - {*live}))


def _read_versions(
    context: RegistryContext, subject: str
) -> tuple[list[SchemaVersion], tuple[FrozenMap, ...]]:
    """The versions in order, and those that cannot be read with the reason. Raises
    KafkaformError."""
    call = list_versions(subject)
    numbers = parse_answer(context.ask(call), call, read_numbers)
    if isinstance(numbers, Fault):
        raise KafkaformError(
            f"the versions of {subject} cannot be listed: {numbers.message}",
            numbers.advice or "Run the command again.",
        )
    calls = [read_version(subject, number) for number in sorted(numbers)]
    versions: list[SchemaVersion] = []
    gaps: list[FrozenMap] = []
    for number, call, answer in zip(
        sorted(numbers), calls, context.client.ask_all(calls), strict=True
    ):
        version = parse_answer(answer, call, lambda body: read_schema_version(body, subject))
        if isinstance(version, SchemaVersion):
            versions.append(version)
        else:
            gaps.append(FrozenMap(version=number, reason=version.message))
    return versions, tuple(gaps)


def _document_versions(
    context: RegistryContext, subject: str, versions: Sequence[SchemaVersion]
) -> tuple[FrozenMap, ...]:
    calls = [list_referring(subject, version.version) for version in versions]
    referring = [
        parse_answer(answer, call, read_numbers)
        for call, answer in zip(calls, context.client.ask_all(calls), strict=True)
    ]
    ids = {id for group in referring if not isinstance(group, Fault) for id in group}
    names = name_schemas(context, sorted({*ids, *(version.id for version in versions)}))
    rows, before = [], None
    for version, group in zip(versions, referring, strict=True):
        users = None if isinstance(group, Fault) else {n for id in group for n in names.get(id, ())}
        unnamed = 0 if isinstance(group, Fault) else sum(id not in names for id in group)
        format = _name_format(version)
        rows.append(
            FrozenMap(
                version=version.version,
                schema_id=version.id,
                format=format,
                summary=describe_schema(FrozenMap(format=format, schema=version.schema)),
                differences=_count_differences(before, version),
                contract=tuple(describe_contract(version.metadata.with_items(version.rule_set))),
                references=version.references,
                referred_by=None if users is None else tuple(sorted(users - {subject})),
                referred_by_unnamed=unnamed,
                shared_with=tuple(sorted({*names.get(version.id, ())} - {subject}))
                if version.id in names
                else None,
            )
        )
        before = version
    return tuple(rows)


def _name_format(version: SchemaVersion) -> str:
    """The name of the format in blocks; the registry's for one that only other tools know."""
    known = BY_REGISTRY_NAME.get(version.kind)
    return version.kind if known is None else known.name


def _count_differences(before: SchemaVersion | None, after: SchemaVersion) -> int | None:
    """How many differences to the version before a plan would list; None if it cannot tell."""
    if before is None or before.kind != after.kind or after.kind not in BY_REGISTRY_NAME:
        return None
    try:
        edits = FORMATS[_name_format(after)].list_edits(before.schema, after.schema)
    except ValueError:
        return None
    return len(edits)
