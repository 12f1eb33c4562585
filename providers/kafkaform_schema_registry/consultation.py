"""Answer the questions of surveys (`rules/schemas.py`): levels, verdicts, versions and what refers
to them, and measure what the deletion of a subject takes away. What a registry does not say is left
out, and nothing follows from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from kafkaform.core.change import Impact
from kafkaform.core.resource import Coverage, CoverageKind, Depth, Fault, Identity, Observed, Sweep
from kafkaform.core.text import render_count
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.http.exchange import Call, HttpAnswer

from .formats.normal_form import BY_REGISTRY_NAME
from .kinds.contracts import METADATA, RULE_SET
from .kinds.registry import (
    NUMBERS,
    VERSION_USERS,
    RegistryFacts,
    parse_listing,
    read_subjects,
)
from .kinds.subject_settings import INHERITED, PROMISES, TRANSITIVE
from .kinds.version import read_key
from .reads import is_new_beside, read_level, read_mode
from .requests import (
    RegistryContext,
    SchemaVersion,
    check_all,
    check_latest,
    is_missing,
    lacks_endpoint,
    list_referring,
    list_uses,
    list_versions,
    look_up,
    parse_answer,
    read_numbers,
    read_schema_version,
    read_setting,
    read_settings,
    read_settings_in_scope,
    read_uses,
    read_verdict,
    read_version,
)
from .rules.contracts import CONTRACTS, MODES
from .rules.schemas import USERS, VERSIONS, NextVersion, read_versions

MAX_VERSIONS = 100
"""Versions of a subject that are read to judge a new one. The registry judges beyond that."""


def answer_listing(context: RegistryContext, name: str, depth: Depth) -> Sweep:
    """The answers to the questions that a name contains."""
    kind, questions = parse_listing(name)
    answers = _ANSWERS[kind](context, questions)
    items = tuple(
        Observed(Identity(context.instance, kind, subject), attributes)
        for subject, attributes in answers.items()
    )
    return Sweep(name, depth, items, Coverage(CoverageKind.VISIBLE_ONLY))


# ── new versions ────────────────────────────────────────────────────────────────────────


def _answer_versions(context: RegistryContext, questions: str) -> Mapping[str, FrozenMap]:
    """Subject -> `level`, the `versions` that it also counts for, and the registry's verdict:
    `compatible`, None if it was not asked, with its `reasons`. `earlier` is the number of the
    version that has the schema already, None if there is none."""
    versions_to_judge = read_versions(questions)
    earlier = _find_earlier(context, versions_to_judge)
    levels, grouped = _read_levels(context, versions_to_judge)
    answers: dict[str, FrozenMap] = {}
    foreign: list[NextVersion] = []
    for item in versions_to_judge:
        level, planned = levels[item.subject]
        versions: tuple[FrozenMap, ...] | None = ()
        if level in TRANSITIVE:
            versions = _read_older(context, item.subject)
        is_grouped = item.subject in grouped or item.regrouped
        is_foreign = item.format != "avro" or item.references or versions is None or is_grouped
        if item.references and not RegistryFacts.of(context.facts).checks_references:
            is_foreign = False
        # The registry answers at the level of today.
        if level is not None and level != "NONE" and is_foreign and not (planned or item.regrouped):
            foreign.append(item)
        answers[item.subject] = FrozenMap(
            level=level,
            versions=versions or (),
            compatible=None,
            reasons=(),
            earlier=earlier.get(item.subject),
            grouped=is_grouped,
        )
    for item, verdict in zip(foreign, _ask_verdicts(context, foreign, levels), strict=True):
        if verdict is not None:
            compatible, reasons = verdict
            answer = answers[item.subject]
            answers[item.subject] = answer.with_items(
                {"compatible": compatible, "reasons": reasons}
            )
    return answers


def _find_earlier(
    context: RegistryContext, versions_to_judge: Sequence[NextVersion]
) -> Mapping[str, int]:
    """Subject -> the version that has its next schema already, if there are newer ones."""
    calls = [look_up(_make_payload(item)) for item in versions_to_judge]
    equals: dict[str, SchemaVersion] = {}
    for item, call, answer in zip(
        versions_to_judge, calls, context.client.ask_all(calls), strict=True
    ):
        version = parse_answer(answer, call, partial(read_schema_version, subject=item.subject))
        if isinstance(version, SchemaVersion):
            equals[item.subject] = version
    live = _read_numbers(context, list(equals), deleted=False)
    older_versions = {
        subject: version
        for subject, version in equals.items()
        if version.version < max(live.get(subject, ()), default=0)
    }
    latest = [read_version(subject, None) for subject in older_versions]
    payloads = {item.subject: _make_payload(item) for item in versions_to_judge}
    numbers: dict[str, int] = {}
    for (subject, version), call, answer in zip(
        older_versions.items(), latest, context.client.ask_all(latest), strict=True
    ):
        newest = parse_answer(answer, call, partial(read_schema_version, subject=subject))
        if not isinstance(newest, SchemaVersion) or not is_new_beside(
            payloads[subject], version, newest
        ):
            numbers[subject] = version.version
    return numbers


def _make_payload(item: NextVersion) -> Mapping[str, Any]:
    """The version as requests want it."""
    return {
        "subject": item.subject,
        "format": item.format,
        "schema": item.schema,
        "references": item.references,
        METADATA: item.metadata,
        RULE_SET: item.rule_set,
    }


def _read_levels(
    context: RegistryContext, versions_to_judge: Sequence[NextVersion]
) -> tuple[Mapping[str, tuple[str | None, bool]], set[str]]:
    """Subject -> the level that its new version is checked at, None if it cannot be read, and
    whether the plan sets it. Levels of a plan are set before its schemas are registered. And the
    subjects of which only some versions are compared with each other (`compatibility_group`)."""
    calls = [read_setting("config", item.subject) for item in versions_to_judge]
    global_call = read_setting("config", None)
    *answers, last = context.client.ask_all([*calls, global_call])
    live = _take_level(read_level(global_call, last))
    levels: dict[str, tuple[str | None, bool]] = {}
    is_all_grouped = _is_grouped(global_call, last)
    grouped = set[str]()
    for item, call, answer in zip(versions_to_judge, calls, answers, strict=True):
        if is_all_grouped or _is_grouped(call, answer):
            grouped.add(item.subject)
        subject_level = _take_level(read_level(call, answer))
        if subject_level == "NONE" and not RegistryFacts.of(context.facts).subject_none:
            subject_level = INHERITED
        level = item.level or subject_level
        if level == INHERITED:
            levels[item.subject] = (
                item.registry_level or live,
                bool(item.level or item.registry_level),
            )
        else:
            levels[item.subject] = level, item.level is not None
    return levels, grouped


def _is_grouped(call: Call, answer: HttpAnswer | Fault) -> bool:
    settings = parse_answer(answer, call, read_settings)
    return isinstance(settings, FrozenMap) and bool(settings["compatibility_group"])


def _take_level(value: str | HttpAnswer | Fault) -> str | None:
    return value if isinstance(value, str) and (value in PROMISES or value == INHERITED) else None


def _read_older(context: RegistryContext, subject: str) -> tuple[FrozenMap, ...] | None:
    """All versions before the latest; None if they cannot be read or are too many."""
    call = list_versions(subject)
    numbers = parse_answer(context.ask(call), call, read_numbers)
    if isinstance(numbers, Fault) or len(numbers) > MAX_VERSIONS:
        return None
    calls = [read_version(subject, number) for number in sorted(numbers)[:-1]]
    versions: list[FrozenMap] = []
    for call, answer in zip(calls, context.client.ask_all(calls), strict=True):
        version = parse_answer(answer, call, lambda body: read_schema_version(body, subject))
        if not isinstance(version, SchemaVersion) or version.kind not in BY_REGISTRY_NAME:
            return None
        name = BY_REGISTRY_NAME[version.kind].name
        versions.append(FrozenMap(number=version.version, format=name, schema=version.schema))
    return tuple(versions)


def _ask_verdicts(
    context: RegistryContext,
    versions_to_judge: Sequence[NextVersion],
    levels: Mapping[str, tuple[str | None, bool]],
) -> list[tuple[bool, tuple[str, ...]] | None]:
    """What the registry says about each new version, None if it does not say."""
    payloads = list(map(_make_payload, versions_to_judge))
    calls = [check_all(payload) for payload in payloads]
    verdicts = []
    for item, payload, call, answer in zip(
        versions_to_judge, payloads, calls, context.client.ask_all(calls), strict=True
    ):
        missing = isinstance(answer, HttpAnswer) and lacks_endpoint(answer)
        if missing and levels[item.subject][0] not in TRANSITIVE:
            call = check_latest(payload)
            answer = context.ask(call)
        verdict = parse_answer(answer, call, read_verdict)
        verdicts.append(None if isinstance(verdict, Fault) else verdict)
    return verdicts


# ── references ──────────────────────────────────────────────────────────────────────────


def _answer_numbers(context: RegistryContext, questions: str) -> Mapping[str, FrozenMap]:
    """See `NUMBERS`. A subject that does not exist has no versions."""
    subjects = read_subjects(questions)
    live = _read_numbers(context, subjects, deleted=False)
    # Versions go on after those that were deleted softly.
    used = _read_numbers(context, subjects, deleted=True)
    answers: dict[str, FrozenMap] = {}
    for subject, numbers in live.items():
        highest = max((*numbers, *used.get(subject, ())), default=0)
        answers[subject] = FrozenMap(
            versions=numbers, next=highest + 1 if subject in used else None
        )
    return answers


def _read_numbers(
    context: RegistryContext, subjects: Sequence[str], *, deleted: bool
) -> Mapping[str, tuple[int, ...]]:
    """Subject -> its versions, sorted; none for one that does not exist. What cannot be read is
    left out. deleted: also those that are deleted softly."""
    calls = [list_versions(subject, deleted=deleted) for subject in subjects]
    answers: dict[str, tuple[int, ...]] = {}
    for subject, call, answer in zip(subjects, calls, context.client.ask_all(calls), strict=True):
        numbers = parse_answer(answer, call, read_numbers)
        if isinstance(answer, HttpAnswer) and is_missing(answer):
            answers[subject] = ()
        elif not isinstance(numbers, Fault):
            answers[subject] = tuple(sorted(numbers))
    return answers


def _answer_users(context: RegistryContext, questions: str) -> Mapping[str, FrozenMap]:
    """Subject -> `subjects` with versions that refer to it, and `unnamed`: how many more schemas
    do, of which the registry tells only the ids."""
    subjects = read_subjects(questions)
    numbers = _read_numbers(context, subjects, deleted=False)
    pairs = [
        (subject, list_referring(subject, number))
        for subject in subjects
        if subject in numbers
        for number in numbers[subject][-MAX_VERSIONS:]
    ]
    ids: dict[str, set[int]] = {subject: set() for subject in numbers}
    for (subject, call), answer in zip(
        pairs, context.client.ask_all([call for _, call in pairs]), strict=True
    ):
        referring = parse_answer(answer, call, read_numbers)
        if not isinstance(referring, Fault):
            ids[subject].update(referring)
    names = name_schemas(context, sorted({id for group in ids.values() for id in group}))
    answers: dict[str, FrozenMap] = {}
    for subject, group in ids.items():
        users = {name for id in group for name in names.get(id, ())} - {subject}
        unnamed = sum(id not in names for id in group)
        values: dict[str, Value] = {"subjects": tuple(sorted(users)), "unnamed": unnamed}
        answers[subject] = FrozenMap(values)
    return answers


def name_schemas(context: RegistryContext, ids: Sequence[int]) -> Mapping[int, tuple[str, ...]]:
    """Id of a content -> the subjects that have it; without those that the registry does not
    tell."""
    calls: list[Call] = [list_uses(id) for id in ids]
    names: dict[int, tuple[str, ...]] = {}
    for id, call, answer in zip(ids, calls, context.client.ask_all(calls), strict=True):
        uses = parse_answer(answer, call, read_uses)
        if not isinstance(uses, Fault) and uses:
            names[id] = tuple(dict.fromkeys(subject for subject, _ in uses))
    return names


# ── contracts and modes ─────────────────────────────────────────────────────────────────


def _answer_contracts(context: RegistryContext, questions: str) -> Mapping[str, FrozenMap]:
    """See `CONTRACTS`. A subject that does not exist has an empty contract."""
    if not RegistryFacts.of(context.facts).properties:
        return {}
    subjects = read_subjects(questions)
    reads = [read_version(subject, None) for subject in subjects]
    settings = [read_settings_in_scope(subject) for subject in subjects]
    answers = context.client.ask_all([*reads, *settings])
    contracts: dict[str, FrozenMap] = {}
    for subject, call, answer, settings_call, settings_answer in zip(
        subjects, reads, answers[: len(subjects)], settings, answers[len(subjects) :], strict=True
    ):
        version = parse_answer(answer, call, partial(read_schema_version, subject=subject))
        added = parse_answer(settings_answer, settings_call, read_settings)
        if isinstance(added, Fault):
            continue
        if isinstance(version, SchemaVersion):
            contract = {METADATA: version.metadata, RULE_SET: version.rule_set}
        elif isinstance(answer, HttpAnswer) and is_missing(answer):
            contract = {METADATA: EMPTY, RULE_SET: EMPTY}
        else:
            continue
        contracts[subject] = FrozenMap({**added, **contract})
    return contracts


def _answer_modes(context: RegistryContext, questions: str) -> Mapping[str, FrozenMap]:
    """See `MODES`."""
    if not RegistryFacts.of(context.facts).modes:
        return {}
    subjects = ["", *read_subjects(questions)]
    calls = [read_setting("mode", subject or None) for subject in subjects]
    modes = [read_mode(*pair) for pair in zip(calls, context.client.ask_all(calls), strict=True)]
    return {
        subject: FrozenMap(mode=mode)
        for subject, mode in zip(subjects, modes, strict=True)
        if isinstance(mode, str)
    }


# ── single versions ─────────────────────────────────────────────────────────────────────


def _answer_version_users(context: RegistryContext, questions: str) -> Mapping[str, FrozenMap]:
    """See `VERSION_USERS`. A version that cannot be read is left out."""
    keys = read_subjects(questions)
    numbers = _answer_numbers(context, msgspec.json.encode([read_key(k)[0] for k in keys]).decode())
    calls = [read_version(*read_key(key), deleted=True) for key in keys]
    answers: dict[str, FrozenMap] = {}
    for key, call, answer in zip(keys, calls, context.client.ask_all(calls), strict=True):
        subject, number = read_key(key)
        stored = parse_answer(answer, call, partial(read_schema_version, subject=subject))
        if isinstance(stored, SchemaVersion) and subject in numbers:
            answers[key] = FrozenMap(
                schema_id=stored.id,
                next=numbers[subject]["next"],
                shared_with=_list_sharing(context, stored.id, (subject, number)),
                **_find_referring(context, subject, number),
            )
    return answers


def _list_sharing(context: RegistryContext, id: int, version: tuple[str, int]) -> tuple[str, ...]:
    """The other versions with an id."""
    call = list_uses(id)
    uses = parse_answer(context.ask(call), call, read_uses)
    if isinstance(uses, Fault):
        return ()
    return tuple(
        f"version {number} of {name}" for name, number in uses if (name, number) != version
    )


def _find_referring(context: RegistryContext, subject: str, number: int) -> dict[str, Value]:
    """The other subjects that refer to a version, and how many schemas do that have no name."""
    call = list_referring(subject, number)
    ids = parse_answer(context.ask(call), call, read_numbers)
    if isinstance(ids, Fault):
        return {"subjects": (), "unnamed": 0}
    names = name_schemas(context, sorted(ids))
    users = {name for id in ids for name in names.get(id, ())} - {subject}
    return {"subjects": tuple(sorted(users)), "unnamed": sum(id not in names for id in ids)}


_ANSWERS: Mapping[str, Callable[[RegistryContext, str], Mapping[str, FrozenMap]]] = {
    VERSIONS: _answer_versions,
    NUMBERS: _answer_numbers,
    USERS: _answer_users,
    CONTRACTS: _answer_contracts,
    MODES: _answer_modes,
    VERSION_USERS: _answer_version_users,
}


def measure_deletions(
    context: RegistryContext, ids: Sequence[Identity]
) -> Mapping[Identity, Impact]:
    """How many versions each subject has. What cannot be read is left out."""
    calls = [list_versions(identity.key) for identity in ids]
    answers = context.client.ask_all(calls)
    impacts: dict[Identity, Impact] = {}
    for identity, call, answer in zip(ids, calls, answers, strict=True):
        versions = parse_answer(answer, call, read_numbers)
        if not isinstance(versions, Fault):
            text = f"Deletes {render_count(len(versions), 'version')}."
            impacts[identity] = Impact(text, FrozenMap(versions=len(versions)))
    return impacts
