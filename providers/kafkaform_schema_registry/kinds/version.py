"""`schema_registry_version`: one version of a subject, which no block declares and no state
records. `alter schema` deletes and restores single versions.

No registry has a request that brings back a version which was deleted softly. Its schema is
registered again, becomes the newest version of the subject, and keeps its id.

Sources: `KafkaSchemaRegistry.java` of Confluent's registry (register, deleteSchemaVersion),
`controller.py` of Karapace, `store.h` of Redpanda, and answers of Apicurio 2.6.13.
"""

from __future__ import annotations

from collections.abc import Mapping

from kafkaform.core.change import Action, Change, Evidence, Step
from kafkaform.core.resource import Facts, Observed
from kafkaform.core.schema import NUMBER, STRING, AttributeSchema, list_of, make_schema, object_of
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.provider.contract import ResourceType

from .registry import (
    DELETE_VERSION,
    PURGE_VERSION,
    REGISTER,
    RegistryFacts,
    list_paths,
    make_step,
)
from .subject_settings import check_subject

VERSION = "schema_registry_version"
REGISTERED, DELETED, RESTORED = "registered", "deleted", "registered again"
"""The states of a version: clients find it, it was deleted softly, or the subject has a newer
version with the same schema."""


def name_version(subject: str, number: int) -> str:
    """The identity's key."""
    return f"{subject}/{number}"


def read_key(key: str) -> tuple[str, int]:
    """Subject and number of the version that a key names. Raises ValueError."""
    subject, _, number = key.rpartition("/")
    if not number.isascii() or not number.isdigit() or int(number) < 1:
        raise ValueError(f"{key!r} does not end with the number of a version")
    return check_subject(subject), int(number)


def _name(attributes: FrozenMap) -> str:
    return name_version(str(attributes["subject"]), int(attributes["version"]))


def _check_key(text: str) -> str:
    return name_version(*read_key(text))


def _target(declared: FrozenMap, _: Observed | None, __: Facts, ___: bool) -> FrozenMap:
    return declared


def _steps(change: Change, facts: Facts) -> tuple[Step, ...]:
    if change.action is Action.DELETE:
        return _purge(change)
    if change.action is not Action.UPDATE:
        return ()
    after = change.after or EMPTY
    paths = list_paths(change, "state")
    if after["state"] == DELETED:
        return (make_step(change, 1, DELETE_VERSION, _name_payload(change), paths),)
    checked = RegistryFacts.of(facts).checks_references or not after["references"]
    payload = {name: after[name] for name in ("subject", "format", "schema", "references")}
    return (
        make_step(
            change,
            1,
            REGISTER,
            payload,
            paths,
            weight=1 + len(str(after["schema"])) // 1024,
            evidence=Evidence.REMOTE if checked else Evidence.LOCAL,
        ),
    )


def _purge(change: Change) -> tuple[Step, ...]:
    """Registries delete permanently only what is deleted softly."""
    payload, paths = _name_payload(change), list_paths(change)
    if (change.before or EMPTY).get("state") != REGISTERED:
        return (make_step(change, 1, PURGE_VERSION, payload, paths),)
    # Two requests, because no registry deletes permanently what was not deleted softly before. If
    # only the first one succeeds, the version is found as `deleted`, and the second one is left.
    soft = make_step(change, 1, DELETE_VERSION, payload, paths)
    return soft, make_step(change, 2, PURGE_VERSION, payload, paths, after=(soft.id,))


def _name_payload(change: Change) -> Mapping[str, str | int]:
    subject, number = read_key(change.identity.key)
    return {"subject": subject, "version": number}


TYPE = ResourceType(
    name=VERSION,
    schema=make_schema(
        "One version of a subject.",
        AttributeSchema("subject", STRING, "Name of the subject.", required=True),
        AttributeSchema("version", NUMBER, "Its number.", required=True, whole=True),
        AttributeSchema("format", STRING, "Format of the schema.", computed=True),
        AttributeSchema("schema", STRING, "Text of the schema.", computed=True),
        AttributeSchema(
            "references",
            list_of(object_of({"name": STRING, "subject": STRING, "version": NUMBER})),
            "Schemas of other subjects that it uses.",
            computed=True,
        ),
        AttributeSchema(
            "state",
            STRING,
            "registered; deleted: softly; registered again: deleted softly, and a newer version "
            "of the subject has the same schema.",
            choices=(REGISTERED, DELETED, RESTORED),
        ),
    ),
    key=_name,
    canonical=lambda attributes, _: attributes,
    target=_target,
    steps=_steps,
    import_key=_check_key,
)
