"""Which Connect cluster answers.

A Connect cluster has no id of its own. Its workers say which Kafka cluster they store everything in
(`GET /`, KIP-298), and two Connect clusters on one Kafka differ in nothing but `group.id`, which
the REST API does not show. But a validation refuses a sink connector whose consumers would join the
group of the workers (DistributedHerder.validateSinkConnectorGroupId), so a given `group_id` can be
proven without an effect.
"""

from __future__ import annotations

from collections.abc import Iterable

from kafkaform.core.errors import ConnectError, OtherSystem
from kafkaform.provider.http.exchange import HttpAnswer

from . import rest
from .answers import Plugin, UnreadableAnswer, read_server, read_validation
from .connector import CLASS, NAME
from .reading import parse
from .rest import WorkersClient

_CONFLICT = "conflicts with Connect worker group"
_PREFIX = "connect-"
"""What a sink's name gets to become its consumer group (SinkUtils.consumerGroupId)."""
_GROUP = "consumer.override.group.id"
_SINCE = (3, 7)
"""The version of Kafka that compares the group of an override, too (KAFKA-13327)."""
_HARMLESS = "FileStreamSinkConnector"


class WorkersProof:
    """Compares what each connection says with what the first one said."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.cluster_id = ""
        """The id of the Kafka cluster, empty before the first answer."""
        self.version = ""
        """The version of the worker that answered first."""

    def check(self, answer: HttpAnswer) -> None:
        """Take an answer to `rest.SERVER`. Raises OtherSystem."""
        try:
            version, cluster = read_server(answer.body)
        except UnreadableAnswer as error:
            raise self._make_stranger(f"is no Connect worker: {error}") from None
        if not cluster:
            raise self._make_stranger("does not say which Kafka cluster it belongs to")
        if self.cluster_id and cluster != self.cluster_id:
            raise self._make_stranger(
                f"belongs to Kafka cluster {cluster} now, and belonged to {self.cluster_id} before"
            )
        self.cluster_id, self.version = cluster, self.version or version

    def _make_stranger(self, difference: str) -> OtherSystem:
        return OtherSystem(
            f"what answers at {self._url} {difference}",
            "Check url: it has to lead to the REST API of one Connect cluster.",
        )


def has_group(
    client: WorkersClient, group_id: str, plugins: Iterable[Plugin], release: tuple[int, int] | None
) -> bool | None:
    """Whether the workers have this `group.id`; None if that cannot be found out. Nothing is
    changed. Raises OtherSystem, RequestFailed."""
    by_name = group_id.startswith(_PREFIX) and len(group_id) > len(_PREFIX)
    sink = _choose_sink(plugins)
    if sink is None or not (by_name or (release or _SINCE) >= _SINCE):
        return None
    config = {CLASS: sink, "topics": "kafkaform"}
    if by_name:
        key, config[NAME] = NAME, group_id.removeprefix(_PREFIX)
    else:
        key, config[NAME], config[_GROUP] = _GROUP, "kafkaform", group_id
    call = rest.validate(sink, config)
    (answer,) = client.ask_all([call])
    validation = parse(call, read_validation, rest.get_body(answer, call))
    return any(fault.key == key and _CONFLICT in fault.message for fault in validation.faults)


def _choose_sink(plugins: Iterable[Plugin]) -> str | None:
    """The sink to ask about. Others may log in somewhere while they are validated."""
    sinks = sorted(plugin.class_ for plugin in plugins if plugin.type == "sink")
    return next((plugin for plugin in sinks if plugin.endswith(_HARMLESS)), next(iter(sinks), None))


def make_group_error(url: str, group_id: str) -> ConnectError:
    """The error if the workers have another group."""
    return ConnectError(
        f"{url}: the group.id of the workers is not {group_id}",
        "Set group_id to the group.id in the configuration of the workers, or check url.",
    )
