"""The Kafka Connect provider: its resource types, its settings, how it opens a session, and its
connectors as resources of Terraform.

Terraform's provider is `Mongey/kafka-connect`. Source: terraform-provider-kafka-connect
`connect/resource_kafka_connector.go`: the name has to be a config too, secrets are in
`config_sensitive`, and the import id is the name. An import reads every config into `config`, so
the first apply moves the secrets.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

import kafkaform_connect
from kafkaform.core.change import Change
from kafkaform.core.resource import Depth, Reach
from kafkaform.core.rule import RuleBook
from kafkaform.core.schema import ObjectSchema
from kafkaform.core.value import EMPTY, FrozenMap, SecretRef, Value
from kafkaform.core.words import Words
from kafkaform.provider.contract import (
    Exporter,
    ForeignResource,
    OptionalParts,
    ResourceType,
    Secrets,
    Session,
)

from . import provider_block
from .connector import KIND, RUNNING, TYPE
from .connector_offsets import OFFSETS_KIND, OFFSETS_TYPE
from .data_sources import DATA

TERRAFORM_RESOURCE = "kafka-connect_connector"


def _write_terraform(kind: str, live: FrozenMap) -> ForeignResource | str:
    """A live connector as a resource, with a variable for each secret."""
    if kind != KIND:
        return f"the provider has no resource for a {kind}"
    name, state = str(live["name"]), live.get("state")
    if state not in (RUNNING, None):
        return f"it is {state}, and the provider has no states: its apply would not keep that"
    config: dict[str, Value] = {**live["config"], "name": name, "connector.class": live["class"]}
    arguments: dict[str, Value] = {"name": name, "config": FrozenMap(config)}
    if secrets := live.get("secret_keys") or EMPTY:
        arguments["config_sensitive"] = FrozenMap(
            {key: SecretRef("variable", f"{name}_{key}") for key in secrets}
        )
    return ForeignResource(TERRAFORM_RESOURCE, FrozenMap(arguments), name)


EXPORTER = Exporter(
    requirements=FrozenMap(
        {"kafka-connect": FrozenMap(source="Mongey/kafka-connect", version=">= 0.4.0")}
    ),
    write=_write_terraform,
)


class ConnectProvider(OptionalParts, Struct, frozen=True):
    """Implements `kafkaform.provider.contract.Provider`."""

    name: str = "kafka_connect"
    words: Words = provider_block.WORDS
    config: ObjectSchema = provider_block.CONFIG
    """The schema of the provider block."""
    types: Mapping[str, ResourceType] = FrozenMap({KIND: TYPE})
    """Resource types by name."""
    commanded: Mapping[str, ResourceType] = FrozenMap({OFFSETS_KIND: OFFSETS_TYPE})
    """Resource types that only commands change, by name."""
    data: Mapping[str, ObjectSchema] = FrozenMap(DATA)
    """Data sources by name."""
    exporters = FrozenMap(terraform="kafkaform_connect.provider:EXPORTER")
    simulation = "kafkaform_connect.memory.provider:SIMULATION"
    # Some services leave connectors out of a listing that the user must not see.
    proves_listings = False

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
