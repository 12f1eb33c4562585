"""Requests of the API that registries have in common: the calls, their answers, and what error
codes say. Answers are read strictly: what has another form is no answer.

Sources: https://docs.confluent.io/platform/current/schema-registry/develop/api.html, `Errors.java`
of Confluent's registry, `SchemaErrorCodes` of Karapace, `ErrorCode` of Apicurio, and answers of
Apicurio 2.6.13.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from msgspec import Struct

from kafkaform.core.resource import Facts, Fault, FaultClass
from kafkaform.core.secret import mask_secrets
from kafkaform.core.value import EMPTY, FrozenMap, Value
from kafkaform.provider.http.exchange import (
    Call,
    ErrorTable,
    HttpAnswer,
    join_path,
    make_fault,
    read_error_code,
)

from .formats.normal_form import FORMATS
from .kinds.contracts import (
    METADATA,
    PROPERTIES,
    RULE_FIELDS,
    RULE_SET,
    SENSITIVE,
    TAGS,
    flatten_metadata,
    flatten_rule_set,
    nest_metadata,
    nest_rule_set,
)


class RegistryClient(Protocol):
    """What reaches a registry: `HttpClient`, or that of the simulated one."""

    def ask_all(self, calls: Sequence[Call]) -> list[HttpAnswer | Fault]:
        """The answer to each call, in order; a Fault for one that got none. Raises OtherSystem."""

    def prove(self) -> None:
        """Ask which registry answers, if registries of this kind say so. Raises OtherSystem."""

    def close(self) -> None:
        """Later calls are not sent."""


class RegistryContext(Struct, frozen=True):
    """One session."""

    instance: str
    """The provider instance."""
    client: RegistryClient
    facts: Facts

    def ask(self, call: Call) -> HttpAnswer | Fault:
        """The answer to one call."""
        return self.client.ask_all([call])[0]


MAX_INT = 2**31 - 1
MAX_REFERENCES = 1000
MAX_REASONS = 5
MAX_REASON = 400
"""Characters of one reason."""

_WORD = re.compile(r"[A-Z][A-Z_]{0,63}")


class BadAnswer(ValueError):
    """The answer does not have the form of the API. The message says what is wrong."""


class SchemaVersion(Struct, frozen=True):
    """One version of a subject."""

    version: int
    id: int
    """The id of the content, which records carry."""
    kind: str
    """The registry's name of the format."""
    schema: str
    references: tuple[FrozenMap, ...]
    metadata: FrozenMap = EMPTY
    """Canonical (`kinds/contracts.py`), with what settings have added."""
    rule_set: FrozenMap = EMPTY


def read_names(body: Any) -> tuple[str, ...]:
    """The names of a list of subjects."""
    if not isinstance(body, list) or not all(isinstance(item, str) for item in body):
        raise BadAnswer("the list of subjects is no list of texts")
    return tuple(dict.fromkeys(body))


def read_numbers(body: Any) -> tuple[int, ...]:
    """Versions or ids."""
    if not isinstance(body, list):
        raise BadAnswer("a list of versions or ids is no list")
    return tuple(_read_number({"item": item}, "item") for item in body)


def read_uses(body: Any) -> tuple[tuple[str, int], ...]:
    """The versions of a list, each as subject and number."""
    if not isinstance(body, list):
        raise BadAnswer("a list of versions is no list")
    items = map(_read_object, body)
    return tuple((_read_text(item, "subject"), _read_number(item, "version")) for item in items)


def read_schema_version(body: Any, subject: str) -> SchemaVersion:
    """One version, which has to be of this subject."""
    document = _read_object(body)
    if document.get("subject", subject) != subject:
        raise BadAnswer("it is about another subject")
    # Registries leave the format out for Avro, which was the only one until version 5.5.
    kind = "AVRO" if document.get("schemaType") is None else document["schemaType"]
    references = [] if document.get("references") is None else document["references"]
    if not isinstance(kind, str) or not _WORD.fullmatch(kind):
        raise BadAnswer("schemaType is no name of a format")
    if not isinstance(references, list) or len(references) > MAX_REFERENCES:
        raise BadAnswer("references is no list, or too long")
    return SchemaVersion(
        _read_number(document, "version"),
        _read_number(document, "id"),
        kind,
        _read_text(document, "schema"),
        tuple(map(_read_reference, references)),
        read_metadata(document.get("metadata")),
        read_rule_set(document.get("ruleSet")),
    )


def read_content(body: Any, id: int) -> SchemaVersion:
    """The content of an id, as a version without a number."""
    return read_schema_version({**_read_object(body), "subject": "", "version": 0, "id": id}, "")


def read_word(body: Any, *names: str) -> str:
    """A level or a mode, under the first of these names that the answer has."""
    document = _read_object(body)
    word = next((document[name] for name in names if document.get(name) is not None), None)
    if not isinstance(word, str) or not _WORD.fullmatch(word):
        raise BadAnswer(f"{names[0]} is no word in capitals")
    return word


def read_extras(body: Any, *expected: str) -> tuple[str, ...]:
    """Names of further settings that have a value."""
    document = _read_object(body)
    return tuple(sorted(name for name, value in document.items() if value and name not in expected))


def read_settings(body: Any) -> FrozenMap:
    """Attribute -> value of each setting but level and mode, canonical. What is not set has the
    empty value that a block would declare."""
    document = _read_object(body)
    return FrozenMap(
        {name: read(document.get(SETTING_NAMES[name])) for name, read in _SETTING_READERS.items()}
    )


def read_metadata(body: Any) -> FrozenMap:
    """Canonical metadata, without the values of sensitive properties."""
    if body is None:
        return EMPTY
    document = _read_object(body)
    sensitive = _read_texts(document, "sensitive")
    properties = _read_map(document, "properties", _read_text)
    return flatten_metadata(
        {
            PROPERTIES: {name: text for name, text in properties.items() if name not in sensitive},
            TAGS: _read_map(document, "tags", _read_texts),
            SENSITIVE: sensitive,
        }
    )


def read_rule_set(body: Any) -> FrozenMap:
    """Canonical rules."""
    if body is None:
        return EMPTY
    document = _read_object(body)
    rules: dict[str, tuple[Mapping[str, Any], ...]] = {}
    for phase, name in _PHASES.items():
        items = () if document.get(name) is None else document[name]
        if not isinstance(items, list | tuple):
            raise BadAnswer(f"{name} is no list")
        rules[phase] = tuple(map(_read_rule, items))
    return flatten_rule_set(rules)


def _read_rule(item: Any) -> Mapping[str, Any]:
    document = _read_object(item)
    rule: dict[str, Any] = {"name": _read_text(document, "name")}
    for field, name in _RULE_NAMES.items():
        if document.get(name) is None:
            continue
        if field == "tags":
            rule[field] = _read_texts(document, name)
        elif field == "params":
            rule[field] = _read_map(document, name, _read_text)
        elif field == "disabled":
            rule[field] = document[name] is True
        else:
            rule[field] = _read_text(document, name)
    return rule


def _read_texts(document: Mapping[str, Any], name: str) -> tuple[str, ...]:
    items = document.get(name)
    if items is None:
        return ()
    if not isinstance(items, list | tuple) or not all(isinstance(item, str) for item in items):
        raise BadAnswer(f"{name} is no list of texts")
    return tuple(items)


def _read_map(
    document: Mapping[str, Any], name: str, read: Callable[[Mapping[str, Any], str], Any]
) -> dict[str, Any]:
    entries = document.get(name)
    return {} if entries is None else {key: read(entries, key) for key in _read_object(entries)}


def _read_optional_text(value: Any) -> str:
    if value is not None and not isinstance(value, str):
        raise BadAnswer("a setting is no text")
    return value or ""


SETTING_NAMES: Mapping[str, str] = {
    "compatibility": "compatibility",
    "compatibility_group": "compatibilityGroup",
    "alias": "alias",
    "normalize": "normalize",
    "default_metadata": "defaultMetadata",
    "override_metadata": "overrideMetadata",
    "default_rule_set": "defaultRuleSet",
    "override_rule_set": "overrideRuleSet",
}
"""Attribute -> its name in requests that set it."""
_SETTING_READERS: Mapping[str, Callable[[Any], Value]] = {
    "compatibility_group": _read_optional_text,
    "alias": _read_optional_text,
    "normalize": lambda value: value is True,
    "default_metadata": read_metadata,
    "override_metadata": read_metadata,
    "default_rule_set": read_rule_set,
    "override_rule_set": read_rule_set,
}
_PHASES = {
    "domain_rules": "domainRules",
    "migration_rules": "migrationRules",
    "encoding_rules": "encodingRules",
}
_RULE_NAMES = {
    **{name: name for name in RULE_FIELDS},
    "on_success": "onSuccess",
    "on_failure": "onFailure",
}
"""Field of a rule -> its name in requests and answers."""


def read_verdict(body: Any) -> tuple[bool, tuple[str, ...]]:
    """Whether a schema is compatible, and the registry's reasons why not."""
    document = _read_object(body)
    verdict = document.get("is_compatible")
    if not isinstance(verdict, bool):
        raise BadAnswer("is_compatible is no bool")
    messages = document.get("messages") or []
    # Apicurio gives one text instead of a list.
    texts = (
        [*messages, document.get("reason")]
        if isinstance(messages, list)
        else [document.get("reason")]
    )
    reasons = [_cut(text) for text in texts if isinstance(text, str) and text.strip()]
    omitted = len(reasons) - MAX_REASONS
    cut = reasons[:MAX_REASONS]
    return verdict, (*cut, f"and {omitted} more") if omitted > 0 else tuple(cut)


def read_registry_id(body: Any) -> str | None:
    """What identifies one of Confluent's registries: the cluster that it stores its schemas in, and
    its own group there. None for an answer without both."""
    if not isinstance(body, dict):
        return None
    scope = body.get("scope")
    clusters = scope.get("clusters") if isinstance(scope, dict) else None
    if not isinstance(clusters, dict):
        return None
    ids = clusters.get("kafka-cluster"), clusters.get("schema-registry-cluster")
    if not all(isinstance(cluster_id, str) and cluster_id for cluster_id in ids):
        return None
    return "/".join(str(cluster_id) for cluster_id in ids)


def _read_reference(item: Any) -> FrozenMap:
    document = _read_object(item)
    return FrozenMap(
        name=_read_text(document, "name"),
        subject=_read_text(document, "subject"),
        version=_read_number(document, "version"),
    )


def _read_object(body: Any) -> Mapping[str, Any]:
    if not isinstance(body, dict):
        raise BadAnswer("it is no JSON object")
    return body


def _read_text(document: Mapping[str, Any], name: str) -> str:
    if not isinstance(document.get(name), str):
        raise BadAnswer(f"{name} is no text")
    return str(document[name])


def _read_number(document: Mapping[str, Any], name: str) -> int:
    value = document.get(name)
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_INT:
        raise BadAnswer(f"{name} is no number from 0 to {MAX_INT:,}")
    return value


def _cut(text: str) -> str:
    # Registries repeat parts of a schema in their reasons, and so whatever is in it.
    reason = " ".join(mask_secrets(text).split())
    return reason if len(reason) <= MAX_REASON else reason[: MAX_REASON - 1] + "…"


T = TypeVar("T")

_D, _N, _A = FaultClass.DEFINITE, FaultClass.NOT_APPLIED, FaultClass.AMBIGUOUS
_C = FaultClass.CONVERGED
_PLAN = "plan again"

NO_SUBJECT = frozenset({40401, 40402, 40403, 40404, 40406})
"""Codes with status 404 that prove that there is no subject, version or schema. Any other 404 can
come from a proxy, or from a server that is no registry."""
NOT_SET = frozenset({40401, 40408, 40409})
"""The same for a level or a mode. Before 7.0, Confluent's registry had 40401 for these, too."""

ERRORS: ErrorTable = {
    (404, 40401): (_C, _PLAN),
    (404, 40402): (_C, _PLAN),
    (404, 40403): (_C, _PLAN),
    (404, 40404): (_C, _PLAN),
    (404, 40405): (_C, "it was registered again meanwhile; plan again"),
    # Apicurio has another status for the same code.
    (409, 40405): (_C, "it was registered again meanwhile; plan again"),
    (404, 40406): (_C, _PLAN),
    # Apicurio has another status for these codes, too.
    (409, 40406): (_C, _PLAN),
    (404, 40407): (_C, "it was registered again meanwhile; plan again"),
    (409, 40407): (_C, "it was registered again meanwhile; plan again"),
    (404, 40408): (_C, _PLAN),
    (404, 40409): (_C, _PLAN),
    (404, None): (_D, "check url: this server does not have this part of the API"),
    (405, None): (_D, "check url: this server does not have this part of the API"),
    (409, None): (
        _D,
        "change the schema so that it is compatible, or first give the subject another level",
    ),
    (422, 42201): (_D, "correct the schema or its references"),
    (422, 42205): (_D, "the subject or the registry refuses writes; set mode READWRITE first"),
    (422, 42206): (_D, "first change or delete the subjects that refer to it"),
    (422, 42209): (_D, "divide the schema, and refer to the parts with references"),
    (500, 50001): (_A, "look at the registry's log and at its Kafka"),
    (500, 50002): (_A, "look at the registry's log and at its Kafka"),
    (500, 50003): (_A, "look at the registry's leader"),
    # Only the leader writes, and nobody knew it.
    (500, 50004): (_N, "wait until the registry has a leader, and run the same command again"),
}


def is_missing(answer: HttpAnswer) -> bool:
    """True if the answer proves that there is no such subject or schema."""
    return answer.status == 404 and read_error_code(answer) in NO_SUBJECT


def is_half_deleted(answer: HttpAnswer) -> bool:
    """True if the registry calls a subject deleted softly, of which there can be versions all the
    same."""
    return answer.status == 404 and read_error_code(answer) == 40404


def is_not_set(answer: HttpAnswer) -> bool:
    """True if the answer proves that the subject has no level or mode of its own."""
    return answer.status == 404 and read_error_code(answer) in NOT_SET


def lacks_endpoint(answer: HttpAnswer) -> bool:
    """True if the server does not know the path, in whatever words."""
    return answer.status == 405 or (
        answer.status == 404 and not 40400 <= (read_error_code(answer) or 0) < 40500
    )


def judge_refusal(answer: HttpAnswer, call: Call) -> Fault:
    """The fault of an answer that is no success."""
    return make_fault(answer, ERRORS, call)


def parse_answer(answer: HttpAnswer | Fault, call: Call, read: Callable[[Any], T]) -> T | Fault:
    """What `read` makes of the body of a success; the fault of anything else."""
    if isinstance(answer, Fault):
        return answer
    if not answer.succeeded:
        return judge_refusal(answer, call)
    try:
        return read(answer.body)
    except BadAnswer as error:
        return make_bad_answer(error, call)


def make_bad_answer(error: BadAnswer, call: Call) -> Fault:
    """The fault of a success whose body nobody can read."""
    # A registry may have executed a write whose answer nobody can read.
    kind = FaultClass.NOT_APPLIED if call.reads else FaultClass.AMBIGUOUS
    return Fault(
        "BAD_ANSWER",
        f"the answer is not as the API has it: {error}",
        kind,
        str(call),
        "check url, and what answers there",
    )


OWN = {"defaultToGlobal": "false"}
"""Only what the subject itself has."""
# Without it, a registry says only whether a schema is compatible, and not why.
VERBOSE = {"verbose": "true"}
DELETED = {"deleted": "true"}
PERMANENT = {"permanent": "true"}

IDENTIFY = Call("GET", "/v1/metadata/id", reads=True)
LIST_SUBJECTS = Call("GET", "/subjects", reads=True)


def read_version(subject: str, version: int | None, *, deleted: bool = False) -> Call:
    """One version of a subject, None for the latest. deleted: also one that is deleted softly."""
    name = "latest" if version is None else str(version)
    path = join_path("subjects", subject, "versions", name)
    return Call("GET", path, query=DELETED if deleted else {}, reads=True)


def list_versions(subject: str, *, deleted: bool = False) -> Call:
    """The numbers of a subject's versions. deleted: also of those that are deleted softly."""
    path = join_path("subjects", subject, "versions")
    return Call("GET", path, query=DELETED if deleted else {}, reads=True)


def list_referring(subject: str, version: int) -> Call:
    """Ids of the schemas that refer to a version."""
    path = join_path("subjects", subject, "versions", str(version), "referencedby")
    return Call("GET", path, reads=True)


def list_uses(id: int) -> Call:
    """Subjects and versions with the content of an id."""
    return Call("GET", join_path("schemas", "ids", str(id), "versions"), reads=True)


def look_up(payload: Mapping[str, Any]) -> Call:
    """Whether a subject has this very schema. payload: that of a step."""
    # A POST that changes nothing: it may be sent again if its answer is lost.
    return Call("POST", join_path("subjects", payload["subject"]), make_body(payload), reads=True)


def check_all(payload: Mapping[str, Any]) -> Call:
    """Whether a subject could have this schema beside the versions that its level looks at."""
    path = join_path("compatibility", "subjects", payload["subject"], "versions")
    return Call("POST", path, make_body(payload), VERBOSE, reads=True)


def check_latest(payload: Mapping[str, Any]) -> Call:
    """The same for the latest version alone: what older registries have."""
    path = join_path("compatibility", "subjects", payload["subject"], "versions", "latest")
    return Call("POST", path, make_body(payload), VERBOSE, reads=True)


def register(payload: Mapping[str, Any], sensitive: Mapping[str, str] = EMPTY) -> Call:
    """Without `normalize`: the registry would keep another text than the one that was planned.
    sensitive: the values of sensitive properties."""
    body = make_body(payload, sensitive)
    return Call("POST", join_path("subjects", payload["subject"], "versions"), body)


def delete_subject(subject: str, *, permanent: bool) -> Call:
    return Call("DELETE", join_path("subjects", subject), query=PERMANENT if permanent else {})


def delete_version(subject: str, version: int, *, permanent: bool) -> Call:
    path = join_path("subjects", subject, "versions", str(version))
    return Call("DELETE", path, query=PERMANENT if permanent else {})


def read_setting(name: str, subject: str | None) -> Call:
    """What the subject itself has. name: `config` or `mode`; subject: None for the registry's."""
    if subject is None:
        return Call("GET", join_path(name), reads=True)
    return Call("GET", join_path(name, subject), query=OWN, reads=True)


def read_settings_in_scope(subject: str) -> Call:
    """The settings that a new version of a subject gets: its own and the registry's."""
    query = {"defaultToGlobal": "true"}
    return Call("GET", join_path("config", subject), query=query, reads=True)


def ask_content(id: int) -> Call:
    """The schema with an id, whatever subjects have it."""
    return Call("GET", join_path("schemas", "ids", str(id)), reads=True)


def put_setting(
    name: str, subject: str | None, body: Mapping[str, Any], *, force: bool = False
) -> Call:
    """force: mode IMPORT, although there are schemas."""
    query = {"force": "true"} if force else {}
    return Call("PUT", _setting_path(name, subject), body, query)


def delete_setting(name: str, subject: str) -> Call:
    return Call("DELETE", _setting_path(name, subject))


def make_body(payload: Mapping[str, Any], sensitive: Mapping[str, str] = EMPTY) -> dict[str, Any]:
    """The schema of a step as registries want it. What a payload leaves out of the contract, a
    registry takes over from the version before."""
    kind = FORMATS[payload["format"]].registry_name
    body: dict[str, Any] = {"schema": payload["schema"]}
    # Registries before 5.5 know Avro only, and refuse what they do not know.
    if kind != "AVRO":
        body["schemaType"] = kind
    if payload["references"]:
        body["references"] = list(payload["references"])
    if payload.get(METADATA) is not None:
        body["metadata"] = write_metadata(payload[METADATA], sensitive)
    if payload.get(RULE_SET) is not None:
        body["ruleSet"] = write_rule_set(payload[RULE_SET])
    number = payload.get("import") or EMPTY
    return {**body, **{name: value for name, value in number.items() if value is not None}}


def write_metadata(metadata: Mapping[str, Any], sensitive: Mapping[str, str]) -> dict[str, Any]:
    """Canonical metadata as registries want it, with the values of sensitive properties."""
    document = nest_metadata(FrozenMap(metadata))
    if sensitive:
        document[PROPERTIES] = {**document.get(PROPERTIES, {}), **sensitive}
        document[SENSITIVE] = sorted(sensitive)
    return document


def write_rule_set(rule_set: Mapping[str, Any]) -> dict[str, Any]:
    """Canonical rules as registries want them."""
    names = {"name": "name", **_RULE_NAMES}
    return {
        _PHASES[phase]: [{names[field]: value for field, value in rule.items()} for rule in rules]
        for phase, rules in nest_rule_set(FrozenMap(rule_set)).items()
    }


def make_settings_body(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of a step as registries want them. A registry keeps what is left out, and removes
    what is null (`ConfigValue.update` of Confluent's)."""
    body: dict[str, Any] = {}
    for name, value in settings.items():
        document = value
        if value and name.endswith(METADATA):
            document = write_metadata(value, EMPTY)
        elif value and name.endswith(RULE_SET):
            document = write_rule_set(value)
        body[SETTING_NAMES[name]] = document
    return body


def _setting_path(name: str, subject: str | None) -> str:
    return join_path(name) if subject is None else join_path(name, subject)
