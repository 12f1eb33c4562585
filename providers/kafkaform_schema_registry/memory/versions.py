"""The subjects of a simulated registry: versions, ids, and what is compatible with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.canonical import dumps

from ..formats.avro import parse_avro
from ..formats.avro_resolution import Unreadable, find_unreadable
from ..formats.avro_types import open_schema
from ..formats.normal_form import BY_REGISTRY_NAME, inspect_schema
from ..kinds.levels import PROMISES


class StoredVersion(Struct, frozen=True):
    """One version of a subject."""

    number: int
    id: int
    kind: str
    """The registry's name of the format."""
    text: str
    references: tuple[Mapping[str, Any], ...] = ()
    deleted: bool = False

    def to_answer(self, subject: str) -> dict[str, Any]:
        """As registries send it; Avro is the format of an answer that names none."""
        document: dict[str, Any] = {
            "id": self.id,
            "subject": subject,
            "version": self.number,
            "schema": self.text,
            "references": [dict(stored) for stored in self.references],
        }
        return document if self.kind == "AVRO" else {**document, "schemaType": self.kind}


class SchemaDraft(Struct, frozen=True):
    """A schema that somebody sends."""

    kind: str
    text: str
    references: tuple[Mapping[str, Any], ...]

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
        draft_key = self._make_key(draft.kind, draft.text, draft.references)
        for stored in self.list_versions(subject):
            if self._make_key(stored.kind, stored.text, stored.references) == draft_key:
                return stored
        return None

    def add(self, subject: str, draft: SchemaDraft) -> StoredVersion:
        """Register a schema that is allowed."""
        key = self._make_key(draft.kind, draft.text, draft.references)
        number = max((v.number for v in self._versions.get(subject, ())), default=0) + 1
        text = draft.text if self._verbatim or draft.kind != "AVRO" else draft.normalize()
        version = StoredVersion(
            number,
            self._ids.setdefault(key, len(self._ids) + 1),
            draft.kind,
            text,
            draft.references,
        )
        self._versions.setdefault(subject, []).append(version)
        return version

    def delete(self, subject: str, numbers: Sequence[int]) -> None:
        """Delete versions softly."""
        self._versions[subject] = [
            replace(stored, deleted=True) if stored.number in numbers else stored
            for stored in self._versions[subject]
        ]

    def purge(self, subject: str) -> None:
        """Forget all versions."""
        del self._versions[subject]

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

    def _make_key(self, kind: str, text: str, references: Sequence[Mapping[str, Any]]) -> str:
        draft = SchemaDraft(kind, text, tuple(references))
        return dumps([kind, text if self._verbatim else draft.normalize(), list(references)])


def find_conflicts(draft: SchemaDraft, versions: Sequence[StoredVersion], level: str) -> list[str]:
    """Why a level forbids a schema beside these versions. Other formats than Avro are not judged:
    only a registry knows their rules."""
    promise = PROMISES[level]
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
