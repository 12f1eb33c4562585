"""`schema_registry_schema`: the latest schema of a subject.

Nothing identifies a subject but its name: ids belong to contents, which several subjects share, and
versions begin again after a permanent deletion. So a subject has no incarnation, and each request
says what shall be. A change registers a new version; versions that exist are never changed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from kafkaform.core.change import Action, Change, Evidence, Path, Step
from kafkaform.core.resource import Depth, Facts, Observed, Sweep, Use
from kafkaform.core.schema import (
    NUMBER,
    STRING,
    AttributeSchema,
    list_of,
    make_schema,
    map_of,
    object_of,
)
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.contract import BlockCompletion, Outlook, ResourceType

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
WRITTEN = ("subject", "format", "schema", "references", "history")
MAX_BYTES = 1024 * 1024
"""Of a schema, in UTF-8. Registries keep it in one record, which has this limit by default."""


def _canonical(attributes: FrozenMap, _: Facts) -> FrozenMap:
    """The schema in its normal form, references by name. What is no schema keeps its text."""
    if versions := attributes.get("versions"):
        added = {"history": number_versions(versions), "schema": versions[-1]}
        attributes = attributes.with_items(added)
    kind, text = str(attributes.get("format")), attributes.get("schema")
    changed: dict[str, Value] = {}
    if isinstance(text, str):
        elsewhere = bool(attributes.get("references"))
        if (normal := inspect_schema(kind, text, elsewhere=elsewhere).normal) != text:
            changed["schema"] = normal
    if history := attributes.get("history"):
        changed["history"] = FrozenMap(
            {
                number: inspect_schema(kind, str(version)).normal
                for number, version in history.items()
            }
        )
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
    versions = declared.get("versions")
    target = FrozenMap(
        subject=names.name_subject(declared),
        format=declared["format"],
        schema=versions[-1] if versions else declared["schema"],
        references=declared.get("references") or (),
        history=number_versions(versions) if versions else None,
    )
    return _canonical(target, facts)


def number_versions(texts: Iterable[str]) -> FrozenMap:
    """The texts by their places, from 1 on. They are not the numbers of the registry, which go on
    behind versions that were deleted."""
    return FrozenMap({str(place): text for place, text in enumerate(texts, 1)})


def list_new_places(change: Change) -> list[str]:
    """The places in the history that the change fills, in order."""
    places = [item.path[1] for item in change.paths if item.path[0] == "history"]
    return sorted(places, key=int)


def _name_schema(attributes: FrozenMap) -> str:
    if not attributes.get("schema") and not attributes.get("versions"):
        raise ValueError("set schema, or versions with all that there should be")
    return names.name_subject(attributes)


def _write_arguments(attributes: FrozenMap) -> FrozenMap:
    """The newest schema, or all versions if there are several and the references allow it."""
    history = attributes.get("history") or EMPTY
    arguments = attributes.without(["history"])
    if len(history) < 2 or attributes.get("references"):
        return arguments
    texts = tuple(history[place] for place in sorted(history, key=int))
    return arguments.without(["schema", "references"]).with_items({"versions": texts})


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
    places = list_new_places(change)
    texts = [after["history"][place] for place in places] or [after["schema"]]
    steps: list[Step] = []
    for number, text in enumerate(texts, 1):
        last, place = number == len(texts), places[number - 1] if places else ""
        payload = {
            "subject": change.identity.key,
            "format": after["format"],
            "schema": text,
            "references": after.get("references") or (),
        }
        step = make_step(
            change,
            number,
            REGISTER,
            payload,
            tuple(
                path for path in paths if _is_made_true(path, place, first=number == 1, last=last)
            ),
            weight=1 + len(str(text)) // 1024,
            evidence=_find_evidence(change, facts),
            # All that come before, so that what they leave is nobody else's change.
            after=tuple(earlier.id for earlier in steps),
        )
        steps.append(step)
    return tuple(steps)


def _find_evidence(change: Change, facts: Facts) -> Evidence:
    """A registry checks only versions of a subject that exists, and some none with references."""
    refers = bool((change.after or EMPTY).get("references"))
    unasked = refers and not RegistryFacts.of(facts).checks_references
    return Evidence.LOCAL if change.action is Action.CREATE or unasked else Evidence.REMOTE


def _is_made_true(path: Path, place: str, *, first: bool, last: bool) -> bool:
    """Whether the request for the version at this place makes a path true: its own place, and the
    newest schema if it is the last. The first makes everything else."""
    if path[0] == "history":
        return path[1] == place
    return last if path[0] == "schema" else first


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
        live = outlook.reading.attributes if isinstance(outlook.reading, Observed) else EMPTY
        new = len(outlook.after.get("history") or ()) - len(live.get("history") or ())
        first: int | None = answer.get("next")
        return None if first is None else first + max(new, 1) - 1
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
            ending=lambda arguments: _ENDINGS[str(arguments.get("format") or "avro")],
        ),
        AttributeSchema(
            "versions",
            list_of(STRING),
            "All versions that the subject should have, the oldest first, instead of schema: those "
            "that it lacks are registered in order. Needs `all_versions` in the provider block.",
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
        AttributeSchema(
            "version",
            NUMBER,
            "The newest version of the subject.",
            computed=True,
            instead="Leave out version in a reference, which then follows the newest version.",
        ),
        AttributeSchema(
            "history",
            map_of(STRING),
            "The schema of each version by its place, from 1 on, if `all_versions` is set.",
            computed=True,
        ),
        AttributeSchema(
            "schema_id",
            NUMBER,
            "Id of the content of that version, which records carry.",
            computed=True,
        ),
        conflicts=(
            *names.CONFLICTS,
            ("subject", "strategy"),
            ("schema", "versions"),
            ("versions", "references"),
        ),
    ),
    key=_name_schema,
    canonical=_canonical,
    target=_target,
    steps=_steps,
    import_key=names.check_subject,
    written=_write_arguments,
    protect=True,
    uses=_find_uses,
    used_kinds=frozenset({TOPIC, subject_settings.SUBJECT_CONFIG, KIND}),
    completion=BlockCompletion(list_followed, _list_needs, _complete),
    renewed=frozenset({"version", "schema_id"}),
)
