"""A connection that was never made leaves nothing behind."""

from __future__ import annotations

import socket
import threading

import pytest

from kafkaform_kafka.wire.client import RequestNotSent, Wire

_OURS = "failed-connection"


def test_a_connection_that_fails_ends_its_thread() -> None:
    """Otherwise a refused login would be tried again and again in the background."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, but nobody listens
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        with pytest.raises(RequestNotSent):
            Wire({"bootstrap_servers": [address], "client_id": _OURS}, 0.2)
    assert not [each.name for each in threading.enumerate() if _OURS in each.name]
