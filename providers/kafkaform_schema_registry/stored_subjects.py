"""What a registry in memory keeps: the versions of its subjects, when they are compatible, and how
data contracts are merged into them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.canonical import dumps

from .formats.avro import open_schema, parse_avro
from .formats.avro_judgements import Unreadable, find_unreadable
from .formats.normal_form import BY_REGISTRY_NAME, inspect_schema
from .kinds.subject_settings import PROMISES


class StoredVersion(Struct, frozen=True):
    """One version of a subject."""

    number: int
    id: int
    kind: str
    """The registry's name of the format."""
    text: str
    references: tuple[Mapping[str, Any], ...] = ()
    deleted: bool = False
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, Any] | None = None

    def to_answer(self, subject: str) -> dict[str, Any]:
        """As registries send it; Avro is the format of an answer that names none."""
        document: dict[str, Any] = {
            "id": self.id,
            "subject": subject,
            "version": self.number,
            "schema": self.text,
            "references": [dict(stored) for stored in self.references],
        }
        if self.kind != "AVRO":
            document["schemaType"] = self.kind
        contract = {"metadata": self.metadata, "ruleSet": self.rule_set}
        return {**document, **{name: item for name, item in contract.items() if item is not None}}


class SchemaDraft(Struct, frozen=True):
    """A schema that somebody sends."""

    kind: str
    text: str
    references: tuple[Mapping[str, Any], ...]
    metadata: Mapping[str, Any] | None = None
    rule_set: Mapping[str, Any] | None = None
    id: int | None = None
    """The id that it brings in mode IMPORT, with its version."""
    version: int | None = None

    def normalize(self) -> str:
        kind = BY_REGISTRY_NAME[self.kind].name
        return inspect_schema(kind, self.text, elsewhere=bool(self.references)).normal


class Subjects:
    """All versions of all subjects. verbatim: two texts of one schema are two schemas."""

    def __init__(self, *, verbatim: bool) -> None:
        self._verbatim = verbatim
        self._versions: dict[str, list[StoredVersion]] = {}
        self._ids: dict[str, int] = {}

    def list_versions(self, subject: str, *, deleted: bool = False) -> list[StoredVersion]:
        """The versions of a subject, in order. deleted: also those that are deleted softly."""
        versions = self._versions.get(subject, [])
        return [stored for stored in versions if deleted or not stored.deleted]

    def list_names(self, *, deleted: bool = False) -> list[str]:
        return [name for name in self._versions if self.list_versions(name, deleted=deleted)]

    def find_version(self, subject: str, number: int) -> StoredVersion | None:
        return next((v for v in self.list_versions(subject) if v.number == number), None)

    def find_equal(self, subject: str, draft: SchemaDraft) -> StoredVersion | None:
        """The version that the registry takes for this very schema."""
        draft_key = self._make_key(draft)
        versions = self.list_versions(subject)
        return next((v for v in versions if self._make_key(v) == draft_key), None)

    def find_content(self, id: int) -> StoredVersion | None:
        """A version with this id, also a deleted one."""
        return next(
            (
                stored
                for versions in self._versions.values()
                for stored in versions
                if stored.id == id
            ),
            None,
        )

    def add(self, subject: str, draft: SchemaDraft) -> StoredVersion:
        """Register a schema that is allowed."""
        key = self._make_key(draft)
        versions = self._versions.setdefault(subject, [])
        number = draft.version or max((v.number for v in versions), default=0) + 1
        # One content has one id, whatever subjects have it.
        free_id = max((0, *self._ids.values())) + 1
        if draft.id is not None:
            self._ids[key] = draft.id
        text = draft.text if self._verbatim or draft.kind != "AVRO" else draft.normalize()
        version = StoredVersion(
            number,
            self._ids.setdefault(key, free_id),
            draft.kind,
            text,
            draft.references,
            metadata=draft.metadata,
            rule_set=draft.rule_set,
        )
        # In mode IMPORT, a version takes the place of another one of its number.
        versions[:] = [stored for stored in versions if stored.number != number]
        versions.append(version)
        versions.sort(key=lambda stored: stored.number)
        return version

    def delete(self, subject: str, numbers: Sequence[int]) -> None:
        """Delete versions softly."""
        self._versions[subject] = [
            replace(stored, deleted=True) if stored.number in numbers else stored
            for stored in self._versions[subject]
        ]

    def purge(self, subject: str, number: int | None = None) -> None:
        """Forget a version, or all of them."""
        versions = self._versions.pop(subject)
        versions = [v for v in versions if number not in (None, v.number)]
        if versions:
            self._versions[subject] = versions

    def list_referring(
        self, subject: str, number: int | None = None, *, deleted: bool = False
    ) -> list[int]:
        """Ids of the schemas that refer to a version, or to any."""
        return [
            stored.id
            for name in self.list_names(deleted=deleted)
            for stored in self.list_versions(name, deleted=deleted)
            for ref in stored.references
            if ref["subject"] == subject and number in (None, ref["version"])
        ]

    def _make_key(self, item: SchemaDraft | StoredVersion) -> str:
        draft = SchemaDraft(item.kind, item.text, tuple(item.references))
        text = item.text if self._verbatim else draft.normalize()
        # Metadata and rules are a part of the content: the same text with others has another id.
        contract = [document or {} for document in (item.metadata, item.rule_set)]
        return dumps([item.kind, text, list(item.references), *contract])


def find_conflicts(
    draft: SchemaDraft, versions: Sequence[StoredVersion], level: str, group: str | None = None
) -> list[str]:
    """Why a level forbids a schema beside these versions. Other formats than Avro are not judged:
    only a registry knows their rules. group: only versions are compared that have the same value of
    this property."""
    promise = PROMISES[level]
    if group:
        value = _get_property(draft, group)
        versions = [stored for stored in versions if _get_property(stored, group) == value]
    looked_at = versions if level.endswith("_TRANSITIVE") else versions[-1:]
    reasons: list[str] = []
    for stored in looked_at if promise.backward or promise.forward else ():
        if stored.kind != draft.kind:
            reasons.append(f"version {stored.number} has the format {stored.kind}")
        elif draft.kind == "AVRO":
            new, old = (open_schema(parse_avro(text)) for text in (draft.text, stored.text))
            unreadable = [
                *(find_unreadable(new, old) if promise.backward else ()),
                *(find_unreadable(old, new) if promise.forward else ()),
            ]
            reasons += [_describe(item, stored.number) for item in unreadable]
    return list(dict.fromkeys(reasons))


def _describe(fault: Unreadable, version: int) -> str:
    subject = f"field {fault.path}" if fault.path else "the schema"
    return f"{subject} {fault.text} (version {version})"


def _get_property(item: SchemaDraft | StoredVersion, name: str) -> Any:
    return ((item.metadata or {}).get("properties") or {}).get(name)


def complete_contract(
    draft: SchemaDraft, newest: StoredVersion | None, settings: Mapping[str, Any]
) -> SchemaDraft:
    """The draft as Confluent's registry stores it: what it leaves out is that of the newest
    version, and settings add to it (`AbstractSchemaRegistry.maybeSetMetadataRuleSet`)."""
    metadata, rule_set = draft.metadata, draft.rule_set
    if newest is not None:
        metadata = newest.metadata if metadata is None else metadata
        rule_set = newest.rule_set if rule_set is None else rule_set
    for prefix, merge in (("default", _merge_below), ("override", _merge_above)):
        metadata = merge(_merge_metadata, metadata, settings.get(f"{prefix}Metadata"))
        rule_set = merge(_merge_rule_sets, rule_set, settings.get(f"{prefix}RuleSet"))
    return replace(draft, metadata=metadata, rule_set=rule_set)


_Part = Mapping[str, Any]
_Merge = Callable[[_Part, _Part], _Part]


def _merge_below(merge: _Merge, own: _Part | None, setting: _Part | None) -> _Part | None:
    return own if setting is None else setting if own is None else merge(setting, own)


def _merge_above(merge: _Merge, own: _Part | None, setting: _Part | None) -> _Part | None:
    return own if setting is None else setting if own is None else merge(own, setting)


def _merge_metadata(old: _Part, new: _Part) -> _Part:
    maps = {name: {**old.get(name, {}), **new.get(name, {})} for name in ("tags", "properties")}
    sensitive = sorted({*old.get("sensitive", ()), *new.get("sensitive", ())})
    return {name: value for name, value in {**maps, "sensitive": sensitive}.items() if value}


def _merge_rule_sets(old: _Part, new: _Part) -> _Part:
    merged = {}
    for phase in dict.fromkeys((*old, *new)):
        names = {rule["name"] for rule in new.get(phase, ())}
        old_rules = [rule for rule in old.get(phase, ()) if rule["name"] not in names]
        merged[phase] = [*old_rules, *new.get(phase, ())]
    return merged
