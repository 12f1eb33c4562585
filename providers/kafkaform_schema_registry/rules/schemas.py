"""Rules of schemas that say nothing about other versions: texts, references and deletions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.change import Action, Change
from kafkaform.core.diagnostics import suggest
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import Depth, Facts, Identity
from kafkaform.core.rule import Judge, Needs, Rule, Scene, Survey
from kafkaform.core.text import render_count
from kafkaform.core.value import EMPTY, FrozenMap, freeze

from ..formats.faults import SchemaFault
from ..formats.normal_form import FORMATS, inspect_schema
from ..kinds.registry import NUMBERS, RegistryFacts, collect_answers, name_listing
from ..kinds.schema import KIND, MAX_BYTES, WRITTEN, list_followed, list_new_places

VERSIONS = "schema_registry_next_versions"
"""At what level new versions are checked, and what the registry says about them."""
USERS = "schema_registry_users"
"""Which schemas refer to subjects."""


class NextVersion(Struct, frozen=True):
    """A schema that a plan registers for a subject that exists."""

    subject: str
    format: str
    schema: str
    references: tuple[Mapping[str, Any], ...]
    level: str | None
    """The level that the plan gives to the subject; INHERITED if it takes away its own. None if the
    plan does not change it."""
    registry_level: str | None
    """The level that the plan gives to the registry, None if it does not change it."""
    metadata: Any = None
    """Canonical metadata, None if the version takes over those of the one before."""
    rule_set: Any = None
    """The same for rules."""
    regrouped: bool = False
    """The plan changes which versions are compared with each other (`compatibility_group`)."""


def read_versions(questions: str) -> list[NextVersion]:
    """The questions of a listing of VERSIONS."""
    versions = msgspec.json.decode(questions, type=list[NextVersion])
    return [
        replace(item, metadata=freeze(item.metadata), rule_set=freeze(item.rule_set))
        for item in versions
    ]


TYPES = (KIND,)
WRITING = (Action.CREATE, Action.UPDATE)
PROOFS = "tests/cluster/claims/test_schemas.py::"
"""Where the tests of these rules with a real registry are."""
MAX_NAMES = 5
"""Subjects that a sentence names."""
TEXT = ("schema",)

INVALID = Rule(
    "schema-invalid",
    "The text is no schema of its format",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.BLOCK,
    "Serializers cannot use such a text, and Confluent's registry refuses it with error 42201. The "
    "rules are those of the Avro specification 1.12, of JSON Schema draft-04 to 2020-12, and of "
    "the protobuf language.",
    'schema = jsonencode({ type = "record", name = "Order", fields = [{ name = "id", '
    'type = "lng" }] })',
    "Correct the schema, or set format.",
    Block.IMPOSSIBLE,
    proof=f"{PROOFS}test_avro_itself_refuses_what_is_no_schema",
)
TOO_LARGE = Rule(
    "schema-too-large",
    "The schema is larger than registries take",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.BLOCK,
    "Registries store a schema in one record of a topic, and brokers take records up to 1 MiB "
    "unless message.max.bytes says otherwise.",
    'schema = file("all-events.proto")   # 1.4 MiB',
    "Divide it, and refer to the parts with references.",
    Block.IMPOSSIBLE,
)
REFERENCE_MISSING = Rule(
    "schema-reference-missing",
    "A reference leads to a version that will not exist",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.SYSTEM,
    "A schema that refers to another one can only be parsed with it, so a registry does not take "
    "it without.",
    'references = [{ name = "Money", subject = "money-value", version = 7 }]   # the latest is 2',
    "Refer to a version that exists, or leave out version for the newest one.",
    Block.IMPOSSIBLE,
    proof=f"{PROOFS}test_a_reference_to_nothing_is_refused",
)
REFERENCE_FOLLOWS = Rule(
    "schema-reference-follows",
    "A reference leads to a version that the same plan registers",
    Level.NOTE,
    Harm.NONE,
    TYPES,
    Needs.SYSTEM,
    "Versions are numbered one after the other, also behind those that were deleted softly. The "
    "schema is registered after the one that it refers to, and not at all if that one fails.",
    'references = [{ name = "Money", subject = "money-value" }]   # whose schema changes, too',
    proof=f"{PROOFS}test_a_version_has_the_number_that_was_foreseen",
)
REFERENCE_CIRCLE = Rule(
    "schema-reference-circle",
    "References without a version lead in a circle",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.PLAN,
    "A schema that refers to the newest version of another one gets a new version whenever that "
    "one does. In a circle, each new version demands another one, without end.",
    'references = [{ name = "Cart", subject = "carts-value" }]   # and "carts-value" refers back',
    "Write the version in one of these references.",
    Block.IMPOSSIBLE,
)
VERSIONS_UNREAD = Rule(
    "schema-versions-unread",
    "All versions are declared, and only the newest one is read",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.FACTS,
    "Which versions are missing can only be told by reading all of them, which takes a request for "
    "each and is therefore switched off unless the provider block says otherwise.",
    'versions = [file("v1.avsc"), file("v2.avsc")]   # and no all_versions = true',
    "Set all_versions = true in the provider block.",
    Block.IMPOSSIBLE,
)
VERSION_TWICE = Rule(
    "schema-version-twice",
    "Two of the declared versions are the same schema",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.BLOCK,
    "A registry does not register a schema twice: it answers with the id of the version that it "
    "has.",
    'versions = [file("v1.avsc"), file("v2.avsc"), file("v1.avsc")]',
    "Remove one of them, or change something that harms nobody, such as doc.",
    Block.IMPOSSIBLE,
    proof=f"{PROOFS}test_an_older_schema_does_not_become_the_latest",
)
HISTORY_DIFFERS = Rule(
    "schema-history-differs",
    "The subject has other versions than are declared",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.OBJECT,
    "A registry adds versions at the end and never changes one, so what it has must be the "
    "beginning of what is declared.",
    'versions = [file("v2.avsc"), file("v3.avsc")]   # and the subject has v1 and v2',
    "Declare the versions that there are, or delete those that should not be there "
    "(kafkaform alter schema SUBJECT --delete-version N).",
    Block.IMPOSSIBLE,
    proof=f"{PROOFS}test_a_version_has_the_number_that_was_foreseen",
)
REFERRED = Rule(
    "schema-referred",
    "Schemas of other subjects refer to a subject that is deleted",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.SYSTEM,
    "Registries refuse to delete what others refer to (error 42206), because those could not be "
    "parsed without it. Old versions count as well, and with Apicurio also those that are deleted "
    "softly.",
    'removed { from = schema_registry_schema.money … }   # and "orders-value" refers to it',
    "Delete these subjects first, or keep this one.",
    Block.IMPOSSIBLE,
    proof=f"{PROOFS}test_a_subject_that_others_refer_to_is_not_deleted",
)
DELETED_REFER = (
    "This registry counts schemas that are deleted softly: set hard_delete = true in the provider "
    "block, or keep this subject."
)
"""The fix if all users of a subject go with it."""
DELETED = Rule(
    "schema-deleted",
    "A subject is deleted",
    Level.CAUTION,
    Harm.REFUSED_WRITES,
    TYPES,
    Needs.OBJECT,
    "Serializers with auto.register.schemas=false or use.latest.version=true ask the registry for "
    "the subject, which then has no version (error 40401). Records that were written can still be "
    "read by the ids of their schemas.",
    "removed { from = schema_registry_schema.order … }",
    "Stop the writers first.",
    proof=f"{PROOFS}test_writers_do_not_find_a_deleted_subject",
)
PURGED = Rule(
    "schema-purged",
    "All versions of a subject are deleted permanently",
    Level.DANGER,
    Harm.DATA_LOSS,
    TYPES,
    Needs.OBJECT,
    "Records contain the id of their schema. After a permanent deletion the registry does not know "
    "the id any more (error 40403), so that readers which have not cached it cannot decode them.",
    "hard_delete = true   # and a subject is deleted",
    "Delete softly (without hard_delete) as long as a topic has records of the subject.",
    proof=f"{PROOFS}test_ids_of_a_purged_subject_are_gone",
)


# ── texts ───────────────────────────────────────────────────────────────────────────────


def _judge_text(change: Change, _: Facts) -> Iterator[Finding]:
    after = change.after
    if change.action not in WRITING or after is None or not _is_written(change):
        return
    kind, text = str(after.get("format")), after.get("schema")
    if kind not in FORMATS or not isinstance(text, str):
        return
    versions = after.get("history") or EMPTY
    yield from _judge_versions(kind, versions)
    elsewhere = bool(after.get("references"))
    for fault in () if versions else inspect_schema(kind, text, elsewhere=elsewhere).faults:
        yield _find_invalid(kind, fault)
    size = len(text.encode("utf-8", "surrogatepass"))
    if size > MAX_BYTES:
        yield TOO_LARGE.find(
            f"the schema has {size:,} bytes, and registries take {MAX_BYTES:,}",
            TEXT,
            figures=FrozenMap(bytes=size),
        )


def _judge_versions(kind: str, versions: FrozenMap) -> Iterator[Finding]:
    """versions: place -> text, in its normal form."""
    places: dict[str, str] = {}
    for place in sorted(versions, key=int):
        text = str(versions[place])
        for fault in inspect_schema(kind, text).faults:
            finding = _find_invalid(kind, fault)
            index = str(int(place) - 1)
            title = f"version {place} of the list"
            yield replace(finding, text=f"{title}: {finding.text}", path=("versions", index))
        if text in places:
            both = f"versions {places[text]} and {place} of the list are the same schema"
            yield VERSION_TWICE.find(both, ("versions",))
        places.setdefault(text, place)


def _judge_history(change: Change, _: Facts) -> Iterator[Finding]:
    """What the registry has must be the beginning of what is declared."""
    before, after = change.before or EMPTY, change.after or EMPTY
    live, declared = before.get("history") or EMPTY, after.get("history") or EMPTY
    name = change.identity.key
    if change.action not in WRITING or not declared:
        return
    differing = [place for place in live if live[place] != declared.get(place)]
    if not differing:
        return
    place = min(differing, key=int)
    if place not in declared:
        versions = render_count(len(live), "version")
        text = f"{name} has {versions}, and only {len(declared)} declared"
    else:
        text = f"version {place} of {name}, counted from the oldest, is another schema"
    yield HISTORY_DIFFERS.find(text, ("versions",), figures=FrozenMap(version=int(place)))


def _judge_reading(change: Change, facts: Facts) -> Iterator[Finding]:
    versions = (change.after or EMPTY).get("history")
    if change.action in WRITING and versions and not RegistryFacts.of(facts).all_versions:
        yield VERSIONS_UNREAD.find("which versions the registry has is not read", ("versions",))


def _is_written(change: Change) -> bool:
    """A change from nothing, as `validate` makes it, has no paths."""
    return change.before is None or any(item.path[0] in WRITTEN for item in change.paths)


def _find_invalid(kind: str, fault: SchemaFault) -> Finding:
    position = f" (line {fault.line}, column {fault.column} of the schema)" if fault.line else ""
    figures = FrozenMap(line=fault.line, column=fault.column) if fault.line else EMPTY
    title = FORMATS[kind].title
    article = "an" if title[0] in "AEIOU" else "a"
    return INVALID.find(
        f"the text is not {article} {title}: {fault.text}{position}",
        TEXT,
        figures=figures,
        fix=fault.fix or None,
    )


# ── deletions ───────────────────────────────────────────────────────────────────────────


def _judge_deletion(change: Change, facts: Facts) -> Iterator[Finding]:
    if change.action is not Action.DELETE:
        return
    name = change.identity.key
    yield DELETED.find(f"writers that look up the schema of {name} fail from then on")
    if RegistryFacts.of(facts).hard_delete:
        yield PURGED.find(
            f"all versions of {name} are deleted permanently: records that were written with them "
            "cannot be read by clients that have not cached them"
        )


def _survey_users(scene: Scene) -> Iterator[tuple[Identity, Finding]]:
    """A subject whose every user goes with it can be deleted: users go first. Some registries count
    users that are deleted softly, too."""
    facts = RegistryFacts.of(scene.facts)
    deleted = {change.identity.key for change in scene.changes if _is_deleted(change)}
    stays = facts.deleted_refer and not facts.hard_delete
    answers = collect_answers(scene.sweeps, USERS)
    for change in scene.changes:
        answer = answers.get(change.identity.key)
        if not _is_deleted(change) or answer is None:
            continue
        users = [subject for subject in answer["subjects"] if stays or subject not in deleted]
        unnamed = answer["unnamed"]
        if users:
            surplus = len(users) - MAX_NAMES
            listing = ", ".join(users[:MAX_NAMES])
            names = f"{listing} and {surplus} more" if surplus > 0 else listing
            text = f"{names} {'refers' if len(users) == 1 else 'refer'} to {change.identity.key}"
            yield (
                change.identity,
                REFERRED.find(
                    text,
                    figures=FrozenMap(subjects=tuple(users)),
                    fix=DELETED_REFER if deleted.issuperset(users) else None,
                ),
            )
        elif unnamed:
            # Their subjects may be among those that go, which the registry does not tell.
            level = Level.CAUTION if len(deleted) > 1 else None
            schemas = render_count(unnamed, "schema")
            verb = "refers" if unnamed == 1 else "refer"
            text = f"{schemas} of other subjects {verb} to {change.identity.key}"
            yield (
                change.identity,
                REFERRED.find(text, figures=FrozenMap(schemas=unnamed), level=level),
            )


def _is_deleted(change: Change) -> bool:
    return _is_schema(change) and change.action is Action.DELETE and change.effective


# ── references ──────────────────────────────────────────────────────────────────────────


def _list_references(change: Change) -> tuple[FrozenMap, ...]:
    """The references that a change writes."""
    if not _is_schema(change) or change.action not in WRITING or change.after is None:
        return ()
    if not change.effective or not _is_written(change):
        return ()
    return tuple(change.after.get("references") or ())


def _survey_references(scene: Scene) -> Iterator[tuple[Identity, Finding]]:
    answers = collect_answers(scene.sweeps, NUMBERS)
    schemas = {change.identity.key: change for change in scene.changes if _is_schema(change)}
    sweep = scene.sweeps.get(KIND)
    subjects = {item.identity.key for item in sweep.items} if sweep else set[str]()
    subjects |= _list_declared(scene.changes)
    for change in scene.changes:
        for reference in _list_references(change):
            name, subject, version = change.identity.key, reference["subject"], reference["version"]
            if version is None:
                yield change.identity, _find_unresolved(name, subject, schemas, answers, subjects)
            elif subject in answers and subject != name:
                findings = _judge_reference(
                    name, reference, answers[subject], schemas.get(subject), subjects
                )
                yield from ((change.identity, finding) for finding in findings)


def _judge_reference(
    name: str,
    reference: FrozenMap,
    answer: FrozenMap,
    target: Change | None,
    subjects: Set[str],
) -> Iterator[Finding]:
    """answer: see `NUMBERS`; target: what the plan does to the subject that it refers to."""
    subject, version = str(reference["subject"]), int(reference["version"])
    versions: tuple[int, ...] = answer["versions"]
    path = ("references",)
    if lack := _find_lack(subject, version, answer, target):
        near = "" if versions else suggest(subject, subjects - {name, subject})
        # Which versions were deleted softly, not every registry says.
        is_unsure = target is not None and not versions and answer["next"] is None
        yield REFERENCE_MISSING.find(
            f"{name} refers to version {version} of {subject}, and {lack}",
            path,
            fix=near or None,
            level=Level.CAUTION if is_unsure else None,
        )
    elif version not in versions:
        text = f"version {version} of {subject} is the one that this plan registers"
        yield REFERENCE_FOLLOWS.find(text, path)


def _find_unresolved(
    name: str,
    subject: str,
    schemas: Mapping[str, Change],
    answers: Mapping[str, FrozenMap],
    subjects: Set[str],
) -> Finding:
    """Why nobody knows which version of the subject will be its newest."""
    if subject in answers and not answers[subject]["versions"] and subject not in schemas:
        text = f"{name} refers to the newest version of {subject}, and there is no such subject"
        near = suggest(subject, subjects - {name, subject})
        return REFERENCE_MISSING.find(text, ("references",), fix=near or None)
    if circle := _find_circle(subject, schemas):
        text = f"each of these needs the newest version of the next one: {' → '.join(circle)}"
        return REFERENCE_CIRCLE.find(text, ("references",))
    text = f"{name} refers to the newest version of {subject}, and nobody can tell which that is"
    return REFERENCE_MISSING.find(text, ("references",), fix="Write the version.")


def _find_circle(start: str, schemas: Mapping[str, Change]) -> tuple[str, ...]:
    """Subjects whose open references lead in a circle, reached from this one; the first is also the
    last. None of them if there is no circle."""
    reached: dict[str, None] = {}
    subject: str | None = start
    while subject is not None and subject not in reached:
        reached[subject] = None
        after = schemas[subject].after if subject in schemas else None
        subject = next(iter(list_followed(after or EMPTY)), None)
    if subject is None:
        return ()
    names = [*reached]
    return (*names[names.index(subject) :], subject)


def _find_lack(subject: str, version: int, answer: FrozenMap, change: Change | None) -> str:
    """Why there is no such version once the plan is made; empty if there is one. answer: see
    `NUMBERS`; change: what the plan does to the subject."""
    versions: tuple[int, ...] = answer["versions"]
    writes = change is not None and change.action in WRITING
    if change is not None and change.action is Action.DELETE and change.effective:
        return f"this plan deletes {subject}"
    if change is not None and change.blocked and version not in versions:
        return f"{change.address}, which would register it, is blocked"
    first = answer["next"] or max(versions, default=0) + 1
    number = max(len(list_new_places(change)), 1) if change is not None and writes else 0
    if version in versions or version in range(first, first + number):
        return ""
    if versions:
        numbers = render_count(len(versions), "version")
        return f"it has {numbers}, of which {max(versions)} is the latest"
    if writes:
        return f"this plan registers version {first + number - 1}"
    return "there is no such subject"


def _is_schema(change: Change) -> bool:
    return change.identity.kind == KIND


def _list_declared(changes: Sequence[Change]) -> set[str]:
    """The subjects that have a schema after the plan, as far as it knows."""
    schemas = filter(_is_schema, changes)
    return {change.identity.key for change in schemas if change.after is not None}


def list_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """Which versions there are of what is referred to, and who refers to what is deleted; all
    subjects, if one is referred to that nothing declares."""
    references = sorted(
        {str(reference["subject"]) for change in changes for reference in _list_references(change)}
    )
    deleted = sorted(change.identity.key for change in changes if _is_deleted(change))
    questions = ((NUMBERS, references), (USERS, deleted))
    needs = {name_listing(kind, names): Depth.FULL for kind, names in questions if names}
    return needs if _list_declared(changes).issuperset(references) else {KIND: Depth.NAMES, **needs}


JUDGES = (
    Judge((INVALID, TOO_LARGE, VERSION_TWICE), TYPES, Needs.BLOCK, _judge_text),
    Judge((VERSIONS_UNREAD,), TYPES, Needs.FACTS, _judge_reading),
    Judge((HISTORY_DIFFERS,), TYPES, Needs.OBJECT, _judge_history),
    Judge((DELETED, PURGED), TYPES, Needs.OBJECT, _judge_deletion),
)
SURVEYS = (
    Survey((REFERRED,), _survey_users),
    Survey((REFERENCE_MISSING, REFERENCE_FOLLOWS, REFERENCE_CIRCLE), _survey_references),
)
