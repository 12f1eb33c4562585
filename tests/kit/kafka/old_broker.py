"""A broker of an older release, as far as versions of requests go: it answers with what a test
gives it, in the newest version that both sides have."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kafka.errors import IncompatibleBrokerVersion
from kafka.protocol.broker_version_data import BrokerVersionData

from kafkaform_kafka.wire.client import Unsupported

_30 = {
    **{
        2: (0, 7),
        3: (0, 11),
        9: (0, 8),
        15: (0, 5),
        16: (0, 4),
        18: (0, 3),
        19: (0, 7),
        20: (0, 6),
    },
    **{29: (0, 2), 30: (0, 2), 31: (0, 2), 32: (0, 4), 35: (0, 2), 37: (0, 3), 43: (0, 2)},
    **{44: (0, 1), 45: (0, 0), 46: (0, 0), 48: (0, 1), 49: (0, 1), 60: (0, 0)},
}
_39 = {
    **_30,
    **{
        2: (0, 9),
        3: (0, 12),
        9: (0, 9),
        16: (0, 5),
        18: (0, 4),
        29: (0, 3),
        30: (0, 3),
        31: (0, 3),
    },
    **{35: (0, 4), 60: (0, 1)},
}
_USERS, _ZOOKEEPER = {50: (0, 0), 51: (0, 0)}, {4: (0, 7)}
VERSIONS: Mapping[str, Mapping[int, tuple[int, int]]] = {
    "3.0": {**_30, 55: (0, 0)},
    "3.0 with ZooKeeper": {**_30, **_USERS, 4: (0, 5)},
    "3.9": {**_39, **_USERS, 55: (0, 2), 74: (0, 0)},
    "3.9 with ZooKeeper": {**_39, **_USERS, **_ZOOKEEPER},
}
"""Release -> number of an API -> its lowest and highest version, of the APIs that we use, from the
message definitions of Kafka."""


class OldBroker:
    """Stands in for a `Wire`. answers: number of an API -> the answer, of any version."""

    def __init__(self, release: str, answers: Mapping[int, Any]) -> None:
        self._known = BrokerVersionData(api_versions=dict(VERSIONS[release]))
        self._answers = answers
        self.asked: list[tuple[int, int]] = []
        """Number and version of each request."""
        self.sought = False

    def send(self, request: Any, timeout: float, node: str | None = None) -> Any:
        try:
            version = self._known.api_version(request)
        except IncompatibleBrokerVersion as error:
            raise Unsupported(str(error)) from None
        request.encode(version=version)
        self.asked.append((request.API_KEY, version))
        answer = self._answers[request.API_KEY]
        data = bytes(answer.encode(version=version))
        parse = getattr(request.header_class, "parse_answer", None)
        return type(answer)[version].decode(data) if parse is None else parse(data, version)

    def seek_controller(self) -> None:
        self.sought = True
