"""The provider: its types, its settings, how it opens a session, what its objects reach (for the
boundary of a folder), and its schemas as resources of Terraform.

Terraform's provider is `cultureamp/schemaregistry`. Source: terraform-provider-schemaregistry
`internal/provider/resource_schema.go`: the import id is the subject, of the characters of a topic
name; the text is JSON, which protobuf is not; a level that is left out stays as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec import Struct

import kafkaform_schema_registry
from kafkaform.core.change import Change
from kafkaform.core.resource import Depth, Reach
from kafkaform.core.rule import RuleBook
from kafkaform.core.schema import ObjectSchema
from kafkaform.core.value import FrozenMap, Value
from kafkaform.core.words import Words
from kafkaform.provider.contract import (
    Exporter,
    ForeignResource,
    OptionalParts,
    ResourceType,
    Secrets,
    Session,
)

from . import provider_block, rules
from .data_sources import DATA
from .formats.normal_form import FORMATS
from .kinds import schema, version
from .kinds.subject_settings import (
    REGISTRY_CONFIG,
    REGISTRY_CONFIG_TYPE,
    SUBJECT_CONFIG,
    SUBJECT_CONFIG_TYPE,
    name_subject,
)
from .provider_block import WORDS

_SUBJECT = re.compile(r"[A-Za-z0-9._-]{1,249}")
TERRAFORM_RESOURCE = "schemaregistry_schema"


def _write_terraform(kind: str, live: FrozenMap) -> ForeignResource | str:
    """The latest schema of a subject as a resource."""
    if kind != schema.KIND:
        return f"the provider has no resource for a {kind}, which stays as it is"
    subject = str(live["subject"])
    if live["format"] == "protobuf":
        return "the provider reads every schema as JSON, which protobuf is not"
    if not _SUBJECT.fullmatch(subject):
        return "the provider does not allow this name of a subject"
    arguments: dict[str, Value] = {
        "subject": subject,
        "schema_type": FORMATS[str(live["format"])].registry_name,
        "schema": live["schema"],
    }
    if references := live.get("references"):
        arguments["references"] = references
    return ForeignResource(TERRAFORM_RESOURCE, FrozenMap(arguments), subject)


EXPORTER = Exporter(
    requirements=FrozenMap(
        schemaregistry=FrozenMap(source="cultureamp/schemaregistry", version=">= 2.0.0")
    ),
    write=_write_terraform,
)


def list_reaches(kind: str, attributes: FrozenMap) -> tuple[Reach, ...] | None:
    """See `kafkaform.provider.contract.Provider`."""
    if kind == REGISTRY_CONFIG:
        return (Reach("", "", "the level and the mode of the registry concern all subjects"),)
    if kind not in (schema.KIND, SUBJECT_CONFIG):
        return None
    return tuple(_reach_subjects(attributes))


def _reach_subjects(attributes: FrozenMap) -> Iterator[Reach]:
    subject = name_subject(attributes)
    attribute = "subject" if attributes.get("subject") is not None else "topic"
    yield Reach("subjects", subject, f'the subject "{subject}"', (attribute,))
    for reference in attributes.get("references") or ():
        name = str(reference["subject"])
        yield Reach("subjects", name, f'the reference to the subject "{name}"', ("references",))


TYPES: Mapping[str, ResourceType] = {
    type_.name: type_
    for type_ in (
        schema.TYPE,
        SUBJECT_CONFIG_TYPE,
        REGISTRY_CONFIG_TYPE,
    )
}


COMMANDED = FrozenMap({version.VERSION: version.TYPE})

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
    commanded: Mapping[str, ResourceType] = COMMANDED
    exporters = FrozenMap(terraform="kafkaform_schema_registry.provider:EXPORTER")
    simulation = "kafkaform_schema_registry.memory:SIMULATION"
    # Registries leave out subjects that the user must not see, and some list only the first ones.
    proves_listings = False

    check = staticmethod(provider_block.check)
    move_block = staticmethod(provider_block.move_block)

    def open(self, instance: str, config: FrozenMap, secrets: Secrets) -> Session:
        """Connect. Raises ConnectError, or ConfigurationError for settings that cannot be used."""
        return self.connect(instance, config, secrets)

    def load_rules(self) -> RuleBook:
        """See `rules`."""
        return rules.book.BOOK

    def list_reaches(self, kind: str, attributes: FrozenMap) -> Sequence[Reach] | None:
        """See `list_reaches`."""
        return list_reaches(kind, attributes)

    def review_needs(self, changes: Sequence[Change]) -> Mapping[str, Depth]:
        """See `rules.book.list_needs`."""
        return rules.book.list_needs(changes)


PROVIDER = SchemaRegistryProvider(TYPES, DATA)
