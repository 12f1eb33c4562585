"""The formats of schemas: one spelling for equal schemas, and the name of a record."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache

from msgspec import Struct

from kafkaform.provider.http.strict_json import parse_json

from .avro import find_record_name, normalize_avro
from .json_text import sort_keys, write_json
from .protobuf import find_message_name, normalize_protobuf


class SchemaFormat(Struct, frozen=True):
    """One format of schemas."""

    name: str
    """What blocks call it."""
    registry_name: str
    """What registries call it."""
    normalize: Callable[[str], str]
    """Equal schemas -> equal texts. Raises ValueError with a part of a sentence."""
    find_name: Callable[[str], str]
    """The full name of what the schema describes. Raises ValueError."""


def _normalize_json(text: str) -> str:
    return write_json(sort_keys(parse_json(text)))


def _find_title(text: str) -> str:
    document = parse_json(text)
    title = document.get("title") if isinstance(document, dict) else None
    if not isinstance(title, str) or not title:
        raise ValueError("it has no title, so it has no name")
    return title


FORMATS: Mapping[str, SchemaFormat] = {
    one.name: one
    for one in (
        SchemaFormat("avro", "AVRO", normalize_avro, find_record_name),
        SchemaFormat("json", "JSON", _normalize_json, _find_title),
        SchemaFormat("protobuf", "PROTOBUF", normalize_protobuf, find_message_name),
    )
}
BY_REGISTRY_NAME: Mapping[str, SchemaFormat] = {one.registry_name: one for one in FORMATS.values()}


# A plan asks for the form of each schema several times: of what is live, declared and recorded.
@lru_cache(maxsize=4096)
def normalize_schema(kind: str, text: str) -> str:
    """The normal form; the text itself, without blanks around it, if it is no schema of this
    format: then the check of the change says so."""
    try:
        return FORMATS[kind].normalize(text)
    except (ValueError, KeyError):
        return text.strip()


def find_schema_fault(kind: str, text: str) -> str | None:
    """Why the text is no schema of this format, as a part of a sentence; None if it is one as far
    as can be told without a registry."""
    try:
        FORMATS[kind].normalize(text)
    except ValueError as error:
        return str(error)
    return None
