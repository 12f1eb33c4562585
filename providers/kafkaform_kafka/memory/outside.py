"""Edits by another administrator: without rights, mishaps or counted requests."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from msgspec.structs import replace

from kafkaform.core.value import EMPTY

from ..kinds.topic.simulation import SimulatedTopic, Topics, place_evenly, topic_key
from ..protocol.config_values import config_map
from ..simulation.world import Changes


class Committing(Protocol):
    """The part of a cluster that an outside edit needs."""

    @property
    def topics(self) -> Topics: ...

    @property
    def numbers(self) -> tuple[int, ...]: ...

    @property
    def new_id(self) -> Callable[[], str]: ...

    @property
    def commit(self) -> Callable[[Changes], None]: ...


class Outside:
    """Edits topics, even while all brokers are down. Lagging brokers show these edits late, too."""

    def __init__(self, cluster: Committing) -> None:
        self._cluster = cluster

    def create(
        self,
        name: str,
        partitions: int = 1,
        replication_factor: int = 1,
        config: Mapping[str, str] = EMPTY,
    ) -> SimulatedTopic:
        """Create a topic, or replace an existing one, with a new topic id."""
        assignment = place_evenly(partitions, replication_factor, self._cluster.numbers)
        return self._keep(
            SimulatedTopic(name, self._cluster.new_id(), assignment, config_map(config))
        )

    def delete(self, name: str) -> None:
        """Delete a topic. Raises KeyError if it does not exist."""
        self._cluster.commit({topic_key(self._cluster.topics[name].name): None})

    def recreate(self, name: str) -> SimulatedTopic:
        """Delete a topic and create it again; only its id is new."""
        topic = self._cluster.topics[name]
        self.delete(name)
        return self._keep(replace(topic, id=self._cluster.new_id()))

    def alter(self, name: str, config: Mapping[str, str | None]) -> SimulatedTopic:
        """Set config overrides; None removes one."""
        topic = self._cluster.topics[name]
        merged = {**topic.config, **config}
        remaining = {key: value for key, value in merged.items() if value is not None}
        return self._keep(replace(topic, config=config_map(remaining)))

    def grow(self, name: str, partitions: int) -> SimulatedTopic:
        """Raise the number of partitions of a topic to this number."""
        topic = self._cluster.topics[name]
        if partitions <= topic.partitions:
            raise ValueError(f"{name} has {topic.partitions} partitions already")
        number, width = partitions - topic.partitions, topic.replication_factor
        added = place_evenly(number, width, self._cluster.numbers, topic.partitions)
        return self._keep(replace(topic, assignment=(*topic.assignment, *added)))

    def _keep(self, topic: SimulatedTopic) -> SimulatedTopic:
        self._cluster.commit({topic_key(topic.name): topic})
        return topic
