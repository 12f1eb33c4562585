"""The `ResourceKind` values of topics and of topic configs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...protocol import apis
from ..kind import KindRights, ResourceKind
from . import configs
from .resource_type import KIND, TYPE

if TYPE_CHECKING:
    from ...cluster.context import Requests
    from ...simulation.controller import SimulatedKind


def _connect() -> Requests:
    from ...cluster.context import Reads, Requests  # noqa: PLC0415  # the clients are slow to load
    from .read import find_topics, list_and_read_topics, read_topics, sweep_topics  # noqa: PLC0415  # the clients are slow to load
    from .send import send_create_partitions, send_create_topics, send_delete_topics  # noqa: PLC0415  # the clients are slow to load
    from .send_placement import send_moves  # noqa: PLC0415  # the clients are slow to load

    return Requests(
        Reads(sweep_topics, read_topics, find_topics, list_and_read_topics),
        {
            apis.CREATE_TOPICS.name: send_create_topics,
            apis.CREATE_PARTITIONS.name: send_create_partitions,
            apis.DELETE_TOPICS.name: send_delete_topics,
            apis.ALTER_PARTITION_REASSIGNMENTS.name: send_moves,
        },
    )


def _connect_configs() -> Requests:
    from ...cluster.context import Reads, Requests  # noqa: PLC0415  # the clients are slow to load
    from .read import read_topic_configs, sweep_topic_configs  # noqa: PLC0415  # the clients are slow to load

    # IncrementalAlterConfigs is missing here: `kinds/config` sends it for all kinds of resources.
    return Requests(Reads(sweep_topic_configs, read_topic_configs))


def _simulate() -> SimulatedKind:
    from . import move_simulation as moves  # noqa: PLC0415  # only a simulated cluster needs it
    from .simulation import TOPIC  # noqa: PLC0415  # only a simulated cluster needs it

    return replace(
        TOPIC,
        handlers={**TOPIC.handlers, **moves.HANDLERS},
        checks={**TOPIC.checks, **moves.CHECKS},
    )


def _simulate_configs() -> SimulatedKind:
    from .simulation import TOPIC_CONFIG  # noqa: PLC0415  # only a simulated cluster needs it

    return TOPIC_CONFIG


_SEES = ("Describe", "DescribeConfigs")
KINDS = (
    ResourceKind(
        KIND,
        TYPE,
        rights=KindRights("Topic", _SEES, ("AlterConfigs", "Alter"), deletes="Delete"),
        connect=_connect,
        simulate=_simulate,
    ),
    ResourceKind(
        configs.KIND,
        configs.TYPE,
        rights=KindRights("Topic", _SEES, ("AlterConfigs",), deletes="AlterConfigs"),
        connect=_connect_configs,
        simulate=_simulate_configs,
    ),
)
