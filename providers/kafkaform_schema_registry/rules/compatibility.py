"""Rules of new versions: what differs, who can read what afterwards, and what a level refuses."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import Depth, Identity
from kafkaform.core.rule import Needs, Rule, Scene, Survey
from kafkaform.core.value import EMPTY, FrozenMap

from ..formats.avro import AvroType, NotAvro, open_schema, parse_avro
from ..formats.avro_judgements import Unreadable, find_unreadable
from ..formats.faults import EditKind, SchemaEdit
from ..formats.normal_form import FORMATS
from ..kinds.contracts import METADATA, RULE_SET
from ..kinds.registry import RegistryFacts, collect_answers, name_listing
from ..kinds.schema import KIND, brings_id, list_new_places
from ..kinds.subject_settings import INHERITED, PROMISES, REGISTRY_CONFIG, SUBJECT_CONFIG
from .schemas import PROOFS, TEXT, TYPES, VERSIONS, NextVersion

MAX_EDITS = 20
"""Differences of one schema that have a finding of their own."""
_OF_VERSION = ("schema", "format", "references", METADATA, RULE_SET)
LATEST = "the latest version"
"""What texts call the version that is live."""


READERS = f"{PROOFS}test_avro_readers_get_what_the_rules_say"


def _make_row(
    kind: EditKind,
    title: str,
    level: Level,
    reason: str,
    example: str,
    fix: str = "",
    proof: str = READERS,
) -> Rule:
    id = f"schema-{kind.value}"
    return Rule(id, title, level, Harm.NONE, TYPES, Needs.SYSTEM, reason, example, fix, proof=proof)


EDITS: Mapping[EditKind, Rule] = {
    EditKind.FIELD_ADDED: _make_row(
        EditKind.FIELD_ADDED,
        "A field is added that readers can do without",
        Level.NOTE,
        "Readers with the new schema take the default for older records, or go without the field.",
        '{ name = "note", type = ["null", "string"], default = null }   # new',
    ),
    EditKind.FIELD_DEMANDED: _make_row(
        EditKind.FIELD_DEMANDED,
        "A field is added or demanded that older records do not have",
        Level.CAUTION,
        "A reader that demands a field cannot read records without it: an Avro field without a "
        "default (Avro specification, Schema Resolution), a `required` property of a JSON schema, "
        "a `required` field of proto2.",
        '{ name = "amount", type = "int" }   # new, without a default',
        fix="Give the field a default, or make it optional.",
    ),
    EditKind.FIELD_REMOVED: _make_row(
        EditKind.FIELD_REMOVED,
        "A field is removed",
        Level.CAUTION,
        "Readers with the new schema do not get its values any more, and readers with the old one "
        "need a default for new records. A number of protobuf that is not reserved can later mean "
        "something else.",
        'the field "note" is not in the new schema',
        fix="Remove the field from the readers first; keep its number or name reserved.",
    ),
    EditKind.FIELD_RENAMED: _make_row(
        EditKind.FIELD_RENAMED,
        "A number of protobuf gets another name",
        Level.NOTE,
        "Binary records contain numbers and no names, so they stay readable. Generated code and "
        "the JSON form have the name.",
        'string customer = 3;   # was "string client = 3"',
        proof=f"{PROOFS}test_a_renamed_field_of_protobuf_is_read_under_its_new_name",
    ),
    EditKind.TYPE_CHANGED: _make_row(
        EditKind.TYPE_CHANGED,
        "A type changes",
        Level.CAUTION,
        "Only some types can be read as another one (Avro specification, Schema Resolution; "
        "protobuf language guide, Updating A Message Type), and code that uses the field has to "
        "follow in any case.",
        '{ name = "amount", type = "string" }   # was "long"',
        fix="Add a field with the new type, and keep the old one until nobody uses it.",
    ),
    EditKind.SYMBOL_ADDED: _make_row(
        EditKind.SYMBOL_ADDED,
        "An enum gets a value",
        Level.NOTE,
        "Readers with the old schema do not know the value; they take the default of the enum if "
        "it has one.",
        'symbols = ["OPEN", "PAID", "SENT"]   # "SENT" is new',
    ),
    EditKind.SYMBOL_REMOVED: _make_row(
        EditKind.SYMBOL_REMOVED,
        "An enum loses a value",
        Level.CAUTION,
        "Readers with the new schema do not know the value in older records.",
        'symbols = ["OPEN"]   # was ["OPEN", "PAID"]',
        fix="Keep the value, or give the enum a default.",
    ),
    EditKind.NAME_CHANGED: _make_row(
        EditKind.NAME_CHANGED,
        "A record, message or package gets another name",
        Level.CAUTION,
        "Readers find generated classes by the full name, levels match records by name or alias "
        "(Avro's library for Java does not), and the strategies record and topic-record make the "
        "subject of it.",
        'name = "Purchase"   # was "Order"',
        fix="Keep the name, or move producers and consumers to a new subject.",
    ),
    EditKind.VALUES_LIMITED: _make_row(
        EditKind.VALUES_LIMITED,
        "A JSON schema allows less",
        Level.CAUTION,
        "Older records with other values are not valid any more, and validating readers refuse "
        "them.",
        "additionalProperties = false   # new",
        proof=f"{PROOFS}test_a_reader_that_validates_refuses_older_records",
        fix="Allow the values that older records have.",
    ),
    EditKind.REMARK: _make_row(
        EditKind.REMARK,
        "Something changes that decides nothing about reading",
        Level.NOTE,
        "Documentation, order, defaults and further properties make another version, and no record "
        "unreadable.",
        'doc = "An order."   # new',
    ),
}
"""Kind of difference -> its row."""
MORE = Rule(
    "schema-more-differences",
    "A schema has more differences than are listed",
    Level.NOTE,
    Harm.NONE,
    TYPES,
    Needs.SYSTEM,
    "A row for each of hundreds of differences would hide the important ones, so those come first.",
    "100 fields are added",
)
FORMAT_CHANGED = Rule(
    "schema-format-changed",
    "A subject gets a schema of another format",
    Level.CAUTION,
    Harm.AVAILABILITY,
    TYPES,
    Needs.SYSTEM,
    "Deserializers are made for one format: readers of the topic have to change theirs before the "
    "first new record, and still need the old one for older records.",
    'format = "json"   # was "avro"',
    "Write records of another format to another topic.",
    proof=f"{PROOFS}test_readers_of_another_format_stop",
)
INCOMPATIBLE = Rule(
    "schema-incompatible",
    "The level of the subject refuses the new version",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.SYSTEM,
    "A registry refuses a version that breaks the promise of the level (error 409): BACKWARD is "
    "about readers with the new schema, FORWARD about readers with an older one, _TRANSITIVE about "
    "all versions instead of the latest.",
    '{ name = "amount", type = "int" }   # new, without a default, at level BACKWARD',
    "Change the schema so that it is compatible, or first give the subject another level.",
    Block.IMPOSSIBLE,
    proof=f"{PROOFS}test_levels_refuse_what_the_plan_blocks",
)
OLDER = Rule(
    "schema-older-again",
    "An older version would have to become the latest again",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.SYSTEM,
    "A registry does not register a schema twice: it answers with the id of the version that it "
    "has, and the newer ones stay behind it.",
    'schema = file("order-v1.avsc")   # and "orders-value" has versions 1 and 2',
    "Delete the newer versions first (kafkaform alter schema SUBJECT --delete-version N), or "
    "change something that harms nobody, such as doc.",
    Block.IMPOSSIBLE,
    proof=f"{PROOFS}test_an_older_schema_does_not_become_the_latest",
)
UNCHECKED = Rule(
    "schema-compatibility-unasked",
    "The registry cannot be asked whether it takes a new version",
    Level.CAUTION,
    Harm.NONE,
    TYPES,
    Needs.SYSTEM,
    "Apicurio 2 and 3 leave the references out when they check a schema (testCompatibilityBy… and "
    "checkAllCompatibility of `CompatibilityResourceImpl`), so that no schema with references "
    "passes, at any level. They resolve them when a version is registered, and judge it "
    "then.",
    'references = [{ name = "Money", subject = "money-value", version = 1 }]   # with Apicurio',
    "Compare the schemas yourself, or register the version in a registry for tests first.",
)
READERS_STOP = Rule(
    "schema-readers-stop",
    "Readers stop at records, and no level prevents it",
    Level.DANGER,
    Harm.AVAILABILITY,
    TYPES,
    Needs.SYSTEM,
    "At level NONE a registry checks nothing. An Avro reader whose schema cannot be resolved with "
    "that of a record fails at it (Avro specification, Schema Resolution).",
    '{ name = "amount", type = "int" }   # new, without a default, at level NONE',
    "Give new fields a default, or update all readers and writers together.",
    proof=f"{PROOFS}test_avro_readers_stop_at_what_they_cannot_resolve",
)
UPDATE_ORDER = Rule(
    "schema-update-order",
    "Readers and writers have to be updated in one order",
    Level.CAUTION,
    Harm.NONE,
    TYPES,
    Needs.SYSTEM,
    "The level promises that readers on one side go on, so the other side is updated first "
    "(Confluent's documentation, Schema Evolution and Compatibility).",
    '{ name = "note", type = "string", default = "" }   # new, and an old reader has no default',
    "Update in the order that the level allows.",
    proof=READERS,
)
COMPATIBLE = Rule(
    "schema-compatible",
    "Readers and writers can be updated in any order",
    Level.NOTE,
    Harm.NONE,
    TYPES,
    Needs.SYSTEM,
    "Both schemas can be resolved with each other (Avro specification, Schema Resolution).",
    '{ name = "note", type = ["null", "string"], default = null }   # new',
    proof=READERS,
)


# ── what is asked ───────────────────────────────────────────────────────────────────────


def list_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """At what level the new versions of the plan are checked, and what the registry says."""
    levels, regrouped = _list_planned_levels(changes), _list_regrouped(changes)
    questions = [
        _make_question(change, levels, regrouped) for change in changes if is_new_version(change)
    ]
    return {name_listing(VERSIONS, questions): Depth.FULL} if questions else {}


def is_new_version(change: Change) -> bool:
    """True for a change that registers a version beside others."""
    return (
        change.effective
        and change.action is Action.UPDATE
        and change.identity.kind == KIND
        and any(item.path[0] in _OF_VERSION for item in change.paths)
        # In mode IMPORT nothing is compared.
        and not brings_id(change)
        # Of several new versions, each is checked against the one before when it is registered.
        and len(list_new_places(change)) < 2
    )


def _list_planned_levels(changes: Sequence[Change]) -> Mapping[str, str]:
    """Subject -> the level that the plan gives it, "" for the registry's own. Levels are set before
    schemas are registered."""
    levels: dict[str, str] = {}
    for change in changes:
        before, after = change.before or EMPTY, change.after or EMPTY
        level = after.get("compatibility")
        if not change.effective or level == before.get("compatibility"):
            continue
        if change.identity.kind == REGISTRY_CONFIG and level is not None:
            levels[""] = str(level)
        elif change.identity.kind == SUBJECT_CONFIG and change.action is not Action.FORGET:
            levels[change.identity.key] = str(level or INHERITED)
    return levels


def _list_regrouped(changes: Sequence[Change]) -> set[str]:
    """The subjects whose `compatibility_group` the plan changes, "" for the registry."""
    return {
        "" if change.identity.kind == REGISTRY_CONFIG else change.identity.key
        for change in changes
        if change.effective
        and change.identity.kind in (REGISTRY_CONFIG, SUBJECT_CONFIG)
        and any(item.path == ("compatibility_group",) for item in change.paths)
    }


def _make_question(change: Change, levels: Mapping[str, str], regrouped: Set[str]) -> NextVersion:
    after, subject = change.after or EMPTY, change.identity.key
    return NextVersion(
        subject,
        str(after["format"]),
        str(after["schema"]),
        tuple(
            {"name": item["name"], "subject": item["subject"], "version": int(item["version"])}
            for item in after.get("references") or ()
            if item["version"] is not None
        ),
        levels.get(subject),
        levels.get(""),
        after.get(METADATA),
        after.get(RULE_SET),
        not regrouped.isdisjoint((subject, "")),
    )


# ── what is found ───────────────────────────────────────────────────────────────────────


def _survey_versions(scene: Scene) -> Iterator[tuple[Identity, Finding]]:
    answers = collect_answers(scene.sweeps, VERSIONS)
    for change in filter(is_new_version, scene.changes):
        answer = answers.get(change.identity.key, EMPTY)
        before, after = change.before or EMPTY, change.after or EMPTY
        # Metadata and rules alone change nothing for readers.
        is_text_new = any(item.path[0] in ("schema", "format") for item in change.paths)
        findings = [
            *_judge_earlier(change.identity.key, answer),
            *_judge_unasked(change.identity.key, after, answer, scene),
            *_judge_verdict(change.identity.key, answer),
            *(_judge_reading(change.identity.key, before, after, answer) if is_text_new else ()),
        ]
        is_refused = any(finding.rule == INCOMPATIBLE.id for finding in findings)
        findings += _list_edits(change.identity.key, before, after, answer, is_refused=is_refused)
        yield from ((change.identity, finding) for finding in findings)


def _judge_earlier(subject: str, answer: FrozenMap) -> Iterator[Finding]:
    if (number := answer.get("earlier")) is not None:
        yield OLDER.find(
            f"this schema is version {number} of {subject}, which has newer ones",
            TEXT,
            figures=FrozenMap(version=number),
        )


def _judge_unasked(
    subject: str, after: FrozenMap, answer: FrozenMap, scene: Scene
) -> Iterator[Finding]:
    """What nobody can say before the version is registered."""
    level = answer.get("level")
    references = after.get("references") or ()
    if level == "NONE" or not references or RegistryFacts.of(scene.facts).checks_references:
        return
    level_name = f"level {level}" if level else "its level"
    yield UNCHECKED.find(
        f"whether {level_name} allows the new version of {subject} cannot be asked, because the "
        "check of this registry leaves references out: it is judged when it is registered",
        TEXT,
    )


def _judge_verdict(subject: str, answer: FrozenMap) -> Iterator[Finding]:
    """What the registry itself says."""
    if answer.get("compatible") is False:
        reasons = "; ".join(answer["reasons"]) or "it gives no reason"
        text = (
            f"level {answer['level']} refuses the new version of {subject}: {reasons.rstrip('.')}"
        )
        yield INCOMPATIBLE.find(text, TEXT)


def _judge_reading(
    subject: str, before: FrozenMap, after: FrozenMap, answer: FrozenMap
) -> Iterator[Finding]:
    """Who can read what, of Avro, unless the registry has refused it already."""
    level = answer.get("level")
    old, new = (_open_avro(attributes) for attributes in (before, after))
    if old is None or new is None or answer.get("compatible") is False or answer.get("grouped"):
        return
    backward, forward = find_unreadable(new, old), find_unreadable(old, new)
    promise = PROMISES.get(str(level))
    refusals = _list_refusals(new, answer)
    if promise is not None and promise.backward and backward:
        refusals.insert(0, _describe_backward(backward, LATEST))
    if promise is not None and promise.forward and forward:
        refusals.insert(0, _describe_forward(forward, LATEST))
    if refusals and not answer.get("compatible"):
        text = f"level {level} refuses the new version of {subject}: {'; '.join(refusals)}"
        yield INCOMPATIBLE.find(text, TEXT)
    elif level == "NONE":
        if backward:
            cause = _name_cause(backward)
            text = f"readers of {subject} with the new schema stop at older records: {cause}"
            yield READERS_STOP.find(text, TEXT)
        if forward:
            cause = _name_cause(forward)
            text = f"readers of {subject} with the old schema stop at new records: {cause}"
            yield READERS_STOP.find(text, TEXT)
    elif not refusals:
        yield from _judge_order(subject, backward, forward, str(level) if promise else "")


def _judge_order(
    subject: str, backward: Sequence[Unreadable], forward: Sequence[Unreadable], level: str
) -> Iterator[Finding]:
    """Who has to be updated first. level: empty if it is not known."""
    at = f" (level {level})" if level else ""
    if not backward and not forward:
        yield COMPATIBLE.find(
            f"old and new readers of {subject} can read what both schemas write{at}", TEXT
        )
        return
    causes = []
    if backward:
        causes.append(_describe_backward(backward, LATEST))
    if forward:
        causes.append(_describe_forward(forward, LATEST))
    order = PROMISES[level].advice if level else "the order of updates matters for clients"
    yield UPDATE_ORDER.find(f"{order} of {subject}{at}: {'; '.join(causes)}", TEXT)


def _list_refusals(new: AvroType, answer: FrozenMap) -> list[str]:
    """What a transitive level has against the new schema because of older versions."""
    promise = PROMISES.get(str(answer.get("level")))
    refusals: list[str] = []
    for version in answer.get("versions") or ():
        old, name = _open_avro(version), f"version {version['number']}"
        if promise is None or old is None:
            continue
        if promise.backward and (backward := find_unreadable(new, old)):
            refusals.append(_describe_backward(backward, name))
        if promise.forward and (forward := find_unreadable(old, new)):
            refusals.append(_describe_forward(forward, name))
    return refusals


def _open_avro(attributes: FrozenMap) -> AvroType | None:
    """The schema; None if it is no Avro schema."""
    if attributes.get("format") != "avro":
        return None
    try:
        return open_schema(parse_avro(str(attributes["schema"])))
    except NotAvro:
        return None


def _describe_backward(causes: Sequence[Unreadable], version: str) -> str:
    cause = _name_cause(causes)
    return f"readers with the new schema cannot read records of {version}: {cause}"


def _describe_forward(causes: Sequence[Unreadable], version: str) -> str:
    return f"readers with {version} cannot read new records: {_name_cause(causes)}"


def _name_cause(causes: Sequence[Unreadable]) -> str:
    first = causes[0]
    cause = f"field {first.path} {first.text}" if first.path else f"it {first.text}"
    return cause if len(causes) == 1 else f"{cause}, and {len(causes) - 1} more"


# ── what differs ────────────────────────────────────────────────────────────────────────


def _list_edits(
    subject: str, before: FrozenMap, after: FrozenMap, answer: FrozenMap, *, is_refused: bool
) -> Iterator[Finding]:
    """A finding for each difference, the important ones first."""
    kind = str(after["format"])
    if before.get("format") != kind:
        text = f"{subject} changes from {before.get('format')} to {kind}"
        yield FORMAT_CHANGED.find(text, ("format",))
        return
    try:
        edits = FORMATS[kind].list_edits(str(before["schema"]), str(after["schema"]))
    except ValueError:
        return
    promise = PROMISES.get(str(answer.get("level")))
    # What the level has judged, for old readers and new ones alike, harms nobody.
    safe = promise is not None and promise.backward and promise.forward and not is_refused
    whole = kind == "avro" and not after.get("references")
    has_verdict = whole or answer.get("compatible") is True
    sorted_edits = sorted(edits, key=lambda edit: EDITS[edit.kind].level.rank)
    for edit in sorted_edits[:MAX_EDITS]:
        yield _find_edit(edit, Level.NOTE if safe and has_verdict else None)
    surplus = len(sorted_edits) - MAX_EDITS
    if surplus > 0:
        text = f"{subject} has {surplus} more differences"
        yield MORE.find(text, TEXT, figures=FrozenMap(differences=len(sorted_edits)))


def _find_edit(edit: SchemaEdit, level: Level | None) -> Finding:
    sides = {"before": edit.before, "after": edit.after}
    figures = FrozenMap(
        {
            **({"fields": (edit.path,)} if edit.path else {}),
            **{name: text for name, text in sides.items() if text},
        }
    )
    return EDITS[edit.kind].find(edit.text, TEXT, figures=figures, level=level)


SURVEYS = (
    Survey(
        (
            INCOMPATIBLE,
            OLDER,
            UNCHECKED,
            READERS_STOP,
            UPDATE_ORDER,
            COMPATIBLE,
            FORMAT_CHANGED,
            MORE,
            *EDITS.values(),
        ),
        _survey_versions,
    ),
)
