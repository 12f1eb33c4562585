"""Rules of data contracts, and of the modes in which schemas can be registered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kafkaform.core.change import Action, Change
from kafkaform.core.finding import Block, Finding, Harm, Level
from kafkaform.core.resource import Depth, Facts, Identity
from kafkaform.core.rule import Judge, Needs, Rule, Scene, Survey
from kafkaform.core.value import EMPTY, FrozenMap

from ..kinds.contracts import METADATA, PROPERTIES, RULE_SET, describe_contract, is_same
from ..kinds.registry import RegistryFacts, collect_answers, name_listing
from ..kinds.schema import KIND, WRITTEN, brings_id
from ..kinds.subject_settings import (
    CLOSING,
    IMPORT_MODE,
    INHERITED,
    REGISTRY_CONFIG,
    SUBJECT_CONFIG,
    UNSET,
)
from .compatibility import is_new_version
from .schemas import PROOFS

CONTRACTS = "schema_registry_contracts"
"""Subject -> `metadata` and `rule_set` of its newest version, and the settings that add to them."""
MODES = "schema_registry_modes"
"""Subject, and "" for the registry -> its `mode`; INHERITED for none of its own."""
TYPES = (KIND,)
SETTING_TYPES = (SUBJECT_CONFIG, REGISTRY_CONFIG)
WRITING = (Action.CREATE, Action.UPDATE)
MAX_NAMES = 5
"""Parts of a contract that a sentence names."""

UNSUPPORTED = Rule(
    "schema-contract-unsupported",
    "The registry keeps no data contracts, or not this part of them",
    Level.BLOCK,
    Harm.NONE,
    (KIND, *SETTING_TYPES),
    Needs.FACTS,
    "Metadata, rule sets and the settings about them are Confluent's. Apicurio 2 drops them "
    "without a word, and so does Karapace (its `api/routers/requests.py` takes them, and nothing "
    "reads them). Redpanda has only the properties of metadata.",
    'metadata = { properties = { owner = "shop" } }   # with Apicurio or Karapace',
    "Remove it from the block, or use a registry of Confluent's.",
    Block.IMPOSSIBLE,
    proof=f"{PROOFS}test_apicurio_drops_a_data_contract_without_a_word",
)
KEPT = Rule(
    "schema-contract-kept",
    "A new version takes over metadata or rules that the block does not declare",
    Level.NOTE,
    Harm.NONE,
    TYPES,
    Needs.SYSTEM,
    "A registry gives a version that comes without metadata or rules those of the version before "
    "it (`AbstractSchemaRegistry.maybeSetMetadataRuleSet` of Confluent's).",
    'schema = file("order-v2.avsc")   # and version 1 has the property "owner"',
)
OVERRIDDEN = Rule(
    "schema-contract-overridden",
    "A setting of the subject or the registry decides what a block declares",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.SYSTEM,
    "`override_metadata` and `override_rule_set` take the place of what a version has under the "
    "same name (`AbstractSchemaRegistry.maybeSetMetadataRuleSet` of Confluent's).",
    'metadata = { properties = { owner = "shop" } }   # and override_metadata has another owner',
    "Remove it from the block, or from the override.",
    Block.IMPOSSIBLE,
)
FOR_NEW_VERSIONS = Rule(
    "schema-settings-for-new-versions",
    "What settings add to data contracts changes for new versions only",
    Level.NOTE,
    Harm.NONE,
    SETTING_TYPES,
    Needs.OBJECT,
    "Defaults and overrides are merged into a version when it is registered "
    "(`AbstractSchemaRegistry.maybeSetMetadataRuleSet` of Confluent's), so those that exist keep "
    "what they got. A block that declares its whole metadata or rules gets a new version by the "
    "next plan.",
    'default_metadata = { properties = { team = "edge" } }   # was "core"',
)
NORMALIZED = Rule(
    "schema-texts-normalized",
    "The registry keeps other texts than those that are declared",
    Level.CAUTION,
    Harm.NONE,
    SETTING_TYPES,
    Needs.BLOCK,
    "With `normalize`, a registry rewrites each new schema before it stores it "
    "(`SubjectVersionsResource` of Confluent's). Where its form is another one than that of "
    "kafkaform, the next plan shows the difference again.",
    "normalize = true",
    "Leave it off where kafkaform registers the schemas.",
)
SETTINGS_NEED_LEVEL = Rule(
    "schema-settings-need-level",
    "Settings of a subject are declared without its compatibility level",
    Level.BLOCK,
    Harm.NONE,
    (SUBJECT_CONFIG,),
    Needs.BLOCK,
    "A subject with settings of its own does not inherit the registry's level: without one it has "
    "that of `schema.compatibility.level`, with which the server was started "
    "(`InMemoryCache.populateCompatibilityLevel` of Confluent's).",
    'alias = "shop.orders-value"   # and no compatibility',
    "Set compatibility.",
    Block.IMPOSSIBLE,
)
ID_DIFFERS = Rule(
    "schema-import-differs",
    "A schema that is registered has another id or version than import says",
    Level.BLOCK,
    Harm.NONE,
    TYPES,
    Needs.OBJECT,
    "The id of a schema never changes, and two schemas never have the same.",
    "import = { id = 17 }   # and the schema is registered with the id 4",
    "Remove import, or write the id and version of the newest schema.",
    Block.IMPOSSIBLE,
)
MODE_REFUSES = Rule(
    "schema-mode-refuses",
    "The mode of a subject refuses what the plan writes",
    Level.BLOCK,
    Harm.NONE,
    (KIND, SUBJECT_CONFIG),
    Needs.SYSTEM,
    "In mode READONLY, a registry refuses schemas, deletions and settings (error 42205); in mode "
    "IMPORT it refuses schemas without an id, and in every other mode schemas with one "
    "(`checkRegisterMode` of Confluent's). kafkaform does not open a subject for a moment: others "
    "could write meanwhile, and a run that ends early would leave it open.",
    'mode = "READONLY"   # is in effect, and the schema changes',
    'Set mode = "READWRITE" and apply, then set the mode back; or leave the subject as it is.',
    Block.IMPOSSIBLE,
)
FORCED = Rule(
    "schema-import-forced",
    "Mode IMPORT is forced on a subject or registry with schemas",
    Level.CAUTION,
    Harm.NONE,
    SETTING_TYPES,
    Needs.BLOCK,
    "In mode IMPORT, nothing is compared, and a schema that brings the number of a version "
    "replaces it. So a registry refuses the mode if there are schemas, unless it is forced "
    "(`KafkaSchemaRegistry.setMode` of Confluent's).",
    'mode = "IMPORT"   force = true',
    "Import into subjects that have no schemas.",
)


# ── blocks and facts ────────────────────────────────────────────────────────────────────


def _list_contract_settings(change: Change) -> list[str]:
    """The attributes of a block that only data contracts have."""
    after = change.after or EMPTY
    if change.action in (Action.DELETE, Action.FORGET):
        return []
    of_schema = (METADATA, "sensitive_properties", RULE_SET)
    names = of_schema if change.identity.kind == KIND else tuple(UNSET)
    return [name for name in names if after.get(name) is not None]


def _judge_support(change: Change, facts: Facts) -> Iterator[Finding]:
    if RegistryFacts.of(facts).contracts:
        return
    metadata = (change.after or EMPTY).get(METADATA) or EMPTY
    is_plain = all(key.startswith(f"{PROPERTIES}.") for key in metadata)
    for name in _list_contract_settings(change):
        if name == METADATA and is_plain and RegistryFacts.of(facts).properties:
            continue
        yield UNSUPPORTED.find(f"this registry does not keep {name}", (name,))


def _judge_settings(change: Change, _: Facts) -> Iterator[Finding]:
    after = change.after
    if after is None or change.action in (Action.DELETE, Action.FORGET):
        return
    whole = change.identity.kind == REGISTRY_CONFIG
    scope = "the registry" if whole else change.identity.key
    if after.get("normalize"):
        yield NORMALIZED.find(f"new schemas of {scope} are kept in another form", ("normalize",))
    if after.get("force") and after.get("mode") == IMPORT_MODE:
        yield FORCED.find(f"in mode IMPORT, versions of {scope} can be replaced", ("force",))
    further = [name for name in _list_contract_settings(change) if after.get(name)]
    if not whole and further and after.get("compatibility") in (None, INHERITED):
        text = f"{', '.join(further)} of {scope} needs a compatibility level beside it"
        yield SETTINGS_NEED_LEVEL.find(text, (further[0],))


def _judge_merged_settings(change: Change, _: Facts) -> Iterator[Finding]:
    """An old entry that goes or becomes another one is what versions keep."""
    heads = sorted(
        {
            item.path[0]
            for item in change.paths
            if item.before is not None and item.path[0].endswith((METADATA, RULE_SET))
        }
    )
    if change.action not in WRITING or not heads:
        return
    whole = change.identity.kind == REGISTRY_CONFIG
    scope = "the registry" if whole else change.identity.key
    yield FOR_NEW_VERSIONS.find(
        f"versions that exist keep what they got of {', '.join(heads)} of {scope}; blocks with "
        "metadata or rules of their own get new versions by the next plan",
        (heads[0],),
    )


def _judge_import(change: Change, _: Facts) -> Iterator[Finding]:
    """The schema that exists is compared with the id and version that the block says."""
    after, before = change.after or EMPTY, change.before
    numbers = [path.path[0] for path in change.paths if path.path[0] in ("schema_id", "version")]
    if before is None or change.action not in WRITING or after.get("schema_id") is None:
        return
    text_changes = any(path.path[0] in ("schema", "format", "references") for path in change.paths)
    if not text_changes and numbers:
        name = numbers[0]
        title = "the id" if name == "schema_id" else "the version"
        yield ID_DIFFERS.find(
            f"the schema of {change.identity.key} has {title} {before.get(name)}, and import says "
            f"{after[name]}",
            ("import",),
        )
    elif text_changes and "schema_id" not in numbers:
        yield ID_DIFFERS.find(
            f"the id {after['schema_id']} belongs to the schema that {change.identity.key} has, "
            "and this one is another",
            ("import",),
        )


# ── what is asked ───────────────────────────────────────────────────────────────────────


def list_needs(changes: Sequence[Change]) -> Mapping[str, Depth]:
    """What new versions take over, and the modes of the subjects that the plan writes."""
    contracts = sorted(change.identity.key for change in changes if _needs_contract(change))
    needs = {name_listing(CONTRACTS, contracts): Depth.FULL} if contracts else {}
    writes = [change for change in changes if _needs_mode(change)]
    modes = sorted({change.identity.key for change in writes if not _is_plain_create(change)})
    return needs | ({name_listing(MODES, modes): Depth.FULL} if writes else {})


def _is_plain_create(change: Change) -> bool:
    """True for the first schema of a subject, which hardly ever has a mode before it."""
    is_create = change.identity.kind == KIND and change.action is Action.CREATE
    return is_create and not brings_id(change)


def _needs_contract(change: Change) -> bool:
    """True for a version with which a registry merges others or settings."""
    after = change.after or EMPTY
    declares = after.get(METADATA) is not None or after.get(RULE_SET) is not None
    is_first = change.action is Action.CREATE and change.identity.kind == KIND and change.effective
    return is_new_version(change) or (is_first and declares and not brings_id(change))


def _needs_mode(change: Change) -> bool:
    """True for a change that a mode of its subject can refuse."""
    if not change.effective or change.action not in (*WRITING, Action.DELETE):
        return False
    heads = {path.path[0] for path in change.paths}
    if change.identity.kind == SUBJECT_CONFIG:
        return bool(heads & {"compatibility", *UNSET})
    is_written = change.action is Action.DELETE or not heads.isdisjoint(WRITTEN)
    return change.identity.kind == KIND and (is_written or bool(change.steps))


def _survey_contracts(scene: Scene) -> Iterator[tuple[Identity, Finding]]:
    answers = collect_answers(scene.sweeps, CONTRACTS)
    for change in filter(_needs_contract, scene.changes):
        answer, after = answers.get(change.identity.key), change.after or EMPTY
        if answer is None:
            continue
        name = change.identity.key
        entries = [
            entry
            for attribute in (METADATA, RULE_SET)
            if after.get(attribute) is None
            for entry in describe_contract(answer[attribute])
        ]
        if entries:
            text = f"the new version of {name} takes over {_join(entries)}"
            yield change.identity, KEPT.find(text, figures=FrozenMap(entries=tuple(entries)))
        for attribute in (METADATA, RULE_SET):
            yield from (
                (change.identity, finding)
                for finding in _judge_overrides(name, attribute, change, answer)
            )


def _judge_overrides(
    name: str, attribute: str, change: Change, answer: FrozenMap
) -> Iterator[Finding]:
    """Otherwise each plan would register what the registry then takes for what it has."""
    declared: FrozenMap = (change.after or EMPTY).get(attribute) or EMPTY
    overrides: FrozenMap = answer[f"override_{attribute}"]
    conflicts = FrozenMap(
        {
            key: value
            for key, value in overrides.items()
            if key in declared and not is_same(declared[key], value)
        }
    )
    if conflicts:
        text = f"override_{attribute} decides {_join(describe_contract(conflicts))} of {name}"
        yield OVERRIDDEN.find(text, (attribute,))


def _join(entries: Sequence[str]) -> str:
    surplus = len(entries) - MAX_NAMES
    listing = ", ".join(entries[:MAX_NAMES])
    return f"{listing} and {surplus} more" if surplus > 0 else listing


# ── modes ───────────────────────────────────────────────────────────────────────────────


def _survey_modes(scene: Scene) -> Iterator[tuple[Identity, Finding]]:
    answers = collect_answers(scene.sweeps, MODES)
    planned = _list_planned_modes(scene.changes)
    for change in filter(_needs_mode, scene.changes):
        mode = _find_mode(change, answers, planned)
        if mode is not None and (text := _find_refusal(change, mode)):
            yield change.identity, MODE_REFUSES.find(text)


def _list_planned_modes(changes: Sequence[Change]) -> Mapping[str, tuple[str, str]]:
    """Subject, "" for the registry -> the modes before and after the plan, INHERITED for none."""
    return {
        "" if change.identity.kind == REGISTRY_CONFIG else change.identity.key: (
            str((change.before or EMPTY).get("mode") or INHERITED),
            str((change.after or EMPTY).get("mode") or INHERITED),
        )
        for change in changes
        if change.effective
        and change.identity.kind in SETTING_TYPES
        and any(path.path == ("mode",) for path in change.paths)
    }


def _find_mode(
    change: Change,
    answers: Mapping[str, FrozenMap],
    planned: Mapping[str, tuple[str, str]],
) -> str | None:
    """The mode in effect when a change is sent; None if it cannot be known. Modes that let more in
    are set before schemas, modes that let less in after them."""
    imports = brings_id(change)
    deletes = change.action is Action.DELETE
    for name in (change.identity.key, ""):
        if name not in answers and (not name or not _is_plain_create(change)):
            return None
        mode = str(answers[name]["mode"]) if name in answers else INHERITED
        if name in planned:
            before, after = planned[name]
            if deletes or _is_set_before(before, after, imports=imports):
                mode = after
        if mode != INHERITED:
            return mode
    return None


def _is_set_before(before: str, after: str, *, imports: bool) -> bool:
    """True if a new mode is in effect when a schema is registered. imports: with its id."""
    if after in CLOSING:
        return False
    if before == IMPORT_MODE:
        return not imports
    return after != INHERITED or before in CLOSING


def _find_refusal(change: Change, mode: str) -> str:
    """Why a mode refuses a change; empty if it does not."""
    name = change.identity.key
    if mode in ("READONLY", "READONLY_OVERRIDE"):
        return f"{name} is in mode {mode}, in which nothing of it can be written"
    if change.identity.kind != KIND or change.action is Action.DELETE:
        return ""
    imports = brings_id(change)
    if imports and mode not in (IMPORT_MODE, "FORWARD"):
        return f"import needs mode IMPORT, and {name} is in mode {mode}"
    if not imports and mode != "READWRITE":
        return f"{name} is in mode {mode}, in which a schema needs an id: declare import"
    return ""


JUDGES = (
    Judge((UNSUPPORTED,), (KIND, *SETTING_TYPES), Needs.FACTS, _judge_support),
    Judge((NORMALIZED, FORCED, SETTINGS_NEED_LEVEL), SETTING_TYPES, Needs.BLOCK, _judge_settings),
    Judge((FOR_NEW_VERSIONS,), SETTING_TYPES, Needs.OBJECT, _judge_merged_settings),
    Judge((ID_DIFFERS,), TYPES, Needs.OBJECT, _judge_import),
)
SURVEYS = (
    Survey((KEPT, OVERRIDDEN), _survey_contracts),
    Survey((MODE_REFUSES,), _survey_modes),
)
