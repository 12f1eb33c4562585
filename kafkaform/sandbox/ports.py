"""Find free ports on the loopback address."""

from __future__ import annotations

import random
import socket
from collections.abc import Iterable
from contextlib import ExitStack
from itertools import islice

from msgspec.structs import astuple

from ..core.errors import KafkaformError
from .record import HOST, Ports

# Below the ports that a system gives to outgoing connections (Linux from 32768, RFC 6335 from
# 49152). A client could get one of those before the broker starts or while it restarts, even the
# client that waits for this broker: a connection to a free port of that range can connect to
# itself.
_FIRST, _LAST = 20_000, 29_999


def allocate_ports(brokers: int, tls: bool, previous: tuple[Ports, ...] = ()) -> tuple[Ports, ...]:
    """Ports for this many brokers: the previous ones if they fit and are all free, otherwise new
    ones."""
    # With the previous ports, clients of a sandbox with kept data find it again.
    fits = len(previous) == brokers and all((p.tls is not None) == tls for p in previous)
    if fits and are_free(port for ports in previous for port in astuple(ports) if port):
        return previous
    width = 4 if tls else 3
    numbers = find_free_ports(brokers * width)
    return tuple(Ports(*numbers[at : at + width]) for at in range(0, len(numbers), width))


def are_free(ports: Iterable[int]) -> bool:
    with ExitStack() as stack:
        try:
            for port in ports:
                stack.enter_context(_bind_port(port))
        except OSError:
            return False
    return True


def find_free_ports(count: int) -> tuple[int, ...]:
    """This many free ports, chosen at random. Raises KafkaformError."""
    # At random, so that two sandboxes that start at the same time rarely choose the same.
    shuffled = random.sample(range(_FIRST, _LAST + 1), _LAST - _FIRST + 1)
    free_ports = tuple(islice((port for port in shuffled if are_free((port,))), count))
    if len(free_ports) < count:
        raise KafkaformError(
            f"fewer than {count} ports of {HOST} are free between {_FIRST} and {_LAST}",
            "`kafkaform sandbox status` lists the sandboxes; end those that you do not need",
        )
    return free_ports


def _bind_port(port: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # As the broker does: otherwise connections of the last run in TIME_WAIT would block a port.
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        sock.bind((HOST, port))
    except OSError:
        sock.close()
        raise
    return sock
