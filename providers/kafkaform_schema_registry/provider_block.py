"""What a provider block can contain, and this provider's terms for the engine's concepts (see
`kafkaform.core.words`)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from kafkaform.core.diagnostics import Diagnostic
from kafkaform.core.schema import BOOL, STRING, AttributeSchema, make_schema
from kafkaform.core.value import FrozenMap
from kafkaform.core.words import KindWords, Words
from kafkaform.provider.http.settings import ATTRIBUTES, find_faults

from .formats.normal_form import describe_texts

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
        "all_versions",
        BOOL,
        "Subjects are read with all their versions, and not only with the newest one. Blocks with "
        "`versions` need it; it costs a request for each version.",
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


_PLACE = re.compile(r"[^/]+:\d+(/.*)?")
"""See `session.name_place`."""


def move_block(config: FrozenMap, address: str) -> FrozenMap:
    """See `kafkaform.provider.contract.Provider`."""
    return config.with_items({"url": address, "registry_id": None})


def _advise_move(instance: str, recorded: str) -> str:
    """Only a registry without an id is known by its address."""
    if not _PLACE.fullmatch(recorded):
        return ""
    return (
        "If it is the same registry at another address, and has no id of its own, write "
        f'registry_id = "{recorded}" into its provider block; or have it proven, as long as the '
        f"old address answers: `kafkaform state rebind {instance} --from OLD_URL`."
    )


WORDS = Words(
    system="schema registry",
    node="registry",
    address="url",
    moved=_advise_move,
    kinds=FrozenMap(
        {
            "schema_registry_schema": KindWords(
                "schemas", ("subject",), texts=("schema",), details=describe_texts
            ),
            "schema_registry_subject_config": KindWords("subject configs", ("subject",)),
            "schema_registry_config": KindWords("registry configs", ()),
        }
    ),
)
