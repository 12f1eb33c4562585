"""The provider block: where a registry is, and how to work with it."""

from __future__ import annotations

from collections.abc import Sequence

from kafkaform.core.diagnostics import Diagnostic
from kafkaform.core.schema import BOOL, STRING, AttributeSchema, make_schema
from kafkaform.core.value import FrozenMap
from kafkaform.provider.http.settings import ATTRIBUTES, find_faults

CONFIG = make_schema(
    "A schema registry with the API of Confluent's: Confluent's own, Karapace, Redpanda's, or "
    "Apicurio's under /apis/ccompat/v7.",
    *ATTRIBUTES,
    AttributeSchema(
        "registry_id",
        STRING,
        "Name of the registry for the state, if the registry has none. Default: host, port and "
        "path of url. If the registry has one, it has to be this.",
    ),
    AttributeSchema(
        "hard_delete",
        BOOL,
        "Subjects are deleted permanently, with all their versions. Default: they are deleted "
        "softly, so that clients can still read older records.",
        default=False,
        policy=True,
    ),
    AttributeSchema(
        "protect_schemas",
        BOOL,
        "Schemas cannot be deleted unless a reviewed change says so.",
        default=True,
        policy=True,
    ),
)


def check(config: FrozenMap) -> Sequence[tuple[str, Diagnostic]]:
    """Faults that the schema cannot express, each with an attribute."""
    return find_faults(config)
