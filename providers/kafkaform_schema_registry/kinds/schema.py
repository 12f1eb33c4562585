"""`schema_registry_schema`: the latest schema of a subject.

Nothing identifies a subject but its name: ids belong to contents, which several subjects share, and
versions begin again after a permanent deletion. So a subject has no incarnation, and each request
says what shall be. A change registers a new version; versions that exist are never changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping

from kafkaform.core.change import Action, Change, Evidence, Step
from kafkaform.core.resource import Depth, Facts, Observed, Sweep, Use
from kafkaform.core.schema import NUMBER, STRING, AttributeSchema, list_of, make_schema, object_of
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.contract import Completion, Outlook, ResourceType

from ..formats.normal_form import FORMATS, inspect_schema
from . import subject_settings
from . import subject_settings as names
from .registry import (
    DELETE,
    NUMBERS,
    PURGE,
    REGISTER,
    SILENT,
    RegistryFacts,
    collect_answers,
    list_paths,
    make_step,
    name_listing,
)

KIND, TOPIC = "schema_registry_schema", "kafka_topic"
WRITTEN = ("subject", "format", "schema", "references")
MAX_BYTES = 1024 * 1024
"""Of a schema, in UTF-8. Registries keep it in one record, which has this limit by default."""


def _canonical(attributes: FrozenMap, _: Facts) -> FrozenMap:
    """The schema in its normal form, references by name. What is no schema keeps its text."""
    kind, text = str(attributes.get("format")), attributes.get("schema")
    changed: dict[str, Value] = {}
    if isinstance(text, str):
        elsewhere = bool(attributes.get("references"))
        if (normal := inspect_schema(kind, text, elsewhere=elsewhere).normal) != text:
            changed["schema"] = normal
    if "references" in attributes:
        references = attributes["references"]
        if (ordered := sort_references(references or ())) != references:
            changed["references"] = ordered
    return attributes.with_items(changed) if changed else attributes


def sort_references(references: tuple[FrozenMap, ...]) -> tuple[FrozenMap, ...]:
    """In the order of their names, which is the order in which they are compared."""
    return tuple(
        sorted(
            references, key=lambda reference: (str(reference["name"]), str(reference["subject"]))
        )
    )


def _target(declared: FrozenMap, _: Observed | None, facts: Facts, __: bool) -> FrozenMap:
    references = declared.get("references") or ()
    target = FrozenMap(
        subject=names.name_subject(declared),
        format=declared["format"],
        schema=declared["schema"],
        references=references,
    )
    return _canonical(target, facts)


def _refuse_references(references: tuple[FrozenMap, ...]) -> Iterator[tuple[str, str]]:
    called = [reference["name"] for reference in references]
    for name in dict.fromkeys(reference for reference in called if called.count(reference) > 1):
        yield f"two references are called {name!r}", "Keep one of them."
    for reference in references:
        if reference["version"] is None:
            continue
        if reference["version"] != int(reference["version"]) or reference["version"] < 1:
            yield (
                f"version {reference['version']} of {reference['subject']} is no version",
                "They begin at 1.",
            )


def _steps(change: Change, facts: Facts) -> tuple[Step, ...]:
    if change.action in SILENT:
        return ()
    if change.action is Action.DELETE:
        return _delete_steps(change, facts)
    paths = list_paths(change) if change.action is Action.CREATE else list_paths(change, *WRITTEN)
    if not paths:
        return ()
    after = change.after or EMPTY
    payload = {
        "subject": change.identity.key,
        "format": after["format"],
        "schema": after["schema"],
        "references": after.get("references") or (),
    }
    # A registry checks only versions of a subject that exists.
    evidence = Evidence.LOCAL if change.action is Action.CREATE else Evidence.REMOTE
    weight = 1 + len(str(after["schema"])) // 1024
    return (make_step(change, 1, REGISTER, payload, paths, weight=weight, evidence=evidence),)


def _delete_steps(change: Change, facts: Facts) -> tuple[Step, ...]:
    payload = {"subject": change.identity.key}
    soft = make_step(change, 1, DELETE, payload, list_paths(change))
    if not RegistryFacts.of(facts).hard_delete:
        return (soft,)
    return soft, make_step(change, 2, PURGE, payload, list_paths(change), after=(soft.id,))


def _find_uses(attributes: FrozenMap) -> tuple[Use, ...]:
    """The topic of the records, the level that a new version is checked at, and the subjects that
    the schema refers to."""
    topic, subject = names.find_topic(attributes), str(attributes["subject"])
    described = () if topic is None else (Use(TOPIC, topic, "describes", needed=False),)
    # Confluent's registry forgets the level of a subject with the subject.
    level = Use(
        subject_settings.SUBJECT_CONFIG,
        subject,
        "is checked at the level of",
        needed=False,
        ends_with=True,
    )
    references = attributes.get("references") or ()
    subjects = dict.fromkeys(str(reference["subject"]) for reference in references)
    return (
        *described,
        level,
        *(Use(KIND, name, "refers to") for name in subjects if name != subject),
    )


# ── references to the newest version ────────────────────────────────────────────────────


def list_followed(attributes: FrozenMap) -> Collection[str]:
    """The subjects whose newest version a block refers to."""
    references = attributes.get("references") or ()
    return sorted({str(item["subject"]) for item in references if item["version"] is None})


def _list_needs(subjects: Collection[str]) -> Mapping[str, Depth]:
    return {name_listing(NUMBERS, sorted(subjects)): Depth.FULL}


def _complete(
    attributes: FrozenMap, outlooks: Mapping[str, Outlook], sweeps: Mapping[str, Sweep]
) -> FrozenMap:
    """The block with the version that the plan leaves as the newest in each such reference."""
    answers = collect_answers(sweeps, NUMBERS)
    references = tuple(
        item.with_items({"version": _find_newest(str(item["subject"]), outlooks, answers)})
        if item["version"] is None
        else item
        for item in attributes.get("references") or ()
    )
    return attributes.with_items({"references": references})


def _find_newest(
    subject: str, outlooks: Mapping[str, Outlook], answers: Mapping[str, FrozenMap]
) -> int | None:
    """None if nobody knows."""
    outlook, answer = outlooks.get(subject), answers.get(subject, EMPTY)
    if outlook is not None and outlook.changes:
        return answer.get("next")
    if outlook is not None and isinstance(outlook.reading, Observed):
        version: int = outlook.reading.details["version"]
        return version
    return max(answer.get("versions") or (), default=None)


_ENDINGS = {"avro": ".avsc", "json": ".json", "protobuf": ".proto"}
"""Format -> the ending of files with such a schema."""

TYPE = ResourceType(
    name=KIND,
    schema=make_schema(
        "The latest schema of a subject; a change registers a new version. The import id is the "
        "subject.",
        names.SUBJECT,
        names.TOPIC_NAME,
        names.PART,
        names.STRATEGY,
        AttributeSchema(
            "format",
            STRING,
            "Format of the schema.",
            default="avro",
            choices=tuple(FORMATS),
        ),
        AttributeSchema(
            "schema",
            STRING,
            'Text of the schema, such as file("order.avsc"). Whitespace, comments of protobuf and '
            "the order of JSON attributes make no difference.",
            required=True,
            ending=lambda arguments: _ENDINGS[str(arguments.get("format") or "avro")],
        ),
        AttributeSchema(
            "references",
            list_of(
                object_of({"name": STRING, "subject": STRING, "version": NUMBER}, {"version": None})
            ),
            "Schemas of other subjects that this one uses: the name by which it does so, the "
            "subject and the version. Without a version, it is the one that the plan leaves as the "
            "newest.",
            refuses=_refuse_references,
        ),
        AttributeSchema("version", NUMBER, "The newest version of the subject.", computed=True),
        AttributeSchema(
            "schema_id",
            NUMBER,
            "Id of the content of that version, which records carry.",
            computed=True,
        ),
        conflicts=(*names.CONFLICTS, ("subject", "strategy")),
    ),
    key=names.name_subject,
    canonical=_canonical,
    target=_target,
    steps=_steps,
    import_key=names.check_subject,
    protect=True,
    uses=_find_uses,
    used_kinds=frozenset({TOPIC, subject_settings.SUBJECT_CONFIG, KIND}),
    completion=Completion(list_followed, _list_needs, _complete),
    renewed=frozenset({"version", "schema_id"}),
)
