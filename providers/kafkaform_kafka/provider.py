"""The Kafka provider: its types, its settings, and the door to a session."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from kafkaform.core.change import Change, Review
from kafkaform.core.diagnostics import Diagnostic
from kafkaform.core.resource import Depth, Facts, Sweep
from kafkaform.core.schema import ObjectSchema
from kafkaform.core.value import FrozenMap
from kafkaform.provider.contract import ResourceType, Secrets, Session

from .connection.settings import CONFIG, check, read_settings
from .data_sources import DATA
from .kinds.acl import resource_type as acls
from .kinds.acl import roles
from .kinds.config import resource_type as config_kinds
from .kinds.leaders import resource_type as leaders
from .kinds.quota import resource_type as quotas
from .kinds.topic import configs
from .kinds.topic import resource_type as topics
from .kinds.user import resource_type as scram

TYPES: Mapping[str, ResourceType] = {
    kind.name: kind
    for kind in (
        topics.TYPE,
        configs.TYPE,
        quotas.TYPE,
        scram.TYPE,
        acls.TYPE,
        roles.TYPE,
        *config_kinds.TYPES,
    )
}

COMMANDED: Mapping[str, ResourceType] = {leaders.KIND: leaders.TYPE}


class KafkaProvider(Struct, frozen=True):
    """See `kafkaform.provider.contract.Provider`."""

    name: str = "kafka"

    @property
    def config(self) -> ObjectSchema:
        return CONFIG

    @property
    def types(self) -> Mapping[str, ResourceType]:
        return TYPES

    @property
    def commanded(self) -> Mapping[str, ResourceType]:
        return COMMANDED

    @property
    def data(self) -> Mapping[str, ObjectSchema]:
        return DATA

    def check(self, config: FrozenMap) -> Sequence[tuple[str, Diagnostic]]:
        return check(config)

    def open(self, instance: str, config: FrozenMap, secrets: Secrets) -> Session:
        """Connect. Raises ConnectError, or ConfigurationError for settings that cannot be used."""
        settings = read_settings(instance, config, secrets)
        # Importing both clients takes a quarter of a second, which `validate` need not pay.
        from .session import open_session

        return open_session(settings)

    def review_needs(self, changes: Sequence[Change]) -> Mapping[str, Depth]:
        from .review import changes as review  # plans need it, `validate` does not

        return review.review_needs(changes)

    def review(
        self, changes: Sequence[Change], sweeps: Mapping[str, Sweep], facts: Facts
    ) -> Review:
        from .review import changes as review

        return review.review(changes, sweeps, facts)


PROVIDER = KafkaProvider()
