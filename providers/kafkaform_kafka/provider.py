"""The Kafka provider: its resource types, its settings, and how it opens a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

import kafkaform_kafka
from kafkaform.core.change import Change, RateLimit
from kafkaform.core.errors import ConnectError
from kafkaform.core.resource import Depth, Facts, Reach, Sweep, Use
from kafkaform.core.rule import RuleBook
from kafkaform.core.schema import ObjectSchema
from kafkaform.core.value import FrozenMap
from kafkaform.core.words import Words
from kafkaform.provider.contract import MissingRight, OptionalParts, ResourceType, Secrets, Session

from . import capacity, connection, rules
from .connection import provider_block
from .data_sources import DATA
from .kinds.kind import KindRights, ResourceKind
from .kinds.quota import resource_type as quota
from .resource_kinds import KINDS, WORDS
from .vendors.profile import explain_connection, find_profile

COMMANDS = {
    **{
        name: f"kafkaform_kafka.commands.{name}:GROUP"
        for name in ("describe", "explain", "alter", "propose")
    },
    "look": "kafkaform_kafka.impact.looks:GROUP",
}

_TAKEOVER = "kafkaform_kafka.takeover"
READERS = {
    "tfstate": f"{_TAKEOVER}.terraform:read_declarations",
    "topicctl": f"{_TAKEOVER}.topicctl:read_declarations",
    "julieops": f"{_TAKEOVER}.julieops:read_declarations",
    "kafka-gitops": f"{_TAKEOVER}.kafka_gitops:read_declarations",
    "jikkou": f"{_TAKEOVER}.jikkou:read_declarations",
    "strimzi": f"{_TAKEOVER}.strimzi:read_declarations",
}
EXPORTERS = {"terraform": f"{_TAKEOVER}.terraform:EXPORTER"}

RULES = Path(__file__).with_name("rules.kfpolicy.hcl")


class KafkaProvider(OptionalParts, Struct, frozen=True):
    """Implements `kafkaform.provider.contract.Provider`; `make_provider` makes one."""

    kinds: tuple[ResourceKind, ...]
    types: Mapping[str, ResourceType]
    """Resource types that blocks declare, by name."""
    commanded: Mapping[str, ResourceType]
    """Resource types that only commands change, by name."""
    rights: Mapping[str, KindRights]
    """Kind -> the rights that the lock-out guard protects."""
    data: Mapping[str, ObjectSchema]
    """Data sources by name."""
    config: ObjectSchema = provider_block.CONFIG
    """The schema of the provider block."""
    words: Words = WORDS
    commands = COMMANDS
    simulation = "kafkaform_kafka.memory.provider:SIMULATION"
    readers = READERS
    exporters = EXPORTERS
    owners = "kafkaform_kafka.inspect.application_topics:find_owned"
    consequences = "kafkaform_kafka.impact.looks:find_consequences"
    name: str = "kafka"

    check = staticmethod(provider_block.check)

    def open(self, instance: str, config: FrozenMap, secrets: Secrets) -> Session:
        """Connect. Raises ConnectError, or ConfigurationError for settings that cannot be used."""
        settings = connection.settings.read_settings(instance, config, secrets)
        try:
            return kafkaform_kafka.session.open_session(settings, self.kinds)
        except ConnectError as error:
            detection = find_profile(settings.profile, settings.servers, "")
            raise error if detection is None else explain_connection(detection, error) from None

    def needs_look(self, change: Change, facts: Facts) -> bool:
        return capacity.forecast.needs_room(change, facts) or capacity.amounts.needs_count(
            change, facts
        )

    def read_rules(self) -> bytes:
        return RULES.read_bytes()

    def load_rules(self) -> RuleBook:
        return rules.book.make_book(self.rights)

    def review_needs(self, changes: Sequence[Change]) -> Mapping[str, Depth]:
        return rules.book.list_needs(changes)

    def limit_needs(self, changes: Sequence[Change]) -> Mapping[str, Depth]:
        return rules.quotas.list_limit_needs(changes)

    def list_reaches(self, kind: str, attributes: FrozenMap) -> Sequence[Reach] | None:
        """See `reaches`."""
        return kafkaform_kafka.reaches.list_reaches(kind, attributes)

    def list_login_rights(
        self, principal: object, lists: Mapping[str, Sequence[str]]
    ) -> tuple[Sequence[tuple[str, Mapping[str, Any]]], Sequence[str]]:
        """See `reaches`."""
        return kafkaform_kafka.reaches.list_login_rights(self.rights.values(), principal, lists)

    def find_limit(
        self, changes: Sequence[Change], sweeps: Mapping[str, Sweep], facts: Facts
    ) -> RateLimit | None:
        return rules.quotas.find_limit(changes, sweeps.get(quota.KIND), facts)

    @property
    def access_needs(self) -> Mapping[str, Depth]:
        return kafkaform_kafka.review.NEEDS

    def find_missing_rights(
        self,
        principal: str,
        uses: Sequence[Use],
        changes: Sequence[Change],
        sweeps: Mapping[str, Sweep],
        facts: Facts,
    ) -> Sequence[MissingRight]:
        return kafkaform_kafka.review.find_missing_rights(principal, uses, changes, sweeps, facts)


def make_provider(kinds: Sequence[ResourceKind]) -> KafkaProvider:
    """A provider for these kinds of objects."""
    types = [(kind, kind.type) for kind in kinds if kind.type is not None]
    return KafkaProvider(
        kinds=tuple(kinds),
        types={kind.name: type_ for kind, type_ in types if not kind.commanded},
        commanded={kind.name: type_ for kind, type_ in types if kind.commanded},
        rights={kind.name: kind.rights for kind in kinds if kind.rights is not None},
        data=DATA,
    )


PROVIDER = make_provider(KINDS)
TYPES = PROVIDER.types
