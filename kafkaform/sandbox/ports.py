"""Free ports on the loopback address."""

from __future__ import annotations

import socket
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import astuple

from .record import HOST, Ports


def allocate(brokers: int, tls: bool, previous: tuple[Ports, ...] = ()) -> tuple[Ports, ...]:
    """Ports for this many brokers: the previous ones if they fit and are all free, so that
    clients of a sandbox with kept data find it again, else new ones."""
    fits = len(previous) == brokers and all((p.tls is not None) == tls for p in previous)
    if fits and all_free(port for ports in previous for port in astuple(ports) if port):
        return previous
    each = 4 if tls else 3
    found = _free(brokers * each)
    return tuple(Ports(*found[at : at + each]) for at in range(0, len(found), each))


def all_free(ports: Iterable[int]) -> bool:
    with ExitStack() as stack:
        try:
            for port in ports:
                stack.enter_context(_bound(port))
        except OSError:
            return False
    return True


def _free(count: int) -> list[int]:
    # All stay bound until the last is found; otherwise the same port could come twice.
    with ExitStack() as stack:
        sockets = [stack.enter_context(_bound(0)) for _ in range(count)]
        return [int(each.getsockname()[1]) for each in sockets]


def _bound(port: int) -> socket.socket:
    each = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    # As the broker does: connections of the last run in TIME_WAIT do not make a port taken.
    each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        each.bind((HOST, port))
    except OSError:
        each.close()
        raise
    return each
