"""Refuses what a pure test must not do: reach beyond this computer, and start Java or a browser.
And no file of tests leaves a Kafka client behind: it would look for its broker for ever.

Python's audit events show both, whichever library asks for it. What native clients and the
commands in other processes do is not seen.
"""

from __future__ import annotations

import ipaddress
import os
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Generator, Mapping
from pathlib import Path
from typing import Any

import pytest

from .browser import NAMES
from .needs import is_pure

CLIENT_THREAD = "kafka-io"
"""How the names of kafka-python's threads begin."""
CLOSING_SECONDS = 5.0
PROGRAMS = frozenset({"java", "spark-submit", "spark-class", *NAMES})

_refused: list[str] = []
_watching = False


def _is_here(host: Any) -> bool:
    """True for an address or a name of this computer, and for "all its addresses"."""
    text = host.decode() if isinstance(host, bytes) else host
    if text in (None, "", "localhost"):
        return True
    try:
        return ipaddress.ip_address(text).is_loopback
    except ValueError:
        return False


def _is_address(host: Any) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _connect(_: socket.socket, address: Any) -> None:
    # A Unix socket has a path for an address.
    if isinstance(address, tuple) and not _is_here(address[0]):
        _refused.append(f"connects to {address[0]}")
        raise OSError(f"a pure test connects to {address[0]}")


def _look_up(host: Any, *_: Any) -> None:
    # To look at a number asks nobody.
    if not _is_here(host) and not _is_address(host):
        _refused.append(f"looks up {host}")
        raise socket.gaierror(socket.EAI_NONAME, f"a pure test looks up {host}")


def _start(program: Any, *_: Any) -> None:
    path = Path(os.fsdecode(program))
    # A test's own script may have such a name.
    if path.name in PROGRAMS and not path.is_relative_to(tempfile.gettempdir()):
        _refused.append(f"starts {path}")
        raise OSError(f"a pure test starts {path}")


_LAWS: Mapping[str, Callable[..., None]] = {
    "socket.connect": _connect,
    "socket.sendto": _connect,
    "socket.getaddrinfo": _look_up,
    "socket.gethostbyname": _look_up,
    "subprocess.Popen": _start,
}


def _watch(event: str, arguments: tuple[Any, ...]) -> None:
    if _watching and (law := _LAWS.get(event)):
        law(*arguments)


def pytest_configure() -> None:
    sys.addaudithook(_watch)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Watches while a pure test and its fixtures run."""
    global _watching
    _refused.clear()
    _watching = is_pure(item)
    try:
        return (yield)
    finally:
        _watching = False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    """Fails a test of which something was refused, also if it did not notice, and the last test of
    a file that leaves a client."""
    yield
    if _refused:
        pytest.fail(f"a pure test {', '.join(_refused)}; take a fixture of kit.needs.NEEDS")
    if (nextitem is None or nextitem.path != item.path) and not _await_closed_clients():
        # Its waits draw from the random numbers on which tests with random examples depend.
        pytest.fail(f"a test of {item.path.name} leaves a Kafka client open")


def _await_closed_clients() -> bool:
    """Whether all clients of this process are closed, or are a little later."""
    deadline = time.monotonic() + CLOSING_SECONDS
    while any(thread.name.startswith(CLIENT_THREAD) for thread in threading.enumerate()):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True
