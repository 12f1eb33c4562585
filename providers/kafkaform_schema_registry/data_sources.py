"""The data sources: one schema, and the names of all subjects."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from kafkaform.core.errors import KafkaformError, MissingObject
from kafkaform.core.resource import (
    CoverageKind,
    Depth,
    Failed,
    Fault,
    Hidden,
    Identity,
    Observed,
    Reading,
)
from kafkaform.core.schema import (
    BOOL,
    NUMBER,
    STRING,
    AttributeSchema,
    ObjectSchema,
    list_of,
    make_schema,
    object_of,
)
from kafkaform.core.value import FrozenMap
from kafkaform.provider.http.exchange import HttpAnswer

from .kinds import schema
from .kinds.subject_settings import check_subject
from .reads import list_objects, observe_schema
from .requests import (
    RegistryContext,
    SchemaVersion,
    is_missing,
    parse_answer,
    read_schema_version,
    read_version,
)

SCHEMA, SCHEMAS = schema.KIND, "schema_registry_schemas"

DATA: Mapping[str, ObjectSchema] = {
    SCHEMA: make_schema(
        "A schema of a subject.",
        AttributeSchema("subject", STRING, "Name of the subject.", required=True),
        AttributeSchema("version", NUMBER, "Its version. Default: the latest.", whole=True),
        AttributeSchema("latest", NUMBER, "The version that was read.", computed=True),
        AttributeSchema(
            "schema_id",
            NUMBER,
            "Id of the content, which records carry; other subjects can have the same.",
            computed=True,
        ),
        AttributeSchema("format", STRING, "avro, json or protobuf.", computed=True),
        AttributeSchema("schema", STRING, "The text in its normal form.", computed=True),
        AttributeSchema(
            "references",
            list_of(object_of({"name": STRING, "subject": STRING, "version": NUMBER})),
            "The schemas of other subjects that it uses.",
            computed=True,
        ),
    ),
    SCHEMAS: make_schema(
        "The subjects of the registry.",
        AttributeSchema("prefix", STRING, "Only subjects whose names begin so."),
        AttributeSchema("subjects", list_of(STRING), "Their names, sorted.", computed=True),
        AttributeSchema(
            "complete",
            BOOL,
            "False if there can be subjects that the registry does not list for this user.",
            computed=True,
        ),
    ),
}


def answer_query(context: RegistryContext, data: str, arguments: FrozenMap) -> FrozenMap:
    """The computed attributes of a data source. Raises KafkaformError."""
    answer = _ANSWERS.get(data)
    if answer is None:
        raise KafkaformError(f"there is no data source {data}", "Look for a typing error.")
    return answer(context, arguments)


def _answer_schema(context: RegistryContext, arguments: FrozenMap) -> FrozenMap:
    try:
        subject = check_subject(str(arguments["subject"]))
    except ValueError as error:
        raise KafkaformError(str(error), "Correct subject.") from None
    version = arguments.get("version")
    call = read_version(subject, version)
    answer = context.ask(call)
    result = parse_answer(answer, call, lambda body: read_schema_version(body, subject))
    if isinstance(result, SchemaVersion):
        reading = observe_schema(context, Identity(context.instance, SCHEMA, subject), result)
        if isinstance(reading, Observed):
            names = ("format", "schema", "references")
            answers = {name: reading.attributes[name] for name in names}
            return FrozenMap({**answers, "latest": result.version, "schema_id": result.id})
        raise _refuse(subject, version, reading)
    if isinstance(answer, HttpAnswer) and is_missing(answer):
        raise _make_error(
            MissingObject,
            subject,
            version,
            "does not exist",
            "Look for a typing error. If a block here declares the schema, refer to it: subject = "
            "schema_registry_schema.NAME.subject.",
        )
    identity = Identity(context.instance, SCHEMA, subject)
    if isinstance(answer, HttpAnswer) and answer.status == 403:
        raise _refuse(subject, version, Hidden(identity, "Read on it"))
    assert isinstance(result, Fault)
    raise _refuse(subject, version, Failed(identity, result))


def _refuse(subject: str, version: int | None, reading: Reading) -> KafkaformError:
    if isinstance(reading, Hidden):
        cause, advice = f"needs the right {reading.right}", "Ask for it."
    else:
        assert isinstance(reading, Failed)
        cause, advice = f"cannot be read: {reading.fault.message}", reading.fault.advice
    return _make_error(KafkaformError, subject, version, cause, advice or "Run the command again.")


def _make_error(
    kind: type[KafkaformError], subject: str, version: int | None, cause: str, advice: str
) -> KafkaformError:
    title = f"subject {subject}" if version is None else f"version {version} of subject {subject}"
    return kind(f"the {title} {cause}", advice)


def _answer_schemas(context: RegistryContext, arguments: FrozenMap) -> FrozenMap:
    sweep = list_objects(context, SCHEMA, Depth.NAMES)
    fault = sweep.coverage.fault
    # Who may list nothing sees nothing, which is a list of which `complete` says so.
    if fault is not None and not fault.code.startswith(("HTTP_403", "403")):
        raise KafkaformError(
            f"the subjects cannot be listed: {fault.message}", fault.advice or "Try again."
        )
    prefix = arguments.get("prefix") or ""
    names = sorted(i.identity.key for i in sweep.items if i.identity.key.startswith(prefix))
    complete = sweep.coverage.kind is CoverageKind.COMPLETE
    return FrozenMap(subjects=tuple(names), complete=complete)


_ANSWERS: Mapping[str, Callable[[RegistryContext, FrozenMap], FrozenMap]] = {
    SCHEMA: _answer_schema,
    SCHEMAS: _answer_schemas,
}
