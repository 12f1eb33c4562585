"""Data contracts: the metadata and the rules of a schema, and what settings add to them.

A block declares them nested, as registries have them. Canonical attributes have them flat, so that
each property, tag and rule has a path of its own: `metadata` has the keys `properties.NAME`,
`tags.PATH` and `sensitive.NAME`, and `rule_set` the keys `domain_rules.NAME` and so on.

A sensitive property is a secret: of a live one, only its name is known here.

Sources: `Metadata`, `Rule` and `RuleSet` of Confluent's client (schema-registry
`client/rest/entities`), and `AbstractSchemaRegistry.maybeSetMetadataRuleSet`, which merges the
defaults and overrides of a subject's settings into each new version.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from kafkaform.core.schema import BOOL, STRING, list_of, map_of, object_of
from kafkaform.core.value import EMPTY, FrozenMap, Value, freeze

METADATA, RULE_SET = "metadata", "rule_set"
PROPERTIES, TAGS, SENSITIVE = "properties", "tags", "sensitive"
PHASES = ("domain_rules", "migration_rules", "encoding_rules")
"""The lists of a rule set."""
RULE_FIELDS = (
    "doc",
    "kind",
    "mode",
    "type",
    "tags",
    "params",
    "expr",
    "on_success",
    "on_failure",
    "disabled",
)
POSITION = "position"
"""The place of a rule among those of its list, from 1 on: they are executed in order."""
DEFAULTS = {"kind": "TRANSFORM", "mode": "WRITEREAD"}
"""What a registry takes for a rule that says neither (`Rule.java`)."""
VERSION_PROPERTY = "confluent:version"
"""A property that the registry sets itself: the number of the version."""

METADATA_TYPE = object_of(
    {PROPERTIES: map_of(STRING), TAGS: map_of(list_of(STRING))}, {PROPERTIES: None, TAGS: None}
)
_TEXTS = ("doc", "kind", "mode", "expr", "on_success", "on_failure")
_RULE_TYPE = object_of(
    {
        "name": STRING,
        "type": STRING,
        **dict.fromkeys(_TEXTS, STRING),
        "tags": list_of(STRING),
        "params": map_of(STRING),
        "disabled": BOOL,
    },
    dict.fromkeys((*_TEXTS, "tags", "params", "disabled")),
)
RULE_SET_TYPE = object_of(dict.fromkeys(PHASES, list_of(_RULE_TYPE)), dict.fromkeys(PHASES))

_NAME = re.compile(r"[^\W\d][\w-]{0,255}")
_KINDS = ("TRANSFORM", "CONDITION")
_DATA_MODES = ("WRITE", "READ", "WRITEREAD")
_MODES: Mapping[str, tuple[str, ...]] = {
    "domain_rules": _DATA_MODES,
    "migration_rules": ("UPGRADE", "DOWNGRADE", "UPDOWN"),
    "encoding_rules": _DATA_MODES,
}
"""List of a rule set -> the modes of its rules."""
_BOTH_WAYS = ("WRITEREAD", "UPDOWN")
"""Modes with two directions, for each of which a rule can have an action."""


# ── what a block can contain ────────────────────────────────────────────────────────────


def refuse_metadata(metadata: FrozenMap) -> Iterator[tuple[str, str]]:
    """Why no registry takes this metadata."""
    if VERSION_PROPERTY in (metadata.get(PROPERTIES) or EMPTY):
        yield f"the registry sets the property {VERSION_PROPERTY}", "Remove it."


def refuse_rule_set(rule_set: FrozenMap) -> Iterator[tuple[str, str]]:
    """Why no registry takes these rules (error 42210)."""
    rules = [(phase, rule) for phase in PHASES for rule in rule_set.get(phase) or ()]
    names = [rule["name"] for _, rule in rules]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        yield f"two rules are called {name!r}", "Give each rule of the set a name of its own."
    for phase, rule in rules:
        yield from _refuse_rule(phase, rule)


def _refuse_rule(phase: str, rule: FrozenMap) -> Iterator[tuple[str, str]]:
    name = rule["name"]
    if not _NAME.fullmatch(name):
        yield (
            f"{name!r} is no name of a rule",
            "It begins with a letter or _, and has at most 256 letters, digits, _ and -.",
        )
    kind, mode = (rule.get(field) or DEFAULTS[field] for field in ("kind", "mode"))
    if kind not in _KINDS:
        yield f"the rule {name} has the kind {kind}", f"Kinds are {' and '.join(_KINDS)}."
    if mode not in _MODES[phase]:
        modes = ", ".join(_MODES[phase])
        yield f"the rule {name} has the mode {mode}", f"Modes of {phase} are {modes}."
    for field in ("on_success", "on_failure"):
        if "," in (rule.get(field) or "") and mode not in _BOTH_WAYS:
            yield (
                f"{field} of the rule {name} has two actions",
                f"Only the modes {' and '.join(_BOTH_WAYS)} have one for each direction.",
            )


# ── nested and flat ─────────────────────────────────────────────────────────────────────


def flatten_metadata(metadata: Mapping[str, Any]) -> FrozenMap:
    """`properties`, `tags` and `sensitive`, the names of sensitive properties -> canonical
    metadata. What is canonical stays as it is."""
    if not {PROPERTIES, TAGS}.intersection(metadata):
        return FrozenMap(metadata)
    entries: dict[str, Value] = {
        f"{PROPERTIES}.{name}": value
        for name, value in (metadata.get(PROPERTIES) or EMPTY).items()
        if value is not None and name != VERSION_PROPERTY
    }
    for path, tags in (metadata.get(TAGS) or EMPTY).items():
        entries[f"{TAGS}.{path}"] = tuple(sorted(set(tags or ())))
    entries |= name_sensitive(metadata.get(SENSITIVE) or ())
    return FrozenMap({key: value for key, value in entries.items() if value not in ((), None)})


def name_sensitive(names: Iterable[str]) -> dict[str, Value]:
    """The entries of canonical metadata for sensitive properties."""
    return {f"{SENSITIVE}.{name}": True for name in names}


def flatten_rule_set(rule_set: Mapping[str, Any]) -> FrozenMap:
    """The lists of a rule set -> canonical rules by list and name. What is canonical stays."""
    if not set(PHASES).intersection(rule_set):
        return FrozenMap(rule_set)
    return FrozenMap(
        {
            f"{phase}.{rule['name']}": _canonicalize_rule(rule, position)
            for phase in PHASES
            for position, rule in enumerate(rule_set.get(phase) or (), 1)
        }
    )


def _canonicalize_rule(rule: Mapping[str, Any], position: int) -> FrozenMap:
    """Without what is not set; defaults are written out."""
    fields: dict[str, Any] = {name: rule.get(name) or DEFAULTS.get(name) for name in RULE_FIELDS}
    if tags := fields["tags"]:
        fields["tags"] = tuple(sorted(set(tags)))
    if params := fields["params"]:
        fields["params"] = FrozenMap(params)
    return FrozenMap(
        {**{name: value for name, value in fields.items() if value}, POSITION: position}
    )


def nest_metadata(metadata: FrozenMap) -> dict[str, Any]:
    """The opposite of `flatten_metadata`: `properties` and `tags`, as far as there are some."""
    nested: dict[str, dict[str, Any]] = {}
    for key, value in metadata.items():
        head, _, name = key.partition(".")
        if head in (PROPERTIES, TAGS):
            nested.setdefault(head, {})[name] = value
    return dict(nested)


def nest_rule_set(rule_set: FrozenMap) -> dict[str, list[dict[str, Any]]]:
    """The opposite of `flatten_rule_set`: the rules of each list in order, with their names."""
    nested: dict[str, list[dict[str, Any]]] = {}
    for key, rule in sorted(rule_set.items(), key=lambda item: item[1][POSITION]):
        phase, _, name = key.partition(".")
        nested.setdefault(phase, []).append({"name": name, **rule.without([POSITION])})
    return nested


def write_metadata(metadata: FrozenMap) -> Value:
    """Canonical metadata as a block has it; None if there is none but sensitive properties."""
    nested = nest_metadata(metadata)
    return freeze({PROPERTIES: None, TAGS: None, **nested}) if nested else None


def write_rule_set(rule_set: FrozenMap) -> Value:
    """Canonical rules as a block has them; None for none."""
    blank = dict.fromkeys(_RULE_TYPE.fields)
    nested = {
        phase: [{**blank, **rule} for rule in rules]
        for phase, rules in nest_rule_set(rule_set).items()
    }
    return freeze({**dict.fromkeys(PHASES), **nested}) if nested else None


# ── what settings add ───────────────────────────────────────────────────────────────────


def find_inherited(
    contract: FrozenMap, defaults: FrozenMap, overrides: FrozenMap
) -> frozenset[str]:
    """The keys of a contract that come from settings: what overrides decide, and what is as in the
    defaults. All are canonical, and of the same attribute."""
    return frozenset(
        key
        for key, value in contract.items()
        if key in overrides or (key in defaults and is_same(value, defaults[key]))
    )


def is_same(first: Value, second: Value) -> bool:
    """True if two entries of a contract say the same; the position of a rule is none of it."""
    return _drop_position(first) == _drop_position(second)


def _drop_position(value: Value) -> Value:
    return value.without([POSITION]) if isinstance(value, FrozenMap) else value


def count_rules(contract: FrozenMap, inherited: Collection[str]) -> FrozenMap:
    """The contract with its own rules counted from 1 on in each list; those that come from settings
    have the position 0, because settings decide about it."""
    counts: dict[str, int] = {}
    entries = dict(contract)
    rules = {key: value for key, value in contract.items() if isinstance(value, FrozenMap)}
    for key in sorted(rules, key=lambda key: rules[key][POSITION]):
        phase = key.partition(".")[0]
        if key not in inherited:
            counts[phase] = counts.get(phase, 0) + 1
        position = 0 if key in inherited else counts[phase]
        entries[key] = rules[key].with_items({POSITION: position})
    return FrozenMap(entries)


def keep_inherited(declared: FrozenMap, live: FrozenMap, inherited: Collection[str]) -> FrozenMap:
    """What is declared, and what a version gets from settings in any case. inherited: keys of the
    live contract."""
    own = {
        key: value
        for key, value in declared.items()
        if key not in inherited or not is_same(value, live[key])
    }
    additions = {key: live[key] for key in inherited if key not in own}
    return count_rules(FrozenMap(own), ()).with_items(additions)


def describe_contract(contract: FrozenMap) -> list[str]:
    """What a canonical contract has, for people: `property owner`, `domain rule checkSsn`."""
    nouns = {PROPERTIES: "property", TAGS: "tags of", SENSITIVE: "sensitive property"}
    nouns |= {phase: phase.removesuffix("s").replace("_", " ") for phase in PHASES}
    pairs = [key.partition(".")[::2] for key in sorted(contract)]
    return [f"{nouns[head]} {name}" for head, name in pairs]
