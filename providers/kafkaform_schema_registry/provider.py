"""The provider: its types, its settings, and how it opens a session."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

import kafkaform_schema_registry
from kafkaform.core.change import Change
from kafkaform.core.resource import Depth, Reach
from kafkaform.core.rule import RuleBook
from kafkaform.core.schema import ObjectSchema
from kafkaform.core.value import FrozenMap
from kafkaform.core.words import Words
from kafkaform.provider.contract import OptionalParts, ResourceType, Secrets, Session

from . import provider_block, rules
from .data_sources import DATA
from .kinds import global_config, schema, subject_config
from .provider_block import WORDS

TYPES: Mapping[str, ResourceType] = {
    type_.name: type_ for type_ in (schema.TYPE, subject_config.TYPE, global_config.TYPE)
}


Connect = Callable[[str, FrozenMap, Secrets], Session]
"""Provider instance, its block, its secrets -> a session. Raises ConnectError,
ConfigurationError."""


def _connect(instance: str, config: FrozenMap, secrets: Secrets) -> Session:
    return kafkaform_schema_registry.session.open_session(instance, config, secrets)


class SchemaRegistryProvider(OptionalParts, Struct, frozen=True):
    """See `kafkaform.provider.contract.Provider`."""

    types: Mapping[str, ResourceType]
    data: Mapping[str, ObjectSchema]
    connect: Connect = _connect
    """How a session is opened; the simulation has another way."""
    name: str = "schema_registry"
    words: Words = WORDS
    config: ObjectSchema = provider_block.CONFIG
    commanded: Mapping[str, ResourceType] = {}
    exporters = FrozenMap(terraform="kafkaform_schema_registry.terraform:EXPORTER")
    simulation = "kafkaform_schema_registry.memory.client:SIMULATION"

    check = staticmethod(provider_block.check)

    def open(self, instance: str, config: FrozenMap, secrets: Secrets) -> Session:
        """Connect. Raises ConnectError, or ConfigurationError for settings that cannot be used."""
        return self.connect(instance, config, secrets)

    def load_rules(self) -> RuleBook:
        """See `rules`."""
        return rules.book.BOOK

    def list_reaches(self, kind: str, attributes: FrozenMap) -> Sequence[Reach] | None:
        """See `reaches`."""
        return kafkaform_schema_registry.reaches.list_reaches(kind, attributes)

    def review_needs(self, changes: Sequence[Change]) -> Mapping[str, Depth]:
        """See `rules.book.list_needs`."""
        return rules.book.list_needs(changes)


PROVIDER = SchemaRegistryProvider(TYPES, DATA)
