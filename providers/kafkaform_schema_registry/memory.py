"""A registry in memory: it answers calls of the API as a registry would, with the mishaps of a
network; and the provider and simulation of `kafkaform test`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any
from urllib.parse import unquote

from msgspec import Struct
from msgspec.structs import replace

from kafkaform.core.canonical import dumps
from kafkaform.core.clock import Clock
from kafkaform.core.errors import ConnectError
from kafkaform.core.resource import Facts, Fault
from kafkaform.core.schema import STRING, AttributeSchema, make_schema
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import Secrets, Session, Simulation
from kafkaform.provider.http.exchange import (
    AnswerLost,
    Call,
    HttpAnswer,
    NotSent,
    make_transport_fault,
)

from .formats.avro import open_schema, parse_avro
from .formats.avro_changes import Unreadable, find_unreadable
from .formats.normal_form import BY_REGISTRY_NAME, inspect_schema
from .kinds.subject_settings import CLOSING, LEVELS, MODES, PROMISES, REGISTRY_MODES
from .provider import PROVIDER, SchemaRegistryProvider
from .requests import BadAnswer, read_schema_version
from .session import APICURIO_LIMIT, RegistrySession, identify_product


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


class _Refused(Exception):
    """status, error code, message."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.answer = HttpAnswer(status, {"error_code": code, "message": message})


class SimulatedRegistry:
    """One registry. apicurio: it answers as Apicurio 2.6 does where that differs.

    users: name -> whether it may do everything; the others may do nothing.
    """

    def __init__(self, registry_id: str = "simulated", *, apicurio: bool = False) -> None:
        self.id = registry_id
        self.apicurio = apicurio
        self.subjects = Subjects(verbatim=apicurio)
        self.users: dict[str, bool] = {"admin": True, "nobody": False}
        self.level = "NONE" if apicurio else "BACKWARD"
        self.mode = "READWRITE"
        self.levels: dict[str, str] = {}
        self.modes: dict[str, str] = {}
        self.calls: list[Call] = []
        """Every call that came here."""

    def answer(self, call: Call, user: str = "admin") -> HttpAnswer:
        """What the registry says to a call of a user."""
        self.calls.append(call)
        names = [unquote(segment) for segment in call.path.strip("/").split("/")]
        serve, subject, name = self._route(call.method, names)
        try:
            if serve is None or (self.apicurio and names[0] in ("mode", "v1")):
                raise _Refused(404, 0, "Operation not supported.")
            if not self.users.get(user, False):
                raise _Refused(403, 40301, f"User {user} is denied this operation")
            return HttpAnswer(200, serve(subject, name, call))
        except _Refused as refused:
            return refused.answer

    def _route(
        self, method: str, names: Sequence[str]
    ) -> tuple[Callable[[str, str, Call], Any] | None, str, str]:
        """What serves a path, the subject in it, and its last part."""
        shape = tuple("*" if at == _SUBJECT_AT.get(names[0]) else n for at, n in enumerate(names))
        at = _SUBJECT_AT.get(names[0], 0)
        subject = names[at] if at and len(names) > at else ""
        last = names[-1]
        for route, serve in self._routes().items():
            if route[0] == method and _fits(route[1], shape):
                version = names[3] if shape[0] == "subjects" and len(names) > 3 else last
                return serve, subject, version
        return None, subject, last

    def _routes(self) -> Mapping[tuple[str, str], Callable[[str, str, Call], Any]]:
        return {
            ("GET", "v1/metadata/id"): self._identify,
            ("GET", "subjects"): self._list_subjects,
            ("GET", "subjects/*/versions"): self._list_versions,
            ("GET", "subjects/*/versions/*"): self._read_version,
            ("GET", "subjects/*/versions/*/referencedby"): self._list_referring,
            ("POST", "subjects/*"): self._look_up,
            ("POST", "subjects/*/versions"): self._register,
            ("DELETE", "subjects/*"): self._delete_subject,
            ("DELETE", "subjects/*/versions/*"): self._delete_version,
            ("POST", "compatibility/subjects/*/versions"): self._check,
            ("POST", "compatibility/subjects/*/versions/latest"): self._check,
            ("GET", "schemas/ids/*/versions"): self._list_uses,
            ("GET", "config"): lambda *_: {"compatibilityLevel": self.level},
            ("PUT", "config"): self._put_level,
            ("GET", "config/*"): self._read_level,
            ("PUT", "config/*"): self._put_level,
            ("DELETE", "config/*"): self._delete_level,
            ("GET", "mode"): lambda *_: {"mode": self.mode},
            ("PUT", "mode"): self._put_mode,
            ("GET", "mode/*"): self._read_mode,
            ("PUT", "mode/*"): self._put_mode,
            ("DELETE", "mode/*"): self._delete_mode,
        }

    # ── reading ─────────────────────────────────────────────────────────────────────────

    def _identify(self, *_: object) -> Any:
        clusters = {"kafka-cluster": self.id, "schema-registry-cluster": "schema-registry"}
        return {"id": "", "scope": {"path": [], "clusters": clusters}}

    def _list_subjects(self, _: str, __: str, call: Call) -> Any:
        names = self.subjects.list_names(deleted=call.query.get("deleted") == "true")
        return names[:APICURIO_LIMIT] if self.apicurio else names

    def _list_versions(self, subject: str, _: str, call: Call) -> Any:
        deleted = call.query.get("deleted") == "true"
        versions = self.subjects.list_versions(subject, deleted=deleted)
        return [stored.number for stored in versions] or _refuse_subject(subject)

    def _read_version(self, subject: str, version: str, _: Call) -> Any:
        versions = self.subjects.list_versions(subject)
        if not versions:
            _refuse_subject(subject)
        if version == "latest":
            return versions[-1].to_answer(subject)
        stored = next(
            (candidate for candidate in versions if str(candidate.number) == version), None
        )
        if stored is None:
            raise _Refused(404, 40402, f"Version {version} not found.")
        return stored.to_answer(subject)

    def _list_referring(self, subject: str, version: str, call: Call) -> Any:
        body = self._read_version(subject, version, call)
        # With Apicurio, versions that are deleted softly refer to others still.
        return self.subjects.list_referring(subject, body["version"], deleted=self.apicurio)

    def _list_uses(self, id: str, _: str, __: Call) -> Any:
        uses = [
            {"subject": name, "version": stored.number}
            for name in self.subjects.list_names()
            for stored in self.subjects.list_versions(name)
            if str(stored.id) == id
        ]
        if not uses:
            raise _Refused(404, 40403, f"Schema {id} not found")
        return uses

    def _look_up(self, subject: str, _: str, call: Call) -> Any:
        if not self.subjects.list_versions(subject, deleted=self.apicurio):
            _refuse_subject(subject)
        stored = self.subjects.find_equal(subject, self._read_draft(call, strict=not self.apicurio))
        if stored is None:
            raise _Refused(404, 40403, "Schema not found")
        return stored.to_answer(subject)

    def _check(self, subject: str, last: str, call: Call) -> Any:
        versions = self.subjects.list_versions(subject)
        if not versions and (self.apicurio or last == "latest"):
            code = 40402 if last == "latest" else 40401
            raise _Refused(404, code, f"Subject '{subject}' not found.")
        draft, level = self._read_draft(call), self.levels.get(subject, self.level)
        if self.apicurio and draft.references and level != "NONE":
            raise _Refused(422, 42201, "Could not execute compatibility rule on invalid schema")
        reasons = find_conflicts(draft, versions, level)
        if self.apicurio:
            return {"is_compatible": not reasons, "reason": "; ".join(reasons) or None}
        return {"is_compatible": not reasons, "messages": reasons}

    # ── schemas ─────────────────────────────────────────────────────────────────────────

    def _register(self, subject: str, _: str, call: Call) -> Any:
        draft = self._read_draft(call)
        if self.modes.get(subject, self.mode) in CLOSING:
            raise _Refused(422, 42205, f"Subject {subject} is in read-only mode")
        stored = self.subjects.find_equal(subject, draft)
        if stored is not None:
            return {"id": stored.id}
        versions = self.subjects.list_versions(subject)
        reasons = find_conflicts(draft, versions, self.levels.get(subject, self.level))
        if reasons:
            raise _Refused(409, 409, f"Schema is incompatible: {'; '.join(reasons)}")
        return {"id": self.subjects.add(subject, draft).id}

    def _delete_subject(self, subject: str, _: str, call: Call) -> Any:
        versions = self.subjects.list_versions(subject, deleted=True)
        live = [stored for stored in versions if not stored.deleted]
        if not versions:
            _refuse_subject(subject)
        # With Apicurio, versions that are deleted softly refer to others still.
        if self.subjects.list_referring(subject, deleted=self.apicurio):
            raise _Refused(422, 42206, f"One or more references exist to {subject}")
        if call.query.get("permanent") == "true":
            if live:
                status = 409 if self.apicurio else 404
                raise _Refused(status, 40405, f"Subject '{subject}' was not deleted first")
            self.subjects.purge(subject)
            self.levels.pop(subject, None)
            return [stored.number for stored in versions]
        if not live:
            raise _Refused(404, 40404, f"Subject '{subject}' was soft deleted.")
        self.subjects.delete(subject, [stored.number for stored in live])
        if not self.apicurio:
            # Confluent's registry forgets them with the subject, Apicurio with its permanent end.
            self.levels.pop(subject, None)
            self.modes.pop(subject, None)
        return [stored.number for stored in live]

    def _delete_version(self, subject: str, version: str, call: Call) -> Any:
        number = self._read_version(subject, version, call)["version"]
        if self.subjects.list_referring(subject, number, deleted=self.apicurio):
            raise _Refused(422, 42206, f"One or more references exist to {subject}")
        self.subjects.delete(subject, [number])
        return number

    def _read_draft(self, call: Call, *, strict: bool = True) -> SchemaDraft:
        """The schema of a call. strict: one that is none is refused."""
        body = call.body if isinstance(call.body, dict) else {}
        try:
            document = read_schema_version({**body, "version": 1, "id": 1}, "")
        except BadAnswer as error:
            raise _Refused(422, 42201, f"Invalid schema: {error}") from None
        if document.kind not in BY_REGISTRY_NAME:
            raise _Refused(422, 42201, f"Invalid schema type {document.kind}")
        name, elsewhere = BY_REGISTRY_NAME[document.kind].name, bool(document.references)
        faults = inspect_schema(name, document.schema, elsewhere=elsewhere).faults
        if faults and strict:
            raise _Refused(422, 42201, f"Invalid schema: {faults[0].text}")
        for stored in document.references:
            if strict and self.subjects.find_version(stored["subject"], stored["version"]) is None:
                raise _Refused(422, 42201, f"Invalid schema: no reference {stored['subject']}")
        return SchemaDraft(document.kind, document.schema, document.references)

    # ── levels and modes ────────────────────────────────────────────────────────────────

    def _read_level(self, subject: str, _: str, call: Call) -> Any:
        if self.apicurio:
            self._require_level(subject)
            return {"compatibilityLevel": self.levels.get(subject, "NONE")}
        level = self.levels.get(subject)
        if level is None and call.query.get("defaultToGlobal") == "true":
            level = self.level
        if level is None:
            raise _Refused(404, 40408, f"Subject '{subject}' has no compatibility of its own")
        return {"compatibilityLevel": level}

    def _put_level(self, subject: str, _: str, call: Call) -> Any:
        level = (call.body or {}).get("compatibility")
        if level not in LEVELS:
            raise _Refused(400 if self.apicurio else 422, 42203, "Invalid compatibility level")
        if not subject:
            self.level = level
        elif self.apicurio and level == "NONE":
            self._require_level(subject)
            self.levels.pop(subject, None)
        else:
            self.levels[subject] = level
        return {"compatibility": level}

    def _delete_level(self, subject: str, _: str, __: Call) -> Any:
        if self.apicurio:
            self._require_level(subject)
            return {"compatibilityLevel": self.levels.pop(subject, "NONE")}
        if subject not in self.levels:
            _refuse_subject(subject)
        return {"compatibilityLevel": self.levels.pop(subject)}

    def _read_mode(self, subject: str, _: str, __: Call) -> Any:
        if subject not in self.modes:
            raise _Refused(404, 40409, f"Subject '{subject}' has no mode of its own")
        return {"mode": self.modes[subject]}

    def _put_mode(self, subject: str, _: str, call: Call) -> Any:
        mode = (call.body or {}).get("mode")
        allowed: tuple[str, ...] = MODES if subject else REGISTRY_MODES
        if mode not in allowed:
            raise _Refused(422, 42204, "Invalid mode")
        versions = (
            self.subjects.list_names() if not subject else self.subjects.list_versions(subject)
        )
        if mode == "IMPORT" and versions:
            raise _Refused(422, 42205, "Cannot import since found existing subjects")
        if subject:
            self.modes[subject] = mode
        else:
            self.mode = mode
        return {"mode": mode}

    def _delete_mode(self, subject: str, _: str, __: Call) -> Any:
        if subject not in self.modes:
            _refuse_subject(subject)
        return {"mode": self.modes.pop(subject)}

    def _require_level(self, subject: str) -> None:
        """Apicurio has a level for each subject that exists, and for others that got one."""
        versions = self.subjects.list_versions(subject, deleted=True)
        if subject not in self.levels and not versions:
            _refuse_subject(subject)


_SUBJECT_AT = {"subjects": 1, "compatibility": 2, "config": 1, "mode": 1, "schemas": 2}
"""First part of a path -> the place of the subject in it."""


def _fits(pattern: str, shape: Sequence[str]) -> bool:
    segments = pattern.split("/")
    return len(segments) == len(shape) and all(
        stored in ("*", name) for stored, name in zip(segments, shape, strict=True)
    )


def _refuse_subject(subject: str) -> Any:
    raise _Refused(404, 40401, f"Subject '{subject}' not found.")


class RegistryMishap(StrEnum):
    """What happens to one write."""

    UNSENT = "unsent"
    """The connection fails."""
    DROPPED = "dropped"
    """It is lost on its way, and nobody knows."""
    UNANSWERED = "unanswered"
    """It is executed, and its answer is lost."""


class SimulatedClient:
    """Calls a registry as one user. See `RegistryClient`.

    mishaps: what happens to coming writes, the next one first; every session of the registry
    shares them.
    """

    def __init__(
        self, registry: SimulatedRegistry, user: str, mishaps: list[RegistryMishap]
    ) -> None:
        self._registry = registry
        self._user = user
        self._mishaps = mishaps
        self._closed = False

    def ask_all(self, calls: Sequence[Call]) -> list[HttpAnswer | Fault]:
        return list(map(self._ask, calls))

    def prove(self) -> None:
        """Nothing can lead to another registry here."""

    def close(self) -> None:
        self._closed = True

    def _ask(self, call: Call) -> HttpAnswer | Fault:
        if self._closed:
            return make_transport_fault(NotSent("the session is closed"))
        mishap = self._mishaps.pop(0) if self._mishaps and not call.reads else None
        if mishap is RegistryMishap.UNSENT:
            return make_transport_fault(NotSent("the connection failed"))
        if mishap is RegistryMishap.DROPPED:
            return make_transport_fault(AnswerLost("the connection broke"))
        answer = self._registry.answer(call, self._user)
        if mishap is RegistryMishap.UNANSWERED:
            return make_transport_fault(AnswerLost("the connection broke"))
        return answer


ADDRESS = "https://registry"
"""What messages call it."""
CONFLUENT, APICURIO = "confluent", "apicurio"

SETTINGS = make_schema(
    "The simulated registry of a test file. It knows when Avro schemas are compatible; it takes "
    "every schema of another format.",
    AttributeSchema(
        "product",
        STRING,
        "Whose answers it gives where products differ.",
        default=CONFLUENT,
        choices=(CONFLUENT, APICURIO),
    ),
    AttributeSchema(
        "compatibility",
        STRING,
        "The registry's own level.",
        default="BACKWARD",
        choices=LEVELS,
    ),
)


def connect_simulated(
    registry: SimulatedRegistry, user: str = "admin", mishaps: list[RegistryMishap] | None = None
) -> SchemaRegistryProvider:
    """The provider whose sessions all reach this registry, as this user."""

    def connect(instance: str, config: FrozenMap, _: Secrets) -> Session:
        if user not in registry.users:
            raise ConnectError(f"{ADDRESS}: the login of {user} was refused", "Check username.")
        client = SimulatedClient(registry, user, mishaps if mishaps is not None else [])
        product = identify_product(client, ADDRESS)
        facts = Facts(
            registry.id,
            nodes=("registry",),
            principal=user,
            values=product.make_facts(config, login=False),
            profile=product.profile,
            protect=config.get("protect_schemas") is not False,
        )
        return RegistrySession(instance, client, facts)

    return SchemaRegistryProvider(PROVIDER.types, PROVIDER.data, connect)


def make_provider(settings: FrozenMap, scope: str, _: Clock) -> SchemaRegistryProvider:
    """The provider of a new registry. scope: its id."""
    registry = SimulatedRegistry(scope, apicurio=settings["product"] == APICURIO)
    registry.level = settings["compatibility"]
    return connect_simulated(registry)


SIMULATION = Simulation(SETTINGS, make_provider)
