"""A registry in memory: it answers calls of the API as a registry would, with the mishaps of a
network; and the provider and simulation of `kafkaform test`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from typing import Any
from urllib.parse import unquote

from msgspec.structs import replace

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

from .formats.normal_form import BY_REGISTRY_NAME, inspect_schema
from .kinds.subject_settings import LEVELS, MODES, REGISTRY_MODES
from .provider import PROVIDER, SchemaRegistryProvider
from .requests import BadAnswer, read_schema_version
from .session import APICURIO_LIMIT, RegistrySession, identify_product
from .stored_subjects import SchemaDraft, Subjects, complete_contract, find_conflicts


class _Refused(Exception):
    """status, error code, message."""

    def __init__(self, status: int, code: int, message: str) -> None:
        super().__init__(message)
        self.answer = HttpAnswer(status, {"error_code": code, "message": message})


class SimulatedRegistry:
    """One registry. apicurio: it answers as Apicurio 2.6 does where that differs; contracts: it has
    data contracts, and drops them without a word otherwise; rules: of these also rules, as the
    Enterprise edition of Confluent's; properties: without contracts, at least properties of
    metadata, as Redpanda.

    users: name -> whether it may do everything; the others may do nothing.
    """

    def __init__(
        self,
        registry_id: str = "simulated",
        *,
        apicurio: bool = False,
        contracts: bool = True,
        rules: bool = True,
        properties: bool = False,
    ) -> None:
        self.id = registry_id
        self.apicurio = apicurio
        self.contracts = contracts and not apicurio
        self.rules = rules
        self.properties = properties
        self.subjects = Subjects(verbatim=apicurio)
        self.users: dict[str, bool] = {"admin": True, "nobody": False}
        self.level = "NONE" if apicurio else "BACKWARD"
        self.mode = "READWRITE"
        self.levels: dict[str, str] = {}
        self.modes: dict[str, str] = {}
        self.settings: dict[str, dict[str, Any]] = {}
        """Subject -> its further settings, "" for the registry's."""
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
            ("GET", "schemas/ids/*"): self._read_content,
            ("GET", "config"): lambda *_: {
                "compatibilityLevel": self.level,
                **self.settings.get("", {}),
            },
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

    def _read_version(self, subject: str, version: str, call: Call) -> Any:
        deleted = call.query.get("deleted") == "true"
        versions = self.subjects.list_versions(subject, deleted=deleted)
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

    def _read_content(self, id: str, _: str, __: Call) -> Any:
        stored = self.subjects.find_content(int(id))
        if stored is None:
            raise _Refused(404, 40403, f"Schema {id} not found")
        document = stored.to_answer("")
        return {name: document[name] for name in document if name not in ("subject", "version")}

    def _look_up(self, subject: str, _: str, call: Call) -> Any:
        if not self.subjects.list_versions(subject, deleted=self.apicurio):
            _refuse_subject(subject)
        draft = self._read_draft(call, strict=not self.apicurio)
        stored = self.subjects.find_equal(subject, draft) or self.subjects.find_equal(
            subject, self._complete(subject, draft)
        )
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
        reasons = find_conflicts(draft, versions, level, self._get_group(subject))
        if self.apicurio:
            return {"is_compatible": not reasons, "reason": "; ".join(reasons) or None}
        return {"is_compatible": not reasons, "messages": reasons}

    # ── schemas ─────────────────────────────────────────────────────────────────────────

    def _register(self, subject: str, _: str, call: Call) -> Any:
        draft = self._read_draft(call)
        mode = self._get_mode(subject)
        if draft.id is not None:
            return self._import(subject, draft)
        if mode != "READWRITE":
            raise _Refused(422, 42205, f"Subject {subject} is not in read-write mode")
        draft = self._complete(subject, draft)
        stored = self.subjects.find_equal(subject, draft)
        if stored is not None:
            return {"id": stored.id}
        versions = self.subjects.list_versions(subject)
        level = self.levels.get(subject, self.level)
        reasons = find_conflicts(draft, versions, level, self._get_group(subject))
        if reasons:
            raise _Refused(409, 409, f"Schema is incompatible: {'; '.join(reasons)}")
        return {"id": self.subjects.add(subject, draft).id}

    def _import(self, subject: str, draft: SchemaDraft) -> Any:
        """Nothing is compared, and nothing taken over from other versions."""
        if self._get_mode(subject) != "IMPORT":
            raise _Refused(422, 42205, f"Subject {subject} is not in import mode")
        owner = None if draft.id is None else self.subjects.find_content(draft.id)
        if owner is not None and (owner.kind, owner.text) != (draft.kind, draft.text):
            message = f"Overwrite new schema with id {draft.id} is not permitted."
            raise _Refused(422, 42205, message)
        return {"id": self.subjects.add(subject, draft).id}

    def _complete(self, subject: str, draft: SchemaDraft) -> SchemaDraft:
        if not self.contracts and not self.properties:
            return draft
        versions = self.subjects.list_versions(subject)
        settings = self._get_settings_in_scope(subject)
        return complete_contract(draft, versions[-1] if versions else None, settings)

    def _get_settings_in_scope(self, subject: str) -> Mapping[str, Any]:
        """A subject with settings of its own gets few of the registry's (`Config.mergeConfigs`)."""
        shared = self.settings.get("", {})
        if subject not in self.levels and not self.settings.get(subject):
            return shared
        merged = ("normalize", "compatibilityGroup")
        inherited = {name: shared[name] for name in merged if name in shared}
        return {**inherited, **self.settings.get(subject, {})}

    def _get_mode(self, subject: str) -> str:
        return self.modes.get(subject, self.mode)

    def _get_group(self, subject: str) -> str | None:
        return self._get_settings_in_scope(subject).get("compatibilityGroup")

    def _require_writable(self, subject: str) -> None:
        if self._get_mode(subject) in ("READONLY", "READONLY_OVERRIDE"):
            raise _Refused(422, 42205, f"Subject {subject} is in read-only mode")

    def _delete_subject(self, subject: str, _: str, call: Call) -> Any:
        self._require_writable(subject)
        versions = self.subjects.list_versions(subject, deleted=True)
        live = [stored for stored in versions if not stored.deleted]
        if not versions:
            _refuse_subject(subject)
        # With Apicurio, versions that are deleted softly refer to others still.
        if self.subjects.list_referring(subject, deleted=self.apicurio):
            raise _Refused(422, 42206, f"One or more references exist to {subject}")
        # Apicurio asks the newest version whether the subject is deleted.
        deleted = versions[-1].deleted if self.apicurio else not live
        if call.query.get("permanent") == "true":
            if not deleted:
                status = 409 if self.apicurio else 404
                raise _Refused(status, 40405, f"Subject '{subject}' was not deleted first")
            self.subjects.purge(subject)
            self.levels.pop(subject, None)
            self.settings.pop(subject, None)
            return [stored.number for stored in versions]
        if deleted:
            raise _Refused(404, 40404, f"Subject '{subject}' was soft deleted.")
        self.subjects.delete(subject, [stored.number for stored in live])
        if not self.apicurio:
            # Confluent's registry forgets them with the subject, Apicurio with its permanent end.
            self.levels.pop(subject, None)
            self.settings.pop(subject, None)
            self.modes.pop(subject, None)
        return [stored.number for stored in live]

    def _delete_version(self, subject: str, version: str, call: Call) -> Any:
        whole = replace(call, query={**call.query, "deleted": "true"})
        number = self._read_version(subject, version, whole)["version"]
        deleted = self.subjects.find_version(subject, number) is None
        if self.subjects.list_referring(subject, number):
            raise _Refused(422, 42206, f"One or more references exist to {subject}")
        status = 409 if self.apicurio else 404
        if call.query.get("permanent") == "true":
            if not deleted:
                raise _Refused(status, 40407, f"Version {number} was not deleted first")
            self.subjects.purge(subject, number)
        elif deleted:
            raise _Refused(status, 40406, f"Version {number} was soft deleted.")
        else:
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
        metadata, rule_set = body.get("metadata"), body.get("ruleSet")
        if metadata is not None and self.properties:
            metadata = {name: metadata[name] for name in metadata if name == "properties"}
        return SchemaDraft(
            document.kind,
            document.schema,
            document.references,
            metadata if self.contracts or self.properties else None,
            rule_set if self.contracts and self.rules else None,
            body.get("id"),
            body.get("version"),
        )

    # ── levels and modes ────────────────────────────────────────────────────────────────

    def _read_level(self, subject: str, _: str, call: Call) -> Any:
        if self.apicurio:
            self._require_level(subject)
            return {"compatibilityLevel": self.levels.get(subject, "NONE")}
        level, settings = self.levels.get(subject), self.settings.get(subject, {})
        if level is None and settings:
            # A subject with settings of its own has the level that the server starts with.
            level = "BACKWARD"
        if call.query.get("defaultToGlobal") == "true":
            level, settings = level or self.level, dict(self._get_settings_in_scope(subject))
        if level is None:
            raise _Refused(404, 40408, f"Subject '{subject}' has no compatibility of its own")
        return {"compatibilityLevel": level, **settings}

    def _put_level(self, subject: str, _: str, call: Call) -> Any:
        body: Mapping[str, Any] = call.body or {}
        level = body.get("compatibility")
        if level not in LEVELS and (level is not None or not self.contracts):
            raise _Refused(400 if self.apicurio else 422, 42203, "Invalid compatibility level")
        if not self.apicurio:
            self._require_writable(subject)
        if self.contracts:
            self._put_further(subject, body)
        if level is None:
            return dict(body)
        if not subject:
            self.level = level
        elif self.apicurio and level == "NONE":
            self._require_level(subject)
            self.levels.pop(subject, None)
        else:
            self.levels[subject] = level
        return {"compatibility": level}

    def _put_further(self, subject: str, body: Mapping[str, Any]) -> None:
        """What a request leaves out stays, and null removes it (`ConfigValue.update`)."""
        settings = {**self.settings.get(subject, {}), **body}
        settings.pop("compatibility", None)
        if not self.rules:
            settings = {name: item for name, item in settings.items() if "RuleSet" not in name}
        self.settings[subject] = {name: v for name, v in settings.items() if v is not None}

    def _delete_level(self, subject: str, _: str, __: Call) -> Any:
        if self.apicurio:
            self._require_level(subject)
            return {"compatibilityLevel": self.levels.pop(subject, "NONE")}
        if subject not in self.levels and not self.settings.get(subject):
            _refuse_subject(subject)
        self._require_writable(subject)
        settings = self.settings.pop(subject, {})
        return {"compatibilityLevel": self.levels.pop(subject, "BACKWARD"), **settings}

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
        if mode == "IMPORT" and versions and call.query.get("force") != "true":
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
