"""A proxy in front of one broker that reads the frames of both directions and counts requests.

Clients must stay behind it, so it puts its own port where the broker's stands in the two answers
that tell clients where brokers are.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

HOST = "127.0.0.1"
NAMES = {
    3: "Metadata",
    17: "SaslHandshake",
    18: "ApiVersions",
    19: "CreateTopics",
    32: "DescribeConfigs",
    33: "AlterConfigs",
    36: "SaslAuthenticate",
    37: "CreatePartitions",
    44: "IncrementalAlterConfigs",
    48: "DescribeClientQuotas",
    60: "DescribeCluster",
}
TELLS_ADDRESSES = (3, 60)


@dataclass
class Counting:
    """port: where the proxy listens; requests: name of the request -> how many passed."""

    port: int
    requests: Counter[str] = field(default_factory=Counter)
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    def count(self, key: int) -> None:
        with self.lock:
            self.requests[NAMES.get(key, f"api {key}")] += 1

    def taken(self) -> Counter[str]:
        """What passed since the last call."""
        with self.lock:
            taken, self.requests = self.requests, Counter()
        return taken


@contextmanager
def counting(broker_port: int) -> Iterator[Counting]:
    """Listen in front of the broker on this port until the block ends."""
    with socket.create_server((HOST, 0)) as server:
        proxy = Counting(server.getsockname()[1])
        threading.Thread(target=_serve, args=(server, broker_port, proxy), daemon=True).start()
        yield proxy
        server.shutdown(socket.SHUT_RDWR)


def _serve(server: socket.socket, broker_port: int, proxy: Counting) -> None:
    while True:
        try:
            near, _ = server.accept()
        except OSError:
            return
        far = socket.create_connection((HOST, broker_port))
        asked: dict[int, int] = {}
        for target in (_requests, _answers):
            args = (near, far, asked, broker_port, proxy)
            threading.Thread(target=target, args=args, daemon=True).start()


def _requests(
    near: socket.socket, far: socket.socket, asked: dict[int, int], _: int, proxy: Counting
) -> None:
    """A request begins with api key, api version and correlation id."""
    for frame in _frames(near):
        key, _version, correlation = struct.unpack_from(">hhi", frame)
        asked[correlation] = key
        proxy.count(key)
        if not _send(far, frame):
            break
    _close(near, far)


def _answers(
    near: socket.socket, far: socket.socket, asked: dict[int, int], port: int, proxy: Counting
) -> None:
    """An answer begins with the correlation id of its request."""
    real, ours = (HOST.encode() + struct.pack(">i", each) for each in (port, proxy.port))
    for frame in _frames(far):
        (correlation,) = struct.unpack_from(">i", frame)
        if asked.pop(correlation, None) in TELLS_ADDRESSES:
            frame = frame.replace(real, ours)
        if not _send(near, frame):
            break
    _close(near, far)


def _frames(source: socket.socket) -> Iterator[bytes]:
    try:
        with source.makefile("rb") as stream:
            while len(head := stream.read(4)) == 4:
                yield stream.read(struct.unpack(">i", head)[0])
    except OSError:
        return


def _send(target: socket.socket, frame: bytes) -> bool:
    try:
        target.sendall(struct.pack(">i", len(frame)) + frame)
    except OSError:
        return False
    return True


def _close(*ends: socket.socket) -> None:
    for end in ends:
        try:
            end.shutdown(socket.SHUT_RDWR)
        except OSError:
            end.close()
