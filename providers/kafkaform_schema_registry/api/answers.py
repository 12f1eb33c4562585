"""Read the answers of a registry strictly: what has another form is no answer."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from kafkaform.core.secret import mask_secrets
from kafkaform.core.value import FrozenMap

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


def read_version_names(body: Any) -> tuple[str, ...]:
    """The subjects of a list of versions."""
    if not isinstance(body, list):
        raise BadAnswer("a list of versions is no list")
    return tuple(dict.fromkeys(_read_text(_read_object(item), "subject") for item in body))


def read_schema_version(body: Any, subject: str) -> SchemaVersion:
    """One version, which has to be of this subject."""
    document = _read_object(body)
    if document.get("subject", subject) != subject:
        raise BadAnswer("it is about another subject")
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
    )


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
    reason = " ".join(mask_secrets(text).split())
    return reason if len(reason) <= MAX_REASON else reason[: MAX_REASON - 1] + "…"
