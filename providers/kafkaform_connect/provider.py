"""The Kafka Connect provider: its resource types, its settings, and how it opens a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

import kafkaform_connect
from kafkaform.core.change import Change
from kafkaform.core.resource import Depth, Reach
from kafkaform.core.rule import RuleBook
from kafkaform.core.schema import ObjectSchema
from kafkaform.core.value import EMPTY, FrozenMap
from kafkaform.core.words import Words
from kafkaform.provider.contract import OptionalParts, ResourceType, Secrets, Session

from . import provider_block
from .connector import KIND, TYPE
from .data_sources import DATA


class ConnectProvider(OptionalParts, Struct, frozen=True):
    """Implements `kafkaform.provider.contract.Provider`."""

    name: str = "kafka_connect"
    words: Words = provider_block.WORDS
    config: ObjectSchema = provider_block.CONFIG
    """The schema of the provider block."""
    types: Mapping[str, ResourceType] = FrozenMap({KIND: TYPE})
    """Resource types by name."""
    commanded: Mapping[str, ResourceType] = EMPTY
    """Nothing is changed by commands alone."""
    data: Mapping[str, ObjectSchema] = FrozenMap(DATA)
    """Data sources by name."""
    exporters = FrozenMap(terraform="kafkaform_connect.terraform:EXPORTER")
    simulation = "kafkaform_connect.memory.provider:SIMULATION"

    check = staticmethod(provider_block.check)

    def load_rules(self) -> RuleBook:
        """See `rules`."""
        return kafkaform_connect.rules.BOOK

    def review_needs(self, changes: Sequence[Change]) -> Mapping[str, Depth]:
        """See `rules.list_needs`."""
        return kafkaform_connect.rules.list_needs(changes)

    def list_reaches(self, kind: str, attributes: FrozenMap) -> Sequence[Reach] | None:
        """See `reaches`."""
        return kafkaform_connect.reaches.list_reaches(kind, attributes)

    def open(self, instance: str, config: FrozenMap, secrets: Secrets) -> Session:
        """Connect. Raises ConnectError, or ConfigurationError for settings that cannot be used."""
        return kafkaform_connect.session.open_session(instance, config, secrets)


PROVIDER = ConnectProvider()
