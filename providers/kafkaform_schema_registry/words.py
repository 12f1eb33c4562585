"""This provider's terms for the engine's concepts (see `kafkaform.core.words`)."""

from __future__ import annotations

from kafkaform.core.value import FrozenMap
from kafkaform.core.words import KindWords, Words

from . import formats


def _describe_texts(before: FrozenMap | None, after: FrozenMap | None) -> tuple[str, ...]:
    return formats.details.describe_texts(before, after)


WORDS = Words(
    system="schema registry",
    node="registry",
    address="url",
    kinds=FrozenMap(
        {
            "schema_registry_schema": KindWords(
                "schemas", ("subject",), texts=("schema",), details=_describe_texts
            ),
            "schema_registry_subject_config": KindWords("subject configs", ("subject",)),
            "schema_registry_config": KindWords("registry configs", ()),
        }
    ),
)
