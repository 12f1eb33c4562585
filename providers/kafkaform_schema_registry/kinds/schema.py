"""`schema_registry_schema`: the latest schema of a subject.

Nothing identifies a subject but its name: ids belong to contents, which several subjects share, and
versions begin again after a permanent deletion. So a subject has no incarnation, and each request
says what shall be. A change registers a new version; versions that exist are never changed. The
metadata and rules of a version are a part of it: a change of them alone registers one, too.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping

from kafkaform.core.change import Action, Change, Evidence, Path, Repeat, Step
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
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef, Value
from kafkaform.provider.contract import BlockCompletion, Outlook, ResourceType

from ..formats.normal_form import FORMATS, inspect_schema
from . import subject_settings
from . import subject_settings as names
from .contracts import (
    METADATA,
    METADATA_TYPE,
    RULE_SET,
    RULE_SET_TYPE,
    SENSITIVE,
    flatten_metadata,
    flatten_rule_set,
    keep_inherited,
    name_sensitive,
    refuse_metadata,
    refuse_rule_set,
    write_metadata,
    write_rule_set,
)
from .registry import (
    DELETE,
    IMPORT,
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
NUMBERS_OF_VERSION = ("schema_id", "version")
WRITTEN = (
    "subject",
    "format",
    "schema",
    "references",
    "history",
    METADATA,
    RULE_SET,
    "sensitive_properties",
    *NUMBERS_OF_VERSION,
)
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
    if metadata := attributes.get(METADATA):
        changed[METADATA] = flatten_metadata(metadata)
    if rule_set := attributes.get(RULE_SET):
        changed[RULE_SET] = flatten_rule_set(rule_set)
    return attributes.with_items(changed) if changed else attributes


def sort_references(references: tuple[FrozenMap, ...]) -> tuple[FrozenMap, ...]:
    """In the order of their names, which is the order in which they are compared."""
    return tuple(
        sorted(
            references, key=lambda reference: (str(reference["name"]), str(reference["subject"]))
        )
    )


def _target(declared: FrozenMap, observed: Observed | None, facts: Facts, _: bool) -> FrozenMap:
    versions, numbers = declared.get("versions"), declared.get("import") or EMPTY
    target = FrozenMap(
        subject=names.name_subject(declared),
        format=declared["format"],
        schema=versions[-1] if versions else declared["schema"],
        references=declared.get("references") or (),
        history=number_versions(versions) if versions else None,
        **_choose_contract(declared, observed),
        schema_id=numbers.get("id"),
        version=numbers.get("version"),
    )
    return _canonical(target, facts)


def _choose_contract(declared: FrozenMap, observed: Observed | None) -> Mapping[str, Value]:
    """What the version itself has of metadata and rules. What a block leaves out is not managed: a
    registry takes it over from the version before."""
    secrets = _select_secrets(declared)
    contract = _flatten_contract(declared)
    if observed is not None:
        for name, value in contract.items():
            inherited = {path[1] for path in observed.foreign if path[0] == name}
            live = observed.attributes.get(name) or EMPTY
            contract[name] = keep_inherited(value, live, inherited)
    return {**contract, "sensitive_properties": secrets or None}


def _flatten_contract(declared: FrozenMap) -> dict[str, FrozenMap]:
    """The canonical metadata and rules of a block, as far as it declares some."""
    secrets = _select_secrets(declared)
    metadata, rule_set = declared.get(METADATA), declared.get(RULE_SET)
    contract: dict[str, FrozenMap] = {}
    if metadata is not None or secrets:
        own = flatten_metadata(metadata or EMPTY)
        contract[METADATA] = own.with_items(name_sensitive(secrets))
    if rule_set is not None:
        contract[RULE_SET] = flatten_rule_set(rule_set)
    return contract


def _select_ours(target: FrozenMap, declared: FrozenMap) -> FrozenMap:
    """The target without what settings add to metadata and rules."""
    return target.with_items(
        {
            name: FrozenMap({key: value for key, value in target[name].items() if key in own})
            for name, own in _flatten_contract(declared).items()
        }
    )


def _select_secrets(declared: FrozenMap) -> FrozenMap:
    """The references that are given; null leaves a secret out."""
    references = declared.get("sensitive_properties") or EMPTY
    return FrozenMap({name: ref for name, ref in references.items() if ref is not None})


def number_versions(texts: Iterable[str]) -> FrozenMap:
    """The texts by their places, from 1 on. They are not the numbers of the registry, which go on
    behind versions that were deleted."""
    return FrozenMap({str(place): text for place, text in enumerate(texts, 1)})


def brings_id(change: Change) -> bool:
    """True for a version that is to have the id of `import`, and does not have it yet."""
    return any(item.path == ("schema_id",) and item.after is not None for item in change.paths)


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
    metadata = attributes.get(METADATA) or EMPTY
    keys = [key.partition(".") for key in metadata]
    secrets = {name: SecretRef("env", "") for head, _, name in keys if head == SENSITIVE}
    contract = {
        METADATA: write_metadata(metadata),
        RULE_SET: write_rule_set(attributes.get(RULE_SET) or EMPTY),
        "sensitive_properties": FrozenMap(secrets) or None,
    }
    is_plain = not any(contract.values()) and not attributes.get("references")
    arguments = attributes.without(["history", *NUMBERS_OF_VERSION, *contract]).with_items(
        {name: value for name, value in contract.items() if value is not None}
    )
    # A text that comes twice cannot be declared: no registry makes an older version the latest one
    # again.
    if len(history) < 2 or not is_plain or len(set(history.values())) < len(history):
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


def _refuse_import(numbers: FrozenMap) -> Iterator[tuple[str, str]]:
    for name in ("id", "version"):
        number = numbers.get(name)
        if number is not None and (number != int(number) or not 1 <= number < 2**31):
            yield f"{number} is no {name} of a schema", "Both are whole numbers from 1 on."


def _steps(change: Change, facts: Facts) -> tuple[Step, ...]:
    if change.action in SILENT:
        return ()
    if change.action is Action.DELETE:
        return _delete_steps(change, facts)
    paths = list_paths(change) if change.action is Action.CREATE else list_paths(change, *WRITTEN)
    if not paths and not _sends_secrets(change):
        return ()
    after = change.after or EMPTY
    places = list_new_places(change)
    texts = [after["history"][place] for place in places] or [after["schema"]]
    secrets = after.get("sensitive_properties") or EMPTY
    contract = select_own_contract(after, change.theirs)
    further = {name: contract.get(name) for name in (METADATA, RULE_SET)}
    numbers = {"id": after.get("schema_id"), "version": after.get("version")}
    imports = brings_id(change)
    further |= {"secrets": secrets or None, "import": FrozenMap(numbers) if imports else None}
    steps: list[Step] = []
    for number, text in enumerate(texts, 1):
        last, place = number == len(texts), places[number - 1] if places else ""
        payload = {
            "subject": change.identity.key,
            "format": after["format"],
            "schema": text,
            "references": after.get("references") or (),
            **{name: value for name, value in further.items() if value is not None},
        }
        step = make_step(
            change,
            number,
            IMPORT if imports else REGISTER,
            payload,
            tuple(
                path for path in paths if _is_made_true(path, place, first=number == 1, last=last)
            ),
            weight=1 + len(str(text)) // 1024,
            evidence=_find_evidence(change, facts),
            # All that come before, so that what they leave is nobody else's change.
            after=tuple(earlier.id for earlier in steps),
            repeat=Repeat.NEVER if secrets else Repeat.SAFE,
        )
        steps.append(step)
    return tuple(steps)


def select_own_contract(attributes: FrozenMap, foreign: Collection[Path]) -> FrozenMap:
    """Metadata and rules without what a registry adds to them. foreign: see `Observed`."""
    return FrozenMap(
        {
            name: attributes[name].without(path[1] for path in foreign if path[0] == name)
            for name in (METADATA, RULE_SET)
            if attributes.get(name) is not None
        }
    )


def _sends_secrets(change: Change) -> bool:
    """True if a new version asks for the secrets to be sent again."""
    # An adoption keeps the secrets that are set: whether they are the declared ones is unknown.
    version = change.row_after.secret_version
    has_secrets = bool((change.after or EMPTY).get("sensitive_properties"))
    is_new = version is not None and version != change.row_before.secret_version
    return has_secrets and is_new and not change.adopts


def _find_evidence(change: Change, facts: Facts) -> Evidence:
    """A registry checks only versions of a subject that exists, and some none with references."""
    after = change.after or EMPTY
    unasked = bool(after.get("references")) and not RegistryFacts.of(facts).checks_references
    # In mode IMPORT nothing is compared, and a dry run knows no secrets.
    unasked = unasked or brings_id(change) or bool(after.get("sensitive_properties"))
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
    # A soft deletion is enough unless the provider block says otherwise: clients can still read
    # older records by the id.
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
            METADATA,
            METADATA_TYPE,
            "Metadata of the version: properties by name, and tags by the path of a field. {} "
            "removes all of it; it is taken over from the version before if left out.",
            refuses=refuse_metadata,
        ),
        AttributeSchema(
            "sensitive_properties",
            map_of(STRING),
            "Properties of the metadata that are secrets, by name, such as secret_env(…). They are "
            "sent, and neither shown nor recorded.",
            secret=True,
        ),
        AttributeSchema(
            "sensitive_properties_version",
            STRING,
            "Any text. When it changes, sensitive_properties are sent again, with a new version.",
        ),
        AttributeSchema(
            RULE_SET,
            RULE_SET_TYPE,
            "Rules that clients execute, in order. kind: TRANSFORM (the default), CONDITION; mode: "
            "WRITE, READ, WRITEREAD (the default), or of migration rules UPGRADE, DOWNGRADE, "
            "UPDOWN. {} removes all of them; they are taken over from the version before if left "
            "out.",
            refuses=refuse_rule_set,
        ),
        AttributeSchema(
            "import",
            object_of({"id": NUMBER, "version": NUMBER}, {"version": None}),
            "The id that the schema has in another registry and keeps here, and its version there. "
            "A schema that is not registered yet needs mode IMPORT for that.",
            refuses=_refuse_import,
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
            ("versions", METADATA),
            ("versions", "sensitive_properties"),
            ("versions", RULE_SET),
            ("versions", "import"),
        ),
    ),
    key=_name_schema,
    canonical=_canonical,
    target=_target,
    steps=_steps,
    import_key=names.check_subject,
    ours=_select_ours,
    written=_write_arguments,
    protect=True,
    uses=_find_uses,
    used_kinds=frozenset({TOPIC, subject_settings.SUBJECT_CONFIG, KIND}),
    completion=BlockCompletion(list_followed, _list_needs, _complete),
    renewed=frozenset({"version", "schema_id"}),
)
