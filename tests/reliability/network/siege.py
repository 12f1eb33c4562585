"""Readings of every kind while answers are changed; what of it was not a reading or a fault."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from random import Random
from typing import Any

from kafkaform.core.errors import KafkaformError
from kafkaform.core.resource import Depth, Identity
from kafkaform_kafka import resource_kinds
from kafkaform_kafka.session import KafkaSession

from ...kit.kafka.sessions import connect
from ...kit.proxy.frames import Asked
from ...kit.proxy.proxy import Proxy
from .malice import MUTATIONS, mutated

PATIENCE = 5.0
"""Seconds that a session waits for an answer that never becomes one."""
LASTING = {"weeks"}
"""What concerns the whole connection from then on."""
_READ = {kind.name for kind in resource_kinds.KINDS if kind.connect is not None}
KINDS = tuple(sorted(_READ - {"kafka_topic_config", "kafka_leaders"}))
APIS = (
    "Metadata",
    "DescribeConfigs",
    "DescribeAcls",
    "DescribeClientQuotas",
    "DescribeUserScramCredentials",
    "ListPartitionReassignments",
    "ListConfigResources",
    "DescribeCluster",
)
KEYS = {
    "kafka_acl": "User:x|*|Read|Allow|Topic|x|Literal",
    "kafka_quota": "user=x",
    "kafka_user_scram_credential": "x|SCRAM-SHA-256",
    "kafka_broker_config": "1",
    "kafka_cluster_config": "default",
    "kafka_rights": "",
    "kafka_group_positions": "nothing|to-earliest|0",
}
"""Keys that the kinds' reads take apart; "" for none."""


@dataclass
class Siege:
    """struck: the answers that were changed; crashed: what came through as another exception."""

    struck: list[str] = field(default_factory=list)
    crashed: list[str] = field(default_factory=list)


def besiege(broker: Any, proxy: Proxy, random: Random, frames: int) -> Siege:
    """Read, with a session for each kind and round, until so many answers have been changed."""
    siege = Siege()
    mutations = sorted(MUTATIONS.keys() - LASTING)
    random.shuffle(mutations)

    def tamper(request: Asked, data: bytes) -> bytes:
        if request.api not in APIS:
            return data
        kind = mutations[len(siege.struck) % len(mutations)]
        siege.struck.append(f"{kind} of {request.api}")
        return mutated(kind, random, request, data)

    for number in range(frames):  # each round changes one answer at least
        if len(siege.struck) >= frames:
            break
        kind = KINDS[number % len(KINDS)]
        session = connect(broker, "admin", servers=(proxy.bootstrap,), timeout=PATIENCE)
        proxy.tamper = tamper
        begun = len(siege.struck)
        try:
            _read(session, kind)
        except KafkaformError:
            pass
        except Exception:  # noqa: BLE001  # whatever it is, it is what is looked for
            siege.crashed.append(f"{siege.struck[begun:]}: {traceback.format_exc()}")
        finally:
            proxy.tamper = None
            session.close()
    return siege


def _read(session: KafkaSession, kind: str) -> None:
    session.sweep(kind, Depth.FULL)
    key = KEYS.get(kind, "nothing")
    session.read([Identity("kafka", kind, key)] if key else [])
